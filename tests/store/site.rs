//! A store under test, newly created, with the calls that tests make on it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use rolltop::board::{Aggregate, Board, Definition, RankingKey, Timestamp, Value};
use rolltop::store::embedded::{Embedded, EmbeddedOptions, Pace};
use rolltop::store::redis::{RedisOptions, RedisStore};
use rolltop::store::{
    AuditCursor, Batch, ClockMode, Defined, Difference, Increment, Limits, Outcome, Ranked, RetireStep, SlotRange,
    Store,
};
use tempfile::TempDir;

use crate::altered::{Alteration, Altered};
use crate::documented_user;
use crate::given::{OnTrack, Units, definition, exact, name, new_board, subject, t, unranked};
use crate::oracle::Oracle;
use crate::redis_cluster::RedisCluster;
use crate::redis_server::{Engine, RedisServer};

/// The time on a new site's clock.
pub const START: &str = "2026-01-01T09:30:00Z";

/// The kind of a store.
#[derive(Clone, Debug)]
pub enum Kind {
    Oracle,
    Embedded,
    /// An embedded store that constantly makes checkpoints of whatever it has written.
    EmbeddedCheckpointing,
    /// An embedded store on which every ranked board has a key.
    EmbeddedKeys,
    Redis(OnRedis),
}

/// A Redis store.
#[derive(Clone, Debug)]
pub struct OnRedis {
    pub engine: Engine,
    /// A cluster of six masters, instead of one server.
    pub is_cluster: bool,
    /// What every board gets.
    pub to: Alteration,
}

impl Kind {
    /// Returns every store except the oracle. Redis occurs once for each available engine.
    pub fn stores() -> Vec<Kind> {
        [Kind::Embedded, Kind::EmbeddedCheckpointing].into_iter().chain(Self::servers()).collect()
    }

    /// Returns a server of each available engine.
    pub fn servers() -> Vec<Kind> {
        Self::on_each_engine(false, None)
    }

    /// Returns stores whose boards have this many parts, on one server of each available engine.
    pub fn of_parts(parts: u32) -> Vec<Kind> {
        Self::on_each_engine(false, Some(parts))
    }

    /// Returns a cluster of each available engine.
    pub fn clusters() -> Vec<Kind> {
        Self::on_each_engine(true, None)
    }

    /// Returns stores whose boards have this many parts, on a cluster of each available engine.
    pub fn clusters_of_parts(parts: u32) -> Vec<Kind> {
        Self::on_each_engine(true, Some(parts))
    }

    fn on_each_engine(is_cluster: bool, shards: Option<u32>) -> Vec<Kind> {
        let to = Alteration { shards, key: None };
        let on = |engine| Kind::Redis(OnRedis { engine, is_cluster, to: to.clone() });
        Engine::available().into_iter().map(on).collect()
    }

    /// Returns the same store on Redis, with a key on every ranked board.
    pub fn with_key(self) -> Kind {
        match self {
            Kind::Redis(on) => Kind::Redis(OnRedis { to: Alteration { key: Some(hidden_key()), ..on.to }, ..on }),
            other => other,
        }
    }

    /// Returns the number of parts of each board.
    pub fn parts(&self) -> u32 {
        match self {
            Kind::Redis(OnRedis { to: Alteration { shards: Some(parts), .. }, .. }) => *parts,
            _ => 1,
        }
    }
}

/// The place of a store's data. It is empty at first and used by no other store.
pub enum Home {
    Oracle,
    Embedded { name: &'static str, folder: TempDir, pace: Pace, to: Alteration },
    Redis { name: String, url: String, prefix: String, to: Alteration },
}

impl Home {
    pub fn new(kind: Kind) -> Home {
        match kind {
            Kind::Oracle => Home::Oracle,
            Kind::Embedded => Home::embedded("embedded", Pace::default(), Alteration::default()),
            Kind::EmbeddedKeys => {
                let to = Alteration { shards: None, key: Some(hidden_key()) };
                Home::embedded("embedded-keys", Pace::default(), to)
            }
            Kind::EmbeddedCheckpointing => {
                let tick = Duration::from_millis(1);
                let pace = Pace { log_bytes: 1, segment_bytes: 4_096, age: Duration::ZERO, tick, ..Pace::default() };
                Home::embedded("embedded-checkpointing", pace, Alteration::default())
            }
            Kind::Redis(on) => Home::redis(on),
        }
    }

    fn embedded(name: &'static str, pace: Pace, to: Alteration) -> Home {
        Home::Embedded { name, folder: Home::folder(), pace, to }
    }

