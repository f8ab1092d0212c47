//! What memory holds of one board, and how it moves with time: pure, without disk or clock.
//!
//! The board's subjects are its [`Holdings`]; beside them stand the window and the ids counted lately.

use super::holdings::Holdings;
use super::ids::{Bucket, Ids};
use super::numbering::OLDEST;
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

/// The round of visits that frees what nobody writes to, and gives memory back: see [`Tables::visit`].
#[derive(Debug)]
struct Round {
    /// The next record to visit; `None` while no round is under way.
    next: Option<u32>,
    /// The board's time when the last one began.
    began: i64,
    /// No slice that a round drops is in a slot before the one of this number. It follows the newest one closely enough
    /// for ordinals to tell all slots apart: see [`Numbering`](super::numbering::Numbering).
    cleared: i64,
    /// What it will be when the round under way is over.
    clearing: i64,
}

/// What a portion of visits came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Visit {
    /// Work done, in subjects' worth: about 0.1 microseconds each.
    pub work: u64,
    /// A round is under way, so there is more to visit.
    pub more: bool,
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
}

/// What retiring took away.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Retired {
    pub slots: u64,
    pub touched: u64,
    pub removed: u64,
}

/// Slots for which slices may wait to be dropped before more and more visits are made.
const PATIENCE: i64 = OLDEST / 4;
/// By so many slots the oldest one kept is moved on; if the head moved farther, it is looked up again.
const MOST_STEPS: u32 = 64;
/// The most visits that moving the clock makes, unless slots would be confused.
const VISITS_PER_ADVANCE: u64 = 2_048;

impl Tables {
    pub(super) fn new(board: &Board, now: Timestamp) -> Self {
        let window = board.window_at(now);
        let mut tables = Self {
            window,
            now,
            holdings: Holdings::new(Rule::of(board), board.calendar(), window.head.millis()),
            ids: Ids::new(board.dedupe_horizon()),
            trust: None,
            gone: false,
            round: Round { next: None, began: now.millis(), cleared: 0, clearing: 0 },
        };
        tables.holdings.oldest_kept = oldest_kept(board, &tables.window);
        tables.round.cleared = tables.oldest_needed();
        tables
    }

