//! A comparison of calendars with a list of their starts, which is made by counting days and months of the calendar,
//! and by watching the local clocks of a time zone.

use chrono::{Days, Months};

use super::*;

/// Time zones: without changes of clocks, with changes at night, at midnight (Havana, Santiago, Cairo, Beirut), of half
/// an hour (Lord Howe), of two hours (Troll), during Ramadan (Casablanca), and the first and the last of the day.
pub(in crate::board) const ZONES: [&str; 17] = [
    "UTC",
    "Europe/Berlin",
    "Europe/London",
    "America/New_York",
    "America/St_Johns",
    "America/Havana",
    "America/Santiago",
    "Africa/Cairo",
    "Asia/Beirut",
    "Africa/Casablanca",
    "Asia/Kathmandu",
    "Asia/Tehran",
    "Australia/Lord_Howe",
    "Pacific/Chatham",
    "Pacific/Kiritimati",
    "Pacific/Pago_Pago",
    "Antarctica/Troll",
];

/// Anchors: hours at which clocks change, and others; days of past and future; every day of the week.
const ANCHORS: [&str; 10] = [
    "2026-11-01",
    "2026-11-01T05:00",
    "2026-11-15T02:00",
    "2026-10-27T01:00",
    "2024-02-28T23:00",
    "2031-07-10T03:00",
    "1970-01-01T12:00",
    "1969-05-24T02:00",
    "2026-12-04T00:00",
    "2068-01-28T04:00",
];

const SLOTS: [&str; 11] = ["1d", "2d", "7d", "10d", "1w", "1mo", "2mo", "3mo", "6mo", "12mo", "1y"];

/// What the local clocks of a time zone show, watched for some time.
struct Clocks {
    from: i64,
    step: i64,
    /// The latest time that was shown up to each step.
    latest: Vec<NaiveDateTime>,
}

impl Clocks {
    fn watched(zone: Tz, from: &str, days: i64, step: i64) -> Self {
        let from = Timestamp::parse(from).unwrap().millis() / 1_000;
        let mut latest: Vec<NaiveDateTime> = Vec::new();
        for second in (from..from + days * DAY).step_by(step as usize) {
            let shown = zone.from_utc_datetime(&local(second)).naive_local();
            latest.push(latest.last().map_or(shown, |before| shown.max(*before)));
        }
        Self { from, step, latest }
    }

    /// Returns the first instant at which the clocks show this time or later.
    fn first(&self, time: NaiveDateTime) -> Timestamp {
        let steps = self.latest.partition_point(|shown| *shown < time) as i64;
        Timestamp::from_millis((self.from + steps * self.step) * 1_000)
    }

    /// Returns the starts of slots within the time that was watched, but for its first and last days, and the local day
    /// on which each begins. A slot that the clocks jump over is missing.
    fn starts(&self, slot: Span, anchor: NaiveDateTime) -> Vec<(Timestamp, NaiveDate)> {
        let (first, last) = (self.latest[0], self.latest[self.latest.len() - 1]);
        let number = u64::from(slot.count());
        let on = |time: NaiveDateTime, steps: u64| match slot.months() {
            Some(months) => time.checked_add_months(Months::new((months * steps) as u32)),
            None => time.checked_add_days(Days::new(days_of(slot.unit()) * number * steps)),
        };
        let back = |time: NaiveDateTime| match slot.months() {
            Some(months) => time.checked_sub_months(Months::new(months as u32)),
            None => time.checked_sub_days(Days::new(days_of(slot.unit()) * number)),
        };
        let mut time = anchor;
        while time > first {
            time = back(time).unwrap();
        }
        while time <= first {
            time = on(time, 1).unwrap();
        }
        let mut starts: Vec<(Timestamp, NaiveDate)> = Vec::new();
        while time < last {
            let start = (self.first(time), time.date());
            // Of two that begin at one instant the earlier one does not exist.
            starts.pop_if(|before| before.0 == start.0);
            starts.push(start);
            time = on(time, 1).unwrap();
        }
        starts
    }
}

fn days_of(unit: Unit) -> u64 {
    match unit {
        Unit::Week => 7,
        Unit::Day => 1,
        _ => 0,
    }
}

fn compare(zone: &str, clocks: &Clocks, slot: &str, anchor: &str) {
    let about = format!("{slot} from {anchor} in {zone}");
    let starts: Starts = anchor.parse().unwrap_or_else(|error| panic!("{error}"));
    let span: Span = slot.parse().unwrap();
    let calendar = Calendar::with_start(span, zone.parse().unwrap(), Some(starts)).unwrap();
    let expected = clocks.starts(span, local(starts.seconds()));
    assert!(expected.len() > 1 || span.approximate_millis() > 300 * DAY * 1_000, "{about}");
    for slots in expected.windows(2) {
        let [(start, day), (next, _)] = [slots[0], slots[1]];
        let inside = Timestamp::from_millis(start.millis().midpoint(next.millis()));
        for at in [start, next.plus_millis(-1)] {
            assert_eq!((calendar.slot_of(at), calendar.next(at)), (start, next), "{about} at {at:?}");
        }
        assert_eq!((calendar.first_day(inside), calendar.slot_of(inside)), (day, start), "{about} at {inside:?}");
    }
}

#[test]
fn anchored_slots_begin_where_local_clocks_show_it_for_two_years_in_seventeen_zones() {
    for zone in ZONES {
        let clocks = Clocks::watched(zone.parse().unwrap(), "2026-01-01T00:00:00Z", 740, 900);
        for slot in SLOTS {
            for anchor in ANCHORS {
                compare(zone, &clocks, slot, anchor);
            }
        }
    }
}

#[test]
fn without_an_anchor_slots_begin_on_the_first_monday_or_day_of_1970() {
    for zone in ZONES {
        let clocks = Clocks::watched(zone.parse().unwrap(), "2026-01-01T00:00:00Z", 740, 900);
        for slot in SLOTS {
            let anchor = if slot == "1w" { "1970-01-05" } else { "1970-01-01" };
            compare(zone, &clocks, slot, anchor);
            let (slot, zone) = (slot.parse().unwrap(), zone.parse().unwrap());
            let anchored = Calendar::with_start(slot, zone, anchor.parse().ok());
            assert_eq!(anchored, Calendar::new(slot, zone), "{slot} in {zone}");
        }
    }
}

/// Days that do not exist (Apia and Kiritimati crossed the date line), and clocks that changed a minute after midnight
/// (St. John's, before 2011).
#[test]
fn anchored_slots_go_on_over_days_that_do_not_exist() {
    for (zone, from) in [
        ("Pacific/Apia", "2011-12-01T00:00:00Z"),
        ("Pacific/Kiritimati", "1994-12-10T00:00:00Z"),
        ("America/St_Johns", "2006-10-05T00:00:00Z"),
        ("America/Sao_Paulo", "2017-10-01T00:00:00Z"),
    ] {
        let clocks = Clocks::watched(zone.parse().unwrap(), from, 100, 60);
        for slot in &SLOTS[..6] {
            for anchor in ANCHORS {
                compare(zone, &clocks, slot, anchor);
            }
        }
    }
}
