//! Healing after a restart of the server.
//!
//! A server that was restarted may have lost its newest data, or a part of one script (if the append-only file was cut
//! inside it). So each board is audited once for each run of the server, by one instance, in bounded steps. The first
//! pass only reads. If only a few subjects differ between ranking and slots, they are repaired. If many differ, or a
//! slot is missing, the ranking may be the last copy of the data. Then nothing is changed, and the board is *held*
//! until an operator audits it with repair. A held board is served as usual.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use metrics::{counter, describe_counter, describe_gauge, gauge};
use redis::{Value, cmd};

use super::audit::{AuditProgress, step};
use super::boards;
use super::claim::{Claim, HELD, act, claim};
use super::clock;
use super::editions;
use super::findings::Unwilling;
use super::part::Part;
use super::servers::{Channel, Node, ServerFailure, Unready};
use super::session::Session;
use crate::board::{Board, BoardName, Epoch};
use crate::store::rest;

const RENEW: Duration = Duration::from_secs(5);
/// The interval at which new boards of other instances are looked for, once all known boards are complete.
const LOOK: Duration = Duration::from_secs(15);
/// The largest number of differences that are repaired automatically: this many, or 1 % of the compared subjects if
/// that is more.
const FEW: u64 = 1_000;

/// The number of server runs that are remembered as asked to rewrite their file.
const RUNS: usize = 100;
/// The number of passes that try to repair subjects which change in the meantime.
const PASSES: usize = 5;

/// The number of subjects repaired after a restart.
const HEALED: &str = "rolltop_healed_subjects_total";
/// The number of noticed restarts of the server.
const RESTARTS: &str = "rolltop_store_restarts_total";

/// The result of the passes over a part.
enum Healing {
    Whole {
        healed: u64,
    },
    Held(String),
    /// A different instance has taken over, the server was restarted again, or the clock is doubted.
    Lost,
}

/// Detects restarts of servers, and audits each board that is not known to be complete since the last one.
pub(super) async fn tend(session: &Session) -> Result<(), ServerFailure> {
    let (mut is_loading, mut is_new) = (false, false);
    let nodes = session.servers.nodes();
    session.health.findings(|findings| findings.unwilling.retain(|at, _| nodes.iter().any(|node| node.at() == at)));
    for node in nodes {
        // On a new connection this is the first command. The run of the server is read before it.
        let server = Persistence::ask(&node).await?;
        let Some(run) = node.run() else { continue };
        is_new |= note_run(session, node.at(), &run);
        is_loading |= server.is_loading;
        match server {
            Persistence { is_loading: true, .. } => {}
            Persistence { keeps_aof: true, .. } => rewrite_aof(session, &node, &run).await,
            Persistence { .. } => drop(session.health.findings(|findings| findings.unwilling.remove(node.at()))),
        }
    }
    if is_loading {
        return Ok(());
    }
    let now = session.monotonic();
    let is_due =
        session.health.findings(|findings| is_new || findings.looked.is_none_or(|at| now.saturating_sub(at) >= LOOK));
    if !is_due {
        return Ok(());
    }
    session.health.findings(|findings| findings.looked = None);
    let listing = boards::boards(session).await?;
    let mut all_known = true;
    for board in &listing.boards {
        all_known &= see_to(session, board).await?;
    }
    session.health.findings(|findings| {
        let listed: HashSet<String> = listing
            .boards
            .iter()
            .map(|board| session.partitions_of(board))
            .flat_map(|partitions| partitions.parts().map(|part| part.keys.index.clone()).collect::<Vec<_>>())
            .collect();
        findings.held.retain(|key, _| listed.contains(key));
        findings.whole.retain(|key, _| listed.contains(key));
        findings.looked = all_known.then_some(now);
        describe_gauge!(HELD, "Boards held for an operator's decision after a restart of Redis");
        gauge!(HELD).set(findings.held_boards().len() as f64);
    });
    Ok(())
}

/// Records the run of the server at an address. Returns whether it differs from the recorded one. After a restart
/// everything that was known about keys is reset.
fn note_run(session: &Session, at: &str, run: &Arc<str>) -> bool {
    let before = session.health.findings(|findings| findings.runs.insert(at.to_owned(), run.clone()));
    match before {
        Some(before) if before == *run => false,
        before => {
            describe_counter!(RESTARTS, "Restarts of Redis servers that this instance has noticed");
            // The first run counts 0: what Prometheus has not seen at 0 has not increased.
            counter!(RESTARTS).increment(u64::from(before.is_some()));
            if before.is_some() {
                tracing::warn!(at, run = &**run, "Redis was restarted; its boards are being audited");
                session.drop_beliefs();
            }
            true
        }
    }
}

