//! The store on Redis or Valkey. Instances hold no state, so any number of them can share one server.
//!
//! # Data structures
//! `docs/data-model.md` lists all keys, `docs/data-model-redis.md` the fields of `meta`, and the form of cells and totals; the
//! module `keys` has the names. In short:
//!
//! - The meta key of a board has its definition, head and floor, its version, and the last write operation of each
//!   lane.
//! - A ranked board has a hash for each slot, from subject to *cell*: the data of one subject in one slot. A sorted set
//!   is the ranking, and another one is the index of the slots that exist. Where a score is not enough to update it, a
//!   hash has the *total* of each subject, which combines all its cells.
//! - An unranked board has a hash for each subject, from slot to cell.
//! - COUNT_DISTINCT has sorted sets for each subject: its values, and its tombstones, by time. Unranked, it has no
//!   cells: the value is the number of times that are within the window.
//! - The ids that arrived are in hashes, a *bucket* for each part of the dedupe horizon.
//! - Each table of rows is a hash, which belongs to no board.
//!
//! # Scripts
//! `change.lua` writes cells and totals. It is assembled from the code that all kinds share, `kind/` (how cells
//! combine, and how an entry changes them), and `ranked.lua` or `unranked.lua` (where the data is stored). Amounts
//! added to ranked sums, by far the most frequent case, have their own scripts: `write.lua`, and for the simplest case
//! `add.lua`. The module `scripts` lists the parts of each script and the functions that each part defines. The module
//! `kinds` has what else depends on the kind.
//!
//! Only `check` has a time to live. The keys of single subjects cannot be listed without a scan of the keyspace. They
//! are found through the expiry periods in which the subjects were written to (see `expiry`). The data of a removed
//! board is deleted in steps that any instance continues (see `removing`). Every decision that depends on time uses the
//! believed time (see `store_clock` and `partition_clock`), never the server's clock alone.
//!
//! # Walks and imports
//! `contents` reads what subjects have in a track, part by part. `imports` merges it into a part: `merge.lua` has the
//! parts of `change.lua`, and is about one track.
//!
//! # Partitions and tracks
//! A board with `shards` is divided into partitions (see `division`, `partitions`), each with a hash tag of its own.
//! Each track of a board has keys of its own in each partition: a *part*. The board's own meta key is that of its main
//! track if there is one partition. Otherwise it has the definition and the numbers of the partitions, but no window,
//! and each part has a meta key. Ids and the records of write operations are in the keys of the main track only. One
//! script changes all tracks of a partition (`add.lua`, `write.lua`, `change.lua`), so that an item counts in every
//! track that reaches back to its time, or in none.
//!
//! # Calls
//! Everything about a board is changed only by scripts (`lua/`), and each script is atomic. It first checks the
//! generation and the epoch. A script that reads or changes data then reads the clock, and advances the window; only
//! `add.lua` leaves that to `write.lua`. The caller computes the window and the script checks it: so Lua needs no
//! calendar, and no two instances need to agree on the time. See `session` for how calls are repeated, `writes` for how
//! writes are combined and what happens when a reply is lost, `reads` for how reads are combined and how slots are
//! read, and `servers` for how the server of a command is chosen.

mod audit;
mod batches;
mod boards;
mod claim;
mod clock;
mod contents;
mod describing;
mod division;
mod edition_tracks;
mod editions;
mod entries;
mod examine;
mod expiry;
mod findings;
mod hash_slot;
mod healing;
mod health;
mod id_buckets;
mod imports;
mod keys;
mod kinds;
mod lifecycle;
mod merge;
mod moderating;
mod numbers;
mod part;
mod partition;
mod partition_clock;
mod partitions;
mod passing;
mod reached;
mod reads;
mod redivision;
mod removing;
mod reply;
mod retire;
mod rows;
mod score_text;
mod scripts;
mod servers;
mod session;
mod several_tracks;
mod sheets;
mod sizing;
mod starting;
mod store_clock;
mod stretches;
mod timekeeping;
mod version;
mod writes;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use futures_util::future::{join_all, join3, try_join, try_join_all};
use tokio::sync::mpsc::UnboundedReceiver;

