//! The servers of the store: one server, a master that Sentinels name, or the masters of a cluster.
//!
//! Every command is sent to the owner of a [`HashSlot`], on one of the node's [`Channel`]s. Redirections are followed
//! here. After a failure with [`ServerFailure::is_passing`], callers wait and repeat the call. After
//! [`ServerFailure::Unknown`] they send the same write operation again to learn its outcome. It is then sent to the
//! current owner of the hash slot.

mod access;
mod address;
mod cluster;
mod deliver;
mod evidence;
mod failure;
#[cfg(test)]
mod fake;
mod info;
mod link;
mod map;
mod node;
mod open;
mod sentinel;
mod standing;
#[cfg(test)]
mod tests;
mod turns;
mod watch;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::future::join_all;
use metrics::counter;
use parking_lot::{Mutex, RwLock};
use redis::{Cmd, Pipeline, Value};

pub use self::address::{Address, AddressError};
pub(super) use self::failure::{NotPassed, ServerFailure, Unready};
pub(super) use self::info::Info;
pub(super) use self::link::Channel;
pub(super) use self::node::Node;

use self::access::Access;
use self::address::{Deployment, Host};
use self::cluster::Extent;
use self::failure::Refusal;
use self::link::Care;
use self::map::Map;
use self::node::Signs;
use self::watch::Watch;
use super::hash_slot::HashSlot;
use super::scripts::{Script, ScriptCall};
use crate::store::StoreError;

/// The shortest interval between two requests for the map of a cluster, and the time that a caller waits for the
/// Sentinels to name a different master.
const REFRESH: Duration = Duration::from_millis(100);

/// The longest time that such a request may take.
const LOOK: Duration = Duration::from_secs(2);

/// A reply of a cluster's node that took longer than this is checked with the other nodes. The replicas of a node
/// replace it only after it was silent for `cluster-node-timeout` (15 s by default), so a faster reply is that of an
/// owner. A node that was paused for longer continues with what it had received, before it learns that it was replaced.
const LATE: Duration = Duration::from_millis(500);

/// The servers, and the owners of the hash slots.
#[derive(Debug)]
pub(super) struct Servers {
    access: Access,
    /// The address, for messages.
    at: Arc<str>,
    map: RwLock<Arc<Map>>,
    /// Every node that was ever named, so that its connections are kept when the map changes.
    known: Mutex<HashMap<Host, Arc<Node>>>,
    /// The requests for the map of a cluster. Locked during a request, so that all callers that found the map to be
    /// wrong wait for one answer.
    refreshed: tokio::sync::Mutex<Refreshed>,
    signs: Arc<Signs>,
    /// The watch of the Sentinels, if there are any.
    watch: Arc<Watch>,
}

/// The latest requests for the map of a cluster.
#[derive(Debug, Default)]
struct Refreshed {
    /// The time when one was last answered.
    answered: Option<Instant>,
    /// The time when the latest one to the majority of the nodes that was answered began.
    by_majority: Option<Instant>,
}

/// A command and its hash slot.
#[derive(Clone, Copy, Debug)]
pub(super) struct Request<'a> {
    slot: HashSlot,
    command: &'a Cmd,
    script: Option<&'a Script>,
    /// Whether it may be sent again if its outcome is unknown.
    repeatable: bool,
    /// Whether any answer proves that the server accepts writes: `true` for a command, other than a script, that
    /// writes. `false` for every script, because its reply says whether it has written (see `has_written`).
    writes: bool,
}

/// The result of a request.
#[derive(Debug)]
pub(super) struct ServerReply {
    pub answer: Result<Value, ServerFailure>,
    /// The [`Servers::incarnation`] of the hash slot from before the request was sent until after it was answered.
    /// `None` if it changed in the meantime, or the request was redirected.
    pub incarnation: Option<u64>,
}

impl<'a> Request<'a> {
    /// Creates a request that is sent once more if its reply is lost.
    pub fn read(slot: HashSlot, command: &'a Cmd) -> Self {
        Self { slot, command, script: None, repeatable: true, writes: false }
    }

