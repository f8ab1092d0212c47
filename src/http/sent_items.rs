//! What was sent to this instance of each source's log since it started.

use std::cell::OnceCell;
use std::collections::HashMap;
use std::time::{Duration, Instant};

use metrics::{Counter, Gauge, counter, gauge};
use parking_lot::Mutex;
use serde::Serialize;
use utoipa::ToSchema;

use super::counts::{EventCounts, RejectedCounts};
use super::schemas;
use crate::board::{SourceName, Timestamp};

/// Number of items of a source by `source` and `outcome`: `accepted`, `duplicate`, `repeated`, `rejected`, or `passed` if no
/// board counts them.
pub const SOURCE_ITEMS: &str = "rolltop_source_items_total";
/// Unix time in seconds of the newest item of a source that a board has counted, by `source`. Absent until one has a time.
pub const SOURCE_NEWEST: &str = "rolltop_source_newest_timestamp_seconds";

/// The time over which a rate is measured is this many times `SLICE`.
const SLICES: usize = 6;
const SLICE: Duration = Duration::from_secs(10);

/// What was sent of each source's log, by name.
#[derive(Default)]
pub(super) struct SentItems(Mutex<HashMap<SourceName, Sent>>);

/// What was sent of a source's log.
struct Sent {
    accepted: u64,
    repeated: u64,
    rejected: RejectedCounts,
    newest: Option<Timestamp>,
    rate: RecentRate,
    metrics: SentMetrics,
}

struct SentMetrics {
    accepted: Counter,
    duplicates: Counter,
    repeated: Counter,
    rejected: Counter,
    passed: Counter,
    /// There is none until an item has a time: otherwise its age would be that of the year 1970.
    newest: OnceCell<Gauge>,
}

/// The number of items in the last minute, in slices of ten seconds.
struct RecentRate {
    begun: Instant,
    /// For each slice of a minute the number of the slice since the beginning, and its items.
    slices: [(u64, u64); SLICES],
}

/// What was sent of a source's log to this instance since it started.
#[derive(Debug, PartialEq, Serialize, ToSchema)]
#[schema(as = SourceSent)]
pub(super) struct SentShown {
    /// Number of items that at least one board has counted.
    accepted: u64,
    /// Number of items that all boards which take them had counted before.
    repeated: u64,
    /// Number of rejections by code.
    #[schema(schema_with = schemas::rejections)]
    rejected: RejectedCounts,
    /// Time (`at`) of the newest item that a board has counted, now or before; null if none has a time.
    #[schema(schema_with = schemas::time_or_null, required = true)]
    newest: Option<Timestamp>,
    /// Number of items per second, over about the last minute.
    per_second: f64,
}

impl SentItems {
    /// Adds the difference between two states of a receipt of a source's items.
    pub(super) fn record(&self, source: &SourceName, before: &EventCounts, now: &EventCounts) {
        let mut all = self.0.lock();
        let sent = match all.get_mut(source) {
            Some(sent) => sent,
            None => all.entry(source.clone()).or_insert_with(|| Sent::new(source)),
        };
        let added = |of: fn(&EventCounts) -> u64| of(now).saturating_sub(of(before));
        let (accepted, repeated) = (added(|counts| counts.accepted), added(|counts| counts.repeated));
        let (duplicates, rejected) = (added(|counts| counts.duplicates), added(|counts| counts.rejected));
        let passed = added(|counts| counts.unmatched + counts.unknown);
        sent.accepted += accepted;
        sent.repeated += repeated;
        sent.rejected.add_difference(&before.by_code, &now.by_code);
        sent.newest = sent.newest.max(now.newest);
        sent.rate.add(accepted + duplicates + repeated + rejected + passed, Instant::now());
        let metrics = &sent.metrics;
        metrics.accepted.increment(accepted);
        metrics.duplicates.increment(duplicates);
        metrics.repeated.increment(repeated);
        metrics.rejected.increment(rejected);
        metrics.passed.increment(passed);
        if let Some(newest) = sent.newest {
            let gauge = || gauge!(SOURCE_NEWEST, "source" => source.to_string());
            metrics.newest.get_or_init(gauge).set(newest.millis() as f64 / 1_000.0);
        }
    }

    /// Returns what was sent of a source's log, if anything was.
    pub(super) fn of(&self, source: &SourceName) -> Option<SentShown> {
        self.0.lock().get(source).map(|sent| SentShown {
            accepted: sent.accepted,
            repeated: sent.repeated,
            rejected: sent.rejected.clone(),
            newest: sent.newest,
            per_second: sent.rate.per_second(Instant::now()),
        })
    }

    /// Forgets a source, as one that is defined again is another one.
    pub(super) fn forget(&self, source: &SourceName) {
        self.0.lock().remove(source);
    }

    /// Forgets the sources that there are no more.
    pub(super) fn keep(&self, is_known: impl Fn(&SourceName) -> bool) {
        self.0.lock().retain(|source, _| is_known(source));
    }
}

impl Sent {
    fn new(source: &SourceName) -> Self {
        let source = source.to_string();
        let outcome = |outcome: &'static str| counter!(SOURCE_ITEMS, "source" => source.clone(), "outcome" => outcome);
        let metrics = SentMetrics {
            accepted: outcome("accepted"),
            duplicates: outcome("duplicate"),
            repeated: outcome("repeated"),
            rejected: outcome("rejected"),
            passed: outcome("passed"),
            newest: OnceCell::new(),
        };
        let rate = RecentRate::new(Instant::now());
        Self { accepted: 0, repeated: 0, rejected: RejectedCounts::default(), newest: None, rate, metrics }
    }
}

impl RecentRate {
    fn new(begun: Instant) -> Self {
        Self { begun, slices: [(0, 0); SLICES] }
    }

    /// Returns the number of the slice that an instant is in.
    fn slice(&self, now: Instant) -> u64 {
        now.saturating_duration_since(self.begun).as_secs() / SLICE.as_secs()
    }

    fn add(&mut self, items: u64, now: Instant) {
        let number = self.slice(now);
        let slice = &mut self.slices[number as usize % SLICES];
        if slice.0 != number {
            *slice = (number, 0);
        }
        slice.1 += items;
    }

    fn per_second(&self, now: Instant) -> f64 {
        let number = self.slice(now);
        let oldest = (number + 1).saturating_sub(SLICES as u64);
        let items: u64 = self.slices.iter().filter(|(own, _)| *own >= oldest).map(|(_, items)| items).sum();
        let begun = SLICE * u32::try_from(oldest).unwrap_or(u32::MAX);
        let span = now.saturating_duration_since(self.begun).saturating_sub(begun);
        let per_second = items as f64 / span.max(Duration::from_secs(1)).as_secs_f64();
        (per_second * 10.0).round() / 10.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_is_that_of_the_last_minute() {
        let begun = Instant::now();
        let after = |seconds| begun + Duration::from_secs(seconds);
        let mut rate = RecentRate::new(begun);
        assert_eq!(rate.per_second(begun), 0.0);
        rate.add(50, after(0));
        assert_eq!(rate.per_second(begun), 50.0);
        for second in 1..=100 {
            rate.add(10, after(second));
        }
        assert_eq!(rate.per_second(after(100)), 10.2);
        // Of the seconds from 70 to 125, in 31 of which items came.
        assert_eq!(rate.per_second(after(125)), 5.6);
        assert_eq!(rate.per_second(after(1_000)), 0.0);
        rate.add(4, after(1_001));
        assert_eq!(rate.per_second(after(1_001)), 0.1);
    }
}
