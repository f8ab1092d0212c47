//! The store: the trait [`Store`] with the operations of the domain, and the contract of every implementation. What a
//! store is, and how it is kept running, is in [`Lifecycle`].
//!
//! One call is one atomic operation (for [`retire_step`](Store::retire_step) and [`audit_step`](Store::audit_step), one
//! *step* is). Connections, keys and files never appear in a signature. Each sentence below has a test in the
//! conformance suite, which runs against every store.
//!
//! # The contract
//! - **Clock.** A store has one clock. In the results about one board it never runs backward: head and floor only move
//!   forward, and `as_of` is never before the head.
//! - **Advance.** Every call about a board first advances head and floor to the store's now. Nothing is written below
//!   the floor, and a read just after a slot boundary returns the new window.
//! - **Exact.** A subject's score is the value that its [`Kind`](crate::board::Kind) computes from all its slots: the
//!   live ones, and what is not yet subtracted of the retiring ones. For COUNT, SUM and COUNT_DISTINCT it is their sum,
//!   for AVG the quotient of two sums (as [`Track::averaging`](crate::board::Track::averaging) says), for
//!   MIN and MAX the best extreme, for LAST the value of the newest slot, for the approximate metric the estimate of
//!   the merged sketches. Where the value is [`Kind::absent`](crate::board::Kind::absent), the subject is not in the
//!   ranking. When every slot has expired at once, the ranking is empty at once.
//! - **Times.** Where [equal scores are ordered by time](crate::board::Ties), the number of COUNT and SUM has the newest
//!   time of the items in its slots beside their sum. An item of 0 and a retraction have no time. A time leaves with its
//!   slot. MIN, MAX and LAST have the time of the item whose value counts. A time is never after the store's now.
//! - **Order.** By score, then by subject bytes; both descending on a `desc` board, both ascending on an `asc` board.
//!   Ranks are competition ranks (1, 2, 2, 4) or, with [ordinal](crate::board::Ranks) ranks, those of the lines (1, 2, 3, 4).
//!   In several partitions, the ordinal ranks of a look-up are of an instant after that of its scores.
//! - **Last seen.** For each value, COUNT_DISTINCT stores the time when it was last seen, and counts the value in the
//!   slot of that time only. So the slots of any window that ends now add up to its distinct values. An event that is
//!   not newer than the stored time changes nothing. A retraction wins against an event of the same time, and leaves a
//!   tombstone until its slot expires. Beyond [`Definition::max_values`](crate::board::Definition::max_values) the
//!   value seen longest ago is dropped (of several, the one with the smallest bytes), and results that include its slot
//!   are marked `capped`.
//!   To [forget](crate::board::Change::Forget) a value removes it from every track that is written to, whenever it was
//!   last seen or taken back, also from a frozen subject and a period that has ended, and leaves no tombstone. It is
//!   rejected while an import is open, and counts as an item of the newest slot.
//! - **Newest.** For each slot, LAST stores the newest value with its time. An increment that is older than that
//!   changes nothing; of two of the same time the one that arrives later wins, and one without a time is never older. A
//!   sample replaces value and time. Its time is its own, even with `stamp = "end"`, where it may be the end of its
//!   slot: then it is newer than every event of the slot.
//! - **Samples** *replace* what a subject has in a slot. Sending a sample again changes nothing.
//! - **Retraction.** A retraction takes the amount of the event that it reverses out of that event's slot. If that slot
//!   is below the floor, nothing is left to take: the retraction is accepted and changes nothing, and its id is not
//!   stored. If its id was counted before, it is a duplicate there too.
//! - **Events.** A store counts, for each slot, the items that it counted in the slot: all that were neither rejected
//!   nor duplicates, retractions and samples included. The number never decreases. A `from_first` board has no such
//!   slots.
//! - **Unranked boards** keep each subject's slots and no ranking. Nothing is retired, results include every slot of
//!   the window, and the newest [`Track::kept`](crate::board::Track::kept) slots can be read for past times. On a
//!   `from_first` board a subject has one counter instead, which begins with an event and ends
//!   [`Metric::window`](crate::board::Metric::window) later.
//! - **All time.** A board on which everything counts has one slot, from [`Timestamp::EPOCH`] to [`Timestamp::MAX`]. It
//!   holds each subject's total, nothing retires, and values of COUNT_DISTINCT do not expire. Tombstones do, after
//!   [`Track::tombstone_life`](crate::board::Track::tombstone_life).
//! - **Tracks.** Writing and removing is about a board, reading, retiring and auditing about one of its
//!   [tracks](crate::board::Edition::tracks). An item counts in every track that reaches back to its time, or, if one
//!   of these refuses it, in none. Its id counts once for all tracks.
//! - **Kept slots** are a track without a ranking, beside a total over all time. An item counts in the total, and
//!   in its slot if that is kept. A sample replaces its slot and moves the total by the difference; for LAST it becomes
//!   the total unless that belongs to a later slot.
//! - **Keys.** On a board whose metric has [`BY`](crate::board::Metric::by), each key has a ranking of its own in each
//!   ranked track: order, ranks, places and totals are those of one key. What is written, removed, walked, merged,
//!   filled and audited is a subject [in a ranking](crate::board::Subject::in_ranking). A read of a ranking, or of one
//!   subject, is about the [key of its track](BoardTrack::key): the subjects that are given and returned have no key.
//!   A key without ranked subjects does not exist, and reads of it return an empty ranking. While a track has as many
//!   keys as [`Track::most_keys`](crate::board::Track::most_keys) allows, items of keys that have no ranking in any track
//!   are rejected ([`Rejection::TooManyKeys`]). This is decided by the current edition. What is merged or filled is not
//!   rejected, and what expires may make a subject ranked again. Subjects that are not ranked have no part in it. A
//!   store that divides a board may allow somewhat more, and never fewer.
//! - **Moderation.** What is [set](Store::moderate) for a subject holds for the board, in every track and edition and
//!   whatever the subject has, also for one without data, until it is set anew or the subject is [removed](Store::remove)
//!   ([replacing](Store::replace) its data does not change it). A hidden subject goes on counting, and is in no ranking:
//!   no page, rank, look-up, total or list of keys is affected by it. What reads it alone returns what it has:
//!   its [standing](Standing::visibility) has its score, and its slots are read and audited as those of any other. Items
//!   of a frozen subject are rejected ([`Rejection::SubjectFrozen`]), unless they are duplicates or their slots have left the
//!   windows. What is merged or filled is not rejected. A change is atomic for each subject.
//! - **Attributes.** They belong to the board, as what is set for subjects does: every track and edition has the same,
//!   whatever the subject has, until they are changed or the subject is [removed](Store::remove). A change is atomic for
//!   each subject, and one that would exceed [their bounds](crate::board::MAX_ATTRIBUTES_BYTES) changes nothing. Nothing else
//!   depends on them.
//! - **Earlier ranks.** A track with [boundaries](crate::board::Track::boundaries), which is written to, has the ranks of
//!   its first [1,000](EarlierRanks::MOST) lines as they were at the newest boundary. The first call about the track after a
//!   boundary notes them, before it changes anything. They are known if they are exactly those of the window that
//!   ended at the boundary: if the head moved by one slot, to the boundary, and nothing was retiring; over all time always.
//!   Otherwise they are [not known](EarlierRanks::lines) until the next boundary. Those of a new track are not known at
//!   first. Subjects that are hidden at the time have no rank then. What is written, hidden or shown later does not
//!   change the ranks, and a [removed](Store::remove) subject is no longer named in them.
//! - **Distribution.** The [score at a percentile](crate::board::Percentile) and the [numbers at a score](AtScore) are those of the
//!   ranking as [pages](Store::page_from) show it, without hidden subjects.
//! - **Absence.** An unknown subject has the score [`Kind::absent`](crate::board::Kind::absent) and no rank. That is a
//!   result, not an error.
//! - **Once.** What a subject has in a slot is subtracted exactly once, whichever instances step, crash or repeat. An
//!   increment's id counts once per (board, subject, id) within [`Board::dedupe_horizon`] of its arrival.
//! - **Batches.** Each item of a batch takes effect as a whole, and the items take effect in the order of their
//!   [`Plan`]: on a board with one window each has the outcome that it would have if the items had arrived one by one.
//!   A large batch is applied in portions: other calls may read and write between them.
//! - **Memory.** A store whose memory is limited refuses items before anything changes: first those that need a new
//!   subject or value, later all that take memory ([`Rejection::MemoryFull`]); and new boards
//!   ([`StoreError::MemoryFull`]). Reading, removing, expiry, and changes of what exists continue.
//! - **Sources.** What a board has [reached](Reached) of a source moves in the same atomic step that counts, and survives
//!   restarts as what is counted does. So a [portion](Portion) of a source counts each of its items once, however often,
//!   in whatever order and by however many senders portions are sent. A portion after a position that the board has not
//!   reached changes nothing and returns [`StoreError::SourceBehind`]. An item that is refused for good is
//!   [done](Fate::Done); one that a later attempt may count [stops](Fate::Waits) its lane, and nothing after it in this
//!   lane is counted. A new board has reached nothing, and joins a source with the first portion that
//!   [may join](Portion::joining).
//! - **Acknowledged means counted.** `Ok` from [`add`](Store::add) means that the store has the increments, as durably
//!   as it is configured to.
//! - **List.** [`boards_version`](Store::boards_version) changes whenever a board is created or removed, or gets other
//!   editions that are no periods of a season: after the change and before the call that made it returns, through any
//!   instance. So a list that was read after its version is complete for as long as the version stays the same, and has
//!   the definitions by which events count.
//! - **Identity.** Every call names a [`Board`] with its generation and epoch, or a track of one. If that generation no
//!   longer exists, the call changes nothing and returns [`StoreError::BoardChanged`]. If it has another epoch, the
//!   call changes nothing and returns [`StoreError::StaleEpoch`]. The caller then looks the board up again. Writes do
//!   that themselves: a portion of a write that met another epoch was not counted, is [carried](Increment::carried)
//!   over to the present editions and sent again, and [`Added::newer`] has the board.
//! - **Editions.** A board has a second edition from [`change_editions`](Store::change_editions) to the next change
//!   that removes it. Each item takes effect in both in one atomic step, with one reading of the clock and one set of
//!   ids. Each edition counts it or not by itself, and what only one of them counted is noted by reason, in the same
//!   step. An id is remembered if any edition counted the item. A change of editions is atomic for each partition, and
//!   a call is wholly about the editions before it or after it. The exchange of the two moves no data. A second edition
//!   begins empty; [`fill`](Store::fill) gives it what the current one has.
//! - **Contents.** A walk of [`contents_step`](Store::contents_step)s returns everything that subjects have in the live
//!   slots of a track, and in those that it keeps. What a subject has during the whole walk, unchanged, is returned at
//!   least once, and exactly once if the [counted items](Status::events) of the slots that are live at its end, and the
//!   [number of upheavals](Status::upheavals), are the same after the walk as before it. Rollover and retiring do not
//!   change that. A `from_first` board counts no items by slot, so changes during a walk cannot be recognized there.
//! - **Merging.** A [piece](Piece) of an import is merged into a track that may be in use. What a subject has in a slot
//!   becomes what it would be if the board had counted the events of both: sums, and for AVG numbers of measurements,
//!   are added; of two extremes the better one stays; of two LAST values the newer one, and of the same time the one
//!   that is there; sketches are united; a value of COUNT_DISTINCT is handled as if it were seen, or retracted, at its
//!   time. A content takes effect as a whole or is counted as [expired](Merged::expired) or [refused](Merged::refused).
//!   Each piece of an import is merged once, also if it is sent several times, by several callers, after a restart, or
//!   after a call that ended halfway. The numbers of counted items of slots are added.
//! - **Imports.** A board has at most one open import. While one is open, samples are rejected
//!   ([`Rejection::ImportOpen`]) and no subject can be removed ([`StoreError::ImportOpen`]). A board whose edition
//!   takes samples begins an import only if it is known to have received none. Imports of `from_first` boards, and
//!   pieces of an import that is not open, are refused ([`StoreError::NoImport`]).
//! - **Sheets.** A period of the archive has [sheets](SheetId), which are empty at first. [`change_sheet`](Store::change_sheet)
//!   compares and replaces one in one atomic step, through whichever instances it is called. Sheets survive restarts, are
//!   part of backups, and are deleted with the period. When the period is [packed](crate::board::Packed), by a change of
//!   editions, they are all that is left of it: its ranking is not read any more, and is deleted, at once or in steps. A removal that returned before a ranking was
//!   read is not in what was read, and has changed the number of [upheavals](Status::upheavals).
//! - **Rows.** Beside the boards, a store keeps small [tables](TableName) of texts. [`change_row`](Store::change_row)
//!   compares and replaces one row in one atomic step, through whichever instances it is called, and returns whether it
//!   did. A change to one row does not affect other rows, other tables or boards. `Ok` means that the change is stored
//!   as durably as an increment is. Rows survive restarts and are part of backups, and a removed row stays removed.
//! - **Versions of tables.** The [version](Rows::version) of a table changes with every change of a row, and with
//!   nothing else while the store is open. A version never stands for two different contents, also if the store was
//!   emptied, restored from a backup, or has lost its latest writes in a failover. Version 0 stands for a table without
//!   rows. So rows that were read with a version are the rows of the table for as long as it has that version.
//! - **Bounds of tables.** An id has 1 to [`MAX_ID_BYTES`](TableName::MAX_ID_BYTES) bytes, and a text at most
//!   [`MAX_TEXT_BYTES`](TableName::MAX_TEXT_BYTES): otherwise the call returns [`StoreError::InvalidRow`]. A table has
//!   at most [`MAX_ROWS`](TableName::MAX_ROWS) rows and [`MAX_BYTES`](TableName::MAX_BYTES) bytes, also if several
//!   instances add rows at the same time: a change beyond that returns [`StoreError::TableFull`]. After each of these
//!   errors nothing has changed.

