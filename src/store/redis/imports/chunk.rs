//! Division of a piece into scripts, and the entries of each.
//!
//! The division depends on nothing but the piece and the partitions of the board, which never change. So a piece that
//! is sent again is divided in the same way, and the number of a chunk always stands for the same contents.

use crate::board::{Aggregate, DayCount, Kind, Sketch, Subject};
use crate::store::Content;
use crate::store::redis::contents::is_live;
use crate::store::redis::entries::SentEntry;
use crate::store::redis::kinds::{self, Verb, VerbWord};
use crate::store::redis::part::Part;
use crate::store::redis::session::Moment;

/// The largest number of bytes of subjects and values in one script, unless its first content alone has more.
const BYTES: usize = 128 << 10;
/// The same on a board of sketches: uniting four large ones takes 2 to 3 ms.
const SKETCH_BYTES: usize = 4 * (Sketch::MAX_BYTES + 64);
/// The number of each last chunk of a piece, by which it is known that the piece is complete.
pub(super) const LAST: u64 = (1 << 12) - 1;

/// The contents that one script merges.
#[derive(Debug)]
pub(super) struct PieceChunk<'a> {
    pub number: u64,
    pub contents: &'a [&'a (Subject, Content)],
}

/// What a script does about the contents of a chunk.
pub(super) struct Planned<'a> {
    /// Those of the contents that may be merged.
    pub entries: Vec<SentEntry<'a>>,
    pub expired: usize,
    pub refused: usize,
}

/// Returns the bytes of a content that are sent.
fn bytes((subject, content): &(Subject, Content)) -> usize {
    let own = match content {
        Content::Value { value, .. } => value.as_str().len(),
        Content::Cell { aggregate: Aggregate::Sketch(sketch), .. } => sketch.as_bytes().len(),
        _ => 16,
    };
    subject.as_str().len() + own
}

/// Divides the contents of a piece that a part has. There is always a last chunk.
pub(super) fn divide<'a>(part: &Part, contents: &'a [&'a (Subject, Content)]) -> Vec<PieceChunk<'a>> {
    let most = kinds::of(part.track.kind()).limits().ranked_changes;
    let most_bytes = if part.track.kind() == Kind::Sketch { SKETCH_BYTES } else { BYTES };
    let mut chunks = Vec::new();
    let (mut from, mut size) = (0, 0);
    for (i, content) in contents.iter().enumerate() {
        let more = bytes(content);
        if i > from && (i - from >= most || size + more > most_bytes) {
            chunks.push(PieceChunk { number: chunks.len() as u64, contents: &contents[from..i] });
            (from, size) = (i, 0);
        }
        size += more;
    }
    chunks.push(PieceChunk { number: LAST, contents: &contents[from..] });
    chunks
}

/// What counters of persons do to those that there are.
#[derive(Clone, Copy, Debug)]
pub(in crate::store::redis) enum Counters {
    /// They are added.
    Add,
    /// They replace them, so that one that is given twice counts once.
    Replace,
}

/// Decides what to do about the contents of a chunk with this window.
pub(super) fn plan<'a>(moment: &Moment<'_>, chunk: &PieceChunk<'a>, counters: Counters) -> Planned<'a> {
    let mut planned = Planned { entries: Vec::with_capacity(chunk.contents.len()), expired: 0, refused: 0 };
    for (subject, content) in chunk.contents.iter().copied() {
        if !is_live(moment.part, &moment.window, moment.now, content) {
            planned.expired += 1;
            continue;
        }
        match entry(moment, (subject, content), counters) {
            Some(entry) => planned.entries.push(entry),
            None => planned.refused += 1,
        }
    }
    planned
}

/// Returns the entry for a content, or `None` if it is not one of the track: of another kind, of
/// no slot, or of a slot after the head.
fn entry<'a>(
    moment: &Moment<'_>,
    (subject, content): (&'a Subject, &'a Content),
    counters: Counters,
) -> Option<SentEntry<'a>> {
    let track = &moment.part.track;
    let kind = kinds::of(track.kind());
    let by_values = track.kind().remembers_values();
    let (time, verb, a, b, at) = match content {
        Content::Cell { slot, aggregate } if !by_values && kind.is_sound(aggregate) => {
            let (verb, a, b, at) = match aggregate {
                Aggregate::Sum(amount) if track.scale().has_times() => ("merge", VerbWord::Number(amount.0), 0, None),
                Aggregate::Sum(amount) => ("add", VerbWord::Number(amount.0), 0, None),
                Aggregate::Mean { sum, count } => ("merge", VerbWord::Number(sum.0), *count, None),
                Aggregate::Extreme(amount) => ("add", VerbWord::Number(amount.0), 0, None),
                Aggregate::Last { at, value } => ("merge", VerbWord::Number(value.0), 0, Some(*at)),
                Aggregate::Sketch(sketch) => ("merge", VerbWord::Bytes(sketch.as_bytes()), 0, None),
            };
            (*slot, verb, a, b, at)
        }
        Content::Value { value, at, retracted } if let Kind::Capped { .. } = track.kind() => {
            let counter = DayCount::read(value.as_str(), *at)?;
            if *retracted || track.day_of(counter.day) != Some(counter.day) {
                return None;
            }
            let verb = match counters {
                Counters::Add => "merge",
                Counters::Replace => "put",
            };
            (*at, verb, VerbWord::Bytes(value.as_str().as_bytes()), 0, Some(*at))
        }
        Content::Value { value, at, retracted } if by_values => {
            let verb = if *retracted { "gone" } else { "seen" };
            (*at, verb, VerbWord::Bytes(value.as_str().as_bytes()), 0, Some(*at))
        }
        Content::Dropped { at } if by_values => (*at, "dropped", VerbWord::Bytes(b""), 0, Some(*at)),
        _ => return None,
    };
    let slot = track.calendar().slot_of(time);
    let is_slot = slot <= moment.window.head && (by_values || slot == time);
    is_slot.then_some(SentEntry { slot: Some(slot), subject, verb: Verb { verb, a, b }, at, code: 0, id: "" })
}
