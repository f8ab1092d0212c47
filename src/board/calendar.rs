//! The starts and ends of slots.
//!
//! Slots under an hour divide an hour and align to the Unix epoch. Slots from an hour up to a day divide 24 h and align
//! to local midnight. `1d`, `1w` (from Monday), `1mo` and `1y` are calendar units. `Nd` counts from 1970-01-01 local
//! time.
//!
//! A slot of local time begins at the *first* instant at which local clocks show its start or later. So the starts
//! always grow, whatever a time zone does: where clocks jump forward over a whole slot, that slot does not exist; where
//! they fall back, the slot is longer.
//!
//! A board over all time has the [eternal](Calendar::eternal) calendar: one slot, from the epoch on.

use chrono::{Datelike, NaiveDate, NaiveDateTime, Offset, TimeZone};
use chrono_tz::Tz;

use super::{Span, Timestamp, Unit};

const DAY: i64 = 86_400;
/// The distance in seconds from a Monday to the epoch: 1970-01-01 was a Thursday, three days after a Monday.
const MONDAY_SHIFT: i64 = 3 * DAY;

/// The division of time into slots for one board.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Calendar {
    /// The length of a slot, or `None` if there is one slot for all time.
    slot: Option<Span>,
    zone: Tz,
    grid: Grid,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Grid {
    /// Boundaries at `k x length − shift` milliseconds of UTC. No time zone lookup is needed.
    Universal { length: i64, shift: i64 },
    /// Boundaries where the local clock shows `k x length − shift` seconds since 1970-01-01T00:00.
    Local { length: i64, shift: i64 },
    /// Boundaries at the first of every so many local months; the index is `(12 x year + month0) / count`.
    Months { count: i64 },
    /// No boundaries: one slot with the index 0, which covers the whole range of timestamps.
    Eternal,
}

/// The reason why a span cannot be a slot.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SlotError {
    #[error("a slot under an hour must divide an hour (such as 1s, 30s, 1m, 5m, 15m, 30m); {0} does not")]
    DividesHour(Span),
    #[error("a slot from an hour up to a day must divide 24 h (such as 1h, 2h, 6h, 12h); {0} does not")]
    DividesDay(Span),
    #[error(
        "a slot longer than a day is written in days (2d, 7d), as 1w (from Monday), as 1mo or as 1y; {0} is none of these"
    )]
    Calendar(Span),
    #[error(
        "{window} is not a whole number of {slot} slots; months and years need slots of 1mo or 1y, or write days, such as 365d"
    )]
    NotWhole { window: Span, slot: Span },
}

impl Calendar {
    /// Creates the calendar of slots of length `slot` in `zone`.
    pub fn new(slot: Span, zone: Tz) -> Result<Self, SlotError> {
        Self::with_start(slot, zone, None)
    }

    /// Creates the calendar of slots of length `slot` in `zone`. If they are a number of days, one of them begins with
    /// the local day `start`.
    pub fn with_start(slot: Span, zone: Tz, start: Option<NaiveDate>) -> Result<Self, SlotError> {
        let local = |length, shift| {
            if zone == Tz::UTC {
                Grid::Universal { length: length * 1_000, shift: shift * 1_000 }
            } else {
                Grid::Local { length, shift }
            }
        };
        let grid = match (slot.unit(), slot.seconds()) {
            (Unit::Month | Unit::Year, _) | (_, None) => match (slot.count(), slot.months()) {
                (1, Some(months)) => Grid::Months { count: months as i64 },
                _ => return Err(SlotError::Calendar(slot)),
            },
            (Unit::Week, _) if slot.count() != 1 => return Err(SlotError::Calendar(slot)),
            (Unit::Week, _) => local(7 * DAY, MONDAY_SHIFT),
            (Unit::Day, Some(seconds)) => {
                let (length, epoch) = (seconds as i64, NaiveDate::default());
                let days = start.map_or(0, |start| start.signed_duration_since(epoch).num_days());
                local(length, (-days * DAY).rem_euclid(length))
            }
            (_, Some(seconds)) => {
                let seconds = seconds as i64;
                match seconds {
                    1..3_600 if 3_600 % seconds == 0 => Grid::Universal { length: seconds * 1_000, shift: 0 },
                    1..3_600 => return Err(SlotError::DividesHour(slot)),
                    3_600..=DAY if DAY % seconds == 0 => local(seconds, 0),
                    3_600..=DAY => return Err(SlotError::DividesDay(slot)),
                    _ => return Err(SlotError::Calendar(slot)),
                }
            }
        };
        Ok(Self { slot: Some(slot), zone, grid })
    }

