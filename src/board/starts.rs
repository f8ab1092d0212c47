//! Where the days, weeks, months and years of a board begin.

use std::fmt;
use std::str::FromStr;

use chrono::{Datelike, NaiveDate, NaiveDateTime, NaiveTime, Timelike};

use super::text::text;
use super::{Definition, DefinitionError, Mode, Movement, PeriodLength, Season, Span, Unit};

/// A day, in seconds.
const DAY: i64 = 86_400;
/// The last day that every month has.
const LAST_OF_EACH_MONTH: u32 = 28;

/// A day, or a whole hour of a day, with which a slot or a period of a day or longer begins. Those before and after it
/// follow from it.
///
/// It is what local clocks show. Parses and prints as `2026-11-02` or `2026-11-02T05:00`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Starts(NaiveDateTime);

/// The reason why a text is not a [`Starts`]. Contains the first 64 characters of the text.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("'{0}' is not a day or a whole hour of a day, such as 2026-11-02 or 2026-11-02T05:00")]
pub struct StartsError(String);

impl Starts {
    fn read(text: &str) -> Option<Self> {
        let (day, hour) = match text.split_once('T') {
            Some((day, time)) => (day, time.strip_suffix(":00").filter(|hour| hour.len() == 2)?),
            None => (text, "00"),
        };
        let date: NaiveDate = day.parse().ok()?;
        // Other forms are read too, such as 2026-1-2 and +02026-01-02.
        let is_plain = day.len() == 10 && date.to_string() == day && hour.bytes().all(|byte| byte.is_ascii_digit());
        date.and_hms_opt(hour.parse().ok()?, 0, 0).filter(|_| is_plain).map(Self)
    }

    /// Returns the seconds that local clocks show since 1970-01-01T00:00.
    pub(super) fn seconds(self) -> i64 {
        self.0.and_utc().timestamp()
    }

    /// Returns the number of its month: 12 times the year, and the months of the year that are over.
    pub(super) fn month(self) -> i64 {
        i64::from(self.0.year()) * 12 + i64::from(self.0.month0())
    }

    /// Returns the seconds that local clocks show since its month began.
    pub(super) fn seconds_of_month(self) -> i64 {
        i64::from(self.0.day0()) * DAY + i64::from(self.0.num_seconds_from_midnight())
    }
}

impl From<NaiveDate> for Starts {
    fn from(day: NaiveDate) -> Self {
        Self(day.and_time(NaiveTime::MIN))
    }
}

impl FromStr for Starts {
    type Err = StartsError;

    fn from_str(text: &str) -> Result<Self, StartsError> {
        Self::read(text).ok_or_else(|| StartsError(text.chars().take(64).collect()))
    }
}

impl fmt::Display for Starts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let form = if self.0.hour() == 0 { "%Y-%m-%d" } else { "%Y-%m-%dT%H:00" };
        self.0.format(form).fmt(f)
    }
}

text! { Starts: serialize_displayed, deserialize_from_str; }

impl Definition {
    /// Returns the lengths of the slots that the board has.
    fn slot_lengths(&self) -> impl Iterator<Item = Span> {
        let windows = std::iter::once(self.main_window()).chain(self.windows.iter().copied());
        // The slot of `from_first` has no effect.
        windows.filter_map(|window| window.slot).filter(|_| self.mode == Mode::Sliding)
    }

    /// Returns the length of the periods that the board has, unless they are closed by hand.
    pub(super) fn period_length(&self) -> Option<Span> {
        match self.season?.every {
            PeriodLength::Span(every) => Some(every),
            PeriodLength::Manual => None,
        }
    }

    /// Checks whether `starts` has an effect. It has none on some of the tracks, so this is checked for the whole
    /// definition only.
    pub(super) fn check_starts(&self) -> Result<(), DefinitionError> {
        let Some(starts) = self.starts else { return Ok(()) };
        let misplaced = |key, why| Err(DefinitionError::Misplaced { key, why });
        let lengths = || self.slot_lengths().chain(self.period_length());
        if !lengths().any(Span::is_a_day_or_longer) && self.movement != Some(Movement::Day) && self.cap.is_none() {
            return misplaced(
                "starts",
                "has no effect without slots or periods of a day or longer, which begin with it",
            );
        }
        if self.season.is_some_and(|season| season.start.is_some()) {
            return misplaced("season", "must have no 'start' beside 'starts', with which its periods begin");
        }
        if lengths().any(|length| length.months().is_some()) && starts.0.day() > LAST_OF_EACH_MONTH {
            return misplaced(
                "starts",
                "must be a day from 1 to 28 of its month, because each month or year of the board begins with that day",
            );
        }
        Ok(())
    }

    /// Returns a note for each length of whole weeks that is written in days, if nothing says with which day it begins.
    pub fn notes_of_weeks(&self) -> Vec<String> {
        if self.starts.is_some() || self.season.is_some_and(|Season { start, .. }| start.is_some()) {
            return Vec::new();
        }
        let slots = self.slot_lengths().map(|slot| ("slots", slot));
        let lengths = slots.chain(self.period_length().map(|every| ("periods", every)));
        let of_weeks = lengths.filter(|(_, length)| length.unit() == Unit::Day && length.count().is_multiple_of(7));
        let note = |(what, length): (&str, Span)| {
            let week = if length.count() == 7 { ", or write 1w, which begins on Mondays" } else { "" };
            format!(
                "{what} of {length} begin on Thursdays, because days are counted from 1970-01-01: for another day give \
                 'starts', such as 2026-11-02 for Mondays{week}"
            )
        };
        let mut notes: Vec<String> = of_weeks.map(note).collect();
        notes.sort();
        notes.dedup();
        notes
    }
}

#[cfg(test)]
mod tests;
