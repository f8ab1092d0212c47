//! Calls of scripts about several tracks of a partition, at one time.

use std::collections::BTreeSet;

use super::part::Part;
use super::reply::{Header, Reply, ScriptStatus};
use super::scripts::{Script, ScriptCall};
use super::servers::{Channel, ServerFailure};
use super::session::{ATTEMPTS, Preamble, Session, is_step_due};
use crate::board::{Timestamp, WindowSlots};

/// The input for one attempt.
pub(super) struct Attempt {
    pub now: Timestamp,
    /// The window of each track.
    pub windows: Vec<WindowSlots>,
    /// The slots that the script was found to need, for each track.
    pub needed: Vec<BTreeSet<Timestamp>>,
}

/// The result of a call.
pub(super) struct Answer {
    pub header: Header,
    pub attempt: Attempt,
    pub reply: Reply,
}

/// Calls a script about tracks, of which there is at least one. `write_lane` is the argument of this name. `build`
/// returns what each attempt says about each track: the keys after those of the board, and the arguments after `sizes`.
pub(super) async fn call(
    session: &Session,
    parts: &[&Part],
    script: &Script,
    write_lane: &str,
    build: impl Fn(&Attempt) -> Vec<ScriptCall>,
) -> Result<Answer, ServerFailure> {
    let first = parts.first().ok_or_else(|| ServerFailure::Corrupt("a call about no track".to_owned()))?;
    let mut known = None;
    let mut needed = vec![BTreeSet::new(); parts.len()];
    for _ in 0..ATTEMPTS {
        let now = session.time_for(&first.clock, known).await?;
        if is_step_due(first, now) {
            return Err(ServerFailure::StepDue);
        }
        let windows = parts.iter().map(|part| part.window_slots(now)).collect();
        let attempt = Attempt { now, windows, needed: needed.clone() };
        let call = assembled(session, parts, write_lane, &attempt, build(&attempt));
        let mut reply = Reply::new(session.servers.call(Channel::Bulk, script, &call).await?)?;
        match session.learn(first, &mut reply)? {
            ScriptStatus::Done(header) => return Ok(Answer { header, attempt, reply }),
            ScriptStatus::Stale { now, .. } => known = Some(now),
            ScriptStatus::StaleKeys { header, .. } => known = Some(header.now),
            ScriptStatus::Missing { header, slots } => {
                known = Some(header.now);
                needed.iter_mut().zip(slots).for_each(|(needed, slots)| needed.extend(slots));
            }
        }
    }
    Err(ServerFailure::KeptChanging)
}

fn assembled(
    session: &Session,
    parts: &[&Part],
    write_lane: &str,
    attempt: &Attempt,
    own: Vec<ScriptCall>,
) -> ScriptCall {
    let now = attempt.now;
    let windows = || parts.iter().zip(attempt.windows.iter().map(|slots| slots.window));
    let valid = || windows().map(|(part, window)| part.track.valid_within(&window, now));
    let low = valid().map(|(low, _)| low).max().unwrap_or(Timestamp::EPOCH);
    let high = valid().map(|(_, high)| high).min().unwrap_or(Timestamp::MAX);
    let begin = |(part, window): (&&Part, _)| {
        let mut call = session.begin_with(part, &Preamble { window, now, low, high });
        call.arg("sequence", 0).arg("write_lane", write_lane);
        call
    };
    let tracks: Vec<(ScriptCall, ScriptCall)> = windows().map(begin).zip(own).collect();
    let size = |(begun, own): &(ScriptCall, ScriptCall)| {
        let [(keys, arguments), (own_keys, own_arguments)] = [begun, own].map(ScriptCall::size);
        // `sizes` itself is an argument too.
        format!("{},{}", keys + own_keys, arguments + 1 + own_arguments)
    };
    let sizes = tracks.iter().map(size).collect::<Vec<_>>().join(";");
    let mut all = tracks.into_iter().map(|(mut call, own)| {
        call.arg("sizes", &sizes).append(own);
        call
    });
    let mut call = all.next().unwrap_or_default();
    all.for_each(|track| call.further(track));
    call
}