    /// Creates the calendar of a board over all time. It has one slot, from [`Timestamp::EPOCH`] to
    /// [`Timestamp::MAX`].
    pub fn eternal() -> Self {
        Self { slot: None, zone: Tz::UTC, grid: Grid::Eternal }
    }

    /// Returns the slot's length as written, or `None` if there is one slot for all time.
    pub fn slot(&self) -> Option<Span> {
        self.slot
    }

    /// Returns the time zone whose midnights slots align to.
    pub fn zone(&self) -> Tz {
        self.zone
    }

    /// Returns the number of slots in `span`, which must be a whole number of slots.
    pub fn slots_exactly(&self, span: Span) -> Result<u64, SlotError> {
        let whole = self.comparable(span).filter(|(units, slot)| units % slot == 0).map(|(units, slot)| units / slot);
        whole.ok_or(SlotError::NotWhole { window: span, slot: self.slot.unwrap_or(span) })
    }

    /// Returns the number of slots that cover `span`, rounded up, or `None` if only one of the two is counted in
    /// months, or if there is one slot for all time.
    pub fn slots_covering(&self, span: Span) -> Option<u64> {
        self.comparable(span).map(|(units, slot)| units.div_ceil(slot))
    }

    /// Returns the lengths of `span` and of a slot in the same unit: both in months, or both in seconds. Returns `None`
    /// if only one of them is in months, or if there is one slot for all time.
    fn comparable(&self, span: Span) -> Option<(u64, u64)> {
        let slot = self.slot?;
        span.seconds().zip(slot.seconds()).or_else(|| span.months().zip(slot.months()))
    }

    /// Returns the start of the slot that contains `t`. O(1).
    pub fn slot_of(&self, t: Timestamp) -> Timestamp {
        match self.grid {
            Grid::Universal { length, shift } => {
                Timestamp::from_millis((t.millis() + shift).div_euclid(length) * length - shift)
            }
            _ => self.start(self.index(t)),
        }
    }

    /// Returns the start of the slot after the one that contains `t`. O(1).
    pub fn next(&self, t: Timestamp) -> Timestamp {
        let mut index = self.index(t) + 1;
        while self.start(index) <= t && self.start(index) < Timestamp::MAX {
            index += 1;
        }
        self.start(index)
    }

    /// Returns the start of the slot before the one that contains `t`. The first slot has none before it, so its own
    /// start is returned. O(1).
    pub fn previous(&self, t: Timestamp) -> Timestamp {
        self.slot_of(self.slot_of(t).plus_millis(-1))
    }

    /// Returns the number of slots between two starts. The number is nominal: a slot that the time zone skips is
    /// counted. O(1).
    pub fn slots_between(&self, from: Timestamp, to: Timestamp) -> u64 {
        u64::try_from(self.index(to) - self.index(from)).unwrap_or(0)
    }

    /// Returns the number of the slot that contains `t`. Later slots have greater numbers. Numbers of slots that the
    /// time zone skips are never returned. O(1).
    pub fn number(&self, t: Timestamp) -> i64 {
        self.index(t)
    }

    /// Returns the start of the slot with this [`number`](Self::number). O(1).
    pub fn start_of(&self, number: i64) -> Timestamp {
        self.start(number)
    }

    /// Returns the largest index whose slot starts at or before `t`.
    fn index(&self, t: Timestamp) -> i64 {
        let local = || {
            let utc = t.to_utc().naive_utc();
            utc + self.zone.offset_from_utc_datetime(&utc).fix()
        };
        let mut index = match self.grid {
            Grid::Eternal => return 0,
            Grid::Universal { length, shift } => return (t.millis() + shift).div_euclid(length),
            Grid::Local { length, shift } => (local().and_utc().timestamp() + shift).div_euclid(length),
            Grid::Months { count } => {
                let local = local();
                (i64::from(local.year()) * 12 + i64::from(local.month0())).div_euclid(count)
            }
        };
        // Where clocks fall back over a boundary, local time shows the previous slot although the next one has begun.
        while self.start(index + 1) <= t && self.start(index + 1) < Timestamp::MAX {
            index += 1;
        }
        while self.start(index) > t {
            index -= 1;
        }
        index
    }

