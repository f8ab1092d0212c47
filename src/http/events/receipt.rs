//! The receipt of a request with events: the outcome of each event on each board.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::Serialize;
use utoipa::ToSchema;

use crate::board::{
    BoardName, Event, FieldFault, Position as LogPosition, RankingKey, Shown, SourceName, Subject, Tie, Timestamp,
};
use crate::http::codes::ItemCode;
use crate::http::counts::{Counts, EventCounts, RejectedCounts};
use crate::http::items::{
    MAX_SHOWN, ParsedItems, Position, code_of_amount, code_of_rejection, detail_of_rejection, rejection_problem,
};
use crate::http::problem::Problem;
use crate::http::{response, schemas};
use crate::service::{EventOutcome, OnBoard, PortionRecorded, Refusal, SourceItem, Taken};

/// Maximum number of unknown types that a response lists.
const MAX_TYPES_SHOWN: usize = 100;

/// The detail of an event for a board whose data is damaged.
const DAMAGED: &str = "the data of the board is damaged, so whether it counted the event is not known; other boards \
                       have counted what this response says";

/// The outcomes of the events of a request. Each event is counted under one of `accepted`, `duplicates`, `unmatched`
/// and `unknown`, unless it was invalid, every board rejected it, or `source` says what became of it.
#[derive(Debug, Default, Serialize, ToSchema)]
pub(in crate::http) struct EventsReceipt {
    /// Number of events that at least one board accepted. Other boards may have rejected them; see `rejected`.
    pub(in crate::http) accepted: u64,
    /// Number of events that no board accepted, because at least one counted their `id` before.
    pub(in crate::http) duplicates: u64,
    /// The first 1,000 rejections, each with its reason: of an event by one board or, without `board`, of an invalid
    /// event.
    #[schema(max_items = 1000)]
    pub(in crate::http) rejected: Vec<EventRejected>,
    /// Number of rejections by code; absent if there are none.
    #[serde(skip_serializing_if = "RejectedCounts::is_empty")]
    #[schema(schema_with = schemas::rejected_counts, required = false)]
    pub(in crate::http) rejected_counts: RejectedCounts,
    /// Number of events whose type is counted by boards, all of whose filters exclude the event.
    unmatched: u64,
    /// Number of events whose type no board counts.
    unknown: u64,
    /// The first 100 types that no board counts, each with its number of events.
    unknown_types: BTreeMap<Box<str>, u64>,
    /// The outcomes on each board that the events were sent to.
    #[schema(value_type = BTreeMap<String, OnOneBoard>)]
    boards: BTreeMap<BoardName, OnOneBoard>,
    /// With `source`: how far the source is counted.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = SourceReceipt, required = false, nullable = false)]
    pub(in crate::http) source: Option<Box<SourceReceipt>>,
    /// With `return=score`: the new score for each event and each board that counted it, now or before.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    scores: Option<Vec<EventScore>>,
    /// The outcomes on all boards, summed.
    #[serde(skip)]
    on_boards: Counts,
    /// Number of events that were invalid or rejected by every board.
    #[serde(skip)]
    rejected_events: u64,
    /// Whether an edition beside the current one of its board may have counted an event that the current one has rejected.
    #[serde(skip)]
    is_beside: bool,
    /// The time of the newest item of a source that a board has counted, now or before.
    #[serde(skip)]
    newest: Option<Timestamp>,
}

/// The outcomes of the events of a request on one board.
#[derive(Clone, Copy, Debug, Default, Serialize, ToSchema)]
#[schema(as = BoardOutcome)]
struct OnOneBoard {
    /// Number of events counted by this request.
    accepted: u64,
    /// Number of events whose `id` was counted before.
    duplicates: u64,
    /// Number of rejected events; `rejected` of the receipt lists the reasons.
    rejected: u64,
}

