//! What is measured about the journal. Handles are looked up once, when the store is opened.

use metrics::{
    Counter, Gauge, Histogram, counter, describe_counter, describe_gauge, describe_histogram, gauge, histogram,
};

const CALLS: &str = "rolltop_store_calls_total";
const GROUP: &str = "rolltop_journal_group_writes";
const WAITING: &str = "rolltop_journal_waiting_bytes";

/// The writer's meters.
pub(super) struct Meters {
    committed: Counter,
    failed: Counter,
    group: Histogram,
    waiting: Gauge,
}

impl Meters {
    pub(super) fn new() -> Self {
        describe_counter!(CALLS, "Calls of the store's backend, by call and outcome");
        describe_histogram!(GROUP, "Writes that shared one group of the journal");
        describe_gauge!(WAITING, "Bytes of operations that had gathered for the journal when its last group was taken");
        let calls = |outcome: &'static str| counter!(CALLS, "call" => "commit", "outcome" => outcome);
        Self { committed: calls("ok"), failed: calls("failed"), group: histogram!(GROUP), waiting: gauge!(WAITING) }
    }

    /// A group of so many writes and bytes of operations was taken.
    pub(super) fn taken(&self, writes: usize, bytes: usize) {
        if writes > 0 {
            self.group.record(writes as f64);
        }
        self.waiting.set(bytes as f64);
    }

    /// The database was given a group.
    pub(super) fn committed(&self, well: bool) {
        if well { self.committed.increment(1) } else { self.failed.increment(1) }
    }
}
