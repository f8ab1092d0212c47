//! A lane as a call of `change.lua`: what is not an amount to be added to a ranked sum.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use redis::Cmd;

use super::flush::{Flush, Hold, Lane};
use super::scripts::{self, Script};
use super::session::Session;
use super::view::View;
use crate::board::{Board, Change, EXACT_MAX, Kind, Mark, Mode, Subject, Timestamp};
use crate::store::{Entry, Increment};

/// The most entries of one script: about 2 ms of the server's time.
const LANE: usize = 200;
/// About the most cells that one script puts together into scores, were all slots held, and the most sketches.
const CELLS: usize = 20_000;
const SKETCHES: usize = 1_000;
/// The most sketches that one script estimates, on ranked boards: one for each total that changed.
const ESTIMATES: usize = 40;
/// But so many entries go together in any case: scores are those after a whole call, so few items should share one.
const LEAST: usize = 8;

/// On a ranked COUNT_DISTINCT board the slots that most likely hold what is seen again, so that the script need not
/// ask for them.
const LIKELY: usize = 32;

/// How long past its last use an idle subject's key is kept at least, in milliseconds.
const SLACK: i64 = 60_000;

/// What encodes lanes of one round.
pub(super) struct Encoder<'a, 'f> {
    pub session: &'a Session,
    pub board: &'a Board,
    pub view: &'a View,
    pub hold: &'a Hold,
    pub flush: &'a Flush<'f>,
    pub sequence: u64,
    pub operator: &'a str,
    /// Slots that an earlier attempt turned out to need.
    pub needed: &'a BTreeSet<Timestamp>,
}

/// What an entry does, in the words of `lua/change`.
struct Verb<'a> {
    verb: &'static str,
    a: Word<'a>,
    b: i64,
}

/// A number, or a counted value as it is.
enum Word<'a> {
    Number(i64),
    Text(&'a str),
}

/// The most entries of one call: what the server does in about 2 ms. Unranked boards keep no scores, so that each one
/// wanted takes a look at every slot.
pub(super) fn lane(board: &Board, scored: bool) -> usize {
    let looked_at = match board.kind() {
        // Every total that changed is estimated.
        Kind::Sketch if board.is_ranked() => return ESTIMATES,
        _ if board.is_ranked() || !scored || board.definition().mode == Mode::FromFirst => return LANE,
        Kind::Distinct => return LANE,
        Kind::Sketch => SKETCHES,
        Kind::Sum | Kind::Mean | Kind::Min | Kind::Max => CELLS,
    };
    (looked_at / board.kept() as usize).clamp(LEAST, LANE)
}

