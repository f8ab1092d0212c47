//! A crash at any moment, of boards of every metric.

use proptest::prelude::*;

use super::contents::live_contents;
use super::*;
use crate::store::embedded::recovery;

#[derive(Clone, Debug)]
pub(super) enum Step {
    Add(Vec<Item>),
    Remove(u8),
    Forward(i64),
    Retire,
    Reopen,
    Redefine,
}

/// Who, how much or which value, how many hours ago, an id, and how: most are simple, some undo or set.
pub(super) type Item = (u8, i64, Option<i64>, Option<u8>, u8);

pub(super) fn made(board: &Board, now: Timestamp, (who, number, hours, id, how): Item) -> Increment {
    let retract = how == 8 && board.takes_retractions();
    let sample = Change::Set { sum: Amount(number), count: number.rem_euclid(3) };
    let sets = how == 9 && board.takes(&sample);
    let hours = hours.or((retract || sets).then_some(1));
    let change = if sets { sample } else { change(board, number) };
    // Not at the slot's own start, so that times within a slot differ.
    let at = hours.map(|hours| now.plus_millis(-hours * HOUR + number * 1_000).min(now));
    let id = id.map(|id| EventId::parse(&format!("e{id}")).unwrap());
    Increment { subject: subject(who), change, retract, at, id }
}

pub(super) fn step() -> impl Strategy<Value = Step> {
    let item = (0u8..12, -3i64..6, prop::option::of(0i64..4), prop::option::of(0u8..6), 0u8..10);
    prop_oneof![
        8 => prop::collection::vec(item, 1..8).prop_map(Step::Add),
        2 => (0u8..12).prop_map(Step::Remove),
        3 => (0i64..3 * HOUR).prop_map(Step::Forward),
        1 => (3 * HOUR..40 * HOUR).prop_map(Step::Forward),
        2 => Just(Step::Retire),
        1 => Just(Step::Reopen),
        1 => Just(Step::Redefine),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]
    /// Whatever happened, and however far a fold has come: what a crash leaves reads back as what memory holds.
    #[test]
    fn a_crash_at_any_moment_reads_back(
        steps in prop::collection::vec(step(), 1..60),
        eager in any::<bool>(),
        definition in prop::sample::select(every_definition()),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(async {
            // Without a watermark, which would speak of the store's own disk, not of its copies.
            let (folder, elsewhere) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
            let disk = Arc::new(Memory::default());
            let pace = if eager { EAGER } else { Pace::default() };
            let mut store = open(folder.path(), &disk, pace).unwrap();
            let mut board = define_as(&store, &definition).await;
            for step in steps {
                match step {
                    Step::Add(items) => {
                        let now = store.now().await.unwrap();
                        let items = items.into_iter().map(|item| made(&board, now, item));
                        add(&store, &board, items.collect()).await.unwrap();
                    }
                    Step::Remove(who) => {
                        store.remove(&board, &subject(who)).await.unwrap();
                    }
                    Step::Forward(by) => {
                        let now = store.now().await.unwrap();
                        store.set_clock(now.plus_millis(by)).await.unwrap();
                    }
                    Step::Retire => {
                        store.retire_step(&board).await.unwrap();
                    }
                    Step::Reopen => {
                        store.close().await.unwrap();
                        drop(store);
                        store = open(folder.path(), &disk, pace).unwrap();
                        board = define_as(&store, &definition).await;
                    }
                    Step::Redefine => {
                        store.undefine(&board).await.unwrap();
                        board = define_as(&store, &definition).await;
                    }
                }
                // One write that is acknowledged, so that all before it are in the copy.
                let now = store.now().await.unwrap();
                store.status(&board).await.unwrap();
                store.set_clock(now).await.unwrap();
                let crashed = disk.crashed();
                let found = recovery::recover(crashed.as_ref(), elsewhere.path(), ClockMode::Simulated(START));
                let found = found.map_err(|error| error.to_string()).unwrap();
                assert_eq!(found.clock, Some(now));
                let (live, copy) = (live(&store), found.boards.values().next().unwrap().clone());
                assert_eq!(found.boards.len(), 1);
                assert_eq!(live.board.generation(), copy.board.generation());
                let (live, board, mut copy) = (live.tables.lock(), &copy.board, copy.tables.lock());
                // On a `from_first` board no boundary that is noted need have passed.
                copy.advance(board, now);
                assert_eq!(live.window, copy.window);
                assert_eq!(live_contents(&live), live_contents(&copy));
                for who in 0..12 {
                    for id in 0..6 {
                        let id = EventId::parse(&format!("e{id}")).unwrap();
                        let id = live.key.of(&subject(who), &id);
                        let at = now.millis();
                        assert_eq!(live.ids.seen(id, at), copy.ids.seen(id, at), "{who}");
                    }
                }
            }
        });
    }
}
