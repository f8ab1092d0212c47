//! Tests of walks over contents, and of imports of them, through restarts and compactions.

use std::collections::BTreeMap;

use super::*;
use crate::board::{Aggregate, BoardTrack};
use crate::store::embedded::storage::files::simulated::Crash;
use crate::store::{Content, ContentsCursor, ImportBegun, ImportId, MAX_IMPORTS, Merged, Piece, Rejection, StoreError};

const IMPORT: ImportId = ImportId(1);

/// Returns everything that a track has.
async fn walk(store: &Embedded, track: &BoardTrack) -> Vec<(Subject, Content)> {
    let (mut contents, mut cursor) = (Vec::new(), Some(ContentsCursor::default()));
    while let Some(from) = cursor {
        let step = store.contents_step(track, from).await.unwrap();
        contents.extend(step.contents);
        cursor = step.next;
    }
    contents
}

/// Merges everything that a board has into a board of the same definition. Returns the results for all tracks together.
async fn copy(from: (&Embedded, &Arc<Board>), to: (&Embedded, &Arc<Board>)) -> Merged {
    let mut merged = Merged::default();
    assert!(matches!(to.0.begin_import(to.1, IMPORT).await.unwrap(), ImportBegun::Open { .. }));
    let mut number = 0;
    for (source, target) in from.1.each_track().zip(to.1.each_track()) {
        let contents = walk(from.0, &source).await;
        let events = from.0.status(&source).await.unwrap().events;
        let mut pieces: Vec<_> = contents.chunks(Piece::MAX_CONTENTS).map(<[_]>::to_vec).collect();
        pieces.push(Vec::new());
        let last = pieces.len() - 1;
        for (nth, contents) in pieces.into_iter().enumerate() {
            number += 1;
            let events = if nth == last { events.clone() } else { Vec::new() };
            let piece = Piece { number, contents, events };
            merged.add(to.0.merge(&target, IMPORT, &piece).await.unwrap());
            let repeated = to.0.merge(&target, IMPORT, &piece).await.unwrap();
            assert_eq!(repeated, Merged { repeated: piece.contents.len() as u64, ..Merged::default() });
        }
    }
    merged
}

/// The data of a track that a restart must not lose, and its numbers of counted items.
type Kept = (Vec<contents::Content>, Vec<(i64, u64)>);

fn contents_of(store: &Embedded) -> Vec<Kept> {
    let live = live(store);
    let state = live.state.lock();
    let of = |data: &TrackData| -> Kept { (contents::live_contents(data), data.events.since(i64::MIN).collect()) };
    state.tracks.iter().map(of).collect()
}

/// Returns items for a board. No two have the same time, so that none depends on the order.
fn items(board: &Board, numbers: std::ops::Range<i64>) -> Vec<Increment> {
    let item = |number: i64| Increment {
        other: None,
        at: Some(START.plus_millis(2 * HOUR + number * 7 % 5_400_000 - number)),
        retract: board.edition().takes_retractions() && number % 7 == 3,
        ..named(format!("subject-{}", number * number % 60), change(board, number % 97 + 1))
    };
    numbers.map(item).collect()
}

fn kept_slots() -> impl Iterator<Item = Definition> {
    ["SUM", "AVG", "LAST"].into_iter().map(|function| Definition {
        keep: Some("6h".parse().unwrap()),
        ..hours(&format!("{function}(all, sale, amount, seller)"))
    })
}

