//! Writes to boards with a ranking for each key, against the same writes to a board without keys.

use serde_json::json;

use super::Setting;
use super::process::{Redis, Server};
use super::subjects;
use super::variants::{self, Variant};

/// The number of lines in one request with many.
const LINES: usize = 5_000;
/// The number of keys of the board with many.
const KEYS: u32 = 5_000;

/// Measures a board without keys, one with all subjects in one key, and one with many keys. Each subject is in one of
/// the keys.
pub async fn run(setting: &Setting) -> anyhow::Result<()> {
    let mut redis = Redis::of_store(&setting.store).await?;
    let rolltop = Server::rolltop(redis.as_ref().map(|redis| redis.url.as_str()), None).await?;
    let api = rolltop.api();
    for (board, by) in [("none", ""), ("one", " BY community"), ("many", " BY community")] {
        api.define_with(board, json!({"metric": format!("COUNT(24h, hit, post{by})"), "slot": "1h"})).await?;
    }
    let none = |number| format!("{{\"subject\":\"{}\",\"amount\":1}}", subjects::name(number));
    let of = |key, number| format!("{{\"subject\":\"{}\",\"by\":\"k{key}\",\"amount\":1}}", subjects::name(number));
    let (one, many) = (|number| of(0, number), |number| of(number % KEYS, number));
    let boards = [
        Variant { name: "without keys", board: "none".to_owned(), line: &none },
        Variant { name: "one key", board: "one".to_owned(), line: &one },
        Variant { name: "5,000 keys", board: "many".to_owned(), line: &many },
    ];
    variants::compare(setting, &mut redis, &api, "keys, count", LINES, &boards).await
}
