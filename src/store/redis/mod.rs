//! The store on Redis or Valkey: instances hold no state, so any number of them may share one server.
//!
//! # Data structures
//! `P` is the prefix, 1 the schema, `{b}` the board's name in braces (its hash tag), `g` its generation.
//!
//! | key | type | holds |
//! |---|---|---|
//! | `P:1:boards` | set | names of boards, for listing; `meta` is what counts |
//! | `P:1:{P:1:boards}:version` | string | drawn anew whenever a board has come or gone |
//! | `P:1:clock` | hash | `mode`; `now` of a simulated clock; `seen`, the believed time last recorded of a system clock |
//! | `P:1:removed` | set | generation, name and parts of boards that were removed, or never came to be, and may have left something |
//! | `P:1:{b}:meta` | hash | `generation`, `definition` (JSON), `head`, `floor`, `dropped`, `version`, `retiring`, `cursor`, `stepper`, `stepped`, `o:<writer>:<lane>` |
//! | `P:1:{b}:g:i` | sorted set | start of every slot that exists, by itself |
//! | `P:1:{b}:g:s:<start>` | hash | ranked boards, a slot: subject to cell |
//! | `P:1:{b}:g:r` | sorted set | the ranking: subject by score; on boards that say 0 of the unknown never 0 |
//! | `P:1:{b}:g:t` | hash | ranked AVG, MIN, MAX and APPROX_COUNT_DISTINCT: subject to total of its cells |
//! | `P:1:{b}:g:u:<subject>` | hash | unranked boards: start of slot to cell, and `f`; `from_first`: `s`, `a` |
//! | `P:1:{b}:g:v:<subject>` | sorted set | COUNT_DISTINCT: value by the time it was last seen |
//! | `P:1:{b}:g:x:<subject>` | sorted set | COUNT_DISTINCT: `t` and value by time of retraction; `c` by that of the latest value dropped |
//! | `P:1:{b}:g:e` | sorted set | number of every expiry period that exists, by itself |
//! | `P:1:{b}:g:e:<n>` | set | subjects written to in that period |
//! | `P:1:{b}:g:d:<n>` | hash | dedupe bucket: subject, zero byte, id to time of arrival |
//! | `P:1:{b}:g:b` | sorted set | number of every dedupe bucket that exists, by itself |
//!
//! A *cell* is what a subject has in a slot, a *total* what its cells come to:
//!
//! | metric | cell | total | score |
//! |---|---|---|---|
//! | COUNT, SUM | the amount, never 0 | none | the sum |
//! | AVG | `sum,count`, never `0,0` | `sum,count` | one divided by the other |
//! | MIN, MAX | the slot's own extreme | the slots whose extreme beats every later one's, 16 bytes each | the first of them |
//! | COUNT_DISTINCT | how many values were last seen in the slot; unranked none | none | the sum; unranked a count of times |
//! | APPROX_COUNT_DISTINCT | a sketch, 2,048 bytes at most | all of them merged | its estimate |
//!
//! Cells and totals are written by `change.lua`, put together of what all kinds share, `cells/` (where cells are),
//! `scores/` (what follows for the ranking) and `change/` (what an entry does); only amounts added to ranked sums,
//! the most frequent by far, have a script made for them, `write.lua`. `kind/` is how cells combine. `scripts` tells
//! which parts make which script, and what each part gives to the others.
//!
//! Nothing but `check` has a time to live. The keys of single subjects, which cannot be listed without a scan of the
//! keyspace, are found through the expiry periods in which they were written to (`expiry`); what a removed board leaves
//! behind is deleted by steps that any instance finishes (`removing`). What is judged by time is judged by the time that
//! is believed (`clock`), never by the server's alone.
//!
//! Slots at or above `floor` are live, those below are sealed and retire. Slots below `dropped` were dropped with
//! the ranking when all had expired: they are deleted whole, and no sum contains them. `cursor` is where the next
//! step goes on in the oldest sealed slot; `stepper` and `stepped` are who took the last step, and when.
//!
//! A board with `shards` is spread over parts (`partition`, `parts`): each has all keys from `g:i` on, and a meta key
//! `P:1:{b/<number>}:g:meta`, under a hash tag of its own; the board's own `meta` then holds `generation`, `definition`,
//! `announced` and `parts`, the numbers.
//!
//! Everything about a board is changed through scripts only (`lua/`), each atomic. Each first makes sure of the
//! generation, reads the clock and advances the window, which the caller computes and the script checks: Lua
//! needs no calendar, and no two instances need agree on the time. See `session` for how calls are repeated,
//! `writes` for how writes are gathered and how a lost reply is made good, `reads` for how reads are gathered and how
//! slots are read, `servers` for which server a command goes to.

