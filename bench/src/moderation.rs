//! Writes to boards on which subjects are hidden, against the same writes to a board on which nothing is set.

use serde_json::{Value, json};

use super::Setting;
use super::process::{Redis, Server};
use super::subjects;
use super::variants::{self, Variant};

/// The number of lines in one request with many.
const LINES: usize = 5_000;
/// The number of hidden subjects of the board with many.
const HIDDEN: u32 = 1_000;

/// Measures boards with the same subjects, none, one and many of which are hidden.
pub async fn run(setting: &Setting) -> anyhow::Result<()> {
    let mut redis = Redis::of_store(&setting.store).await?;
    let rolltop = Server::rolltop(redis.as_ref().map(|redis| redis.url.as_str()), None).await?;
    let api = rolltop.api();
    let line = |number| format!("{{\"subject\":\"{}\",\"amount\":1}}", subjects::name(number));
    let mut boards = Vec::new();
    for (name, hidden) in [("none hidden", 0), ("one hidden", 1), ("1,000 hidden", HIDDEN)] {
        let board = format!("hidden-{hidden}");
        api.define_with(&board, json!({"metric": "COUNT(24h, hit, post)", "slot": "1h"})).await?;
        let hide: Vec<_> = (0..hidden).map(|number| json!({"subject": subjects::name(number)})).collect();
        api.call::<Value>("POST", &format!("/v1/boards/{board}/hidden"), json!({"subjects": hide})).await?;
        boards.push(Variant { name, board, line: &line });
    }
    variants::compare(setting, &mut redis, &api, "moderation, count", LINES, &boards).await
}
