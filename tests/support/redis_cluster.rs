//! Real clusters, and masters with Sentinels, for tests.

use std::collections::HashSet;
use std::time::{Duration, Instant};

use redis::{FromRedisValue, RedisResult};

use crate::redis_server::{Engine, RedisServer};
use crate::waiting::Wait;

/// The functions of single servers that only clusters and Sentinels need.
impl RedisServer {
    pub fn address(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    /// Runs a command.
    pub fn ask<T: redis::FromRedisValue>(&self, words: &[&str]) -> redis::RedisResult<T> {
        let mut connection = redis::Client::open(self.url())?.get_connection_with_timeout(Duration::from_secs(5))?;
        connection.set_read_timeout(Some(Duration::from_secs(10)))?;
        redis::cmd(words[0]).arg(&words[1..]).query(&mut connection)
    }

    /// Waits until every replica (there must be at least one) has everything that this master has now. `WAIT` cannot be
    /// used: it refers to writes of its own connection, which has none.
    pub fn wait_until_replicated(&self) {
        let replication = || self.ask::<String>(&["INFO", "replication"]).expect("a master that answers");
        let number = |text: &str| text.trim_end().parse::<u64>().expect("an offset");
        let own = replication().lines().find_map(|line| line.strip_prefix("master_repl_offset:").map(number));
        let own = own.expect("an offset");
        until("what was written is replicated", || {
            let info = replication();
            let replicas = info.lines().filter(|line| line.starts_with("slave") && line.contains("offset="));
            let offset = |line: &str| line.split([':', ',']).find_map(|part| part.strip_prefix("offset=").map(number));
            let mut offsets = replicas.filter_map(offset).peekable();
            offsets.peek().is_some() && offsets.all(|offset| offset >= own)
        });
    }
}

/// The number of hash slots.
const SLOTS: usize = 16_384;

/// A cluster. Dropping it stops its servers at once, as a crash would.
pub struct RedisCluster {
    /// The masters in the order of their slots, then the replicas in the order of their masters.
    pub nodes: Vec<RedisServer>,
    pub masters: usize,
}

impl RedisCluster {
    /// Starts a cluster without persistence that considers a node dead after one second.
    pub fn start(engine: &Engine, masters: usize, replicas: usize) -> RedisCluster {
        Self::start_with(engine, masters, replicas, &["--save", "", "--appendonly", "no"])
    }

    /// Starts such a cluster with additional arguments for every server.
    pub fn start_with(engine: &Engine, masters: usize, replicas: usize, extra: &[&str]) -> RedisCluster {
        let own = ["--cluster-node-timeout", "1000"];
        let repl = ["--repl-diskless-sync-delay", "0", "--cluster-replica-validity-factor", "0"];
        let arguments: Vec<&str> = own.iter().chain(&repl).chain(extra).copied().collect();
        let nodes: Vec<RedisServer> = std::thread::scope(|scope| {
            let start = || RedisServer::start_node(engine, &arguments);
            let starting: Vec<_> = (0..masters + replicas).map(|_| scope.spawn(start)).collect();
            starting.into_iter().map(|started| started.join().expect("a node that starts")).collect()
        });
        let cluster = RedisCluster { nodes, masters };
        for (place, node) in cluster.nodes.iter().enumerate() {
            node.ask::<()>(&["CLUSTER", "SET-CONFIG-EPOCH", &(place + 1).to_string()]).unwrap();
            if place < masters {
                let (first, last) = (place * SLOTS / masters, (place + 1) * SLOTS / masters - 1);
                node.ask::<()>(&["CLUSTER", "ADDSLOTSRANGE", &first.to_string(), &last.to_string()]).unwrap();
            }
        }
        for (place, node) in cluster.nodes.iter().enumerate() {
            for other in cluster.nodes.iter().skip(place + 1) {
                let (port, bus) = (other.port.to_string(), other.bus.expect("a node of a cluster").to_string());
                node.ask::<()>(&["CLUSTER", "MEET", "127.0.0.1", &port, &bus]).unwrap();
            }
        }
        let ids: Vec<String> = (0..masters).map(|master| cluster.id(master)).collect();
        for (place, replica) in cluster.nodes.iter().enumerate().skip(masters) {
            let master = &ids[(place - masters) % masters];
            until("a replica knows its master", || replica.ask::<()>(&["CLUSTER", "REPLICATE", master]).is_ok());
        }
        until("the cluster works", || (0..cluster.nodes.len()).all(|node| cluster.is_ready(node)));
        cluster
    }

