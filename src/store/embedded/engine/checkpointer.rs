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
use super::super::rows::StoredRows;
use super::super::storage::checkpoint::{CHECKPOINTS, IDS};
use super::super::storage::damage::{Context, StorageError};
use super::super::storage::files::Files;
use super::super::storage::log::{LogStart, segment_name};
use super::super::storage::manifest::{BoardEntry, ClockRecord, EditionsEntry, MANIFEST, Manifest};
use super::files_work::{FilesWork, Task};
use super::journal::Journal;
use super::log_progress::LogProgress;
use super::space::FreeSpace;
use crate::board::{Board, Generation};
use crate::store::{BackedUp, Result as StoreResult};

/// The interval between measurements of the free space.
const MEASURE_SPACE_EVERY: Duration = Duration::from_millis(100);
/// The time to wait for the disk to confirm the log.
const CONFIRM_TIMEOUT: Duration = Duration::from_secs(30);
/// The time to wait after a failure.
const RETRY_AFTER: Duration = Duration::from_secs(2);
/// An estimate of the size of a checkpoint: it has at most this many times the bytes that the log has of the same
/// subjects.
const LOG_TO_CHECKPOINT: u64 = 2;

/// A request to the thread.
#[derive(Debug)]
pub(super) enum Command {
    BackUp(oneshot::Sender<StoreResult<BackedUp>>),
    Stop,
}

/// The state of the thread.
#[derive(Debug)]
pub(super) struct Checkpointer {
    pub(super) files: Arc<dyn Files>,
    pub(super) journal: Arc<Journal>,
    pub(super) progress: Arc<LogProgress>,
    pub(super) boards: Arc<Boards>,
    rows: Arc<StoredRows>,
    clock: Arc<Clock>,
    /// The manifest that is on the disk. Its boards are ordered by generation.
    pub(super) manifest: Manifest,
    pub(super) pace: Pace,
    pub(super) backup_dir: Option<PathBuf>,
    commands: mpsc::Receiver<Command>,
    pub(super) work: Arc<FilesWork>,
    metrics: StoreMetrics,
    pub(super) space: FreeSpace,
    measured: Option<Instant>,
    /// The time when the manifest was installed.
    pub(super) installed: Instant,
    retry_at: Option<Instant>,
    /// The number of the next file.
    pub(super) next_file: u64,
    /// For each board, the first sequence of its log and the time when this sequence was first seen.
    pub(super) ages: BTreeMap<Generation, (u64, Instant)>,
}

/// The reason why a checkpoint was not made.
#[derive(Debug, thiserror::Error)]
pub(super) enum CheckpointError {
    #[error(transparent)]
    Storage(#[from] StorageError),
    #[error("the log was not confirmed by the disk in time")]
    NotConfirmed,
    #[error("the board was removed or got other editions, or the store is being closed")]
    Abandoned,
}

impl Checkpointer {
    pub(super) fn new(
        files: &Arc<dyn Files>,
        journal: &Arc<Journal>,
        progress: &Arc<LogProgress>,
        (boards, rows): (&Arc<Boards>, &Arc<StoredRows>),
        clock: &Arc<Clock>,
        (mut manifest, pace, backup_dir): (Manifest, Pace, Option<PathBuf>),
        (commands, work): (mpsc::Receiver<Command>, &Arc<FilesWork>),
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
            rows: rows.clone(),
            clock: clock.clone(),
            manifest,
            pace,
            backup_dir,
            commands,
            work: work.clone(),
            metrics: StoreMetrics::new(),
            space: FreeSpace::default(),
            measured: None,
            installed: Instant::now(),
            retry_at: None,
            next_file,
            ages: BTreeMap::new(),
        }
    }

