//! COUNT_DISTINCT: each value counts in the slot in which it was last seen.

use super::{Holdings, OutOfRange};
use crate::store::embedded::hashed_name::HashedName;
use crate::store::embedded::last_seen::{Floors, LastSeen, LastSeenValues};

/// The largest number of expired values (and of expired tombstones) that one write removes, which takes some
/// microseconds.
const MAX_REMOVED_PER_WRITE: usize = 64;

/// The changes that an event or a retraction made.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(in super::super) struct ValueChange {
    /// Whether the value's time changed, or whether the value counts.
    pub changed: bool,
    /// The value that was dropped because there were too many, if any.
    pub dropped: Option<Box<str>>,
    /// The new time of the newest dropped value, if that changed.
    pub capped: Option<i64>,
}

impl Holdings {
    /// Returns what is stored about a subject's values.
    pub(in super::super) fn last_seen(&self, name: HashedName) -> Option<&LastSeenValues> {
        self.subjects.aggregates.last_seen(self.subjects.id(name)?)
    }

    /// Records that a value was seen or retracted at a time within the window. The newest time decides; at the same
    /// time, the retraction does. O(log values + log n).
    pub(in super::super) fn set_last_seen(
        &mut self,
        name: HashedName,
        value: &str,
        new: LastSeen,
        floors: Floors,
    ) -> Result<ValueChange, OutOfRange> {
        let id = self.id_or_add(self.subjects.id(name), name)?;
        self.remove_expired_values(id, floors, MAX_REMOVED_PER_WRITE);
        let mut change = ValueChange::default();
        let Some(values) = self.subjects.aggregates.last_seen_mut(id) else { return Ok(change) };
        let old = values.get(value).filter(|old| old.at >= floors.of(old.retracted));
        let holds = match old {
            None => true,
            Some(old) if new.retracted && !old.retracted => new.at >= old.at,
            Some(old) => new.at > old.at,
        };
        if !holds {
            return Ok(change);
        }
        values.set(value, new);
        change.changed = true;
        let from = old.filter(|old| !old.retracted).map(|old| self.number(old.at));
        let to = (!new.retracted).then(|| self.number(new.at));
        let mut score_change = 0;
        if from != to {
            score_change += from.map_or(0, |slot| self.change_value_count(id, slot, -1));
            score_change += to.map_or(0, |slot| self.change_value_count(id, slot, 1));
        }
        if let Some((dropped, at)) = self.remove_surplus(id, new.retracted, floors.of(new.retracted)) {
            if !new.retracted {
                score_change += self.change_value_count(id, self.number(at), -1);
                change.capped = self.record_dropped(id, at);
            }
            change.dropped = Some(dropped);
        }
        self.add_to_score(id, score_change);
        Ok(change)
    }

    /// Removes up to `most` seen values and up to `most` tombstones from before their floors. Returns how many it
    /// removed.
    pub(in super::super) fn remove_expired_values(&mut self, id: u32, floors: Floors, most: usize) -> usize {
        match self.subjects.aggregates.last_seen_mut(id).filter(|values| values.has_any_before(floors)) {
            Some(values) => values.remove_before(floors, most),
            None => 0,
        }
    }

    /// Removes the oldest value of the window if there are more values than the board remembers. Returns it and its
    /// time.
    fn remove_surplus(&mut self, id: u32, retracted: bool, floor: i64) -> Option<(Box<str>, i64)> {
        let most = self.traits.max_values?;
        let values = self.subjects.aggregates.last_seen_mut(id)?;
        if values.count_from(retracted, floor) <= most {
            return None;
        }
        // Expired values may still be stored: they are removed little by little.
        let oldest = values.from(retracted, floor, "").next().map(|seen| (Box::from(seen.value), seen.at));
        let (value, at): (Box<str>, i64) = oldest?;
        values.remove(&value);
        Some((value, at))
    }

    /// Records that a value of this time was dropped. Returns the time if it is the newest such time.
    fn record_dropped(&mut self, id: u32, at: i64) -> Option<i64> {
        let values = self.subjects.aggregates.last_seen_mut(id)?;
        if values.capped.is_some_and(|capped| capped >= at) {
            return None;
        }
        values.capped = Some(at);
        Some(at)
    }

    /// Adds to the number of values in a slot. Returns the change of the score.
    fn change_value_count(&mut self, id: u32, slot: i64, by: i64) -> i64 {
        let held = self.subjects.amount_in(id, slot).unwrap_or(0);
        if held + by == 0 {
            self.remove_cell(id, slot)
        } else {
            self.set_cell(id, slot, held + by)
        };
        by
    }
}
