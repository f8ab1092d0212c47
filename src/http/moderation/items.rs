//! Items of requests that hide, show, freeze or unfreeze many subjects.

use std::sync::Arc;

use serde_json::value::RawValue;

use crate::board::{Board, BoardName, ModerationChange, Subject, Visibility};
use crate::http::call::Call;
use crate::http::codes::ItemCode;
use crate::http::increments::ranking;
use crate::http::items::{ItemError, TextField, item, parse_flag};
use crate::http::problem::Problem;
use crate::http::schemas;
use crate::http::subject_changes::{Refused, SubjectChange};
use crate::service::{self, Service};

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

/// Returns the board of the path, as the store has it.
async fn present(call: &Call) -> Result<Arc<Board>, Problem> {
    let board = call.service().board(&call.caller, &call.board_name()?).await?;
    Ok(call.service().refreshed(&board).await?)
}

impl SubjectChange for HiddenItem<'static> {
    type Item<'a> = HiddenItem<'a>;
    type Change = ModerationChange;

    async fn board(call: &Call) -> Result<Arc<Board>, Problem> {
        present(call).await
    }

    fn parse(item: HiddenItem<'_>, board: &Board) -> Result<(Subject, ModerationChange), ItemError> {
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

    async fn make(
        service: &Service,
        _of: &BoardName,
        board: &Arc<Board>,
        changes: &[(Subject, ModerationChange)],
    ) -> service::Result<Refused> {
        service.moderate_several(board, changes).await.map(|()| Refused::new())
    }
}

impl SubjectChange for FrozenItem<'static> {
    type Item<'a> = FrozenItem<'a>;
    type Change = ModerationChange;

    async fn board(call: &Call) -> Result<Arc<Board>, Problem> {
        present(call).await
    }

    fn parse(item: FrozenItem<'_>, board: &Board) -> Result<(Subject, ModerationChange), ItemError> {
        let FrozenItem { subject, by, frozen } = item;
        let subject = ranking::subject(subject, by, board)?;
        let frozen = parse_flag(frozen, "frozen", true, ItemCode::InvalidSubject)?;
        Ok((subject, ModerationChange::Frozen(frozen)))
    }

    async fn make(
        service: &Service,
        _of: &BoardName,
        board: &Arc<Board>,
        changes: &[(Subject, ModerationChange)],
    ) -> service::Result<Refused> {
        service.moderate_several(board, changes).await.map(|()| Refused::new())
    }
}