    /// Moves the board's time, head and floor forward to `now`; a time before the board's changes nothing. O(1)
    /// but for the arithmetic of a new window and some visits: what expired is only taken away, or left for retiring.
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
        let oldest_kept = oldest_kept_after(board, (&self.window, self.holdings.oldest_kept), &window);
        // The counters of a `from_first` board end each at its own time.
        if oldest_kept > self.window.head.millis() && rule.life.is_none() {
            let slots = self.holdings.lists.len() as u64;
            let new = Holdings::new(rule, board.calendar(), window.head.millis());
            let holdings = std::mem::replace(&mut self.holdings, new);
            advance.expired = Some(Expired { holdings: Some(holdings), slots });
            self.round.next = None;
            self.holdings.oldest_kept = oldest_kept;
            self.round.cleared = self.oldest_needed();
        }
        self.holdings.oldest_kept = oldest_kept;
        self.window = window;
        self.holdings.subjects.numbering.move_to(window.head.millis());
        self.keep_slots_apart(advance.slots);
        advance
    }

    /// Sees to it that no slice is so old that its slot could be taken for another. Retiring and visits do that long
    /// before; only where nobody calls them is there anything to do here, and then a little for each slot.
    fn keep_slots_apart(&mut self, slots: u64) {
        let newest = self.holdings.subjects.numbering.newest();
        let behind = |oldest: i64| newest - oldest;
        if self.holdings.rule.life.is_some() {
            return;
        }
        if self.holdings.rule.ranked {
            let oldest = |holdings: &Holdings| holdings.lists.first_key_value().map_or(newest, |(slot, _)| *slot);
            if behind(oldest(&self.holdings)) > PATIENCE {
                let most = VISITS_PER_ADVANCE;
                self.retire(|work| work < most);
            }
            while behind(oldest(&self.holdings)) > OLDEST - PATIENCE {
                let until = oldest(&self.holdings);
                self.retire_one(until);
            }
        } else if behind(self.round.cleared) > PATIENCE {
            let due = self.holdings.subjects.len() as u64 * slots / PATIENCE as u64 + 64;
            self.visit(due.min(VISITS_PER_ADVANCE));
            while behind(self.round.cleared) > OLDEST - PATIENCE {
                self.visit(u64::MAX);
            }
        }
    }

    /// The number of the oldest slot of which slices are kept.
    fn oldest_needed(&self) -> i64 {
        self.holdings.number(self.holdings.oldest_kept)
    }

    /// While a store opens: as [`advance`](Self::advance), but what expired stays for [`rebuild`](Self::rebuild) to
    /// drop.
    pub(super) fn move_clock(&mut self, board: &Board, now: Timestamp) {
        self.now = self.now.max(now);
        self.window = board.window_at(self.now);
    }

    /// After everything was restored: see [`Holdings::rebuild`].
    pub(super) fn rebuild(&mut self, board: &Board) {
        self.holdings.oldest_kept = oldest_kept(board, &self.window);
        self.holdings.rebuild(self.window.floor.millis(), self.window.head.millis(), self.now.millis());
        self.round.began = self.now.millis();
        self.round.cleared = self.oldest_needed();
    }

    pub(super) fn frame(&self) -> Frame {
        let floor = self.window.floor.millis();
        let retiring = self.holdings.lists.values().take_while(|list| list.start < floor).count() as u64;
        Frame { window: self.window, as_of: self.now, retiring }
    }

    /// Subtracts from the oldest expired slots while `go_on` (asked before each subject, with how much work was done
    /// so far, in subjects' worth) allows. Answers what it did and whether nothing below the floor remains.
    pub(super) fn retire(&mut self, mut go_on: impl FnMut(u64) -> bool) -> (Retired, bool) {
        let mut retired = Retired::default();
        let mut work = 0;
        let floor = self.window.floor.millis();
        while let Some((&slot, list)) = self.holdings.lists.first_key_value()
            && list.start < floor
        {
            if !go_on(work) {
                return (retired, false);
            }
            work += self.retire_from(slot, &mut retired);
        }
        (retired, true)
    }

    /// Subtracts all that a slot has.
    fn retire_one(&mut self, slot: i64) {
        while self.holdings.lists.contains_key(&slot) {
            self.retire_from(slot, &mut Retired::default());
        }
    }

    /// Subtracts what one subject has in an expired slot; answers how much work that was.
    fn retire_from(&mut self, slot: i64, retired: &mut Retired) -> u64 {
        let (floor, now) = (self.window.floor.millis(), self.now.millis());
        let holdings = &mut self.holdings;
        let Some(id) = holdings.lists.get_mut(&slot).and_then(|list| list.last()) else {
            holdings.lists.remove(&slot);
            return 1;
        };
        let slices = holdings.subjects.slices(id) as u64;
        retired.removed += u64::from(holdings.retire(id, slot));
        retired.touched += 1;
        let mut work = 1 + slices / 64;
        if holdings.rule.kind == Kind::Sketch {
            // Merging what is left: up to 64 sketches, and one for each 32 of the rest.
            work += slices.min(64) / 4 + slices / 64;
        }
        work += holdings.tidy(id, floor, now);
        retired.slots += u64::from(!holdings.lists.contains_key(&slot));
        work
    }

    /// Whether a round of visits is under way, or should begin.
    pub(super) fn is_visit_due(&self) -> bool {
        self.round.next.is_some() || self.is_round_due()
    }

    fn is_round_due(&self) -> bool {
        let rule = self.holdings.rule;
        let span = rule.life.unwrap_or(self.window.end.millis() - self.holdings.oldest_kept);
        let frees = !rule.ranked || rule.kind == Kind::Distinct;
        frees && self.now.millis().saturating_sub(self.round.began) >= span / 8
            || self.holdings.subjects.is_sparse()
            || frees && self.holdings.subjects.numbering.newest() - self.round.cleared > PATIENCE
    }

    /// Visits some more records, until `most` work was done, and frees what has expired: slots an unranked board keeps no
    /// longer of subjects nobody writes to, ended counters, values last seen before the window. Where little is left it
    /// moves that together, so that memory returns. Writes pay for it, some records for each item, and a thread does it
    /// by time: so a board holds what is live and a part of what was written since.
    pub(super) fn visit(&mut self, most: u64) -> Visit {
        let (floor, now) = (self.window.floor.millis(), self.now.millis());
        let mut work = 0;
        let mut next = match self.round.next {
            Some(next) => next,
            None if self.is_round_due() => {
                self.round.began = now;
                self.round.clearing = self.oldest_needed();
                self.holdings.subjects.begin_compaction();
                0
            }
            None => return Visit { work, more: false },
        };
        while work < most {
            let Some(id) = self.holdings.subjects.next_from(next) else {
                self.round.next = None;
                self.round.cleared = self.round.clearing;
                return Visit { work, more: false };
            };
            work += self.holdings.tidy(id, floor, now);
            // One with many expired values takes several visits.
            next = if self.holdings.has_expired_values(id, floor) { id } else { id + 1 };
        }
        self.round.next = Some(next);
        Visit { work, more: true }
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

/// The same once the head has moved from one window to another, given what it was. Where it moved a little, which is
/// nearly always, the oldest slot moves as many slots on.
fn oldest_kept_after(board: &Board, (old, oldest): (&Window, i64), new: &Window) -> i64 {
    if board.kept() == board.slots() {
        return new.floor.millis();
    }
    let calendar = board.calendar();
    let (mut head, mut oldest) = (old.head, Timestamp::from_millis(oldest));
    // At the epoch there are fewer slots than are kept.
    if calendar.previous(oldest) < oldest {
        for _ in 0..MOST_STEPS {
            if head >= new.head {
                return oldest.millis();
            }
            (head, oldest) = (calendar.next(head), calendar.next(oldest));
        }
    }
    oldest_kept(board, new)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::board::{BoardName, Definition, Generation};

    #[test]
    fn the_oldest_slot_kept_moves_with_the_head() {
        for (slot, window, keep, zone) in [("1h", "3h", "30h", "Europe/Berlin"), ("1d", "2d", "9d", "Pacific/Apia")] {
            let metric = format!("COUNT({window}, a, b)");
            let mut definition = Definition::new(metric.parse().unwrap(), slot.parse().unwrap());
            (definition.ranked, definition.keep) = (false, Some(keep.parse().unwrap()));
            definition.timezone = zone.parse().unwrap();
            let board = Board::new(BoardName::parse("b").unwrap(), Generation(1), definition).unwrap();
            for from in [0, 1_332_000_000_000, 1_325_000_000_000] {
                let mut now = Timestamp::from_millis(from);
                let mut tables = Tables::new(&board, now);
                for step in 0..400 {
                    now = now.plus_millis([1_800_000, 3_600_000, 40_000_000, 100][step % 4]);
                    tables.advance(&board, now);
                    assert_eq!(tables.holdings.oldest_kept, oldest_kept(&board, &tables.window), "{slot} {now:?}");
                }
            }
        }
    }
}
