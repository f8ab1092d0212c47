//! The time that a slot takes to retire, by metric.
//!
//! The board has all its subjects in one slot and half of them also in a newer one, so that its ranking cannot simply
//! be deleted. The simulated clock moves past the slot, and the board is rolled over by a call.

use std::time::Instant;

use anyhow::ensure;
use serde_json::{Value, json};

use super::process::{Redis, Server};
use super::{Setting, ingest, report};

/// The metrics, all compared with the first one, and the fields of an increment of each besides its subject.
const METRICS: [(&str, &str, &str); 7] = [
    ("count", "COUNT(24h, hit, post)", "\"amount\":1"),
    ("max", "MAX(24h, hit, amount, post)", "\"value\":7"),
    ("min", "MIN(24h, hit, amount, post)", "\"value\":7"),
    ("avg", "AVG(24h, hit, amount, post)", "\"value\":7"),
    ("last", "LAST(24h, hit, amount, post)", "\"value\":7"),
    ("distinct", "COUNT_DISTINCT(24h, hit, post, user)", "\"value\":\"u-1\""),
    ("approx", "APPROX_COUNT_DISTINCT(24h, hit, post, user)", "\"value\":\"u-1\""),
];
/// The number of subjects of each board.
const SUBJECTS: u32 = 200_000;

/// Measures the slot of each metric once a round, in turns.
pub async fn run(setting: &Setting) -> anyhow::Result<()> {
    ensure!(!setting.store.contains("://"), "each round needs an empty store: it cannot be a URL");
    let subjects = setting.subjects.min(SUBJECTS);
    let mut took = vec![Vec::new(); METRICS.len()];
    for _ in 0..setting.rounds {
        for ((board, metric, says), took) in METRICS.iter().zip(&mut took) {
            took.push(retire(setting, board, metric, says, subjects).await?);
        }
    }
    let title = format!("\na slot of {subjects} subjects retires, half of which stay, {}\n", setting.store);
    let header = format!("  {:<14}{:>10}{:>16}{:>18}\n", "", "seconds", "µs a subject", "ratio to count");
    let base = &took[0];
    let row = |((board, ..), took): (&(&str, &str, &str), &Vec<f64>)| {
        let seconds = report::median(took.iter().copied());
        // Turns of the same round are compared with each other.
        let ratio = report::median(took.iter().zip(base).map(|(seconds, base)| seconds / base));
        format!("  {board:<14}{seconds:>10.3}{:>16.2}{ratio:>18.2}\n", seconds * 1e6 / f64::from(subjects))
    };
    let rows: String = METRICS.iter().zip(&took).map(row).collect();
    report::show(title + &header + &rows)
}

/// Returns the time that the slot of one board takes, in seconds. The board has its own server, because the scheduler
/// would also retire any other slot that is due.
async fn retire(setting: &Setting, board: &str, metric: &str, says: &str, subjects: u32) -> anyhow::Result<f64> {
    let redis = Redis::of_store(&setting.store).await?;
    let url = redis.as_ref().map(|redis| redis.url.as_str());
    let rolltop = Server::rolltop(url, Some("2026-01-01T00:00:00Z")).await?;
    let api = rolltop.api();
    api.define(board, metric, "1h").await?;
    ingest::seed_with(&api, board, subjects, says).await?;
    api.ensure_total(board, subjects).await?;
    api.set_clock("2026-01-01T12:00:00Z").await?;
    ingest::seed_with(&api, board, subjects / 2, says).await?;
    api.set_clock("2026-01-02T00:00:00Z").await?;
    let begun = Instant::now();
    let done: Value = api.call("POST", &format!("/v1/boards/{board}/rollover"), json!({})).await?;
    ensure!(done["floor"].is_string(), "the rollover of {board} answered {done}");
    Ok(begun.elapsed().as_secs_f64())
}
