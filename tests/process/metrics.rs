//! A log of payments, sent once as events to boards of every metric, ranked and unranked. At several moments every
//! board returns the same results as a direct computation over the log, although the service was killed in between and
//! events were sent again.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::path::Path;

use rand::{Rng, SeedableRng};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::redis_server::{Engine, RedisServer};
use crate::running::Running;

const HOUR: i64 = 3_600;
/// 2026-01-01T00:00:00Z in seconds.
const START: i64 = 1_767_225_600;
const HOURS: i64 = 30;
/// The moments at which everything is compared, in hours.
const MOMENTS: [i64; 5] = [1, 5, 6, 17, 30];

/// The hours in which the service is killed while it receives events.
const CRASHES: [i64; 3] = [3, 6, 16];

#[derive(Clone)]
struct Payment {
    second: i64,
    user: String,
    card: String,
    cents: i64,
    from_app: bool,
    /// Whether the event is taken back: it is repeated as a retraction.
    undone: bool,
}

/// Returns payments over thirty hours, in an order in which some arrive up to an hour late.
fn payments(seed: u64) -> Vec<(i64, Payment)> {
    let mut random = rand::rngs::StdRng::seed_from_u64(seed);
    let mut payments: Vec<(i64, Payment)> = (0..4_000)
        .map(|_| {
            let second = START + random.random_range(0..HOURS * HOUR);
            let late = if random.random_bool(0.2) { random.random_range(0..HOUR) } else { 0 };
            let popularity = random.random_range(0.0f64..1.0).powi(3);
            let payment = Payment {
                second,
                user: format!("user {}", (popularity * 60.0) as u32),
                card: format!("card {}", random.random_range(0..25)),
                cents: random.random_range(-5_000..20_000),
                from_app: random.random_bool(0.5),
                undone: false,
            };
            ((second + late).min(START + HOURS * HOUR - 1), payment)
        })
        .collect();
    for nth in 0..payments.len() {
        if random.random_bool(0.1) {
            let (arrival, payment) = payments[nth].clone();
            let later = (arrival + random.random_range(1..HOUR)).min(START + HOURS * HOUR - 1);
            payments.push((later, Payment { undone: true, ..payment }));
        }
    }
    payments.sort_by_key(|(arrival, payment)| (*arrival, payment.undone));
    payments
}

fn time(second: i64) -> String {
    chrono::DateTime::from_timestamp(second, 0).unwrap().format("%Y-%m-%dT%H:%M:%SZ").to_string()
}

/// Returns the event as a client sends it. Amounts are decimal numbers, and also given in cents. Not every metric
/// supports retractions, so retracted events go to boards of another type.
fn event(nth: usize, payment: &Payment, kind: &str) -> Value {
    let amount: Value = serde_json::from_str(&format!(
        "{}{}.{:02}",
        if payment.cents < 0 { "-" } else { "" },
        payment.cents.abs() / 100,
        payment.cents.abs() % 100
    ))
    .unwrap();
    let channel = if payment.from_app { "app" } else { "web" };
    json!({
        "type": kind,
        "id": format!("event {nth}"),
        "at": time(payment.second),
        "retract": payment.undone,
        "fields": {"user": payment.user, "card": payment.card, "amount": amount, "cents": payment.cents, "channel": channel},
    })
}

/// A direct computation of a metric over one subject's payments. Each board has a name, a metric, decimals and this.
type ByHand = fn(&[&Payment]) -> Option<f64>;

const BOARDS: [(&str, &str, u8, ByHand); 8] = [
    ("sum", "SUM(6h, payment, amount, user)", 2, |all| {
        Some(all.iter().map(|payment| payment.cents).sum::<i64>() as f64 / 100.0)
    }),
    ("count", "COUNT(6h, payment, user)", 0, |all| Some(all.len() as f64)),
    ("app", "COUNT(6h, payment, user WHERE channel = 'app' AND amount >= 20)", 0, |all| {
        Some(all.iter().filter(|payment| payment.from_app && payment.cents >= 2_000).count() as f64)
    }),
    ("mean", "AVG(6h, payment, cents, user)", 0, |all| {
        (!all.is_empty()).then(|| all.iter().map(|payment| payment.cents).sum::<i64>() as f64 / all.len() as f64)
    }),
    ("least", "MIN(6h, payment, cents, user)", 0, |all| {
        all.iter().map(|payment| payment.cents as f64).reduce(f64::min)
    }),
    ("most", "MAX(6h, payment, cents, user)", 0, |all| all.iter().map(|payment| payment.cents as f64).reduce(f64::max)),
    ("cards", "COUNT_DISTINCT(6h, payment, user, card)", 0, |all| Some(cards(all).len() as f64)),
    ("mean-app", "AVG(6h, payment, cents, user WHERE channel IN ('app', 'phone'))", 0, |all| {
        let app: Vec<i64> = all.iter().filter(|payment| payment.from_app).map(|payment| payment.cents).collect();
        (!app.is_empty()).then(|| app.iter().sum::<i64>() as f64 / app.len() as f64)
    }),
];

