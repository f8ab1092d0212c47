//! The program that is tested, and what the service must have counted.

use std::collections::BTreeMap;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use rolltop_client::Service;
use serde_json::{Value, json};
use tokio::process::{Child, Command};

use crate::support::{Running, Store, free_port, program};
use crate::waiting::Wait;

/// A service with an embedded store, and a folder for what is read.
pub struct Setting {
    pub service: Running,
    pub folder: tempfile::TempDir,
    /// What the programs log: levels as in `RUST_LOG`. By default the usual.
    pub levels: &'static str,
}

/// A running `rolltop-consume`, which is killed when this is dropped.
pub struct Consumer {
    folder: PathBuf,
    config: PathBuf,
    arguments: Vec<String>,
    port: u16,
    levels: &'static str,
    process: Option<Child>,
}

/// The likes of posts.
pub type Likes = BTreeMap<String, u64>;

impl Setting {
    /// Starts a service. `None` if there is no program of it here.
    pub async fn start() -> Option<Self> {
        let service = Running::start(&program()?, Store::Embedded).await;
        Some(Self { service, folder: tempfile::tempdir().unwrap(), levels: "" })
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Starts the program with a source: these lines of the configuration after its name.
    pub fn consume(&self, name: &str, source: &str, arguments: &[&str]) -> Consumer {
        let port = free_port();
        let config = self.path(&format!("{name}-{port}.toml"));
        let text = format!(
            "listen = \"127.0.0.1:{port}\"\n[service]\nurl = \"{}\"\n[[source]]\nname = \"{name}\"\nboards = [\"hot-*\"]\n{source}",
            self.service.url()
        );
        std::fs::write(&config, text).unwrap();
        let arguments = arguments.iter().map(|argument| (*argument).to_owned()).collect();
        let folder = self.folder.path().to_owned();
        let mut consumer = Consumer { folder, config, arguments, port, levels: self.levels, process: None };
        consumer.start();
        consumer
    }

    /// Defines another board of likes.
    pub async fn define(&self, board: &str) {
        let path = format!("/v1/boards/{board}");
        let likes = json!({"metric": "COUNT(24h, like, post_id)", "slot": "1h"});
        self.client().request::<Value>(rolltop_client::Method::PUT, &path).json(&likes).await.unwrap();
    }

    pub fn client(&self) -> Service {
        self.service.service()
    }

    /// Returns what is counted on a board.
    pub async fn likes(&self, board: &str) -> Likes {
        let path = format!("/v1/boards/{board}/rankings?limit=1000");
        let ranking = self.client().request::<Value>(rolltop_client::Method::GET, &path).await;
        let Ok(ranking) = ranking else { return Likes::new() };
        let items = ranking["items"].as_array().unwrap();
        items
            .iter()
            .map(|item| (item["subject"].as_str().unwrap().to_owned(), item["score"].as_u64().unwrap()))
            .collect()
    }

    /// Waits until a board has these likes. More than these would be events that counted twice.
    pub async fn counted(&self, board: &str, expected: &Likes) {
        let sum = |likes: &Likes| likes.values().sum::<u64>();
        let wait = Wait::begin(format!("{} likes on {board}", sum(expected)));
        loop {
            let likes = self.likes(board).await;
            assert!(sum(&likes) <= sum(expected), "{} likes, and there were {}", sum(&likes), sum(expected));
            if likes == *expected {
                return;
            }
            wait.rest(sum(&likes)).await;
        }
    }
}

impl Consumer {
    pub fn start(&mut self) {
        let log = File::options().create(true).append(true).open(self.folder.join("consume.log")).unwrap();
        let process = Command::new(env!("CARGO_BIN_EXE_rolltop-consume"))
            .arg("run")
            .arg(&self.config)
            .args(&self.arguments)
            .current_dir(&self.folder)
            .env("RUST_LOG", self.levels)
            .stdout(Stdio::null())
            .stderr(log)
            .kill_on_drop(true)
            .spawn();
        self.process = Some(process.unwrap());
    }

    pub async fn kill(&mut self) {
        self.process.take().unwrap().kill().await.unwrap();
    }

    pub async fn start_again(&mut self) {
        self.kill().await;
        self.start();
    }

