//! Which keys of a definition are allowed together.

use std::ops::RangeInclusive;

use chrono_tz::Tz;

use super::{Cover, Definition, DefinitionError, Mode, Stamp};
use crate::board::{Decimals, Kind, WindowLength};

/// The shortest and the longest time, in milliseconds, for which `dedupe` may keep ids: a minute and 90 days.
const DEDUPE: RangeInclusive<i64> = 60_000..=90 * 86_400_000;

impl Definition {
    /// Checks that the keys are allowed together.
    pub(super) fn check(&self) -> Result<(), DefinitionError> {
        let misplaced = |key, why| Err(DefinitionError::Misplaced { key, why });
        let kind = self.kind();
        if matches!(kind, Kind::Distinct | Kind::Sketch) && self.decimals != Decimals::default() {
            return misplaced("decimals", "must be 0: distinct values are counted in whole numbers");
        }
        if self.metric.window == WindowLength::All {
            self.check_all_time()?;
        } else if self.dedupe.is_some() {
            return misplaced(
                "dedupe",
                "goes with a window of all time only: elsewhere an item that counts twice expires",
            );
        }
        if self.mode == Mode::FromFirst {
            if self.ranked {
                return misplaced("mode", "from_first needs ranked = false: every subject's window is its own");
            }
            if kind != Kind::Sum {
                return misplaced("mode", "from_first takes COUNT and SUM only");
            }
            if self.keep.is_some() || self.cover == Cover::Full {
                return misplaced("mode", "from_first has no slots, so neither 'keep' nor 'cover' applies");
            }
        }
        if self.keep.is_some() && self.ranked {
            return misplaced(
                "keep",
                "needs ranked = false: the slots of a ranked board go when they leave the window",
            );
        }
        if self.keep.is_some() && kind == Kind::Distinct {
            return misplaced("keep", "cannot apply to COUNT_DISTINCT, which forgets older sightings of a value");
        }
        if self.min_samples != 1 && (kind != Kind::Mean || !self.ranked) {
            return misplaced("min_samples", "goes with AVG on ranked boards only");
        }
        if self.max_values.is_some() && kind != Kind::Distinct {
            return misplaced("max_values", "goes with COUNT_DISTINCT only");
        }
        let numbers =
            [("min_samples", Some(self.min_samples)), ("max_values", self.max_values), ("shards", self.shards)];
        for (key, number) in numbers {
            if let (Some(number), Some(limits)) = (number, Self::limits(key))
                && !limits.contains(&number)
            {
                return Err(DefinitionError::Number { key, number, limits });
            }
        }
        Ok(())
    }

    /// Checks the keys that a window of all time does not allow.
    fn check_all_time(&self) -> Result<(), DefinitionError> {
        let refused = [
            (self.slot.is_some(), "slot", "cannot be given for a window of all time, which has no slots"),
            (self.timezone != Tz::UTC, "timezone", "has no effect on a window of all time, which has no slots"),
            (self.cover != Cover::Current, "cover", "must be current for a window of all time, which has no slots"),
            (self.mode != Mode::Sliding, "mode", "must be sliding for a window of all time, which has no end"),
            (self.keep.is_some(), "keep", "cannot be given for a window of all time, which has no slots"),
            (self.stamp != Stamp::Start, "stamp", "must be start for a window of all time, which has no slots"),
            (
                self.dedupe.is_some_and(|dedupe| !DEDUPE.contains(&dedupe.approximate_millis())),
                "dedupe",
                "must be from a minute to 90 days",
            ),
        ];
        match refused.into_iter().find(|(is_wrong, ..)| *is_wrong) {
            Some((_, key, why)) => Err(DefinitionError::Misplaced { key, why }),
            None => Ok(()),
        }
    }
}
