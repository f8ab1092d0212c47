//! Whether the replies of a master may be used: only while it is known that no replica has replaced it.

use std::future::Future;
use std::time::{Duration, Instant};

use tokio::sync::watch;
use tokio::time::timeout;

use super::evidence::LEASE;
use super::failure::{Refusal, ServerFailure};

/// The longest time to wait until a master is confirmed.
const PATIENCE: Duration = Duration::from_secs(2);

/// What the [`watch`](super::watch) knows about a server. A reply is used only if the server was confirmed as the
/// master within [`LEASE`] before it.
#[derive(Debug)]
pub(super) struct Mastership {
    state: watch::Sender<MasterState>,
    patience: Duration,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum MasterState {
    /// It was the master at this time.
    Confirmed(Instant),
    /// It is not known to be the master, or about to be replaced: nothing is sent to it.
    Doubted,
    /// A different server is the master.
    Replaced,
}

impl Mastership {
    /// Creates the standing of a server that is not confirmed yet.
    pub fn new() -> Self {
        Self::with_patience(PATIENCE)
    }

    fn with_patience(patience: Duration) -> Self {
        Self { state: watch::Sender::new(MasterState::Doubted), patience }
    }

    /// Records that the server was the master at this time.
    pub fn confirm(&self, at: Instant) {
        self.state.send_replace(MasterState::Confirmed(at));
    }

    /// Returns whether replies of the server may be used now.
    pub fn is_confirmed(&self) -> bool {
        matches!(*self.state.borrow(), MasterState::Confirmed(at) if at.elapsed() < LEASE)
    }

    /// Records that the server is not known to be the master, or about to be replaced.
    pub fn doubt(&self) {
        self.state.send_if_modified(|state| std::mem::replace(state, MasterState::Doubted) != MasterState::Doubted);
    }

    /// Records that a different server is the master. Exchanges that are under way end at once.
    pub fn replace(&self) {
        self.state.send_replace(MasterState::Replaced);
    }

    /// Runs an exchange with the server, and returns its result if the server was confirmed as the master.
    ///
    /// Otherwise what was sent may have been done by a server that is no longer the master: its outcome is
    /// [`Unknown`](ServerFailure::Unknown).
    pub async fn vouch<T>(&self, exchange: impl Future<Output = Result<T, Refusal>>) -> Result<T, Refusal> {
        let mut states = self.state.subscribe();
        let admitted = timeout(self.patience, states.wait_for(|state| *state != MasterState::Doubted)).await;
        match admitted.map(|state| state.map(|state| *state)) {
            Ok(Ok(MasterState::Confirmed(_))) => {}
            Ok(Ok(MasterState::Replaced)) => return Err(Refusal::Replaced),
            _ => return Err(ServerFailure::busy("the master is not confirmed".to_owned()).into()),
        }
        let unknown = |why: &str| Err(ServerFailure::Unknown(why.to_owned()).into());
        let answer = tokio::select! {
            biased;
            answer = exchange => answer?,
            _ = states.wait_for(|state| *state == MasterState::Replaced) => {
                return unknown("another server became the master before the answer");
            }
        };
        let settled = |state: &MasterState| match state {
            MasterState::Confirmed(at) => at.elapsed() < LEASE,
            MasterState::Doubted => false,
            MasterState::Replaced => true,
        };
        match timeout(self.patience, states.wait_for(settled)).await.map(|state| state.map(|state| *state)) {
            Ok(Ok(MasterState::Confirmed(_))) => Ok(answer),
            Ok(Ok(MasterState::Replaced)) => unknown("another server has become the master"),
            _ => unknown("the master was not confirmed after the answer"),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::future::{pending, ready};

    use super::*;

    async fn vouch(standing: &Mastership) -> Result<u8, ServerFailure> {
        standing.vouch(ready(Ok(7))).await.map_err(Refusal::into_failure)
    }

    fn long_ago() -> Instant {
        Instant::now().checked_sub(2 * LEASE).unwrap()
    }

    #[tokio::test]
    async fn a_reply_is_used_once_the_master_is_confirmed() {
        let standing = Mastership::with_patience(Duration::from_millis(50));
        let failure = vouch(&standing).await.unwrap_err();
        assert!(failure.is_passing(), "it was not sent: {failure:?}");
        standing.confirm(Instant::now());
        assert_eq!(vouch(&standing).await.unwrap(), 7);
        assert!(standing.is_confirmed());

        // The last confirmation is too old: the next one is waited for.
        standing.confirm(long_ago());
        assert!(!standing.is_confirmed());
        let (answer, ()) = tokio::join!(vouch(&standing), async { standing.confirm(Instant::now()) });
        assert_eq!(answer.unwrap(), 7);
        standing.confirm(long_ago());
        assert!(matches!(vouch(&standing).await, Err(ServerFailure::Unknown(_))));
        // What was sent to a server that is then doubted and replaced may be lost.
        standing.confirm(long_ago());
        let (answer, ()) = tokio::join!(vouch(&standing), async {
            standing.doubt();
            tokio::task::yield_now().await;
            standing.replace();
        });
        assert!(matches!(answer, Err(ServerFailure::Unknown(_))), "{answer:?}");
        assert!(matches!(standing.vouch(ready(Ok(7))).await, Err(Refusal::Replaced)), "it was not sent");
    }

    #[tokio::test]
    async fn an_exchange_ends_when_its_server_is_replaced() {
        let standing = Mastership::with_patience(Duration::from_millis(50));
        standing.confirm(Instant::now());
        let exchange = standing.vouch(pending::<Result<u8, Refusal>>());
        let (answer, ()) = tokio::join!(exchange, async { standing.replace() });
        assert!(matches!(answer, Err(Refusal::Failed(ServerFailure::Unknown(_)))), "{answer:?}");
    }
}
