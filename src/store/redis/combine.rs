//! Combining of concurrent writes: what arrives while a flush is in flight leaves together in the next one.
//!
//! Nothing waits when nothing else is going on. Under load, callers just answered tend to come back at once, and a
//! flush costs the server some 20 µs besides its entries: so the next flush waits for as many as were last seen
//! together, for a moment and only as long as that pays off ([`Gathering`]). One flush is in flight at a time, hence
//! one sequence number per flush tells whether a repeated script has been done already.

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
/// How long a flush waits for callers to come back, at the resolution of the runtime's timer.
const PATIENCE: Duration = Duration::from_millis(1);
/// Fewer callers than this are not worth waiting for.
const CROWD: usize = 4;
/// The most flushes that leave at once after waiting was in vain.
const MOST_HASTE: u32 = 256;

/// One caller's batch, waiting for its turn.
#[derive(Debug)]
pub(super) struct Waiting {
    pub board: Arc<Board>,
    pub batch: Batch,
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
    /// How many calls the combiner waits for; fewer do not wake it.
    wanted: usize,
}

/// How many callers the next flush waits for. Where they do not come back in time, flushes leave at once for a while,
/// twice as many each time.
#[derive(Debug, Default)]
struct Gathering {
    /// Callers last seen together: those answered by the last flush, and those who waited meanwhile.
    crowd: usize,
    /// How many flushes still leave at once.
    hasty: u32,
    /// How many did after waiting was last in vain.
    haste: u32,
}

impl Queue {
    pub fn new(most: usize) -> Self {
        Self { state: Mutex::default(), arrived: Notify::new(), most }
    }

    /// Lets a batch wait, or refuses it at once. A batch larger than the queue is taken when nothing else waits.
    pub fn push(&self, waiting: Waiting) -> Result<()> {
        let mut state = self.state.lock();
        let items = waiting.batch.increments.len();
        if !state.calls.is_empty() && state.items.saturating_add(items) > self.most {
            return Err(StoreError::Overloaded { retry_after: Duration::from_secs(1) });
        }
        state.items += items;
        state.calls.push_back(waiting);
        let enough = state.has(state.wanted);
        drop(state);
        if enough {
            self.arrived.notify_one();
        }
        Ok(())
    }

    /// Ends the combiner once everything that waits is written.
    pub fn close(&self) {
        self.state.lock().closed = true;
        self.arrived.notify_one();
    }

    /// How many calls and items wait.
    fn waiting(&self) -> (usize, usize) {
        let state = self.state.lock();
        (state.calls.len(), state.items)
    }

    /// Waits until so many calls wait, or as many items as one flush takes, or the queue is closed.
    async fn reach(&self, calls: usize) {
        loop {
            {
                let mut state = self.state.lock();
                if state.closed || state.has(calls) {
                    return;
                }
                state.wanted = calls;
            }
            self.arrived.notified().await;
        }
    }

    /// The batches of the next flush; `None` when the queue is closed and empty.
    async fn take(&self, gathering: &mut Gathering) -> Option<Vec<Waiting>> {
        self.reach(1).await;
        if let Some(crowd) = gathering.expected() {
            let came = tokio::time::timeout(PATIENCE, self.reach(crowd)).await.is_ok();
            gathering.learn(came);
        }
        let mut state = self.state.lock();
        (!state.calls.is_empty()).then(|| state.take())
    }
}

impl Gathering {
    /// How many callers to wait for, if any.
    fn expected(&mut self) -> Option<usize> {
        if self.hasty > 0 {
            self.hasty -= 1;
            return None;
        }
        (self.crowd >= CROWD).then_some(self.crowd)
    }

    /// Takes in whether they came in time.
    fn learn(&mut self, came: bool) {
        self.haste = if came { 0 } else { (self.haste * 2).clamp(1, MOST_HASTE) };
        self.hasty = self.haste;
    }
}

