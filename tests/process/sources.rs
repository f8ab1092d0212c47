//! Tests of sources under kills: a log is sent by several senders that remember nothing, again and again from anywhere,
//! while instances and servers die, and each board counts each event once.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use parking_lot::Mutex;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use serde_json::{Value, json};

use crate::harness::rounds;
use crate::redis_cluster::RedisCluster;
use crate::redis_server::{Engine, RedisServer};
use crate::running::Running;
use crate::waiting::Wait;

/// The number of events of the log: more for a longer test.
static EVENTS: LazyLock<u64> = LazyLock::new(|| rounds(12) as u64 * 5_000);
/// The time of all events: that of the first one that is sent.
static TIME: LazyLock<String> = LazyLock::new(|| chrono::Utc::now().to_rfc3339());
/// The metric of each board, and what it makes of an event: nothing, or a subject with an amount or a value to count.
const BOARDS: [(&str, &str); 4] = [
    ("likes", "COUNT(30d, like, post)"),
    ("amounts", "SUM(30d, like, amount, post)"),
    ("people", "COUNT_DISTINCT(30d, view, post, user)"),
    ("some", "COUNT(30d, view, user WHERE amount >= 50)"),
];
/// A board that is defined while the log is sent.
const LATE: (&str, &str) = ("late", "COUNT(30d, like, post)");

/// Returns the position of an event: they have gaps.
fn position(event: u64) -> u64 {
    event * 3 + event % 2
}

/// Returns the first event after a position, or after the start.
fn first_after(reached: Option<u64>) -> u64 {
    let after = |reached| (0..*EVENTS).find(|event| position(*event) > reached).unwrap_or(*EVENTS);
    reached.map_or(0, after)
}

struct Event {
    is_like: bool,
    post: u64,
    user: u64,
    amount: u64,
}

fn event(number: u64) -> Event {
    // A few posts have most of the events.
    let post = (number.wrapping_mul(2_654_435_761) % 9_973) % (1 + number % 211);
    Event { is_like: !number.is_multiple_of(3), post, user: number % 37, amount: number % 97 }
}

fn line(number: u64) -> String {
    let Event { is_like, post, user, amount } = event(number);
    let kind = if is_like { "like" } else { "view" };
    let fields = json!({"post": format!("post-{post}"), "user": format!("user-{user}"), "amount": amount});
    format!("{}\n", json!({"type": kind, "fields": fields, "at": *TIME, "position": position(number)}))
}

/// Returns the scores that a board must have.
fn expected(board: &str) -> BTreeMap<String, u64> {
    let (mut scores, mut people) = (BTreeMap::<String, u64>::new(), BTreeMap::<String, BTreeSet<u64>>::new());
    for Event { is_like, post, user, amount } in (0..*EVENTS).map(event) {
        let (post, user_name) = (format!("post-{post}"), format!("user-{user}"));
        match (board, is_like) {
            ("likes" | "late", true) => *scores.entry(post).or_default() += 1,
            ("amounts", true) => *scores.entry(post).or_default() += amount,
            ("people", false) => drop(people.entry(post).or_default().insert(user)),
            ("some", false) if amount >= 50 => *scores.entry(user_name).or_default() += 1,
            _ => {}
        }
    }
    scores.extend(people.into_iter().map(|(post, users)| (post, users.len() as u64)));
    scores
}

/// Where instances answer at present.
type Bases = Arc<Mutex<Vec<String>>>;

/// A sender of the log, which remembers nothing.
struct Sender {
    bases: Bases,
    client: reqwest::Client,
    random: StdRng,
}

impl Sender {
    fn new(bases: &Bases, seed: u64) -> Self {
        let client = reqwest::Client::builder().no_proxy().timeout(Duration::from_secs(30)).build().expect("a client");
        Self { bases: bases.clone(), client, random: StdRng::seed_from_u64(seed) }
    }

    fn base(&mut self) -> String {
        let bases = self.bases.lock();
        bases[self.random.random_range(0..bases.len())].clone()
    }

    /// Returns what the service says of the source, if it answers.
    async fn state(&mut self) -> Option<Value> {
        let url = format!("{}/v1/sources/log", self.base());
        let answer = self.client.get(url).send().await.ok()?;
        if answer.status().is_success() { answer.json().await.ok() } else { None }
    }

