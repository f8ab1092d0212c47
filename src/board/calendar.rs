//! The starts and ends of slots.
//!
//! Slots under an hour divide an hour and align to the Unix epoch. Slots from an hour up to a day divide 24 h and align
//! to local midnight. Slots of a day and longer are a number of days, counted from 1970-01-01 local time, a week, from
//! Monday, or a number of months that divides a year, from January. [`Starts`] moves these, and no others.
//!
//! A slot of local time begins at the *first* instant at which local clocks show its start or later. So the starts
//! always grow, whatever a time zone does: where clocks jump forward over a whole slot, that slot does not exist; where
//! they fall back, the slot is longer.
//!
//! A board over all time has the [eternal](Calendar::eternal) calendar: one slot, from the epoch on.

use chrono::{Datelike, NaiveDate, NaiveDateTime, NaiveTime, Offset, TimeDelta, TimeZone};
use chrono_tz::Tz;

use super::{Span, Starts, Timestamp, Unit};

const DAY: i64 = 86_400;
/// The first Monday, in seconds from 1970-01-01, which was a Thursday.
const MONDAY: i64 = 4 * DAY;

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
    /// Boundaries where the local clock shows `shift` seconds since the first of every so many months; the index is
    /// `(12 x year + month0 − first) / count`.
    Months { count: i64, first: i64, shift: i64 },
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
        "a slot longer than a day is written in days (2d, 7d), as 1w, in months that divide a year (1mo, 2mo, 3mo, 4mo, 6mo) \
         or as 1y; {0} is none of these"
    )]
    Calendar(Span),
    #[error(
        "{window} is not a whole number of {slot} slots; months and years need slots of months or years, such as 1mo, or write days, such as 365d"
    )]
    NotWhole { window: Span, slot: Span },
}

impl Calendar {
    /// Creates the calendar of slots of length `slot` in `zone`.
    pub fn new(slot: Span, zone: Tz) -> Result<Self, SlotError> {
        Self::with_start(slot, zone, None)
    }

    /// Creates the calendar of slots of length `slot` in `zone`. If they are a day or longer, one of them begins where
    /// local clocks show `starts`. For slots of months its day must be one that every month has.
    pub fn with_start(slot: Span, zone: Tz, starts: Option<Starts>) -> Result<Self, SlotError> {
        let local = |length, shift| {
            if zone == Tz::UTC {
                Grid::Universal { length: length * 1_000, shift: shift * 1_000 }
            } else {
                Grid::Local { length, shift }
            }
        };
        let days = |length: i64, usual| local(length, (-starts.map_or(usual, Starts::seconds)).rem_euclid(length));
        let grid = match (slot.unit(), slot.seconds().map(|seconds| seconds as i64)) {
            (Unit::Month | Unit::Year, _) | (_, None) => match slot.months() {
                Some(months) if 12 % months == 0 => Grid::Months {
                    count: months as i64,
                    first: starts.map_or(0, Starts::month).rem_euclid(months as i64),
                    shift: starts.map_or(0, Starts::seconds_of_month),
                },
                _ => return Err(SlotError::Calendar(slot)),
            },
            (Unit::Week, _) if slot.count() != 1 => return Err(SlotError::Calendar(slot)),
            (Unit::Week, _) => days(7 * DAY, MONDAY),
            (Unit::Day, Some(seconds)) => days(seconds, 0),
            (_, Some(DAY)) => days(DAY, 0),
            (_, Some(seconds @ 1..3_600)) if 3_600 % seconds == 0 => {
                Grid::Universal { length: seconds * 1_000, shift: 0 }
            }
            (_, Some(1..3_600)) => return Err(SlotError::DividesHour(slot)),
            (_, Some(seconds @ 3_600..DAY)) if DAY % seconds == 0 => local(seconds, 0),
            (_, Some(3_600..DAY)) => return Err(SlotError::DividesDay(slot)),
            _ => return Err(SlotError::Calendar(slot)),
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
            Grid::Months { count, first, shift } => {
                let local = local() - TimeDelta::seconds(shift);
                (i64::from(local.year()) * 12 + i64::from(local.month0()) - first).div_euclid(count)
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
            Grid::Eternal if index <= 0 => Timestamp::EPOCH,
            _ => self.shown_start(index).map_or(Timestamp::MAX, |shown| self.first_instant_showing(shown)),
        }
    }

    /// Returns what local clocks show where the slot with this index begins, unless they jump over it. `None` after the
    /// last slot.
    fn shown_start(&self, index: i64) -> Option<NaiveDateTime> {
        match self.grid {
            Grid::Universal { length, shift } => Some(local((index * length - shift).div_euclid(1_000))),
            Grid::Local { length, shift } => {
                // A slot may be longer than the whole range of timestamps. Beyond the range every start is clamped to
                // one end.
                let (first, last) = (-2 * DAY, Timestamp::MAX.millis() / 1_000 + 2 * DAY);
                Some(local(index.saturating_mul(length).saturating_sub(shift).clamp(first, last)))
            }
            Grid::Months { count, first, shift } => {
                let month = index.saturating_mul(count).saturating_add(first);
                let (year, month0) = (i32::try_from(month.div_euclid(12)).ok()?, month.rem_euclid(12) as u32);
                let midnight = NaiveDate::from_ymd_opt(year, month0 + 1, 1)?.and_time(NaiveTime::MIN);
                midnight.checked_add_signed(TimeDelta::seconds(shift))
            }
            Grid::Eternal => None,
        }
    }

    /// Returns the local day with which the slot that contains `t` begins, for slots of a day and longer. No other slot
    /// begins with it, also where clocks jump over a part of it, or over all of it. O(1).
    pub fn first_day(&self, t: Timestamp) -> NaiveDate {
        self.shown_start(self.index(t)).unwrap_or_default().date()
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
pub(super) mod oracle;
#[cfg(test)]
mod tests;
