//! Large requests: those that alone would hold up every other request of their worker.
//!
//! A worker serves many connections on one thread. Parsing a body of 8 MB, planning 100,000 increments and writing
//! their scores takes a hundred milliseconds of processor time, so such a request is handled on a thread of its own.

use tokio::runtime::Handle;
use tokio::sync::Semaphore;

use super::codes::Code;
use super::problem::Problem;

/// A body with more bytes than this makes a request large: about 1,000 increments, a millisecond of work.
pub(super) const BODY: usize = 64 << 10;

/// How many large requests are handled at a time. The others wait in the order of their arrival.
static THREADS: Semaphore = Semaphore::const_new(8);

/// Handles a request: on the worker, or on a thread of its own if it is large.
///
/// A large one goes on if its client disconnects.
pub(super) async fn handle<T, F>(is_large: bool, work: impl FnOnce() -> F + Send + 'static) -> Result<T, Problem>
where
    T: Send + 'static,
    F: Future<Output = Result<T, Problem>>,
{
    if !is_large {
        return work().await;
    }
    let permit = THREADS.acquire().await;
    let runtime = Handle::current();
    let thread = tokio::task::spawn_blocking(move || {
        let result = runtime.block_on(work());
        drop(permit);
        result
    });
    thread.await.unwrap_or_else(|error| {
        Err(Problem::new(Code::Internal, format!("the thread of a large request ended early: {error}")))
    })
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;
    use std::time::Duration;

    use super::*;

    #[tokio::test]
    async fn a_large_request_does_not_hold_up_its_worker() {
        let (release, released) = mpsc::channel();
        let large = handle(true, move || async move {
            // As a computation would, this keeps its thread.
            released
                .recv_timeout(Duration::from_secs(30))
                .map_err(|_| Problem::new(Code::Internal, "it was not released"))
        });
        let other = async move { release.send("done").unwrap() };
        let (large, ()) = tokio::join!(large, other);
        assert_eq!(large.unwrap(), "done");
    }

    #[tokio::test]
    async fn a_small_request_stays_on_its_worker() {
        let worker = std::thread::current().id();
        let handled = handle(false, || async { Ok(std::thread::current().id()) }).await;
        assert_eq!(handled.unwrap(), worker);
    }

    #[tokio::test]
    async fn a_large_request_that_panics_is_an_internal_problem() {
        let handled = handle(true, || async { if true { panic!("on purpose") } else { Ok(()) } }).await;
        assert_eq!(serde_json::to_value(handled.unwrap_err()).unwrap()["code"], "internal");
    }
}
