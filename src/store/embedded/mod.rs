//! The embedded store: the whole state in memory, made durable by a log and checkpoints. One process, no set-up.
//!
//! # What is where
//! - **Memory** (`tables`) holds every live record; all boards must fit. Per board, behind one lock: the subjects with
//!   what they have in each slot, each slot's subjects, the ranking (`holdings`), and the ids counted lately.
//! - **The log** (`engine::log_writer`) holds what became of each write as absolute results (`operations`), one frame
//!   for each group of writes that came together.
//! - **Checkpoints** (`engine::checkpointer`) hold what memory held, board by board, so that the log before them can be
//!   deleted. Nothing else is ever read from the disk, and only at a start (`engine::recovery`).
//! - **Storage** (`storage`) is the bytes and files of log, checkpoints and manifest, on a real or a simulated disk.
//!
//! # The life of a write
//! Ask whether the disk takes writes (`engine::admission`); lock the board; read the clock, move head and floor; apply
//! the batch, or a portion of it, to memory; append its operations to the journal; unlock; wait for the
//! acknowledgement. What is refused is refused before memory changes. Once memory has changed, the outcome is done or
//! unknown.
//!
//! # Threads
//! One writes the log, one syncs it, one makes checkpoints and everything else that touches files, one looks after
//! waiting callers and memory and never touches a file, and one frees what may take long to free.

mod arena;
mod asking;
mod audit;
mod boards;
mod clock;
mod codec;
mod engine;
mod extra;
mod fingerprint;
mod holdings;
mod ids;
mod list;
mod merging;
mod meters;
mod names;
mod numbering;
mod operations;
mod options;
mod pool;
mod ranking;
mod reading;
mod record;
mod replaying;
mod rule;
mod sightings;
mod slab;
mod storage;
mod store;
mod subjects;
mod table;
mod tables;
#[cfg(test)]
mod tests;
mod writing;

use std::any::Any;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, mpsc};
use std::time::Duration;

pub use engine::{DataReport, Pace, check_data};
pub use options::{Durability, DurabilityError, EmbeddedOptions};
use parking_lot::MutexGuard;

use self::boards::{Boards, LiveBoard};
use self::clock::{Clock, Reading};
use self::engine::{Engine, Journal, Ticket};
use self::fingerprint::FingerprintKey;
use self::operations::Operations;
use self::storage::files::{Files, SystemFiles};
use self::tables::{Advance, Tables};
use self::writing::Application;
use super::{Added, Batch, ClockTrust, Limits, Outcome, Result, StoreError};
use crate::board::{Board, Timestamp, Window};

/// The embedded store. See the [module](self).
#[derive(Debug)]
pub struct Embedded {
    boards: Arc<Boards>,
    /// Counts the boards that came and went since opening; grows only while [`boards`](Self::boards) is locked.
    boards_version: AtomicU64,
    clock: Arc<Clock>,
    engine: Engine,
    limits: Limits,
    key: FingerprintKey,
    /// Where what may take long to free goes: whole boards, whole slots of time.
    discarded: mpsc::Sender<Box<dyn Any + Send>>,
}

/// Whether somebody waits for the acknowledgement of a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Awaited {
    Yes,
    No,
}

impl Embedded {
    /// Opens the data directory, creating it if there is none, and reads it into memory: some seconds for 10 million
    /// subjects.
    ///
    /// [`StoreError::Setup`] if the directory is in use or cannot be created, [`StoreError::ClockModeMismatch`] if it
    /// was created with the other clock mode, [`StoreError::Corrupt`] if something is damaged or missing.
    pub async fn open(options: EmbeddedOptions) -> Result<Arc<Embedded>> {
        Self::open_at_pace(options, Pace::default()).await
    }

