//! Waiting for an answer that another thread gives.

use tokio::sync::oneshot::Receiver;
use tokio::sync::oneshot::error::{RecvError, TryRecvError};

/// How often to look for the answer before asking to be woken.
const LOOKS: usize = 4;

/// Waits for the answer. Under load it is there by the time this thread has served others and looks again; waking
/// this thread from the other one, a system call for each answer, is then spared at the price of a few polls.
pub(super) async fn receive<T>(mut answer: Receiver<T>) -> Result<T, RecvError> {
    for _ in 0..LOOKS {
        match answer.try_recv() {
            Err(TryRecvError::Empty) => tokio::task::yield_now().await,
            Err(TryRecvError::Closed) => break,
            Ok(value) => return Ok(value),
        }
    }
    answer.await
}
