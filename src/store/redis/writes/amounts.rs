//! Encodes a chunk as a call of `write.lua`, which adds amounts to ranked sums; or of `add.lua`, which does the same in
//! the most frequent, simple case.

use std::collections::HashMap;
use std::sync::Arc;

use redis::Cmd;

use super::operation::{WriteOperation, most_keys};
use super::plan::Validity;
use crate::board::{Amount, NotCounted, Timestamp};
use crate::store::redis::id_buckets;
use crate::store::redis::numbers::exact_or_refused;
use crate::store::redis::part::Part;
use crate::store::redis::scripts::{ADD, WRITE};
use crate::store::{Entry, Slots, Sum};

/// What a call of `write.lua` says about one track.
struct TrackCodes {
    slots: Vec<Timestamp>,
    codes: Option<Vec<i64>>,
}

impl WriteOperation<'_, '_, '_> {
    /// Returns the slot in each track if all entries are amounts without ids for different subjects of one slot, every
    /// track has this slot, and no score is wanted.
    pub fn common_slots(&self) -> Option<&Slots> {
        let entries = self.chunk.entries;
        let slots = &entries.first().filter(|_| !self.planned.singly)?.slots;
        let is_in_all = (0..self.planned.validity.windows.len()).all(|track| slots.of(track).is_some());
        let is_plain = |entry: &Entry<'_>| {
            entry.slots == *slots && entry.id.is_none() && margin(entry) == 0 && !self.lane.flush.wants_score(entry)
        };
        // One argument says for all tracks which ranks are noted.
        let first = &self.parts()[0].track;
        let is_noted_alike =
            |part: &Arc<Part>| part.track.boundaries().is_none() || part.track.boundaries() == first.boundaries();
        let is_usual = is_in_all && self.parts().iter().all(is_noted_alike);
        (is_usual && entries.iter().all(is_plain)).then_some(slots)
    }

    /// Returns the call of `add.lua`.
    pub fn add_command(&self, slots: &Slots) -> Cmd {
        let parts = self.parts();
        let mut entries: Vec<&Entry<'_>> = self.chunk.entries.iter().collect();
        let mut keys: Vec<(&str, usize)> = Vec::new();
        if self.lane.flush.partition.board().has_keys() {
            entries.sort_unstable_by_key(|entry| entry.subject);
            for key in entries.iter().filter_map(|entry| entry.subject.key()) {
                match keys.last_mut() {
                    Some((last, subjects)) if *last == key => *subjects += 1,
                    _ => keys.push((key, 1)),
                }
            }
        }
        let slot = |part: &Part| slots.of(part.track.number()).unwrap_or_default();
        let bytes: usize = entries.iter().map(|entry| entry.subject.as_str().len() + 16).sum();
        let arguments = 20 + 7 * parts.len() + 3 * entries.len() + 2 * keys.len();
        let mut command = Cmd::with_capacity(arguments, 2 * bytes + 256 + 256 * parts.len());
        command.arg("EVALSHA").arg(ADD.hash()).arg(3 * parts.len() + usize::from(self.fence.is_some()));
        for part in parts {
            command.arg(&part.keys.meta).arg(part.keys.slot(slot(part))).arg(&part.keys.ranking);
        }
        self.add_fence_key(&mut command);
        let items: usize = entries.iter().map(|entry| entry.items.len()).sum();
        let mut fixed = self.begin(&parts[0], &ADD, &mut command);
        fixed
            .arg("items", items)
            .arg("tracks", parts.len())
            .arg("keys", keys.len())
            .arg("fence", self.fence_argument())
            .end();
        for part in parts {
            command.arg(part.generation().to_string()).arg(self.window(part).head.millis());
            command.arg(part.track.slot_bound().0).arg(slot(part).millis());
        }
        for entry in &entries {
            command.arg(entry.subject.as_str());
        }
        for entry in &entries {
            command.arg(held(entry));
        }
        if !keys.is_empty() {
            for entry in &entries {
                command.arg(entry.subject.name());
            }
        }
        for (key, subjects) in keys {
            command.arg(key).arg(subjects);
        }
        command
    }

    /// Returns the call of `write.lua`. It is built directly, because a chunk may have thousands of arguments.
    pub fn write_command(&self) -> Cmd {
        let (parts, entries) = (self.parts(), self.chunk.entries);
        let has_ids = entries.iter().any(|entry| entry.id.is_some());
        let board = self.lane.flush.partition.board();
        let Validity { bucket, .. } = self.planned.validity;
        let buckets = if has_ids { id_buckets::recent(board) } else { 0 };
        let horizon = board.dedupe_horizon();
        let named: Vec<TrackCodes> = (0..parts.len()).map(|track| self.named(track, parts.len(), has_ids)).collect();
        let bytes: usize =
            entries.iter().map(|e| e.subject.as_str().len() + e.id.map_or(0, |id| id.as_str().len()) + 16).sum();
        let slots: usize = named.iter().map(|named| named.slots.len()).sum();
        let arguments = 40 * parts.len() + 2 * slots + (3 + parts.len()) * entries.len();
        let mut command = Cmd::with_capacity(arguments, bytes + 128 * (slots + 16 * parts.len()));

        let own_keys = |number: usize| {
            WRITE.fixed_keys() + named[number].slots.len() + if number == 0 { buckets as usize } else { 0 }
        };
        command
            .arg("EVALSHA")
            .arg(WRITE.hash())
            .arg((0..parts.len()).map(own_keys).sum::<usize>() + usize::from(self.fence.is_some()));
        for (part, named) in parts.iter().zip(&named) {
            let (keys, is_main) = (&part.keys, part.track.is_main());
            command.arg(&keys.of_board());
            for slot in &named.slots {
                command.arg(keys.slot(*slot));
            }
            for back in 0..if is_main { buckets } else { 0 } {
                command.arg(keys.dedupe(bucket - back));
            }
        }
        self.add_fence_key(&mut command);
        let own_arguments = |number: usize| {
            let TrackCodes { slots, codes } = &named[number];
            let lists = usize::from(codes.is_some()) + if number == 0 { 2 + usize::from(has_ids) } else { 0 };
            WRITE.fixed_arguments() + slots.len() + lists * entries.len()
        };
        let sizes = self.sizes((0..parts.len()).map(|number| (own_keys(number), own_arguments(number))));
        for (part, TrackCodes { slots, codes }) in parts.iter().zip(&named) {
            let is_main = part.track.is_main();
            let mut fixed = self.begin(part, &WRITE, &mut command);
            fixed.arg("sizes", &sizes).arg("bound", part.track.slot_bound().0);
            fixed.arg("most_keys", most_keys(part));
            fixed.arg("slots", slots.len()).arg("entries", entries.len());
            fixed.arg("coded", if codes.is_some() { "coded" } else { "" });
            fixed.arg("bucket", if has_ids { bucket.to_string() } else { String::new() });
            fixed.arg("buckets", buckets).arg("horizon", horizon);
            fixed.arg("items", if is_main { self.numbers(|entry| entry.items.len() as i64, 1) } else { String::new() });
            let has_two = board.other().is_some();
            fixed.arg("edition", if has_two { part.track.edition().id().to_string() } else { String::new() });
            fixed.arg("margins", if is_main { self.numbers(margin, 0) } else { String::new() });
            fixed.arg("fence", self.fence_argument());
            fixed.end();
            for slot in slots {
                command.arg(slot.millis());
            }
            if is_main {
                for entry in entries {
                    command.arg(entry.subject.as_str());
                }
                for entry in entries {
                    command.arg(held(entry));
                }
            }
            for code in codes.iter().flatten() {
                command.arg(*code);
            }
            if is_main && has_ids {
                for entry in entries {
                    command.arg(entry.id.map_or("", |id| id.as_str()));
                }
            }
        }
        command
    }

    /// Returns the slots of a track that the entries change, and a code for each entry if they are required.
    fn named(&self, track: usize, tracks: usize, has_ids: bool) -> TrackCodes {
        let mut slots: Vec<Timestamp> = Vec::new();
        let mut places: HashMap<Timestamp, i64> = HashMap::new();
        let mut codes = Vec::with_capacity(self.chunk.entries.len());
        let part = &self.parts()[track];
        let edition = part.track.is_main_of_edition().then(|| part.track.edition().number());
        for entry in self.chunk.entries {
            let place = match entry.slots.of(track) {
                Some(slot) => *places.entry(slot).or_insert_with(|| {
                    slots.push(slot);
                    slots.len() as i64 - 1
                }),
                None => match edition.and_then(|edition| entry.missed[edition]) {
                    // As `REASONS` of the script.
                    Some(NotCounted::Filtered) => -2,
                    Some(NotCounted::NotAccepted) => -3,
                    _ => -1,
                },
            };
            // Only with ids or several tracks there may be several entries of a subject in one slot, of which some have
            // to wait for the items of a sum.
            let is_awaited = (has_ids || tracks > 1) && entry.items.len() > 1;
            let flags =
                if track == 0 { 2 * i64::from(is_awaited) + i64::from(self.lane.flush.wants_score(entry)) } else { 0 };
            codes.push(4 * place + flags);
        }
        let are_required = slots.len() != 1 || codes.iter().any(|code| *code != 0);
        TrackCodes { slots, codes: are_required.then_some(codes) }
    }

    /// Returns a number of each entry, separated by commas, or an empty text if all have the usual one.
    fn numbers(&self, of: impl Fn(&Entry<'_>) -> i64, usual: i64) -> String {
        let entries = self.chunk.entries;
        if entries.iter().all(|entry| of(entry) == usual) {
            return String::new();
        }
        let numbers: Vec<String> = entries.iter().map(|entry| of(entry).to_string()).collect();
        numbers.join(",")
    }
}

/// Returns the amount of an entry as [`exact_or_refused`].
fn held(entry: &Entry<'_>) -> i64 {
    exact_or_refused(entry.first_sum().map_or(Amount(0), |sum| sum.amount).0)
}

/// Returns the margin of an entry in the same way.
fn margin(entry: &Entry<'_>) -> i64 {
    exact_or_refused(entry.first_sum().map_or(0, Sum::margin))
}
