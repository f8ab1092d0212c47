//! Tests of time that passes over more slots than 16 bits can tell apart, while some subjects are idle for long: memory
//! must be equal to a simple model.

use std::collections::BTreeMap;

use super::*;
use crate::board::Kind;
use crate::store::embedded::hashed_name::HashedName;
use crate::store::embedded::log_operations::operations;
use crate::store::embedded::ranking_reads;
use crate::store::embedded::replaying::replay;

const SLOTS: i64 = 100_000;
const SECOND: i64 = 1_000;

fn board(ranked: bool, mode: Mode) -> Board {
    let mut definition = Definition::new("SUM(1000s, sale, amount, seller)".parse().unwrap(), "1s".parse().unwrap());
    (definition.ranked, definition.mode) = (ranked, mode);
    alone(definition)
}

/// What each subject has, by the second; on a `from_first` board its counter.
#[derive(Default)]
struct Model {
    amounts: BTreeMap<String, BTreeMap<i64, i64>>,
}

impl Model {
    fn add(&mut self, who: &str, (at, now): (i64, i64), amount: i64, duration: Option<i64>) {
        let held = self.amounts.entry(who.to_owned()).or_default();
        match (duration, held.last_entry()) {
            (Some(duration), Some(mut counter)) if at.max(now) < *counter.key() + duration => {
                *counter.get_mut() += amount
            }
            (Some(_), _) => {
                held.clear();
                held.insert(at, amount);
            }
            (None, _) => *held.entry(at - at.rem_euclid(SECOND)).or_default() += amount,
        }
    }

    fn score(&self, who: &str, from: i64) -> i64 {
        self.amounts.get(who).map_or(0, |held| held.range(from..).map(|(_, amount)| amount).sum())
    }
}

/// Writes to subjects that get events every second, occasionally, rarely, and late, with and without calls of the steps
/// of retiring and visiting.
fn pass(board: &Board, helped: bool) -> (BoardState, Model, Vec<u8>) {
    let mut data = BoardState::new(board.clone().into(), START);
    let (mut model, mut log) = (Model::default(), Vec::new());
    let duration = data.holdings.traits.counter_duration;
    let mut now = START;
    let mut second = 0i64;
    while second < SLOTS {
        second += [1, 1, 1, 7, 40, 1, 900, 1][(second % 8) as usize];
        now = START.plus_millis(second * SECOND + second % 1_000);
        data.advance(now);
        let mut due = vec![("always".to_owned(), 0), (format!("seldom {}", second % 50), 0)];
        if second % 3 == 0 {
            due.push((format!("late {}", second % 20), 500 * SECOND));
        }
        if second % 97 == 0 {
            due.push((format!("once {second}"), 0));
        }
        if second % 20_011 < 900 {
            due.push(("rare".to_owned(), 0));
        }
        let item = |(who, late): &(String, i64)| Increment {
            other: None,
            subject: Subject::parse(who).unwrap(),
            change: Change::Amount(Amount(second % 9 + 1)),
            retract: false,
            at: Some(now.plus_millis(-late)),
            id: None,
            period: None,
            event: None,
        };
        let batch = Batch { increments: due.iter().map(item).collect(), return_scores: false };
        let mut operations = LogOperations::of(board.edition().main().id());
        apply(board, &mut data, &batch, &mut operations);
        log.extend_from_slice(operations.bytes());
        for (who, late) in &due {
            model.add(who, (now.millis() - late, now.millis()), second % 9 + 1, duration);
        }
        if helped {
            data.retire(|work| work < 50);
            data.visit_portion(8);
        }
        if second % 101 < 8 {
            compare(&data, &model, now);
        }
    }
    compare(&data, &model, now);
    (data, model, log)
}

fn compare(data: &BoardState, model: &Model, now: Timestamp) {
    let traits = data.holdings.traits;
    let floor = data.window.floor.millis();
    for who in model.amounts.keys().take(200) {
        let found = ranking_reads::score(data, &Subject::parse(who).unwrap());
        let expected = match traits.counter_duration {
            Some(duration) => model.score(who, now.millis() - duration + 1),
            // A ranking includes what was not subtracted yet.
            None if traits.ranked => {
                let held = data.holdings.combined_value(HashedName::from(who.as_str()), floor);
                assert_eq!(
                    held,
                    Kind::Sum.absent().map(|_| { crate::board::Value::Exact(Amount(model.score(who, floor))) })
                );
                continue;
            }
            None => model.score(who, floor),
        };
        assert_eq!(found, Some(crate::board::Value::Exact(Amount(expected))), "{who}");
    }
}

#[test]
fn boards_are_exact_over_a_hundred_thousand_slots() {
    for (ranked, mode) in [(true, Mode::Sliding), (false, Mode::Sliding), (false, Mode::FromFirst)] {
        for helped in [true, false] {
            let board = board(ranked, mode);
            let (mut data, model, log) = pass(&board, helped);
            // Without these calls a board keeps more, but never a cell whose ordinal is ambiguous.
            while !data.retire(|_| true).1 {}
            contents::live_contents(&data);
            // Applying the whole log again ends in the same state.
            let mut restored = BoardState::new(board.clone().into(), Timestamp::EPOCH);
            restored.move_clock(data.now);
            for operation in operations(&log) {
                replay(&mut restored, Some(0), operation.unwrap()).unwrap();
            }
            restored.rebuild();
            compare(&restored, &model, data.now);
            assert_eq!(contents::live_contents(&restored), contents::live_contents(&data), "{ranked} {mode:?}");
        }
    }
}
