//! APPROX_COUNT_DISTINCT: a sketch for each slot, and of a ranked board's subjects the one of all.

use super::{Holdings, OutOfRange};
use crate::board::Mark;
use crate::store::embedded::extra::Extra;

impl Holdings {
    /// Marks a slot's sketch; answers whether that raised it. O(log n), and O(registers) where the score may change.
    pub(in super::super) fn mark(&mut self, subject: &str, slot: i64, mark: Mark) -> Result<bool, OutOfRange> {
        // No memory holds the four billion subjects at which ids run out.
        let id = self.slab.intern(subject).ok_or(OutOfRange)?;
        self.put(id, slot, 0);
        let ranked = self.rule.ranked;
        let Some((record, Some(Extra::Sketches(sketches)))) = self.slab.both_mut(id) else { return Ok(false) };
        let Ok(at) = record.find(slot) else { return Ok(false) };
        let raised = sketches.by_slice[at].mark(mark);
        if raised && ranked && sketches.merged.mark(mark) {
            let key = sketches.merged.estimate();
            self.rescore(id, key);
        }
        if raised {
            self.enqueue(id);
        }
        Ok(raised)
    }

    /// Merges all slices' sketches anew; answers the key. O(slices x registers).
    pub(super) fn merged_key(&mut self, id: u32) -> i64 {
        match self.slab.both_mut(id) {
            Some((record, Some(extra))) => {
                extra.settle(&record.slices);
                match extra {
                    Extra::Sketches(sketches) => sketches.merged.estimate(),
                    _ => self.rule.absent(),
                }
            }
            _ => self.rule.absent(),
        }
    }
}
