//! The thread that makes checkpoints. It also does everything else with files except the log: it installs manifests,
//! deletes files that are no longer needed, measures free space and makes backups.
//!
//! A checkpoint is fuzzy: the board is walked in portions while writes continue. Operations are absolute, so a state
//! that contains any of the changes made during the walk becomes correct when the log is applied from the start of the
//! walk, provided that the log is complete up to the end of the walk. So the manifest is installed only after the disk
//! has confirmed the log up to that end. Otherwise a crash could keep amounts whose ids were lost, and retries would
//! count twice.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};

use tokio::sync::oneshot;

use super::super::boards::{Boards, LiveBoard};
use super::super::clock::Clock;
use super::super::metrics::StoreMetrics;
use super::super::options::Pace;
use super::super::storage::checkpoint::{CHECKPOINTS, IDS};
use super::super::storage::damage::{Context, StorageError};
use super::super::storage::files::Files;
use super::super::storage::log::{LogStart, segment_name};
use super::super::storage::manifest::{BoardEntry, ClockRecord, MANIFEST, Manifest};
use super::journal::Journal;
use super::log_progress::LogProgress;
use super::space::FreeSpace;
use crate::board::Generation;
use crate::store::{BackedUp, Result as StoreResult};

/// The interval between measurements of the free space.
const MEASURE_SPACE_EVERY: Duration = Duration::from_millis(100);
/// The interval at which a manifest records how far the log was confirmed, while it grows. If the end of the log is
/// lost, this record makes the loss detectable.
const RECORD_CONFIRMED_EVERY: Duration = Duration::from_secs(30);
/// The time to wait for the disk to confirm the log.
const CONFIRM_TIMEOUT: Duration = Duration::from_secs(30);
/// The time to wait after a failure.
const RETRY_AFTER: Duration = Duration::from_secs(2);
/// An estimate of the size of a checkpoint: it has at most this many times the bytes that the log has of the same
/// subjects.
const LOG_TO_CHECKPOINT: u64 = 2;
/// The log of a store must be at least this many times [`Pace::log_bytes`] before boards are checkpointed to shorten
/// it.
const LOG_SHARE: u64 = 4;
/// The largest number of segments before boards are checkpointed to reduce it. Each start of the store begins a
/// segment.
const MAX_SEGMENTS: usize = 64;

/// The number of times [`Pace::age`] by which the checkpoint of a large board may be delayed.
const LARGE_BOARD_DELAY: u32 = 24;

/// A request to the thread.
#[derive(Debug)]
pub(super) enum Command {
    /// Some files are no longer needed.
    DeleteUnneeded,
    BackUp(oneshot::Sender<StoreResult<BackedUp>>),
    Stop,
}

/// The state of the thread.
#[derive(Debug)]
pub(super) struct Checkpointer {
    pub(super) files: Arc<dyn Files>,
    pub(super) journal: Arc<Journal>,
    pub(super) progress: Arc<LogProgress>,
    boards: Arc<Boards>,
    clock: Arc<Clock>,
    /// The manifest that is on the disk. Its boards are ordered by generation.
    pub(super) manifest: Manifest,
    pace: Pace,
    pub(super) backup_dir: Option<PathBuf>,
    commands: mpsc::Receiver<Command>,
    metrics: StoreMetrics,
    space: FreeSpace,
    measured: Option<Instant>,
    /// The time when the manifest was installed.
    installed: Instant,
    has_unneeded_files: bool,
    retry_at: Option<Instant>,
    /// The number of the next file.
    pub(super) next_file: u64,
    /// For each board, the first sequence of its log and the time when this sequence was first seen.
    ages: BTreeMap<Generation, (u64, Instant)>,
}

