//! The choice of the board that is checkpointed next, and whether a manifest is due without a checkpoint.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::super::boards::LiveBoard;
use super::checkpointer::{Checkpointer, expired_through};

/// The interval at which a manifest records how far the log was confirmed, while it grows. If the end of the log is
/// lost, this record makes the loss detectable.
const RECORD_CONFIRMED_EVERY: Duration = Duration::from_secs(30);
/// The log of a store must be at least this many times [`Pace::log_bytes`] before boards are checkpointed to shorten
/// it.
const LOG_SHARE: u64 = 4;
/// The largest number of segments before boards are checkpointed to reduce it. Each start of the store begins a
/// segment.
const MAX_SEGMENTS: usize = 64;
/// The number of times [`Pace::age`] by which the checkpoint of a large board may be delayed.
const LARGE_BOARD_DELAY: u32 = 24;

impl Checkpointer {
    /// Returns the board to checkpoint next, if any.
    pub(super) fn next_due(&mut self) -> Option<Arc<LiveBoard>> {
        let boards: Vec<_> = self.boards.read().values().cloned().collect();
        let logged = || boards.iter().filter(|live| live.logged.first().is_some());
        // First, the board whose log has grown most in relation to its checkpoint.
        let ratio = |live: &Arc<LiveBoard>| {
            let most = self.checkpoint_bytes(live).max(self.pace.log_bytes).max(1);
            (live.logged.bytes() as f64 / most as f64, live.clone())
        };
        let (most, live) = logged().map(ratio).max_by(|a, b| a.0.total_cmp(&b.0))?;
        if most > 1.0 {
            return Some(live);
        }
        // Then, if the log as a whole is large, the board that prevents the deletion of the most segments.
        let state: u64 = boards.iter().map(|live| self.checkpoint_bytes(live)).sum();
        let segments = self.progress.segments();
        let oldest = logged().min_by_key(|live| live.logged.first())?;
        let holds_up = segments.get(1).is_some_and(|second| oldest.logged.first().is_some_and(|at| at < second.first));
        let is_large = self.log_bytes() > state.max(LOG_SHARE * self.pace.log_bytes) || segments.len() > MAX_SEGMENTS;
        if holds_up && (is_large || self.space.is_getting_short(self.needed_bytes())) {
            return Some(oldest.clone());
        }
        self.next_by_age(&boards)
    }

    /// Returns a board whose part of the log is old.
    fn next_by_age(&mut self, boards: &[Arc<LiveBoard>]) -> Option<Arc<LiveBoard>> {
        let mut ages = BTreeMap::new();
        let mut found = None;
        for live in boards {
            let (Some(first), generation) = (live.logged.first(), live.generation()) else { continue };
            let seen = self.ages.get(&generation).filter(|(of, _)| *of == first).copied();
            let (_, since) = *ages.entry(generation).or_insert(seen.unwrap_or((first, Instant::now())));
            // A large board is not written again for a few records.
            let delay = if self.checkpoint_bytes(live) > self.pace.log_bytes { LARGE_BOARD_DELAY } else { 1 };
            if since.elapsed() >= self.pace.age.saturating_mul(delay) {
                found = Some(live.clone());
            }
        }
        self.ages = ages;
        found
    }

    /// Returns whether the log was confirmed further than the manifest records, and the manifest is old.
    pub(super) fn is_manifest_old(&self) -> bool {
        self.installed.elapsed() >= RECORD_CONFIRMED_EVERY
            && self.progress.confirmed() > self.manifest.log_start.synced_seq
    }

    /// Returns whether a file contains only ids whose horizon has passed.
    pub(super) fn has_expired_ids(&self) -> bool {
        let boards = self.boards.read();
        boards.values().any(|live| {
            let Some(entry) = self.entry(live.generation()) else { return false };
            let expired = |horizon: i64| entry.ids.iter().any(|bucket| bucket.newest <= horizon);
            !entry.ids.is_empty() && expired(expired_through(live))
        })
    }
}