    fn redis(OnRedis { engine, is_cluster, to }: OnRedis) -> Home {
        let url = if is_cluster { cluster_url(&engine) } else { server_url(&engine) };
        let cluster = if is_cluster { "-cluster" } else { "" };
        let parts = to.shards.map(|parts| format!("-{parts}-parts")).unwrap_or_default();
        let key = if to.key.is_some() { "-key" } else { "" };
        let name = format!("{}{cluster}{parts}{key}", engine.name);
        static PREFIXES: AtomicU64 = AtomicU64::new(0);
        // The documented user has the keys of the default prefix.
        let prefix = format!("rolltop:site{}", PREFIXES.fetch_add(1, Ordering::Relaxed));
        Home::Redis { name, url, prefix, to }
    }

    fn folder() -> TempDir {
        tempfile::tempdir().expect("a temporary folder")
    }

    pub fn name(&self) -> &str {
        match self {
            Home::Oracle => "oracle",
            Home::Embedded { name, .. } => name,
            Home::Redis { name, .. } => name,
        }
    }

    /// Returns whether the data of the store is available to the next instance.
    pub fn outlives_its_store(&self) -> bool {
        !matches!(self, Home::Oracle)
    }

    /// Opens one more instance of the store.
    pub async fn instance(&self, clock: ClockMode) -> Arc<dyn Store> {
        let limits = Limits::default();
        match self {
            Home::Oracle => Arc::new(Oracle::new(clock)),
            Home::Embedded { folder, pace, to, .. } => {
                let path = folder.path().join("data");
                let options = EmbeddedOptions { limits, ..EmbeddedOptions::new(path, clock) };
                altered(Embedded::open_at_pace(options, *pace).await.expect("an embedded store"), to)
            }
            Home::Redis { url, prefix, to, .. } => {
                // On a machine that is busy with other tests, a server may not run for longer than a service would wait.
                let patience = Duration::from_secs(60);
                let options = RedisOptions::new(url.clone(), clock);
                let options = RedisOptions { prefix: prefix.clone(), queue: 1_000_000, patience, ..options };
                altered(RedisStore::connect(options).await.expect("a Redis store"), to)
            }
        }
    }

    /// Opens as many instances as the store may have at once, at most two.
    pub async fn instances(&self, clock: ClockMode) -> Vec<Arc<dyn Store>> {
        let mut instances = vec![self.instance(clock).await];
        if matches!(self, Home::Redis { .. }) {
            instances.push(self.instance(clock).await);
        }
        instances
    }
}

/// Returns the key of all subjects where callers do not know of it.
fn hidden_key() -> RankingKey {
    RankingKey::parse("a {key}: é").expect("a key")
}

fn altered(store: Arc<dyn Store>, to: &Alteration) -> Arc<dyn Store> {
    match to {
        Alteration { shards: None, key: None } => store,
        to => Arc::new(Altered { store, to: to.clone() }),
    }
}

/// Returns the server that all tests of this process share, for the documented user. Each test has its own prefix.
fn server_url(engine: &Engine) -> String {
    static SERVERS: Mutex<Vec<(Engine, RedisServer)>> = Mutex::new(Vec::new());
    let mut servers = SERVERS.lock();
    let at = servers.iter().position(|(of, _)| of == engine).unwrap_or_else(|| {
        let server = RedisServer::start(engine);
        documented_user::create(&server, &documented_user::rules());
        servers.push((engine.clone(), server));
        servers.len() - 1
    });
    documented_user::url(&servers[at].1.url())
}

/// Returns the cluster that all tests of this process share, for the documented user. Each test has its own prefix.
fn cluster_url(engine: &Engine) -> String {
    static CLUSTERS: Mutex<Vec<(Engine, RedisCluster)>> = Mutex::new(Vec::new());
    let mut clusters = CLUSTERS.lock();
    let at = clusters.iter().position(|(of, _)| of == engine).unwrap_or_else(|| {
        // No node of it ever ends. On a machine that is busy with other tests, a node may not run for a second.
        let patient = ["--save", "", "--appendonly", "no", "--cluster-node-timeout", "60000"];
        let cluster = RedisCluster::start_with(engine, 6, 0, &patient);
        cluster.nodes.iter().for_each(|node| documented_user::create(node, &documented_user::rules()));
        clusters.push((engine.clone(), cluster));
        clusters.len() - 1
    });
    documented_user::url(&clusters[at].1.url())
}

/// An empty store of its own, on a simulated clock that starts at [`START`] by default.
pub struct Site {
    pub kind: Kind,
    pub store: Arc<dyn Store>,
    /// The same store through another instance, where a store may have several; otherwise the same instance.
    pub other: Arc<dyn Store>,
    _home: Home,
}

/// The sum of a series of retire steps.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Retired {
    pub slots: u64,
    pub touched: u64,
    pub removed: u64,
}

