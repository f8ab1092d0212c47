//! The ranks that a track had at the newest boundary, on a board whose lines show them: see
//! [`EarlierRanks`](crate::board::EarlierRanks).
//!
//! They are noted by the first call after the boundary, before it moves the head or writes. The log has them as a whole
//! each time they change, before everything that is written after them. So a start restores them, and does not have to
//! repeat in which order calls came.

use std::sync::Arc;

use super::codec::{Damaged, Reader};
use super::log_operations::LogOperations;
use crate::board::{EarlierRank, EarlierRanks, Subject, Timestamp, Track};

/// The noted ranks of one track.
#[derive(Debug)]
pub(super) struct NotedRanks {
    ranks: Option<Arc<EarlierRanks>>,
    /// The time from which ranks are to be noted again.
    next: Timestamp,
    /// Whether the log does not have them yet.
    is_unlogged: bool,
    /// Whether they are those of a new track, which restored ones replace.
    is_new: bool,
}

impl NotedRanks {
    /// Returns those of a new track. It did not exist at the boundary before, so the ranks then are not known.
    pub(super) fn of_new(track: &Track, now: Timestamp) -> Self {
        match track.boundaries_at(now) {
            Some((at, next)) => {
                Self { ranks: Some(Arc::new(EarlierRanks::unknown(at))), next, is_unlogged: true, is_new: true }
            }
            None => Self::none(),
        }
    }

    /// Returns that a track notes none.
    pub(super) fn none() -> Self {
        Self { ranks: None, next: Timestamp::MAX, is_unlogged: false, is_new: false }
    }

    /// Returns whether a boundary may have passed.
    pub(super) fn is_due(&self, now: Timestamp) -> bool {
        now >= self.next
    }

    /// Notes the ranks at the newest boundary before `now`, unless they are noted. `ranks` returns them.
    pub(super) fn note(&mut self, track: &Track, now: Timestamp, ranks: impl FnOnce(Timestamp) -> EarlierRanks) {
        let Some((at, next)) = track.boundaries_at(now) else { return };
        self.next = next;
        if self.ranks.as_ref().is_none_or(|known| known.at() < at) {
            *self = Self { ranks: Some(Arc::new(ranks(at))), next, is_unlogged: true, is_new: false };
        }
    }

    pub(super) fn ranks(&self) -> Option<&Arc<EarlierRanks>> {
        self.ranks.as_ref()
    }

    /// Returns the bytes that they use.
    pub(super) fn memory_bytes(&self) -> usize {
        self.ranks.as_ref().map_or(0, |ranks| ranks.memory_bytes())
    }

    /// Takes out the name of a subject that is removed. Returns whether they had it.
    pub(super) fn remove(&mut self, subject: &str) -> bool {
        let rest = self.ranks.as_ref().and_then(|ranks| ranks.without(subject));
        let Some(rest) = rest else { return false };
        self.ranks = Some(Arc::new(rest));
        true
    }

    /// Restores what the log or a checkpoint has. Returns a description of what is not valid.
    pub(super) fn restore(&mut self, at: i64, lines: Option<&[u8]>) -> Result<(), &'static str> {
        let at = Timestamp::from_millis(at);
        let Some(known) = &self.ranks else { return Ok(()) };
        if self.is_new || at >= known.at() {
            let ranks = match lines {
                Some(lines) => EarlierRanks::new(at, read(lines).map_err(|Damaged| "earlier ranks are not valid")?),
                None => EarlierRanks::unknown(at),
            };
            // The next call looks whether there was another boundary since.
            *self = Self { ranks: Some(Arc::new(ranks)), next: Timestamp::EPOCH, is_unlogged: false, is_new: false };
        }
        Ok(())
    }

    /// Appends them to the operations of their track, for the log or a checkpoint.
    pub(super) fn write(&self, operations: &mut LogOperations) {
        if let Some(ranks) = &self.ranks {
            operations.earlier_ranks(ranks);
        }
    }

    /// Appends them to the log if it does not have them.
    pub(super) fn log_changes(&mut self, operations: &mut LogOperations) {
        if std::mem::take(&mut self.is_unlogged) {
            self.write(operations);
        }
    }

    pub(super) fn is_unlogged(&self) -> bool {
        self.is_unlogged
    }
}

fn read(lines: &[u8]) -> Result<Vec<EarlierRank>, Damaged> {
    let (mut reader, mut ranks) = (Reader(lines), Vec::new());
    while !reader.0.is_empty() {
        let rank = reader.unsigned()?;
        let text = reader.text()?;
        ranks.push(EarlierRank { rank, subject: (!text.is_empty()).then(|| Subject::from_stored(text)) });
    }
    Ok(ranks)
}
