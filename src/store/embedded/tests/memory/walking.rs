//! Tests that a checkpoint's walk and the log since it began end in the state of memory, whatever changes in the
//! meantime.

use proptest::prelude::*;

use super::crashing::{Step, made, step};
use super::*;
use crate::store::embedded::hashed_name::HashedName;
use crate::store::embedded::holdings::walking::Walk;
use crate::store::embedded::log_operations::operations;
use crate::store::embedded::replaying::replay;

/// Does a step, and adds it to the log.
fn change(board: &Board, data: &mut BoardState, step: Step, log: &mut LogOperations) {
    match step {
        Step::Add(items) => {
            let increments = items.into_iter().map(|item| made(board, data.now, item)).collect();
            apply(board, data, &Batch { increments, return_scores: false }, log);
        }
        Step::Remove(who) => {
            let subject = subject(who);
            let floor = data.window.floor.millis();
            if data.holdings.remove(HashedName::from(subject.as_str()), floor).any {
                log.removed(subject.as_str());
            }
        }
        Step::Forward(by) => {
            let advance = data.advance(data.now.plus_millis(by));
            if !advance.tracks.is_empty() {
                log.advanced(data.now.millis());
            }
        }
        Step::Retire => {
            data.retire(|work| work < 3);
            data.visit_portion(5);
        }
        Step::Reopen | Step::Redefine | Step::Checkpoint => {}
        Step::Attach(_) | Step::Exchange | Step::Detach | Step::Fill => {}
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]
    #[test]
    fn a_checkpoint_and_the_log_since_its_start_restore_the_tables(
        before in prop::collection::vec(step(), 1..40),
        during in prop::collection::vec((step(), 0usize..200), 0..40),
        definition in prop::sample::select(every_definition()),
    ) {
        let board = alone(definition);
        let mut data = BoardState::new(board.clone().into(), START);
        let mut earlier = LogOperations::of(board.edition().main().id());
        before.into_iter().for_each(|step| change(&board, &mut data, step, &mut earlier));

        let mut checkpoint = LogOperations::of(board.edition().main().id());
        checkpoint.advanced(data.now.millis());
        data.events.write(&mut checkpoint);
        let mut log = LogOperations::of(board.edition().main().id());
        let mut walk: Walk = data.holdings.begin_walk();
        let mut more = true;
        for (step, bytes) in during {
            change(&board, &mut data, step, &mut log);
            more = more && data.holdings.checkpoint_portion(&mut walk, bytes, &mut checkpoint);
        }
        while more {
            let from = checkpoint.len();
            more = data.holdings.checkpoint_portion(&mut walk, 100, &mut checkpoint);
            prop_assert!(checkpoint.len() <= from + 100 + 100, "a portion is bounded");
        }
        let mut restored = BoardState::new(board.clone().into(), Timestamp::EPOCH);
        for operation in operations(checkpoint.bytes()).chain(operations(log.bytes())) {
            replay(&mut restored, Some(0), operation.unwrap()).unwrap();
        }
        restored.rebuild();
        restored.advance(data.now);
        while !data.retire(|_| true).1 {}
        while !restored.retire(|_| true).1 {}
        prop_assert_eq!(contents::live_contents(&restored), contents::live_contents(&data));
        let events = |data: &BoardState| data.events.since(data.window.floor.millis()).collect::<Vec<_>>();
        prop_assert_eq!(events(&restored), events(&data));
    }
}

/// Tests that a subject with many values, or sketches, is written in several portions.
#[test]
fn large_subjects_are_checkpointed_in_portions() {
    for definition in every_definition() {
        let board = alone(definition);
        let takes_values = !board.edition().takes(&Change::Amount(Amount(1)));
        if !takes_values {
            continue;
        }
        let mut data = BoardState::new(board.clone().into(), START);
        let mut log = LogOperations::of(board.edition().main().id());
        let item = |number: i64| Increment { change: super::change(&board, number), ..increment(1, 0, None, None) };
        let batch = Batch { increments: (0..3_000).map(item).collect(), return_scores: false };
        apply(&board, &mut data, &batch, &mut log);
        let mut checkpoint = LogOperations::of(board.edition().main().id());
        let (mut walk, mut portions) = (data.holdings.begin_walk(), 1);
        loop {
            let from = checkpoint.len();
            let more = data.holdings.checkpoint_portion(&mut walk, 1_000, &mut checkpoint);
            assert!(checkpoint.len() - from <= 1_000 + 2_100);
            if !more {
                break;
            }
            portions += 1;
        }
        let mut restored = BoardState::new(board.clone().into(), START);
        for operation in operations(checkpoint.bytes()) {
            replay(&mut restored, Some(0), operation.unwrap()).unwrap();
        }
        restored.rebuild();
        assert_eq!(contents::live_contents(&restored), contents::live_contents(&data));
        assert!(portions > 1 || checkpoint.len() < 2_500);
    }
}