    fn start(&self, index: i64) -> Timestamp {
        match self.grid {
            Grid::Universal { length, shift } => Timestamp::from_millis(index * length - shift),
            Grid::Local { length, shift } => {
                // A slot may be longer than the whole range of timestamps. Beyond the range every start is clamped to
                // one end.
                let (first, last) = (-2 * DAY, Timestamp::MAX.millis() / 1_000 + 2 * DAY);
                let shown = index.saturating_mul(length).saturating_sub(shift).clamp(first, last);
                self.first_instant_showing(local(shown))
            }
            Grid::Eternal => {
                if index > 0 {
                    Timestamp::MAX
                } else {
                    Timestamp::EPOCH
                }
            }
            Grid::Months { count } => {
                let month = index.saturating_mul(count);
                let month0 = u32::try_from(month.rem_euclid(12)).unwrap_or(0);
                let first = i32::try_from(month.div_euclid(12))
                    .ok()
                    .and_then(|year| NaiveDate::from_ymd_opt(year, month0 + 1, 1));
                match first.and_then(|date| date.and_hms_opt(0, 0, 0)) {
                    Some(midnight) => self.first_instant_showing(midnight),
                    None => Timestamp::MAX,
                }
            }
        }
    }

    /// Returns the first instant at which local clocks show `wanted` or later.
    fn first_instant_showing(&self, wanted: NaiveDateTime) -> Timestamp {
        if let Some(found) = self.zone.from_local_datetime(&wanted).earliest() {
            return Timestamp::from_millis(found.timestamp_millis());
        }
        // In a gap no clock ever shows `wanted`: the slot begins where the gap begins. Zones differ from UTC by less
        // than a day, and two changes never fall within two days, so the search range contains one change only.
        let shows_later = |second: i64| {
            let utc = local(second);
            utc + self.zone.offset_from_utc_datetime(&utc).fix() >= wanted
        };
        let nominal = wanted.and_utc().timestamp();
        let (mut before, mut after) = (nominal - 36 * 3_600, nominal + 36 * 3_600);
        while after - before > 1 {
            let middle = before + (after - before) / 2;
            if shows_later(middle) { after = middle } else { before = middle }
        }
        Timestamp::from_millis(after * 1_000)
    }
}

