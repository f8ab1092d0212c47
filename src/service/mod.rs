//! The service: boards, events, increments, rankings, rollover and audit, without HTTP. It can be used as a library.
//!
//! ```
//! use rolltop::access::Caller;
//! use rolltop::board::{BoardName, Definition, Event, Field, Fields, Rule, Subject};
//! use rolltop::service::Service;
//! # use rolltop::store::ClockMode;
//! # use rolltop::store::embedded::{Embedded, EmbeddedOptions};
//!
//! # #[tokio::main]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let folder = tempfile::tempdir()?;
//! # let store = Embedded::open(EmbeddedOptions::new(folder.path(), ClockMode::System)).await?;
//! let (service, caller) = (Service::new(store), Caller::trusted());
//! let definition = Definition::new("COUNT(24h, like, post_id)".parse()?, "1h".parse()?);
//! let (board, is_new) = service.define(&caller, &BoardName::parse("hot-posts")?, &definition).await?;
//! assert!(is_new);
//!
//! // An event counts on every board whose metric names its type.
//! let mut fields = Fields::default();
//! fields.set("post_id", Field::Text("post-1".into()));
//! let like = Event { kind: "like".into(), fields: fields.clone(), at: None, id: None, retract: false };
//! service.record(&caller, vec![like.clone(), like], false).await?;
//!
//! let standing = service.standing(&board.main(), &Subject::parse("post-1")?).await?.answer;
//! assert_eq!((standing.rank, standing.total), (Some(1), 1));
//!
//! let rule: Rule = "COUNT(6h, like, post_id) >= 2".parse()?;
//! let evaluated = service.evaluate(&caller, &[&rule.into()], &fields, None).await?;
//! assert!(evaluated.rules[0].verdict.hit);
//! # service.close().await?;
//! # Ok(())
//! # }
//! ```

mod about;
mod add;
mod archive;
mod attributes;
mod audit;
mod board_selection;
mod compare;
mod configured;
mod contents;
mod cursor;
mod due;
mod editions;
mod error;
mod evaluate;
mod event_index;
mod events;
mod export;
mod fill;
mod hop;
mod import;
mod import_tracks;
mod key_changes;
mod keys;
mod known_keys;
mod mirror;
mod moderation;
mod movement;
mod new_board;
mod periods;
mod preview;
mod queries;
mod ranking_keys;
mod reads;
mod registry;
mod removals;
mod rollover;
mod rules;
mod scheduler;
mod set_subject;
mod shards;
mod sources;
mod tiers;
mod value_removals;
mod verified;
mod windows;

use std::collections::HashSet;
use std::panic::AssertUnwindSafe;
use std::sync::atomic::AtomicI64;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

pub use about::{About, AboutBoard};
pub use audit::AuditReport;
pub use compare::{Comparison, TopOverlap};
pub use contents::{ContentsPosition, ContentsWalk, is_unchanged};
pub use cursor::{Cursor, ValuesCursor};
pub use editions::{DualRunState, FillState};
pub use error::ServiceError;
pub use evaluate::{Evaluated, Evaluation};
pub use events::{
    EventOutcome, ItemPortion, OnBoard, PortionRecorded, Recorded, Refusal, SourceItem, SpreadPortion, Taken,
};
pub use export::{Export, ExportStart};
pub use fill::FillProgress;
pub use hop::{Hop, HopAnswer};
pub use import::{Import, ImportPart, ImportSource, ImportState};
pub use key_changes::NewKey;
pub use keys::{ConfiguredKeys, ConfiguredVerifier, KeyRejection, Keys, KnownKey, WallClock};
pub use mirror::{MirroredDifference, MirroredRead};
pub use moderation::ModeratedRange;
pub use periods::PeriodFilter;
pub use preview::DefinitionPreview;
pub use queries::{Over, Query, QueryAnswer, ServingTrack, WindowQuery};
pub use removals::RemovedAll;
pub use rollover::RolloverReport;
pub use rules::{NamedRules, PinnedRule, RuleName, RuleNameError};
pub use scheduler::Scheduler;
pub use shards::ShardsState;
pub use sources::{BoardOfSource, FillOfSource, SourceDefinition, SourceState};
pub use tiers::{LineTiers, tiers_of_lines};
pub use value_removals::RemovedValues;
pub use windows::{EditionChoice, WindowChoice};

