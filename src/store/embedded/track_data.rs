//! The data of one track in memory, and its changes over time. Pure: without disk or clock.
//!
//! It consists of the subjects ([`Holdings`]), the window, and the number of items counted in each slot.

use std::sync::Arc;

use super::earlier::NotedRanks;
use super::event_counts::EventCounts;
use super::holdings::Holdings;
use super::kinds;
use super::last_seen::Floors;
use super::numbering::MAX_SLOT_AGE;
use super::sheets::StoredSheets;
use super::track_traits::TrackTraits;
use crate::board::{EarlierRanks, Frame, Timestamp, Track, Window, WindowSlots};

/// The data of one track in memory.
#[derive(Debug)]
pub(super) struct TrackData {
    pub window: Window,
    /// The starts of the window's slots.
    pub starts: Arc<[Timestamp]>,
    /// The board's time, which never runs backward.
    pub now: Timestamp,
    pub holdings: Holdings,
    pub events: EventCounts,
    pub sheets: StoredSheets,
    pub noted: NotedRanks,
    round: CleanupRound,
}

/// The round of visits that frees the expired data of subjects that get no writes, and gives memory back: see
/// [`TrackData::visit_portion`].
#[derive(Debug)]
struct CleanupRound {
    /// The next record to visit, or `None` if no round is in progress.
    next: Option<u32>,
    /// The board's time when the last round began.
    began: i64,
    /// The number of the slot before which no cell is that a round would drop. It must stay close enough to the newest
    /// slot for ordinals to be unambiguous: see [`Numbering`](super::numbering::Numbering).
    cleared: i64,
    /// The value that `cleared` gets when the current round ends.
    clearing: i64,
}

/// The result of a portion of visits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct VisitResult {
    /// The work done, in subjects: about 0.1 microseconds each.
    pub work: u64,
    /// Whether a round is in progress, so that there is more to visit.
    pub more: bool,
}

/// The effects of moving a board's clock on a track.
#[derive(Debug, Default)]
pub(super) struct Advance {
    /// The number of slots by which the head moved.
    pub slots: u64,
    /// The data of the track, if every slot had expired.
    pub expired: Option<Expired>,
}

/// The data of a track in which every slot had expired.
#[derive(Debug)]
pub(super) struct Expired {
    /// The data, which must be freed without the lock. Boxed, because it is a kilobyte, and nearly always there is none.
    pub holdings: Option<Box<Holdings>>,
    /// The number of slots that had data, on a ranked board.
    pub slots: u64,
}

/// The result of retiring.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Retired {
    pub slots: u64,
    pub touched: u64,
    pub removed: u64,
}

/// The number of slots for which expired cells may stay before additional visits are made.
const EXTRA_VISITS_AFTER_SLOTS: i64 = MAX_SLOT_AGE / 4;
/// The largest number of slots by which the oldest kept slot is moved step by step. If the head moved further, the slot
/// is computed again.
const MAX_STEPS: u32 = 64;
/// The largest number of visits that moving the clock makes, unless more are needed to keep ordinals unambiguous.
const VISITS_PER_ADVANCE: u64 = 2_048;

impl TrackData {
    pub(super) fn new(track: &Track, now: Timestamp) -> Self {
        let WindowSlots { window, starts } = WindowSlots::at(track, now);
        let mut data = Self {
            window,
            starts,
            now,
            holdings: new_holdings(track, TrackTraits::of(track), &window),
            events: EventCounts::default(),
            sheets: StoredSheets::default(),
            noted: NotedRanks::of_new(track, now),
            round: CleanupRound { next: None, began: now.millis(), cleared: 0, clearing: 0 },
        };
        data.holdings.oldest_kept = oldest_kept(track, &data.window);
        data.round.cleared = data.oldest_needed();
        data
    }

