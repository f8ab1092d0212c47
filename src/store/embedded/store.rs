//! The embedded store as a [`Store`]: each call is one visit to a board's tables.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use async_trait::async_trait;
use parking_lot::Mutex;

use super::boards::LiveBoard;
use super::clock::Clock;
use super::codec::{BOARDS, CLOCK, REACHED, key, of_board};
use super::journal::{Sweep, Ticket};
use super::tables::Tables;
use super::{Embedded, asking, audit, loading, reading, recovery, writing};
use crate::board::{Board, BoardName, Definition, Generation, Subject, Timestamp};
use crate::store::{
    Added, Ask, AuditCursor, AuditStep, Batch, Defined, Lookup, Outcome, Page, Reading, Removal, Result, RetireStep,
    Standing, Status, Store, StoreError, Values,
};

/// What a step of retiring aims at.
const STEP: Duration = Duration::from_micros(500);
/// Subjects of a step, however slow or fast the machine is.
const LEAST: u64 = 64;
const MOST: u64 = 4_096;
/// How often a step looks at the time: once in so many subjects.
const LOOK: u64 = 32;

/// Whether [`LOOK`] subjects' worth of work was done since the last look.
fn is_time_to_look(looked: &mut u64, work: u64) -> bool {
    let due = work >= *looked + LOOK;
    if due {
        *looked = work;
    }
    due
}

impl Embedded {
    /// Applies a batch to memory and hands it to the journal, whose ticket acknowledges it.
    fn apply(&self, board: &Board, batch: &Batch) -> Result<(Added, Ticket)> {
        self.journal.admit()?;
        let (added, ticket) = self.change(board, |tables, operations, _| {
            writing::apply(board, tables, batch, self.limits.max_skew, operations)
        })?;
        let vouches = || added.outcomes.iter().any(|outcome| !matches!(outcome, Outcome::Rejected(_)));
        let ticket = match ticket {
            // A duplicate, or a measurement that is no new extreme: what counted it first, or is better, may still be
            // on its way to the disk, and this answer vouches for it.
            Ticket::Done if vouches() => self.journal.catch_up(),
            ticket => ticket,
        };
        Ok((added, ticket))
    }
}