fn cards(all: &[&Payment]) -> BTreeSet<String> {
    all.iter().map(|payment| payment.card.clone()).collect()
}

/// The boards that support retractions, with the direct computation of what remains.
const LIKES: [(&str, &str, ByHand); 3] = [
    ("likes", "COUNT(6h, praise, user)", |all| Some((all.len() - 2 * undone(all)) as f64)),
    ("liked", "SUM(6h, praise, cents, user)", |all| {
        let sign = |payment: &Payment| if payment.undone { -payment.cents } else { payment.cents };
        Some(all.iter().map(|payment| sign(payment)).sum::<i64>() as f64)
    }),
    ("likers", "COUNT_DISTINCT(6h, praise, user, card)", |all| {
        // The newest event of each card decides. Of two at the same time, the retraction does.
        let mut newest: BTreeMap<&str, (i64, bool)> = BTreeMap::new();
        for payment in all {
            let known = newest.entry(&payment.card).or_insert((payment.second, payment.undone));
            *known = (*known).max((payment.second, payment.undone));
        }
        Some(newest.values().filter(|(_, undone)| !undone).count() as f64)
    }),
];

fn undone(all: &[&Payment]) -> usize {
    all.iter().filter(|payment| payment.undone).count()
}

/// Returns the payments that have arrived, by user, in this many of the newest slots of an hour.
fn by_user(arrived: &[&Payment], now: i64, slots: i64) -> BTreeMap<String, Vec<Payment>> {
    let floor = (now / HOUR - slots + 1) * HOUR;
    let mut users: BTreeMap<String, Vec<Payment>> = BTreeMap::new();
    for payment in arrived {
        let all = users.entry(payment.user.clone()).or_default();
        if payment.second >= floor {
            all.push((*payment).clone());
        }
    }
    users
}

/// Sends events as a stream. Returns the response, if there was one.
async fn post(client: reqwest::Client, base: String, events: Vec<Value>) -> Option<Value> {
    let mut lines = String::new();
    for event in events {
        writeln!(lines, "{event}").unwrap();
    }
    let request = client.post(format!("{base}/v1/events")).header("content-type", "application/x-ndjson").body(lines);
    request.send().await.ok()?.json().await.ok()
}

/// Sends events. None of them may be refused. Returns the number of duplicates.
async fn send(service: &Running, events: &[Value]) -> usize {
    let mut known = 0;
    for chunk in events.chunks(500) {
        let answer = post(service.client.clone(), service.base.clone(), chunk.to_vec()).await.unwrap();
        let duplicates = answer["duplicates"].as_u64().unwrap() as usize;
        assert_eq!(
            (&answer["accepted"], &answer["rejected"]),
            (&json!(chunk.len() - duplicates), &json!([])),
            "{answer}"
        );
        known += duplicates;
    }
    known
}

/// Kills the service, as `kill -9` does, when it has acknowledged half of the events and is receiving the others. Then
/// starts it again and sends all events once more.
async fn send_through_a_crash(service: &mut Running, start: impl Fn() -> Running, events: &[Value]) {
    let (half, rest) = events.split_at(events.len() / 2);
    assert_eq!(send(service, half).await, 0);
    let under_way = tokio::spawn(post(service.client.clone(), service.base.clone(), rest.to_vec()));
    tokio::task::yield_now().await;
    service.kill();
    under_way.await.unwrap();
    *service = start();
    let known = send(service, events).await;
    assert!(known >= half.len(), "{} were acknowledged, and {known} were known after the crash", half.len());
}

/// Makes a call and parses its numbers from the text that was sent. A `Value` may read a float one unit off.
async fn exact<T: DeserializeOwned>(service: &Running, path: &str) -> T {
    let answer = service.client.get(format!("{}{path}", service.base)).send().await.unwrap();
    assert_eq!(answer.status(), 200, "{path}");
    serde_json::from_str(&answer.text().await.unwrap()).unwrap()
}

fn number(text: &RawValue) -> f64 {
    text.get().parse().unwrap()
}

#[derive(Deserialize)]
struct Page {
    total: usize,
    retiring: u64,
    items: Vec<Line>,
}

#[derive(Deserialize)]
struct Line {
    subject: String,
    score: Box<RawValue>,
}

#[derive(Debug, Deserialize)]
struct Window {
    value: Option<Box<RawValue>>,
}

/// Checks that the board's whole ranking equals the direct computation.
async fn ranks_like(service: &Running, board: &str, right: &BTreeMap<String, f64>, context: &str) {
    service.ok("POST", &format!("/v1/boards/{board}/rollover"), None).await;
    let page: Page = exact(service, &format!("/v1/boards/{board}/rankings?limit=1000")).await;
    let mut expected: Vec<(f64, &str)> = right.iter().map(|(user, score)| (*score, user.as_str())).collect();
    expected.sort_by(|a, b| b.partial_cmp(a).unwrap());
    let found: Vec<(f64, &str)> = page.items.iter().map(|line| (number(&line.score), line.subject.as_str())).collect();
    assert_eq!(found, expected, "{board}, {context}");
    assert_eq!((page.total, page.retiring), (expected.len(), 0), "{board}, {context}");
    let audit = service.ok("POST", &format!("/v1/boards/{board}/audit"), None).await;
    assert_eq!(audit["differences"], 0, "{board}, {context}: {audit}");
}

