//! Reads of one subject's slots and of the values it was seen with. Each function sees a single instant, because its
//! caller holds the board's lock.

use super::ranking_reads;
use super::track_data::TrackData;
use crate::board::{Counted, Subject, Timestamp, Track, Window};
use crate::store::{Result, SlotContents, SlotQuery, SlotRange, StoreError, Values, ValuesStart};

/// Returns what a subject has in the requested slots. O(slots found), or O(slots of the window) for a past window.
pub(super) fn read(track: &Track, data: &TrackData, query: &SlotQuery) -> Result<SlotContents> {
    let subject = query.track.stored(&query.subject);
    if data.holdings.traits.counter_duration.is_some() {
        return Ok(counter(data, &subject));
    }
    let (window, slots) = match query.as_of {
        Some(time) => past_window(track, data, query.range, time)?,
        None => current_window(track, data, query.range)?,
    };
    let aggregates = data.holdings.aggregates(subject.as_str().into(), window.floor.millis(), window.head.millis());
    let capped = ranking_reads::capped_from(data, &subject, window.floor);
    let mut frame = data.frame();
    frame.window = window;
    Ok(SlotContents { frame, slots, aggregates, capped })
}

/// Returns the requested part of the current window and its number of slots.
fn current_window(track: &Track, data: &TrackData, range: SlotRange) -> Result<(Window, u32)> {
    let window = data.window;
    let starts = &data.starts;
    let beyond = || StoreError::BeyondWindow { floor: window.floor };
    let floor = match range {
        SlotRange::Slots(count) if !(1..=track.slots()).contains(&count) => return Err(beyond()),
        // Near the epoch a window has fewer slots than usual.
        SlotRange::Slots(count) => starts[starts.len().saturating_sub(count as usize)],
        SlotRange::From(time) if time < window.floor => return Err(beyond()),
        SlotRange::From(time) => track.calendar().slot_of(time).min(window.head),
    };
    let slots = starts.len() - starts.partition_point(|start| *start < floor);
    // A window has at most 2,001 slots.
    Ok((Window { floor, ..window }, slots as u32))
}

/// Returns the window that ends with the slot of `time`, and its number of slots. All its slots must still be kept, and
/// there may be no more of them than a window has.
fn past_window(track: &Track, data: &TrackData, range: SlotRange, time: Timestamp) -> Result<(Window, u32)> {
    let calendar = track.calendar();
    let oldest = Timestamp::from_millis(data.holdings.oldest_kept);
    let beyond = || StoreError::BeyondWindow { floor: oldest };
    let head = calendar.slot_of(time);
    if time > data.now || head < oldest {
        return Err(beyond());
    }
    let (most, from) = match range {
        SlotRange::Slots(count) => (count, None),
        SlotRange::From(time) => (track.slots(), Some(calendar.slot_of(time).min(head))),
    };
    if !(1..=track.slots()).contains(&most) {
        return Err(beyond());
    }
    let (mut floor, mut slots) = (head, 1);
    while from.map_or(slots < most, |from| floor > from) {
        let before = calendar.previous(floor);
        if before == floor {
            break; // there is no slot before the epoch
        }
        (floor, slots) = (before, slots + 1);
        if floor < oldest || slots > most {
            return Err(beyond());
        }
    }
    Ok((Window { floor, head, end: track.end_of(head) }, slots))
}

/// Returns the current counter of a subject of a `from_first` board, or contents without an aggregate if there is none.
fn counter(data: &TrackData, subject: &Subject) -> SlotContents {
    let duration = data.holdings.traits.counter_duration.unwrap_or_default();
    let aggregates = ranking_reads::live_aggregates(data, subject);
    let start = aggregates.first().map_or(data.now, |(start, _)| *start);
    let mut frame = data.frame();
    frame.window = Window { floor: start, head: start, end: start.plus_millis(duration) };
    SlotContents { frame, slots: 1, aggregates, capped: false }
}

/// Returns a page of the values that a subject was seen with in the window. O(values / 128 + limit).
pub(super) fn values(data: &TrackData, subject: &Subject, start: &ValuesStart, limit: u32) -> Values {
    let floor = data.window.floor.millis();
    let frame = data.frame();
    let capped = ranking_reads::capped_from(data, subject, data.window.floor);
    let values =
        data.holdings.last_seen(subject.as_str().into()).filter(|_| data.holdings.traits.kind.remembers_values());
    let Some(values) = values else { return Values { frame, total: 0, first: 0, items: Vec::new(), capped } };
    let total = values.count_from(false, floor) as u64;
    let skipped = match start {
        ValuesStart::Offset(offset) => usize::try_from(*offset).unwrap_or(usize::MAX),
        ValuesStart::After(place) => values.count_from_place(place.last_seen.millis(), place.value.as_str()),
    };
    let live = values.newest(skipped).take_while(|seen| seen.at >= floor);
    let item =
        |seen: super::last_seen::SeenValue<'_>| (Counted::from_stored(seen.value), Timestamp::from_millis(seen.at));
    Values {
        frame,
        total,
        first: total.min(skipped as u64),
        items: live.take(limit as usize).map(item).collect(),
        capped,
    }
}
