//! Tests of batches in portions, while time passes and other calls write in between.

use std::collections::BTreeMap;

use super::contents::live_contents;
use super::*;
use crate::board::Value;
use crate::store::Rejection;
use crate::store::embedded::log_operations::operations;
use crate::store::embedded::ranking_reads;
use crate::store::embedded::replaying::replay;

const ITEMS: i64 = 1_000;
const KEY: FingerprintKey = FingerprintKey(3, 4);

/// Returns an item for one of 250 subjects, in the slot of this many hours ago, with an id or without.
fn item(number: i64, hours: i64, id: bool) -> Increment {
    Increment {
        at: Some(START.plus_millis(-hours * HOUR)),
        id: id.then(|| EventId::parse(&format!("{number}")).unwrap()),
        ..named(format!("s{}", number % 250), Change::Amount(Amount(1 + number % 5)))
    }
}

/// Returns the state after replaying operations.
fn replayed(board: &Board, bytes: &[u8], now: Timestamp) -> BoardState {
    let mut data = BoardState::new(board.clone().into(), Timestamp::EPOCH);
    for operation in operations(bytes) {
        replay(&mut data, Some(0), operation.unwrap()).unwrap();
    }
    data.move_clock(now);
    data.rebuild();
    data
}

/// Tests slots that leave the window between two portions: items counted before stay counted, the remaining ones are
/// too late, and the log contains the same.
#[test]
fn items_of_slots_that_end_between_portions_are_rejected() {
    for (ranked, id) in [(true, true), (true, false), (false, true), (false, false)] {
        let board = alone(Definition { ranked, ..hours("SUM(3h, sale, amount, seller)") });
        let mut data = BoardState::new(board.clone().into(), START);
        let increments: Vec<_> = (0..ITEMS).map(|number| item(number, number % 3, id)).collect();
        let batch = Batch { increments, return_scores: true };
        let mut application = BatchApplication::new(
            (&board, 0),
            &batch,
            Undone::all(batch.increments.len()),
            (&data.windows(), data.now()),
            0,
            KEY,
        );
        let mut log = LogOperations::of(board.edition().main().id());
        let mut portions = 0;
        let mut now = START;
        loop {
            log.advanced(now.millis());
            portions += 1;
            if application.apply_portion(&mut data, Room::UNLIMITED, &mut log) {
                break;
            }
            // The oldest of the three slots ends after the first portion, the next one after the third.
            if portions == 1 || portions == 3 {
                now = now.plus_millis(HOUR);
                data.advance(now);
            }
        }
        let outcomes = application.finish(data.frame()).outcomes;
        let mut expected: BTreeMap<String, i64> = BTreeMap::new();
        let (mut counted, mut late) = (0, 0);
        for (increment, outcome) in batch.increments.iter().zip(&outcomes) {
            let Change::Amount(Amount(amount)) = increment.change else { unreachable!() };
            let of = expected.entry(increment.subject.to_string()).or_default();
            match outcome {
                Outcome::Counted { .. } if increment.at.unwrap() >= data.window.floor => *of += amount,
                Outcome::Counted { .. } => counted += 1,
                Outcome::Rejected(Rejection::TooLate) => late += 1,
                other => panic!("{other:?}"),
            }
        }
        assert!(portions >= 2 && late > 0 && counted > 0, "{portions} portions, {late} late, {counted} expired");
        while !data.retire(|_| true).1 {}
        for (who, sum) in &expected {
            let score = ranking_reads::score(&data, &Subject::parse(who).unwrap());
            assert_eq!(score, Some(Value::Exact(Amount(*sum))), "{who}");
        }
        let copy = replayed(&board, log.bytes(), now);
        assert_eq!(live_contents(&copy), live_contents(&data));
    }
}

/// Tests that each id counts once if two callers apply the same batch at the same time, portion by portion.
#[test]
fn concurrent_equal_batches_count_each_id_once() {
    let board = alone(hours("SUM(3h, sale, amount, seller)"));
    let mut data = BoardState::new(board.clone().into(), START);
    let mut log = LogOperations::of(board.edition().main().id());
    let batch = Batch { increments: (0..ITEMS).map(|number| item(number, 0, true)).collect(), return_scores: false };
    let new = || {
        BatchApplication::new(
            (&board, 0),
            &batch,
            Undone::all(batch.increments.len()),
            (&[board.edition().main().window_at(START)], START),
            0,
            KEY,
        )
    };
    let (mut one, mut two) = (new(), new());
    let mut done = (false, false);
    while done != (true, true) {
        done.0 = done.0 || one.apply_portion(&mut data, Room::UNLIMITED, &mut log);
        // The second caller overtakes the first.
        for _ in 0..2 {
            done.1 = done.1 || two.apply_portion(&mut data, Room::UNLIMITED, &mut log);
        }
    }
    let (one, two) = (one.finish(data.frame()).outcomes, two.finish(data.frame()).outcomes);
    for pair in one.iter().zip(&two) {
        let (counted, known) = (Outcome::Counted { score: None }, Outcome::Duplicate { score: None });
        assert!(pair == (&counted, &known) || pair == (&known, &counted), "{pair:?}");
    }
    let sum: i64 = (0..250)
        .map(|who| match ranking_reads::score(&data, &Subject::parse(&format!("s{who}")).unwrap()) {
            Some(Value::Exact(Amount(units))) => units,
            other => panic!("{other:?}"),
        })
        .sum();
    assert_eq!(sum, (0..ITEMS).map(|number| 1 + number % 5).sum::<i64>());
    assert_eq!(live_contents(&replayed(&board, log.bytes(), START)), live_contents(&data));
}