/// Checks both the whole window and a shorter one of the unranked board.
async fn reads_like(service: &Running, board: &str, user: &str, last: &str, right: Option<f64>, context: &str) {
    let user = user.replace(' ', "%20");
    let path = format!("/v1/boards/{board}-unranked/subjects/{user}/window?last={last}");
    let answer: Window = exact(service, &path).await;
    assert_eq!(answer.value.as_deref().map(number), right, "{board}, {context}: {answer:?}");
}

async fn define(service: &Running, name: &str, metric: &str, decimals: u8) {
    for (name, ranked) in [(name.to_owned(), true), (format!("{name}-unranked"), false)] {
        let definition = json!({"metric": metric, "slot": "1h", "decimals": decimals, "ranked": ranked});
        service.ok("PUT", &format!("/v1/boards/{name}"), Some(definition)).await;
    }
}

async fn agrees_with_a_pass_by_hand(folder: &Path, store: &str) {
    let seed = 20_260_102;
    let payments = payments(seed);
    let start = || Running::start(folder, &["--store", store, "--clock", "simulated=2026-01-01T00:00:00Z"]);
    let mut service = start();
    for (name, metric, decimals, _) in BOARDS {
        define(&service, name, metric, decimals).await;
    }
    for (name, metric, _) in LIKES {
        define(&service, name, metric, 0).await;
    }
    let mut sent = 0;
    for hour in 1..=HOURS {
        let now = START + hour * HOUR - 1;
        service.ok("PUT", "/v1/clock", Some(json!({"now": time(now)}))).await;
        let arrived = payments.partition_point(|(arrival, _)| *arrival <= now);
        let new = || payments[sent..arrived].iter().enumerate().map(|(nth, (_, payment))| (sent + nth, payment));
        let mut events: Vec<Value> =
            new().filter(|(_, payment)| !payment.undone).map(|(nth, payment)| event(nth, payment, "payment")).collect();
        events.extend(new().map(|(nth, payment)| event(nth, payment, "praise")));
        if CRASHES.contains(&hour) {
            send_through_a_crash(&mut service, start, &events).await;
        } else {
            assert_eq!(send(&service, &events).await, 0);
        }
        sent = arrived;
        if !MOMENTS.contains(&hour) {
            continue;
        }
        let context = format!("seed {seed}, hour {hour}");
        let likes: Vec<&Payment> = payments[..sent].iter().map(|(_, payment)| payment).collect();
        let pays: Vec<&Payment> = likes.iter().filter(|payment| !payment.undone).copied().collect();
        let boards = BOARDS.iter().map(|(name, _, _, by_hand)| (*name, by_hand, &pays));
        let boards = boards.chain(LIKES.iter().map(|(name, _, by_hand)| (*name, by_hand, &likes)));
        for (name, by_hand, log) in boards {
            let of = |slots| {
                let users = by_user(log, now, slots).into_iter();
                let value = |all: Vec<Payment>| by_hand(&all.iter().collect::<Vec<_>>());
                users.map(|(user, all)| (user, value(all))).collect::<BTreeMap<String, Option<f64>>>()
            };
            let (whole, shorter) = (of(6), of(2));
            // Additive metrics do not rank subjects at 0. Means and extremes do.
            let ranks_zero = matches!(name, "mean" | "least" | "most" | "mean-app");
            let ranked = whole.iter().filter_map(|(user, score)| Some((user.clone(), (*score)?)));
            let ranked = ranked.filter(|(_, score)| ranks_zero || *score != 0.0).collect();
            ranks_like(&service, name, &ranked, &context).await;
            for (user, score) in whole.iter().step_by(7) {
                reads_like(&service, name, user, "6h", *score, &context).await;
                reads_like(&service, name, user, "2h", shorter[user], &context).await;
            }
        }
        for (user, all) in by_user(&pays, now, 6).iter().step_by(5) {
            let path = format!("/v1/boards/cards/subjects/{}/values?limit=100", user.replace(' ', "%20"));
            let page = service.ok("GET", &path, None).await;
            let found: BTreeSet<String> = page["items"]
                .as_array()
                .unwrap()
                .iter()
                .map(|item| item["value"].as_str().unwrap().to_owned())
                .collect();
            assert_eq!(found, cards(&all.iter().collect::<Vec<_>>()), "{user}, {context}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn every_metric_on_the_embedded_store() {
    let folder = tempfile::tempdir().unwrap();
    agrees_with_a_pass_by_hand(folder.path(), "embedded").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn every_metric_on_redis() {
    for engine in Engine::available() {
        let (server, folder) = (RedisServer::start(&engine), tempfile::tempdir().unwrap());
        agrees_with_a_pass_by_hand(folder.path(), &server.url()).await;
    }
}
