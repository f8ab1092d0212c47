//! A cluster of Redis servers, started for a benchmark.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use redis::FromRedisValue;
use redis::aio::MultiplexedConnection;

use super::process::Server;

/// The number of hash slots.
const SLOTS: usize = 16_384;
/// The time that the nodes have to find each other.
const PATIENCE: Duration = Duration::from_secs(60);
/// The commands that no increment causes: those of this program, and those that rolltop sends for each connection and
/// to monitor its servers.
const OTHERS: [&str; 11] =
    ["info", "cluster", "ping", "hello", "client", "role", "config", "script", "auth", "select", "command"];

/// Masters without persistence and without replicas. They are stopped when this is dropped.
pub struct Cluster {
    nodes: Vec<Node>,
}

struct Node {
    server: Server,
    /// The port for connections from other nodes.
    bus: String,
    connection: MultiplexedConnection,
}

/// The work that one node has done since it was started.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Work {
    /// The sum of the scores of all rankings. On COUNT boards this is the number of increments counted.
    pub increments: u64,
    /// The number of script calls.
    pub scripts: u64,
    /// The number of commands that increments caused, including those inside scripts.
    pub commands: u64,
}

impl Cluster {
    /// Starts this many masters, divides the hash slots evenly between them, and waits until all nodes agree.
    pub async fn start(masters: usize) -> anyhow::Result<Self> {
        let mut nodes = Vec::with_capacity(masters);
        for _ in 0..masters {
            let (server, bus) = Server::redis_of_cluster().await?;
            let client = redis::Client::open(format!("redis://{}", server.address))?;
            nodes.push(Node { connection: client.get_multiplexed_async_connection().await?, server, bus });
        }
        let mut cluster = Self { nodes };
        for place in 0..masters {
            let slots = slots(place, masters);
            let (first, last) = (slots.start.to_string(), (slots.end - 1).to_string());
            let node = &mut cluster.nodes[place];
            node.ask::<()>(&["CLUSTER", "SET-CONFIG-EPOCH", &(place + 1).to_string()]).await?;
            node.ask::<()>(&["CLUSTER", "ADDSLOTSRANGE", &first, &last]).await?;
        }
        let others: Vec<_> = cluster.nodes.iter().map(|node| (node.server.address.clone(), node.bus.clone())).collect();
        for (address, bus) in &others[1..] {
            let (host, port) = address.rsplit_once(':').context("an address has a port")?;
            cluster.nodes[0].ask::<()>(&["CLUSTER", "MEET", host, port, bus]).await?;
        }
        cluster.wait_until_ready().await?;
        Ok(cluster)
    }

    async fn wait_until_ready(&mut self) -> anyhow::Result<()> {
        let (begun, count) = (Instant::now(), self.nodes.len());
        for node in &mut self.nodes {
            loop {
                let info: String = node.ask(&["CLUSTER", "INFO"]).await?;
                if is_ready(&info, count) {
                    break;
                }
                ensure!(begun.elapsed() < PATIENCE, "the cluster is not ready after {} s", PATIENCE.as_secs());
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        }
        Ok(())
    }

    /// Returns host and port of each node.
    pub fn addresses(&self) -> Vec<String> {
        self.nodes.iter().map(|node| node.server.address.clone()).collect()
    }

    /// Returns the URL of the cluster for rolltop.
    pub fn url(&self) -> String {
        format!("redis+cluster://{}", self.addresses().join(","))
    }

    /// Returns the work that each node has done so far.
    pub async fn work(&mut self) -> anyhow::Result<Vec<Work>> {
        let mut work = Vec::with_capacity(self.nodes.len());
        for node in &mut self.nodes {
            let stats: String = node.ask(&["INFO", "commandstats"]).await?;
            let (scripts, commands) = calls(&stats);
            work.push(Work { increments: node.scores().await?, scripts, commands });
        }
        Ok(work)
    }
}

impl Node {
    async fn ask<T: FromRedisValue>(&mut self, words: &[&str]) -> anyhow::Result<T> {
        let mut command = redis::cmd(words[0]);
        command.arg(&words[1..]);
        command.query_async(&mut self.connection).await.with_context(|| words.join(" "))
    }

