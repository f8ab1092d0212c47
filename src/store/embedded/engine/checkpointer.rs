//! The thread that makes checkpoints, and does everything else with files but the log: manifests, deleting what is not
//! needed any more, free space, backups.
//!
//! A checkpoint is fuzzy: the board is walked in portions while writes go on. Operations are absolute, so applying the
//! log from where the walk began, on top of any state that was met on the way, ends in the right state, provided that
//! the log is there to the end of the walk. So the manifest is installed only after the log is vouched for through
//! that end: otherwise amounts would survive whose ids were lost, and retries would count twice.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};

use tokio::sync::oneshot;

use super::super::boards::{Boards, LiveBoard};
use super::super::clock::Clock;
use super::super::meters::Meters;
use super::super::storage::damage::{Context, StorageError};
use super::super::storage::files::Files;
use super::super::storage::log::{LogStart, segment_name};
use super::super::storage::manifest::{BoardEntry, ClockRecord, MANIFEST, Manifest};
use super::Pace;
use super::journal::Journal;
use super::progress::Progress;
use super::recovery::{CHECKPOINTS, IDS};
use super::space::Space;
use crate::board::Generation;
use crate::store::{BackedUp, Result as StoreResult};

/// How often free space is measured.
const MEASURE: Duration = Duration::from_millis(100);
/// How often a manifest says how far the log was confirmed, while it goes on: should the end of the log get lost, what
/// a manifest says of it is missed.
const STATE_EVERY: Duration = Duration::from_secs(30);
/// How long to wait for the log to be vouched for.
const PATIENCE: Duration = Duration::from_secs(30);
/// How long to wait after a failure.
const RETRY: Duration = Duration::from_secs(2);
/// A checkpoint has at most so many times the bytes that the log has of the same subjects.
const LOG_TO_CHECKPOINT: u64 = 2;
/// The log of a store is at least this many times [`Pace::log_bytes`] before boards are checkpointed for its sake.
const LOG_SHARE: u64 = 4;
/// The most segments of the log before boards are checkpointed for their sake: each start begins one.
const MOST_SEGMENTS: usize = 64;

/// How many times [`Pace::age`] a large board may wait.
const LARGE_PATIENCE: u32 = 24;

/// What the thread is asked to do.
#[derive(Debug)]
pub(super) enum Command {
    /// Some files are not needed any more.
    Tidy,
    BackUp(oneshot::Sender<StoreResult<BackedUp>>),
    Stop,
}

/// The thread's state.
#[derive(Debug)]
pub(super) struct Checkpointer {
    pub(super) files: Arc<dyn Files>,
    pub(super) journal: Arc<Journal>,
    pub(super) progress: Arc<Progress>,
    boards: Arc<Boards>,
    clock: Arc<Clock>,
    /// The manifest that is on the disk; its boards are in the order of their generations.
    pub(super) manifest: Manifest,
    pace: Pace,
    pub(super) backup_dir: Option<PathBuf>,
    commands: mpsc::Receiver<Command>,
    meters: Meters,
    space: Space,
    measured: Option<Instant>,
    /// When the manifest was installed.
    installed: Instant,
    tidy: bool,
    retry_at: Option<Instant>,
    /// Number of the next file.
    pub(super) next_file: u64,
    /// When the oldest part of each board's log was first seen.
    ages: BTreeMap<Generation, (u64, Instant)>,
}

/// Why a checkpoint was not made.
#[derive(Debug, thiserror::Error)]
pub(super) enum NotMade {
    #[error(transparent)]
    Storage(#[from] StorageError),
    #[error("the log was not confirmed by the disk in time")]
    NotVouched,
    #[error("the board is gone, or the store is being closed")]
    Abandoned,
}

impl Checkpointer {
    pub(super) fn new(
        files: &Arc<dyn Files>,
        journal: &Arc<Journal>,
        progress: &Arc<Progress>,
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
            meters: Meters::new(),
            space: Space::default(),
            measured: None,
            installed: Instant::now(),
            // A crash may have left files that no manifest names.
            tidy: true,
            retry_at: None,
            next_file,
            ages: BTreeMap::new(),
        }
    }