    /// Creates a request that may change data.
    pub fn write(slot: HashSlot, command: &'a Cmd) -> Self {
        Self { slot, command, script: None, repeatable: false, writes: true }
    }

    /// Creates a request that has the same effect once and twice. It is sent once more if its reply is lost.
    pub fn set(slot: HashSlot, command: &'a Cmd) -> Self {
        Self { slot, command, script: None, repeatable: true, writes: true }
    }

    /// Creates a call of a script (see [`Script::command`]). The script is loaded if the server does not have it.
    pub fn call(slot: HashSlot, script: &'a Script, command: &'a Cmd) -> Self {
        Self { slot, command, script: Some(script), repeatable: script.is_repeatable(), writes: false }
    }

    fn care(&self, channel: Channel) -> Care {
        if self.repeatable || channel.is_of_writes() { Care::Repeats } else { Care::Doubts }
    }

    /// Returns whether this reply proves that the server accepts writes.
    fn has_written(&self, channel: Channel, answer: &Value) -> bool {
        let is_done = || matches!(answer, Value::Array(values) if matches!(values.first(), Some(Value::BulkString(word)) if word == b"ok"));
        self.writes || self.script.is_some() && channel.is_of_writes() && is_done()
    }

    /// Counts the outcome of a call of a script.
    fn count(&self, answer: &Result<Value, ServerFailure>) {
        if let Some(script) = self.script {
            let outcome = if answer.is_ok() { "ok" } else { "failed" };
            counter!("rolltop_store_calls_total", "call" => script.name(), "outcome" => outcome).increment(1);
        }
    }
}

impl Servers {
    /// Sends a command to the server that has its key, once.
    pub async fn send(&self, channel: Channel, command: &Cmd) -> Result<Value, ServerFailure> {
        self.request(channel, Request::write(HashSlot::of_command(command), command)).await
    }

    /// Sends a command that only reads to the server that has its key, and once more if its reply is lost.
    pub async fn read(&self, channel: Channel, command: &Cmd) -> Result<Value, ServerFailure> {
        self.request(channel, Request::read(HashSlot::of_command(command), command)).await
    }

    /// Sends a command that has the same effect once and twice to the server that has its key, and once more if its
    /// reply is lost.
    pub async fn set(&self, channel: Channel, command: &Cmd) -> Result<Value, ServerFailure> {
        self.request(channel, Request::set(HashSlot::of_command(command), command)).await
    }

    /// Calls a script on the server that has its keys. If the script is repeatable, calls it once more if its reply is
    /// lost.
    pub async fn call(&self, channel: Channel, script: &Script, call: &ScriptCall) -> Result<Value, ServerFailure> {
        self.request(channel, Request::call(call.slot(), script, &script.command(call))).await
    }

    /// Sends a request. If it may be sent again, sends it once more if its reply is lost.
    pub async fn request(&self, channel: Channel, request: Request<'_>) -> Result<Value, ServerFailure> {
        let mut answer = self.deliver(channel, &request).await;
        if request.repeatable && matches!(answer, Err(ServerFailure::Unknown(_))) {
            answer = self.deliver(channel, &request).await;
        }
        request.count(&answer);
        answer
    }

