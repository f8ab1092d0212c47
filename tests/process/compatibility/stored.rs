//! Stored data that builds of different versions open: a data directory, or the keys of Redis.

use std::collections::HashMap;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use redis::Connection;
use serde_json::Value;

use crate::harness::process;
use crate::redis_cluster::RedisCluster;
use crate::redis_server::{Engine, RedisServer};
use crate::running::{Running, serve_by};

/// The time at which simulated clocks begin. Hours later the clocks of Berlin change.
pub const START: &str = "2026-03-28T19:30:00Z";

/// What the meta key of a board and that of the clock have of single processes and moments, or of chance. The names of
/// records of write operations begin with `o:`.
const OF_THE_MOMENT: [&str; 7] = ["born", "healer", "run", "seen", "stepped", "stepper", "version"];

/// What the meta key of a board has for imports and walks over contents. Earlier builds neither write nor read it.
const OF_LATER_BUILDS: [&str; 2] = ["samples", "upheavals"];

/// The data of a store, without a process that has it open.
pub struct Data {
    folder: tempfile::TempDir,
    servers: Servers,
}

enum Servers {
    None,
    One(RedisServer),
    Cluster(RedisCluster),
}

/// The kind of store that data is in.
#[derive(Clone, Debug)]
pub enum Site {
    Embedded,
    Redis(Engine),
    Cluster(Engine),
}

impl Site {
    /// Returns the name of the fixtures of this kind of store.
    pub fn name(&self) -> &'static str {
        match self {
            Site::Embedded => "embedded",
            Site::Redis(_) | Site::Cluster(_) => "redis",
        }
    }
}

impl Data {
    /// Creates a store without data.
    pub fn empty(site: &Site) -> Data {
        let folder = tempfile::tempdir().unwrap();
        // Without the sample boards.
        std::fs::write(folder.path().join("rolltop.toml"), "").unwrap();
        let servers = match site {
            Site::Embedded => Servers::None,
            Site::Redis(engine) => Servers::One(RedisServer::start(engine)),
            Site::Cluster(engine) => {
                // On a busy machine a node may be silent for more than a second.
                let options = ["--save", "", "--appendonly", "no", "--cluster-node-timeout", "60000"];
                Servers::Cluster(RedisCluster::start_with(engine, 3, 0, &options))
            }
        };
        Data { folder, servers }
    }

    /// Creates a store with what [`save`](Self::save) has returned.
    pub fn load(site: &Site, saved: &[u8]) -> Data {
        let data = Self::empty(site);
        let mut text = String::new();
        GzDecoder::new(saved).read_to_string(&mut text).expect("compressed text");
        if matches!(site, Site::Embedded) {
            for line in text.lines() {
                let (name, length, content): (String, u64, String) = serde_json::from_str(line).expect("a file");
                let path = data.directory().join(name);
                std::fs::create_dir_all(path.parent().expect("a folder")).unwrap();
                std::fs::write(&path, BASE64.decode(content).expect("base64")).unwrap();
                std::fs::OpenOptions::new().write(true).open(&path).unwrap().set_len(length).unwrap();
            }
            return data;
        }
        let mut nodes: Vec<Connection> = data.nodes().into_iter().map(connect).collect();
        for line in text.lines() {
            let words: Vec<String> = serde_json::from_str(line).expect("a command");
            let mut command = redis::Cmd::new();
            for word in words {
                command
                    .arg(word.chars().map(|byte| u8::try_from(u32::from(byte)).expect("a byte")).collect::<Vec<u8>>());
            }
            // A node of a cluster refuses what belongs to another one.
            let is_written = nodes.iter_mut().any(|node| command.query::<()>(node).is_ok());
            assert!(is_written, "no server takes {line}");
        }
        data
    }

    /// Returns the data as compressed lines of JSON: of each file its name, its length, and its content in base64
    /// without the zeros at its end; or commands that write the keys of Redis, with a character for each byte. The
    /// commands do not depend on the engine or its version.
    pub fn save(&self) -> Vec<u8> {
        let lines = match self.servers {
            Servers::None => self.files(),
            Servers::One(_) | Servers::Cluster(_) => {
                self.nodes().into_iter().flat_map(|node| commands(&mut connect(node))).collect()
            }
        };
        let mut packed = GzEncoder::new(Vec::new(), Compression::best());
        for line in lines {
            writeln!(packed, "{line}").unwrap();
        }
        packed.finish().unwrap()
    }

    /// Starts a build of the program on the data.
    pub fn start(&self, program: &Path) -> Running {
        let store = match &self.servers {
            Servers::None => "embedded".to_owned(),
            Servers::One(server) => server.url(),
            Servers::Cluster(cluster) => cluster.url(),
        };
        let clock = format!("simulated={START}");
        let args = ["--config", "rolltop.toml", "--clock", &clock, "--store", &store];
        Running::launch(serve_by(program, self.folder.path(), &args))
    }

    pub fn directory(&self) -> PathBuf {
        self.folder.path().join("data")
    }