    /// Returns the URL of the cluster for Rolltop.
    pub fn url(&self) -> String {
        let hosts: Vec<String> = self.nodes.iter().map(RedisServer::address).collect();
        format!("redis+cluster://{}", hosts.join(","))
    }

    /// Returns the id of a node.
    pub fn id(&self, node: usize) -> String {
        self.nodes[node].ask(&["CLUSTER", "MYID"]).unwrap()
    }

    /// Returns whether the node reports a working cluster and knows all nodes and their slots.
    fn is_ready(&self, node: usize) -> bool {
        let Ok(info) = self.nodes[node].ask::<String>(&["CLUSTER", "INFO"]) else { return false };
        let Ok(nodes) = self.nodes[node].ask::<String>(&["CLUSTER", "NODES"]) else { return false };
        let Ok(role) = self.nodes[node].ask::<String>(&["INFO", "replication"]) else { return false };
        let says = |fact: String| info.lines().any(|line| line.trim_end() == fact);
        says("cluster_state:ok".to_owned())
            && says(format!("cluster_slots_ok:{SLOTS}"))
            && says(format!("cluster_known_nodes:{}", self.nodes.len()))
            && nodes.lines().filter(|line| line.contains("master")).count() == self.masters
            && !role.contains("master_link_status:down")
    }

    /// Runs a command on every current master.
    pub fn on_masters<T: FromRedisValue>(&self, words: &[&str]) -> Vec<T> {
        let masters = self
            .nodes
            .iter()
            .filter(|node| node.ask::<String>(&["INFO", "replication"]).is_ok_and(|info| info.contains("role:master")));
        masters.map(|node| node.ask(words).unwrap()).collect()
    }

    /// Returns all keys that match.
    pub fn keys(&self, pattern: &str) -> Vec<String> {
        let mut keys: Vec<String> = self.on_masters::<Vec<String>>(&["KEYS", pattern]).concat();
        keys.sort();
        keys
    }

    /// Returns the hash slot of a key.
    pub fn slot(&self, key: &str) -> u16 {
        self.nodes[0].ask(&["CLUSTER", "KEYSLOT", key]).unwrap()
    }

    /// Returns the master that has a hash slot, according to the first node that responds.
    pub fn owner(&self, slot: u16) -> usize {
        let nodes = self.nodes.iter().find_map(|node| node.ask::<String>(&["CLUSTER", "NODES"]).ok()).unwrap();
        let has = |range: &str| {
            let (first, last) = range.split_once('-').unwrap_or((range, range));
            matches!((first.parse::<u16>(), last.parse::<u16>()), (Ok(first), Ok(last)) if (first..=last).contains(&slot))
        };
        let line = nodes.lines().find(|line| line.contains("master") && line.split(' ').skip(8).any(has)).unwrap();
        let address = line.split([' ', '@']).nth(1).unwrap();
        self.nodes.iter().position(|node| node.address() == address).unwrap()
    }

    /// Begins to move a hash slot key by key.
    pub fn begin_move(&self, slot: u16, from: usize, to: usize) {
        let slot = slot.to_string();
        self.nodes[to].ask::<()>(&["CLUSTER", "SETSLOT", &slot, "IMPORTING", &self.id(from)]).unwrap();
        self.nodes[from].ask::<()>(&["CLUSTER", "SETSLOT", &slot, "MIGRATING", &self.id(to)]).unwrap();
    }

    /// Moves at most this many keys. Returns how many were moved.
    pub fn move_keys(&self, slot: u16, from: usize, to: usize, most: usize) -> usize {
        let keys: Vec<String> =
            self.nodes[from].ask(&["CLUSTER", "GETKEYSINSLOT", &slot.to_string(), &most.to_string()]).unwrap();
        if !keys.is_empty() {
            let port = self.nodes[to].port.to_string();
            let mut words = vec!["MIGRATE", "127.0.0.1", &port, "", "0", "5000", "KEYS"];
            words.extend(keys.iter().map(String::as_str));
            self.nodes[from].ask::<String>(&words).unwrap();
        }
        keys.len()
    }

    /// Tells all nodes that the hash slot has moved, the new owner first.
    pub fn end_move(&self, slot: u16, from: usize, to: usize) {
        let (slot, id) = (slot.to_string(), self.id(to));
        let others = (0..self.masters).filter(|node| ![from, to].contains(node));
        for node in [to, from].into_iter().chain(others) {
            self.nodes[node].ask::<()>(&["CLUSTER", "SETSLOT", &slot, "NODE", &id]).unwrap();
        }
    }

