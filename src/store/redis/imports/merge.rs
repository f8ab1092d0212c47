//! Merging of pieces. Every part of a track receives every piece, also one that has nothing for it, so that each knows
//! which pieces are merged.
//!
//! A piece is divided into chunks, one script each. The record of a write operation makes it safe to send one again:
//! the writer is the import, and the number of the operation is that of the piece and of the chunk. So a chunk counts
//! once, whoever sends it, and one that is older than the last one is known to have been sent.

use std::collections::BTreeSet;
use std::time::Duration;

use futures_util::stream::{self, StreamExt};
use redis::Value;
use tokio::time::{Instant, sleep};

use super::chunk::{Counters, LAST, PieceChunk, divide, plan};
use crate::board::{Subject, Timestamp};
use crate::store::redis::entries::{TrackEntries, likely_slots};
use crate::store::redis::kinds;
use crate::store::redis::part::Part;
use crate::store::redis::partitions::Parts;
use crate::store::redis::reply::{Reply, ScriptStatus};
use crate::store::redis::scripts::ScriptCall;
use crate::store::redis::servers::{Channel, ServerFailure};
use crate::store::redis::session::{ATTEMPTS, Moment, Session};
use crate::store::{Content, ImportId, Merged, Piece};

/// The longest time for which a chunk is sent again, and the pause between two attempts.
const PATIENCE: Duration = Duration::from_secs(5);
const PAUSE: Duration = Duration::from_millis(50);
/// The number of parts into which a piece is merged at the same time.
const TOGETHER: usize = 8;

/// A chunk of a piece for one part.
struct Merging<'a> {
    session: &'a Session,
    part: &'a Part,
    import: ImportId,
    piece: &'a Piece,
    counters: Counters,
    chunk: PieceChunk<'a>,
    /// Whether the part receives the numbers of events.
    counts_events: bool,
}

/// Merges a piece into all parts of a track.
pub(super) async fn merge(
    session: &Session,
    parts: &Parts,
    (import, piece): (ImportId, &Piece),
    counters: Counters,
) -> Result<Merged, ServerFailure> {
    let mut shares: Vec<Vec<&(Subject, Content)>> = vec![Vec::new(); parts.count()];
    for content in &piece.contents {
        shares[parts.number_of(&content.0)].push(content);
    }
    let of_parts: Vec<_> = parts
        .all()
        .iter()
        .zip(&shares)
        .enumerate()
        .map(|(number, (part, share))| merge_share(session, part, (import, piece), counters, (share, number == 0)))
        .collect();
    let mut merged = stream::iter(of_parts).buffer_unordered(TOGETHER);
    let mut all = Merged::default();
    while let Some(merged) = merged.next().await {
        all.add(merged?);
    }
    Ok(all)
}

/// Merges what a part has of a piece. The first part receives the numbers of events.
async fn merge_share(
    session: &Session,
    part: &Part,
    (import, piece): (ImportId, &Piece),
    counters: Counters,
    (share, is_first): (&[&(Subject, Content)], bool),
) -> Result<Merged, ServerFailure> {
    let mut merged = Merged::default();
    for chunk in divide(part, share) {
        let counts_events = is_first && chunk.number == LAST;
        merged.add(Merging { session, part, import, piece, counters, chunk, counts_events }.merge().await?);
    }
    Ok(merged)
}

impl Merging<'_> {
    /// Sends the chunk until it is known to be merged.
    async fn merge(&self) -> Result<Merged, ServerFailure> {
        let Self { session, part, .. } = self;
        let deadline = Instant::now() + PATIENCE;
        let (mut known, mut needed, mut is_doubtful) = (None, BTreeSet::new(), false);
        for _ in 0..ATTEMPTS {
            let now = session.time_for(&part.clock, known).await?;
            let moment = session.moment(part, now, None);
            let (reply, was_lost) = self.send(&self.call(&moment, &needed), deadline).await?;
            is_doubtful |= was_lost;
            let mut reply = Reply::new(reply)?;
            let all = self.chunk.contents.len() as u64;
            if reply.is_word("superseded") {
                return Ok(Merged { repeated: all, ..Merged::default() });
            }
            match session.learn(part, &mut reply)? {
                ScriptStatus::Done(_) => {
                    let merged = Merged {
                        merged: reply.count()?,
                        expired: reply.count()?,
                        refused: reply.count()?,
                        repeated: 0,
                    };
                    // The reply of an attempt of this call that was lost comes without that word too.
                    let is_own = !reply.is_empty() || is_doubtful;
                    return Ok(if is_own { merged } else { Merged { repeated: all, ..Merged::default() } });
                }
                ScriptStatus::Stale { now, .. } => known = Some(now),
                ScriptStatus::StaleKeys { header, .. } => known = Some(header.now),
                ScriptStatus::Missing { header, slots } => {
                    known = Some(header.now);
                    needed.extend(slots.into_iter().flatten());
                }
            }
        }
        Err(ServerFailure::KeptChanging)
    }

    /// Calls the script until it is known to be done. Also returns whether the reply of an attempt was lost. The
    /// failure after a lost reply is [`ServerFailure::Unknown`]: a later refusal does not change that.
    async fn send(&self, call: &ScriptCall, deadline: Instant) -> Result<(Value, bool), ServerFailure> {
        let script = kinds::script_of(&self.part.track, "merge");
        let mut doubt = None;
        loop {
            let failure = match self.session.servers.call(Channel::BulkWrites, script, call).await {
                Ok(reply) => return Ok((reply, doubt.is_some())),
                Err(failure) => failure,
            };
            if !failure.may_pass() || Instant::now() + PAUSE >= deadline {
                return Err(doubt.unwrap_or(failure));
            }
            if failure.is_unknown() {
                doubt = Some(failure);
            }
            sleep(PAUSE).await;
        }
    }

    /// Returns the arguments of `merge.lua`.
    fn call(&self, moment: &Moment<'_>, needed: &BTreeSet<Timestamp>) -> ScriptCall {
        let Self { session, part, import, piece, chunk, .. } = self;
        let track = &part.track;
        let planned = plan(moment, chunk, self.counters);
        let subjects = planned.entries.iter().map(|entry| entry.subject).collect();
        let mut starts = likely_slots(part, &moment.window);
        starts.extend(planned.entries.iter().filter_map(|entry| entry.slot).chain(needed.iter().copied()));
        let own = TrackEntries::new(part, (&moment.window, moment.now), starts, &subjects, None);
        // Those of slots that the track does not have are left out.
        let is_slot = |start: Timestamp| {
            start >= own.oldest && start <= moment.window.head && track.calendar().slot_of(start) == start
        };
        let events: Vec<_> = match self.counts_events {
            true => piece.events.iter().filter(|(start, items)| is_slot(*start) && *items > 0).collect(),
            false => Vec::new(),
        };

        let is_last = chunk.number == LAST;
        let mut call = session.begin(moment);
        call.arg("sequence", piece.number << LAST.count_ones() | chunk.number);
        call.arg("write_lane", format!("import-{import}:0"));
        own.add_to(&mut call, planned.entries.len());
        call.arg("import", import).arg("piece", if is_last { piece.number.to_string() } else { String::new() });
        call.arg("expired", planned.expired).arg("refused", planned.refused).arg("events", events.len());
        own.add_lists(call.rest());
        for entry in &planned.entries {
            own.add(entry, call.rest());
        }
        for (start, items) in events {
            call.more(start.millis()).more(items);
        }
        call.more(kinds::option(track));
        call
    }
}
