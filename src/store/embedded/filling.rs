//! Fills: subjects get what they have in one track of a board in another track of it.
//!
//! What a subject gets is read in the step in which it is given, so writes may continue in between. What is given is
//! written to the log like anything else that a track has.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use super::board_state::BoardState;
use super::hashed_name::HashedName;
use super::holdings::{CellWrite, Holdings, WriteTo};
use super::log_operations::LogOperations;
use super::memory::Room;
use super::merging::{Merge, has_room, merge_content};
use super::track_data::TrackData;
use super::{Awaited, Embedded};
use crate::board::{Aggregate, Amount, Board, BoardTrack, Change, Counted, Kind, Sketch, Subject, Timestamp};
use crate::store::{Content, MAX_FILLED, Result, StoreError};

/// The largest number of cells, and of values of one subject, in a portion.
const MAX_PORTION: usize = 128;
/// The duration that a portion aims for.
const TARGET_DURATION: Duration = Duration::from_micros(500);
/// The work spent on visits for each cell while a round of visits is due: as much as for an item that is written.
const VISIT_WORK_PER_CELL: u64 = 4;
/// The largest number of bytes that a cell or a value adds to the log in addition to its texts.
const LOG_OVERHEAD: usize = 96;
/// The bytes that the end of a fill adds to the log for each slot.
const EVENTS_LOG_BYTES: usize = 20;

/// A fill that is being done.
struct Fill<'a> {
    from: &'a BoardTrack,
    to: &'a BoardTrack,
    cells: &'a [(Subject, Timestamp)],
    names: Vec<HashedName<'a>>,
    /// The next cell.
    next: usize,
    /// The values of the next cell's subject that are next, if some were given already.
    values: Option<NextValues>,
}

/// The values of a subject from this time and value on: first the seen ones, then the retracted ones.
struct NextValues {
    retracted: bool,
    at: i64,
    value: Box<str>,
}