/// How far a source is counted, and what became of its items beside the other numbers of the receipt.
#[derive(Debug, Default, Serialize, ToSchema)]
pub(in crate::http) struct SourceReceipt {
    #[schema(schema_with = schemas::source)]
    name: String,
    /// The position up to which all boards of the source have counted it, those in `left_out` excepted: the next request goes
    /// on after it. If nothing waits, that of the last item of the request, or a later one if that was counted before.
    /// Null if no board has joined the source, and the request has no items.
    #[schema(schema_with = schemas::position_or_null, required = true)]
    reached: Option<LogPosition>,
    /// With `fill`: whether the board has everything that was in the log before it joined the source, from where its fill began.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    filled: Option<bool>,
    /// Number of items that all boards which take them had counted before, or that are before what these count of the
    /// source.
    repeated: u64,
    /// Number of items that at least one board has not counted yet. Send them again later: what is counted is counted once.
    waiting: u64,
    /// The reasons why items wait, with the number of them, once for each board; absent if none waits. Items that only
    /// follow one that waits have no reason of their own.
    #[serde(skip_serializing_if = "RejectedCounts::is_empty")]
    #[schema(schema_with = schemas::rejected_counts, required = false)]
    waiting_for: RejectedCounts,
    /// The boards that have counted nothing: their data is damaged, and when it is repaired, the source goes on where they
    /// are; or the source has no room for them.
    #[schema(value_type = Vec<String>)]
    left_out: Vec<BoardName>,
}

/// A rejected event.
#[derive(Debug, Serialize, ToSchema)]
pub(in crate::http) struct EventRejected {
    /// Index of the event in the request, from 0 (JSON).
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub(in crate::http) index: Option<u64>,
    /// Line of the event in the stream, from 1 (NDJSON).
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub(in crate::http) line: Option<u64>,
    /// The board that rejected the event; absent if the event is invalid.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(schema_with = schemas::board, required = false)]
    board: Option<BoardName>,
    /// The missing or invalid field, if the reason is about a field.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    field: Option<String>,
    /// Stable name of the reason.
    #[schema(schema_with = schemas::item_code)]
    pub(in crate::http) code: ItemCode,
    /// The reason, for people.
    pub(in crate::http) detail: String,
}

/// The score of a subject on one board after the event was counted.
#[derive(Debug, Serialize, ToSchema)]
struct EventScore {
    /// Index of the event in the request, from 0.
    index: u64,
    #[schema(schema_with = schemas::board)]
    board: BoardName,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(schema_with = schemas::by, required = false)]
    by: Option<RankingKey>,
    #[schema(schema_with = schemas::subject)]
    subject: Subject,
    /// The new score; null if the metric has no value for the subject yet.
    #[schema(schema_with = schemas::score, required = true)]
    score: Option<Shown>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(schema_with = schemas::tie, required = false)]
    tie: Option<Tie>,
}

/// Events, each with the names of its fields that metrics cannot use.
pub(super) type ParsedEvents<E = Arc<Event>> = ParsedItems<E, Vec<Box<str>>>;

impl EventsReceipt {
    /// Creates an empty receipt, with or without scores.
    pub(super) fn new(with_scores: bool) -> Self {
        Self { scores: with_scores.then(Vec::new), ..Self::default() }
    }

