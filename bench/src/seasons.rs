//! Writes to boards with a season, against the same writes to a board over all time without one.

use std::cell::Cell;

use anyhow::{Context, ensure};
use chrono::{DateTime, SecondsFormat, TimeDelta};
use serde_json::{Value, json};

use super::Setting;
use super::api::Api;
use super::process::{Redis, Server};
use super::subjects;
use super::variants::{self, Variant};

/// The number of lines in one request with many.
const LINES: usize = 1_000;
/// In the grace, one of so many items is of the period that has ended.
const ONE_LATE_OF: u32 = 10;

/// Measures a board without a season, one in the middle of a period, and one in the grace of the period before.
pub async fn run(setting: &Setting) -> anyhow::Result<()> {
    let mut redis = Redis::of_store(&setting.store).await?;
    let rolltop = Server::rolltop(redis.as_ref().map(|redis| redis.url.as_str()), None).await?;
    let api = rolltop.api();
    let metric = "COUNT(all, hit, post)";
    api.define_with("none", json!({"metric": metric})).await?;
    api.define_with("middle", json!({"metric": metric, "season": {"every": "1y"}})).await?;
    // Closed by hand, so that the grace begins now, and it is longer than the measurement.
    let season = json!({"every": "manual", "grace": "12h"});
    api.define_with("grace", json!({"metric": metric, "season": season})).await?;
    let late_at = closed(&api, "grace").await?;

    let now = |number| format!("{{\"subject\":\"{}\",\"amount\":1}}", subjects::name(number));
    let late = |number| format!("{{\"subject\":\"{}\",\"amount\":1,\"at\":\"{late_at}\"}}", subjects::name(number));
    // By turns and not by subject, so that both periods get all of the subjects.
    let drawn = Cell::new(0_u32);
    let some_late = |number| {
        drawn.set(drawn.get().wrapping_add(1));
        if drawn.get().is_multiple_of(ONE_LATE_OF) { late(number) } else { now(number) }
    };
    // Items that are rejected would look fast.
    ensure_counts(&api, "middle", "", &now(0)).await?;
    ensure_counts(&api, "grace", "?period=1", &late(0)).await?;
    ensure_counts(&api, "grace", "?period=2", &now(0)).await?;
    let boards = [
        Variant { name: "without a season", board: "none".to_owned(), line: &now },
        Variant { name: "in the middle of a period", board: "middle".to_owned(), line: &now },
        Variant { name: "in the grace, 10 % late", board: "grace".to_owned(), line: &some_late },
    ];
    variants::compare(setting, &mut redis, &api, "seasons, count", LINES, &boards).await
}

/// Closes the first period of a board. Returns a time in it.
async fn closed(api: &Api, board: &str) -> anyhow::Result<String> {
    let answer: Value = api.call("POST", &format!("/v1/boards/{board}/close?period=1"), Value::Null).await?;
    let end = answer["closed"]["end"].as_str().with_context(|| format!("no period was closed: {answer}"))?;
    let late = DateTime::parse_from_rfc3339(end)? - TimeDelta::minutes(1);
    Ok(late.to_rfc3339_opts(SecondsFormat::Secs, true))
}

/// Returns an error unless a board counts this item.
async fn ensure_counts(api: &Api, board: &str, query: &str, line: &str) -> anyhow::Result<()> {
    let path = format!("/v1/boards/{board}/increments{query}");
    let answer: Value = api.call("POST", &path, serde_json::from_str(line)?).await?;
    ensure!(answer["accepted"] == 1, "{path} should count {line}: {answer}");
    Ok(())
}
