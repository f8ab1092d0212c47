//! What this instance knows of servers and boards (`Session::health`), which `health` and `healing` update.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;

use super::part::Part;
use crate::board::BoardName;
use crate::store::ClockMode;

/// The time after which a listed name without a board is removed from the list. It is longer than any definition takes.
const MISSING: Duration = Duration::from_secs(60);
/// The time for which an operator is told of a write that a board's data has refused.
const RECENT: Duration = Duration::from_secs(60);

/// The state of the servers as known to one instance, and the options that checks and healing need. No lock in it is
/// held across an await.
#[derive(Debug)]
pub(super) struct Health {
    pub clock: ClockMode,
    pub rewrite_aof: bool,
    /// The listed names without a board, each with the time when this was first seen.
    missing: Mutex<HashMap<BoardName, Duration>>,
    /// The time when the eviction policy was last found to be correct.
    pub policy_read: Mutex<Option<Duration>>,
    /// The mark of the store when it was opened. A different mark means that the store was emptied.
    pub mark: Mutex<Option<String>>,
    /// The boards that did not take a write because of what the store has of them, each with the reason and the time of
    /// the latest one.
    refused: Mutex<BTreeMap<BoardName, (String, Duration)>>,
    findings: Mutex<Findings>,
}

/// The known state of boards and servers. A *run* is the time from the start of a server's process until its end; the
/// server gives each run an id.
#[derive(Debug, Default)]
pub(super) struct Findings {
    /// The run of each server, by its address.
    pub runs: HashMap<String, Arc<str>>,
    /// The runs that were asked to rewrite their append-only file, by any instance.
    pub rewritten: HashSet<Arc<str>>,
    /// The parts of boards that are known to be complete, by the key of their index, each with the run of its server in
    /// which this was found.
    pub whole: HashMap<String, Arc<str>>,
    /// The parts that are held, by the same key, each with its board and the reason.
    pub held: BTreeMap<String, (BoardName, String)>,
    /// The time when all boards were last checked.
    pub looked: Option<Duration>,
    /// The servers that did not rewrite their append-only file when they were last asked, by address.
    pub unwilling: BTreeMap<String, Unwilling>,
}

/// A server that does not rewrite its append-only file.
#[derive(Debug)]
pub(super) struct Unwilling {
    pub run: Arc<str>,
    /// The time when it was last asked.
    pub asked: Duration,
    pub reason: String,
}

impl Findings {
    /// Records that a part is held. Returns whether this is new.
    pub fn hold(&mut self, part: &Part, reason: &str) -> bool {
        let held = (part.track.board().name().clone(), reason.to_owned());
        self.held.insert(part.keys.index.clone(), held.clone()) != Some(held)
    }

    /// Records that a part is not held. Returns whether it was.
    pub fn release(&mut self, part: &Part) -> bool {
        self.held.remove(&part.keys.index).is_some()
    }

    /// Returns the boards that are held, each with the reason for one of its parts.
    pub fn held_boards(&self) -> BTreeMap<&BoardName, &str> {
        self.held.values().map(|(name, reason)| (name, reason.as_str())).collect()
    }
}

impl Health {
    pub fn new(clock: ClockMode, rewrite_aof: bool) -> Self {
        Self {
            clock,
            rewrite_aof,
            missing: Mutex::default(),
            policy_read: Mutex::default(),
            mark: Mutex::default(),
            refused: Mutex::default(),
            findings: Mutex::default(),
        }
    }

    /// Records which listed names have no board now. Returns those that have had none for a long time.
    pub fn long_missing(&self, without_board: &[&BoardName], monotonic: Duration) -> Vec<BoardName> {
        let mut missing = self.missing.lock();
        missing.retain(|name, _| without_board.contains(&name));
        let is_old = |name: &&BoardName| {
            let since = *missing.entry((*name).clone()).or_insert(monotonic);
            monotonic.saturating_sub(since) >= MISSING
        };
        without_board.iter().copied().filter(is_old).cloned().collect()
    }

    /// Records that a board did not take a write, for this reason.
    pub fn note_refused(&self, name: &BoardName, reason: &str, now: Duration) {
        self.refused.lock().insert(name.clone(), (reason.to_owned(), now));
    }

    /// Returns the conditions that an operator has to look at.
    pub fn warnings(&self, now: Duration) -> Vec<String> {
        let mut refused = self.refused.lock();
        refused.retain(|_, (_, at)| now.saturating_sub(*at) <= RECENT);
        let refused = refused.iter().map(|(name, (reason, _))| {
            format!(
                "board '{name}' has refused a write within the last minute, because its data is damaged: {reason}; audit it"
            )
        });
        let findings = self.findings.lock();
        let held = |(name, reason): (&BoardName, &str)| {
            format!("board '{name}' is held: {reason}; see docs/redis.md, then audit it with repair")
        };
        let unwilling = |(at, Unwilling { reason, .. }): (&String, &Unwilling)| {
            format!(
                "the server at {at} does not rewrite its append-only file ({reason}): if a crash has cut a script in \
                 the file, half of that script takes effect at a later start of the server, and items that are sent \
                 again may count twice; grant the user +bgrewriteaof, or set redis_rewrite_aof = false if the file is \
                 rewritten after each start in another way"
            )
        };
        let held = findings.held_boards().into_iter().map(held);
        held.chain(refused).chain(findings.unwilling.iter().map(unwilling)).collect()
    }

    /// Calls a function with the findings, to read or change them.
    pub fn findings<T>(&self, of: impl FnOnce(&mut Findings) -> T) -> T {
        of(&mut self.findings.lock())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_write_that_was_refused_is_told_for_a_minute() {
        let health = Health::new(ClockMode::System, true);
        let seconds = Duration::from_secs;
        health.note_refused(&BoardName::parse("a").unwrap(), "a track is missing", seconds(5));
        let warned = health.warnings(seconds(65));
        assert!(warned.len() == 1 && warned[0].contains("board 'a'") && warned[0].contains("a track is missing"));
        health.note_refused(&BoardName::parse("b").unwrap(), "a track is missing", seconds(66));
        assert!(matches!(&*health.warnings(seconds(66)), [only] if only.contains("board 'b'")));
        assert!(health.warnings(seconds(200)).is_empty());
    }

    #[test]
    fn a_name_is_long_missing_only_if_missing_without_interruption() {
        let health = Health::new(ClockMode::System, true);
        let (a, b) = (BoardName::parse("a").unwrap(), BoardName::parse("b").unwrap());
        let seconds = Duration::from_secs;
        assert_eq!(health.long_missing(&[&a, &b], seconds(1)), []);
        assert_eq!(health.long_missing(&[&a], seconds(50)), []);
        assert_eq!(health.long_missing(&[&a, &b], seconds(61)), std::slice::from_ref(&a));
        assert_eq!(health.long_missing(&[&b], seconds(120)), []);
        assert_eq!(health.long_missing(&[&a, &b], seconds(121)), [b]);
    }
}