mod batch;
mod contents;
mod distribution;
mod editions;
pub mod embedded;
mod entry;
mod error;
mod lifecycle;
mod lines;
mod place;
mod portion;
mod reached;
mod receive;
pub mod redis;
mod redivision;
mod rest;
mod results;
mod rows;
mod sheets;
mod sizing;
mod trust;

use std::sync::Arc;

use async_trait::async_trait;

pub use batch::{Added, Batch, Increment, Outcome, Plan, Rejection};
pub use contents::{Content, ContentsCursor, ContentsStep, ImportBegun, ImportId, MAX_IMPORTS, Merged, Piece};
pub use distribution::{AtScore, Distribution};
pub use editions::{Compared, DualRun, MAX_FILLED};
pub use entry::{Entry, MAX_EDITIONS, Missed, Slots, Sum};
pub use error::StoreError;
pub use lifecycle::Lifecycle;
pub use lines::Lines;
pub(crate) use place::compare_scores;
pub use place::{Direction, NextTo, PageStart, Place, TextRange, ValuePlace, ValuesStart};
pub use portion::{Fate, Passed, Portion};
pub use reached::{LANES, Reached, lane_of};
pub use redivision::CopyProgress;
pub(crate) use rest::rest;
pub use results::{
    AuditCursor, AuditStep, BackedUp, Defined, Described, Difference, Keys, Listing, Lookup, Moderated, Page, Ranked,
    Removal, RetireStep, SlotContents, SlotQuery, SlotRange, Standing, Status, Unreadable, Values,
};
pub use rows::{Rows, TableName};
pub use sheets::{MAX_SHEET_BYTES, SheetId, Sheets};
pub use sizing::{BytesPerSubject, IdCost};
pub use trust::ClockTrust;