/// The reason why a checkpoint was not made.
#[derive(Debug, thiserror::Error)]
pub(super) enum CheckpointError {
    #[error(transparent)]
    Storage(#[from] StorageError),
    #[error("the log was not confirmed by the disk in time")]
    NotConfirmed,
    #[error("the board was removed, or the store is being closed")]
    Abandoned,
}

impl Checkpointer {
    pub(super) fn new(
        files: &Arc<dyn Files>,
        journal: &Arc<Journal>,
        progress: &Arc<LogProgress>,
        boards: &Arc<Boards>,
        clock: &Arc<Clock>,
        (mut manifest, pace, backup_dir): (Manifest, Pace, Option<PathBuf>),
        commands: mpsc::Receiver<Command>,
    ) -> Self {
        manifest.boards.sort_unstable_by_key(|entry| entry.generation);
        let number = |file: &str| {
            let stem = file.rsplit_once('.')?.0;
            stem.rsplit_once('-')?.1.parse::<u64>().ok()
        };
        let names = [CHECKPOINTS, IDS].into_iter().flat_map(|directory| files.list(directory).unwrap_or_default());
        let next_file = names.filter_map(|name| number(&name)).max().unwrap_or(0) + 1;
        Self {
            files: files.clone(),
            journal: journal.clone(),
            progress: progress.clone(),
            boards: boards.clone(),
            clock: clock.clone(),
            manifest,
            pace,
            backup_dir,
            commands,
            metrics: StoreMetrics::new(),
            space: FreeSpace::default(),
            measured: None,
            installed: Instant::now(),
            // A crash may have left files that no manifest names.
            has_unneeded_files: true,
            retry_at: None,
            next_file,
            ages: BTreeMap::new(),
        }
    }

    /// Runs until the store is closed.
    pub(super) fn run(mut self) {
        loop {
            match self.commands.recv_timeout(self.pace.tick) {
                Ok(Command::DeleteUnneeded) => self.has_unneeded_files = true,
                Ok(Command::BackUp(sender)) => {
                    sender.send(self.back_up()).ok();
                }
                Ok(Command::Stop) | Err(mpsc::RecvTimeoutError::Disconnected) => return,
                Err(mpsc::RecvTimeoutError::Timeout) => {}
            }
            self.measure_space();
            if self.retry_at.is_some_and(|at| Instant::now() < at) {
                continue;
            }
            let made = match self.next_due() {
                Some(live) => self.checkpoint(&live),
                None if self.has_unneeded_files || self.has_expired_ids() || self.is_manifest_old() => {
                    self.install(None, 0)
                }
                None => continue,
            };
            match made {
                Ok(()) => self.retry_at = None,
                Err(CheckpointError::Abandoned) => {}
                Err(error) => {
                    tracing::warn!(%error, "a checkpoint failed; it will be retried");
                    self.retry_at = Some(Instant::now() + RETRY_AFTER);
                }
            }
        }
    }

    /// Returns the last reading of the clock that may be recorded.
    pub(super) fn recorded(&self) -> Option<ClockRecord> {
        self.clock.record().map(Into::into).or(self.manifest.clock.clone())
    }

    /// Returns the bytes that the next checkpoint and the next segments of the log may take.
    fn needed_bytes(&self) -> u64 {
        let boards = self.boards.read();
        let largest =
            boards.values().map(|live| self.checkpoint_bytes(live) + LOG_TO_CHECKPOINT * live.logged.bytes()).max();
        let segment = self.progress.segments().last().map_or(0, |segment| segment.bytes);
        largest.unwrap_or(0) + 2 * segment
    }

    fn measure_space(&mut self) {
        if self.measured.is_none_or(|at| at.elapsed() >= MEASURE_SPACE_EVERY) {
            self.measured = Some(Instant::now());
            let needed = self.needed_bytes();
            self.space.measure(&*self.files, &self.journal, &self.metrics, needed);
            self.metrics.log(self.log_bytes(), self.journal.admission.unconfirmed_for());
        }
    }

    fn log_bytes(&self) -> u64 {
        self.progress.segments().iter().map(|segment| segment.bytes).sum()
    }

    /// Returns the bytes of a board's last checkpoint.
    fn checkpoint_bytes(&self, live: &LiveBoard) -> u64 {
        let entry = self.entry(live.board.generation());
        entry.map_or(0, |entry| entry.files().map(|(_, bytes, _)| bytes).sum())
    }

    pub(super) fn entry(&self, generation: Generation) -> Option<&BoardEntry> {
        let boards = &self.manifest.boards;
        let at = boards.binary_search_by_key(&generation.0, |entry| entry.generation).ok()?;
        boards.get(at)
    }

