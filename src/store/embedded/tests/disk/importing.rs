//! An import with crashes at every operation: what an acknowledged call merged is there after the crash, and when
//! everything is sent again, each content counts once.

use super::crashes::survives;
use super::*;
use crate::board::Aggregate;
use crate::store::{Content, ImportBegun, ImportId, Piece};

const IMPORT: ImportId = ImportId(7);
/// The number of pieces for each track, each with this number of contents: of several portions.
const PIECES: usize = 6;
const CONTENTS: usize = 300;
/// The number of different subjects.
const SUBJECTS: usize = 100;

async fn define_board(store: &Embedded) -> Result<Arc<Board>> {
    let definition = Definition {
        windows: vec!["all".parse().unwrap()],
        ..Definition::new("SUM(4h, sale, amount, seller)".parse().unwrap(), "1h".parse().unwrap())
    };
    Ok(match store.define(new_board(&BoardName::parse("imported").unwrap(), &definition)).await? {
        Defined::Created(board) | Defined::Unchanged(board) | Defined::Conflict(board) => board,
    })
}

fn amount(number: usize, at: usize) -> i64 {
    1 + (number * CONTENTS + at) as i64
}

/// Returns the piece with this number, from 0, for a track. The two tracks get pieces in turn.
fn piece(board: &Board, track: usize, number: usize) -> Piece {
    let slot = board.tracks()[track].window_at(START).head;
    let content = |at: usize| {
        let aggregate = Aggregate::Sum(Amount(amount(number, at)));
        let subject = Subject::parse(&format!("subject-{}", at % SUBJECTS)).unwrap();
        (subject, Content::Cell { slot, aggregate })
    };
    Piece {
        number: (2 * number + track + 1) as u64,
        contents: (0..CONTENTS).map(content).collect(),
        events: vec![(slot, 10)],
    }
}

/// Sends all pieces. Returns the number of contents that were merged and that of those repeated.
async fn import(store: &Embedded, board: &Arc<Board>, acknowledged: &AtomicUsize) -> Result<(u64, u64)> {
    let (mut merged, mut repeated) = (0, 0);
    for number in 0..PIECES {
        for track in board.each_track() {
            let result = store.merge(&track, IMPORT, &piece(board, track.number(), number)).await?;
            assert_eq!((result.expired, result.refused), (0, 0));
            assert_eq!(result.merged + result.repeated, CONTENTS as u64);
            (merged, repeated) = (merged + result.merged, repeated + result.repeated);
            acknowledged.fetch_add(1, Ordering::SeqCst);
        }
    }
    Ok((merged, repeated))
}

async fn script(store: &Embedded, acknowledged: &AtomicUsize) -> Result<()> {
    let board = define_board(store).await?;
    let begun = store.begin_import(&board, IMPORT).await?;
    assert_eq!(begun, ImportBegun::Open { through: vec![0, 0] });
    import(store, &board, acknowledged).await?;
    assert!(store.end_import(&board, IMPORT).await?);
    acknowledged.fetch_add(1, Ordering::SeqCst);
    Ok(())
}

/// Returns the sum of the scores of a track, and the number of counted items.
async fn total(store: &Embedded, board: &Arc<Board>, track: usize) -> (i64, u64) {
    let track = board.each_track().nth(track).unwrap();
    let page = store.page(&track, 0, 1_000).await.unwrap();
    let score = |score: &Value| if let Value::Exact(Amount(score)) = score { *score } else { panic!("{score:?}") };
    let events = store.status(&track).await.unwrap().events;
    (page.items.into_iter().map(|item| score(&item.score)).sum(), events.iter().map(|(_, count)| count).sum())
}

async fn check(store: &Embedded, acknowledged: usize, what: &str) {
    let board = define_board(store).await.unwrap_or_else(|error| panic!("{what}: {error}"));
    let begun = store.begin_import(&board, IMPORT).await.unwrap_or_else(|error| panic!("{what}: {error}"));
    let all = 2 * PIECES;
    let mut is_ended = false;
    match begun {
        ImportBegun::Open { through } => {
            let last = acknowledged.min(all) as u64;
            assert!(through.iter().max().unwrap() >= &last, "{what}: {acknowledged} acknowledged, {through:?} found");
            assert!(acknowledged <= all, "{what}: the import was ended");
            // What the board has is what the recorded number of pieces and contents gives: none is there without the
            // other.
            let before = [total(store, &board, 0).await, total(store, &board, 1).await];
            let (merged, repeated) = import(store, &board, &AtomicUsize::new(0)).await.unwrap();
            let mut sums = (0..PIECES).flat_map(|number| (0..CONTENTS).map(move |at| amount(number, at)));
            assert_eq!(merged + repeated, (all * CONTENTS) as u64);
            let mut contents = 0;
            for (score, events) in before {
                let (mut sum, mut count) = (0, 0);
                let mut sums = sums.clone();
                while sum < score {
                    sum += sums.next().unwrap();
                    count += 1;
                }
                assert_eq!(sum, score, "{what}: the contents of a prefix");
                assert_eq!(events, 10 * (count / CONTENTS) as u64, "{what}");
                contents += count as u64;
            }
            assert_eq!(contents, repeated, "{what}: the recorded progress differs from what the board has");
            assert!(sums.next().is_some());
        }
        ImportBegun::Ended => is_ended = true,
        other => panic!("{what}: {other:?}"),
    }
    let sum = (0..PIECES).flat_map(|number| (0..CONTENTS).map(move |at| amount(number, at))).sum::<i64>();
    for track in 0..2 {
        assert_eq!(total(store, &board, track).await, (sum, 10 * PIECES as u64), "{what}: after sending all again");
    }
    assert_eq!(store.end_import(&board, IMPORT).await.unwrap(), !is_ended, "{what}");
    assert_eq!(store.begin_import(&board, IMPORT).await.unwrap(), ImportBegun::Ended, "{what}");
}

#[test]
fn an_import_survives_crashes_with_always() {
    survives(Durability::Always, script, check);
}

#[test]
fn an_import_survives_crashes_with_everysec() {
    survives(Durability::EverySecond, script, check);
}
