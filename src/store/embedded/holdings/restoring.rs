//! While a store opens: records as checkpoints and the log say, without scores, places or lists, which
//! [`rebuild`](Holdings::rebuild) sets. Each call says what *is*, so that a log done again ends in the same state.

use super::{Counter, Holdings};
use crate::board::{Mark, Sketch};
use crate::store::embedded::list::List;
use crate::store::embedded::names::Name;
use crate::store::embedded::numbering::OLDEST;
use crate::store::embedded::ranking::{Entry, Ranking, Texts, Unsorted};
use crate::store::embedded::record::Slice;
use crate::store::embedded::sightings::Sighting;

/// Slots before the newest that any board may still need: it keeps 4,001 at most, and a zone may skip some.
const NEEDED: i64 = OLDEST / 4;

impl Holdings {
    /// Sets the number of a slice.
    pub(in super::super) fn restore_amount(&mut self, name: Name, slot: i64, amount: i64) {
        let Some(id) = self.restored(name) else { return };
        if self.rule.life.is_some() {
            return self.set_counter(id, Counter { start: slot, amount });
        }
        let slot = self.number(slot);
        if amount == 0 && self.rule.absent() == 0 {
            self.unset_slice(id, slot);
        } else {
            self.set_slice(id, slot, amount);
        }
    }

    /// Sets sum and count of a slice.
    pub(in super::super) fn restore_samples(&mut self, name: Name, slot: i64, (sum, count): (i64, i64)) {
        let Some(id) = self.restored(name) else { return };
        let slot = self.number(slot);
        if (sum, count) == (0, 0) {
            return self.unset_slice(id, slot);
        }
        if self.set_slice(id, slot, sum).is_some() {
            self.set_count(id, slot, count, 0);
        }
    }

    /// Sets the sketch of a slice.
    pub(in super::super) fn restore_sketch(&mut self, name: Name, slot: i64, sketch: Sketch) {
        let Some(id) = self.restored(name) else { return };
        let at = self.set_slice(id, self.number(slot), 0);
        if let (Some(at), Some(sketches)) = (at, self.subjects.extras.sketches_mut(id)) {
            sketches.set(at, sketch);
        }
    }

    /// Raises a register of a slice's sketch.
    pub(in super::super) fn restore_mark(&mut self, name: Name, slot: i64, mark: Mark) {
        let Some(id) = self.restored(name) else { return };
        let at = self.set_slice(id, self.number(slot), 0);
        if let (Some(at), Some(sketches)) = (at, self.subjects.extras.sketches_mut(id)) {
            sketches.mark(at, mark);
        }
    }

    /// Sets what is known of a value; `None`: nothing.
    pub(in super::super) fn restore_sighting(&mut self, name: Name, value: &str, sighting: Option<Sighting>) {
        let Some(id) = self.restored(name) else { return };
        let Some(sightings) = self.subjects.extras.sightings_mut(id) else { return };
        match sighting {
            Some(sighting) => sightings.set(value, sighting),
            None => drop(sightings.forget(value)),
        }
    }

    /// Sets the newest time of a dropped value.
    pub(in super::super) fn restore_capped(&mut self, name: Name, at: i64) {
        let Some(id) = self.restored(name) else { return };
        if let Some(sightings) = self.subjects.extras.sightings_mut(id) {
            sightings.capped = Some(at);
        }
    }

    /// Takes away all that a subject has.
    pub(in super::super) fn restore_removed(&mut self, name: Name) {
        if let Some(id) = self.subjects.id(name) {
            self.subjects.release(id);
        }
    }

