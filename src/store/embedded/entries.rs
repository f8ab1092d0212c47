//! The application of one entry of a batch to a board's state.
//!
//! On a board with two editions, each of them counts an entry in all of its tracks or in none. The entry's item, or its
//! items together, are applied to both under one hold of the board's lock.

use super::board_state::BoardState;
use super::fingerprint::Fingerprint;
use super::hashed_name::HashedName;
use super::holdings::{CellWrite, OutOfRange, WriteTo};
use super::log_operations::LogOperations;
use super::memory::{Demand, Level, Room};
use super::track_data::TrackData;
use crate::board::{Amount, Board, Change, EXACT_MAX, NotCounted, SlotSample, Timestamp, Track};
use crate::store::{Entry, Increment, MAX_EDITIONS, Missed, Outcome, Rejection};

/// Returns the outcome of an item that has left all windows. A retraction counts as accepted, with nothing left to
/// take.
pub(super) fn outcome_outside_windows(increment: &Increment, answered: usize) -> Outcome {
    match increment.change_in(answered) {
        Change::Not(_) => Outcome::Counted { score: None },
        _ if increment.retract => Outcome::Counted { score: None },
        _ => Outcome::Rejected(Rejection::TooLate),
    }
}

/// An entry that is being applied, with its context.
pub(super) struct EntryApplication<'a> {
    pub entry: &'a Entry<'a>,
    /// The name of the entry's subject.
    pub name: HashedName<'a>,
    /// The fingerprint of the entry's id, if it has one.
    pub fingerprint: Option<Fingerprint>,
    pub board: &'a Board,
    pub state: &'a mut BoardState,
    pub room: Room,
    /// The operations of the main track of the current edition.
    pub operations: &'a mut LogOperations,
    /// The operations of each other track.
    pub others: &'a mut [LogOperations],
    pub increments: &'a [Increment],
    /// The number of the edition whose outcomes are returned.
    pub answered: usize,
}

impl<'a> EntryApplication<'a> {
    /// Applies an entry, and sets the outcomes of its items that are not counted.
    pub(super) fn apply(&mut self, outcomes: &mut [Outcome]) {
        let (entry, is_known) = (self.entry, self.is_known());
        if self.board.editions().len() > 1 {
            return self.apply_to_editions(is_known, outcomes);
        }
        let replaces = self.replaces();
        if self.is_too_late(replaces) {
            return self.refuse_as_too_late(is_known, outcomes);
        }
        let mut counted = entry.items.len();
        let mut set = |outcome| {
            entry.items.iter().for_each(|item| outcomes[*item] = outcome);
            counted = 0;
        };
        if is_known {
            set(Outcome::Duplicate { score: None });
        } else if (replaces || entry.forgets()) && self.state.imports.is_open() {
            set(Outcome::Rejected(Rejection::ImportOpen));
        } else if let Some(refused) = self.refusal() {
            set(Outcome::Rejected(refused));
        } else if self.fingerprint.is_some() || entry.sent.is_some() {
            if self.apply_change(0).is_ok() {
                self.remember();
            } else {
                set(Outcome::Rejected(Rejection::OutOfRange));
            }
        } else if entry.is_beyond_exact() || self.apply_change(0).is_err() {
            // The sum is refused, so the items are tried one by one, in order.
            for &item in &entry.items {
                if self.add_item(0, item).is_err() {
                    outcomes[item] = Outcome::Rejected(Rejection::OutOfRange);
                    counted -= 1;
                }
            }
        }
        if counted > 0 {
            self.count_events(0, counted as u64);
            if replaces {
                self.state.imports.counted_sample();
            }
        }
    }

    /// Returns why the entry, on the board as it is now, would be refused before anything changes.
    pub(super) fn refused_now(&self) -> Option<Rejection> {
        let has_two = self.board.editions().len() > 1;
        let is_too_late = match has_two {
            true => self.missed().iter().all(Option::is_some),
            false => self.is_too_late(self.replaces()),
        };
        if is_too_late || self.is_known() {
            return None;
        }
        let excludes_import = self.entry.is_sample() || self.entry.forgets();
        if excludes_import && self.state.imports.is_open() { Some(Rejection::ImportOpen) } else { self.refusal() }
    }

