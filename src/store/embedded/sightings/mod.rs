//! The last-seen scheme of COUNT_DISTINCT: of each of a subject's values, when it was last seen, or taken back.
//!
//! What lies before the window's floor is *not live*: it counts as absent, and is forgotten bit by bit. A tombstone
//! stands for a retraction, so that the same event arriving late does not bring the value back.
//!
//! A subject owns its values' texts, so removing one with a million values is taking a pointer out. However many there
//! are, setting or forgetting a value moves no more than 5,000 entries of 8 to 28 bytes.
//!
//! Up to [`FEW`] values take 10 bytes each beside their text, in one allocation. More take their text and 12 bytes,
//! rounded up to 4; 28 bytes in a ranking by time, and 8 in an index, each of these in places of which 0.72 to all are
//! used; and some hundred bytes for the subject. With texts of 10 bytes the process grew by this much a value, the
//! box of the subject's sightings included:
//!
//! | values of a subject | 1 | 3 | 10 | 48 | 49 | 100 | 1,000 | 10,000 | 1,000,000 |
//! |---|---|---|---|---|---|---|---|---|---|
//! | bytes a value | 88 | 40 | 33 | 29 | 89 | 89 to 93 | 70 to 82 | 66 to 71 | 65 to 76 |
//!
//! The first of two numbers is with values seen once, in the order of time; the second with each seen again.

mod few;
mod many;
#[cfg(test)]
mod tests;
mod texts;

use self::few::Few;
use self::many::Many;

/// The most values that are looked through one by one.
const FEW: usize = 48;

/// What is known of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Sighting {
    /// Milliseconds since the epoch.
    pub at: i64,
    /// It was taken back then; else it was seen.
    pub gone: bool,
}

/// A value and its time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Moment<'a> {
    /// Milliseconds since the epoch.
    pub at: i64,
    pub value: &'a str,
}

/// What is known of a subject's values.
#[derive(Debug, Default)]
pub(super) struct Sightings {
    values: Values,
    /// The newest time of a value that was dropped because there were too many.
    pub capped: Option<i64>,
}

#[derive(Debug)]
enum Values {
    Few(Few),
    Many(Box<Many>),
}

impl Default for Values {
    fn default() -> Self {
        Values::Few(Few::default())
    }
}

/// A sighting in eight bytes: its time, doubled, and one if the value is gone.
fn encode(sighting: Sighting) -> [u8; 8] {
    (sighting.at * 2 + i64::from(sighting.gone)).to_le_bytes()
}

fn decode(bytes: [u8; 8]) -> Sighting {
    let number = i64::from_le_bytes(bytes);
    Sighting { at: number >> 1, gone: number & 1 == 1 }
}

impl Sightings {
    /// Whether nothing is known.
    pub(super) fn is_empty(&self) -> bool {
        self.capped.is_none() && self.len() == 0
    }

    /// How many values are known of, live or not, tombstones included. O(1), if there are many.
    pub(super) fn len(&self) -> usize {
        match &self.values {
            Values::Few(few) => few.len(),
            Values::Many(many) => many.len(),
        }
    }

    /// What is known of a value, live or not. O(1), if there are many.
    pub(super) fn get(&self, value: &str) -> Option<Sighting> {
        match &self.values {
            Values::Few(few) => few.get(value),
            Values::Many(many) => many.get(value),
        }
    }

    /// Sets what is known of a value. O(log values).
    pub(super) fn set(&mut self, value: &str, sighting: Sighting) {
        match &mut self.values {
            Values::Few(few) => {
                few.set(value, sighting);
                if few.len() > FEW {
                    let mut many = Box::<Many>::default();
                    few.all().for_each(|(value, sighting)| many.set(value, sighting));
                    self.values = Values::Many(many);
                }
            }
            Values::Many(many) => many.set(value, sighting),
        }
    }