/// Tests that a copy has what its source has, and that a board into which contents are merged has what it would have if
/// it had counted the events of both; also after a restart.
#[tokio::test]
async fn a_board_has_what_was_merged_as_if_it_had_counted_it() {
    let definitions = every_definition().into_iter().chain(definitions_with_several_windows()).chain(kept_slots());
    for definition in definitions.filter(|definition| definition.mode != Mode::FromFirst) {
        let what = format!("{} ranked {} windows {:?}", definition.metric, definition.ranked, definition.windows);
        let disk = Simulated::new();
        let (source, empty, target, both) = (fresh(), fresh(), open(&disk, usual()).unwrap(), fresh());
        let stores = [&source, &empty, &target, &both];
        let mut boards = Vec::new();
        for store in stores {
            boards.push(define_as(store, &definition).await);
            store.set_clock(START.plus_millis(4 * HOUR)).await.unwrap();
        }
        let (first, second) = (items(&boards[0], 0..600), items(&boards[0], 600..900));
        for (store, at, items) in [(&source, 0, &first), (&target, 2, &second), (&both, 3, &first), (&both, 3, &second)]
        {
            add(store, &boards[at], items.clone()).await.unwrap();
        }
        let merged = copy((&source, &boards[0]), (&empty, &boards[1])).await;
        assert!(merged.merged > 0 && merged.expired + merged.refused + merged.repeated == 0, "{what}: {merged:?}");
        assert_eq!(contents_of(&empty), contents_of(&source), "{what}");
        // With a limited number of values it depends on the order which of them are dropped.
        if definition.max_values.is_none() {
            copy((&source, &boards[0]), (&target, &boards[2])).await;
            assert_eq!(contents_of(&target), contents_of(&both), "{what}");
            let again = open(&disk.crash(0, Crash::Killed), usual()).unwrap();
            assert_eq!(contents_of(&again), contents_of(&both), "{what}");
            let board = again.board(boards[2].name()).await.unwrap().unwrap();
            let progress = again.begin_import(&board, IMPORT).await.unwrap();
            assert_eq!(progress, target.begin_import(&boards[2], IMPORT).await.unwrap());
        }
        for store in stores {
            store.close().await.unwrap();
        }
    }
}

/// Tests that it is known after a restart whether a board has samples: from the log, and from a checkpoint.
#[tokio::test]
async fn samples_before_an_import_are_known_after_a_restart() {
    let pace = Pace { log_bytes: 1, segment_bytes: 4_096, tick: Duration::from_millis(1), ..Pace::default() };
    for pace in [usual(), pace] {
        let disk = Simulated::new();
        let mut store = open(&disk, pace).unwrap();
        let board = define(&store, "SUM(3h, sale, amount, seller)").await;
        let amount = increment(1, 5, Some(START), None);
        let change = Change::Set { sum: Amount(5), count: 1 };
        let sample = Increment { change, ..increment(1, 0, Some(START), None) };
        let reopened = async || {
            tokio::time::sleep(Duration::from_millis(30)).await;
            open(&disk.crash(0, Crash::Killed), usual()).unwrap()
        };
        add(&store, &board, vec![amount]).await.unwrap();
        let copy = reopened().await;
        let begun = copy.begin_import(&board, IMPORT).await.unwrap();
        assert_eq!(begun, ImportBegun::Open { through: vec![0] });
        let refused = Outcome::Rejected(Rejection::ImportOpen);
        assert_eq!(add(&copy, &board, vec![sample.clone()]).await.unwrap(), [refused]);
        assert!(matches!(copy.remove(&board, &sample.subject).await, Err(StoreError::ImportOpen)));
        let other = copy.begin_import(&board, ImportId(9)).await.unwrap();
        assert_eq!(other, ImportBegun::OtherOpen(IMPORT));
        copy.close().await.unwrap();

        let defined_at = store.board(board.name()).await.unwrap().unwrap().defined_at();
        add(&store, &board, vec![sample]).await.unwrap();
        for _ in 0..2 {
            let next = reopened().await;
            let begun = next.begin_import(&board, IMPORT).await.unwrap();
            assert_eq!(begun, ImportBegun::MayHaveSamples);
            assert_eq!(next.board(board.name()).await.unwrap().unwrap().defined_at(), defined_at);
            next.close().await.unwrap();
            store = open(&disk.crash(0, Crash::Killed), pace).unwrap();
        }
        store.close().await.unwrap();
    }
}

