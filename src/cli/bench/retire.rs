//! Latency of other requests while large slots are retired.
//!
//! Ten boards and one ten times as large hold their subjects in one slot. The simulated clock moves past it, so all
//! of them retire at once; a newer slot stays alive, so that rankings cannot simply be dropped. Meanwhile connections
//! read and write, on a board that retires nothing and on the large one that does.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::ensure;
use serde_json::{Value, json};

use super::load::{Load, Measured, Running};
use super::process::{Redis, Server};
use super::wire::{self, Protocol};
use super::{Setting, ingest, report, subjects};

const SMALL_BOARDS: usize = 10;
/// Other requests come at a pace that leaves the machine room: it is waiting that is measured, not load.
const CONNECTIONS: u16 = 8;
const PAUSE: Duration = Duration::from_millis(2);
/// How long a retirement may take before the benchmark gives up.
const PATIENCE: Duration = Duration::from_secs(600);

/// Measures the same requests before and while the boards retire.
pub async fn run(setting: &Setting) -> anyhow::Result<()> {
    let redis = Redis::of_store(&setting.store).await?;
    let url = redis.as_ref().map(|redis| redis.url.as_str());
    let rolltop = Server::rolltop(url, Some("2026-01-01T00:00:00Z")).await?;
    let small = setting.subjects / SMALL_BOARDS as u32;
    let boards: Vec<(String, u32)> = (0..SMALL_BOARDS)
        .map(|number| (format!("small-{number}"), small))
        .chain([("large".to_owned(), setting.subjects)])
        .collect();
    for (board, subjects) in &boards {
        rolltop.define(board, "COUNT(2h, hit, post)", "1h").await?;
        ingest::seed(&rolltop, board, *subjects).await?;
    }
    rolltop.define("calm", "COUNT(24h, hit, post)", "1h").await?;
    ingest::seed(&rolltop, "calm", small).await?;
    rolltop.set_clock("2026-01-01T01:00:00Z").await?;
    for (board, _) in &boards {
        let path = format!("/v1/boards/{board}/increments");
        rolltop.call::<Value>("POST", &path, json!({"subject": "stays", "amount": 1})).await?;
    }

    let others = others(&rolltop, small);
    let pings = redis.as_ref().map(|redis| Load {
        address: redis.address.clone(),
        protocol: Protocol::Redis { lines: 1 },
        requests: Arc::from([wire::command(&["PING"]).into()]),
        connections: 1,
        pause: PAUSE,
    });
    let (running, pinging) = (others.start(), pings.as_ref().map(Load::start));
    tokio::time::sleep(setting.turn()).await;
    let before = running.stop().await?;
    let pings_before = stop(pinging).await?;

    let (running, pinging) = (others.start(), pings.as_ref().map(Load::start));
    let begun = Instant::now();
    rolltop.set_clock("2026-01-01T02:00:00Z").await?;
    for (board, _) in &boards {
        while retiring(&rolltop, board).await? > 0 {
            ensure!(begun.elapsed() < PATIENCE, "{board} is still retiring after {} s", PATIENCE.as_secs());
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
    let took = begun.elapsed();
    let during = running.stop().await?;
    let pings_during = stop(pinging).await?;

    let total = small * SMALL_BOARDS as u32 + setting.subjects;
    let rows = [
        ("other requests, before", Some(before)),
        ("other requests, meanwhile", Some(during)),
        ("PING, before", pings_before),
        ("PING, meanwhile", pings_during),
    ];
    let title = format!(
        "\n{SMALL_BOARDS} boards of {small} and one of {} subjects retire at once, {}: {:.2} s, {:.0} subjects/s\n",
        setting.subjects,
        setting.store,
        took.as_secs_f64(),
        f64::from(total) / took.as_secs_f64()
    );
    let header =
        format!("  {:<34}{:>10}{:>10}{:>10}{:>10}{:>10}\n", "latency, ms", "requests", "p50", "p99", "p99.9", "worst");
    let rows: String = rows.iter().filter_map(|(name, measured)| Some(row(name, measured.as_ref()?))).collect();
    report::show(title + &header + &rows)
}

/// Reads and writes that have nothing to do with the retiring slots.
fn others(server: &Server, subjects: u32) -> Load {
    let requests: Arc<[_]> = (0..subjects.min(10_000))
        .map(|number| {
            let board = if number % 2 == 0 { "calm" } else { "large" };
            let subject = subjects::name(number);
            match number / 2 % 3 {
                0 => {
                    let body = format!("{{\"subject\":\"{subject}\",\"amount\":1}}");
                    let path = format!("/v1/boards/{board}/increments");
                    wire::request("POST", &path, "application/json", body.as_bytes())
                }
                1 => wire::get(&format!("/v1/boards/{board}/rankings?limit=50")),
                _ => wire::get(&format!("/v1/boards/{board}/subjects/{subject}")),
            }
        })
        .collect();
    Load { address: server.address.clone(), protocol: Protocol::Http, requests, connections: CONNECTIONS, pause: PAUSE }
}

async fn stop(running: Option<Running>) -> anyhow::Result<Option<Measured>> {
    match running {
        Some(running) => running.stop().await.map(Some),
        None => Ok(None),
    }
}

async fn retiring(server: &Server, board: &str) -> anyhow::Result<u64> {
    let path = format!("/v1/boards/{board}/rankings?limit=1");
    let page: Value = server.call("GET", &path, Value::Null).await?;
    page["retiring"].as_u64().ok_or_else(|| anyhow::anyhow!("no 'retiring' in {page}"))
}

fn row(name: &str, measured: &Measured) -> String {
    let [p50, p99, p999, worst] = [0.5, 0.99, 0.999, 1.0].map(|share| measured.millis_at(share));
    format!("  {name:<34}{:>10}{p50:>10.2}{p99:>10.2}{p999:>10.2}{worst:>10.2}\n", measured.micros.len())
}
