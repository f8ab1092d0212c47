//! A store that fails when told to, in every way a store can.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use parking_lot::Mutex;
use rolltop::board::{
    Attributes, AttributesChange, AttributesError, Board, BoardName, BoardTrack, EarlierRanks, ModerationChange,
    ModerationList, Percentile, SourceNumber, Subject, Timestamp, Value,
};
use rolltop::store::embedded::Embedded;
use rolltop::store::*;

/// How the store fails from now on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    Unreachable,
    TimedOut,
    Overloaded,
    ReadOnly,
    Backend,
    BoardChanged,
    ClockDoubted,
    Corrupt,
}

/// What is to fail: everything, after this many successful calls of one kind.
#[derive(Default)]
pub struct Switch {
    fault: Mutex<Option<Planned>>,
    spares_reads: AtomicBool,
    calls: AtomicU64,
    slow_pages: AtomicBool,
    /// The number of slow pages that are being read, and the largest one.
    pages: AtomicU64,
    most_pages: AtomicU64,
    /// The board whose steps of retiring end with a panic, and how many have.
    broken: Mutex<Option<BoardName>>,
    panics: AtomicU64,
    disturbs_walks: AtomicBool,
    restarts: AtomicBool,
}

struct Planned {
    fault: Fault,
    /// The number of calls that still go well.
    left: u64,
    counts_writes: bool,
}

impl Switch {
    /// Every call fails from now on.
    pub fn fail(&self, fault: Fault) {
        self.fail_after_writes(fault, 0);
    }

    /// Writes fail after this many have succeeded; reads succeed until then.
    pub fn fail_after_writes(&self, fault: Fault, writes: u64) {
        *self.fault.lock() = Some(Planned { fault, left: writes, counts_writes: true });
    }

    /// Reads fail after this many have succeeded.
    pub fn fail_after_reads(&self, fault: Fault, reads: u64) {
        *self.fault.lock() = Some(Planned { fault, left: reads, counts_writes: false });
    }

    /// No call fails from now on.
    pub fn work(&self) {
        *self.fault.lock() = None;
    }

    /// Every write and every definition of a board fails from now on; reads go on well.
    pub fn refuse_writes(&self) {
        self.spares_reads.store(true, Ordering::Relaxed);
        self.fail(Fault::ReadOnly);
    }

    /// Whether subjects seem to be moved during every walk from now on.
    pub fn disturb_walks(&self, disturbs: bool) {
        self.disturbs_walks.store(disturbs, Ordering::SeqCst);
    }

    /// Whether the server seems to be restarted all the time from now on.
    pub fn restart(&self, restarts: bool) {
        self.restarts.store(restarts, Ordering::SeqCst);
    }

    /// Pages take a while from now on, in which other tasks of their thread run.
    pub fn slow_pages(&self) {
        self.slow_pages.store(true, Ordering::SeqCst);
    }

    /// The largest number of slow pages that were read at the same time.
    pub fn most_pages(&self) -> u64 {
        self.most_pages.load(Ordering::SeqCst)
    }

    async fn read_slowly(&self) {
        if self.slow_pages.load(Ordering::SeqCst) {
            let now = self.pages.fetch_add(1, Ordering::SeqCst) + 1;
            self.most_pages.fetch_max(now, Ordering::SeqCst);
            for _ in 0..50 {
                tokio::task::yield_now().await;
            }
            self.pages.fetch_sub(1, Ordering::SeqCst);
        }
    }

    /// Every step of retiring of this board ends with a panic from now on.
    pub fn break_steps(&self, board: BoardName) {
        *self.broken.lock() = Some(board);
    }

    /// How many steps have ended with a panic.
    pub fn panics(&self) -> u64 {
        self.panics.load(Ordering::SeqCst)
    }

    /// How often the store was called; each query of a read is one.
    pub fn calls(&self) -> u64 {
        self.calls.load(Ordering::Relaxed)
    }

