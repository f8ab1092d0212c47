//! Requests with many increments.

use std::sync::Arc;

use bytes::Bytes;

use super::Setting;
use super::api::Api;
use super::load::{Load, Pace, Refusals};
use super::process::{Redis, Server};
use super::report::{self, Side, Table};
use super::subjects::{self, Skew};
use super::wire::{self, Protocol};

/// The number of lines in one request.
const LINES: usize = 5_000;
/// The number of requests prepared in advance: 320,000 increments. If the subjects are distinct, none occurs twice.
const PREPARED: usize = 64;
/// The number of increments in one raw pipeline to Redis.
const PIPELINED: usize = 128;
/// The content of an increment for COUNT besides its subject.
const LIKE: &str = "\"amount\":1";
/// The number of requests or pipelines in progress at once.
const CONNECTIONS: u16 = 4;

/// Measures distinct and Zipf-distributed subjects.
pub async fn run(setting: &Setting) -> anyhow::Result<()> {
    let mut redis = Redis::of_store(&setting.store).await?;
    let rolltop = Server::rolltop(redis.as_ref().map(|redis| redis.url.as_str()), None).await?;
    let api = rolltop.api();
    for (board, skew) in [("ingest-distinct", Skew::Uniform), ("ingest-zipf", Skew::Zipf)] {
        api.define(board, "COUNT(24h, hit, post)", "1h").await?;
        let numbers = match skew {
            Skew::Uniform => (0..(LINES * PREPARED) as u32).collect(),
            Skew::Zipf => subjects::draw(skew, setting.subjects, LINES * PREPARED),
        };
        let mut sides = Vec::new();
        if let Some(redis) = &redis {
            let protocol = Protocol::Redis { lines: 3 * PIPELINED };
            let requests = numbers.chunks(PIPELINED).map(|chunk| pipeline(board, chunk)).collect();
            let load = load(&redis.address, protocol, requests);
            sides.push(Side::new("pipelined HINCRBY + ZINCRBY", PIPELINED, load));
        }
        let ours = load(&api.address, Protocol::Http, ndjson_requests(board, &numbers, LIKE));
        ours.check("\"rejected\":[]").await?;
        sides.push(Side::new("rolltop", LINES, ours));
        let named = if skew == Skew::Uniform { "distinct".to_owned() } else { skew.to_string() };
        let title = format!("NDJSON ingest, {}, {named} subjects, {CONNECTIONS} connections", setting.store);
        let mut table = Table { title, unit: "increments", sides };
        table.measure(setting, &mut redis).await?;
        report::show(&table)?;
    }
    Ok(())
}

/// Returns NDJSON requests for these subjects, with one increment each. `says` is its content besides the subject.
fn ndjson_requests(board: &str, numbers: &[u32], says: &str) -> Arc<[Bytes]> {
    ndjson_requests_named(board, numbers, says, subjects::name)
}

fn ndjson_requests_named(board: &str, numbers: &[u32], says: &str, name: impl Fn(u32) -> String) -> Arc<[Bytes]> {
    let path = format!("/v1/boards/{board}/increments");
    let request = |chunk: &[u32]| {
        let line = |number: &u32| format!("{{\"subject\":\"{}\",{says}}}\n", name(*number));
        let body: String = chunk.iter().map(line).collect();
        wire::request("POST", &path, "application/x-ndjson", body.as_bytes())
    };
    numbers.chunks(LINES).map(request).collect()
}

/// Counts 1 for each of this many subjects.
pub async fn seed(api: &Api, board: &str, subjects: u32) -> anyhow::Result<()> {
    seed_with(api, board, subjects, LIKE).await
}

/// Sends one increment for each of this many subjects. `says` is its content besides the subject.
pub async fn seed_with(api: &Api, board: &str, subjects: u32, says: &str) -> anyhow::Result<()> {
    let numbers: Vec<u32> = (0..subjects).collect();
    load(&api.address, Protocol::Http, ndjson_requests(board, &numbers, says)).run_once().await.map(drop)
}

/// Returns the load that counts 1 for each of these subjects.
pub fn counting(api: &Api, board: &str, numbers: &[u32], name: impl Fn(u32) -> String) -> Load {
    load(&api.address, Protocol::Http, ndjson_requests_named(board, numbers, LIKE, name))
}

fn load(address: &str, protocol: Protocol, requests: Arc<[Bytes]>) -> Load {
    let (address, pace, refusals) = (address.to_owned(), Pace::SATURATING, Refusals::Fail);
    Load { address, protocol, requests, connections: CONNECTIONS, pace, refusals }
}

fn pipeline(board: &str, numbers: &[u32]) -> Bytes {
    let mut bytes = Vec::new();
    for number in numbers {
        let subject = subjects::name(*number);
        bytes.extend(wire::command(&["HINCRBY", &format!("{board}:slot"), &subject, "1"]));
        bytes.extend(wire::command(&["ZINCRBY", &format!("{board}:ranking"), "1", &subject]));
    }
    bytes.into()
}
