//! The walk of a checkpoint: writes all data of a board as operations, in bounded portions between which the board may
//! change.
//!
//! Data that did not change since the walk began is written. Data that changed is written in any state that it had, or
//! not at all: the log contains its final state. Expired cells may be written, and loading drops them.

use super::Holdings;
use crate::board::Kind;
use crate::store::embedded::last_seen::LastSeen;
use crate::store::embedded::log_operations::LogOperations;
use crate::store::embedded::ranking::TextSource;

/// The largest number of records visited in one portion, however few operations they give.
const MAX_RECORDS: usize = 4_096;

/// The position at which a walk continues. A board has one walk at a time: beginning a walk ends the previous one.
#[derive(Debug)]
pub(in super::super) struct Walk {
    epoch: u64,
    id: u32,
    remainder: Remainder,
}

/// The data that is left to write for the subject at which a portion ended.
#[derive(Debug, Default)]
enum Remainder {
    /// All data.
    #[default]
    All,
    /// The cells from the slot of this number on.
    Slot(i64),
    /// The values from this time and value on: first the seen ones, then the retracted ones.
    Value { retracted: bool, at: i64, value: Box<str> },
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
            match self.write_subject(id, within, end, operations) {
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

    /// Writes a subject's data until the operations reach `end` bytes. Returns what is left.
    fn write_subject(
        &self,
        id: u32,
        within: Remainder,
        end: usize,
        operations: &mut LogOperations,
    ) -> Option<Remainder> {
        let subject = self.subjects.text(id);
        if self.traits.kind == Kind::Distinct {
            return self.write_values(id, subject, within, end, operations);
        }
        if let Some(counter) = self.counter_of(id).filter(|_| self.traits.counter_duration.is_some()) {
            operations.amount(counter.start, counter.amount, subject);
            return None;
        }
        let first = match within {
            Remainder::Slot(slot) => self.subjects.first_cell_from(id, slot),
            _ => 0,
        };
        let (aggregates, len) = (&self.subjects.aggregates, self.subjects.cell_count(id));
        for (cell, at) in self.subjects.cells_from(id, first).zip(first..) {
            if operations.len() >= end {
                return Some(Remainder::Slot(cell.slot));
            }
            let start = self.subjects.numbering.start(cell.slot);
            match self.traits.kind {
                Kind::Mean => {
                    let count = aggregates.means().map_or(0, |means| means.count(id, at, len));
                    operations.samples(start, (cell.amount, count), subject);
                }
                Kind::Sketch => {
                    if let Some(sketch) = aggregates.sketches(id).and_then(|sketches| sketches.by_cell().get(at)) {
                        operations.sketch(start, sketch.as_bytes(), subject);
                    }
                }
                Kind::Sum | Kind::Min | Kind::Max | Kind::Distinct => operations.amount(start, cell.amount, subject),
            }
        }
        None
    }

    fn write_values(
        &self,
        id: u32,
        subject: &str,
        within: Remainder,
        end: usize,
        operations: &mut LogOperations,
    ) -> Option<Remainder> {
        let values = self.subjects.aggregates.last_seen(id)?;
        let (first, after) = match within {
            Remainder::Value { retracted, at, value } => (retracted, Some((at, value))),
            _ => {
                if let Some(at) = values.capped {
                    operations.capped(at, subject);
                }
                (false, None)
            }
        };
        for retracted in [false, true] {
            if first && !retracted {
                continue;
            }
            let after = after.as_ref().filter(|_| first == retracted);
            let (at, value) = after.map_or((i64::MIN, ""), |(at, value)| (*at, value));
            for seen in values.from(retracted, at, value) {
                if operations.len() >= end {
                    return Some(Remainder::Value { retracted, at: seen.at, value: Box::from(seen.value) });
                }
                operations.value(Some(LastSeen { at: seen.at, retracted }), subject, seen.value);
            }
        }
        None
    }
}
