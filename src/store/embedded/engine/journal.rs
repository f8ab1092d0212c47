//! The journal: operations on their way from boards to the log, and the callers who wait for them.
//!
//! A change is appended before its board's lock is released, so that the order in the log is the order in memory. What
//! is appended while the log's thread writes leaves together in its next group: nobody waits for a timer, and a
//! thousand writers share one frame of the log (and, with `always`, one sync).

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};
use tokio::sync::{Notify, oneshot};

use super::super::operations::Operations;
use super::super::options::Durability;
use super::admission::{Admission, Permit};
use crate::store::receive::receive;
use crate::store::{Result, StoreError};

/// Bytes of operations that leave although nobody waits for them.
const MANY: usize = 128 << 10;

type Acknowledgement = oneshot::Sender<Outcome>;

/// What became of a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) enum Outcome {
    Done,
    /// It is in memory, and perhaps in the log.
    Unknown,
}

/// Operations that gather for the next frame of the log.
#[derive(Debug)]
pub(super) struct Group {
    /// The sequence of the frame, if there are operations; else that of the last frame.
    pub sequence: u64,
    pub operations: Vec<u8>,
    /// When the first operation was appended.
    pub since: Instant,
    /// How many callers wait for it.
    pub writes: usize,
}

#[derive(Debug)]
struct Pending {
    /// The sequence that the group gets.
    next: u64,
    operations: Vec<u8>,
    since: Option<Instant>,
    /// When the first operation was appended of the group that the log's thread is writing.
    in_hand: Option<Instant>,
    waiting: Vec<Acknowledgement>,
    /// When the first of them began to wait.
    waiting_since: Instant,
    /// The log's thread has something else to look after.
    nudged: bool,
    stop: bool,
}

/// Callers who wait for a frame.
#[derive(Debug)]
struct Waiters {
    sequence: u64,
    since: Instant,
    waiting: Vec<Acknowledgement>,
}

/// The journal, for any number of threads.
#[derive(Debug)]
pub(in super::super) struct Journal {
    durability: Durability,
    /// How long a caller waits for an acknowledgement before the outcome is reported as unknown.
    patience: Duration,
    /// Names the store in errors.
    place: String,
    pub(super) admission: Admission,
    /// Held for an append or a swap, never across a write or an await.
    pending: Mutex<Pending>,
    wake: Arc<Condvar>,
    /// Frames on their way, oldest first.
    unacknowledged: Mutex<VecDeque<Waiters>>,
    /// Notified when a group has left.
    left: Notify,
}

/// Where a change was appended.
#[derive(Debug)]
#[must_use]
pub(in super::super) enum Ticket {
    /// There is nothing to wait for.
    Done,
    Waiting(oneshot::Receiver<Outcome>, WakeWriter),
}

/// Wakes the log's thread when dropped: after the other requests that are ready on this thread have appended, too, or
/// when the request was abandoned.
#[derive(Debug)]
pub(in super::super) struct WakeWriter(Arc<Condvar>);

impl Drop for WakeWriter {
    fn drop(&mut self) {
        self.0.notify_one();
    }
}

impl Journal {
    /// A journal whose first group gets the sequence `next`.
    pub(super) fn new(durability: Durability, patience: Duration, place: String, next: u64) -> Self {
        let pending = Pending {
            next,
            operations: Vec::new(),
            since: None,
            in_hand: None,
            waiting: Vec::new(),
            waiting_since: Instant::now(),
            nudged: false,
            stop: false,
        };
        Self {
            durability,
            patience,
            place,
            admission: Admission::new(),
            pending: Mutex::new(pending),
            wake: Arc::default(),
            unacknowledged: Mutex::default(),
            left: Notify::new(),
        }
    }

