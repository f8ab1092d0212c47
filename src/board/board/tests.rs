use super::*;
use crate::board::Cover;

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
    let window = b.window_at(t("2026-01-02T09:00:00Z"));
    assert_eq!(
        window,
        Window { floor: t("2026-01-01T10:00:00Z"), head: t("2026-01-02T09:00:00Z"), end: t("2026-01-02T10:00:00Z") }
    );
    assert_eq!(b.window_at(t("2026-01-02T08:59:59.999Z")).floor, t("2026-01-01T09:00:00Z"));
    let full = board("COUNT(24h, like, post)", "1h", "UTC", Cover::Full);
    assert_eq!((full.slots(), full.window_at(t("2026-01-02T09:00:00Z")).floor), (25, t("2026-01-01T09:00:00Z")));
}

#[test]
fn a_window_across_a_clock_change_has_n_slots() {
    let b = board("COUNT(24h, like, post)", "1h", "Europe/Berlin", Cover::Current);
    let (window, starts) = b.window_and_starts(t("2026-03-29T12:30:00Z"));
    assert_eq!(starts.len(), 24);
    assert_eq!(window.floor, t("2026-03-28T13:00:00Z"));
    let days = board("COUNT(7d, like, post)", "1d", "Europe/Berlin", Cover::Current);
    assert_eq!(days.window_at(t("2026-03-30T12:00:00Z")).floor, t("2026-03-23T23:00:00Z"));
}

#[test]
fn increments_are_placed_by_their_time() {
    let b = board("COUNT(3h, like, post)", "1h", "UTC", Cover::Current);
    let now = t("2026-01-02T09:59:58Z");
    let window = b.window_at(now);
    let place = |at: &str| b.place(Some(t(at)), now, &window, 5_000);
    assert_eq!(b.place(None, now, &window, 5_000), Placement::Slot(window.head));
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
    assert_eq!(b.slot_bound(), Amount(EXACT_MAX / 48));
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
        for track in std::iter::once(&board).chain(board.further().iter().map(|further| &**further)) {
            assert_eq!((track.dedupe_horizon(), track.dedupe_bucket()), (millis(horizon), millis(bucket)), "{keys}");
        }
    }
}

#[test]
fn each_further_window_is_a_board_of_its_own() {
    let text = r#"{"metric":"COUNT(24h, like, post)","slot":"1h","timezone":"Europe/Berlin","cover":"full",
        "windows":["1h/1m","7d/1d","all"]}"#;
    let definition: Definition = serde_json::from_str(text).unwrap();
    let board = Board::new(BoardName::parse("b").unwrap(), Generation(u64::MAX), definition.clone()).unwrap();
    let board = Arc::new(board.with_parts(Some("1,2".into())));
    assert_eq!(board.definition(), &definition);
    let of = |board: &Arc<Board>| (board.definition().metric.to_string(), board.slots(), board.generation().0);
    let windows: Vec<_> = board.windows().map(of).collect();
    assert_eq!(
        windows,
        [
            ("COUNT(24h, like, post)".to_owned(), 25, u64::MAX),
            ("COUNT(1h, like, post)".to_owned(), 61, 0),
            ("COUNT(7d, like, post)".to_owned(), 8, 1),
            ("COUNT(all, like, post)".to_owned(), 1, 2),
        ]
    );
    for (number, window) in board.windows().enumerate() {
        assert_eq!(board.track_number(window.generation()), Some(number));
        assert_eq!((window.parts(), window.dedupe_horizon(), window.clock_tolerance()), (Some("1,2"), DAY, 3_600_000));
        assert_eq!(window.generation(), board.generation().of_track(number));
        assert_eq!((window.is_all_time(), window.is_further()), (number == 3, number > 0));
    }
    assert_eq!(board.track_number(Generation(3)), None);
    assert_eq!(board.window_of("168h".parse().unwrap()).map(|board| board.slots()), Some(8));
    assert!(board.window_of("2h".parse().unwrap()).is_none());
    let sample = Change::Set { sum: Amount(1), count: 1 };
    assert!(!board.takes(&sample) && board.takes(&Change::Amount(Amount(1))));
    assert_eq!(board.further()[1].calendar().zone(), chrono_tz::Europe::Berlin);
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
        let moving = define();
        for from in [0, 1_325_000_000_000] {
            let mut now = Timestamp::from_millis(from);
            for step in 0..300i64 {
                assert_eq!(moving.window_and_starts(now), define().window_and_starts(now), "{metric} {now:?}");
                now = now.plus_millis([600_000, 3_600_000, 86_400_000, 7_000_000][step as usize % 4]);
            }
        }
    }
}
