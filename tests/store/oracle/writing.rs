//! The outcome of each item of a batch: the rules of writing, implemented without a plan.

use rolltop::board::{Aggregate, Amount, Change, EXACT_MAX, EventId, Frame, Kind, Mode, Stamp, Timestamp};
use rolltop::store::{Batch, Increment, Outcome, Rejection, Result};

use super::Held;
use super::history::{Counter, Taken, aggregates, fits, newest};

const COUNTED: Outcome = Outcome::Counted { score: None };
const DUPLICATE: Outcome = Outcome::Duplicate { score: None };
const REFUSED: Outcome = Outcome::Rejected(Rejection::OutOfRange);

/// The slot of an item in each window, or `None` where it is too late.
type Slots = Vec<Option<Timestamp>>;

impl Held {
    /// Adds a batch. `frames` are those of all windows.
    pub fn add(&mut self, frames: &[Frame], max_skew: i64, batch: &Batch) -> Vec<Outcome> {
        let mut outcomes = vec![None; batch.increments.len()];
        for (index, first) in batch.increments.iter().enumerate() {
            if outcomes[index].is_some() {
                continue; // added up with an earlier item
            }
            let slots = match self.slots_for(frames, max_skew, first) {
                Ok(slots) => slots,
                // The event that it reverses has left the windows, so there is nothing to undo.
                Err(Rejection::TooLate) if first.retract => {
                    let is_known = first.id.as_ref().is_some_and(|id| self.is_known(frames, first, id));
                    outcomes[index] = Some(if is_known { DUPLICATE } else { COUNTED });
                    continue;
                }
                Err(rejection) => {
                    outcomes[index] = Some(Outcome::Rejected(rejection));
                    continue;
                }
            };
            let is_known = first.id.as_ref().is_some_and(|id| self.is_known(frames, first, id));
            if self.imports.is_open() && matches!(first.change, Change::Set { .. }) && !is_known {
                outcomes[index] = Some(Outcome::Rejected(Rejection::ImportOpen));
                continue;
            }
            if let Some(id) = &first.id {
                outcomes[index] = Some(self.take_with_id(frames, &slots, first, id));
                continue;
            }
            for index in self.next_together(frames, max_skew, &batch.increments, index, &slots) {
                let is_counted = self.take(frames, &slots, &batch.increments[index]);
                outcomes[index] = Some(if is_counted { COUNTED } else { REFUSED });
            }
        }
        let mut outcomes: Vec<Outcome> = outcomes.into_iter().flatten().collect();
        self.imports.has_samples |= outcomes.iter().zip(&batch.increments).any(|(outcome, item)| {
            matches!(outcome, Outcome::Counted { .. }) && matches!(item.change, Change::Set { .. })
        });
        if batch.return_scores {
            for (outcome, item) in outcomes.iter_mut().zip(&batch.increments) {
                if let Outcome::Counted { score } | Outcome::Duplicate { score } = outcome {
                    *score = self.score(&frames[0], &item.subject);
                }
            }
        }
        outcomes
    }

    /// Returns the items that take effect next, one by one: this one and, on a board with several windows, further amounts
    /// without ids of the subject and the same slots, up to an item with an id or a sample of them.
    fn next_together(
        &self,
        frames: &[Frame],
        max_skew: i64,
        items: &[Increment],
        index: usize,
        slots: &Slots,
    ) -> Vec<usize> {
        let adds_up = |item: &Increment| matches!(item.change, Change::Amount(_));
        let mut together = vec![index];
        if self.further.is_empty() || self.track.kind() != Kind::Sum || !adds_up(&items[index]) {
            return together;
        }
        for (later, item) in items.iter().enumerate().skip(index + 1) {
            let is_other = item.subject != items[index].subject;
            if is_other || self.slots_for(frames, max_skew, item).as_ref() != Ok(slots) {
                continue;
            }
            if !adds_up(item) || item.id.is_some() {
                break;
            }
            together.push(later);
        }
        together
    }

    /// Returns the slots of an item, or the reason why no window accepts it.
    fn slots_for(&self, frames: &[Frame], max_skew: i64, item: &Increment) -> Result<Slots, Rejection> {
        let mut slots = vec![];
        for (held, frame) in std::iter::once(self).chain(&self.further).zip(frames) {
            slots.push(match held.slot_for(frame, max_skew, item) {
                Ok(slot) => Some(slot),
                Err(Rejection::TooLate) => None,
                Err(rejection) => return Err(rejection),
            });
        }
        let replaces = matches!(item.change, Change::Set { .. });
        let is_taken = if replaces { slots.iter().all(Option::is_some) } else { slots.iter().any(Option::is_some) };
        if is_taken { Ok(slots) } else { Err(Rejection::TooLate) }
    }