    fn check(&self, is_write: bool) -> Result<()> {
        self.calls.fetch_add(1, Ordering::Relaxed);
        if !is_write && self.spares_reads.load(Ordering::Relaxed) {
            return Ok(());
        }
        let mut fault = self.fault.lock();
        match fault.as_mut() {
            None => Ok(()),
            Some(planned) if planned.left > 0 => {
                planned.left -= u64::from(is_write == planned.counts_writes);
                Ok(())
            }
            Some(Planned { fault, .. }) => Err(match fault {
                Fault::Unreachable => StoreError::Unreachable { at: "nowhere:1".into(), source: "refused".into() },
                Fault::TimedOut => StoreError::TimedOut { at: "nowhere:1".into() },
                Fault::Overloaded => StoreError::Overloaded { retry_after: Duration::from_millis(2_500) },
                Fault::ReadOnly => StoreError::ReadOnly { reason: "the disk is full".into() },
                Fault::Backend => StoreError::Backend { source: "an inner secret".into() },
                Fault::BoardChanged => StoreError::BoardChanged,
                Fault::Corrupt => StoreError::Corrupt { detail: "an inner secret".into() },
                Fault::ClockDoubted => StoreError::ClockDoubted {
                    reading: Timestamp::from_millis(2_000_000_000_000),
                    recorded: Timestamp::from_millis(1_700_000_000_000),
                    retry_after: Duration::from_secs(57),
                },
            }),
        }
    }
}

pub struct Failing {
    pub inner: Arc<Embedded>,
    pub switch: Arc<Switch>,
}

macro_rules! reads {
    (
        Lifecycle { $($call:ident($($of_call:ident: $of_kind:ty),*) -> $told:ty;)* }
        Store { $($name:ident($($argument:ident: $kind:ty),*) -> $answer:ty;)* }
    ) => {
        #[async_trait]
        impl Lifecycle for Failing {
            fn kind(&self) -> &'static str {
                self.inner.kind()
            }

            fn bytes_per_subject(&self, track: &BoardTrack) -> BytesPerSubject {
                self.inner.bytes_per_subject(track)
            }

            fn id_cost(&self, board: &Board) -> IdCost {
                self.inner.id_cost(board)
            }

            $(async fn $call(&self, $($of_call: $of_kind),*) -> Result<$told> {
                self.switch.check(false)?;
                self.inner.$call($($of_call),*).await
            })*
        }

        #[async_trait]
        impl Store for Failing {
            async fn define(&self, board: Board) -> Result<Defined> {
                self.switch.check(true)?;
                self.inner.define(board).await
            }

            async fn add(&self, board: &Arc<Board>, batch: Batch) -> Result<Added> {
                self.switch.check(true)?;
                self.inner.add(board, batch).await
            }

            async fn change_row(
                &self,
                table: TableName,
                id: &str,
                from: Option<&str>,
                to: Option<&str>,
            ) -> Result<bool> {
                self.switch.check(true)?;
                self.inner.change_row(table, id, from, to).await
            }

            async fn merge(&self, track: &BoardTrack, import: ImportId, piece: &Piece) -> Result<Merged> {
                self.switch.check(true)?;
                self.inner.merge(track, import, piece).await
            }

            async fn add_all(&self, batches: Vec<(Arc<Board>, Batch)>) -> Vec<Result<Added>> {
                let mut answers = Vec::with_capacity(batches.len());
                for (board, batch) in batches {
                    answers.push(self.add(&board, batch).await);
                }
                answers
            }

            async fn pass(&self, portions: Vec<(Arc<Board>, Portion)>) -> Vec<Result<Passed>> {
                let mut answers = Vec::with_capacity(portions.len());
                for portion in portions {
                    match self.switch.check(true) {
                        Ok(()) => answers.extend(self.inner.pass(vec![portion]).await),
                        Err(error) => answers.push(Err(error)),
                    }
                }
                answers
            }

            async fn reached(&self, board: &Arc<Board>, source: SourceNumber) -> Result<Option<Reached>> {
                self.switch.check(false)?;
                self.inner.reached(board, source).await
            }

            async fn read(&self, asks: Vec<SlotQuery>) -> Vec<Result<SlotContents>> {
                let mut answers = Vec::with_capacity(asks.len());
                for ask in asks {
                    match self.switch.check(false) {
                        Ok(()) => answers.extend(self.inner.read(vec![ask]).await),
                        Err(error) => answers.push(Err(error)),
                    }
                }
                answers
            }

            async fn page_from(&self, track: &BoardTrack, start: &PageStart, limit: u32) -> Result<Page> {
                self.switch.check(false)?;
                self.switch.read_slowly().await;
                self.inner.page_from(track, start, limit).await
            }

            async fn status(&self, track: &BoardTrack) -> Result<Status> {
                self.switch.check(false)?;
                let status = self.inner.status(track).await?;
                let disturbs = self.switch.disturbs_walks.load(Ordering::SeqCst);
                Ok(Status { upheavals: if disturbs { rand::random() } else { status.upheavals }, ..status })
            }

            async fn dual_run(&self, board: &Arc<Board>) -> Result<DualRun> {
                self.switch.check(false)?;
                let run = self.inner.dual_run(board).await?;
                let restarts = self.switch.restarts.load(Ordering::SeqCst);
                Ok(DualRun { server_runs: if restarts { rand::random() } else { run.server_runs }, ..run })
            }

            async fn retire_step(&self, track: &BoardTrack) -> Result<RetireStep> {
                self.switch.check(false)?;
                if self.switch.broken.lock().as_ref() == Some(track.board().name()) {
                    self.switch.panics.fetch_add(1, Ordering::SeqCst);
                    panic!("a step of '{}' is broken, as the test wants", track.board().name());
                }
                self.inner.retire_step(track).await
            }

            $(async fn $name(&self, $($argument: $kind),*) -> Result<$answer> {
                self.switch.check(false)?;
                self.inner.$name($($argument),*).await
            })*
        }
    };
}

