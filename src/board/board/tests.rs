use super::*;
use crate::board::{Amount, Change, Cover, EXACT_MAX, Placement, TrackRole, Window, WindowSlots};

fn board(metric: &str, slot: &str, zone: &str, cover: Cover) -> Board {
    let mut definition = Definition::new(metric.parse().unwrap(), slot.parse().unwrap());
    definition.timezone = zone.parse().unwrap();
    definition.cover = cover;
    Board::new(BoardName::parse("b").unwrap(), Generation(1), definition).unwrap()
}

fn t(text: &str) -> Timestamp {
    Timestamp::parse(text).unwrap()
}

#[test]
fn the_window_is_the_last_n_slots_up_to_the_current_one() {
    let b = board("COUNT(24h, like, post)", "1h", "UTC", Cover::Current);
    let window = b.edition().main().window_at(t("2026-01-02T09:00:00Z"));
    assert_eq!(
        window,
        Window { floor: t("2026-01-01T10:00:00Z"), head: t("2026-01-02T09:00:00Z"), end: t("2026-01-02T10:00:00Z") }
    );
    assert_eq!(b.edition().main().window_at(t("2026-01-02T08:59:59.999Z")).floor, t("2026-01-01T09:00:00Z"));
    let full = board("COUNT(24h, like, post)", "1h", "UTC", Cover::Full);
    assert_eq!(
        (full.edition().main().slots(), full.edition().main().window_at(t("2026-01-02T09:00:00Z")).floor),
        (25, t("2026-01-01T09:00:00Z"))
    );
}

#[test]
fn a_window_across_a_clock_change_has_n_slots() {
    let b = board("COUNT(24h, like, post)", "1h", "Europe/Berlin", Cover::Current);
    let WindowSlots { window, starts } = WindowSlots::at(b.edition().main(), t("2026-03-29T12:30:00Z"));
    assert_eq!(starts.len(), 24);
    assert_eq!(window.floor, t("2026-03-28T13:00:00Z"));
    let days = board("COUNT(7d, like, post)", "1d", "Europe/Berlin", Cover::Current);
    assert_eq!(days.edition().main().window_at(t("2026-03-30T12:00:00Z")).floor, t("2026-03-23T23:00:00Z"));
}

#[test]
fn increments_are_placed_by_their_time() {
    let b = board("COUNT(3h, like, post)", "1h", "UTC", Cover::Current);
    let now = t("2026-01-02T09:59:58Z");
    let window = b.edition().main().window_at(now);
    let place = |at: &str| b.edition().main().place(Some(t(at)), now, &window, 5_000);
    assert_eq!(b.edition().main().place(None, now, &window, 5_000), Placement::Slot(window.head));
    assert_eq!(place("2026-01-02T07:00:00Z"), Placement::Slot(t("2026-01-02T07:00:00Z")));
    assert_eq!(place("2026-01-02T06:59:59.999Z"), Placement::TooLate);
    assert_eq!(place("2026-01-02T08:59:59.999Z"), Placement::Slot(t("2026-01-02T08:00:00Z")));
    // A time ahead of the clock counts in the head, even over the slot's boundary. There are no future slots.
    assert_eq!(place("2026-01-02T10:00:03Z"), Placement::Slot(window.head));
    assert_eq!(place("2026-01-02T10:00:03.001Z"), Placement::TooEarly);
}

#[test]
fn slot_bound_and_dedupe_horizon_follow_from_the_slots() {
    let b = board("COUNT(24h, like, post)", "1h", "UTC", Cover::Current);
    assert_eq!(b.edition().main().slot_bound(), Amount(EXACT_MAX / 48));
    assert_eq!(b.dedupe_horizon(), 86_400_000);
}