use futures_util::FutureExt;
use futures_util::stream::{self, StreamExt};
use metrics::{describe_gauge, gauge};
use parking_lot::Mutex;

use crate::access::{Caller, Scope};
use crate::board::{Board, BoardName, BoardTrack, Definition, Timestamp};
use crate::store::{self, Defined, Store, Unreadable};
// The types of the store that occur in the interface of the service, so that its callers need not import the store.
pub use crate::store::{
    Added, AtScore, BackedUp, Batch, BytesPerSubject, Content, ContentsCursor, ContentsStep, Described, Difference,
    Direction, Distribution, IdCost, ImportId, Increment, Keys as RankingKeys, Lines, Lookup, Merged, NextTo, Outcome,
    Page, Place, Ranked, Rejection, Removal, SlotContents, Standing, Status, StoreError, TextRange, ValuePlace, Values,
};
use about::about;
use compare::Comparisons;
use fill::Fills;
use mirror::Mirror;
use new_board::new_board;
use registry::Registry;
use rollover::RolloverRunner;
use shards::ShardFailures;

/// A gauge: 1 if the store accepted no writes or could not be reached at the last check, otherwise 0.
pub const WRITES_REFUSED: &str = "rolltop_writes_refused";

/// The time that the store has to report its state. After that it counts as not responding.
const LOOK: Duration = Duration::from_secs(1);

/// The pause between two steps of the work that belongs to no board. It is longer than the store works on one step.
const BETWEEN_TIDY_STEPS: Duration = Duration::from_millis(5);

/// The largest number of tracks that the scheduler rolls over at once. Their steps take turns, so a small board does
/// not wait for large ones.
const ROLLOVERS: usize = 256;

/// The result of a call to the service.
pub type Result<T, E = ServiceError> = std::result::Result<T, E>;

/// The service over one store.
pub struct Service {
    store: Arc<dyn Store>,
    registry: Registry,
    rankings: archive::Rankings,
    rollover: RolloverRunner,
    /// The list of boards whose rollover is scheduled: see [`Registry::known_since`].
    scheduled: Mutex<Option<u64>>,
    rules: NamedRules,
    keys: Keys,
    tiers: tiers::KnownTiers,
    sources: sources::KnownSources,
    known_ranks: movement::KnownRanks,
    /// Held while the keys are read from the store.
    reading_keys: tokio::sync::Mutex<()>,
    /// The store's time in milliseconds when it was last asked for to choose a board; 0 before.
    time_of_choice: AtomicI64,
    /// Held while the value of a subject is set, which is rare.
    correcting: tokio::sync::Mutex<()>,
    /// The largest number of boards, and a lock that is held while one is defined.
    max_boards: OnceLock<usize>,
    defining: tokio::sync::Mutex<()>,
    fills: Fills,
    shard_failures: ShardFailures,
    comparisons: Comparisons,
    mirror: OnceLock<Mirror>,
}

/// The readiness of this instance to receive requests.
#[derive(Debug)]
pub struct Readiness {
    /// `Err` if the store cannot be reached or written to.
    pub store: store::Result<()>,
    /// The boards whose rollover has been due for a minute without progress.
    pub overdue: Vec<BoardName>,
    /// The conditions that an operator has to look at although requests are answered: single boards that cannot be
    /// read, or that are held for a decision. The other boards need the instance, so these conditions do not make it
    /// unready.
    pub warnings: Vec<String>,
}

impl Readiness {
    /// Returns whether the store works and no board is overdue.
    pub fn is_ready(&self) -> bool {
        self.store.is_ok() && self.overdue.is_empty()
    }
}

impl Service {
    /// Creates a service over this store.
    pub fn new(store: Arc<dyn Store>) -> Arc<Self> {
        Self::with_rules(store, NamedRules::default())
    }

    /// Creates a service over this store, with named rules.
    pub fn with_rules(store: Arc<dyn Store>, rules: NamedRules) -> Arc<Self> {
        Self::with_keys(store, rules, Keys::default())
    }

