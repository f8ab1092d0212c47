//! APPROX_COUNT_DISTINCT: a sketch for each slot and, on a ranked board, the merge of all of a subject's sketches.

use super::{Holdings, OutOfRange};
use crate::board::Mark;
use crate::store::embedded::names::Name;

impl Holdings {
    /// Marks a slot's sketch. Returns whether that raised a register. O(log n), and O(registers) where the score may
    /// change.
    pub(in super::super) fn mark(&mut self, name: Name, slot: i64, mark: Mark) -> Result<bool, OutOfRange> {
        let slot = self.number(slot);
        let id = self.with_room(self.subjects.id(name), name)?;
        self.put(id, slot, 0);
        let (at, ranked) = (self.subjects.find(id, slot), self.rule.ranked);
        let (Ok(at), Some(sketches)) = (at, self.subjects.extras.sketches_mut(id)) else { return Ok(false) };
        let raised = sketches.mark(at, mark);
        if raised && ranked && sketches.merged.mark(mark) {
            let key = sketches.merged.estimate();
            self.rescore(id, key);
        }
        Ok(raised)
    }

    /// Merges all slices' sketches again. Returns the key. O(slices / 32 + 32) merges of O(registers).
    pub(super) fn merged_key(&mut self, id: u32) -> i64 {
        match self.subjects.extras.sketches_mut(id) {
            Some(sketches) => {
                sketches.merge_all();
                sketches.merged.estimate()
            }
            None => self.rule.absent(),
        }
    }
}
