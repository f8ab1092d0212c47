//! Tests of a store with little memory: it is filled until it refuses, used on, and opened again.

use serde_json::value::RawValue;

use super::*;
use crate::board::{AttributesChange, ModerationChange, Visibility};
use crate::store::embedded::memory::Level;
use crate::store::embedded::storage::files::simulated::Crash;
use crate::store::{Rejection, StoreError, TableName};

const LIMIT: usize = 3 << 20;

/// The boards that share the memory.
const METRICS: [&str; 4] = [
    "COUNT(3h, like, post)",
    "COUNT_DISTINCT(3h, login, device, user)",
    "AVG(3h, sale, amount, seller)",
    "APPROX_COUNT_DISTINCT(3h, login, device, user)",
];

fn open_limited(disk: &Simulated) -> Arc<Embedded> {
    let options =
        EmbeddedOptions { memory_limit: Some(LIMIT), ..EmbeddedOptions::new("/data", ClockMode::Simulated(START)) };
    Embedded::open_on(Arc::new(disk.clone()), options, usual()).unwrap()
}

async fn define_named(store: &Embedded, name: &str, metric: &str) -> Result<Arc<Board>> {
    match store.define(new_board(&BoardName::parse(name).unwrap(), &hours(metric))).await? {
        Defined::Created(board) | Defined::Unchanged(board) | Defined::Conflict(board) => Ok(board),
    }
}

async fn define_all(store: &Embedded) -> Vec<Arc<Board>> {
    let mut boards = Vec::new();
    for (nth, metric) in METRICS.iter().enumerate() {
        boards.push(define_named(store, &format!("board-{nth}"), metric).await.unwrap());
    }
    boards
}

/// Returns an item for a subject of a board, with an id or without.
fn item(board: &Board, subject: usize, number: i64, has_id: bool) -> Increment {
    let id = has_id.then(|| EventId::parse(&format!("{subject} {number}")).unwrap());
    Increment { id, ..named(format!("subject {subject:012}"), change(board, number)) }
}

/// Adds new subjects to all boards in turns, each with an id, until all boards refuse. Returns the number of subjects
/// that each board has counted.
async fn flood(store: &Embedded, boards: &[Arc<Board>]) -> Vec<usize> {
    let mut counted = vec![0; boards.len()];
    for portion in 0..10_000 {
        let mut refused = 0;
        for (board, counted) in boards.iter().zip(&mut counted) {
            let items = (portion * 50..portion * 50 + 50).map(|subject| item(board, subject, 1, true)).collect();
            for outcome in add(store, board, items).await.unwrap() {
                match outcome {
                    Outcome::Counted { .. } if refused == 0 => *counted += 1,
                    Outcome::Counted { .. } => {}
                    outcome => {
                        assert_eq!(outcome, Outcome::Rejected(Rejection::MemoryFull));
                        refused += 1;
                    }
                }
            }
        }
        if refused == boards.len() * 50 {
            return counted;
        }
    }
    panic!("the memory is never full");
}

/// Returns the number of subjects and what each has, for every track.
fn contents(store: &Embedded) -> Vec<Vec<super::contents::Content>> {
    let boards: Vec<_> = store.boards.read().values().cloned().collect();
    let data = |live: &Arc<LiveBoard>| {
        let state = live.state.lock();
        state.tracks.iter().map(super::contents::live_contents).collect::<Vec<_>>()
    };
    boards.iter().flat_map(data).collect()
}

fn counted_bytes(store: &Embedded) -> usize {
    let boards: Vec<_> = store.boards.read().values().cloned().collect();
    boards.iter().map(|live| live.state.lock().memory_bytes()).sum()
}

#[tokio::test]
async fn a_store_refuses_what_is_new_and_goes_on_with_what_it_has() {
    let store = open_limited(&Simulated::new());
    let boards = define_all(&store).await;
    flood(&store, &boards).await;
    let (used, held) = (store.memory.used(), contents(&store));
    assert!((LIMIT / 10 * 9..LIMIT).contains(&used), "{used}");
    assert!(
        (used - counted_bytes(&store)).is_multiple_of(boards.len()),
        "each board has the same bytes beside its data"
    );
    assert!(store.warnings()[0].contains("memory_limit"), "{:?}", store.warnings());
    assert!(store.check().await.is_ok(), "the store is ready");
    // New boards are refused, known ones are not.
    assert!(matches!(define_named(&store, "new", METRICS[0]).await, Err(StoreError::MemoryFull)));
    assert_eq!(define_named(&store, "board-0", METRICS[0]).await.unwrap().name(), boards[0].name());
    assert_eq!(contents(&store), held);
    for board in &boards {
        let known = item(board, 7, 1, false);
        assert!(matches!(add(&store, board, vec![known.clone()]).await.unwrap()[..], [Outcome::Counted { .. }]));
        assert_eq!(
            store.lookup(&board.main(), std::slice::from_ref(&known.subject), true).await.unwrap().scores.len(),
            1
        );
        // A value that is set replaces one that exists.
        let replaced = store.replace(board, known.clone()).await.unwrap();
        assert!(matches!(replaced.outcomes[..], [Outcome::Counted { .. }]));
        assert!(store.remove(board, &known.subject).await.unwrap().score.is_some());
    }
    // A board that is removed leaves room for others.
    assert!(store.undefine(&boards[1]).await.unwrap());
    reach(|| store.memory.level() == Level::Free).await;
    assert!(store.warnings().is_empty());
    define_named(&store, "new", METRICS[0]).await.unwrap();
    let fresh = item(&boards[0], 1 << 40, 1, true);
    assert!(matches!(add(&store, &boards[0], vec![fresh]).await.unwrap()[..], [Outcome::Counted { .. }]));
}