pub use self::examine::{ServerReport, examine};
use self::findings::Health;
use self::keys::StoreKeys;
use self::partitions::Parts;
use self::reads::{AskedRanking, Reads};
use self::rows::RowChange;
pub use self::servers::{Address, AddressError};
use self::servers::{ServerFailure, Servers};
use self::session::Session;
use self::starting::Starting;
use self::store_clock::StoreClock;
use self::version::Versions;
use self::writes::{Passing, Queue, WaitingPortion};
use super::{
    Added, AuditCursor, AuditStep, Batch, ClockMode, Compared, ContentsCursor, ContentsStep, CopyProgress, Defined,
    Described, Distribution, DualRun, ImportBegun, ImportId, Increment, Keys, Limits, Listing, Lookup, Merged,
    Moderated, Page, PageStart, Passed, Piece, Portion, Reached, Removal, Removing, Result, RetireStep, Rows, SheetId,
    Sheets, SlotContents, SlotQuery, Standing, Status, Store, StoreError, TableName, TextRange, Values, ValuesStart,
    require_key,
};
use crate::board::{
    Attributes, AttributesChange, AttributesError, Board, BoardName, BoardTrack, EarlierRanks, Frame, ModerationChange,
    ModerationList, Percentile, RankingKey, SourceNumber, Subject, Timestamp, Value,
};

/// The address of the server, and how to use it.
#[derive(Clone)]
pub struct RedisOptions {
    /// An [`Address`] as text. It may contain a password, so it is never printed.
    pub url: String,
    /// A PEM file of certificates to trust in place of the well-known authorities, for an address that uses TLS.
    pub ca: Option<PathBuf>,
    /// The beginning of every key, so that stores with different prefixes can share a server. It must not contain
    /// braces: they would replace the hash tags of the boards.
    pub prefix: String,
    /// The clock mode. A store that was created with the other mode is refused.
    pub clock: ClockMode,
    pub limits: Limits,
    /// Whether to ask a server that keeps an append-only file to rewrite it after each of its starts.
    pub rewrite_aof: bool,
    /// The largest number of items that may wait for a flush. Beyond it, writes return [`StoreError::Overloaded`].
    pub queue: usize,
    /// Whether to believe the server's clock at the start, however far it is ahead of the last recorded time.
    pub trust_clock: bool,
    /// The longest time to wait for the answer to a command. After it, reads fail and the outcome of a write is unknown.
    pub patience: Duration,
}

/// A store on a Redis or Valkey server.
pub struct RedisStore {
    session: Arc<Session>,
    queue: Arc<Queue>,
    passing: Passing,
    versions: Arc<Versions>,
    reads: Reads,
}

impl RedisOptions {
    /// The default prefix of keys.
    pub const PREFIX: &'static str = "rolltop";
    /// The default patience.
    pub const PATIENCE: Duration = Duration::from_secs(2);

    /// Creates options with the given address and clock, and defaults for everything else.
    pub fn new(url: String, clock: ClockMode) -> Self {
        let prefix = Self::PREFIX.to_owned();
        Self {
            url,
            ca: None,
            prefix,
            clock,
            limits: Limits::default(),
            rewrite_aof: true,
            queue: 100_000,
            trust_clock: false,
            patience: Self::PATIENCE,
        }
    }
}

impl RedisStore {
    /// Connects to the server and checks its version (Redis 6.2 or later), its eviction policy (none) and the clock
    /// mode.
    ///
    /// Waits while a server loads its data, however long that takes, as instances do that are running, and for half a
    /// minute for one that does not answer.
    ///
    /// Must be called within a Tokio runtime. A separate thread combines writes until the store is dropped.
    ///
    /// Returns [`StoreError::Setup`] or [`StoreError::ClockModeMismatch`] if the configuration must be changed. Other
    /// errors may be transient.
    pub async fn connect(options: RedisOptions) -> Result<Arc<RedisStore>> {
        if options.prefix.is_empty() || options.prefix.contains(['{', '}']) {
            return Err(StoreError::Setup {
                detail: format!("the prefix '{}' of keys must not be empty or contain braces", options.prefix),
            });
        }
        let mut starting = Starting::now();
        // Everything up to the session can be repeated. A node of a cluster that is loading does not name the others.
        let servers = loop {
            match Servers::open(&options.url, options.ca.as_deref(), options.patience).await {
                Ok(servers) => break servers,
                Err(error) => starting.wait(error, false).await?,
            }
        };
        let mut starting = Starting::now();
        let session = loop {
            match prepare(&servers, &options).await {
                Ok(session) => break Arc::new(session),
                Err(error) => starting.wait(error, servers.has_sentinels()).await?,
            }
        };
        let queue = Arc::new(Queue::new(options.queue));
        let versions = Arc::new(Versions::default());
        let (passing, portions) = Passing::new();
        start_combiner(session.clone(), queue.clone(), portions, versions.clone())?;
        let reads = Reads::start(&session).map_err(|source| StoreError::Backend { source: Box::new(source) })?;
        Ok(Arc::new(RedisStore { session, queue, passing, versions, reads }))
    }