    /// Moves the time, and the head and the floor of this track, forward to `now`. A time before the board's changes
    /// nothing. O(1), except for the computation of a new window and some visits: expired data is only detached, or
    /// left to retiring.
    pub(super) fn advance(&mut self, track: &Track, now: Timestamp) -> Advance {
        let mut advance = Advance::default();
        if now <= self.now {
            return advance;
        }
        self.now = now;
        if now < self.window.end {
            return advance;
        }
        let mut slots = WindowSlots { window: self.window, starts: self.starts.clone() };
        slots.move_to(track, now);
        let window = slots.window;
        advance.slots = track.calendar().slots_between(self.window.head, window.head);
        let traits = self.holdings.traits;
        let oldest_kept = oldest_kept_after(track, (&self.window, self.holdings.oldest_kept), &window);
        // The counters of a `from_first` board each end at their own time.
        if oldest_kept > self.window.head.millis() && traits.counter_duration.is_none() {
            let slots = self.holdings.lists.len() as u64;
            let mut new = new_holdings(track, traits, &window);
            new.succeed(&mut self.holdings);
            let holdings = Box::new(std::mem::replace(&mut self.holdings, new));
            advance.expired = Some(Expired { holdings: Some(holdings), slots });
            self.round.next = None;
            self.holdings.oldest_kept = oldest_kept;
            self.round.cleared = self.oldest_needed();
        }
        self.holdings.oldest_kept = oldest_kept;
        self.events.forget_before(oldest_kept);
        (self.window, self.starts) = (window, slots.starts);
        self.holdings.subjects.numbering.move_to(window.head.millis());
        self.keep_ordinals_unambiguous(advance.slots);
        advance
    }

    /// Notes the ranks if a boundary has passed, before anything else happens at `now`. O(1) between two boundaries.
    pub(super) fn note_ranks(&mut self, track: &Track, now: Timestamp) {
        if self.noted.is_due(now) {
            let (head, retiring, holdings) = (self.window.head, self.frame().retiring, &self.holdings);
            self.noted.note(track, now, |at| match track.head_before(at, now) == Some(head) && retiring == 0 {
                true => holdings.first_ranks(track, at),
                false => EarlierRanks::unknown(at),
            });
        }
    }

    /// Sets the window again, because the track ends at another time than before.
    pub(super) fn set_window(&mut self, track: &Track) {
        WindowSlots { window: self.window, starts: self.starts } = WindowSlots::at(track, self.now);
    }

    /// Makes sure that no cell is so old that its ordinal is ambiguous. Retiring and visits normally remove such
    /// cells long before. Only if they are not called is there work to do here, and then a little for each slot.
    fn keep_ordinals_unambiguous(&mut self, slots: u64) {
        let newest = self.holdings.subjects.numbering.newest();
        let behind = |oldest: i64| newest - oldest;
        if self.holdings.traits.counter_duration.is_some() {
            return;
        }
        if self.holdings.traits.ranked {
            let oldest = |holdings: &Holdings| holdings.lists.oldest().map_or(newest, |(slot, _)| slot);
            if behind(oldest(&self.holdings)) > EXTRA_VISITS_AFTER_SLOTS {
                let most = VISITS_PER_ADVANCE;
                self.retire(|work| work < most);
            }
            while behind(oldest(&self.holdings)) > MAX_SLOT_AGE - EXTRA_VISITS_AFTER_SLOTS {
                let until = oldest(&self.holdings);
                self.retire_slot(until);
            }
        } else if behind(self.round.cleared) > EXTRA_VISITS_AFTER_SLOTS {
            let due = self.holdings.subjects.len() as u64 * slots / EXTRA_VISITS_AFTER_SLOTS as u64 + 64;
            self.visit_portion(due.min(VISITS_PER_ADVANCE));
            while behind(self.round.cleared) > MAX_SLOT_AGE - EXTRA_VISITS_AFTER_SLOTS {
                self.visit_portion(u64::MAX);
            }
        }
    }

    /// Returns the number of the oldest slot whose cells are kept.
    fn oldest_needed(&self) -> i64 {
        self.holdings.number(self.holdings.oldest_kept)
    }

    /// Moves the clock while a store is opened. What has expired by then is not restored from now on. What was restored
    /// before is left for [`rebuild`](Self::rebuild) to drop, so a store that is opened moves the clock once, as far as
    /// it will go, before it restores anything.
    pub(super) fn move_clock(&mut self, track: &Track, now: Timestamp) {
        self.now = now;
        WindowSlots { window: self.window, starts: self.starts } = WindowSlots::at(track, now);
        self.holdings.oldest_kept = oldest_kept(track, &self.window);
        self.holdings.restore_at(self.window.head.millis(), self.holdings.oldest_kept, now.millis());
    }

    /// Completes the state after everything was restored: see [`Holdings::rebuild`].
    pub(super) fn rebuild(&mut self) {
        self.events.forget_before(self.holdings.oldest_kept);
        self.holdings.rebuild(self.floors(), self.window.head.millis(), self.now.millis());
        self.round.began = self.now.millis();
        self.round.cleared = self.oldest_needed();
    }