#[async_trait]
impl Store for Embedded {
    fn kind(&self) -> &'static str {
        "embedded"
    }

    async fn now(&self) -> Result<Timestamp> {
        Ok(self.clock.read().shown())
    }

    async fn set_clock(&self, to: Timestamp) -> Result<Timestamp> {
        let Clock::Simulated(clock) = &self.clock else { return Err(StoreError::ClockNotSimulated) };
        self.journal.admit()?;
        let ticket = {
            let mut now = clock.lock();
            if to < *now {
                return Err(StoreError::ClockBackward { now: *now });
            }
            *now = to;
            self.journal.append_entries([(CLOCK.to_vec(), Some(recovery::encode_time(to)))], None)
        };
        ticket.wait().await?;
        Ok(to)
    }

    async fn define(&self, name: &BoardName, definition: &Definition) -> Result<Defined> {
        self.journal.admit()?;
        let (defined, ticket) = {
            let mut boards = self.boards.write();
            if let Some(live) = boards.get(name) {
                let board = live.board.clone();
                let same = board.definition() == definition;
                let found = if same { Defined::Unchanged(board) } else { Defined::Conflict(board) };
                // What defined it may still be on its way to the disk, and this answer vouches for it.
                (found, self.journal.catch_up())
            } else {
                let invalid = |error| StoreError::Setup { detail: format!("board '{name}': {error}") };
                let board =
                    Board::new(name.clone(), Generation(rand::random()), definition.clone()).map_err(invalid)?;
                let now = self.clock.read().shown();
                let entries = [
                    (key(BOARDS, &[name.as_str().as_bytes()]), Some(loading::encode_board(&board)?)),
                    (of_board(REACHED, board.generation()), Some(recovery::encode_time(now))),
                ];
                let tables = Mutex::new(Tables::new(&board, now));
                let board = Arc::new(board);
                boards.insert(name.clone(), Arc::new(LiveBoard { board: board.clone(), tables }));
                self.boards_version.fetch_add(1, Ordering::AcqRel);
                (Defined::Created(board), self.journal.append_entries(entries, None))
            }
        };
        ticket.wait().await?;
        Ok(defined)
    }

    async fn board(&self, name: &BoardName) -> Result<Option<Arc<Board>>> {
        Ok(self.boards.read().get(name).map(|live| live.board.clone()))
    }

    async fn boards(&self) -> Result<Vec<Arc<Board>>> {
        Ok(self.boards.read().values().map(|live| live.board.clone()).collect())
    }

    async fn boards_version(&self) -> Result<u64> {
        Ok(self.boards_version.load(Ordering::Acquire))
    }

    async fn undefine(&self, board: &Arc<Board>) -> Result<bool> {
        self.journal.admit()?;
        let (live, ticket) = {
            let mut boards = self.boards.write();
            let live = match boards.get(board.name()) {
                Some(live) if live.board.generation() == board.generation() => live.clone(),
                _ => return Ok(false),
            };
            boards.remove(board.name());
            self.boards_version.fetch_add(1, Ordering::AcqRel);
            live.tables.lock().gone = true;
            let entry = (key(BOARDS, &[board.name().as_str().as_bytes()]), None);
            let sweep = Sweep::All(board.generation());
            (live, self.journal.append_entries([entry], Some(sweep)))
        };
        self.discard(live);
        ticket.wait().await?;
        Ok(true)
    }

    async fn add(&self, board: &Arc<Board>, batch: Batch) -> Result<Added> {
        let (added, ticket) = self.apply(board, &batch)?;
        ticket.wait().await?;
        Ok(added)
    }

    async fn add_all(&self, batches: Vec<(Arc<Board>, Batch)>) -> Vec<Result<Added>> {
        // All of it is with the journal before any of it is waited for: it shares a group.
        let applied: Vec<_> = batches.iter().map(|(board, batch)| self.apply(board, batch)).collect();
        let (added, tickets): (Vec<_>, Vec<_>) = applied
            .into_iter()
            .map(|applied| match applied {
                Ok((added, ticket)) => (Ok(added), ticket),
                Err(error) => (Err(error), Ticket::Done),
            })
            .unzip();
        let waited = Ticket::wait_all(tickets).await;
        added.into_iter().zip(waited).map(|(added, waited)| waited.and(added)).collect()
    }

    async fn page(&self, board: &Arc<Board>, offset: u64, limit: u32) -> Result<Page> {
        self.look(board, |board, tables, _| reading::page(board, tables, offset, limit))
    }

    async fn neighbors(&self, board: &Arc<Board>, subject: &Subject, radius: u32) -> Result<Page> {
        self.look(board, |board, tables, _| reading::neighbors(board, tables, subject, radius))
    }

    async fn lookup(&self, board: &Arc<Board>, subjects: &[Subject]) -> Result<Lookup> {
        self.look(board, |_, tables, _| reading::lookup(tables, subjects))
    }

    async fn standing(&self, board: &Arc<Board>, subject: &Subject) -> Result<Standing> {
        self.look(board, |board, tables, _| reading::standing(board, tables, subject))
    }

    async fn read(&self, asks: Vec<Ask>) -> Vec<Result<Reading>> {
        let read = |ask: &Ask| self.look(&ask.board, |board, tables, _| asking::read(board, tables, ask))?;
        asks.iter().map(read).collect()
    }

    async fn values(&self, board: &Arc<Board>, subject: &Subject, offset: u64, limit: u32) -> Result<Values> {
        self.look(board, |_, tables, _| asking::values(tables, subject, offset, limit))
    }

    async fn remove(&self, board: &Arc<Board>, subject: &Subject) -> Result<Removal> {
        self.journal.admit()?;
        let ((removal, removed), ticket) = self.change(board, |tables, operations, _| {
            let score = reading::score(tables, subject);
            let (floor, now) = (tables.window.floor.millis(), tables.now.millis());
            let counters = u64::from(tables.holdings.counter(subject.as_str().into(), now).is_some());
            let rule = tables.holdings.rule;
            let removed = tables.holdings.remove(subject.as_str().into(), floor);
            if removed.anything {
                operations.removed(subject.as_str());
            }
            let retiring_slots = if rule.ranked { removed.expired } else { 0 };
            let live_slots = if rule.life.is_some() { counters } else { removed.live };
            (Removal { frame: tables.frame(), score, live_slots, retiring_slots }, removed.anything)
        })?;
        ticket.wait().await?;
        if !removed {
            // What took it out before may still be on its way to the disk, and this answer says that it is out.
            self.journal.catch_up().wait().await?;
        }
        Ok(removal)
    }

    async fn status(&self, board: &Arc<Board>) -> Result<Status> {
        self.look(board, |_, tables, _| reading::status(tables))
    }

    async fn retire_step(&self, board: &Arc<Board>) -> Result<RetireStep> {
        self.look(board, |_, tables, advance| {
            let started = Instant::now();
            let mut looked = 0;
            let (retired, done) = tables.retire(|work| {
                work < LEAST || (work < MOST && (!is_time_to_look(&mut looked, work) || started.elapsed() < STEP))
            });
            if done {
                tables.visit(MOST / 4);
            }
            RetireStep {
                frame: tables.frame(),
                slots_advanced: advance.slots,
                slots_retired: retired.slots + advance.expired.map_or(0, |expired| expired.slots),
                subjects_touched: retired.touched,
                subjects_removed: retired.removed,
                done,
                skipped: false,
            }
        })
    }

    async fn audit_step(&self, board: &Arc<Board>, cursor: AuditCursor, repair: bool) -> Result<AuditStep> {
        self.look(board, |_, tables, _| audit::step(tables, &cursor, repair))
    }

    async fn check(&self) -> Result<()> {
        match self.journal.failure() {
            Some(reason) => Err(StoreError::ReadOnly { reason: reason.to_owned() }),
            None => Ok(()),
        }
    }

    async fn close(&self) -> Result<()> {
        self.check().await?;
        let stopped = self.journal.clone();
        let writer = self.writer.lock().take();
        stopped.stop();
        if let Some(writer) = writer {
            let joined = tokio::task::spawn_blocking(|| writer.join()).await;
            if !matches!(joined, Ok(Ok(()))) {
                return Err(StoreError::ReadOnly { reason: "the journal's thread has failed".to_owned() });
            }
        }
        match self.journal.failure() {
            Some(super::writer::CLOSED) | None => Ok(()),
            Some(reason) => Err(StoreError::ReadOnly { reason: reason.to_owned() }),
        }
    }
}