/// Audits each part of each track of a board if necessary, one after the other. Returns `false` if the board must be
/// checked again soon.
async fn see_to(session: &Session, board: &Arc<Board>) -> Result<bool, ServerFailure> {
    let mut all_known = true;
    if board.epoch() > Epoch::default() {
        // An instance that changed the editions may have ended before all partitions followed.
        match editions::bring_forward(session, board).await {
            Ok(_) => {}
            Err(failure) if failure.is_outdated() => return Ok(false),
            Err(failure) => return Err(failure),
        }
    }
    for part in session.partitions_of(board).parts() {
        all_known &= match see_to_part(session, part).await {
            // The board has been changed since it was listed.
            Err(ServerFailure::StaleEpoch | ServerFailure::StepDue) => false,
            seen_to => seen_to?,
        };
    }
    Ok(all_known)
}

async fn see_to_part(session: &Session, part: &Part) -> Result<bool, ServerFailure> {
    let name = part.track.board().name();
    // Without a connection to the part's server, nothing can be done now.
    let Some(run) = session.servers.run(part.slot()) else { return Ok(false) };
    let run_id = &*run;
    if session.health.findings(|findings| findings.whole.get(&part.keys.index) == Some(&run)) {
        return Ok(true);
    }
    let claim = claim(session, part, run_id).await?;
    let held = match claim {
        Claim::Gone => return Ok(true),
        Claim::Busy => return Ok(false),
        Claim::Whole => None,
        Claim::Held(reason) => Some(reason),
        Claim::Yours => {
            let healing = match heal(session, part, run_id).await {
                Ok(healing) => healing,
                Err(failure) => {
                    // Other instances then need not wait. If this fails too, the claim expires.
                    drop(act(session, part, "release", run_id, "").await);
                    return match failure {
                        ServerFailure::BoardChanged => Ok(true),
                        failure => Err(failure),
                    };
                }
            };
            let ended = match &healing {
                Healing::Lost => return Ok(false),
                Healing::Whole { .. } => act(session, part, "finish", run_id, "").await?,
                Healing::Held(reason) => act(session, part, "hold", run_id, reason).await?,
            };
            match ended {
                Claim::Gone => return Ok(true),
                // The claim expired, and the result of a different instance counts.
                Claim::Busy | Claim::Yours => return Ok(false),
                Claim::Held(reason) => Some(reason),
                Claim::Whole => {
                    if let Healing::Whole { healed: healed @ 1.. } = healing {
                        count_healed(name, healed);
                    }
                    None
                }
            }
        }
    };
    note(session, part, &run, held);
    Ok(true)
}

/// Counts and logs the subjects that were set right.
fn count_healed(name: &BoardName, healed: u64) {
    describe_counter!(HEALED, "Subjects corrected by this instance after a restart of Redis, by board");
    counter!(HEALED, "board" => name.as_str().to_owned()).increment(healed);
    tracing::warn!(board = name.as_str(), subjects = healed, "a board was healed after a restart of Redis");
}

/// Records the result for a part, and logs it if it is new.
fn note(session: &Session, part: &Part, run: &Arc<str>, held: Option<String>) {
    let name: &BoardName = part.track.board().name();
    session.health.findings(|findings| match held {
        None => {
            findings.whole.insert(part.keys.index.clone(), run.clone());
            if findings.release(part) {
                tracing::info!(board = name.as_str(), "a board is no longer held");
            }
        }
        Some(reason) => {
            if findings.hold(part, &reason) {
                tracing::error!(
                    board = name.as_str(),
                    reason,
                    "a board is held for an operator's decision after a restart of Redis; see docs/redis.md"
                );
            }
        }
    });
}

/// Audits a part that this instance has claimed: the first pass only reads, and further passes repair if only a few
/// subjects differ.
async fn heal(session: &Session, part: &Part, run_id: &str) -> Result<Healing, ServerFailure> {
    let reading = clock::read(&session.servers, &session.keys, session.simulated).await?;
    if reading > part.clock.belief(session.monotonic()).latest {
        // The clock reads a time that is not believed yet. Slots that would be expired at that time must not be treated
        // as missing.
        return Ok(Healing::Lost);
    }
    let Some(found) = pass(session, part, run_id, false, u64::MAX).await? else { return Ok(Healing::Lost) };
    if found.differences == 0 && found.missing_slots == 0 {
        return Ok(Healing::Whole { healed: 0 });
    }
    let few = FEW.max(found.checked / 100);
    if let Some(reason) = reason_to_hold(&found, few) {
        return Ok(Healing::Held(reason));
    }
    let mut healed = 0;
    for _ in 0..PASSES {
        // Missing slots without differences are entries of the index to whose slots nothing was ever written.
        let Some(done) = pass(session, part, run_id, true, few).await? else { return Ok(Healing::Lost) };
        healed += done.repaired;
        if let Some(reason) = reason_to_hold(&done, few) {
            return Ok(Healing::Held(reason));
        }
        if done.repaired == done.differences {
            return Ok(Healing::Whole { healed });
        }
    }
    Ok(Healing::Held(
        "after a restart of Redis subjects differ from their slots, and changed at every attempt to correct them"
            .to_owned(),
    ))
}

