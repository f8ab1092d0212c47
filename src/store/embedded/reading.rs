//! What a board's tables answer. Each function sees one instant, as its caller holds the board's lock.

use super::ranking;
use super::tables::Tables;
use crate::board::{Amount, Board, Frame, Order, Subject, Tally, Timestamp, Value};
use crate::store::{Lookup, Page, Ranked, Reach, Reading, Result, Standing, Status, StoreError};

/// A page from place `offset`. O(log n + limit).
pub(super) fn page(board: &Board, tables: &Tables, offset: u64, limit: u32) -> Page {
    let offset = usize::try_from(offset).unwrap_or(usize::MAX);
    rows(board, tables, offset, limit as usize)
}

/// The lines around a subject. O(log n + radius).
pub(super) fn neighbors(board: &Board, tables: &Tables, subject: &Subject, radius: u32) -> Page {
    let ranking = &tables.holdings.ranking;
    let place = tables
        .holdings
        .entry_of(subject.as_str())
        .and_then(|entry| ranking.position(entry, &tables.holdings.slab))
        .map(|position| match board.order() {
            Order::Asc => position,
            Order::Desc => ranking.len() - 1 - position,
        });
    match place {
        Some(place) => {
            let from = place.saturating_sub(radius as usize);
            rows(board, tables, from, place - from + 1 + radius as usize)
        }
        None => rows(board, tables, 0, 0),
    }
}

fn rows(board: &Board, tables: &Tables, offset: usize, limit: usize) -> Page {
    let (ranking, slab) = (&tables.holdings.ranking, &tables.holdings.slab);
    let room = limit.min(ranking.len().saturating_sub(offset));
    let mut items: Vec<Ranked> = Vec::with_capacity(room);
    let mut push = |(index, entry): (usize, ranking::Entry)| {
        let rank = match items.last() {
            Some(last) if last.score == Value::Exact(Amount(entry.score)) => last.rank,
            Some(_) => (offset + index) as u64 + 1,
            // Only the first line may share its rank with lines before the page.
            None => better(board, tables, entry.score) + 1,
        };
        let subject = Subject::from_stored(ranking::Texts::text(slab, entry.id));
        items.push(Ranked { rank, subject, score: Value::Exact(Amount(entry.score)) });
    };
    match board.order() {
        Order::Desc => ranking.descending(offset).take(room).enumerate().for_each(&mut push),
        Order::Asc => ranking.ascending(offset).take(room).enumerate().for_each(&mut push),
    }
    Page { frame: tables.frame(), total: ranking.len() as u64, items }
}

/// How many ranked subjects have a strictly better score. O(log n).
fn better(board: &Board, tables: &Tables, score: i64) -> u64 {
    let ranking = &tables.holdings.ranking;
    let count = match board.order() {
        Order::Desc => ranking.len() - ranking.through(score),
        Order::Asc => ranking.below(score),
    };
    count as u64
}

/// Scores of the given subjects. O(subjects).
pub(super) fn lookup(tables: &Tables, subjects: &[Subject]) -> Lookup {
    let score = |subject: &Subject| match tables.holdings.score_of(subject.as_str()) {
        0 => None,
        score => Some(Value::Exact(Amount(score))),
    };
    Lookup {
        frame: tables.frame(),
        total: tables.holdings.ranking.len() as u64,
        scores: subjects.iter().map(score).collect(),
    }
}

/// Where one subject stands. O(log n + slots).
pub(super) fn standing(board: &Board, tables: &Tables, subject: &Subject) -> Standing {
    let holdings = &tables.holdings;
    let record = holdings.slab.id(subject.as_str()).and_then(|id| holdings.slab.get(id));
    let score = record.map_or(0, |record| record.score);
    let better = better(board, tables, score);
    let floor = tables.window.floor.millis();
    let slices = record.map(|record| record.slices.as_slice()).unwrap_or_default();
    Standing {
        frame: tables.frame(),
        total: holdings.ranking.len() as u64,
        score: Some(Value::Exact(Amount(score))),
        rank: (score != 0).then_some(better + 1),
        better,
        slots: slices
            .iter()
            .filter(|slice| slice.slot >= floor)
            .map(|slice| (Timestamp::from_millis(slice.slot), Tally::Sum(Amount(slice.amount))))
            .collect(),
        capped: false,
    }
}

/// One subject's amount over the newest slots. O(slots).
pub(super) fn count(board: &Board, tables: &Tables, subject: &Subject, reach: Reach) -> Result<Reading> {
    let (window, starts) = board.window_and_starts(tables.now);
    let beyond = || StoreError::BeyondWindow { floor: window.floor };
    let from = match reach {
        Reach::Slots(count) if count > board.slots() => return Err(beyond()),
        // At the epoch a window has fewer slots than it should.
        Reach::Slots(count) => starts[starts.len().saturating_sub(count.max(1) as usize)],
        Reach::From(time) if time < window.floor => return Err(beyond()),
        Reach::From(time) => board.calendar().slot_of(time).min(window.head),
    };
    let holdings = &tables.holdings;
    let record = holdings.slab.id(subject.as_str()).and_then(|id| holdings.slab.get(id));
    let slices = record.map(|record| record.slices.as_slice()).unwrap_or_default();
    let live = slices.iter().filter(|slice| slice.slot >= from.millis());
    let tallies = live.map(|slice| (Timestamp::from_millis(slice.slot), Tally::Sum(Amount(slice.amount)))).collect();
    let mut frame: Frame = tables.frame();
    frame.window.floor = from;
    let slots = starts.len() - starts.partition_point(|start| *start < from);
    // A window has at most 2,001 slots.
    Ok(Reading { frame, slots: slots as u32, tallies, capped: false })
}

/// The board as a whole. O(slots).
pub(super) fn status(tables: &Tables) -> Status {
    let floor = tables.window.floor.millis();
    let count = |(slot, subjects): (&i64, &Vec<u32>)| (Timestamp::from_millis(*slot), subjects.len() as u64);
    Status {
        frame: tables.frame(),
        total: tables.holdings.ranking.len() as u64,
        slots: tables.holdings.slots.range(floor..).map(count).collect(),
        retiring: tables.holdings.slots.range(..floor).map(count).collect(),
    }
}