    /// Opens as [`open`](Self::open) does, with another pace of checkpoints.
    pub async fn open_at_pace(options: EmbeddedOptions, pace: Pace) -> Result<Arc<Embedded>> {
        let open = move || {
            let files: Arc<dyn Files> = Arc::new(SystemFiles::new(&options.path));
            Self::open_on(files, options, pace)
        };
        tokio::task::spawn_blocking(open).await.map_err(|error| StoreError::Backend { source: Box::new(error) })?
    }

    /// Opens on any kind of files.
    fn open_on(files: Arc<dyn Files>, options: EmbeddedOptions, pace: Pace) -> Result<Arc<Embedded>> {
        let limits = options.limits;
        let opened = engine::open(files, options, pace)?;
        let (discarded, receiver) = mpsc::channel();
        // Ends with the store, which holds the only sender.
        engine::spawn("rolltop-discard", move || receiver.into_iter().for_each(drop::<Box<dyn Any + Send>>))?;
        Ok(Arc::new(Embedded {
            boards: opened.boards,
            boards_version: AtomicU64::new(0),
            clock: opened.clock,
            engine: opened.engine,
            limits,
            key: opened.key,
            discarded,
        }))
    }

    fn journal(&self) -> &Journal {
        self.engine.journal()
    }

    /// Returns the live board of this generation.
    fn live(&self, board: &Board) -> Result<Arc<LiveBoard>> {
        match self.boards.read().get(board.name()) {
            Some(live) if live.board.generation() == board.generation() => Ok(live.clone()),
            _ => Err(StoreError::BoardChanged),
        }
    }

    /// Applies a batch to memory and appends it to the journal, whose ticket acknowledges it.
    async fn apply(&self, board: &Board, batch: &Batch) -> Result<(Added, Ticket)> {
        let permit = self.journal().admit(writing::most_bytes(batch))?;
        let plan = |window: &Window, now| Application::new(board, batch, (window, now), self.limits.max_skew, self.key);
        let mut application = None;
        if batch.increments.len() > writing::SMALL {
            // What takes a while is planned without the lock.
            let (window, now) = self.look(board, |_, tables, _| (tables.window, tables.now))?;
            application = Some(plan(&window, now));
        }
        loop {
            let ((done, frame), ticket) = self.change(board, |tables, operations| {
                let application = application.get_or_insert_with(|| plan(&tables.window, tables.now));
                let done = application.portion(tables, operations);
                // The last portion's ticket acknowledges those before.
                ((done, tables.frame()), if done { Awaited::Yes } else { Awaited::No })
            })?;
            if done && let Some(application) = application {
                drop(permit);
                let added = application.finish(frame);
                let ticket = self.vouch(&added, ticket);
                return Ok((added, ticket));
            }
            // Others come in between; and what is counted already must not wait for ever.
            tokio::task::yield_now().await;
            if !self.journal().has_room().await {
                return Err(self.journal().unknown());
            }
        }
    }

    /// Returns a ticket that acknowledges whatever the answer says has been counted, by this call or before.
    fn vouch(&self, added: &Added, ticket: Ticket) -> Ticket {
        let vouches = || added.outcomes.iter().any(|outcome| !matches!(outcome, Outcome::Rejected(_)));
        match ticket {
            // A duplicate, or a measurement that is no new extreme: what counted it first, or is better, may still be
            // on its way to the disk.
            Ticket::Done if vouches() => self.journal().catch_up(),
            ticket => ticket,
        }
    }

    /// Does `work` on a board's tables, advanced to now, and appends what it says to the journal before the lock is
    /// released: the order of the log is the order of the locks.
    ///
    /// [`StoreError::ClockDoubted`] if nothing must be written at present.
    fn change<T>(
        &self,
        board: &Board,
        work: impl FnOnce(&mut Tables, &mut Operations) -> (T, Awaited),
    ) -> Result<(T, Ticket)> {
        let live = self.live(board)?;
        let mut operations = Operations::of(board.generation());
        let mut tables = live.tables.lock();
        self.enter(&live, &mut tables)?;
        if let Some(doubted) = self.doubt(&tables) {
            return Err(doubted);
        }
        // A restart must not put the board's time back behind what it has counted.
        operations.advanced(tables.now.millis());
        let nothing = operations.len();
        let (answer, awaited) = work(&mut tables, &mut operations);
        if operations.len() == nothing {
            self.leave(tables);
            return Ok((answer, Ticket::Done));
        }
        let (sequence, ticket) = match awaited {
            Awaited::Yes => self.journal().append_and_wait(&operations),
            Awaited::No => (self.journal().append(&operations), Ticket::Done),
        };
        live.logged.add(sequence, operations.len());
        self.leave(tables);
        Ok((answer, ticket))
    }

