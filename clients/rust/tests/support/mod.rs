//! The service for tests, and what comes between it and a client.

#![allow(dead_code, reason = "each test uses a part of it")]

pub mod network;

use std::fs::File;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rolltop_client::Service;
use tokio::net::TcpStream;
use tokio::process::{Child, Command};

const CONFIGURATION: &str = r#"
[boards.hot-posts]
metric = "COUNT(24h, like, post_id)"
slot = "1h"

[boards.communities]
metric = "COUNT(24h, like, post_id BY community)"
slot = "1h"

[boards.prices]
metric = "SUM(24h, sale, amount, shop)"
slot = "1h"
decimals = 2
"#;

/// Returns the program of the service: that of the environment, or the one that was built beside this test.
///
/// Without either the test is skipped, but not where `CI` is set.
pub fn program() -> Option<PathBuf> {
    let named = std::env::var_os("ROLLTOP_TEST_PROGRAM").map(PathBuf::from);
    // …/target/debug/deps/test-0123: the program is in …/target/debug.
    let test = std::env::current_exe().unwrap();
    let built = test.parent().and_then(Path::parent).map(|folder| folder.join("rolltop")).filter(|path| path.exists());
    let found = named.or(built);
    if found.is_none() {
        assert!(std::env::var_os("CI").is_none(), "there is no program of the service: set ROLLTOP_TEST_PROGRAM");
        eprintln!("skipped: there is no program of the service; set ROLLTOP_TEST_PROGRAM");
    }
    found
}

/// Where the service keeps its data.
pub enum Store {
    Embedded,
    Redis(Box<Redis>),
}

/// Returns the stores that there are here.
pub async fn stores() -> Vec<Store> {
    let mut stores = vec![Store::Embedded];
    for (variable, usual) in [("ROLLTOP_TEST_REDIS", "redis-server"), ("ROLLTOP_TEST_VALKEY", "valkey-server")] {
        let named = std::env::var_os(variable).filter(|path| !path.is_empty()).map(PathBuf::from);
        let paths = std::env::var_os("PATH").unwrap_or_default();
        let on_path = || std::env::split_paths(&paths).map(|folder| folder.join(usual)).find(|path| path.exists());
        match named.or_else(on_path) {
            Some(program) => stores.push(Store::Redis(Box::new(Redis::start(&program).await))),
            None => eprintln!("skipped: there is no {usual}"),
        }
    }
    stores
}

/// A Redis or Valkey that lives as long as this.
pub struct Redis {
    address: String,
    _folder: tempfile::TempDir,
    _process: Child,
}

impl Redis {
    async fn start(program: &Path) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let port = free_port();
        let process = Command::new(program)
            .args(["--port", &port.to_string(), "--save", "", "--bind", "127.0.0.1", "--dir"])
            .arg(folder.path())
            .stdout(std::process::Stdio::null())
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        wait_for(port).await;
        Self { address: format!("redis://127.0.0.1:{port}"), _folder: folder, _process: process }
    }
}

/// A running service, which can be killed and started again.
pub struct Running {
    pub store: Store,
    pub port: u16,
    program: PathBuf,
    /// The largest body that it takes.
    max_body: u32,
    folder: tempfile::TempDir,
    process: Option<Child>,
}

impl Running {
    pub async fn start(program: &Path, store: Store) -> Self {
        Self::start_with(program, store, 8 << 20).await
    }

    pub async fn start_with(program: &Path, store: Store, max_body: u32) -> Self {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("rolltop.toml"), CONFIGURATION).unwrap();
        let mut running =
            Self { store, port: free_port(), program: program.to_owned(), max_body, folder, process: None };
        running.start_again().await;
        running
    }

    pub async fn start_again(&mut self) {
        let log = File::options().create(true).append(true).open(self.folder.path().join("log")).unwrap();
        let store = match &self.store {
            Store::Embedded => "embedded",
            Store::Redis(redis) => &redis.address,
        };
        let process = Command::new(&self.program)
            .args(["serve", "--listen", &format!("127.0.0.1:{}", self.port), "--store", store, "--data-dir"])
            .arg(self.folder.path().join("data"))
            .args(["--max-body", &self.max_body.to_string()])
            .arg("--config")
            .arg(self.folder.path().join("rolltop.toml"))
            .stdout(log.try_clone().unwrap())
            .stderr(log)
            .kill_on_drop(true)
            .spawn();
        self.process = Some(process.unwrap());
        let service = self.service();
        for _ in 0..600 {
            if service.boards().await.is_ok() {
                return;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        panic!("{}", std::fs::read_to_string(self.folder.path().join("log")).unwrap());
    }

    /// Kills it, as a failure of the machine would.
    pub async fn kill(&mut self) {
        self.process.take().unwrap().kill().await.unwrap();
    }

    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// Returns a client that sends each request once.
    pub fn service(&self) -> Service {
        Service::builder(&self.url()).repeat_for(Duration::ZERO).build().unwrap()
    }
}

/// Returns the service on each store, for a test of all calls.
pub async fn services() -> Vec<Running> {
    let Some(program) = program() else { return Vec::new() };
    let mut running = Vec::new();
    for store in stores().await {
        running.push(Running::start(&program, store).await);
    }
    running
}

/// Returns a port that is free, below those that outgoing connections get: a service that was killed must be able to
/// listen on it again.
pub fn free_port() -> u16 {
    let drawn = std::iter::repeat_with(|| rand::random_range(10_000..30_000));
    drawn.into_iter().find(|port| TcpListener::bind(("127.0.0.1", *port)).is_ok()).unwrap()
}

async fn wait_for(port: u16) {
    for _ in 0..500 {
        if TcpStream::connect(("127.0.0.1", port)).await.is_ok() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    panic!("nothing listens on port {port}");
}
