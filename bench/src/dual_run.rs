//! Writes during a dual run, against the same writes to a board of one edition.

use serde_json::{Value, json};

use super::Setting;
use super::process::{Redis, Server};
use super::subjects;
use super::variants::{self, Variant};

/// The number of lines in one request with many.
const LINES: usize = 1_000;

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
        let line = |number| format!("{{\"subject\":\"{}\",{}}}", subjects::name(number), metric.says);
        let boards = [(one, "a board"), (windows, "a board with 2 windows"), (dual, "a board with a successor")];
        let boards = boards.map(|(board, name)| Variant { name, board, line: &line });
        variants::compare(setting, &mut redis, &api, &format!("dual run, {}", metric.name), LINES, &boards).await?;
    }
    Ok(())
}
