//! The lease of the instance that copies the data of a board.

use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use crate::board::Board;
use crate::store::CopyProgress;
use crate::store::redis::scripts::{LEASE, ScriptCall};
use crate::store::redis::servers::ServerFailure;
use crate::store::redis::session::Session;

/// The time for which a lease is valid without being renewed.
const DURATION: Duration = Duration::from_secs(30);
/// The time after which it is renewed. It is short, because the progress is a part of it.
const RENEWAL: Duration = Duration::from_secs(1);

/// A lease that is renewed as the copying goes on.
pub(super) struct Lease<'a> {
    session: &'a Session,
    frozen: &'a Arc<Board>,
    state: Mutex<LeaseState>,
}

struct LeaseState {
    copied: CopyProgress,
    renewed: Instant,
}

impl<'a> Lease<'a> {
    /// Returns the lease of a board that was frozen just now.
    pub fn new(session: &'a Session, frozen: &'a Arc<Board>) -> Self {
        Self {
            session,
            frozen,
            state: Mutex::new(LeaseState { copied: CopyProgress::default(), renewed: Instant::now() }),
        }
    }

    /// Adds to what is copied, and renews the lease if it is time to. Returns an error if the board is no longer frozen.
    pub async fn keep(&self, contents: usize, ids: usize) -> Result<(), ServerFailure> {
        let due = {
            let mut state = self.state.lock();
            state.copied.contents += contents as u64;
            state.copied.ids += ids as u64;
            let is_due = state.renewed.elapsed() >= RENEWAL;
            if is_due {
                state.renewed = Instant::now();
            }
            is_due.then_some(state.copied)
        };
        match due {
            Some(copied) => renew(self.session, self.frozen, copied).await,
            None => Ok(()),
        }
    }
}

/// Begins or renews the lease.
pub(super) async fn renew(session: &Session, board: &Arc<Board>, copied: CopyProgress) -> Result<(), ServerFailure> {
    call(session, board, "renew", copied).await.map(drop)
}

/// Returns how far the data is copied, or `None` if the lease has ended. Returns [`ServerFailure::StaleEpoch`] if the
/// board is in another epoch.
pub(super) async fn look(session: &Session, board: &Arc<Board>) -> Result<Option<CopyProgress>, ServerFailure> {
    call(session, board, "look", CopyProgress::default()).await
}

async fn call(
    session: &Session,
    board: &Arc<Board>,
    action: &'static str,
    copied: CopyProgress,
) -> Result<Option<CopyProgress>, ServerFailure> {
    let mut call = ScriptCall::default();
    call.key(session.keys.meta(board.name()));
    call.arg("generation", board.generation()).arg("epoch", board.epoch()).arg("action", action);
    call.arg("duration", DURATION.as_millis()).arg("contents", copied.contents).arg("ids", copied.ids);
    let mut reply = session.call(&LEASE, &call).await?;
    match reply.text()?.as_str() {
        "held" => Ok(Some(CopyProgress { contents: reply.count()?, ids: reply.count()? })),
        "ended" => Ok(None),
        "board_changed" => Err(ServerFailure::BoardChanged),
        "stale_epoch" => Err(ServerFailure::StaleEpoch),
        other => Err(ServerFailure::Corrupt(format!("unexpected reply about a lease: '{other}'"))),
    }
}
