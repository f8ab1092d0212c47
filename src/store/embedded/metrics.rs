//! The metrics of the log, checkpoints, the disk and memory.

use std::fmt;
use std::time::Duration;

use metrics::{
    Counter, Gauge, Histogram, counter, describe_counter, describe_gauge, describe_histogram, gauge, histogram,
};

const CALLS: &str = "rolltop_store_calls_total";
const GROUP: &str = "rolltop_log_group_writes";
const WAITING: &str = "rolltop_log_waiting_bytes";
const LOG: &str = "rolltop_log_bytes";
const UNCONFIRMED: &str = "rolltop_log_unconfirmed_seconds";
const AVAILABLE: &str = "rolltop_disk_available_bytes";
const NEEDED: &str = "rolltop_disk_needed_bytes";
const CHECKPOINT: &str = "rolltop_checkpoint_seconds";
const CHECKPOINT_BYTES: &str = "rolltop_checkpoint_bytes_total";
const MEMORY: &str = "rolltop_memory_data_bytes";
const MEMORY_LIMIT: &str = "rolltop_memory_limit_bytes";
const MEMORY_RESIDENT: &str = "rolltop_memory_process_bytes";
const CLOCK_DOUBTED: &str = "rolltop_clock_doubted";

/// The handles of the metrics, looked up once by each thread that uses them.
pub(super) struct StoreMetrics {
    committed: Counter,
    failed: Counter,
    group: Histogram,
    waiting: Gauge,
    log: Gauge,
    unconfirmed: Gauge,
    available: Gauge,
    needed: Gauge,
    checkpoint: Histogram,
    checkpoint_bytes: Counter,
}

impl fmt::Debug for StoreMetrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StoreMetrics").finish_non_exhaustive()
    }
}

impl StoreMetrics {
    pub(super) fn new() -> Self {
        describe_counter!(CALLS, "Calls of the store's backend, by call and outcome");
        describe_histogram!(GROUP, "Writes that shared one frame of the log");
        describe_gauge!(WAITING, "Bytes of operations that had gathered when the last frame of the log was written");
        describe_gauge!(LOG, "Bytes of the log's segments");
        describe_gauge!(UNCONFIRMED, "How long the oldest write has been waiting for the disk to confirm it");
        describe_gauge!(AVAILABLE, "Free bytes of the data directory's file system");
        describe_gauge!(NEEDED, "Free bytes below which writes are refused");
        describe_histogram!(CHECKPOINT, "How long a checkpoint of a board took");
        describe_counter!(CHECKPOINT_BYTES, "Bytes written by checkpoints");
        let calls = |outcome: &'static str| counter!(CALLS, "call" => "append", "outcome" => outcome);
        Self {
            committed: calls("ok"),
            failed: calls("failed"),
            group: histogram!(GROUP),
            waiting: gauge!(WAITING),
            log: gauge!(LOG),
            unconfirmed: gauge!(UNCONFIRMED),
            available: gauge!(AVAILABLE),
            needed: gauge!(NEEDED),
            checkpoint: histogram!(CHECKPOINT),
            checkpoint_bytes: counter!(CHECKPOINT_BYTES),
        }
    }

    /// Counts a frame that was appended, or that failed.
    pub(super) fn appended(&self, well: bool) {
        let counter = if well { &self.committed } else { &self.failed };
        counter.increment(1);
    }

    /// Records that a group of this many writes and bytes of operations was taken.
    pub(super) fn taken(&self, writes: usize, bytes: usize) {
        if writes > 0 {
            self.group.record(writes as f64);
        }
        self.waiting.set(bytes as f64);
    }

    pub(super) fn log(&self, bytes: u64, unconfirmed: Option<Duration>) {
        self.log.set(bytes as f64);
        self.unconfirmed.set(unconfirmed.unwrap_or_default().as_secs_f64());
    }

    pub(super) fn space(&self, available: u64, needed: u64) {
        self.available.set(available as f64);
        self.needed.set(needed as f64);
    }

    pub(super) fn checkpoint(&self, bytes: u64, took: Duration) {
        self.checkpoint.record(took.as_secs_f64());
        self.checkpoint_bytes.increment(bytes);
    }
}

/// The handles of the metrics of memory.
pub(super) struct MemoryMetrics {
    data: Gauge,
    limit: Gauge,
    process: Gauge,
}

impl MemoryMetrics {
    pub(super) fn new() -> Self {
        describe_gauge!(MEMORY, "Bytes that the data of all boards takes in memory");
        describe_gauge!(MEMORY_LIMIT, "The setting memory_limit, or its default, in bytes");
        describe_gauge!(MEMORY_RESIDENT, "Bytes of memory that the process takes, without files");
        Self { data: gauge!(MEMORY), limit: gauge!(MEMORY_LIMIT), process: gauge!(MEMORY_RESIDENT) }
    }

    /// Sets the bytes of the data, the limit, and the bytes of the process if they are known.
    pub(super) fn set(&self, data: usize, limit: usize, process: Option<usize>) {
        self.data.set(data as f64);
        self.limit.set(limit as f64);
        if let Some(process) = process {
            self.process.set(process as f64);
        }
    }
}

/// Sets the metric that shows whether the system clock is doubted at present. This looks the metric up, so do not call
/// it for every operation.
pub(super) fn clock_doubted(doubted: bool) {
    describe_gauge!(CLOCK_DOUBTED, "1 while the system clock is further ahead than expected and not trusted yet");
    gauge!(CLOCK_DOUBTED).set(if doubted { 1.0 } else { 0.0 });
}
