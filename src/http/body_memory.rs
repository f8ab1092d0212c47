//! The memory that the request bodies in progress take: one bound for all of them, and a share of it for each client.
//!
//! What is counted is what is held: bytes that have arrived, the state of decoders as far as it is used, what the body
//! is parsed into, and the buffers of its connection. What a header promises is not counted, because it costs nothing.

use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use metrics::{Gauge, gauge};
use tokio::sync::Notify;
use tokio::time::{Instant, timeout_at};

use super::client::Client;
use super::codes::Code;
use super::problem::Problem;
use super::shares::Shares;

/// A gauge: the bytes of memory that the request bodies in progress take.
pub(super) const BODY_MEMORY: &str = "rolltop_http_body_memory_bytes";

/// The number of bytes of a body that are not counted: as much as its connection takes in any case.
const UNCOUNTED: usize = 16 << 10;

/// The number of bytes in which memory is counted.
const STEP: usize = 64 << 10;

/// The memory of the buffers of a connection on which a body of more than [`STEP`] arrives: the HTTP library reads up
/// to 128 KiB ahead, into buffers that it doubles (measured: 210 KB).
const BUFFERS: usize = 256 << 10;

/// The same of a connection whose body waits for memory, which has a piece of the body besides (measured: 450 KB).
const BUFFERS_OF_WAITING: usize = 512 << 10;

/// The time after which a client may try again: bodies are read or given up in seconds.
const RETRY_AFTER: Duration = Duration::from_secs(2);

/// The time for which a body waits for memory that others return. Bodies that have arrived are done in milliseconds.
const PATIENCE: Duration = Duration::from_secs(2);

/// The number of bodies that may wait however little memory there is.
const LEAST_WAITING: usize = 8;

/// The memory of all bodies in progress.
pub(super) struct BodyMemory {
    shares: Shares,
    /// Notified when memory is returned.
    returned: Notify,
    /// The number of bodies that wait for memory, and the largest.
    waiting: AtomicUsize,
    most_waiting: usize,
    gauge: Gauge,
}

/// The memory that one body takes, until it is dropped.
pub(super) struct Hold {
    memory: Arc<BodyMemory>,
    client: Client,
    bytes: usize,
}

impl BodyMemory {
    pub(super) fn new(limit: usize) -> Arc<Self> {
        Arc::new(Self {
            shares: Shares::new(limit),
            returned: Notify::new(),
            waiting: AtomicUsize::new(0),
            // What waits takes at most a quarter as much as what is counted.
            most_waiting: (limit / 4 / BUFFERS_OF_WAITING).max(LEAST_WAITING),
            gauge: gauge!(BODY_MEMORY),
        })
    }

    /// Returns the memory of a body of a client. It takes none yet.
    pub(super) fn hold(self: &Arc<Self>, client: Client) -> Hold {
        Hold { memory: self.clone(), client, bytes: 0 }
    }

    /// Returns how many bytes all bodies take.
    #[cfg(test)]
    pub(super) fn total(&self) -> usize {
        self.shares.total()
    }

    /// Changes the memory of a body of a client. Returns whether there is enough.
    fn change(&self, client: Client, from: usize, to: usize) -> bool {
        let Some(total) = self.shares.change(client, from, to) else { return false };
        self.gauge.set(total as f64);
        if to < from {
            self.returned.notify_waiters();
        }
        true
    }
}

impl Hold {
    /// Changes the number of bytes that the body takes. Fails if all bodies, or those of this client, would take too
    /// much; then it is as before.
    pub(super) fn set(&mut self, bytes: usize) -> Result<(), Problem> {
        let bytes = match bytes {
            ..=UNCOUNTED => 0,
            _ if bytes <= STEP => STEP,
            // Where little memory is configured, the buffers must leave some for the body.
            _ => (bytes + BUFFERS.min(self.memory.shares.limit() / 16)).next_multiple_of(STEP),
        };
        if bytes == self.bytes || self.memory.change(self.client, self.bytes, bytes) {
            self.bytes = bytes;
            return Ok(());
        }
        let most = self.memory.shares.limit() / 2;
        if bytes > most {
            let detail = format!(
                "the body and what it is parsed into take {bytes} bytes of memory, and one request may take {most}: \
                 divide the items among several requests, or raise the setting 'body_memory'"
            );
            return Err(Problem::new(Code::TooLarge, detail).with("limit", most));
        }
        let detail = "the bodies of requests in progress take too much memory";
        Err(Problem::new(Code::Overloaded, detail).retry_after(RETRY_AFTER))
    }
}

impl Hold {
    /// Changes the number of bytes that the body takes, and waits for a while if that would be too much now.
    pub(super) async fn obtain(&mut self, bytes: usize) -> Result<(), Problem> {
        match self.set(bytes) {
            // Boxed, because every body would have room for what only one needs that waits.
            Err(problem) if problem.code() == Code::Overloaded => Box::pin(self.wait_for(bytes)).await,
            result => result,
        }
    }

