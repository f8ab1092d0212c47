//! Requests that change what is set for many subjects: a single one, a batch or a stream.

use std::sync::Arc;

use actix_web::HttpResponse;
use actix_web::http::StatusCode;
use actix_web::web::{Data, Payload};
use serde::Serialize;
use utoipa::ToSchema;

use super::admission::Validity;
use super::body::{self, Format};
use super::call::Call;
use super::counts::RejectedCounts;
use super::increments::Rejected;
use super::items::{self, Item, ItemError, MAX_SHOWN, NdjsonLine, ParsedItems, Position, stream};
use super::problem::Problem;
use super::state::HttpState;
use super::{large, response, schemas};
use crate::board::{Board, BoardName, Subject};
use crate::service::{self, Service};

/// Changes that were refused, by their positions among those that were to be made, ascending.
pub(super) type Refused = Vec<(usize, ItemError)>;

/// A kind of change of what is set for subjects.
pub(super) trait SubjectChange: 'static {
    /// An item of a request.
    type Item<'a>: Item<'a>;
    type Change: Send;

    /// Returns the board that is changed, as the store has it.
    async fn board(call: &Call) -> Result<Arc<Board>, Problem>;

    /// Validates an item for the board.
    fn parse(item: Self::Item<'_>, board: &Board) -> Result<(Subject, Self::Change), ItemError>;

    /// Makes changes, in their order. `of` is the name of the board of the path.
    async fn make(
        service: &Service,
        of: &BoardName,
        board: &Arc<Board>,
        changes: &[(Subject, Self::Change)],
    ) -> service::Result<Refused>;
}

/// What became of the subjects of a request.
#[derive(Debug, Default, Serialize, ToSchema)]
#[schema(as = ModerationReceipt)]
pub(super) struct SubjectsReceipt {
    /// Number of subjects that are as the request wants them.
    accepted: u64,
    /// The first 1,000 rejected subjects, each with its reason.
    #[schema(max_items = 1000)]
    rejected: Vec<Rejected>,
    /// Number of rejections by code; absent if there are none.
    #[serde(skip_serializing_if = "RejectedCounts::is_empty")]
    #[schema(schema_with = schemas::rejected_counts, required = false)]
    rejected_counts: RejectedCounts,
}

/// The changes of a request.
type Changes<C> = ParsedItems<(Subject, C)>;

impl SubjectsReceipt {
    /// Adds changes that were made, except for the refused ones.
    fn record<C>(&mut self, mut changes: Changes<C>, refused: Refused) {
        let mut refused = refused.into_iter().peekable();
        for (at, (number, ())) in std::mem::take(&mut changes.details).into_iter().enumerate() {
            self.reject_invalid(&mut changes, number);
            match refused.next_if(|(refused, _)| *refused == at) {
                Some((_, error)) => self.reject((changes.position)(number), error),
                None => self.accepted += 1,
            }
        }
        self.reject_invalid(&mut changes, u64::MAX);
    }

    fn reject_invalid<C>(&mut self, changes: &mut Changes<C>, before: u64) {
        while let Some((position, error)) = changes.next_error(before) {
            self.reject(position, error);
        }
    }

    fn reject(&mut self, position: Position, error: ItemError) {
        self.rejected_counts.add(error.code);
        if self.rejected.len() < MAX_SHOWN {
            self.rejected.push(Rejected::new(position, error.code, error.detail));
        }
    }
}

/// Handles a request that changes many subjects.
pub(super) async fn change<C: SubjectChange>(call: Call, payload: Payload) -> Result<HttpResponse, Problem> {
    let format = call.format()?;
    let incoming = call.incoming(payload, format)?;
    let (name, board) = (call.board_name()?, C::board(&call).await?);
    match format {
        Format::Ndjson => {
            let handler = ChangeLines::<C> { state: call.state.clone(), name, board, kind: std::marker::PhantomData };
            let validity = Validity::of(&call.caller, &call.state);
            let receipt =
                stream::process(&handler, incoming, &call.state.options, call.item_limits(), validity).await?;
            Ok(response::json(&receipt))
        }
        Format::Json => {
            let body = body::read(incoming, &call.caller, &call.state.options).await?;
            let (is_large, limits, state) = (body.len() > large::BODY, call.item_limits(), call.state);
            let work = move || async move {
                let mut changes = Changes::of_body(&body, |item: C::Item<'_>| Ok((C::parse(item, &board)?, ())))?;
                if changes.is_single
                    && let Some((_, error)) = changes.next_error(u64::MAX)
                {
                    return Err(error.into());
                }
                limits.take(changes.len())?;
                let mut refused = C::make(&state.service, &name, &board, &changes.valid).await?;
                if changes.is_single
                    && let Some((_, error)) = refused.pop()
                {
                    return Err(error.into());
                }
                let mut receipt = SubjectsReceipt::default();
                receipt.record(changes, refused);
                response::to_json(&receipt)
            };
            Ok(response::json_text(StatusCode::OK, large::handle(is_large, work).await?))
        }
    }
}

/// The handler of a stream.
struct ChangeLines<C> {
    state: Data<HttpState>,
    name: BoardName,
    board: Arc<Board>,
    kind: std::marker::PhantomData<C>,
}

impl<C: SubjectChange> stream::LineHandler for ChangeLines<C> {
    type Portion = Changes<C::Change>;
    type Outcomes = Refused;
    type Receipt = SubjectsReceipt;

    /// Of several changes of a subject the last one holds.
    fn max_in_flight(&self) -> usize {
        1
    }

    fn new_portion(&self, lines: usize) -> Self::Portion {
        Changes::new(Position::Line, lines)
    }

    fn parse_line(&self, portion: &mut Self::Portion, number: u64, line: NdjsonLine<'_>) {
        let item = items::parse_line::<C::Item<'_>>(line);
        portion.push(number, item.and_then(|item| Ok((C::parse(item, &self.board)?, ()))));
    }

    async fn send(&self, portion: &mut Self::Portion) -> service::Result<Refused> {
        C::make(&self.state.service, &self.name, &self.board, &portion.valid).await
    }

    fn record(&self, receipt: &mut SubjectsReceipt, portion: Self::Portion, refused: Refused) {
        receipt.record(portion, refused);
    }

    fn accepted_and_duplicates(receipt: &SubjectsReceipt) -> (u64, u64) {
        (receipt.accepted, 0)
    }
}
