//! Requests with increments or samples for one board: parses the items, adds them and returns the receipt.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use actix_web::HttpResponse;
use actix_web::http::StatusCode;
use actix_web::web::{Data, Payload};

use super::item::{BoardItem, ParsedIncrement};
use super::receipt::{ParsedIncrements, Receipt};
use crate::access::Caller;
use crate::board::{AttributesChange, AttributesError, Board, BoardName, Subject};
use crate::http::admission::Validity;
use crate::http::body::{self, Format};
use crate::http::call::Call;
use crate::http::codes::ItemCode;
use crate::http::counts::Counts;
use crate::http::events::EventsReceipt;
use crate::http::events::sourced::{self, SourcedKind, SourcedRequest};
use crate::http::items::{self, BodyError, ItemError, ItemIds, NdjsonLine, ParsedItems, Position, stream};
use crate::http::limits::ItemLimits;
use crate::http::metrics::{IncrementMetrics, SourcedMetrics};
use crate::http::parameters::{ItemParameters, LogPart};
use crate::http::problem::Problem;
use crate::http::state::HttpState;
use crate::http::{large, response};
use crate::service::{self, Batch, Increment, Outcome, ServiceError, StoreError};

/// A kind of item that is sent to one board: increments or samples.
pub(in crate::http) struct ItemKind {
    pub(in crate::http) parse_items: fn(&[u8], &Board) -> ParsedItemsOfBody,
    pub(in crate::http) parse_line: fn(NdjsonLine<'_>, &Board) -> ParsedIncrement,
    /// Whether the last of several items must take effect last, so that a stream is processed in order.
    pub(in crate::http) in_order: bool,
    /// Refuses a board that does not accept items of this kind.
    pub(in crate::http) check_board: fn(&Board) -> Result<(), Problem>,
    /// The same kind of item with a position, if a source can have it.
    pub(in crate::http) sourced: Option<&'static SourcedKind>,
}

/// Handles a request with items for one board.
pub(in crate::http) async fn add_items(
    kind: &'static ItemKind,
    call: Call,
    payload: Payload,
    metrics: Data<IncrementMetrics>,
) -> Result<HttpResponse, Problem> {
    let format = items::pinned::format(&call)?;
    let mut parameters = ItemParameters::of_board(&call, format == Format::Ndjson, kind.sourced.is_some())?;
    let name = call.board_name()?;
    if let (Some(kind), Some(part)) = (kind.sourced, parameters.source.take()) {
        // Boxed, because every other request would move what only these need.
        let receipt: Receipt =
            Box::pin(count_of_source(kind, call, &name, payload, metrics, format, part)).await?.into();
        return Ok(response::json_text(StatusCode::OK, response::to_json(&receipt)?));
    }
    let ids = ItemIds::from_request(&call.request, &call.caller)?;
    let incoming = call.incoming(payload, format)?;
    let board = call.service().board(&call.caller, &name).await?;
    let limits = call.item_limits();
    // Without the request, because what follows may run in another thread.
    let ingest = Ingest { kind, state: call.state, caller: call.caller, ids, parameters };
    let Ingest { state, caller, .. } = &ingest;
    let text = match format {
        Format::Ndjson => {
            // Lines that were already added cannot be parsed again, so a stream must start with the current board.
            let board = state.service.refreshed(&board).await?;
            (kind.check_board)(&board)?;
            let has_attributes = AtomicBool::new(false);
            let handler = BoardLines { ingest: &ingest, board, metrics: &metrics, has_attributes };
            let validity = Validity::of(caller, state);
            // Boxed, because every other request would move what only a stream needs.
            let receipt = Box::pin(stream::process(&handler, incoming, &state.options, limits, validity)).await?;
            response::to_json(&receipt)?
        }
        Format::Json => {
            let body = items::pinned::complete(caller, body::read(incoming, caller, &state.options).await?)?;
            let is_large = body.len() > large::BODY;
            let add = move || async move {
                let receipt = ingest.add_body(&board, &body, &limits).await?;
                metrics.record(&Counts::default(), &receipt.counts());
                response::to_json(&receipt)
            };
            large::handle(is_large, add).await?
        }
    };
    Ok(response::json_text(StatusCode::OK, text))
}

/// Counts the items of a request, which are a part of the log of a source.
async fn count_of_source(
    kind: &'static SourcedKind,
    call: Call,
    name: &BoardName,
    payload: Payload,
    metrics: Data<IncrementMetrics>,
    format: Format,
    part: Box<LogPart>,
) -> Result<EventsReceipt, Problem> {
    if let Some(other) = part.fill.as_ref().filter(|fill| *fill != name) {
        return Err(Problem::field("fill", format!("'fill' is '{other}', and the increments are for '{name}'")));
    }
    let board = call.service().board(&call.caller, name).await?;
    // What the present definition accepts must not be passed because an earlier one refuses it.
    let board = Some(call.service().refreshed(&board).await?);
    let request = SourcedRequest { kind, part, board, metrics: SourcedMetrics::Increments(metrics) };
    sourced::count(call, payload, format, request).await
}

/// Parses all items of a body for the board.
pub(in crate::http) fn parse_items<'a, I: BoardItem<'a>>(body: &'a [u8], board: &Board) -> ParsedItemsOfBody {
    let (mut described, mut valid) = (Described::new(), 0);
    let items = ParsedItems::of_body(body, |mut item: I| {
        let attributes = item.take_attributes()?;
        let increment = item.into_increment(board)?;
        if let Some(attributes) = attributes {
            described.push((valid, increment.subject.clone(), attributes));
        }
        valid += 1;
        Ok((increment, ()))
    })?;
    Ok((items, described))
}

/// Parses a line of a stream for the board.
pub(in crate::http) fn parse_line<'a, I: BoardItem<'a>>(line: NdjsonLine<'a>, board: &Board) -> ParsedIncrement {
    let mut item = items::parse_line::<I>(line)?;
    let attributes = item.take_attributes()?;
    Ok((item.into_increment(board)?, attributes))
}

/// A body that was parsed for a board.
struct ParsedBody {
    increments: Vec<Increment>,
    /// The subject of each increment, if scores are returned.
    subjects: Vec<Subject>,
    described: Described,
    /// The number of items, valid or not.
    number: usize,
    /// Whether the errors of items that became no increments could differ under another definition.
    depends_on_board: bool,
    items: Result<ParsedIncrements, Problem>,
}

impl ParsedBody {
    fn of(ingest: &Ingest, body: &[u8], board: &Board) -> Self {
        let Ingest { kind, ids, parameters, .. } = ingest;
        let ItemParameters { return_scores, strict, .. } = *parameters;
        let checked = (kind.check_board)(board).map_err(|problem| BodyError { problem, depends_on_board: true });
        match checked.and_then(|()| (kind.parse_items)(body, board)) {
            Ok((items, _)) if strict && items.has_errors() => {
                let (number, depends_on_board) = (items.len(), items.depends_on_board());
                Self::without_increments(Receipt::refusing(items), number, depends_on_board)
            }
            Ok((mut items, described)) => {
                items.add_ids(ids.as_ref(), |increment| &mut increment.id);
                let increments = std::mem::take(&mut items.valid);
                let mut subjects = Vec::new();
                if return_scores {
                    subjects.extend(increments.iter().map(|increment| increment.subject.clone()));
                }
                let (number, depends_on_board) = (items.len(), items.depends_on_board());
                Self { increments, subjects, described, number, depends_on_board, items: Ok(items) }
            }
            Err(BodyError { problem, depends_on_board }) => Self::without_increments(problem, 0, depends_on_board),
        }
    }