    /// Moves a hash slot at once, as Valkey 9 can. Returns `false` if the server cannot.
    pub fn move_atomically(&self, slot: u16, from: usize, to: usize) -> bool {
        let (text, id) = (slot.to_string(), self.id(to));
        let begun: RedisResult<String> =
            self.nodes[from].ask(&["CLUSTER", "MIGRATESLOTS", "SLOTSRANGE", &text, &text, "NODE", &id]);
        match begun {
            Err(error) if error.to_string().to_lowercase().contains("unknown subcommand") => return false,
            begun => drop(begun.unwrap()),
        }
        until("the slot has moved", || {
            let owners: HashSet<usize> = (0..self.masters).map(|_| self.owner(slot)).collect();
            owners == HashSet::from([to])
        });
        true
    }

    /// Makes a replica the master of its hash slots by a regular failover, which loses nothing.
    pub fn fail_over(&self, replica: usize) {
        let says = |fact: &str| {
            self.nodes[replica].ask::<String>(&["INFO", "replication"]).is_ok_and(|info| info.contains(fact))
        };
        // An attempt may be refused, or abandoned by the server after some seconds.
        let mut asked: Option<Instant> = None;
        until("the replica is the master", || {
            if says("master_link_status:up") && asked.is_none_or(|asked| asked.elapsed() > Duration::from_secs(6)) {
                let _ = self.nodes[replica].ask::<()>(&["CLUSTER", "FAILOVER"]);
                asked = Some(Instant::now());
            }
            says("role:master")
        });
    }
}

/// A master, a replica and three Sentinels.
pub struct Sentinel {
    pub servers: Vec<RedisServer>,
    pub sentinels: Vec<RedisServer>,
}

impl Sentinel {
    /// The name of the master for the Sentinels.
    pub const MASTER: &'static str = "main";

    /// Starts them. The Sentinels take a server for dead after this time, in milliseconds: on a busy machine they may
    /// take one that lives for dead if it is short.
    pub fn start(engine: &Engine, down_after: u32) -> Sentinel {
        let quick = ["--save", "", "--appendonly", "no", "--repl-diskless-sync-delay", "0"];
        let master = RedisServer::start_with(engine, &quick);
        let port = master.port.to_string();
        let replica = RedisServer::start_with(engine, &[&quick[..], &["--replicaof", "127.0.0.1", &port]].concat());
        let name = Self::MASTER;
        let config = format!(
            "sentinel monitor {name} 127.0.0.1 {port} 2\nsentinel down-after-milliseconds {name} {down_after}\n\
             sentinel failover-timeout {name} 3000\n"
        );
        let sentinels = (0..3).map(|_| RedisServer::start_configured(engine, Some(&config), &["--sentinel"])).collect();
        let sentinel = Sentinel { servers: vec![master, replica], sentinels };
        until("the Sentinels know each other and the replica", || {
            sentinel.sentinels.iter().all(|one| {
                let Ok(facts) = one.ask::<Vec<String>>(&["SENTINEL", "MASTER", name]) else { return false };
                let fact = |name: &str| facts.chunks(2).find(|pair| pair[0] == name).map(|pair| pair[1].as_str());
                (fact("num-other-sentinels"), fact("num-slaves")) == (Some("2"), Some("1"))
            })
        });
        sentinel.wait_for_replica(1);
        sentinel
    }

    /// Returns the port of the master that a Sentinel names.
    pub fn master_of(sentinel: &RedisServer) -> Option<u16> {
        let named = sentinel.ask::<(String, u16)>(&["SENTINEL", "GET-MASTER-ADDR-BY-NAME", Self::MASTER]);
        named.ok().map(|(_, port)| port)
    }

    /// Waits until this server is a replica of another one.
    pub fn wait_for_replica(&self, server: usize) {
        until("the replica follows", || {
            self.servers[server]
                .ask::<String>(&["INFO", "replication"])
                .is_ok_and(|info| info.contains("master_link_status:up"))
        });
    }

    /// Returns the URL of the master for Rolltop.
    pub fn url(&self) -> String {
        let hosts: Vec<String> = self.sentinels.iter().map(RedisServer::address).collect();
        format!("redis+sentinel://{}/{}", hosts.join(","), Self::MASTER)
    }
}

/// Waits until a condition holds.
pub fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let wait = Wait::begin(what);
    while !holds() {
        wait.pause("it does not hold");
    }
}