impl Site {
    pub async fn new(kind: Kind) -> Site {
        Site::on(kind, ClockMode::Simulated(t(START))).await
    }

    pub async fn on(kind: Kind, clock: ClockMode) -> Site {
        let home = Home::new(kind.clone());
        let instances = home.instances(clock).await;
        let (store, other) = (instances[0].clone(), instances[instances.len() - 1].clone());
        Site { kind, store, other, _home: home }
    }

    /// Ends the instances without closing them, and opens the store again. Boards that were looked up before still
    /// work.
    pub async fn reopened(self) -> Site {
        if !self._home.outlives_its_store() {
            return self;
        }
        let Site { kind, store, other, _home: home } = self;
        drop((store, other));
        // A store that has reached a later time keeps it.
        let instances = home.instances(ClockMode::Simulated(t(START))).await;
        let (store, other) = (instances[0].clone(), instances[instances.len() - 1].clone());
        Site { kind, store, other, _home: home }
    }

    /// Returns whether the number of retired slots that steps reported corresponds to this many slots of the board:
    /// each part has its own slots.
    pub fn are_slots(&self, retired: u64, slots: u64) -> bool {
        (slots..=slots * u64::from(self.kind.parts())).contains(&retired)
    }

    /// Defines a new board.
    pub async fn board(&self, metric: &str, slot: &str) -> Arc<Board> {
        self.define("board", &definition(metric, slot)).await
    }

    /// Defines the same board with a ranking and without.
    pub async fn both(&self, metric: &str, slot: &str) -> [Arc<Board>; 2] {
        let unranked = self.define("unranked", &unranked(metric, slot)).await;
        [self.board(metric, slot).await, unranked]
    }

    pub async fn define(&self, board: &str, definition: &Definition) -> Arc<Board> {
        match self.store.define(new_board(&name(board), definition)).await.unwrap() {
            Defined::Created(board) => board,
            other => panic!("{other:?} instead of a new board"),
        }
    }

    pub async fn clock(&self, to: &str) {
        self.clock_at(t(to)).await;
    }

    pub async fn clock_at(&self, to: Timestamp) {
        assert_eq!(self.store.set_clock(to).await.unwrap(), to);
    }

    pub async fn add(&self, board: &Arc<Board>, increments: Vec<Increment>) -> Vec<Outcome> {
        let sent = increments.len();
        let added = self.store.add(board, Batch { increments, return_scores: false }).await.unwrap();
        assert_eq!(added.outcomes.len(), sent, "one outcome per item");
        added.outcomes
    }

    /// Adds increments that must all be counted.
    pub async fn count(&self, board: &Arc<Board>, increments: Vec<Increment>) {
        let sent = increments.len();
        assert_eq!(self.add(board, increments).await, vec![COUNTED; sent]);
    }

    /// Adds increments and returns their outcomes with scores.
    pub async fn score(&self, board: &Arc<Board>, increments: Vec<Increment>) -> Vec<Outcome> {
        self.store.add(board, Batch { increments, return_scores: true }).await.unwrap().outcomes
    }

    /// Retires until nothing below the floor remains.
    pub async fn retire(&self, track: &impl OnTrack) -> Retired {
        retire_through(&self.store, track).await
    }

    /// Returns the whole ranking in small pages, after everything has retired.
    pub async fn ranking(&self, track: &impl OnTrack) -> Vec<(u64, String, i64)> {
        self.retire(track).await;
        let mut lines = Vec::new();
        loop {
            let page = self.store.page(&track.track(), lines.len() as u64, 7).await.unwrap();
            assert_eq!(page.frame.retiring, 0);
            let full = page.items.len() == 7;
            lines.extend(page.items.into_iter().map(plain));
            if !full {
                assert_eq!(lines.len() as u64, page.total);
                return lines;
            }
        }
    }