    /// Waits until it ends by itself. Returns whether it ended well.
    pub async fn ended(&mut self) -> bool {
        self.process.take().unwrap().wait().await.unwrap().success()
    }

    /// Tells it to stop. Returns whether it ended well.
    pub async fn stop(&mut self) -> bool {
        let mut process = self.process.take().unwrap();
        let id = rustix::process::Pid::from_raw(i32::try_from(process.id().unwrap()).unwrap()).unwrap();
        rustix::process::kill_process(id, rustix::process::Signal::TERM).unwrap();
        process.wait().await.unwrap().success()
    }

    pub fn config(&self) -> &str {
        self.config.to_str().unwrap()
    }

    /// Returns the names of the sources that `/readyz` lists, in their order.
    pub async fn sources(&self) -> Vec<String> {
        let names = self.ready().await.1.into_iter().filter_map(|source| Some(source["source"].as_str()?.to_owned()));
        let mut names: Vec<String> = names.collect();
        names.sort_unstable();
        names
    }

    /// Returns what `/readyz` says of a source, and whether all is well.
    pub async fn state(&self, source: &str) -> (bool, Value) {
        let (is_well, sources) = self.ready().await;
        let is_it = |other: &Value| other["source"].as_str().is_some_and(|name| name.starts_with(source));
        (is_well, sources.into_iter().find(is_it).unwrap_or(Value::Null))
    }

    /// Returns whether all is well, and what `/readyz` says of the sources.
    async fn ready(&self) -> (bool, Vec<Value>) {
        let client = rolltop_client::Service::builder(&format!("http://127.0.0.1:{}", self.port))
            .repeat_for(std::time::Duration::ZERO)
            .build()
            .unwrap();
        let answer = client.request::<Value>(rolltop_client::Method::GET, "/readyz").await;
        let (is_well, answer) = match answer {
            Ok(answer) => (true, answer),
            Err(error) => (false, Value::Object(error.problem().clone())),
        };
        (is_well, answer["sources"].as_array().cloned().unwrap_or_default())
    }

    /// Waits until a source is in a state, and returns what is said of it.
    pub async fn in_state(&self, source: &str, expected: &str) -> (bool, String) {
        let wait = Wait::begin(format!("the state {expected}"));
        loop {
            let (is_well, state) = self.state(source).await;
            if state["state"] == expected {
                return (is_well, state["detail"].as_str().unwrap_or_default().to_owned());
            }
            wait.rest(state).await;
        }
    }

    /// Returns the text of `/metrics`.
    pub async fn metrics(&self) -> String {
        let url = format!("http://127.0.0.1:{}", self.port);
        let client = rolltop_client::Service::new(&url).unwrap();
        let lines = client.request::<()>(rolltop_client::Method::GET, "/metrics").text_lines("text/plain").await;
        let mut lines = lines.unwrap();
        let mut text = String::new();
        while let Ok(Some(line)) = lines.next().await {
            text += &format!("{line}\n");
        }
        text
    }

    pub fn log(&self) -> String {
        std::fs::read_to_string(self.folder.join("consume.log")).unwrap()
    }
}

/// Runs another command of the program. Returns what it prints, and whether it has ended well.
pub async fn command(folder: &Path, arguments: &[&str]) -> (bool, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_rolltop-consume")).args(arguments).current_dir(folder).output().await;
    let output = output.unwrap();
    let text = [output.stdout, output.stderr].concat();
    (output.status.success(), String::from_utf8_lossy(&text).into_owned())
}

/// Returns the event of a like as the service takes it.
pub fn like(number: u64) -> Value {
    json!({"type": "like", "fields": {"post_id": post(number)}, "at": now()})
}

pub fn post(number: u64) -> String {
    // A few have most of the likes.
    format!("post-{}", number.wrapping_mul(2_654_435_761) % (1 + number % 53))
}

pub fn now() -> String {
    chrono::Utc::now().to_rfc3339_opts(chrono::SecondsFormat::Millis, true)
}

/// Returns the likes of events with these numbers.
pub fn expected(numbers: impl IntoIterator<Item = u64>) -> Likes {
    let mut likes = Likes::new();
    for number in numbers {
        *likes.entry(post(number)).or_default() += 1;
    }
    likes
}