#[tokio::test]
async fn expiry_makes_room() {
    let store = open_limited(&Simulated::new());
    let boards = define_all(&store).await;
    flood(&store, &boards).await;
    store.set_clock(START.plus_millis(4 * HOUR)).await.unwrap();
    for board in &boards {
        let known = item(board, 7, 1, false);
        // The call finds that everything has expired.
        assert_eq!(store.lookup(&board.main(), &[known.subject], false).await.unwrap().scores.len(), 1);
    }
    // Ids are kept for longer, by up to half of their horizon.
    store.set_clock(START.plus_millis(8 * HOUR)).await.unwrap();
    for board in &boards {
        store.status(&board.main()).await.unwrap();
    }
    reach(|| store.memory.used() < LIMIT / 20).await;
    assert!(flood(&store, &boards).await.iter().sum::<usize>() > 1_000);
}

/// Tests that a store which ran within the limit can be opened within it, with ids and values, and has lost nothing.
#[tokio::test]
async fn a_store_that_is_full_can_be_opened_again_within_the_limit() {
    for pace in [usual(), Pace { log_bytes: 1 << 16, tick: Duration::from_millis(1), ..usual() }] {
        let disk = Simulated::new();
        let options = || EmbeddedOptions {
            memory_limit: Some(LIMIT),
            ..EmbeddedOptions::new("/data", ClockMode::Simulated(START))
        };
        let store = Embedded::open_on(Arc::new(disk.clone()), options(), pace).unwrap();
        let boards = define_all(&store).await;
        flood(&store, &boards).await;
        for board in &boards {
            let more = (0..400).map(|subject| item(board, subject, 1, false)).collect();
            add(&store, board, more).await.unwrap();
        }
        let (used, held) = (store.memory.used(), contents(&store));
        let copy = open_limited(&disk.crash(0, Crash::Killed));
        assert_eq!(contents(&copy), held);
        let after = copy.memory.used();
        assert!(after < LIMIT && after <= used * 11 / 10, "{after} bytes after the start, {used} before");
        for board in &boards {
            let known = vec![item(board, 7, 1, true), item(board, 7, 1, false)];
            let outcomes = add(&copy, board, known).await.unwrap();
            assert!(matches!(outcomes[..], [Outcome::Duplicate { .. }, Outcome::Counted { .. }]), "{outcomes:?}");
        }
    }
}

/// The kinds of what is stored on request.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Kind {
    Subjects,
    Values,
    Ids,
    Hidden,
    Frozen,
    Tiers,
    Keys,
    Boards,
}

/// Stores some more of one kind. Returns whether that was refused, because there is no memory for it.
async fn is_refused(store: &Embedded, boards: &[Arc<Board>], kind: Kind, step: usize) -> bool {
    let numbers = step * 100..step * 100 + 100;
    let added = |board: Arc<Board>, items: Vec<Increment>| async move {
        let outcomes = add(store, &board, items).await.unwrap();
        outcomes.contains(&Outcome::Rejected(Rejection::MemoryFull))
    };
    let change = match kind {
        Kind::Subjects => {
            let items = numbers.map(|number| item(&boards[0], number, 1, false)).collect();
            return added(boards[0].clone(), items).await;
        }
        Kind::Values => {
            let items = numbers.map(|number| item(&boards[1], 7, number as i64, false)).collect();
            return added(boards[1].clone(), items).await;
        }
        Kind::Ids => {
            let id = |number| EventId::parse(&format!("an id of {number:0>100}")).unwrap();
            let with_id = |number| Increment { id: Some(id(number)), ..item(&boards[0], 7, 1, false) };
            return added(boards[0].clone(), numbers.map(with_id).collect()).await;
        }
        Kind::Tiers | Kind::Keys => {
            let table = if kind == Kind::Tiers { TableName::Tiers } else { TableName::Keys };
            let changed = store.change_row(table, &format!("row {step}"), None, Some(&"x".repeat(2_000))).await;
            return refused(changed.map(|is_changed| assert!(is_changed)));
        }
        Kind::Boards => return refused(define_named(store, &format!("board-of-{step}"), METRICS[0]).await.map(drop)),
        Kind::Hidden => ModerationChange::Visibility(Visibility::Hidden),
        Kind::Frozen => ModerationChange::Frozen(true),
    };
    let subject = |number| Subject::parse(&format!("a subject of {number:0>400}")).unwrap();
    let changes: Vec<_> = numbers.map(|number| (subject(number), change)).collect();
    refused(store.moderate(&boards[0], &changes).await)
}

