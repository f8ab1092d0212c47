//! The journal: passes operations from boards to the log and acknowledges them to the callers that wait.
//!
//! A change is appended before its board's lock is released, so the order in the log is the order in memory. Operations
//! appended while the log's thread writes go together into its next group. So no caller waits for a timer, and a
//! thousand writers share one frame of the log (and, with `always`, one sync).

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};
use tokio::sync::{Notify, oneshot};

use super::super::log_operations::LogOperations;
use super::super::options::Durability;
use super::admission::{Admission, Permit};
use crate::store::receive::receive;
use crate::store::{Result, StoreError};

/// The bytes of operations from which a group is written although no caller waits for it.
const WRITE_AT_BYTES: usize = 128 << 10;

type Acknowledgement = oneshot::Sender<AckOutcome>;

/// The outcome of a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) enum AckOutcome {
    Done,
    /// The operations are in memory, and perhaps in the log.
    Unknown,
}

/// The operations of the next frame of the log.
#[derive(Debug)]
pub(super) struct Group {
    /// The sequence of the frame. Without operations, the sequence of the last frame.
    pub sequence: u64,
    pub operations: Vec<u8>,
    /// The time when the first operation was appended.
    pub since: Instant,
    /// The number of callers that wait for the group.
    pub writes: usize,
}

#[derive(Debug)]
struct Pending {
    /// The sequence of the next group.
    next: u64,
    operations: Vec<u8>,
    since: Option<Instant>,
    /// The time when the first operation was appended to the group that the log's thread is writing.
    being_written_since: Option<Instant>,
    waiting: Vec<Acknowledgement>,
    /// The time when the first of them began to wait.
    waiting_since: Instant,
    /// Whether the log's thread has to check for other work.
    wake_requested: bool,
    stop: bool,
}

/// The callers that wait for a frame.
#[derive(Debug)]
struct Waiters {
    sequence: u64,
    since: Instant,
    waiting: Vec<Acknowledgement>,
}

/// The journal, shared by any number of threads.
#[derive(Debug)]
pub(in super::super) struct Journal {
    durability: Durability,
    /// The time after which a waiting caller gets the outcome "unknown".
    unknown_after: Duration,
    /// The store's location, for error messages.
    location: String,
    pub(super) admission: Admission,
    /// The next group. Locked for an append or a swap, never across a write or an await.
    pending: Mutex<Pending>,
    wake: Arc<Condvar>,
    /// The frames that are not yet acknowledged, oldest first.
    unacknowledged: Mutex<VecDeque<Waiters>>,
    /// Notified when a group has been taken.
    group_taken: Notify,
}

/// The acknowledgement of an appended change.
#[derive(Debug)]
#[must_use]
pub(in super::super) enum Ticket {
    /// There is nothing to wait for.
    Done,
    Waiting(oneshot::Receiver<AckOutcome>, WakeWriter),
}

/// Wakes the log's thread when dropped. This happens after the other requests that are ready on this thread have
/// appended their operations too, or when the request is abandoned.
#[derive(Debug)]
pub(in super::super) struct WakeWriter(Arc<Condvar>);

impl Drop for WakeWriter {
    fn drop(&mut self) {
        self.0.notify_one();
    }
}

impl Journal {
    /// Creates a journal whose first group gets the sequence `next`.
    pub(super) fn new(durability: Durability, unknown_after: Duration, place: String, next: u64) -> Self {
        let pending = Pending {
            next,
            operations: Vec::new(),
            since: None,
            being_written_since: None,
            waiting: Vec::new(),
            waiting_since: Instant::now(),
            wake_requested: false,
            stop: false,
        };
        Self {
            durability,
            unknown_after,
            location: place,
            admission: Admission::new(),
            pending: Mutex::new(pending),
            wake: Arc::default(),
            unacknowledged: Mutex::default(),
            group_taken: Notify::new(),
        }
    }