    /// Returns whether the entry's id was counted before.
    fn is_known(&self) -> bool {
        let now = self.state.now().millis();
        self.fingerprint.is_some_and(|fingerprint| self.state.ids.is_recent(fingerprint, now))
    }

    /// Returns whether the entry is a sample, on a board with one edition.
    fn replaces(&self) -> bool {
        self.entry.sent.is_some_and(|increment| matches!(increment.change, Change::Set { .. }))
    }

    /// Returns whether the only edition has no slot for the entry any more. A sample needs all.
    fn is_too_late(&self, replaces: bool) -> bool {
        let tracks = self.board.edition().tracks().len();
        let left = (0..tracks).filter(|number| self.slot(*number).is_some()).count();
        left == 0 || replaces && left < tracks
    }

    /// Applies an entry to a board with two editions.
    fn apply_to_editions(&mut self, is_known: bool, outcomes: &mut [Outcome]) {
        let (entry, missed) = (self.entry, self.missed());
        if missed.iter().all(Option::is_some) {
            return self.refuse_as_too_late(is_known, outcomes);
        }
        let mut set = |outcome| entry.items.iter().for_each(|item| outcomes[*item] = outcome);
        if is_known {
            return set(Outcome::Duplicate { score: None });
        }
        if entry.forgets() && self.state.imports.is_open() {
            return set(Outcome::Rejected(Rejection::ImportOpen));
        }
        // What one of the editions has no memory for is refused by both, before anything changes.
        if let Some(refused) = self.refusal() {
            return set(Outcome::Rejected(refused));
        }
        // A sum is counted by both editions or refused by both: then its items are tried one by one, in order. A single
        // item is counted by each edition by itself.
        if let [item] = entry.items[..] {
            let result = self.in_editions(&missed, Self::apply_change);
            let is_counted = self.finish(item, &result, outcomes);
            if is_counted {
                self.remember();
            }
            if is_counted && entry.is_sample() {
                self.state.imports.counted_sample();
            }
            return self.note_blind(is_counted, &missed);
        }
        let mut is_counted = false;
        if !entry.is_beyond_exact() && self.fits(&missed) {
            let result = self.in_editions(&missed, Self::apply_change);
            for &item in &entry.items {
                is_counted |= self.finish(item, &result, outcomes);
            }
            return self.note_blind(is_counted, &missed);
        }
        for &item in &entry.items {
            let result = self.in_editions(&missed, |this, edition| this.add_item(edition, item));
            is_counted |= self.finish(item, &result, outcomes);
        }
        self.note_blind(is_counted, &missed);
    }

    /// Notes that an item was counted of which the effect on one of the editions is not known.
    fn note_blind(&mut self, is_counted: bool, missed: &Missed) {
        if is_counted
            && missed.contains(&Some(NotCounted::Unknown))
            && let Some(dual) = &mut self.state.dual
        {
            dual.was_blind(self.state.tracks[0].now);
        }
    }

    /// Returns why editions do not count the entry, which has a slot in none of their tracks any more. A sample needs
    /// all.
    fn missed(&self) -> Missed {
        let mut missed = self.entry.missed;
        for (number, edition) in self.board.editions().iter().enumerate() {
            let sets = matches!(self.entry.sent.map(|sent| sent.change_in(number)), Some(Change::Set { .. }));
            let left = edition.numbers().filter(|number| self.slot(*number).is_some()).count();
            if missed[number].is_none() && (left == 0 || sets && left < edition.tracks().len()) {
                missed[number] = Some(NotCounted::TooLate);
            }
        }
        missed
    }

    /// Does `apply` for each edition that counts the entry. Returns why editions have not counted it.
    fn in_editions(
        &mut self,
        missed: &Missed,
        mut apply: impl FnMut(&mut Self, usize) -> Result<(), OutOfRange>,
    ) -> Missed {
        let mut result = *missed;
        for (edition, missed) in result.iter_mut().enumerate() {
            if missed.is_none() && apply(self, edition).is_err() {
                *missed = Some(NotCounted::OutOfRange);
            }
        }
        result
    }

