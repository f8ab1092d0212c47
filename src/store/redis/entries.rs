//! Calls of scripts with entries: what such a call says about one track, as `lua/entries.lua` reads it. `change.lua` has
//! the entries of writes, `merge.lua` those of imports, and `fill.lua` those that another track gives.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use redis::{Cmd, RedisWrite, ToRedisArgs};

use super::expiry;
use super::kinds::{Verb, VerbWord};
use super::part::Part;
use super::scripts::ScriptCall;
use crate::board::{Subject, Timestamp, Window};

/// On a ranked COUNT_DISTINCT board, the number of newest slots that every call names. They most likely contain the
/// values that are seen again, so that the script rarely reports missing slots.
const LIKELY: usize = 32;

/// The number of arguments of an entry.
const STRIDE: usize = 8;

/// The subjects of a call, each once, with its position from 1.
#[derive(Debug, Default)]
pub(super) struct NumberedSubjects<'a> {
    all: Vec<&'a Subject>,
    positions: HashMap<&'a str, usize>,
}

/// What the keys of a call say about one track, and the first of its arguments.
#[derive(Debug)]
pub(super) struct TrackEntries<'a> {
    part: &'a Part,
    subjects: &'a NumberedSubjects<'a>,
    /// The position of each slot, from 1.
    slots: BTreeMap<Timestamp, usize>,
    /// The keys after those of the board.
    keys: Vec<String>,
    first_subject_key: usize,
    pub first_bucket_key: usize,
    /// The start of the oldest slot that is kept.
    pub oldest: Timestamp,
    /// The current expiry period. Only boards that have keys of single subjects have periods.
    period: Option<i64>,
}

/// One entry, as it is sent.
#[derive(Debug)]
pub(super) struct SentEntry<'a> {
    /// `None` if the entry only looks.
    pub slot: Option<Timestamp>,
    pub subject: &'a Subject,
    pub verb: Verb<'a>,
    /// `None` for now.
    pub at: Option<Timestamp>,
    pub code: usize,
    /// Empty for none.
    pub id: &'a str,
}

/// Returns the slots to name in addition to those of entries.
pub(super) fn likely_slots(part: &Part, window: &Window) -> Vec<Timestamp> {
    let most = if part.track.kind().remembers_values() && part.track.is_ranked() { LIKELY } else { return Vec::new() };
    part.with_window(window.head, |slots| slots.starts.iter().rev().take(most).copied().collect())
}

impl<'a> FromIterator<&'a Subject> for NumberedSubjects<'a> {
    fn from_iter<I: IntoIterator<Item = &'a Subject>>(subjects: I) -> Self {
        let mut numbered = Self::default();
        for subject in subjects {
            numbered.positions.entry(subject.as_str()).or_insert_with(|| {
                numbered.all.push(subject);
                numbered.all.len()
            });
        }
        numbered
    }
}

impl<'a> TrackEntries<'a> {
    /// Names the slots with these starts, the keys of the subjects, and the buckets of ids with these numbers.
    pub fn new(
        part: &'a Part,
        (window, now): (&Window, Timestamp),
        starts: impl IntoIterator<Item = Timestamp>,
        subjects: &'a NumberedSubjects<'a>,
        buckets: impl IntoIterator<Item = i64>,
    ) -> Self {
        let (track, own) = (&part.track, &part.keys);
        let slots: BTreeMap<Timestamp, usize> =
            starts.into_iter().collect::<BTreeSet<_>>().into_iter().zip(1..).collect();
        let mut keys = Vec::new();
        if track.is_ranked() {
            keys.extend(slots.keys().map(|start| own.slot(*start)));
        }
        let key_after = |keys: &[String]| own.of_board().len() + keys.len() + 1;
        let first_subject_key = key_after(&keys);
        for subject in &subjects.all {
            if track.kind().remembers_values() {
                keys.extend([own.seen(subject), own.gone(subject)]);
            } else if !track.is_ranked() {
                keys.push(own.subject(subject));
            }
        }
        let first_bucket_key = key_after(&keys);
        keys.extend(buckets.into_iter().map(|number| own.dedupe(number)));
        let period = expiry::has_subject_keys(track).then(|| expiry::period(track, now));
        if let Some(period) = period {
            keys.extend([own.periods.clone(), own.written(period)]);
        }
        let oldest = part.kept(window).oldest;
        Self { part, subjects, slots, keys, first_subject_key, first_bucket_key, oldest, period }
    }

    /// Returns the number of all keys of the track.
    pub fn count_keys(&self) -> usize {
        self.part.keys.of_board().len() + self.keys.len()
    }

    /// Returns the number of arguments after those that every call has, if there are so many entries.
    pub fn count_lists(&self, entries: usize) -> usize {
        self.slots.len() + self.subjects.all.len() + STRIDE * entries
    }

    /// Adds all keys of the track to a command that is built directly.
    pub fn add_keys(&self, command: &mut Cmd) {
        command.arg(&self.part.keys.of_board()).arg(&self.keys);
    }

    /// Adds the keys after those of the board, and the arguments that `entries.lua` names.
    pub fn add_to(&self, call: &mut ScriptCall, entries: usize) {
        call.keys(&self.keys);
        for (name, number) in self.numbers(entries) {
            call.arg(name, number);
        }
        call.arg("period", self.period());
    }

    /// Returns the arguments that `entries.lua` names, except the last one.
    pub fn numbers(&self, entries: usize) -> [(&'static str, i64); 6] {
        [
            ("bound", self.part.track.slot_bound().0),
            ("slots", self.slots.len() as i64),
            ("subjects", self.subjects.all.len() as i64),
            ("entries", entries as i64),
            ("first_subject_key", self.first_subject_key as i64),
            ("oldest", self.oldest.millis()),
        ]
    }

    /// Returns the last argument that `entries.lua` names.
    pub fn period(&self) -> String {
        self.period.map_or_else(String::new, |period| period.to_string())
    }

    /// Returns the position of the slot with this start, or 0 if it is not named.
    pub fn position(&self, start: Timestamp) -> usize {
        self.slots.get(&start).copied().unwrap_or_default()
    }

    /// Adds the starts of the slots, and the subjects: the arguments before the first entry.
    pub fn add_lists(&self, arguments: &mut impl RedisWrite) {
        for start in self.slots.keys() {
            start.millis().write_redis_args(arguments);
        }
        for subject in &self.subjects.all {
            subject.as_str().write_redis_args(arguments);
        }
    }

    /// Adds the arguments of an entry.
    pub fn add(&self, entry: &SentEntry<'_>, arguments: &mut impl RedisWrite) {
        let SentEntry { slot, subject, verb: Verb { verb, a, b }, at, code, id } = entry;
        slot.map_or(0, |slot| self.position(slot)).write_redis_args(arguments);
        self.subjects.positions.get(subject.as_str()).copied().unwrap_or_default().write_redis_args(arguments);
        verb.write_redis_args(arguments);
        match a {
            VerbWord::Number(number) => number.write_redis_args(arguments),
            VerbWord::Bytes(bytes) => bytes.write_redis_args(arguments),
        }
        b.write_redis_args(arguments);
        match at {
            Some(at) => at.millis().write_redis_args(arguments),
            None => "".write_redis_args(arguments),
        }
        code.write_redis_args(arguments);
        id.write_redis_args(arguments);
    }
}
