//! Recovery of a data directory: reads the checkpoints into memory, applies the log on top, and syncs files that may
//! not have reached the disk.

use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::super::board_state::BoardState;
use super::super::boards::{LiveBoard, UncheckpointedLog};
use super::super::clock::ClockRecord;
use super::super::fingerprint::FingerprintKey;
use super::super::log_operations::{LogOperation, OperationError, operations};
use super::super::memory::Memory;
use super::super::options::Pace;
use super::super::replaying::replay;
use super::super::storage::checkpoint::{CHECKPOINTS, CheckpointReader, FileIdentity, IDS};
use super::super::storage::damage::{Context, StorageError};
use super::super::storage::files::Files;
use super::super::storage::log::{DIRECTORY, LogEnd, LogReader, LogStart, SegmentRange, segment_name};
use super::super::storage::manifest::{ClockMode as StoredMode, Manifest, RowsByTable};
use super::log_progress::{LogProgress, Segment};
use super::log_survey::LogSurvey;
use crate::board::{Board, BoardName, Definition, Epoch, Generation, Timestamp, TrackId};
use crate::store::{ClockMode, StoreError};

/// A segment takes at most one part in this many of a small disk.
const SMALL_DISK_PART: u64 = 32;
const MIN_SEGMENT_BYTES: u64 = 256 << 10;
/// The approximate size of an operation in the log. Used after a start to estimate a board's part of the log.
const OPERATION_BYTES: usize = 24;
/// The interval at which progress is logged.
const REPORT_EVERY: Duration = Duration::from_secs(2);

/// The contents of a data directory.
pub(super) struct Recovered {
    pub boards: BTreeMap<BoardName, Arc<LiveBoard>>,
    pub rows: RowsByTable,
    pub manifest: Manifest,
    pub end: LogEnd,
    pub segment_bytes: u64,
    pub progress: LogProgress,
    /// The last reading of the system clock.
    pub recorded: Option<ClockRecord>,
    /// The time of the simulated clock.
    pub simulated: Option<Timestamp>,
    pub key: FingerprintKey,
}

/// The reason why a data directory was not opened.
#[derive(Debug)]
pub(super) enum OpenError {
    Storage(StorageError),
    Store(StoreError),
}

impl From<StorageError> for OpenError {
    fn from(error: StorageError) -> Self {
        OpenError::Storage(error)
    }
}

/// Reads a data directory into memory, or creates a new one.
///
/// Nothing is refused here for lack of memory: a store that ran within its limit can be opened again.
pub(super) fn recover(
    files: &Arc<dyn Files>,
    clock: ClockMode,
    pace: Pace,
    memory: &Arc<Memory>,
) -> Result<Recovered, OpenError> {
    let manifest = match Manifest::recover(&**files)? {
        Some(manifest) => manifest,
        None => create(&**files, clock)?,
    };
    check_clock_mode(&manifest, clock)?;
    let log = || LogReader::open(files.clone(), manifest.store, manifest.log_start);
    let mut report = ProgressReport(Instant::now());
    let survey = LogSurvey::read(log()?, |done| report.log(&"reading the log", done))?;
    let mut loading = Loading::new(&manifest, survey, report);
    loading.load_checkpoints(files, &manifest)?;
    let mut log = log()?;
    loading.apply_log(&mut log)?;
    let mut end = log.finish()?;
    // Everything that recovery has relied on must be on the disk before new data is built on it.
    end.make_durable(&**files)?;
    for name in &end.files_to_delete {
        // A file that remains is not part of the log, and the next start deletes it.
        files.remove(name).ok();
    }
    let segments = end.segments.iter().map(|range| segment(&**files, range)).collect::<Result<VecDeque<_>, _>>()?;
    let segment_bytes = segment_bytes(&**files, pace);
    let progress = LogProgress::new(end.last_seq, end.last_seq, VecDeque::new(), segments);
    let simulated = match clock {
        ClockMode::System => None,
        ClockMode::Simulated(_) => loading.simulated.map(Timestamp::from_millis),
    };
    let key = FingerprintKey(manifest.fingerprint_key[0], manifest.fingerprint_key[1]);
    let recorded = loading.recorded;
    let rows = std::mem::take(&mut loading.rows);
    let boards = loading.finish(memory);
    Ok(Recovered { boards, rows, manifest, end, segment_bytes, progress, recorded, simulated, key })
}

/// Returns a segment of the log that was read, with the bytes of disk that it takes: more than the log uses in it.
fn segment(files: &dyn Files, range: &SegmentRange) -> Result<Segment, StorageError> {
    let name = segment_name(range.number);
    let bytes = files.open(&name).and_then(|file| file.len()).context("read the length of", &name)?;
    Ok(Segment { number: range.number, first: range.first_seq, bytes })
}

