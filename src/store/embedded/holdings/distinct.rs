//! COUNT_DISTINCT: each value counts in the slot in which it was last seen.

use super::{Holdings, OutOfRange};
use crate::store::embedded::names::Name;
use crate::store::embedded::sightings::{Sighting, Sightings};

/// The largest number of expired values (and of expired tombstones) that one write removes, which takes some
/// microseconds.
const FORGOTTEN_PER_WRITE: usize = 64;

/// The changes that an event or a retraction made.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(in super::super) struct Seeing {
    /// Whether the value's time changed, or whether the value counts.
    pub changed: bool,
    /// The value that was dropped because there were too many, if any.
    pub dropped: Option<Box<str>>,
    /// The new time of the newest dropped value, if that changed.
    pub capped: Option<i64>,
}

impl Holdings {
    /// Returns what is stored about a subject's values.
    pub(in super::super) fn sightings(&self, name: Name) -> Option<&Sightings> {
        self.subjects.extras.sightings(self.subjects.id(name)?)
    }

    /// Records that a value was seen, or (`gone`) retracted, at a time within the window, which begins at `floor`. The
    /// newest time decides; at the same time, the retraction does. O(log values + log n).
    pub(in super::super) fn sight(
        &mut self,
        name: Name,
        value: &str,
        new: Sighting,
        floor: i64,
    ) -> Result<Seeing, OutOfRange> {
        let id = self.with_room(self.subjects.id(name), name)?;
        self.forget_values(id, floor, FORGOTTEN_PER_WRITE);
        let mut seeing = Seeing::default();
        let Some(sightings) = self.subjects.extras.sightings_mut(id) else { return Ok(seeing) };
        let old = sightings.get(value).filter(|old| old.at >= floor);
        let holds = match old {
            None => true,
            Some(old) if new.gone && !old.gone => new.at >= old.at,
            Some(old) => new.at > old.at,
        };
        if !holds {
            return Ok(seeing);
        }
        sightings.set(value, new);
        seeing.changed = true;
        let from = old.filter(|old| !old.gone).map(|old| self.number(old.at));
        let to = (!new.gone).then(|| self.number(new.at));
        let mut change = 0;
        if from != to {
            change += from.map_or(0, |slot| self.shift(id, slot, -1));
            change += to.map_or(0, |slot| self.shift(id, slot, 1));
        }
        if let Some((dropped, at)) = self.drop_surplus(id, new.gone, floor) {
            if !new.gone {
                change += self.shift(id, self.number(at), -1);
                seeing.capped = self.cap(id, at);
            }
            seeing.dropped = Some(dropped);
        }
        self.raise(id, change);
        Ok(seeing)
    }

    /// Removes up to `most` seen values and up to `most` tombstones from before `floor`. Returns how many it removed.
    pub(in super::super) fn forget_values(&mut self, id: u32, floor: i64, most: usize) -> usize {
        match self.subjects.extras.sightings_mut(id).filter(|sightings| sightings.reaches_before(floor)) {
            Some(sightings) => sightings.forget_before(floor, most),
            None => 0,
        }
    }

    /// Removes the oldest value of the window if there are more values than the board remembers. Returns it and its
    /// time.
    fn drop_surplus(&mut self, id: u32, gone: bool, floor: i64) -> Option<(Box<str>, i64)> {
        let most = self.rule.most_values?;
        let sightings = self.subjects.extras.sightings_mut(id)?;
        if sightings.count_from(gone, floor) <= most {
            return None;
        }
        // Expired values may still be stored: they are removed little by little.
        let oldest = sightings.from(gone, floor, "").next().map(|moment| (Box::from(moment.value), moment.at));
        let (value, at): (Box<str>, i64) = oldest?;
        sightings.forget(&value);
        Some((value, at))
    }

    /// Records that a value of this time was dropped. Returns the time if it is the newest such time.
    fn cap(&mut self, id: u32, at: i64) -> Option<i64> {
        let sightings = self.subjects.extras.sightings_mut(id)?;
        if sightings.capped.is_some_and(|capped| capped >= at) {
            return None;
        }
        sightings.capped = Some(at);
        Some(at)
    }

    /// Adds to the number of values in a slot. Returns the change of the score.
    fn shift(&mut self, id: u32, slot: i64, by: i64) -> i64 {
        let held = self.subjects.amount(id, slot).unwrap_or(0);
        if held + by == 0 {
            self.cut(id, slot)
        } else {
            self.put(id, slot, held + by)
        };
        by
    }
}