    /// Adds the outcome of one event; `at` is its index in [`ParsedItems::valid`].
    pub(super) fn record<E>(&mut self, parsed: &mut ParsedEvents<E>, at: usize, kind: &str, outcome: EventOutcome) {
        let Some((number, nested)) = parsed.details.get_mut(at).map(|(n, nested)| (*n, std::mem::take(nested))) else {
            return;
        };
        self.record_errors(parsed, number);
        let (mut is_counted, mut is_duplicate, mut is_repeated, mut waits) = (false, false, false, false);
        let has_no_board = outcome.boards.is_empty();
        for on_board in outcome.boards {
            match on_board.taken {
                Taken::Counted { .. } => is_counted = true,
                Taken::Duplicate { .. } => is_duplicate = true,
                Taken::Refused(_) => {}
                Taken::Repeated => is_repeated = true,
                Taken::Waits(reason) => {
                    waits = true;
                    if let Some(reason) = reason {
                        self.source.get_or_insert_default().waiting_for.add(code_of_rejection(reason));
                    }
                }
            }
            self.record_on_board((parsed.position)(number), &nested, on_board);
        }
        match (outcome.is_known, is_counted, is_duplicate) {
            (false, ..) => self.record_unknown_type(kind),
            (true, true, _) => self.accepted += 1,
            (true, false, true) => self.duplicates += 1,
            (true, false, false) if waits => {}
            (true, false, false) if is_repeated => self.source.get_or_insert_default().repeated += 1,
            (true, false, false) if has_no_board => self.unmatched += 1,
            (true, false, false) => self.rejected_events += 1,
        }
        if waits {
            self.source.get_or_insert_default().waiting += 1;
        }
    }

    /// Adds the outcome of an item of a source; `at` is its index in [`ParsedItems::valid`].
    pub(super) fn record_item<E>(
        &mut self,
        parsed: &mut ParsedEvents<E>,
        at: usize,
        item: &SourceItem,
        outcome: EventOutcome,
    ) {
        let is_counted = |on: &OnBoard| !matches!(on.taken, Taken::Refused(_) | Taken::Waits(_));
        if outcome.boards.iter().any(is_counted) {
            self.newest = self.newest.max(item.at());
        }
        self.record(parsed, at, item.kind(), outcome);
    }

    /// Adds how far the source is counted; `waiting` items have no outcome of their own, because they wait.
    pub(super) fn record_source(&mut self, source: &SourceName, recorded: PortionRecorded, waiting: u64) {
        let receipt = self.source.get_or_insert_default();
        receipt.name = source.to_string();
        receipt.reached = recorded.reached;
        receipt.filled = recorded.filled;
        receipt.waiting += waiting;
        receipt.left_out = recorded.left_out;
    }

    /// Returns whether the receipt does not say how far a source is counted.
    pub(super) fn has_no_source(&self) -> bool {
        self.source.is_none()
    }

    /// Adds the invalid items before this number.
    pub(super) fn record_errors<E>(&mut self, parsed: &mut ParsedEvents<E>, number: u64) {
        while let Some((position, error)) = parsed.next_error(number) {
            self.rejected_events += 1;
            let field = (!error.field.is_empty()).then_some(error.field);
            self.reject(position, None, error.code, || (field, error.detail));
        }
    }

    fn record_unknown_type(&mut self, kind: &str) {
        self.unknown += 1;
        if let Some(events) = self.unknown_types.get_mut(kind) {
            *events += 1;
        } else if self.unknown_types.len() < MAX_TYPES_SHOWN {
            self.unknown_types.insert(kind.into(), 1);
        }
    }

    fn record_on_board(&mut self, position: Position, nested: &[Box<str>], on: OnBoard) {
        let OnBoard { board, subject, taken, is_beside } = on;
        let counts = match self.boards.get_mut(board.name()) {
            Some(counts) => counts,
            None => self.boards.entry(board.name().clone()).or_default(),
        };
        let score = match taken {
            Taken::Counted { score } => {
                counts.accepted += 1;
                self.on_boards.accepted += 1;
                score
            }
            Taken::Duplicate { score } => {
                counts.duplicates += 1;
                self.on_boards.duplicates += 1;
                score
            }
            Taken::Repeated | Taken::Waits(_) => return,
            Taken::Refused(refusal) => {
                counts.rejected += 1;
                let code = code_of_refusal(&refusal, nested);
                self.on_boards.rejected.add(code);
                self.is_beside |= is_beside;
                let beside = match board.other().filter(|_| is_beside) {
                    Some(other) => {
                        format!("; the {} edition of the board counts it by its own rule", other.role.name())
                    }
                    None => String::new(),
                };
                let reason = || match refusal {
                    Refusal::Field(fault) => (Some(fault.field().to_owned()), detail_of_fault(&fault, nested)),
                    Refusal::RetractionUnsupported => {
                        let detail = format!("{} does not support retractions", board.definition().metric);
                        (Some("retract".to_owned()), detail)
                    }
                    Refusal::RetractionWithoutTime => (Some("at".to_owned()), "a retraction needs 'at'".to_owned()),
                    Refusal::Store(rejection) => (None, detail_of_rejection(rejection, &board)),
                    Refusal::Damaged => (None, DAMAGED.to_owned()),
                };
                self.reject(position, Some(board.name()), code, || {
                    let (field, detail) = reason();
                    (field, detail + &beside)
                });
                return;
            }
        };
        if let (Some(scores), Some(subject), Position::Index(index)) = (&mut self.scores, subject, position) {
            let (by, subject) = subject.split();
            scores.push(EventScore {
                index,
                board: board.name().clone(),
                by,
                subject,
                score: response::score(board.scale(), score),
                tie: response::tie(board.scale(), score),
            });
        }
    }

