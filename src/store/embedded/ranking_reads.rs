//! Reads of a track's tables. Each function sees a single instant, because its caller holds the board's lock.

use super::hashed_name::HashedName;
use super::holdings::Holdings;
use super::ranking;
use super::record::Counter;
use super::slot_list::SlotList;
use super::tables::Tables;
use crate::board::{Aggregate, Amount, Order, Subject, Timestamp, Track, Value};
use crate::store::{Lookup, NextTo, Page, PageStart, Place, Ranked, Standing, Status};

/// Returns a page of at most `limit` lines. O(log n + limit).
pub(super) fn page(track: &Track, tables: &Tables, start: &PageStart, limit: u32) -> Page {
    let (first, count) = match start {
        PageStart::Offset(offset) => (*offset, u64::from(limit)),
        PageStart::Place(next_to) => next_to.span(boundary(track, tables, next_to) as u64, u64::from(limit)),
    };
    let at = |position| usize::try_from(position).unwrap_or(usize::MAX);
    page_from(track, tables, at(first), at(count))
}

/// Returns the number of lines before the boundary of the lines next to a place. O(log n).
fn boundary(track: &Track, tables: &Tables, next_to: &NextTo) -> usize {
    let Holdings { ranking, subjects, traits, .. } = &tables.holdings;
    let Place { score, subject } = &next_to.place;
    let (key, text) = (traits.key_of_score(Some(*score)), subject.as_str());
    match (track.order(), next_to.is_boundary_after_line()) {
        (Order::Asc, false) => ranking.position_from(key, text, subjects),
        (Order::Asc, true) => ranking.position_after(key, text, subjects),
        (Order::Desc, false) => ranking.len() - ranking.position_after(key, text, subjects),
        (Order::Desc, true) => ranking.len() - ranking.position_from(key, text, subjects),
    }
}

/// Returns the lines around a subject. O(log n + radius).
pub(super) fn neighbors(track: &Track, tables: &Tables, subject: &Subject, radius: u32) -> Page {
    let ranking = &tables.holdings.ranking;
    let place = tables
        .holdings
        .entry_of(subject.as_str().into())
        .and_then(|entry| ranking.position(entry, &tables.holdings.subjects))
        .map(|position| match track.order() {
            Order::Asc => position,
            Order::Desc => ranking.len() - 1 - position,
        });
    match place {
        Some(place) => {
            let from = place.saturating_sub(radius as usize);
            page_from(track, tables, from, place - from + 1 + radius as usize)
        }
        None => page_from(track, tables, 0, 0),
    }
}

fn page_from(track: &Track, tables: &Tables, offset: usize, limit: usize) -> Page {
    let (ranking, subjects) = (&tables.holdings.ranking, &tables.holdings.subjects);
    let traits = tables.holdings.traits;
    let room = limit.min(ranking.len().saturating_sub(offset));
    let mut items: Vec<Ranked> = Vec::with_capacity(room);
    let mut push = |(index, entry): (usize, ranking::Entry)| {
        // Every ranked subject has a score, so this never returns early.
        let Some(score) = traits.score_of_key(entry.score) else { return };
        let rank = match items.last() {
            Some(last) if last.score == score => last.rank,
            Some(_) => (offset + index) as u64 + 1,
            // Only the first line can share its rank with lines before the page.
            None => count_better(track, tables, entry.score) + 1,
        };
        let subject = Subject::from_stored(ranking::TextSource::text(subjects, entry.id));
        items.push(Ranked { rank, subject, score });
    };
    match track.order() {
        Order::Desc => ranking.descending(offset).take(room).enumerate().for_each(&mut push),
        Order::Asc => ranking.ascending(offset).take(room).enumerate().for_each(&mut push),
    }
    let first = offset.min(ranking.len()) as u64;
    Page { frame: tables.frame(), total: ranking.len() as u64, first, items: items.into() }
}

/// Returns the number of ranked subjects with a strictly better score than that of this key. O(log n).
fn count_better(track: &Track, tables: &Tables, key: i64) -> u64 {
    let ranking = &tables.holdings.ranking;
    let count = match track.order() {
        Order::Desc => ranking.len() - ranking.count_through(key),
        Order::Asc => ranking.count_below(key),
    };
    count as u64
}