    /// Returns the times before which values of COUNT_DISTINCT have expired.
    pub(super) fn floors(&self) -> Floors {
        let seen = self.window.floor.millis();
        let retracted = self.holdings.traits.tombstone_life.map_or(seen, |life| self.now.millis() - life);
        Floors { seen, retracted }
    }

    /// Returns the bytes that the track uses. O(1).
    pub(super) fn memory_bytes(&self) -> usize {
        size_of::<Self>()
            + self.holdings.memory_bytes()
            + self.events.memory_bytes()
            + self.sheets.memory_bytes()
            + self.noted.memory_bytes()
    }

    pub(super) fn frame(&self) -> Frame {
        let floor = self.window.floor.millis();
        let retiring = self.holdings.lists.values().take_while(|list| list.start < floor).count() as u64;
        Frame { window: self.window, as_of: self.now, retiring }
    }

    /// Subtracts from the oldest expired slots as long as `may_continue` returns `true`. It is called before each
    /// subject with the work done so far, in subjects. Returns the result, and whether nothing below the floor is left.
    pub(super) fn retire(&mut self, mut may_continue: impl FnMut(u64) -> bool) -> (Retired, bool) {
        let mut retired = Retired::default();
        let mut work = 0;
        let floor = self.window.floor.millis();
        while let Some((slot, list)) = self.holdings.lists.oldest()
            && list.start < floor
        {
            if !may_continue(work) {
                return (retired, false);
            }
            work += self.retire_subject(slot, &mut retired);
        }
        (retired, true)
    }

    /// Subtracts everything in a slot.
    fn retire_slot(&mut self, slot: i64) {
        while self.holdings.lists.contains(slot) {
            self.retire_subject(slot, &mut Retired::default());
        }
    }

    /// Subtracts what one subject has in an expired slot. Returns the amount of work done.
    fn retire_subject(&mut self, slot: i64, retired: &mut Retired) -> u64 {
        let Some(id) = self.holdings.lists.last(slot) else {
            self.holdings.lists.remove(slot);
            return 1;
        };
        let mut work = self.retire_cell(id, slot, retired);
        work += self.holdings.expire_subject(id, self.floors(), self.now.millis());
        retired.slots += u64::from(!self.holdings.lists.contains(slot));
        work
    }

    /// Subtracts the oldest cell of a subject, which is in this slot. Returns the amount of work done.
    fn retire_cell(&mut self, id: u32, slot: i64, retired: &mut Retired) -> u64 {
        let cells = self.holdings.subjects.cell_count(id) as u64;
        retired.removed += u64::from(self.holdings.retire_cell(id, slot));
        retired.touched += 1;
        1 + cells / 64 + self.holdings.kind.retire_work(cells)
    }

    /// Subtracts the expired cells of the subjects of a key, whose group is `group`, as long as `may_continue` returns
    /// `true`, which is called as by [`retire`](Self::retire). Returns whether none is left. Only the subjects that are
    /// ranked or hidden can be found, so a group that has others is left as it is: a subject whose amounts come to 0
    /// gets a rank when some expire.
    pub(super) fn retire_group(&mut self, key: &str, group: u32, mut may_continue: impl FnMut(u64) -> bool) -> bool {
        let holdings = &self.holdings;
        let positions = holdings.ranking.positions_of(group);
        let ranked = holdings.ranking.ascending(positions.start).take(positions.len()).map(|entry| entry.id);
        let ids: Vec<u32> = ranked.chain(holdings.hidden_of(key)).collect();
        if holdings.subjects.groups().is_none_or(|groups| groups.subjects_of(group) != ids.len()) {
            return false;
        }
        let floor = holdings.number(self.window.floor.millis());
        let mut work = 0;
        for id in ids {
            while let Some(cell) = self.holdings.subjects.cell_at(id, 0).filter(|cell| cell.slot < floor) {
                if !may_continue(work) {
                    return false;
                }
                work += self.retire_cell(id, cell.slot, &mut Retired::default());
            }
            work += self.holdings.expire_subject(id, self.floors(), self.now.millis());
        }
        true
    }

    /// Returns whether a round of visits is in progress or should begin.
    pub(super) fn is_visit_due(&self) -> bool {
        self.round.next.is_some() || self.is_round_due()
    }

