//! Writers that keep an account: every item has an id and is repeated until it is acknowledged. So at the end the exact
//! value of each subject is known.

use std::collections::BTreeMap;
use std::ops::AddAssign;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use rolltop::board::{Aggregate, Kind, Value};

use super::*;
use crate::given::seen;
use crate::waiting::Wait;

/// The parameters of a load.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The prefix of all ids of this load, and the seed of everything else that is drawn.
    pub seed: u64,
    /// The number of writers of each board on each store.
    pub writers: usize,
    pub subjects: u64,
    /// The largest number of items of a call.
    pub items: u64,
    pub pause: Duration,
    /// Whether the boards are removed during the load. A writer whose board was removed ends.
    pub boards_go: bool,
}

/// The data of a subject.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Held {
    /// The sum of its items. For COUNT_DISTINCT, the number of its values.
    pub sum: i64,
    /// The number of items for AVG, otherwise 0.
    pub count: i64,
}

/// A board by its index in the list, and a subject.
type Who = (usize, String);

/// The acknowledged items.
#[derive(Debug, Default)]
pub struct Account {
    pub held: BTreeMap<Who, Held>,
    /// For each subject, the number of its calls that had to be repeated.
    pub put_off: BTreeMap<Who, u64>,
    pub items: u64,
    /// The latest items of each writer.
    pub last: Vec<(usize, Increment)>,
}

/// The calls through one store to one board.
#[derive(Debug, Default)]
struct Stream {
    acknowledged: AtomicU64,
    put_off: AtomicU64,
}

pub struct Writers {
    tasks: Vec<tokio::task::JoinHandle<Account>>,
    stop: Arc<AtomicBool>,
    streams: Vec<Arc<Stream>>,
}

/// The progress of all streams at one time.
pub struct Mark(Instant, Vec<u64>);

impl AddAssign for Held {
    fn add_assign(&mut self, other: Held) {
        *self = Held { sum: self.sum + other.sum, count: self.count + other.count };
    }
}

impl AddAssign for Account {
    fn add_assign(&mut self, other: Account) {
        for (who, held) in other.held {
            *self.held.entry(who).or_default() += held;
        }
        for (who, times) in other.put_off {
            *self.put_off.entry(who).or_default() += times;
        }
        self.items += other.items;
        self.last.extend(other.last);
    }
}

impl Account {
    fn enter(&mut self, board: usize, kind: Kind, item: &Increment) {
        let sum = match &item.change {
            Change::Amount(amount) => amount.0,
            _ => 1,
        };
        let who = (board, item.subject.as_str().to_owned());
        *self.held.entry(who).or_default() += Held { sum, count: i64::from(kind == Kind::Mean) };
        self.items += 1;
    }
}

impl Writers {
    pub fn start(stores: &[Arc<RedisStore>], boards: &[Arc<Board>], plan: &Plan) -> Writers {
        let (stop, mut streams, mut tasks) = (Arc::<AtomicBool>::default(), Vec::new(), Vec::new());
        for (nth, store) in stores.iter().enumerate() {
            for (place, board) in boards.iter().enumerate() {
                let stream = Arc::<Stream>::default();
                streams.push(stream.clone());
                for writer in 0..plan.writers {
                    let writer = Writer {
                        store: store.clone(),
                        board: board.clone(),
                        place,
                        ids: format!("{:x}/{nth}/{place}/{writer}", plan.seed),
                        random: StdRng::seed_from_u64(plan.seed ^ tasks.len() as u64),
                        plan: plan.clone(),
                        stop: stop.clone(),
                        stream: stream.clone(),
                        account: Account::default(),
                    };
                    tasks.push(tokio::spawn(writer.run()));
                }
            }
        }
        Writers { tasks, stop, streams }
    }

    /// Returns the number of calls that had to be repeated.
    pub fn put_off(&self) -> u64 {
        self.streams.iter().map(|stream| stream.put_off.load(Ordering::SeqCst)).sum()
    }

    pub fn mark(&self) -> Mark {
        let counts = self.streams.iter().map(|stream| stream.acknowledged.load(Ordering::SeqCst));
        Mark(Instant::now(), counts.collect())
    }

    /// Returns the time from the mark to the first acknowledged call, and to the first one on each board through each
    /// store.
    pub async fn recovered(&self, Mark(since, before): &Mark) -> (Duration, Duration) {
        let mut first = None;
        let wait = Wait::begin("all streams to go on");
        loop {
            assert!(self.tasks.iter().all(|task| !task.is_finished()), "a writer has ended");
            let now = self.mark();
            let moved = now.1.iter().zip(before).filter(|(now, before)| now > before).count();
            let took = now.0 - *since;
            if moved > 0 {
                first.get_or_insert(took);
            }
            if let (Some(first), true) = (first, moved == before.len()) {
                return (first, took);
            }
            wait.rest(format!("{moved} of {} streams", before.len())).await;
        }
    }

    /// Waits until each stream had this many more calls acknowledged.
    pub async fn progress(&self, calls: u64) {
        let Mark(since, counts) = self.mark();
        self.recovered(&Mark(since, counts.iter().map(|count| count + calls - 1).collect())).await;
    }

    /// Stops all writers after their current calls. Returns what is acknowledged.
    pub async fn stop(self) -> Account {
        self.stop.store(true, Ordering::SeqCst);
        let mut account = Account::default();
        for task in self.tasks {
            account += task.await.unwrap();
        }
        account
    }
}

struct Writer {
    store: Arc<RedisStore>,
    board: Arc<Board>,
    place: usize,
    ids: String,
    random: StdRng,
    plan: Plan,
    stop: Arc<AtomicBool>,
    stream: Arc<Stream>,
    account: Account,
}