    /// Sends a part of the log that begins with an event, or earlier.
    async fn send(&mut self, next: u64, more: &str) {
        let first = match self.random.random_bool(0.3) {
            true => next.saturating_sub(self.random.random_range(0..4_000)),
            false => next,
        };
        let after = first.checked_sub(1).map_or_else(|| "start".to_owned(), |before| position(before).to_string());
        let last = EVENTS.min(first + self.random.random_range(1..4_000));
        let url = format!("{}/v1/events?source=log&after={after}{more}", self.base());
        let body: String = (first..last).map(line).collect();
        let request = self.client.post(url).header("content-type", "application/x-ndjson").body(body);
        let Ok(answer) = request.send().await else { return };
        let status = answer.status().as_u16();
        let text = answer.text().await.unwrap_or_default();
        assert!(matches!(status, 200 | 409 | 500..), "{status} {text}");
        let source: Value = serde_json::from_str(&text).unwrap_or_default();
        if let Some(reached) = reached(&source["source"]).filter(|_| status == 200 && more.is_empty()) {
            assert!(reached >= position(last - 1), "{first}..{last} {text}");
        }
    }

    /// Sends the log until all of it is counted, from where the service says that it is, or from an earlier place.
    async fn send_all(mut self, done: Arc<AtomicBool>) {
        while !done.load(Ordering::SeqCst) {
            let Some(state) = self.state().await else {
                tokio::time::sleep(Duration::from_millis(10)).await;
                continue;
            };
            match first_after(reached(&state)) {
                next if next == *EVENTS => done.store(true, Ordering::SeqCst),
                next => self.send(next, "").await,
            }
        }
    }

    /// Fills the board that joins late with what was before, as soon as it has joined.
    async fn fill(mut self) {
        loop {
            let state = self.state().await.unwrap_or_default();
            let late = state["joined"].as_array().into_iter().flatten().find(|one| one["board"] == LATE.0);
            let fill = late.map(|late| &late["fill"]);
            if fill.is_some_and(|fill| !fill["reached"].is_null() && fill["reached"] == fill["until"]) {
                return;
            }
            match fill {
                None => tokio::time::sleep(Duration::from_millis(10)).await,
                // It has to begin with the start.
                Some(Value::Null) => self.send(0, &format!("&fill={}", LATE.0)).await,
                Some(fill) => self.send(first_after(reached(fill)), &format!("&fill={}", LATE.0)).await,
            }
        }
    }
}

fn reached(state: &Value) -> Option<u64> {
    state["reached"].as_str().and_then(|text| text.parse().ok())
}

async fn define(service: &Running, (board, metric): (&str, &str), shards: Option<u32>) {
    let mut definition = json!({"metric": metric, "slot": "1d"});
    if let Some(shards) = shards.filter(|_| board == "likes") {
        definition["shards"] = json!(shards);
    }
    service.ok("PUT", &format!("/v1/boards/{board}"), Some(definition)).await;
}

/// Changes the shards of a board while the log goes on.
async fn change_shards(service: &Running, shards: u32) {
    let wait = Wait::begin("a change of shards");
    loop {
        let path = "/v1/boards/likes/shards";
        let answer = service.call("PUT", path, Some(json!({"shards": shards}))).await;
        let state = service.call("GET", path, None).await;
        if state.1["shards"] == shards {
            break;
        }
        wait.rest(format!("{answer:?} {state:?}")).await;
    }
}

async fn scores(service: &Running, board: &str) -> BTreeMap<String, u64> {
    let page = service.ok("GET", &format!("/v1/boards/{board}/rankings?limit=1000"), None).await;
    let items = page["items"].as_array().expect("items").iter();
    items.map(|item| (item["subject"].as_str().unwrap().to_owned(), item["score"].as_u64().unwrap())).collect()
}