use crate::board::{
    Attributes, AttributesChange, AttributesError, Board, BoardName, BoardTrack, EarlierRanks, ModerationChange,
    ModerationList, Percentile, SourceNumber, Subject, Timestamp, Value,
};

/// Returns an error if a read of this track must name a key, and does not.
fn require_key(track: &BoardTrack) -> Result<()> {
    if track.board().has_keys() && track.key().is_none() {
        return Err(StoreError::Unsupported { detail: "a read of a board with keys that names none".to_owned() });
    }
    Ok(())
}

/// Why the data of a subject is removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Removing {
    /// The subject is removed, with what is set for it, and noted ranks no longer name it.
    Subject,
    /// An increment is to replace its data.
    ToReplace,
}

/// The result of a call to a store.
pub type Result<T, E = StoreError> = std::result::Result<T, E>;

/// The source of a store's time. Recorded in the store, so that the two modes are never mixed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClockMode {
    /// The store's own clock: Redis `TIME`, or the clock of this process.
    System,
    /// A clock that is set from outside and only moves forward. A new store starts at this time. A store that has
    /// reached a later time keeps it.
    Simulated(Timestamp),
}

/// Limits that both stores apply to increments.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// The largest time, in milliseconds, by which the `at` of an increment may be ahead of the store's clock. Within
    /// this limit it counts as now.
    pub max_skew: i64,
}

