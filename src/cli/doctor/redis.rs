//! The Redis or Valkey servers of a store.

use std::time::Duration;

use crate::config::Config;
use crate::store::redis::{RedisOptions, ServerReport, examine};

use super::finding::{Finding, Findings, size};

/// The difference of two clocks from which on it matters, in milliseconds.
const MUCH_AHEAD: i64 = 1_000;
/// The round trip from which on writes of one sender are slow.
const FAR: Duration = Duration::from_millis(5);

pub(super) async fn look(config: &Config, url: &str) -> Vec<Finding> {
    let mut redis = Findings::about("redis");
    match examine(url, config.redis_ca.as_deref(), &config.redis_prefix, RedisOptions::PATIENCE).await {
        Ok(reports) => reports.iter().for_each(|report| judge(&mut redis, report)),
        Err(error) => redis.wrong(error.to_string()),
    }
    redis.found
}

fn judge(redis: &mut Findings, report: &ServerReport) {
    let ServerReport { at, version, replicas, round_trip, used_memory, .. } = report;
    redis.good(format!(
        "{at} takes writes and evicts nothing: version {version}, {replicas} replicas, {} in use, a round trip takes {} µs",
        size(*used_memory),
        round_trip.as_micros()
    ));
    if !report.appends {
        redis.warning(format!(
            "{at} keeps no append-only file, so what was counted since its last snapshot is lost when it ends: CONFIG SET \
             appendonly yes, and set it in its configuration file"
        ));
    }
    for failed in &report.failed {
        redis.wrong(format!("{at} could not write to its disk ({failed}): make room there, and look into its log"));
    }
    match report.most_memory {
        None => redis.warning(format!(
            "{at} has no maxmemory: when the machine's memory is full, the kernel ends it; set some three quarters of it, so \
             that writes are refused instead"
        )),
        Some(most) if *used_memory >= most / 10 * 9 => redis.warning(format!(
            "{at} has used {} of {} (maxmemory), and refuses writes when that is full: raise it, or shorten windows",
            size(*used_memory),
            size(most)
        )),
        Some(_) => {}
    }
    if report.ahead.abs() >= MUCH_AHEAD {
        let (apart, side) = (report.ahead.abs(), if report.ahead > 0 { "ahead of" } else { "behind" });
        redis.warning(format!(
            "the clock of {at} is {apart} ms {side} that of this machine: have both set by the network (NTP)"
        ));
    }
    if *round_trip >= FAR {
        redis.warning(format!("{at} is {} ms away: run instances near it", round_trip.as_millis()));
    }
}

#[cfg(test)]
mod tests {
    use super::super::finding::Level;
    use super::*;

    fn report() -> ServerReport {
        ServerReport {
            at: "redis:6379".to_owned(),
            version: "7.0.15".to_owned(),
            appends: true,
            failed: Vec::new(),
            replicas: 1,
            used_memory: 10 << 20,
            most_memory: Some(1 << 30),
            round_trip: Duration::from_micros(180),
            ahead: 0,
        }
    }

    /// Returns the findings that are not good.
    fn bad(change: impl FnOnce(&mut ServerReport)) -> Vec<(Level, String)> {
        let mut report = report();
        change(&mut report);
        let mut findings = Findings::about("redis");
        judge(&mut findings, &report);
        assert!(findings.found[0].text.contains("a round trip takes"), "{findings:?}");
        findings.found.into_iter().skip(1).map(|finding| (finding.level, finding.text)).collect()
    }

    #[test]
    fn a_server_is_judged() {
        assert_eq!(bad(|_| ()), []);
        let one = |change: fn(&mut ServerReport), level, says: &str| {
            let found = bad(change);
            assert_eq!(found.len(), 1, "{found:?}");
            assert!(found[0].0 == level && found[0].1.contains(says), "{found:?}");
        };
        one(|report| report.appends = false, Level::Warning, "appendonly yes");
        one(|report| report.failed = vec!["aof_last_write_status".to_owned()], Level::Wrong, "aof_last_write_status");
        one(|report| report.most_memory = None, Level::Warning, "no maxmemory");
        one(|report| report.used_memory = 1_000 << 20, Level::Warning, "raise it");
        one(|report| report.ahead = 1_500, Level::Warning, "1500 ms ahead of");
        one(|report| report.ahead = -90_000, Level::Warning, "90000 ms behind");
        one(|report| report.round_trip = Duration::from_millis(40), Level::Warning, "40 ms away");
    }
}
