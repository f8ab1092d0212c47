//! The store: one trait of domain verbs, and the contract every implementation keeps.
//!
//! One call is one atomic operation (a [`retire_step`](Store::retire_step) or [`audit_step`](Store::audit_step)
//! is one *step*). Connections, keys and files never show in a signature. Each sentence below has a test in the
//! conformance suite, which runs against every store.
//!
//! # The contract
//! - **Clock.** A store has one clock. It never runs backward as seen through answers of one board: head and
//!   floor only move forward, and `as_of` is never before the head.
//! - **Advance.** Every call about a board first advances head and floor to the store's now. Nothing is written
//!   below the floor, and a read just after a boundary is about the new window.
//! - **Exact.** A subject's score is what its [`Kind`](crate::board::Kind) says of all its slots, live ones and what is
//!   not yet subtracted of the retiring ones: of COUNT, SUM and COUNT_DISTINCT their sum, of AVG the quotient of two
//!   sums (ranked from [`Board::min_samples`] on), of MIN and MAX the best extreme, of the approximate metric the
//!   estimate of the merged sketches. Where that is [`Kind::absent`](crate::board::Kind::absent) the subject is absent from the ranking. When
//!   every slot has expired at once the ranking is empty at once.
//! - **Order.** By score, then by subject bytes; both descending on a `desc` board, both ascending on an `asc` one.
//!   Ranks are competition ranks (1, 2, 2, 4).
//! - **Last seen.** COUNT_DISTINCT remembers of each value when it was last seen, and counts it in that slot only; so
//!   the slots of any window ending now add up to its distinct values. A sighting not newer than what is remembered
//!   changes nothing; a retraction wins ties and leaves a tombstone until its slot expires. Past
//!   [`Definition::max_values`] the value seen longest ago goes (of several the smallest bytes), and answers over its
//!   slot are `capped` for as long as that slot is in them.
//! - **Samples** *set* what a (subject, slot) has, whatever it had; sending one again changes nothing.
//! - **Retraction.** It takes its twin's amount out of the twin's own slot. Of a twin below the floor nothing is left
//!   to take: that is counted, and changes nothing.
//! - **Unranked boards** keep a subject's slots and no ranking: nothing is retired, no slot of the window is missing
//!   from an answer, and the newest [`Board::kept`] slots can be looked back at. With `mode = from_first` a subject has
//!   one counter instead, which begins with an event and ends [`Metric::window`](crate::board::Metric::window) later.
//! - **Absence.** An unknown subject has the score that [`Kind::absent`](crate::board::Kind::absent) says and no rank; that is an answer, not an
//!   error.
//! - **Once.** A (slot, subject) is subtracted exactly once, whoever steps, crashes or repeats. An increment's
//!   id counts once per (board, subject, id) within [`Board::dedupe_horizon`] of its arrival.
//! - **Batches.** Each item of a batch takes effect as a whole, and the items in the order of their [`Plan`]. A large
//!   batch is applied in portions: others may read and write between them.
//! - **Acknowledged means counted.** `Ok` from [`add`](Store::add) says that the store has it, as durably as it
//!   was configured to.
//! - **List.** [`boards_version`](Store::boards_version) is another whenever the list of boards is another: it changes
//!   after a board has come or gone and before the call that did it answers, through whichever instance. So a list
//!   that was read after the version it is kept with misses no board for as long as the version stays that.
//! - **Identity.** Every call carries the [`Board`] it means. If that generation is gone the call changes nothing
//!   and answers [`StoreError::BoardChanged`]: look the board up again.

mod batch;
pub mod embedded;
mod error;
mod lines;
mod receive;
pub mod redis;
mod trust;

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;

pub use batch::{Added, Batch, Entry, Increment, Outcome, Plan, Rejection};
pub use error::StoreError;
pub use lines::Lines;
pub use trust::ClockTrust;

use crate::board::{Board, BoardName, Counted, Definition, Frame, Subject, Tally, Timestamp, Value};

/// What a call answers.
pub type Result<T, E = StoreError> = std::result::Result<T, E>;

/// Where a store's time comes from; remembered in the store, so that two modes never mix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClockMode {
    /// The store's own clock: Redis' `TIME`, or this process's.
    System,
    /// Set from outside, forward only. A new store starts at this time; one that has a later time keeps it.
    Simulated(Timestamp),
}

