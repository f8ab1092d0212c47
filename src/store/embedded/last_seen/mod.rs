//! The last-seen scheme of COUNT_DISTINCT: the time when each of a subject's values was last seen or retracted.
//!
//! A value from before the window's floor is *not live*: it counts as absent, and is removed little by little. A
//! retraction leaves a tombstone, so that the same event does not bring the value back if it arrives late.
//!
//! A subject owns its values' texts, so removing a subject with a million values only takes a pointer out. However many
//! values there are, setting or removing one moves no more than 5,000 entries of 8 to 28 bytes.
//!
//! Up to [`MAX_SCANNED`] values take 10 bytes each in addition to their text, in one allocation. If there are more,
//! each takes its text and 12 bytes, rounded up to a multiple of 4; 28 bytes in a ranking by time and 8 in an index,
//! both in arrays that are 0.72 to completely full; and the subject takes some hundred bytes. With texts of 10 bytes
//! the process grew by this much per value, including the box of the subject's values:
//!
//! | values of a subject | 1 | 3 | 10 | 48 | 49 | 100 | 1,000 | 10,000 | 1,000,000 |
//! |---|---|---|---|---|---|---|---|---|---|
//! | bytes per value | 88 | 40 | 33 | 29 | 89 | 89 to 93 | 70 to 82 | 66 to 71 | 65 to 76 |
//!
//! Where there are two numbers, the first one is for values seen once, in the order of time, and the second one for
//! values that are all seen again.

mod few;
mod many;
#[cfg(test)]
mod tests;
mod texts;

use self::few::FewValues;
use self::many::ManyValues;
use crate::store::sizing::allocated;

/// The largest number of values that are searched one by one.
const MAX_SCANNED: usize = 48;

/// The time when a value was last seen or retracted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct LastSeen {
    /// The time in milliseconds since the epoch.
    pub at: i64,
    /// Whether the value was retracted at that time. Otherwise it was seen.
    pub retracted: bool,
}

/// The times, in milliseconds, before which values have expired.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Floors {
    /// That of values seen: the floor of the window.
    pub seen: i64,
    /// That of tombstones: the same, or later on a board over all time.
    pub retracted: i64,
}

impl Floors {
    /// Returns the floor of values seen or of tombstones.
    pub(super) fn of(self, retracted: bool) -> i64 {
        if retracted { self.retracted } else { self.seen }
    }
}

/// A value and its time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SeenValue<'a> {
    /// The time in milliseconds since the epoch.
    pub at: i64,
    pub value: &'a str,
}

/// The values of a subject, with the time when each was last seen or retracted.
#[derive(Debug, Default)]
pub(super) struct LastSeenValues {
    values: Values,
    /// The newest time of a value that was dropped because there were too many.
    pub capped: Option<i64>,
}

#[derive(Debug)]
enum Values {
    Few(FewValues),
    Many(Box<ManyValues>),
}

impl Default for Values {
    fn default() -> Self {
        Values::Few(FewValues::default())
    }
}

/// Returns the estimated bytes of this number of values with texts of this length, without [`LastSeenValues`] itself.
pub(super) fn estimated_bytes(values: usize, length: usize) -> usize {
    if values <= MAX_SCANNED { few::estimated_bytes(values, length) } else { many::estimated_bytes(values, length) }
}

/// Encodes a time in eight bytes: twice the milliseconds, plus one if the value was retracted.
fn encode(last_seen: LastSeen) -> [u8; 8] {
    (last_seen.at * 2 + i64::from(last_seen.retracted)).to_le_bytes()
}

fn decode(bytes: [u8; 8]) -> LastSeen {
    let number = i64::from_le_bytes(bytes);
    LastSeen { at: number >> 1, retracted: number & 1 == 1 }
}

impl LastSeenValues {
    /// Returns the bytes that the values use, with the allocator's overhead. O(1).
    pub(super) fn memory_bytes(&self) -> usize {
        let values = match &self.values {
            Values::Few(few) => few.memory_bytes(),
            Values::Many(many) => many.memory_bytes(),
        };
        allocated(size_of::<Self>()) + values
    }

    /// Returns whether nothing is stored.
    pub(super) fn is_empty(&self) -> bool {
        self.capped.is_none() && self.len() == 0
    }

    /// Returns the number of values stored, live or not, including tombstones. O(1) if there are many.
    pub(super) fn len(&self) -> usize {
        match &self.values {
            Values::Few(few) => few.len(),
            Values::Many(many) => many.len(),
        }
    }

    /// Returns what is stored about a value, live or not. O(1) if there are many.
    pub(super) fn get(&self, value: &str) -> Option<LastSeen> {
        match &self.values {
            Values::Few(few) => few.get(value),
            Values::Many(many) => many.get(value),
        }
    }