    /// Returns a body of which nothing is sent.
    fn without_increments(problem: Problem, number: usize, depends_on_board: bool) -> Self {
        let (increments, subjects, described) = (Vec::new(), Vec::new(), Described::new());
        Self { increments, subjects, described, number, depends_on_board, items: Err(problem) }
    }
}

/// The items of one request: what they are, whose, and the ids of those that have none.
struct Ingest {
    kind: &'static ItemKind,
    state: Data<HttpState>,
    caller: Caller,
    ids: Option<ItemIds>,
    parameters: ItemParameters,
}

impl Ingest {
    /// Adds items, which must be in the period that the request names, if it names one. Also returns the board whose
    /// editions have judged them.
    async fn send(
        &self,
        board: &Arc<Board>,
        mut increments: Vec<Increment>,
        return_scores: bool,
    ) -> service::Result<(Vec<Outcome>, Arc<Board>)> {
        let service = &self.state.service;
        if let Some(period) = &self.parameters.period {
            // Boxed, because every other request would have room for it too.
            let start = Box::pin(service.period_start(board, period)).await?;
            increments.iter_mut().for_each(|increment| increment.period = Some(start));
        }
        let added = service.add(&self.caller, board, Batch { increments, return_scores }).await?;
        Ok((added.outcomes, added.newer.unwrap_or_else(|| board.clone())))
    }