    /// Does `work` on a board's tables, advanced to now.
    fn look<T>(&self, board: &Board, work: impl FnOnce(&Board, &mut Tables, Advance) -> T) -> Result<T> {
        let live = self.live(board)?;
        let mut tables = live.tables.lock();
        let advance = self.enter(&live, &mut tables)?;
        let answer = work(&live.board, &mut tables, advance);
        self.leave(tables);
        Ok(answer)
    }

    /// Unlocks a board, and passes on what is to be freed.
    fn leave(&self, mut tables: MutexGuard<Tables>) {
        let garbage = tables.holdings.take_garbage();
        // Those who wait for the lock get it before this thread does again.
        MutexGuard::unlock_fair(tables);
        if !garbage.is_empty() {
            self.discard(garbage);
        }
    }

    /// Moves a board to the clock's now, and passes on what that set free.
    fn enter(&self, live: &LiveBoard, tables: &mut Tables) -> Result<Advance> {
        if tables.gone {
            return Err(StoreError::BoardChanged);
        }
        let now = tables.believe(&live.board, self.clock.read());
        let mut advance = tables.advance(&live.board, now);
        if let Some(expired) = &mut advance.expired {
            self.discard(expired.holdings.take());
        }
        if let Some(forgotten) = advance.forgotten.take() {
            self.discard(forgotten);
        }
        Ok(advance)
    }

    /// Returns why a board must not be written to, if the clock is doubted since the start.
    fn doubt(&self, tables: &Tables) -> Option<StoreError> {
        let trust = tables.trust.as_ref()?;
        let reading = trust.doubted()?;
        let Reading::System { monotonic, .. } = self.clock.read() else { return None };
        let retry_after = trust.is_standing(monotonic)?.max(Duration::from_secs(1));
        Some(StoreError::ClockDoubted { reading, recorded: tables.now, retry_after })
    }

    /// Returns why some board must not be written to.
    fn standing_clock(&self) -> Option<StoreError> {
        if !self.clock.may_be_doubted() {
            return None;
        }
        let boards: Vec<_> = self.boards.read().values().cloned().collect();
        boards.iter().find_map(|live| {
            let mut tables = live.tables.lock();
            self.enter(live, &mut tables).ok()?;
            self.doubt(&tables)
        })
    }

    /// Has something freed by another thread; by this one if that is gone.
    fn discard(&self, what: impl Any + Send) {
        drop(self.discarded.send(Box::new(what)));
    }
}

impl Tables {
    /// Returns the time to go by for this board.
    fn believe(&mut self, board: &Board, reading: Reading) -> Timestamp {
        let (wall, monotonic) = match reading {
            Reading::Simulated(now) => return now,
            Reading::System { wall, monotonic } => (wall, monotonic),
        };
        let slots = self.window.end.millis() - self.window.floor.millis();
        let window = self.holdings.rule.life.unwrap_or(slots);
        let trust = self.trust.get_or_insert_with(|| ClockTrust::new(wall, monotonic));
        let doubted = trust.doubted();
        let believed = trust.believe(wall, monotonic, window);
        if doubted.is_none()
            && let Some(leap) = trust.doubted()
        {
            tracing::warn!(board = %board.name(), reading = %leap, going_by = %believed,
                "the system clock is further ahead than expected; not believed until it agrees for a minute");
        }
        believed
    }
}
