//! Encodes an operation as a call of `change.lua`: all changes except amounts added to ranked sums. A board is changed
//! in all its tracks by one call, which has keys and arguments for each track.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use redis::Cmd;

use super::operation::{WriteOperation, most_keys, sizes};
use crate::board::{Board, BoardEdition, Change, Edition, Kind, NotCounted, Subject, Timestamp};
use crate::store::Entry;
use crate::store::redis::expiry;
use crate::store::redis::id_buckets;
use crate::store::redis::kinds::{self, Verb, VerbWord};
use crate::store::redis::numbers::exact_or_refused;
use crate::store::redis::part::Part;

/// On a ranked COUNT_DISTINCT board, the number of newest slots that every call names. They most likely contain the
/// values that are seen again, so that the script rarely reports missing slots.
const LIKELY: usize = 32;

/// What the keys of a call say about one track.
struct NamedKeys {
    /// The position of each slot, from 1.
    slots: BTreeMap<Timestamp, usize>,
    /// The number of keys.
    keys: usize,
    first_subject_key: usize,
    first_bucket_key: usize,
    /// The current expiry period.
    period: Option<i64>,
}

impl WriteOperation<'_, '_, '_> {
    fn board(&self) -> &Board {
        self.lane.flush.partition.board()
    }

    /// Returns the keys that belong to one subject only.
    fn subject_keys(&self, part: &Part, subject: &Subject) -> Vec<String> {
        let keys = &part.keys;
        if part.track.kind().remembers_values() {
            vec![keys.seen(subject), keys.gone(subject)]
        } else if part.track.is_ranked() {
            Vec::new()
        } else {
            vec![keys.subject(subject)]
        }
    }

    /// Returns the slots of a track to name, each with its position from 1.
    fn slots(&self, part: &Part) -> BTreeMap<Timestamp, usize> {
        if part.track.is_from_first() {
            return BTreeMap::new();
        }
        let mut starts: BTreeSet<Timestamp> =
            self.chunk.entries.iter().filter_map(|entry| entry.slots.of(part.track.number())).collect();
        starts.extend(self.lane.needed.get(part.track.number()).into_iter().flatten());
        if part.track.kind().remembers_values() && part.track.is_ranked() {
            let newest = part.window_slots(self.window(part).head).starts;
            starts.extend(newest.iter().rev().take(LIKELY));
        }
        starts.into_iter().zip(1..).collect()
    }

    /// Returns the subjects of a chunk, and the position of each from 1.
    fn subjects(&self) -> (Vec<&Subject>, HashMap<&str, usize>) {
        let chunk = self.chunk;
        let (mut subjects, mut places) = (Vec::new(), HashMap::new());
        let looked_at = chunk.looks.iter().map(|i| &self.lane.flush.item(*i).subject);
        for subject in chunk.entries.iter().map(|entry| entry.subject).chain(looked_at) {
            places.entry(subject.as_str()).or_insert_with(|| {
                subjects.push(subject);
                subjects.len()
            });
        }
        (subjects, places)
    }

    /// Returns the call of `change.lua`.
    pub fn change_command(&self) -> Cmd {
        let (script, chunk) = (self.lane.flush.partition.change_script(), self.chunk);
        let (subjects, places) = self.subjects();
        let has_ids = chunk.entries.iter().any(|entry| entry.id.is_some());
        let parts = self.parts();
        let (mut keys, mut named): (Vec<String>, Vec<NamedKeys>) = Default::default();
        for part in parts {
            named.push(self.name_keys(part, &subjects, has_ids, &mut keys));
        }
        let entries = chunk.entries.len() + chunk.looks.len();
        let slots: usize = named.iter().map(|named| named.slots.len()).sum();
        let arguments = keys.len() + slots + parts.len() * (32 + subjects.len() + 8 * entries);
        let mut command = Cmd::with_capacity(arguments, 64 * arguments);
        command.arg("EVALSHA").arg(script.hash()).arg(keys.len()).arg(&keys);
        let own = |part: &Part, named: &NamedKeys| {
            script.fixed_arguments() + named.slots.len() + subjects.len() + 8 * self.entries(part) + 1
        };
        let sizes = sizes(self.board(), parts.iter().zip(&named).map(|(part, named)| (named.keys, own(part, named))));
        for (part, named) in parts.iter().zip(&named) {
            self.add_arguments(part, named, (&subjects, &places), (has_ids, &sizes), &mut command);
        }
        command
    }

    /// Returns the number of entries that a track gets. Only the first one gets those that only look.
    fn entries(&self, part: &Part) -> usize {
        self.chunk.entries.len() + if part.track.is_main() { self.chunk.looks.len() } else { 0 }
    }

    /// Adds the keys of a track.
    fn name_keys(&self, part: &Part, subjects: &[&Subject], has_ids: bool, all: &mut Vec<String>) -> NamedKeys {
        let own = &part.keys;
        let slots = self.slots(part);
        let mut keys =
            vec![own.meta.clone(), own.index.clone(), own.ranking.clone(), own.buckets.clone(), own.totals.clone()];
        if part.track.is_ranked() {
            keys.extend(slots.keys().map(|start| own.slot(*start)));
        }
        let first_subject_key = keys.len() + 1;
        keys.extend(subjects.iter().flat_map(|subject| self.subject_keys(part, subject)));
        let first_bucket_key = keys.len() + 1;
        if has_ids && part.track.is_main() {
            keys.extend(
                (0..id_buckets::recent(self.board())).map(|back| own.dedupe(self.planned.validity.bucket - back)),
            );
        }
        let now = part.clock.belief(self.lane.session.monotonic()).expected;
        // Only boards that have keys of single subjects have periods.
        let period = expiry::has_subject_keys(&part.track).then(|| expiry::period(&part.track, now));
        if let Some(period) = period {
            keys.extend([own.periods.clone(), own.written(period)]);
        }
        let count = keys.len();
        all.append(&mut keys);
        NamedKeys { slots, keys: count, first_subject_key, first_bucket_key, period }
    }

    /// Adds the arguments of a track.
    fn add_arguments(
        &self,
        part: &Part,
        named: &NamedKeys,
        (subjects, places): (&[&Subject], &HashMap<&str, usize>),
        (has_ids, sizes): (bool, &str),
        command: &mut Cmd,
    ) {
        let (flush, chunk) = (self.lane.flush, self.chunk);
        let NamedKeys { slots, first_subject_key, first_bucket_key, period, .. } = named;
        let gives_scores = !flush.budget.reads_scores;
        let looks = if part.track.is_main() { chunk.looks } else { &[] };
        let entries = self.entries(part);
        let place = |subject: &Subject| places.get(subject.as_str()).copied().unwrap_or_default();
        let mut fixed = self.begin(part, self.lane.flush.partition.change_script(), command);
        fixed.arg("sizes", sizes).arg("bound", part.track.slot_bound().0).arg("most_keys", most_keys(part));
        fixed.arg("slots", slots.len()).arg("subjects", subjects.len()).arg("entries", entries);
        let bucket =
            if has_ids && part.track.is_main() { self.planned.validity.bucket.to_string() } else { String::new() };
        fixed.arg("bucket", bucket).arg("horizon", self.board().dedupe_horizon());
        fixed.arg("first_subject_key", first_subject_key).arg("first_bucket_key", first_bucket_key);
        fixed.arg("buckets", id_buckets::recent(self.board()));
        fixed.arg("oldest", part.kept(&self.window(part)).oldest.millis());
        fixed.arg("period", period.map_or_else(String::new, |period| period.to_string()));
        let edition = part.track.edition();
        let has_two = self.board().other().is_some();
        fixed.arg("edition", if has_two { edition.id().to_string() } else { String::new() });
        fixed.end();
        for start in slots.keys() {
            command.arg(start.millis());
        }
        for subject in subjects {
            command.arg(subject.as_str());
        }
        for entry in chunk.entries {
            let further = entry.items.len().saturating_sub(1);
            let is_scored = part.track.is_main() && gives_scores && flush.wants_score(entry);
            let code = 2 * further + usize::from(is_scored);
            let id = entry.id.filter(|_| part.track.is_main()).map_or("", |id| id.as_str());
            let placed = entry.slots.of(part.track.number()).zip(entry.change(edition.number()));
            let Some((slot, (change, _))) = placed else {
                let (reason, items) = match part.track.is_main_of_edition() {
                    true => self.missed(entry, edition.number()),
                    false => ("", 0),
                };
                command.arg(0).arg(place(entry.subject)).arg("look").arg(reason);
                command.arg(if reason.is_empty() { String::new() } else { items.to_string() });
                command.arg("").arg(code).arg(id);
                continue;
            };
            let usual = kinds::of(part.track.kind()).verb(&change, self.undoes(entry, &edition));
            let Verb { verb, a, b } = match part.track.is_main_of_edition() {
                true => of_total(usual, &change, entry, &edition),
                false => usual,
            };
            let is_summed = entry.sums[edition.number()].is_some();
            let b = if is_summed { exact_or_refused(entry.margin(edition.number())) } else { b };
            command.arg(slots.get(&slot).copied().unwrap_or_default()).arg(place(entry.subject)).arg(verb);
            match a {
                VerbWord::Number(number) => command.arg(number),
                VerbWord::Text(text) => command.arg(text),
            };
            let time = entry.items.first().and_then(|i| flush.item(*i).at);
            command.arg(b).arg(time.map_or_else(String::new, |at| at.millis().to_string()));
            command.arg(code).arg(id);
        }
        for i in looks {
            command.arg(0).arg(place(&flush.item(*i).subject)).arg("look").arg("").arg("").arg("").arg(1).arg("");
        }
        command.arg(kinds::option(&part.track));
    }

    /// Returns the reason why an edition does not count an entry that the other one may count, and the number of its
    /// items to which that applies. A retraction of what has left the window has nothing to change.
    fn missed(&self, entry: &Entry<'_>, edition: usize) -> (&'static str, usize) {
        let Some(reason) = entry.missed[edition].filter(|_| self.board().other().is_some()) else { return ("", 0) };
        let applies = |i: &&usize| reason != NotCounted::TooLate || !self.lane.flush.item(**i).retract;
        let items = entry.items.iter().filter(applies).count();
        if items == 0 { ("", 0) } else { (reason.code(), items) }
    }

    /// Returns whether the entry is a retraction that is not just a negative amount.
    fn undoes(&self, entry: &Entry<'_>, edition: &BoardEdition) -> bool {
        let retracts = entry.items.first().is_some_and(|i| self.lane.flush.item(*i).retract);
        retracts && (entry.sums[edition.number()].is_none() || edition.main().is_from_first())
    }
}

/// Returns the verb of a total for a sample of a slot that is kept beside it, and all others unchanged.
fn of_total<'c>(usual: Verb<'c>, change: &Change, entry: &Entry<'_>, edition: &Edition) -> Verb<'c> {
    let kept_slots = edition.kept_slots().zip(entry.slots.of(edition.numbers().end - 1));
    let (Change::Set { .. }, Some((kept_slots, slot))) = (change, kept_slots) else { return usual };
    // LAST has no number of measurements, but needs to know which totals are of a later slot.
    let b = if edition.kind() == Kind::Last { kept_slots.calendar().next(slot).millis() } else { usual.b };
    Verb { verb: "follow", b, ..usual }
}