#[test]
fn ids_are_remembered_as_long_as_an_item_counts_but_for_a_day_at_most() {
    for (keys, horizon, bucket) in [
        (r#""metric":"COUNT(2h, a, b)","slot":"15m""#, "120m", "60m"),
        // Buckets are those of the window without its additional slot: stored data names them.
        (r#""metric":"COUNT(2h, a, b)","slot":"15m","cover":"full""#, "135m", "60m"),
        (r#""metric":"COUNT(2h, a, b)","slot":"15m","cover":"full","dedupe":"6h""#, "6h", "3h"),
        (r#""metric":"COUNT(7d, a, b)","slot":"1h","dedupe":"1m""#, "1m", "30s"),
        (r#""metric":"COUNT(20h, a, b)","slot":"4h","cover":"full""#, "24h", "10h"),
        (r#""metric":"COUNT(7d, a, b)","slot":"1d","cover":"full""#, "24h", "12h"),
        (r#""metric":"COUNT(3mo, a, b)","slot":"1mo""#, "24h", "12h"),
        (r#""metric":"COUNT(1h, a, b)","slot":"1m","cover":"full","windows":["3h/1h","2h/1h"]"#, "4h", "90m"),
        (r#""metric":"COUNT(1h, a, b)","ranked":false,"mode":"from_first""#, "1h", "30m"),
        (r#""metric":"COUNT(all, a, b)","slot":"1m","keep":"1h","cover":"full""#, "24h", "12h"),
        (r#""metric":"COUNT(all, a, b)","slot":"1m","keep":"1h","dedupe":"90d""#, "90d", "45d"),
    ] {
        let definition = serde_json::from_str(&format!("{{{keys}}}")).unwrap();
        let board = Board::new(BoardName::parse("b").unwrap(), Generation(1), definition).unwrap();
        let millis = |text: &str| text.parse::<Span>().unwrap().approximate_millis();
        assert_eq!((board.dedupe_horizon(), board.dedupe_bucket()), (millis(horizon), millis(bucket)), "{keys}");
    }
}

#[test]
fn each_window_is_a_track_with_an_id_and_slots_of_its_own() {
    let text = r#"{"metric":"COUNT(24h, like, post)","slot":"1h","timezone":"Europe/Berlin","cover":"full",
        "windows":["1h/1m","7d/1d","all"]}"#;
    let definition: Definition = serde_json::from_str(text).unwrap();
    let board = Board::new(BoardName::parse("b").unwrap(), Generation(u64::MAX), definition.clone()).unwrap();
    let board = Arc::new(board.with_partitions(Some([1, 2].into())));
    assert_eq!((board.definition(), board.partitions().map(|numbers| numbers.len())), (&definition, Some(2)));
    let of = |track: BoardTrack| (track.metric().to_string(), track.slots(), track.id().0, track.is_all_time());
    let windows: Vec<_> = board.each_window().map(of).collect();
    assert_eq!(
        windows,
        [
            ("COUNT(24h, like, post)".to_owned(), 25, u64::MAX, false),
            ("COUNT(1h, like, post)".to_owned(), 61, 0, false),
            ("COUNT(7d, like, post)".to_owned(), 8, 1, false),
            ("COUNT(all, like, post)".to_owned(), 1, 2, true),
        ]
    );
    for (number, track) in board.each_track().enumerate() {
        assert_eq!(board.track_with(track.id()).map(|found| found.number()), Some(number));
        assert_eq!(track.id(), TrackId::first_of(board.generation()).numbered(number));
        assert_eq!((track.role(), track.is_main()), (TrackRole::Window, number == 0));
    }
    assert!(board.track_with(TrackId(3)).is_none());
    assert_eq!((board.dedupe_horizon(), board.clock_tolerance()), (DAY, 3_600_000));
    assert_eq!(board.window_of("168h".parse().unwrap()).map(|window| window.slots()), Some(8));
    assert!(board.window_of("2h".parse().unwrap()).is_none());
    let sample = Change::Set { sum: Amount(1), count: 1 };
    let edition = board.edition();
    assert!(!edition.takes(&sample) && edition.takes(&Change::Amount(Amount(1))));
    assert_eq!(edition.tracks()[2].calendar().zone(), chrono_tz::Europe::Berlin);
    assert!(edition.kept_slots().is_none() && board.kept_track().is_none());
}

#[test]
fn a_total_has_kept_slots_beside_it_and_a_counter_neither() {
    let board = |text: &str| {
        let definition: Definition = serde_json::from_str(text).unwrap();
        Arc::new(Board::new(BoardName::parse("b").unwrap(), Generation(7), definition).unwrap())
    };
    let total = board(r#"{"metric":"AVG(all, a, v, s)","slot":"1h","keep":"3h","stamp":"end","min_samples":5}"#);
    let (main, kept) = (total.main(), total.kept_track().unwrap());
    assert_eq!((main.role(), kept.role(), kept.id()), (TrackRole::Window, TrackRole::KeptSlots, TrackId(8)));
    assert_eq!((main.is_ranked(), kept.is_ranked(), kept.slots(), main.slots()), (true, false, 3, 1));
    assert_eq!(
        (main.averaging().min_samples, kept.averaging().min_samples),
        (5, 1),
        "the fewest samples are about the total"
    );
    assert_eq!(total.each_window().map(|window| window.number()).collect::<Vec<_>>(), [0]);
    assert!(total.edition().has_slots() && main.is_all_time() && !kept.is_all_time());
    // The time of a sample is the end of its slot.
    let now = t("2026-01-01T10:00:00Z");
    assert_eq!(kept.place_sample(now, &kept.window_at(now)), Placement::Slot(t("2026-01-01T09:00:00Z")));
    assert_eq!(main.place_sample(now, &main.window_at(now)), Placement::Slot(Timestamp::EPOCH));
    let counter = board(r#"{"metric":"COUNT(1h, a, s)","ranked":false,"mode":"from_first"}"#);
    assert_eq!((counter.main().role(), counter.tracks().len()), (TrackRole::FromFirst, 1));
}

#[test]
fn advancing_a_window_equals_looking_it_up() {
    for (metric, slot, zone) in [
        ("COUNT(90m, a, b)", "30m", "UTC"),
        ("COUNT(12h, a, b)", "1h", "Australia/Lord_Howe"),
        ("COUNT(5d, a, b)", "1d", "Pacific/Apia"),
        ("COUNT(3mo, a, b)", "1mo", "America/Havana"),
    ] {
        let define = || {
            let mut definition = Definition::new(metric.parse().unwrap(), slot.parse().unwrap());
            definition.timezone = zone.parse().unwrap();
            Board::new(BoardName::parse("b").unwrap(), Generation(1), definition).unwrap()
        };
        let fixed = define();
        let track = fixed.edition().main();
        let mut moving = WindowSlots::at(track, Timestamp::EPOCH);
        for from in [0, 1_325_000_000_000] {
            let mut now = Timestamp::from_millis(from);
            for step in 0..300i64 {
                moving.move_to(track, now);
                assert_eq!(moving, WindowSlots::at(track, now), "{metric} {now:?}");
                now = now.plus_millis([600_000, 3_600_000, 86_400_000, 7_000_000][step as usize % 4]);
            }
        }
    }
}
