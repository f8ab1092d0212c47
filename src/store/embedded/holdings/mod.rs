//! All that a board holds of its subjects, and how it changes: slices, scores, places and lists together.
//!
//! - the *slab*: a record for each subject with all its slices, and its score;
//! - the *slots*: for each slot, the subjects that have a slice in it, so that retiring knows whom to visit;
//! - the *ranking*: the scores in order;
//! - the *queue*: records that changed since they were last folded into the database; of COUNT_DISTINCT the values
//!   are entries of their own, so that a subject with a million of them is not written whole: *sighted*.
//!
//! Kept between calls: a record's key is what its slices say together; it stands in the ranking just if that is not
//! absence; a slot's list names each subject with a slice in it once, at the place the slice says. An unranked board
//! has neither lists nor ranking, and its records have no key.

mod additive;
mod counters;
mod distinct;
mod expiry;
mod extremes;
mod means;
mod restoring;
mod sketches;

use std::collections::{BTreeMap, HashSet, VecDeque};
use std::sync::Arc;

use super::extra::{self, Extra};
use super::ranking::{Entry, Ranking};
use super::record::{Record, Slice};
use super::rule::Rule;
use super::slab::Slab;
use crate::board::{Amount, Kind, Tally, Timestamp, Value};

pub(super) use self::counters::Counter;

/// All that a board holds. Taken away as a whole when every slot has expired.
#[derive(Debug)]
pub(super) struct Holdings {
    pub rule: Rule,
    pub slab: Slab,
    pub ranking: Ranking,
    /// By the slot's start in milliseconds: whoever has a slice in it.
    pub slots: BTreeMap<i64, Vec<u32>>,
    /// Changed since last folded. Each id once: see [`Record::queued`].
    pub queue: VecDeque<u32>,
    /// Subject and value, changed since last folded.
    pub sighted: HashSet<Sighted, rapidhash::fast::RandomState>,
    /// Unranked boards: slots before this, in milliseconds, are dropped as writes pass by.
    pub oldest_kept: i64,
}

/// A subject and a value of it, by their texts.
pub(super) type Sighted = (Arc<str>, Arc<str>);

/// The (slot, subject) would pass the bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct OutOfRange;

/// What removing a subject took away.
#[derive(Debug, Default)]
pub(super) struct Removed {
    /// Its slices, oldest first.
    pub slices: Vec<Slice>,
    /// There was anything at all.
    pub anything: bool,
}

impl Holdings {
    pub(super) fn new(rule: Rule) -> Self {
        Self {
            rule,
            slab: Slab::new(rule),
            ranking: Ranking::default(),
            slots: BTreeMap::new(),
            queue: VecDeque::new(),
            sighted: HashSet::default(),
            oldest_kept: i64::MIN,
        }
    }

    /// The record of a subject with its id.
    pub(super) fn record(&self, subject: &str) -> Option<(u32, &Record)> {
        let id = self.slab.id(subject)?;
        Some((id, self.slab.get(id)?))
    }

    /// The key of a subject's score; that of absence if it is unknown.
    pub(super) fn key_of(&self, subject: &str) -> i64 {
        self.record(subject).map_or(self.rule.absent(), |(_, record)| record.key)
    }

    /// The ranking's entry of a subject, if it is ranked.
    pub(super) fn entry_of(&self, subject: &str) -> Option<Entry> {
        let (id, record) = self.record(subject)?;
        (record.key != self.rule.absent()).then(|| Entry::new(record.key, &record.text, id))
    }

    /// What the slices of the slots from `from` up to `through` say, oldest first. O(slots found).
    pub(super) fn tallies(&self, subject: &str, from: i64, through: i64) -> Vec<(Timestamp, Tally)> {
        let Some((id, record)) = self.record(subject) else { return Vec::new() };
        let extra = self.slab.extra(id);
        let first = record.first_from(from);
        let slices = record.slices[first..].iter().zip(first..).take_while(|(slice, _)| slice.slot <= through);
        let tally = |(slice, at): (&Slice, usize)| {
            (Timestamp::from_millis(slice.slot), extra::tally(self.rule.kind, slice, at, extra))
        };
        slices.map(tally).collect()
    }

    /// What a subject's slices from `from` on say together: as [`Kind::value`], without copying any. O(slots).
    pub(super) fn value_from(&self, subject: &str, from: i64) -> Option<Value> {
        let Some((id, record)) = self.record(subject) else { return self.rule.kind.absent() };
        self.said(id, record, record.first_from(from))
    }

    /// What the slices from this index on say together.
    fn said(&self, id: u32, record: &Record, first: usize) -> Option<Value> {
        let slices = &record.slices[first..];
        let sum = || slices.iter().map(|slice| slice.amount).sum::<i64>();
        let exact = |units| Some(Value::Exact(Amount(units)));
        match (self.rule.kind, self.slab.extra(id)) {
            (Kind::Min | Kind::Max, _) => {
                let amounts = slices.iter().map(|slice| slice.amount);
                amounts.reduce(|a, b| self.rule.kind.better(a, b)).and_then(exact)
            }
            (Kind::Mean, Some(Extra::Means(means))) => {
                let count: i64 = means.counts[first..].iter().sum();
                Value::mean(sum(), count).filter(|_| count >= self.rule.min_samples)
            }
            (Kind::Sketch, Some(Extra::Sketches(sketches))) => {
                exact(extra::merged(&sketches.by_slice[first..]).estimate())
            }
            _ => exact(sum()),
        }
    }

