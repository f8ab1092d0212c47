//! The embedded store as a [`Store`]: each call is one visit to a board's tables.

use std::sync::Arc;
use std::time::{Duration, Instant};

use async_trait::async_trait;
use parking_lot::Mutex;

use super::boards::LiveBoard;
use super::clock::Clock;
use super::codec::{BOARDS, CLOCK, REACHED, key, of_board};
use super::journal::Sweep;
use super::tables::Tables;
use super::{Embedded, audit, reading, recovery, writing};
use crate::board::{Amount, Board, BoardName, Definition, Generation, Subject, Timestamp, Value};
use crate::store::{
    Added, Ask, AuditCursor, AuditStep, Batch, Defined, Lookup, Outcome, Page, Reading, Removal, Result, RetireStep,
    Standing, Status, Store, StoreError, Values,
};

/// What a step of retiring aims at.
const STEP: Duration = Duration::from_millis(2);
/// Subjects of a step, however slow or fast the machine is.
const LEAST: u64 = 64;
const MOST: u64 = 4_096;
/// How often a step looks at the time: once in so many subjects.
const LOOK: u64 = 32;

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
                    (key(BOARDS, &[name.as_str().as_bytes()]), Some(recovery::encode_board(&board)?)),
                    (of_board(REACHED, board.generation()), Some(recovery::encode_time(now))),
                ];
                let tables = Mutex::new(Tables::new(&board, now));
                let board = Arc::new(board);
                boards.insert(name.clone(), Arc::new(LiveBoard { board: board.clone(), tables }));
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

    async fn undefine(&self, board: &Arc<Board>) -> Result<bool> {
        self.journal.admit()?;
        let (live, ticket) = {
            let mut boards = self.boards.write();
            let live = match boards.get(board.name()) {
                Some(live) if live.board.generation() == board.generation() => live.clone(),
                _ => return Ok(false),
            };
            boards.remove(board.name());
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
        self.journal.admit()?;
        let (added, ticket) = self.change(board, |tables, operations, _| {
            writing::apply(board, tables, &batch, self.limits.max_skew, operations)
        })?;
        ticket.wait().await?;
        if added.outcomes.iter().any(|outcome| matches!(outcome, Outcome::Duplicate { .. })) {
            // What counted it first may still be on its way to the disk, and this answer vouches for it.
            self.journal.catch_up().wait().await?;
        }
        Ok(added)
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

    async fn add_all(&self, batches: Vec<(Arc<Board>, Batch)>) -> Vec<Result<Added>> {
        let mut added = Vec::with_capacity(batches.len());
        for (board, batch) in batches {
            added.push(self.add(&board, batch).await);
        }
        added
    }

    async fn read(&self, asks: Vec<Ask>) -> Vec<Result<Reading>> {
        let read = |ask: Ask| {
            self.look(&ask.board, |board, tables, _| reading::count(board, tables, &ask.subject, ask.reach))?
        };
        asks.into_iter().map(read).collect()
    }

    async fn values(&self, _board: &Arc<Board>, _subject: &Subject, _offset: u64, _limit: u32) -> Result<Values> {
        Err(StoreError::Corrupt { detail: "not yet".to_owned() })
    }

    async fn remove(&self, board: &Arc<Board>, subject: &Subject) -> Result<Removal> {
        self.journal.admit()?;
        let (removal, ticket) = self.change(board, |tables, operations, _| {
            let floor = tables.window.floor.millis();
            let score = Some(Value::Exact(Amount(tables.holdings.score_of(subject.as_str()))));
            let slices = tables.holdings.remove(subject.as_str());
            if !slices.is_empty() {
                operations.removed(subject.as_str());
            }
            let live_slots = slices.iter().filter(|slice| slice.slot >= floor).count() as u64;
            let retiring_slots = slices.len() as u64 - live_slots;
            Removal { frame: tables.frame(), score, live_slots, retiring_slots }
        })?;
        ticket.wait().await?;
        if removal.live_slots + removal.retiring_slots == 0 {
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
            let (retired, done) = tables.retire(|touched| {
                touched < LEAST || (touched < MOST && (touched % LOOK != 0 || started.elapsed() < STEP))
            });
            RetireStep {
                frame: tables.frame(),
                slots_advanced: advance.slots,
                slots_retired: retired.slots + advance.expired.map_or(0, |(_, slots)| slots),
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