    /// Returns the sum of the scores of all rankings. The commands for this are not in [`OTHERS`], so they are sent
    /// last.
    async fn scores(&mut self) -> anyhow::Result<u64> {
        let mut sum = 0.0;
        for ranking in self.ask::<Vec<String>>(&["KEYS", "*:r"]).await? {
            let lines: Vec<(String, f64)> = self.ask(&["ZRANGE", &ranking, "0", "-1", "WITHSCORES"]).await?;
            sum += lines.iter().map(|(_, score)| score).sum::<f64>();
        }
        Ok(sum as u64)
    }
}

/// Returns the hash slots of one of this many masters.
fn slots(place: usize, masters: usize) -> std::ops::Range<usize> {
    place * SLOTS / masters..(place + 1) * SLOTS / masters
}

/// Returns whether a node with this information knows all nodes and an owner of each slot.
fn is_ready(info: &str, nodes: usize) -> bool {
    let says = |fact: String| info.lines().any(|line| line.trim_end() == fact);
    says("cluster_state:ok".to_owned())
        && says(format!("cluster_slots_ok:{SLOTS}"))
        && says(format!("cluster_known_nodes:{nodes}"))
}

/// Returns the number of script calls, and of all commands that are not in [`OTHERS`], from `INFO commandstats`.
fn calls(stats: &str) -> (u64, u64) {
    let mut by_name: BTreeMap<&str, u64> = BTreeMap::new();
    for line in stats.lines() {
        let Some((name, calls)) = line.strip_prefix("cmdstat_").and_then(|rest| rest.split_once(":calls=")) else {
            continue;
        };
        let calls = calls.split(',').next().and_then(|calls| calls.trim().parse::<u64>().ok());
        let command = name.split('|').next().unwrap_or(name);
        *by_name.entry(command).or_default() += calls.unwrap_or_default();
    }
    let scripts = ["eval", "evalsha"].iter().filter_map(|name| by_name.get(name)).sum();
    let counted = by_name.iter().filter(|(name, _)| !OTHERS.contains(name));
    (scripts, counted.map(|(_, calls)| calls).sum())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slot_ranges_of_all_masters_cover_all_slots() {
        for masters in 1..10 {
            let ranges: Vec<_> = (0..masters).map(|place| slots(place, masters)).collect();
            assert_eq!((ranges[0].start, ranges[masters - 1].end), (0, SLOTS));
            assert!(ranges.windows(2).all(|pair| pair[0].end == pair[1].start));
            assert!(ranges.iter().all(|range| range.len().abs_diff(SLOTS / masters) <= 1));
        }
    }

    #[test]
    fn a_node_is_ready_when_it_knows_all_nodes() {
        let info = |state: &str, nodes: usize| {
            format!("cluster_state:{state}\r\ncluster_slots_ok:16384\r\ncluster_known_nodes:{nodes}\r\n")
        };
        assert!(is_ready(&info("ok", 6), 6));
        assert!(!is_ready(&info("fail", 6), 6) && !is_ready(&info("ok", 5), 6) && !is_ready("", 6));
    }

    #[test]
    fn scripts_and_commands_are_counted_from_commandstats() {
        let stats = "# Commandstats\r\n\
                     cmdstat_evalsha:calls=40,usec=9,usec_per_call=1.00,rejected_calls=0,failed_calls=1\r\n\
                     cmdstat_eval:calls=2,usec=9,usec_per_call=1.00\r\n\
                     cmdstat_hset:calls=80,usec=9,usec_per_call=1.00\r\n\
                     cmdstat_cluster|info:calls=1000,usec=9,usec_per_call=1.00\r\n\
                     cmdstat_info:calls=1000,usec=9,usec_per_call=1.00\r\n";
        assert_eq!(calls(stats), (42, 122));
        assert_eq!(calls(""), (0, 0));
    }
}
