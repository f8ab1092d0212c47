//! Write operations. Each is one script, which is sent until it is known to be done: writer, lane and sequence number
//! distinguish a repeated script from the next one of its lane, so that it is done once although it may arrive twice.

use std::collections::BTreeSet;

use redis::Value;

use super::chunk::Chunk;
use super::flush::Flush;
use super::plan::Planned;
use super::retry::repeat;
use crate::board::{Timestamp, Track, Window};
use crate::store::redis::keys::BoardKeys;
use crate::store::redis::kinds;
use crate::store::redis::scripts::{ADD, FixedArguments, Script, WRITE};
use crate::store::redis::servers::{Channel, ServerFailure};
use crate::store::redis::session::Session;

/// One chunk of a plan, as a write operation.
pub(super) struct WriteOperation<'o, 'p, 'f> {
    pub flush: &'o Flush<'f>,
    pub session: &'o Session,
    /// The number of the lane, of which each has sequence numbers of its own.
    pub lane: usize,
    pub is_bulk: bool,
    /// The slots of each track that earlier attempts were found to need.
    pub needed: &'o [BTreeSet<Timestamp>],
    pub planned: &'o Planned<'f>,
    pub chunk: &'o Chunk<'p, 'f>,
    pub sequence: u64,
}

/// One track of the board that is written to.
pub(super) struct InTrack<'a> {
    /// 0 for the main track.
    pub number: usize,
    pub track: &'a Track,
    pub keys: &'a BoardKeys,
    pub window: Window,
}

impl InTrack<'_> {
    pub fn is_main(&self) -> bool {
        self.number == 0
    }
}

impl WriteOperation<'_, '_, '_> {
    /// Sends the script until it is known to be done, up to the deadline of the flush, and returns its reply. It is
    /// encoded again for each attempt, because the latest reading to believe moves on; everything else stays the same.
    pub async fn send(&self) -> Result<Value, ServerFailure> {
        if self.planned.in_order {
            return self.deliver(kinds::change_script(self.flush.part.track.board().edition()), || self.change()).await;
        }
        if let Some(slots) = self.common_slots() {
            let reply = self.deliver(&ADD, || self.add(slots)).await?;
            if !is_unusual(&reply) {
                return Ok(reply);
            }
        }
        // This has the same sequence number. So if the call of `add.lua` arrives once more, the record of this call
        // stops it.
        self.deliver(&WRITE, || self.write()).await
    }

    async fn deliver(&self, script: &Script, encode: impl Fn() -> redis::Cmd) -> Result<Value, ServerFailure> {
        let (Flush { part, deadline, .. }, session) = (self.flush, self.session);
        let channel = if self.is_bulk { Channel::BulkWrites } else { Channel::Writes };
        repeat(*deadline, async || session.servers.call(part.slot(), channel, script, &encode()).await).await
    }

    /// Returns the tracks of the board, the main one first.
    pub fn tracks(&self) -> Vec<InTrack<'_>> {
        let part = self.flush.part;
        let keys = std::iter::once(&part.keys).chain(&part.further);
        let tracks = part.track.board().tracks().iter().zip(keys).zip(&self.planned.validity.windows).enumerate();
        tracks.map(|(number, ((track, keys), window))| InTrack { number, track, keys, window: *window }).collect()
    }

    /// Adds the arguments with which every script of a write begins, those of the board and of the operation.
    pub fn begin<'c>(
        &self,
        track: &InTrack<'_>,
        script: &'static Script,
        command: &'c mut redis::Cmd,
    ) -> FixedArguments<'c> {
        let (part, session) = (self.flush.part, self.session);
        let mut fixed = FixedArguments::new(script, command);
        let preamble = self.planned.validity.preamble(track.number);
        for (name, argument) in session.preamble_of(part, track.track, &preamble) {
            fixed.arg(name, argument);
        }
        // The name of the lane in the meta key.
        let lane = format!("{}:{}", session.instance, self.lane);
        fixed.arg("sequence", self.sequence).arg("write_lane", lane);
        fixed
    }
}

/// Returns the argument `sizes` of the scripts that change several tracks, given the numbers of keys and arguments of
/// each.
pub(super) fn sizes(tracks: impl ExactSizeIterator<Item = (usize, usize)>) -> String {
    if tracks.len() == 1 {
        return String::new();
    }
    let sizes: Vec<String> = tracks.map(|(keys, arguments)| format!("{keys},{arguments}")).collect();
    sizes.join(" ")
}

/// Returns whether `add.lua` left the work to `write.lua`.
fn is_unusual(reply: &Value) -> bool {
    matches!(reply, Value::Array(values) if matches!(&values[..], [Value::BulkString(word)] if word == b"unusual"))
}
