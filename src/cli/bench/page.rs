//! The top of a large board.

use std::sync::Arc;
use std::time::Duration;

use anyhow::ensure;
use serde_json::Value;

use super::load::Load;
use super::process::{Redis, Server};
use super::report::{self, Side, Table};
use super::wire::{self, Protocol};
use super::{Setting, ingest};

/// Measures pages of 50 against the echo.
pub async fn run(setting: &Setting) -> anyhow::Result<()> {
    let mut redis = Redis::of_store(&setting.store).await?;
    let echo = Server::echo().await?;
    let rolltop = Server::rolltop(redis.as_ref().map(|redis| redis.url.as_str()), None).await?;
    rolltop.define("page", "COUNT(24h, hit, post)", "1h").await?;
    ingest::seed(&rolltop, "page", setting.subjects).await?;
    let path = "/v1/boards/page/rankings?limit=50";
    let page: Value = rolltop.call("GET", path, Value::Null).await?;
    ensure!(
        page["total"] == setting.subjects,
        "the board should hold {} subjects: {}",
        setting.subjects,
        page["total"]
    );

    let increment = wire::request("POST", "/", "application/json", br#"{"subject":"post-1","amount":1}"#);
    let load = |server: &Server, request| Load {
        address: server.address.clone(),
        protocol: Protocol::Http,
        requests: Arc::from([request]),
        connections: setting.connections,
        pause: Duration::ZERO,
    };
    let sides = vec![
        Side::new("bare echo", 1, load(&echo, increment)),
        Side::new("rolltop", 1, load(&rolltop, wire::get(path))),
    ];
    let title =
        format!("top 50 of {} subjects, {}, {} connections", setting.subjects, setting.store, setting.connections);
    let mut table = Table { title, unit: "requests", sides };
    table.measure(setting, &mut redis).await?;
    report::show(&table)
}
