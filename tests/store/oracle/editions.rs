//! Changes of a board's editions, and what is known of the two of them.

use std::collections::BTreeMap;
use std::sync::Arc;

use rolltop::board::{Aggregate, Amount, Board, Change, Frame, Kind, NotCounted, Subject, Timestamp, TrackId};
use rolltop::store::{Compared, Content, DualRun, Result, StoreError};

use super::capped::Counters;
use super::distinct::LastSeen;
use super::history::{Taken, aggregates, fits};
use super::{Held, HeldBoard, frame_at};

/// What is known of two editions.
pub struct Dual {
    since: Timestamp,
    /// The number of items that only the other edition counted, for each edition and reason.
    not_counted: BTreeMap<(TrackId, NotCounted), u64>,
    filled: Option<Timestamp>,
}

impl HeldBoard {
    pub fn change_editions(&mut self, from: &Board, to: Board, now: Timestamp) -> Result<Arc<Board>> {
        if self.board.epoch() == to.epoch() && self.board.stored_editions() == to.stored_editions() {
            return Ok(self.board.clone());
        }
        if self.board.epoch() != from.epoch() {
            return Err(StoreError::StaleEpoch);
        }
        if self.imports.is_open() {
            return Err(StoreError::ImportOpen);
        }
        let board = Arc::new(to);
        let mut known = std::mem::take(&mut self.tracks);
        for track in board.each_track() {
            self.tracks.push(match known.iter().position(|held| held.track.id() == track.id()) {
                Some(at) => Held { track, ..known.swap_remove(at) },
                None => {
                    let mut held = Held::new(track, now);
                    held.hide(&self.moderated);
                    held
                }
            });
        }
        for held in self.tracks.iter_mut().filter(|held| held.track.packed().is_some()) {
            held.past.clear();
            held.events.clear();
        }
        match (board.other(), &self.dual) {
            (None, _) => self.dual = None,
            (Some(_), None) => self.dual = Some(Dual { since: now, not_counted: BTreeMap::new(), filled: None }),
            (Some(_), Some(_)) => {}
        }
        self.board = board.clone();
        Ok(board)
    }

    /// Notes the reasons why editions did not count an item that another one has counted. Where the slot of a
    /// retraction is gone, nothing was left to take, so nothing is missing.
    pub fn note_missed(&mut self, now: Timestamp, missed: &[Option<NotCounted>], retract: bool) {
        let Some(dual) = &mut self.dual else { return };
        for (edition, reason) in self.board.editions().iter().zip(missed) {
            match reason {
                None => {}
                Some(NotCounted::TooLate) if retract => {}
                // A value to forget, of which the edition stores nothing.
                Some(NotCounted::OtherPeriod) => {}
                Some(NotCounted::Unknown) => dual.since = now,
                Some(reason) => *dual.not_counted.entry((edition.id(), *reason)).or_default() += 1,
            }
        }
    }

    pub fn dual_run(&self) -> Result<DualRun> {
        let Some(dual) = &self.dual else {
            return Err(StoreError::Unsupported { detail: "the board has one edition".to_owned() });
        };
        let of = |edition: usize| {
            let id = self.board.editions()[edition].id();
            let own = dual.not_counted.iter().filter(|((of, _), _)| *of == id);
            own.map(|((_, reason), items)| (*reason, *items)).collect()
        };
        Ok(DualRun {
            since: dual.since,
            not_counted: [of(0), of(1)],
            filled: dual.filled,
            is_exact: Some(true),
            server_runs: 0,
        })
    }