impl Fill<'_> {
    /// Does the next portion on a board that has been advanced. Returns whether the fill is done.
    ///
    /// Fails if there is no memory left for new data. The cells before are done then.
    fn apply_portion(&mut self, state: &mut BoardState, room: Room, operations: &mut LogOperations) -> Result<bool> {
        let numbers = [self.from.number(), self.to.number()];
        let Ok([from, to]) = state.tracks.get_disjoint_mut(numbers) else { return Err(cannot_fill()) };
        let started = Instant::now();
        let first = self.next;
        let end = self.cells.len().min(first + MAX_PORTION);
        from.holdings.prefetch(&self.names[first..end]);
        to.holdings.prefetch(&self.names[first..end]);
        let mut own = LogOperations::of(self.to.id());
        let mut done = Ok(());
        while self.next < end && done.is_ok() && (self.next == first || started.elapsed() < TARGET_DURATION) {
            done = match self.from.kind() {
                Kind::Distinct => self.fill_values(from, to, room, &mut own),
                Kind::Capped { .. } => self.fill_counters(from, to, room, &mut own),
                _ => self.fill_slot(from, to, room, &mut own),
            };
            if self.values.is_some() {
                break;
            }
        }
        to.visit_portion(VISIT_WORK_PER_CELL * (1 + self.next - first) as u64);
        operations.append_changes(&mut own);
        done.map(|()| self.next == self.cells.len())
    }

    /// Gives the subject of the next cell the combination of what it has in the slots within one of the other track.
    fn fill_slot(
        &mut self,
        from: &TrackData,
        to: &mut TrackData,
        room: Room,
        operations: &mut LogOperations,
    ) -> Result<()> {
        let (name, slot) = (self.names[self.next], self.cells[self.next].1);
        let start = self.to.calendar().slot_of(slot);
        let end = self.to.calendar().next(start);
        // What has expired is missing in the first track, and nothing is written below the floor of the second one.
        let is_whole = self.from.calendar().slot_of(start) >= from.window.floor;
        let is_live = start >= to.window.floor && start <= to.window.head;
        let is_within = |(slot, aggregate)| (start..end).contains(&slot).then_some(aggregate);
        let held = match is_whole && is_live {
            true => from.holdings.aggregates(name, start.millis(), end.millis() - 1),
            false => Vec::new(),
        };
        let held: Vec<Aggregate> = held.into_iter().filter_map(is_within).collect();
        if !(is_whole && is_live) || held.is_empty() && to.holdings.subjects.id(name).is_none() {
            self.next += 1;
            return Ok(());
        }
        check_room(&to.holdings, name, room)?;
        let bound = self.to.slot_bound().0;
        // A slot that has more than it may have stays as it is.
        match sum_of(self.from.kind(), &held) {
            Some(change) => {
                let (slot, floors) = (start.millis(), to.floors());
                let holdings = &mut to.holdings;
                let to = &WriteTo { name, slot, at: slot, is_timed: true, day: slot, retract: false, bound, floors };
                holdings.kind.apply(CellWrite { holdings, to, operations }, &change).ok();
            }
            None => {
                for aggregate in held {
                    merge_content(
                        to,
                        (bound, Merge::Sets),
                        (name, &Content::Cell { slot: start, aggregate }),
                        operations,
                    );
                }
            }
        }
        self.next += 1;
        Ok(())
    }

    /// Gives the subject of the next cell further values that it has, or the last ones.
    fn fill_values(
        &mut self,
        from: &TrackData,
        to: &mut TrackData,
        room: Room,
        operations: &mut LogOperations,
    ) -> Result<()> {
        let name = self.names[self.next];
        let (floors, bound) = (from.floors(), self.to.slot_bound().0);
        let Some(values) = from.holdings.last_seen(name) else {
            (self.next, self.values) = (self.next + 1, None);
            return Ok(());
        };
        check_room(&to.holdings, name, room)?;
        let time = Timestamp::from_millis;
        if self.values.is_none()
            && let Some(at) = values.capped.filter(|at| *at >= floors.seen)
        {
            merge_content(to, (bound, Merge::Sets), (name, &Content::Dropped { at: time(at) }), operations);
        }
        let first = || NextValues { retracted: false, at: floors.seen, value: Box::default() };
        let NextValues { retracted, at, value } = self.values.take().unwrap_or_else(first);
        let mut last = None;
        let mut given = 0;
        for seen in values.from(retracted, at.max(floors.of(retracted)), &value).take(MAX_PORTION) {
            let content = Content::Value { value: Counted::from_stored(seen.value), at: time(seen.at), retracted };
            merge_content(to, (bound, Merge::Sets), (name, &content), operations);
            (given, last) = (given + 1, Some(seen));
        }
        match last {
            // The last one is given again, which changes nothing.
            Some(last) if given == MAX_PORTION => {
                self.values = Some(NextValues { retracted, at: last.at, value: last.value.into() });
            }
            _ if !retracted => {
                self.values = Some(NextValues { retracted: true, at: floors.retracted, value: Box::default() });
                if values.count_from(true, floors.retracted) == 0 {
                    (self.next, self.values) = (self.next + 1, None);
                }
            }
            _ => self.next += 1,
        }
        Ok(())
    }

    /// Gives the subject of the next cell further counters that it has, or the last ones. In the order of days and persons,
    /// which no item changes, so none is missed.
    fn fill_counters(
        &mut self,
        from: &TrackData,
        to: &mut TrackData,
        room: Room,
        operations: &mut LogOperations,
    ) -> Result<()> {
        let name = self.names[self.next];
        let (floors, bound) = (from.floors(), self.to.slot_bound().0);
        check_room(&to.holdings, name, room)?;
        if self.values.is_none()
            && let Some(at) = from.holdings.dropped(name).filter(|at| *at >= floors.seen)
        {
            let content = Content::Dropped { at: Timestamp::from_millis(at) };
            merge_content(to, (bound, Merge::Sets), (name, &content), operations);
        }
        let first = || NextValues { retracted: false, at: floors.seen, value: Box::default() };
        let NextValues { at, value, .. } = self.values.take().unwrap_or_else(first);
        for (given, counter) in from.holdings.day_counts_from(name, (at, &value)).enumerate() {
            if given == MAX_PORTION {
                let (at, value) = (counter.day.millis(), counter.person.into());
                self.values = Some(NextValues { retracted: false, at, value });
                return Ok(());
            }
            let content = Content::Value { value: counter.text(), at: counter.at(), retracted: false };
            merge_content(to, (bound, Merge::Sets), (name, &content), operations);
        }
        self.next += 1;
        Ok(())
    }
}

/// Returns an error unless there is memory for what a subject gets.
fn check_room(holdings: &Holdings, name: HashedName, room: Room) -> Result<()> {
    if has_room(holdings, name, room) { Ok(()) } else { Err(StoreError::MemoryFull) }
}

/// Returns the change that gives a slot the sum of these, or `None` if they are merged one by one instead, which gives
/// the same however often it is done.
fn sum_of(kind: Kind, aggregates: &[Aggregate]) -> Option<Change> {
    if !kind.is_sum() && kind != Kind::Mean {
        return None;
    }
    let (mut all, mut times) = (0_i64, 0_i64);
    for aggregate in aggregates {
        match (aggregate, kind) {
            (Aggregate::Sum(sum), Kind::TimedSum(split)) => all = split.joined(all, sum.0),
            (Aggregate::Sum(sum), _) => all = all.saturating_add(sum.0),
            (Aggregate::Mean { sum, count }, _) => {
                (all, times) = (all.saturating_add(sum.0), times.saturating_add(*count));
            }
            _ => return None,
        }
    }
    Some(Change::Set { sum: Amount(all), count: times })
}