/// Limits that both stores apply to what arrives.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// How far ahead of the store's clock an `at` may be and still count as now, in milliseconds.
    pub max_skew: i64,
}

impl Default for Limits {
    fn default() -> Self {
        Self { max_skew: 5_000 }
    }
}

/// What [`Store::define`] found.
#[derive(Clone, Debug)]
pub enum Defined {
    /// The board is new.
    Created(Arc<Board>),
    /// It existed with just this definition.
    Unchanged(Arc<Board>),
    /// It exists with another definition, which is left as it was.
    Conflict(Arc<Board>),
}

/// All boards of a store.
#[derive(Clone, Debug, Default)]
pub struct Listing {
    /// Those that can be read, by name.
    pub boards: Vec<Arc<Board>>,
    /// Those that are defined, but whose definition this version cannot read.
    pub unreadable: Vec<Unreadable>,
}

/// A board that is defined, but whose definition this version cannot read: a newer version wrote it, or it is damaged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unreadable {
    /// The name as it is stored; it need not be one that a board can have.
    pub name: String,
    /// The generation as it is stored.
    pub generation: String,
    /// What is wrong, and where.
    pub reason: String,
}

/// One line of a ranking.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ranked {
    /// Competition rank, from 1.
    pub rank: u64,
    pub subject: Subject,
    pub score: Value,
}

/// A part of a ranking.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Page {
    pub frame: Frame,
    /// How many subjects are ranked in all.
    pub total: u64,
    pub items: Lines,
}

/// Where one subject stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Standing {
    pub frame: Frame,
    pub total: u64,
    /// Its score in the ranking; what [`Kind::absent`](crate::board::Kind::absent) says if it is not ranked. On an
    /// unranked board the value of its window.
    pub score: Option<Value>,
    /// `None` if it is not ranked.
    pub rank: Option<u64>,
    /// How many ranked subjects have a strictly better score: percentile = 100 x (total − better) / total.
    pub better: u64,
    /// Its live slots that hold anything, oldest first, each by its start.
    pub slots: Vec<(Timestamp, Tally)>,
    /// COUNT_DISTINCT: values of this window were dropped because there were more than the board remembers.
    pub capped: bool,
}

/// The ranking among given subjects only.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lookup {
    pub frame: Frame,
    pub total: u64,
    /// The score of each subject asked for, in the order asked; `None` if it is not ranked.
    pub scores: Vec<Option<Value>>,
}

/// Which of the newest slots to count.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Reach {
    /// The newest so many slots, the head included; at most the window's.
    Slots(u32),
    /// From the slot that contains this time.
    From(Timestamp),
}

/// A question about one subject's slots.
#[derive(Clone, Debug)]
pub struct Ask {
    pub board: Arc<Board>,
    pub subject: Subject,
    pub reach: Reach,
    /// Unranked boards but exact distinct and `from_first` ones: the window ending at this time instead of now.
    pub as_of: Option<Timestamp>,
}

/// What one subject has in the slots asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reading {
    /// The frame's window is what was read: its floor is the oldest slot, and its end that of the newest.
    pub frame: Frame,
    /// How many slots were read.
    pub slots: u32,
    /// Those that hold anything, oldest first, each by its start. Of COUNT_DISTINCT these are the values last seen in
    /// each. On a `from_first` board one, by the time at which it began.
    pub tallies: Vec<(Timestamp, Tally)>,
    /// COUNT_DISTINCT: values of these slots were dropped because there were more than the board remembers.
    pub capped: bool,
}

impl Reading {
    /// What the slots say together.
    pub fn value(&self, board: &Board) -> Option<Value> {
        board.value(self.tallies.iter().map(|(_, tally)| tally))
    }
}

/// A page of the values that one subject was seen with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Values {
    pub frame: Frame,
    /// How many the window has in all.
    pub total: u64,
    /// By the time each was last seen, newest first; of the same time the greatest bytes first.
    pub items: Vec<(Counted, Timestamp)>,
    pub capped: bool,
}

/// What went when a subject was removed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Removal {
    pub frame: Frame,
    /// The score it had, as [`Standing::score`].
    pub score: Option<Value>,
    /// Live slots that held an amount.
    pub live_slots: u64,
    /// Retiring slots that still held an amount.
    pub retiring_slots: u64,
}

