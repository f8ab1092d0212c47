//! The walk of a checkpoint: writes all data of a track as operations, in bounded portions between which the board may
//! change.
//!
//! Data that did not change since the walk began is written. Data that changed is written in any state that it had, or
//! not at all: the log contains its final state. Expired cells may be written, and loading drops them.

use super::{CellAt, Holdings, Remainder};
use crate::store::embedded::log_operations::LogOperations;

/// The largest number of records visited in one portion, however few operations they give.
const MAX_RECORDS: usize = 4_096;

/// The position at which a walk continues. A track has one walk at a time: beginning a walk ends the previous one.
#[derive(Debug)]
pub(in super::super) struct Walk {
    epoch: u64,
    id: u32,
    remainder: Remainder,
}

impl Holdings {
    /// Begins a walk.
    pub(in super::super) fn begin_walk(&mut self) -> Walk {
        self.walk_position = Some(0);
        Walk { epoch: self.epoch, id: 0, remainder: Remainder::All }
    }

    /// Appends the next portion: operations of at least `bytes` bytes, if that much is left, and hardly more. Returns
    /// whether there is more. If the holdings were replaced because everything had expired, nothing is left to write.
    pub(in super::super) fn checkpoint_portion(
        &mut self,
        walk: &mut Walk,
        bytes: usize,
        operations: &mut LogOperations,
    ) -> bool {
        if walk.epoch != self.epoch {
            return false;
        }
        let end = operations.len() + bytes;
        for _ in 0..MAX_RECORDS {
            if operations.len() >= end {
                self.walk_position = Some(walk.id);
                return true;
            }
            let Some(id) = self.subjects.next_from(walk.id) else {
                self.end_walk();
                return false;
            };
            let within = std::mem::take(&mut walk.remainder);
            let within = if id == walk.id { within } else { Remainder::All };
            match self.kind.write_subject(self, id, within, end, operations) {
                Some(rest) => (walk.id, walk.remainder) = (id, rest),
                None => walk.id = id + 1,
            }
        }
        self.walk_position = Some(walk.id);
        true
    }

    /// Ends a walk that did not reach its end.
    pub(in super::super) fn end_walk(&mut self) {
        self.walk_position = None;
    }

    /// Returns whether a walk has passed lower ids but not yet this one. Then the subject must not move to a lower id,
    /// because the walk would miss it.
    pub(super) fn is_ahead_of_walk(&self, id: u32) -> bool {
        self.walk_position.is_some_and(|walked| id >= walked)
    }

    /// Writes a subject's cells, or its counter, until the operations reach `end` bytes. Returns what is left.
    pub(super) fn write_cells(
        &self,
        id: u32,
        within: Remainder,
        end: usize,
        operations: &mut LogOperations,
    ) -> Option<Remainder> {
        let subject = self.subjects.whole_text(id);
        if let Some(counter) = self.counter_of(id).filter(|_| self.traits.counter_duration.is_some()) {
            operations.amount(counter.start, counter.amount, subject);
            return None;
        }
        let first = match within {
            Remainder::Slot(slot) => self.subjects.first_cell_from(id, slot),
            _ => 0,
        };
        for (cell, at) in self.subjects.cells_from(id, first).zip(first..) {
            if operations.len() >= end {
                return Some(Remainder::Slot(cell.slot));
            }
            let start = self.subjects.numbering.start(cell.slot);
            self.kind.write_cell(self, id, at, CellAt { subject, start, amount: cell.amount }, operations);
        }
        None
    }
}
