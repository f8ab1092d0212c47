//! Encodes a chunk as a call of `change.lua`: all changes except amounts added to a ranked sum. A board with further
//! windows is changed in all of them by one call, which has keys and arguments for each window.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use redis::Cmd;

use super::chunk::Chunk;
use super::flush::{Flush, Validity};
use super::operation::Operation;
use crate::board::{Board, Change, Kind, Mode, Subject, Timestamp};
use crate::store::Entry;
use crate::store::redis::expiry;
use crate::store::redis::id_buckets;
use crate::store::redis::keys::BoardKeys;
use crate::store::redis::kinds::{self, RedisKind, Verb, Word};
use crate::store::redis::numbers::exact_or_refused;
use crate::store::redis::part::Part;
use crate::store::redis::scripts::{FixedArguments, Script};
use crate::store::redis::session::{Preamble, Session};

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
    pub needed: &'a Needed,
}

/// The slots that earlier attempts were found to need, for each window of the board.
pub(super) type Needed = Vec<BTreeSet<Timestamp>>;

/// One window of the board.
struct InWindow<'a> {
    /// 0 for the main window.
    number: usize,
    board: &'a Board,
    keys: &'a BoardKeys,
    preamble: Preamble,
}

/// What the keys of a call say about one window.
struct Named {
    /// The position of each slot, from 1.
    slots: BTreeMap<Timestamp, usize>,
    /// The number of keys.
    keys: usize,
    first_subject_key: usize,
    first_bucket_key: usize,
    /// The current expiry period.
    period: Option<i64>,
}

/// Returns the argument `sizes` of the scripts that change several tracks, given the numbers of keys and arguments of each.
pub(super) fn sizes(tracks: impl ExactSizeIterator<Item = (usize, usize)>) -> String {
    if tracks.len() == 1 {
        return String::new();
    }
    let sizes: Vec<String> = tracks.map(|(keys, arguments)| format!("{keys},{arguments}")).collect();
    sizes.join(" ")
}

impl InWindow<'_> {
    fn is_main(&self) -> bool {
        self.number == 0
    }
}

