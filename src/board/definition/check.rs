//! Which keys of a definition are allowed together.

use std::ops::RangeInclusive;

use chrono_tz::Tz;

use super::{Cover, Definition, DefinitionError, FurtherWindow, MAX_FURTHER, Mode, Order, Ranks, Stamp};
use crate::board::{Amount, AmountError, Decimals, EXACT_MAX, Function, Kind, WindowLength};

/// The shortest and the longest time, in milliseconds, for which `dedupe` may keep ids: a minute and 90 days.
const DEDUPE: RangeInclusive<i64> = 60_000..=90 * 86_400_000;

impl Definition {
    /// Checks that the keys are allowed together.
    pub(super) fn check(&self) -> Result<(), DefinitionError> {
        let misplaced = |key, why| Err(DefinitionError::Misplaced { key, why });
        let kind = self.kind();
        if self.cap.is_some() {
            self.check_cap()?;
        }
        if kind.counts_values() && self.decimals != Decimals::default() {
            return misplaced("decimals", "must be 0: distinct values and capped items are counted in whole numbers");
        }
        if self.metric.terms.decimals() > self.decimals {
            return misplaced("decimals", "must be at least as many as a weight of the metric has");
        }
        if self.dedupe.is_some_and(|dedupe| !DEDUPE.contains(&dedupe.approximate_millis())) {
            return misplaced("dedupe", "must be from a minute to 90 days");
        }
        if let Some(season) = self.season {
            season.check(self)?;
        }
        if self.metric.window == WindowLength::All {
            self.check_all_time()?;
        }
        self.check_windows()?;
        if self.mode == Mode::FromFirst {
            if self.ranked {
                return misplaced(
                    "mode",
                    "from_first is allowed only with ranked = false, because each subject has its own window",
                );
            }
            if !kind.is_sum() {
                return misplaced("mode", "from_first is allowed only with COUNT and SUM");
            }
            if self.keep.is_some() || self.cover == Cover::Full {
                return misplaced("mode", "from_first has no slots, so neither 'keep' nor 'cover' applies");
            }
        }
        if self.keep.is_some() && self.ranked && self.metric.window != WindowLength::All {
            return misplaced(
                "keep",
                "is allowed only with ranked = false or an all-time window: a ranked board drops slots as they leave its window",
            );
        }
        if self.keep.is_some() && kind.remembers_values() {
            return misplaced(
                "keep",
                "is not allowed with COUNT_DISTINCT, which stores when each value was last seen, not slots",
            );
        }
        if self.min_samples != 1 && (kind != Kind::Mean || !self.ranked) {
            return misplaced("min_samples", "is allowed only with AVG on ranked boards");
        }
        if let Some(prior) = self.prior {
            if kind != Kind::Mean {
                return misplaced("prior", "is allowed only with AVG");
            }
            match prior.sum(self.decimals) {
                Err(AmountError::Precision { .. }) => {
                    let why = "must have a 'mean' that times 'weight' has at most the decimals of the board";
                    return misplaced("prior", why);
                }
                // With a sum of as much both are exact in a float.
                Ok(Amount(sum)) if sum.abs() <= EXACT_MAX / 2 => {}
                _ => {
                    return misplaced(
                        "prior",
                        "must have a 'mean' that times 'weight' is below 2^52 in the last decimal",
                    );
                }
            }
        }
        if self.tie_break.is_some() {
            self.check_order_of_ties("tie_break")?;
        }
        if let Some(ties) = self.ties {
            self.check_order_of_ties("ties")?;
            // So that a time is never that of an earlier slot.
            if self.slot.is_some_and(|slot| slot.approximate_millis() % ties.precision.millis() != 0) {
                return misplaced("ties", "needs slots that are a whole number of minutes for the precision 1m");
            }
        }
        if self.ranks != Ranks::Shared && !self.ranked {
            return misplaced("ranks", "is allowed only with ranked = true: other boards have no ranks");
        }
        if self.max_values.is_some() && !kind.remembers_values() {
            return misplaced("max_values", "is allowed only with COUNT_DISTINCT and with a cap");
        }
        if self.max_keys.is_some() && self.metric.by.is_none() {
            return misplaced("max_keys", "is allowed only for a metric with BY");
        }
        let numbers = [
            ("min_samples", Some(self.min_samples)),
            ("max_values", self.max_values),
            ("max_keys", self.max_keys),
            ("shards", self.shards),
        ];
        for (key, number) in numbers {
            if let (Some(number), Some(limits)) = (number, Self::limits(key))
                && !limits.contains(&number)
            {
                return Err(DefinitionError::Number { key, number, limits });
            }
        }
        Ok(())
    }

    /// Checks what a cap for each person needs.
    fn check_cap(&self) -> Result<(), DefinitionError> {
        let misplaced = |key, why| Err(DefinitionError::Misplaced { key, why });
        if self.metric.function != Function::Sum || !self.metric.terms.count_events() {
            return misplaced("cap", "is allowed only with COUNT");
        }
        if !self.ranked {
            return misplaced("cap", "is allowed only with ranked = true");
        }
        if self.tie_break.is_some() || self.ties.is_some() {
            return misplaced("cap", "is not allowed together with 'tie_break' or 'ties'");
        }
        if self.keep.is_some() {
            return misplaced("keep", "is not allowed together with 'cap'");
        }
        if self.slot.is_some_and(|slot| !slot.is_a_day_or_longer()) {
            return misplaced(
                "cap",
                "needs slots of whole days, such as 1d, 1w or 1mo, or a window of all time: what a person adds in a day \
                 cannot be divided among shorter ones",
            );
        }
        if self.period_length().is_some_and(|every| !every.is_a_day_or_longer()) {
            return misplaced("cap", "needs periods of a season of a day or longer");
        }
        Ok(())
    }

