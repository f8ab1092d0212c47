//! Asking the nodes of a cluster for the owners of the hash slots.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use futures_util::stream::{FuturesUnordered, StreamExt};
use redis::{ErrorKind, Pipeline, RedisError, Value, cmd};

use super::Servers;
use super::address::Host;
use super::failure::{Refusal, ServerFailure};
use super::link::{Care, Channel};
use super::map::Map;
use super::node::Node;
use crate::store::redis::hash_slot::HashSlot;

/// The time to wait for the answer of a more recent node, after an outdated one has answered.
const GRACE: Duration = Duration::from_millis(200);

/// A range of hash slots, from the first to the last, and the address of their master.
type OwnedSlots = (u16, u16, Host);

/// The state of the cluster as one node sees it.
#[derive(Debug, PartialEq, Eq)]
struct View {
    ranges: Vec<OwnedSlots>,
    /// The number of failovers and moves of hash slots so far. The node with the highest number is the most recent.
    epoch: u64,
    /// Whether the cluster works according to the node.
    is_ok: bool,
}

/// The number of nodes whose answers are waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Extent {
    /// The first whose answer is at least as recent as the current map. If there is none, the best answer counts.
    First,
    /// More than half as many as there are masters. The most recent of all their answers counts.
    Majority,
}

impl Servers {
    /// Asks all nodes at the same time for the owners of the hash slots.
    pub(super) async fn ask_cluster(&self, extent: Extent) -> Result<Map, ServerFailure> {
        let known: HashMap<Host, Arc<Node>> = self.known.lock().clone();
        let mut hosts: Vec<Host> = self.access.address.hosts.clone();
        hosts.extend(known.into_keys());
        hosts.sort_by(|a, b| (&a.name, a.port).cmp(&(&b.name, b.port)));
        hosts.dedup();
        let nodes = hosts.iter().map(|host| self.node(host)).collect::<Result<Vec<_>, _>>()?;
        let (enough, masters) = {
            let map = self.map.read();
            (map.epoch, map.nodes().len())
        };
        let mut asked: FuturesUnordered<_> = nodes.iter().map(|node| ask(node)).collect();
        let (mut best, mut worst): (Option<View>, Option<ServerFailure>) = (None, None);
        let mut answered = 0;
        loop {
            let is_enough = match extent {
                Extent::First => answered > 0,
                Extent::Majority => answered > masters / 2,
            };
            // After enough nodes have answered, a node that does not answer is not waited for.
            let patience = if is_enough { GRACE } else { Duration::MAX };
            let Ok(Some(answer)) = tokio::time::timeout(patience, asked.next()).await else { break };
            match answer {
                Ok(view) if extent == Extent::First && view.is_ok && view.epoch >= enough => {
                    best = Some(view);
                    break;
                }
                Ok(view) => {
                    answered += 1;
                    let is_better = |best: &View| match extent {
                        Extent::First => (best.is_ok, best.epoch) < (view.is_ok, view.epoch),
                        Extent::Majority => best.epoch < view.epoch,
                    };
                    if best.as_ref().is_none_or(is_better) {
                        best = Some(view);
                    }
                }
                // An error that a server returned is more useful than the fact that a different server does not answer.
                Err(failure) if worst.is_none() || matches!(failure, ServerFailure::Other(_)) => worst = Some(failure),
                Err(_) => {}
            }
        }
        match best {
            Some(_) if extent == Extent::Majority && answered <= masters / 2 => {
                Err(ServerFailure::busy(format!("{answered} nodes answer, and the cluster has {masters} masters")))
            }
            // A master may be about to be replaced.
            Some(view) if extent == Extent::Majority && !view.is_ok => {
                Err(ServerFailure::busy("the state of the cluster is not ok".to_owned()))
            }
            Some(view) => self.map_of(view),
            None => Err(worst.unwrap_or_else(|| ServerFailure::busy("no node to ask".to_owned()))),
        }
    }

    fn map_of(&self, view: View) -> Result<Map, ServerFailure> {
        let mut map = Map::empty();
        map.epoch = view.epoch;
        for (first, last, host) in &view.ranges {
            map.give(*first, *last, &self.node(host)?);
        }
        Ok(map)
    }
}

