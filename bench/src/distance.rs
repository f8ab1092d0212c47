//! The rate at which a slot retires if Redis is far away.
//!
//! Two instances of rolltop share a Redis, each with its own keys. One connects directly, the other through a proxy
//! that delays everything. Retiring consists of many small steps, each a round trip, with pauses as long as the work of
//! the steps. If network time were counted as work, the pauses would grow with the distance.

use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use chrono::{DateTime, TimeDelta, Utc};
use serde_json::{Value, json};

use super::api::Api;
use super::process::{Redis, Server};
use super::proxy::Proxy;
use super::{Setting, ingest, report};

/// The largest number of subjects that retire in one turn.
const SUBJECTS: u32 = 100_000;
/// The longest time of a turn before the benchmark fails.
const PATIENCE: Duration = Duration::from_secs(600);
const DELAY: u64 = 4;

/// The options of the measurement.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct DistanceSetting {
    #[command(flatten)]
    setting: Setting,

    /// Milliseconds by which the proxy lengthens a round trip, half of it each way.
    #[arg(long, value_name = "MILLISECONDS", default_value_t = DELAY, value_parser = clap::value_parser!(u64).range(1..=1_000))]
    delay: u64,
}

impl DistanceSetting {
    /// Creates the options with the usual delay.
    pub fn of(setting: Setting) -> Self {
        Self { setting, delay: DELAY }
    }
}

/// Measures both instances in turns. Each turn retires a slot.
pub async fn run(DistanceSetting { setting, delay }: &DistanceSetting) -> anyhow::Result<()> {
    let redis = Redis::of_store(&setting.store).await?;
    let redis = redis.context("distance needs a Redis: --store redis or --store redis://HOST:PORT")?;
    let proxy = Proxy::start(&redis.address, Duration::from_millis(*delay) / 2)?;
    let begin: DateTime<Utc> = "2026-01-01T00:00:00Z".parse()?;
    let [near_url, far_url] = [redis.url.clone(), redis.url_at(&proxy.address())?];
    let near = Server::rolltop_apart(&near_url, "near", &begin.to_rfc3339()).await?;
    let far = Server::rolltop_apart(&far_url, "far", &begin.to_rfc3339()).await?;
    let subjects = setting.subjects.min(SUBJECTS);

    let (mut without, mut with) = (Vec::new(), Vec::new());
    let mut now = begin;
    for round in 0..setting.rounds {
        let mut sides = [(near.api(), &mut without), (far.api(), &mut with)];
        if round % 2 == 1 {
            sides.reverse();
        }
        for (api, rates) in sides {
            rates.push(rate(&api, now, subjects).await?);
        }
        now += TimeDelta::hours(2);
    }

    let ratio = report::median(with.iter().zip(&without).map(|(with, without)| with / without));
    let title = format!("\na slot of {subjects} subjects retires, {}\n", setting.store);
    let heading = format!("  {:<34}{:>14}{:>8}\n", "", "subjects/s", "ratio");
    let row = |name: &str, rates: Vec<f64>, ratio: f64| {
        format!("  {name:<34}{:>14.0}{ratio:>8.2}\n", report::median(rates.into_iter()))
    };
    let far_row = format!("with {delay} ms more of round trip");
    report::show(title + &heading + &row("without delay", without, 1.0) + &row(&far_row, with, ratio))
}

/// Fills a new board at this time, and measures how many of its subjects retire a second two hours later.
async fn rate(api: &Api, now: DateTime<Utc>, subjects: u32) -> anyhow::Result<f64> {
    const BOARD: &str = "distance";
    api.set_clock(&now.to_rfc3339()).await?;
    api.define(BOARD, "COUNT(2h, hit, post)", "1h").await?;
    ingest::seed(api, BOARD, subjects).await?;
    api.set_clock(&(now + TimeDelta::hours(1)).to_rfc3339()).await?;
    // Because of this subject the ranking cannot simply be deleted when the slot of the others expires.
    api.count(BOARD, "stays").await?;
    api.ensure_total(BOARD, subjects + 1).await?;
    api.set_clock(&(now + TimeDelta::hours(2)).to_rfc3339()).await?;
    let begun = Instant::now();
    api.call::<Value>("POST", &format!("/v1/boards/{BOARD}/rollover"), json!({})).await?;
    while api.retiring(BOARD).await? > 0 {
        ensure!(begun.elapsed() < PATIENCE, "the slot is still retiring after {} s", PATIENCE.as_secs());
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let took = begun.elapsed();
    api.ensure_total(BOARD, 1).await?;
    api.remove(BOARD).await?;
    Ok(f64::from(subjects) / took.as_secs_f64())
}