impl Writer {
    async fn run(mut self) -> Account {
        let mut latest = Vec::new();
        for number in 0.. {
            if self.stop.load(Ordering::SeqCst) {
                break;
            }
            tokio::time::sleep(self.plan.pause).await;
            let items = self.draw(number);
            if !self.deliver(&items, false).await {
                break;
            }
            for item in &items {
                self.account.enter(self.place, self.board.kind(), item);
            }
            self.stream.acknowledged.fetch_add(1, Ordering::SeqCst);
            // A client that did not see the response sends the items once more.
            if self.random.random_ratio(1, 8) && !self.deliver(&items, true).await {
                break;
            }
            latest = items;
        }
        self.account.last = latest.into_iter().map(|item| (self.place, item)).collect();
        self.account
    }

    fn draw(&mut self, number: u64) -> Vec<Increment> {
        let item = |nth: u64| {
            let id = format!("{}/{number}/{nth}", self.ids);
            let name = format!("s{}", self.random.random_range(0..self.plan.subjects));
            let item = match self.board.kind() {
                Kind::Distinct => seen(&name, &id),
                _ => item(&name, self.random.random_range(1..=3)),
            };
            with_id(item, &id)
        };
        (0..number % self.plan.items + 1).map(item).collect()
    }

    /// Sends items until they are acknowledged. Returns `false` if the board no longer exists.
    async fn deliver(&mut self, items: &[Increment], again: bool) -> bool {
        let mut is_first = true;
        loop {
            match self.store.add(&self.board, batch(items.iter().cloned())).await {
                Ok(added) => {
                    for outcome in &added.outcomes {
                        match outcome {
                            Outcome::Counted { .. } if !again => {}
                            Outcome::Duplicate { .. } if again || !is_first => {}
                            outcome => panic!("{outcome:?} of {items:?}, first {is_first}, again {again}"),
                        }
                    }
                    return true;
                }
                Err(StoreError::BoardChanged) if self.plan.boards_go => return false,
                Err(error) => {
                    assert!(error.is_transient() && error.retry_after().is_some(), "{error:?}");
                    if self.plan.boards_go && self.stop.load(Ordering::SeqCst) {
                        return false;
                    }
                    self.stream.put_off.fetch_add(1, Ordering::SeqCst);
                    for item in items {
                        let who = (self.place, item.subject.as_str().to_owned());
                        *self.account.put_off.entry(who).or_default() += 1;
                    }
                }
            }
            is_first = false;
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }
}

/// Repeats a call until it returns a result.
pub async fn patiently<T, F: Future<Output = Result<T, StoreError>>>(ask: impl Fn() -> F) -> T {
    let wait = Wait::begin("a call to succeed");
    loop {
        match ask().await {
            Ok(answer) => return answer,
            Err(error) => {
                assert!(error.is_transient(), "{error:?}");
                wait.rest(error).await;
            }
        }
    }
}

/// Returns what the store has of a subject, from its slots. Checks that its score is the same.
pub async fn held(store: &RedisStore, board: &Arc<Board>, name: &str) -> Held {
    let name = subject(name);
    let track = board.main();
    let standing = patiently(|| store.standing(&track, &name)).await;
    let mut held = Held::default();
    for (_, aggregate) in &standing.slots {
        held += match aggregate {
            Aggregate::Sum(amount) => Held { sum: amount.0, count: 0 },
            Aggregate::Mean { sum, count } => Held { sum: sum.0, count: *count },
            other => panic!("{other:?}"),
        };
    }
    let score = match board.kind() {
        Kind::Mean if held.count == 0 => None,
        Kind::Mean => Value::mean(held.sum, held.count),
        _ => exact(held.sum),
    };
    assert_eq!(standing.score, score, "of {name:?} on {}, by its slots {:?}", board.name(), standing.slots);
    held
}

/// Checks that every acknowledged item counts exactly once: each subject has the value of the account, no other subject
/// is ranked, an audit finds no difference, and the latest items are recognized as counted.
pub async fn assert_exact(store: &RedisStore, boards: &[Arc<Board>], account: &Account) {
    let (mut lost, mut doubled, mut differences) = (0, 0, Vec::new());
    for ((place, name), wanted) in &account.held {
        let found = held(store, &boards[*place], name).await;
        lost += (wanted.sum - found.sum).max(0) + (wanted.count - found.count).max(0);
        doubled += (found.sum - wanted.sum).max(0) + (found.count - wanted.count).max(0);
        if found != *wanted {
            differences.push(format!("{name} on {}: {found:?} instead of {wanted:?}", boards[*place].name()));
        }
    }
    assert!(differences.is_empty(), "{lost} lost, {doubled} doubled of {}:\n{}", account.items, differences.join("\n"));
    for (place, board) in boards.iter().enumerate().filter(|(_, board)| board.edition().main().is_ranked()) {
        let track = board.main();
        let page = patiently(|| store.page(&track, 0, 1_000)).await;
        let mut ranked: Vec<&str> = page.items.iter().map(|line| line.subject.as_str()).collect();
        ranked.sort_unstable();
        let of_board = account.held.keys().filter(|(of, _)| *of == place);
        assert_eq!(ranked, of_board.map(|(_, name)| name.as_str()).collect::<Vec<_>>(), "on {}", board.name());
        assert_eq!(audit(store, board, false).await.1, [], "on {}", board.name());
    }
    for (place, item) in &account.last {
        let added = patiently(|| store.add(&boards[*place], batch([item.clone()]))).await;
        assert!(matches!(added.outcomes[..], [Outcome::Duplicate { .. }]), "{item:?}: {added:?}");
    }
}
