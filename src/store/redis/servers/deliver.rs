//! Sending a command to the node that has its hash slot: follows redirections, loads scripts, and handles changed
//! servers.

use std::sync::Arc;
use std::time::Instant;

use redis::{ErrorKind, Pipeline, ServerErrorKind, Value, cmd};

use super::address::Deployment;
use super::failure::{Refusal, ServerFailure};
use super::link::Care;
use super::{Channel, Node, Request, Servers};
use crate::store::redis::hash_slot::HashSlot;

/// The number of redirections that a command follows before it fails with [`ServerFailure::Busy`].
const REDIRECTIONS: usize = 5;

impl Servers {
    /// Sends a request to the owner of its hash slot, following redirections.
    pub(super) async fn deliver(&self, channel: Channel, request: &Request<'_>) -> Result<Value, ServerFailure> {
        let mut demoted = false;
        for _ in 0..REDIRECTIONS {
            let (seen, owner) = self.owner(request.slot);
            let Some(node) = owner else {
                self.refresh(seen).await;
                if self.owner(request.slot).1.is_some() {
                    continue;
                }
                return Err(ServerFailure::busy(format!("no node has hash slot {}", request.slot)));
            };
            let refusal = match self.ask(&node, channel, request).await {
                Ok(value) => return Ok(value),
                Err(refusal) => refusal,
            };
            match refusal {
                Refusal::Moved(to) => self.follow(request.slot, &node, &to).await?,
                Refusal::Ask(to) => match self.ask_importer(&node, &to, channel, request).await {
                    Ok(value) => return Ok(value),
                    // The move ended, or was canceled, in the meantime.
                    Err(Refusal::Moved(_) | Refusal::Ask(_)) => {}
                    Err(refusal) => return Err(refusal.into_failure()),
                },
                Refusal::Demoted(reason) => {
                    self.refresh(seen).await;
                    if !self.has_moved(request.slot, &node) {
                        match self.access.address.deployment {
                            // A new connection to this address may reach a different server.
                            Deployment::Single if !demoted => demoted = true,
                            Deployment::Single => return Err(ServerFailure::ReadOnly(reason)),
                            Deployment::Sentinel { .. } | Deployment::Cluster => {
                                return Err(ServerFailure::busy(reason));
                            }
                        }
                    }
                }
                Refusal::Failed(failure) => {
                    if !self.is_doubtful(&failure) {
                        return Err(failure);
                    }
                    self.refresh(seen).await;
                    if !(failure.is_passing() && self.has_moved(request.slot, &node)) {
                        return Err(failure);
                    }
                }
                Refusal::Replaced => {
                    self.refresh(seen).await;
                    if !self.has_moved(request.slot, &node) {
                        return Err(Refusal::Replaced.into_failure());
                    }
                }
                refusal @ Refusal::NoScript(_) => return Err(refusal.into_failure()),
            }
        }
        Err(ServerFailure::busy(format!("hash slot {} is being moved", request.slot)))
    }

    /// Sends a request to one node. Sends the script too, if the node does not have it.
    async fn ask(&self, node: &Arc<Node>, channel: Channel, request: &Request<'_>) -> Result<Value, Refusal> {
        let sent = Instant::now();
        let care = request.care(channel);
        let mut answer = node.request(channel, care, request.command).await;
        if let (Err(Refusal::NoScript(_)), Some(script)) = (&answer, request.script) {
            // A user may not be allowed to load scripts, and a server may drop a script at any moment.
            if node.request(channel, Care::Repeats, &script.load()).await.is_ok() {
                answer = node.request(channel, care, request.command).await;
            }
            if matches!(answer, Err(Refusal::NoScript(_))) {
                answer = node.request(channel, care, &script.with_text(request.command)).await;
            }
        }
        if answer.is_ok() {
            self.believe(node, sent, [request.slot].into_iter()).await?;
        }
        if answer.as_ref().is_ok_and(|answer| request.has_written(channel, answer)) {
            node.note_write();
        }
        answer
    }

    /// Sends a request to the node to which a hash slot is being moved. ASKING is valid only for the next command of a
    /// connection, and the connection is shared, so both are sent in one pipeline. The script is sent as text, because
    /// within the same pipeline it could not be loaded after NOSCRIPT.
    async fn ask_importer(
        &self,
        from: &Node,
        to: &str,
        channel: Channel,
        request: &Request<'_>,
    ) -> Result<Value, Refusal> {
        let node = self.named(from, to)?;
        let mut pipeline = Pipeline::with_capacity(2);
        pipeline.add_command(cmd("ASKING"));
        pipeline.add_command(match request.script {
            Some(script) => script.with_text(request.command),
            None => request.command.clone(),
        });
        let answers = node.request_all(channel, request.care(channel), &pipeline).await?;
        let lost = || Err(ServerFailure::Unknown("a command after ASKING was not answered".to_owned()).into());
        answers.into_iter().nth(1).unwrap_or_else(lost)
    }

    /// Records that a hash slot belongs to the node at `to`, as the node `from` replied.
    async fn follow(&self, slot: HashSlot, from: &Arc<Node>, to: &str) -> Result<(), ServerFailure> {
        let node = self.named(from, to)?;
        let version = {
            let mut map = self.map.write();
            // A different request may have recorded this already.
            if map.owner(slot).is_some_and(|owner| Arc::ptr_eq(owner, from)) {
                let map = Arc::make_mut(&mut map);
                map.version += 1;
                map.give(slot.number(), slot.number(), &node);
                node.renew();
            }
            map.version
        };
        // If one hash slot has moved, others probably have too. This does not wait if a different request is asking
        // already.
        if let Ok(refreshed) = self.refreshed.try_lock() {
            self.look(refreshed, version).await;
        }
        Ok(())
    }

    fn named(&self, from: &Node, to: &str) -> Result<Arc<Node>, ServerFailure> {
        let host = from.host.named_by(to);
        self.node(&host.ok_or_else(|| ServerFailure::busy(format!("{} names a node '{to}'", from.at())))?)
    }

    /// Returns whether a failure may mean that the map is wrong.
    fn is_doubtful(&self, failure: &ServerFailure) -> bool {
        match failure {
            ServerFailure::Unreachable(_) | ServerFailure::Unknown(_) => true,
            ServerFailure::Busy(error) => error.kind() == ErrorKind::Server(ServerErrorKind::ClusterDown),
            _ => false,
        }
    }
}