    /// Returns an error unless the board can be written to as the caller knows it.
    async fn check_writable(&self, board: &Arc<Board>) -> Result<()> {
        redivision::check_writable(&self.session, board).await.map_err(|failure| self.error(failure))
    }

    fn error(&self, failure: ServerFailure) -> StoreError {
        self.session.servers.error(failure)
    }

    /// Makes a call about a board. If one of its partitions is in an earlier epoch, because the instance that changed
    /// the editions has not come to it, the partition is brought forward and the call is made again.
    async fn following<T, F>(&self, board: &Arc<Board>, mut call: impl FnMut() -> F) -> Result<T>
    where
        F: Future<Output = Result<T, ServerFailure>> + Send,
    {
        for _ in 0..editions::ATTEMPTS {
            match call().await {
                Ok(answer) => return Ok(answer),
                Err(failure) => self.follow(board, failure).await?,
            }
        }
        Err(self.error(ServerFailure::KeptChanging))
    }

    /// Reads a ranking. If that of a key is small, and slots have expired that are not fully subtracted yet, they are
    /// first subtracted from it: so it is exact at once, and nothing of it is retiring. Where that cannot be done, as
    /// on a server that refuses writes, the answer says that slots are retiring. `frame_and_total` returns the frame of
    /// an answer, and the number of subjects of the ranking.
    async fn following_ranking<T, F>(
        &self,
        track: &BoardTrack,
        key: Option<&RankingKey>,
        read: impl Fn(Arc<Parts>) -> F + Sync,
        frame_and_total: fn(&mut T) -> (&mut Frame, u64),
    ) -> Result<T>
    where
        T: Send,
        F: Future<Output = Result<T, ServerFailure>> + Send,
    {
        let exact = || async {
            let parts = self.session.parts_of(track);
            let mut found = Box::pin(read(parts.clone())).await?;
            let (frame, total) = frame_and_total(&mut found);
            let Some(key) = key.filter(|_| frame.retiring > 0 && total <= retire::SMALL) else {
                return Ok(found);
            };
            match Box::pin(retire::complete(&self.session, parts.of_key(key), key)).await {
                Ok(Some(floor)) => {
                    let mut again = Box::pin(read(parts)).await?;
                    let (frame, _) = frame_and_total(&mut again);
                    if frame.window.floor == floor {
                        frame.retiring = 0;
                    }
                    Ok(again)
                }
                Ok(None) => Ok(found),
                Err(failure) => {
                    tracing::debug!(?failure, "a ranking is read with what has expired in it");
                    Ok(found)
                }
            }
        };
        self.following(track.board(), exact).await
    }

    /// Removes the data of a subject from every track. Also returns whether it may be hidden or frozen.
    async fn remove_data(&self, board: &Arc<Board>, subject: &Subject, removing: Removing) -> Result<(Removal, bool)> {
        self.check_writable(board).await?;
        let remove_from = |track: BoardTrack| async move {
            let part = self.session.part_for(&track, subject);
            timekeeping::admit(&self.session, &part.clock).await?;
            let remove = || async {
                match track.is_ranked() {
                    true => retire::remove(&self.session, &part, subject, removing).await,
                    false => reads::remove(&self.session, &part, subject).await.map(|removal| (removal, true)),
                }
            };
            self.following(board, remove).await
        };
        let removed = try_join_all(board.each_track().map(remove_from)).await?;
        let may_be_moderated = removed.iter().any(|(_, is_moderated)| *is_moderated);
        let removals = removed.into_iter().map(|(removal, _)| removal).collect();
        let removal = Removal::of_board(board, removals).ok_or(StoreError::BoardChanged)?;
        Ok((removal, may_be_moderated))
    }