mod audit;
mod boards;
mod clock;
mod divided;
mod expiry;
mod fold;
mod hash_slot;
mod healing;
mod health;
mod keys;
mod merge;
mod part;
mod partition;
mod parts;
mod reads;
mod removing;
mod reply;
mod retire;
mod scripts;
mod servers;
mod session;
mod version;
mod writes;

use std::path::PathBuf;
use std::sync::Arc;

use async_trait::async_trait;
use futures_util::future::{join, join_all};
use tokio::sync::oneshot;

use self::clock::StoreClock;
use self::divided::{Division, divide};
use self::health::Health;
use self::keys::StoreKeys;
use self::part::Part;
use self::reads::Reads;
pub use self::servers::{Address, AddressError};
use self::servers::{Failure, Servers};
use self::session::Session;
use self::version::Versions;
use self::writes::{Queue, Request};
use super::{
    Added, Ask, AuditCursor, AuditStep, BackedUp, Batch, ClockMode, Defined, Limits, Listing, Lookup, Page, Reading,
    Removal, Result, RetireStep, Standing, Status, Store, StoreError, Values,
};
use crate::board::{Board, BoardName, Definition, Subject, Timestamp};
use crate::store::receive::receive;

/// Where the server is and how it is used.
#[derive(Clone)]
pub struct RedisOptions {
    /// An [`Address`] as text; may contain a password, so it is never printed.
    pub url: String,
    /// A PEM file of certificates: whom to trust, in place of the well-known authorities, when the address speaks TLS.
    pub ca: Option<PathBuf>,
    /// What every key begins with: stores of different prefixes share a server without meeting. Without braces,
    /// which would take the place of the boards' hash tags.
    pub prefix: String,
    /// The clock mode wanted; refused if the store was made with the other one.
    pub clock: ClockMode,
    pub limits: Limits,
    /// Whether a server that keeps an append-only file is asked to rewrite it after each of its starts.
    pub rewrite_aof: bool,
    /// The most items that may wait for a flush; past it [`StoreError::Overloaded`].
    pub queue: usize,
    /// Believe the server's clock at the start, however far it is ahead of the last recorded time.
    pub trust_clock: bool,
}

/// A store on a Redis or Valkey server.
pub struct RedisStore {
    session: Arc<Session>,
    queue: Arc<Queue>,
    versions: Arc<Versions>,
    reads: Reads,
}

impl RedisOptions {
    /// What keys begin with unless told otherwise.
    pub const PREFIX: &'static str = "rolltop";

    /// Everything but address and clock as it is unless told otherwise.
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
        }
    }
}

impl RedisStore {
    /// Connects, makes sure that the server is fit (Redis 6.2 or later, no eviction) and of the wanted clock mode.
    ///
    /// Must be called within a Tokio runtime. A thread of its own combines writes until the store is dropped.
    /// [`StoreError::Setup`] and [`StoreError::ClockModeMismatch`] need another configuration; the rest may pass.
    pub async fn connect(options: RedisOptions) -> Result<Arc<RedisStore>> {
        if options.prefix.is_empty() || options.prefix.contains(['{', '}']) {
            return Err(StoreError::Setup {
                detail: format!("the prefix '{}' of keys must not be empty or contain braces", options.prefix),
            });
        }
        let servers = Servers::open(&options.url, options.ca.as_deref()).await?;
        boards::check_server(&servers).await?;
        let keys = StoreKeys::new(&options.prefix);
        let simulated = matches!(options.clock, ClockMode::Simulated(_));
        let reading = clock::open(&servers, &keys, options.clock).await?;
        let recorded = match simulated || options.trust_clock {
            true => None,
            false => clock::recorded(&servers, &keys).await.map_err(|failure| servers.error(failure))?,
        };
        let clock = StoreClock::new(recorded, reading);
        let health = Health::new(options.clock, options.rewrite_aof);
        let session = Arc::new(Session::new(servers, keys, simulated, options.limits, clock, health));
        health::mark(&session).await.map_err(|failure| session.servers.error(failure))?;
        let queue = Arc::new(Queue::new(options.queue, session.servers.at().clone()));
        let versions = Arc::new(Versions::default());
        start_combiner(session.clone(), queue.clone(), versions.clone())?;
        let reads = Reads::start(&session).map_err(|source| StoreError::Backend { source: Box::new(source) })?;
        Ok(Arc::new(RedisStore { session, queue, versions, reads }))
    }