    /// Returns the servers with keys: none, one, or the masters of a cluster.
    pub fn nodes(&self) -> Vec<&RedisServer> {
        match &self.servers {
            Servers::None => Vec::new(),
            Servers::One(server) => vec![server],
            Servers::Cluster(cluster) => cluster.nodes.iter().collect(),
        }
    }

    /// Returns the names of all keys that match.
    pub fn keys(&self, pattern: &str) -> Vec<String> {
        self.nodes().into_iter().flat_map(|node| node.ask::<Vec<String>>(&["KEYS", pattern]).unwrap()).collect()
    }

    /// Returns all that is stored in Redis, by key, without what differs whenever the same calls are made. A generation
    /// is replaced by the name of its board and the number of its window.
    pub fn state(&self) -> Value {
        let lines: Vec<String> = self.nodes().into_iter().flat_map(|node| commands(&mut connect(node))).collect();
        let mut state: Vec<Vec<String>> = lines.iter().map(|line| serde_json::from_str(line).unwrap()).collect();
        let mut generations = HashMap::new();
        for words in &state {
            let Some(name) = words[1].strip_prefix("rolltop:1:{").and_then(|rest| rest.strip_suffix("}:meta")) else {
                continue;
            };
            let field = words.iter().position(|word| word == "generation").expect("a generation");
            let first = u64::from_str_radix(&words[field + 1], 16).expect("a generation");
            for window in 0..=8 {
                generations.insert(format!("{:016x}", first.wrapping_add(window)), format!("<{name}+{window}>"));
            }
        }
        // Data of removed boards is deleted in the background.
        let stays = |key: &str| {
            !["rolltop:1:{gone", "rolltop:1:{unborn", "rolltop:1:removed", "rolltop:1:rewrites"]
                .iter()
                .any(|other| key.starts_with(other))
        };
        state.retain(|words| words[0] != "SET" && stays(&words[1]));
        for words in &mut state {
            if words[1].ends_with(":meta") || words[1].ends_with(":clock") {
                let (kept, fields) = words.split_at(2);
                let is_left_out = |name: &str| {
                    name.starts_with("o:") || OF_THE_MOMENT.contains(&name) || OF_LATER_BUILDS.contains(&name)
                };
                let fields = fields.chunks(2).filter(|field| !is_left_out(&field[0]));
                *words = kept.iter().chain(fields.flatten()).cloned().collect();
            }
        }
        let named = |text: String| generations.iter().fold(text, |text, (from, name)| text.replace(from, name));
        let by_key = |mut words: Vec<String>| {
            let key = words.remove(1);
            (named(key), words.into_iter().map(named).collect::<Value>())
        };
        Value::Object(state.into_iter().map(by_key).collect())
    }

    fn files(&self) -> Vec<String> {
        let directory = self.directory();
        let line = |path: PathBuf| {
            let name = path.strip_prefix(&directory).unwrap().to_string_lossy().into_owned();
            let content = std::fs::read(&path).unwrap();
            let used = content.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
            serde_json::to_string(&(name, content.len(), BASE64.encode(&content[..used]))).unwrap()
        };
        process::files(&directory).into_iter().map(line).collect()
    }
}

fn connect(server: &RedisServer) -> Connection {
    redis::Client::open(server.url()).unwrap().get_connection().unwrap()
}

/// Returns commands that write all keys of a server, except those that expire.
fn commands(server: &mut Connection) -> Vec<String> {
    type Bytes = Vec<u8>;
    let mut keys: Vec<Bytes> = redis::cmd("KEYS").arg("*").query(server).unwrap();
    keys.sort();
    let mut lines = Vec::new();
    for key in keys {
        let expires: i64 = redis::cmd("PTTL").arg(&key).query(server).unwrap();
        if expires >= 0 {
            continue;
        }
        let kind: String = redis::cmd("TYPE").arg(&key).query(server).unwrap();
        let mut read = |words: &[&str]| -> Vec<Bytes> {
            let mut command = redis::cmd(words[0]);
            command.arg(&key).arg(&words[1..]).query(server).unwrap()
        };
        let sorted = |pairs: Vec<Bytes>| {
            let mut pairs: Vec<Vec<Bytes>> = pairs.chunks(2).map(<[_]>::to_vec).collect();
            pairs.sort();
            pairs
        };
        let (verb, words): (&str, Vec<Bytes>) = match kind.as_str() {
            "string" => ("SET", vec![redis::cmd("GET").arg(&key).query(server).unwrap()]),
            "hash" => ("HSET", sorted(read(&["HGETALL"])).concat()),
            "set" => {
                let mut members = read(&["SMEMBERS"]);
                members.sort();
                ("SADD", members)
            }
            "zset" => {
                let pairs = sorted(read(&["ZRANGE", "0", "-1", "WITHSCORES"]));
                ("ZADD", pairs.into_iter().flat_map(|pair| [pair[1].clone(), pair[0].clone()]).collect())
            }
            other => panic!("a key of type {other}"),
        };
        let text = |bytes: &Bytes| bytes.iter().copied().map(char::from).collect::<String>();
        let words: Vec<String> = [verb.as_bytes().to_vec(), key].iter().chain(&words).map(text).collect();
        lines.push(serde_json::to_string(&words).unwrap());
    }
    lines
}
