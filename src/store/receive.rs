//! Waiting for a result that another thread sends.

use tokio::sync::oneshot::Receiver;
use tokio::sync::oneshot::error::{RecvError, TryRecvError};

/// The number of times to poll for the result before the task registers to be woken.
const LOOKS: usize = 4;

/// Waits for the result. Under load the result is usually there when this thread polls again after it has run other
/// tasks. Then the other thread does not have to wake this one, which would cost a system call per result; the price is
/// a few polls.
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