impl Default for Limits {
    fn default() -> Self {
        Self { max_skew: 5_000 }
    }
}

/// Boards with their slots and rankings, kept exactly. See the [module](self) for the contract.
#[async_trait]
pub trait Store: Lifecycle {
    /// Creates a board, unless one of its name exists. When the call returns, every instance of the store sees the
    /// board. The store adds the [partitions](Board::partitions) and the [time](Board::defined_at).
    async fn define(&self, board: Board) -> Result<Defined>;

    /// Looks a board up. Returns [`StoreError::Unreadable`] if its definition cannot be read. Redis: one round trip.
    async fn board(&self, name: &BoardName) -> Result<Option<Arc<Board>>>;

    /// Returns all boards, by name. A board that cannot be read does not prevent the others from being listed.
    async fn boards(&self) -> Result<Listing>;

    /// Returns a number that changes whenever a board is created or removed, or gets other editions. The numbers have no
    /// order: they can only be compared for equality. Redis: one round trip, which concurrent calls share.
    async fn boards_version(&self) -> Result<u64>;

    /// Returns the same number for a caller that writes at the same time: while the store cannot be reached, the read
    /// is repeated for as long as a write is.
    async fn boards_version_beside_writes(&self) -> Result<u64> {
        self.boards_version().await
    }

