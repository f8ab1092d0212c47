//! The latency of other requests while all kinds of large work happen at once.
//!
//! The boards of `retire` retire their slots. At the same time, huge queries ask for many subjects of a board with many
//! slots, and a huge batch with ids is counted on its own board and asks for every new score. Other requests are sent
//! at a fixed rate, so all requests that were due during a stall count with the time they waited.

use std::num::NonZeroU32;
use std::time::Duration;

use bytes::Bytes;
use chrono::{DateTime, SecondsFormat, TimeDelta, Utc};
use serde_json::json;

use super::api::Api;
use super::arrivals::Schedule;
use super::load::{Load, Measured, Pace, Refusals};
use super::process::{Redis, Server};
use super::retire::{self, BEGIN, Boards};
use super::wire::{self, Protocol};
use super::{Setting, report, subjects};

/// The board that is queried, and the board of the batch.
const ASKED: &str = "asked";
const BATCHED: &str = "batched";
/// The number of slots of the queried board that are filled at a time.
const FILLED: usize = 32;
/// The number of connections that fill it.
const FILLERS: u16 = 4;
/// The time between the move of the clock and the large requests. The scheduler looks for slots to retire once a
/// second.
const TICK: Duration = Duration::from_secs(1);

const RATE: NonZeroU32 = NonZeroU32::new(500).expect("it is not 0");
/// The number of `PING`s a second, sent at a fixed rate too: in a closed loop they would be sent mostly while Redis has
/// little to do.
const PINGS: NonZeroU32 = NonZeroU32::new(100).expect("it is not 0");
const PINGERS: u16 = 16;
const QUERIES: u16 = 4;
const QUESTIONS: u32 = 1_000;
const SLOTS: u32 = 2_000;
const ITEMS: u32 = 100_000;

/// The options of the measurement.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct BusySetting {
    #[command(flatten)]
    setting: Setting,

    #[command(flatten)]
    large: Large,

    /// Other requests a second, whose latency is measured.
    #[arg(long, value_name = "REQUESTS", default_value_t = RATE)]
    rate: NonZeroU32,
}

/// The large requests.
#[derive(Clone, Debug, clap::Args)]
struct Large {
    /// Number of huge queries sent at once; 0 for none.
    #[arg(long, default_value_t = QUERIES, value_parser = clap::value_parser!(u16).range(0..=100))]
    queries: u16,

    /// Questions of a huge query, each about a different subject.
    #[arg(long, default_value_t = QUESTIONS, value_parser = clap::value_parser!(u32).range(1..=1_000))]
    questions: u32,

    /// Slots of the queried board. Each queried subject has data in every slot.
    #[arg(long, default_value_t = SLOTS, value_parser = clap::value_parser!(u32).range(1..=2_000))]
    slots: u32,

    /// Items of the huge batch; 0 for no batch.
    #[arg(long, default_value_t = ITEMS, value_parser = clap::value_parser!(u32).range(0..=100_000))]
    items: u32,
}

impl BusySetting {
    /// Creates the options with the usual sizes.
    pub fn of(setting: Setting) -> Self {
        let large = Large { queries: QUERIES, questions: QUESTIONS, slots: SLOTS, items: ITEMS };
        Self { setting, large, rate: RATE }
    }
}

/// Measures the same requests before and during the large work.
pub async fn run(BusySetting { setting, large, rate }: &BusySetting) -> anyhow::Result<()> {
    let redis = Redis::of_store(&setting.store).await?;
    let rolltop = Server::rolltop(redis.as_ref().map(|redis| redis.url.as_str()), Some(BEGIN)).await?;
    let api = rolltop.api();
    large.fill(&api).await?;
    let boards = Boards::fill(api.clone(), setting.subjects).await?;
    let others = boards.others(setting.connections, Pace::Open(Schedule::new(*rate)));
    let pings = redis.as_ref().map(|redis| retire::pings(redis, PINGERS, Pace::Open(Schedule::new(PINGS))));
    let queries = large.queries(&api);
    if let Some(queries) = &queries {
        queries.check(&format!("\"count\":{}", large.slots)).await?;
    }

    let (running, pinging) = (others.start(), pings.as_ref().map(Load::start));
    tokio::time::sleep(setting.turn()).await;
    let (before, pings_before) = (running.stop().await?, retire::stop(pinging).await?);

    let (running, pinging) = (others.start(), pings.as_ref().map(Load::start));
    let (retired, queries, batch) =
        tokio::try_join!(boards.retire(), after_a_tick(queries), after_a_tick(large.batch(&api)))?;
    let (during, pings_during) = (running.stop().await?, retire::stop(pinging).await?);
    if batch.as_ref().is_some_and(|batch| batch.refused == 0) {
        api.ensure_total(BATCHED, large.items).await?;
    }

    let rows = [
        ("other requests, before", Some(before)),
        ("other requests, meanwhile", Some(during)),
        ("PING, before", pings_before),
        ("PING, meanwhile", pings_during),
        ("the huge queries", queries),
        ("the huge batch", batch),
    ];
    let Large { queries, questions, slots, items } = large;
    let title = format!(
        "\n{} retire at once, {}: {retired}; {queries} queries of {questions} questions over {slots} slots, a batch of \
         {items}; {rate} other requests/s\n",
        boards.shown(),
        setting.store
    );
    report::show(title + &report::latencies(&rows))
}

