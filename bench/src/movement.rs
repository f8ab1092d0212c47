//! A board with movement against a board without: the first read after a boundary, then pages and increments.

use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use serde_json::{Value, json};

use super::Setting;
use super::process::{Redis, Server};
use super::report::{self, Side, Table};
use super::subjects::{self, Skew};
use super::{ingest, wire};

/// The number of requests prepared for each kind.
const PREPARED: usize = 1 << 14;
/// The boards: names of the sides, and of the boards.
const BOARDS: [(&str, &str); 2] = [("without movement", "plain"), ("with movement", "moving")];

/// Makes requests to a board.
type Requests<'r> = dyn Fn(&str) -> Arc<[Bytes]> + 'r;

/// Measures the first read after boundaries, pages and increments.
pub async fn run(setting: &Setting) -> anyhow::Result<()> {
    let mut redis = Redis::of_store(&setting.store).await?;
    let rolltop = Server::rolltop(redis.as_ref().map(|redis| redis.url.as_str()), Some("2026-01-02T09:30:00Z")).await?;
    let api = rolltop.api();
    for (_, board) in BOARDS {
        let mut definition = json!({"metric": "COUNT(24h, hit, post)", "slot": "1h"});
        if board == "moving" {
            definition["movement"] = json!("1h");
        }
        api.define_with(board, definition).await?;
        ingest::seed(&api, board, setting.subjects).await?;
    }
    for hour in 10..15 {
        api.set_clock(&format!("2026-01-02T{hour}:00:00Z")).await?;
        for (side, board) in BOARDS {
            let mut took = Vec::new();
            // The first read moves the head, and the second one has what it has made.
            for _ in 0..2 {
                let started = Instant::now();
                api.call::<Value>("GET", &format!("/v1/boards/{board}/rankings?limit=1"), json!(null)).await?;
                took.push(format!("{:.2} ms", started.elapsed().as_secs_f64() * 1_000.0));
            }
            println!("{side}, {hour}:00: first read {}, second {}", took[0], took[1]);
        }
    }

    let drawn = subjects::draw(Skew::Uniform, setting.subjects, PREPARED);
    let page = |board: &str, offset: u32| wire::get(&format!("/v1/boards/{board}/rankings?limit=50&offset={offset}"));
    let increment = |board: &str, number: u32| {
        let body = json!({"subject": subjects::name(number)}).to_string();
        wire::request("POST", &format!("/v1/boards/{board}/increments"), "application/json", body.as_bytes())
    };
    let first = |board: &str| -> Arc<[Bytes]> { [page(board, 0)].into() };
    let pages = |board: &str| -> Arc<[Bytes]> { drawn.iter().map(|number| page(board, *number)).collect() };
    let increments = |board: &str| -> Arc<[Bytes]> { drawn.iter().map(|number| increment(board, *number)).collect() };
    let measured: [(&str, &Requests); 3] =
        [("the first page of 50", &first), ("different pages of 50", &pages), ("increments", &increments)];
    for (what, requests) in measured {
        let side = |(name, board)| Side::new(name, 1, setting.load(&api.address, requests(board)));
        let Setting { store, connections, subjects, .. } = setting;
        let title = format!("{what} of {subjects} subjects, {store}, {connections} connections");
        let mut table = Table { title, unit: "requests", sides: BOARDS.map(side).into() };
        table.measure(setting, &mut redis).await?;
        report::show(&table)?;
    }
    Ok(())
}