    /// Removes the data of a subject, unless an increment that is to replace it will be rejected.
    async fn remove_to_replace(&self, board: &Arc<Board>, subject: &Subject) -> Result<()> {
        let is_frozen = moderating::is_frozen(&self.session, board, subject).await;
        match is_frozen.map_err(|failure| self.error(failure))? {
            true => Ok(()),
            false => self.remove_data(board, subject, Removing::ToReplace).await.map(drop),
        }
    }

    /// Makes a call like [`following`](Self::following) that returns errors of the store.
    async fn following_errors<T, F>(&self, board: &Arc<Board>, mut call: impl FnMut() -> F) -> Result<T>
    where
        F: Future<Output = Result<T>> + Send,
    {
        for _ in 0..editions::ATTEMPTS {
            let failure = match call().await {
                Err(StoreError::StaleEpoch) => ServerFailure::StaleEpoch,
                Err(StoreError::BoardChanged) => ServerFailure::BoardChanged,
                ended => return ended,
            };
            self.follow(board, failure).await?;
        }
        Err(self.error(ServerFailure::KeptChanging))
    }

    /// Returns if a call about a board that failed may be made again, and otherwise the error with which it ends.
    async fn follow(&self, board: &Arc<Board>, failure: ServerFailure) -> Result<()> {
        // Boxed, because every call would move what only one that failed needs.
        let followed = Box::pin(editions::follow(&self.session, board, failure)).await;
        followed.map_err(|failure| self.error(failure))
    }
}

/// Checks the servers, and opens the clock and the health of the store.
async fn prepare(servers: &Arc<Servers>, options: &RedisOptions) -> Result<Session> {
    boards::check_server(servers).await?;
    for node in servers.nodes() {
        healing::check_loaded(&node).await.map_err(|failure| failure.at(node.at()))?;
    }
    let keys = StoreKeys::new(&options.prefix);
    let simulated = matches!(options.clock, ClockMode::Simulated(_));
    let reading = clock::open(servers, &keys, options.clock).await?;
    let recorded = match simulated || options.trust_clock {
        true => None,
        false => clock::recorded(servers, &keys).await.map_err(|failure| servers.error(failure))?,
    };
    let clock = StoreClock::new(recorded, reading);
    let health = Health::new(options.clock, options.rewrite_aof);
    let session = Session::new(servers.clone(), keys, simulated, options.limits, clock, health);
    health::mark(&session).await.map_err(|failure| servers.error(failure))?;
    Ok(session)
}

/// Returns the key of the ranking that a read is about: one on a ranked track with keys, and none on all others.
fn ranking_key(track: &BoardTrack) -> Result<Option<&RankingKey>> {
    require_key(track)?;
    Ok(track.key().filter(|_| track.is_ranked()))
}

/// Starts the thread that combines writes. The combiner and the connection for writes wake each other all the time,
/// which costs almost nothing if both run on one thread. The same thread passes portions, and reads the list version,
/// because most writes need it too. It ends when all of them are closed and nothing waits.
fn start_combiner(
    session: Arc<Session>,
    queue: Arc<Queue>,
    portions: UnboundedReceiver<WaitingPortion>,
    versions: Arc<Versions>,
) -> Result<()> {
    let failed = |source: std::io::Error| StoreError::Backend { source: Box::new(source) };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(failed)?;
    let run = move || {
        let (combine, pass) = (writes::run(session.clone(), queue), writes::run_passing(session.clone(), portions));
        runtime.block_on(join3(combine, pass, version::run(session, versions)));
    };
    std::thread::Builder::new().name("rolltop-combine".to_owned()).spawn(run).map_err(failed)?;
    Ok(())
}

impl Drop for RedisStore {
    fn drop(&mut self) {
        self.queue.close();
        self.versions.close();
        self.reads.close();
    }
}

#[async_trait]
impl Store for RedisStore {
    async fn define(&self, board: Board) -> Result<Defined> {
        boards::define(&self.session, board).await
    }

    async fn board(&self, name: &BoardName) -> Result<Option<Arc<Board>>> {
        boards::board(&self.session, name).await.map_err(|failure| self.error(failure))
    }

    async fn boards(&self) -> Result<Listing> {
        boards::boards(&self.session).await.map_err(|failure| self.error(failure))
    }