/// Returns the reason why the part must be held, or `None` if it need not be.
fn reason_to_hold(found: &AuditProgress, few: u64) -> Option<String> {
    let AuditProgress { checked, differences, missing_slots, .. } = found;
    if *missing_slots > 0 && *differences > 0 {
        return Some(format!(
            "after a restart of Redis {missing_slots} slots are missing and {differences} of {checked} subjects differ from \
             their slots"
        ));
    }
    (*differences > few).then(|| {
        format!("after a restart of Redis {differences} of {checked} subjects differ from their slots, more than {few}")
    })
}

/// Audits the whole part once. After each step it pauses for as long as the step took. It ends early after more than
/// `most` differences. Returns `None` if the claim now belongs to a different instance, or the server was restarted.
async fn pass(
    session: &Session,
    part: &Part,
    run_id: &str,
    repair: bool,
    most: u64,
) -> Result<Option<AuditProgress>, ServerFailure> {
    let mut progress = AuditProgress::start(&part.track);
    let mut renewed = Instant::now();
    while !progress.is_done() && progress.differences <= most {
        let begun = Instant::now();
        step(session, part, &mut progress, repair).await?;
        if renewed.elapsed() >= RENEW {
            let same_run = session.servers.run(part.slot()).is_some_and(|run| &*run == run_id);
            if !same_run || !matches!(claim(session, part, run_id).await?, Claim::Yours) {
                return Ok(None);
            }
            renewed = Instant::now();
        }
        rest(begun).await;
    }
    Ok(Some(progress))
}

/// Has a server rewrite its append-only file, once per run. If the file was cut inside a script, the next start would
/// replay only a part of that script. A server that refuses is asked again, by every instance, and each has a warning:
/// one that is not allowed to ask learns it only by asking.
async fn rewrite_aof(session: &Session, node: &Node, run: &Arc<str>) {
    let (at, now) = (node.at(), session.monotonic());
    let is_due = session.health.findings(|findings| {
        let refused = findings.unwilling.get(at).filter(|unwilling| unwilling.run == *run);
        !findings.rewritten.contains(run) && refused.is_none_or(|refused| now.saturating_sub(refused.asked) >= LOOK)
    });
    if !session.health.rewrite_aof || !is_due {
        return;
    }
    match ask_to_rewrite(session, node, run).await {
        Ok(()) => session.health.findings(|findings| {
            findings.rewritten.insert(run.clone());
            if findings.unwilling.remove(at).is_some() {
                tracing::info!(at, "Redis rewrites its append-only file again");
            }
        }),
        // It is asked again at once, when it can be reached.
        Err(failure) if failure.may_pass() => {
            tracing::debug!(at, ?failure, "Redis cannot be asked to rewrite its append-only file now");
        }
        Err(failure) => {
            let (run, reason) = (run.clone(), failure.at(at).to_string());
            let unwilling = Unwilling { run, asked: now, reason: reason.clone() };
            if session.health.findings(|findings| findings.unwilling.insert(at.to_owned(), unwilling)).is_none() {
                tracing::warn!(at, reason, "Redis does not rewrite its append-only file; /readyz says what follows");
            }
        }
    }
}

/// Asks a server to rewrite its append-only file, unless a different instance has asked this run of it.
async fn ask_to_rewrite(session: &Session, node: &Node, run: &Arc<str>) -> Result<(), ServerFailure> {
    if !claim_rewrite(session, run).await? {
        return Ok(());
    }
    match node.send(Channel::Calls, &cmd("BGREWRITEAOF")).await {
        Ok(_) => tracing::info!(at = node.at(), "asked Redis to rewrite its append-only file"),
        // This run began it, so it writes what this run has loaded.
        Err(ServerFailure::Other(error)) if error.to_string().contains("already in progress") => {}
        Err(failure) => {
            // So that other instances find out for themselves. If this fails too, this instance still asks again.
            let mut release = cmd("HDEL");
            release.arg(session.keys.rewrites()).arg(&**run);
            drop(session.servers.set(Channel::Calls, &release).await);
            return Err(failure);
        }
    }
    Ok(())
}

