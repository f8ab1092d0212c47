//! The thread that writes the log: one frame for each group of operations, segment after segment.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::super::clock::Clock;
use super::super::log_operations::LogOperations;
use super::super::metrics::StoreMetrics;
use super::super::options::Durability;
use super::super::storage::damage::{Context, StorageError};
use super::super::storage::files::Files;
use super::super::storage::log::{LogAppender, LogEnd};
use super::admission::RefusalSource;
use super::journal::{Group, Journal};
use super::log_progress::{BrokenSegment, LogProgress, Position, Segment, UnconfirmedFrame};

/// The interval at which the thread maintains the log when there are no writes.
const TICK: Duration = Duration::from_millis(200);
/// The time to wait after a failure before the next attempt.
const RETRY_AFTER: Duration = Duration::from_millis(250);
/// The interval at which the time is recorded while there are writes.
const RECORD_TIME_EVERY: Duration = Duration::from_secs(1);
/// The largest number of bytes of unconfirmed frames kept in memory. Beyond it the thread waits for the disk before it
/// writes more.
const MAX_UNCONFIRMED_BYTES: usize = 64 << 20;
/// The time for which the thread waits, before it ends, for the disk to confirm what was written.
const CLOSE_CONFIRM_TIMEOUT: Duration = Duration::from_secs(10);
/// The interval at which the thread checks for this confirmation.
const CONFIRM_CHECK_EVERY: Duration = Duration::from_millis(20);
/// The space to leave free in the last segment for writes admitted before the lack of a further segment was found.
const SEGMENT_MARGIN: u64 = 64 << 10;

/// The reason for refusing writes after an orderly close.
pub(super) const CLOSED: &str = "the store is closed";

/// The state of the thread.
#[derive(Debug)]
pub(super) struct LogWriter {
    pub files: Arc<dyn Files>,
    pub journal: Arc<Journal>,
    pub progress: Arc<LogProgress>,
    pub clock: Arc<Clock>,
    pub durability: Durability,
    /// The end of the log at the start.
    pub end: LogEnd,
    pub store: u128,
    pub segment_bytes: u64,
    /// The appender, or `None` until the first segment is created: a full disk must not prevent a store from being
    /// opened.
    pub appender: Option<LogAppender>,
    pub metrics: StoreMetrics,
    /// The time when the clock was last recorded.
    pub clock_recorded_at: Option<Instant>,
    /// The `synced_seq` that the log contains.
    pub logged_confirmed: u64,
    /// The time of the next attempt after a failure.
    pub retry_at: Option<Instant>,
    /// Once the thread was requested to end: the time at which it ends even if the disk has not confirmed everything.
    pub end_at: Option<Instant>,
}

impl Drop for LogWriter {
    fn drop(&mut self) {
        // However the thread ends, no caller may continue to wait for it.
        self.journal.close("the thread that writes the log has ended");
        self.progress.stop();
    }
}

impl LogWriter {
    /// Runs until the store is closed and everything appended is written or cannot be written.
    pub(super) fn run(mut self) {
        loop {
            let continued = self.progress.broken_segment().is_none_or(|broken| self.continue_in_new_segment(&broken));
            let crowded = self.progress.unconfirmed_bytes() > MAX_UNCONFIRMED_BYTES;
            if !continued || crowded {
                if self.journal.is_stopping() && self.should_give_up(continued) {
                    tracing::error!("the log could not be written before the store was closed");
                    return;
                }
                if self.retry_at.is_some() || crowded {
                    self.journal.pause(RETRY_AFTER);
                }
                continue;
            }
            let (group, stopping) = self.journal.take(Instant::now() + TICK);
            if let Some(group) = group {
                self.metrics.taken(group.writes, group.operations.len());
                if !self.write(group) {
                    continue;
                }
            } else {
                if stopping && !self.is_confirmed() {
                    continue;
                }
                self.record_confirmation();
                if stopping {
                    self.journal.close(CLOSED);
                    return;
                }
            }
            self.maintain_segments();
        }
    }

