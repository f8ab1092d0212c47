//! The embedded store: working state in memory, made durable by a journal on disk. One process, no set-up.
//!
//! # What is where
//! - **Memory** holds every live record: all boards must fit. Per board, behind one lock (`tables`): subjects' records
//!   with all their slices (`subjects`), each slot's subjects (`list`), the ranking, and the ids counted lately.
//!   A subject with one slice and a name of 14 bytes takes 62 bytes and its entry in the ranking; each further slice
//!   16, and 4 in its slot's list if the board is ranked; AVG 24 more, and 8 a slice. Nothing grows or shrinks as a
//!   whole: tables, texts, records, slices and lists are in chunks that are never reallocated.
//! - A slice holds one number, which is all that COUNT, SUM, MIN and MAX need. What AVG, COUNT_DISTINCT and
//!   APPROX_COUNT_DISTINCT keep beside it stands apart (`extra`), so that it costs the others nothing.
//! - Unranked boards have the same records without ranking and lists. Nothing rolls over: readers look at the slots
//!   they are asked about, writers drop what is kept no longer, and a round of visits frees idle subjects.
//! - **The journal** lists what became of each write: absolute amounts, not changes (`codec`). One thread
//!   (`writer`) writes whatever has gathered as one group; who wrote waits for its group (`journal`).
//! - **The records** in the database are what opening reads; now and then the journal is folded into them.
//! - All of it is one fjall keyspace (`disk`), and beside it stand a lock file and the
//!   watermark, which tells a journal that ends from one that was cut off.
//!
//! # The life of a write
//! Lock the board; read the clock, move head and floor; apply the batch to memory; append its operations to the
//! journal; unlock; wait for the acknowledgement. A write that fails on the disk turns the store read-only: memory
//! may then be ahead of the disk by writes that nobody was told had counted. Reads go on.

mod arena;
mod asking;
mod audit;
mod boards;
mod clock;
mod codec;
mod disk;
mod extra;
mod fingerprint;
mod fold;
mod holdings;
mod ids;
mod journal;
mod list;
mod loading;
mod merging;
mod meters;
mod names;
mod numbering;
mod operations;
mod options;
mod pool;
mod precheck;
mod ranking;
mod reading;
mod record;
mod recovery;
mod rule;
mod sightings;
#[cfg_attr(not(test), expect(dead_code, reason = "only tests ask for the memory taken so far"))]
mod slab;
mod store;
mod subjects;
#[cfg_attr(not(test), expect(dead_code, reason = "ids are to be built on it, too"))]
mod table;
#[cfg_attr(not(test), expect(dead_code, reason = "housekeeping is to call it"))]
mod tables;
#[cfg(test)]
mod tests;
mod watermark;
mod writer;
mod writing;

use std::any::Any;
use std::fs::{self, File, TryLockError};
use std::path::Path;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, mpsc};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use parking_lot::{Mutex, RwLock};

pub use options::{Durability, DurabilityError, EmbeddedOptions};

use self::boards::{Boards, LiveBoard};
use self::clock::{Clock, Reading};
use self::disk::{Disk, DiskError, Fjall};
use self::journal::{Journal, Ticket};
use self::meters::Meters;
use self::operations::Operations;
use self::tables::{Advance, Tables};
use self::watermark::Watermark;
pub use self::writer::Pace;
use self::writer::{Progress, Writer};
use super::{ClockTrust, Limits, Result, StoreError};
use crate::board::{Board, Timestamp};

/// The embedded store. See the [module](self).
#[derive(Debug)]
pub struct Embedded {
    boards: Arc<Boards>,
    /// Counts the boards that came and went since opening; grows only while [`boards`](Self::boards) is locked.
    boards_version: AtomicU64,
    clock: Clock,
    journal: Arc<Journal>,
    limits: Limits,
    /// Where what may take long to free goes: whole boards, whole slots of time.
    discarded: mpsc::Sender<Box<dyn Any + Send>>,
    writer: Mutex<Option<JoinHandle<()>>>,
    /// Held as long as the store is open.
    _lock: File,
}

impl Embedded {
    /// Opens the data directory, making it if there is none, and reads it into memory: some seconds for a
    /// million subjects.
    ///
    /// [`StoreError::Setup`] if the directory is in use or cannot be made, [`StoreError::ClockModeMismatch`] if it
    /// was made with the other clock mode, [`StoreError::Corrupt`] if something is damaged or missing.
    pub async fn open(options: EmbeddedOptions) -> Result<Arc<Embedded>> {
        Self::open_at_pace(options, Pace::default()).await
    }

