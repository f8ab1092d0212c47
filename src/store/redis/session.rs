//! How a script about a board is called: with the window that this instance believes in, and again with a better
//! one where the store's clock says otherwise.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use super::clock::{self, StoreClock};
use super::health::Health;
use super::keys::StoreKeys;
use super::part::{Existing, Part};
use super::parts::Parts;
use super::reply::{Reply, Status};
use super::scripts::{Call, Script};
use super::servers::{Failure, Line, Servers};
use crate::board::{Board, Frame, Generation, Subject, Timestamp, Window};
use crate::store::Limits;

/// How often a call is repeated with a better window before we give up.
pub(super) const ATTEMPTS: usize = 32;

/// What every call of one instance shares.
#[derive(Debug)]
pub(super) struct Session {
    pub servers: Servers,
    pub keys: StoreKeys,
    pub simulated: bool,
    pub limits: Limits,
    pub health: Health,
    /// Drawn at random: tells instances apart.
    pub instance: String,
    started: Instant,
    pub clock: StoreClock,
    tokens: AtomicU64,
    /// Of each board in use; removed with the board.
    parts: Mutex<HashMap<Generation, Arc<Parts>>>,
}

/// What the arguments of one attempt are made from.
#[derive(Debug)]
pub(super) struct Moment<'a> {
    pub part: &'a Part,
    pub now: Timestamp,
    pub window: Window,
    /// Start of each slot of the window, oldest first.
    pub starts: Arc<[Timestamp]>,
    pub existing: Existing,
    /// The window holds although the part's clock may not have come to it.
    pub is_ahead: bool,
}

/// The arguments that every script about a board begins with.
#[derive(Clone, Copy, Debug)]
pub(super) struct Preamble {
    pub window: Window,
    /// The rest of the arguments holds from `low` until before `high`.
    pub low: Timestamp,
    pub high: Timestamp,
}

/// A call that was done.
#[derive(Debug)]
pub(super) struct Answer<T> {
    pub frame: Frame,
    /// What the arguments were made of.
    pub asked: T,
    pub reply: Reply,
    /// The head before an earlier attempt advanced it.
    pub head_before: Option<Timestamp>,
}

impl<'a> Moment<'a> {
    pub fn new(part: &'a Part, now: Timestamp) -> Self {
        let (window, starts) = part.board.window_and_starts(now);
        Self { part, now, window, starts, existing: part.existing(), is_ahead: false }
    }
}

