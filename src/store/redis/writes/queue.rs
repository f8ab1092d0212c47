//! The calls that wait to be written, by partition.
//!
//! Each partition has its own task while calls wait for it. The calls that arrive during one flush are written together
//! in the next one. There is no timer, so a single call is written at once, and no partition waits for a different one.
//! A flush takes a portion of each waiting call in turn, so that a large call and a small one share it.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use futures_util::stream::{FuturesUnordered, StreamExt};
use metrics::{gauge, histogram};
use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::time::Instant;

use super::call::Call;
use super::chunk::Budget;
use super::lane::Writer;
use super::retry::{PATIENCE, too_late};
use crate::store::redis::partition::Partition;
use crate::store::redis::session::Session;

/// The approximate number of scripts for the items of one flush.
const SCRIPTS: usize = 8;
/// The approximate number of scripts for a portion, if several calls wait.
const SHARE: usize = 2;

/// The refusal of calls that do not fit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueueFull {
    /// The time after which there may be room.
    pub retry_after: Duration,
}

/// The calls that wait for the next flush of their partition.
#[derive(Debug)]
pub struct Queue {
    /// Locked to add or take calls, never across an await.
    state: Mutex<WaitingCalls>,
    arrived: Notify,
    /// The largest number of items that may wait.
    most: usize,
}

#[derive(Debug, Default)]
struct WaitingCalls {
    /// The calls that wait for each partition, by its own key. It has an entry while calls wait for it or while it is
    /// being written to.
    partitions: HashMap<String, VecDeque<Call>, rapidhash::fast::RandomState>,
    /// The partitions for which calls wait and that have no task yet.
    ready: Vec<Arc<Partition>>,
    /// The number of items that wait or are being written.
    items: usize,
    closed: bool,
}

impl Queue {
    pub fn new(most: usize) -> Self {
        Self { state: Mutex::default(), arrived: Notify::new(), most }
    }

    /// Adds calls, either all of them or, if they do not fit, none. If no other calls wait, they are accepted even if
    /// they are larger than the queue.
    pub fn push(&self, calls: Vec<Call>) -> Result<(), QueueFull> {
        let now = Instant::now();
        let items: usize = calls.iter().map(Call::weight).sum();
        let mut state = self.state.lock();
        if !state.partitions.is_empty() && state.items.saturating_add(items) > self.most {
            return Err(QueueFull { retry_after: Duration::from_secs(1) });
        }
        state.items += items;
        let WaitingCalls { partitions, ready, .. } = &mut *state;
        for mut call in calls {
            call.since = now;
            match partitions.get_mut(key(&call.partition)) {
                Some(waiting) => waiting.push_back(call),
                None => {
                    ready.push(call.partition.clone());
                    partitions.insert(key(&call.partition).to_owned(), VecDeque::from([call]));
                }
            }
        }
        drop(state);
        self.arrived.notify_one();
        Ok(())
    }

    /// Ends [`run`] once all waiting calls are written.
    pub fn close(&self) {
        self.state.lock().closed = true;
        self.arrived.notify_one();
    }

    /// Returns the partitions for which a task must be started, or `None` when the queue is closed and none is ready.
    async fn ready(&self) -> Option<Vec<Arc<Partition>>> {
        loop {
            {
                let mut state = self.state.lock();
                if !state.ready.is_empty() {
                    return Some(std::mem::take(&mut state.ready));
                }
                if state.closed {
                    return None;
                }
            }
            self.arrived.notified().await;
        }
    }

    /// Returns the calls of the next flush of a partition, each with the portion to write. Calls that have waited too
    /// long end with an error instead. If nothing is left to write, returns `None`: from then on the partition has no
    /// task, and is ready again when the next call arrives.
    fn take(&self, partition: &Partition, now: Instant) -> Option<Vec<Call>> {
        let mut state = self.state.lock();
        let waiting = state.partitions.get_mut(key(partition))?;
        let mut late = Vec::new();
        if waiting.front().is_some_and(|call| call.since + PATIENCE <= now) {
            let (old, young): (Vec<Call>, Vec<Call>) = waiting.drain(..).partition(|call| call.since + PATIENCE <= now);
            (late, *waiting) = (old, young.into());
        }
        let calls = portions(waiting);
        if calls.is_empty() {
            state.partitions.remove(key(partition));
        }
        state.items -= late.iter().map(Call::weight).sum::<usize>();
        gauge!("rolltop_combine_waiting_items").set(state.items as f64);
        drop(state);
        for call in late {
            call.fail(too_late());
            call.finish(&Err(too_late()));
        }
        if calls.is_empty() {
            return None;
        }
        let items: usize = calls.iter().map(|call| call.portion.len()).sum();
        histogram!("rolltop_combine_items").record(items as f64);
        Some(calls)
    }

