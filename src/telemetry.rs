//! Logs and metrics, set up once per process.

mod escaping;

use std::sync::OnceLock;

use metrics_exporter_prometheus::{Matcher, PrometheusBuilder, PrometheusHandle};
use tracing::Level;
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

pub(crate) use self::escaping::is_hidden;
use self::escaping::{EscapedFields, EscapedJson};
use crate::config::LogFormat;

/// The bounds of latency histograms, in seconds: from a read of the embedded store to a request that had to wait.
const LATENCY_BOUNDS: [f64; 14] =
    [0.000_1, 0.000_25, 0.000_5, 0.001, 0.002_5, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 5.0];

/// The bounds of histograms of counts: the increments in one flush, the writes in one group.
const SIZE_BOUNDS: [f64; 10] = [1.0, 2.0, 5.0, 10.0, 25.0, 50.0, 100.0, 250.0, 1_000.0, 5_000.0];

/// The part of the HTTP library that reports each malformed request, and each client that is gone, as an error. Clients
/// cause these, so they are shown where messages for debugging are.
const CONNECTIONS: &str = "actix_http::h1";
/// What the client of Kafka warns of, many times a second, is said in a source's own words.
const KAFKA: &str = "krafka";

/// Sends log lines to standard error, at the levels that `RUST_LOG` sets. A line that cannot be written is dropped,
/// because logging must not end a service whose log is on a full disk. Later calls do nothing, so that several
/// applications can run in one process.
pub fn start_logging(format: LogFormat) {
    let filter = filter(std::env::var("RUST_LOG").ok().as_deref());
    let colours = std::io::IsTerminal::is_terminal(&std::io::stderr());
    let builder = tracing_subscriber::fmt()
        .with_max_level(LevelFilter::TRACE)
        .with_ansi(colours)
        // It would report a line that cannot be written with `eprintln!`, which panics for the same reason.
        .log_internal_errors(false);
    let started = match format {
        LogFormat::Text => {
            builder.fmt_fields(EscapedFields).with_writer(std::io::stderr).finish().with(filter).try_init()
        }
        LogFormat::Json => {
            builder.json().with_writer(|| EscapedJson(std::io::stderr())).finish().with(filter).try_init()
        }
    };
    drop(started); // a subscriber that was installed before is kept
}

/// Returns the filter of log lines for the value of `RUST_LOG`. Without a value, or with one that is not valid, the
/// messages of Rolltop are shown with the record of administrative acts, and the warnings of libraries.
fn filter(levels: Option<&str>) -> Targets {
    let set = levels.filter(|text| !text.is_empty()).and_then(|text| text.parse().ok());
    let usual = || {
        Targets::new()
            .with_default(Level::WARN)
            .with_target("rolltop", Level::INFO)
            .with_target("audit", Level::INFO)
            .with_target(KAFKA, Level::ERROR)
    };
    let targets: Targets = set.unwrap_or_else(usual);
    if targets.would_enable(CONNECTIONS, &Level::DEBUG) {
        return targets;
    }
    targets.with_target(CONNECTIONS, LevelFilter::OFF)
}

/// Collects metrics in this process, with one collector for all its applications.
///
/// Returns `None` if a different recorder was installed before. Then metrics go to that recorder.
pub fn collect_metrics() -> Option<PrometheusHandle> {
    static COLLECTOR: OnceLock<Option<PrometheusHandle>> = OnceLock::new();
    COLLECTOR
        .get_or_init(|| {
            let named = |suffix: &str| Matcher::Suffix(suffix.to_owned());
            let recorder = PrometheusBuilder::new()
                .set_buckets_for_metric(named("_seconds"), &LATENCY_BOUNDS)
                .and_then(|builder| builder.set_buckets_for_metric(named("_items"), &SIZE_BOUNDS))
                .and_then(|builder| builder.set_buckets_for_metric(named("_writes"), &SIZE_BOUNDS));
            match recorder.and_then(|builder| builder.install_recorder()) {
                Ok(handle) => Some(handle),
                Err(error) => {
                    tracing::warn!(%error, "metrics are not collected");
                    None
                }
            }
        })
        .clone()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reports_about_connections_are_for_debugging() {
        for (levels, expected) in [
            (None, "actix_http::h1=off,rolltop=info,krafka=error,audit=info,warn"),
            (Some(""), "actix_http::h1=off,rolltop=info,krafka=error,audit=info,warn"),
            (Some("rolltop=no-level"), "actix_http::h1=off,rolltop=info,krafka=error,audit=info,warn"),
            (Some("info"), "actix_http::h1=off,info"),
            (Some("actix_http=warn,error"), "actix_http::h1=off,actix_http=warn,error"),
            (Some("debug"), "debug"),
            (Some("actix_http=debug,error"), "actix_http=debug,error"),
        ] {
            assert_eq!(filter(levels).to_string(), expected, "{levels:?}");
        }
    }
}