/// A board as a whole.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Status {
    pub frame: Frame,
    /// How many subjects are ranked.
    pub total: u64,
    /// Starts of the live slots that exist (somebody wrote to them), oldest first, each with its subjects.
    pub slots: Vec<(Timestamp, u64)>,
    /// Retiring slots, oldest first, each with the subjects not yet subtracted.
    pub retiring: Vec<(Timestamp, u64)>,
}

/// What one bounded step of retiring did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RetireStep {
    pub frame: Frame,
    /// How many slots the head moved forward in this step.
    pub slots_advanced: u64,
    /// Slots whose last amount this step subtracted (or that it dropped whole). Of a board of several parts each part's
    /// own slots.
    pub slots_retired: u64,
    /// Subjects this step subtracted from.
    pub subjects_touched: u64,
    /// Subjects this step took out of the ranking because their score became 0.
    pub subjects_removed: u64,
    /// Nothing below the floor remains, and nothing else of the board that is not needed any more.
    pub done: bool,
    /// Another instance has just stepped this board, so this call did nothing: come back shortly.
    pub skipped: bool,
    /// How long the store itself worked on it: without the way to the server and back.
    pub worked: Duration,
}

/// Where an audit continues. Opaque: only what a step answered may be passed to the next.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AuditCursor(pub(crate) String);

/// A subject whose score is not the sum of its slots.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    pub subject: Subject,
    /// What the ranking says.
    pub score: Option<Value>,
    /// What its live and unsubtracted retiring slots say together.
    pub slots: Option<Value>,
}

/// What one bounded step of an audit found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuditStep {
    pub frame: Frame,
    /// Subjects compared; one may be compared twice if the store moved it meanwhile.
    pub checked: u64,
    pub differences: Vec<Difference>,
    /// How many of them this step set right.
    pub repaired: u64,
    /// Slots that should exist and do not: a part of the data is lost.
    pub missing_slots: u64,
    /// `None` when the audit is complete.
    pub next: Option<AuditCursor>,
}

/// A copy of the store's data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BackedUp {
    /// The directory of the copy, which can be opened as a data directory.
    pub path: std::path::PathBuf,
    /// How many files it has.
    pub files: u64,
    /// How many bytes they have together.
    pub bytes: u64,
}

