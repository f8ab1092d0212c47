//! The parts together, on a disk of the tests' own: one that can be copied at any moment, and made to fail.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Waker};
use std::time::Duration;

use futures_util::FutureExt;
use parking_lot::Mutex;
use proptest::prelude::*;

use super::boards::LiveBoard;
use super::disk::{Disk, DiskError, Pair, Write};
use super::ranking::{Entry, Texts};
use super::tables::Tables;
use super::writer::Pace;
use super::{Durability, Embedded, EmbeddedOptions, recovery};
use crate::board::{Amount, Board, BoardName, Change, Definition, EventId, Kind, Subject, Tally, Timestamp, Value};
use crate::store::{AuditCursor, Batch, ClockMode, Defined, Increment, Limits, Outcome, Result, Store, StoreError};

const START: Timestamp = Timestamp::from_millis(1_767_225_600_000);
const HOUR: i64 = 3_600_000;

/// A disk in memory.
#[derive(Default)]
struct Memory {
    entries: Mutex<BTreeMap<Vec<u8>, Vec<u8>>>,
    fails: AtomicBool,
    /// Whoever holds it keeps groups from being written.
    gate: Mutex<()>,
}

impl Disk for Memory {
    fn commit(&self, writes: Vec<Write>, _: bool) -> Result<(), DiskError> {
        let _open = self.gate.lock();
        self.sync()?;
        let mut entries = self.entries.lock();
        let mut keys = std::collections::HashSet::new();
        for write in writes {
            assert!(keys.insert(write.key().to_vec()), "a group may hold a key only once");
            match write {
                Write::Put(key, value) => entries.insert(key, value),
                Write::Delete(key) => entries.remove(&key),
            };
        }
        Ok(())
    }

    fn sync(&self) -> Result<(), DiskError> {
        if self.fails.load(Ordering::SeqCst) { Err(DiskError("no space left".to_owned())) } else { Ok(()) }
    }

    fn scan(&self, prefix: &[u8], after: Option<&[u8]>, limit: usize) -> Result<Vec<Pair>, DiskError> {
        let after = after.map(<[u8]>::to_vec);
        let entries = self.entries.lock();
        let found = entries.range(prefix.to_vec()..).filter(|(key, _)| after.as_ref().is_none_or(|after| *key > after));
        let found = found.take_while(|(key, _)| key.starts_with(prefix)).take(limit);
        Ok(found.map(|(key, value)| (key.clone(), value.clone())).collect())
    }

    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, DiskError> {
        Ok(self.entries.lock().get(key).cloned())
    }
}

impl Memory {
    /// The disk as a crash right now would leave it.
    fn crashed(&self) -> Arc<Memory> {
        Arc::new(Memory { entries: Mutex::new(self.entries.lock().clone()), ..Memory::default() })
    }
}

fn open(folder: &Path, disk: &Arc<Memory>, pace: Pace) -> Result<Arc<Embedded>> {
    let options = EmbeddedOptions {
        path: folder.to_owned(),
        clock: ClockMode::Simulated(START),
        durability: Durability::Always,
        limits: Limits::default(),
    };
    let disk = disk.clone();
    Embedded::open_on(options, pace, |_| Ok(disk))
}

/// Folds after every group.
const EAGER: Pace = Pace { every: Duration::ZERO, bytes: 1 };

async fn define(store: &Embedded, metric: &str) -> Arc<Board> {
    let definition = Definition::new(metric.parse().unwrap(), "1h".parse().unwrap());
    match store.define(&BoardName::parse("b").unwrap(), &definition).await.unwrap() {
        Defined::Created(board) | Defined::Unchanged(board) | Defined::Conflict(board) => board,
    }
}

fn subject(number: u8) -> Subject {
    Subject::parse(&format!("subject-{number}")).unwrap()
}

fn increment(number: u8, amount: i64, at: Option<Timestamp>, id: Option<u8>) -> Increment {
    let id = id.map(|id| EventId::parse(&format!("e{id}")).unwrap());
    Increment { subject: subject(number), change: Change::Amount(Amount(amount)), retract: false, at, id }
}

async fn add(store: &Embedded, board: &Arc<Board>, increments: Vec<Increment>) -> Result<Vec<Outcome>> {
    Ok(store.add(board, Batch { increments, return_scores: false }).await?.outcomes)
}

/// What a subject has that a restart must not lose: its slices, its values (when, and whether gone), its cap.
type Content = (String, Vec<(Timestamp, Tally)>, Vec<(String, i64, bool)>, Option<i64>);

