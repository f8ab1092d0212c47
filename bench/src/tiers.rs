//! Reads of a board with tiers, against the same reads of a board without; and of the distribution of its scores.

use std::sync::Arc;

use bytes::Bytes;
use serde_json::{Value, json};

use super::Setting;
use super::process::{Redis, Server};
use super::report::{self, Side, Table};
use super::subjects::{self, Skew};
use super::{ingest, wire};

/// The number of requests prepared for each kind of read.
const PREPARED: usize = 1 << 12;
/// The number of subjects of a look-up.
const LOOKED_UP: usize = 100;
/// The increments that are drawn, which make scores with and without ties.
const DRAWN: usize = 1 << 17;

/// Makes a request to a board from numbers of subjects.
type Request = dyn Fn(&str, &[u32]) -> Bytes;

/// Measures pages, standings, look-ups and distributions.
pub async fn run(setting: &Setting) -> anyhow::Result<()> {
    let mut redis = Redis::of_store(&setting.store).await?;
    let rolltop = Server::rolltop(redis.as_ref().map(|redis| redis.url.as_str()), None).await?;
    let api = rolltop.api();
    let boards = [("without tiers", "plain"), ("three tiers", "tiers")];
    for (_, board) in boards {
        api.define_with(board, json!({"metric": "COUNT(24h, hit, post)", "slot": "1h"})).await?;
        ingest::seed(&api, board, setting.subjects).await?;
        let drawn = subjects::draw(Skew::Uniform, setting.subjects, DRAWN);
        for chunk in drawn.chunks(5_000) {
            let items: Vec<Value> = chunk.iter().map(|number| json!({"subject": subjects::name(*number)})).collect();
            api.call::<Value>("POST", &format!("/v1/boards/{board}/increments"), json!({"increments": items})).await?;
        }
    }
    let tiers =
        json!({"tiers": [{"name": "gold", "top": 1}, {"name": "silver", "top": 10}, {"name": "rest", "rank": 50_000}]});
    api.call::<Value>("PUT", "/v1/boards/tiers/tiers", tiers).await?;

    let reads: [(&str, &Request); 3] = [
        ("different pages of 50", &|board, drawn| {
            wire::get(&format!("/v1/boards/{board}/rankings?limit=50&offset={}", drawn.first().unwrap_or(&0)))
        }),
        ("standings", &|board, drawn| {
            let subject = subjects::name(*drawn.first().unwrap_or(&0));
            wire::get(&format!("/v1/boards/{board}/subjects/{subject}"))
        }),
        ("look-ups of 100", &|board, drawn| {
            let subjects: Vec<String> = drawn.iter().map(|number| subjects::name(*number)).collect();
            let body = json!({"subjects": subjects}).to_string();
            wire::request("POST", &format!("/v1/boards/{board}/rankings/lookup"), "application/json", body.as_bytes())
        }),
    ];
    for (what, request) in reads {
        let drawn = subjects::draw(Skew::Uniform, setting.subjects, PREPARED * LOOKED_UP);
        let requests = |board| drawn.chunks(LOOKED_UP).map(|drawn| request(board, drawn)).collect::<Arc<[_]>>();
        let side = |(name, board)| Side::new(name, 1, setting.load(&api.address, requests(board)));
        measure(setting, &mut redis, what, boards.map(side).into()).await?;
    }
    let distribution = |rest: &str| wire::get(&format!("/v1/boards/plain/distribution{rest}"));
    let side = |name: &'static str, rest| Side::new(name, 1, setting.load(&api.address, [distribution(rest)]));
    let sides = vec![
        side("one percentile", "?percentiles=50"),
        side("8 percentiles", ""),
        side("8 percentiles, 10 scores", "?scores=1,2,3,4,5,6,7,8,9,10"),
    ];
    measure(setting, &mut redis, "distributions", sides).await
}

async fn measure(setting: &Setting, redis: &mut Option<Redis>, what: &str, sides: Vec<Side>) -> anyhow::Result<()> {
    let Setting { store, connections, subjects, .. } = setting;
    let title = format!("{what} of {subjects} subjects, {store}, {connections} connections");
    let mut table = Table { title, unit: "requests", sides };
    table.measure(setting, redis).await?;
    report::show(&table)
}