async fn ask(node: &Node) -> Result<View, ServerFailure> {
    let (mut slots, mut info) = (cmd("CLUSTER"), cmd("CLUSTER"));
    slots.arg("SLOTS");
    info.arg("INFO");
    let mut questions = Pipeline::with_capacity(2);
    questions.add_command(slots).add_command(info);
    let answers = node.request_all(Channel::Calls, Care::Repeats, &questions).await.map_err(Refusal::into_failure)?;
    let mut answers = answers.into_iter().map(|answer| answer.map_err(Refusal::into_failure));
    let unreadable =
        || ServerFailure::Other(RedisError::from((ErrorKind::UnexpectedReturnType, "CLUSTER SLOTS cannot be read")));
    let (Some(slots), Some(info)) = (answers.next(), answers.next()) else { return Err(unreadable()) };
    let ranges = read_ranges(&slots?, &node.host).ok_or_else(unreadable)?;
    let (is_ok, epoch) = read_info(&info?);
    Ok(View { ranges, epoch, is_ok })
}

/// Reads `CLUSTER SLOTS`: for each range its first and last hash slot and its nodes, master first, each with host and
/// port.
fn read_ranges(answer: &Value, from: &Host) -> Option<Vec<OwnedSlots>> {
    let Value::Array(ranges) = answer else { return None };
    let range = |range: &Value| {
        let Value::Array(fields) = range else { return None };
        let [Value::Int(first), Value::Int(last), Value::Array(master), ..] = fields.as_slice() else { return None };
        let [name, Value::Int(port), ..] = master.as_slice() else { return None };
        let name = match name {
            // The host is that of the node that was asked.
            Value::Nil => "",
            Value::BulkString(name) => std::str::from_utf8(name).ok()?,
            Value::SimpleString(name) => name,
            _ => return None,
        };
        let slot = |number: &i64| u16::try_from(*number).ok().filter(|number| *number < HashSlot::COUNT);
        Some((slot(first)?, slot(last)?, from.named_by(&format!("{name}:{port}"))?))
    };
    ranges.iter().map(range).collect()
}

/// Reads `CLUSTER INFO`: whether the cluster works, and its epoch.
fn read_info(answer: &Value) -> (bool, u64) {
    let text = match answer {
        Value::BulkString(bytes) => String::from_utf8_lossy(bytes),
        Value::VerbatimString { text, .. } => text.as_str().into(),
        _ => return (false, 0),
    };
    let fact = |name: &str| text.lines().find_map(|line| line.trim_end().strip_prefix(name)?.strip_prefix(':'));
    let epoch = fact("cluster_current_epoch").and_then(|epoch| epoch.parse().ok()).unwrap_or(0);
    (fact("cluster_state") == Some("ok"), epoch)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bulk(text: &str) -> Value {
        Value::BulkString(text.as_bytes().to_vec())
    }

    fn master(name: Value, port: i64) -> Value {
        Value::Array(vec![name, Value::Int(port), bulk("id"), Value::Array(vec![])])
    }

    #[test]
    fn slot_ranges_are_parsed_with_their_masters() {
        let here = Host { name: "seed".to_owned(), port: 7000 };
        let replica = master(bulk("10.0.0.9"), 7009);
        let answer = Value::Array(vec![
            Value::Array(vec![Value::Int(0), Value::Int(99), master(bulk("10.0.0.1"), 7001), replica]),
            Value::Array(vec![Value::Int(100), Value::Int(16_383), master(Value::Nil, 7002)]),
            Value::Array(vec![Value::Int(5), Value::Int(5), master(bulk(""), 7003)]),
        ]);
        let ranges = read_ranges(&answer, &here).unwrap();
        let ranges: Vec<_> = ranges.iter().map(|(first, last, host)| format!("{first}-{last} {host}")).collect();
        assert_eq!(ranges, ["0-99 10.0.0.1:7001", "100-16383 seed:7002", "5-5 seed:7003"]);
        assert_eq!(read_ranges(&Value::Array(vec![]), &here), Some(vec![]));
        for bad in [
            Value::Nil,
            Value::Array(vec![Value::Nil]),
            Value::Array(vec![Value::Array(vec![Value::Int(0), Value::Int(1)])]),
            Value::Array(vec![Value::Array(vec![Value::Int(0), Value::Int(16_384), master(bulk("h"), 1)])]),
            Value::Array(vec![Value::Array(vec![Value::Int(-1), Value::Int(1), master(bulk("h"), 1)])]),
            Value::Array(vec![Value::Array(vec![Value::Int(0), Value::Int(1), master(bulk("h"), 70_000)])]),
        ] {
            assert_eq!(read_ranges(&bad, &here), None, "{bad:?}");
        }
    }

    #[test]
    fn cluster_info_is_parsed() {
        let text = "cluster_enabled:1\r\ncluster_state:ok\r\ncluster_current_epoch:12\r\ncluster_my_epoch:2\r\n";
        assert_eq!(read_info(&bulk(text)), (true, 12));
        assert_eq!(read_info(&bulk("cluster_state:fail\r\n")), (false, 0));
        assert_eq!(read_info(&Value::Nil), (false, 0));
    }
}
