//! Calls of scripts about a board: the first attempt uses the window that this instance expects. If the store's clock
//! differs, the call is repeated with a better window.

use std::collections::HashMap;
use std::hash::{Hash, Hasher};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use redis::Cmd;

use super::clock;
use super::findings::Health;
use super::keys::StoreKeys;
use super::part::{Existing, Part};
use super::partition::Partition;
use super::partition_clock::{Belief, PartitionClock};
use super::partitions::{Partitions, Parts};
use super::reply::{Reply, ScriptStatus};
use super::scripts::{Script, ScriptCall, order_argument};
use super::servers::{Channel, ServerFailure, Servers};
use super::store_clock::StoreClock;
use crate::board::{
    Board, BoardTrack, Edition, Epoch, Frame, Generation, Subject, Timestamp, TrackId, Window, WindowSlots,
};
use crate::store::Limits;

/// The largest number of attempts of a call, each with a better window.
pub(super) const ATTEMPTS: usize = 32;

/// The state that all calls of one instance share.
#[derive(Debug)]
pub(super) struct Session {
    pub servers: Arc<Servers>,
    pub keys: StoreKeys,
    pub simulated: bool,
    pub limits: Limits,
    pub health: Health,
    /// A random text that identifies the instance.
    pub instance: String,
    started: Instant,
    pub clock: StoreClock,
    tokens: AtomicU64,
    /// The partitions of each board in use, in each epoch that a caller named, because scripts are called in that
    /// epoch. The entry is removed when the board was found to be changed.
    boards: Mutex<HashMap<BoardKey, Arc<Partitions>, rapidhash::fast::RandomState>>,
}

/// A board as a caller knows it. Its second edition is a part of it, and so are its first partition and the end of its
/// current period: of two changes that lead to the same epoch, only one is made.
type BoardKey = (Generation, Epoch, Option<TrackId>, Option<u32>, Option<Timestamp>);

fn key_of(board: &Board) -> BoardKey {
    let partition = board.partitions().and_then(|numbers| numbers.first().copied());
    let ends = board.edition().period().map(|period| period.end);
    (board.generation(), board.epoch(), board.editions().get(1).map(Edition::id), partition, ends)
}

/// Returns whether a step of the season of the part's board is due at `now`. A sealed period does not wait for it, so it
/// can be read while the server takes no writes.
pub(super) fn is_step_due(part: &Part, now: Timestamp) -> bool {
    let board = part.track.board();
    part.track.number() < board.written_tracks().len() && board.season_step_at().is_some_and(|at| at <= now)
}

/// The input for the arguments of one attempt.
#[derive(Debug)]
pub(super) struct Moment<'a> {
    pub part: &'a Part,
    pub now: Timestamp,
    pub window: Window,
    /// The start of each slot of the window, oldest first.
    pub starts: Arc<[Timestamp]>,
    pub existing: Existing,
    /// Whether the window may be ahead of the part's clock.
    pub is_ahead: bool,
}

/// The arguments with which every script about a board begins.
#[derive(Clone, Copy, Debug)]
pub(super) struct Preamble {
    pub window: Window,
    /// The time for which the arguments are made.
    pub now: Timestamp,
    /// The remaining arguments are valid from `low` (inclusive) to `high` (exclusive).
    pub low: Timestamp,
    pub high: Timestamp,
}

/// Returns the arguments `boundary` and `noted_by` of every script about a track, at this time.
fn noting(track: &BoardTrack, now: Timestamp) -> (String, String) {
    let Some((boundary, _)) = track.noted_at(now) else { return Default::default() };
    let head = track.head_before(boundary, now).map_or_else(String::new, |head| head.millis().to_string());
    (boundary.millis().to_string(), format!("{} {head}", order_argument(track.order())))
}

/// The result of a call that succeeded.
#[derive(Debug)]
pub(super) struct ScriptAnswer<T> {
    pub frame: Frame,
    /// The value that the closure for the arguments returned.
    pub asked: T,
    pub reply: Reply,
    /// The head before an earlier attempt of this call advanced it.
    pub head_before: Option<Timestamp>,
}

impl<'a> Moment<'a> {
    pub fn new(part: &'a Part, now: Timestamp) -> Self {
        let WindowSlots { window, starts } = part.window_slots(now);
        Self { part, now, window, starts, existing: part.existing(), is_ahead: false }
    }
}

impl Session {
    pub fn new(
        servers: Arc<Servers>,
        keys: StoreKeys,
        simulated: bool,
        limits: Limits,
        clock: StoreClock,
        health: Health,
    ) -> Self {
        Self {
            servers,
            keys,
            simulated,
            limits,
            health,
            instance: format!("{:016x}", rand::random::<u64>()),
            started: Instant::now(),
            clock,
            tokens: AtomicU64::new(0),
            boards: Mutex::default(),
        }
    }