/// What a board's tables hold that a restart must not lose, and checks that they agree with each other.
fn live_contents(tables: &Tables) -> Vec<Content> {
    let (holdings, window) = (&tables.holdings, tables.window);
    let rule = holdings.rule;
    let mut found = Vec::new();
    let (mut ranked, mut listed) = (0, 0);
    for id in 0..holdings.slab.end() {
        let Some(record) = holdings.slab.get(id) else { continue };
        assert_eq!(record.key, holdings.computed_key(id));
        let entry = Entry::new(record.key, &record.text, id);
        assert_eq!(holdings.ranking.contains(entry, &holdings.slab), record.key != rule.absent());
        ranked += usize::from(record.key != rule.absent());
        assert!(record.slices.is_sorted_by(|a, b| a.slot < b.slot));
        for slice in record.slices.iter().filter(|_| rule.ranked) {
            assert_eq!(holdings.slots[&slice.slot][slice.place as usize], id);
            listed += 1;
        }
        let floor = if rule.ranked { window.floor.millis() } else { holdings.oldest_kept };
        let slices = match rule.life {
            None => holdings.tallies(&record.text, floor, i64::MAX),
            Some(_) => {
                let counter = holdings.counter(&record.text, tables.now.millis()).into_iter();
                counter.map(|c| (Timestamp::from_millis(c.start), Tally::Sum(Amount(c.amount)))).collect()
            }
        };
        assert!(rule.life.is_some() || slices.iter().all(|(_, tally)| !tally.is_empty()));
        let sightings = holdings.sightings(&record.text);
        let live = sightings.into_iter().flat_map(|s| s.all()).filter(|(_, s)| s.at >= window.floor.millis());
        let mut values: Vec<_> = live.map(|(value, s)| (value.to_string(), s.at, s.gone)).collect();
        values.sort();
        let capped = sightings.and_then(|s| s.capped).filter(|at| *at >= window.floor.millis());
        if rule.kind == Kind::Distinct {
            let seen = values.iter().filter(|(_, _, gone)| !gone).count();
            let window = holdings.value_from(&record.text, window.floor.millis());
            assert_eq!(window, Some(Value::Exact(Amount(seen as i64))), "{}", record.text);
        }
        if !slices.is_empty() || !values.is_empty() || capped.is_some() {
            found.push((record.text.to_string(), slices, values, capped));
        }
    }
    assert_eq!(holdings.ranking.len(), ranked);
    assert_eq!(holdings.slots.values().map(Vec::len).sum::<usize>(), listed);
    assert!(holdings.slots.values().all(|list| !list.is_empty()));
    found.sort_by(|a, b| a.0.cmp(&b.0));
    found
}

fn live(store: &Embedded) -> Arc<LiveBoard> {
    store.boards.read().values().next().unwrap().clone()
}

#[derive(Clone, Debug)]
enum Step {
    Add(Vec<(u8, i64, Option<i64>, Option<u8>)>),
    Remove(u8),
    Forward(i64),
    Retire,
    Reopen,
    Redefine,
}