    /// Counts an item that was applied, in the slots and by the reasons why editions have not counted it, and sets its
    /// outcome. Returns whether any edition counted it.
    fn finish(&mut self, item: usize, missed: &Missed, outcomes: &mut [Outcome]) -> bool {
        let increment = &self.increments[item];
        match missed[self.entry.decisive(self.answered)] {
            Some(NotCounted::OutOfRange) => outcomes[item] = Outcome::Rejected(Rejection::OutOfRange),
            Some(NotCounted::TooLate) => outcomes[item] = outcome_outside_windows(increment, self.answered),
            _ => {}
        }
        if missed.iter().all(Option::is_some) {
            return false;
        }
        for (edition, reason) in missed.iter().enumerate() {
            match reason {
                None => self.count_events(edition, 1),
                // Nothing was left to take, so nothing is missing.
                Some(NotCounted::TooLate) if increment.retract => {}
                Some(reason) => {
                    if let Some(dual) = &mut self.state.dual {
                        dual.count(edition, *reason, 1);
                    }
                }
            }
        }
        true
    }

    /// Returns whether all editions that count the entry, which is a sum, have room for it.
    fn fits(&self, missed: &Missed) -> bool {
        (0..MAX_EDITIONS).filter(|edition| missed[*edition].is_none()).all(|edition| {
            let change = Change::Amount(self.entry.amount(edition));
            self.check_tracks(edition, self.entry.margin(edition), |_| Some(&change)).is_ok()
        })
    }

    /// Sets the outcomes of items whose slots have left the windows, or which are not in the period that they name. A
    /// retraction counts as accepted, with nothing left to take, unless its id was counted before.
    fn refuse_as_too_late(&self, is_known: bool, outcomes: &mut [Outcome]) {
        for &item in &self.entry.items {
            let wrong = Outcome::Rejected(Rejection::WrongPeriod);
            let outcome = match self.entry.missed[0] {
                Some(NotCounted::OtherPeriod) => wrong,
                _ => outcome_outside_windows(&self.increments[item], self.answered),
            };
            outcomes[item] = match outcome {
                Outcome::Counted { .. } if is_known => Outcome::Duplicate { score: None },
                outcome if is_known && outcome == wrong => Outcome::Duplicate { score: None },
                outcome => outcome,
            };
        }
    }

    /// Records the id of the entry, if it has one, after it was counted.
    fn remember(&mut self) {
        let Some(fingerprint) = self.fingerprint else { return };
        let now = self.state.now().millis();
        self.operations.id(now, fingerprint);
        self.state.ids.insert(fingerprint, now);
    }

    /// Returns the slot of the entry in a track, unless the slot has left the window.
    fn slot(&self, number: usize) -> Option<i64> {
        let data = &self.state.tracks[number];
        let has_slots = data.holdings.traits.counter_duration.is_none();
        let slot = self.entry.slots.of(number).filter(|slot| !has_slots || *slot >= data.window.floor);
        slot.map(Timestamp::millis)
    }