    fn error(&self, failure: Failure) -> StoreError {
        self.session.servers.error(failure)
    }

    /// What became of a batch by what became of its shares.
    async fn join(&self, board: &Board, division: Division, answers: Vec<Result<Added>>) -> Result<Added> {
        // Of a board that was removed the parts go after it. One that is still there has lost a part.
        let is_gone = division.is_disputed(&answers) && boards::is_gone(&self.session, board).await;
        division.join(answers, is_gone, self.session.servers.at())
    }

    /// Refuses to write to a board whose clock is doubted since the start.
    async fn admit(&self, part: &Part) -> Result<()> {
        clock::admit(&self.session, part).await.map_err(|failure| self.error(failure))?
    }

    /// The same for all that is about to be written to one board.
    async fn admit_all(&self, requests: &[Request]) -> Result<()> {
        for request in requests {
            self.admit(&request.part).await?;
        }
        Ok(())
    }
}

/// Starts the combiner on a thread of its own: it and the connection it writes through wake each other all the time,
/// and on one thread that costs next to nothing. Reading the version of the list of boards, which goes along with most
/// writes, is done there too. Ends when both are closed and empty.
fn start_combiner(session: Arc<Session>, queue: Arc<Queue>, versions: Arc<Versions>) -> Result<()> {
    let failed = |source: std::io::Error| StoreError::Backend { source: Box::new(source) };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(failed)?;
    let run = move || {
        runtime.block_on(join(writes::run(session.clone(), queue), version::run(session, versions)));
    };
    std::thread::Builder::new().name("rolltop-combine".to_owned()).spawn(run).map_err(failed)?;
    Ok(())
}

