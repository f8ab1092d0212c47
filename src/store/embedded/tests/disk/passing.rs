//! Portions of a source with crashes at every operation: what the board has reached and what it has counted are of the
//! same instant, and when the log is sent again, each item is counted once.

use super::crashes::survives;
use super::*;
use crate::board::{Position, SourceNumber, TrackId};
use crate::store::embedded::storage::files::simulated::Crash;
use crate::store::{Fate, Portion, Reached, lane_of};

const SOURCE: SourceNumber = SourceNumber(1);
/// The number of portions, each with this number of items: of several steps.
const PORTIONS: usize = 8;
const ITEMS: usize = 700;
/// The number of different subjects.
const SUBJECTS: usize = 90;

async fn define_board(store: &Embedded) -> Result<Arc<Board>> {
    let definition = Definition {
        windows: vec!["all".parse().unwrap()],
        ..Definition::new("SUM(4h, sale, amount, seller)".parse().unwrap(), "1h".parse().unwrap())
    };
    Ok(match store.define(new_board(&BoardName::parse("passed").unwrap(), &definition)).await? {
        Defined::Created(board) | Defined::Unchanged(board) | Defined::Conflict(board) => board,
    })
}

fn subject_of(item: usize) -> Subject {
    Subject::parse(&format!("subject-{}", item * 7 % SUBJECTS)).unwrap()
}

fn position(item: usize) -> u128 {
    2 * item as u128 + 1
}

/// Returns a portion of the log: of the items from one on.
fn portion(from: usize) -> Portion {
    let items = from..(from + ITEMS).min(PORTIONS * ITEMS);
    let increment = |item: usize| Increment {
        other: None,
        subject: subject_of(item),
        change: Change::Amount(Amount(1 + item as i64)),
        retract: false,
        at: None,
        id: None,
        period: None,
        event: None,
    };
    let range = (Position(position(from) - 1), Position(position(items.end) - 1));
    let items = items.map(|item| (Position(position(item)), increment(item)));
    Portion::new(SOURCE, range, items).unwrap().joining()
}

async fn script(store: &Embedded, acknowledged: &AtomicUsize) -> Result<()> {
    let board = define_board(store).await?;
    for number in 0..PORTIONS {
        let passed = store.pass(vec![(board.clone(), portion(number * ITEMS))]).await.remove(0)?;
        assert!(passed.failure.is_none() && passed.fates.iter().all(|fate| matches!(fate, Fate::Done(_))));
        acknowledged.fetch_add(1, Ordering::SeqCst);
    }
    Ok(())
}

/// Asserts that in both windows subjects have the amounts of exactly these items.
async fn has(store: &Embedded, board: &Arc<Board>, is_counted: impl Fn(usize) -> bool, what: &str) {
    let mut expected: BTreeMap<Subject, i64> = BTreeMap::new();
    for item in (0..PORTIONS * ITEMS).filter(|item| is_counted(*item)) {
        *expected.entry(subject_of(item)).or_default() += 1 + item as i64;
    }
    for track in board.each_track() {
        let page = store.page(&track, 0, 1_000).await.unwrap();
        let score = |score: Value| if let Value::Exact(Amount(score)) = score { score } else { panic!("{score:?}") };
        let found: BTreeMap<_, _> = page.items.into_iter().map(|line| (line.subject, score(line.score))).collect();
        assert_eq!(found, expected, "{what}");
    }
}

async fn check(store: &Embedded, acknowledged: usize, what: &str) {
    let board = define_board(store).await.unwrap_or_else(|error| panic!("{what}: {error}"));
    let reached = store.reached(&board, SOURCE).await.unwrap();
    let is_reached = |item: usize| {
        let reached = reached.as_ref().map(|reached| reached.in_lane(lane_of(&subject_of(item))));
        reached.is_some_and(|reached| reached >= Position(position(item)))
    };
    has(store, &board, is_reached, what).await;
    let least = reached.as_ref().map_or(Position(0), |reached| reached.least());
    assert!(least.0 >= 2 * (acknowledged * ITEMS) as u128, "{what}: {acknowledged} acknowledged, {least} reached");
    // From a place of somebody who knows nothing, which is within a portion.
    for from in (0..PORTIONS * ITEMS).step_by(ITEMS / 2) {
        let passed = store.pass(vec![(board.clone(), portion(from))]).await.remove(0);
        let passed = passed.unwrap_or_else(|error| panic!("{what}: {error}"));
        assert!(passed.failure.is_none() && passed.reached.least() >= portion(from).through(), "{what}: {passed:?}");
    }
    has(store, &board, |_| true, what).await;
}

#[test]
fn portions_survive_crashes_with_always() {
    survives(Durability::Always, script, check);
}

#[test]
fn portions_survive_crashes_with_everysec() {
    survives(Durability::EverySecond, script, check);
}

/// The operations of a step are about several tracks. What is reached must not go with one that the board no longer has.
#[test]
fn what_is_reached_outlives_an_edition_that_was_written_to_with_it() {
    let disk = Simulated::new();
    let open = |disk: &Simulated| {
        let options = EmbeddedOptions::new("/data", ClockMode::Simulated(START));
        Embedded::open_on(Arc::new(disk.clone()), options, Pace::default()).unwrap()
    };
    runtime().block_on(async {
        let store = open(&disk);
        let alone = define_board(&store).await.unwrap();
        let next = Definition::new("SUM(2h, sale, amount, seller)".parse().unwrap(), "1h".parse().unwrap());
        let pair = store.change_editions(&alone, alone.attached(next, TrackId(77)).unwrap()).await.unwrap();
        let for_both = |item: Increment| Increment { other: Some(Box::new(item.change.clone())), ..item };
        let passed = store.pass(vec![(pair.clone(), portion(0).with_items(for_both))]).await.remove(0).unwrap();
        assert!(passed.failure.is_none());
        store.change_editions(&pair, pair.detached()).await.unwrap();
    });
    let disk = disk.crash(1, Crash::Killed);
    runtime().block_on(async {
        let store = open(&disk);
        let board = define_board(&store).await.unwrap();
        has(&store, &board, |item| item < ITEMS, "after a kill").await;
        let reached = store.reached(&board, SOURCE).await.unwrap();
        assert_eq!(reached, Some(Reached::evenly(portion(0).through())));
    });
}