    /// Returns a board version that was never used before, for scripts that change a board but are not write
    /// operations.
    pub fn token(&self) -> String {
        format!("{}:r:{}", self.instance, self.tokens.fetch_add(1, Ordering::Relaxed))
    }

    /// Returns the time since this instance started.
    pub fn monotonic(&self) -> Duration {
        self.started.elapsed()
    }

    /// Returns the partitions of a board.
    pub fn partitions_of(&self, board: &Arc<Board>) -> Arc<Partitions> {
        let start = |tolerance| self.clock.for_partition(tolerance, self.monotonic());
        let new = || {
            let clock = || PartitionClock::new(board, self.simulated, start);
            Arc::new(Partitions::new(board, &self.keys, clock))
        };
        self.boards.lock().entry(key_of(board)).or_insert_with(new).clone()
    }

    /// Returns the parts of a track.
    pub fn parts_of(&self, track: &BoardTrack) -> Arc<Parts> {
        self.partitions_of(track.board()).of_track(track.number()).clone()
    }

    /// Returns the part of a track that has the subject.
    pub fn part_for(&self, track: &BoardTrack, subject: &Subject) -> Arc<Part> {
        self.parts_of(track).of(subject).clone()
    }

    /// Returns the partitions in use, of all boards.
    pub fn partitions(&self) -> Vec<Arc<Partition>> {
        self.boards.lock().values().flat_map(|partitions| partitions.all()).cloned().collect()
    }

    /// Returns a number that changes if a server that has a partition of the board is restarted or replaced.
    pub fn server_runs(&self, board: &Arc<Board>) -> u64 {
        let mut hasher = rapidhash::fast::RapidHasher::default();
        for partition in self.partitions_of(board).all() {
            let slot = partition.main().slot();
            let run = self.servers.run(slot);
            // Without the run id, a new connection may be one to a server that was restarted.
            let connections = if run.is_some() { 0 } else { self.servers.incarnation(slot) };
            (run, connections).hash(&mut hasher);
        }
        hasher.finish()
    }

    /// Drops the state about a board that no longer exists in this epoch.
    pub fn forget(&self, board: &Board) {
        self.boards.lock().remove(&key_of(board));
    }

    /// Resets what is known about the data of the servers, because one of them was restarted or emptied.
    pub fn drop_beliefs(&self) {
        self.partitions().iter().for_each(|partition| partition.drop_beliefs());
    }

    /// Returns the first arguments of every script about a board.
    pub fn preamble(&self, part: &Part, preamble: &Preamble) -> [(&'static str, String); 11] {
        let Belief { expected, latest } = part.clock.belief(self.monotonic());
        let Preamble { window, now, low, high } = preamble;
        let (boundary, noted_by) = noting(&part.track, *now);
        // The last possible slot never ends.
        let high = if *high == Timestamp::MAX { i64::MAX } else { high.millis() };
        [
            ("clock", self.clock_mode().to_owned()),
            ("believable", latest.millis().to_string()),
            ("time", expected.millis().to_string()),
            ("generation", part.generation().to_string()),
            ("epoch", part.track.board().epoch().to_string()),
            ("floor", window.floor.millis().to_string()),
            ("head", window.head.millis().to_string()),
            ("valid_from", low.millis().to_string()),
            ("valid_until", high.to_string()),
            ("boundary", boundary),
            ("noted_by", noted_by),
        ]
    }

    /// Returns the time by which to prepare an attempt of a call to a partition: `known`, which an earlier attempt
    /// returned, or the expected time. A simulated clock is read instead: it may be on a different server than the
    /// board, so scripts receive its time as an argument.
    pub async fn time_for(&self, clock: &PartitionClock, known: Option<Timestamp>) -> Result<Timestamp, ServerFailure> {
        if !self.simulated {
            return Ok(known.unwrap_or_else(|| clock.belief(self.monotonic()).expected));
        }
        let now = clock::read(&self.servers, &self.keys, true).await?;
        clock.learn(now, self.monotonic());
        Ok(known.map_or(now, |known| now.max(known)))
    }

    pub fn clock_mode(&self) -> &'static str {
        if self.simulated { "simulated" } else { "system" }
    }

    /// Reads a reply's status and records what it reveals about clock and keys.
    pub fn learn(&self, part: &Part, reply: &mut Reply) -> Result<ScriptStatus, ServerFailure> {
        let status = reply.status();
        match &status {
            Ok(ScriptStatus::Done(header)) => part.clock.learn(header.reading, self.monotonic()),
            Ok(ScriptStatus::Stale { reading, .. }) => part.clock.learn(*reading, self.monotonic()),
            Ok(ScriptStatus::StaleKeys { header, slots, buckets, .. }) => {
                part.clock.learn(header.reading, self.monotonic());
                part.learn_existing(slots.clone(), buckets.clone());
            }
            Ok(ScriptStatus::Missing { header, .. }) => part.clock.learn(header.reading, self.monotonic()),
            Err(failure) if failure.is_outdated() => self.forget(part.track.board()),
            Err(_) => {}
        }
        status
    }