    /// Admits a write that appends at most `bytes`. Must be called before memory changes.
    pub(in super::super) fn admit(&self, bytes: usize) -> Result<Permit<'_>> {
        self.admission.admit(bytes)
    }

    /// Returns the reason why writes are refused, if they are.
    pub(in super::super) fn refusal(&self) -> Option<String> {
        self.admission.refusal()
    }

    /// Returns the reason why writes are refused permanently, if they are.
    pub(super) fn closed(&self) -> Option<String> {
        self.admission.closed()
    }

    /// Returns the error of a write whose outcome is unknown.
    pub(in super::super) fn unknown(&self) -> StoreError {
        StoreError::TimedOut { at: self.location.clone() }
    }

    /// Appends operations for which no caller waits, and returns the sequence of their frame. They are written together
    /// with later operations, or when many have gathered.
    pub(in super::super) fn append(&self, operations: &LogOperations) -> u64 {
        let mut pending = self.pending.lock();
        let sequence = self.add(&mut pending, operations);
        if pending.operations.len() >= WRITE_AT_BYTES {
            self.wake.notify_one();
        }
        sequence
    }

    /// Appends operations for which no caller waits, and has them written without waiting for others. Returns the sequence of
    /// their frame.
    pub(in super::super) fn append_at_once(&self, operations: &LogOperations) -> u64 {
        let mut pending = self.pending.lock();
        let sequence = self.add(&mut pending, operations);
        pending.wake_requested = true;
        self.wake.notify_one();
        sequence
    }

    /// Appends operations. Returns the sequence of their frame, and a ticket that acknowledges them and all operations
    /// before.
    pub(in super::super) fn append_with_ticket(&self, operations: &LogOperations) -> (u64, Ticket) {
        let mut pending = self.pending.lock();
        let sequence = self.add(&mut pending, operations);
        (sequence, self.ticket(&mut pending))
    }

    /// Returns a ticket that acknowledges everything appended before.
    pub(in super::super) fn ticket_for_all_appended(&self) -> Ticket {
        let mut pending = self.pending.lock();
        // If the disk has confirmed everything, there is nothing to wait for.
        if self.admission.unconfirmed_for().is_none() { Ticket::Done } else { self.ticket(&mut pending) }
    }

    fn add(&self, pending: &mut Pending, operations: &LogOperations) -> u64 {
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
        // After the journal is closed, no thread would ever send an outcome. So the sender is dropped here, which the
        // receiver reports as unknown.
        if self.admission.closed().is_none() {
            if pending.waiting.is_empty() {
                pending.waiting_since = Instant::now();
            }
            pending.waiting.push(sender);
        }
        Ticket::Waiting(receiver, WakeWriter(self.wake.clone()))
    }

    /// Returns the sequence that an operation appended now would get.
    pub(in super::super) fn next_sequence(&self) -> u64 {
        self.pending.lock().next
    }

    /// Returns the sequence of the last frame that contains anything appended so far.
    pub(in super::super) fn last_sequence(&self) -> u64 {
        let pending = self.pending.lock();
        if pending.operations.is_empty() { pending.next - 1 } else { pending.next }
    }

    /// Waits until fewer bytes wait for the log. Returns `false` if that does not happen in time.
    pub(in super::super) async fn has_room(&self) -> bool {
        let deadline = tokio::time::Instant::now() + self.unknown_after;
        while self.admission.is_crowded() {
            let left = self.group_taken.notified();
            if self.admission.is_crowded() && tokio::time::timeout_at(deadline, left).await.is_err() {
                return false;
            }
        }
        true
    }

    /// Waits until everything that the ticket covers is as durable as configured.
    ///
    /// Returns [`StoreError::TimedOut`] if the outcome is unknown.
    pub(in super::super) async fn wait(&self, ticket: Ticket) -> Result<()> {
        let Ticket::Waiting(receiver, wake) = ticket else { return Ok(()) };
        // The yield lets the other requests that are ready on this thread append first, so that the log's thread is
        // woken once for all of them.
        tokio::task::yield_now().await;
        drop(wake);
        self.acknowledged(receiver).await
    }

    /// Waits for all tickets. They share a frame, for which the log's thread is woken once.
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

    async fn acknowledged(&self, receiver: oneshot::Receiver<AckOutcome>) -> Result<()> {
        match receive(receiver).await {
            Ok(AckOutcome::Done) => Ok(()),
            Ok(AckOutcome::Unknown) | Err(_) => Err(self.unknown()),
        }
    }

    /// Requests the log's thread to write everything, sync, and end.
    pub(super) fn stop(&self) {
        self.pending.lock().stop = true;
        self.wake.notify_one();
    }

    /// Returns whether the log's thread was requested to end.
    pub(super) fn is_stopping(&self) -> bool {
        self.pending.lock().stop
    }

    /// Waits for a while, or until the log's thread is woken. Called by the log's thread.
    pub(super) fn pause(&self, time: Duration) {
        self.wake.wait_for(&mut self.pending.lock(), time);
    }

    /// Wakes the log's thread.
    pub(super) fn wake(&self) {
        self.pending.lock().wake_requested = true;
        self.wake.notify_one();
    }

    /// Waits until `deadline` for a group and takes it. Returns the group, if there is one, and whether the thread
    /// should end. Called by the log's thread.
    pub(super) fn take(&self, deadline: Instant) -> (Option<Group>, bool) {
        let mut pending = self.pending.lock();
        // Operations for which no caller waits are left to gather.
        while pending.operations.len() < WRITE_AT_BYTES
            && pending.waiting.is_empty()
            && !pending.wake_requested
            && !pending.stop
        {
            if self.wake.wait_until(&mut pending, deadline).timed_out() {
                break;
            }
        }
        let stop = pending.stop;
        pending.wake_requested = false;
        if pending.operations.is_empty() && pending.waiting.is_empty() {
            return (None, stop);
        }
        let operations = std::mem::take(&mut pending.operations);
        let since = pending.since.take().unwrap_or_else(Instant::now);
        let sequence = if operations.is_empty() { pending.next - 1 } else { pending.next };
        pending.next = sequence + 1;
        self.admission.taken(operations.len());
        pending.being_written_since = (!operations.is_empty()).then_some(since);
        let waiting = std::mem::take(&mut pending.waiting);
        let writes = waiting.len();
        if !waiting.is_empty() {
            self.unacknowledged.lock().push_back(Waiters { sequence, since: Instant::now(), waiting });
        }
        drop(pending);
        self.group_taken.notify_waiters();
        (Some(Group { sequence, operations, since, writes }), stop)
    }

    /// Takes a sequence for a frame without operations. Returns `None` if operations have gathered. Called by the log's
    /// thread.
    pub(super) fn take_sequence(&self) -> Option<u64> {
        let mut pending = self.pending.lock();
        pending.operations.is_empty().then(|| {
            pending.next += 1;
            pending.next - 1
        })
    }

    /// Acknowledges all frames up to a sequence.
    pub(super) fn acknowledge(&self, through: u64) {
        self.report(AckOutcome::Done, |waiters| waiters.sequence <= through);
    }

    /// Reports the outcome as unknown to callers that have waited for too long.
    pub(super) fn report_overdue_as_unknown(&self) {
        self.report(AckOutcome::Unknown, |waiters| waiters.since.elapsed() >= self.unknown_after);
        let mut pending = self.pending.lock();
        if !pending.waiting.is_empty() && pending.waiting_since.elapsed() >= self.unknown_after {
            let waiting = std::mem::take(&mut pending.waiting);
            drop(pending);
            send_outcome(waiting, AckOutcome::Unknown);
        }
    }

    /// Reports the outcome of all unacknowledged frames as unknown.
    pub(super) fn report_all_as_unknown(&self) {
        self.report(AckOutcome::Unknown, |_| true);
    }

    /// Refuses writes permanently, and reports the outcome as unknown to all callers that wait.
    pub(super) fn close(&self, reason: &str) {
        self.admission.close(reason);
        let waiting = std::mem::take(&mut self.pending.lock().waiting);
        send_outcome(waiting, AckOutcome::Unknown);
        self.report_all_as_unknown();
    }

    /// Records that the disk has confirmed frames. `oldest` returns the time when the oldest operation was appended that is
    /// written to the log and not confirmed. It is called under the lock, so that of this and [`written`](Self::written),
    /// which two threads call, the later one knows what the earlier one knew: a frame may be confirmed before the thread
    /// that wrote it records that it is written.
    pub(super) fn confirmed(&self, oldest: impl FnOnce() -> Option<Instant>) {
        let pending = self.pending.lock();
        self.admission.confirmed(oldest().or(pending.being_written_since).or(pending.since));
    }

    /// Records that a frame was written. `oldest` is that of [`confirmed`](Self::confirmed).
    pub(super) fn written(&self, oldest: impl FnOnce() -> Option<Instant>) {
        let mut pending = self.pending.lock();
        pending.being_written_since = None;
        self.admission.confirmed(oldest().or(pending.since));
    }

    fn report(&self, outcome: AckOutcome, which: impl Fn(&Waiters) -> bool) {
        loop {
            let waiters = {
                let mut unacknowledged = self.unacknowledged.lock();
                match unacknowledged.front() {
                    Some(first) if which(first) => unacknowledged.pop_front(),
                    _ => None,
                }
            };
            match waiters {
                Some(waiters) => send_outcome(waiters.waiting, outcome),
                None => return,
            }
        }
    }
}