/// Returns the size of segments. Small disks get small segments.
fn segment_bytes(files: &dyn Files, pace: Pace) -> u64 {
    let available = files.available().unwrap_or(u64::MAX);
    let part = (available / SMALL_DISK_PART).next_multiple_of(4_096).max(MIN_SEGMENT_BYTES);
    pace.segment_bytes.min(part)
}

/// Creates a new store. A directory without a manifest counts as new as long as it holds no data.
fn create(files: &dyn Files, clock: ClockMode) -> Result<Manifest, OpenError> {
    if exists(files, "database")? || exists(files, "watermark")? {
        let detail = format!(
            "{}: the directory was written by rolltop 0.1 before its storage was rebuilt, and cannot be read by this \
             version",
            files.root().display()
        );
        return Err(OpenError::Store(StoreError::DataDirectory { detail }));
    }
    for directory in [DIRECTORY, CHECKPOINTS, IDS] {
        let names = match files.list(directory) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
            names => names.context("list", directory)?,
        };
        if let Some(name) = names.first() {
            // The manifest is the first file that a store creates, so these files belong to a store that has lost its
            // manifest.
            let what = format!("the file is missing, but {directory}/{name} exists");
            return Err(StorageError::damaged("MANIFEST", 0, what).into());
        }
        files.create_dir(directory).context("create", directory)?;
    }
    let (clock_mode, simulated_clock) = match clock {
        ClockMode::System => (StoredMode::System, None),
        ClockMode::Simulated(start) => (StoredMode::Simulated, Some(start.millis())),
    };
    let key = FingerprintKey::random();
    let manifest = Manifest {
        store: rand::random(),
        fingerprint_key: [key.0, key.1],
        clock_mode,
        clock: None,
        simulated_clock,
        log_start: LogStart { segment: 0, seq: 1, synced_seq: 0 },
        catalog_seq: 0,
        boards: Vec::new(),
        rows: RowsByTable::new(),
    };
    manifest.install(files)?;
    Ok(manifest)
}

fn exists(files: &dyn Files, name: &str) -> Result<bool, StorageError> {
    files.exists(name).context("look for", name)
}

fn check_clock_mode(manifest: &Manifest, clock: ClockMode) -> Result<(), OpenError> {
    let wanted = match clock {
        ClockMode::System => StoredMode::System,
        ClockMode::Simulated(_) => StoredMode::Simulated,
    };
    if manifest.clock_mode == wanted {
        return Ok(());
    }
    let name = |mode| if mode == StoredMode::System { "system" } else { "simulated" };
    let (stored, wanted) = (name(manifest.clock_mode), name(wanted));
    Err(OpenError::Store(StoreError::ClockModeMismatch { stored, wanted }))
}

/// Logs the progress of long work from time to time. Holds the time of the last report.
struct ProgressReport(Instant);

impl ProgressReport {
    /// Logs how much is done, of how much in all, unless this was called a short time ago.
    fn log(&mut self, work: &dyn std::fmt::Display, (done, all): (u64, u64)) {
        if self.0.elapsed() >= REPORT_EVERY {
            self.0 = Instant::now();
            tracing::info!(percent = done * 100 / all.max(1), "{work}");
        }
    }
}

/// The reason why operations cannot be applied.
enum ApplyError {
    Operation(OperationError),
    /// What an operation contains is not valid.
    Invalid(String),
}

impl From<OperationError> for ApplyError {
    fn from(error: OperationError) -> Self {
        ApplyError::Operation(error)
    }
}

impl ApplyError {
    /// Returns the error for a file, in which the operations begin at this byte.
    fn in_file(self, file: &str, offset: u64) -> StorageError {
        match self {
            ApplyError::Operation(error) => error.in_file(file, offset),
            ApplyError::Invalid(what) => StorageError::damaged(file, offset, what),
        }
    }
}

/// The data read so far.
struct Loading {
    boards: BTreeMap<Generation, LoadedBoard>,
    /// The board of each track, and the number of the track, or `None` if the board does not have it at present.
    tracks: BTreeMap<TrackId, (Generation, Option<usize>)>,
    rows: RowsByTable,
    catalog_seq: u64,
    must_reach: u64,
    recorded: Option<ClockRecord>,
    simulated: Option<i64>,
    survey: LogSurvey,
    report: ProgressReport,
}

struct LoadedBoard {
    defined_at: Option<Timestamp>,
    state: BoardState,
    /// The sequence from which the log is applied. The checkpoint contains everything before.
    from_seq: u64,
    logged: UncheckpointedLog,
}

