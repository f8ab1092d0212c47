//! What a change takes beyond the memory that its subject has. A change that turns out to change nothing may be said to
//! take more than it does.

use super::{Demand, Holdings, WriteTo};
use crate::board::Change;

impl Holdings {
    /// Returns what a change takes. O(log slots).
    pub(in super::super) fn demand(&self, to: &WriteTo<'_>, change: &Change) -> Demand {
        let Some((id, record)) = self.record(to.name) else { return Demand::Subject };
        if self.traits.counter_duration.is_some() {
            return Demand::Nothing;
        }
        let demand = self.kind.demand(self, id, to, change);
        // The change may add a subject to the ranking that had no score.
        let is_unranked = self.traits.ranked && record.sort_key == self.traits.absent_sort_key();
        if is_unranked { demand.max(Demand::More) } else { demand }
    }

    /// Returns what a change of a subject's number in a slot takes.
    pub(in super::super) fn demand_in_slot(&self, id: u32, slot: i64) -> Demand {
        match self.subjects.find_cell(id, self.number(slot)) {
            Ok(_) => Demand::Nothing,
            Err(_) => Demand::More,
        }
    }
}