    /// Opens as [`open`](Self::open) does, and folds the journal at another pace.
    pub async fn open_at_pace(options: EmbeddedOptions, pace: Pace) -> Result<Arc<Embedded>> {
        let open = move || Self::open_on(options, pace, open_database);
        tokio::task::spawn_blocking(open).await.map_err(|error| StoreError::Backend { source: Box::new(error) })?
    }

    /// Opens with a disk of the caller's making: tests have one that fails, and one to look into.
    fn open_on(
        options: EmbeddedOptions,
        pace: Pace,
        open: impl FnOnce(&Path) -> Result<Arc<dyn Disk>, DiskError>,
    ) -> Result<Arc<Embedded>> {
        let folder = &options.path;
        let lock = lock(folder)?;
        let corrupt = |error: DiskError| StoreError::Corrupt {
            detail: format!("{}: {error}. Restore the folder from a backup", folder.display()),
        };
        let disk = open(&folder.join("database")).map_err(corrupt)?;
        let recovered = recovery::recover(disk.as_ref(), folder, options.clock)?;
        // Whatever opening has relied on is to be on the disk before more is built on it.
        disk.sync().map_err(corrupt)?;

        let boards: Arc<Boards> = Arc::new(RwLock::new(recovered.boards));
        let journal = Arc::new(Journal::new(options.durability));
        let writer = Writer {
            disk,
            journal: journal.clone(),
            durability: options.durability,
            pace,
            watermark: Watermark::new(folder, 0),
            sequence: recovered.sequence,
            deleted: recovered.deleted,
            synced: recovered.sequence,
            digest: recovered.digest,
            progress: Progress::new(recovered.sweeps, recovered.unfolded),
            meters: Meters::new(),
        };
        let failed = |error| setup(folder, "cannot start the thread that writes", error);
        let writer =
            thread::Builder::new().name("rolltop-journal".to_owned()).spawn(|| writer.run()).map_err(failed)?;
        let (discarded, receiver) = mpsc::channel();
        // Ends with the store, which holds the only sender.
        thread::Builder::new()
            .name("rolltop-discard".to_owned())
            .spawn(move || receiver.into_iter().for_each(drop::<Box<dyn Any + Send>>))
            .map_err(failed)?;
        Ok(Arc::new(Embedded {
            boards,
            boards_version: AtomicU64::new(0),
            clock: match recovered.clock {
                Some(time) => Clock::Simulated(Mutex::new(time)),
                None => Clock::system(),
            },
            journal,
            limits: options.limits,
            discarded,
            writer: Mutex::new(Some(writer)),
            _lock: lock,
        }))
    }

    /// The live board of just this generation.
    fn live(&self, board: &Board) -> Result<Arc<LiveBoard>> {
        match self.boards.read().get(board.name()) {
            Some(live) if live.board.generation() == board.generation() => Ok(live.clone()),
            _ => Err(StoreError::BoardChanged),
        }
    }

    /// Does `work` on a board's tables, advanced to now, and appends what it says to the journal in the same
    /// breath: the order of the journal is the order of the locks.
    fn change<T>(
        &self,
        board: &Board,
        work: impl FnOnce(&mut Tables, &mut Operations, Advance) -> T,
    ) -> Result<(T, Ticket)> {
        let live = self.live(board)?;
        let mut operations = Operations::of(board.generation());
        let mut tables = live.tables.lock();
        let advance = self.enter(&live, &mut tables, &mut operations)?;
        let answer = work(&mut tables, &mut operations, advance);
        let ticket = if operations.is_empty() { Ticket::Done } else { self.journal.append(&operations) };
        let garbage = tables.holdings.take_garbage();
        drop(tables);
        if !garbage.is_empty() {
            self.discard(garbage);
        }
        Ok((answer, ticket))
    }