    /// Returns the board to checkpoint next, if any.
    fn next_due(&mut self) -> Option<Arc<LiveBoard>> {
        let boards: Vec<_> = self.boards.read().values().cloned().collect();
        let logged = || boards.iter().filter(|live| live.logged.first().is_some());
        // First, the board whose log has grown most in relation to its checkpoint.
        let ratio = |live: &Arc<LiveBoard>| {
            let most = self.checkpoint_bytes(live).max(self.pace.log_bytes).max(1);
            (live.logged.bytes() as f64 / most as f64, live.clone())
        };
        let (most, live) = logged().map(ratio).max_by(|a, b| a.0.total_cmp(&b.0))?;
        if most > 1.0 {
            return Some(live);
        }
        // Then, if the log as a whole is large, the board that prevents the deletion of the most segments.
        let state: u64 = boards.iter().map(|live| self.checkpoint_bytes(live)).sum();
        let segments = self.progress.segments();
        let oldest = logged().min_by_key(|live| live.logged.first())?;
        let holds_up = segments.get(1).is_some_and(|second| oldest.logged.first().is_some_and(|at| at < second.first));
        let is_large = self.log_bytes() > state.max(LOG_SHARE * self.pace.log_bytes) || segments.len() > MAX_SEGMENTS;
        if holds_up && (is_large || self.space.is_getting_short(self.needed_bytes())) {
            return Some(oldest.clone());
        }
        self.next_by_age(&boards)
    }

    /// Returns a board whose part of the log is old.
    fn next_by_age(&mut self, boards: &[Arc<LiveBoard>]) -> Option<Arc<LiveBoard>> {
        let mut ages = BTreeMap::new();
        let mut found = None;
        for live in boards {
            let (Some(first), generation) = (live.logged.first(), live.board.generation()) else { continue };
            let seen = self.ages.get(&generation).filter(|(of, _)| *of == first).copied();
            let (_, since) = *ages.entry(generation).or_insert(seen.unwrap_or((first, Instant::now())));
            // A large board is not written again for a few records.
            let delay = if self.checkpoint_bytes(live) > self.pace.log_bytes { LARGE_BOARD_DELAY } else { 1 };
            if since.elapsed() >= self.pace.age.saturating_mul(delay) {
                found = Some(live.clone());
            }
        }
        self.ages = ages;
        found
    }

    /// Returns whether the log was confirmed further than the manifest records, and the manifest is old.
    fn is_manifest_old(&self) -> bool {
        self.installed.elapsed() >= RECORD_CONFIRMED_EVERY
            && self.progress.confirmed() > self.manifest.log_start.synced_seq
    }

    /// Returns whether a file contains only ids whose horizon has passed.
    fn has_expired_ids(&self) -> bool {
        let boards = self.boards.read();
        boards.values().any(|live| {
            let Some(entry) = self.entry(live.board.generation()) else { return false };
            let expired = |horizon: i64| entry.ids.iter().any(|bucket| bucket.newest <= horizon);
            !entry.ids.is_empty() && expired(expired_through(live))
        })
    }

    /// Writes a board's state in memory, and installs a manifest that names it.
    fn checkpoint(&mut self, live: &Arc<LiveBoard>) -> Result<(), CheckpointError> {
        let started = Instant::now();
        let (from, taken) = {
            let tables = live.tables.lock();
            if tables.removed {
                return Err(CheckpointError::Abandoned);
            }
            (self.journal.next_sequence(), live.logged.reset())
        };
        let made = self.write(live, from).and_then(|written| {
            let bytes = written.entry.checkpoint.as_ref().map_or(0, |file| file.bytes);
            self.install(Some(written.entry), written.through)?;
            Ok(bytes)
        });
        match made {
            Ok(bytes) => {
                let took = started.elapsed();
                self.metrics.checkpoint(bytes, took);
                tracing::debug!(board = %live.board.name(), bytes, took_ms = took.as_millis() as u64, "checkpoint");
                Ok(())
            }
            Err(error) => {
                let mut tables = live.tables.lock();
                for number in 0..tables.track_count() {
                    tables.track(number).holdings.end_walk();
                }
                live.logged.restore(taken);
                drop(tables);
                // If only the installation of the manifest failed, the manifest on the disk may name the new file. So
                // the file is not deleted here, but after the next installation.
                self.has_unneeded_files = true;
                Err(error)
            }
        }
    }

