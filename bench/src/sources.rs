//! Events of a log in NDJSON: without ids, with ids, and with the positions of a source.
//!
//! A position counts once, so the requests of a round are made for it. They are sent one after the other on one
//! connection, as a log is.

use std::fmt::Write;

use anyhow::ensure;
use serde_json::{Value, json};

use super::Setting;
use super::load::{Load, Pace, Refusals};
use super::process::{Redis, Server};
use super::report;
use super::subjects::{self, Skew};
use super::wire::{self, Protocol};

/// The boards that each event feeds.
const BOARDS: [(&str, &str); 4] = [
    ("posts", "COUNT(24h, hit, post)"),
    ("post-amounts", "SUM(24h, hit, amount, post)"),
    ("users", "COUNT(24h, hit, user)"),
    ("user-amounts", "SUM(24h, hit, amount, user)"),
];
/// The number of events of a round, and of a request.
const EVENTS: usize = 200_000;
const LINES: usize = 100_000;
/// The number of subjects.
const SUBJECTS: u32 = 10_000;

/// How events are kept from counting twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    Not,
    Ids,
    Positions,
}

const WAYS: [(Way, &str); 3] = [(Way::Not, "neither"), (Way::Ids, "ids"), (Way::Positions, "positions")];

/// Measures each way once a round, forward and backward in turn.
pub async fn run(setting: &Setting) -> anyhow::Result<()> {
    let redis = Redis::of_store(&setting.store).await?;
    let rolltop = Server::rolltop(redis.as_ref().map(|redis| redis.url.as_str()), None).await?;
    let api = rolltop.api();
    for (board, metric) in BOARDS {
        api.define(board, metric, "1h").await?;
    }
    let boards: Vec<_> = BOARDS.iter().map(|(board, _)| board).collect();
    api.call::<Value>("PUT", "/v1/sources/log", json!({"boards": boards})).await?;
    let drawn = subjects::draw(Skew::Zipf, setting.subjects.min(SUBJECTS), EVENTS);
    let mut rates = vec![Vec::new(); WAYS.len()];
    for round in 0..setting.rounds as usize {
        let mut order: Vec<_> = (0..WAYS.len()).collect();
        if round % 2 == 1 {
            order.reverse();
        }
        for at in order {
            let requests: Vec<_> = drawn
                .chunks(LINES)
                .enumerate()
                .map(|(request, chunk)| lines(WAYS[at].0, chunk, round * EVENTS + request * LINES))
                .collect();
            let load = Load {
                address: api.address.clone(),
                protocol: Protocol::Http,
                requests: requests.into(),
                connections: 1,
                pace: Pace::SATURATING,
                refusals: Refusals::Fail,
            };
            let measured = load.run_once().await?;
            rates[at].push(EVENTS as f64 / measured.took.as_secs_f64());
        }
    }
    let source: Value = api.call("GET", "/v1/sources/log", Value::Null).await?;
    let last = (setting.rounds as usize * EVENTS - 1).to_string();
    ensure!(source["reached"] == last.as_str(), "the source is not counted up to {last}: {source}");
    let title = format!("\nevents of a log, NDJSON, four boards of each, one connection, {}\n", setting.store);
    let header = format!("  {:<12}{:>14}{:>20}{:>16}\n", "", "events a second", "ratio to neither", "ratio to ids");
    let ratio = |own: &Vec<f64>, base: &Vec<f64>| report::median(own.iter().zip(base).map(|(own, base)| own / base));
    let row = |((_, name), own): (&(Way, &str), &Vec<f64>)| {
        let (to_neither, to_ids) = (ratio(own, &rates[0]), ratio(own, &rates[1]));
        format!("  {name:<12}{:>14.0}{to_neither:>20.2}{to_ids:>16.2}\n", report::median(own.iter().copied()))
    };
    let rows: String = WAYS.iter().zip(&rates).map(row).collect();
    report::show(title + &header + &rows)
}

/// Returns a request with an event for each subject, the first of which has this number.
fn lines(way: Way, chunk: &[u32], first: usize) -> bytes::Bytes {
    let mut body = String::new();
    for (number, subject) in (first..).zip(chunk) {
        let (post, user) = (subjects::name(*subject), subject % 997);
        let fields = format!("{{\"post\":\"{post}\",\"user\":\"user-{user}\",\"amount\":{}}}", number % 100);
        let _ = write!(body, "{{\"type\":\"hit\",\"fields\":{fields}");
        let _ = match way {
            Way::Not => Ok(()),
            Way::Ids => write!(body, ",\"id\":\"e-{number:012}\""),
            Way::Positions => write!(body, ",\"position\":{number}"),
        };
        body.push_str("}\n");
    }
    let after = first.checked_sub(1).map_or_else(|| "start".to_owned(), |before| before.to_string());
    let path = match way {
        Way::Positions => format!("/v1/events?source=log&after={after}"),
        Way::Not | Way::Ids => "/v1/events".to_owned(),
    };
    wire::request("POST", &path, "application/x-ndjson", body.as_bytes())
}
