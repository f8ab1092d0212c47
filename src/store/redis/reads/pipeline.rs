//! The pipeline of a flight, and the replies to it.

use redis::{Cmd, Value, cmd};

use crate::store::redis::hash_slot::HashSlot;
use crate::store::redis::part::Part;
use crate::store::redis::scripts::{Script, ScriptCall};
use crate::store::redis::servers::{Channel, Request, ServerFailure};
use crate::store::redis::session::Session;

/// The commands that are sent together.
#[derive(Default)]
pub(super) struct Pipeline {
    sent: Vec<(HashSlot, Cmd, Option<&'static Script>)>,
    /// The position of the `TIME` command for each node.
    times: Vec<(usize, usize)>,
}

impl Pipeline {
    /// Adds a command. Returns the position of its reply.
    pub fn read(&mut self, part: &Part, command: Cmd) -> usize {
        self.sent.push((part.slot(), command, None));
        self.sent.len() - 1
    }

    /// Adds `TIME` for the node that has a part, once for all parts of that node. Returns the position of its reply.
    pub fn time(&mut self, part: &Part, node: usize) -> usize {
        if let Some((_, place)) = self.times.iter().find(|(other, _)| *other == node) {
            return *place;
        }
        let place = self.read(part, cmd("TIME"));
        self.times.push((node, place));
        place
    }

    /// Adds a call of a script. Returns the position of its reply.
    pub fn call(&mut self, part: &Part, script: &'static Script, call: &ScriptCall) -> usize {
        self.sent.push((part.slot(), script.command(call), Some(script)));
        self.sent.len() - 1
    }

    pub async fn send(self, session: &Session, channel: Channel) -> Replies {
        let requests = self.sent.iter().map(|(slot, command, script)| match script {
            Some(script) => Request::call(*slot, script, command),
            None => Request::read(*slot, command),
        });
        let replies = session.servers.replies(channel, &requests.collect::<Vec<_>>()).await;
        let (values, single) =
            replies.into_iter().map(|reply| (Some(reply.answer), reply.incarnation.is_none())).unzip();
        Replies { values, single }
    }
}

/// The replies to a pipeline.
pub(super) struct Replies {
    values: Vec<Option<Result<Value, ServerFailure>>>,
    /// For each reply, whether its command was sent separately from the others.
    single: Vec<bool>,
}

impl Replies {
    pub fn take(&mut self, place: usize) -> Result<Value, ServerFailure> {
        let missing = || Err(ServerFailure::Corrupt("a command was not answered".to_owned()));
        self.values.get_mut(place).and_then(Option::take).unwrap_or_else(missing)
    }

    /// Returns a copy of a reply that several questions use.
    pub fn share(&self, place: usize) -> Result<Value, ServerFailure> {
        let missing = || Err(ServerFailure::Corrupt("a command was not answered".to_owned()));
        self.values.get(place).cloned().flatten().unwrap_or_else(missing)
    }

    pub fn is_single(&self, place: usize) -> bool {
        self.single.get(place).copied().unwrap_or(true)
    }
}