/// The combiner's answer.
async fn answer_of(answered: oneshot::Receiver<Result<Added>>) -> Result<Added> {
    receive(answered).await.unwrap_or_else(|stopped| Err(StoreError::Backend { source: Box::new(stopped) }))
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
    fn kind(&self) -> &'static str {
        "redis"
    }

    async fn now(&self) -> Result<Timestamp> {
        clock::look(&self.session).await.map_err(|failure| self.error(failure))
    }

    async fn set_clock(&self, to: Timestamp) -> Result<Timestamp> {
        if !self.session.simulated {
            return Err(StoreError::ClockNotSimulated);
        }
        clock::set(&self.session, to).await
    }

    async fn define(&self, name: &BoardName, definition: &Definition) -> Result<Defined> {
        boards::define(&self.session, name, definition).await
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
        let mut added = self.add_all(vec![(board.clone(), batch)]).await;
        added.pop().unwrap_or_else(|| Err(StoreError::Corrupt { detail: "a batch was not answered".to_owned() }))
    }

    async fn page(&self, board: &Arc<Board>, offset: u64, limit: u32) -> Result<Page> {
        let page = self.reads.page(&self.session.parts_of(board), offset, limit).await;
        page.map_err(|failure| self.error(failure))
    }

    async fn neighbors(&self, board: &Arc<Board>, subject: &Subject, radius: u32) -> Result<Page> {
        let page = self.reads.neighbors(&self.session.parts_of(board), subject, radius).await;
        page.map_err(|failure| self.error(failure))
    }

    async fn lookup(&self, board: &Arc<Board>, subjects: &[Subject]) -> Result<Lookup> {
        let lookup = self.reads.lookup(&self.session.parts_of(board), subjects).await;
        lookup.map_err(|failure| self.error(failure))
    }

    async fn standing(&self, board: &Arc<Board>, subject: &Subject) -> Result<Standing> {
        let standing = self.reads.standing(&self.session.parts_of(board), subject).await;
        standing.map_err(|failure| self.error(failure))
    }

    async fn add_all(&self, batches: Vec<(Arc<Board>, Batch)>) -> Vec<Result<Added>> {
        let (mut admitted, mut requests) = (Vec::with_capacity(batches.len()), Vec::new());
        for (board, batch) in batches {
            let (division, own) = divide(&self.session.parts_of(&board), batch);
            admitted.push(match self.admit_all(&own).await {
                Ok(()) => {
                    requests.extend(own);
                    Ok((board, division))
                }
                Err(refused) => Err(refused),
            });
        }
        let answers = match self.queue.push(requests) {
            Ok(answers) => answers,
            Err(full) => {
                let retry_after = full.retry_after().unwrap_or_default();
                let refused = |admitted: Result<_>| admitted.and(Err(StoreError::Overloaded { retry_after }));
                return admitted.into_iter().map(refused).collect();
            }
        };
        let mut answers = join_all(answers.into_iter().map(answer_of)).await.into_iter();
        let mut added = Vec::with_capacity(admitted.len());
        for admitted in admitted {
            added.push(match admitted {
                Ok((board, division)) => {
                    let own = answers.by_ref().take(division.requests()).collect();
                    self.join(&board, division, own).await
                }
                Err(refused) => Err(refused),
            });
        }
        added
    }

    async fn read(&self, asks: Vec<Ask>) -> Vec<Result<Reading>> {
        let readings = self.reads.windows(&self.session, asks).await;
        readings.into_iter().map(|reading| reading.map_err(|failure| self.error(failure))?).collect()
    }

    async fn values(&self, board: &Arc<Board>, subject: &Subject, offset: u64, limit: u32) -> Result<Values> {
        let values = self.reads.values(self.session.part_for(board, subject), subject, offset, limit).await;
        values.map_err(|failure| self.error(failure))
    }

    async fn remove(&self, board: &Arc<Board>, subject: &Subject) -> Result<Removal> {
        let part = self.session.part_for(board, subject);
        self.admit(&part).await?;
        let removal = match board.is_ranked() {
            true => retire::remove(&self.session, &part, subject).await,
            false => reads::remove(&self.session, &part, subject).await,
        };
        removal.map_err(|failure| self.error(failure))
    }

    async fn status(&self, board: &Arc<Board>) -> Result<Status> {
        reads::status(&self.session, &self.session.parts_of(board)).await.map_err(|failure| self.error(failure))
    }

    async fn retire_step(&self, board: &Arc<Board>) -> Result<RetireStep> {
        retire::step_in_turn(&self.session, &self.session.parts_of(board)).await.map_err(|failure| self.error(failure))
    }

    async fn tidy_step(&self) -> Result<bool> {
        clock::record(&self.session).await.map_err(|failure| self.error(failure))?;
        removing::go_on(&self.session).await.map_err(|failure| self.error(failure))
    }

    async fn audit_step(&self, board: &Arc<Board>, cursor: AuditCursor, repair: bool) -> Result<AuditStep> {
        audit::step_of_parts(&self.session, &self.session.parts_of(board), cursor, repair).await
    }

    async fn check(&self) -> Result<()> {
        if !self.session.simulated {
            clock::look(&self.session).await.map_err(|failure| self.error(failure))?;
        }
        let checked = health::check(&self.session).await;
        clock::check(&self.session).and(checked)
    }

    async fn reopen(&self) -> Result<()> {
        health::reopen(&self.session).await
    }

    async fn tend(&self) -> Result<()> {
        healing::tend(&self.session).await.map_err(|failure| self.error(failure))
    }

    fn warnings(&self) -> Vec<String> {
        self.session.health.warnings()
    }

    async fn backup(&self) -> Result<BackedUp> {
        let detail = "a Redis store is backed up by the server's own means: BGSAVE, or a copy of its append-only files";
        Err(StoreError::Unsupported { detail: detail.to_owned() })
    }

    /// What was acknowledged is the server's already.
    async fn close(&self) -> Result<()> {
        Ok(())
    }
}
