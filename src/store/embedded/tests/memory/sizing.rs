//! Comparison of the estimated memory of subjects with what a board's data takes.

use super::*;
use crate::board::Kind;
use crate::store::embedded::sizing::bytes_per_subject;

/// The largest deviation of an estimate, as a share of the memory taken.
const TOLERANCE: f64 = 0.25;

/// Adds one increment for each subject, with a value of its own for each slot and `turn`.
fn fill(board: &Board, data: &mut BoardState, subjects: u64, turn: i64) {
    let mut operations = LogOperations::of(board.edition().main().id());
    let slot = data.window.head.millis() / HOUR;
    let amount = Change::Amount(Amount(1));
    let item = |nth: u64| {
        let mixed = nth.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let change = match board.edition().takes(&amount) {
            true => Change::Amount(Amount((mixed >> 40) as i64 + slot)),
            false => Change::Seen(Counted::parse(&format!("{:04}{turn:08}", slot % 10_000)).unwrap()),
        };
        named(format!("{:012x}", (mixed ^ mixed >> 29) & 0xffff_ffff_ffff), change)
    };
    for from in (0..subjects).step_by(250) {
        let increments = (from..subjects.min(from + 250)).map(item).collect();
        apply(board, data, &Batch { increments, return_scores: false }, &mut operations);
        operations = LogOperations::of(board.edition().main().id());
    }
}

/// Returns the bytes that a subject takes.
fn taken(data: &BoardState) -> f64 {
    let holdings = &data.holdings;
    let (owned, counted) = holdings.subjects.owned_bytes();
    assert_eq!(owned, counted);
    holdings.memory_bytes() as f64 / holdings.subjects.len() as f64
}

fn compare(what: &str, estimate: u64, taken: f64) {
    println!("{what}: {estimate} estimated, {taken:.0} taken");
    let deviation = (estimate as f64 - taken) / taken;
    assert!(deviation.abs() <= TOLERANCE, "{what}: {estimate} bytes estimated, {taken:.0} taken");
}

#[test]
fn estimates_are_close_to_the_memory_taken() {
    // Each class of pieces has a chunk that is not in use, which many subjects share.
    const SUBJECTS: u64 = 16_000;
    for metric in [
        "COUNT(6h, e, s)",
        "AVG(6h, e, v, s)",
        "MAX(6h, e, v, s)",
        "COUNT_DISTINCT(6h, e, s, v)",
        "APPROX_COUNT_DISTINCT(6h, e, s, v)",
    ] {
        for ranked in [true, false] {
            let board = alone(Definition { ranked, ..hours(metric) });
            let estimate = bytes_per_subject(board.edition().main());
            let what = |slots: u32| format!("{metric}, ranked {ranked}, {slots} slots");
            let mut data = BoardState::new(board.clone().into(), START);
            fill(&board, &mut data, SUBJECTS, 0);
            compare(&what(1), estimate.one_slot, taken(&data));
            for hour in 1..board.edition().main().kept() {
                data.advance(START.plus_millis(i64::from(hour) * HOUR));
                fill(&board, &mut data, SUBJECTS, 0);
            }
            compare(&what(board.edition().main().kept()), estimate.all_slots, taken(&data));
            assert_eq!(data.holdings.subjects.len() as u64, SUBJECTS);
            if !matches!(board.kind(), Kind::Distinct | Kind::Sketch) {
                assert_eq!((estimate.each_value, estimate.at_most), (None, Some(estimate.all_slots)));
            }
        }
    }
}

#[test]
fn estimates_of_many_values_are_close_to_the_memory_taken() {
    for (metric, values) in [("COUNT_DISTINCT(2h, e, s, v)", 1_000), ("APPROX_COUNT_DISTINCT(2h, e, s, v)", 3_000)] {
        for ranked in [true, false] {
            let max_values = metric.starts_with("COUNT").then_some(values as u32);
            let board = alone(Definition { ranked, max_values, ..hours(metric) });
            let estimate = bytes_per_subject(board.edition().main());
            let mut data = BoardState::new(board.clone().into(), START);
            for hour in 0..board.edition().main().kept() {
                data.advance(START.plus_millis(i64::from(hour) * HOUR));
                (0..values).for_each(|turn| fill(&board, &mut data, 40, turn));
                if hour == 0 && board.kind() == Kind::Distinct {
                    let each = taken(&data) / values as f64;
                    compare(&format!("{metric}, ranked {ranked}, a value"), estimate.each_value.unwrap(), each);
                }
            }
            compare(&format!("{metric}, ranked {ranked}, full"), estimate.at_most.unwrap(), taken(&data));
        }
    }
    let unlimited = alone(hours("COUNT_DISTINCT(2h, e, s, v)"));
    assert_eq!(bytes_per_subject(unlimited.edition().main()).at_most, None);
}

#[test]
fn estimates_of_counters_of_persons_are_close_to_the_memory_taken() {
    const PERSONS: u32 = 1_000;
    for max_values in [None, Some(PERSONS)] {
        let cap = serde_json::from_str(r#"{"per": "u", "most": 10, "every": "1d"}"#).unwrap();
        let days = Definition::new("COUNT(1d, e, s)".parse().unwrap(), Span::DAY);
        let board = alone(Definition { cap: Some(cap), max_values, ..days });
        let estimate = bytes_per_subject(board.edition().main());
        let mut data = BoardState::new(board.clone().into(), START);
        (0..PERSONS).for_each(|turn| fill(&board, &mut data, 40, turn.into()));
        let each = taken(&data) / f64::from(PERSONS);
        compare(&format!("max_values {max_values:?}, a counter"), estimate.each_value.unwrap(), each);
        let full = max_values.map(|_| compare("all counters", estimate.at_most.unwrap(), taken(&data)));
        assert_eq!(full.is_some(), estimate.at_most.is_some());
    }
}

#[test]
fn the_estimate_of_a_counter_is_close_to_the_memory_taken() {
    let board = alone(Definition { ranked: false, mode: Mode::FromFirst, ..hours("COUNT(6h, e, s)") });
    let mut data = BoardState::new(board.clone().into(), START);
    fill(&board, &mut data, 4_000, 0);
    let estimate = bytes_per_subject(board.edition().main());
    compare("from_first", estimate.one_slot, taken(&data));
    assert_eq!((estimate.all_slots, estimate.at_most), (estimate.one_slot, Some(estimate.one_slot)));
}
