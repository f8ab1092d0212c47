//! Requests that change many subjects: a single one, a batch or a stream.

use std::marker::PhantomData;
use std::sync::Arc;

use actix_web::HttpResponse;
use actix_web::web::Payload;
use serde::Serialize;
use serde_json::value::RawValue;
use utoipa::ToSchema;

use crate::board::{Board, ModerationChange, Subject, Visibility};
use crate::http::admission::Validity;
use crate::http::body::{self, Format};
use crate::http::call::Call;
use crate::http::codes::ItemCode;
use crate::http::counts::RejectedCounts;
use crate::http::increments::{Rejected, ranking};
use crate::http::items::{
    self, Item, ItemError, MAX_SHOWN, NdjsonLine, ParsedItems, Position, TextField, item, parse_flag, stream,
};
use crate::http::problem::Problem;
use crate::http::state::HttpState;
use crate::http::{response, schemas};
use crate::service;

item! {
    /// A subject to hide or to show.
    #[schema(as = HiddenChange)]
    pub(super) struct HiddenItem<'a> {
        #[schema(schema_with = schemas::subject)]
        subject: TextField<'a>,
        #[schema(schema_with = schemas::by, required = false)]
        by: TextField<'a>,
        /// Whether to hide it, or to show it. Default: true.
        #[schema(value_type = bool, required = false)]
        hidden: Option<&'a RawValue>,
        /// Whether its own standing has a rank all the same. Default: false.
        #[schema(value_type = bool, required = false)]
        shadow: Option<&'a RawValue>,
    }
    /// A single subject or a batch.
    enum HiddenBody;
    /// A batch of subjects.
    struct HiddenBatch {
        /// The subjects. One that does not match this schema is rejected on its own.
        subjects
    }
    invalid: ItemCode::InvalidSubject
}

item! {
    /// A subject to freeze or to unfreeze.
    #[schema(as = FrozenChange)]
    pub(super) struct FrozenItem<'a> {
        #[schema(schema_with = schemas::subject)]
        subject: TextField<'a>,
        #[schema(schema_with = schemas::by, required = false)]
        by: TextField<'a>,
        /// Whether to freeze it, or to end that. Default: true.
        #[schema(value_type = bool, required = false)]
        frozen: Option<&'a RawValue>,
    }
    /// A single subject or a batch.
    enum FrozenBody;
    /// A batch of subjects.
    struct FrozenBatch {
        /// The subjects. One that does not match this schema is rejected on its own.
        subjects
    }
    invalid: ItemCode::InvalidSubject
}

/// An item that changes what is set for a subject. `Of` is the same type with any lifetime.
pub(super) trait ModerationItem {
    type Of<'a>: Item<'a>;

    /// Validates the fields for the board.
    fn into_change(item: Self::Of<'_>, board: &Board) -> Result<(Subject, ModerationChange), ItemError>;
}

impl ModerationItem for HiddenItem<'static> {
    type Of<'a> = HiddenItem<'a>;

    fn into_change(item: HiddenItem<'_>, board: &Board) -> Result<(Subject, ModerationChange), ItemError> {
        let HiddenItem { subject, by, hidden, shadow } = item;
        let subject = ranking::subject(subject, by, board)?;
        let shadow = parse_flag(shadow, "shadow", false, ItemCode::InvalidSubject)?;
        let visibility = match parse_flag(hidden, "hidden", true, ItemCode::InvalidSubject)? {
            false => Visibility::Visible,
            true if shadow => Visibility::Shadowed,
            true => Visibility::Hidden,
        };
        Ok((subject, ModerationChange::Visibility(visibility)))
    }
}

impl ModerationItem for FrozenItem<'static> {
    type Of<'a> = FrozenItem<'a>;

    fn into_change(item: FrozenItem<'_>, board: &Board) -> Result<(Subject, ModerationChange), ItemError> {
        let FrozenItem { subject, by, frozen } = item;
        let subject = ranking::subject(subject, by, board)?;
        let frozen = parse_flag(frozen, "frozen", true, ItemCode::InvalidSubject)?;
        Ok((subject, ModerationChange::Frozen(frozen)))
    }
}

/// What became of the subjects of a request.
#[derive(Debug, Default, Serialize, ToSchema)]
pub(in crate::http) struct ModerationReceipt {
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
pub(super) type Changes = ParsedItems<(Subject, ModerationChange)>;

impl ModerationReceipt {
    fn record(&mut self, mut changes: Changes) {
        self.accepted += changes.valid.len() as u64;
        while let Some((position, error)) = changes.next_error(u64::MAX) {
            self.rejected_counts.add(error.code);
            if self.rejected.len() < MAX_SHOWN {
                self.rejected.push(Rejected::new(position, error.code, error.detail));
            }
        }
    }
}

/// Handles a request that changes many subjects.
pub(super) async fn change<I: ModerationItem>(call: &Call, payload: Payload) -> Result<HttpResponse, Problem> {
    let name = call.board_name()?;
    let format = call.format()?;
    let incoming = call.incoming(payload, format)?;
    let board = call.service().board(&call.caller, &name).await?;
    let board = call.service().refreshed(&board).await?;
    let handler = ModerationLines::<I> { state: &call.state, board, kind: PhantomData };
    let receipt = match format {
        Format::Ndjson => {
            let limits = call.item_limits();
            let validity = Validity::of(&call.caller, &call.state);
            stream::process(&handler, incoming, &call.state.options, limits, validity).await?
        }
        Format::Json => {
            let body = body::read(incoming, &call.caller, &call.state.options).await?;
            let validate = |item: I::Of<'_>| Ok((I::into_change(item, &handler.board)?, ()));
            let mut changes = Changes::of_body(&body, validate)?;
            if changes.is_single
                && let Some((_, error)) = changes.next_error(u64::MAX)
            {
                return Err(error.into());
            }
            call.service().moderate_several(&handler.board, &changes.valid).await?;
            let mut receipt = ModerationReceipt::default();
            receipt.record(changes);
            receipt
        }
    };
    Ok(response::json(&receipt))
}

/// The handler of a stream.
struct ModerationLines<'a, I> {
    state: &'a HttpState,
    board: Arc<Board>,
    kind: PhantomData<I>,
}

impl<I: ModerationItem> stream::LineHandler for ModerationLines<'_, I> {
    type Portion = Changes;
    type Outcomes = ();
    type Receipt = ModerationReceipt;

    /// Of several changes of a subject the last one holds.
    fn max_in_flight(&self) -> usize {
        1
    }

    fn new_portion(&self, lines: usize) -> Changes {
        Changes::new(Position::Line, lines)
    }

    fn parse_line(&self, portion: &mut Changes, number: u64, line: NdjsonLine<'_>) {
        let item = items::parse_line::<I::Of<'_>>(line);
        portion.push(number, item.and_then(|item| Ok((I::into_change(item, &self.board)?, ()))));
    }

    async fn send(&self, portion: &mut Changes) -> service::Result<()> {
        self.state.service.moderate_several(&self.board, &portion.valid).await
    }

    fn record(&self, receipt: &mut ModerationReceipt, portion: Changes, (): ()) {
        receipt.record(portion);
    }

    fn accepted_and_duplicates(receipt: &ModerationReceipt) -> (u64, u64) {
        (receipt.accepted, 0)
    }
}