    /// Returns the slot that it belongs to. On a `from_first` board, its own time.
    fn slot_for(&self, frame: &Frame, max_skew: i64, item: &Increment) -> Result<Timestamp, Rejection> {
        let now = frame.as_of;
        let at = item.at.unwrap_or(now);
        let calendar = self.track.calendar();
        let definition = self.track.board().definition();
        if matches!(item.change, Change::Set { .. }) {
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

    /// Applies an item in its slots, or in none of them if one cannot hold the result.
    fn take(&mut self, frames: &[Frame], slots: &Slots, item: &Increment) -> bool {
        let beyond = |amount: Amount| amount.0.unsigned_abs() > EXACT_MAX.unsigned_abs();
        if self.track.kind() == Kind::Sum && matches!(item.change, Change::Amount(amount) if beyond(amount)) {
            return false;
        }
        let total = self.total_after(slots, item);
        let mut lengths = vec![0; frames.len()];
        let mut fit = true;
        let taken = |number: usize| slots[number].map(|slot| (slot, frames[number]));
        for (number, (slot, frame)) in (0..frames.len()).filter_map(|number| Some((number, taken(number)?))) {
            let held = self.window(number);
            let past = held.past.entry(item.subject.clone()).or_default();
            let change = match &total {
                Some(change) if number == 0 => change.clone(),
                _ => Some(item.change.clone()),
            };
            lengths[number] = past.len();
            past.extend(change.map(|change| Taken {
                slot,
                at: item.at.map_or(frame.as_of, |at| at.min(frame.as_of)),
                now: frame.as_of,
                floor: frame.window.floor,
                change,
                retract: item.retract,
                beside: slots.get(1).copied().flatten(),
                merged: None,
            }));
            fit &= match held.track.board().definition().mode {
                Mode::Sliding => fits(&held.track, past, slot),
                Mode::FromFirst => Counter::fits(&held.track, past),
            };
        }
        for (number, (slot, _)) in (0..frames.len()).filter_map(|number| Some((number, taken(number)?))) {
            let held = self.window(number);
            if fit {
                if held.track.board().definition().mode == Mode::Sliding {
                    *held.events.entry(slot).or_default() += 1;
                }
            } else if let Some(past) = held.past.get_mut(&item.subject) {
                past.truncate(lengths[number]);
            }
        }
        fit
    }

    /// Returns the change of a total if a sample replaces a slot that is kept beside it: the total changes as much as the
    /// slot, and the newest value of all time is the sample, unless it belongs to a later slot: then the total has no change.
    fn total_after(&self, slots: &Slots, item: &Increment) -> Option<Option<Change>> {
        let Increment { subject, change: Change::Set { sum, count }, .. } = item else { return None };
        self.track.board().edition().kept_slots()?;
        let (record, slot) = (&self.further[0], slots[1]?);
        let total = aggregates(&self.track, self.past(subject), Timestamp::EPOCH).remove(&Timestamp::EPOCH);
        let before = aggregates(&record.track, record.past(subject), slot).remove(&slot);
        let numbers = |aggregate: Option<Aggregate>| match aggregate {
            Some(Aggregate::Sum(sum)) => (i128::from(sum.0), 0),
            Some(Aggregate::Mean { sum, count }) => (i128::from(sum.0), i128::from(count)),
            _ => (0, 0),
        };
        if self.track.kind() == Kind::Last {
            let is_later = newest(self.past(subject)).and_then(|taken| taken.beside).is_some_and(|of| of > slot);
            return Some((!is_later).then_some(Change::Set { sum: *sum, count: *count }));
        }
        let ((all, times), (had, earlier)) = (numbers(total), numbers(before));
        let within = |units: i128| i64::try_from(units.clamp(i64::MIN.into(), i64::MAX.into())).unwrap();
        let sum = Amount(within(all - had + i128::from(sum.0)));
        Some(Some(Change::Set { sum, count: within(times - earlier + i128::from(*count)) }))
    }

    fn take_with_id(&mut self, frames: &[Frame], slots: &Slots, item: &Increment, id: &EventId) -> Outcome {
        if self.is_known(frames, item, id) {
            return DUPLICATE;
        }
        if !self.take(frames, slots, item) {
            return REFUSED;
        }
        self.ids.insert((item.subject.clone(), id.clone()), frames[0].as_of);
        COUNTED
    }

    /// Returns whether the id arrived less than a horizon ago.
    fn is_known(&self, frames: &[Frame], item: &Increment, id: &EventId) -> bool {
        let arrived = self.ids.get(&(item.subject.clone(), id.clone()));
        arrived.is_some_and(|arrived| frames[0].as_of.millis() < arrived.millis() + self.track.board().dedupe_horizon())
    }
}
