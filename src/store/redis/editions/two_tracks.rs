//! Calls of scripts about two tracks of a partition, at one time.

use std::collections::BTreeSet;

use crate::board::{Timestamp, WindowSlots};
use crate::store::redis::part::Part;
use crate::store::redis::reply::{Header, Reply, ScriptStatus};
use crate::store::redis::scripts::{Script, ScriptCall};
use crate::store::redis::servers::{Channel, ServerFailure};
use crate::store::redis::session::{ATTEMPTS, Preamble, Session};

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
    pub windows: [WindowSlots; 2],
    /// The slots that the script was found to need, for each track.
    pub needed: [BTreeSet<Timestamp>; 2],
}

/// The result of a call.
pub(super) struct Answer {
    pub header: Header,
    pub attempt: Attempt,
    pub reply: Reply,
}

/// Calls a script about two tracks. `write_lane` is the argument of this name. `build` returns what each attempt says
/// about each track.
pub(super) async fn call(
    session: &Session,
    parts: [&Part; 2],
    script: &Script,
    write_lane: &str,
    build: impl Fn(&Attempt) -> [OwnCall; 2],
) -> Result<Answer, ServerFailure> {
    let [first, _] = parts;
    let mut known = None;
    let mut needed: [BTreeSet<Timestamp>; 2] = Default::default();
    for _ in 0..ATTEMPTS {
        let now = session.time_for(&first.clock, known).await?;
        let windows = parts.map(|part| part.window_slots(now));
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

fn assembled(
    session: &Session,
    parts: [&Part; 2],
    write_lane: &str,
    attempt: &Attempt,
    own: [OwnCall; 2],
) -> ScriptCall {
    let windows = [&attempt.windows[0].window, &attempt.windows[1].window];
    let (low, high) = (windows[0].head.max(windows[1].head), windows[0].end.min(windows[1].end));
    let mut call = ScriptCall::default();
    let mut arguments = [Vec::new(), Vec::new()];
    let mut keys = [0, 0];
    for (number, (part, own)) in parts.into_iter().zip(&own).enumerate() {
        let of_board = &part.keys;
        for key in [&of_board.meta, &of_board.index, &of_board.ranking, &of_board.buckets, &of_board.totals] {
            call.key(key);
        }
        own.keys.iter().for_each(|key| {
            call.key(key);
        });
        keys[number] = 5 + own.keys.len();
        let named = &mut arguments[number];
        named.extend(session.preamble(part, &Preamble { window: *windows[number], low, high }));
        named.push(("sequence", "0".to_owned()));
        named.push(("write_lane", write_lane.to_owned()));
        named.push(("sizes", String::new()));
        named.extend(own.named.iter().cloned());
    }
    let size = |number: usize| format!("{},{}", keys[number], arguments[number].len() + own[number].more.len());
    let sizes = format!("{};{}", size(0), size(1));
    let [first, second] = own;
    for (name, argument) in &arguments[0] {
        call.arg(name, if *name == "sizes" { &sizes } else { argument });
    }
    for argument in first.more {
        call.raw(argument);
    }
    for (name, argument) in &arguments[1] {
        call.more(if *name == "sizes" { &sizes } else { argument });
    }
    for argument in second.more {
        call.raw(argument);
    }
    call
}
