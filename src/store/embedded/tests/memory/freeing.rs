//! Tests that expired data is freed although its subjects get no further writes, and that memory is given back.

use super::*;

/// Applies a batch at a time.
fn write(board: &Board, data: &mut BoardState, now: Timestamp, increments: Vec<Increment>) {
    data.advance(now);
    let batch = Batch { increments, return_scores: false };
    let added = apply(board, data, &batch, &mut LogOperations::of(board.edition().main().id()));
    assert!(added.outcomes.iter().all(|outcome| matches!(outcome, Outcome::Counted { .. })));
}

#[tokio::test]
async fn idle_subjects_are_freed() {
    for definition in every_definition() {
        let store = fresh();
        let board = define_as(&store, &definition).await;
        let item = |number| Increment { change: change(&board, number), ..increment(0, 0, None, None) };
        let idle = (1..=100).map(|who| Increment { subject: subject(who), ..item(1) });
        add(&store, &board, idle.collect()).await.unwrap();
        // A retracted value is in no slot, and is removed all the same.
        if board.edition().takes_retractions() {
            let gone = Increment { other: None, subject: subject(101), retract: true, at: Some(START), ..item(2) };
            add(&store, &board, vec![gone]).await.unwrap();
        }
        for hour in 1..=12 {
            store.set_clock(START.plus_millis(hour * HOUR)).await.unwrap();
            // One subject always gets writes, so that never everything expires at once.
            add(&store, &board, vec![Increment { subject: subject(200), ..item(hour) }]).await.unwrap();
            while !store.retire_step(&board.main()).await.unwrap().done {}
            store.retire_step(&board.main()).await.unwrap();
        }
        assert_eq!(live(&store).state.lock().holdings.subjects.len(), 1, "{definition:?}");
    }
}

#[tokio::test]
async fn a_full_expiry_frees_all_subjects() {
    for definition in every_definition() {
        let store = fresh();
        let board = define_as(&store, &definition).await;
        let item = |who| Increment { change: change(&board, 1), ..increment(who, 0, None, None) };
        add(&store, &board, (0..100).map(item).collect()).await.unwrap();
        store.set_clock(START.plus_millis(1_000 * HOUR)).await.unwrap();
        for _ in 0..3 {
            store.retire_step(&board.main()).await.unwrap();
        }
        assert_eq!(live(&store).state.lock().holdings.subjects.len(), 0, "{definition:?}");
    }
}

/// Tests with sessions that are seen once each, equally many in every ten minutes: memory holds little more than the
/// sessions of the time that the board keeps.
#[test]
fn the_number_of_kept_subjects_is_bounded() {
    const EACH: usize = 5_000;
    let mut definition = Definition::new("COUNT(1h, view, session)".parse().unwrap(), "1m".parse().unwrap());
    definition.ranked = false;
    let board = alone(definition);
    let mut data = BoardState::new(board.clone().into(), START);
    let mut most = 0;
    for step in 0..36 {
        let now = START.plus_millis(step * 600_000);
        for part in 0..EACH / 100 {
            let session = |nth| named(format!("session {step} {part} {nth}"), Change::Amount(Amount(1)));
            write(&board, &mut data, now.plus_millis(part as i64 * 10_000), (0..100).map(session).collect());
        }
        most = most.max(data.holdings.subjects.len());
    }
    // 61 slots of a minute are kept.
    assert!(most < EACH * 61 / 10 * 3 / 2, "{most}");
}

/// Tests that visits alone give the memory back after 90 of 100 subjects have expired, with only a few writes.
#[test]
fn memory_is_released_after_subjects_expire() {
    const COUNT: usize = 60_000;
    for ranked in [true, false] {
        let mut definition = hours("COUNT(3h, like, post)");
        definition.ranked = ranked;
        let board = alone(definition);
        let mut data = BoardState::new(board.clone().into(), START);
        let like = |nth: usize| named(format!("post {nth:09}"), Change::Amount(Amount(1 + nth as i64 % 50)));
        for part in 0..COUNT / 1_000 {
            write(&board, &mut data, START, (part * 1_000..(part + 1) * 1_000).map(like).collect());
        }
        let full = data.holdings.memory_bytes();
        for hour in 1..=3 {
            for part in 0..COUNT / 10_000 {
                let few = (part * 10_000..(part + 1) * 10_000).step_by(10).map(like);
                write(&board, &mut data, START.plus_millis(hour * HOUR), few.collect());
            }
        }
        // An unranked board keeps one slot more.
        data.advance(START.plus_millis(4 * HOUR));
        while !data.retire(|work| work < 1_000).1 {}
        let mut portions = 0;
        while data.is_visit_due() {
            let visit = data.visit_portion(500);
            assert!(visit.work < 2_000);
            portions += 1;
            assert!(portions < 2_000);
        }
        let left = data.holdings.memory_bytes();
        assert_eq!(data.holdings.subjects.len(), COUNT / 10);
        // The remaining subjects have three cells, which take 2.4 times the memory that each took before.
        assert!(left < full / 3, "{left} of {full} bytes");
        contents::live_contents(&data);
    }
}

#[tokio::test]
async fn counts_of_more_slots_than_a_window_may_exceed_every_number() {
    let store = fresh();
    // The bound of a slot follows from the window, which has one.
    let definition = Definition { ranked: false, keep: Some("4000h".parse().unwrap()), ..hours("AVG(1h, e, v, s)") };
    let board = define_as(&store, &definition).await;
    let bound = board.edition().main().slot_bound();
    // The last ones push the oldest out.
    for hour in 0..4_100 {
        let now = START.plus_millis(hour * HOUR);
        store.set_clock(now).await.unwrap();
        let change = Change::Set { sum: bound, count: bound.0 };
        let sample = Increment { change, ..increment(1, 0, Some(now), None) };
        assert_eq!(add(&store, &board, vec![sample]).await.unwrap(), [Outcome::Counted { score: None }]);
    }
}
