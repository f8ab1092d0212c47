//! Large requests, which run on separate threads so that they do not delay the other requests of their worker.
//!
//! A worker serves many connections on one thread. Parsing a body of 8 MB, planning 100,000 increments and serializing
//! their scores takes about 100 ms of processor time.

use futures_util::future::Either;
use tokio::runtime::Handle;
use tokio::sync::Semaphore;

use super::codes::Code;
use super::problem::Problem;

/// Body size in bytes above which a request is large: about 1,000 increments, or 1 ms of work.
pub(super) const BODY: usize = 64 << 10;

/// Maximum number of large requests in progress. Further ones wait in order of arrival.
static THREADS: Semaphore = Semaphore::const_new(8);

/// Handles a request on the worker, or on a separate thread if it is large.
///
/// A large request continues if its client disconnects.
pub(super) fn handle<T, F>(
    is_large: bool,
    work: impl FnOnce() -> F + Send + 'static,
) -> impl Future<Output = Result<T, Problem>>
where
    T: Send + 'static,
    F: Future<Output = Result<T, Problem>>,
{
    // Boxed, because every small request would move what only large ones need.
    if is_large { Either::Left(Box::pin(handle_on_thread(work))) } else { Either::Right(work()) }
}

async fn handle_on_thread<T, F>(work: impl FnOnce() -> F + Send + 'static) -> Result<T, Problem>
where
    T: Send + 'static,
    F: Future<Output = Result<T, Problem>>,
{
    let permit = THREADS.acquire().await;
    let runtime = Handle::current();
    let thread = tokio::task::spawn_blocking(move || {
        let result = runtime.block_on(work());
        drop(permit);
        result
    });
    thread.await.unwrap_or_else(|error| {
        Err(Problem::new(Code::Internal, format!("the thread of a large request failed: {error}")))
    })
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;
    use std::time::Duration;

    use super::*;

    #[tokio::test]
    async fn a_large_request_does_not_block_its_worker() {
        let (release, released) = mpsc::channel();
        let large = handle(true, move || async move {
            // Blocks its thread, as a computation would.
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