/// Boards, their slots and their rankings, kept exactly. See the [module](self) for the contract.
#[async_trait]
pub trait Store: Send + Sync + 'static {
    /// A short name for logs and metrics: `embedded` or `redis`.
    fn kind(&self) -> &'static str;

    /// The store's time now. Redis: one round trip.
    async fn now(&self) -> Result<Timestamp>;

    /// Moves a simulated clock forward and answers the new time; the same time again is fine.
    ///
    /// [`StoreError::ClockBackward`] if `to` is earlier, [`StoreError::ClockNotSimulated`] on a system clock.
    async fn set_clock(&self, to: Timestamp) -> Result<Timestamp>;

    /// Defines a board. When it answers, every instance of the store has it.
    async fn define(&self, name: &BoardName, definition: &Definition) -> Result<Defined>;

    /// Looks a board up. [`StoreError::Unreadable`] if its definition cannot be read. Redis: one round trip.
    async fn board(&self, name: &BoardName) -> Result<Option<Arc<Board>>>;

    /// All boards, by name. One that cannot be read does not keep the others from being listed.
    async fn boards(&self) -> Result<Listing>;

    /// A number that is another after each board that was defined or removed. Numbers have no order: only whether two
    /// are equal means anything. Redis: one round trip, which calls made at the same time share.
    async fn boards_version(&self) -> Result<u64>;

    /// The same for those who write meanwhile: while the store is away it is asked for as long as a write is.
    async fn boards_version_beside_writes(&self) -> Result<u64> {
        self.boards_version().await
    }

    /// Removes a board with everything it holds; answers whether it was there.
    async fn undefine(&self, board: &Arc<Board>) -> Result<bool>;

    /// Adds the increments of one request to one board. Per item: counted, a duplicate, or rejected; a rejection
    /// changes nothing and the rest counts. See [`Plan`] for the order in which items take effect.
    async fn add(&self, board: &Arc<Board>, batch: Batch) -> Result<Added>;

    /// As [`add`](Self::add), to several boards: each for itself, in one round trip where the store allows.
    async fn add_all(&self, batches: Vec<(Arc<Board>, Batch)>) -> Vec<Result<Added>>;

    /// The ranking from place `offset` (from 0), `limit` lines at most. O(log n + limit).
    async fn page(&self, board: &Arc<Board>, offset: u64, limit: u32) -> Result<Page>;

    /// Up to `radius` lines on each side of the subject, itself in the middle; no lines if it is not ranked.
    async fn neighbors(&self, board: &Arc<Board>, subject: &Subject, radius: u32) -> Result<Page>;

    /// The scores of the given subjects, all of one instant.
    async fn lookup(&self, board: &Arc<Board>, subjects: &[Subject]) -> Result<Lookup>;

    /// Score, rank and slots of one subject, all of one instant. O(log n + slots).
    async fn standing(&self, board: &Arc<Board>, subject: &Subject) -> Result<Standing>;

    /// What subjects have in some of their slots, each of one instant; all in one round trip where the store allows.
    /// Per question O(slots asked for). [`StoreError::BeyondWindow`] if it starts below what the board keeps, has
    /// more slots than the window, or looks back from a time that has not come.
    async fn read(&self, asks: Vec<Ask>) -> Vec<Result<Reading>>;

    /// The values a subject was seen with in the window, on a COUNT_DISTINCT board. O(log values + limit).
    async fn values(&self, board: &Arc<Board>, subject: &Subject, offset: u64, limit: u32) -> Result<Values>;

    /// What one subject has in its newest slots: a [`read`](Self::read) of one question.
    async fn count(&self, board: &Arc<Board>, subject: &Subject, reach: Reach) -> Result<Reading> {
        let ask = Ask { board: board.clone(), subject: subject.clone(), reach, as_of: None };
        let mut readings = self.read(vec![ask]).await;
        readings.pop().unwrap_or_else(|| Err(StoreError::Corrupt { detail: "a question was not answered".to_owned() }))
    }

    /// Takes a subject out of the ranking and of every slot, retiring ones included.
    async fn remove(&self, board: &Arc<Board>, subject: &Subject) -> Result<Removal>;

    /// Head, floor, slots and totals. O(slots).
    async fn status(&self, board: &Arc<Board>) -> Result<Status>;

    /// Advances, then subtracts a bounded part of the oldest slot below the floor, and removes a bounded part of what
    /// else of the board is not needed any more (Redis: ids beyond the horizon, what single subjects hold of expired
    /// slots): aims at 2 ms or less for each of the two. To be called until it is done, when a slot has ended and now
    /// and then between; a call that finds nothing to do is one look.
    async fn retire_step(&self, board: &Arc<Board>) -> Result<RetireStep>;

    /// A bounded part of what belongs to no board: to be called every few seconds. Answers whether nothing is left to do.
    /// Redis: records the time for instances that start later, and deletes what removed boards left.
    async fn tidy_step(&self) -> Result<bool> {
        Ok(true)
    }

    /// Compares (and with `repair` sets right) a bounded part of the subjects, each atomically. Start with
    /// [`AuditCursor::default`]. Every subject that has a score or an amount throughout is compared.
    async fn audit_step(&self, board: &Arc<Board>, cursor: AuditCursor, repair: bool) -> Result<AuditStep>;

    /// Whether the store can be reached and written to, and still is the one that was opened.
    ///
    /// [`StoreError::Emptied`] if all that it held went behind the service's back: [`reopen`](Self::reopen) it and
    /// define its boards again.
    async fn check(&self) -> Result<()>;

    /// Makes a store that was emptied usable again: it has a clock, and no boards.
    async fn reopen(&self) -> Result<()> {
        Ok(())
    }

    /// Looks after what others than the store's callers change. To be called about once a second, not while a call is
    /// under way; a call may take minutes. Redis: notices that the server was restarted, and audits each board then.
    async fn tend(&self) -> Result<()> {
        Ok(())
    }

    /// What a person has to look at although the store works. No round trip.
    fn warnings(&self) -> Vec<String> {
        Vec::new()
    }

    /// Copies the data as it is at one instant, while reads and writes go on.
    ///
    /// [`StoreError::Unsupported`] if the store cannot, or is not configured to.
    async fn backup(&self) -> Result<BackedUp>;

    /// Makes everything acknowledged as durable as it can be. Called once, when nothing else is under way.
    async fn close(&self) -> Result<()>;
}
