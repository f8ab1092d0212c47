//! The thread that looks after callers who wait for too long, and after memory that has expired. It touches no file, so
//! no disk can hold it up.

use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};

use parking_lot::MutexGuard;

use super::super::boards::{Boards, LiveBoard};
use super::journal::Journal;

/// How often the thread looks.
const TICK: Duration = Duration::from_millis(50);
/// The part of the time that is spent on freeing, at most: one in so many.
const SHARE: u32 = 8;
/// Work done under one lock, in subjects' worth.
const PORTION: u64 = 1_000;

/// The thread's state.
#[derive(Debug)]
pub(super) struct Keeper {
    pub journal: Arc<Journal>,
    pub boards: Arc<Boards>,
    /// Ends the thread.
    pub stop: mpsc::Receiver<()>,
}

impl Keeper {
    /// Runs until the store is closed.
    pub(super) fn run(self) {
        let mut first = 0;
        while matches!(self.stop.recv_timeout(TICK), Err(mpsc::RecvTimeoutError::Timeout)) {
            self.journal.give_up_waiting();
            let started = Instant::now();
            let boards: Vec<_> = self.boards.read().values().cloned().collect();
            // Each time another board is the first, so that none takes all of the time.
            first = (first + 1) % boards.len().max(1);
            for live in boards[first..].iter().chain(&boards[..first]) {
                while started.elapsed() < TICK / SHARE && visit(live) {}
            }
        }
    }
}

/// Frees some of what has expired. Returns whether there is more to visit.
fn visit(live: &LiveBoard) -> bool {
    let mut tables = live.tables.lock();
    let more = !tables.gone && tables.is_visit_due() && tables.visit(PORTION).more;
    let garbage = tables.holdings.take_garbage();
    // Those who wait for the lock get it before the next portion.
    MutexGuard::unlock_fair(tables);
    drop(garbage);
    more
}
