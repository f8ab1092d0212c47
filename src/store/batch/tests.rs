use super::*;
use crate::board::{BoardName, Definition, Generation};

/// Returns the window of each track.
fn windows(board: &Board, now: Timestamp) -> Vec<Window> {
    board.tracks().iter().map(|track| track.window_at(now)).collect()
}

fn increment(subject: &str, amount: i64, at: Option<&str>, id: Option<&str>) -> Increment {
    Increment {
        other: None,
        subject: Subject::parse(subject).unwrap(),
        change: Change::Amount(Amount(amount)),
        retract: false,
        at: at.map(|at| Timestamp::parse(at).unwrap()),
        id: id.map(|id| EventId::parse(id).unwrap()),
    }
}

#[test]
fn items_of_one_slot_and_subject_without_ids_are_summed() {
    let definition = Definition::new("COUNT(2h, like, post)".parse().unwrap(), "1h".parse().unwrap());
    let board = Board::new(BoardName::parse("b").unwrap(), Generation(1), definition).unwrap();
    let now = Timestamp::parse("2026-01-01T10:30:00Z").unwrap();
    let window = board.edition().main().window_at(now);
    let items = [
        increment("a", 1, None, None),
        increment("b", 2, None, None),
        increment("a", 4, Some("2026-01-01T10:00:00Z"), None),
        increment("a", 8, Some("2026-01-01T09:00:00Z"), None),
        increment("a", 16, None, Some("x")),
        increment("a", 32, Some("2026-01-01T08:59:59Z"), None),
        increment("a", 64, Some("2026-01-01T11:00:00Z"), None),
        increment("a", -5, None, None),
    ];
    let plan = Plan::new(&board, &[window], now, 5_000, false, items.iter().enumerate());
    let seen: Vec<_> = plan
        .entries
        .iter()
        .map(|e| {
            (e.subject.as_str(), e.amount(0).0, e.items.clone(), e.id.is_some(), e.slots == Slots::First(window.head))
        })
        .collect();
    assert_eq!(
        seen,
        [
            ("a", 5, vec![0, 2], false, true),
            ("b", 2, vec![1], false, true),
            ("a", 8, vec![3], false, false),
            ("a", 16, vec![4], true, true),
            ("a", -5, vec![7], false, true),
        ]
    );
    assert_eq!(plan.rejected, [(5, Rejection::TooLate), (6, Rejection::TooEarly)]);
}

#[test]
fn items_are_placed_in_every_window_that_reaches_back_to_them() {
    let text = r#"{"metric":"COUNT(2h, like, post)","slot":"1h","windows":["3m/1m","all"]}"#;
    let definition: Definition = serde_json::from_str(text).unwrap();
    let board = Board::new(BoardName::parse("b").unwrap(), Generation(1), definition).unwrap();
    let now = Timestamp::parse("2026-01-01T10:30:30Z").unwrap();
    let items = [
        increment("a", 1, None, None),
        increment("a", 2, Some("2026-01-01T10:30:00Z"), None),
        increment("a", 4, Some("2026-01-01T10:29:00Z"), None),
        increment("a", 8, Some("2026-01-01T10:01:00Z"), None),
        increment("a", 16, Some("2026-01-01T10:02:00Z"), None),
        increment("a", 32, Some("2020-01-01T10:30:00Z"), None),
        increment("a", 64, Some("2026-01-01T10:31:00Z"), None),
    ];
    let plan = Plan::new(&board, &windows(&board, now), now, 5_000, false, items.iter().enumerate());
    let time = |slot: Option<Timestamp>| slot.map_or("-".to_owned(), |slot| slot.to_string()[11..16].to_owned());
    let seen: Vec<_> = plan.entries.iter().map(|e| ([0, 1, 2].map(|w| time(e.slots.of(w))), e.amount(0).0)).collect();
    let slots = |slots: [&str; 3]| slots.map(str::to_owned);
    assert_eq!(
        seen,
        [
            (slots(["10:00", "10:30", "00:00"]), 3),
            (slots(["10:00", "10:29", "00:00"]), 4),
            (slots(["10:00", "-", "00:00"]), 24),
            (slots(["-", "-", "00:00"]), 32),
        ]
    );
    assert_eq!(plan.entries[3].slots.first(), Timestamp::EPOCH);
    assert_eq!(plan.rejected, [(6, Rejection::TooEarly)]);
}

