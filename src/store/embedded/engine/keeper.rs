//! The thread that ends waits which take too long, frees expired memory and watches how much is left. It accesses no
//! file of a disk, so no slow disk can delay it.

use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};

use parking_lot::MutexGuard;

use super::super::boards::{Boards, LiveBoard};
use super::super::memory::{Level, Memory};
use super::super::metrics::MemoryMetrics;
use super::journal::Journal;

/// The interval at which the thread runs.
const TICK: Duration = Duration::from_millis(50);
/// The largest share of time spent on freeing: one part in this many.
const SHARE: u32 = 8;
/// The work done under one lock, in subjects.
const PORTION: u64 = 1_000;

/// The state of the thread.
#[derive(Debug)]
pub(super) struct Keeper {
    pub journal: Arc<Journal>,
    pub boards: Arc<Boards>,
    pub memory: Arc<Memory>,
    /// The channel that ends the thread.
    pub stop: mpsc::Receiver<()>,
}

impl Keeper {
    /// Runs until the store is closed.
    pub(super) fn run(self) {
        let (mut first, mut logged, metrics) = (0, Level::Free, MemoryMetrics::new());
        self.memory.watch(&mut logged, &metrics);
        while matches!(self.stop.recv_timeout(TICK), Err(mpsc::RecvTimeoutError::Timeout)) {
            self.journal.report_overdue_as_unknown();
            self.memory.watch(&mut logged, &metrics);
            let started = Instant::now();
            let boards: Vec<_> = self.boards.read().values().cloned().collect();
            // Each run starts with a different board, so that no board takes all of the time.
            first = (first + 1) % boards.len().max(1);
            for live in boards[first..].iter().chain(&boards[..first]) {
                while started.elapsed() < TICK / SHARE && free_portion(live) {}
            }
        }
    }
}

/// Frees a part of the expired memory. Returns whether there is more.
fn free_portion(live: &LiveBoard) -> bool {
    let mut state = live.state.lock();
    let mut more = false;
    if !state.removed {
        for data in &mut state.tracks {
            more |= data.is_visit_due() && data.visit_portion(PORTION).more;
        }
    }
    let garbage = state.take_garbage();
    live.count_memory(&state);
    // Threads that wait for the lock get it before the next portion.
    MutexGuard::unlock_fair(state);
    drop(garbage);
    more
}
