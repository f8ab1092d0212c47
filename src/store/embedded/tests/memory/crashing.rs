//! Tests of a crash at any moment, on boards of every metric.

use std::time::Instant;

use proptest::prelude::*;

use super::contents::live_contents;
use super::*;
use crate::board::{NotCounted, TrackId};
use crate::store::embedded::storage::files::simulated::Crash;
use crate::store::embedded::storage::manifest::Manifest;

#[derive(Clone, Debug)]
pub(super) enum Step {
    Add(Vec<Item>),
    Remove(u8),
    Forward(i64),
    Retire,
    /// Waits until a checkpoint contains everything so far.
    Checkpoint,
    Reopen,
    Redefine,
    /// Begins a second edition of the board, of one of the other definitions.
    Attach(prop::sample::Index),
    Exchange,
    Detach,
    /// Gives each track of the second edition what each of the current one has, if they count the same items.
    Fill,
}

/// A subject, an amount or value, how many hours ago, an id, and a kind: most are simple, some are retractions or
/// samples.
pub(super) type Item = (u8, i64, Option<i64>, Option<u8>, u8);

pub(super) fn made(board: &Board, now: Timestamp, (who, number, hours, id, how): Item) -> Increment {
    let retract = how == 8 && board.edition().takes_retractions();
    let sample = Change::Set { sum: Amount(number), count: number.rem_euclid(3) };
    let sets = how == 9 && board.edition().takes(&sample);
    let hours = hours.or((retract || sets).then_some(1));
    let change = if sets { sample } else { change(board, number) };
    // The time is not the slot's start, so that times within a slot differ.
    let at = hours.map(|hours| now.plus_millis(-hours * HOUR + number * 1_000).min(now));
    let id = id.map(|id| EventId::parse(&format!("e{id}")).unwrap());
    let other = board.editions().get(1).and_then(|other| match number {
        0 => None,
        1 => Some(Change::Not(NotCounted::Filtered)),
        _ => Some(other.translated(&change, board.edition(), retract)),
    });
    Increment { other: other.map(Box::new), subject: subject(who), change, retract, at, id, period: None, event: None }
}

/// Returns the board with a second edition of one of the definitions that it may have.
fn with_successor(board: &Board, which: &prop::sample::Index) -> Option<Board> {
    let definitions = [every_definition(), definitions_with_several_windows()].concat();
    let first = TrackId(rand::random_range(1..=u64::MAX - 100));
    let attached = definitions.into_iter().filter_map(|definition| board.attached(definition, first).ok());
    let attached: Vec<_> = attached.collect();
    (board.editions().len() == 1 && !attached.is_empty()).then(|| which.get(&attached).clone())
}

pub(super) fn step() -> impl Strategy<Value = Step> {
    let item = (0u8..12, -3i64..6, prop::option::of(0i64..4), prop::option::of(0u8..6), 0u8..10);
    prop_oneof![
        8 => prop::collection::vec(item, 1..8).prop_map(Step::Add),
        2 => (0u8..12).prop_map(Step::Remove),
        3 => (0i64..3 * HOUR).prop_map(Step::Forward),
        1 => (3 * HOUR..40 * HOUR).prop_map(Step::Forward),
        2 => Just(Step::Retire),
        2 => Just(Step::Checkpoint),
        1 => Just(Step::Reopen),
        1 => Just(Step::Redefine),
        2 => any::<prop::sample::Index>().prop_map(Step::Attach),
        2 => Just(Step::Exchange),
        1 => Just(Step::Detach),
        2 => Just(Step::Fill),
    ]
}

/// Returns a pace that checkpoints every board with anything in the log, again and again.
fn eager() -> Pace {
    let tick = Duration::from_millis(1);
    Pace { log_bytes: 1, segment_bytes: 4_096, age: Duration::ZERO, tick, ..Pace::default() }
}

async fn fill(store: &Embedded, board: &Arc<Board>) {
    let [current, other] = board.editions() else { return };
    if !other.counts_same_items_as(current) {
        return;
    }
    let track = |number| board.each_track().nth(number).unwrap();
    let pairs: Vec<_> = current.numbers().flat_map(|from| other.numbers().map(move |to| (from, to))).collect();
    for (from, to) in pairs.iter().map(|(from, to)| (track(*from), track(*to))) {
        let head = from.window_at(store.now().await.unwrap()).head;
        let slots = [head, from.calendar().previous(head)];
        let cells: Vec<_> = (0..12).flat_map(|who| slots.map(|slot| (subject(who), slot))).collect();
        let fits = !from.is_from_first() && !to.is_from_first() && from.is_all_time() == to.is_all_time();
        assert_eq!(store.fill(&from, &to, &cells).await.is_ok(), fits);
    }
    store.end_fill(board, &pairs).await.unwrap();
}