#[test]
fn a_sum_keeps_a_margin_for_its_intermediate_values() {
    let definition = Definition::new("SUM(2h, sale, amount, seller)".parse().unwrap(), "1h".parse().unwrap());
    let board = Board::new(BoardName::parse("b").unwrap(), Generation(1), definition).unwrap();
    let now = Timestamp::parse("2026-01-01T10:30:00Z").unwrap();
    let sum = |amounts: &[(usize, i64)]| {
        let amounts = amounts.iter().flat_map(|(times, amount)| std::iter::repeat_n(*amount, *times));
        let items: Vec<Increment> = amounts.map(|amount| increment("a", amount, None, None)).collect();
        let plan = Plan::new(&board, &windows(&board, now), now, 5_000, false, items.iter().enumerate());
        assert_eq!((plan.entries.len(), plan.entries[0].items.len()), (1, items.len()));
        (plan.entries[0].amount(0).0, plan.entries[0].margin(0))
    };
    assert_eq!([sum(&[(3, 5)]), sum(&[(3, -5)]), sum(&[(3, 0)])], [(15, 0), (-15, 0), (0, 0)]);
    // 10 and then 2; 10 above or 12 below it.
    assert_eq!([sum(&[(1, 10), (1, -8)]), sum(&[(1, -10), (1, 12)])], [(2, 8), (2, 12)]);
    assert_eq!(sum(&[(1, 10), (1, -25), (1, 17)]), (2, 17));
    assert_eq!(sum(&[(3, EXACT_MAX), (3, -EXACT_MAX)]), (0, 3 * EXACT_MAX));
    // What is saturated is beyond every bound, by its sum or its margin.
    assert_eq!(sum(&[(3_000, -EXACT_MAX)]), (i64::MIN, 0));
    for amounts in [
        [(3_000, -EXACT_MAX), (3_000, EXACT_MAX)],
        [(2, i64::MIN), (2, i64::MAX)],
        [(2, i64::MAX), (2, i64::MIN)],
        [(2, i64::MAX), (1, -i64::MAX)],
        [(2, i64::MIN), (1, 7)],
    ] {
        let (sum, margin) = sum(&amounts);
        assert!(sum.unsigned_abs() > EXACT_MAX as u64 || margin > 2 * EXACT_MAX, "{amounts:?}: {sum}, {margin}");
    }
}

#[test]
fn amounts_after_an_item_with_an_id_are_a_new_sum() {
    let definition = Definition::new("SUM(2h, sale, amount, seller)".parse().unwrap(), "1h".parse().unwrap());
    let board = Board::new(BoardName::parse("b").unwrap(), Generation(1), definition).unwrap();
    let now = Timestamp::parse("2026-01-01T10:30:00Z").unwrap();
    let old = Some("2026-01-01T09:00:00Z");
    let items = [
        increment("a", 1, None, None),
        increment("a", 2, old, None),
        increment("b", 4, None, None),
        increment("a", 8, None, Some("x")),
        increment("a", 16, None, None),
        increment("a", 32, old, None),
        increment("b", 64, None, None),
        increment("a", 128, None, None),
    ];
    let plan = Plan::new(&board, &windows(&board, now), now, 5_000, false, items.iter().enumerate());
    let seen: Vec<_> = plan.entries.iter().map(|entry| (entry.subject.as_str(), entry.amount(0).0)).collect();
    assert_eq!(seen, [("a", 1), ("a", 34), ("b", 68), ("a", 8), ("a", 144)]);
}
