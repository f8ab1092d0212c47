//! Division of a piece into scripts, and the entries of each.
//!
//! The division depends on nothing but the piece and the partitions of the board, which never change. So a piece that
//! is sent again is divided in the same way, and the number of a chunk always stands for the same contents.

use std::collections::{BTreeMap, HashMap};

use crate::board::{Aggregate, Kind, Sketch, Subject, Timestamp};
use crate::store::Content;
use crate::store::redis::contents::is_live;
use crate::store::redis::kinds;
use crate::store::redis::part::Part;
use crate::store::redis::scripts::ScriptCall;
use crate::store::redis::session::Moment;

/// The largest number of bytes of subjects and values in one script, unless its first content alone has more.
const BYTES: usize = 128 << 10;
/// The same on a board of sketches: uniting four large ones takes 2 to 3 ms.
const SKETCH_BYTES: usize = 4 * (Sketch::MAX_BYTES + 64);
/// The number of each last chunk of a piece, by which it is known that the piece is complete.
pub(super) const LAST: u64 = (1 << 12) - 1;

/// The contents that one script merges.
#[derive(Debug)]
pub(super) struct Chunk<'a> {
    pub number: u64,
    pub contents: &'a [&'a (Subject, Content)],
}

/// What a script does about the contents of a chunk.
pub(super) struct Planned<'a> {
    entries: Vec<Entry<'a>>,
    pub expired: usize,
    pub refused: usize,
}

/// One content that may be merged.
struct Entry<'a> {
    subject: &'a Subject,
    slot: Timestamp,
    verb: &'static str,
    a: Vec<u8>,
    b: i64,
    at: Option<Timestamp>,
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
pub(super) fn divide<'a>(part: &Part, contents: &'a [&'a (Subject, Content)]) -> Vec<Chunk<'a>> {
    let most = kinds::of(part.track.kind()).limits().ranked_changes;
    let most_bytes = if part.track.kind() == Kind::Sketch { SKETCH_BYTES } else { BYTES };
    let mut chunks = Vec::new();
    let (mut from, mut size) = (0, 0);
    for (i, content) in contents.iter().enumerate() {
        let more = bytes(content);
        if i > from && (i - from >= most || size + more > most_bytes) {
            chunks.push(Chunk { number: chunks.len() as u64, contents: &contents[from..i] });
            (from, size) = (i, 0);
        }
        size += more;
    }
    chunks.push(Chunk { number: LAST, contents: &contents[from..] });
    chunks
}

/// Decides what to do about the contents of a chunk with this window.
pub(super) fn plan<'a>(moment: &Moment<'_>, chunk: &Chunk<'a>) -> Planned<'a> {
    let mut planned = Planned { entries: Vec::with_capacity(chunk.contents.len()), expired: 0, refused: 0 };
    for (subject, content) in chunk.contents.iter().copied() {
        if !is_live(moment.part, &moment.window, moment.now, content) {
            planned.expired += 1;
            continue;
        }
        match entry(moment, subject, content) {
            Some(entry) => planned.entries.push(entry),
            None => planned.refused += 1,
        }
    }
    planned
}

/// Returns the entry for a content, or `None` if it is not one of the track: of another kind, of
/// no slot, or of a slot after the head.
fn entry<'a>(moment: &Moment<'_>, subject: &'a Subject, content: &'a Content) -> Option<Entry<'a>> {
    let track = &moment.part.track;
    let kind = kinds::of(track.kind());
    let by_values = track.kind().remembers_values();
    let (time, verb, a, b, at) = match content {
        Content::Cell { slot, aggregate } if !by_values && kind.is_sound(aggregate) => {
            let number = |number: i64| number.to_string().into_bytes();
            let (verb, a, b, at) = match aggregate {
                Aggregate::Sum(amount) => ("add", number(amount.0), 0, None),
                Aggregate::Mean { sum, count } => ("merge", number(sum.0), *count, None),
                Aggregate::Extreme(amount) => ("add", number(amount.0), 0, None),
                Aggregate::Last { at, value } => ("merge", number(value.0), 0, Some(*at)),
                Aggregate::Sketch(sketch) => ("merge", sketch.as_bytes().to_vec(), 0, None),
            };
            (*slot, verb, a, b, at)
        }
        Content::Value { value, at, retracted } if by_values => {
            (*at, if *retracted { "gone" } else { "seen" }, value.as_str().as_bytes().to_vec(), 0, Some(*at))
        }
        Content::Dropped { at } if by_values => (*at, "dropped", Vec::new(), 0, Some(*at)),
        _ => return None,
    };
    let slot = track.calendar().slot_of(time);
    let is_slot = slot <= moment.window.head && (by_values || slot == time);
    if !is_slot {
        return None;
    }
    Some(Entry { subject, slot, verb, a, b, at })
}

impl Planned<'_> {
    /// Returns the slots of the entries and these further ones, each with its position from 1.
    pub fn slots(&self, further: impl IntoIterator<Item = Timestamp>) -> BTreeMap<Timestamp, usize> {
        let mut slots: BTreeMap<Timestamp, usize> =
            self.entries.iter().map(|entry| (entry.slot, 0)).chain(further.into_iter().map(|slot| (slot, 0))).collect();
        slots.values_mut().zip(1..).for_each(|(place, position)| *place = position);
        slots
    }

    /// Returns the subjects of the entries, and the position of each from 1.
    pub fn subjects(&self) -> (Vec<&Subject>, HashMap<&str, usize>) {
        let (mut subjects, mut places) = (Vec::new(), HashMap::new());
        for entry in &self.entries {
            places.entry(entry.subject.as_str()).or_insert_with(|| {
                subjects.push(entry.subject);
                subjects.len()
            });
        }
        (subjects, places)
    }

    /// Returns the number of entries.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Adds the entries to the arguments of `merge.lua`.
    pub fn add_to(&self, call: &mut ScriptCall, slots: &BTreeMap<Timestamp, usize>, places: &HashMap<&str, usize>) {
        for entry in &self.entries {
            call.more(slots.get(&entry.slot).copied().unwrap_or_default());
            call.more(places.get(entry.subject.as_str()).copied().unwrap_or_default());
            call.more(entry.verb).raw(entry.a.clone()).more(entry.b);
            call.more(entry.at.map_or_else(String::new, |at| at.millis().to_string())).more("").more("");
        }
    }
}