    fn is_round_due(&self) -> bool {
        let traits = self.holdings.traits;
        let kept = self.window.end.millis() - self.holdings.oldest_kept;
        let span = traits.counter_duration.or(traits.tombstone_life).unwrap_or(kept);
        let frees = !traits.ranked || self.holdings.kind.expires();
        frees && self.now.millis().saturating_sub(self.round.began) >= span / 8
            || self.holdings.subjects.is_sparse()
            || frees && self.holdings.subjects.numbering.newest() - self.round.cleared > EXTRA_VISITS_AFTER_SLOTS
    }

    /// Visits further records until `most` work is done, and frees what has expired: slots that an unranked track no
    /// longer keeps, of subjects without writes, counters that have ended, and values last seen before the window. If
    /// little data is left, it is moved together, so that memory can be given back. Writes do some visits for each
    /// item, and a thread does visits by time. So a board holds its live data and a part of what was written since.
    pub(super) fn visit_portion(&mut self, most: u64) -> VisitResult {
        let (floors, now) = (self.floors(), self.now.millis());
        let mut work = 0;
        let mut next = match self.round.next {
            Some(next) => next,
            None if self.is_round_due() => {
                self.round.began = now;
                self.round.clearing = self.oldest_needed();
                self.holdings.subjects.begin_compaction();
                0
            }
            None => return VisitResult { work, more: false },
        };
        while work < most {
            let Some(id) = self.holdings.subjects.next_from(next) else {
                self.round.next = None;
                self.round.cleared = self.round.clearing;
                return VisitResult { work, more: false };
            };
            work += self.holdings.expire_subject(id, floors, now);
            // A subject with many expired values takes several visits.
            next = if self.holdings.kind.has_expired(&self.holdings, id, floors) { id } else { id + 1 };
        }
        self.round.next = Some(next);
        VisitResult { work, more: true }
    }
}

/// Returns the holdings of a track without subjects.
fn new_holdings(track: &Track, traits: TrackTraits, window: &Window) -> Holdings {
    Holdings::new(traits, kinds::of(traits.kind), track.calendar(), window.head.millis())
}

/// Returns the start of the oldest slot whose cells are kept, in milliseconds. Ranked tracks keep those of the window
/// (and older ones until they are retired).
fn oldest_kept(track: &Track, window: &Window) -> i64 {
    track.oldest_kept(window.floor).millis()
}

/// Returns the same after the head has moved from one window to another, given the previous value. If it moved by a few
/// slots, which is nearly always so, the oldest slot moves by as many.
fn oldest_kept_after(track: &Track, (old, oldest): (&Window, i64), new: &Window) -> i64 {
    if track.kept() == track.slots() {
        return new.floor.millis();
    }
    let calendar = track.calendar();
    let (mut head, mut oldest) = (old.head, Timestamp::from_millis(oldest));
    // Near the epoch there are fewer slots than are kept.
    if calendar.previous(oldest) < oldest {
        for _ in 0..MAX_STEPS {
            if head >= new.head {
                return oldest.millis();
            }
            (head, oldest) = (calendar.next(head), calendar.next(oldest));
        }
    }
    oldest_kept(track, new)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::board::{Board, BoardName, Definition, Generation};

    #[test]
    fn the_oldest_kept_slot_advances_with_the_head() {
        for (slot, window, keep, zone) in [("1h", "3h", "30h", "Europe/Berlin"), ("1d", "2d", "9d", "Pacific/Apia")] {
            let metric = format!("COUNT({window}, a, b)");
            let mut definition = Definition::new(metric.parse().unwrap(), slot.parse().unwrap());
            (definition.ranked, definition.keep) = (false, Some(keep.parse().unwrap()));
            definition.timezone = zone.parse().unwrap();
            let board = Board::new(BoardName::parse("b").unwrap(), Generation(1), definition).unwrap();
            let track = &board.tracks()[0];
            for from in [0, 1_332_000_000_000, 1_325_000_000_000] {
                let mut now = Timestamp::from_millis(from);
                let mut data = TrackData::new(track, now);
                for step in 0..400 {
                    now = now.plus_millis([1_800_000, 3_600_000, 40_000_000, 100][step % 4]);
                    data.advance(track, now);
                    assert_eq!(data.holdings.oldest_kept, oldest_kept(track, &data.window), "{slot} {now:?}");
                }
            }
        }
    }
}
