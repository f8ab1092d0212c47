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
