//! Tests that no call does more work under a board's lock than a bound, however many subjects there are. Work is
//! counted, not timed.

use super::*;
use crate::store::AuditCursor;
use crate::store::embedded::audit;
use crate::store::embedded::hashed_name::HashedName;

/// The number of table entries that one change may move: those of a shard, which has at most 4,096 before it is split.
const TABLE: usize = 8_192;
/// The number of entries, leaves and nodes of the ranking that a call may move, in addition to `RANKING_EACH` for each
/// of its subjects.
const RANKING: usize = 2_048;
const RANKING_EACH: usize = 512;

/// Returns the number of entries moved so far in the tables of subjects and ids, and in the ranking.
fn moved(data: &BoardState) -> [usize; 3] {
    [data.holdings.subjects.moved(), data.ids.moved(), data.holdings.ranking.moved()]
}

/// Makes a change and checks how much it moved. `times` is the number of subjects that it changes.
fn bounded<T>(data: &mut BoardState, times: usize, what: &str, change: impl FnOnce(&mut BoardState) -> T) -> T {
    let before = moved(data);
    let answer = change(data);
    let after = moved(data);
    // If the holdings were replaced, their count starts again at 0.
    let by = |at: usize| after[at].saturating_sub(before[at]);
    let (table, ranking) = (by(0).max(by(1)), by(2));
    // Usually no shard is rebuilt. Names are distributed by a random hash, and shards become full at about the same
    // time, so that three were seen to be rebuilt for 100 subjects in one of eight runs.
    assert!(table <= TABLE * (1 + times / 32), "{what}: {table} entries of tables moved");
    assert!(ranking <= RANKING + RANKING_EACH * times, "{what}: {ranking} entries of the ranking moved");
    answer
}

fn like(number: usize, id: bool) -> Increment {
    let id = id.then(|| EventId::parse(&format!("like {number}")).unwrap());
    Increment { id, ..named(format!("post {number}"), Change::Amount(Amount(1 + (number * 7_919 % 1_000) as i64))) }
}

#[test]
fn work_under_the_lock_does_not_grow_with_the_board() {
    for count in [1_000, 30_000, 200_000] {
        for ranked in [true, false] {
            work_is_bounded(count, ranked);
        }
    }
}

fn work_is_bounded(count: usize, ranked: bool) {
    let board = alone(Definition { ranked, ..hours("COUNT(3h, like, post)") });
    let mut data = BoardState::new(board.clone().into(), START);
    let mut log = LogOperations::of(board.edition().main().id());

    // New subjects, by single writes and by portions.
    let mut number = 0;
    while number < count {
        let step = if number / 1_000 % 2 == 0 { 1 } else { 100 };
        let increments = (number..number + step).map(|number| like(number, number % 4 == 0)).collect();
        let batch = Batch { increments, return_scores: false };
        log.clear();
        bounded(&mut data, step, "new subjects", |data| {
            let mut application = BatchApplication::new(
                (&board, 0),
                &batch,
                Undone::all(batch.increments.len()),
                (&data.windows(), data.now()),
                0,
                FingerprintKey::default(),
            );
            let mut portions = 0;
            while !application.apply_portion(data, Room::UNLIMITED, &mut log) {
                portions += 1;
                assert!(portions <= step, "each portion goes on");
            }
        });
        number += step;
    }
    assert_eq!(data.holdings.subjects.len(), number);

    // Updates and removals.
    for nth in (0..number).step_by(number / 500) {
        let batch = Batch { increments: vec![like(nth, false)], return_scores: false };
        bounded(&mut data, 1, "an update", |data| apply(&board, data, &batch, &mut log));
        let name = format!("post {}", (nth + 1) % number);
        let floor = data.window.floor.millis();
        bounded(&mut data, 1, "a removal", |data| data.holdings.remove(HashedName::from(name.as_str()), floor));
    }

    let (mut cursor, mut steps) = (Some(AuditCursor::default()), 0);
    while let Some(at) = cursor.take() {
        let step = bounded(&mut data, 1, "an audit", |data| audit::step(data, &at, false));
        assert!(step.checked <= 1_000 && step.differences.is_empty());
        (cursor, steps) = (step.next, steps + 1);
    }
    assert!(!ranked || steps >= number / 1_000);

    let mut walk = data.holdings.begin_walk();
    loop {
        log.clear();
        let more = data.holdings.checkpoint_portion(&mut walk, 4_096, &mut log);
        assert!(log.len() <= 4_096 + 100, "{} bytes in a portion", log.len());
        if !more {
            break;
        }
    }

    // All but a few expire.
    data.advance(START.plus_millis(2 * HOUR));
    for nth in (0..number).step_by(50) {
        let batch = Batch { increments: vec![like(nth, false)], return_scores: false };
        apply(&board, &mut data, &batch, &mut log);
    }
    bounded(&mut data, 1, "time", |data| data.advance(START.plus_millis(4 * HOUR)));
    loop {
        let (retired, done) = bounded(&mut data, 64, "retiring", |data| data.retire(|work| work < 64));
        assert!(retired.touched <= 64, "{retired:?}");
        if done {
            break;
        }
    }
    while data.is_visit_due() {
        let visit = bounded(&mut data, 64, "a visit", |data| data.visit_portion(64));
        assert!(visit.work <= 64 + 1_000, "{visit:?}");
    }
    assert_eq!(data.holdings.subjects.len(), number.div_ceil(50));
}