    /// Writes a group and acknowledges it, unless the acknowledgement has to wait for the disk. Returns whether the
    /// group is written.
    fn write(&mut self, mut group: Group) -> bool {
        if !group.operations.is_empty() {
            self.record_time(&mut group);
            if !self.append(group.sequence, group.operations, group.since) {
                self.journal.report_all_as_unknown();
                return false;
            }
        }
        let through = if self.durability == Durability::Always { self.progress.confirmed() } else { group.sequence };
        self.journal.acknowledge(through);
        true
    }

    /// Adds a reading of the clock to the group once a second. After a restart, it shows how much time has passed.
    fn record_time(&mut self, group: &mut Group) {
        if self.clock_recorded_at.is_none_or(|at| at.elapsed() >= RECORD_TIME_EVERY)
            && let Some(record) = self.clock.record()
        {
            let mut operations = LogOperations::of_store();
            operations.clock(record);
            group.operations.extend_from_slice(operations.bytes());
            self.clock_recorded_at = Some(Instant::now());
        }
    }

    fn append(&mut self, sequence: u64, payload: Vec<u8>, since: Instant) -> bool {
        let confirmed = self.progress.confirmed();
        let Some(appender) = &mut self.appender else { return false };
        let (at, before) = (position(appender), appender.current_number());
        let written = appender.append(sequence, confirmed, &payload).context("write", "the log");
        self.metrics.appended(written.is_ok());
        publish_rotation(&self.progress, appender, before);
        let frame = UnconfirmedFrame { sequence, payload: Arc::new(payload), since, at };
        match written {
            Ok(()) => {
                self.logged_confirmed = confirmed;
                self.progress.frame_written(frame);
                self.journal.written(|| self.progress.oldest_unconfirmed());
                true
            }
            Err(error) => {
                self.refuse(&error);
                self.progress.keep_unwritten(frame, error.to_string());
                false
            }
        }
    }

    /// Continues in a new segment and writes all unconfirmed frames into it again. Returns whether that succeeded.
    fn continue_in_new_segment(&mut self, broken: &BrokenSegment) -> bool {
        if self.retry_at.is_some_and(|at| Instant::now() < at) {
            return false;
        }
        let BrokenSegment { reason, confirmed, frames } = broken;
        let continued = match &mut self.appender {
            Some(appender) => {
                let cut = frames.first().map_or(position(appender), |frame| frame.at);
                let again: Vec<_> = frames.iter().map(|frame| (frame.sequence, frame.payload.as_slice())).collect();
                appender.continue_after((cut.segment, cut.offset), &again, *confirmed)
            }
            None => LogAppender::open(self.files.clone(), self.store, &mut self.end, self.segment_bytes)
                .map(|appender| self.appender = Some(appender)),
        };
        match (continued.context("continue", "the log"), &self.appender) {
            (Ok(()), Some(appender)) => {
                tracing::debug!(
                    segment = appender.current_number(),
                    after = reason,
                    "the log continues in a new segment"
                );
                let through = frames.last().map_or(*confirmed, |frame| frame.sequence);
                self.progress.continued(segment(appender), appender.current_file(), through);
                self.retry_at = None;
                self.journal.confirmed(|| self.progress.oldest_unconfirmed());
                self.journal.acknowledge(through);
                self.journal.admission.refuse(RefusalSource::Log, None);
                true
            }
            (Err(error), _) => {
                self.refuse(&error);
                self.retry_at = Some(Instant::now() + RETRY_AFTER);
                false
            }
            (Ok(()), None) => false,
        }
    }