    /// Does `work` on a board's tables, advanced to now.
    fn look<T>(&self, board: &Board, work: impl FnOnce(&Board, &mut Tables, Advance) -> T) -> Result<T> {
        let live = self.live(board)?;
        let mut operations = Operations::of(board.generation());
        let mut tables = live.tables.lock();
        let advance = self.enter(&live, &mut tables, &mut operations)?;
        if !operations.is_empty() {
            // Nobody waits: if it is lost, the clock will say the same again.
            self.journal.note(&operations);
        }
        let answer = work(&live.board, &mut tables, advance);
        let garbage = tables.holdings.take_garbage();
        drop(tables);
        if !garbage.is_empty() {
            self.discard(garbage);
        }
        Ok(answer)
    }

    /// Moves a board to the clock's now, and passes on what that set free.
    fn enter(&self, live: &LiveBoard, tables: &mut Tables, operations: &mut Operations) -> Result<Advance> {
        if tables.gone {
            return Err(StoreError::BoardChanged);
        }
        let now = tables.believe(&live.board, self.clock.read());
        let mut advance = tables.advance(&live.board, now);
        if advance.slots > 0 {
            operations.advanced(tables.now.millis());
        }
        if let Some(expired) = &mut advance.expired {
            self.discard(expired.holdings.take());
        }
        if let Some(forgotten) = advance.forgotten.take() {
            self.discard(forgotten);
        }
        Ok(advance)
    }

    /// Has something freed elsewhere; right here if that thread is gone.
    fn discard(&self, what: impl Any + Send) {
        drop(self.discarded.send(Box::new(what)));
    }

    /// Ends the writer after it has written and synced what is there.
    fn stop(&self) {
        self.journal.stop();
        if let Some(writer) = self.writer.lock().take()
            && writer.join().is_err()
        {
            self.journal.fail("the journal's thread has failed");
        }
    }
}

impl Drop for Embedded {
    fn drop(&mut self) {
        // The next to open the folder must find neither the lock nor the database in use.
        self.stop();
    }
}

impl Tables {
    /// The time to go by for this board.
    fn believe(&mut self, board: &Board, reading: Reading) -> Timestamp {
        let (wall, monotonic) = match reading {
            Reading::Simulated(now) => return now,
            Reading::System { wall, monotonic } => (wall, monotonic),
        };
        let slots = self.window.end.millis() - self.window.floor.millis();
        let half_window = self.holdings.rule.life.unwrap_or(slots) / 2;
        let trust = self.trust.get_or_insert_with(|| ClockTrust::new(wall, monotonic));
        let doubted = trust.doubted();
        let believed = trust.believe(wall, monotonic, half_window);
        if doubted.is_none()
            && let Some(leap) = trust.doubted()
        {
            tracing::warn!(board = %board.name(), %leap, going_by = %believed,
                "the system clock has leapt by more than half the board's window; not believed until it agrees for a minute");
        }
        believed
    }
}

fn open_database(path: &Path) -> Result<Arc<dyn Disk>, DiskError> {
    precheck::precheck(path)?;
    Ok(Arc::new(Fjall::open(path)?))
}

fn setup(folder: &Path, what: &str, error: std::io::Error) -> StoreError {
    StoreError::Setup { detail: format!("{}: {what}: {error}", folder.display()) }
}

/// How long a lock may be held by one that is just ending: a process that is being restarted, or a child between its
/// fork and its exec, which holds every open file of its parent.
const LOCK_PATIENCE: Duration = Duration::from_secs(1);
const LOCK_PAUSE: Duration = Duration::from_millis(20);

/// Makes the folder and locks it to this process. Blocks for up to [`LOCK_PATIENCE`].
fn lock(folder: &Path) -> Result<File> {
    fs::create_dir_all(folder).map_err(|error| setup(folder, "cannot make the data directory", error))?;
    let cannot = |error| setup(folder, "cannot lock the data directory", error);
    let file = File::options().create(true).truncate(false).write(true).open(folder.join("lock")).map_err(cannot)?;
    let started = Instant::now();
    let mut locked = file.try_lock();
    while matches!(locked, Err(TryLockError::WouldBlock)) && started.elapsed() < LOCK_PATIENCE {
        thread::sleep(LOCK_PAUSE);
        locked = file.try_lock();
    }
    match locked {
        Ok(()) => Ok(file),
        Err(TryLockError::Error(error)) => Err(cannot(error)),
        Err(TryLockError::WouldBlock) => Err(StoreError::Setup {
            detail: format!(
                "{}: another process has this data directory open; stop it, or choose another with --data-dir",
                folder.display()
            ),
        }),
    }
}
