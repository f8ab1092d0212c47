//! The turns of large commands on one server.
//!
//! A server does one command after the other, so a small command waits for every large one that was sent before it. So
//! one large command is under way at a time, whatever it is for, and it is sent when no small command is under way.
//! Under constant load it is sent anyway after [`PATIENCE`].
//!
//! To a distant server several are under way, because most of the time each of them is on the network and not with the
//! server.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use tokio::sync::{Notify, Semaphore, SemaphorePermit};
use tokio::time::timeout;

/// The longest time for which a large command waits for small ones. It is about as long as a large command takes.
const PATIENCE: Duration = Duration::from_millis(5);

/// The number of permits. A large command takes all of them, or fewer if the server is distant.
const PERMITS: u32 = 8;

/// The turns on one server.
#[derive(Debug)]
pub(super) struct Turns {
    /// The number of small commands, or pipelines of them, that are under way.
    small: AtomicUsize,
    /// Notified when no small command is under way.
    quiet: Notify,
    large: Semaphore,
    /// The shortest round trip so far, in microseconds, or `u64::MAX`.
    round_trip: AtomicU64,
    patience: Duration,
}

/// A small command that is under way, until this is dropped.
#[derive(Debug)]
pub(super) struct Small<'a>(&'a Turns);

impl Default for Turns {
    fn default() -> Self {
        Self::new(PATIENCE)
    }
}

impl Turns {
    fn new(patience: Duration) -> Self {
        Self {
            small: AtomicUsize::new(0),
            quiet: Notify::new(),
            large: Semaphore::new(PERMITS as usize),
            round_trip: AtomicU64::new(u64::MAX),
            patience,
        }
    }

    /// Begins a small command, which waits for nothing.
    pub fn small(&self) -> Small<'_> {
        self.small.fetch_add(1, Ordering::AcqRel);
        Small(self)
    }

    /// Waits for the turn of a large command. The turn lasts until the permit is dropped.
    pub async fn large(&self) -> Option<SemaphorePermit<'_>> {
        // The semaphore is never closed.
        let permit = self.large.acquire_many(self.permits()).await.ok();
        // The time may pass: then the command is sent although small ones are under way.
        drop(timeout(self.patience, self.quiet()).await);
        permit
    }

    /// Records how long an exchange of a small command took.
    pub fn learn_round_trip(&self, took: Duration) {
        let micros = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
        self.round_trip.fetch_min(micros, Ordering::Relaxed);
    }

    /// Returns the shortest round trip so far, if one is known.
    pub fn round_trip(&self) -> Option<Duration> {
        match self.round_trip.load(Ordering::Relaxed) {
            u64::MAX => None,
            micros => Some(Duration::from_micros(micros)),
        }
    }

    /// Returns whether every round trip so far was that of a distant server.
    pub fn is_distant(&self) -> bool {
        self.permits() < PERMITS
    }

    /// Returns the number of large commands that can be under way at the same time.
    pub fn at_once(&self) -> usize {
        (PERMITS / self.permits()) as usize
    }

    /// Returns the number of permits of a large command: fewer the longer the round trip is, compared with the 2 to 5
    /// ms for which a large command keeps the server busy.
    fn permits(&self) -> u32 {
        match self.round_trip().unwrap_or_default().as_micros() {
            0..2_000 => PERMITS,
            2_000..4_000 => PERMITS / 2,
            4_000..8_000 => PERMITS / 4,
            _ => PERMITS / 8,
        }
    }

    /// Waits until no small command is under way.
    async fn quiet(&self) {
        loop {
            let quiet = self.quiet.notified();
            if self.small.load(Ordering::Acquire) == 0 {
                return;
            }
            quiet.await;
        }
    }
}

impl Drop for Small<'_> {
    fn drop(&mut self) {
        if self.0.small.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.0.quiet.notify_waiters();
        }
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;

    use super::*;

    #[test]
    fn one_slow_exchange_makes_no_distant_server() {
        let turns = Turns::default();
        assert!(!turns.is_distant(), "nothing is known");
        turns.learn_round_trip(Duration::from_millis(30));
        assert!(turns.is_distant() && turns.at_once() > 1);
        turns.learn_round_trip(Duration::from_millis(1));
        turns.learn_round_trip(Duration::from_millis(30));
        assert!(!turns.is_distant() && turns.at_once() == 1);
    }

    #[tokio::test]
    async fn a_large_command_waits_for_all_commands_in_flight() {
        let turns = Turns::new(Duration::from_secs(60));
        let (first, second) = (turns.small(), turns.small());
        let mut large = Box::pin(turns.large());
        assert!(large.as_mut().now_or_never().is_none());
        drop(first);
        assert!(large.as_mut().now_or_never().is_none());
        drop(second);
        let large = large.await;
        let mut next = Box::pin(turns.large());
        assert!(next.as_mut().now_or_never().is_none());
        let _small = turns.small();
        drop(large);
        assert!(next.as_mut().now_or_never().is_none(), "a small command came first");
    }

    #[tokio::test]
    async fn more_large_commands_are_in_flight_at_higher_latency() {
        for (millis, most) in [(1, 1), (3, 2), (5, 4), (50, 8)] {
            let turns = Turns::default();
            turns.learn_round_trip(Duration::from_millis(60));
            turns.learn_round_trip(Duration::from_millis(millis));
            turns.learn_round_trip(Duration::from_millis(60));
            let mut under_way = Vec::new();
            while let Some(turn) = turns.large().now_or_never() {
                under_way.push(turn);
            }
            assert_eq!(under_way.len(), most, "{millis} ms");
        }
    }

    #[tokio::test]
    async fn all_permitted_large_commands_wake_when_small_ones_finish() {
        let turns = Turns::new(Duration::from_secs(60));
        turns.learn_round_trip(Duration::from_millis(50));
        let small = turns.small();
        let (mut first, mut second) = (Box::pin(turns.large()), Box::pin(turns.large()));
        assert!(first.as_mut().now_or_never().is_none() && second.as_mut().now_or_never().is_none());
        drop(small);
        assert!(first.now_or_never().is_some() && second.now_or_never().is_some());
    }

    #[tokio::test]
    async fn a_large_command_is_sent_despite_constant_load() {
        let turns = Turns::default();
        let _small = turns.small();
        let begun = tokio::time::Instant::now();
        let _large = turns.large().await;
        assert!(begun.elapsed() >= PATIENCE);
    }
}
