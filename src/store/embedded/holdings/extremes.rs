//! MIN and MAX: each slot's own extreme, and of them the best.
//!
//! Memory keeps every slot's extreme, and looks through them where the best one goes: 2,000 numbers side by side take
//! a microsecond, which is less than the ranking takes.

use super::{Holdings, OutOfRange};

impl Holdings {
    /// Takes a measurement; answers the slot's extreme if it changed that. O(log n).
    pub(in super::super) fn extend(
        &mut self,
        subject: &str,
        slot: i64,
        amount: i64,
    ) -> Result<Option<i64>, OutOfRange> {
        let held = self.record(subject).and_then(|(_, record)| record.amount(slot));
        self.set_extreme(subject, slot, held.map_or(amount, |held| self.rule.kind.better(held, amount)))
    }

    /// Sets a slot's extreme, which may make it worse; answers it if that changed it. O(log n + slots).
    pub(in super::super) fn set_extreme(
        &mut self,
        subject: &str,
        slot: i64,
        extreme: i64,
    ) -> Result<Option<i64>, OutOfRange> {
        // No memory holds the four billion subjects at which ids run out.
        let id = self.slab.intern(subject).ok_or(OutOfRange)?;
        let old = self.put(id, slot, extreme);
        if old == Some(extreme) {
            return Ok(None);
        }
        let key = self.slab.get(id).map_or(self.rule.absent(), |record| record.key);
        let better = self.rule.kind.better(key, extreme) == extreme || key == self.rule.absent();
        if better {
            self.rescore(id, extreme);
        } else if old == Some(key) {
            self.rescore(id, self.computed_key(id));
        }
        self.enqueue(id);
        Ok(Some(extreme))
    }
}