/// Returns the error of a fill between tracks of which one cannot fill the other.
fn cannot_fill() -> StoreError {
    StoreError::Unsupported { detail: "what one of the tracks has is not what the other one has".to_owned() }
}

/// Returns whether the slots of one track can be given what those of another one have.
fn fits([from, to]: [&BoardTrack; 2]) -> bool {
    let is_alike = match [from.kind(), to.kind()] {
        // How much of a counter counts may differ.
        [Kind::Capped { .. }, Kind::Capped { .. }] => true,
        [ours, theirs] => ours == theirs,
    };
    from.board().is_same_as(to.board())
        && is_alike
        && !from.is_from_first()
        && !to.is_from_first()
        && from.is_all_time() == to.is_all_time()
}

impl Embedded {
    /// Gives subjects what they have in another track: see [`Store::fill`](crate::store::Store::fill).
    pub(super) async fn fill_track(
        &self,
        from: &BoardTrack,
        to: &BoardTrack,
        cells: &[(Subject, Timestamp)],
    ) -> Result<()> {
        if !fits([from, to]) || cells.len() > MAX_FILLED {
            return Err(cannot_fill());
        }
        let permit = self.journal().admit(self.fill_log_bytes(from, cells)?)?;
        let names = cells.iter().map(|(subject, _)| HashedName::from(subject.as_str())).collect();
        let mut fill = Fill { from, to, cells, names, next: 0, values: None };
        let ticket = self
            .change_in_portions(from.board(), |state, room, operations| fill.apply_portion(state, room, operations));
        let ticket = ticket.await?;
        drop(permit);
        self.wait_for_all(ticket).await
    }

    /// Returns the largest number of bytes that a fill adds to the log.
    fn fill_log_bytes(&self, from: &BoardTrack, cells: &[(Subject, Timestamp)]) -> Result<usize> {
        let texts = cells.iter().map(|(subject, _)| subject.as_str().len() + LOG_OVERHEAD).sum::<usize>();
        Ok(match from.kind() {
            Kind::Sketch => texts + cells.len() * Sketch::MAX_BYTES,
            Kind::Distinct => self.read_data(from, |_, data, _| {
                let values = |subject: &Subject| data.holdings.last_seen(subject.as_str().into());
                let of = |(subject, _): &(Subject, Timestamp)| {
                    values(subject).map_or(0, |values| values.memory_bytes() + values.len() * LOG_OVERHEAD)
                };
                texts + cells.iter().map(of).sum::<usize>()
            })?,
            Kind::Capped { .. } => self.read_data(from, |_, data, _| {
                let of = |(subject, _): &(Subject, Timestamp)| {
                    data.holdings.log_bytes_of_counters(subject.as_str().into(), LOG_OVERHEAD)
                };
                texts + cells.iter().map(of).sum::<usize>()
            })?,
            _ => texts,
        })
    }

    /// Ends a fill: see [`Store::end_fill`](crate::store::Store::end_fill).
    pub(super) async fn end_fill_of(&self, board: &Board, tracks: &[(usize, usize)]) -> Result<()> {
        let slots = |(_, to): &(usize, usize)| board.tracks().get(*to).map_or(0, |track| track.kept() as usize);
        let bytes = LOG_OVERHEAD * 2 + tracks.iter().map(slots).sum::<usize>() * EVENTS_LOG_BYTES;
        let permit = self.journal().admit(bytes)?;
        let (done, ticket) = self.change_state(board, |state, operations| {
            for numbers in tracks {
                copy_events(board, state, *numbers, operations);
            }
            let now = state.now();
            let done = state.dual.as_mut().map(|dual| {
                dual.was_filled(now);
                dual.log_changes(operations);
            });
            (done, Awaited::Yes)
        })?;
        drop(permit);
        done.ok_or_else(cannot_fill)?;
        self.wait_for_all(ticket).await
    }
}

/// Gives the slots of a track the numbers of items that were counted in the slots of another one within each.
fn copy_events(board: &Board, state: &mut BoardState, (from, to): (usize, usize), operations: &mut LogOperations) {
    let (Some(track), Ok([from, to])) = (board.tracks().get(to), state.tracks.get_disjoint_mut([from, to])) else {
        return;
    };
    let (floor, floor_of_from) = (to.window.floor, from.window.floor);
    let mut counts = BTreeMap::<i64, u64>::new();
    for (slot, items) in from.events.since(floor_of_from.millis()) {
        let start = track.calendar().slot_of(Timestamp::from_millis(slot));
        if start >= floor && start >= floor_of_from {
            let count = counts.entry(start.millis()).or_default();
            *count = count.saturating_add(items);
        }
    }
    to.events.set(counts);
    let mut own = LogOperations::of(track.id());
    to.events.log_changes(&mut own);
    operations.append_changes(&mut own);
}
