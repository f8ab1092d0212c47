//! The progress of the log: which frames are written, and which the disk has confirmed.
//!
//! A frame is *confirmed* when it and every frame before it are synced, with the directory entries of their
//! segments. Frames that are not confirmed are kept in memory, so that they can be written again after a failed sync.
//! This is necessary because the system may have dropped the bytes of the first attempt, and a later sync would succeed
//! without them.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};

use super::super::storage::damage::StorageError;
use super::super::storage::files::File;
use super::super::storage::log::SpareFile;

/// A position in the log: a segment and an offset in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Position {
    pub segment: u64,
    pub offset: u64,
}

/// A frame that is not confirmed.
#[derive(Clone, Debug)]
pub(super) struct UnconfirmedFrame {
    pub sequence: u64,
    pub payload: Arc<Vec<u8>>,
    /// The time when its first operation was appended to the journal.
    pub since: Instant,
    /// The position of its first byte.
    pub at: Position,
}

/// A segment of the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Segment {
    pub number: u64,
    /// The sequence of its first frame.
    pub first: u64,
    /// The bytes of disk that it takes.
    pub bytes: u64,
}

/// The reason why a new segment is needed, and the frames to write into it.
pub(super) struct BrokenSegment {
    pub reason: String,
    /// The sequence of the last confirmed frame. `frames` follow it.
    pub confirmed: u64,
    pub frames: Vec<UnconfirmedFrame>,
}

/// The files and frames that a sync has to cover.
pub(super) struct SyncTask {
    pub files: Vec<Arc<dyn File>>,
    /// Whether the log's directory has entries that are not synced.
    pub directory: bool,
    /// The sequence of the last frame covered.
    pub through: u64,
    epoch: u64,
}

#[derive(Debug)]
struct LogState {
    written: u64,
    confirmed: u64,
    unconfirmed: VecDeque<UnconfirmedFrame>,
    unconfirmed_bytes: usize,
    /// The segments with frames that are not synced, oldest first. The last one is the current one.
    files: Vec<Arc<dyn File>>,
    directory: bool,
    /// Whether a sync was requested and should begin at once.
    requested: bool,
    /// The reason why the current segment cannot be used: its unconfirmed frames must be written again, into a
    /// different segment.
    broken: Option<String>,
    /// Whether a sync failed. The files of that sync are not synced again.
    sync_failed: bool,
    /// Whether a new segment was requested.
    rotate: bool,
    /// A number that grows when the list of files to sync is replaced.
    epoch: u64,
    synced_at: Instant,
    segments: VecDeque<Segment>,
    spare: SpareSegment,
    stopped: bool,
}

/// The file of the next segment, passed from the thread that creates it to the thread that uses it.
#[derive(Debug)]
enum SpareSegment {
    None,
    Wanted { number: u64, bytes: u64 },
    BeingCreated,
    Created(Result<SpareFile, StorageError>),
}

/// The work of the thread that syncs.
pub(super) enum Work {
    Sync(SyncTask),
    CreateSpare { number: u64, bytes: u64 },
}

/// The progress of the log. See the [module](self).
#[derive(Debug)]
pub(super) struct LogProgress {
    state: Mutex<LogState>,
    /// Notified when there is something to sync.
    work: Condvar,
    /// Notified when frames were confirmed or segments were added.
    advanced: Condvar,
}

impl LogProgress {
    /// Creates the progress of a log that ends with the frame `written` and is confirmed up to `confirmed`. The frames
    /// after that are `unconfirmed`.
    pub(super) fn new(
        written: u64,
        confirmed: u64,
        unconfirmed: VecDeque<UnconfirmedFrame>,
        segments: VecDeque<Segment>,
    ) -> Self {
        let unconfirmed_bytes = unconfirmed.iter().map(|frame| frame.payload.len()).sum();
        let state = LogState {
            written,
            confirmed,
            unconfirmed,
            unconfirmed_bytes,
            files: Vec::new(),
            directory: false,
            requested: false,
            broken: Some("the log has no segment to write to yet".to_owned()),
            sync_failed: false,
            rotate: false,
            epoch: 0,
            synced_at: Instant::now(),
            segments,
            spare: SpareSegment::None,
            stopped: false,
        };
        Self { state: Mutex::new(state), work: Condvar::new(), advanced: Condvar::new() }
    }

    /// Returns the reason why a new segment is needed, if one is, with all unconfirmed frames, which have to be written
    /// into it.
    pub(super) fn broken_segment(&self) -> Option<BrokenSegment> {
        let state = self.state.lock();
        let reason = state.broken.clone()?;
        Some(BrokenSegment { reason, confirmed: state.confirmed, frames: state.unconfirmed.iter().cloned().collect() })
    }