    /// Begins another segment if one was requested, and has the next one created. If that fails, only what still fits
    /// is admitted.
    fn maintain_segments(&mut self) {
        if self.progress.broken_segment().is_some() || self.retry_at.is_some_and(|at| Instant::now() < at) {
            return;
        }
        let Some(appender) = &mut self.appender else { return };
        let before = appender.current_number();
        let rotated = if self.progress.wants_rotation() { appender.rotate() } else { Ok(()) };
        publish_rotation(&self.progress, appender, before);
        let made = match (rotated.context("rotate", "the log"), self.progress.take_spare()) {
            (Err(error), _) | (Ok(()), Some(Err(error))) => Err(error),
            (Ok(()), Some(Ok(spare))) => {
                if let Some(surplus) = appender.set_spare(spare) {
                    // It has no header. If it cannot be removed now, the next start removes it.
                    surplus.discard(&*self.files).ok();
                }
                Ok(())
            }
            // There is a spare segment, or none is needed yet.
            (Ok(()), None) if appender.spare_len() > 0 || appender.room() >= appender.segment_len() / 2 => Ok(()),
            (Ok(()), None) => {
                if !self.progress.is_spare_requested() {
                    let number = appender.take_number();
                    self.progress.request_spare(number, self.segment_bytes);
                }
                return;
            }
        };
        let room = appender.room().saturating_sub(SEGMENT_MARGIN);
        match made {
            Ok(()) => {
                self.journal.admission.limit(None);
                self.journal.admission.refuse(RefusalSource::Log, None);
                self.retry_at = None;
            }
            Err(error) => {
                self.journal.admission.limit(Some(room));
                self.refuse(&error);
                self.retry_at = Some(Instant::now() + RETRY_AFTER);
            }
        }
    }

    /// Waits, before the thread ends, a short time for the disk to confirm everything, so that the log can record it.
    /// Returns whether there is nothing more to wait for.
    fn is_confirmed(&mut self) -> bool {
        let deadline = self.deadline();
        self.progress.wait_for(self.progress.written(), CONFIRM_CHECK_EVERY) || Instant::now() >= deadline
    }

    /// Returns whether the thread should end although the log cannot be `continued` or the disk lags far behind. There
    /// is one more attempt, without delay, and the disk has some time to catch up.
    fn should_give_up(&mut self, continued: bool) -> bool {
        let is_last = self.end_at.is_some();
        let deadline = self.deadline();
        self.retry_at = None;
        !continued && is_last || Instant::now() >= deadline
    }

    /// Returns the time at which the thread ends even if the disk has not confirmed everything.
    fn deadline(&mut self) -> Instant {
        *self.end_at.get_or_insert_with(|| Instant::now() + CLOSE_CONFIRM_TIMEOUT)
    }

    /// Writes, when there is nothing else to write, an empty frame that records how far the log is confirmed. Without
    /// it nothing would prove that the last frames were synced.
    fn record_confirmation(&mut self) {
        let confirmed = self.progress.confirmed();
        if confirmed > self.logged_confirmed
            && confirmed == self.progress.written()
            && let Some(sequence) = self.journal.take_sequence()
        {
            self.append(sequence, Vec::new(), Instant::now());
            // The confirmation of this frame is not recorded in a further frame.
            self.logged_confirmed = sequence;
        }
    }

    fn refuse(&self, error: &StorageError) {
        let reason = format!(
            "{error}; what was counted is kept in memory, and writes are accepted again once the log can be written"
        );
        self.journal.admission.refuse(RefusalSource::Log, Some(reason));
    }
}

/// Returns the position of the next frame.
fn position(appender: &LogAppender) -> Position {
    let (segment, offset) = appender.end();
    Position { segment, offset }
}

fn segment(appender: &LogAppender) -> Segment {
    Segment { number: appender.current_number(), first: appender.first_seq(), bytes: appender.segment_len() }
}

/// Publishes the new segment to the other threads if the current segment is no longer `before`.
fn publish_rotation(progress: &LogProgress, appender: &mut LogAppender, before: u64) {
    if appender.current_number() != before {
        let sealed = appender.take_sealed().into_iter().map(|sealed| sealed.file).collect();
        progress.rotated(segment(appender), sealed, appender.current_file());
    }
}
