//! The position of an audit, and its results so far.

use serde::{Deserialize, Serialize};

use crate::board::Track;
use crate::store::redis::kinds;
use crate::store::redis::stretches::Stretch;
use crate::store::{AuditCursor, AuditStep};

/// The position of an audit, and its results so far. Serialized as the cursor.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(in crate::store::redis) struct AuditProgress {
    pub(super) place: AuditPlace,
    /// The subjects that were found and not yet compared.
    pub(super) pending: Vec<String>,
    /// For slots: the first of the slots in which the pending subjects were found.
    pub(super) since: Option<i64>,
    /// For slots: the pending subjects have no data in the slots from this start to `since`. The slots before this
    /// start are still to be checked. `None` after they were.
    pub(super) below: Option<i64>,
    /// For slots: subjects that were found in other slots at the same time, and wait until the pending ones are compared.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) waiting: Vec<Found>,
    pub checked: u64,
    pub differences: u64,
    pub repaired: u64,
    pub missing_slots: u64,
}

/// Subjects that were found in slots.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Found {
    pub subjects: Vec<String>,
    /// The first of these slots.
    pub since: i64,
}

/// The place where subjects are looked for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum AuditPlace {
    /// All subjects with a total, on boards that have totals.
    Totals { cursor: String },
    /// Ranked subjects without a total. With keys, those of the ranking of a key and of the keys after it.
    Ranking {
        cursor: String,
        #[serde(default, skip_serializing_if = "String::is_empty")]
        key: String,
    },
    /// Hidden subjects with a score and without a total.
    Hidden { cursor: String },
    /// Subjects that are neither in the ranking nor in the totals, in these stretches of slots.
    Slots { left: Vec<Stretch> },
    /// Nowhere: everything was looked through.
    End,
}

impl AuditProgress {
    /// Returns the position at which an audit of the board begins.
    pub fn start(track: &Track) -> Self {
        let cursor = "0".to_owned();
        let place = match track.is_ranked() {
            true if kinds::of(track.kind()).has_totals() => AuditPlace::Totals { cursor },
            true => AuditPlace::Ranking { cursor, key: String::new() },
            // Without a ranking there is nothing to compare slots with.
            false => AuditPlace::End,
        };
        let (checked, differences, repaired, missing_slots) = (0, 0, 0, 0);
        let (pending, since, below, waiting) = (Vec::new(), None, None, Vec::new());
        Self { place, pending, since, below, waiting, checked, differences, repaired, missing_slots }
    }

    pub(super) fn parse(cursor: &AuditCursor, track: &Track) -> Option<Self> {
        if cursor.0.is_empty() {
            return Some(Self::start(track));
        }
        serde_json::from_str(&cursor.0).ok().filter(Self::is_sound)
    }

    /// Returns whether the cursors are numbers. The server would report others as an error of the script.
    fn is_sound(&self) -> bool {
        match &self.place {
            AuditPlace::Totals { cursor } | AuditPlace::Ranking { cursor, .. } | AuditPlace::Hidden { cursor } => {
                !cursor.is_empty() && cursor.bytes().all(|byte| byte.is_ascii_digit())
            }
            AuditPlace::Slots { left } => left.iter().all(Stretch::is_sound),
            AuditPlace::End => true,
        }
    }

    pub(super) fn print(&self) -> AuditCursor {
        // Serialization cannot fail: there are only texts and numbers.
        AuditCursor(serde_json::to_string(self).unwrap_or_default())
    }

    pub fn is_done(&self) -> bool {
        self.place == AuditPlace::End && self.pending.is_empty() && self.waiting.is_empty()
    }

    /// Adds subjects that were found in slots. The first ones are compared next, the others wait.
    pub(super) fn add_found(&mut self, found: Found) {
        match self.pending.is_empty() {
            true => {
                self.pending = found.subjects;
                self.since = Some(found.since);
                self.below = self.since.filter(|_| !self.pending.is_empty());
            }
            false => self.waiting.push(found),
        }
    }

    /// Adds the results of a step.
    pub(super) fn count(&mut self, step: &AuditStep) {
        self.checked += step.checked;
        self.differences += step.differences.len() as u64;
        self.repaired += step.repaired;
        self.missing_slots += step.missing_slots;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::board::{Board, BoardName, Definition, Generation};

    fn board(metric: &str, ranked: bool) -> Board {
        let definition = Definition::new(metric.parse().unwrap(), "1h".parse().unwrap());
        let name = BoardName::parse("b").unwrap();
        Board::new(name, Generation(1), Definition { ranked, ..definition }).unwrap()
    }

    #[test]
    fn cursors_round_trip_and_invalid_ones_are_refused() {
        let sum = board("SUM(3h, e, v, s)", true);
        let start = |board: &Board| {
            AuditProgress::parse(&AuditCursor::default(), board.edition().main()).map(|progress| progress.place)
        };
        let cursor = "0".to_owned();
        assert_eq!(start(&sum), Some(AuditPlace::Ranking { cursor: cursor.clone(), key: String::new() }));
        assert_eq!(start(&board("AVG(3h, e, v, s)", true)), Some(AuditPlace::Totals { cursor }));
        assert_eq!(start(&board("AVG(3h, e, v, s)", false)), Some(AuditPlace::End));
        for place in [
            AuditPlace::Totals { cursor: "184467".to_owned() },
            AuditPlace::Ranking { cursor: "7".to_owned(), key: "a{\"b".to_owned() },
            AuditPlace::Slots { left: vec![Stretch::default()] },
            AuditPlace::End,
        ] {
            let pending = vec!["a".to_owned(), "\"{ä}".to_owned()];
            let progress = AuditProgress {
                place,
                pending,
                since: Some(5),
                below: Some(3),
                ..AuditProgress::start(sum.edition().main())
            };
            assert_eq!(AuditProgress::parse(&progress.print(), sum.edition().main()), Some(progress));
        }
        let bad_place = AuditProgress {
            place: AuditPlace::Totals { cursor: "x".to_owned() },
            ..AuditProgress::start(sum.edition().main())
        };
        for bad in ["x", "r:0", "{}", "[]", &bad_place.print().0] {
            assert_eq!(AuditProgress::parse(&AuditCursor(bad.to_owned()), sum.edition().main()), None, "{bad}");
        }
    }
}