/// Sends the outcome to the callers. A caller that no longer waits needs none.
fn send_outcome(waiting: Vec<Acknowledgement>, outcome: AckOutcome) {
    for waiter in waiting {
        waiter.send(outcome).ok();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::board::TrackId;

    #[test]
    fn what_is_confirmed_before_it_is_recorded_as_written_waits_for_nothing() {
        let journal = Journal::new(Durability::Always, Duration::from_secs(1), "here".to_owned(), 1);
        let mut operations = LogOperations::of(TrackId(7));
        operations.advanced(5);
        let (first, later) = (Instant::now(), Instant::now() + Duration::from_secs(1));
        for is_confirmed_first in [true, false] {
            journal.append_at_once(&operations);
            assert!(journal.take(Instant::now() + Duration::from_secs(60)).0.is_some());
            match is_confirmed_first {
                true => journal.confirmed(|| None),
                false => journal.written(|| Some(first)),
            }
            assert!(journal.admission.unconfirmed_for().is_some());
            match is_confirmed_first {
                true => journal.written(|| None),
                false => journal.confirmed(|| None),
            }
            assert_eq!(journal.admission.unconfirmed_for(), None, "{is_confirmed_first}");
        }
        // What was appended meanwhile, and what was written and is not confirmed, still waits.
        journal.append_at_once(&operations);
        journal.written(|| None);
        assert!(journal.admission.unconfirmed_for().is_some());
        assert!(journal.take(Instant::now() + Duration::from_secs(60)).0.is_some());
        journal.written(|| Some(later));
        assert_eq!(journal.admission.unconfirmed_for(), Some(Duration::ZERO));
    }

    #[test]
    fn what_is_appended_at_once_does_not_wait_for_others() {
        let journal = Journal::new(Durability::EverySecond, Duration::from_secs(1), "here".to_owned(), 1);
        let mut operations = LogOperations::of(TrackId(7));
        operations.advanced(5);
        let started = Instant::now();
        journal.append(&operations);
        assert!(journal.take(started + Duration::from_millis(30)).0.is_some());
        assert!(started.elapsed() >= Duration::from_millis(30), "nobody waits for it");
        journal.append_at_once(&operations);
        assert!(journal.take(Instant::now() + Duration::from_secs(60)).0.is_some());
        assert!(started.elapsed() < Duration::from_secs(30));
    }
}
