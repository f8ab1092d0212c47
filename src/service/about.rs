//! Answers about a board that may have been defined again since the caller looked it up.

use std::sync::Arc;

use crate::board::{Board, BoardTrack};

/// An answer about a board or a track, and what it is about. If the requested board was removed and defined again in
/// the meantime, this is the new board, or the track of the new board. The answer has its decimals and slots.
#[derive(Clone, Debug)]
pub struct About<T, Of = BoardTrack> {
    pub of: Of,
    pub answer: T,
}

/// An answer about a board as a whole.
pub type AboutBoard<T> = About<T, Arc<Board>>;

/// The number of calls after the first one.
pub(super) const ATTEMPTS: usize = 4;

/// Calls the store about a track or, with `whole`, about a board. If the board was removed and defined again, or its
/// editions have changed, calls it again about what is there now. An optional check runs before each call and may
/// refuse it.
macro_rules! about {
    ($self:ident, whole $board:ident, |$current:ident| $call:expr) => {
        about!($self, $board, |_current| Ok(()), &std::sync::Arc<crate::board::Board>, refreshed, |$current| $call)
    };
    ($self:ident, edition $edition:ident, |$current:ident| $call:expr) => {
        about!($self, $edition, |_current| Ok(()), &crate::board::BoardEdition, refreshed_edition, |$current| $call)
    };
    ($self:ident, $track:ident, |$current:ident| $call:expr) => {
        about!($self, $track, |_current| Ok(()), |$current| $call)
    };
    ($self:ident, $track:ident, $check:expr, |$current:ident| $call:expr) => {
        about!($self, $track, $check, &crate::board::BoardTrack, refreshed_track, |$current| $call)
    };
    ($self:ident, $of:ident, $check:expr, $kind:ty, $refreshed:ident, |$current:ident| $call:expr) => {{
        let check: fn($kind) -> crate::service::Result<()> = $check;
        check($of)?;
        let $current = $of;
        match $call.await {
            Err(crate::store::StoreError::BoardChanged | crate::store::StoreError::StaleEpoch) => {
                let mut fresh = $self.$refreshed($of).await?;
                let mut attempts = crate::service::about::ATTEMPTS;
                loop {
                    check(&fresh)?;
                    let $current = &fresh;
                    attempts -= 1;
                    match $call.await {
                        // At the end of a period the editions change several times.
                        Err(crate::store::StoreError::StaleEpoch) if attempts > 0 => {
                            fresh = $self.$refreshed(&fresh).await?;
                        }
                        answer => {
                            let answer = answer?;
                            break crate::service::Result::<_>::Ok(crate::service::About { of: fresh, answer });
                        }
                    }
                }
            }
            other => Ok(crate::service::About { of: $of.clone(), answer: other? }),
        }
    }};
}

pub(super) use about;