/// Waits until the manifest names a checkpoint with everything that the log has of the board.
async fn checkpointed(disk: &Simulated, live: &LiveBoard) {
    let Some(first) = live.logged.first() else { return };
    let started = Instant::now();
    loop {
        let manifest = Manifest::read(disk).unwrap().unwrap();
        let entry = manifest.boards.iter().find(|entry| entry.generation == live.generation().0);
        if entry.is_some_and(|entry| entry.from_seq > first && entry.checkpoint.is_some()) {
            return;
        }
        assert!(started.elapsed() < Duration::from_secs(30), "no checkpoint is made");
        tokio::time::sleep(Duration::from_micros(200)).await;
    }
}

/// Checks that the state after a crash now is equal to the state of memory.
async fn compare(disk: &Simulated, store: &Embedded, board: &Arc<Board>) {
    let now = store.now().await.unwrap();
    store.status(&board.main()).await.unwrap();
    let copy = open(&disk.crash(0, Crash::Killed), usual()).unwrap();
    assert_eq!(copy.now().await.unwrap(), now);
    assert_eq!(copy.boards.read().len(), 1);
    assert_eq!(copy.key, store.key);
    let (live, found) = (live(store), live(&copy));
    assert_eq!(live.generation(), found.generation());
    let (live, mut found) = (live.state.lock(), found.state.lock());
    assert_eq!((live.board.epoch(), live.board.stored_editions()), (board.epoch(), board.stored_editions()));
    assert_eq!((found.board.epoch(), found.board.stored_editions()), (board.epoch(), board.stored_editions()));
    assert_eq!(found.board.defined_at(), board.defined_at());
    let seen = |state: &BoardState| state.dual.as_ref().map(|dual| dual.dual_run());
    assert_eq!(seen(&live), seen(&found));
    // On a `from_first` board there may be no boundary that makes the board's time be recorded.
    found.advance(now);
    for (live, found) in live.tracks.iter().zip(&found.tracks) {
        assert_eq!(live.window, found.window);
        assert_eq!(live_contents(live), live_contents(found));
    }
    for (who, id) in (0..12).flat_map(|who| (0..6).map(move |id| (who, id))) {
        let fingerprint = store.key.of(&subject(who), &EventId::parse(&format!("e{id}")).unwrap());
        let seen = |data: &BoardState| data.ids.is_recent(fingerprint, now.millis());
        assert_eq!(seen(&live), seen(&found), "subject {who}, id {id}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]
    /// Tests, for any steps and any progress of a checkpoint, that the state after a crash is equal to the state of
    /// memory.
    #[test]
    fn the_state_after_a_crash_equals_the_state_in_memory(
        steps in prop::collection::vec(step(), 1..60),
        is_eager in any::<bool>(),
        definition in prop::sample::select([every_definition(), definitions_with_several_windows()].concat()),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        runtime.block_on(async {
            let disk = Simulated::new();
            let pace = if is_eager { eager() } else { usual() };
            let mut store = open(&disk, pace).unwrap();
            let mut board = define_as(&store, &definition).await;
            for step in steps {
                let now = store.now().await.unwrap();
                match step {
                    Step::Add(items) => {
                        let items = items.into_iter().map(|item| made(&board, now, item));
                        add(&store, &board, items.collect()).await.unwrap();
                    }
                    Step::Remove(who) => {
                        store.remove(&board, &subject(who)).await.unwrap();
                    }
                    Step::Forward(by) => {
                        store.set_clock(now.plus_millis(by)).await.unwrap();
                    }
                    Step::Retire => {
                        for track in board.each_track() {
                            store.retire_step(&track).await.unwrap();
                        }
                    }
                    Step::Checkpoint if is_eager => checkpointed(&disk, &live(&store)).await,
                    Step::Checkpoint => {}
                    Step::Reopen => {
                        store.close().await.unwrap();
                        drop(store);
                        store = open(&disk, pace).unwrap();
                        board = define_as(&store, &definition).await;
                    }
                    Step::Redefine => {
                        store.undefine(&board).await.unwrap();
                        board = define_as(&store, &definition).await;
                    }
                    Step::Attach(which) => {
                        if let Some(to) = with_successor(&board, &which) {
                            board = store.change_editions(&board, to).await.unwrap();
                        }
                    }
                    Step::Exchange => {
                        if let Some(to) = board.exchanged(now) {
                            board = store.change_editions(&board, to).await.unwrap();
                        }
                    }
                    Step::Detach if board.editions().len() > 1 => {
                        board = store.change_editions(&board, board.detached()).await.unwrap();
                    }
                    Step::Detach => {}
                    Step::Fill => fill(&store, &board).await,
                }
                compare(&disk, &store, &board).await;
            }
        });
    }
}