impl Encoder<'_, '_> {
    pub fn script(&self) -> &'static Script {
        kinds::change_script(self.board)
    }

    fn kind(&self) -> &'static dyn RedisKind {
        kinds::of(self.board.kind())
    }

    /// Returns the main window and the further ones.
    fn windows(&self) -> Vec<InWindow<'_>> {
        let Encoder { board, part, validity, .. } = self;
        let Preamble { low, high, .. } = validity.preamble;
        let mut windows = vec![InWindow { number: 0, board, keys: &part.keys, preamble: validity.preamble }];
        let further = board.further().iter().zip(&part.further).zip(&validity.further).zip(1..);
        windows.extend(further.map(|(((board, keys), window), number)| {
            let preamble = Preamble { window: *window, low, high };
            InWindow { number, board, keys, preamble }
        }));
        windows
    }

    /// Returns the keys that belong to one subject only.
    fn subject_keys(&self, window: &InWindow<'_>, subject: &Subject) -> Vec<String> {
        let keys = window.keys;
        if self.kind().keeps_values() {
            vec![keys.seen(subject), keys.gone(subject)]
        } else if window.board.is_ranked() {
            Vec::new()
        } else {
            vec![keys.subject(subject)]
        }
    }

    /// Returns the slots of a window to name, each with its position from 1.
    fn slots(&self, window: &InWindow<'_>, chunk: &Chunk<'_, '_>) -> BTreeMap<Timestamp, usize> {
        if self.board.definition().mode == Mode::FromFirst {
            return BTreeMap::new();
        }
        let mut starts: BTreeSet<Timestamp> =
            chunk.entries.iter().filter_map(|entry| entry.slots.of(window.number)).collect();
        starts.extend(self.needed.get(window.number).into_iter().flatten());
        if self.kind().keeps_values() && self.board.is_ranked() {
            let (_, newest) = window.board.window_and_starts(window.preamble.window.head);
            starts.extend(newest.iter().rev().take(LIKELY));
        }
        starts.into_iter().zip(1..).collect()
    }

    /// Returns the subjects of a chunk, and the position of each from 1.
    fn subjects<'c>(&self, chunk: &Chunk<'c, 'c>) -> (Vec<&'c Subject>, HashMap<&'c str, usize>)
    where
        Self: 'c,
    {
        let (mut subjects, mut places) = (Vec::new(), HashMap::new());
        let looked_at = chunk.looks.iter().map(|i| &self.flush.item(*i).subject);
        for subject in chunk.entries.iter().map(|entry| entry.subject).chain(looked_at) {
            places.entry(subject.as_str()).or_insert_with(|| {
                subjects.push(subject);
                subjects.len()
            });
        }
        (subjects, places)
    }

    pub fn encode(&self, chunk: &Chunk<'_, '_>) -> Cmd {
        let script = self.script();
        let (subjects, places) = self.subjects(chunk);
        let has_ids = chunk.entries.iter().any(|entry| entry.id.is_some());
        let windows = self.windows();
        let (mut keys, mut named): (Vec<String>, Vec<Named>) = Default::default();
        for window in &windows {
            named.push(self.name_keys(window, chunk, &subjects, has_ids, &mut keys));
        }
        let entries = chunk.entries.len() + chunk.looks.len();
        let slots: usize = named.iter().map(|named| named.slots.len()).sum();
        let arguments = keys.len() + slots + windows.len() * (32 + subjects.len() + 8 * entries);
        let mut command = Cmd::with_capacity(arguments, 64 * arguments);
        command.arg("EVALSHA").arg(script.hash()).arg(keys.len()).arg(&keys);
        let own = |named: &Named| script.fixed_arguments() + named.slots.len() + subjects.len() + 8 * entries + 1;
        let sizes = sizes(named.iter().map(|named| (named.keys, own(named))));
        for (window, named) in windows.iter().zip(&named) {
            self.add_arguments(window, named, chunk, (&subjects, &places), (has_ids, &sizes), &mut command);
        }
        command
    }

    /// Adds the keys of a window.
    fn name_keys(
        &self,
        window: &InWindow<'_>,
        chunk: &Chunk<'_, '_>,
        subjects: &[&Subject],
        has_ids: bool,
        all: &mut Vec<String>,
    ) -> Named {
        let own = window.keys;
        let slots = self.slots(window, chunk);
        let mut keys =
            vec![own.meta.clone(), own.index.clone(), own.ranking.clone(), own.buckets.clone(), own.totals.clone()];
        debug_assert_eq!(keys.len(), self.script().fixed_keys());
        if window.board.is_ranked() {
            keys.extend(slots.keys().map(|start| own.slot(*start)));
        }
        let first_subject_key = keys.len() + 1;
        keys.extend(subjects.iter().flat_map(|subject| self.subject_keys(window, subject)));
        let first_bucket_key = keys.len() + 1;
        if has_ids && window.is_main() {
            keys.extend((0..id_buckets::recent(window.board)).map(|back| own.dedupe(self.validity.bucket - back)));
        }
        let now = self.part.estimate(self.session.monotonic()).0;
        // Only boards that have keys of single subjects have periods.
        let period = expiry::has_subject_keys(window.board).then(|| expiry::period(window.board, now));
        if let Some(period) = period {
            keys.extend([own.periods.clone(), own.written(period)]);
        }
        let count = keys.len();
        all.append(&mut keys);
        Named { slots, keys: count, first_subject_key, first_bucket_key, period }
    }

    /// Adds the arguments of a window.
    fn add_arguments(
        &self,
        window: &InWindow<'_>,
        named: &Named,
        chunk: &Chunk<'_, '_>,
        (subjects, places): (&[&Subject], &HashMap<&str, usize>),
        (has_ids, sizes): (bool, &str),
        command: &mut Cmd,
    ) {
        let Encoder { session, part, flush, .. } = self;
        let Named { slots, first_subject_key, first_bucket_key, period, .. } = named;
        let looks = if window.is_main() { chunk.looks } else { &[] };
        let entries = chunk.entries.len() + looks.len();
        let place = |subject: &Subject| places.get(subject.as_str()).copied().unwrap_or_default();
        let mut fixed = FixedArguments::new(self.script(), command);
        for (name, argument) in session.preamble_of(part, window.board, &window.preamble) {
            fixed.arg(name, argument);
        }
        fixed.arg("sequence", self.operation.sequence).arg("write_lane", self.operation.lane());
        fixed.arg("sizes", sizes).arg("bound", window.board.slot_bound().0);
        fixed.arg("slots", slots.len()).arg("subjects", subjects.len()).arg("entries", entries);
        let bucket = if has_ids && window.is_main() { self.validity.bucket.to_string() } else { String::new() };
        fixed.arg("bucket", bucket).arg("horizon", window.board.dedupe_horizon());
        fixed.arg("first_subject_key", first_subject_key).arg("first_bucket_key", first_bucket_key);
        fixed.arg("buckets", id_buckets::recent(window.board));
        fixed.arg("oldest", self.oldest(window).millis());
        fixed.arg("period", period.map_or_else(String::new, |period| period.to_string()));
        fixed.end();
        for start in slots.keys() {
            command.arg(start.millis());
        }
        for subject in subjects {
            command.arg(subject.as_str());
        }
        for entry in chunk.entries {
            let further = entry.items.len().saturating_sub(1);
            let is_scored = window.is_main() && self.gives_scores && flush.wants_score(entry);
            let code = 2 * further + usize::from(is_scored);
            let id = entry.id.filter(|_| window.is_main()).map_or("", |id| id.as_str());
            let Some(slot) = entry.slots.of(window.number) else {
                command.arg(0).arg(place(entry.subject)).arg("look").arg("").arg("").arg("").arg(code).arg(id);
                continue;
            };
            let summed = Change::Amount(entry.amount);
            let change = entry.sent.map_or(&summed, |sent| &sent.change);
            let usual = self.kind().verb(change, self.undoes(entry));
            let Verb { verb, a, b } = if window.is_main() { self.of_total(usual, change, entry) } else { usual };
            let b = if entry.sent.is_some() { b } else { exact_or_refused(entry.margin()) };
            command.arg(slots.get(&slot).copied().unwrap_or_default()).arg(place(entry.subject)).arg(verb);
            match a {
                Word::Number(number) => command.arg(number),
                Word::Text(text) => command.arg(text),
            };
            let time = entry.items.first().and_then(|i| flush.item(*i).at);
            command.arg(b).arg(time.map_or_else(String::new, |at| at.millis().to_string()));
            command.arg(code).arg(id);
        }
        for i in looks {
            command.arg(0).arg(place(&flush.item(*i).subject)).arg("look").arg("").arg("").arg("").arg(1).arg("");
        }
        command.arg(kinds::option(window.board));
    }

    /// Returns the start of the oldest slot that is kept.
    fn oldest(&self, window: &InWindow<'_>) -> Timestamp {
        match window.is_main() {
            true => self.part.kept(&window.preamble.window).oldest,
            false => {
                let calendar = window.board.calendar();
                let floor = window.preamble.window.floor;
                (window.board.slots()..window.board.kept()).fold(floor, |start, _| calendar.previous(start))
            }
        }
    }

    /// Returns the verb of a total for a sample of a slot that is kept beside it, and all others unchanged.
    fn of_total<'c>(&self, usual: Verb<'c>, change: &Change, entry: &Entry<'_>) -> Verb<'c> {
        let (Change::Set { .. }, Some(kept_slots), Some(slot)) = (change, self.board.kept_slots(), entry.slots.of(1))
        else {
            return usual;
        };
        // LAST has no number of measurements, but needs to know which totals are of a later slot.
        let b = if self.board.kind() == Kind::Last { kept_slots.calendar().next(slot).millis() } else { usual.b };
        Verb { verb: "follow", b, ..usual }
    }

    /// Returns whether the entry is a retraction that is not just a negative amount.
    fn undoes(&self, entry: &Entry<'_>) -> bool {
        let retracts = entry.items.first().is_some_and(|i| self.flush.item(*i).retract);
        retracts && (entry.sent.is_some() || self.board.definition().mode == Mode::FromFirst)
    }
}