    /// Gives a subject what it has in the slots of a track within the slot of another one that contains `slot`.
    pub fn fill(&mut self, [from, to]: [usize; 2], subject: &Subject, slot: Timestamp, now: Timestamp) {
        let source_kind = self.tracks[from].track.kind();
        let (source, frame) = (&self.tracks[from], frame_at(&self.tracks[from].track, now));
        let target = frame_at(&self.tracks[to].track, now);
        let kept = self.board.editions().iter().find(|edition| edition.numbers().contains(&to));
        let kept = kept.and_then(|edition| edition.kept_slots()).filter(|kept| kept.id() != self.tracks[to].track.id());
        let kept = kept.map(|kept| kept.calendar().clone());
        let taken = |slot: Timestamp, at: Timestamp, change: Change, retract: bool, merged: Option<Content>| Taken {
            slot,
            at,
            now,
            floor: target.window.floor,
            change,
            retract,
            beside: kept.as_ref().map(|kept| kept.slot_of(at)),
            merged,
        };
        let nothing = || Change::Amount(Amount(0));
        if let Kind::Capped { .. } = source_kind {
            for content in Counters::remembered(&source.track, source.past(subject), &frame).contents() {
                let (Content::Value { at, .. } | Content::Dropped { at }) = content else { continue };
                if at >= target.window.floor {
                    let slot = self.tracks[to].track.calendar().slot_of(at);
                    // It replaces what the edition has.
                    let change = Change::Set { sum: Amount(0), count: 0 };
                    let item = taken(slot, at, change, false, Some(content));
                    self.tracks[to].past.entry(subject.clone()).or_default().push(item);
                }
            }
            return;
        }
        if source_kind == Kind::Distinct {
            let oldest_tombstone = LastSeen::oldest_tombstone(&self.tracks[to].track, &target);
            for content in LastSeen::remembered(&source.track, source.past(subject), &frame).contents() {
                let (at, change, retract) = match &content {
                    Content::Value { value, at, retracted } => (*at, Change::Seen(value.clone()), *retracted),
                    Content::Dropped { at } => (*at, nothing(), false),
                    other => panic!("{other:?} on a board of values"),
                };
                if at >= if retract { oldest_tombstone } else { target.window.floor } {
                    let slot = self.tracks[to].track.calendar().slot_of(at);
                    let item = taken(slot, at, change, retract, Some(content));
                    self.tracks[to].past.entry(subject.clone()).or_default().push(item);
                }
            }
            return;
        }
        let calendar = self.tracks[to].track.calendar();
        let (start, end) = (calendar.slot_of(slot), calendar.next(calendar.slot_of(slot)));
        if source.track.calendar().slot_of(start) < frame.window.floor || start < target.window.floor {
            return;
        }
        let within = aggregates(&source.track, source.past(subject), start);
        let within: Vec<Aggregate> =
            within.into_iter().filter(|(slot, _)| *slot < end).map(|(_, aggregate)| aggregate).collect();
        let held = &mut self.tracks[to];
        let past = held.past.entry(subject.clone()).or_default();
        let length = past.len();
        match source_kind {
            Kind::TimedSum(split) => {
                let number = |aggregate: &Aggregate| if let Aggregate::Sum(sum) = aggregate { sum.0 } else { 0 };
                let joined = within.iter().fold(0, |all, aggregate| split.joined(all, number(aggregate)));
                past.push(taken(start, start, Change::Set { sum: Amount(joined), count: 0 }, false, None));
            }
            Kind::Sum | Kind::Mean => past.push(taken(start, start, sum_of(&within), false, None)),
            _ => past.extend(within.into_iter().map(|aggregate| {
                let at = aggregate.time().unwrap_or(start);
                taken(start, at, nothing(), false, Some(Content::Cell { slot: start, aggregate }))
            })),
        }
        if !fits(&held.track, past, start) {
            past.truncate(length);
        }
    }

    /// Gives the slots of tracks the numbers of items of other tracks, and notes the time.
    pub fn end_fill(&mut self, tracks: &[(usize, usize)], now: Timestamp) {
        for (from, to) in tracks.iter().copied() {
            let (source, target) = (frame_at(&self.tracks[from].track, now), frame_at(&self.tracks[to].track, now));
            let mut events: BTreeMap<Timestamp, u64> = BTreeMap::new();
            for (slot, items) in self.tracks[from].events.range(source.window.floor..) {
                let slot = self.tracks[to].track.calendar().slot_of(*slot);
                if slot >= source.window.floor && slot >= target.window.floor {
                    *events.entry(slot).or_default() += items;
                }
            }
            self.tracks[to].events.extend(events);
        }
        if let Some(dual) = &mut self.dual {
            dual.filled = Some(now);
        }
    }

    pub fn compare(&self, numbers: [usize; 2], subjects: &[Subject], now: Timestamp) -> Compared {
        let tracks = numbers.map(|number| (&self.tracks[number], frame_at(&self.tracks[number].track, now)));
        let value = |held: &Held, frame: &Frame, subject: &Subject| {
            let score = held.score(frame, subject);
            score.filter(|_| !held.track.is_ranked() || held.track.kind().ranks(score))
        };
        let values = |subject: &Subject| tracks.each_ref().map(|(held, frame)| value(held, frame, subject));
        Compared { frames: [tracks[0].1, tracks[1].1], values: subjects.iter().map(values).collect() }
    }
}

/// Returns the change that gives a slot the sum of these.
fn sum_of(aggregates: &[Aggregate]) -> Change {
    let (mut all, mut times) = (0, 0);
    for aggregate in aggregates {
        match aggregate {
            Aggregate::Sum(sum) => all += sum.0,
            Aggregate::Mean { sum, count } => (all, times) = (all + sum.0, times + count),
            other => panic!("{other:?} is not a sum"),
        }
    }
    Change::Set { sum: Amount(all), count: times }
}