impl Encoder<'_, '_> {
    pub fn script(&self) -> &'static Script {
        scripts::change(self.board)
    }

    /// The keys that one subject has to itself.
    fn subject_keys(&self, subject: &Subject) -> Vec<String> {
        let keys = &self.view.keys;
        match self.board.kind() {
            Kind::Distinct => vec![keys.seen(subject), keys.gone(subject)],
            _ if self.board.is_ranked() => Vec::new(),
            _ => vec![keys.subject(subject)],
        }
    }

    /// The slots to name, each with its position from 1.
    fn slots(&self, lane: &Lane<'_, '_>) -> BTreeMap<Timestamp, usize> {
        let is_distinct = self.board.kind() == Kind::Distinct;
        if self.board.definition().mode == Mode::FromFirst || (is_distinct && !self.board.is_ranked()) {
            return BTreeMap::new();
        }
        let mut starts: BTreeSet<Timestamp> = lane.entries.iter().map(|entry| entry.slot).collect();
        starts.extend(self.needed);
        if is_distinct {
            let (_, window) = self.board.window_and_starts(self.hold.preamble.window.head);
            starts.extend(window.iter().rev().take(LIKELY));
        }
        starts.into_iter().zip(1..).collect()
    }

    /// For how many milliseconds a subject's keys outlive its last write; on a simulated clock, which knows nothing of
    /// the server's, for ever.
    fn life(&self) -> String {
        if self.session.simulated {
            return String::new();
        }
        let kept = match self.board.definition().mode {
            Mode::FromFirst => self.board.definition().metric.window.approximate_millis(),
            Mode::Sliding => self.view.kept(self.board, &self.hold.preamble.window).life,
        };
        kept.saturating_add(self.board.dedupe_horizon() + SLACK).to_string()
    }

    pub fn encode(&self, lane: &Lane<'_, '_>) -> Cmd {
        let Encoder { session, board, view, hold, flush, .. } = self;
        let slots = self.slots(lane);
        let mut subjects: Vec<&Subject> = Vec::new();
        let mut places: HashMap<&str, usize> = HashMap::new();
        let looked_at = lane.looks.iter().map(|i| &flush.item(*i).subject);
        for subject in lane.entries.iter().map(|entry| entry.subject).chain(looked_at) {
            places.entry(subject.as_str()).or_insert_with(|| {
                subjects.push(subject);
                subjects.len()
            });
        }
        let place = |subject: &Subject| places.get(subject.as_str()).copied().unwrap_or_default();
        let has_ids = lane.entries.iter().any(|entry| entry.id.is_some());

        let script = self.script();
        let mut keys = vec![
            view.keys.meta.clone(),
            view.keys.index.clone(),
            view.keys.ranking.clone(),
            view.keys.buckets.clone(),
            view.keys.totals.clone(),
            view.keys.operation(self.operator, lane.number),
        ];
        debug_assert_eq!(keys.len(), script.fixed_keys());
        if board.is_ranked() {
            keys.extend(slots.keys().map(|start| view.keys.slot(*start)));
        }
        let first_subject_key = keys.len() + 1;
        keys.extend(subjects.iter().flat_map(|subject| self.subject_keys(subject)));
        let first_bucket_key = keys.len() + 1;
        if has_ids {
            keys.extend((0..3).map(|back| view.keys.dedupe(hold.bucket - back)));
        }
        if session.simulated {
            keys.push(session.keys.clock());
        }

        let entries = lane.entries.len() + lane.looks.len();
        let arguments = 32 + keys.len() + slots.len() + subjects.len() + 8 * entries;
        let mut command = Cmd::with_capacity(arguments, 64 * arguments);
        command.arg("EVALSHA").arg(script.hash()).arg(keys.len()).arg(&keys);
        for argument in session.preamble(board, view, &hold.preamble) {
            command.arg(argument);
        }
        command.arg(self.sequence).arg(board.slot_bound().0).arg(slots.len()).arg(subjects.len()).arg(entries);
        command.arg(if has_ids { hold.bucket.to_string() } else { String::new() }).arg(board.dedupe_horizon());
        command.arg(first_subject_key).arg(first_bucket_key);
        command.arg(view.kept(board, &hold.preamble.window).oldest.millis()).arg(self.life());
        for start in slots.keys() {
            command.arg(start.millis());
        }
        for subject in &subjects {
            command.arg(subject.as_str());
        }
        for entry in lane.entries {
            let Verb { verb, a, b } = self.verb(entry);
            command.arg(slots.get(&entry.slot).copied().unwrap_or_default()).arg(place(entry.subject)).arg(verb);
            match a {
                Word::Number(number) => command.arg(number),
                Word::Text(text) => command.arg(text),
            };
            let time = entry.items.first().and_then(|i| flush.item(*i).at);
            command.arg(b).arg(time.map_or_else(String::new, |at| at.millis().to_string()));
            command.arg(2 * usize::from(entry.items.len() > 1) + usize::from(flush.wants_score(entry)));
            command.arg(entry.id.map_or("", |id| id.as_str()));
        }
        for i in lane.looks {
            command.arg(0).arg(place(&flush.item(*i).subject)).arg("look").arg("").arg("").arg("").arg(1).arg("");
        }
        command.arg(scripts::option(board));
        command
    }

    fn verb<'e>(&self, entry: &Entry<'e>) -> Verb<'e> {
        // Beyond 2^53 − 1 it is out of range of any slot, and stays so when held within what Lua counts exactly.
        let number = |number: i64| Word::Number(number.clamp(-EXACT_MAX, EXACT_MAX));
        let retracts = entry.items.first().is_some_and(|i| self.flush.item(*i).retract);
        let undoes = retracts && (entry.sent.is_some() || self.board.definition().mode == Mode::FromFirst);
        let add = if undoes { "undo" } else { "add" };
        match entry.sent {
            None => Verb { verb: add, a: number(entry.amount.0), b: 0 },
            Some(Increment { change: Change::Amount(amount), .. }) => Verb { verb: add, a: number(amount.0), b: 0 },
            Some(Increment { change: Change::Set { sum, count }, .. }) => {
                Verb { verb: "set", a: number(sum.0), b: (*count).clamp(-EXACT_MAX, EXACT_MAX) }
            }
            Some(Increment { change: Change::Seen(value), .. }) if self.board.kind() == Kind::Sketch => {
                let Mark { register, rank } = Mark::of(value.as_str());
                Verb { verb: "mark", a: Word::Number(register.into()), b: rank.into() }
            }
            Some(Increment { change: Change::Seen(value), .. }) => {
                Verb { verb: if retracts { "gone" } else { "seen" }, a: Word::Text(value.as_str()), b: 0 }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::board::{BoardName, Definition, Generation};

    #[test]
    fn scores_that_take_a_look_at_every_slot_make_calls_smaller() {
        let lane = |metric: &str, ranked, scored| {
            let definition = Definition { ranked, ..Definition::new(metric.parse().unwrap(), "1m".parse().unwrap()) };
            lane(&Board::new(BoardName::parse("b").unwrap(), Generation(1), definition).unwrap(), scored)
        };
        assert_eq!(lane("SUM(2000m, e, v, s)", true, true), LANE);
        assert_eq!(lane("SUM(2000m, e, v, s)", false, false), LANE);
        assert_eq!(lane("SUM(2000m, e, v, s)", false, true), 9);
        assert_eq!(lane("SUM(3m, e, v, s)", false, true), LANE);
        assert_eq!(lane("SUM(199m, e, v, s)", false, true), 100);
        assert_eq!(lane("APPROX_COUNT_DISTINCT(2000m, e, s, c)", true, false), ESTIMATES);
        assert_eq!(lane("COUNT_DISTINCT(2000m, e, s, c)", false, true), LANE);
        assert_eq!(lane("APPROX_COUNT_DISTINCT(9m, e, s, c)", false, true), 100);
        assert_eq!(lane("APPROX_COUNT_DISTINCT(2000m, e, s, c)", false, true), LEAST);
    }
}