    /// Calls a script once, and returns its reply.
    pub async fn call(&self, script: &Script, call: &ScriptCall) -> Result<Reply, ServerFailure> {
        Reply::new(self.servers.call(Channel::Calls, script, call).await?)
    }

    /// Sends a command that only reads, and returns its reply, a list.
    pub async fn read(&self, command: &Cmd) -> Result<Reply, ServerFailure> {
        Reply::new(self.servers.read(Channel::Calls, command).await?)
    }

    /// Returns a call of a script about a board, with the keys and arguments that every such call begins with.
    pub fn begin(&self, moment: &Moment<'_>) -> ScriptCall {
        let window = moment.window;
        let (low, high) = moment.part.track.valid_within(&window, moment.now);
        let low = if moment.is_ahead { Timestamp::EPOCH } else { low };
        self.begin_with(moment.part, &Preamble { window, now: moment.now, low, high })
    }

    /// Returns a call like [`begin`](Self::begin), with these arguments.
    pub fn begin_with(&self, part: &Part, preamble: &Preamble) -> ScriptCall {
        let mut call = ScriptCall::default();
        call.keys(part.keys.of_board());
        for (name, argument) in self.preamble(part, preamble) {
            call.arg(name, argument);
        }
        call
    }

    /// Returns the input for a call to a part whose clock reads `now`, where a different part of its board has the head
    /// `at_least`. The window is that of the later of the two times.
    ///
    /// A part whose clock has not reached that head advances to it all the same. This is correct: the board has reached
    /// that window by a clock that was believed there, and this part's clock will reach it within moments. So only
    /// slots expire that were about to expire. Until the part's own clock has reached the head, the head counts as now,
    /// as after a clock was set back.
    ///
    /// A head beyond the readings that this part would believe is not used, so that the clock of one node cannot expire
    /// data on another node. The parts then have no head in common, and the caller gets an error that asks to retry.
    pub fn moment<'a>(&self, part: &'a Part, now: Timestamp, at_least: Option<Timestamp>) -> Moment<'a> {
        let believable = part.clock.belief(self.monotonic()).latest;
        match at_least.filter(|head| *head > now && *head <= believable) {
            Some(head) => Moment { is_ahead: true, ..Moment::new(part, head) },
            None => Moment::new(part, now),
        }
    }

    /// Calls a script about a board. `arguments` adds the script's own keys and arguments for each attempt.
    pub async fn ask<T>(
        &self,
        part: &Part,
        script: &Script,
        arguments: impl Fn(&Moment<'_>, &mut ScriptCall) -> T,
    ) -> Result<ScriptAnswer<T>, ServerFailure> {
        self.ask_at_least(part, Channel::Calls, None, script, arguments).await
    }

    /// Calls a script like [`ask`](Self::ask), one step of a work that takes long.
    pub async fn step<T>(
        &self,
        part: &Part,
        script: &Script,
        arguments: impl Fn(&Moment<'_>, &mut ScriptCall) -> T,
    ) -> Result<ScriptAnswer<T>, ServerFailure> {
        self.ask_at_least(part, Channel::Bulk, None, script, arguments).await
    }

    /// Calls a script like [`ask`](Self::ask), for a part that first advances to the head of a different part (see
    /// [`moment`](Self::moment)).
    pub async fn ask_at_least<T>(
        &self,
        part: &Part,
        channel: Channel,
        at_least: Option<Timestamp>,
        script: &Script,
        arguments: impl Fn(&Moment<'_>, &mut ScriptCall) -> T,
    ) -> Result<ScriptAnswer<T>, ServerFailure> {
        let (mut known, mut head_before): (Option<Timestamp>, Option<Timestamp>) = (None, None);
        for _ in 0..ATTEMPTS {
            let moment = self.moment(part, self.time_for(&part.clock, known).await?, at_least);
            if is_step_due(part, moment.now) {
                return Err(ServerFailure::StepDue);
            }
            let window = moment.window;
            let mut call = self.begin(&moment);
            let asked = arguments(&moment, &mut call);
            let mut reply = Reply::new(self.servers.call(channel, script, &call).await?)?;
            match self.learn(part, &mut reply)? {
                ScriptStatus::Done(header) => {
                    let frame = header.frame(window);
                    return Ok(ScriptAnswer { frame, asked, reply, head_before });
                }
                ScriptStatus::Stale { now, .. } => known = Some(now),
                ScriptStatus::Missing { header, .. } => known = Some(header.now),
                ScriptStatus::StaleKeys { header, head_before: before, .. } => {
                    known = Some(header.now);
                    head_before.get_or_insert(before);
                }
            }
        }
        tracing::warn!(
            board = part.track.board().name().as_str(),
            script = script.name(),
            "the window moved at every attempt"
        );
        Err(ServerFailure::KeptChanging)
    }
}
