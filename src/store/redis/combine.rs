//! Combining of concurrent writes: what arrives while a flush is in flight leaves together in the next one.
//!
//! No timer, so nothing waits when nothing else is going on. One flush is in flight at a time, hence one sequence
//! number per flush tells whether a repeated script has been done already.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use metrics::{gauge, histogram};
use parking_lot::Mutex;
use tokio::sync::{Notify, oneshot};

use super::session::Session;
use super::write::Writer;
use crate::board::{Board, Generation};
use crate::store::{Added, Batch, Result, StoreError};

/// The most items of one flush, unless a single batch has more: bounds how long a flush takes.
const FLUSH: usize = 8_192;

/// One caller's batch, waiting for its turn.
#[derive(Debug)]
pub(super) struct Waiting {
    pub board: Arc<Board>,
    pub batch: Batch,
    /// Leaves in the same flush as the one before it.
    pub joined: bool,
    pub answer: oneshot::Sender<Result<Added>>,
}

/// Batches that wait for the next flush.
#[derive(Debug)]
pub(super) struct Queue {
    /// Held to push or take, never across an await.
    state: Mutex<State>,
    arrived: Notify,
    /// The most items that may wait.
    most: usize,
}

#[derive(Debug, Default)]
struct State {
    calls: VecDeque<Waiting>,
    items: usize,
    closed: bool,
}

impl Queue {
    pub fn new(most: usize) -> Self {
        Self { state: Mutex::default(), arrived: Notify::new(), most }
    }

    /// Lets a batch wait, or refuses it at once. A batch larger than the queue is taken when nothing else waits.
    pub fn push(&self, waiting: Waiting) -> Result<()> {
        let items = waiting.batch.increments.len();
        self.take_in(items, [waiting]).map_err(|retry_after| StoreError::Overloaded { retry_after })
    }

    /// The same of batches that leave in one flush, all of them or none; answers when to try again.
    pub fn push_all(&self, mut together: Vec<Waiting>) -> Result<(), Duration> {
        for joined in together.iter_mut().skip(1) {
            joined.joined = true;
        }
        let items = together.iter().map(|waiting| waiting.batch.increments.len()).sum();
        self.take_in(items, together)
    }

    fn take_in(&self, items: usize, calls: impl IntoIterator<Item = Waiting>) -> Result<(), Duration> {
        let mut state = self.state.lock();
        if !state.calls.is_empty() && state.items.saturating_add(items) > self.most {
            return Err(Duration::from_secs(1));
        }
        state.items += items;
        state.calls.extend(calls);
        drop(state);
        self.arrived.notify_one();
        Ok(())
    }

    /// Ends the combiner once everything that waits is written.
    pub fn close(&self) {
        self.state.lock().closed = true;
        self.arrived.notify_one();
    }

    /// How many items wait.
    fn waiting(&self) -> usize {
        self.state.lock().items
    }

    /// The batches of the next flush; `None` when the queue is closed and empty.
    async fn take(&self) -> Option<Vec<Waiting>> {
        loop {
            {
                let mut state = self.state.lock();
                if !state.calls.is_empty() {
                    return Some(state.take());
                }
                if state.closed {
                    return None;
                }
            }
            self.arrived.notified().await;
        }
    }
}

impl State {
    fn take(&mut self) -> Vec<Waiting> {
        let (mut calls, mut items) = (Vec::new(), 0);
        while let Some(next) = self.calls.front() {
            let size = next.batch.increments.len();
            if !calls.is_empty() && !next.joined && items + size > FLUSH {
                break;
            }
            items += size;
            calls.extend(self.calls.pop_front());
        }
        self.items -= items;
        calls
    }
}

/// Writes what waits until the queue is closed.
pub(super) async fn run(session: Arc<Session>, queue: Arc<Queue>) {
    let writer = Writer::new(&session.instance);
    while let Some(calls) = queue.take().await {
        let items: usize = calls.iter().map(|call| call.batch.increments.len()).sum();
        histogram!("rolltop_combine_items").record(items as f64);
        gauge!("rolltop_combine_waiting_items").set(queue.waiting() as f64);
        let boards = by_board(calls);
        join_all(boards.into_iter().map(|(board, calls)| writer.write(&session, board, calls))).await;
    }
}

/// Groups batches by board, each board's in order of arrival.
fn by_board(calls: Vec<Waiting>) -> Vec<(Arc<Board>, Vec<Waiting>)> {
    let mut groups: Vec<(Arc<Board>, Vec<Waiting>)> = Vec::new();
    let mut places: HashMap<Generation, usize> = HashMap::new();
    for call in calls {
        let place = *places.entry(call.board.generation()).or_insert(groups.len());
        match groups.get_mut(place) {
            Some((_, group)) => group.push(call),
            None => groups.push((call.board.clone(), vec![call])),
        }
    }
    groups
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::board::{Amount, BoardName, Change, Definition, Subject};
    use crate::store::Increment;

    fn board(name: &str, generation: u64) -> Arc<Board> {
        let definition = Definition::new("COUNT(2h, like, post)".parse().unwrap(), "1h".parse().unwrap());
        Arc::new(Board::new(BoardName::parse(name).unwrap(), Generation(generation), definition).unwrap())
    }

    fn waiting(board: &Arc<Board>, items: usize) -> Waiting {
        let increment = Increment {
            subject: Subject::parse("s").unwrap(),
            change: Change::Amount(Amount(1)),
            retract: false,
            at: None,
            id: None,
        };
        let batch = Batch { increments: vec![increment; items], return_scores: false };
        Waiting { board: board.clone(), batch, joined: false, answer: oneshot::channel().0 }
    }

    #[tokio::test]
    async fn what_waits_is_bounded_and_leaves_in_order() {
        let (a, b) = (board("a", 1), board("b", 2));
        let queue = Queue::new(10);
        queue.push(waiting(&a, 4)).unwrap();
        queue.push(waiting(&b, 5)).unwrap();
        assert!(matches!(queue.push(waiting(&a, 2)), Err(StoreError::Overloaded { .. })));
        queue.push(waiting(&a, 1)).unwrap();
        let groups = by_board(queue.take().await.unwrap());
        let sizes: Vec<Vec<usize>> = groups
            .iter()
            .map(|(board, calls)| {
                assert!(calls.iter().all(|call| Arc::ptr_eq(&call.board, board)));
                calls.iter().map(|call| call.batch.increments.len()).collect()
            })
            .collect();
        assert_eq!(sizes, [vec![4, 1], vec![5]]);
        // Nothing waits: even a batch larger than the queue is taken, alone if it fills a flush.
        queue.push(waiting(&a, FLUSH + 1)).unwrap();
        assert!(queue.push(waiting(&a, 0)).is_err());
        queue.close();
        assert_eq!(queue.take().await.unwrap().len(), 1);
        assert!(queue.take().await.is_none());
    }
}
