//! MIN and MAX: the extreme of each slot, and the best of them.
//!
//! Memory keeps every slot's extreme. When the best one is removed, all of them are scanned: 2,000 adjacent numbers
//! take a microsecond, which is less than the update of the ranking takes.

use super::{Holdings, OutOfRange};
use crate::store::embedded::names::Name;

impl Holdings {
    /// Applies a measurement. Returns the slot's extreme if that changed it. O(log n).
    pub(in super::super) fn extend(&mut self, name: Name, slot: i64, amount: i64) -> Result<Option<i64>, OutOfRange> {
        let slot = self.number(slot);
        let known = self.subjects.id(name);
        let held = known.and_then(|id| self.subjects.amount(id, slot));
        let extreme = held.map_or(amount, |held| self.rule.kind.better(held, amount));
        self.change_extreme(known, name, slot, extreme)
    }

    /// Sets a slot's extreme, which may make it worse. Returns it if that changed it. O(log n + slots).
    pub(in super::super) fn set_extreme(
        &mut self,
        name: Name,
        slot: i64,
        extreme: i64,
    ) -> Result<Option<i64>, OutOfRange> {
        self.change_extreme(self.subjects.id(name), name, self.number(slot), extreme)
    }

    fn change_extreme(
        &mut self,
        known: Option<u32>,
        name: Name,
        slot: i64,
        extreme: i64,
    ) -> Result<Option<i64>, OutOfRange> {
        let id = self.with_room(known, name)?;
        let old = self.put(id, slot, extreme);
        if old == Some(extreme) {
            return Ok(None);
        }
        let key = self.subjects.get(id).map_or(self.rule.absent(), |record| record.key);
        let better = self.rule.kind.better(key, extreme) == extreme || key == self.rule.absent();
        if better {
            self.rescore(id, extreme);
        } else if old == Some(key) {
            self.rescore(id, self.computed_key(id));
        }
        Ok(Some(extreme))
    }
}