    /// Removes a board with all its data. Returns whether it existed.
    async fn undefine(&self, board: &Arc<Board>) -> Result<bool>;

    /// Adds the increments of one request to one board. Each item is counted, a duplicate, or rejected. A rejected item
    /// changes nothing, and the others count. See [`Plan`] for the order in which items take effect.
    async fn add(&self, board: &Arc<Board>, batch: Batch) -> Result<Added>;

    /// Adds increments to several boards, each independently as with [`add`](Self::add), in one round trip where the
    /// store allows.
    async fn add_all(&self, batches: Vec<(Arc<Board>, Batch)>) -> Vec<Result<Added>>;

    /// Removes the data of the subject of an increment, then adds the increment, and returns the new score. The
    /// increment is not refused for lack of memory, because it takes no more than the data that it replaces. If the
    /// subject is frozen, nothing is removed and the increment is rejected.
    async fn replace(&self, board: &Arc<Board>, increment: Increment) -> Result<Added>;

    /// Counts portions of sources, each independently: see the contract. What a portion has counted before it met an
    /// error counts. O(items) each, in steps of some hundred items.
    ///
    /// Returns [`StoreError::SourceBehind`] if the board has not reached the position after which the portion begins.
    async fn pass(&self, portions: Vec<(Arc<Board>, Portion)>) -> Vec<Result<Passed>>;

    /// Returns what the board has reached of a source, or `None` if it has not joined it.
    async fn reached(&self, board: &Arc<Board>, source: SourceNumber) -> Result<Option<Reached>>;

    /// Returns a page of the ranking, at most `limit` lines. O(log n + limit), and O(log² n) to find a place among
    /// equal scores.
    ///
    /// The lines next to a place are all lines on that side of it, from the nearest on. So a subject whose score does
    /// not change is on exactly one of two pages if one ends at a place and the other begins there, whatever
    /// happens to the line at the place in the meantime.
    async fn page_from(&self, track: &BoardTrack, start: &PageStart, limit: u32) -> Result<Page>;

    /// Returns the ranking from position `offset` (from 0): [`page_from`](Self::page_from) an offset.
    async fn page(&self, track: &BoardTrack, offset: u64, limit: u32) -> Result<Page> {
        self.page_from(track, &PageStart::Offset(offset), limit).await
    }

    /// Returns up to `radius` lines on each side of the subject, and the subject's own line in the middle. Returns no
    /// lines if the subject is not ranked.
    async fn neighbors(&self, track: &BoardTrack, subject: &Subject, radius: u32) -> Result<Page>;