/// Tests that a walk misses nothing while the records are moved together, and returns something twice only if that is
/// an upheaval.
#[tokio::test]
async fn a_walk_misses_nothing_during_a_compaction() {
    for ranked in [true, false] {
        let store = fresh();
        let board = define_as(&store, &Definition { ranked, ..hours("SUM(2h, sale, amount, seller)") }).await;
        let track = board.main();
        let named = |number: usize| named(format!("subject-{number}"), Change::Amount(Amount(1)));
        add(&store, &board, (0..40_000).map(named).collect()).await.unwrap();
        store.set_clock(START.plus_millis(HOUR)).await.unwrap();
        let stays: Vec<_> = (0..40_000).filter(|number| number % 5 == 0).collect();
        add(&store, &board, stays.iter().copied().map(named).collect()).await.unwrap();
        let before = store.status(&track).await.unwrap();
        let mut found = BTreeMap::<Subject, usize>::new();
        let (mut cursor, mut steps) = (Some(ContentsCursor::default()), 0);
        while let Some(from) = cursor {
            let step = store.contents_step(&track, from).await.unwrap();
            for (subject, content) in step.contents {
                let newest = Timestamp::from_millis(START.millis() + HOUR);
                let aggregate = Aggregate::Sum(Amount(1));
                if content == (Content::Cell { slot: newest, aggregate }) {
                    *found.entry(subject).or_default() += 1;
                }
            }
            (cursor, steps) = (step.next, steps + 1);
            if steps == 3 {
                // An unranked track keeps one slot more.
                store.set_clock(START.plus_millis(if ranked { 2 } else { 3 } * HOUR)).await.unwrap();
                for _ in 0..5_000 {
                    store.retire_step(&track).await.unwrap();
                    if store.status(&track).await.unwrap().upheavals != before.upheavals {
                        break;
                    }
                }
            }
        }
        let after = store.status(&track).await.unwrap();
        assert_eq!(found.len(), stays.len());
        let repeated = found.values().filter(|times| **times > 1).count();
        assert!(repeated == 0 || after.upheavals != before.upheavals);
        assert_ne!(after.upheavals, before.upheavals, "nothing was moved: the test tests nothing");
        store.remove(&board, &subject(0)).await.unwrap();
        assert_ne!(store.status(&track).await.unwrap().upheavals, after.upheavals);
        store.close().await.unwrap();
    }
}

/// Tests that a walk ends if everything expires, and is lost if the store is opened again.
#[tokio::test]
async fn a_walk_ends_with_the_data_and_is_lost_with_the_store() {
    let disk = Simulated::new();
    let store = open(&disk, usual()).unwrap();
    let board = define(&store, "SUM(2h, sale, amount, seller)").await;
    let named = |number: usize| named(format!("subject-{number}"), Change::Amount(Amount(1)));
    add(&store, &board, (0..5_000).map(named).collect()).await.unwrap();
    let step = store.contents_step(&board.main(), ContentsCursor::default()).await.unwrap();
    let next = step.next.unwrap();
    let again = open(&disk.crash(0, Crash::Killed), usual()).unwrap();
    for cursor in [next.clone(), ContentsCursor("x".to_owned())] {
        assert!(matches!(again.contents_step(&board.main(), cursor).await, Err(StoreError::WalkLost)));
    }
    store.set_clock(START.plus_millis(9 * HOUR)).await.unwrap();
    add(&store, &board, vec![named(1)]).await.unwrap();
    let step = store.contents_step(&board.main(), next).await.unwrap();
    assert!(step.contents.is_empty() && step.next.is_none());
    store.close().await.unwrap();
    again.close().await.unwrap();
}

fn cell(number: u8, slot: Timestamp, amount: i64) -> (Subject, Content) {
    (subject(number), Content::Cell { slot, aggregate: Aggregate::Sum(Amount(amount)) })
}