    async fn boards_version(&self) -> Result<u64> {
        self.versions.read(&self.session).await
    }

    async fn boards_version_beside_writes(&self) -> Result<u64> {
        self.versions.read_beside_writes(&self.session).await
    }

    async fn undefine(&self, board: &Arc<Board>) -> Result<bool> {
        boards::undefine(&self.session, board).await.map_err(|failure| self.error(failure))
    }

    async fn add(&self, board: &Arc<Board>, batch: Batch) -> Result<Added> {
        let mut calls = Vec::new();
        let begun = self.begin(board, batch, &mut calls).await?;
        self.queue.push(calls)?;
        self.end(begun).await
    }

    async fn replace(&self, board: &Arc<Board>, increment: Increment) -> Result<Added> {
        let (mut known, mut increment) = (board.clone(), increment);
        while let Err(error) = self.remove_to_replace(&known, &increment.subject).await {
            if !matches!(error, StoreError::StaleEpoch) {
                return Err(error);
            }
            let newer = self.newer(&known).await?;
            increment = increment.carried(&known, &newer);
            known = newer;
        }
        let added = self.add(&known, Batch { increments: vec![increment], return_scores: true }).await?;
        let newer = added.newer.clone().or((!Arc::ptr_eq(&known, board)).then_some(known));
        Ok(Added { newer, ..added })
    }

    async fn pass(&self, portions: Vec<(Arc<Board>, Portion)>) -> Vec<Result<Passed>> {
        join_all(portions.into_iter().map(async |(board, portion)| self.pass_portion(&board, portion).await)).await
    }

    async fn reached(&self, board: &Arc<Board>, source: SourceNumber) -> Result<Option<Reached>> {
        self.read_reached(board, source).await
    }

    async fn page_from(&self, track: &BoardTrack, start: &PageStart, limit: u32) -> Result<Page> {
        let (key, ties) = (ranking_key(track)?, track.counts_ties());
        let read = |parts: Arc<Parts>| async move {
            self.reads.page(AskedRanking { parts: &parts, key, ties }, start, limit).await
        };
        self.following_ranking(track, key, read, |found| (&mut found.frame, found.total)).await
    }

    async fn neighbors(&self, track: &BoardTrack, subject: &Subject, radius: u32) -> Result<Page> {
        let (key, ties) = (ranking_key(track)?, track.counts_ties());
        let read = |parts: Arc<Parts>| async move {
            self.reads.neighbors(AskedRanking { parts: &parts, key, ties }, subject, radius).await
        };
        self.following_ranking(track, key, read, |found| (&mut found.frame, found.total)).await
    }

    async fn lookup(&self, track: &BoardTrack, subjects: &[Subject], ranks: bool) -> Result<Lookup> {
        let (key, ties) = (ranking_key(track)?, track.counts_ties());
        let read = |parts: Arc<Parts>| async move {
            self.reads.lookup(AskedRanking { parts: &parts, key, ties }, subjects, ranks).await
        };
        self.following_ranking(track, key, read, |found| (&mut found.frame, found.total)).await
    }

    async fn standing(&self, track: &BoardTrack, subject: &Subject) -> Result<Standing> {
        let (key, subject, ties) = (ranking_key(track)?, &*track.stored(subject), track.counts_ties());
        let read = |parts: Arc<Parts>| async move {
            self.reads.standing(AskedRanking { parts: &parts, key, ties }, subject).await
        };
        self.following_ranking(track, key, read, |found| (&mut found.frame, found.total)).await
    }

    async fn earlier_ranks(&self, track: &BoardTrack) -> Result<Option<Arc<EarlierRanks>>> {
        let read = || async { reads::earlier_ranks(&self.session, &self.session.parts_of(track)).await };
        self.following(track.board(), read).await
    }

    async fn distribution(
        &self,
        track: &BoardTrack,
        percentiles: &[Percentile],
        scores: &[Value],
    ) -> Result<Distribution> {
        let key = ranking_key(track)?;
        let read = |parts: Arc<Parts>| async move {
            let ranking = AskedRanking { parts: &parts, key, ties: false };
            self.reads.distribution(&self.session, ranking, percentiles, scores).await
        };
        self.following_ranking(track, key, read, |found| (&mut found.frame, found.total)).await
    }

