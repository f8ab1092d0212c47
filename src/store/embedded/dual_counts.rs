//! What is counted about the two editions of a board: what only one of them counted, and since when both have received
//! everything.

use super::edition_counts::{EditionCounts, Missed};
use super::log_operations::LogOperations;
use crate::board::{Board, NotCounted, Timestamp, TrackId};
use crate::store::{DualRun, MAX_EDITIONS};

/// What is counted about the two editions of a board. It begins with the second edition and ends with either of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct DualCounts {
    /// The editions, in the order of the board.
    editions: [TrackId; MAX_EDITIONS],
    counts: EditionCounts,
    /// Whether the log does not have the counts yet.
    changed: bool,
}

impl DualCounts {
    /// Returns the counts of a board whose second edition begins now, or `None` if it has one edition.
    pub(super) fn of(board: &Board, now: Timestamp) -> Option<Self> {
        let counts = EditionCounts { since: now.millis(), filled: None, missed: Default::default() };
        Some(Self { editions: editions(board)?, counts, changed: true })
    }

    /// Returns the same counts for a board that has the same editions, perhaps in the other order.
    pub(super) fn of_same_editions(mut self, board: &Board) -> Option<Self> {
        let editions = editions(board)?;
        let [first, second] = editions;
        if self.editions == [second, first] {
            self.counts.missed.reverse();
            self.changed = true;
        } else if self.editions != editions {
            return None;
        }
        Some(Self { editions, ..self })
    }

    /// Counts items that only the other edition counted. `edition` is the number of the one that did not.
    pub(super) fn count(&mut self, edition: usize, reason: NotCounted, items: u64) {
        let place = NotCounted::COUNTED.iter().position(|counted| *counted == reason);
        if let Some(count) = place.and_then(|place| self.counts.missed.get_mut(edition)?.get_mut(place)) {
            *count = count.saturating_add(items);
            self.changed |= items > 0;
        }
    }

    /// Records that there was an item whose effect on one of the editions is not known.
    pub(super) fn was_blind(&mut self, now: Timestamp) {
        self.changed |= self.counts.since != now.millis();
        self.counts.since = now.millis();
    }

    /// Records that a fill was done.
    pub(super) fn was_filled(&mut self, now: Timestamp) {
        self.counts.filled = Some(now.millis());
        self.changed = true;
    }

    /// Appends the counts to a portion of the log, if they have changed since the last call.
    pub(super) fn log_changes(&mut self, operations: &mut LogOperations) {
        if std::mem::take(&mut self.changed) {
            self.write(operations);
        }
    }

    /// Appends the counts to a checkpoint.
    pub(super) fn write(&self, operations: &mut LogOperations) {
        operations.edition_counts(self.editions, &self.counts);
    }

    /// Restores the counts of these editions. A log may also contain those of other ones, which the board had before.
    pub(super) fn restore(&mut self, editions: [TrackId; MAX_EDITIONS], mut counts: EditionCounts) {
        let [first, second] = editions;
        if self.editions == [second, first] {
            counts.missed.reverse();
        } else if self.editions != editions {
            return;
        }
        (self.counts, self.changed) = (counts, false);
    }

    /// Returns what callers see.
    pub(super) fn dual_run(&self) -> DualRun {
        let reasons = |missed: Missed| {
            let counts = NotCounted::COUNTED.into_iter().zip(missed);
            counts.filter(|(_, items)| *items > 0).collect()
        };
        DualRun {
            since: Timestamp::from_millis(self.counts.since),
            not_counted: self.counts.missed.map(reasons),
            filled: self.counts.filled.map(Timestamp::from_millis),
            is_exact: Some(true),
            server_runs: 0,
        }
    }
}

/// Returns the identities of the editions of a board that has two.
fn editions(board: &Board) -> Option<[TrackId; MAX_EDITIONS]> {
    match board.editions() {
        [current, other] => Some([current.id(), other.id()]),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