    /// Returns a subject's value after everything has retired. Checks that all ways to read it return the same.
    pub async fn value(&self, track: &impl OnTrack, who: &str) -> Option<Value> {
        self.retire(track).await;
        let who = subject(who);
        let standing = self.other.standing(&track.track(), &who).await.unwrap();
        let reading = self.store.count(&track.track(), &who, SlotRange::Slots(track.track().slots())).await.unwrap();
        assert_eq!(reading.value(&track.track()), standing.score, "{who}: {reading:?}");
        assert_eq!((reading.aggregates, reading.capped), (standing.slots, standing.capped), "{who}");
        if track.track().is_ranked() {
            let lookup = self.other.lookup(&track.track(), std::slice::from_ref(&who), true).await.unwrap();
            assert_eq!(standing.rank.is_some(), track.track().kind().ranks(standing.score), "{who}");
            assert_eq!(lookup.scores, [standing.score.filter(|_| standing.rank.is_some())], "{who}");
            assert_eq!(lookup.ranks, [standing.rank], "{who}");
        } else {
            assert_eq!((standing.rank, standing.total, standing.better), (None, 0, 0), "{who}");
        }
        standing.score
    }

    /// Returns the value of a subject's newest slots.
    pub async fn newest(&self, track: &impl OnTrack, who: &str, slots: u32) -> Option<Value> {
        self.store.count(&track.track(), &subject(who), SlotRange::Slots(slots)).await.unwrap().value(&track.track())
    }

    /// Returns what a subject has in each slot.
    pub async fn slots(&self, track: &impl OnTrack, who: &str) -> Vec<(String, Aggregate)> {
        let standing = self.store.standing(&track.track(), &subject(who)).await.unwrap();
        standing.slots.into_iter().map(|(slot, aggregate)| (slot.to_string(), aggregate)).collect()
    }

    /// Returns the ranking with its scores as floats, after everything has retired.
    pub async fn means(&self, track: &impl OnTrack) -> Vec<(u64, String, f64)> {
        self.retire(track).await;
        let page = self.store.page(&track.track(), 0, 100).await.unwrap();
        page.items.into_iter().map(|line| (line.rank, line.subject.as_str().to_owned(), line.score.as_f64())).collect()
    }

    /// Returns the number of ranked subjects, after everything has retired.
    pub async fn ranking_size(&self, track: &impl OnTrack) -> u64 {
        self.retire(track).await;
        self.store.page(&track.track(), 0, 1).await.unwrap().total
    }

    /// Returns the values that a subject was seen with, newest first.
    pub async fn values(&self, track: &impl OnTrack, who: &str) -> Vec<(String, String)> {
        let values = self.store.values(&track.track(), &subject(who), 0, 1_000).await.unwrap();
        assert_eq!(values.total, values.items.len() as u64);
        values.items.into_iter().map(|(value, at)| (value.as_str().to_owned(), at.to_string())).collect()
    }

    /// Audits everything through both instances in turn. Returns the number of subjects compared.
    pub async fn audit(&self, track: &impl OnTrack) -> u64 {
        let (checked, differences) = audit_through(&[self.store.clone(), self.other.clone()], track).await;
        assert_eq!(differences, []);
        checked
    }
}

pub const COUNTED: Outcome = Outcome::Counted { score: None };
pub const DUPLICATE: Outcome = Outcome::Duplicate { score: None };

pub fn counted(score: i64) -> Outcome {
    Outcome::Counted { score: exact(score) }
}

pub fn duplicate(score: i64) -> Outcome {
    Outcome::Duplicate { score: exact(score) }
}

pub fn plain(line: Ranked) -> (u64, String, i64) {
    (line.rank, line.subject.as_str().to_owned(), line.score.units())
}

impl Retired {
    pub fn note(&mut self, step: &RetireStep) {
        self.slots += step.slots_retired;
        self.touched += step.subjects_touched;
        self.removed += step.subjects_removed;
    }
}

/// Retires through one instance until nothing below the floor remains, and waits while another instance makes a step.
pub async fn retire_through(store: &Arc<dyn Store>, track: &impl OnTrack) -> Retired {
    let mut retired = Retired::default();
    loop {
        let step = store.retire_step(&track.track()).await.unwrap();
        retired.note(&step);
        if step.done {
            return retired;
        }
        if step.skipped {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }
}

/// Audits everything, each step through the next instance.
pub async fn audit_through(stores: &[Arc<dyn Store>], track: &impl OnTrack) -> (u64, Vec<Difference>) {
    let (mut checked, mut differences, mut cursor) = (0, Vec::new(), AuditCursor::default());
    for store in stores.iter().cycle() {
        let step = store.audit_step(&track.track(), cursor, false).await.unwrap();
        assert_eq!(step.repaired, 0, "nothing is repaired unasked");
        checked += step.checked;
        differences.extend(step.differences);
        match step.next {
            Some(next) => cursor = next,
            None => break,
        }
    }
    (checked, differences)
}
