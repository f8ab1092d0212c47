//! Reads of a track's data. Each function sees a single instant, because its caller holds the board's lock.

use std::ops::Range;

use super::groups::Groups;
use super::hashed_name::HashedName;
use super::holdings::Holdings;
use super::ranking::{self, TextSource as _, UNGROUPED};
use super::record::Counter;
use super::slot_list::SlotList;
use super::track_data::TrackData;
use crate::board::{
    Aggregate, Amount, BoardTrack, Frame, Order, Percentile, RankingKey, Ranks, Subject, Timestamp, Value,
};
use crate::store::{
    AtScore, Distribution, Keys, Lookup, NextTo, Page, PageStart, Place, Ranked, Standing, Status, TextRange,
};

/// The largest number of subjects of a ranking that is settled before it is read.
const MOST_SETTLED: usize = 200;
/// The work after which settling stops, in subjects, so that a read does not hold the board's lock for long. The next
/// read goes on.
const MOST_SETTLING_WORK: u64 = 1_024;

/// A ranking: all entries of a track or, if the board has keys, the group of one of them.
struct OneRanking<'a> {
    order: Order,
    data: &'a TrackData,
    frame: Frame,
    group: u32,
    /// Its positions among the entries of the track.
    positions: Range<usize>,
    ranks: Ranks,
    counts_ties: bool,
}

impl<'a> OneRanking<'a> {
    /// Returns the ranking of the track, or that of its key. A key that nothing is known of has an empty one. O(1), with
    /// keys O(log n + log keys).
    fn of(track: &BoardTrack, data: &'a TrackData, frame: Frame) -> Self {
        let ranking = &data.holdings.ranking;
        let (group, positions) = match track.key().map(|key| group_of(key, data)) {
            None => (UNGROUPED, 0..ranking.len()),
            Some(None) => (UNGROUPED, 0..0),
            Some(Some(group)) => (group, ranking.positions_of(group)),
        };
        let (order, ranks, counts_ties) = (track.order(), track.ranks(), track.counts_ties());
        Self { order, data, frame, group, positions, ranks, counts_ties }
    }

    fn len(&self) -> usize {
        self.positions.len()
    }

    /// Returns the number of lines before the entry at this position of the track. O(1).
    fn lines_before(&self, position: usize) -> usize {
        match self.order {
            Order::Asc => position - self.positions.start,
            Order::Desc => self.positions.end - 1 - position,
        }
    }

    /// Returns the number of lines before the boundary of the lines next to a place. O(log n).
    fn boundary(&self, next_to: &NextTo) -> usize {
        let Holdings { ranking, subjects, traits, .. } = &self.data.holdings;
        let Place { score, subject } = &next_to.place;
        let (sort_key, text) = (traits.sort_key_of_score(Some(*score)), subject.as_str());
        let is_after = next_to.is_boundary_after_line() == (self.order == Order::Asc);
        let position = match is_after {
            true => ranking.position_after(self.group, sort_key, text, subjects),
            false => ranking.position_from(self.group, sort_key, text, subjects),
        };
        let position = position.clamp(self.positions.start, self.positions.end);
        match self.order {
            Order::Asc => position - self.positions.start,
            Order::Desc => self.positions.end - position,
        }
    }

    /// Returns the number of ranked subjects with a strictly better score than that of this sort key. O(log n).
    fn count_better(&self, sort_key: i64) -> u64 {
        if self.positions.is_empty() {
            return 0;
        }
        let ranking = &self.data.holdings.ranking;
        let count = match self.order {
            Order::Desc => self.positions.end - ranking.position_after_score(self.group, sort_key),
            Order::Asc => ranking.position_of_score(self.group, sort_key) - self.positions.start,
        };
        count as u64
    }