impl Loading {
    fn new(manifest: &Manifest, survey: LogSurvey, report: ProgressReport) -> Self {
        Self {
            boards: BTreeMap::new(),
            tracks: BTreeMap::new(),
            rows: manifest.rows.clone(),
            catalog_seq: manifest.catalog_seq,
            must_reach: manifest.log_start.synced_seq,
            recorded: manifest.clock.as_ref().map(ClockRecord::from),
            simulated: manifest.simulated_clock,
            survey,
            report,
        }
    }

    /// Reads the checkpoint and the ids of each board of the manifest that the log does not remove.
    fn load_checkpoints(&mut self, files: &Arc<dyn Files>, manifest: &Manifest) -> Result<(), OpenError> {
        for entry in &manifest.boards {
            let generation = Generation(entry.generation);
            let editions = entry.editions.as_ref().map(|editions| (Epoch(editions.epoch), &*editions.form));
            self.define(generation, &entry.name, entry.definition.clone(), editions, entry.from_seq)
                .map_err(|what| StorageError::damaged("MANIFEST", 0, what))?;
            if !self.boards.contains_key(&generation) {
                continue;
            }
            for (name, bytes, kind) in entry.files() {
                let subject = FileIdentity { kind, store: manifest.store, generation: entry.generation };
                self.load_file(files, name, bytes, subject)?;
            }
        }
        Ok(())
    }

    fn load_file(
        &mut self,
        files: &Arc<dyn Files>,
        name: &str,
        bytes: u64,
        subject: FileIdentity,
    ) -> Result<(), OpenError> {
        let mut reader = CheckpointReader::open(&**files, name, subject, Some(bytes))?;
        loop {
            let (done, all) = reader.progress();
            let Some(block) = reader.next()? else { return Ok(()) };
            self.apply(block, None).map_err(|error| error.in_file(name, done))?;
            self.report.log(&format_args!("loading {name}"), (done, all));
        }
    }

    /// Applies the log.
    fn apply_log(&mut self, log: &mut LogReader) -> Result<(), OpenError> {
        loop {
            let (done, all) = log.progress();
            let Some(frame) = log.next()? else { return Ok(()) };
            let (segment, offset) = (frame.segment, frame.offset);
            self.apply(frame.payload, Some(frame.seq))
                .map_err(|error| error.in_file(&segment_name(segment), offset))?;
            self.report.log(&"applying the log", (done, all));
        }
    }

    /// Applies operations of a checkpoint or, with a sequence, of a frame of the log.
    fn apply(&mut self, bytes: &[u8], sequence: Option<u64>) -> Result<(), ApplyError> {
        // The board of the operations that follow, and the number of its track.
        let mut current: Option<(&mut LoadedBoard, Option<usize>)> = None;
        for operation in operations(bytes) {
            let operation = operation?;
            match operation {
                LogOperation::Track(track) => {
                    // A board that is not found was removed: a later operation or the manifest says so.
                    current = find_track(&self.tracks, &mut self.boards, track);
                    if let (Some((loaded, _)), Some(sequence)) = (&current, sequence)
                        && sequence < loaded.from_seq
                    {
                        current = None;
                    }
                }
                LogOperation::Defined { .. } | LogOperation::Undefined { .. }
                    if sequence.is_some_and(|sequence| sequence <= self.catalog_seq) => {}
                LogOperation::Defined { generation, name, definition } => {
                    current = None;
                    let definition =
                        serde_json::from_str(definition).map_err(|error| ApplyError::Invalid(error.to_string()))?;
                    self.define(generation, name, definition, None, 0).map_err(ApplyError::Invalid)?;
                }
                LogOperation::Editions { generation, epoch, definition, form, .. } => {
                    current = None;
                    self.change_editions(generation, epoch, definition, form).map_err(ApplyError::Invalid)?;
                    if let (Some(loaded), Some(sequence)) = (self.boards.get(&generation), sequence)
                        && sequence >= loaded.from_seq
                    {
                        loaded.logged.add(sequence, OPERATION_BYTES);
                    }
                }
                LogOperation::Undefined { generation } => {
                    current = None;
                    self.boards.remove(&generation);
                }
                // The manifest has a later reading.
                LogOperation::Clock(_)
                    if self.recorded.is_some() && sequence.is_some_and(|sequence| sequence <= self.must_reach) => {}
                LogOperation::Clock(record) => self.recorded = Some(record),
                LogOperation::Simulated { now } => self.simulated = self.simulated.max(Some(now)),
                // The rows of the manifest may be later than this operation. If so, the log also has the operation that
                // they come from, because it is complete up to `must_reach`.
                LogOperation::Row { table, id, text } => match text {
                    Some(text) => {
                        let rows = self.rows.entry(table.to_owned()).or_default();
                        rows.insert(id.to_owned(), text.to_owned());
                    }
                    None => {
                        if let Some(rows) = self.rows.get_mut(table) {
                            rows.remove(id);
                        }
                    }
                },
                LogOperation::DefinedAt { at } => {
                    if let Some((loaded, _)) = &mut current {
                        loaded.defined_at = Some(Timestamp::from_millis(at));
                    }
                }
                operation => {
                    if let Some((loaded, number)) = &mut current {
                        if let Some(sequence) = sequence {
                            loaded.logged.add(sequence, OPERATION_BYTES);
                        }
                        replay(&mut loaded.state, *number, operation)
                            .map_err(|what| ApplyError::Invalid(what.to_owned()))?;
                    }
                }
            }
        }
        Ok(())
    }