impl Session {
    pub fn new(
        servers: Servers,
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
            parts: Mutex::default(),
        }
    }

    /// A version of what a board holds, unlike any before: for scripts that change it without being numbered writes.
    pub fn token(&self) -> String {
        format!("{}:r:{}", self.instance, self.tokens.fetch_add(1, Ordering::Relaxed))
    }

    /// Time since this instance started.
    pub fn monotonic(&self) -> Duration {
        self.started.elapsed()
    }

    /// The parts of a board.
    pub fn parts_of(&self, board: &Arc<Board>) -> Arc<Parts> {
        let mut parts = self.parts.lock();
        let part = |keys| {
            let start = self.clock.for_part(Part::tolerance(board), self.monotonic());
            Part::new(board.clone(), keys, self.simulated, start)
        };
        let new = || Arc::new(Parts::new(board, &self.keys, part));
        parts.entry(board.generation()).or_insert_with(new).clone()
    }

    /// The part of a board that has a subject.
    pub fn part_for(&self, board: &Arc<Board>, subject: &Subject) -> Arc<Part> {
        self.parts_of(board).of(subject).clone()
    }

    /// The parts in use, of all boards.
    pub fn parts(&self) -> Vec<Arc<Part>> {
        self.parts.lock().values().flat_map(|parts| parts.all()).cloned().collect()
    }

    /// Drops what was believed about a board that is gone.
    pub fn forget(&self, board: &Board) {
        self.parts.lock().remove(&board.generation());
    }

    /// Drops everything that is believed of what the servers hold: one was restarted or emptied.
    pub fn drop_beliefs(&self) {
        for part in self.parts() {
            part.drop_beliefs();
        }
    }

    /// The first eight arguments of every script about a board.
    pub fn preamble(&self, part: &Part, preamble: &Preamble) -> [String; 8] {
        let (estimate, believable) = part.estimate(self.monotonic());
        let Preamble { window, low, high } = preamble;
        // The last slot of all never ends.
        let high = if *high == Timestamp::MAX { i64::MAX } else { high.millis() };
        [
            self.clock_mode().to_owned(),
            believable.millis().to_string(),
            estimate.millis().to_string(),
            part.board.generation().to_string(),
            window.floor.millis().to_string(),
            window.head.millis().to_string(),
            low.millis().to_string(),
            high.to_string(),
        ]
    }

    /// Reads a simulated clock and goes by it; `None` on a system clock, which each script reads for itself. A simulated
    /// one need not be on the server of the board, so scripts are told the time.
    pub async fn read_simulated(&self, part: &Part) -> Result<Option<Timestamp>, Failure> {
        if !self.simulated {
            return Ok(None);
        }
        let now = clock::read(&self.servers, &self.keys, true).await?;
        part.learn_time(now, self.monotonic());
        Ok(Some(now))
    }

    pub fn clock_mode(&self) -> &'static str {
        if self.simulated { "simulated" } else { "system" }
    }

    /// Reads a reply's status and learns from it.
    pub fn learn(&self, part: &Part, reply: &mut Reply) -> Result<Status, Failure> {
        let status = reply.status();
        match &status {
            Ok(Status::Done(header)) => part.learn_time(header.reading, self.monotonic()),
            Ok(Status::Stale { reading, .. }) => part.learn_time(*reading, self.monotonic()),
            Ok(Status::StaleKeys { header, slots, buckets, .. }) => {
                part.learn_time(header.reading, self.monotonic());
                part.learn_existing(slots.clone(), buckets.clone());
            }
            Ok(Status::Missing { header, .. }) => part.learn_time(header.reading, self.monotonic()),
            Err(Failure::BoardChanged) => self.forget(&part.board),
            Err(_) => {}
        }
        status
    }

    /// A call of a script about a board with what every such call begins with.
    pub fn begin(&self, moment: &Moment<'_>) -> Call {
        let (keys, window) = (&moment.part.keys, moment.window);
        let mut call = Call::default();
        call.key(&keys.meta).key(&keys.index).key(&keys.ranking).key(&keys.buckets).key(&keys.totals);
        let low = if moment.is_ahead { Timestamp::EPOCH } else { window.head };
        call.args(self.preamble(moment.part, &Preamble { window, low, high: window.end }));
        call
    }

    /// What to ask a part about now, by a clock that reads `now`, where another part of its board has the head
    /// `at_least`: the window of the later of the two.
    ///
    /// A part whose clock has not come to that head takes it over. That is right, for the board is in that window by a
    /// clock that was believed there, and by this one it will be within moments: nothing goes but what was about to,
    /// and until its own clock has caught up the head counts as now, as it does on a clock that was set back. A head
    /// beyond what this part would believe of its own clock is not taken over, so that the clock of one node expires
    /// nothing on another; the parts then have no head in common, and the caller is told to try again.
    pub fn moment<'a>(&self, part: &'a Part, now: Timestamp, at_least: Option<Timestamp>) -> Moment<'a> {
        let believable = part.estimate(self.monotonic()).1;
        match at_least.filter(|head| *head > now && *head <= believable) {
            Some(head) => Moment { is_ahead: true, ..Moment::new(part, head) },
            None => Moment::new(part, now),
        }
    }

    /// Calls a script about a board; `arguments` adds the script's own keys and arguments for each attempt.
    pub async fn ask<T>(
        &self,
        part: &Part,
        script: &Script,
        arguments: impl Fn(&Moment<'_>, &mut Call) -> T,
    ) -> Result<Answer<T>, Failure> {
        self.ask_at_least(part, None, script, arguments).await
    }

    /// The same of a part that advances to the head of another one first ([`moment`](Self::moment)).
    pub async fn ask_at_least<T>(
        &self,
        part: &Part,
        at_least: Option<Timestamp>,
        script: &Script,
        arguments: impl Fn(&Moment<'_>, &mut Call) -> T,
    ) -> Result<Answer<T>, Failure> {
        let (mut read, mut head_before): (Option<Timestamp>, Option<Timestamp>) = (None, None);
        for _ in 0..ATTEMPTS {
            let now = match self.read_simulated(part).await? {
                Some(now) => read.map_or(now, |read| read.max(now)),
                None => read.unwrap_or_else(|| part.estimate(self.monotonic()).0),
            };
            let moment = self.moment(part, now, at_least);
            let window = moment.window;
            let mut call = self.begin(&moment);
            let asked = arguments(&moment, &mut call);
            let mut reply =
                Reply::new(self.servers.call(part.slot(), Line::Calls, script, &script.command(&call)).await?)?;
            match self.learn(part, &mut reply)? {
                Status::Done(header) => {
                    let frame = header.frame(window);
                    return Ok(Answer { frame, asked, reply, head_before });
                }
                Status::Stale { now, .. } => read = Some(now),
                Status::Missing { header, .. } => read = Some(header.now),
                Status::StaleKeys { header, head_before: before, .. } => {
                    read = Some(header.now);
                    head_before.get_or_insert(before);
                }
            }
        }
        tracing::warn!(board = part.board.name().as_str(), script = script.name(), "the window moved at every attempt");
        Err(Failure::Restless)
    }
}