async fn after_a_tick(load: Option<Load>) -> anyhow::Result<Option<Measured>> {
    let Some(load) = load else { return Ok(None) };
    tokio::time::sleep(TICK).await;
    load.run_once().await.map(Some)
}

impl Large {
    /// Defines the boards of the large requests, at the simulated time [`BEGIN`], and fills the queried board.
    async fn fill(&self, api: &Api) -> anyhow::Result<()> {
        api.define(BATCHED, "COUNT(24h, hit, post)", "1h").await?;
        if self.queries == 0 {
            return Ok(());
        }
        // The slots are days, so that none of them retires when the clock moves by hours.
        api.define(ASKED, &format!("COUNT({}d, hit, post)", self.slots), "1d").await?;
        let begin: DateTime<Utc> = BEGIN.parse()?;
        let days: Vec<_> = (0..self.slots).map(|days| begin - TimeDelta::days(days.into())).collect();
        for days in days.chunks(FILLED) {
            let requests = days.iter().map(|day| self.day(*day)).collect::<Vec<_>>();
            load(api, requests, FILLERS, Refusals::Fail).run_once().await?;
        }
        Ok(())
    }

    /// Returns a request with one increment for each queried subject, in one slot.
    fn day(&self, day: DateTime<Utc>) -> Bytes {
        let at = day.to_rfc3339_opts(SecondsFormat::Secs, true);
        let line = |number| format!("{}\n", json!({"subject": subjects::name(number), "amount": 1, "at": at}));
        let body: String = (0..self.questions).map(line).collect();
        wire::request("POST", &format!("/v1/boards/{ASKED}/increments"), "application/x-ndjson", body.as_bytes())
    }

    /// Returns the load of the huge queries, each over its own connection.
    fn queries(&self, api: &Api) -> Option<Load> {
        let question = |number| json!({"board": ASKED, "subject": subjects::name(number)});
        let body = json!({"queries": (0..self.questions).map(question).collect::<Vec<_>>()}).to_string();
        let query = wire::request("POST", "/v1/query", "application/json", body.as_bytes());
        (self.queries > 0).then(|| load(api, vec![query; self.queries.into()], self.queries, Refusals::Count))
    }

    /// Returns the load of the huge batch.
    fn batch(&self, api: &Api) -> Option<Load> {
        let item = |number| json!({"subject": subjects::name(number), "amount": 1, "id": format!("batch-{number}")});
        let body = json!({"increments": (0..self.items).map(item).collect::<Vec<_>>()}).to_string();
        let path = format!("/v1/boards/{BATCHED}/increments?return=score");
        let batch = wire::request("POST", &path, "application/json", body.as_bytes());
        (self.items > 0).then(|| load(api, vec![batch], 1, Refusals::Count))
    }
}

fn load(api: &Api, requests: Vec<Bytes>, connections: u16, refusals: Refusals) -> Load {
    let (address, requests, pace) = (api.address.clone(), requests.into(), Pace::SATURATING);
    Load { address, protocol: Protocol::Http, requests, connections, pace, refusals }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    fn body(request: &Bytes) -> &str {
        std::str::from_utf8(request).unwrap().split_once("\r\n\r\n").unwrap().1
    }

    #[test]
    fn large_requests_have_the_configured_sizes() {
        let api = Api::at("127.0.0.1:1");
        let large = Large { queries: 3, questions: 20, slots: 5, items: 70 };
        let queries = large.queries(&api).unwrap();
        assert_eq!((queries.requests.len(), queries.connections), (3, 3));
        let query: Value = serde_json::from_str(body(&queries.requests[2])).unwrap();
        assert_eq!(query["queries"].as_array().unwrap().len(), 20);
        let batch: Value = serde_json::from_str(body(&large.batch(&api).unwrap().requests[0])).unwrap();
        assert_eq!(batch["increments"].as_array().unwrap().len(), 70);
        assert_eq!(batch["increments"][69], json!({"subject": "post-69", "amount": 1, "id": "batch-69"}));
        let day = large.day(BEGIN.parse().unwrap());
        assert_eq!(body(&day).lines().count(), 20);
        assert!(body(&day).lines().all(|line| line.contains("2026-01-01T00:00:00Z")));
    }

    #[test]
    fn the_largest_batch_fits_the_body_limit() {
        let large = Large { queries: 0, questions: 1, slots: 1, items: ITEMS };
        let batch = large.batch(&Api::at("127.0.0.1:1")).unwrap();
        assert!(batch.requests[0].len() < 8 << 20);
        assert!(large.queries(&Api::at("127.0.0.1:1")).is_none());
    }
}