    async fn add_all(&self, batches: Vec<(Arc<Board>, Batch)>) -> Vec<Result<Added>> {
        let (mut begun, mut calls) = (Vec::with_capacity(batches.len()), Vec::new());
        for (board, batch) in batches {
            begun.push(self.begin(&board, batch, &mut calls).await);
        }
        // The calls of all batches are accepted, or none.
        let pushed = self.queue.push(calls);
        let ended = begun.into_iter().map(async |begun| {
            let begun = begun?;
            pushed?;
            self.end(begun).await
        });
        join_all(ended).await
    }

    async fn read(&self, queries: Vec<SlotQuery>) -> Vec<Result<SlotContents>> {
        let contents = self.reads.windows(&self.session, &queries).await;
        let followed = contents.into_iter().zip(&queries).map(async |(contents, query)| match contents {
            Ok(contents) => require_key(&query.track).and(contents),
            Err(failure) => {
                self.follow(query.track.board(), failure).await?;
                let again = self.reads.windows(&self.session, std::slice::from_ref(query)).await.pop();
                again.unwrap_or(Err(ServerFailure::KeptChanging)).map_err(|failure| self.error(failure))?
            }
        });
        join_all(followed).await
    }

    async fn values_from(
        &self,
        track: &BoardTrack,
        subject: &Subject,
        start: &ValuesStart,
        limit: u32,
    ) -> Result<Values> {
        require_key(track)?;
        let subject = &*track.stored(subject);
        let read = || async { self.reads.values(&self.session.part_for(track, subject), subject, start, limit).await };
        self.following(track.board(), read).await
    }

    async fn remove(&self, board: &Arc<Board>, subject: &Subject) -> Result<Removal> {
        let described = std::slice::from_ref(subject);
        let removed = try_join(self.remove_data(board, subject, Removing::Subject), self.attributes(board, described));
        let ((removal, may_be_moderated), attributes) = removed.await?;
        if attributes.iter().any(|attributes| !attributes.is_empty()) {
            self.set_attributes(board, &[(subject.clone(), AttributesChange::clear())]).await?;
        }
        if may_be_moderated {
            // Until every track is changed, each has to know whether the subject is hidden.
            self.moderate(board, &[(subject.clone(), ModerationChange::Clear)]).await?;
        }
        Ok(removal)
    }

    async fn moderate(&self, board: &Arc<Board>, changes: &[(Subject, ModerationChange)]) -> Result<()> {
        self.check_writable(board).await?;
        self.following_errors(board, || moderating::moderate(&self.session, board, changes)).await
    }

    async fn moderated(
        &self,
        board: &Arc<Board>,
        list: ModerationList,
        range: TextRange<'_>,
        limit: u32,
    ) -> Result<Moderated> {
        self.following(board, || moderating::moderated(&self.session, board, list, range, limit)).await
    }

    async fn set_attributes(
        &self,
        board: &Arc<Board>,
        changes: &[(Subject, AttributesChange)],
    ) -> Result<Vec<Result<(), AttributesError>>> {
        self.check_writable(board).await?;
        self.following(board, || describing::set(&self.session, board, changes)).await
    }

    async fn attributes(&self, board: &Arc<Board>, subjects: &[Subject]) -> Result<Vec<Attributes>> {
        self.following(board, || describing::read(&self.session, board, subjects)).await
    }

    async fn described(&self, board: &Arc<Board>, range: TextRange<'_>, limit: u32) -> Result<Described> {
        self.following(board, || describing::list(&self.session, board, range, limit)).await
    }

    async fn keys(&self, track: &BoardTrack, range: TextRange<'_>, limit: u32) -> Result<Keys> {
        if track.most_keys().is_none() {
            return Err(StoreError::Unsupported { detail: "the keys of a track without keys".to_owned() });
        }
        let read = || async { reads::keys(&self.session, &self.session.parts_of(track), range, limit).await };
        self.following(track.board(), read).await
    }

    async fn status(&self, track: &BoardTrack) -> Result<Status> {
        let read = || async { reads::status(&self.session, &self.session.parts_of(track)).await };
        self.following(track.board(), read).await
    }

    async fn retire_step(&self, track: &BoardTrack) -> Result<RetireStep> {
        redivision::attend(&self.session, track.board()).await.map_err(|failure| self.error(failure))?;
        let step = || async { retire::step_in_turn(&self.session, &self.session.parts_of(track)).await };
        self.following(track.board(), step).await
    }

