//! Checks that the server can hold boards, and the state of servers and boards as known to this instance.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join3;
use parking_lot::Mutex;
use redis::{Value, cmd};

use super::part::Part;
use super::servers::{Channel, ServerFailure};
use super::session::Session;
use super::{boards, clock};
use crate::board::BoardName;
use crate::store::{ClockMode, Result, StoreError};

/// The time after which a listed name without a board is removed from the list. It is longer than any definition takes.
const MISSING: Duration = Duration::from_secs(60);
/// The interval at which the server's eviction policy is read. It may be changed while the server runs.
const POLICY: Duration = Duration::from_secs(2);

/// The state of the servers as known to one instance. No lock in it is held across an await.
#[derive(Debug)]
pub(super) struct Health {
    clock: ClockMode,
    pub rewrite_aof: bool,
    /// The listed names without a board, each with the time when this was first seen.
    missing: Mutex<HashMap<BoardName, Duration>>,
    /// The time when the eviction policy was last found to be correct.
    policy_read: Mutex<Option<Duration>>,
    /// The mark of the store when it was opened. A different mark means that the store was emptied.
    mark: Mutex<Option<String>>,
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
}

impl Findings {
    /// Records that a part is held. Returns whether this is new.
    pub fn hold(&mut self, part: &Part, reason: &str) -> bool {
        let held = (part.board.name().clone(), reason.to_owned());
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

    /// Returns the conditions that an operator has to look at.
    pub fn warnings(&self) -> Vec<String> {
        let findings = self.findings.lock();
        let text = |(name, reason): (&BoardName, &str)| {
            format!(
                "board '{name}' is held: {reason}; see docs/operating.md, then POST /v1/boards/{name}/audit with repair"
            )
        };
        findings.held_boards().into_iter().map(text).collect()
    }

    /// Calls a function with the findings, to read or change them.
    pub fn findings<T>(&self, of: impl FnOnce(&mut Findings) -> T) -> T {
        of(&mut self.findings.lock())
    }
}

/// Checks that the server accepts writes, does not evict, and has the data that it had when it was opened.
pub(super) async fn check(session: &Session) -> Result<()> {
    let mut set = cmd("SET");
    set.arg(session.keys.check()).arg(&session.instance).arg("PX").arg(60_000);
    let written = session.servers.set(session.keys.check_slot(), Channel::Calls, &set);
    let (written, mark, policy) = join3(written, read_mark(session), check_policy(session)).await;
    written.map_err(|failure| session.servers.error(failure))?;
    let mark = mark.map_err(|failure| session.servers.error(failure))?;
    if mark != *session.health.mark.lock() || mark.is_none() {
        return Err(StoreError::Emptied { at: session.servers.at().to_string() });
    }
    policy
}

async fn check_policy(session: &Session) -> Result<()> {
    let now = session.monotonic();
    let is_known = session.health.policy_read.lock().is_some_and(|read| now.saturating_sub(read) < POLICY);
    if is_known {
        return Ok(());
    }
    for node in session.servers.nodes() {
        boards::check_policy(&node).await?;
    }
    *session.health.policy_read.lock() = Some(now);
    Ok(())
}

/// Reads the mark that distinguishes this store from one that was emptied in the meantime. It is drawn when the clock
/// is opened, and stored in the same key.
async fn read_mark(session: &Session) -> Result<Option<String>, ServerFailure> {
    let mut command = cmd("HMGET");
    command.arg(session.keys.clock()).arg("mode").arg("born");
    match session.servers.read(session.keys.clock_slot(), Channel::Calls, &command).await? {
        Value::Array(fields) => Ok(match fields.as_slice() {
            [Value::BulkString(_), Value::BulkString(born)] => Some(String::from_utf8_lossy(born).into_owned()),
            _ => None,
        }),
        other => Err(ServerFailure::Corrupt(format!("HMGET was answered {other:?}"))),
    }
}

/// Draws the mark of a store that has none, and records it.
pub(super) async fn mark(session: &Session) -> Result<(), ServerFailure> {
    let mut command = cmd("HSETNX");
    command.arg(session.keys.clock()).arg("born").arg(format!("{:016x}", rand::random::<u64>()));
    session.servers.set(session.keys.clock_slot(), Channel::Calls, &command).await?;
    let mark = read_mark(session).await?;
    *session.health.mark.lock() = mark;
    Ok(())
}

/// Gives a store that was emptied a clock again.
pub(super) async fn reopen(session: &Session) -> Result<()> {
    session.drop_beliefs();
    session.health.findings(|findings| {
        findings.whole.clear();
        findings.held.clear();
    });
    clock::open(&session.servers, &session.keys, session.health.clock).await?;
    mark(session).await.map_err(|failure| session.servers.error(failure))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_without_a_board_is_long_missing_only_if_it_is_so_all_the_time() {
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
