//! The store on Redis or Valkey: instances hold no state, so any number of them may share one server.
//!
//! # Data structures
//! `P` is the prefix, 1 the schema, `{b}` the board's name in braces (its hash tag), `g` its generation.
//!
//! | key | type | holds |
//! |---|---|---|
//! | `P:1:boards` | set | names of boards, for listing; `meta` is what counts |
//! | `P:1:{P:1:boards}:version` | string | drawn anew whenever a board has come or gone |
//! | `P:1:clock` | hash | `mode`; `now` of a simulated clock |
//! | `P:1:{b}:meta` | hash | `generation`, `definition` (JSON), `head`, `floor`, `dropped`, `cursor`, `stepper`, `stepped` |
//! | `P:1:{b}:g:i` | sorted set | start of every slot that exists, by itself |
//! | `P:1:{b}:g:s:<start>` | hash | ranked boards, a slot: subject to cell |
//! | `P:1:{b}:g:r` | sorted set | the ranking: subject by score; on boards that say 0 of the unknown never 0 |
//! | `P:1:{b}:g:t` | hash | ranked AVG, MIN, MAX and APPROX_COUNT_DISTINCT: subject to total of its cells |
//! | `P:1:{b}:g:u:<subject>` | hash | unranked boards: start of slot to cell, and `f`; `from_first`: `s`, `a` |
//! | `P:1:{b}:g:v:<subject>` | sorted set | COUNT_DISTINCT: value by the time it was last seen |
//! | `P:1:{b}:g:x:<subject>` | sorted set | COUNT_DISTINCT: `t` and value by time of retraction; `c` by that of the latest value dropped |
//! | `P:1:{b}:g:d:<n>` | hash | dedupe bucket: subject, zero byte, id to time of arrival |
//! | `P:1:{b}:g:b` | sorted set | number of every dedupe bucket that exists, by itself |
//! | `P:1:{b}:g:o:<writer>:<lane>` | string | last operation with its reply; gone after 5 minutes |
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
//! The keys of single subjects cannot be listed without a scan of the keyspace. On a system clock they go by
//! themselves some time after the last of what they hold has left the window; a simulated clock, which the server
//! knows nothing of, sets no such time. An undefined board's are never met again, for they carry its generation.
//!
//! Slots at or above `floor` are live, those below are sealed and retire. Slots below `dropped` were dropped with
//! the ranking when all had expired: they are deleted whole, and no sum contains them. `cursor` is where the next
//! step goes on in the oldest sealed slot; `stepper` and `stepped` are who took the last step, and when.
//!
//! Everything about a board is changed through scripts only (`lua/`), each atomic. Each first makes sure of the
//! generation, reads the clock and advances the window, which the caller computes and the script checks: Lua
//! needs no calendar, and no two instances need agree on the time. See `session` for how calls are repeated,
//! `combine` for how writes are gathered, `write` for how a lost reply is made good, `slices` for how slots are read.

mod boards;
mod change;
mod combine;
mod connection;
mod flush;
mod keys;
mod reads;
mod reply;
mod rollover;
mod scripts;
mod session;
mod slices;
mod version;
mod view;
mod write;

use std::sync::Arc;

use async_trait::async_trait;
use futures_util::future::{join, join_all};
use redis::{Client, cmd};
use tokio::sync::oneshot;

use self::combine::{Queue, Waiting};
use self::connection::{Failure, Links};
use self::keys::StoreKeys;
use self::reply::Reply;
use self::scripts::{Call, SET_CLOCK};
use self::session::Session;
use self::version::Versions;
use super::{
    Added, Ask, AuditCursor, AuditStep, BackedUp, Batch, ClockMode, Defined, Limits, Lookup, Page, Reading, Removal,
    Result, RetireStep, Standing, Status, Store, StoreError, Values,
};
use crate::board::{Board, BoardName, Definition, Subject, Timestamp};
use crate::store::receive::receive;

/// Where the server is and how it is used.
#[derive(Clone)]
pub struct RedisOptions {
    /// `redis://…` or `rediss://…`; may contain a password, so it is never printed.
    pub url: String,
    /// What every key begins with: stores of different prefixes share a server without meeting. Without braces,
    /// which would take the place of the boards' hash tags.
    pub prefix: String,
    /// The clock mode wanted; refused if the store was made with the other one.
    pub clock: ClockMode,
    pub limits: Limits,
    /// The most items that may wait for a flush; past it [`StoreError::Overloaded`].
    pub queue: usize,
}