    /// Returns the scores of the given subjects and, with `ranks`, their ranks in the whole ranking, all of one
    /// instant. A subject may be given more than once. O(1) per subject, with ranks O(log n), so ask for the ranks of a
    /// few hundred at most.
    async fn lookup(&self, track: &BoardTrack, subjects: &[Subject], ranks: bool) -> Result<Lookup>;

    /// Returns the score, rank and slots of one subject, all of one instant. O(log n + slots).
    async fn standing(&self, track: &BoardTrack, subject: &Subject) -> Result<Standing>;

    /// Returns the [ranks](EarlierRanks) of the track at the newest boundary, or `None` if it has no
    /// [boundaries](crate::board::Track::boundaries). O(1), and of a divided board O(partitions).
    async fn earlier_ranks(&self, track: &BoardTrack) -> Result<Option<Arc<EarlierRanks>>>;

    /// Returns the scores at percentiles of a ranking, and for each of some scores the numbers of subjects that have a
    /// better one and that have this one, all of one instant (of a board of several partitions: of each of them).
    /// O(log n) each.
    async fn distribution(
        &self,
        track: &BoardTrack,
        percentiles: &[Percentile],
        scores: &[Value],
    ) -> Result<Distribution>;

    /// Returns what subjects have in some of their slots. Each result shows one instant; all are read in one round trip
    /// where the store allows. O(requested slots) each. Returns [`StoreError::BeyondWindow`] if the requested slots
    /// start below what the board keeps or are more than the window has, or if `as_of` is in the future.
    async fn read(&self, queries: Vec<SlotQuery>) -> Vec<Result<SlotContents>>;

    /// Returns the values that a subject was seen with in the window, on a COUNT_DISTINCT board, at most `limit`.
    /// O(log values + limit), and O(log² values) to find a place among values of the same time.
    ///
    /// The values after a place are all values on that side of it. So a value that is not seen again is on exactly one
    /// of two pages if one ends at a place and the other begins there, whatever other values do.
    async fn values_from(
        &self,
        track: &BoardTrack,
        subject: &Subject,
        start: &ValuesStart,
        limit: u32,
    ) -> Result<Values>;

    /// Returns the values from position `offset` (from 0): [`values_from`](Self::values_from) an offset.
    async fn values(&self, track: &BoardTrack, subject: &Subject, offset: u64, limit: u32) -> Result<Values> {
        self.values_from(track, subject, &ValuesStart::Offset(offset), limit).await
    }

    /// Returns what one subject has in its newest slots: [`read`](Self::read) with one query.
    async fn count(&self, track: &BoardTrack, subject: &Subject, range: SlotRange) -> Result<SlotContents> {
        let query = SlotQuery { track: track.clone(), subject: subject.clone(), range, as_of: None };
        let mut answers = self.read(vec![query]).await;
        answers.pop().unwrap_or_else(|| Err(StoreError::Corrupt { detail: "a slot query was not answered".to_owned() }))
    }

    /// Removes a subject from every track of a board: from its ranking and from every slot, including retiring ones.
    /// The tracks are changed one after the other, so a write in between may be missing from the later ones. A total
    /// comes before the slots that are kept beside it, because these expire and it does not.
    async fn remove(&self, board: &Arc<Board>, subject: &Subject) -> Result<Removal>;

    /// Changes what is set for subjects of a board. The changes of one subject take effect in their order. Repeating the
    /// call changes nothing. If it fails, some subjects may be changed and others not. O(changes x tracks x log n).
    async fn moderate(&self, board: &Arc<Board>, changes: &[(Subject, ModerationChange)]) -> Result<()>;

    /// Returns subjects of a list, in the order of their bytes, with their keys where there are keys, at most `limit`.
    /// O(log n + limit).
    async fn moderated(
        &self,
        board: &Arc<Board>,
        list: ModerationList,
        range: TextRange<'_>,
        limit: u32,
    ) -> Result<Moderated>;

    /// Changes the attributes of subjects of a board, in the order of the changes. Returns for each whether its subject has
    /// room for them. What changes nothing is not written. If the call fails, some may be made; repeating it is harmless
    /// unless others have changed the same attributes since. O(changes x log n).
    ///
    /// Returns [`StoreError::MemoryFull`] if there is no memory for attributes that take more than before. Those that take
    /// less are set all the same.
    async fn set_attributes(
        &self,
        board: &Arc<Board>,
        changes: &[(Subject, AttributesChange)],
    ) -> Result<Vec<Result<(), AttributesError>>>;