/// Tests that a content which cannot be merged is counted as such, and changes nothing.
#[tokio::test]
async fn contents_that_do_not_fit_are_refused() {
    let store = fresh();
    let board = define(&store, "SUM(3h, sale, amount, seller)").await;
    let track = board.main();
    let bound = track.slot_bound().0;
    let hour = |number: i64| START.plus_millis(number * HOUR);
    let other = |number, content| (subject(number), content);
    let contents = vec![
        cell(1, hour(0), bound),
        cell(1, hour(0), 1),
        cell(2, hour(-1), -bound - 1),
        cell(2, hour(-2), 2),
        cell(2, hour(-3), 1),
        cell(2, hour(1), 1),
        cell(2, START.plus_millis(1), 1),
        other(2, Content::Cell { slot: START, aggregate: Aggregate::Extreme(Amount(1)) }),
        other(2, Content::Value { value: Counted::parse("v").unwrap(), at: START, retracted: false }),
        other(2, Content::Dropped { at: START }),
        other(2, Content::Counter { start: START, amount: Amount(1) }),
    ];
    let events = [(-3, 1), (-2, 2), (0, 3), (1, 4)].map(|(number, count)| (hour(number), count)).into();
    let piece = Piece { number: 5, contents, events };
    assert!(matches!(store.merge(&track, IMPORT, &piece).await, Err(StoreError::NoImport { .. })));
    store.begin_import(&board, IMPORT).await.unwrap();
    let merged = store.merge(&track, IMPORT, &piece).await.unwrap();
    assert_eq!(merged, Merged { merged: 2, expired: 1, refused: 8, repeated: 0 });
    let status = store.status(&track).await.unwrap();
    assert_eq!(status.events, [(hour(-2), 2), (hour(0), 3)]);
    let amounts = |number: u8| {
        let live = live(&store);
        let state = live.state.lock();
        state.holdings.aggregates(subject(number).as_str().into(), i64::MIN, i64::MAX)
    };
    assert_eq!(amounts(1), [(hour(0), Aggregate::Sum(Amount(bound)))]);
    assert_eq!(amounts(2), [(hour(-2), Aggregate::Sum(Amount(2)))]);
    store.close().await.unwrap();
}

/// Tests that a piece for which there is no room is merged in part, that the rest follows when there is room, and that
/// no other piece comes in between.
#[tokio::test]
async fn a_piece_without_room_is_continued() {
    let disk = Simulated::new();
    let options =
        |max_subjects| EmbeddedOptions { max_subjects, ..EmbeddedOptions::new("/data", ClockMode::Simulated(START)) };
    let store = Embedded::open_on(Arc::new(disk.clone()), options(Some(5)), usual()).unwrap();
    let board = define(&store, "SUM(3h, sale, amount, seller)").await;
    let track = board.main();
    store.begin_import(&board, IMPORT).await.unwrap();
    let contents = (0..10).map(|number| cell(number, START, i64::from(number) + 1)).collect();
    let piece = Piece { number: 2, contents, events: vec![(START, 10)] };
    for _ in 0..2 {
        assert!(matches!(store.merge(&track, IMPORT, &piece).await, Err(StoreError::MemoryFull)));
    }
    let later = Piece { number: 3, ..piece.clone() };
    assert!(matches!(store.merge(&track, IMPORT, &later).await, Err(StoreError::NoImport { .. })));
    assert_eq!(store.status(&track).await.unwrap().events, []);
    store.close().await.unwrap();
    let store = Embedded::open_on(Arc::new(disk), options(None), usual()).unwrap();
    assert_eq!(store.begin_import(&board, IMPORT).await.unwrap(), ImportBegun::Open { through: vec![0] });
    let merged = store.merge(&track, IMPORT, &piece).await.unwrap();
    assert_eq!(merged, Merged { merged: 5, repeated: 5, ..Merged::default() });
    assert_eq!(store.begin_import(&board, IMPORT).await.unwrap(), ImportBegun::Open { through: vec![2] });
    let status = store.status(&track).await.unwrap();
    assert_eq!((status.total, status.events), (Some(10), vec![(START, 10)]));
    store.close().await.unwrap();
}

