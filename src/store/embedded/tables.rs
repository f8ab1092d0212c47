//! What memory holds of one board, and how it moves with time: pure, without disk or clock.
//!
//! The board's subjects are its [`Holdings`]; beside them stand the window and the ids counted lately.

use super::holdings::Holdings;
use super::ids::{Bucket, Ids};
use super::rule::Rule;
use crate::board::{Board, Frame, Kind, Timestamp, Window};
use crate::store::ClockTrust;

/// What memory holds of one board.
#[derive(Debug)]
pub(super) struct Tables {
    pub window: Window,
    /// The board's time: never runs backward.
    pub now: Timestamp,
    pub holdings: Holdings,
    pub ids: Ids,
    /// Judges the system clock for this board; starts with the first reading.
    pub trust: Option<ClockTrust>,
    /// The board was removed; a call that still has it must change nothing.
    pub gone: bool,
    round: Round,
}

/// The round of visits that frees what nobody writes to: see [`Tables::visit`].
#[derive(Debug)]
struct Round {
    /// The next record to visit; `None` while no round is under way.
    next: Option<u32>,
    /// The board's time when the last one began.
    began: i64,
}

/// What moving a board's clock did.
#[derive(Debug, Default)]
pub(super) struct Advance {
    /// Slots by which the head moved.
    pub slots: u64,
    /// Every slot had expired.
    pub expired: Option<Expired>,
    /// Ids past their horizon, to be freed outside the lock.
    pub forgotten: Option<Bucket>,
}

/// What a board held when every slot of it had expired.
#[derive(Debug)]
pub(super) struct Expired {
    /// To be freed outside the lock.
    pub holdings: Option<Holdings>,
    /// In how many slots of a ranking it was.
    pub slots: u64,
    /// What lies before this, in milliseconds, is to leave the database.
    pub floor: i64,
}

/// What retiring took away.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Retired {
    pub slots: u64,
    pub touched: u64,
    pub removed: u64,
}

impl Tables {
    pub(super) fn new(board: &Board, now: Timestamp) -> Self {
        let mut tables = Self {
            window: board.window_at(now),
            now,
            holdings: Holdings::new(Rule::of(board)),
            ids: Ids::new(board.dedupe_horizon()),
            trust: None,
            gone: false,
            round: Round { next: None, began: now.millis() },
        };
        tables.holdings.oldest_kept = oldest_kept(board, &tables.window);
        tables
    }

    /// Moves the board's time, head and floor forward to `now`; a time before the board's changes nothing. O(1)
    /// but for the arithmetic of a new window: what expired is only let go of, or left for retiring.
    pub(super) fn advance(&mut self, board: &Board, now: Timestamp) -> Advance {
        let mut advance = Advance::default();
        if now <= self.now {
            return advance;
        }
        self.now = now;
        advance.forgotten = self.ids.forget(now.millis());
        if now < self.window.end {
            return advance;
        }
        let window = board.window_at(now);
        advance.slots = board.calendar().slots_between(self.window.head, window.head);
        let rule = self.holdings.rule;
        let oldest_kept = oldest_kept(board, &window);
        // The counters of a `from_first` board end each at its own time.
        if oldest_kept > self.window.head.millis() && rule.life.is_none() {
            let slots = self.holdings.slots.len() as u64;
            let holdings = std::mem::replace(&mut self.holdings, Holdings::new(rule));
            advance.expired = Some(Expired { holdings: Some(holdings), slots, floor: oldest_kept });
            self.round.next = None;
        }
        self.holdings.oldest_kept = oldest_kept;
        self.window = window;
        advance
    }

    /// While a store opens: as [`advance`](Self::advance), but what expired stays for [`rebuild`](Self::rebuild) to
    /// drop and the database to forget.
    pub(super) fn move_clock(&mut self, board: &Board, now: Timestamp) {
        self.now = self.now.max(now);
        self.window = board.window_at(self.now);
    }

    /// After everything was restored: see [`Holdings::rebuild`].
    pub(super) fn rebuild(&mut self, board: &Board) {
        self.holdings.oldest_kept = oldest_kept(board, &self.window);
        self.holdings.rebuild(self.window.floor.millis(), self.now.millis(), board.calendar());
        self.round.began = self.now.millis();
    }

    pub(super) fn frame(&self) -> Frame {
        let retiring = self.holdings.slots.range(..self.window.floor.millis()).count() as u64;
        Frame { window: self.window, as_of: self.now, retiring }
    }

    /// Subtracts from the oldest expired slots while `go_on` (asked before each subject, with how much work was done
    /// so far, in subjects' worth) allows. Answers what it did and whether nothing below the floor remains.
    pub(super) fn retire(&mut self, mut go_on: impl FnMut(u64) -> bool) -> (Retired, bool) {
        let mut retired = Retired::default();
        let mut work = 0;
        let (floor, now) = (self.window.floor.millis(), self.now.millis());
        let holdings = &mut self.holdings;
        while let Some((&slot, subjects)) = holdings.slots.first_key_value()
            && slot < floor
        {
            let Some(&id) = subjects.last() else {
                holdings.slots.remove(&slot);
                continue;
            };
            if !go_on(work) {
                return (retired, false);
            }
            let before = holdings.slab.get(id).map_or(0, |record| record.slices.len() as u64);
            retired.removed += u64::from(holdings.retire(id, slot));
            retired.touched += 1;
            // One that has nothing left the database must forget. Others keep their expired slice there, which
            // opening drops.
            work += holdings.tidy(id, floor, now);
            if holdings.rule.kind == Kind::Sketch {
                // Merging what is left is work for each slot.
                work += before / 4;
            }
            retired.slots += u64::from(!holdings.slots.contains_key(&slot));
        }
        (retired, true)
    }

    /// Visits some more records, `most` of them, and frees what has expired: slots an unranked board keeps no longer
    /// of subjects nobody writes to, ended counters, values last seen before the window. Writes pay for it, a few
    /// records each, and steps of retiring, so a board holds what is live and a part of what was written since.
    pub(super) fn visit(&mut self, most: u64) {
        let rule = self.holdings.rule;
        if rule.ranked && rule.kind != Kind::Distinct {
            return;
        }
        let (floor, now) = (self.window.floor.millis(), self.now.millis());
        let Some(mut next) = self.round.next else {
            let span = rule.life.unwrap_or(self.window.end.millis() - self.holdings.oldest_kept);
            if now.saturating_sub(self.round.began) >= span / 8 {
                (self.round.next, self.round.began) = (Some(0), now);
            }
            return;
        };
        let mut work = 0;
        while work < most && next < self.holdings.slab.end() {
            work += self.holdings.tidy(next, floor, now);
            if !self.holdings.has_expired_values(next, floor) {
                next += 1;
            }
        }
        self.round.next = (next < self.holdings.slab.end()).then_some(next);
    }
}

/// The start of the oldest slot whose slices are kept, in milliseconds. Ranked boards keep those of the window (and
/// older ones until they are retired).
fn oldest_kept(board: &Board, window: &Window) -> i64 {
    let mut oldest = window.floor;
    for _ in board.slots()..board.kept() {
        oldest = board.calendar().previous(oldest);
    }
    oldest.millis()
}