fn local(seconds: i64) -> NaiveDateTime {
    chrono::DateTime::from_timestamp(seconds, 0).unwrap_or_default().naive_utc()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn calendar(slot: &str, zone: &str) -> Calendar {
        Calendar::new(slot.parse().unwrap(), zone.parse().unwrap()).unwrap()
    }

    fn t(text: &str) -> Timestamp {
        Timestamp::parse(text).unwrap()
    }

    #[test]
    fn slot_lengths_are_validated() {
        for slot in [
            "1s", "2s", "30s", "90s", "1m", "15m", "30m", "1h", "90m", "2h", "6h", "12h", "24h", "1d", "2d", "7d",
            "1w", "1mo", "1y",
        ] {
            assert!(Calendar::new(slot.parse().unwrap(), Tz::UTC).is_ok(), "{slot}");
        }
        for slot in ["7s", "7m", "59m", "5h", "7h", "23h", "25h", "48h", "2w", "2mo", "12mo", "2y"] {
            assert!(Calendar::new(slot.parse().unwrap(), Tz::UTC).is_err(), "{slot}");
        }
    }

    #[test]
    fn hourly_boundaries_are_exact_to_the_millisecond() {
        let hours = calendar("1h", "UTC");
        let nine = t("2026-01-01T09:00:00Z");
        assert_eq!(hours.slot_of(nine), nine);
        assert_eq!(hours.slot_of(nine.plus_millis(-1)), t("2026-01-01T08:00:00Z"));
        assert_eq!(hours.slot_of(t("2026-01-01T09:59:59.999Z")), nine);
        assert_eq!(hours.next(nine), t("2026-01-01T10:00:00Z"));
        assert_eq!(hours.previous(nine), t("2026-01-01T08:00:00Z"));
    }

    #[test]
    fn short_slots_ignore_the_zone_and_long_ones_follow_it() {
        let at = t("2026-01-01T09:44:10Z");
        assert_eq!(calendar("15m", "Asia/Kathmandu").slot_of(at), t("2026-01-01T09:30:00Z"));
        // Kathmandu is 5:45 ahead of UTC: its hours begin at :15 UTC.
        assert_eq!(calendar("1h", "Asia/Kathmandu").slot_of(at), t("2026-01-01T09:15:00Z"));
        assert_eq!(calendar("1d", "America/New_York").slot_of(at), t("2026-01-01T05:00:00Z"));
    }

    #[test]
    fn weeks_months_and_day_spans_have_fixed_starts() {
        let at = t("2026-01-01T09:00:00Z"); // a Thursday
        assert_eq!(calendar("1w", "UTC").slot_of(at), t("2025-12-29T00:00:00Z"));
        assert_eq!(calendar("1w", "UTC").next(at), t("2026-01-05T00:00:00Z"));
        assert_eq!(calendar("1mo", "Europe/Berlin").slot_of(at), t("2025-12-31T23:00:00Z"));
        assert_eq!(calendar("1mo", "Europe/Berlin").next(at), t("2026-01-31T23:00:00Z"));
        assert_eq!(calendar("1mo", "UTC").previous(at), t("2025-12-01T00:00:00Z"));
        assert_eq!(calendar("1y", "Europe/Berlin").slot_of(at), t("2025-12-31T23:00:00Z"));
        assert_eq!(calendar("1y", "UTC").previous(at), t("2025-01-01T00:00:00Z"));
        assert_eq!(calendar("1y", "UTC").next(at), t("2027-01-01T00:00:00Z"));
        let sevens = calendar("7d", "UTC");
        assert_eq!(sevens.slot_of(t("1970-01-07T23:59:59Z")), Timestamp::EPOCH);
        assert_eq!(sevens.slot_of(t("1970-01-08T00:00:00Z")), t("1970-01-08T00:00:00Z"));
    }

    #[test]
    fn spring_forward_skips_the_hour_and_shortens_the_day() {
        let (hours, days) = (calendar("1h", "Europe/Berlin"), calendar("1d", "Europe/Berlin"));
        let change = t("2026-03-29T01:00:00Z"); // 02:00 CET becomes 03:00 CEST
        assert_eq!(hours.slot_of(change.plus_millis(-1)), t("2026-03-29T00:00:00Z"));
        assert_eq!(hours.next(t("2026-03-29T00:30:00Z")), change);
        assert_eq!(hours.slot_of(change), change);
        assert_eq!(hours.next(change), t("2026-03-29T02:00:00Z"));
        assert_eq!(hours.previous(change), t("2026-03-29T00:00:00Z"));
        assert_eq!(days.slot_of(change), t("2026-03-28T23:00:00Z"));
        assert_eq!(days.next(change), t("2026-03-29T22:00:00Z"));
        // Of the six-hour slots, the first of the day is five hours long.
        assert_eq!(calendar("6h", "Europe/Berlin").next(change), t("2026-03-29T04:00:00Z"));
    }

    #[test]
    fn fall_back_lengthens_the_hour_and_the_day() {
        let (hours, days) = (calendar("1h", "Europe/Berlin"), calendar("1d", "Europe/Berlin"));
        let first_two = t("2026-10-25T00:00:00Z"); // 02:00 CEST; at 03:00 CEST it is 02:00 CET again
        for minute in [0, 59, 60, 61, 119] {
            assert_eq!(hours.slot_of(first_two.plus_millis(minute * 60_000)), first_two, "{minute}");
        }
        assert_eq!(hours.next(first_two), t("2026-10-25T02:00:00Z"));
        assert_eq!(days.slot_of(first_two), t("2026-10-24T22:00:00Z"));
        assert_eq!(days.next(first_two), t("2026-10-25T23:00:00Z"));
    }

    #[test]
    fn unusual_zone_changes_are_handled() {
        // Havana falls back from 01:00 to 00:00: midnight is shown twice, and the day begins at the first one.
        let havana = calendar("1d", "America/Havana");
        assert_eq!(havana.slot_of(t("2025-11-02T05:30:00Z")), t("2025-11-02T04:00:00Z"));
        // Newfoundland fell back at 00:01, over midnight: the new day had begun, and it does not begin again.
        let st_johns = calendar("1d", "America/St_Johns");
        let midnight = t("2006-10-29T02:30:00Z");
        for seconds in [0, 30, 60, 1_800, 3_700] {
            assert_eq!(st_johns.slot_of(midnight.plus_millis(seconds * 1_000)), midnight, "{seconds}");
        }
        // Lord Howe Island changes its clocks by half an hour.
        let lord_howe = calendar("1h", "Australia/Lord_Howe");
        let start = lord_howe.slot_of(t("2026-04-04T14:45:00Z"));
        assert_eq!(lord_howe.next(start).millis() - start.millis(), 90 * 60_000);
        // Samoa skipped 30 December 2011.
        let apia = calendar("1d", "Pacific/Apia");
        let last = t("2011-12-29T10:00:00Z");
        assert_eq!(apia.slot_of(t("2011-12-30T09:59:59Z")), last);
        assert_eq!(apia.next(last), t("2011-12-30T10:00:00Z"));
        assert_eq!(apia.previous(t("2011-12-30T10:00:00Z")), last);
    }

    #[test]
    fn slots_longer_than_the_time_range_end_at_the_maximum() {
        for zone in ["UTC", "Europe/Berlin", "Pacific/Apia", "America/New_York"] {
            for slot in ["95000000d", "4000000000d", "4294967295d"] {
                let longest = calendar(slot, zone);
                let at = t("2026-01-01T09:00:00Z");
                assert!(longest.slot_of(at) < t("1970-01-02T00:00:00Z"), "{slot} in {zone}");
                assert_eq!(longest.next(at), Timestamp::MAX, "{slot} in {zone}");
                assert_eq!(longest.slot_of(Timestamp::MAX), longest.slot_of(at), "{slot} in {zone}");
            }
        }
    }

    #[test]
    fn the_eternal_calendar_has_one_slot() {
        let eternal = Calendar::eternal();
        for at in [Timestamp::EPOCH, t("2026-01-01T09:00:00Z"), Timestamp::MAX.plus_millis(-1)] {
            assert_eq!((eternal.slot_of(at), eternal.number(at)), (Timestamp::EPOCH, 0));
            assert_eq!((eternal.next(at), eternal.previous(at)), (Timestamp::MAX, Timestamp::EPOCH));
        }
        assert_eq!((eternal.start_of(0), eternal.start_of(1)), (Timestamp::EPOCH, Timestamp::MAX));
        assert_eq!(eternal.slots_between(Timestamp::EPOCH, Timestamp::EPOCH), 0);
        assert_eq!(eternal.slots_covering("24h".parse().unwrap()), None);
    }

    #[test]
    fn spans_are_converted_to_slots() {
        let hours = calendar("1h", "UTC");
        assert_eq!(hours.slots_exactly("24h".parse().unwrap()), Ok(24));
        assert_eq!(hours.slots_exactly("7d".parse().unwrap()), Ok(168));
        assert!(hours.slots_exactly("90m".parse().unwrap()).is_err());
        assert!(hours.slots_exactly("1mo".parse().unwrap()).is_err());
        assert_eq!(hours.slots_covering("90m".parse().unwrap()), Some(2));
        assert_eq!(calendar("1mo", "UTC").slots_exactly("3mo".parse().unwrap()), Ok(3));
        assert_eq!(calendar("1mo", "UTC").slots_exactly("2y".parse().unwrap()), Ok(24));
        assert_eq!(calendar("1y", "UTC").slots_covering("13mo".parse().unwrap()), Some(2));
        assert_eq!(calendar("1mo", "UTC").slots_covering("30d".parse().unwrap()), None);
        assert_eq!(calendar("1w", "UTC").slots_exactly("28d".parse().unwrap()), Ok(4));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2_000))]
        #[test]
        fn slots_cover_time_without_gaps(
            second in 0i64..4_000_000_000,
            slot in prop::sample::select(vec!["1s", "15m", "1h", "90m", "6h", "12h", "1d", "3d", "1w", "1mo", "1y"]),
            zone in prop::sample::select(vec!["UTC", "Europe/Berlin", "America/New_York", "America/St_Johns", "America/Havana",
                "Australia/Lord_Howe", "Pacific/Apia", "Asia/Kathmandu", "Africa/Casablanca", "America/Sao_Paulo", "Asia/Tehran"]),
        ) {
            let calendar = calendar(slot, zone);
            let at = Timestamp::from_millis(second * 1_000);
            let (start, next) = (calendar.slot_of(at), calendar.next(at));
            prop_assert!(start <= at && at < next);
            prop_assert_eq!(calendar.slot_of(start), start);
            prop_assert_eq!(calendar.slot_of(next.plus_millis(-1)), start);
            prop_assert_eq!(calendar.slot_of(next), next);
            prop_assert_eq!(calendar.next(start), next);
            prop_assert_eq!(calendar.previous(next), start);
        }
    }
}
