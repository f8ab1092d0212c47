//! While a store opens: records as the database and the journal say, without scores, places or lists, which
//! [`rebuild`](Holdings::rebuild) sets. Each call says what *is*, so that a journal done again ends in the same state.

use std::sync::Arc;

use super::{Counter, Holdings};
use crate::board::{Calendar, Mark, Sketch, Timestamp};
use crate::store::embedded::extra::Extra;
use crate::store::embedded::ranking::{Entry, Ranking};
use crate::store::embedded::record::Slice;
use crate::store::embedded::sightings::Sighting;

impl Holdings {
    /// Sets the number of a slice. `changed`, here and below: the database does not have it yet.
    pub(in super::super) fn restore_amount(&mut self, subject: &str, slot: i64, amount: i64, changed: bool) {
        let Some(id) = self.restored(subject, changed) else { return };
        if self.rule.life.is_some() {
            self.set_counter(id, Counter { start: slot, amount });
        } else if amount == 0 && self.rule.absent() == 0 {
            self.unset_slice(id, slot);
        } else {
            self.set_slice(id, slot, amount);
        }
    }

    /// Sets sum and count of a slice.
    pub(in super::super) fn restore_samples(
        &mut self,
        subject: &str,
        slot: i64,
        (sum, count): (i64, i64),
        changed: bool,
    ) {
        let Some(id) = self.restored(subject, changed) else { return };
        if (sum, count) == (0, 0) {
            return self.unset_slice(id, slot);
        }
        let at = self.set_slice(id, slot, sum);
        if let (Some(at), Some(Extra::Means(means))) = (at, self.slab.extra_mut(id)) {
            means.counts[at] = count;
        }
    }

    /// Sets the sketch of a slice.
    pub(in super::super) fn restore_sketch(&mut self, subject: &str, slot: i64, sketch: Sketch) {
        let Some(id) = self.restored(subject, false) else { return };
        let at = self.set_slice(id, slot, 0);
        if let (Some(at), Some(Extra::Sketches(sketches))) = (at, self.slab.extra_mut(id)) {
            sketches.by_slice[at] = sketch;
        }
    }

    /// Raises a register of a slice's sketch.
    pub(in super::super) fn restore_mark(&mut self, subject: &str, slot: i64, mark: Mark) {
        let Some(id) = self.restored(subject, true) else { return };
        let at = self.set_slice(id, slot, 0);
        if let (Some(at), Some(Extra::Sketches(sketches))) = (at, self.slab.extra_mut(id)) {
            sketches.by_slice[at].mark(mark);
        }
    }

    /// Sets what is known of a value; `None`: nothing.
    pub(in super::super) fn restore_sighting(
        &mut self,
        subject: &str,
        value: &str,
        sighting: Option<Sighting>,
        changed: bool,
    ) {
        let Some(id) = self.restored(subject, false) else { return };
        let Some(sightings) = self.sightings_mut(id) else { return };
        let text: Arc<str> = match sighting {
            Some(sighting) => sightings.set(value, sighting),
            None => sightings.forget(value).unwrap_or_else(|| value.into()),
        };
        if changed {
            self.note_sighted(id, text);
        }
    }

    /// Sets the newest time of a dropped value.
    pub(in super::super) fn restore_capped(&mut self, subject: &str, at: i64, changed: bool) {
        let Some(id) = self.restored(subject, changed) else { return };
        if let Some(sightings) = self.sightings_mut(id) {
            sightings.capped = Some(at);
        }
    }

    /// Takes away all that a subject has.
    pub(in super::super) fn restore_removed(&mut self, subject: &str) {
        self.remove(subject);
        self.restored(subject, true);
    }

    /// After restoring: drops what has expired (which finishes whatever was retiring), and computes what is cached,
    /// scores, lists and the ranking. `floor`: of the window; [`oldest_kept`](Self::oldest_kept) is set already.
    /// O(n log n).
    pub(in super::super) fn rebuild(&mut self, floor: i64, now: i64, calendar: &Calendar) {
        let mut entries = Vec::new();
        for id in 0..self.slab.end() {
            if self.slab.get(id).is_none() {
                continue;
            }
            while self.has_expired_values(id, floor) {
                self.forget_values(id, floor, usize::MAX);
            }
            self.recount_values(id, calendar);
            self.drop_expired(id, floor, now);
            if self.rule.ranked {
                self.list(id);
            }
            if let Some((record, Some(extra))) = self.slab.both_mut(id)
                && self.rule.ranked
            {
                extra.settle(&record.slices);
            }
            let key = self.computed_key(id);
            if let Some(record) = self.slab.get_mut(id) {
                record.key = key;
                if key != self.rule.absent() {
                    entries.push(Entry::new(key, &record.text, id));
                }
            }
            if self.slab.is_empty(id) {
                self.enqueue(id);
            }
        }
        self.ranking = Ranking::build(entries, &self.slab);
    }

    fn restored(&mut self, subject: &str, changed: bool) -> Option<u32> {
        let id = self.slab.intern(subject)?;
        if changed {
            self.enqueue(id);
        }
        Some(id)
    }

    fn set_slice(&mut self, id: u32, slot: i64, amount: i64) -> Option<usize> {
        if let Some(record) = self.slab.get_mut(id)
            && let Ok(at) = record.find(slot)
        {
            record.slices[at].amount = amount;
            return Some(at);
        }
        self.open(id, Slice { slot, amount, place: 0 });
        self.slab.get(id)?.find(slot).ok()
    }

    fn unset_slice(&mut self, id: u32, slot: i64) {
        if let Some((record, extra)) = self.slab.both_mut(id)
            && let Ok(at) = record.find(slot)
        {
            let slice = record.slices.remove(at);
            if let Some(extra) = extra {
                extra.closed(at, slice.amount);
            }
        }
    }

    fn drop_expired(&mut self, id: u32, floor: i64, now: i64) {
        let floor = match self.rule.life {
            Some(life) => now - life + 1,
            None if self.rule.ranked => floor,
            None => self.oldest_kept,
        };
        let expired = |holdings: &Self| {
            let oldest = holdings.slab.get(id)?.slices.first()?.slot;
            (oldest < floor).then_some(oldest)
        };
        while let Some(slot) = expired(self) {
            self.unset_slice(id, slot);
        }
    }

    /// COUNT_DISTINCT: the slices follow from the values' times.
    fn recount_values(&mut self, id: u32, calendar: &Calendar) {
        let Some((record, Some(Extra::Sightings(sightings)))) = self.slab.both_mut(id) else { return };
        // By time, so each slice is the last one or a new one.
        for (_, sighting) in sightings.all().filter(|(_, sighting)| !sighting.gone) {
            let slot = calendar.slot_of(Timestamp::from_millis(sighting.at)).millis();
            match record.slices.last_mut() {
                Some(last) if last.slot == slot => last.amount += 1,
                _ => record.slices.push(Slice { slot, amount: 1, place: 0 }),
            }
        }
    }

    fn list(&mut self, id: u32) {
        let Some(record) = self.slab.get_mut(id) else { return };
        for slice in &mut record.slices {
            let list = self.slots.entry(slice.slot).or_default();
            // Ids are u32 and stand in a list once, so places fit.
            slice.place = list.len() as u32;
            list.push(id);
        }
    }
}