    /// Returns the number of ranked subjects that have a better rank than the one of this name with this sort key, which
    /// need not be in the ranking. O(log n).
    fn count_before(&self, sort_key: i64, name: &str) -> u64 {
        if self.ranks == Ranks::Shared || self.positions.is_empty() {
            return self.count_better(sort_key);
        }
        let Holdings { ranking, subjects, .. } = &self.data.holdings;
        let count = match self.order {
            Order::Desc => self.positions.end - ranking.position_after(self.group, sort_key, name, subjects),
            Order::Asc => ranking.position_from(self.group, sort_key, name, subjects) - self.positions.start,
        };
        count as u64
    }

    /// Returns the number of ranked subjects with the score of this sort key or a better one. O(log n).
    fn count_not_worse(&self, sort_key: i64) -> u64 {
        if self.positions.is_empty() {
            return 0;
        }
        let ranking = &self.data.holdings.ranking;
        let count = match self.order {
            Order::Desc => self.positions.end - ranking.position_of_score(self.group, sort_key),
            Order::Asc => ranking.position_after_score(self.group, sort_key) - self.positions.start,
        };
        count as u64
    }

    /// Returns at most `limit` lines after the first `offset` lines. O(log n + limit).
    fn lines(&self, offset: usize, limit: usize) -> Page {
        let Holdings { ranking, subjects, traits, .. } = &self.data.holdings;
        let room = limit.min(self.len().saturating_sub(offset));
        let mut items: Vec<Ranked> = Vec::with_capacity(room);
        let is_ordinal = self.ranks == Ranks::Ordinal;
        let mut push = |(index, entry): (usize, ranking::Entry)| {
            // Every ranked subject has a score, so this never returns early.
            let Some(score) = traits.score_of_sort_key(entry.score()) else { return };
            let rank = match items.last() {
                Some(last) if !is_ordinal && last.score == score => last.rank,
                Some(_) => (offset + index) as u64 + 1,
                None if is_ordinal => (offset + index) as u64 + 1,
                // Only the first line can share its rank with lines before the page.
                None => self.count_better(entry.score()) + 1,
            };
            let subject = Subject::from_stored(subjects.text(entry.id));
            items.push(Ranked { rank, subject, score });
        };
        let skipped = |outside: usize| outside.saturating_add(offset);
        match self.order {
            Order::Desc => {
                let entries = ranking.descending(skipped(ranking.len() - self.positions.end));
                entries.take(room).enumerate().for_each(&mut push);
            }
            Order::Asc => {
                ranking.ascending(skipped(self.positions.start)).take(room).enumerate().for_each(&mut push);
            }
        }
        let first = offset.min(self.len()) as u64;
        let last = items.last().filter(|_| self.counts_ties).map(|last| traits.sort_key_of_score(Some(last.score)));
        let not_worse = last.map(|sort_key| self.count_not_worse(sort_key));
        Page { frame: self.frame, total: self.len() as u64, first, items: items.into(), not_worse }
    }
}

/// Returns the number of the group of a key that has a subject. O(log keys).
fn group_of(key: &RankingKey, data: &TrackData) -> Option<u32> {
    data.holdings.subjects.groups()?.number(key.as_str())
}

/// Returns the frame of the ranking that is about to be read. If slots are being retired and this is the small ranking
/// of a key, what it has in them is subtracted first, so that it is exact, and nothing of it is retiring. O(slots), and
/// while slots are being retired O([`MOST_SETTLING_WORK`] x log n).
pub(super) fn settle(track: &BoardTrack, data: &mut TrackData) -> Frame {
    let mut frame = data.frame();
    let Some(key) = track.key().filter(|_| frame.retiring > 0) else { return frame };
    let is_settled = match group_of(key, data) {
        None => true,
        Some(group) if data.holdings.ranking.positions_of(group).len() > MOST_SETTLED => false,
        Some(group) => data.retire_group(key.as_str(), group, |work| work < MOST_SETTLING_WORK),
    };
    if is_settled {
        frame.retiring = 0;
    }
    frame
}