fn step() -> impl Strategy<Value = Step> {
    let item = (0u8..12, -3i64..6, prop::option::of(0i64..4), prop::option::of(0u8..6));
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
    #![proptest_config(ProptestConfig::with_cases(48))]
    /// Whatever happened, and however far a fold has come: what a crash leaves reads back as what memory holds.
    #[test]
    fn a_crash_at_any_moment_reads_back(steps in prop::collection::vec(step(), 1..60), eager in any::<bool>()) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(async {
            // Without a watermark, which would speak of the store's own disk, not of its copies.
            let (folder, elsewhere) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
            let disk = Arc::new(Memory::default());
            let pace = if eager { EAGER } else { Pace::default() };
            let mut store = open(folder.path(), &disk, pace).unwrap();
            let mut board = define(&store, "SUM(3h, sale, amount, seller)").await;
            for step in steps {
                match step {
                    Step::Add(items) => {
                        let now = store.now().await.unwrap();
                        let item = |(who, amount, hours, id): (u8, i64, Option<i64>, Option<u8>)| {
                            increment(who, amount, hours.map(|hours| now.plus_millis(-hours * HOUR)), id)
                        };
                        add(&store, &board, items.into_iter().map(item).collect()).await.unwrap();
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
                        board = define(&store, "SUM(3h, sale, amount, seller)").await;
                    }
                    Step::Redefine => {
                        store.undefine(&board).await.unwrap();
                        board = define(&store, "SUM(3h, sale, amount, seller)").await;
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
                let (live, copy) = (live.tables.lock(), copy.tables.lock());
                assert_eq!(live.window, copy.window);
                assert_eq!(live_contents(&live), live_contents(&copy));
                for who in 0..12 {
                    for id in 0..6 {
                        let pair = format!("subject-{who}\ne{id}");
                        let at = now.millis();
                        assert_eq!(live.ids.seen(&pair, at), copy.ids.seen(&pair, at), "{pair:?}");
                    }
                }
            }
        });
    }
}

#[tokio::test]
async fn a_failed_write_turns_the_store_read_only() {
    let folder = tempfile::tempdir().unwrap();
    let disk = Arc::new(Memory::default());
    let store = open(folder.path(), &disk, Pace::default()).unwrap();
    let board = define(&store, "COUNT(3h, like, post)").await;
    add(&store, &board, vec![increment(1, 5, None, None)]).await.unwrap();
    store.check().await.unwrap();

    disk.fails.store(true, Ordering::SeqCst);
    // The first is told when its group fails, the next before they begin; both the reason.
    for _ in 0..2 {
        match add(&store, &board, vec![increment(2, 1, None, None)]).await {
            Err(error @ StoreError::ReadOnly { .. }) => assert!(error.to_string().contains("no space left"), "{error}"),
            other => panic!("{other:?}"),
        }
    }
    disk.fails.store(false, Ordering::SeqCst);
    assert!(matches!(store.remove(&board, &subject(1)).await, Err(StoreError::ReadOnly { .. })));
    assert!(matches!(store.check().await, Err(StoreError::ReadOnly { .. })));
    assert_eq!(store.standing(&board, &subject(1)).await.unwrap().score, Some(Value::Exact(Amount(5))));
    assert!(store.close().await.is_err());
    drop(store);

    let store = open(folder.path(), &disk, Pace::default()).unwrap();
    assert_eq!(store.page(&board, 0, 10).await.unwrap().total, 1, "what was refused did not count");
}

#[tokio::test]
async fn nothing_is_vouched_for_that_is_still_on_its_way_to_the_disk() {
    let folder = tempfile::tempdir().unwrap();
    let disk = Arc::new(Memory::default());
    let store = open(folder.path(), &disk, Pace::default()).unwrap();
    let board = define(&store, "COUNT(3h, like, post)").await;
    let like = || add(&store, &board, vec![increment(2, 1, None, Some(1))]);
    add(&store, &board, vec![increment(1, 5, None, None)]).await.unwrap();

    let gate = disk.gate.lock();
    let (name, definition) = (BoardName::parse("new").unwrap(), board.definition().clone());
    let (mut first, mut again) = (store.define(&name, &definition), store.define(&name, &definition));
    assert!((&mut first).now_or_never().is_none());
    assert!((&mut again).now_or_never().is_none(), "the board is not on the disk yet");
    let one = subject(1);
    let (mut removed, mut gone) = (store.remove(&board, &one), store.remove(&board, &one));
    assert!((&mut removed).now_or_never().is_none());
    assert!((&mut gone).now_or_never().is_none(), "the removal is not on the disk yet");
    let (mut counted, mut repeated) = (like().boxed(), like().boxed());
    assert!((&mut counted).now_or_never().is_none());
    assert!((&mut repeated).now_or_never().is_none(), "what it repeats is not on the disk yet");

    drop(gate);
    assert!(matches!(first.await, Ok(Defined::Created(_))) && matches!(again.await, Ok(Defined::Unchanged(_))));
    assert_eq!((removed.await.unwrap().live_slots, gone.await.unwrap().live_slots), (1, 0));
    counted.await.unwrap();
    assert_eq!(repeated.await.unwrap(), [Outcome::Duplicate { score: None }]);
}

#[tokio::test]
async fn the_audit_finds_and_repairs_what_is_wrong_both_ways() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path(), &Arc::new(Memory::default()), Pace::default()).unwrap();
    let board = define(&store, "COUNT(3h, like, post)").await;
    let likes = (0..2_500).map(|i| Increment {
        subject: Subject::parse(&format!("post {i}")).unwrap(),
        change: Change::Amount(Amount(1 + i % 7)),
        retract: false,
        at: None,
        id: None,
    });
    add(&store, &board, likes.collect()).await.unwrap();
    let audit = async |repair| {
        let (mut cursor, mut checked, mut differences, mut repaired) = (AuditCursor::default(), 0, Vec::new(), 0);
        loop {
            let step = store.audit_step(&board, cursor, repair).await.unwrap();
            assert!(step.checked <= 1_000);
            checked += step.checked;
            differences.extend(step.differences);
            repaired += step.repaired;
            match step.next {
                Some(next) => cursor = next,
                None => return (checked, differences, repaired),
            }
        }
    };
    assert_eq!(audit(false).await, (2_500, vec![], 0));

    {
        let live = live(&store);
        let mut tables = live.tables.lock();
        let holdings = &mut tables.holdings;
        let entry = |score, id: u32| Entry::new(score, holdings.slab.text(id), id);
        let (missing, doubled) = (entry(1, 0), entry(100, 2_499));
        // One is not ranked, one is ranked a second time, one has a score that is not its slices' sum.
        holdings.ranking.remove(missing, &holdings.slab);
        holdings.ranking.insert(doubled, &holdings.slab);
        let (old, wrong) = (entry(2, 1), entry(9, 1));
        holdings.ranking.replace(old, wrong, &holdings.slab);
        holdings.slab.get_mut(1).unwrap().key = 9;
    }
    let (_, differences, repaired) = audit(false).await;
    let mut seen: Vec<_> = differences.iter().map(|d| (d.subject.as_str(), d.score, d.slots)).collect();
    seen.sort_unstable();
    let units = |units| Some(Value::Exact(Amount(units)));
    let expected =
        [("post 0", units(0), units(1)), ("post 1", units(9), units(2)), ("post 2499", units(100), units(1))];
    assert_eq!(seen, expected);
    assert_eq!(repaired, 0);
    assert_eq!(audit(true).await.2, 3);
    assert_eq!(audit(false).await, (2_500, vec![], 0));
    live_contents(&live(&store).tables.lock());
}