    async fn audit_step(&self, track: &BoardTrack, cursor: AuditCursor, repair: bool) -> Result<AuditStep> {
        let step = || {
            let cursor = cursor.clone();
            async { audit::step_of_parts(&self.session, &self.session.parts_of(track), cursor, repair).await }
        };
        self.following_errors(track.board(), step).await
    }

    async fn contents_step(&self, track: &BoardTrack, cursor: ContentsCursor) -> Result<ContentsStep> {
        let step = || {
            let cursor = cursor.clone();
            async { contents::step(&self.session, &self.session.parts_of(track), cursor).await }
        };
        self.following_errors(track.board(), step).await
    }

    async fn begin_import(&self, board: &Arc<Board>, import: ImportId) -> Result<ImportBegun> {
        self.check_writable(board).await?;
        self.following_errors(board, || imports::begin(&self.session, board, import)).await
    }

    async fn merge(&self, track: &BoardTrack, import: ImportId, piece: &Piece) -> Result<Merged> {
        self.check_writable(track.board()).await?;
        self.following_errors(track.board(), || imports::merge(&self.session, track, import, piece)).await
    }

    async fn end_import(&self, board: &Arc<Board>, import: ImportId) -> Result<bool> {
        self.following_errors(board, || imports::end(&self.session, board, import)).await
    }

    async fn change_editions(&self, from: &Arc<Board>, to: Board) -> Result<Arc<Board>> {
        self.check_writable(from).await?;
        editions::change(&self.session, from, to).await
    }

    async fn dual_run(&self, board: &Arc<Board>) -> Result<DualRun> {
        let run = self.following(board, || editions::dual_run(&self.session, board)).await?;
        run.ok_or_else(|| StoreError::Unsupported { detail: "the board has one edition".to_owned() })
    }

    async fn fill(&self, from: &BoardTrack, to: &BoardTrack, cells: &[(Subject, Timestamp)]) -> Result<()> {
        for part in self.session.parts_of(to).all() {
            timekeeping::admit(&self.session, &part.clock).await?;
        }
        self.following(from.board(), || editions::fill(&self.session, from, to, cells)).await
    }

    async fn end_fill(&self, board: &Arc<Board>, tracks: &[(usize, usize)]) -> Result<()> {
        self.following(board, || editions::end_fill(&self.session, board, tracks)).await
    }

    async fn compare(&self, tracks: [&BoardTrack; 2], subjects: &[Subject]) -> Result<Compared> {
        self.following(tracks[0].board(), || editions::compare(&self.session, tracks, subjects)).await
    }

    async fn redivide(&self, board: &Arc<Board>, shards: u32, sources: &[SourceNumber]) -> Result<Arc<Board>> {
        redivision::redivide(&self.session, board, shards, sources).await
    }

    async fn redivision(&self, board: &Arc<Board>) -> Result<Option<CopyProgress>> {
        redivision::progress(&self.session, board).await.map_err(|failure| self.error(failure))
    }

    async fn end_redivision(&self, board: &Arc<Board>) -> Result<bool> {
        redivision::end(&self.session, board).await.map_err(|failure| self.error(failure))
    }

    async fn rows(&self, table: TableName, known: Option<u64>) -> Result<Option<Rows>> {
        rows::read(&self.session, table, known).await.map_err(|failure| self.error(failure))
    }

    async fn change_row(&self, table: TableName, id: &str, from: Option<&str>, to: Option<&str>) -> Result<bool> {
        table.check(id, from, to)?;
        match rows::change(&self.session, table, id, (from, to)).await.map_err(|failure| self.error(failure))? {
            RowChange::IsFrom => Ok(true),
            RowChange::Differs => Ok(false),
            RowChange::Full => Err(StoreError::TableFull { table }),
        }
    }

    async fn sheets(&self, track: &BoardTrack, ids: &[SheetId]) -> Result<Sheets> {
        self.following(track.board(), || sheets::read(&self.session, track, ids)).await
    }

    async fn change_sheet(&self, track: &BoardTrack, id: SheetId, from: Option<&str>, to: &str) -> Result<bool> {
        super::sheets::check(to)?;
        self.check_writable(track.board()).await?;
        self.following(track.board(), || sheets::change(&self.session, track, id, (from, to))).await
    }
}
