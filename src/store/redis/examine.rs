//! A look at the servers beside a service that uses them, or before one does: for `rolltop doctor`.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use redis::{Value, cmd};
use tokio::time::Instant;

use super::boards::check_server;
use super::keys::StoreKeys;
use super::servers::{Channel, Node, ServerFailure, Servers};
use crate::store::Result;

/// The number of times that a server is asked for the time, of which the fastest answer counts.
const ROUNDS: usize = 5;

/// What a server says about itself, and how far away it is.
#[derive(Clone, Debug)]
pub struct ServerReport {
    /// The address.
    pub at: String,
    /// The version of Redis, or that with which a Valkey is compatible.
    pub version: String,
    /// Whether it keeps an append-only file.
    pub appends: bool,
    /// What it last failed to write, by the names of `INFO persistence`, such as `aof_last_write_status`.
    pub failed: Vec<String>,
    /// The number of replicas that follow it.
    pub replicas: u64,
    /// The bytes in use.
    pub used_memory: u64,
    /// The bytes that it may use. `None` if nothing limits it.
    pub most_memory: Option<u64>,
    /// The time of the fastest of some round trips.
    pub round_trip: Duration,
    /// How far its clock is ahead of that of this machine, in milliseconds, give or take half a round trip.
    pub ahead: i64,
}

/// Connects as a service would, with this address, CA file and prefix of keys, and asks every server (on a cluster, every
/// master) about itself. Waits so long for an answer, and not for servers that are not ready. Writes one key, that of
/// health checks, which expires.
///
/// Returns the error with which a service would not start, such as [`Setup`](crate::store::StoreError::Setup) for a server
/// that evicts keys.
pub async fn examine(url: &str, ca: Option<&Path>, prefix: &str, patience: Duration) -> Result<Vec<ServerReport>> {
    let servers = Servers::open(url, ca, patience).await?;
    check_server(&servers).await?;
    let mut set = cmd("SET");
    set.arg(StoreKeys::new(prefix).check()).arg("doctor").arg("PX").arg(60_000);
    servers.set(Channel::Calls, &set).await.map_err(|failure| servers.error(failure))?;
    let mut reports = Vec::new();
    for node in servers.nodes() {
        reports.push(ask(&node).await.map_err(|failure| failure.at(node.at()))?);
    }
    Ok(reports)
}

async fn ask(node: &Node) -> Result<ServerReport, ServerFailure> {
    let (round_trip, ahead) = compare_clocks(node).await?;
    let fields = fields_of(node.send(Channel::Calls, &cmd("INFO")).await?);
    let text = |name: &str| fields.get(name).cloned().unwrap_or_default();
    let number = |name: &str| text(name).parse().unwrap_or(0);
    let statuses = ["rdb_last_bgsave_status", "aof_last_bgrewrite_status", "aof_last_write_status"];
    let is_failed = |name: &&str| fields.get(*name).is_some_and(|status| status != "ok");
    Ok(ServerReport {
        at: node.at().to_owned(),
        version: text("redis_version"),
        appends: text("aof_enabled") == "1",
        failed: statuses.into_iter().filter(is_failed).map(str::to_owned).collect(),
        replicas: number("connected_slaves"),
        used_memory: number("used_memory"),
        most_memory: Some(number("maxmemory")).filter(|most| *most > 0),
        round_trip,
        ahead,
    })
}

/// Returns the time of the fastest round trip, and how far the server's clock was ahead in the middle of it.
async fn compare_clocks(node: &Node) -> Result<(Duration, i64), ServerFailure> {
    let mut fastest: Option<(Duration, i64)> = None;
    for _ in 0..ROUNDS {
        let (sent, begun) = (SystemTime::now(), Instant::now());
        let theirs = micros_of(node.send(Channel::Calls, &cmd("TIME")).await?)?;
        let took = begun.elapsed();
        let ours = sent.duration_since(UNIX_EPOCH).unwrap_or_default() + took / 2;
        let ahead = (theirs - i64::try_from(ours.as_micros()).unwrap_or(i64::MAX)) / 1_000;
        if fastest.is_none_or(|(fastest, _)| took < fastest) {
            fastest = Some((took, ahead));
        }
    }
    Ok(fastest.unwrap_or_default())
}

/// Returns the microseconds of a reply to `TIME`: seconds and microseconds.
fn micros_of(answer: Value) -> Result<i64, ServerFailure> {
    let number = |value: &Value| match value {
        Value::BulkString(digits) => std::str::from_utf8(digits).ok()?.parse::<i64>().ok(),
        _ => None,
    };
    let micros = match &answer {
        Value::Array(parts) => match parts.as_slice() {
            [seconds, micros] => number(seconds).zip(number(micros)).map(|(s, m)| s.saturating_mul(1_000_000) + m),
            _ => None,
        },
        _ => None,
    };
    micros.ok_or_else(|| ServerFailure::Corrupt(format!("unexpected reply to TIME: {answer:?}")))
}

/// Returns the fields of a reply to `INFO`.
fn fields_of(answer: Value) -> BTreeMap<String, String> {
    let text = match answer {
        Value::BulkString(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
        Value::VerbatimString { text, .. } => text,
        _ => String::new(),
    };
    let fields = text.lines().filter_map(|line| line.trim_end().split_once(':'));
    fields.map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_of_a_server_is_read() {
        let bulk = |text: &str| Value::BulkString(text.as_bytes().to_vec());
        let time = Value::Array(vec![bulk("1795000000"), bulk("250000")]);
        assert_eq!(micros_of(time).ok(), Some(1_795_000_000_250_000));
        assert!(micros_of(Value::Array(vec![bulk("1795000000")])).is_err());
        assert!(micros_of(Value::Nil).is_err());
    }

    #[test]
    fn the_fields_of_a_server_are_read() {
        let fields = fields_of(Value::BulkString(b"# Memory\r\nused_memory:12\r\nmaxmemory:0\r\n".to_vec()));
        assert_eq!(fields.get("used_memory").map(String::as_str), Some("12"));
        assert_eq!(fields.get("maxmemory").map(String::as_str), Some("0"));
    }
}