#[tokio::test]
async fn a_step_of_retiring_is_bounded_and_everything_expired_goes_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let disk = Arc::new(Memory::default());
    let store = open(folder.path(), &disk, Pace::default()).unwrap();
    let board = define(&store, "COUNT(3h, like, post)").await;
    let like = |i: i64| Subject::parse(&format!("post {i}")).unwrap();
    let likes = |range: std::ops::Range<i64>| {
        range
            .map(|i| Increment {
                subject: like(i),
                change: Change::Amount(Amount(1)),
                retract: false,
                at: None,
                id: None,
            })
            .collect::<Vec<_>>()
    };
    add(&store, &board, likes(0..10_000)).await.unwrap();
    store.set_clock(START.plus_millis(HOUR)).await.unwrap();
    add(&store, &board, likes(9_000..11_000)).await.unwrap();
    store.set_clock(START.plus_millis(3 * HOUR)).await.unwrap();
    let (mut touched, mut removed, mut slots, mut steps) = (0, 0, 0, 0);
    loop {
        let step = store.retire_step(&board).await.unwrap();
        assert!(step.subjects_touched <= 4_096);
        touched += step.subjects_touched;
        removed += step.subjects_removed;
        slots += step.slots_retired;
        steps += 1;
        if step.done {
            assert_eq!(step.frame.retiring, 0);
            break;
        }
        assert_eq!(step.frame.retiring, 1);
    }
    assert_eq!((touched, removed, slots), (10_000, 9_000, 1));
    assert!(steps >= 3);
    assert_eq!(store.page(&board, 0, 1).await.unwrap().total, 2_000);

    store.set_clock(START.plus_millis(100 * HOUR)).await.unwrap();
    let step = store.retire_step(&board).await.unwrap();
    assert_eq!((step.done, step.slots_retired, step.slots_advanced), (true, 1, 97));
    assert_eq!(store.page(&board, 0, 1).await.unwrap().total, 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_duplicate_waits_for_what_counted_it() {
    let (folder, disk) = (tempfile::tempdir().unwrap(), Arc::new(Memory::default()));
    let store = open(folder.path(), &disk, Pace::default()).unwrap();
    let board = define(&store, "COUNT(3h, like, post)").await;
    let increments = || vec![increment(1, 1, None, Some(1)), increment(2, 1, None, Some(2))];
    let counted = [Outcome::Counted { score: None }; 2];
    let (mut first, mut second) = {
        let _shut = disk.gate.lock();
        let mut first = Box::pin(add(&store, &board, increments()));
        let mut once = Context::from_waker(Waker::noop());
        assert!(first.as_mut().poll(&mut once).is_pending());
        let mut second = Box::pin(add(&store, &board, increments()));
        assert!(second.as_mut().poll(&mut once).is_pending(), "the disk does not have it yet");
        (first, second)
    };
    assert_eq!(first.as_mut().await.unwrap(), counted);
    assert_eq!(second.as_mut().await.unwrap(), [Outcome::Duplicate { score: None }; 2]);
    assert_eq!(add(&store, &board, increments()).await.unwrap(), [Outcome::Duplicate { score: None }; 2]);
}