/// A store on a Redis or Valkey server.
pub struct RedisStore {
    session: Arc<Session>,
    queue: Arc<Queue>,
    versions: Arc<Versions>,
}

impl RedisOptions {
    /// What keys begin with unless told otherwise.
    pub const PREFIX: &'static str = "rolltop";
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
        // The error's text may quote the URL and with it a password.
        let client = Client::open(options.url.as_str()).map_err(|_| StoreError::Setup {
            detail: "the Redis URL cannot be read: write redis://[user:password@]host[:port][/database], or rediss:// for TLS"
                .to_owned(),
        })?;
        let links = Links::open(client);
        boards::check_server(&links).await?;
        let keys = StoreKeys::new(&options.prefix);
        let simulated = matches!(options.clock, ClockMode::Simulated(_));
        let reading = open_clock(&links, &keys, options.clock).await?;
        let session = Arc::new(Session::new(links, keys, simulated, options.limits, reading));
        let queue = Arc::new(Queue::new(options.queue));
        let versions = Arc::new(Versions::default());
        start_combiner(session.clone(), queue.clone(), versions.clone())?;
        Ok(Arc::new(RedisStore { session, queue, versions }))
    }

    fn error(&self, failure: Failure) -> StoreError {
        self.session.links.error(failure)
    }

    async fn read_clock(&self) -> Result<Timestamp, Failure> {
        read_clock(&self.session.links, &self.session.keys, self.session.simulated).await
    }
}

/// Starts the combiner on a thread of its own: it and the connection it writes through wake each other all the time,
/// and on one thread that costs next to nothing. Reading the version of the list of boards, which goes along with most
/// writes, is done there too. Ends when both are closed and empty.
fn start_combiner(session: Arc<Session>, queue: Arc<Queue>, versions: Arc<Versions>) -> Result<()> {
    let failed = |source: std::io::Error| StoreError::Backend { source: Box::new(source) };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(failed)?;
    let run = move || {
        runtime.block_on(join(combine::run(session.clone(), queue), version::run(session, versions)));
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
    }
}

/// Makes the store's clock of the wanted mode, if it has none yet, and reads it.
async fn open_clock(links: &Links, keys: &StoreKeys, clock: ClockMode) -> Result<Timestamp> {
    let (wanted, start) = match clock {
        ClockMode::System => ("system", Timestamp::EPOCH),
        ClockMode::Simulated(start) => ("simulated", start),
    };
    let mut call = Call::default();
    call.key(keys.clock()).arg("open").arg(wanted).arg(start.millis());
    let opened = set_clock(links, &call).await.map_err(|failure| links.error(failure))?;
    if !opened.done {
        let stored = if opened.simulated { "simulated" } else { "system" };
        return Err(StoreError::ClockModeMismatch { stored, wanted });
    }
    read_clock(links, keys, opened.simulated).await.map_err(|failure| links.error(failure))
}

/// What `set_clock.lua` answered.
struct Clock {
    done: bool,
    simulated: bool,
    now: Timestamp,
}

async fn set_clock(links: &Links, call: &Call) -> Result<Clock, Failure> {
    let mut reply = Reply::new(links.calls.call(&SET_CLOCK, &SET_CLOCK.command(call)).await?)?;
    Ok(Clock { done: reply.text()? == "done", simulated: reply.text()? == "simulated", now: reply.time()? })
}

async fn read_clock(links: &Links, keys: &StoreKeys, simulated: bool) -> Result<Timestamp, Failure> {
    if simulated {
        let mut command = cmd("HMGET");
        command.arg(keys.clock()).arg("now");
        return Reply::new(links.calls.send(&command).await?)?.time();
    }
    let mut reply = Reply::new(links.calls.send(&cmd("TIME")).await?)?;
    let (seconds, micros) = (reply.integer()?, reply.integer()?);
    Ok(Timestamp::from_millis(seconds.saturating_mul(1_000).saturating_add(micros / 1_000)))
}

