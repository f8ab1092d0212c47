//! Write operations. Each is one script, which is sent until it is known to be done: writer, lane and sequence number
//! distinguish a repeated script from the next one of its lane, so that it is done once although it may arrive twice.

use super::chunk::Chunk;
use super::lane::WriteLane;
use super::plan::Planned;
use super::retry::repeat;
use crate::board::{Track, Window};
use crate::store::redis::keys::BoardKeys;
use crate::store::redis::kinds;
use crate::store::redis::reply::{Reply, Status};
use crate::store::redis::scripts::{ADD, FixedArguments, Script, WRITE};
use crate::store::redis::servers::{Channel, ServerFailure};

/// One chunk of a plan, as a write operation.
pub(super) struct WriteOperation<'o, 'p, 'f> {
    pub lane: &'o WriteLane<'o, 'f>,
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
    /// Calls a script until it is known to be done, up to the deadline of the flush, and returns the status of its reply
    /// and the rest. The command is built again for each attempt, because the expected time moves on.
    pub async fn send(&self) -> Result<(Status, Reply), ServerFailure> {
        let part = self.lane.flush.part;
        let mut reply = if self.planned.by_change {
            self.call(kinds::change_script(part.track.board().edition()), || self.change_command()).await?
        } else {
            let added = match self.common_slots() {
                Some(slots) => Some(self.call(&ADD, || self.add_command(slots)).await?),
                None => None,
            };
            match added.filter(|reply| !reply.is_word("unusual")) {
                Some(reply) => reply,
                // This has the same sequence number. So if the call of `add.lua` arrives once more, the record of this
                // call stops it.
                None => self.call(&WRITE, || self.write_command()).await?,
            }
        };
        Ok((self.lane.writer.session.learn(part, &mut reply)?, reply))
    }

    async fn call(&self, script: &Script, command: impl Fn() -> redis::Cmd) -> Result<Reply, ServerFailure> {
        let WriteLane { flush, writer, is_bulk, .. } = self.lane;
        let channel = if *is_bulk { Channel::BulkWrites } else { Channel::Writes };
        let servers = &writer.session.servers;
        let call = async || servers.call(flush.part.slot(), channel, script, &command()).await;
        Reply::new(repeat(flush.deadline, call).await?)
    }

    /// Returns the tracks of the board, the main one first.
    pub fn tracks(&self) -> Vec<InTrack<'_>> {
        let part = self.lane.flush.part;
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
        let WriteLane { flush, writer, number: lane, .. } = self.lane;
        let session = &writer.session;
        let mut fixed = FixedArguments::new(script, command);
        let preamble = self.planned.validity.preamble(track.number);
        for (name, argument) in session.preamble(flush.part, track.track, &preamble) {
            fixed.arg(name, argument);
        }
        // The name of the lane in the meta key.
        fixed.arg("sequence", self.sequence).arg("write_lane", format!("{}:{lane}", session.instance));
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