    /// Records that everything up to `through` was written into a new segment and synced, including the segment's
    /// directory entry.
    pub(super) fn continued(&self, segment: Segment, file: Arc<dyn File>, through: u64) {
        let mut state = self.state.lock();
        state.files = vec![file];
        state.directory = false;
        state.epoch += 1;
        state.broken = None;
        state.sync_failed = false;
        state.segments.push_back(segment);
        state.written = state.written.max(through);
        confirm(&mut state, through);
        self.advanced.notify_all();
    }

    /// Records that a frame could not be written. The frame is kept, to be written again.
    pub(super) fn keep_unwritten(&self, frame: UnconfirmedFrame, reason: String) {
        let mut state = self.state.lock();
        state.broken = Some(reason);
        state.unconfirmed_bytes += frame.payload.len();
        state.unconfirmed.push_back(frame);
    }

    /// Records that a frame was written.
    pub(super) fn frame_written(&self, frame: UnconfirmedFrame) {
        let mut state = self.state.lock();
        state.written = frame.sequence;
        state.unconfirmed_bytes += frame.payload.len();
        state.unconfirmed.push_back(frame);
        self.work.notify_one();
    }

    /// Records that the log continues in a new segment, and that the segments before it are `sealed`.
    pub(super) fn rotated(&self, segment: Segment, sealed: Vec<Arc<dyn File>>, current: Arc<dyn File>) {
        let mut state = self.state.lock();
        // `sealed` begins with the segment that was the current one.
        state.files.pop();
        state.files.extend(sealed);
        state.files.push(current);
        state.directory = true;
        state.rotate = false;
        state.segments.push_back(segment);
        self.work.notify_one();
        self.advanced.notify_all();
    }

    /// Returns the sequence of the last frame written.
    pub(super) fn written(&self) -> u64 {
        self.state.lock().written
    }

    /// Returns the sequence of the last confirmed frame.
    pub(super) fn confirmed(&self) -> u64 {
        self.state.lock().confirmed
    }

    /// Returns the bytes of unconfirmed frames, which are kept in memory.
    pub(super) fn unconfirmed_bytes(&self) -> usize {
        self.state.lock().unconfirmed_bytes
    }

    /// Returns the time when the first operation of the oldest unconfirmed frame was appended.
    pub(super) fn oldest_unconfirmed(&self) -> Option<Instant> {
        self.state.lock().unconfirmed.front().map(|frame| frame.since)
    }

    /// Waits for work. With `every`, a sync is due at the earliest this long after the last one, unless it is
    /// requested. Returns `None` when the thread has to end. Called by the thread that syncs.
    pub(super) fn next_work(&self, every: Option<Duration>) -> Option<Work> {
        let mut state = self.state.lock();
        loop {
            if let SpareSegment::Wanted { number, bytes } = state.spare {
                state.spare = SpareSegment::BeingCreated;
                return Some(Work::CreateSpare { number, bytes });
            }
            if state.written > state.confirmed && !state.sync_failed {
                let wait = every.map(|every| every.saturating_sub(state.synced_at.elapsed())).unwrap_or_default();
                if state.requested || wait.is_zero() {
                    break;
                }
                self.work.wait_for(&mut state, wait);
            } else if state.stopped {
                return None;
            } else {
                self.work.wait(&mut state);
            }
        }
        state.requested = false;
        state.synced_at = Instant::now();
        let directory = std::mem::take(&mut state.directory);
        Some(Work::Sync(SyncTask { files: state.files.clone(), directory, through: state.written, epoch: state.epoch }))
    }

    /// Returns whether the file of the next segment was requested or created, and not yet taken.
    pub(super) fn is_spare_requested(&self) -> bool {
        !matches!(self.state.lock().spare, SpareSegment::None)
    }

    /// Requests a file for the next segment.
    pub(super) fn request_spare(&self, number: u64, bytes: u64) {
        self.state.lock().spare = SpareSegment::Wanted { number, bytes };
        self.work.notify_one();
    }

    /// Records that the file was created, or that its creation failed.
    pub(super) fn spare_created(&self, made: Result<SpareFile, StorageError>) {
        self.state.lock().spare = SpareSegment::Created(made);
    }