    /// The key that a record's slices give, all looked at anew: what audits compare with.
    pub(super) fn computed_key(&self, id: u32) -> i64 {
        match self.slab.get(id) {
            Some(record) if self.rule.ranked => self.rule.key(self.said(id, record, 0)),
            _ => self.rule.absent(),
        }
    }

    /// Takes a subject out of every slot and the ranking. O(slots), and O(values) where values are remembered.
    pub(super) fn remove(&mut self, subject: &str) -> Removed {
        let Some(id) = self.slab.id(subject) else { return Removed::default() };
        let anything = !self.slab.is_empty(id);
        let Some((record, extra)) = self.slab.both_mut(id) else { return Removed::default() };
        let slices = std::mem::take(&mut record.slices);
        if let Some(extra) = extra {
            if let Extra::Sightings(sightings) = extra {
                let values = sightings.all().map(|(value, _)| (record.text.clone(), value.clone()));
                self.sighted.extend(values);
            }
            if let Some(empty) = Extra::of(self.rule.kind) {
                *extra = empty;
            }
        }
        if self.rule.ranked {
            slices.iter().for_each(|slice| self.unlist(*slice));
        }
        self.rescore(id, self.rule.absent());
        if anything {
            self.enqueue(id);
        }
        Removed { slices, anything }
    }

    /// Takes an expired slice out of the score. Answers whether that took the subject out of the ranking.
    pub(super) fn retire(&mut self, id: u32, slot: i64) -> bool {
        let key = self.slab.get(id).map_or(self.rule.absent(), |record| record.key);
        let Some(amount) = self.cut(id, slot) else { return false };
        let now = match self.rule.kind {
            Kind::Sum | Kind::Distinct => key - amount,
            // Where another slot has the best, that is still the best.
            Kind::Min | Kind::Max if amount != key => key,
            // 2,000 numbers side by side take a microsecond to look through.
            Kind::Min | Kind::Max => self.computed_key(id),
            Kind::Mean => self.mean_key(id),
            Kind::Sketch => self.merged_key(id),
        };
        self.rescore(id, now);
        key != self.rule.absent() && now == self.rule.absent()
    }

    /// Notes that a record is to be folded.
    pub(super) fn enqueue(&mut self, id: u32) {
        if let Some(record) = self.slab.get_mut(id)
            && !record.queued
        {
            record.queued = true;
            self.queue.push_back(id);
        }
    }

    /// Sets the number of a slice, made if there is none; answers what it was. The score is the caller's to set.
    fn put(&mut self, id: u32, slot: i64, amount: i64) -> Option<i64> {
        let record = self.slab.get_mut(id)?;
        match record.find(slot) {
            Ok(at) => Some(std::mem::replace(&mut record.slices[at].amount, amount)),
            Err(_) => {
                let mut place = 0;
                if self.rule.ranked {
                    let list = self.slots.entry(slot).or_default();
                    // Ids are u32 and stand in a list once, so places fit.
                    place = list.len() as u32;
                    list.push(id);
                }
                self.open(id, Slice { slot, amount, place });
                if !self.rule.ranked {
                    self.drop_before(id, self.oldest_kept);
                }
                None
            }
        }
    }

    /// Makes a slice that is not there yet.
    fn open(&mut self, id: u32, slice: Slice) {
        let Some((record, extra)) = self.slab.both_mut(id) else { return };
        let Err(at) = record.find(slice.slot) else { return };
        if record.slices.capacity() == 0 {
            // Most subjects of most boards have one slice; the usual four would be mostly air.
            record.slices.reserve_exact(1);
        }
        record.slices.insert(at, slice);
        if let Some(extra) = extra {
            extra.opened(at);
        }
    }

    /// Takes a slice away; answers the number it held. The score is the caller's to set.
    fn cut(&mut self, id: u32, slot: i64) -> Option<i64> {
        let (record, extra) = self.slab.both_mut(id)?;
        let at = record.find(slot).ok()?;
        let slice = record.slices.remove(at);
        if let Some(extra) = extra {
            extra.closed(at, slice.amount);
        }
        if self.rule.ranked {
            self.unlist(slice);
        }
        Some(slice.amount)
    }

    /// Takes a slice's subject off its slot's list; the last of the list moves into its place.
    fn unlist(&mut self, slice: Slice) {
        let Some(list) = self.slots.get_mut(&slice.slot) else { return };
        let place = slice.place as usize;
        list.swap_remove(place);
        match list.get(place) {
            Some(&moved) => {
                if let Some(record) = self.slab.get_mut(moved)
                    && let Ok(at) = record.find(slice.slot)
                {
                    record.slices[at].place = slice.place;
                }
            }
            None if list.is_empty() => {
                self.slots.remove(&slice.slot);
            }
            None => {}
        }
    }

    /// Sets a subject's key and its place in the ranking. O(log n).
    fn rescore(&mut self, id: u32, key: i64) {
        let absent = self.rule.absent();
        let Some(record) = self.slab.get_mut(id).filter(|_| self.rule.ranked) else { return };
        let old = std::mem::replace(&mut record.key, key);
        let old = Entry::new(old, &record.text, id);
        let new = old.with_score(key);
        match (old.score == absent, key == absent) {
            (true, true) => {}
            (true, false) => self.ranking.insert(new, &self.slab),
            (false, true) => {
                self.ranking.remove(old, &self.slab);
            }
            (false, false) if old.score == key => {}
            (false, false) => {
                self.ranking.replace(old, new, &self.slab);
            }
        }
    }
}
