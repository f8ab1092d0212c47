//! MIN and MAX: the extreme of each slot, and the best of them.
//!
//! Memory keeps every slot's extreme. When the best one is removed, all of them are scanned: 2,000 adjacent numbers
//! take a microsecond, which is less than the update of the ranking takes.

use super::{Holdings, OutOfRange};
use crate::store::embedded::hashed_name::HashedName;

impl Holdings {
    /// Applies a measurement. Returns the slot's extreme if that changed it. O(log n).
    pub(in super::super) fn apply_measurement(
        &mut self,
        name: HashedName,
        slot: i64,
        amount: i64,
    ) -> Result<Option<i64>, OutOfRange> {
        let slot = self.number(slot);
        let known = self.subjects.id(name);
        let held = known.and_then(|id| self.subjects.amount_in(id, slot));
        let extreme = held.map_or(amount, |held| self.traits.kind.better(held, amount));
        self.change_extreme(known, name, slot, extreme)
    }

    /// Sets a slot's extreme, which may make it worse. Returns it if that changed it. O(log n + slots).
    pub(in super::super) fn set_extreme(
        &mut self,
        name: HashedName,
        slot: i64,
        extreme: i64,
    ) -> Result<Option<i64>, OutOfRange> {
        self.change_extreme(self.subjects.id(name), name, self.number(slot), extreme)
    }

    fn change_extreme(
        &mut self,
        known: Option<u32>,
        name: HashedName,
        slot: i64,
        extreme: i64,
    ) -> Result<Option<i64>, OutOfRange> {
        let id = self.id_or_add(known, name)?;
        let old = self.set_cell(id, slot, extreme);
        if old == Some(extreme) {
            return Ok(None);
        }
        let key = self.subjects.get(id).map_or(self.traits.absent_key(), |record| record.key);
        let better = self.traits.kind.better(key, extreme) == extreme || key == self.traits.absent_key();
        if better {
            self.set_key(id, extreme);
        } else if old == Some(key) {
            self.set_key(id, self.computed_key(id));
        }
        Ok(Some(extreme))
    }
}
