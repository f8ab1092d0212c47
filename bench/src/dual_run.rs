//! Writes during a dual run, against the same writes to a board of one edition.

use std::sync::Arc;

use bytes::Bytes;
use serde_json::{Value, json};

use super::process::{Redis, Server};
use super::report::{self, Side, Table};
use super::subjects::{self, Skew};
use super::{Setting, wire};

/// The number of lines in one request with many.
const LINES: usize = 1_000;
/// The number of connections that send many lines in each request.
const FEW: u16 = 4;
/// The number of subjects that are drawn in advance.
const PREPARED: usize = 1 << 17;

/// A metric that is measured: its name, its text, and what an increment has besides its subject.
struct Metric {
    name: &'static str,
    text: &'static str,
    says: &'static str,
}

const METRICS: [Metric; 2] = [
    Metric { name: "count", text: "COUNT(24h, hit, post)", says: "\"amount\":1" },
    Metric { name: "max", text: "MAX(24h, hit, points, post)", says: "\"value\":1" },
];

/// Measures a board, one with a second window, and one with a successor that has this window.
pub async fn run(setting: &Setting) -> anyhow::Result<()> {
    let mut redis = Redis::of_store(&setting.store).await?;
    let rolltop = Server::rolltop(redis.as_ref().map(|redis| redis.url.as_str()), None).await?;
    let api = rolltop.api();
    for metric in &METRICS {
        let definition = json!({"metric": metric.text, "slot": "1h"});
        let [one, windows, dual] = ["one", "windows", "dual"].map(|ending| format!("{}-{ending}", metric.name));
        api.define_with(&one, definition.clone()).await?;
        let mut further = definition.clone();
        further["windows"] = json!(["12h/30m"]);
        api.define_with(&windows, further).await?;
        api.define_with(&dual, definition).await?;
        let next = json!({"metric": metric.text.replace("24h", "12h"), "slot": "30m"});
        api.call::<Value>("PUT", &format!("/v1/boards/{dual}/next"), next).await?;
        for (lines, connections) in [(1, setting.connections), (LINES, FEW)] {
            let setting = &Setting { connections, ..setting.clone() };
            let sides = [(&one, "a board"), (&windows, "a board with 2 windows"), (&dual, "a board with a successor")];
            let mut table = Table { title: title(setting, metric, lines), unit: "increments", sides: Vec::new() };
            for (board, name) in sides {
                let requests = requests(setting, metric, lines, board);
                let load = setting.load(&api.address, requests);
                table.sides.push(Side::new(name, lines, load));
            }
            table.measure(setting, &mut redis).await?;
            report::show(&table)?;
        }
    }
    Ok(())
}

fn title(setting: &Setting, metric: &Metric, lines: usize) -> String {
    let many = if lines == 1 { "single increments".to_owned() } else { format!("{lines} increments a request") };
    format!("dual run, {}, {}: {many}, {} connections", setting.store, metric.name, setting.connections)
}

fn requests(setting: &Setting, metric: &Metric, lines: usize, board: &str) -> Arc<[Bytes]> {
    let path = format!("/v1/boards/{board}/increments");
    let kind = if lines == 1 { "application/json" } else { "application/x-ndjson" };
    let drawn = subjects::draw(Skew::Uniform, setting.subjects, PREPARED);
    let line = |number: &u32| format!("{{\"subject\":\"{}\",{}}}\n", subjects::name(*number), metric.says);
    let request = |chunk: &[u32]| {
        let body: String = chunk.iter().map(line).collect();
        wire::request("POST", &path, kind, body.as_bytes())
    };
    drawn.chunks(lines).map(request).collect()
}
