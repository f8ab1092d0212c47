//! COUNT_DISTINCT: each value counts in the slot in which it was last seen.

use std::sync::Arc;

use super::{Holdings, OutOfRange};
use crate::board::{Calendar, Timestamp};
use crate::store::embedded::extra::Extra;
use crate::store::embedded::sightings::{Sighting, Sightings};

/// The most expired values that one write forgets of a board that may remember any number.
const FORGOTTEN_PER_WRITE: usize = 256;

/// What seeing a value, or taking it back, did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(in super::super) struct Seeing {
    /// The value's time is another, or whether it is there.
    pub changed: bool,
    /// Dropped, because there were too many.
    pub dropped: Option<Arc<str>>,
    /// What is capped now, if that changed.
    pub capped: Option<i64>,
}

impl Holdings {
    /// What is known of a subject's values.
    pub(in super::super) fn sightings(&self, subject: &str) -> Option<&Sightings> {
        match self.slab.extra(self.slab.id(subject)?)? {
            Extra::Sightings(sightings) => Some(sightings),
            _ => None,
        }
    }

    pub(super) fn sightings_mut(&mut self, id: u32) -> Option<&mut Sightings> {
        match self.slab.extra_mut(id)? {
            Extra::Sightings(sightings) => Some(sightings),
            _ => None,
        }
    }

    /// A value was seen, or (`gone`) taken back, at a time within the window, which begins at `floor`. The newest
    /// time decides; of the same time, that it is gone. O(log values + log n).
    pub(in super::super) fn sight(
        &mut self,
        subject: &str,
        value: &str,
        new: Sighting,
        floor: i64,
        calendar: &Calendar,
    ) -> Result<Seeing, OutOfRange> {
        // No memory holds the four billion subjects at which ids run out.
        let id = self.slab.intern(subject).ok_or(OutOfRange)?;
        self.forget_values(id, floor, self.rule.most_values.map_or(FORGOTTEN_PER_WRITE, |_| usize::MAX));
        let mut seeing = Seeing::default();
        let Some(sightings) = self.sightings_mut(id) else { return Ok(seeing) };
        let old = sightings.get(value).filter(|old| old.at >= floor);
        let holds = match old {
            None => true,
            Some(old) if new.gone && !old.gone => new.at >= old.at,
            Some(old) => new.at > old.at,
        };
        if !holds {
            return Ok(seeing);
        }
        let text = sightings.set(value, new);
        seeing.changed = true;
        self.note_sighted(id, text);
        let slot_of = |at| calendar.slot_of(Timestamp::from_millis(at)).millis();
        let from = old.filter(|old| !old.gone).map(|old| slot_of(old.at));
        let to = (!new.gone).then(|| slot_of(new.at));
        let mut change = 0;
        if from != to {
            change += from.map_or(0, |slot| self.shift(id, slot, -1));
            change += to.map_or(0, |slot| self.shift(id, slot, 1));
        }
        if let Some((dropped, at)) = self.drop_surplus(id, new.gone, floor) {
            if !new.gone {
                change += self.shift(id, slot_of(at), -1);
                seeing.capped = self.cap(id, at);
            }
            self.note_sighted(id, dropped.clone());
            seeing.dropped = Some(dropped);
        }
        self.raise(id, change);
        Ok(seeing)
    }

    /// Forgets up to `most` each of the values seen and gone before `floor`; answers how many it forgot.
    pub(in super::super) fn forget_values(&mut self, id: u32, floor: i64, most: usize) -> usize {
        let Some(sightings) = self.sightings_mut(id).filter(|sightings| sightings.reaches_before(floor)) else {
            return 0;
        };
        let capped = sightings.capped;
        let forgotten = sightings.forget_before(floor, most);
        if sightings.capped != capped {
            self.enqueue(id);
        }
        let count = forgotten.len();
        for moment in forgotten {
            self.note_sighted(id, moment.value);
        }
        count
    }

    /// Past the most values that are remembered, forgets the oldest; answers which, and its time.
    fn drop_surplus(&mut self, id: u32, gone: bool, floor: i64) -> Option<(Arc<str>, i64)> {
        let most = self.rule.most_values?;
        let sightings = self.sightings_mut(id)?;
        if sightings.count_from(gone, floor) <= most {
            return None;
        }
        let oldest = sightings.oldest(gone)?.clone();
        sightings.forget(&oldest.value);
        Some((oldest.value, oldest.at))
    }

    /// Remembers that a value of this time was dropped; answers the newest such time if that changed it.
    fn cap(&mut self, id: u32, at: i64) -> Option<i64> {
        let sightings = self.sightings_mut(id)?;
        if sightings.capped.is_some_and(|capped| capped >= at) {
            return None;
        }
        sightings.capped = Some(at);
        self.enqueue(id);
        Some(at)
    }

    /// Adds to how many values a slot has; answers by how much the score changes.
    fn shift(&mut self, id: u32, slot: i64, by: i64) -> i64 {
        let held = self.slab.get(id).and_then(|record| record.amount(slot)).unwrap_or(0);
        if held + by == 0 {
            self.cut(id, slot)
        } else {
            self.put(id, slot, held + by)
        };
        by
    }

    /// Notes that the database's entry of a value is to be written or deleted, and so that of a subject that has
    /// nothing left.
    pub(super) fn note_sighted(&mut self, id: u32, value: Arc<str>) {
        if let Some(record) = self.slab.get(id) {
            self.sighted.insert((record.text.clone(), value));
        }
    }
}