    /// Sets the time of a value. O(log values).
    pub(super) fn set(&mut self, value: &str, last_seen: LastSeen) {
        match &mut self.values {
            Values::Few(few) => {
                few.set(value, last_seen);
                if few.len() > MAX_SCANNED {
                    let mut many = Box::<ManyValues>::default();
                    few.all().for_each(|(value, last_seen)| many.set(value, last_seen));
                    self.values = Values::Many(many);
                }
            }
            Values::Many(many) => many.set(value, last_seen),
        }
    }

    /// Removes a value. Returns whether it was stored. O(log values).
    pub(super) fn remove(&mut self, value: &str) -> bool {
        match &mut self.values {
            Values::Few(few) => few.remove(value),
            Values::Many(many) => {
                let known = many.remove(value);
                if many.len() < MAX_SCANNED / 2 {
                    self.values = Values::Few(many.to_few());
                }
                known
            }
        }
    }

    /// Removes up to `most` seen values and up to `most` tombstones from before their floors. Returns how many it
    /// removed. O(log values) for each.
    pub(super) fn remove_before(&mut self, floors: Floors, most: usize) -> usize {
        let mut removed = 0;
        for retracted in [false, true] {
            for _ in 0..most {
                let Some(value) = self.oldest(retracted).filter(|oldest| oldest.at < floors.of(retracted)) else {
                    break;
                };
                let value = value.value.to_owned();
                removed += usize::from(self.remove(&value));
            }
        }
        if self.capped.is_some_and(|at| at < floors.seen) {
            self.capped = None;
        }
        removed
    }

    /// Returns whether [`remove_before`](Self::remove_before) would find anything.
    pub(super) fn has_any_before(&self, floors: Floors) -> bool {
        let expired = |retracted| self.oldest(retracted).is_some_and(|oldest| oldest.at < floors.of(retracted));
        expired(false) || expired(true) || self.capped.is_some_and(|at| at < floors.seen)
    }

    /// Returns the value seen longest ago (of several, the one with the smallest bytes). With `retracted`, the same for
    /// tombstones.
    pub(super) fn oldest(&self, retracted: bool) -> Option<SeenValue<'_>> {
        match &self.values {
            Values::Few(few) => few.values(retracted).next(),
            Values::Many(many) => many.values(retracted).next(),
        }
    }

    /// Returns the number of values seen, or with `retracted` retracted, at `floor` or later. O(log values).
    pub(super) fn count_from(&self, retracted: bool, floor: i64) -> usize {
        match &self.values {
            Values::Few(few) => few.values(retracted).filter(|seen| seen.at >= floor).count(),
            Values::Many(many) => many.count_from(retracted, floor),
        }
    }

    /// Returns the number of values seen that are at this time and value, or newer in the order of
    /// [`newest`](Self::newest). O(log values).
    pub(super) fn count_from_place(&self, at: i64, value: &str) -> usize {
        match &self.values {
            Values::Few(few) => few.values(false).filter(|held| (held.at, held.value) >= (at, value)).count(),
            Values::Many(many) => many.count_from_place(at, value),
        }
    }

    /// Returns the values seen, newest first, without the first `skipped`. Values of the same time are ordered by
    /// bytes, the greatest first. O(log values) to start, then O(1) each.
    pub(super) fn newest(&self, skipped: usize) -> impl Iterator<Item = SeenValue<'_>> {
        let (few, many) = self.either();
        let few = few.map(|few| few.values(false).collect::<Vec<_>>()).unwrap_or_default();
        let many = many.map(|many| many.newest(skipped));
        few.into_iter().rev().skip(skipped).chain(many.into_iter().flatten())
    }

    /// Returns the values seen, or with `retracted` the values retracted, from this time and value on, oldest first.
    /// O(log values) to start, then O(1) each.
    ///
    /// A walk over all values in portions continues from the last value that it returned. It returns each value that
    /// does not change in the meantime once. A value that is set in the meantime may be returned again or not at all.
    pub(super) fn from<'a>(&'a self, retracted: bool, at: i64, value: &str) -> impl Iterator<Item = SeenValue<'a>> {
        let (few, many) = self.either();
        let before =
            few.map_or(0, |few| few.values(retracted).filter(|held| (held.at, held.value) < (at, value)).count());
        let few = few.map(|few| few.values(retracted).skip(before));
        let many = many.map(|many| many.from(retracted, at, value));
        few.into_iter().flatten().chain(many.into_iter().flatten())
    }

    /// Returns all values with their times: those seen, oldest first, then those retracted.
    pub(super) fn all(&self) -> impl Iterator<Item = (&str, LastSeen)> {
        let (few, many) = self.either();
        let of = |retracted| move |seen: SeenValue<'_>| LastSeen { at: seen.at, retracted };
        let of_many = move |retracted| {
            let values = many.into_iter().flat_map(move |many| many.values(retracted));
            values.map(move |seen| (seen.value, of(retracted)(seen)))
        };
        few.into_iter().flat_map(FewValues::all).chain(of_many(false)).chain(of_many(true))
    }

    fn either(&self) -> (Option<&FewValues>, Option<&ManyValues>) {
        match &self.values {
            Values::Few(few) => (Some(few), None),
            Values::Many(many) => (None, Some(many)),
        }
    }
}
