//! Calls of scripts about several tracks of a partition, at one time.

use std::collections::BTreeSet;

use super::part::Part;
use super::reply::{Header, Reply, ScriptStatus};
use super::scripts::{Script, ScriptCall};
use super::servers::{Channel, ServerFailure};
use super::session::{ATTEMPTS, Preamble, Session, is_step_due};
use crate::board::{Timestamp, WindowSlots};

/// What a call says about one of the tracks.
#[derive(Default)]
pub(super) struct OwnCall {
    /// The keys after those of the board.
    pub keys: Vec<String>,
    /// The arguments after `sizes`, by name.
    pub named: Vec<(&'static str, String)>,
    /// The arguments after these.
    pub more: Vec<Vec<u8>>,
}

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
/// returns what each attempt says about each track.
pub(super) async fn call(
    session: &Session,
    parts: &[&Part],
    script: &Script,
    write_lane: &str,
    build: impl Fn(&Attempt) -> Vec<OwnCall>,
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
        let answer = session.servers.call(first.slot(), Channel::Bulk, script, &script.command(&call)).await?;
        let mut reply = Reply::new(answer)?;
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

fn assembled(session: &Session, parts: &[&Part], write_lane: &str, attempt: &Attempt, own: Vec<OwnCall>) -> ScriptCall {
    let windows = || attempt.windows.iter().map(|slots| slots.window);
    let now = attempt.now;
    let valid = || parts.iter().zip(windows()).map(|(part, window)| part.track.valid_within(&window, now));
    let low = valid().map(|(low, _)| low).max().unwrap_or(Timestamp::EPOCH);
    let high = valid().map(|(_, high)| high).min().unwrap_or(Timestamp::MAX);
    let (mut call, mut sizes, mut arguments) = (ScriptCall::default(), Vec::new(), Vec::new());
    for ((part, window), own) in parts.iter().zip(windows()).zip(own) {
        let of_board = &part.keys;
        for key in [&of_board.meta, &of_board.index, &of_board.ranking, &of_board.buckets, &of_board.totals] {
            call.key(key);
        }
        own.keys.iter().for_each(|key| {
            call.key(key);
        });
        let mut named: Vec<_> = session.preamble(part, &Preamble { window, now, low, high }).into();
        named.push(("sequence", "0".to_owned()));
        named.push(("write_lane", write_lane.to_owned()));
        named.push(("sizes", String::new()));
        named.extend(own.named);
        sizes.push(format!("{},{}", 5 + own.keys.len(), named.len() + own.more.len()));
        arguments.push((named, own.more));
    }
    let sizes = sizes.join(";");
    for (number, (named, more)) in arguments.into_iter().enumerate() {
        for (name, argument) in &named {
            let argument = if *name == "sizes" { &sizes } else { argument };
            match number {
                0 => drop(call.arg(name, argument)),
                _ => drop(call.more(argument)),
            }
        }
        for argument in more {
            call.raw(argument);
        }
    }
    call
}
