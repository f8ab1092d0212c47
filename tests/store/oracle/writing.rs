//! The outcome of each item of a batch: the rules of writing, implemented without a plan.

use rolltop::board::{
    Aggregate, Amount, Change, EXACT_MAX, EventId, Frame, Kind, Mode, NotCounted, Stamp, Subject, Timestamp,
};
use rolltop::store::{Batch, Increment, Outcome, Rejection, Result};

use super::history::{Counter, Taken, aggregates, fits, newest};
use super::{Held, HeldBoard};

const COUNTED: Outcome = Outcome::Counted { score: None };
const DUPLICATE: Outcome = Outcome::Duplicate { score: None };
const LATE: Outcome = Outcome::Rejected(Rejection::TooLate);
const REFUSED: Outcome = Outcome::Rejected(Rejection::OutOfRange);

/// Where an item belongs.
#[derive(PartialEq)]
struct Placed {
    /// Its slot in each track, or `None` where it is too late, or not counted.
    slots: Vec<Option<Timestamp>>,
    /// For each edition, the reason why the edition does not count it, if it does not.
    missed: Vec<Option<NotCounted>>,
}

impl HeldBoard {
    /// Adds a batch. Outcomes are those in the edition with the number `answered`.
    pub fn add(&mut self, now: Timestamp, max_skew: i64, batch: &Batch, answered: usize) -> Vec<Outcome> {
        let frames = &self.frames(now);
        let mut outcomes = vec![None; batch.increments.len()];
        for (index, first) in batch.increments.iter().enumerate() {
            if outcomes[index].is_some() {
                continue; // added up with an earlier item
            }
            let placed = match self.place(frames, max_skew, first) {
                Ok(placed) => placed,
                Err(rejection) => {
                    let is_known = first.id.as_ref().is_some_and(|id| self.is_known(now, &first.subject, id));
                    outcomes[index] = Some(match rejection {
                        Rejection::WrongPeriod if is_known => DUPLICATE,
                        rejection => Outcome::Rejected(rejection),
                    });
                    continue;
                }
            };
            let is_known = first.id.as_ref().is_some_and(|id| self.is_known(now, &first.subject, id));
            if placed.missed.iter().all(Option::is_some) {
                outcomes[index] = Some(match first.change_in(answered) {
                    // The event that it reverses has left the windows, so there is nothing to undo.
                    _ if first.retract && is_known => DUPLICATE,
                    Change::Not(_) => COUNTED,
                    _ if first.retract => COUNTED,
                    _ => LATE,
                });
                continue;
            }
            if is_known {
                outcomes[index] = Some(DUPLICATE);
                continue;
            }
            let is_sample = (0..placed.missed.len()).any(|edition| is_sample(first.change_in(edition)));
            let forgets = first.forgotten().is_some();
            if self.imports.is_open() && (is_sample || forgets) {
                outcomes[index] = Some(Outcome::Rejected(Rejection::ImportOpen));
                continue;
            }
            if self.is_frozen(&first.subject) && !forgets {
                outcomes[index] = Some(Outcome::Rejected(Rejection::SubjectFrozen));
                continue;
            }
            if self.too_many_keys(frames, &placed, first) && !forgets {
                outcomes[index] = Some(Outcome::Rejected(Rejection::TooManyKeys));
                continue;
            }
            for index in self.next_together(frames, max_skew, &batch.increments, index, &placed) {
                outcomes[index] = Some(self.take(frames, &placed, &batch.increments[index], answered));
            }
        }
        let mut outcomes: Vec<Outcome> = outcomes.into_iter().flatten().collect();
        if batch.return_scores {
            let main = self.board.editions()[answered].numbers().start;
            for (outcome, item) in outcomes.iter_mut().zip(&batch.increments) {
                if let Outcome::Counted { score } | Outcome::Duplicate { score } = outcome {
                    *score = self.tracks[main].score(&frames[main], &item.subject);
                }
            }
        }
        outcomes
    }

    /// Returns whether an item of a subject that is not hidden is of a key without a ranking in any track of the current
    /// edition, one of which has as many keys as it may have.
    fn too_many_keys(&self, frames: &[Frame], placed: &Placed, item: &Increment) -> bool {
        let decides = usize::from(placed.missed[0] == Some(NotCounted::OtherPeriod));
        let is_limited = placed.missed[decides].is_none() && !self.is_hidden(&item.subject);
        let Some(key) = item.subject.key().filter(|_| is_limited) else { return false };
        let reached = self.board.editions()[decides].numbers().filter(|number| placed.slots[*number].is_some());
        let keys: Vec<_> = reached.map(|number| self.tracks[number].keys(&frames[number])).collect();
        let most = self.board.definition().most_keys().unwrap_or(u32::MAX) as usize;
        let is_known = keys.iter().flatten().any(|ranked| ranked.as_str() == key);
        keys.iter().any(|keys| keys.len() >= most) && !is_known
    }