    /// Admits a write that appends at most `bytes`: to be asked before memory changes.
    pub(in super::super) fn admit(&self, bytes: usize) -> Result<Permit<'_>> {
        self.admission.admit(bytes)
    }

    /// Returns why writes are refused, if they are.
    pub(in super::super) fn refusal(&self) -> Option<String> {
        self.admission.refusal()
    }

    /// Returns why writes are refused for good, if they are.
    pub(super) fn closed(&self) -> Option<String> {
        self.admission.closed()
    }

    /// The error of a write whose outcome is not known.
    pub(in super::super) fn unknown(&self) -> StoreError {
        StoreError::TimedOut { at: self.place.clone() }
    }

    /// Appends operations for which nobody waits, and returns the sequence of their frame. They leave with what is
    /// appended next, or when many have gathered.
    pub(in super::super) fn append(&self, operations: &Operations) -> u64 {
        let mut pending = self.pending.lock();
        let sequence = self.add(&mut pending, operations);
        if pending.operations.len() >= MANY {
            self.wake.notify_one();
        }
        sequence
    }

    /// Appends operations; the ticket acknowledges them and all before.
    pub(in super::super) fn append_and_wait(&self, operations: &Operations) -> (u64, Ticket) {
        let mut pending = self.pending.lock();
        let sequence = self.add(&mut pending, operations);
        (sequence, self.ticket(&mut pending))
    }

    /// Returns a ticket that acknowledges everything appended before.
    pub(in super::super) fn catch_up(&self) -> Ticket {
        let mut pending = self.pending.lock();
        // Where the disk has confirmed everything there is nothing to wait for.
        if self.admission.unconfirmed_for().is_none() { Ticket::Done } else { self.ticket(&mut pending) }
    }

    fn add(&self, pending: &mut Pending, operations: &Operations) -> u64 {
        pending.operations.extend_from_slice(operations.bytes());
        pending.since.get_or_insert_with(Instant::now);
        self.admission.appended(operations.len());
        pending.next
    }

    fn ticket(&self, pending: &mut Pending) -> Ticket {
        if self.durability == Durability::Off {
            self.wake.notify_one();
            return Ticket::Done;
        }
        let (sender, receiver) = oneshot::channel();
        // Once closed, nobody would ever answer: the sender is dropped instead, which the receiver takes as unknown.
        if self.admission.closed().is_none() {
            if pending.waiting.is_empty() {
                pending.waiting_since = Instant::now();
            }
            pending.waiting.push(sender);
        }
        Ticket::Waiting(receiver, WakeWriter(self.wake.clone()))
    }

    /// Returns the sequence that an operation appended now gets.
    pub(in super::super) fn next(&self) -> u64 {
        self.pending.lock().next
    }

    /// Returns the sequence of the last frame that holds anything appended so far.
    pub(in super::super) fn last(&self) -> u64 {
        let pending = self.pending.lock();
        if pending.operations.is_empty() { pending.next - 1 } else { pending.next }
    }

    /// Waits until what waits for the log is no longer too much. Returns whether it has become less in time.
    pub(in super::super) async fn has_room(&self) -> bool {
        let deadline = tokio::time::Instant::now() + self.patience;
        while self.admission.is_crowded() {
            let left = self.left.notified();
            if self.admission.is_crowded() && tokio::time::timeout_at(deadline, left).await.is_err() {
                return false;
            }
        }
        true
    }

    /// Waits until everything of these tickets is as durable as configured.
    ///
    /// [`StoreError::TimedOut`]: the outcome is unknown.
    pub(in super::super) async fn wait(&self, ticket: Ticket) -> Result<()> {
        let Ticket::Waiting(receiver, wake) = ticket else { return Ok(()) };
        // The log's thread is woken once for all requests that were ready together on this thread.
        tokio::task::yield_now().await;
        drop(wake);
        self.acknowledged(receiver).await
    }

    /// Waits for all of them. They share a frame, for which the log's thread is woken once.
    pub(in super::super) async fn wait_all(&self, tickets: Vec<Ticket>) -> Vec<Result<()>> {
        let mut wakes = Vec::with_capacity(tickets.len());
        let split = |ticket| match ticket {
            Ticket::Done => None,
            Ticket::Waiting(receiver, wake) => {
                wakes.push(wake);
                Some(receiver)
            }
        };
        let waiting: Vec<_> = tickets.into_iter().map(split).collect();
        if !wakes.is_empty() {
            tokio::task::yield_now().await;
            drop(wakes);
        }
        let mut results = Vec::with_capacity(waiting.len());
        for receiver in waiting {
            results.push(match receiver {
                Some(receiver) => self.acknowledged(receiver).await,
                None => Ok(()),
            });
        }
        results
    }

    async fn acknowledged(&self, receiver: oneshot::Receiver<Outcome>) -> Result<()> {
        match receive(receiver).await {
            Ok(Outcome::Done) => Ok(()),
            Ok(Outcome::Unknown) | Err(_) => Err(self.unknown()),
        }
    }

    /// Asks the log's thread to write what is there, sync, and end.
    pub(super) fn stop(&self) {
        self.pending.lock().stop = true;
        self.wake.notify_one();
    }

    /// Whether the log's thread was asked to end.
    pub(super) fn is_stopping(&self) -> bool {
        self.pending.lock().stop
    }

    /// For the log's thread: waits for a while, or until it is woken.
    pub(super) fn pause(&self, time: Duration) {
        self.wake.wait_for(&mut self.pending.lock(), time);
    }

    /// Wakes the log's thread.
    pub(super) fn wake(&self) {
        self.pending.lock().nudged = true;
        self.wake.notify_one();
    }

    /// For the log's thread: the group that has gathered, waiting for one until `deadline`. Returns it, if there is
    /// any, and whether to stop.
    pub(super) fn take(&self, deadline: Instant) -> (Option<Group>, bool) {
        let mut pending = self.pending.lock();
        // What nobody waits for is left to gather.
        while pending.operations.len() < MANY && pending.waiting.is_empty() && !pending.nudged && !pending.stop {
            if self.wake.wait_until(&mut pending, deadline).timed_out() {
                break;
            }
        }
        let stop = pending.stop;
        pending.nudged = false;
        if pending.operations.is_empty() && pending.waiting.is_empty() {
            return (None, stop);
        }
        let operations = std::mem::take(&mut pending.operations);
        let since = pending.since.take().unwrap_or_else(Instant::now);
        let sequence = if operations.is_empty() { pending.next - 1 } else { pending.next };
        pending.next = sequence + 1;
        self.admission.taken(operations.len());
        pending.in_hand = (!operations.is_empty()).then_some(since);
        let waiting = std::mem::take(&mut pending.waiting);
        let writes = waiting.len();
        if !waiting.is_empty() {
            self.unacknowledged.lock().push_back(Waiters { sequence, since: Instant::now(), waiting });
        }
        drop(pending);
        self.left.notify_waiters();
        (Some(Group { sequence, operations, since, writes }), stop)
    }

    /// For the log's thread: takes a sequence for a frame without operations.
    pub(super) fn take_sequence(&self) -> Option<u64> {
        let mut pending = self.pending.lock();
        pending.operations.is_empty().then(|| {
            pending.next += 1;
            pending.next - 1
        })
    }

    /// Acknowledges all frames up to a sequence.
    pub(super) fn acknowledge(&self, through: u64) {
        self.answer(Outcome::Done, |waiters| waiters.sequence <= through);
    }

    /// Reports the outcome of what has been waiting for too long as unknown.
    pub(super) fn give_up_waiting(&self) {
        self.answer(Outcome::Unknown, |waiters| waiters.since.elapsed() >= self.patience);
        let mut pending = self.pending.lock();
        if !pending.waiting.is_empty() && pending.waiting_since.elapsed() >= self.patience {
            let waiting = std::mem::take(&mut pending.waiting);
            drop(pending);
            answer(waiting, Outcome::Unknown);
        }
    }

    /// Reports the outcome of all frames on their way as unknown.
    pub(super) fn give_up(&self) {
        self.answer(Outcome::Unknown, |_| true);
    }

    /// Refuses writes for good; everyone who waits is told that the outcome is unknown.
    pub(super) fn close(&self, reason: &str) {
        self.admission.close(reason);
        let waiting = std::mem::take(&mut self.pending.lock().waiting);
        answer(waiting, Outcome::Unknown);
        self.give_up();
    }

    /// The disk has confirmed what was appended before; `oldest`: when the oldest was appended that has left for the
    /// log and is not confirmed.
    pub(super) fn confirmed(&self, oldest: Option<Instant>) {
        let pending = self.pending.lock();
        self.admission.confirmed(oldest.or(pending.in_hand).or(pending.since));
    }

    /// Something that was appended at `since` is not confirmed.
    pub(super) fn unconfirmed(&self, since: Instant) {
        let _pending = self.pending.lock();
        self.admission.unconfirmed_since(since);
    }

    /// A frame was written whose first operation was appended at `since`.
    pub(super) fn written(&self, since: Instant) {
        let mut pending = self.pending.lock();
        pending.in_hand = None;
        self.admission.unconfirmed_since(since);
    }

    fn answer(&self, outcome: Outcome, which: impl Fn(&Waiters) -> bool) {
        loop {
            let waiters = {
                let mut unacknowledged = self.unacknowledged.lock();
                match unacknowledged.front() {
                    Some(first) if which(first) => unacknowledged.pop_front(),
                    _ => None,
                }
            };
            match waiters {
                Some(waiters) => answer(waiters.waiting, outcome),
                None => return,
            }
        }
    }
}

/// Tells those waiting. One that has gone away needs no answer.
fn answer(waiting: Vec<Acknowledgement>, outcome: Outcome) {
    for waiter in waiting {
        waiter.send(outcome).ok();
    }
}