    /// Creates a service over this store, with named rules and with keys for [callers](Caller). Call
    /// [`read_keys`](Self::read_keys) before the first one is authenticated.
    pub fn with_keys(store: Arc<dyn Store>, rules: NamedRules, keys: Keys) -> Arc<Self> {
        describe_gauge!(WRITES_REFUSED, "1 while the store takes no writes or cannot be reached");
        Arc::new(Self {
            registry: Registry::new(store.clone()),
            rankings: archive::Rankings::new(store.clone()),
            rollover: RolloverRunner::new(store.clone()),
            scheduled: Mutex::default(),
            rules,
            keys,
            tiers: tiers::KnownTiers::default(),
            sources: sources::KnownSources::default(),
            known_ranks: movement::KnownRanks::default(),
            reading_keys: tokio::sync::Mutex::default(),
            time_of_choice: AtomicI64::new(0),
            correcting: tokio::sync::Mutex::default(),
            max_boards: OnceLock::new(),
            defining: tokio::sync::Mutex::default(),
            fills: Fills::default(),
            shard_failures: ShardFailures::default(),
            comparisons: Comparisons::default(),
            mirror: OnceLock::new(),
            store,
        })
    }

    /// Limits the number of boards, once. Boards that exist already stay. On Redis several instances that define boards
    /// at the same time may exceed the limit by one each.
    pub fn limit_boards(&self, most: usize) {
        self.max_boards.get_or_init(|| most);
    }

    /// Lets this share of the reads of boards with a successor, from 0 to 1, be answered by the successor too, once.
    pub fn mirror_reads(&self, share: f64) {
        self.mirror.get_or_init(|| Mirror::new(share));
    }