    /// Waits for a while until the body may take this many bytes.
    async fn wait_for(&mut self, bytes: usize) -> Result<(), Problem> {
        let deadline = Instant::now() + PATIENCE;
        let memory = self.memory.clone();
        let Some(_waiting) = Waiting::begin(&memory) else { return self.set(bytes) };
        loop {
            // Registered before the look, so that memory that is returned after it is noticed.
            let mut returned = pin!(memory.returned.notified());
            returned.as_mut().enable();
            match self.set(bytes) {
                Err(problem) if problem.code() == Code::Overloaded => {
                    if timeout_at(deadline, returned).await.is_err() {
                        return Err(problem);
                    }
                }
                result => return result,
            }
        }
    }
}

/// A body that waits for memory, until it is dropped.
struct Waiting<'a>(&'a BodyMemory);

impl<'a> Waiting<'a> {
    /// Returns `None` if as many bodies wait as may: their connections take memory meanwhile.
    fn begin(memory: &'a BodyMemory) -> Option<Self> {
        let waiting = Self(memory);
        (memory.waiting.fetch_add(1, Ordering::Relaxed) < memory.most_waiting).then_some(waiting)
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.waiting.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        if self.bytes > 0 {
            self.memory.change(self.client, self.bytes, 0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MB: usize = 1 << 20;
    const BODY: usize = 8 * MB;

    fn client(number: u8) -> Client {
        Client::at(Some([192, 0, 2, number].into()))
    }

    #[test]
    fn memory_is_counted_as_it_is_held_and_free_afterwards() {
        let memory = BodyMemory::new(64 * MB);
        let mut first = memory.hold(client(1));
        first.set(UNCOUNTED).unwrap();
        assert_eq!(memory.total(), 0, "small bodies are not counted");
        first.set(UNCOUNTED + 1).unwrap();
        assert_eq!(memory.total(), STEP);
        first.set(5 * MB).unwrap();
        let mut second = memory.hold(client(1));
        second.set(3 * MB).unwrap();
        first.set(MB).unwrap();
        assert_eq!(memory.total(), 4 * MB + 2 * BUFFERS, "with the buffers of two connections");
        drop((first, second));
        assert!(memory.shares.is_free());
    }

    #[test]
    fn beyond_the_limit_a_body_is_refused_and_keeps_what_it_has() {
        let memory = BodyMemory::new(64 * MB);
        let mut bodies: Vec<Hold> = (0..4).map(|_| memory.hold(client(1))).collect();
        for body in &mut bodies {
            body.set(BODY - BUFFERS).unwrap();
        }
        let problem = bodies[0].set(9 * MB).unwrap_err();
        assert!(problem.code() == Code::Overloaded && problem.has_retry_after(), "{problem}");
        assert_eq!(memory.total(), 4 * BODY);
        drop(bodies.pop());
        bodies[0].set(9 * MB).unwrap();
        // What can never fit is not worth another try.
        assert_eq!(bodies[0].set(33 * MB).unwrap_err().code(), Code::TooLarge);
    }

    #[tokio::test]
    async fn few_bodies_wait_at_a_time() {
        let memory = BodyMemory::new(64 * MB);
        let mut first = memory.hold(client(1));
        first.set(30 * MB).unwrap();
        let mut bodies: Vec<Hold> = (0..100).map(|_| memory.hold(client(1))).collect();
        let begun = Instant::now();
        let at_once = bodies.iter_mut().map(|body| async {
            let code = body.obtain(20 * MB).await.unwrap_err().code();
            (code, begun.elapsed() < PATIENCE)
        });
        let answers = futures_util::future::join_all(at_once).await;
        assert!(answers.iter().all(|(code, _)| *code == Code::Overloaded), "{answers:?}");
        let waited = answers.iter().filter(|(_, is_early)| !is_early).count();
        assert_eq!(waited, memory.most_waiting, "{answers:?}");
        assert_eq!(memory.waiting.load(Ordering::Relaxed), 0);
    }

    #[tokio::test]
    async fn a_body_waits_for_memory_that_another_returns() {
        let memory = BodyMemory::new(64 * MB);
        let (mut first, mut second) = (memory.hold(client(1)), memory.hold(client(1)));
        first.set(20 * MB).unwrap();
        let (obtained, ()) = tokio::join!(second.obtain(20 * MB), async { drop(first) });
        obtained.unwrap();
        assert_eq!(memory.total(), 20 * MB + BUFFERS);
        // What can never fit is not waited for.
        assert_eq!(second.obtain(33 * MB).await.unwrap_err().code(), Code::TooLarge);
    }

    #[test]
    fn clients_that_take_all_they_can_leave_some_to_the_next() {
        let memory = BodyMemory::new(256 * MB);
        let mut bodies = Vec::new();
        for number in 0..6 {
            let before = memory.total();
            loop {
                let mut body = memory.hold(client(number));
                if body.set(MB).is_err() {
                    break;
                }
                bodies.push(body);
            }
            let (own, left) = (memory.total() - before, 256 * MB - memory.total());
            assert!(own.abs_diff(left) <= 2 * (MB + BUFFERS), "client {number} has {own} and leaves {left}");
        }
    }
}