    /// Returns the items that take effect next, one by one: this one and, on a board with several tracks, further
    /// amounts without ids of the subject and the same slots, up to an item with an id or a sample of them.
    fn next_together(
        &self,
        frames: &[Frame],
        max_skew: i64,
        items: &[Increment],
        index: usize,
        placed: &Placed,
    ) -> Vec<usize> {
        let mut together = vec![index];
        if self.board.written_tracks().len() == 1 || !self.adds_up(placed, &items[index]) {
            return together;
        }
        for (later, item) in items.iter().enumerate().skip(index + 1) {
            let is_other = item.subject != items[index].subject;
            if is_other || self.place(frames, max_skew, item).as_ref() != Ok(placed) {
                continue;
            }
            if !self.adds_up(placed, item) {
                break;
            }
            together.push(later);
        }
        together
    }

    /// Returns whether an item may be added up with others of the same place: all editions that count it add amounts
    /// up.
    fn adds_up(&self, placed: &Placed, item: &Increment) -> bool {
        let all = self.board.editions().iter().enumerate();
        let mut adds_up = all.map(|(number, edition)| {
            let is_amount = matches!(item.change_in(number), Change::Amount(_)) && edition.kind() == Kind::Sum;
            edition.definition().mode == Mode::Sliding && (is_amount || placed.missed[number].is_some())
        });
        item.id.is_none() && placed.missed[0] != Some(NotCounted::TooLate) && adds_up.all(|adds_up| adds_up)
    }

    /// Returns where an item belongs. An edition counts it if one of its tracks reaches back to it, and a sample if all
    /// of them do.
    fn place(&self, frames: &[Frame], max_skew: i64, item: &Increment) -> Result<Placed, Rejection> {
        let mut placed = Placed { slots: vec![None; self.tracks.len()], missed: Vec::new() };
        for (number, edition) in self.board.editions().iter().enumerate() {
            let change = item.change_in(number);
            if let Change::Not(reason) = change {
                placed.missed.push(Some(*reason));
                continue;
            }
            let mut at = item.at;
            let forgets = matches!(change, Change::Forget(_));
            if let Some(period) = edition.period().filter(|_| !forgets) {
                let now = frames[0].as_of;
                let time = at.unwrap_or(now);
                if time > now.plus_millis(max_skew) {
                    return Err(Rejection::TooEarly);
                }
                let time = time.min(now);
                let is_named = item.period.is_none_or(|start| start == period.start);
                if time < period.start || time >= period.end || !is_named {
                    placed.missed.push(Some(NotCounted::OtherPeriod));
                    continue;
                }
                at = Some(time);
            }
            let mut slots = Vec::new();
            for (held, frame) in self.tracks[edition.numbers()].iter().zip(&frames[edition.numbers()]) {
                slots.push(match held.slot_for(frame, max_skew, change, at) {
                    Ok(slot) => Some(slot),
                    Err(Rejection::TooLate) => None,
                    Err(rejection) => return Err(rejection),
                });
            }
            let is_taken = match is_sample(change) {
                true => slots.iter().all(Option::is_some),
                false => slots.iter().any(Option::is_some),
            };
            placed.missed.push((!is_taken).then_some(NotCounted::TooLate));
            if is_taken {
                placed.slots[edition.numbers()].copy_from_slice(&slots);
            }
        }
        let is_missed = placed.missed.iter().all(Option::is_some);
        match item.period.is_some() && is_missed && placed.missed.contains(&Some(NotCounted::OtherPeriod)) {
            true => Err(Rejection::WrongPeriod),
            false => Ok(placed),
        }
    }

    /// Applies an item in each edition by itself, and notes what only one of them counted.
    fn take(&mut self, frames: &[Frame], placed: &Placed, item: &Increment, answered: usize) -> Outcome {
        let (now, mut missed) = (frames[0].as_of, placed.missed.clone());
        for (edition, missed) in missed.iter_mut().enumerate() {
            if missed.is_none() && !self.take_in(edition, frames, &placed.slots, item) {
                *missed = Some(NotCounted::OutOfRange);
            }
        }
        if missed.iter().any(Option::is_none) {
            if let Some(id) = &item.id {
                self.ids.insert((item.subject.clone(), id.clone()), now);
            }
            self.imports.has_samples |=
                (0..missed.len()).any(|edition| missed[edition].is_none() && is_sample(item.change_in(edition)));
            self.note_missed(now, &missed, item.retract);
        }
        // Of the two periods, the one that the item is in decides.
        let decides = if placed.missed[answered] == Some(NotCounted::OtherPeriod) { 1 - answered } else { answered };
        match missed[decides] {
            Some(NotCounted::OutOfRange) => REFUSED,
            Some(NotCounted::TooLate) if !item.retract => LATE,
            _ => COUNTED,
        }
    }

