//! Encodes an operation as a call of `change.lua`: all changes except amounts added to ranked sums. A board is changed
//! in all its tracks by one call, which has keys and arguments for each track.

use std::sync::Arc;

use redis::Cmd;

use super::operation::{WriteOperation, most_keys};
use crate::board::{Board, BoardEdition, Change, Edition, Kind, NotCounted};
use crate::store::Entry;
use crate::store::redis::entries::{NumberedSubjects, SentEntry, TrackEntries, likely_slots};
use crate::store::redis::id_buckets;
use crate::store::redis::kinds::{self, Verb};
use crate::store::redis::numbers::exact_or_refused;
use crate::store::redis::part::Part;

impl WriteOperation<'_, '_, '_> {
    fn board(&self) -> &Board {
        self.lane.flush.partition.board()
    }

    /// Returns the call of `change.lua`.
    pub fn change_command(&self) -> Cmd {
        let (flush, chunk, parts) = (self.lane.flush, self.chunk, self.parts());
        let script = flush.partition.change_script();
        let looked_at = chunk.looks.iter().map(|i| &flush.item(*i).subject);
        let subjects = chunk.entries.iter().map(|entry| entry.subject).chain(looked_at).collect();
        let has_ids = chunk.entries.iter().any(|entry| entry.id.is_some());
        let named: Vec<_> = parts.iter().map(|part| self.name_keys(part, &subjects, has_ids)).collect();
        let keys: usize = named.iter().map(TrackEntries::count_keys).sum();
        let own = |(part, named): (&Arc<Part>, &TrackEntries<'_>)| {
            (named.count_keys(), script.fixed_arguments() + named.count_lists(self.entries(part)) + 1)
        };
        let arguments = keys + parts.iter().zip(&named).map(own).map(|(_, arguments)| arguments).sum::<usize>();
        let mut command = Cmd::with_capacity(arguments + 3, 64 * arguments);
        command.arg("EVALSHA").arg(script.hash()).arg(keys + usize::from(self.fence.is_some()));
        for named in &named {
            named.add_keys(&mut command);
        }
        self.add_fence_key(&mut command);
        let sizes = self.sizes(parts.iter().zip(&named).map(own));
        for (part, named) in parts.iter().zip(&named) {
            self.add_arguments(part, named, (has_ids, &sizes), &mut command);
        }
        command
    }

    /// Returns the number of entries that a track gets. Only the first one gets those that only look.
    fn entries(&self, part: &Part) -> usize {
        self.chunk.entries.len() + if part.track.is_main() { self.chunk.looks.len() } else { 0 }
    }

    /// Returns what the call says about a track.
    fn name_keys<'s>(&self, part: &'s Part, subjects: &'s NumberedSubjects<'s>, has_ids: bool) -> TrackEntries<'s> {
        let (number, window) = (part.track.number(), self.window(part));
        let mut starts = Vec::new();
        if !part.track.is_from_first() {
            starts = likely_slots(part, &window);
            starts.extend(self.chunk.entries.iter().filter_map(|entry| entry.slots.of(number)));
            starts.extend(self.lane.needed.get(number).into_iter().flatten());
        }
        let buckets = if has_ids && part.track.is_main() { id_buckets::recent(self.board()) } else { 0 };
        let buckets = (0..buckets).map(|back| self.planned.validity.bucket - back);
        let now = part.clock.belief(self.lane.session.monotonic()).expected;
        TrackEntries::new(part, (&window, now), starts, subjects, buckets)
    }

    /// Adds the arguments of a track.
    fn add_arguments(&self, part: &Part, named: &TrackEntries<'_>, (has_ids, sizes): (bool, &str), command: &mut Cmd) {
        let (flush, chunk, is_main) = (self.lane.flush, self.chunk, part.track.is_main());
        let is_main_of_edition = part.track.is_main_of_edition();
        let gives_scores = !flush.budget.reads_scores;
        let looks = if is_main { chunk.looks } else { &[] };
        let mut fixed = self.begin(part, flush.partition.change_script(), command);
        fixed.arg("sizes", sizes);
        for (name, number) in named.numbers(self.entries(part)) {
            fixed.arg(name, number);
        }
        fixed.arg("period", named.period()).arg("most_keys", most_keys(part));
        let bucket = if has_ids && is_main { self.planned.validity.bucket.to_string() } else { String::new() };
        fixed.arg("bucket", bucket).arg("horizon", self.board().dedupe_horizon());
        fixed.arg("first_bucket_key", named.first_bucket_key).arg("buckets", id_buckets::recent(self.board()));
        let edition = part.track.edition();
        let has_two = self.board().other().is_some();
        fixed.arg("edition", if has_two { edition.id().to_string() } else { String::new() });
        fixed.arg("fence", self.fence_argument());
        fixed.end();
        named.add_lists(command);
        for entry in chunk.entries {
            let further = entry.items.len().saturating_sub(1);
            let is_scored = is_main && gives_scores && flush.wants_score(entry);
            let placed = entry.slots.of(part.track.number()).zip(entry.change(edition.number()));
            let (slot, verb, at) = match &placed {
                Some((slot, (change, _))) => {
                    let verb = self.verb(part, &edition, entry, change);
                    (Some(*slot), verb, entry.items.first().and_then(|i| flush.item(*i).at))
                }
                None if is_main_of_edition => (None, self.missed(entry, edition.number()), None),
                None => (None, Verb::look("", 0), None),
            };
            let code = 2 * further + usize::from(is_scored);
            let id = entry.id.filter(|_| is_main).map_or("", |id| id.as_str());
            named.add(&SentEntry { slot, subject: entry.subject, verb, at, code, id }, command);
        }
        for i in looks {
            let subject = &flush.item(*i).subject;
            named.add(&SentEntry { slot: None, subject, verb: Verb::look("", 0), at: None, code: 1, id: "" }, command);
        }
        command.arg(kinds::option(&part.track));
    }

    /// Returns what an entry that an edition counts does to a track.
    fn verb<'c>(&self, part: &Part, edition: &BoardEdition, entry: &Entry<'_>, change: &'c Change) -> Verb<'c> {
        let usual = kinds::of(part.track.kind()).verb(change, self.undoes(entry, edition));
        let verb = match part.track.is_main_of_edition() {
            true => of_total(usual, change, entry, edition),
            false => usual,
        };
        // The day in which an item counts for its person.
        if let (Some(day), Change::Seen(_)) = (part.track.day_of(entry.at), change) {
            return Verb { b: day.millis(), ..verb };
        }
        match entry.sums[edition.number()] {
            Some(_) => Verb { b: exact_or_refused(entry.margin(edition.number())), ..verb },
            None => verb,
        }
    }

    /// Returns the verb of an entry that an edition does not count and the other one may count: it looks, for the
    /// reason, with the number of items to which that applies. A retraction of what has left the window has nothing to
    /// change.
    fn missed(&self, entry: &Entry<'_>, edition: usize) -> Verb<'static> {
        let reason = entry.missed[edition].filter(|_| self.board().other().is_some());
        let Some(reason) = reason else { return Verb::look("", 0) };
        let applies = |i: &&usize| reason != NotCounted::TooLate || !self.lane.flush.item(**i).retract;
        let items = entry.items.iter().filter(applies).count();
        Verb::look(if items == 0 { "" } else { reason.code() }, items)
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