    fn define(
        &mut self,
        generation: Generation,
        name: &str,
        definition: serde_json::Value,
        editions: Option<(Epoch, &str)>,
        from_seq: u64,
    ) -> Result<(), String> {
        if self.boards.contains_key(&generation) || self.survey.removes(generation) {
            return Ok(());
        }
        let unreadable = |error: &dyn std::fmt::Display| unreadable(name, error);
        let parsed = BoardName::parse(name).map_err(|error| unreadable(&error))?;
        let definition: Definition = serde_json::from_value(definition).map_err(|error| unreadable(&error))?;
        let mut board = Board::new(parsed, generation, definition).map_err(|error| unreadable(&error))?;
        if let Some((epoch, form)) = editions {
            board = board.with_stored_editions(epoch, Some(form)).map_err(|error| unreadable(&error))?;
        }
        let board = Arc::new(board);
        // What belongs to a track that the board no longer has may be about the whole board, as ids are.
        self.tracks.extend(self.survey.mains_of(&board).map(|main| (main, (generation, None))));
        self.name_tracks(&board);
        let mut state = BoardState::new(board.clone(), Timestamp::EPOCH);
        if let Some(time) = self.survey.time_of(&board) {
            state.move_clock(time);
        }
        let logged = UncheckpointedLog::default();
        self.boards.insert(generation, LoadedBoard { defined_at: None, state, from_seq, logged });
        Ok(())
    }

    /// Replaces the editions of a board, unless it has these or later ones.
    fn change_editions(
        &mut self,
        generation: Generation,
        epoch: Epoch,
        definition: &str,
        form: &str,
    ) -> Result<(), String> {
        let Some(loaded) = self.boards.get_mut(&generation).filter(|loaded| loaded.state.board.epoch() < epoch) else {
            return Ok(());
        };
        let before = loaded.state.board.clone();
        let unreadable = |error: &dyn std::fmt::Display| unreadable(before.name().as_str(), error);
        let definition: Definition = serde_json::from_str(definition).map_err(|error| unreadable(&error))?;
        let board = Board::new(before.name().clone(), generation, definition).map_err(|error| unreadable(&error))?;
        let board = board.with_stored_editions(epoch, Some(form)).map_err(|error| unreadable(&error))?;
        let board = Arc::new(board);
        loaded.state.restore_editions(board.clone());
        self.tracks.extend(before.tracks().iter().map(|track| (track.id(), (generation, None))));
        self.name_tracks(&board);
        Ok(())
    }

    /// Records the tracks that a board has.
    fn name_tracks(&mut self, board: &Board) {
        let tracks = board.tracks().iter().enumerate();
        self.tracks.extend(tracks.map(|(number, track)| (track.id(), (board.generation(), Some(number)))));
    }

    /// Computes what is not stored: scores, lists and rankings.
    fn finish(self, memory: &Arc<Memory>) -> BTreeMap<BoardName, Arc<LiveBoard>> {
        let live = |mut loaded: LoadedBoard| {
            loaded.state.rebuild();
            let board = Board::clone(&loaded.state.board).with_defined_at(loaded.defined_at);
            let name = board.name().clone();
            loaded.state.set_board(Arc::new(board));
            (name, Arc::new(LiveBoard::new(loaded.state, loaded.logged, memory)))
        };
        self.boards.into_values().map(live).collect()
    }
}

fn unreadable(board: &str, error: &dyn std::fmt::Display) -> String {
    format!("the definition of board '{board}' is not valid: {error}")
}

/// Returns the board of a track, and the number of the track if the board has it.
fn find_track<'a>(
    tracks: &BTreeMap<TrackId, (Generation, Option<usize>)>,
    boards: &'a mut BTreeMap<Generation, LoadedBoard>,
    track: TrackId,
) -> Option<(&'a mut LoadedBoard, Option<usize>)> {
    let (generation, number) = tracks.get(&track)?;
    Some((boards.get_mut(generation)?, *number))
}
