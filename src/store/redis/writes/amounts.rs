//! Encodes a chunk as a call of `write.lua`, which adds amounts to ranked sums in any order; or of `add.lua`, which
//! does the same in the most frequent, simple case, and `add_windows.lua`, which does it on boards with further windows.

use std::collections::HashMap;

use redis::Cmd;

use super::chunk::Chunk;
use super::flush::{Flush, Validity};
use super::operation::Operation;
use crate::board::{Board, Timestamp};
use crate::store::redis::id_buckets;
use crate::store::redis::numbers::exact_or_refused;
use crate::store::redis::part::Part;
use crate::store::redis::scripts::{ADD, ADD_WINDOWS, FixedArguments, Script, WRITE};
use crate::store::redis::session::Session;
use crate::store::{Entry, Slots};

/// The encoder of a chunk of amounts.
pub(super) struct Amounts<'a, 'f, 'c> {
    pub session: &'a Session,
    pub board: &'a Board,
    pub part: &'a Part,
    pub validity: &'a Validity,
    pub flush: &'a Flush<'f>,
    pub chunk: &'a Chunk<'c, 'f>,
    pub operation: Operation<'a>,
    /// Whether a subject may occur twice in a slot, because items are tried one by one.
    pub alone: bool,
}

/// Returns the slot in each window that all entries have in common, if there is one in every window and no entry has an id
/// or a margin.
pub(super) fn common_slots<'e>(board: &Board, entries: &'e [Entry<'_>]) -> Option<&'e Slots> {
    let slots = &entries.first()?.slots;
    let is_in_all = (0..=board.further().len()).all(|window| slots.of(window).is_some());
    let is_plain = |entry: &Entry<'_>| entry.slots == *slots && entry.id.is_none() && entry.margin() == 0;
    (is_in_all && entries.iter().all(is_plain)).then_some(slots)
}

impl Amounts<'_, '_, '_> {
    /// Returns the slot in each window if all entries are amounts without ids for different subjects of one slot, every
    /// window has this slot, and no score is wanted.
    pub fn only_slots(&self) -> Option<&Slots> {
        let wants_score = self.chunk.entries.iter().any(|entry| self.flush.wants_score(entry));
        common_slots(self.board, self.chunk.entries).filter(|_| !self.alone && !wants_score)
    }

    /// Returns the script that adds such amounts.
    pub fn add_script(&self) -> &'static Script {
        if self.part.further.is_empty() { &ADD } else { &ADD_WINDOWS }
    }

    /// Returns the call of that script.
    pub fn add(&self, slots: &Slots) -> Cmd {
        let Amounts { board, part, validity, chunk, .. } = self;
        let (script, slot) = (self.add_script(), slots.first());
        let windows = part.further.len();
        let bytes: usize = chunk.entries.iter().map(|entry| entry.subject.as_str().len() + 16).sum();
        let mut command = Cmd::with_capacity(20 + 7 * windows + 2 * chunk.entries.len(), bytes + 512 + 256 * windows);
        command.arg("EVALSHA").arg(script.hash()).arg(3 * (1 + windows));
        command.arg(&part.keys.meta).arg(part.keys.slot(slot)).arg(&part.keys.ranking);
        for (keys, number) in part.further.iter().zip(1..) {
            command.arg(&keys.meta).arg(keys.slot(slots.of(number).unwrap_or_default())).arg(&keys.ranking);
        }
        let items: usize = chunk.entries.iter().map(|entry| entry.items.len()).sum();
        let mut fixed = self.fixed(script, &mut command);
        fixed.arg("slot", slot.millis()).arg("items", items);
        if windows > 0 {
            fixed.arg("further", windows);
        }
        fixed.end();
        for ((window, at), number) in board.further().iter().zip(&validity.further).zip(1..) {
            command.arg(window.generation().to_string()).arg(at.head.millis()).arg(window.slot_bound().0);
            command.arg(slots.of(number).unwrap_or_default().millis());
        }
        for entry in chunk.entries {
            command.arg(entry.subject.as_str());
        }
        for entry in chunk.entries {
            command.arg(held(entry));
        }
        command
    }

    /// Returns the call of `write.lua`. It is built directly, because a chunk may have thousands of arguments.
    pub fn write(&self) -> Cmd {
        let Amounts { board, part, validity, chunk, .. } = self;
        let mut slots: Vec<Timestamp> = Vec::new();
        let mut places: HashMap<Timestamp, usize> = HashMap::new();
        let (mut bytes, mut has_ids) = (0, false);
        for entry in chunk.entries {
            bytes += entry.subject.as_str().len() + entry.id.map_or(0, |id| id.as_str().len()) + 16;
            has_ids |= entry.id.is_some();
            places.entry(entry.slots.first()).or_insert_with(|| {
                slots.push(entry.slots.first());
                slots.len() - 1
            });
        }
        let code = |entry: &Entry<'_>| {
            // Only items with ids divide the amounts of a subject, so that some may have to wait for the items of a sum.
            let (is_sum, wanted) = (has_ids && entry.items.len() > 1, self.flush.wants_score(entry));
            4 * places.get(&entry.slots.first()).copied().unwrap_or_default()
                + 2 * usize::from(is_sum)
                + usize::from(wanted)
        };
        // Codes are also required if a subject may occur twice, as with ids or with items that are tried one by one.
        let coded = has_ids || self.alone || slots.len() != 1 || chunk.entries.iter().any(|entry| code(entry) != 0);
        let buckets = if has_ids { id_buckets::recent(board) } else { 0 };
        let arguments = 40 + 2 * slots.len() + 4 * chunk.entries.len();
        let mut command = Cmd::with_capacity(arguments, bytes + 128 * (slots.len() + 16));

        let keys = &part.keys;
        let count = (WRITE.fixed_keys() + slots.len()) as i64 + buckets;
        command.arg("EVALSHA").arg(WRITE.hash()).arg(count);
        command.arg(&keys.meta).arg(&keys.index).arg(&keys.ranking).arg(&keys.buckets).arg(&keys.totals);
        for slot in &slots {
            command.arg(keys.slot(*slot));
        }
        for back in 0..buckets {
            command.arg(keys.dedupe(validity.bucket - back));
        }
        let mut fixed = self.fixed(&WRITE, &mut command);
        fixed.arg("slots", slots.len()).arg("entries", chunk.entries.len());
        fixed.arg("coded", if coded { "coded" } else { "" });
        fixed.arg("bucket", if has_ids { validity.bucket.to_string() } else { String::new() });
        fixed.arg("horizon", board.dedupe_horizon());
        fixed.arg("items", self.numbers(|entry| entry.items.len() as i64, 1));
        fixed.arg("margins", self.numbers(|entry| exact_or_refused(entry.margin()), 0));
        fixed.end();
        for slot in &slots {
            command.arg(slot.millis());
        }
        for entry in chunk.entries {
            command.arg(entry.subject.as_str());
        }
        for entry in chunk.entries {
            command.arg(held(entry));
        }
        if coded {
            for entry in chunk.entries {
                command.arg(code(entry));
            }
        }
        if has_ids {
            for entry in chunk.entries {
                command.arg(entry.id.map_or("", |id| id.as_str()));
            }
        }
        command
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

    /// Adds the arguments that both scripts begin with.
    fn fixed<'c>(&self, script: &'static Script, command: &'c mut Cmd) -> FixedArguments<'c> {
        let mut fixed = FixedArguments::new(script, command);
        for (name, argument) in self.session.preamble(self.part, &self.validity.preamble) {
            fixed.arg(name, argument);
        }
        fixed.arg("sequence", self.operation.sequence).arg("write_lane", self.operation.lane());
        fixed.arg("bound", self.board.slot_bound().0);
        fixed
    }
}

/// Returns the amount of an entry as [`exact_or_refused`].
fn held(entry: &Entry<'_>) -> i64 {
    exact_or_refused(entry.amount.0)
}