    /// Installs a manifest of the current boards, with `replaced` for one of them, and deletes files that are no longer
    /// needed. Waits first until the disk has confirmed the log up to `through`.
    fn install(&mut self, replaced: Option<BoardEntry>, through: u64) -> Result<(), CheckpointError> {
        // The list of boards includes all definitions and removals in frames up to `catalog_seq`, because boards are
        // added and removed under this lock. Of the frame that is being gathered it includes a part, and the rest is
        // still to be applied.
        let (catalog_seq, boards) = {
            let boards = self.boards.read();
            (self.journal.next_sequence() - 1, boards.values().cloned().collect::<Vec<_>>())
        };
        let mut entries = Vec::with_capacity(boards.len());
        for live in &boards {
            let generation = live.board.generation();
            let known = replaced.as_ref().filter(|entry| entry.generation == generation.0);
            let mut entry = match known.or(self.entry(generation)) {
                Some(entry) => entry.clone(),
                None => BoardEntry {
                    name: live.board.name().to_string(),
                    generation: generation.0,
                    definition: definition(live)?,
                    from_seq: 0,
                    checkpoint: None,
                    ids: Vec::new(),
                },
            };
            let expired = expired_through(live);
            entry.ids.retain(|bucket| bucket.newest > expired);
            entries.push(entry);
        }
        entries.sort_unstable_by_key(|entry| entry.generation);
        // A board that has no operations in the log so far can only get some in later frames. The board's lock is
        // needed here: an append and its note in `logged` are a single step only for callers that hold it.
        let logged = |live: &Arc<LiveBoard>| {
            let _tables = live.tables.lock();
            live.logged.first()
        };
        let first = boards.iter().filter_map(logged).fold(catalog_seq + 1, u64::min);
        let must_reach = through.max(self.journal.last_sequence());
        self.journal.wake();
        if !self.progress.wait_for(must_reach, CONFIRM_TIMEOUT) {
            return Err(CheckpointError::NotConfirmed);
        }
        // Only segments with a confirmed frame are used: a segment without one may be abandoned, and the log may
        // continue in a different one.
        let log_start = self.progress.segment_of(first.min(must_reach));
        let manifest = Manifest {
            clock: self.recorded(),
            simulated_clock: self.clock.simulated().map(|now| now.millis()),
            log_start: LogStart {
                segment: log_start.map_or(self.manifest.log_start.segment, |segment| segment.number),
                seq: log_start.map_or(self.manifest.log_start.seq, |segment| segment.first),
                synced_seq: must_reach,
            },
            catalog_seq,
            boards: entries,
            ..self.manifest.clone()
        };
        manifest.install(&*self.files)?;
        self.manifest = manifest;
        self.installed = Instant::now();
        self.has_unneeded_files = !self.delete_unneeded_files();
        Ok(())
    }

    /// Deletes files that the manifest does not name. Returns whether all of them were deleted.
    fn delete_unneeded_files(&self) -> bool {
        let mut all = true;
        let mut remove = |name: &str| {
            if let Err(error) = self.files.remove(name)
                && error.kind() != std::io::ErrorKind::NotFound
            {
                tracing::debug!(%error, name, "cannot delete an unneeded file");
                all = false;
            }
        };
        let named: BTreeSet<&str> =
            self.manifest.boards.iter().flat_map(BoardEntry::files).map(|(name, _, _)| name).collect();
        for directory in [CHECKPOINTS, IDS] {
            for name in self.files.list(directory).unwrap_or_default() {
                let name = format!("{directory}/{name}");
                if !named.contains(name.as_str()) {
                    remove(&name);
                }
            }
        }
        for segment in self.progress.remove_segments_before(self.manifest.log_start.segment) {
            remove(&segment_name(segment.number));
        }
        all
    }
}

/// Returns the time such that ids which arrived at or before it are past the board's horizon.
fn expired_through(live: &LiveBoard) -> i64 {
    let tables = live.tables.lock();
    tables.ids.expired_through(tables.now.millis())
}

pub(super) fn definition(live: &LiveBoard) -> Result<serde_json::Value, StorageError> {
    serde_json::to_value(live.board.definition()).map_err(std::io::Error::other).context("encode", MANIFEST)
}