    /// Merges the attributes of items with those of their subjects, if they were counted. Returns those that were not set.
    async fn describe(
        &self,
        described: Described,
        items: &ParsedIncrements,
        outcomes: &[Outcome],
        board: &Arc<Board>,
    ) -> Vec<(Position, ItemError)> {
        let is_counted = |at: usize| !matches!(outcomes.get(at), None | Some(Outcome::Rejected(_)));
        let counted = described.into_iter().filter(|(at, ..)| is_counted(*at));
        let (places, changes): (Vec<usize>, Vec<_>) =
            counted.map(|(at, subject, change)| (at, (subject, *change))).unzip();
        let position = |at: usize| (items.position)(items.details.get(at).map_or(0, |(number, ())| *number));
        // Boxed, because every other request would have room for it too.
        match Box::pin(self.state.service.set_attributes_beside(board, changes)).await {
            Ok(outcomes) => {
                let refused_of = |(at, outcome): (usize, Result<(), AttributesError>)| {
                    Some((position(at), ItemError::of_attributes(&outcome.err()?)))
                };
                places.into_iter().zip(outcomes).filter_map(refused_of).collect()
            }
            Err(error) => {
                let code = Problem::from(error).code().as_str();
                let detail = format!("the item was counted, and its attributes were not set: {code}");
                let error = || ItemError::value(ItemCode::AttributesNotSet, "attributes", &detail);
                places.into_iter().map(|at| (position(at), error())).collect()
            }
        }
    }