    /// Applies an item in the slots of one edition, or in none of them if one cannot hold the result.
    fn take_in(&mut self, edition: usize, frames: &[Frame], slots: &[Option<Timestamp>], item: &Increment) -> bool {
        let of_edition = self.board.editions()[edition].clone();
        let (change, first) = (item.change_in(edition), of_edition.numbers().start);
        let beyond = |amount: &Amount| amount.0.unsigned_abs() > EXACT_MAX.unsigned_abs();
        if of_edition.kind().is_sum() && matches!(change, Change::Amount(amount) if beyond(amount)) {
            return false;
        }
        let kept = of_edition.kept_slots().map(|_| first + 1);
        let total = self.total_after(first, kept, slots, &item.subject, change);
        let (now, mut lengths) = (frames[0].as_of, vec![0; self.tracks.len()]);
        let mut fit = true;
        let taken = of_edition.numbers().filter_map(|number| Some((number, slots[number]?)));
        let taken: Vec<(usize, Timestamp)> = taken.collect();
        for (number, slot) in taken.iter().copied() {
            let held = &mut self.tracks[number];
            let past = held.past.entry(item.subject.clone()).or_default();
            let change = match &total {
                Some(change) if number == first => change.clone(),
                _ => Some(change.clone()),
            };
            lengths[number] = past.len();
            let at = item.at.map_or(now, |at| at.min(now));
            past.extend(change.map(|change| Taken {
                slot,
                at,
                now,
                floor: frames[number].window.floor,
                change: of_edition.timed(&change, at, item.retract).unwrap_or(change),
                retract: item.retract,
                beside: kept.and_then(|kept| slots[kept]),
                merged: None,
            }));
            fit &= match held.track.is_from_first() {
                false => fits(&held.track, past, slot),
                true => Counter::fits(&held.track, past),
            };
        }
        for (number, slot) in taken {
            let held = &mut self.tracks[number];
            if fit {
                if !held.track.is_from_first() {
                    *held.events.entry(slot).or_default() += 1;
                }
            } else if let Some(past) = held.past.get_mut(&item.subject) {
                past.truncate(lengths[number]);
            }
        }
        fit
    }

    /// Returns the change of a total if a sample replaces a slot that is kept beside it: the total changes as much as
    /// the slot, and the newest value of all time is the sample, unless it belongs to a later slot: then the total has
    /// no change.
    fn total_after(
        &self,
        total: usize,
        kept: Option<usize>,
        slots: &[Option<Timestamp>],
        subject: &Subject,
        change: &Change,
    ) -> Option<Option<Change>> {
        let Change::Set { sum, count } = change else { return None };
        let (held, record, slot) = (&self.tracks[total], &self.tracks[kept?], slots[kept?]?);
        let total = aggregates(&held.track, held.past(subject), Timestamp::EPOCH).remove(&Timestamp::EPOCH);
        let before = aggregates(&record.track, record.past(subject), slot).remove(&slot);
        let numbers = |aggregate: Option<Aggregate>| match aggregate {
            Some(Aggregate::Sum(sum)) => (i128::from(sum.0), 0),
            Some(Aggregate::Mean { sum, count }) => (i128::from(sum.0), i128::from(count)),
            _ => (0, 0),
        };
        if held.track.kind() == Kind::Last {
            let is_later = newest(held.past(subject)).and_then(|taken| taken.beside).is_some_and(|of| of > slot);
            return Some((!is_later).then_some(Change::Set { sum: *sum, count: *count }));
        }
        let ((all, times), (had, earlier)) = (numbers(total), numbers(before));
        let within = |units: i128| i64::try_from(units.clamp(i64::MIN.into(), i64::MAX.into())).unwrap();
        let sum = Amount(within(all - had + i128::from(sum.0)));
        Some(Some(Change::Set { sum, count: within(times - earlier + i128::from(*count)) }))
    }

    /// Returns whether the id arrived less than a horizon ago.
    fn is_known(&self, now: Timestamp, subject: &Subject, id: &EventId) -> bool {
        let arrived = self.ids.get(&(subject.clone(), id.clone()));
        arrived.is_some_and(|arrived| now.millis() < arrived.millis() + self.board.dedupe_horizon())
    }
}

fn is_sample(change: &Change) -> bool {
    matches!(change, Change::Set { .. })
}

impl Held {
    /// Returns the slot that it belongs to. On a `from_first` board, its own time.
    fn slot_for(
        &self,
        frame: &Frame,
        max_skew: i64,
        change: &Change,
        at: Option<Timestamp>,
    ) -> Result<Timestamp, Rejection> {
        let now = frame.as_of;
        let at = at.unwrap_or(now);
        let calendar = self.track.calendar();
        let edition = self.track.edition();
        let definition = edition.definition();
        if is_sample(change) {
            let at = if definition.stamp == Stamp::End { at.plus_millis(-1) } else { at };
            return if at < frame.window.floor {
                Err(Rejection::TooLate)
            } else if at >= frame.window.end {
                Err(Rejection::TooEarly)
            } else {
                Ok(calendar.slot_of(at))
            };
        }
        let from_first = definition.mode == Mode::FromFirst;
        let is_late = match from_first {
            true => at.millis() <= now.millis() - definition.metric.window.approximate_millis(),
            false => at < frame.window.floor,
        };
        if is_late {
            Err(Rejection::TooLate)
        } else if at.millis() > now.millis() + max_skew {
            Err(Rejection::TooEarly)
        } else if from_first {
            Ok(at.min(now))
        } else {
            Ok(calendar.slot_of(at.min(now)))
        }
    }
}