    /// Puts calls back that have not ended, after the calls that arrived in the meantime. Their latest portion was done
    /// now.
    fn put_back(&self, partition: &Partition, calls: Vec<Call>) {
        let now = Instant::now();
        let mut state = self.state.lock();
        for mut call in calls {
            call.since = now;
            if call.has_ended() {
                state.items -= call.weight();
            } else if let Some(waiting) = state.partitions.get_mut(key(partition)) {
                waiting.push_back(call);
            }
        }
    }
}

/// Returns the key that identifies a partition, in every epoch, whichever edition is the current one. It differs
/// between boards of the same name that were defined one after the other.
fn key(partition: &Partition) -> &str {
    &partition.main().keys.buckets
}

/// Takes a portion of each waiting call in turn, until a flush is full or the next call is made in another epoch of the
/// board. A call that waits alone may fill the flush. If several calls wait, each gets about [`SHARE`] scripts.
fn portions(waiting: &mut VecDeque<Call>) -> Vec<Call> {
    let is_alone = waiting.len() == 1;
    let mut room = 1.0;
    let mut taken: Vec<Call> = Vec::new();
    while let Some(mut call) = waiting.pop_front() {
        if taken.first().is_some_and(|first| room <= 0.0 || !Arc::ptr_eq(&first.partition, &call.partition)) {
            waiting.push_front(call);
            break;
        }
        let per_script = Budget::new(call.partition.board(), call.return_scores).items(&call.increments);
        let per_flush = (SCRIPTS * per_script) as f64;
        let fitting =
            if is_alone { SCRIPTS * per_script } else { (SHARE * per_script).min((room * per_flush) as usize) };
        let left = call.increments.len() - call.portion.end;
        let size = left.min(fitting.max(1));
        room -= (size.max(1)) as f64 / per_flush;
        call.portion = call.portion.end..call.portion.end + size;
        taken.push(call);
    }
    taken
}

/// Writes waiting calls until the queue is closed.
pub async fn run(session: Arc<Session>, queue: Arc<Queue>) {
    let writer = Writer::new(session);
    let mut running = FuturesUnordered::new();
    loop {
        tokio::select! {
            ready = queue.ready() => {
                let Some(partitions) = ready else { break };
                // Boxed, because a future is moved several times before it runs.
                let write = |partition| Box::pin(write_partition(&queue, &writer, partition));
                running.extend(partitions.into_iter().map(write));
            }
            Some(()) = running.next() => {}
        }
    }
    while running.next().await.is_some() {}
}

