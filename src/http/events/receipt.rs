//! What became of the events of one request.

use std::collections::BTreeMap;

use serde::Serialize;
use utoipa::ToSchema;

use super::item::SentEvent;
use crate::board::{BoardName, Event, FieldFault, Shown, Subject};
use crate::http::answer;
use crate::http::codes::ItemCode;
use crate::http::increments::{Counts, code_of_amount};
use crate::http::intake::{Flaw, Place, RejectedCounts, SHOWN, code_of, detail_of};
use crate::http::openapi::{board_schema, score_schema, subject_schema};
use crate::service::{EventOutcome, OnBoard, Refusal, Taken};

/// How many unknown types an answer names; all of their events are counted.
const TYPES_SHOWN: usize = 100;

/// What became of the events of one request. Each event is in one of `accepted`, `duplicates`, `unmatched` and
/// `unknown`, or else was refused by every board it was for, or before any saw it.
#[derive(Debug, Default, Serialize, ToSchema)]
pub(in crate::http) struct EventsReceipt {
    /// Events that at least one board took. Another board may have refused one of them: see `rejected`.
    pub(super) accepted: u64,
    /// Events that no board took, because at least one had counted their `id` before.
    pub(super) duplicates: u64,
    /// The first 1,000 rejections, each with its reason: of an event by one board or, without `board`, by all.
    #[schema(max_items = 1000)]
    rejected: Vec<EventRejected>,
    /// How many rejections there were, by code; absent if there are none.
    #[serde(skip_serializing_if = "RejectedCounts::is_empty")]
    #[schema(schema_with = crate::http::openapi::rejected_counts_schema, required = false)]
    rejected_counts: RejectedCounts,
    /// Events of a type that boards count, but which the filter of every one leaves out.
    unmatched: u64,
    /// Events of a type that no board counts.
    unknown: u64,
    /// The first 100 such types, each with the number of its events.
    unknown_types: BTreeMap<Box<str>, u64>,
    /// What each board did with the events it was given.
    #[schema(value_type = BTreeMap<String, OnOneBoard>)]
    boards: BTreeMap<BoardName, OnOneBoard>,
    /// With `return=score`: for each event and each board that has it, counted now or before, the subject's new score.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    scores: Option<Vec<EventScore>>,
    /// What the boards did, added up.
    #[serde(skip)]
    on_boards: Counts,
    #[serde(skip)]
    refused: u64,
}

/// What one board did with the events of a request.
#[derive(Clone, Copy, Debug, Default, Serialize, ToSchema)]
struct OnOneBoard {
    /// Counted now.
    accepted: u64,
    /// Counted before, by their `id`.
    duplicates: u64,
    /// Not counted; `rejected` says why.
    rejected: u64,
}

/// A rejection of an event.
#[derive(Debug, Serialize, ToSchema)]
struct EventRejected {
    /// The event's place in the request, from 0 (JSON).
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    index: Option<u64>,
    /// The event's line in the stream, from 1 (NDJSON).
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    line: Option<u64>,
    /// The board that refused it; absent if it is no event at all.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(schema_with = board_schema, required = false)]
    board: Option<BoardName>,
    /// The field at fault, if one is.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    field: Option<String>,
    /// The stable name of the reason.
    #[schema(schema_with = crate::http::openapi::item_code_schema)]
    code: ItemCode,
    /// The reason for a person.
    detail: String,
}

/// A subject's score on one board after the step that counted the event.
#[derive(Debug, Serialize, ToSchema)]
struct EventScore {
    /// The event's place in the request, from 0.
    index: u64,
    #[schema(schema_with = board_schema)]
    board: BoardName,
    #[schema(schema_with = subject_schema)]
    subject: Subject,
    /// The new score; null where the metric says nothing of the subject yet.
    #[schema(schema_with = score_schema, required = true)]
    score: Option<Shown>,
}

/// The numbers of a receipt.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::http) struct EventCounts {
    pub(in crate::http) accepted: u64,
    pub(in crate::http) duplicates: u64,
    pub(in crate::http) unmatched: u64,
    pub(in crate::http) unknown: u64,
    /// Refused by every board it was for, or before any saw it.
    pub(in crate::http) refused: u64,
    /// What the boards did, added up: each event as often as it was for a board.
    pub(in crate::http) on_boards: Counts,
}

/// Items of a request, sorted into events and flaws.
pub(super) struct JudgedEvents {
    place: fn(u64) -> Place,
    pub(super) events: Vec<Event>,
    /// The number of each event, and its fields that no metric can read.
    sent: Vec<(u64, Vec<Box<str>>)>,
    /// Items that are no events, by number.
    flawed: std::collections::VecDeque<(u64, Flaw)>,
}

impl JudgedEvents {
    pub(super) fn new(place: fn(u64) -> Place, events: usize) -> Self {
        let (events, sent) = (Vec::with_capacity(events), Vec::with_capacity(events));
        Self { place, events, sent, flawed: Default::default() }
    }