    /// Checks what an order of equal scores needs, which is that of this key.
    fn check_order_of_ties(&self, key: &'static str) -> Result<(), DefinitionError> {
        let why = match (self.kind(), self.order) {
            _ if self.tie_break.is_some() && self.ties.is_some() => "and 'ties' exclude each other",
            (Kind::Mean | Kind::Distinct | Kind::Capped { .. } | Kind::Sketch, _) => {
                "is allowed only with COUNT, SUM, MIN, MAX and LAST"
            }
            (Kind::Max, Order::Asc) => "needs the order desc with MAX, whose best value is the greatest",
            (Kind::Min, Order::Desc) => "needs the order asc with MIN, whose best value is the smallest",
            _ if !self.ranked => "is allowed only with ranked = true, because it orders subjects",
            _ => return Ok(()),
        };
        Err(DefinitionError::Misplaced { key, why })
    }

    /// Checks whether a board may have a ranking for each key. Its kept slots have none, so this is checked for the
    /// whole definition only, and not for that of each track.
    pub(in crate::board) fn check_rankings(&self) -> Result<(), DefinitionError> {
        let why = "must not have BY with ranked = false: list the fields as the subject, such as (community, post_id)";
        match self.metric.by {
            Some(_) if !self.ranked => Err(DefinitionError::Misplaced { key: "metric", why }),
            _ => Ok(()),
        }
    }

    /// Checks the further windows, and the keys that they do not allow.
    fn check_windows(&self) -> Result<(), DefinitionError> {
        let misplaced = |key, why| Err(DefinitionError::Misplaced { key, why });
        if self.windows.is_empty() {
            return Ok(());
        }
        if self.windows.len() > MAX_FURTHER {
            return misplaced("windows", "must have at most 8 windows");
        }
        let main = FurtherWindow { length: self.metric.window, slot: self.slot };
        let all: Vec<FurtherWindow> = std::iter::once(main).chain(self.windows.iter().copied()).collect();
        // A read names a window by its length as it is written, so `1w/1w` and `7d/6h` may be on one board.
        let alike = |a: &FurtherWindow, b: &FurtherWindow| {
            a.length == b.length || (a.length.is_as_long_as(b.length) && a.slot == b.slot)
        };
        if all.iter().enumerate().any(|(i, window)| all[..i].iter().any(|other| alike(other, window))) {
            return misplaced(
                "windows",
                "must not have two windows of one length, nor that of the metric, unless the lengths are written \
                 differently and the slots differ, such as 1w/1w and 7d/6h",
            );
        }
        if self.keep.is_some() {
            return misplaced("windows", "is not allowed together with 'keep'");
        }
        if !self.ranked {
            return misplaced(
                "windows",
                "is allowed only with ranked = true: each read of an unranked board chooses its window",
            );
        }
        if self.mode != Mode::Sliding {
            return misplaced("windows", "is allowed only with the mode sliding");
        }
        if self.stamp != Stamp::Start {
            return misplaced("stamp", "must be start on a board with further windows, which takes no samples");
        }
        for window in &self.windows {
            let invalid = |reason| DefinitionError::FurtherWindow { window: *window, reason: Box::new(reason) };
            self.of_window(*window).layout().map_err(invalid)?;
        }
        Ok(())
    }

    /// Checks the keys that an all-time window does not allow.
    fn check_all_time(&self) -> Result<(), DefinitionError> {
        let has_slots = self.keep.is_some() && self.slot.is_some();
        let only = self.windows.is_empty() && !has_slots;
        let has_days = !only || self.season.is_some() || self.movement.is_some() || self.cap.is_some();
        let refused = [
            (
                self.slot.is_some() && !has_slots,
                "slot",
                "is allowed with an all-time window only together with 'keep', because such a window has no slots itself",
            ),
            (
                self.keep.is_some() && !has_slots,
                "keep",
                "is allowed with an all-time window only together with 'slot', because such a window has no slots itself",
            ),
            (
                !has_days && self.timezone != Tz::UTC,
                "timezone",
                "has no effect on an all-time window, which has no slots",
            ),
            (
                only && self.cover != Cover::Current,
                "cover",
                "must be current for an all-time window, which has no slots",
            ),
            (self.mode != Mode::Sliding, "mode", "must be sliding for an all-time window, which has no end"),
            (
                !has_slots && self.stamp != Stamp::Start,
                "stamp",
                "must be start for an all-time window, which has no slots",
            ),
        ];
        if let Some((_, key, why)) = refused.into_iter().find(|(is_wrong, ..)| *is_wrong) {
            return Err(DefinitionError::Misplaced { key, why });
        }
        match self.of_kept_slots() {
            Some(_) if self.kind().remembers_values() => Ok(()),
            Some(kept_slots) => {
                kept_slots.layout().map(drop).map_err(|reason| DefinitionError::KeptSlots(Box::new(reason)))
            }
            None => Ok(()),
        }
    }
}
