//! How a script about a board is called: with the window that this instance believes in, and again with a better
//! one where the store's clock says otherwise.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use super::connection::{Failure, Links};
use super::keys::StoreKeys;
use super::reply::{Reply, Status};
use super::scripts::{Call, Script};
use super::view::{Existing, View};
use crate::board::{Board, Frame, Generation, Timestamp, Window};
use crate::store::Limits;

/// How often a call is repeated with a better window before we give up.
pub(super) const ATTEMPTS: usize = 32;

/// What every call of one instance shares.
#[derive(Debug)]
pub(super) struct Session {
    pub links: Links,
    pub keys: StoreKeys,
    pub simulated: bool,
    pub limits: Limits,
    /// Drawn at random: tells instances apart.
    pub instance: String,
    started: Instant,
    first_reading: Timestamp,
    /// One per board in use; removed with the board.
    views: Mutex<HashMap<Generation, Arc<View>>>,
}

/// What the arguments of one attempt are made from.
#[derive(Debug)]
pub(super) struct Moment<'a> {
    pub view: &'a View,
    pub now: Timestamp,
    pub window: Window,
    /// Start of each slot of the window, oldest first.
    pub starts: Arc<[Timestamp]>,
    pub existing: Existing,
}

/// The arguments that every script about a board begins with.
#[derive(Debug)]
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

impl Session {
    pub fn new(links: Links, keys: StoreKeys, simulated: bool, limits: Limits, first_reading: Timestamp) -> Self {
        Self {
            links,
            keys,
            simulated,
            limits,
            instance: format!("{:016x}", rand::random::<u64>()),
            started: Instant::now(),
            first_reading,
            views: Mutex::default(),
        }
    }

    /// Time since this instance started.
    pub fn monotonic(&self) -> Duration {
        self.started.elapsed()
    }

    pub fn view(&self, board: &Board) -> Arc<View> {
        let mut views = self.views.lock();
        let new = || {
            let keys = self.keys.board(board.name(), board.generation());
            Arc::new(View::new(board, keys, self.simulated, self.first_reading, Duration::ZERO))
        };
        views.entry(board.generation()).or_insert_with(new).clone()
    }

    /// Drops what was believed about a board that is gone.
    pub fn forget(&self, board: &Board) {
        self.views.lock().remove(&board.generation());
    }

    /// The first eight arguments of every script about a board.
    pub fn preamble(&self, board: &Board, view: &View, preamble: &Preamble) -> [String; 8] {
        let (estimate, believable) = view.estimate(self.monotonic());
        let Preamble { window, low, high } = preamble;
        // The last slot of all never ends.
        let high = if *high == Timestamp::MAX { i64::MAX } else { high.millis() };
        [
            self.clock_mode().to_owned(),
            believable.millis().to_string(),
            estimate.millis().to_string(),
            board.generation().to_string(),
            window.floor.millis().to_string(),
            window.head.millis().to_string(),
            low.millis().to_string(),
            high.to_string(),
        ]
    }

    pub fn clock_mode(&self) -> &'static str {
        if self.simulated { "simulated" } else { "system" }
    }

    /// Reads a reply's status and learns from it.
    pub fn learn(&self, board: &Board, view: &View, reply: &mut Reply) -> Result<Status, Failure> {
        let status = reply.status();
        match &status {
            Ok(Status::Done(header)) => view.learn_time(header.reading, self.monotonic()),
            Ok(Status::Stale { reading, .. }) => view.learn_time(*reading, self.monotonic()),
            Ok(Status::StaleKeys { header, slots, buckets, .. }) => {
                view.learn_time(header.reading, self.monotonic());
                view.learn_existing(slots.clone(), buckets.clone());
            }
            Ok(Status::Missing { header, .. }) => view.learn_time(header.reading, self.monotonic()),
            Err(Failure::BoardChanged) => self.forget(board),
            Err(_) => {}
        }
        status
    }

    /// Calls a script about a board; `arguments` adds the script's own keys and arguments for each attempt.
    pub async fn ask<T>(
        &self,
        board: &Board,
        script: &Script,
        arguments: impl Fn(&Moment<'_>, &mut Call) -> T,
    ) -> Result<Answer<T>, Failure> {
        let view = self.view(board);
        let (mut read, mut head_before): (Option<Timestamp>, Option<Timestamp>) = (None, None);
        for _ in 0..ATTEMPTS {
            let now = read.unwrap_or_else(|| view.estimate(self.monotonic()).0);
            let (window, starts) = board.window_and_starts(now);
            let moment = Moment { view: &view, now, window, starts, existing: view.existing() };
            let mut call = Call::default();
            let keys = &view.keys;
            call.key(&keys.meta).key(&keys.index).key(&keys.ranking).key(&keys.buckets).key(&keys.totals);
            call.args(self.preamble(board, &view, &Preamble { window, low: window.head, high: window.end }));
            let asked = arguments(&moment, &mut call);
            if self.simulated {
                call.key(self.keys.clock());
            }
            let mut reply = Reply::new(self.links.calls.call(script, &script.command(&call)).await?)?;
            match self.learn(board, &view, &mut reply)? {
                Status::Done(header) => {
                    let frame = Frame { window, as_of: header.now, retiring: header.retiring };
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
        tracing::warn!(board = board.name().as_str(), script = script.name(), "the window moved at every attempt");
        Err(Failure::Restless)
    }
}