impl State {
    fn has(&self, calls: usize) -> bool {
        self.calls.len() >= calls || self.items >= FLUSH
    }

    fn take(&mut self) -> Vec<Waiting> {
        let (mut calls, mut items) = (Vec::new(), 0);
        while let Some(next) = self.calls.front() {
            let size = next.batch.increments.len();
            if !calls.is_empty() && items + size > FLUSH {
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
    let mut gathering = Gathering::default();
    while let Some(calls) = queue.take(&mut gathering).await {
        let answered = calls.len();
        let items: usize = calls.iter().map(|call| call.batch.increments.len()).sum();
        histogram!("rolltop_combine_items").record(items as f64);
        gauge!("rolltop_combine_waiting_items").set(queue.waiting().1 as f64);
        let boards = by_board(calls);
        join_all(boards.into_iter().map(|(board, calls)| writer.write(&session, board, calls))).await;
        gathering.crowd = answered + queue.waiting().0;
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
    use crate::board::{Amount, BoardName, Definition, Subject};
    use crate::store::Increment;

    fn board(name: &str, generation: u64) -> Arc<Board> {
        let definition = Definition::new("COUNT(2h, like, post)".parse().unwrap(), "1h".parse().unwrap());
        Arc::new(Board::new(BoardName::parse(name).unwrap(), Generation(generation), definition).unwrap())
    }

    fn waiting(board: &Arc<Board>, items: usize) -> Waiting {
        let increment = Increment { subject: Subject::parse("s").unwrap(), amount: Amount(1), at: None, id: None };
        let batch = Batch { increments: vec![increment; items], return_scores: false };
        Waiting { board: board.clone(), batch, answer: oneshot::channel().0 }
    }

    #[tokio::test]
    async fn what_waits_is_bounded_and_leaves_in_order() {
        let (a, b) = (board("a", 1), board("b", 2));
        let queue = Queue::new(10);
        queue.push(waiting(&a, 4)).unwrap();
        queue.push(waiting(&b, 5)).unwrap();
        assert!(matches!(queue.push(waiting(&a, 2)), Err(StoreError::Overloaded { .. })));
        queue.push(waiting(&a, 1)).unwrap();
        let groups = by_board(queue.take(&mut Gathering::default()).await.unwrap());
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
        assert_eq!(queue.take(&mut Gathering::default()).await.unwrap().len(), 1);
        assert!(queue.take(&mut Gathering::default()).await.is_none());
    }

    #[tokio::test]
    async fn a_flush_waits_for_those_who_come_back() {
        let board = board("a", 1);
        let queue = Queue::new(100);
        queue.push(waiting(&board, 1)).unwrap();
        let mut reached = std::pin::pin!(queue.reach(3));
        assert!(futures_util::poll!(reached.as_mut()).is_pending());
        queue.push(waiting(&board, 1)).unwrap();
        assert!(futures_util::poll!(reached.as_mut()).is_pending());
        queue.push(waiting(&board, 1)).unwrap();
        assert!(futures_util::poll!(reached.as_mut()).is_ready());
        assert_eq!(queue.take(&mut Gathering::default()).await.unwrap().len(), 3);
    }

    #[test]
    fn waiting_in_vain_makes_hasty_ever_longer_and_success_patient_again() {
        let mut gathering = Gathering { crowd: CROWD - 1, ..Gathering::default() };
        assert_eq!(gathering.expected(), None, "a few are not worth waiting for");
        gathering.crowd = CROWD;
        for haste in [1, 2, 4] {
            assert_eq!(gathering.expected(), Some(CROWD));
            gathering.learn(false);
            assert!((0..haste).all(|_| gathering.expected().is_none()), "{haste} leave at once");
        }
        (0..20).for_each(|_| gathering.learn(false));
        assert_eq!(gathering.hasty, MOST_HASTE);
        gathering.learn(true);
        assert_eq!(gathering.expected(), Some(CROWD));
    }
}
