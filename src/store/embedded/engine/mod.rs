//! The engine, which makes memory durable: the journal, the log and its threads, checkpoints, recovery and backup.
//!
//! ```text
//! admission     the decision whether a write may begin
//! journal       operations on their way to the log, and the callers that wait for them
//! log_writer    thread: writes groups of operations as frames of the log
//! syncer        thread: syncs the log to the disk
//! log_progress  how far the log is written, and how far it is synced
//! checkpointer  thread: writes the boards' state, so that older parts of the log can be deleted (`checkpoint_files`);
//!               `due` chooses the board, `files_work` is what other threads know of its work
//! keeper        thread: ends waits that take too long, frees expired memory, watches how much is left
//! recovery      opening a data directory (`log_survey`: what the log says about each board)
//! space         the free space of the disk, and the space that the next checkpoint may need
//! directory_lock  the lock that keeps other processes out of a data directory
//! backup        copying a data directory while it is in use
//! check_data    checking a data directory that is not in use
//! ```

mod admission;
mod backup;
mod check_data;
mod checkpoint_files;
mod checkpointer;
mod directory_lock;
mod due;
mod files_work;
mod journal;
mod keeper;
mod log_progress;
mod log_survey;
mod log_writer;
mod recovery;
mod space;
mod syncer;

use std::fs::File;
use std::path::Path;
use std::sync::{Arc, mpsc};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use tokio::sync::oneshot;

pub use self::check_data::{DataReport, check_data};
use self::checkpointer::{Checkpointer, Command};
use self::directory_lock::{lock, setup_error};
use self::files_work::{FilesWork, Task};
pub(super) use self::journal::{Journal, Ticket};
use self::keeper::Keeper;
use self::log_writer::LogWriter;
use self::recovery::Recovered;
use self::syncer::Syncer;
use super::boards::Boards;
use super::clock::{Clock, Machine};
use super::fingerprint::FingerprintKey;
use super::memory::Memory;
use super::metrics::StoreMetrics;
use super::options::{EmbeddedOptions, Pace};
use super::rows::StoredRows;
use super::storage::damage::StorageError;
use super::storage::files::Files;
use crate::store::{BackedUp, ClockMode, Result, StoreError};

/// The time for which closing waits for a disk that does not respond.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(15);
/// The threads that complete the log.
const LOG_THREADS: [&str; 2] = ["rolltop-log", "rolltop-sync"];

/// The threads of a store, and the channels to them.
#[derive(Debug)]
pub(super) struct Engine {
    journal: Arc<Journal>,
    commands: mpsc::Sender<Command>,
    files_work: Arc<FilesWork>,
    stop_keeper: mpsc::Sender<()>,
    threads: Mutex<Vec<JoinHandle<()>>>,
    /// The lock of the data directory, held as long as the store is open. `None` on simulated files.
    _lock: Option<Arc<File>>,
}

/// The parts of a store that was opened.
pub(super) struct Opened {
    pub boards: Arc<Boards>,
    pub rows: Arc<StoredRows>,
    pub clock: Arc<Clock>,
    pub engine: Engine,
    pub memory: Arc<Memory>,
    pub key: FingerprintKey,
}

/// Opens a data directory, creating it if it does not exist, and starts the threads.
pub(super) fn open(files: Arc<dyn Files>, options: EmbeddedOptions, pace: Pace) -> Result<Opened> {
    let place = files.root().to_owned();
    files.create_dir("").map_err(|error| setup_error(&place, "cannot create the data directory", error))?;
    let lock = lock(&*files, &place)?;
    let machine = Machine::read();
    let memory = Memory::new(options.memory_limit);
    let Recovered { boards, rows, manifest, end, segment_bytes, progress, recorded, simulated, key } =
        recovery::recover(&files, options.clock, pace, &memory).map_err(|error| open_error(&place, error))?;
    let clock = Arc::new(match (options.clock, simulated) {
        (ClockMode::Simulated(start), time) => Clock::Simulated(Mutex::new(time.unwrap_or(start).max(start))),
        (ClockMode::System, _) => Clock::system(recorded, options.trust_clock, machine),
    });
    for live in boards.values() {
        let mut state = live.state.lock();
        state.trust = clock.trust_of_board(state.now());
    }
    let boards: Arc<Boards> = Arc::new(Boards::new(boards));
    let rows = Arc::new(StoredRows::new(rows, &memory));
    let journal = Arc::new(Journal::new(
        options.durability,
        pace.unknown_after,
        place.display().to_string(),
        progress.written() + 1,
    ));
    let progress = Arc::new(progress);
    let (commands, receiver) = mpsc::channel();

    let writer = LogWriter {
        files: files.clone(),
        journal: journal.clone(),
        progress: progress.clone(),
        clock: clock.clone(),
        durability: options.durability,
        end,
        store: manifest.store,
        segment_bytes,
        appender: None,
        metrics: StoreMetrics::new(),
        clock_recorded_at: None,
        logged_confirmed: progress.confirmed(),
        retry_at: None,
        end_at: None,
    };
    let syncer = Syncer {
        files: files.clone(),
        journal: journal.clone(),
        progress: progress.clone(),
        durability: options.durability,
    };
    let files_work = Arc::new(FilesWork::new());
    let stored = (manifest, pace, options.backup_dir);
    let content = (&boards, &rows);
    let checkpointer = Checkpointer::new(&files, &journal, &progress, content, &clock, stored, (receiver, &files_work));
    let (stop_keeper, stop) = mpsc::channel();
    let keeper = Keeper { journal: journal.clone(), boards: boards.clone(), memory: memory.clone(), stop };
    let threads = vec![
        spawn(LOG_THREADS[0], with_lock(&lock, || writer.run()))?,
        spawn(LOG_THREADS[1], with_lock(&lock, || syncer.run()))?,
        spawn("rolltop-files", with_lock(&lock, || checkpointer.run()))?,
        spawn("rolltop-keeper", || keeper.run())?,
    ];
    let engine = Engine { journal, commands, files_work, stop_keeper, threads: Mutex::new(threads), _lock: lock };
    Ok(Opened { boards, rows, clock, engine, memory, key })
}

