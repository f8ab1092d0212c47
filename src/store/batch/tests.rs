use super::*;
use std::borrow::Cow;

use crate::board::{BoardName, Definition, EXACT_MAX, Field, Fields, Generation};

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
        period: None,
        event: None,
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

/// A board of likes in a day, with a successor of likes from apps in an hour.
fn with_successor(next: &str) -> Board {
    let definition = Definition::new("COUNT(24h, like, post)".parse().unwrap(), "1h".parse().unwrap());
    let board = Board::new(BoardName::parse("b").unwrap(), Generation(1), definition).unwrap();
    board.attached(serde_json::from_str(next).unwrap(), crate::board::TrackId(100)).unwrap()
}

#[test]
fn each_edition_has_slots_and_a_sum_of_its_own() {
    let board = with_successor(r#"{"metric":"SUM(1h, like, weight, post WHERE app = 1)","slot":"5m"}"#);
    let now = Timestamp::parse("2026-01-01T10:30:00Z").unwrap();
    let item = |amount: i64, other: Option<Change>, at: Option<&str>, retract: bool| Increment {
        other: other.map(Box::new),
        retract,
        ..increment("a", amount, at, None)
    };
    let weight = |units| Some(Change::Amount(Amount(units)));
    let items = [
        item(1, weight(10), None, false),
        item(1, weight(20), None, true),
        item(1, Some(Change::Not(NotCounted::Filtered)), None, false),
        item(1, weight(30), Some("2026-01-01T09:00:00Z"), false),
        item(1, None, None, false),
        item(1, Some(Change::Not(NotCounted::Filtered)), None, false),
        Increment { change: Change::Not(NotCounted::Filtered), ..item(0, weight(40), None, false) },
        Increment {
            change: Change::Not(NotCounted::Filtered),
            ..item(0, weight(9), Some("2026-01-01T09:00:00Z"), false)
        },
    ];
    let plan = Plan::new(&board, &windows(&board, now), now, 5_000, false, items.iter().enumerate());
    let seen: Vec<_> = plan
        .entries
        .iter()
        .map(|entry| {
            let slots = [0, 1].map(|track| entry.slots.of(track).is_some());
            (entry.items.clone(), slots, entry.sums.map(|sum| sum.map(|sum| sum.amount.0)), entry.missed)
        })
        .collect();
    let missed = |reason| [None, Some(reason)];
    assert_eq!(
        seen,
        [
            (vec![0, 1], [true, true], [Some(0), Some(-10)], [None, None]),
            (vec![2, 5], [true, false], [Some(2), None], missed(NotCounted::Filtered)),
            (vec![3], [true, false], [Some(1), None], missed(NotCounted::TooLate)),
            (vec![4], [true, false], [Some(1), None], missed(NotCounted::Unknown)),
            (vec![6], [false, true], [None, Some(40)], [Some(NotCounted::Filtered), None]),
        ]
    );
    // Neither edition counts it: the current one because of its filter, the other one because it is too late.
    assert_eq!((plan.without_effect, plan.rejected), (vec![7], vec![]));
    assert_eq!(plan.entries[0].margin(0), 1);
    assert!(plan.entries.iter().all(|entry| entry.sent.is_none()));
    let other = plan.entries[0].change(1).unwrap();
    assert_eq!((&*other.0, other.1), (&Change::Amount(Amount(-10)), false));
}

#[test]
fn items_are_not_added_up_if_one_edition_cannot() {
    let board = with_successor(r#"{"metric":"MAX(1h, like, weight, post)","slot":"5m"}"#);
    let now = Timestamp::parse("2026-01-01T10:30:00Z").unwrap();
    let item =
        |units| Increment { other: Some(Box::new(Change::Amount(Amount(units)))), ..increment("a", 1, None, None) };
    let late = Increment { change: Change::Not(NotCounted::Filtered), ..item(3) };
    let items = [item(5), item(7), late];
    let plan = Plan::new(&board, &windows(&board, now), now, 5_000, false, items.iter().enumerate());
    let seen: Vec<_> =
        plan.entries.iter().map(|entry| (entry.items.clone(), entry.change(1).unwrap().0.into_owned())).collect();
    let amount = |units| Change::Amount(Amount(units));
    assert_eq!(seen, [(vec![0], amount(5)), (vec![1], amount(7)), (vec![2], amount(3))]);
    assert_eq!(plan.entries[0].change(0), Some((Cow::Owned(amount(1)), false)));
    assert_eq!(plan.entries[2].change(0), None);
    assert_eq!(plan.entries[2].outcome(), Outcome::Counted { score: None });
}

/// An item that is too late for the current edition is rejected there, although the other one counts it.
#[test]
fn what_is_too_late_for_the_current_edition_only_is_rejected_and_counted() {
    let board = with_successor(r#"{"metric":"COUNT(48h, like, post)","slot":"1h"}"#);
    let now = Timestamp::parse("2026-01-03T10:30:00Z").unwrap();
    let item = |retract| Increment {
        other: Some(Box::new(Change::Amount(Amount(1)))),
        retract,
        ..increment("a", 1, Some("2026-01-02T09:30:00Z"), None)
    };
    let items = [item(false), item(true), Increment { at: None, ..item(false) }];
    let plan = Plan::new(&board, &windows(&board, now), now, 5_000, false, items.iter().enumerate());
    let outcomes: Vec<_> =
        plan.entries.iter().map(|entry| (entry.items.clone(), entry.outcome(), entry.amount(1).0)).collect();
    let counted = Outcome::Counted { score: None };
    assert_eq!(
        outcomes,
        [(vec![0], Outcome::Rejected(Rejection::TooLate), 1), (vec![1], counted, -1), (vec![2], counted, 1)]
    );
}

#[test]
fn items_are_carried_over_to_the_editions_that_a_board_has_now() {
    let alone = Board::new(
        BoardName::parse("b").unwrap(),
        Generation(1),
        Definition::new("COUNT(24h, like, post)".parse().unwrap(), "1h".parse().unwrap()),
    )
    .unwrap();
    let same = with_successor(r#"{"metric":"COUNT(48h, like, post)","slot":"2h"}"#);
    let other = with_successor(r#"{"metric":"SUM(1h, like, weight, post)","slot":"5m"}"#);
    let (item, amount) = (increment("a", 1, None, Some("x")), |units| Change::Amount(Amount(units)));
    assert_eq!(item.carried(&alone, &same), Increment { other: Some(Box::new(amount(1))), ..item.clone() });
    let not_accepted = Change::Not(NotCounted::NotAccepted);
    let expected = Increment { other: Some(Box::new(not_accepted.clone())), ..item.clone() };
    assert_eq!(item.carried(&alone, &other), expected, "it does not say how much it weighs");
    let event = |fields: &[(&str, i64)]| {
        let mut all = Fields::default();
        all.set("post", Field::Text("a".into()));
        fields.iter().for_each(|(name, value)| all.set(*name, Field::Number(value.to_string().into())));
        let event = Event { kind: "like".into(), fields: all, at: None, id: None, retract: false };
        Increment { event: Some(Arc::new(event)), ..item.clone() }
    };
    let weighed = event(&[("weight", 9)]);
    let expected = Increment { other: Some(Box::new(amount(9))), ..weighed.clone() };
    assert_eq!(weighed.carried(&alone, &other), expected);
    let filtered = with_successor(r#"{"metric":"COUNT(1h, like, post WHERE app = 1)","slot":"5m"}"#);
    for (app, counts) in [(1, amount(1)), (0, Change::Not(NotCounted::Filtered))] {
        let sent = event(&[("app", app)]);
        assert_eq!(sent.carried(&alone, &filtered), Increment { other: Some(Box::new(counts)), ..sent.clone() });
    }
    let both = Increment { other: Some(Box::new(amount(9))), ..item.clone() };
    let exchanged = other.exchanged(Timestamp::EPOCH).unwrap();
    let expected = Increment { change: amount(9), other: Some(Box::new(amount(1))), ..item.clone() };
    assert_eq!(both.carried(&other, &exchanged), expected);
    assert_eq!(both.carried(&other, &other.detached()), item);
    assert_eq!(both.carried(&other, &exchanged.detached()), Increment { change: amount(9), ..item.clone() });
    // It knew only the edition that has gone.
    assert_eq!(item.carried(&alone, &exchanged.detached()), Increment { change: not_accepted, ..item.clone() });
    assert_eq!(weighed.carried(&alone, &exchanged.detached()).change, amount(9));
}