    /// Adds a rejection. Field and detail are computed only if they are shown.
    fn reject(
        &mut self,
        position: Position,
        board: Option<&BoardName>,
        code: ItemCode,
        field_and_detail: impl FnOnce() -> (Option<String>, String),
    ) {
        self.rejected_counts.add(code);
        if self.rejected.len() < MAX_SHOWN {
            let (index, line) = position.index_and_line();
            let (field, detail) = field_and_detail();
            self.rejected.push(EventRejected { index, line, board: board.cloned(), field, code, detail });
        }
    }

    /// Returns whether there are rejected events, and nothing was counted, nor are there events with another outcome.
    pub(super) fn has_rejections_only(&self) -> bool {
        if self.is_beside {
            return false;
        }
        let others = self.accepted + self.duplicates + self.unmatched + self.unknown;
        self.rejected_events > 0 && others == 0
    }

    /// Returns the problem of a request that counted nothing.
    pub(super) fn into_problem(self) -> Problem {
        rejection_problem(&self.rejected, &self.rejected_counts)
    }

    /// Returns the numbers of events by outcome.
    pub(super) fn counts(&self) -> EventCounts {
        EventCounts {
            accepted: self.accepted,
            duplicates: self.duplicates,
            unmatched: self.unmatched,
            unknown: self.unknown,
            repeated: self.source.as_ref().map_or(0, |source| source.repeated),
            waiting: self.source.as_ref().map_or(0, |source| source.waiting),
            rejected: self.rejected_events,
            by_code: self.rejected_counts.clone(),
            newest: self.newest,
            on_boards: self.on_boards.clone(),
        }
    }
}

/// Returns whether the field that a board misses was sent as an array or object.
fn is_nested(fault: &FieldFault, nested: &[Box<str>]) -> bool {
    matches!(fault, FieldFault::Missing { field } if nested.contains(field))
}

fn code_of_refusal(refusal: &Refusal, nested: &[Box<str>]) -> ItemCode {
    match refusal {
        Refusal::Field(fault) if is_nested(fault, nested) => ItemCode::InvalidField,
        Refusal::Field(FieldFault::Missing { .. }) => ItemCode::MissingField,
        Refusal::Field(FieldFault::Invalid { .. }) => ItemCode::InvalidField,
        Refusal::Field(FieldFault::Amount { source, .. }) => code_of_amount(source),
        Refusal::RetractionUnsupported => ItemCode::RetractionUnsupported,
        Refusal::RetractionWithoutTime => ItemCode::MissingAt,
        Refusal::Store(rejection) => code_of_rejection(*rejection),
        Refusal::Damaged => ItemCode::BoardDamaged,
    }
}

fn detail_of_fault(fault: &FieldFault, nested: &[Box<str>]) -> String {
    if is_nested(fault, nested) {
        let field = fault.field();
        return format!("the field '{field}' must be a string, a number, or true or false, not an array or object");
    }
    fault.to_string()
}
