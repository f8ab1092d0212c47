//! The results of reads, computed from the past of each subject.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use rolltop::board::{Aggregate, Frame, Kind, Mode, Order, RankingKey, Ranks, Subject, Timestamp, Value, Window};
use rolltop::store::{Ranked, Result, SlotContents, SlotQuery, SlotRange, StoreError};

use super::capped::Counters;
use super::distinct::LastSeen;
use super::history::{Counter, Taken, aggregates, whole};
use super::{Held, walk_back};

impl Held {
    pub fn past(&self, subject: &Subject) -> &[Taken] {
        self.past.get(subject).map_or(&[], Vec::as_slice)
    }

    /// Returns what a subject has in each slot of the window that has data.
    pub fn live(&self, frame: &Frame, subject: &Subject) -> BTreeMap<Timestamp, Aggregate> {
        let past = self.past(subject);
        match self.track.edition().definition().mode {
            Mode::Sliding => aggregates(&self.track, past, frame.window.floor),
            Mode::FromFirst => {
                let counter = Counter::at(&self.track, past, frame.as_of);
                counter.map(|counter| (counter.start, Aggregate::Sum(whole(counter.units)))).into_iter().collect()
            }
        }
    }

    pub fn score(&self, frame: &Frame, subject: &Subject) -> Option<Value> {
        self.track.value(self.live(frame, subject).values())
    }

    /// Returns whether values of this window were dropped because there were more than the board remembers.
    pub fn is_capped(&self, frame: &Frame, subject: &Subject, from: Timestamp) -> bool {
        let (past, floor) = (self.past(subject), frame.window.floor);
        self.track.max_values().is_some()
            && match self.track.kind() {
                Kind::Capped { .. } => Counters::after(&self.track, past, floor).is_capped_from(from),
                _ => LastSeen::after(&self.track, past, floor).is_capped_from(from),
            }
    }

    /// Returns the ranking of a key, or of all subjects together.
    pub fn ranking(&self, frame: &Frame, key: Option<&RankingKey>) -> Vec<Ranked> {
        let mut lines: Vec<(Value, &Subject)> = Vec::new();
        if self.track.is_ranked() {
            let is_in = |subject: &&Subject| key.is_none_or(|key| subject.key() == Some(key.as_str()));
            for subject in self.past.keys().filter(|subject| is_in(subject) && !self.hidden.contains_key(*subject)) {
                let score = self.score(frame, subject);
                lines.extend(score.filter(|_| self.track.kind().ranks(score)).map(|score| (score, subject)));
            }
        }
        match self.track.order() {
            Order::Desc => lines.sort_by_key(|line| Reverse(*line)),
            Order::Asc => lines.sort(),
        }
        let mut ranking: Vec<Ranked> = Vec::with_capacity(lines.len());
        for (place, (score, subject)) in lines.into_iter().enumerate() {
            let rank = match ranking.last() {
                Some(before) if before.score == score && self.track.ranks() == Ranks::Shared => before.rank,
                _ => place as u64 + 1,
            };
            let subject = if key.is_some() { subject.clone().without_key() } else { subject.clone() };
            ranking.push(Ranked { rank, subject, score });
        }
        ranking
    }

    /// Returns the keys that have a ranked subject.
    pub fn keys(&self, frame: &Frame) -> BTreeSet<RankingKey> {
        let ranking = self.ranking(frame, None);
        let keys = ranking.iter().filter_map(|line| line.subject.key());
        keys.map(|key| RankingKey::parse(key).unwrap()).collect()
    }

    pub fn read(&self, frame: Frame, query: &SlotQuery) -> Result<SlotContents> {
        match self.track.edition().definition().mode {
            Mode::Sliding => self.read_slots(frame, query),
            Mode::FromFirst => Ok(self.read_counter(frame, &query.subject)),
        }
    }

    fn read_slots(&self, mut frame: Frame, query: &SlotQuery) -> Result<SlotContents> {
        let (board, subject) = (&self.track, &*query.track.stored(&query.subject));
        let calendar = board.calendar();
        let kept = walk_back(calendar, frame.window.head, board.kept());
        let lowest = match query.as_of {
            None => frame.window.floor,
            Some(_) => kept,
        };
        let beyond = Err(StoreError::BeyondWindow { floor: lowest });
        let upto = query.as_of.unwrap_or(frame.as_of);
        let newest = calendar.slot_of(upto);
        if upto > frame.as_of || newest < lowest {
            return beyond;
        }
        let oldest = match query.range {
            SlotRange::Slots(slots) if slots > board.slots() => return beyond,
            SlotRange::Slots(slots) => walk_back(calendar, newest, slots),
            SlotRange::From(from) => calendar.slot_of(from.min(upto)),
        };
        if oldest < lowest || oldest < walk_back(calendar, newest, board.slots()) {
            return beyond;
        }
        let mut slots = 1;
        let mut at = oldest;
        while at < newest {
            at = calendar.next(at);
            slots += 1;
        }
        let aggregates: Vec<(Timestamp, Aggregate)> = match board.is_ranked() {
            true => self.live(&frame, subject).into_iter().collect(),
            false => aggregates(board, self.past(subject), kept).into_iter().collect(),
        };
        let capped = self.is_capped(&frame, subject, oldest);
        let end = if newest == frame.window.head { frame.window.end } else { calendar.next(newest) };
        frame.window = Window { floor: oldest, head: newest, end };
        let within = |(slot, _): &(Timestamp, Aggregate)| oldest <= *slot && *slot <= newest;
        Ok(SlotContents { frame, slots, aggregates: aggregates.into_iter().filter(within).collect(), capped })
    }

    fn read_counter(&self, mut frame: Frame, subject: &Subject) -> SlotContents {
        let life = self.track.length().approximate_millis();
        let aggregates: Vec<(Timestamp, Aggregate)> = self.live(&frame, subject).into_iter().collect();
        let start = aggregates.first().map_or(frame.as_of, |(start, _)| *start);
        frame.window = Window { floor: start, head: start, end: start.plus_millis(life) };
        SlotContents { frame, slots: 1, aggregates, capped: false }
    }
}