    /// Parses a body for the board and adds its items. If the board was defined again meanwhile, parses and adds once
    /// more for the new one.
    async fn add_body(&self, board: &Arc<Board>, body: &[u8], limits: &ItemLimits) -> Result<Receipt, Problem> {
        let (service, return_scores) = (&self.state.service, self.parameters.return_scores);
        let (mut board, mut is_repeated, mut is_taken) = (board.clone(), false, false);
        loop {
            let ParsedBody { increments, subjects, described, number, depends_on_board, items } =
                ParsedBody::of(self, body, &board);
            if number > 0 && !is_taken {
                // A body that is parsed again for another definition is counted once.
                limits.take(number)?;
                is_taken = true;
            }
            if !described.is_empty() {
                self.caller.require_secret()?;
            }
            let outcomes = if depends_on_board && !is_repeated && !service.refreshed(&board).await?.is_same_as(&board) {
                // What is refused here is not sent, so the store cannot tell that the board has another definition.
                Err(StoreError::BoardChanged.into())
            } else if increments.is_empty() {
                Ok((Vec::new(), board.clone()))
            } else {
                self.send(&board, increments, return_scores).await
            };
            match outcomes {
                Err(ServiceError::Store(StoreError::BoardChanged)) if !is_repeated => {
                    (board, is_repeated) = (service.refreshed(&board).await?, true);
                }
                outcomes => {
                    let (outcomes, judging) = outcomes?;
                    let mut receipt = Receipt::new(return_scores);
                    let items = items?;
                    let refused = match described.is_empty() {
                        true => Vec::new(),
                        false => self.describe(described, &items, &outcomes, &judging).await,
                    };
                    receipt.record(items, subjects, outcomes, &board, &judging);
                    receipt.reject_attributes(refused);
                    return Ok(receipt);
                }
            }
        }
    }
}

/// The items of a body, with those that have attributes, or why the body is refused.
type ParsedItemsOfBody = Result<(ParsedIncrements, Described), BodyError>;

/// The valid items that have attributes: the position among the valid ones, the subject and the attributes of each.
pub(in crate::http) type Described = Vec<(usize, Subject, Box<AttributesChange>)>;

/// Handler of the lines of a stream for one board.
struct BoardLines<'a> {
    ingest: &'a Ingest,
    board: Arc<Board>,
    metrics: &'a IncrementMetrics,
    /// Whether a line has attributes. From there on the last of several lines must take effect last.
    has_attributes: AtomicBool,
}

impl stream::LineHandler for BoardLines<'_> {
    type Portion = (ParsedIncrements, Described);
    type Outcomes = (Vec<Outcome>, Arc<Board>, Vec<(Position, ItemError)>);
    type Receipt = Receipt;

    fn max_in_flight(&self) -> usize {
        let in_order = self.ingest.kind.in_order || self.has_attributes.load(Ordering::Relaxed);
        if in_order || self.board.kind().depends_on_order() { 1 } else { stream::MAX_IN_FLIGHT }
    }

    fn new_portion(&self, lines: usize) -> Self::Portion {
        (ParsedItems::new(Position::Line, lines), Described::new())
    }

    fn parse_line(&self, (items, described): &mut Self::Portion, number: u64, line: NdjsonLine<'_>) {
        let item = match (self.ingest.kind.parse_line)(line, &self.board) {
            Ok((increment, None)) => Ok((increment, ())),
            Ok((increment, Some(attributes))) => {
                self.has_attributes.store(true, Ordering::Relaxed);
                match self.ingest.caller.require_secret() {
                    Ok(()) => {
                        described.push((items.valid.len(), increment.subject.clone(), attributes));
                        Ok((increment, ()))
                    }
                    Err(denied) => Err(ItemError::value(ItemCode::InvalidAttributes, "attributes", denied)),
                }
            }
            Err(error) => Err(error),
        };
        items.push(number, item);
    }

    async fn send(&self, (items, described): &mut Self::Portion) -> service::Result<Self::Outcomes> {
        items.add_ids(self.ingest.ids.as_ref(), |increment| &mut increment.id);
        let increments = std::mem::take(&mut items.valid);
        if increments.is_empty() {
            return Ok((Vec::new(), self.board.clone(), Vec::new()));
        }
        let (outcomes, judging) = self.ingest.send(&self.board, increments, false).await?;
        let refused = match described.is_empty() {
            true => Vec::new(),
            false => self.ingest.describe(std::mem::take(described), items, &outcomes, &judging).await,
        };
        Ok((outcomes, judging, refused))
    }

    fn record(&self, receipt: &mut Receipt, (items, _): Self::Portion, (outcomes, judging, refused): Self::Outcomes) {
        let before = receipt.counts();
        receipt.record(items, Vec::new(), outcomes, &self.board, &judging);
        receipt.reject_attributes(refused);
        self.metrics.record(&before, &receipt.counts());
    }

    fn accepted_and_duplicates(receipt: &Receipt) -> (u64, u64) {
        (receipt.accepted, receipt.duplicates)
    }
}