/// Lets two senders send the log to instances with these arguments, one of which is killed again and again. `disturb` does
/// what else is to happen in a round.
async fn counts_each_event_once(args: &[&str], instances: usize, shards: Option<u32>, mut disturb: impl FnMut(usize)) {
    let folders: Vec<_> = (0..instances).map(|_| tempfile::tempdir().unwrap()).collect();
    let start = |folder: &Path| Running::start(folder, args);
    let mut services: Vec<_> = folders.iter().map(|folder| start(folder.path())).collect();
    for board in BOARDS {
        define(&services[0], board, shards).await;
    }
    let names: Vec<_> = BOARDS.iter().chain([&LATE]).map(|(name, _)| name).collect();
    services[0].ok("PUT", "/v1/sources/log", Some(json!({"boards": names}))).await;
    let bases: Bases = Arc::new(Mutex::new(services.iter().map(|service| service.base.clone()).collect()));
    let done = Arc::new(AtomicBool::new(false));
    let seed = crate::drawn::seed();
    let mut senders: Vec<_> =
        (0..2).map(|n| tokio::spawn(Sender::new(&bases, seed + n).send_all(done.clone()))).collect();
    senders.push(tokio::spawn(Sender::new(&bases, seed + 2).fill()));
    let mut random = StdRng::seed_from_u64(seed);
    let mut kills = 0;
    for round in 0..rounds(12) {
        tokio::time::sleep(Duration::from_millis(random.random_range(20..200))).await;
        if done.load(Ordering::SeqCst) {
            break;
        }
        kills += 1;
        if shards.is_some() && round == 4 {
            change_shards(&services[0], 9).await;
        }
        if round == 2 {
            // In the middle of the log, so that there is something to fill it with. Its shards are one.
            let wait = Wait::begin("the first events");
            loop {
                let state = services[0].call("GET", "/v1/sources/log", None).await;
                if reached(&state.1).is_some() {
                    break;
                }
                wait.rest(state).await;
            }
            let (status, answer) = services[0]
                .call("PUT", &format!("/v1/boards/{}", LATE.0), Some(json!({"metric": LATE.1, "slot": "1d"})))
                .await;
            assert!(matches!(status, 200 | 201 | 500..), "{answer}");
        }
        tokio::task::block_in_place(|| disturb(round));
        let at = random.random_range(0..instances);
        services[at].kill();
        services[at] = tokio::task::block_in_place(|| start(folders[at].path()));
        bases.lock()[at] = services[at].base.clone();
    }
    define(&services[0], LATE, None).await;
    for sender in senders {
        let ended = tokio::time::timeout(Duration::from_secs(60 + 5 * rounds(12) as u64), sender).await;
        ended.unwrap_or_else(|_| panic!("the log does not go on (seed {seed})")).expect("a sender");
    }
    let service = &services[0];
    let state = service.ok("GET", "/v1/sources/log", None).await;
    for (board, _) in BOARDS.iter().chain([&LATE]) {
        assert_eq!(scores(service, board).await, expected(board), "{board} (seed {seed}): {state}");
        let audit = service.ok("POST", &format!("/v1/boards/{board}/audit"), None).await;
        assert_eq!(audit["differences"], 0, "{audit}");
    }
    let late = state["joined"].as_array().unwrap().iter().find(|one| one["board"] == LATE.0).expect("it has joined");
    assert!(kills > 2 && late["from"] != "start", "{kills} kills, {state}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_log_counts_once_whenever_an_instance_is_killed() {
    for durability in ["everysec", "always"] {
        counts_each_event_once(&["--durability", durability], 1, None, |_| ()).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_log_counts_once_whenever_instances_and_redis_are_killed() {
    for engine in Engine::available() {
        let aof = ["--save", "", "--appendonly", "yes", "--appendfsync", "everysec"];
        let mut server = RedisServer::start_with(&engine, &aof);
        let url = server.url();
        counts_each_event_once(&["--store", &url], 2, None, |round| {
            if round % 2 == 1 {
                server.restart();
            }
        })
        .await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_log_counts_once_on_a_cluster_with_failovers() {
    for engine in Engine::available() {
        let cluster = RedisCluster::start(&engine, 3, 3);
        let url = cluster.url();
        counts_each_event_once(&["--store", &url], 2, Some(5), |round| {
            if round == 1 {
                cluster.fail_over(3);
            }
        })
        .await;
    }
}
