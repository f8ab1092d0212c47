//! Write operations. Each is one script, which is sent until it is known to be done: writer, lane and sequence number
//! distinguish a repeated script from the next one of its lane, so that it is done once although it may arrive twice.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::chunk::PlanChunk;
use super::flush::Flush;
use super::plan::Planned;
use super::retry::repeat;
use crate::board::{Board, Timestamp, Window};
use crate::store::redis::editions;
use crate::store::redis::part::Part;
use crate::store::redis::reply::{Reply, ScriptStatus};
use crate::store::redis::scripts::{ADD, FixedArguments, Script, WRITE};
use crate::store::redis::servers::{Channel, Request, ServerFailure};
use crate::store::redis::session::Session;

/// One lane of a flush.
pub(super) struct WriteLane<'a, 'f> {
    pub flush: &'a Flush<'f>,
    pub session: &'a Session,
    /// The latest sequence number of this instance.
    pub sequence: &'a AtomicU64,
    pub number: usize,
    /// Whether it is one of several.
    pub is_bulk: bool,
    /// The slots that earlier scripts were found to need, for each track of the board.
    pub needed: Vec<BTreeSet<Timestamp>>,
}

/// One chunk of a plan, as a write operation.
pub(super) struct WriteOperation<'o, 'p, 'f> {
    pub lane: &'o WriteLane<'o, 'f>,
    pub planned: &'o Planned<'f>,
    pub chunk: &'o PlanChunk<'p, 'f>,
    pub sequence: u64,
    /// For a step of a source, what it moves.
    pub fence: Option<&'o Fence>,
}

/// What a step of a source moves, and from where.
#[derive(Debug)]
pub(super) struct Fence {
    /// The key of the hash of what is reached.
    pub key: String,
    /// The argument `fence` of the scripts.
    pub argument: String,
}

impl WriteLane<'_, '_> {
    /// Returns the number of the next operation.
    pub fn next_sequence(&self) -> u64 {
        self.sequence.fetch_add(1, Ordering::Relaxed) + 1
    }
}

impl WriteOperation<'_, '_, '_> {
    /// Calls a script until it is known to be done, up to the deadline of the flush, and returns the status of its
    /// reply and the rest. The command is built again for each attempt, because the expected time moves on.
    ///
    /// If the partition is in an earlier epoch than its board, it is brought forward, and the same operation is sent
    /// once more: so an earlier attempt that arrives after that does not count in addition.
    pub async fn send(&self) -> Result<(ScriptStatus, Reply), ServerFailure> {
        let (session, board) = (self.lane.session, self.lane.flush.partition.board());
        for _ in 0..editions::ATTEMPTS {
            match self.send_once().await {
                Err(failure @ ServerFailure::StaleEpoch) => editions::follow(session, board, failure).await?,
                sent => return sent,
            }
        }
        Err(ServerFailure::KeptChanging)
    }

    async fn send_once(&self) -> Result<(ScriptStatus, Reply), ServerFailure> {
        let partition = self.lane.flush.partition;
        // A script that finds something unusual does nothing, and the next one is called with the same sequence number.
        // So if a call arrives once more, the record of a later one stops it.
        let mut reply = None;
        if !self.planned.by_change {
            if let Some(slots) = self.common_slots() {
                reply = unless_unusual(self.call(&ADD, || self.add_command(slots)).await?);
            }
            if reply.is_none() {
                reply = unless_unusual(self.call(&WRITE, || self.write_command()).await?);
            }
        }
        let mut reply = match reply {
            Some(reply) => reply,
            None => self.call(partition.change_script(), || self.change_command()).await?,
        };
        Ok((self.lane.session.learn(partition.main(), &mut reply)?, reply))
    }

    async fn call(&self, script: &Script, command: impl Fn() -> redis::Cmd) -> Result<Reply, ServerFailure> {
        let WriteLane { flush, session, is_bulk, .. } = self.lane;
        let channel = if *is_bulk { Channel::BulkWrites } else { Channel::Writes };
        let slot = flush.partition.slot();
        let call = async || session.servers.request(channel, Request::call(slot, script, &command())).await;
        Reply::new(repeat(flush.deadline, call).await?)
    }

    /// Adds the key that comes after all others in a step of a source.
    pub fn add_fence_key(&self, command: &mut redis::Cmd) {
        if let Some(fence) = self.fence {
            command.arg(&fence.key);
        }
    }

    /// Returns the argument `fence`, which is empty if this is no step of a source.
    pub fn fence_argument(&self) -> &str {
        self.fence.map_or("", |fence| &fence.argument)
    }

    /// Returns the argument `sizes`, given the numbers of keys and arguments of each track: see [`sizes`].
    pub fn sizes(&self, tracks: impl ExactSizeIterator<Item = (usize, usize)>) -> String {
        sizes(self.lane.flush.partition.board(), tracks, self.fence.is_some())
    }

    /// Returns the part of each track that a write may change, the main one first.
    pub fn parts(&self) -> &[Arc<Part>] {
        let partition = self.lane.flush.partition;
        &partition.parts()[..partition.board().written_tracks().len()]
    }

    /// Returns the window of the part's track.
    pub fn window(&self, part: &Part) -> Window {
        self.planned.validity.windows[part.track.number()]
    }

    /// Adds the arguments with which every script of a write begins, those of the board and of the operation.
    pub fn begin<'c>(&self, part: &Part, script: &'static Script, command: &'c mut redis::Cmd) -> FixedArguments<'c> {
        let WriteLane { session, number: lane, .. } = self.lane;
        let mut fixed = FixedArguments::new(script, command);
        let preamble = self.planned.validity.preamble(part.track.number());
        for (name, argument) in session.preamble(part, &preamble) {
            fixed.arg(name, argument);
        }
        // The name of the lane in the meta key.
        fixed.arg("sequence", self.sequence).arg("write_lane", format!("{}:{lane}", session.instance));
        fixed
    }
}

fn unless_unusual(reply: Reply) -> Option<Reply> {
    Some(reply).filter(|reply| !reply.is_word("unusual"))
}

/// Returns the argument `most_keys` of the scripts that change tracks.
pub(super) fn most_keys(part: &Part) -> String {
    part.most_keys().map_or_else(String::new, |most| most.to_string())
}

/// Returns the argument `sizes` of the scripts that change several tracks of a board, given the numbers of keys and
/// arguments of each. A single track needs it only if a key follows its own.
fn sizes(board: &Board, tracks: impl ExactSizeIterator<Item = (usize, usize)>, has_fence: bool) -> String {
    if tracks.len() == 1 && !has_fence {
        return String::new();
    }
    // That of the first edition, if another one follows.
    let ends_at = board.other().map(|_| board.edition().numbers().end - 1);
    let size = |(number, (keys, arguments))| {
        let end = if Some(number) == ends_at { ";" } else { "" };
        format!("{keys},{arguments}{end}")
    };
    let sizes: Vec<String> = tracks.enumerate().map(size).collect();
    sizes.join(" ")
}