    /// After restoring: drops what has expired (which finishes whatever was retiring), and computes what is cached,
    /// scores, lists and the ranking. `floor` and `head`: of the window, which `now` is in;
    /// [`oldest_kept`](Self::oldest_kept) is set already. O(n log n).
    pub(in super::super) fn rebuild(&mut self, floor: i64, head: i64, now: i64) {
        self.reach(self.number(head));
        self.subjects.numbering.move_to(head);
        let mut entries = Unsorted::default();
        let mut next = 0;
        while let Some(id) = self.subjects.next_from(next) {
            next = id + 1;
            while self.has_expired_values(id, floor) {
                self.forget_values(id, floor, usize::MAX);
            }
            self.recount_values(id);
            self.drop_expired(id, floor, now);
            if self.subjects.is_empty(id) {
                self.subjects.release(id);
                continue;
            }
            if !self.rule.ranked {
                continue;
            }
            self.enlist(id);
            self.subjects.settle(id);
            let key = match self.subjects.extras.sketches(id) {
                Some(sketches) => sketches.merged.estimate(),
                None => self.computed_key(id),
            };
            if let Some(record) = self.subjects.get_mut(id) {
                record.key = key;
            }
            if key != self.rule.absent() {
                entries.push(Entry::new(key, self.subjects.text(id), id));
            }
        }
        self.ranking = Ranking::build(entries, &self.subjects.texts());
    }

    fn restored(&mut self, name: Name) -> Option<u32> {
        self.with_room(self.subjects.id(name), name).ok()
    }

    /// Sets a slice; answers its index, or `None` if it has long expired.
    fn set_slice(&mut self, id: u32, slot: i64, amount: i64) -> Option<usize> {
        self.reach(slot);
        if slot < self.purged {
            return None;
        }
        match self.subjects.find(id, slot) {
            Ok(at) => {
                self.subjects.set_amount(id, at, amount);
                Some(at)
            }
            Err(at) => {
                self.subjects.open(id, at, Slice { slot, amount, place: 0 });
                Some(at)
            }
        }
    }

    fn unset_slice(&mut self, id: u32, slot: i64) {
        if slot >= self.purged
            && let Ok(at) = self.subjects.find(id, slot)
        {
            self.subjects.close(id, at);
        }
    }

    /// Notes that time has reached a slot. A log may be as long as a board is old: now and then, what expired long
    /// ago is dropped, so that the ordinals of what is left stay apart. O(n) once in some thousand slots.
    fn reach(&mut self, slot: i64) {
        if self.rule.life.is_none() && slot - self.purged.max(0) >= OLDEST - NEEDED {
            self.purged = slot - NEEDED;
            let mut next = 0;
            while let Some(id) = self.subjects.next_from(next) {
                next = id + 1;
                self.drop_before(id, self.purged);
            }
        }
        self.subjects.numbering.reach(slot);
    }

    fn drop_expired(&mut self, id: u32, floor: i64, now: i64) {
        match self.rule.life {
            Some(life) => {
                if self.counter_of(id).is_some_and(|counter| counter.start + life <= now) {
                    self.subjects.release(id);
                }
            }
            None => {
                let floor = if self.rule.ranked { floor } else { self.oldest_kept };
                self.drop_before(id, self.number(floor));
            }
        }
    }

    /// COUNT_DISTINCT: the slices follow from the values' times.
    fn recount_values(&mut self, id: u32) {
        let subjects = &mut self.subjects;
        let Some(sightings) = subjects.extras.sightings(id) else { return };
        let mut slices: Vec<Slice> = Vec::new();
        let mut end = i64::MIN;
        // By time, so each is in the last slice or begins a new one.
        for (_, sighting) in sightings.all().filter(|(_, sighting)| !sighting.gone) {
            match slices.last_mut() {
                Some(last) if sighting.at < end => last.amount += 1,
                _ => {
                    let slot = subjects.numbering.number(sighting.at);
                    end = subjects.numbering.end(slot);
                    slices.push(Slice { slot, amount: 1, place: 0 });
                }
            }
        }
        for (at, slice) in slices.into_iter().enumerate() {
            subjects.open(id, at, slice);
        }
    }

    /// Enters a subject into its slots' lists.
    fn enlist(&mut self, id: u32) {
        for at in 0..self.subjects.slices(id) {
            let Some(slice) = self.subjects.slice_at(id, at) else { continue };
            let numbering = &self.subjects.numbering;
            let list = self.lists.entry(slice.slot).or_insert_with(|| List::new(numbering.start(slice.slot)));
            let place = list.push(id);
            self.subjects.set_place(id, at, place);
        }
    }
}