    /// Returns the attributes of subjects, in their order. Redis: one round trip to each partition of the subjects.
    async fn attributes(&self, board: &Arc<Board>, subjects: &[Subject]) -> Result<Vec<Attributes>>;

    /// Returns subjects that have attributes, in the order of their bytes, with their keys where there are keys, at most
    /// `limit`. O(log n + limit).
    async fn described(&self, board: &Arc<Board>, range: TextRange<'_>, limit: u32) -> Result<Described>;

    /// Returns the first keys of a range that have a ranked subject, at most `limit`. The board has keys.
    /// O(log keys + limit), for each partition.
    async fn keys(&self, track: &BoardTrack, range: TextRange<'_>, limit: u32) -> Result<Keys>;

    /// Returns head, floor, slots and totals. O(slots).
    async fn status(&self, track: &BoardTrack) -> Result<Status>;

    /// Advances head and floor, then does a bounded amount of two kinds of work. First it subtracts a part of the
    /// oldest slot below the floor. Then it deletes a part of the board's other data that is no longer needed (Redis:
    /// ids beyond the horizon, and the per-subject data of expired slots). It aims for 2 ms or less for each of the
    /// two. Call it repeatedly until it is done, whenever a slot has ended and from time to time in between. A call
    /// that finds nothing to do costs one check.
    async fn retire_step(&self, track: &BoardTrack) -> Result<RetireStep>;

    /// Compares, and with `repair` corrects, a bounded part of the subjects, each atomically. Start with
    /// [`AuditCursor::default`]. Every subject that has a score or an amount during the whole audit is compared.
    async fn audit_step(&self, track: &BoardTrack, cursor: AuditCursor, repair: bool) -> Result<AuditStep>;

    /// Returns a bounded part of what the subjects have in the live slots of a track. Start with
    /// [`ContentsCursor::default`]. Aims for a few milliseconds, and for 1,000 to 4,000 contents, up to 8 times as many
    /// from a distant server; a single subject may have more than that, then it is returned in several steps. What is
    /// there during the whole walk is returned once, in no order.
    ///
    /// Returns [`StoreError::WalkLost`] if the walk cannot continue: the store or its server was restarted, or too many
    /// other walks of the same track began.
    async fn contents_step(&self, track: &BoardTrack, cursor: ContentsCursor) -> Result<ContentsStep>;

    /// Begins an import into a board, or continues it.
    async fn begin_import(&self, board: &Arc<Board>, import: ImportId) -> Result<ImportBegun>;

    /// Merges a piece of an open import into a track. If the call fails, a part of it may have been merged: call it
    /// again with the same piece.
    ///
    /// Returns [`StoreError::NoImport`] if the import is not open, and for a piece after one of which only a part is
    /// merged. Returns [`StoreError::MemoryFull`] if there is no memory left for new data.
    async fn merge(&self, track: &BoardTrack, import: ImportId, piece: &Piece) -> Result<Merged>;

    /// Ends an import, whether or not it is complete. Returns whether it was open.
    async fn end_import(&self, board: &Arc<Board>, import: ImportId) -> Result<bool>;

    /// Replaces the editions of a board, if it is `from`, by those of `to`: one [change](crate::board::EditionsChange)
    /// later. Returns the board that the store has then. Repeating a call that was done, or of which that is unknown,
    /// is harmless. The data of a removed edition is deleted in steps.
    ///
    /// Returns [`StoreError::StaleEpoch`] if the board is neither `from` nor `to`, and [`StoreError::ImportOpen`] while
    /// an import is open. Redis: returns [`StoreError::EditionsBusy`] for an exchange while one of the editions is
    /// held, or audited after a restart of the server.
    async fn change_editions(&self, from: &Arc<Board>, to: Board) -> Result<Arc<Board>>;

    /// Returns the state of the two editions of a board. O(partitions).
    ///
    /// Returns [`StoreError::Unsupported`] if the board has one edition.
    async fn dual_run(&self, board: &Arc<Board>) -> Result<DualRun>;

    /// Gives subjects what they have in a track of the current edition in a track of the other one, which
    /// [counts the same items](crate::board::Edition::counts_same_items_as). Each cell, at most [`MAX_FILLED`], names a
    /// subject and the start of a slot of `from`. What the subject has in the slot of `to` that contains it becomes the
    /// combination of what it has in all slots of `from` within that slot; for COUNT_DISTINCT, all values of the
    /// subject are handled as if they were seen, or retracted, at their times, whatever the slot. Each cell is atomic.
    ///
    /// A cell changes nothing if one of those slots is below the floor of `from`, so that a part of it is missing
    /// there, or if the slot of `to` is below its floor. Repeating a call is harmless. O(cells x slots within a slot of
    /// `to`).
    async fn fill(&self, from: &BoardTrack, to: &BoardTrack, cells: &[(Subject, Timestamp)]) -> Result<()>;

    /// Ends a fill: gives each slot of the second tracks the number of items that was counted in the slots of the first
    /// track within it, if all of these are live, and notes the time. `tracks` are the numbers of tracks of the current
    /// edition and of the other one.
    async fn end_fill(&self, board: &Arc<Board>, tracks: &[(usize, usize)]) -> Result<()>;

    /// Returns what subjects, at most [`Compared::MAX_SUBJECTS`], have in a track of each edition, of one instant.
    async fn compare(&self, tracks: [&BoardTrack; 2], subjects: &[Subject]) -> Result<Compared>;

    /// Returns sheets of a period of the archive, all of one instant where the board is not divided. O(bytes of the sheets).
    async fn sheets(&self, track: &BoardTrack, ids: &[SheetId]) -> Result<Sheets>;

    /// Replaces a sheet of a period of the archive by `to`, if it is `from` (`None`: there is no such sheet). Returns
    /// whether it was. A call of which it is unknown whether it was done may be repeated, and returns `false` then if it
    /// was. O(bytes of the texts).
    ///
    /// Returns [`StoreError::Unsupported`] if the text has more than [`MAX_SHEET_BYTES`].
    async fn change_sheet(&self, track: &BoardTrack, id: SheetId, from: Option<&str>, to: &str) -> Result<bool>;

    /// Copies the data of a board to another number of shards, and has the board use these from then on, with what it has
    /// reached of these sources. Returns the board that the store has then. Until it returns, the board is
    /// [frozen](crate::board::Board::redivision): it is read, and writes return [`StoreError::Frozen`]. If it fails, or ends
    /// early, the board goes on as before, at the latest after half a minute. O(contents + ids).
    ///
    /// Returns [`StoreError::Unsupported`] if the store has no shards or the board cannot be copied, and
    /// [`StoreError::EditionsBusy`] if it cannot be copied now. Returns [`StoreError::StaleEpoch`] if the board is
    /// another one by now, for example because [`end_redivision`](Self::end_redivision) was called.
    async fn redivide(&self, _board: &Arc<Board>, _shards: u32, _sources: &[SourceNumber]) -> Result<Arc<Board>> {
        Err(StoreError::Unsupported { detail: "only boards of the redis store have shards".to_owned() })
    }

    /// Returns how far the data of a board is copied, or `None` if it is not being copied, by no instance.
    async fn redivision(&self, _board: &Arc<Board>) -> Result<Option<CopyProgress>> {
        Ok(None)
    }

    /// Ends the copying of a board's data, which then goes on as before. Returns whether there was any.
    async fn end_redivision(&self, _board: &Arc<Board>) -> Result<bool> {
        Ok(false)
    }

    /// Returns the rows of a table, or `None` if the table still has the version `known`. O(rows), and O(1) for `None`.
    /// Redis: one round trip.
    async fn rows(&self, table: TableName, known: Option<u64>) -> Result<Option<Rows>>;

    /// Replaces the row with this id by `to`, if it is `from` (`None`: there is no such row). Returns whether it was.
    /// If `from` and `to` are equal, the row is only compared.
    ///
    /// Returns [`StoreError::TimedOut`] if it is unknown whether the row was replaced. The call may then be repeated
    /// with the same `from` and `to`: if the row was replaced already, the repeated call changes nothing and returns
    /// `false`, and the row is `to` unless it was changed again.
    async fn change_row(&self, table: TableName, id: &str, from: Option<&str>, to: Option<&str>) -> Result<bool>;
}