/// Returns the scores of the given subjects and, with `ranks`, their ranks. O(subjects), with ranks O(subjects x log
/// n).
pub(super) fn lookup(track: &Track, tables: &Tables, subjects: &[Subject], with_ranks: bool) -> Lookup {
    let traits = tables.holdings.traits;
    let (mut scores, mut ranks) = (Vec::with_capacity(subjects.len()), Vec::with_capacity(subjects.len()));
    for subject in subjects {
        let key = tables.holdings.key_of(subject.as_str().into());
        let key = Some(key).filter(|key| *key != traits.absent_key());
        scores.push(key.and_then(|key| traits.score_of_key(key)));
        ranks.push(key.filter(|_| with_ranks).map(|key| count_better(track, tables, key) + 1));
    }
    Lookup { frame: tables.frame(), total: tables.holdings.ranking.len() as u64, scores, ranks }
}

/// Returns a subject's score: in the ranking or, without a ranking, the value of its window. O(1) if the board is
/// ranked, otherwise O(slots).
pub(super) fn score(tables: &Tables, subject: &Subject) -> Option<Value> {
    let (holdings, subject) = (&tables.holdings, HashedName::from(subject.as_str()));
    if holdings.traits.ranked {
        return holdings.traits.score_of_key(holdings.key_of(subject));
    }
    if holdings.traits.counter_duration.is_some() {
        let counter = holdings.counter(subject, tables.now.millis());
        return Some(Value::Exact(Amount(counter.map_or(0, |counter| counter.amount))));
    }
    holdings.combined_value(subject, tables.window.floor.millis())
}

/// Returns the position of one subject. O(log n + slots).
pub(super) fn standing(track: &Track, tables: &Tables, subject: &Subject) -> Standing {
    let holdings = &tables.holdings;
    let key = holdings.key_of(subject.as_str().into());
    let ranked = key != holdings.traits.absent_key();
    let better = match holdings.traits.kind.absent() {
        // Any score is better than none.
        None if !ranked => holdings.ranking.len() as u64,
        _ => count_better(track, tables, key),
    };
    Standing {
        frame: tables.frame(),
        total: holdings.ranking.len() as u64,
        score: score(tables, subject),
        rank: ranked.then_some(better + 1),
        better,
        slots: live_aggregates(tables, subject),
        capped: capped_from(tables, subject, tables.window.floor),
    }
}

/// Returns what a subject has in the window's slots, or in its current counter. O(slots).
pub(super) fn live_aggregates(tables: &Tables, subject: &Subject) -> Vec<(Timestamp, Aggregate)> {
    let (holdings, subject) = (&tables.holdings, HashedName::from(subject.as_str()));
    if holdings.traits.counter_duration.is_none() {
        return holdings.aggregates(subject, tables.window.floor.millis(), i64::MAX);
    }
    let counter = holdings.counter(subject, tables.now.millis());
    let aggregate = |counter: Counter| (Timestamp::from_millis(counter.start), Aggregate::Sum(Amount(counter.amount)));
    counter.map(aggregate).into_iter().collect()
}

/// Returns whether values were dropped that were seen at `from` or later.
pub(super) fn capped_from(tables: &Tables, subject: &Subject, from: Timestamp) -> bool {
    let values = tables.holdings.last_seen(subject.as_str().into());
    values.and_then(|values| values.capped).is_some_and(|at| at >= from.millis())
}

/// Returns the state of the track. O(slots).
pub(super) fn status(tables: &Tables) -> Status {
    let floor = tables.window.floor.millis();
    let lists = tables.holdings.lists.values();
    let count = |list: &SlotList| (Timestamp::from_millis(list.start), list.len() as u64);
    Status {
        frame: tables.frame(),
        total: tables.holdings.ranking.len() as u64,
        keys: None,
        slots: lists.clone().filter(|list| list.start >= floor).map(count).collect(),
        retiring: lists.take_while(|list| list.start < floor).map(count).collect(),
        events: tables.events.since(floor).map(|(start, count)| (Timestamp::from_millis(start), count)).collect(),
        upheavals: tables.holdings.upheavals(),
    }
}