fn refused(result: Result<()>) -> bool {
    match result {
        Err(StoreError::MemoryFull) => true,
        other => other.is_err_and(|error| panic!("{error}")),
    }
}

/// Tests that each kind of what is stored is counted, refused near the limit, and read again within the limit after the
/// process was killed.
#[tokio::test]
async fn each_kind_alone_fills_a_store_until_it_refuses() {
    use Kind::{Boards, Frozen, Hidden, Ids, Keys, Subjects, Tiers, Values};
    for kind in [Subjects, Values, Ids, Hidden, Frozen, Tiers, Keys, Boards] {
        let disk = Simulated::new();
        let store = open_limited(&disk);
        let boards = define_all(&store).await;
        let mut step = 0;
        while !is_refused(&store, &boards, kind, step).await {
            step += 1;
            assert!(store.memory.used() < LIMIT * 11 / 10, "{kind:?}: {} bytes and not refused", store.memory.used());
            assert!(step < 20_000, "{kind:?} is not counted: {} bytes", store.memory.used());
        }
        let used = store.memory.used();
        assert!((LIMIT / 10 * 9..LIMIT * 11 / 10).contains(&used), "{kind:?}: {used}");
        let copy = open_limited(&disk.crash(0, Crash::Killed));
        let after = copy.memory.used();
        assert!(after <= used * 11 / 10, "{kind:?}: {after} bytes after the start, {used} before");
        let boards = define_all(&copy).await;
        if copy.memory.level() == Level::Full {
            assert!(is_refused(&copy, &boards, kind, step + 1).await, "{kind:?}");
        }
        // What was set is lifted and removed however little memory there is.
        let subject = Subject::parse(&format!("a subject of {:0>400}", 7)).unwrap();
        copy.moderate(&boards[0], &[(subject, ModerationChange::Clear)]).await.unwrap();
    }
}

/// What takes less than before is done together with what there is no memory for.
#[tokio::test]
async fn attributes_become_shorter_and_leave_where_there_is_no_memory_for_more() {
    let disk = Simulated::new();
    let store = open_limited(&disk);
    let boards = define_all(&store).await;
    let change = |subject: &str, bytes: usize| {
        let object = RawValue::from_string(format!(r#"{{"a":"{}"}}"#, "x".repeat(bytes))).unwrap();
        (Subject::parse(subject).unwrap(), AttributesChange::replacing(&object).unwrap())
    };
    let mut number = 0;
    while !refused(store.set_attributes(&boards[0], &[change(&format!("s{number}"), 1_000)]).await.map(drop)) {
        number += 1;
    }
    let clear = (Subject::parse("s1").unwrap(), AttributesChange::clear());
    assert!(refused(store.set_attributes(&boards[0], &[change("new", 9), clear, change("s2", 1)]).await.map(drop)));
    let subjects = ["new", "s1", "s2", "s3"].map(|subject| Subject::parse(subject).unwrap());
    let lengths = async |store: &Embedded, board| -> Vec<usize> {
        store.attributes(board, &subjects).await.unwrap().iter().map(|attributes| attributes.stored().len()).collect()
    };
    assert_eq!(lengths(&store, &boards[0]).await, [0, 0, 6, 1_005]);
    let copy = open_limited(&disk.crash(0, Crash::Killed));
    assert_eq!(lengths(&copy, &define_all(&copy).await[0]).await, [0, 0, 6, 1_005]);
}

#[tokio::test]
async fn the_memory_of_removed_boards_is_counted_until_it_is_freed() {
    let store = fresh();
    let before = store.memory.used();
    let board = define(&store, "COUNT(3h, like, post)").await;
    add(&store, &board, (0..5_000).map(|subject| item(&board, subject, 1, false)).collect()).await.unwrap();
    assert!(store.memory.used() - before > 5_000 * 60);
    assert!(store.undefine(&board).await.unwrap());
    drop(board);
    reach(|| store.memory.used() == before).await;
}