/// Returns whether no other instance has asked this run of a server before. If so, records that this instance does.
async fn claim_rewrite(session: &Session, run: &str) -> Result<bool, ServerFailure> {
    let key = session.keys.rewrites();
    let mut claim = cmd("HSETNX");
    claim.arg(&key).arg(run).arg(&session.instance);
    if session.servers.send(Channel::Calls, &claim).await? != Value::Int(1) {
        let mut claimed_by = cmd("HGET");
        claimed_by.arg(&key).arg(run);
        let by = session.servers.read(Channel::Calls, &claimed_by).await?;
        return Ok(by == Value::BulkString(session.instance.as_bytes().to_vec()));
    }
    let mut names = cmd("HKEYS");
    names.arg(&key);
    if let Value::Array(runs) = session.servers.read(Channel::Calls, &names).await?
        && runs.len() > RUNS
    {
        // Earlier runs are no longer needed.
        let mut remove = cmd("HDEL");
        remove.arg(&key);
        for old in &runs {
            if let Value::BulkString(old) = old
                && old != run.as_bytes()
            {
                remove.arg(old);
            }
        }
        session.servers.set(Channel::Calls, &remove).await?;
    }
    Ok(true)
}

/// Returns an error that says how far a server is, if it is loading its data. It answers this at any time.
pub(super) async fn check_loaded(node: &Node) -> Result<(), ServerFailure> {
    let text = persistence(node).await?;
    if !Persistence::read(&text).is_loading {
        return Ok(());
    }
    let field = |name: &str| text.lines().find_map(|line| line.trim_end().strip_prefix(name)?.strip_prefix(':'));
    let of = |name: &str| field(name).unwrap_or("?").to_owned();
    Err(Unready::loading(format!(
        "{} % are loaded, {} s are left",
        of("loading_loaded_perc"),
        of("loading_eta_seconds")
    )))
}

/// Returns what a server says about its persistence.
async fn persistence(node: &Node) -> Result<String, ServerFailure> {
    let mut command = cmd("INFO");
    command.arg("persistence");
    match node.send(Channel::Calls, &command).await? {
        Value::BulkString(bytes) => Ok(String::from_utf8_lossy(&bytes).into_owned()),
        Value::VerbatimString { text, .. } => Ok(text),
        other => Err(ServerFailure::Corrupt(format!("unexpected reply to INFO: {other:?}"))),
    }
}

/// The state of a server's persistence.
#[derive(Debug, PartialEq, Eq)]
struct Persistence {
    is_loading: bool,
    keeps_aof: bool,
}

impl Persistence {
    async fn ask(node: &Node) -> Result<Self, ServerFailure> {
        Ok(Self::read(&persistence(node).await?))
    }

    fn read(text: &str) -> Self {
        let says = |field: &str| text.lines().any(|line| line.trim_end() == field);
        Self { is_loading: says("loading:1"), keeps_aof: says("aof_enabled:1") }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::board::{Definition, Generation};

    #[test]
    fn persistence_info_is_parsed() {
        let read = Persistence::read("# Persistence\r\nloading:1\r\naof_enabled:1\r\n");
        assert_eq!(read, Persistence { is_loading: true, keeps_aof: true });
        let read = Persistence::read("loading:0\r\naof_enabled:0\r\naof_enabled_since:1\r\n");
        assert_eq!(read, Persistence { is_loading: false, keeps_aof: false });
    }

    #[test]
    fn boards_with_many_differences_or_a_missing_slot_are_held() {
        let definition = Definition::new("SUM(3h, e, v, s)".parse().unwrap(), "1h".parse().unwrap());
        let board = Board::new(BoardName::parse("b").unwrap(), Generation(1), definition).unwrap();
        let found = |checked, differences, missing_slots| {
            let mut found = AuditProgress::start(board.edition().main());
            (found.checked, found.differences, found.missing_slots) = (checked, differences, missing_slots);
            found
        };
        let is_held = |found: &AuditProgress| reason_to_hold(found, FEW.max(found.checked / 100)).is_some();
        assert!(!is_held(&found(1_000, 1_000, 0)));
        assert!(is_held(&found(2_000, 1_001, 0)));
        assert!(!is_held(&found(1_000_000, 10_000, 0)));
        assert!(is_held(&found(1_000_000, 10_001, 0)));
        assert!(is_held(&found(1_000, 1, 1)));
        assert!(!is_held(&found(1_000, 0, 1)), "a name under which nothing was written");
    }
}