impl Engine {
    pub(super) fn journal(&self) -> &Journal {
        &self.journal
    }

    /// Requests the deletion of the files of a board that was removed.
    pub(super) fn board_removed(&self) {
        self.files_work.manifest_outdated();
    }

    /// Copies the data as it is at one instant.
    pub(super) async fn back_up(&self) -> Result<BackedUp> {
        let (sender, receiver) = oneshot::channel();
        let closed = || StoreError::ReadOnly { reason: log_writer::CLOSED.to_owned() };
        self.commands.send(Command::BackUp(sender)).map_err(|_| closed())?;
        receiver.await.map_err(|_| closed())?
    }

    /// Writes and syncs everything appended, and ends the threads.
    pub(super) async fn close(&self) -> Result<()> {
        if let Some(reason) = self.journal.closed() {
            return if reason == log_writer::CLOSED { Ok(()) } else { Err(StoreError::ReadOnly { reason }) };
        }
        let threads = std::mem::take(&mut *self.threads.lock());
        self.request_stop();
        let deadline = Instant::now() + CLOSE_TIMEOUT;
        while threads.iter().any(|thread| !thread.is_finished()) {
            if Instant::now() >= deadline {
                let reason = reason_to_give_up(&threads, self.files_work.task());
                return Err(StoreError::ReadOnly { reason });
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        match self.journal.closed() {
            Some(reason) if reason != log_writer::CLOSED => Err(StoreError::ReadOnly { reason }),
            _ => Ok(()),
        }
    }

    fn request_stop(&self) {
        self.journal.stop();
        self.commands.send(Command::Stop).ok();
        self.stop_keeper.send(()).ok();
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        // When the directory is opened next, the lock must be free and no file may be in use.
        self.request_stop();
        let deadline = Instant::now() + CLOSE_TIMEOUT;
        for thread in std::mem::take(&mut *self.threads.lock()) {
            while !thread.is_finished() && Instant::now() < deadline {
                thread::sleep(Duration::from_millis(1));
            }
        }
    }
}

/// Returns the reason why a store cannot be closed although it waited for [`CLOSE_TIMEOUT`], from its threads and what
/// the thread for files does.
fn reason_to_give_up(threads: &[JoinHandle<()>], task: Task) -> String {
    let mut running = threads.iter().filter(|thread| !thread.is_finished()).filter_map(|one| one.thread().name());
    let seconds = CLOSE_TIMEOUT.as_secs();
    if running.any(|name| LOG_THREADS.contains(&name)) {
        format!("the disk did not respond within {seconds} s; unconfirmed writes may be lost in a power failure")
    } else {
        format!("{task} did not end within {seconds} s; the log is complete, and the next start does what is left")
    }
}

/// Returns `work` with the directory's lock, which is kept until `work` ends: a thread that hangs on the disk may still
/// write.
fn with_lock(lock: &Option<Arc<File>>, work: impl FnOnce() + Send + 'static) -> impl FnOnce() + Send + 'static {
    let lock = lock.clone();
    move || {
        work();
        drop(lock);
    }
}

/// Starts a thread.
pub(super) fn spawn(name: &str, work: impl FnOnce() + Send + 'static) -> Result<JoinHandle<()>> {
    thread::Builder::new()
        .name(name.to_owned())
        .spawn(work)
        .map_err(|error| StoreError::Setup { detail: format!("cannot start the thread {name}: {error}") })
}

/// Returns the error of the storage with the directory and the remedy.
fn open_error(place: &Path, error: recovery::OpenError) -> StoreError {
    match error {
        recovery::OpenError::Storage(error @ StorageError::Damaged { .. }) => {
            let detail = format!(
                "{}: {error}. Restore the directory from a backup; `rolltop check-data` lists what is damaged",
                place.display()
            );
            StoreError::Corrupt { detail }
        }
        recovery::OpenError::Storage(error) => StoreError::Setup { detail: format!("{}: {error}", place.display()) },
        recovery::OpenError::Store(error) => error,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_reason_to_give_up_names_what_did_not_end() {
        let (sender, receiver) = mpsc::channel::<()>();
        let receiver = Arc::new(Mutex::new(receiver));
        let hanging = |name: &str| {
            let receiver = receiver.clone();
            spawn(name, move || receiver.lock().recv().unwrap_or_default()).unwrap()
        };
        let threads = [hanging("rolltop-files"), hanging("rolltop-keeper")];
        let reason = reason_to_give_up(&threads, Task::Backup);
        assert!(reason.starts_with("a backup did not end") && reason.contains("the log is complete"), "{reason}");
        let threads = threads.into_iter().chain([hanging("rolltop-sync")]).collect::<Vec<_>>();
        let reason = reason_to_give_up(&threads, Task::Manifest);
        assert!(reason.contains("the disk did not respond") && reason.contains("unconfirmed"), "{reason}");
        drop(sender);
        threads.into_iter().for_each(|thread| thread.join().unwrap());
    }
}