reads! {
    Lifecycle {
        now() -> Timestamp;
        set_clock(to: Timestamp) -> Timestamp;
        check() -> ();
        backup() -> BackedUp;
        close() -> ();
    }
    Store {
        board(name: &BoardName) -> Option<Arc<Board>>;
        boards() -> Listing;
        boards_version() -> u64;
        undefine(board: &Arc<Board>) -> bool;
        neighbors(track: &BoardTrack, subject: &Subject, radius: u32) -> Page;
        lookup(track: &BoardTrack, subjects: &[Subject], ranks: bool) -> Lookup;
        standing(track: &BoardTrack, subject: &Subject) -> Standing;
        earlier_ranks(track: &BoardTrack) -> Option<Arc<EarlierRanks>>;
        distribution(track: &BoardTrack, percentiles: &[Percentile], scores: &[Value]) -> Distribution;
        values_from(track: &BoardTrack, subject: &Subject, start: &ValuesStart, limit: u32) -> Values;
        remove(board: &Arc<Board>, subject: &Subject) -> Removal;
        replace(board: &Arc<Board>, increment: Increment) -> Added;
        moderate(board: &Arc<Board>, changes: &[(Subject, ModerationChange)]) -> ();
        moderated(board: &Arc<Board>, list: ModerationList, range: TextRange<'_>, limit: u32) -> Moderated;
        set_attributes(board: &Arc<Board>, changes: &[(Subject, AttributesChange)]) -> Vec<Result<(), AttributesError>>;
        attributes(board: &Arc<Board>, subjects: &[Subject]) -> Vec<Attributes>;
        described(board: &Arc<Board>, range: TextRange<'_>, limit: u32) -> Described;
        keys(track: &BoardTrack, range: TextRange<'_>, limit: u32) -> Keys;
        audit_step(track: &BoardTrack, cursor: AuditCursor, repair: bool) -> AuditStep;
        contents_step(track: &BoardTrack, cursor: ContentsCursor) -> ContentsStep;
        begin_import(board: &Arc<Board>, import: ImportId) -> ImportBegun;
        end_import(board: &Arc<Board>, import: ImportId) -> bool;
        change_editions(from: &Arc<Board>, to: Board) -> Arc<Board>;
        fill(from: &BoardTrack, to: &BoardTrack, cells: &[(Subject, Timestamp)]) -> ();
        end_fill(board: &Arc<Board>, tracks: &[(usize, usize)]) -> ();
        compare(tracks: [&BoardTrack; 2], subjects: &[Subject]) -> Compared;
        sheets(track: &BoardTrack, ids: &[SheetId]) -> Sheets;
        change_sheet(track: &BoardTrack, id: SheetId, from: Option<&str>, to: &str) -> bool;
        rows(table: TableName, known: Option<u64>) -> Option<Rows>;
    }
}
