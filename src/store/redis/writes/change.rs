//! Encodes a chunk as a call of `change.lua`: all changes except amounts added to a ranked sum.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use redis::Cmd;

use super::chunk::Chunk;
use super::flush::{Flush, Validity};
use super::operation::Operation;
use crate::board::{Board, Change, Mode, Subject, Timestamp};
use crate::store::Entry;
use crate::store::redis::expiry;
use crate::store::redis::kinds::{self, RedisKind, Verb, Word};
use crate::store::redis::part::Part;
use crate::store::redis::scripts::{FixedArguments, Script};
use crate::store::redis::session::Session;

/// On a ranked COUNT_DISTINCT board, the number of newest slots that every call names. They most likely contain the
/// values that are seen again, so that the script rarely reports missing slots.
const LIKELY: usize = 32;

/// The encoder of the chunks of one plan.
pub(super) struct Encoder<'a, 'f> {
    pub session: &'a Session,
    pub board: &'a Board,
    pub part: &'a Part,
    pub validity: &'a Validity,
    pub flush: &'a Flush<'f>,
    pub operation: Operation<'a>,
    /// Whether the script returns scores. Otherwise they are read after the write.
    pub gives_scores: bool,
    /// Slots that an earlier attempt was found to need.
    pub needed: &'a BTreeSet<Timestamp>,
}

impl Encoder<'_, '_> {
    pub fn script(&self) -> &'static Script {
        kinds::change_script(self.board)
    }

    fn kind(&self) -> &'static dyn RedisKind {
        kinds::of(self.board.kind())
    }

    /// Returns the keys that belong to one subject only.
    fn subject_keys(&self, subject: &Subject) -> Vec<String> {
        let keys = &self.part.keys;
        if self.kind().keeps_values() {
            vec![keys.seen(subject), keys.gone(subject)]
        } else if self.board.is_ranked() {
            Vec::new()
        } else {
            vec![keys.subject(subject)]
        }
    }

    /// Returns the slots to name, each with its position from 1.
    fn slots(&self, chunk: &Chunk<'_, '_>) -> BTreeMap<Timestamp, usize> {
        if self.board.definition().mode == Mode::FromFirst {
            return BTreeMap::new();
        }
        let mut starts: BTreeSet<Timestamp> = chunk.entries.iter().map(|entry| entry.slots.first()).collect();
        starts.extend(self.needed);
        if self.kind().keeps_values() && self.board.is_ranked() {
            let (_, window) = self.board.window_and_starts(self.validity.preamble.window.head);
            starts.extend(window.iter().rev().take(LIKELY));
        }
        starts.into_iter().zip(1..).collect()
    }

    /// Returns the current expiry period, on boards that have keys of single subjects.
    fn period(&self) -> Option<i64> {
        let now = self.part.estimate(self.session.monotonic()).0;
        expiry::has_subject_keys(self.board).then(|| expiry::period(self.board, now))
    }

    pub fn encode(&self, chunk: &Chunk<'_, '_>) -> Cmd {
        let Encoder { session, board, part, validity, flush, .. } = self;
        let slots = self.slots(chunk);
        let mut subjects: Vec<&Subject> = Vec::new();
        let mut places: HashMap<&str, usize> = HashMap::new();
        let looked_at = chunk.looks.iter().map(|i| &flush.item(*i).subject);
        for subject in chunk.entries.iter().map(|entry| entry.subject).chain(looked_at) {
            places.entry(subject.as_str()).or_insert_with(|| {
                subjects.push(subject);
                subjects.len()
            });
        }
        let place = |subject: &Subject| places.get(subject.as_str()).copied().unwrap_or_default();
        let has_ids = chunk.entries.iter().any(|entry| entry.id.is_some());

        let script = self.script();
        let mut keys = vec![
            part.keys.meta.clone(),
            part.keys.index.clone(),
            part.keys.ranking.clone(),
            part.keys.buckets.clone(),
            part.keys.totals.clone(),
        ];
        debug_assert_eq!(keys.len(), script.fixed_keys());
        if board.is_ranked() {
            keys.extend(slots.keys().map(|start| part.keys.slot(*start)));
        }
        let first_subject_key = keys.len() + 1;
        keys.extend(subjects.iter().flat_map(|subject| self.subject_keys(subject)));
        let first_bucket_key = keys.len() + 1;
        if has_ids {
            keys.extend((0..3).map(|back| part.keys.dedupe(validity.bucket - back)));
        }

        let period = self.period();
        if let Some(period) = period {
            keys.extend([part.keys.periods.clone(), part.keys.written(period)]);
        }

        let entries = chunk.entries.len() + chunk.looks.len();
        let arguments = 32 + keys.len() + slots.len() + subjects.len() + 8 * entries;
        let mut command = Cmd::with_capacity(arguments, 64 * arguments);
        command.arg("EVALSHA").arg(script.hash()).arg(keys.len()).arg(&keys);
        let mut fixed = FixedArguments::new(script, &mut command);
        for (name, argument) in session.preamble(part, &validity.preamble) {
            fixed.arg(name, argument);
        }
        fixed.arg("sequence", self.operation.sequence).arg("write_lane", self.operation.lane());
        fixed.arg("bound", board.slot_bound().0);
        fixed.arg("slots", slots.len()).arg("subjects", subjects.len()).arg("entries", entries);
        fixed.arg("bucket", if has_ids { validity.bucket.to_string() } else { String::new() });
        fixed.arg("horizon", board.dedupe_horizon());
        fixed.arg("first_subject_key", first_subject_key).arg("first_bucket_key", first_bucket_key);
        fixed.arg("oldest", part.kept(&validity.preamble.window).oldest.millis());
        fixed.arg("period", period.map_or_else(String::new, |period| period.to_string()));
        fixed.end();
        for start in slots.keys() {
            command.arg(start.millis());
        }
        for subject in &subjects {
            command.arg(subject.as_str());
        }
        for entry in chunk.entries {
            let summed = Change::Amount(entry.amount);
            let change = entry.sent.map_or(&summed, |sent| &sent.change);
            let Verb { verb, a, b } = self.kind().verb(change, self.undoes(entry));
            command
                .arg(slots.get(&entry.slots.first()).copied().unwrap_or_default())
                .arg(place(entry.subject))
                .arg(verb);
            match a {
                Word::Number(number) => command.arg(number),
                Word::Text(text) => command.arg(text),
            };
            let time = entry.items.first().and_then(|i| flush.item(*i).at);
            command.arg(b).arg(time.map_or_else(String::new, |at| at.millis().to_string()));
            let further = entry.items.len().saturating_sub(1);
            command.arg(2 * further + usize::from(self.gives_scores && flush.wants_score(entry)));
            command.arg(entry.id.map_or("", |id| id.as_str()));
        }
        for i in chunk.looks {
            command.arg(0).arg(place(&flush.item(*i).subject)).arg("look").arg("").arg("").arg("").arg(1).arg("");
        }
        command.arg(kinds::option(board));
        command
    }

    /// Returns whether the entry is a retraction that is not just a negative amount.
    fn undoes(&self, entry: &Entry<'_>) -> bool {
        let retracts = entry.items.first().is_some_and(|i| self.flush.item(*i).retract);
        retracts && (entry.sent.is_some() || self.board.definition().mode == Mode::FromFirst)
    }
}