    /// Runs until the store is closed.
    pub(super) fn run(mut self) {
        loop {
            match self.commands.recv_timeout(self.pace.tick) {
                Ok(Command::Tidy) => self.tidy = true,
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
            let made = match self.due() {
                Some(live) => self.checkpoint(&live),
                None if self.tidy || self.has_expired_ids() || self.is_manifest_old() => self.install(None, 0),
                None => continue,
            };
            match made {
                Ok(()) => self.retry_at = None,
                Err(NotMade::Abandoned) => {}
                Err(error) => {
                    tracing::warn!(%error, "a checkpoint was not made; it is tried again");
                    self.retry_at = Some(Instant::now() + RETRY);
                }
            }
        }
    }

    /// The last reading of the clock that may be recorded.
    pub(super) fn recorded(&self) -> Option<ClockRecord> {
        self.clock.record().map(Into::into).or(self.manifest.clock.clone())
    }

    /// Bytes that the next checkpoint and the next segments of the log may take.
    fn needed(&self) -> u64 {
        let boards = self.boards.read();
        let largest =
            boards.values().map(|live| self.checkpoint_bytes(live) + LOG_TO_CHECKPOINT * live.logged.bytes()).max();
        let segment = self.progress.segments().last().map_or(0, |segment| segment.bytes);
        largest.unwrap_or(0) + 2 * segment
    }

    fn measure_space(&mut self) {
        if self.measured.is_none_or(|at| at.elapsed() >= MEASURE) {
            self.measured = Some(Instant::now());
            let needed = self.needed();
            self.space.measure(&*self.files, &self.journal, &self.meters, needed);
            self.meters.log(self.log_bytes(), self.journal.admission.unconfirmed_for());
        }
    }

    fn log_bytes(&self) -> u64 {
        self.progress.segments().iter().map(|segment| segment.bytes).sum()
    }

    /// Bytes of a board's last checkpoint.
    fn checkpoint_bytes(&self, live: &LiveBoard) -> u64 {
        let entry = self.entry(live.board.generation());
        entry.map_or(0, |entry| entry.files().map(|(_, bytes, _)| bytes).sum())
    }

    pub(super) fn entry(&self, generation: Generation) -> Option<&BoardEntry> {
        let boards = &self.manifest.boards;
        let at = boards.binary_search_by_key(&generation.0, |entry| entry.generation).ok()?;
        boards.get(at)
    }

    /// Returns the board that is to be checkpointed next, if any.
    fn due(&mut self) -> Option<Arc<LiveBoard>> {
        let boards: Vec<_> = self.boards.read().values().cloned().collect();
        let logged = || boards.iter().filter(|live| live.logged.first().is_some());
        // The part of a board that has grown most.
        let ratio = |live: &Arc<LiveBoard>| {
            let most = self.checkpoint_bytes(live).max(self.pace.log_bytes).max(1);
            (live.logged.bytes() as f64 / most as f64, live.clone())
        };
        let (most, live) = logged().map(ratio).max_by(|a, b| a.0.total_cmp(&b.0))?;
        if most > 1.0 {
            return Some(live);
        }
        // The board that holds up the deletion of most segments, where the log as a whole is large.
        let state: u64 = boards.iter().map(|live| self.checkpoint_bytes(live)).sum();
        let segments = self.progress.segments();
        let oldest = logged().min_by_key(|live| live.logged.first())?;
        let holds_up = segments.get(1).is_some_and(|second| oldest.logged.first().is_some_and(|at| at < second.first));
        let is_large = self.log_bytes() > state.max(LOG_SHARE * self.pace.log_bytes) || segments.len() > MOST_SEGMENTS;
        if holds_up && (is_large || self.space.is_getting_short(self.needed())) {
            return Some(oldest.clone());
        }
        self.old(&boards)
    }

    /// Returns a board whose part of the log is old.
    fn old(&mut self, boards: &[Arc<LiveBoard>]) -> Option<Arc<LiveBoard>> {
        let mut ages = BTreeMap::new();
        let mut found = None;
        for live in boards {
            let (Some(first), generation) = (live.logged.first(), live.board.generation()) else { continue };
            let seen = self.ages.get(&generation).filter(|(of, _)| *of == first).copied();
            let (_, since) = *ages.entry(generation).or_insert(seen.unwrap_or((first, Instant::now())));
            // A large board is not written again for a few records.
            let patience = if self.checkpoint_bytes(live) > self.pace.log_bytes { LARGE_PATIENCE } else { 1 };
            if since.elapsed() >= self.pace.age.saturating_mul(patience) {
                found = Some(live.clone());
            }
        }
        self.ages = ages;
        found
    }

    /// Whether the log was confirmed much further than the manifest says.
    fn is_manifest_old(&self) -> bool {
        self.installed.elapsed() >= STATE_EVERY && self.progress.vouched() > self.manifest.log_start.synced_seq
    }

    /// Whether a file has only ids whose horizon has passed.
    fn has_expired_ids(&self) -> bool {
        let boards = self.boards.read();
        boards.values().any(|live| {
            let Some(entry) = self.entry(live.board.generation()) else { return false };
            let expired = |horizon: i64| entry.ids.iter().any(|bucket| bucket.newest <= horizon);
            !entry.ids.is_empty() && expired(expired_through(live))
        })
    }

    /// Writes a board as memory has it, and installs a manifest that names it.
    fn checkpoint(&mut self, live: &Arc<LiveBoard>) -> Result<(), NotMade> {
        let started = Instant::now();
        let (from, taken) = {
            let tables = live.tables.lock();
            if tables.gone {
                return Err(NotMade::Abandoned);
            }
            (self.journal.next(), live.logged.take())
        };
        let made = self.write(live, from).and_then(|written| {
            let bytes = written.entry.checkpoint.as_ref().map_or(0, |file| file.bytes);
            self.install(Some(written.entry), written.through)?;
            Ok(bytes)
        });
        match made {
            Ok(bytes) => {
                let took = started.elapsed();
                self.meters.checkpoint(bytes, took);
                tracing::debug!(board = %live.board.name(), bytes, took_ms = took.as_millis() as u64, "checkpoint");
                Ok(())
            }
            Err(error) => {
                let mut tables = live.tables.lock();
                tables.holdings.end_walk();
                live.logged.put_back(taken);
                drop(tables);
                // A file that was written may be named by the manifest on the disk, if only its installation failed:
                // it is deleted after the next installation.
                self.tidy = true;
                Err(error)
            }
        }
    }

    /// Installs a manifest of the boards as they are, with `replaced` for one of them, and deletes what is not needed
    /// any more. The log is vouched for through `through` first.
    fn install(&mut self, replaced: Option<BoardEntry>, through: u64) -> Result<(), NotMade> {
        // The list of boards contains what the frames up to `catalog_seq` say: they come and go under this lock. Of the
        // frame that is gathering it contains a part, and the rest is still to come.
        let (catalog_seq, boards) = {
            let boards = self.boards.read();
            (self.journal.next() - 1, boards.values().cloned().collect::<Vec<_>>())
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
        // A board that is not in the log so far can only come in later frames. Its lock is needed: an append and its
        // note in `logged` are one step only for those who hold it.
        let logged = |live: &Arc<LiveBoard>| {
            let _tables = live.tables.lock();
            live.logged.first()
        };
        let first = boards.iter().filter_map(logged).fold(catalog_seq + 1, u64::min);
        let must_reach = through.max(self.journal.last());
        self.journal.wake();
        if !self.progress.wait_for(must_reach, PATIENCE) {
            return Err(NotMade::NotVouched);
        }
        // Only where a frame is confirmed: of a segment without one the log may still go on elsewhere.
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
        self.tidy = !self.delete_garbage();
        Ok(())
    }

    /// Deletes what the manifest does not name. Returns whether all of it is gone.
    fn delete_garbage(&self) -> bool {
        let mut all = true;
        let mut remove = |name: &str| {
            if let Err(error) = self.files.remove(name)
                && error.kind() != std::io::ErrorKind::NotFound
            {
                tracing::debug!(%error, name, "cannot delete a file that is not needed any more");
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
        for segment in self.progress.forget_before(self.manifest.log_start.segment) {
            remove(&segment_name(segment.number));
        }
        all
    }
}

/// Ids that arrived at or before this instant are past the board's horizon.
fn expired_through(live: &LiveBoard) -> i64 {
    let tables = live.tables.lock();
    tables.ids.expired_through(tables.now.millis())
}

pub(super) fn definition(live: &LiveBoard) -> Result<serde_json::Value, StorageError> {
    serde_json::to_value(live.board.definition()).map_err(std::io::Error::other).context("encode", MANIFEST)
}