    /// Forgets a value; answers whether it was known. O(log values).
    pub(super) fn forget(&mut self, value: &str) -> bool {
        match &mut self.values {
            Values::Few(few) => few.forget(value),
            Values::Many(many) => {
                let known = many.forget(value);
                if many.len() < FEW / 2 {
                    self.values = Values::Few(many.to_few());
                }
                known
            }
        }
    }

    /// Forgets up to `most` each of the values seen and gone before `floor`; answers how many it forgot. O(log values)
    /// for each.
    pub(super) fn forget_before(&mut self, floor: i64, most: usize) -> usize {
        let mut forgotten = 0;
        for gone in [false, true] {
            for _ in 0..most {
                let Some(value) = self.oldest(gone).filter(|oldest| oldest.at < floor) else { break };
                let value = value.value.to_owned();
                forgotten += usize::from(self.forget(&value));
            }
        }
        if self.capped.is_some_and(|at| at < floor) {
            self.capped = None;
        }
        forgotten
    }

    /// Whether [`forget_before`](Self::forget_before) would find anything.
    pub(super) fn reaches_before(&self, floor: i64) -> bool {
        let oldest = [false, true].into_iter().filter_map(|gone| self.oldest(gone)).map(|moment| moment.at);
        oldest.chain(self.capped).any(|at| at < floor)
    }

    /// The value seen longest ago; of several the smallest bytes. With `gone` the same of the tombstones.
    pub(super) fn oldest(&self, gone: bool) -> Option<Moment<'_>> {
        match &self.values {
            Values::Few(few) => few.moments(gone).next(),
            Values::Many(many) => many.moments(gone).next(),
        }
    }

    /// How many values were seen, or with `gone` taken back, at `floor` or later. O(log values).
    pub(super) fn count_from(&self, gone: bool, floor: i64) -> usize {
        match &self.values {
            Values::Few(few) => few.moments(gone).filter(|moment| moment.at >= floor).count(),
            Values::Many(many) => many.count_from(gone, floor),
        }
    }

    /// The values seen, newest first, of the same time the greatest bytes first; all but the first `skipped`.
    /// O(log values) to start, then O(1) each.
    pub(super) fn newest(&self, skipped: usize) -> impl Iterator<Item = Moment<'_>> {
        let (few, many) = self.either();
        let few = few.map(|few| few.moments(false).collect::<Vec<_>>()).unwrap_or_default();
        let many = many.map(|many| many.newest(skipped));
        few.into_iter().rev().skip(skipped).chain(many.into_iter().flatten())
    }

    /// The values seen, or with `gone` taken back, from this time and value on, oldest first. O(log values) to start,
    /// then O(1) each.
    ///
    /// A walk over all values in portions goes on from the last one it met. It meets each value that does not change
    /// meanwhile once; one that is set meanwhile may be met again or not at all.
    pub(super) fn from<'a>(&'a self, gone: bool, at: i64, value: &str) -> impl Iterator<Item = Moment<'a>> {
        let (few, many) = self.either();
        let before = few.map_or(0, |few| few.moments(gone).filter(|held| (held.at, held.value) < (at, value)).count());
        let few = few.map(|few| few.moments(gone).skip(before));
        let many = many.map(|many| many.from(gone, at, value));
        few.into_iter().flatten().chain(many.into_iter().flatten())
    }

    /// All values with what is known of them: those seen, oldest first, then those taken back.
    pub(super) fn all(&self) -> impl Iterator<Item = (&str, Sighting)> {
        let (few, many) = self.either();
        let of = |gone| move |moment: Moment<'_>| Sighting { at: moment.at, gone };
        let of_many = move |gone| {
            let moments = many.into_iter().flat_map(move |many| many.moments(gone));
            moments.map(move |moment| (moment.value, of(gone)(moment)))
        };
        few.into_iter().flat_map(Few::all).chain(of_many(false)).chain(of_many(true))
    }

    fn either(&self) -> (Option<&Few>, Option<&Many>) {
        match &self.values {
            Values::Few(few) => (Some(few), None),
            Values::Many(many) => (None, Some(many)),
        }
    }
}
