//! APPROX_COUNT_DISTINCT: a sketch for each slot and, on a ranked board, the merge of all of a subject's sketches.

use super::{Holdings, OutOfRange};
use crate::board::Mark;
use crate::store::embedded::hashed_name::HashedName;

impl Holdings {
    /// Marks a slot's sketch. Returns whether that raised a register. O(log n), and O(registers) where the score may
    /// change.
    pub(in super::super) fn mark_sketch(
        &mut self,
        name: HashedName,
        slot: i64,
        mark: Mark,
    ) -> Result<bool, OutOfRange> {
        let slot = self.number(slot);
        let id = self.id_or_add(self.subjects.id(name), name)?;
        self.set_cell(id, slot, 0);
        let (at, ranked) = (self.subjects.find_cell(id, slot), self.traits.ranked);
        let (Ok(at), Some(sketches)) = (at, self.subjects.aggregates.sketches_mut(id)) else { return Ok(false) };
        let raised = sketches.mark(at, mark);
        if raised && ranked && sketches.merged.mark(mark) {
            let key = sketches.merged.estimate();
            self.set_key(id, key);
        }
        Ok(raised)
    }

    /// Merges all cells' sketches again. Returns the key. O(cells / 32 + 32) merges of O(registers).
    pub(super) fn merged_key(&mut self, id: u32) -> i64 {
        match self.subjects.aggregates.sketches_mut(id) {
            Some(sketches) => {
                sketches.recompute_merged();
                sketches.merged.estimate()
            }
            None => self.traits.absent_key(),
        }
    }
}
