//! A cap for each person: how much of one person one subject counts in a day.
//!
//! For each subject, person and day there is a *counter*: the number of items less those taken back. It adds
//! [`counted`] of it to the slot of the day. So a slot is the sum of what its counters add, in whatever order their items
//! arrived, as long as each day is in one slot.
//!
//! A counter has the form of a value of COUNT_DISTINCT: its text is the day and the person, and its time, which tells the
//! count, is within the day. So it expires with the slot of its day, as such a value does.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::{Counted, FieldFault, Fields, Key, NameError, Span, Timestamp, form};

/// A cap for each person. One person adds at most `most` to one subject in each calendar day of `at`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, expecting = "a cap with 'per', 'most' and 'every'")]
pub struct Cap {
    /// Field of events that names the person. An increment has the person as `value`.
    #[serde(deserialize_with = "form::field")]
    #[schema(value_type = String, example = "user_id", max_length = 64)]
    pub per: Box<str>,
    /// Maximum that one person adds to one subject in a day.
    #[serde(deserialize_with = "form::most_of_cap")]
    #[schema(minimum = 1, maximum = 1_000_000, example = 10)]
    pub most: u32,
    /// Time for which the maximum holds: `1d`, a calendar day in the time zone of the board.
    #[serde(deserialize_with = "form::one_day")]
    #[schema(value_type = String, example = "1d", pattern = "^1d$")]
    pub every: Span,
}

impl Cap {
    /// The largest `most`.
    pub const MOST: u32 = DayCount::MOST as u32;

    /// Returns the person of an event.
    pub fn person_of(&self, fields: &Fields) -> Result<Counted, FieldFault> {
        Key::Field(self.per.clone()).name(fields, Counted::parse)
    }
}

/// Returns what a person with this count adds to a subject.
pub fn counted(count: i64, most: u32) -> i64 {
    count.min(i64::from(most))
}

/// The counter of a person in a day.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DayCount<'a> {
    /// The start of the day.
    pub day: Timestamp,
    pub person: &'a str,
    /// The number of items less those taken back, from -[`MOST`](Self::MOST) to [`MOST`](Self::MOST).
    pub count: i64,
}

impl<'a> DayCount<'a> {
    /// The greatest magnitude of a count. As many milliseconds, twice, are less than any day has.
    pub const MOST: i64 = 1_000_000;

    /// Returns the counter with a text and a time of its form, or `None` if they are not of this form.
    pub fn read(text: &'a str, at: Timestamp) -> Option<Self> {
        let (day, person) = Self::split(text)?;
        let count = at.millis() - day.millis() - Self::MOST;
        (-Self::MOST..=Self::MOST).contains(&count).then_some(Self { day, person, count })
    }

    /// Returns the start of the day, and the person, that a text of the form of a counter has.
    pub fn split(text: &'a str) -> Option<(Timestamp, &'a str)> {
        let (day, person) = text.split_once(' ')?;
        let start = Timestamp::from_millis(day.parse().ok()?);
        (!person.is_empty() && start.millis().to_string() == day).then_some((start, person))
    }

    /// Returns the text of the counter.
    pub fn text(self) -> Counted {
        Counted::from_stored(format!("{} {}", self.day.millis(), self.person))
    }

    /// Returns the time that tells the count.
    pub fn at(self) -> Timestamp {
        Timestamp::from_millis(self.day.millis() + Self::MOST + self.count)
    }

    /// Returns the counter of a person whose name is given, if a counter may have it.
    pub fn checked(day: Timestamp, person: &'a str, count: i64) -> Result<Option<Self>, NameError> {
        Counted::parse(person)?;
        Ok((-Self::MOST..=Self::MOST).contains(&count).then_some(Self { day, person, count }))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::board::{Calendar, Starts};

    /// Zones with all kinds of shifts: none, of an hour, of half an hour, of two hours, of a whole day.
    const ZONES: [&str; 17] = [
        "UTC",
        "Europe/Berlin",
        "Europe/London",
        "America/New_York",
        "America/Los_Angeles",
        "America/St_Johns",
        "America/Sao_Paulo",
        "Asia/Tokyo",
        "Asia/Kolkata",
        "Asia/Kathmandu",
        "Asia/Tehran",
        "Africa/Cairo",
        "Australia/Lord_Howe",
        "Pacific/Apia",
        "Pacific/Chatham",
        "Pacific/Kiritimati",
        "Antarctica/Troll",
    ];

    proptest! {
        #[test]
        fn a_counter_is_read_as_it_was_written(day in 0_i64..4_000_000_000_000, person in "[a-z ]{1,9}", count in -1_000_000_i64..=1_000_000) {
            let counter = DayCount { day: Timestamp::from_millis(day), person: &person, count };
            let text = counter.text();
            prop_assert_eq!(DayCount::read(text.as_str(), counter.at()), Some(counter));
            prop_assert_eq!(DayCount::split(text.as_str()), Some((counter.day, &*person)));
        }

        /// Each slot of a day or longer consists of whole days, and a counter has its times within its day, so that it
        /// expires with its slot. From 1975 on, when every zone had a shift of whole minutes.
        #[test]
        fn days_are_whole_in_slots_and_hold_every_count(
            zone in prop::sample::select(ZONES.to_vec()),
            slot in prop::sample::select(vec!["1d", "24h", "2d", "7d", "1w", "1mo", "3mo", "1y"]),
            starts in prop::option::of(prop::sample::select(vec!["2026-11-02", "2026-11-15T05:00", "2026-03-01T23:00"])),
            at in 157_766_400_000_i64..4_000_000_000_000,
        ) {
            let starts: Option<Starts> = starts.map(|starts| starts.parse().unwrap());
            let calendar = |span: &str| Calendar::with_start(span.parse().unwrap(), zone.parse().unwrap(), starts).unwrap();
            let (days, slots, at) = (calendar("1d"), calendar(slot), Timestamp::from_millis(at));
            let (day, end, start) = (days.slot_of(at), days.next(at), slots.slot_of(at));
            prop_assert!(start <= day && end <= slots.next(at), "{zone} {slot} {at}: {start} {day} {end}");
            prop_assert_eq!(days.slot_of(start), start);
            let last = DayCount { day, person: "p", count: DayCount::MOST };
            prop_assert!(last.at() < end && last.at() > day);
            let first = DayCount { count: -DayCount::MOST, ..last };
            prop_assert!(first.at() >= day);
        }
    }
}