/// Writes to one partition until nothing waits for it.
async fn write_partition(queue: &Queue, writer: &Writer, partition: Arc<Partition>) {
    while let Some(mut calls) = queue.take(&partition, Instant::now()) {
        writer.write(&mut calls).await;
        queue.put_back(&partition, calls);
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::super::answer::BatchAnswer;
    use super::super::call::tests::whole;
    use super::*;
    use crate::board::{
        Amount, Board, BoardName, Change, Definition, EventId, Generation, Subject, Timestamp, TrackId,
    };
    use crate::store::redis::keys::StoreKeys;
    use crate::store::redis::partition_clock::PartitionClock;
    use crate::store::redis::store_clock::Start;
    use crate::store::{Increment, StoreError};
    use tokio::sync::oneshot;

    pub fn partition(name: &str, generation: u64) -> Arc<Partition> {
        let definition = Definition::new("COUNT(2h, like, post)".parse().unwrap(), "1h".parse().unwrap());
        let board = Arc::new(Board::new(BoardName::parse(name).unwrap(), Generation(generation), definition).unwrap());
        let keys = StoreKeys::new("p").board(board.name(), board.generation(), TrackId(generation));
        let clock = PartitionClock::new(&board, false, |_| Start::believed(Timestamp::EPOCH));
        Arc::new(Partition::new(&board, 0, vec![keys], clock))
    }

    pub fn increment(id: Option<&str>) -> Increment {
        Increment {
            other: None,
            subject: Subject::parse("s").unwrap(),
            change: Change::Amount(Amount(1)),
            retract: false,
            at: None,
            id: id.map(|id| EventId::parse(id).unwrap()),
            period: None,
            event: None,
        }
    }

    fn call(partition: &Arc<Partition>, items: usize, id: Option<&str>) -> (Call, oneshot::Receiver<BatchAnswer>) {
        let (mut call, answer) = whole(partition, vec![increment(id); items], false);
        call.portion = 0..0;
        (call, answer)
    }

    fn push(
        queue: &Queue,
        partition: &Arc<Partition>,
        items: usize,
        id: Option<&str>,
    ) -> Result<oneshot::Receiver<BatchAnswer>, QueueFull> {
        let (call, answer) = call(partition, items, id);
        queue.push(vec![call]).map(|()| answer)
    }

    fn sizes(calls: &Option<Vec<Call>>) -> Vec<usize> {
        calls.iter().flatten().map(|call| call.portion.len()).collect()
    }

    #[tokio::test]
    async fn the_queue_is_bounded_and_separates_partitions() {
        let (a, b) = (partition("a", 1), partition("b", 2));
        let queue = Queue::new(10);
        let _first = push(&queue, &a, 4, None).unwrap();
        let _second = push(&queue, &b, 5, None).unwrap();
        assert!(matches!(push(&queue, &a, 2, None), Err(QueueFull { .. })));
        assert!(queue.push(vec![call(&a, 1, None).0, call(&b, 1, None).0]).is_err());
        let _third = push(&queue, &a, 1, None).unwrap();
        let ready: Vec<_> =
            queue.ready().await.unwrap().iter().map(|partition| partition.board().name().to_string()).collect();
        assert_eq!(ready, ["a", "b"]);
        assert_eq!(sizes(&queue.take(&a, Instant::now())), [4, 1]);
        assert_eq!(sizes(&queue.take(&a, Instant::now())), [0_usize; 0]);
        assert_eq!(sizes(&queue.take(&b, Instant::now())), [5]);
        assert!(push(&queue, &a, 1, None).is_err(), "what is being written still takes room");
    }

    #[tokio::test]
    async fn large_calls_take_turns_in_portions() {
        let a = partition("a", 1);
        let queue = Queue::new(100_000);
        let answers: Vec<_> = [100_000, 1, 3_000].map(|items| push(&queue, &a, items, Some("x"))).into();
        assert!(answers.iter().all(Result::is_ok));
        let first = queue.take(&a, Instant::now());
        assert_eq!(sizes(&first), [500, 1, 500]);
        queue.put_back(&a, first.unwrap());
        let _late = push(&queue, &a, 1, None).unwrap();
        let portions = queue.take(&a, Instant::now());
        assert_eq!(sizes(&portions)[..1], [500], "the large ones wait in turn: {portions:?}");
        // A call that waits alone fills a flush.
        let b = partition("b", 2);
        let _alone = push(&queue, &b, 100_000, None).unwrap();
        assert_eq!(sizes(&queue.take(&b, Instant::now())), [4_000]);
    }

    #[tokio::test]
    async fn a_flush_has_calls_of_one_epoch() {
        let (old, new) = (partition("a", 1), partition("a", 1));
        let queue = Queue::new(10);
        let answers =
            [(&old, 1), (&old, 2), (&new, 3)].map(|(partition, items)| push(&queue, partition, items, None).unwrap());
        for expected in [vec![1, 2], vec![3]] {
            assert_eq!(sizes(&queue.take(&old, Instant::now())), expected);
        }
        assert!(queue.take(&old, Instant::now()).is_none());
        // A call that arrives after that makes the part ready again.
        queue.ready().await.unwrap();
        let _next = push(&queue, &new, 4, None).unwrap();
        assert_eq!(queue.ready().await.unwrap().len(), 1);
        drop(answers);
    }

    #[tokio::test]
    async fn requests_that_waited_too_long_fail_without_being_sent() {
        let a = partition("a", 1);
        let queue = Queue::new(10);
        let old = push(&queue, &a, 1, None).unwrap();
        tokio::time::sleep(Duration::from_millis(2)).await;
        let _young = push(&queue, &a, 2, None).unwrap();
        let now = Instant::now() + PATIENCE - Duration::from_millis(1);
        assert_eq!(sizes(&queue.take(&a, now)), [2]);
        assert!(matches!(old.await.unwrap().added, Err(StoreError::Unreachable { .. })));
    }
}