    /// Runs until the store is closed.
    pub(super) fn run(mut self) {
        loop {
            self.work.begin(Task::None);
            match self.commands.recv_timeout(self.pace.tick) {
                Ok(Command::BackUp(sender)) => {
                    self.work.begin(Task::Backup);
                    sender.send(self.back_up()).ok();
                }
                Ok(Command::Stop) | Err(mpsc::RecvTimeoutError::Disconnected) => return self.record_end_of_log(),
                Err(mpsc::RecvTimeoutError::Timeout) => {}
            }
            if self.journal.is_stopping() {
                // The next start does what is left. Only the end of the log is still to be recorded.
                continue;
            }
            self.measure_space();
            if self.retry_at.is_some_and(|at| Instant::now() < at) {
                continue;
            }
            let made = match self.next_due() {
                Some(live) => self.checkpoint(&live),
                None if self.work.is_manifest_outdated() || self.has_expired_ids() || self.is_manifest_old() => {
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

    /// Installs, when the store is closed, a manifest with the end of the log, so that a later start finds out if any
    /// of it is missing. After a stop that could not complete the log, the manifest stays as it is.
    fn record_end_of_log(mut self) {
        if self.progress.wait_for_end(CONFIRM_TIMEOUT)
            && self.progress.confirmed() > self.manifest.log_start.synced_seq
            && let Err(error) = self.install(None, 0)
        {
            tracing::warn!(%error, "the manifest does not record the end of the log");
        }
    }

    /// Returns the last reading of the clock that may be recorded.
    pub(super) fn recorded(&self) -> Option<ClockRecord> {
        self.clock.record().map(Into::into).or(self.manifest.clock.clone())
    }

    /// Returns the bytes that the next checkpoint, the rows in the next manifest and the next segments of the log may
    /// take.
    pub(super) fn needed_bytes(&self) -> u64 {
        let boards = self.boards.read();
        let largest =
            boards.values().map(|live| self.checkpoint_bytes(live) + LOG_TO_CHECKPOINT * live.logged.bytes()).max();
        let segment = self.progress.segments().last().map_or(0, |segment| segment.bytes);
        largest.unwrap_or(0) + 2 * segment + self.rows.bytes()
    }

    fn measure_space(&mut self) {
        if self.measured.is_none_or(|at| at.elapsed() >= MEASURE_SPACE_EVERY) {
            self.measured = Some(Instant::now());
            let needed = self.needed_bytes();
            self.space.measure(&*self.files, &self.journal, &self.metrics, needed);
            self.metrics.log(self.log_bytes(), self.journal.admission.unconfirmed_for());
        }
    }

    pub(super) fn log_bytes(&self) -> u64 {
        self.progress.segments().iter().map(|segment| segment.bytes).sum()
    }

    /// Returns the bytes of a board's last checkpoint.
    pub(super) fn checkpoint_bytes(&self, live: &LiveBoard) -> u64 {
        let entry = self.entry(live.generation());
        entry.map_or(0, |entry| entry.files().map(|(_, bytes, _)| bytes).sum())
    }

    pub(super) fn entry(&self, generation: Generation) -> Option<&BoardEntry> {
        let boards = &self.manifest.boards;
        let at = boards.binary_search_by_key(&generation.0, |entry| entry.generation).ok()?;
        boards.get(at)
    }

    /// Writes a board's state in memory, and installs a manifest that names it.
    fn checkpoint(&mut self, live: &Arc<LiveBoard>) -> Result<(), CheckpointError> {
        let started = Instant::now();
        self.work.begin(Task::Checkpoint);
        let (board, from, taken) = {
            let state = live.state.lock();
            if state.removed {
                return Err(CheckpointError::Abandoned);
            }
            (state.board.clone(), self.journal.next_sequence(), live.logged.reset())
        };
        let made = self.write(live, &board, from).and_then(|written| {
            let bytes = written.entry.checkpoint.as_ref().map_or(0, |file| file.bytes);
            self.install(Some(written.entry), written.through)?;
            Ok(bytes)
        });
        match made {
            Ok(bytes) => {
                let took = started.elapsed();
                self.metrics.checkpoint(bytes, took);
                tracing::debug!(board = %board.name(), bytes, took_ms = took.as_millis() as u64, "checkpoint");
                Ok(())
            }
            Err(error) => {
                let mut state = live.state.lock();
                state.tracks.iter_mut().for_each(|data| data.holdings.end_walk());
                live.logged.restore(taken);
                drop(state);
                // If only the installation of the manifest failed, the manifest on the disk may name the new file. So
                // the file is not deleted here, but after the next installation.
                self.work.manifest_outdated();
                Err(error)
            }
        }
    }

    /// Installs a manifest of the current boards, with `replaced` for one of them, and deletes files that are no longer
    /// needed. Waits first until the disk has confirmed the log up to `through`.
    fn install(&mut self, replaced: Option<BoardEntry>, through: u64) -> Result<(), CheckpointError> {
        self.work.begin(Task::Manifest);
        // Boards that are removed from here on may be in the list below, and need a further manifest.
        let outdated = self.work.take_outdated();
        let installed = self.install_current(replaced, through);
        if installed.is_err() && outdated {
            self.work.manifest_outdated();
        }
        installed
    }

    fn install_current(&mut self, replaced: Option<BoardEntry>, through: u64) -> Result<(), CheckpointError> {
        // The list of boards includes all definitions and removals in frames up to `catalog_seq`, because boards are
        // added and removed under this lock. Of the frame that is being gathered it includes a part, and the rest is
        // still to be applied.
        let (catalog_seq, boards) = {
            let boards = self.boards.read();
            (self.journal.next_sequence() - 1, boards.values().cloned().collect::<Vec<_>>())
        };
        let mut entries = Vec::with_capacity(boards.len());
        for live in &boards {
            let generation = live.generation();
            let known = replaced.as_ref().filter(|entry| entry.generation == generation.0);
            let mut entry = match known.or(self.entry(generation)) {
                Some(entry) => entry.clone(),
                // The log contains everything, also how the board got its editions. It has them already: they are
                // listed after that, and it is confirmed below.
                None => entry_of(&live.board())?,
            };
            let expired = expired_through(live);
            entry.ids.retain(|bucket| bucket.newest > expired);
            entries.push(entry);
        }
        entries.sort_unstable_by_key(|entry| entry.generation);
        // A board that has no operations in the log so far can only get some in later frames. The board's lock is
        // needed here: an append and its note in `logged` are a single step only for callers that hold it.
        let logged = |live: &Arc<LiveBoard>| {
            let _state = live.state.lock();
            live.logged.first()
        };
        let first = boards.iter().filter_map(logged).fold(catalog_seq + 1, u64::min);
        // Changes of rows from here on are in later frames than `catalog_seq`, so the log keeps them. Those before are
        // in frames up to `must_reach`, so if an earlier change is applied again, all that followed it are too.
        let rows = self.rows.copy();
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
            rows,
            ..self.manifest.clone()
        };
        manifest.install(&*self.files)?;
        self.manifest = manifest;
        self.installed = Instant::now();
        self.work.begin(Task::Deletion);
        if !self.delete_unneeded_files() {
            self.work.manifest_outdated();
        }
        Ok(())
    }

    /// Deletes files that the manifest does not name. Returns whether all of them were deleted. If the store is being
    /// closed, they are left to the next start.
    fn delete_unneeded_files(&self) -> bool {
        let mut all = true;
        let mut remove = |name: &str| {
            if self.journal.is_stopping() {
                all = false;
            } else if let Err(error) = self.files.remove(name)
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
pub(super) fn expired_through(live: &LiveBoard) -> i64 {
    let state = live.state.lock();
    state.ids.expired_through(state.now().millis())
}

/// Returns the entry of a board without a checkpoint.
pub(super) fn entry_of(board: &Board) -> Result<BoardEntry, StorageError> {
    let definition = serde_json::to_value(board.definition()).map_err(std::io::Error::other);
    let form = board.stored_editions();
    Ok(BoardEntry {
        name: board.name().to_string(),
        generation: board.generation().0,
        definition: definition.context("encode", MANIFEST)?,
        editions: form.map(|form| EditionsEntry { epoch: board.epoch().0, form }),
        from_seq: 0,
        checkpoint: None,
        ids: Vec::new(),
    })
}