    /// Takes the file, if it is ready.
    pub(super) fn take_spare(&self) -> Option<Result<SpareFile, StorageError>> {
        let mut state = self.state.lock();
        match std::mem::replace(&mut state.spare, SpareSegment::None) {
            SpareSegment::Created(made) => Some(made),
            other => {
                state.spare = other;
                None
            }
        }
    }

    /// Records that a sync succeeded. Returns `false` if the segments were replaced in the meantime, so that the sync
    /// confirms nothing.
    pub(super) fn synced(&self, due: &SyncTask) -> bool {
        let mut state = self.state.lock();
        let current = state.epoch == due.epoch;
        if current {
            // Segments added in the meantime stay, and so does the current one.
            let sealed = due.files.len().saturating_sub(1);
            state.files.drain(..sealed);
            confirm(&mut state, due.through);
            self.advanced.notify_all();
        }
        current
    }

    /// Records that a sync failed.
    pub(super) fn sync_failed(&self, due: &SyncTask, reason: String) {
        let mut state = self.state.lock();
        if state.epoch == due.epoch {
            state.broken = Some(reason);
            state.sync_failed = true;
            self.advanced.notify_all();
        }
    }

    /// Requests a sync and waits until a frame is confirmed. Returns `false` if that does not happen within `timeout`,
    /// or cannot happen because the log is no longer written.
    pub(super) fn wait_for(&self, sequence: u64, timeout: Duration) -> bool {
        let deadline = Instant::now() + timeout;
        let mut state = self.state.lock();
        while state.confirmed < sequence {
            if state.stopped && (state.broken.is_some() || state.written < sequence) {
                return false;
            }
            state.requested = true;
            self.work.notify_one();
            if self.advanced.wait_until(&mut state, deadline).timed_out() {
                return state.confirmed >= sequence;
            }
        }
        true
    }

    /// Waits until nothing more is written and everything written is confirmed. Returns `false` if that does not happen
    /// within `timeout`, or cannot happen because the last frames could not be written or synced.
    pub(super) fn wait_for_end(&self, timeout: Duration) -> bool {
        let deadline = Instant::now() + timeout;
        let mut state = self.state.lock();
        while !state.stopped || state.confirmed < state.written {
            let failed = state.stopped && state.broken.is_some();
            if failed || self.advanced.wait_until(&mut state, deadline).timed_out() {
                return false;
            }
        }
        state.broken.is_none()
    }

    /// Requests a new segment. Returns the number of the current one.
    pub(super) fn request_rotation(&self) -> u64 {
        let mut state = self.state.lock();
        state.rotate = true;
        state.segments.back().map_or(0, |segment| segment.number)
    }

    /// Returns whether a new segment was requested.
    pub(super) fn wants_rotation(&self) -> bool {
        self.state.lock().rotate
    }

    /// Waits for up to `timeout` until there is a segment after `number`.
    pub(super) fn wait_for_segment_after(&self, number: u64, timeout: Duration) -> Option<Segment> {
        let deadline = Instant::now() + timeout;
        let mut state = self.state.lock();
        loop {
            if let Some(segment) = state.segments.iter().find(|segment| segment.number > number) {
                return Some(*segment);
            }
            if state.stopped || self.advanced.wait_until(&mut state, deadline).timed_out() {
                return None;
            }
        }
    }

    /// Returns the segments, oldest first.
    pub(super) fn segments(&self) -> Vec<Segment> {
        self.state.lock().segments.iter().copied().collect()
    }

    /// Returns the segment that contains a sequence, if it still exists.
    pub(super) fn segment_of(&self, sequence: u64) -> Option<Segment> {
        let state = self.state.lock();
        state.segments.iter().rev().find(|segment| segment.first <= sequence).copied()
    }

    /// Removes and returns the segments before `number`, which are no longer needed.
    pub(super) fn remove_segments_before(&self, number: u64) -> Vec<Segment> {
        let mut state = self.state.lock();
        let keep = state.segments.iter().position(|segment| segment.number >= number).unwrap_or(0);
        state.segments.drain(..keep).collect()
    }

    /// Records that nothing more is written. Everything written is synced, then the thread that syncs ends.
    pub(super) fn stop(&self) {
        let mut state = self.state.lock();
        state.stopped = true;
        state.requested = true;
        self.work.notify_one();
        self.advanced.notify_all();
    }
}

fn confirm(state: &mut LogState, through: u64) {
    state.confirmed = state.confirmed.max(through);
    while state.unconfirmed.front().is_some_and(|frame| frame.sequence <= state.confirmed) {
        if let Some(frame) = state.unconfirmed.pop_front() {
            state.unconfirmed_bytes -= frame.payload.len();
        }
    }
}