#[async_trait]
impl Store for RedisStore {
    fn kind(&self) -> &'static str {
        "redis"
    }

    async fn now(&self) -> Result<Timestamp> {
        self.read_clock().await.map_err(|failure| self.error(failure))
    }

    async fn set_clock(&self, to: Timestamp) -> Result<Timestamp> {
        if !self.session.simulated {
            return Err(StoreError::ClockNotSimulated);
        }
        let mut call = Call::default();
        call.key(self.session.keys.clock()).arg("set").arg("simulated").arg(to.millis());
        let clock = set_clock(&self.session.links, &call).await.map_err(|failure| self.error(failure))?;
        match clock {
            Clock { done: true, now, .. } => Ok(now),
            Clock { simulated: true, now, .. } => Err(StoreError::ClockBackward { now }),
            Clock { .. } => Err(StoreError::Corrupt { detail: "the simulated clock is gone".to_owned() }),
        }
    }

    async fn define(&self, name: &BoardName, definition: &Definition) -> Result<Defined> {
        boards::define(&self.session, name, definition).await
    }

    async fn board(&self, name: &BoardName) -> Result<Option<Arc<Board>>> {
        boards::board(&self.session, name).await.map_err(|failure| self.error(failure))
    }

    async fn boards(&self) -> Result<Vec<Arc<Board>>> {
        boards::boards(&self.session).await.map_err(|failure| self.error(failure))
    }

    async fn boards_version(&self) -> Result<u64> {
        self.versions.read(&self.session).await
    }

    async fn undefine(&self, board: &Arc<Board>) -> Result<bool> {
        boards::undefine(&self.session, board).await.map_err(|failure| self.error(failure))
    }

    async fn add(&self, board: &Arc<Board>, batch: Batch) -> Result<Added> {
        let (answer, answered) = oneshot::channel();
        self.queue.push(Waiting { board: board.clone(), batch, joined: false, answer })?;
        answer_of(answered).await
    }

    async fn page(&self, board: &Arc<Board>, offset: u64, limit: u32) -> Result<Page> {
        reads::page(&self.session, board, offset, limit).await.map_err(|failure| self.error(failure))
    }

    async fn neighbors(&self, board: &Arc<Board>, subject: &Subject, radius: u32) -> Result<Page> {
        reads::neighbors(&self.session, board, subject, radius).await.map_err(|failure| self.error(failure))
    }

    async fn lookup(&self, board: &Arc<Board>, subjects: &[Subject]) -> Result<Lookup> {
        reads::lookup(&self.session, board, subjects).await.map_err(|failure| self.error(failure))
    }

    async fn standing(&self, board: &Arc<Board>, subject: &Subject) -> Result<Standing> {
        let standing = match board.is_ranked() {
            true => reads::standing(&self.session, board, subject).await,
            false => slices::standing(&self.session, board, subject).await,
        };
        standing.map_err(|failure| self.error(failure))
    }

    async fn add_all(&self, batches: Vec<(Arc<Board>, Batch)>) -> Vec<Result<Added>> {
        let (together, answers): (Vec<Waiting>, Vec<_>) = batches
            .into_iter()
            .map(|(board, batch)| {
                let (answer, answered) = oneshot::channel();
                (Waiting { board, batch, joined: false, answer }, answered)
            })
            .unzip();
        if let Err(retry_after) = self.queue.push_all(together) {
            return answers.iter().map(|_| Err(StoreError::Overloaded { retry_after })).collect();
        }
        join_all(answers.into_iter().map(answer_of)).await
    }

    async fn read(&self, asks: Vec<Ask>) -> Vec<Result<Reading>> {
        let readings = slices::read(&self.session, &asks).await;
        readings.into_iter().map(|reading| reading.map_err(|failure| self.error(failure))?).collect()
    }

    async fn values(&self, board: &Arc<Board>, subject: &Subject, offset: u64, limit: u32) -> Result<Values> {
        slices::values(&self.session, board, subject, offset, limit).await.map_err(|failure| self.error(failure))
    }

    async fn remove(&self, board: &Arc<Board>, subject: &Subject) -> Result<Removal> {
        let removal = match board.is_ranked() {
            true => rollover::remove(&self.session, board, subject).await,
            false => slices::remove(&self.session, board, subject).await,
        };
        removal.map_err(|failure| self.error(failure))
    }

    async fn status(&self, board: &Arc<Board>) -> Result<Status> {
        reads::status(&self.session, board).await.map_err(|failure| self.error(failure))
    }

    async fn retire_step(&self, board: &Arc<Board>) -> Result<RetireStep> {
        rollover::retire_step(&self.session, board).await.map_err(|failure| self.error(failure))
    }

    async fn audit_step(&self, board: &Arc<Board>, cursor: AuditCursor, repair: bool) -> Result<AuditStep> {
        rollover::audit_step(&self.session, board, cursor, repair).await
    }

    async fn check(&self) -> Result<()> {
        boards::check(&self.session).await.map_err(|failure| self.error(failure))
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