    /// Sends commands, in one pipeline to each node concerned. Those that a node did not do because it does not have
    /// the hash slot or the script are then sent separately.
    pub async fn requests(&self, channel: Channel, requests: &[Request<'_>]) -> Vec<Result<Value, ServerFailure>> {
        self.replies(channel, requests).await.into_iter().map(|reply| reply.answer).collect()
    }

    /// Sends commands like [`requests`](Self::requests), and returns for each reply the incarnation in which it was
    /// read.
    pub async fn replies(&self, channel: Channel, requests: &[Request<'_>]) -> Vec<ServerReply> {
        let mut groups: Vec<(Arc<Node>, Vec<usize>)> = Vec::new();
        let mut left = Vec::new();
        {
            let map = self.map.read();
            for (place, request) in requests.iter().enumerate() {
                match map.owner(request.slot) {
                    None => left.push(place),
                    Some(owner) => match groups.iter_mut().find(|(node, _)| Arc::ptr_eq(node, owner)) {
                        Some((_, group)) => group.push(place),
                        None => groups.push((owner.clone(), vec![place])),
                    },
                }
            }
        }
        let mut replies: Vec<Option<ServerReply>> = requests.iter().map(|_| None).collect();
        let sent = groups.into_iter().map(|(node, group)| async move {
            let mut pipeline = Pipeline::with_capacity(group.len());
            for place in &group {
                pipeline.add_command(requests[*place].command.clone());
            }
            let (before, sent) = (node.incarnation(), Instant::now());
            let is_doubtful = group.iter().any(|place| requests[*place].care(channel) == Care::Doubts);
            let care = if is_doubtful { Care::Doubts } else { Care::Repeats };
            let mut answers = node.request_all(channel, care, &pipeline).await;
            if answers.is_ok()
                && let Err(refusal) = self.believe(&node, sent, group.iter().map(|place| requests[*place].slot)).await
            {
                answers = Err(refusal);
            }
            let incarnation = Some(before).filter(|before| *before == node.incarnation());
            (answers, incarnation, group)
        });
        for (together, incarnation, group) in join_all(sent).await {
            let reply = |answer| Some(ServerReply { answer, incarnation });
            match together {
                Ok(each) => {
                    for (place, answer) in group.into_iter().zip(each) {
                        match answer {
                            Ok(value) => replies[place] = reply(Ok(value)),
                            Err(Refusal::Failed(failure)) => replies[place] = reply(Err(failure)),
                            Err(_) => left.push(place),
                        }
                    }
                }
                Err(Refusal::Failed(ServerFailure::Unknown(reason))) => {
                    for place in group {
                        match requests[place].repeatable {
                            true => left.push(place),
                            false => replies[place] = reply(Err(ServerFailure::Unknown(reason.clone()))),
                        }
                    }
                }
                // The commands were certainly not done.
                Err(_) => left.extend(group),
            }
        }
        let again = left.into_iter().map(|place| async move { (place, self.deliver(channel, &requests[place]).await) });
        for (place, answer) in join_all(again).await {
            replies[place] = Some(ServerReply { answer, incarnation: None });
        }
        let lost = || ServerFailure::Unknown("there were fewer replies than commands".to_owned());
        let replies = replies
            .into_iter()
            .map(|reply| reply.unwrap_or_else(|| ServerReply { answer: Err(lost()), incarnation: None }));
        replies.zip(requests).inspect(|(reply, request)| request.count(&reply.answer)).map(|(reply, _)| reply).collect()
    }

    /// Returns a number that changes whenever earlier reads of this hash slot may be outdated, even if the keys do not
    /// show it: because a connection to its node was replaced, the node was restarted, or the hash slot has moved to a
    /// different node.
    pub fn incarnation(&self, slot: HashSlot) -> u64 {
        self.map.read().owner(slot).map_or(0, |node| node.incarnation())
    }

    /// Returns the run id of the process that has the hash slot, if it is known without a request.
    pub fn run(&self, slot: HashSlot) -> Option<Arc<str>> {
        self.map.read().owner(slot)?.run()
    }

    /// Returns the number of large commands that can be under way at the same time to the server that has the hash
    /// slot: more to a distant one. More of them wait for their turns.
    pub fn at_once(&self, slot: HashSlot) -> usize {
        self.map.read().owner(slot).map_or(1, |node| node.at_once())
    }

    /// Returns the nodes that have hash slots now.
    pub fn nodes(&self) -> Vec<Arc<Node>> {
        self.map.read().nodes().to_vec()
    }

    /// Returns the address of the servers for messages, without user or password.
    pub fn at(&self) -> &Arc<str> {
        &self.at
    }

    /// Converts a failure to an error of the store.
    pub fn error(&self, failure: ServerFailure) -> StoreError {
        failure.at(&self.at)
    }

    /// Returns a number that distinguishes hash slots of different nodes. It has no other meaning.
    pub fn place(&self, slot: HashSlot) -> usize {
        self.map.read().owner(slot).map_or(0, |node| Arc::as_ptr(node).addr())
    }

    /// Returns the version of the map, and the owner of the hash slot in it.
    fn owner(&self, slot: HashSlot) -> (u64, Option<Arc<Node>>) {
        let map = self.map.read();
        (map.version, map.owner(slot).cloned())
    }

    fn has_moved(&self, slot: HashSlot, from: &Arc<Node>) -> bool {
        self.owner(slot).1.is_some_and(|node| !Arc::ptr_eq(&node, from))
    }

    /// Returns the node at this address.
    fn node(&self, host: &Host) -> Result<Arc<Node>, ServerFailure> {
        let mut known = self.known.lock();
        if let Some(node) = known.get(host) {
            return Ok(node.clone());
        }
        let node = Arc::new(self.access.node(host, &self.signs).map_err(ServerFailure::Other)?);
        known.insert(host.clone(), node.clone());
        Ok(node)
    }

    /// Finds a later map than that of version `seen`, if there is one, or waits for the request that is under way.
    async fn refresh(&self, seen: u64) {
        match self.access.address.deployment {
            Deployment::Single => {}
            Deployment::Sentinel { .. } => self.watch.hurry(seen, REFRESH).await,
            Deployment::Cluster => {
                let refreshed = self.refreshed.lock().await;
                self.look(refreshed, seen).await;
            }
        }
    }

    /// Asks the nodes of a cluster for a later map.
    async fn look(&self, mut refreshed: tokio::sync::MutexGuard<'_, Refreshed>, seen: u64) {
        let recent = refreshed.answered.is_some_and(|last| last.elapsed() < REFRESH);
        if recent || self.map.read().version > seen {
            return;
        }
        if let Err(failure) = self.discover(Extent::First).await {
            tracing::warn!(at = &*self.at, reason = %self.error(failure), "the owners of the data cannot be determined");
        }
        refreshed.answered = Some(Instant::now());
    }

    /// Determines the owners of the hash slots of a cluster.
    async fn discover(&self, extent: Extent) -> Result<(), ServerFailure> {
        let found = tokio::time::timeout(LOOK, self.ask_cluster(extent)).await;
        self.install(found.unwrap_or_else(|_| Err(ServerFailure::busy("no answer in time".to_owned())))?);
        Ok(())
    }

    /// Checks with the majority of a cluster's nodes that a node owns these hash slots, if its reply to what was sent
    /// at `sent` came late.
    async fn believe(
        &self,
        node: &Arc<Node>,
        sent: Instant,
        mut slots: impl Iterator<Item = HashSlot>,
    ) -> Result<(), Refusal> {
        if self.access.address.deployment != Deployment::Cluster || sent.elapsed() < LATE {
            return Ok(());
        }
        let replied = Instant::now();
        // In a box, because it is rare and would make the future of every request larger.
        let confirmed = Box::pin(async {
            let mut refreshed = self.refreshed.lock().await;
            if refreshed.by_majority.is_none_or(|began| began < replied) {
                let began = Instant::now();
                self.discover(Extent::Majority).await?;
                refreshed.by_majority = Some(began);
            }
            Ok::<_, ServerFailure>(())
        });
        let why = match confirmed.await {
            Ok(()) if !slots.any(|slot| self.has_moved(slot, node)) => return Ok(()),
            Ok(()) => "the reply came late, from a node that has been replaced".to_owned(),
            Err(failure) => format!("the reply came late, and the other nodes do not confirm it: {failure:?}"),
        };
        Err(ServerFailure::Unknown(why).into())
    }

    /// Uses this map from now on. Returns its version.
    fn install(&self, mut map: Map) -> u64 {
        let mut current = self.map.write();
        map.version = current.version + 1;
        map.renew_gainers(&current);
        if map.nodes().len() != current.nodes().len() || !map.nodes().iter().all(|node| current.has(node)) {
            let masters: Vec<&str> = map.nodes().iter().map(|node| node.at()).collect();
            tracing::info!(masters = masters.join(","), "the masters are known");
        }
        let mut known = self.known.lock();
        if known.len() > 4 * map.nodes().len() + 16 {
            known.retain(|_, node| map.has(node));
        }
        let version = map.version;
        *current = Arc::new(map);
        version
    }
}