#[tokio::test]
async fn a_board_remembers_its_imports() {
    let disk = Simulated::new();
    let store = open(&disk, usual()).unwrap();
    let board = define(&store, "SUM(3h, sale, amount, seller)").await;
    for number in 0..MAX_IMPORTS as u64 {
        let begun = store.begin_import(&board, ImportId(number << 32)).await.unwrap();
        assert_eq!(begun, ImportBegun::Open { through: vec![0] });
        assert!(store.end_import(&board, ImportId(number << 32)).await.unwrap());
        assert!(!store.end_import(&board, ImportId(number << 32)).await.unwrap());
    }
    let again = open(&disk.crash(0, Crash::Killed), usual()).unwrap();
    for store in [store, again] {
        assert_eq!(store.begin_import(&board, ImportId(3 << 32)).await.unwrap(), ImportBegun::Ended);
        assert_eq!(store.begin_import(&board, ImportId(99 << 32)).await.unwrap(), ImportBegun::TooMany);
        store.close().await.unwrap();
    }
    let store = fresh();
    let from_first = Definition { ranked: false, mode: Mode::FromFirst, ..hours("SUM(3h, sale, amount, seller)") };
    let board = define_as(&store, &from_first).await;
    assert!(matches!(store.begin_import(&board, IMPORT).await, Err(StoreError::NoImport { .. })));
    add(&store, &board, vec![increment(1, 5, None, None)]).await.unwrap();
    let counter = Content::Counter { start: START, amount: Amount(5) };
    assert_eq!(walk(&store, &board.main()).await, [(subject(1), counter)]);
    store.close().await.unwrap();
}

#[tokio::test]
#[ignore = "measures: by hand, with optimizations"]
async fn speed_of_walks_and_imports() {
    const SUBJECTS: usize = 300_000;
    for metric in
        ["SUM(3h, a, b, c)", "AVG(3h, a, b, c)", "COUNT_DISTINCT(3h, a, b, c)", "APPROX_COUNT_DISTINCT(3h, a, b, c)"]
    {
        let (source, target) = (fresh(), fresh());
        let (from, to) = (define(&source, metric).await, define(&target, metric).await);
        let item = |number: usize| named(format!("subject-{number:06}"), change(&from, number as i64 % 1_000 + 1));
        for first in (0..SUBJECTS).step_by(1_000) {
            add(&source, &from, (first..first + 1_000).map(item).collect()).await.unwrap();
        }
        let (track, started) = (from.main(), std::time::Instant::now());
        let (mut contents, mut cursor, mut steps) = (Vec::new(), Some(ContentsCursor::default()), Vec::new());
        while let Some(from) = cursor {
            let began = std::time::Instant::now();
            let step = source.contents_step(&track, from).await.unwrap();
            steps.push((began.elapsed(), step.contents.len()));
            contents.extend(step.contents);
            cursor = step.next;
        }
        steps.sort();
        let portion = {
            let live = live(&source);
            let state = live.state.lock();
            let (mut walk, mut longest) = (state.holdings.begin_contents(), Vec::new());
            let mut operations = LogOperations::of(from.edition().main().id());
            loop {
                operations.clear();
                let began = std::time::Instant::now();
                let more = state.holdings.contents_portion(&mut walk, 12 << 10, &mut operations);
                longest.push(began.elapsed());
                if !more {
                    break;
                }
            }
            longest.sort();
            (longest[longest.len() / 2], longest[longest.len() - 1])
        };
        println!(
            "{metric}: {} contents in {:?}; median and longest step {:?} {:?}, portions {portion:?}",
            contents.len(),
            started.elapsed(),
            steps[steps.len() / 2],
            steps[steps.len() - 1]
        );
        target.begin_import(&to, IMPORT).await.unwrap();
        let started = std::time::Instant::now();
        for (nth, contents) in contents.chunks(Piece::MAX_CONTENTS).enumerate() {
            let piece = Piece { number: nth as u64 + 1, contents: contents.to_vec(), events: Vec::new() };
            assert_eq!(target.merge(&to.main(), IMPORT, &piece).await.unwrap().merged, contents.len() as u64);
        }
        println!("  merged in {:?}", started.elapsed());
    }
}
