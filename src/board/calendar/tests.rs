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
        "1s", "2s", "30s", "90s", "1m", "15m", "30m", "1h", "90m", "2h", "6h", "12h", "24h", "1d", "2d", "7d", "1w",
        "1mo", "2mo", "3mo", "4mo", "6mo", "12mo", "1y",
    ] {
        assert!(Calendar::new(slot.parse().unwrap(), Tz::UTC).is_ok(), "{slot}");
    }
    for slot in ["7s", "7m", "59m", "5h", "7h", "23h", "25h", "48h", "2w", "5mo", "9mo", "18mo", "24mo", "2y", "12y"] {
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
        slot in prop::sample::select(vec!["1s", "15m", "1h", "90m", "6h", "12h", "1d", "3d", "1w", "1mo", "3mo", "1y"]),
        starts in prop::option::of((-1_000i64..30_000, 0u32..24)),
        zone in prop::sample::select(vec!["UTC", "Europe/Berlin", "America/New_York", "America/St_Johns", "America/Havana",
            "Australia/Lord_Howe", "Pacific/Apia", "Asia/Kathmandu", "Africa/Casablanca", "America/Sao_Paulo", "Asia/Tehran"]),
    ) {
        let slot: Span = slot.parse().unwrap();
        let starts = starts.map(|(day, hour)| {
            let day = NaiveDate::default() + TimeDelta::days(day);
            let day = day.with_day(day.day().min(28)).unwrap();
            format!("{day}T{hour:02}:00").parse().unwrap()
        });
        let calendar = Calendar::with_start(slot, zone.parse().unwrap(), starts).unwrap();
        let at = Timestamp::from_millis(second * 1_000);
        let (start, next) = (calendar.slot_of(at), calendar.next(at));
        prop_assert!(start <= at && at < next);
        prop_assert_eq!(calendar.slot_of(start), start);
        prop_assert_eq!(calendar.slot_of(next.plus_millis(-1)), start);
        prop_assert_eq!(calendar.slot_of(next), next);
        prop_assert_eq!(calendar.next(start), next);
        prop_assert_eq!(calendar.previous(next), start);
        if slot.is_a_day_or_longer() {
            prop_assert!(calendar.first_day(start) < calendar.first_day(next));
        } else {
            prop_assert_eq!(calendar, Calendar::new(slot, zone.parse().unwrap()).unwrap());
        }
    }
}

#[test]
fn an_anchor_gives_days_their_hour_weeks_their_day_and_months_their_day() {
    let at = t("2026-11-16T04:30:00Z"); // a Monday, 05:30 in Berlin
    for (slot, starts, start, next) in [
        ("1d", "2026-11-01T05:00", "2026-11-16T04:00:00Z", "2026-11-17T04:00:00Z"),
        ("24h", "2030-01-01T06:00", "2026-11-15T05:00:00Z", "2026-11-16T05:00:00Z"),
        ("7d", "2026-11-01", "2026-11-14T23:00:00Z", "2026-11-21T23:00:00Z"),
        ("10d", "2026-11-01T05:00", "2026-11-11T04:00:00Z", "2026-11-21T04:00:00Z"),
        ("1w", "2026-11-01", "2026-11-14T23:00:00Z", "2026-11-21T23:00:00Z"),
        ("1w", "2026-11-02T06:00", "2026-11-09T05:00:00Z", "2026-11-16T05:00:00Z"),
        ("1mo", "2020-02-15T05:00", "2026-11-15T04:00:00Z", "2026-12-15T04:00:00Z"),
        ("1mo", "2020-02-17", "2026-10-16T22:00:00Z", "2026-11-16T23:00:00Z"),
        ("3mo", "2026-11-01T05:00", "2026-11-01T04:00:00Z", "2027-02-01T04:00:00Z"),
        ("3mo", "2024-07-01", "2026-09-30T22:00:00Z", "2026-12-31T23:00:00Z"),
        ("6mo", "1999-04-06", "2026-10-05T22:00:00Z", "2027-04-05T22:00:00Z"),
        ("1y", "2030-04-06", "2026-04-05T22:00:00Z", "2027-04-05T22:00:00Z"),
        ("12h", "2026-11-01T05:00", "2026-11-15T23:00:00Z", "2026-11-16T11:00:00Z"),
    ] {
        let zone = "Europe/Berlin".parse().unwrap();
        let calendar = Calendar::with_start(slot.parse().unwrap(), zone, starts.parse().ok()).unwrap();
        assert_eq!((calendar.slot_of(at), calendar.next(at)), (t(start), t(next)), "{slot} from {starts}");
    }
    assert_eq!(calendar("3mo", "UTC").slot_of(at), t("2026-10-01T00:00:00Z"), "quarters of the year");
    assert_eq!(calendar("3mo", "UTC").slots_exactly("1y".parse().unwrap()), Ok(4));
    assert!(calendar("3mo", "UTC").slots_exactly("4mo".parse().unwrap()).is_err());
}
