//! MIN and MAX: each slot's own extreme, and of them the best.
//!
//! Memory keeps every slot's extreme, and looks through them where the best one goes: 2,000 numbers side by side take
//! a microsecond, which is less than the ranking takes.

use super::{Holdings, OutOfRange};
use crate::store::embedded::names::Name;

impl Holdings {
    /// Takes a measurement; answers the slot's extreme if it changed that. O(log n).
    pub(in super::super) fn extend(&mut self, name: Name, slot: i64, amount: i64) -> Result<Option<i64>, OutOfRange> {
        let slot = self.number(slot);
        let known = self.subjects.id(name);
        let held = known.and_then(|id| self.subjects.amount(id, slot));
        let extreme = held.map_or(amount, |held| self.rule.kind.better(held, amount));
        self.change_extreme(known, name, slot, extreme)
    }

    /// Sets a slot's extreme, which may make it worse; answers it if that changed it. O(log n + slots).
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