    /// Returns the kind of the store: `embedded` or `redis`.
    pub fn store_kind(&self) -> &'static str {
        self.store.kind()
    }

    /// Returns the board with this name. Makes no store call if this instance knows the board, or if the caller may not
    /// use it.
    pub async fn board(&self, caller: &Caller, name: &BoardName) -> Result<Arc<Board>> {
        caller.require_board(name)?;
        self.board_named(name).await
    }

    async fn board_named(&self, name: &BoardName) -> Result<Arc<Board>> {
        self.registry.get(name).await?.ok_or_else(|| ServiceError::UnknownBoard(name.clone()))
    }

    /// Returns all boards that the caller may use, by name.
    pub async fn boards(&self, caller: &Caller) -> Result<Vec<Arc<Board>>> {
        let mut boards = self.registry.refresh_all().await?;
        boards.retain(|board| caller.sees(board.name()));
        Ok(boards)
    }

    /// Returns the names of the boards that this instance knows, of those that the caller may use. No store call.
    pub fn known_boards(&self, caller: &Caller) -> HashSet<BoardName> {
        let known = self.registry.known();
        known.iter().map(|board| board.name()).filter(|name| caller.sees(name)).cloned().collect()
    }

    /// Defines a board and returns whether it is new. Defining it again with the same definition is allowed. Returns
    /// [`ServiceError::Conflict`] if the definition differs.
    pub async fn define(
        &self,
        caller: &Caller,
        name: &BoardName,
        definition: &Definition,
    ) -> Result<(Arc<Board>, bool)> {
        caller.require(Scope::Manage)?;
        caller.require_board(name)?;
        self.require_keeper(caller, name, definition).await?;
        let board = new_board(name, &definition.with_default_shards(self.store.default_shards()))?;
        let _one_at_a_time = match self.max_boards.get() {
            Some(most) => Some(self.check_number_of_boards(name, *most).await?),
            None => None,
        };
        let (board, created) = match self.store.define(board).await? {
            Defined::Created(board) => (board, true),
            Defined::Unchanged(board) => (board, false),
            Defined::Conflict(existing) => {
                let keys = existing.definition().differences(definition);
                if !keys.is_empty() {
                    return Err(ServiceError::Conflict { existing, keys });
                }
                (existing, false)
            }
        };
        self.registry.put(board.clone());
        Ok((board, created))
    }

    /// Returns an error if a board would be new and there are as many as there may be. Until the result is dropped, no
    /// other board is defined through this instance.
    async fn check_number_of_boards(&self, name: &BoardName, most: usize) -> Result<tokio::sync::MutexGuard<'_, ()>> {
        let guard = self.defining.lock().await;
        if self.store.board(name).await?.is_none() {
            let listing = self.store.boards().await?;
            if listing.boards.len() + listing.unreadable.len() >= most {
                return Err(ServiceError::TooManyBoards { limit: most });
            }
        }
        Ok(guard)
    }

    /// Removes a board with all its data.
    pub async fn undefine(&self, caller: &Caller, name: &BoardName) -> Result<Arc<Board>> {
        caller.require(Scope::Manage)?;
        caller.require_board(name)?;
        // Reads the store, not the cache: removing is rare, and it must remove the board that exists now.
        let board = self.stored(name).await?;
        let existed = self.store.undefine(&board).await?;
        self.registry.forget(name);
        if existed {
            self.remove_tiers(&board).await;
        }
        if existed { Ok(board) } else { Err(ServiceError::UnknownBoard(name.clone())) }
    }

    /// Returns the store's time.
    pub async fn now(&self) -> Result<Timestamp> {
        Ok(self.store.now().await?)
    }

    /// Moves a simulated clock forward.
    pub async fn set_clock(&self, caller: &Caller, to: Timestamp) -> Result<Timestamp> {
        caller.require(Scope::Admin)?;
        Ok(self.store.set_clock(to).await?)
    }

    /// Defines the boards of the configuration, and again whenever the store is found emptied.
    ///
    /// A board that is stored in a form that this version cannot read is left as it is, so that the others are still
    /// defined. Any other failure is returned.
    pub async fn define_configured(&self, boards: &[(BoardName, Definition)]) -> Result<()> {
        self.registry.configured.set(boards.to_vec());
        for (name, definition) in boards {
            match self.define(&Caller::trusted(), name, definition).await {
                Err(ServiceError::Store(error @ StoreError::Unreadable { .. })) => {
                    tracing::error!(%error, "a board of the configuration is not served");
                }
                // Its successor is the current edition now, or is not yet.
                Err(ServiceError::Conflict { existing, .. })
                    if existing
                        .editions()
                        .iter()
                        .any(|edition| edition.definition().differences(definition).is_empty()) =>
                {
                    tracing::warn!(board = %name, "the board has the definition of the configuration in its other edition");
                }
                // The number of shards was changed in place.
                Err(ServiceError::Conflict { existing, keys }) if *keys == ["shards"] => {
                    let shards = existing.definition().shards;
                    tracing::warn!(board = %name, ?shards, "the board has another number of shards than the configuration says");
                }
                defined => drop(defined?),
            }
        }
        Ok(())
    }

    /// Checks whether this instance is ready to receive requests. Makes one store call and updates the gauge
    /// [`WRITES_REFUSED`]. If the store was emptied, its configured boards are defined again, and until then the
    /// instance is not ready.
    pub async fn readiness(&self) -> Readiness {
        let store = self.registry.configured.check().await;
        gauge!(WRITES_REFUSED).set(if store.is_ok() { 0.0 } else { 1.0 });
        let unreadable = self.registry.unreadable().into_iter().map(|board| {
            let Unreadable { name, reason, .. } = board;
            StoreError::Unreadable { name, reason }.to_string()
        });
        let warnings = unreadable.chain(self.store.warnings()).chain(self.keys.warnings()).collect();
        Readiness { store, overdue: self.rollover.overdue(), warnings }
    }

    /// Handles changes made from outside the service: see [`tend`](store::Lifecycle::tend). The scheduler calls this about
    /// once a second.
    async fn tend(&self) -> store::Result<()> {
        self.store.tend().await
    }

    /// Defines the configured boards again if the store was emptied. The scheduler calls this about once a second.
    async fn look_for_loss(&self) -> store::Result<()> {
        self.registry.configured.check().await
    }

    /// Updates the gauges of the store's state. Waits for the store for a second at most.
    pub async fn observe(&self) {
        if tokio::time::timeout(LOOK, self.readiness()).await.is_err() {
            gauge!(WRITES_REFUSED).set(1.0);
        }
    }

    /// Copies the store's data as it is at one instant, while reads and writes continue.
    ///
    /// Returns [`StoreError::Unsupported`] if the store cannot make backups or is not configured to.
    pub async fn backup(&self, caller: &Caller) -> Result<BackedUp> {
        caller.require(Scope::Admin)?;
        Ok(self.store.backup().await?)
    }

    /// Makes everything durable. Call it once, when no other call is in progress.
    pub async fn close(&self) -> Result<()> {
        Ok(self.store.close().await?)
    }

    /// Rolls over every board that is due, and does the other work that is due in the store. Returns when all of it is
    /// done. For callers that use no [`Scheduler`], which does the same at each tick.
    pub async fn roll_over_due(&self) -> Result<()> {
        self.find_due(true).await?;
        let due = stream::iter(std::iter::from_fn(|| self.rollover.take_due()));
        due.for_each_concurrent(ROLLOVERS, |track| self.scheduled_rollover(track)).await;
        self.tend_editions().await?;
        self.tidy().await
    }

    /// Rolls over the boards that [`find_due`](Self::find_due) finds, without end. For one caller.
    ///
    /// All of them are one task, so those of other requests wait for a few steps at most, however many boards are due
    /// at the same time.
    async fn keep_rolling_over(&self) {
        let due = stream::unfold((), |()| async { Some((self.rollover.next_due().await, ())) });
        due.for_each_concurrent(ROLLOVERS, |track| self.scheduled_rollover(track)).await;
    }

    /// Does the work that is due in the store and belongs to no board, in steps.
    async fn tidy(&self) -> Result<()> {
        while !self.store.tidy_step().await? {
            tokio::time::sleep(BETWEEN_TIDY_STEPS).await;
        }
        Ok(())
    }

    /// Finds the tracks of boards that are due. With `list_again`, reads the list of boards from the store
    /// if it has changed, for boards that other instances defined.
    async fn find_due(&self, list_again: bool) -> Result<()> {
        if list_again {
            self.registry.listed_within(Duration::ZERO).await?;
        }
        let now = self.store.now().await?;
        let mut scheduled = self.scheduled.lock();
        if let Some((boards, changes)) = self.registry.known_since(*scheduled) {
            self.rollover.set_boards(&boards);
            *scheduled = Some(changes);
        }
        self.rollover.tick(now);
        Ok(())
    }

    async fn scheduled_rollover(&self, track: BoardTrack) {
        // All rollovers are one task, which a panic of one must not end.
        let ended = AssertUnwindSafe(self.rollover.run(&track)).catch_unwind().await;
        let Ok(outcome) = ended else {
            tracing::error!(board = %track.board().name(), "a rollover panicked; the next tick retries");
            return self.rollover.failed(track.id());
        };
        match &outcome {
            Ok(report) if report.slots_retired > 0 => tracing::debug!(
                board = %track.board().name(), window = %track.length(), slots = report.slots_retired, subjects = report.subjects_touched,
                took_ms = report.took.as_millis() as u64, "rolled over"
            ),
            Ok(_) => {}
            Err(StoreError::BoardChanged) => self.registry.forget(track.board().name()),
            Err(StoreError::StaleEpoch) => {
                // The next tick knows the present editions. If this fails, so does that tick.
                let _ = self.registry.refresh(track.board().name()).await;
            }
            Err(error) => {
                tracing::warn!(board = %track.board().name(), %error, "rollover failed; the next tick retries")
            }
        }
        self.rollover.finished(track.id(), &outcome);
    }

    /// Reads the board of the same name from the store. One store call.
    pub async fn refreshed(&self, board: &Arc<Board>) -> Result<Arc<Board>> {
        self.stored(board.name()).await
    }

    /// Reads the board of this name from the store. One store call.
    async fn stored(&self, name: &BoardName) -> Result<Arc<Board>> {
        self.registry.refresh(name).await?.ok_or_else(|| ServiceError::UnknownBoard(name.clone()))
    }
}