    /// Returns where and how the entry changes a track, unless its slot there has left the window. What the slot holds
    /// must stay away from the bound by the margin.
    fn write_to(&self, number: usize, margin: i64) -> Option<WriteTo<'a>> {
        let (track, slot) = (&self.board.tracks()[number], self.slot(number)?);
        Some(WriteTo {
            name: self.name,
            slot,
            at: self.entry.at.millis(),
            is_timed: self.entry.sent.is_some_and(|increment| increment.at.is_some()),
            day: track.day_of(self.entry.at).map_or(slot, Timestamp::millis),
            retract: self.entry.sent.is_some_and(|increment| increment.retract),
            bound: track.slot_bound().0 - margin,
            floors: self.state.tracks[number].floors(),
        })
    }

    /// Returns a track, and its operations.
    fn track(&mut self, number: usize) -> (&mut TrackData, &mut LogOperations) {
        let operations = match number.checked_sub(1) {
            None => &mut *self.operations,
            Some(other) => &mut self.others[other],
        };
        (&mut self.state.tracks[number], operations)
    }

    /// Returns why the entry is refused before anything changes, if it needs more memory or subjects than there is room
    /// for.
    fn refusal(&self) -> Option<Rejection> {
        let entry = self.entry;
        // It takes nothing, and is not counted for the subject.
        if entry.forgets() {
            return None;
        }
        let room = self.room;
        let is_crowded =
            |data: &TrackData| data.holdings.traits.ranked && data.holdings.subjects.len() >= room.max_subjects;
        if self.state.moderated.is_frozen(entry.subject.as_str()) {
            return Some(Rejection::SubjectFrozen);
        }
        if self.too_many_keys() {
            return Some(Rejection::TooManyKeys);
        }
        let written = self.board.written_tracks().len();
        if room.level == Level::Free && !self.state.tracks[..written].iter().any(is_crowded) {
            return None;
        }
        let mut demand = if self.fingerprint.is_some() { Demand::More } else { Demand::Nothing };
        for (edition, own) in self.board.editions().iter().enumerate() {
            let Some((change, _)) = entry.change(edition) else { continue };
            let mut is_new = true;
            for number in own.numbers() {
                let Some(to) = self.write_to(number, 0) else { continue };
                let of_track = self.state.tracks[number].holdings.demand(&to, &change);
                is_new &= of_track == Demand::Subject;
                // A subject that has expired in a short window may still be known in a longer one.
                demand = demand.max(if of_track == Demand::Subject { Demand::More } else { of_track });
            }
            if is_new && self.state.tracks[own.numbers()].iter().any(is_crowded) {
                return Some(Rejection::TooManySubjects);
            }
            if is_new {
                demand = Demand::Subject;
            }
        }
        (!room.is_enough_for(demand)).then_some(Rejection::MemoryFull)
    }

    /// Returns whether the entry, of a subject that is not hidden, is of a key without a ranking, and a track has as many
    /// keys as it may have. The current edition decides.
    fn too_many_keys(&self) -> bool {
        let entry = self.entry;
        // Without keys nothing is looked for in the subject, on the path of every write.
        if !self.board.has_keys() {
            return false;
        }
        // The periods of a season are limited alike.
        let decides = if self.board.season().is_some() { entry.decisive(0) } else { 0 };
        if entry.change(decides).is_none() {
            return false;
        }
        let Some(key) = entry.subject.key() else { return false };
        // It is in no ranking, and goes on counting whatever others have counted for keys meanwhile.
        if self.state.moderated.is_hidden(entry.subject.as_str()) {
            return false;
        }
        let (mut is_full, mut is_known) = (false, false);
        let numbers = self.board.editions()[decides].numbers();
        for number in numbers.filter(|number| self.slot(*number).is_some()) {
            let holdings = &self.state.tracks[number].holdings;
            if let (Some(most), Some(groups)) = (holdings.traits.most_keys, holdings.subjects.groups()) {
                is_full |= groups.len() >= most;
                is_known |= groups.is_ranked(key);
            }
        }
        is_full && !is_known
    }

    /// Applies a change to each track of an edition that still has the slot of the entry. If there are several, each is
    /// checked before: so either all tracks change or none. `change` returns that of the track with a number, or `None`
    /// if it stays as it is. What a slot holds must stay away from the bound by the margin.
    fn change_tracks<'c>(
        &mut self,
        edition: usize,
        margin: i64,
        change: impl Fn(usize) -> Option<&'c Change>,
    ) -> Result<(), OutOfRange> {
        let numbers = self.board.editions()[edition].numbers();
        if numbers.len() > 1 {
            self.check_tracks(edition, margin, &change)?;
        }
        for number in numbers {
            let (Some(to), Some(change)) = (self.write_to(number, margin), change(number)) else { continue };
            let (TrackData { holdings, .. }, operations) = self.track(number);
            holdings.kind.apply(CellWrite { holdings, to: &to, operations }, change)?;
        }
        Ok(())
    }

    /// Checks whether each track of an edition that still has the slot of the entry can take a change.
    fn check_tracks<'c>(
        &self,
        edition: usize,
        margin: i64,
        change: impl Fn(usize) -> Option<&'c Change>,
    ) -> Result<(), OutOfRange> {
        for number in self.board.editions()[edition].numbers() {
            let (Some(to), Some(change)) = (self.write_to(number, margin), change(number)) else { continue };
            let holdings = &self.state.tracks[number].holdings;
            holdings.kind.check(holdings, &to, change)?;
        }
        Ok(())
    }

    /// Counts items in the slots of the tracks of an edition.
    fn count_events(&mut self, edition: usize, items: u64) {
        for number in self.board.editions()[edition].numbers() {
            let slot = self.slot(number);
            let data = &mut self.state.tracks[number];
            if let Some(slot) = slot.filter(|_| data.holdings.traits.counter_duration.is_none()) {
                data.events.add(slot, items);
            }
        }
    }

    /// Applies the entry's update to an edition as a whole, or changes nothing.
    fn apply_change(&mut self, edition: usize) -> Result<(), OutOfRange> {
        let entry = self.entry;
        if entry.sums[edition].is_some() {
            return self.add_amount(edition, entry.items[0], entry.amount(edition), entry.margin(edition));
        }
        let sent = entry.sent.ok_or(OutOfRange)?;
        let own = &self.board.editions()[edition];
        let change = sent.change_in(edition);
        let timed = own.timed(change, entry.at, sent.retract);
        let change = timed.as_ref().unwrap_or(change);
        // What the total gets instead of a sample of a slot beside it.
        let total = match (change, own.kept_slots()) {
            (Change::Set { sum, count }, Some(kept_slots)) => {
                Some(self.total_after(edition, (*sum, *count), kept_slots))
            }
            _ => None,
        };
        let main = own.numbers().start;
        self.change_tracks(edition, 0, |number| match &total {
            Some(total) if number == main => total.as_ref(),
            _ => Some(change),
        })
    }

    /// Returns the change of a total when a sample replaces a slot beside it: see [`SlotSample::change_of_total`].
    fn total_after(&self, edition: usize, (sum, count): (Amount, i64), kept_slots: &Track) -> Option<Change> {
        let cell = |data: &TrackData, slot: Timestamp| {
            let mut found = data.holdings.aggregates(self.name, slot.millis(), slot.millis()).into_iter();
            found.next().map(|(_, aggregate)| aggregate)
        };
        let own = &self.board.editions()[edition];
        let main = own.numbers().start;
        let (slot, calendar) = (self.entry.slots.of(main + 1)?, kept_slots.calendar());
        let total = cell(&self.state.tracks[main], self.entry.slots.of(main)?);
        let kept = |slot| self.state.tracks.get(main + 1).and_then(|data| cell(data, slot));
        let (before, next) = (kept(slot), || kept(calendar.next(slot)));
        let sample = SlotSample { slot, sum, count };
        sample.change_of_total(own.kind(), calendar, total.as_ref(), before.as_ref(), next)
    }

    /// Adds the amount of one item of the entry for COUNT and SUM.
    fn add_item(&mut self, edition: usize, item: usize) -> Result<(), OutOfRange> {
        let increment = &self.increments[item];
        let Change::Amount(amount) = increment.change_in(edition) else { return Err(OutOfRange) };
        self.add_amount(edition, item, increment.signed(*amount), 0)
    }

    /// Adds an amount for COUNT and SUM: that of the entry or of one of its items. The sum must stay away from the
    /// bound by the margin.
    fn add_amount(&mut self, edition: usize, item: usize, amount: Amount, margin: i64) -> Result<(), OutOfRange> {
        if amount.0.unsigned_abs() > EXACT_MAX.unsigned_abs() {
            return Err(OutOfRange);
        }
        let main = self.board.editions()[edition].numbers().start;
        if self.state.tracks[main].holdings.traits.counter_duration.is_some() {
            return self.add_to_counter(main, item, amount);
        }
        let change = Change::Amount(amount);
        self.change_tracks(edition, margin, |_| Some(&change))
    }

    /// Adds an amount to the counter of a `from_first` edition, which has one track.
    fn add_to_counter(&mut self, number: usize, item: usize, amount: Amount) -> Result<(), OutOfRange> {
        let Some(to) = self.write_to(number, 0) else { return Ok(()) };
        let (retracts, times) = (self.increments[item].retract, (to.at, self.state.now().millis()));
        let (data, operations) = self.track(number);
        if let Some(counter) = data.holdings.count_from_first(to.name, amount.0, retracts, times, to.bound)? {
            operations.amount(counter.start, counter.amount, to.name.text);
        }
        Ok(())
    }
}