    /// Takes an item in. Numbers only grow.
    pub(super) fn take(&mut self, number: u64, item: Result<SentEvent, Flaw>) {
        match item {
            Ok(SentEvent { event, nested }) => {
                self.events.push(event);
                self.sent.push((number, nested));
            }
            Err(flaw) => self.flawed.push_back((number, flaw)),
        }
    }
}

impl EventsReceipt {
    /// One that will answer scores, or not.
    pub(super) fn new(with_scores: bool) -> Self {
        Self { scores: with_scores.then(Vec::new), ..Self::default() }
    }

    /// Takes in what became of one event; `at` is its place among those judged.
    pub(super) fn settle(&mut self, judged: &mut JudgedEvents, at: usize, kind: &str, outcome: EventOutcome) {
        let Some((number, nested)) = judged.sent.get_mut(at).map(|(n, nested)| (*n, std::mem::take(nested))) else {
            return;
        };
        while judged.flawed.front().is_some_and(|(flawed, _)| *flawed < number) {
            self.settle_flaw(judged);
        }
        let (mut counted, mut known) = (false, false);
        let is_for_none = outcome.boards.is_empty();
        for on in outcome.boards {
            match on.taken {
                Taken::Counted { .. } => counted = true,
                Taken::Duplicate { .. } => known = true,
                Taken::Refused(_) => {}
            }
            self.settle_on_board((judged.place)(number), &nested, on);
        }
        match (outcome.is_known, counted, known) {
            (false, ..) => self.settle_unknown(kind),
            (true, true, _) => self.accepted += 1,
            (true, false, true) => self.duplicates += 1,
            (true, false, false) if is_for_none => self.unmatched += 1,
            (true, false, false) => self.refused += 1,
        }
    }

    /// Takes in the items that are left and were no events.
    pub(super) fn settle_rest(&mut self, mut judged: JudgedEvents) {
        while !judged.flawed.is_empty() {
            self.settle_flaw(&mut judged);
        }
    }

    fn settle_flaw(&mut self, judged: &mut JudgedEvents) {
        if let Some((number, flaw)) = judged.flawed.pop_front() {
            self.refused += 1;
            let field = (!flaw.field.is_empty()).then_some(flaw.field);
            self.reject((judged.place)(number), None, flaw.code, || (field, flaw.detail));
        }
    }

    fn settle_unknown(&mut self, kind: &str) {
        self.unknown += 1;
        if let Some(events) = self.unknown_types.get_mut(kind) {
            *events += 1;
        } else if self.unknown_types.len() < TYPES_SHOWN {
            self.unknown_types.insert(kind.into(), 1);
        }
    }

    fn settle_on_board(&mut self, place: Place, nested: &[Box<str>], on: OnBoard) {
        let OnBoard { board, subject, taken } = on;
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
            Taken::Refused(refusal) => {
                counts.rejected += 1;
                let code = code_of_refusal(&refusal, nested);
                self.on_boards.rejected.add(code);
                self.reject(place, Some(board.name()), code, || match refusal {
                    Refusal::Field(fault) => (Some(fault.field().to_owned()), detail_of_fault(&fault, nested)),
                    Refusal::RetractionUnsupported => {
                        let detail = format!("{} cannot undo what it has counted", board.definition().metric);
                        (Some("retract".to_owned()), detail)
                    }
                    Refusal::RetractionWithoutTime => (Some("at".to_owned()), "a retraction needs 'at'".to_owned()),
                    Refusal::Store(rejection) => (None, detail_of(rejection, &board)),
                });
                return;
            }
        };
        if let (Some(scores), Some(subject), Place::Index(index)) = (&mut self.scores, subject, place) {
            scores.push(EventScore {
                index,
                board: board.name().clone(),
                subject,
                score: answer::score(&board, score),
            });
        }
    }

    /// Notes a rejection. The field and the detail are made only if they will be shown.
    fn reject(
        &mut self,
        place: Place,
        board: Option<&BoardName>,
        code: ItemCode,
        why: impl FnOnce() -> (Option<String>, String),
    ) {
        self.rejected_counts.add(code);
        if self.rejected.len() < SHOWN {
            let (index, line) = place.index_and_line();
            let (field, detail) = why();
            self.rejected.push(EventRejected { index, line, board: board.cloned(), field, code, detail });
        }
    }

    /// Its numbers.
    pub(super) fn counts(&self) -> EventCounts {
        EventCounts {
            accepted: self.accepted,
            duplicates: self.duplicates,
            unmatched: self.unmatched,
            unknown: self.unknown,
            refused: self.refused,
            on_boards: self.on_boards,
        }
    }
}

/// A field that was sent as a list or an object is not missing.
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
        Refusal::Store(rejection) => code_of(*rejection),
    }
}

fn detail_of_fault(fault: &FieldFault, nested: &[Box<str>]) -> String {
    if is_nested(fault, nested) {
        let field = fault.field();
        return format!("the field '{field}': a list or an object, where a text, a number, or true or false is needed");
    }
    fault.to_string()
}