/// Returns a page of at most `limit` lines. O(log n + limit).
pub(super) fn page(track: &BoardTrack, data: &TrackData, frame: Frame, start: &PageStart, limit: u32) -> Page {
    let ranking = OneRanking::of(track, data, frame);
    let (first, count) = match start {
        PageStart::Offset(offset) => (*offset, u64::from(limit)),
        PageStart::Place(next_to) => next_to.span(ranking.boundary(next_to) as u64, u64::from(limit)),
    };
    let at = |position| usize::try_from(position).unwrap_or(usize::MAX);
    ranking.lines(at(first), at(count))
}

/// Returns the lines around a subject. O(log n + radius).
pub(super) fn neighbors(track: &BoardTrack, data: &TrackData, frame: Frame, subject: &Subject, radius: u32) -> Page {
    let (ranking, holdings) = (OneRanking::of(track, data, frame), &data.holdings);
    let entry = holdings.entry_of(track.stored(subject).as_str().into());
    match entry.and_then(|entry| holdings.ranking.position(entry, &holdings.subjects)) {
        Some(position) => {
            let place = ranking.lines_before(position);
            let from = place.saturating_sub(radius as usize);
            ranking.lines(from, place - from + 1 + radius as usize)
        }
        None => ranking.lines(0, 0),
    }
}

/// Returns scores at percentiles, and numbers of subjects around scores. O(log n) each.
pub(super) fn distribution(
    track: &BoardTrack,
    data: &TrackData,
    frame: Frame,
    percentiles: &[Percentile],
    scores: &[Value],
) -> Distribution {
    let (ranking, traits) = (OneRanking::of(track, data, frame), data.holdings.traits);
    let total = ranking.len() as u64;
    let at = |percentile: &Percentile| {
        let position = usize::try_from(percentile.position(total)?).ok()?;
        ranking.lines(position, 1).items.first().map(|line| line.score)
    };
    let around = |score: &Value| {
        let sort_key = traits.sort_key_of_score(Some(*score));
        let better = ranking.count_better(sort_key);
        AtScore { better, equal: ranking.count_not_worse(sort_key) - better }
    };
    let (percentiles, scores) = (percentiles.iter().map(at).collect(), scores.iter().map(around).collect());
    Distribution { frame, total, percentiles, scores }
}

/// Returns the scores of the given subjects and, with `ranks`, their ranks. O(subjects), with ranks O(subjects x log
/// n).
pub(super) fn lookup(
    track: &BoardTrack,
    data: &TrackData,
    frame: Frame,
    subjects: &[Subject],
    with_ranks: bool,
) -> Lookup {
    let (ranking, traits) = (OneRanking::of(track, data, frame), data.holdings.traits);
    let (mut scores, mut ranks) = (Vec::with_capacity(subjects.len()), Vec::with_capacity(subjects.len()));
    let mut not_worse = Vec::with_capacity(subjects.len());
    for subject in subjects {
        let stored = track.stored(subject);
        let is_visible = !data.holdings.visibility_of(stored.as_str()).is_hidden();
        let sort_key = data.holdings.sort_key_of(stored.as_str().into());
        let sort_key = Some(sort_key).filter(|sort_key| is_visible && *sort_key != traits.absent_sort_key());
        scores.push(sort_key.and_then(|sort_key| traits.score_of_sort_key(sort_key)));
        let sort_key = sort_key.filter(|_| with_ranks);
        ranks.push(sort_key.map(|sort_key| ranking.count_before(sort_key, subject.as_str()) + 1));
        not_worse.push(sort_key.filter(|_| track.counts_ties()).map(|sort_key| ranking.count_not_worse(sort_key)));
    }
    Lookup { frame, total: ranking.len() as u64, scores, ranks, not_worse }
}

