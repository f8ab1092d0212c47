use super::*;
use crate::board::{BoardName, Definition, Generation};
use crate::store::embedded::log_operations::{LogOperation, operations};

const START: Timestamp = Timestamp::from_millis(1_000);

fn boards() -> [Board; 4] {
    let definition = |metric: &str| Definition::new(metric.parse().unwrap(), "1h".parse().unwrap());
    let first =
        Board::new(BoardName::parse("b").unwrap(), Generation(1), definition("SUM(2h, sale, amount, seller)")).unwrap();
    let both = first.attached(definition("SUM(4h, sale, amount, seller)"), TrackId(70)).unwrap();
    let exchanged = both.exchanged(START).unwrap();
    let other = both.detached().attached(definition("SUM(5h, sale, amount, seller)"), TrackId(80)).unwrap();
    [first, both, exchanged, other]
}

#[test]
fn counts_belong_to_editions_whichever_is_the_current_one() {
    let [first, both, exchanged, other] = boards();
    assert!(DualCounts::of(&first, START).is_none());
    let mut dual = DualCounts::of(&both, START).unwrap();
    dual.count(0, NotCounted::Filtered, 2);
    dual.count(1, NotCounted::OutOfRange, 3);
    dual.count(1, NotCounted::Unknown, 9);
    let counted = [vec![(NotCounted::Filtered, 2)], vec![(NotCounted::OutOfRange, 3)]];
    assert_eq!(dual.dual_run().not_counted, counted);
    let dual = dual.of_same_editions(&exchanged).unwrap();
    let [first_counted, second_counted] = counted;
    assert_eq!(dual.dual_run().not_counted, [second_counted, first_counted]);
    assert_eq!(dual.dual_run().since, START);
    assert!(dual.clone().of_same_editions(&other).is_none());
    assert!(dual.of_same_editions(&first).is_none());
}

#[test]
fn counts_are_restored_for_the_same_editions_only() {
    let [_, both, exchanged, other] = boards();
    let mut dual = DualCounts::of(&both, START).unwrap();
    dual.count(0, NotCounted::TooLate, u64::MAX);
    dual.count(0, NotCounted::TooLate, 1);
    dual.was_filled(START.plus_millis(5));
    dual.was_blind(START.plus_millis(7));
    let mut logged = LogOperations::of(both.edition().id());
    dual.log_changes(&mut logged);
    let len = logged.len();
    dual.log_changes(&mut logged);
    assert_eq!(logged.len(), len, "nothing has changed since");
    let restored = |board: &Board| {
        let mut restored = DualCounts::of(board, Timestamp::EPOCH).unwrap();
        for operation in operations(logged.bytes()) {
            if let LogOperation::Counts { editions, counts } = operation.unwrap() {
                restored.restore(editions, counts);
            }
        }
        restored.dual_run()
    };
    assert_eq!(restored(&both), dual.dual_run());
    assert_eq!(restored(&exchanged), dual.clone().of_same_editions(&exchanged).unwrap().dual_run());
    assert_eq!(restored(&other), DualCounts::of(&other, Timestamp::EPOCH).unwrap().dual_run());
}