/// Returns a subject's score: in the ranking or, without a ranking, the value of its window. O(1) if the board is
/// ranked, otherwise O(slots).
pub(super) fn score(data: &TrackData, subject: &Subject) -> Option<Value> {
    let (holdings, subject) = (&data.holdings, HashedName::from(subject.as_str()));
    if holdings.traits.ranked {
        return holdings.traits.score_of_sort_key(holdings.sort_key_of(subject));
    }
    if holdings.traits.counter_duration.is_some() {
        let counter = holdings.counter(subject, data.now.millis());
        return Some(Value::Exact(Amount(counter.map_or(0, |counter| counter.amount))));
    }
    holdings.combined_value(subject, data.window.floor.millis())
}

/// Returns the position of one subject. O(log n + slots).
pub(super) fn standing(track: &BoardTrack, data: &TrackData, frame: Frame, subject: &Subject) -> Standing {
    let (ranking, holdings) = (OneRanking::of(track, data, frame), &data.holdings);
    let (name, subject) = (subject, track.stored(subject));
    let sort_key = holdings.sort_key_of(subject.as_str().into());
    let ranked = sort_key != holdings.traits.absent_sort_key();
    let visibility = holdings.visibility_of(subject.as_str());
    let has_rank = ranked && visibility.sees_rank();
    let better = match holdings.traits.kind.absent() {
        // Any score is better than none.
        None if !ranked => ranking.len() as u64,
        _ if ranked => ranking.count_before(sort_key, name.as_str()),
        _ => ranking.count_better(sort_key),
    };
    Standing {
        frame,
        total: ranking.len() as u64,
        score: score(data, &subject),
        rank: has_rank.then_some(better + 1),
        visibility,
        better,
        not_worse: (has_rank && track.counts_ties()).then(|| ranking.count_not_worse(sort_key)),
        slots: live_aggregates(data, &subject),
        capped: capped_from(data, &subject, data.window.floor),
    }
}

/// Returns keys that have a ranked subject. O(log keys + limit).
pub(super) fn keys(data: &TrackData, range: TextRange<'_>, limit: u32) -> Keys {
    let groups = data.holdings.subjects.groups();
    let keys = groups.into_iter().flat_map(|groups| groups.keys_from(range.start()));
    let keys = keys.take_while(|key| range.reaches(key)).take(limit as usize);
    Keys {
        frame: data.frame(),
        total: groups.map_or(0, Groups::len) as u64,
        keys: keys.map(|key| RankingKey::from_stored(key.clone())).collect(),
    }
}

/// Returns what a subject has in the window's slots, or in its current counter. O(slots).
pub(super) fn live_aggregates(data: &TrackData, subject: &Subject) -> Vec<(Timestamp, Aggregate)> {
    let (holdings, subject) = (&data.holdings, HashedName::from(subject.as_str()));
    if holdings.traits.counter_duration.is_none() {
        return holdings.aggregates(subject, data.window.floor.millis(), i64::MAX);
    }
    let counter = holdings.counter(subject, data.now.millis());
    let aggregate = |counter: Counter| (Timestamp::from_millis(counter.start), Aggregate::Sum(Amount(counter.amount)));
    counter.map(aggregate).into_iter().collect()
}

/// Returns whether values were dropped that were seen at `from` or later.
pub(super) fn capped_from(data: &TrackData, subject: &Subject, from: Timestamp) -> bool {
    data.holdings.dropped(subject.as_str().into()).is_some_and(|at| at >= from.millis())
}

/// Returns the state of the track. O(slots).
pub(super) fn status(data: &TrackData) -> Status {
    let floor = data.window.floor.millis();
    let lists = data.holdings.lists.values();
    let count = |list: &SlotList| (Timestamp::from_millis(list.start), list.len() as u64);
    Status {
        frame: data.frame(),
        total: Some(data.holdings.ranking.len() as u64),
        keys: data.holdings.subjects.groups().map(|groups| groups.len() as u64),
        slots: lists.clone().filter(|list| list.start >= floor).map(count).collect(),
        retiring: lists.take_while(|list| list.start < floor).map(count).collect(),
        events: data.events.since(floor).map(|(start, count)| (Timestamp::from_millis(start), count)).collect(),
        upheavals: data.holdings.upheavals(),
    }
}
