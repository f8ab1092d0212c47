//! A `rolltop serve` process on a free port, and a small client for it.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use serde_json::Value;

/// The program under test.
pub const PROGRAM: &str = env!("CARGO_BIN_EXE_rolltop");

/// A running service; killed, as by `kill -9`, when dropped.
pub struct Running {
    child: Child,
    pub base: String,
    pub client: reqwest::Client,
}

/// A command with an environment and a folder of its own, so that no setting of the developer's leaks in.
pub fn program(folder: &Path) -> Command {
    let mut command = Command::new(PROGRAM);
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("ROLLTOP_") {
            command.env_remove(name);
        }
    }
    command.current_dir(folder).env("RUST_LOG", "warn");
    command
}

impl Running {
    /// Starts `rolltop serve` with these arguments besides `--listen`; waits until it says where it listens.
    pub fn start(folder: &Path, args: &[&str]) -> Running {
        let mut child = program(folder)
            .args(["serve", "--listen", "127.0.0.1:0"])
            .args(args)
            .stdout(Stdio::piped())
            .spawn()
            .expect("the program starts");
        let stdout = BufReader::new(child.stdout.take().expect("piped"));
        let (found, base) = mpsc::channel();
        std::thread::spawn(move || {
            for line in stdout.lines().map_while(Result::ok) {
                if let Some((_, rest)) = line.split_once("http://") {
                    let _ = found.send(format!("http://{}", rest.split('/').next().unwrap_or_default()));
                }
            }
        });
        let base = match base.recv_timeout(Duration::from_secs(30)) {
            Ok(base) => base,
            Err(_) => {
                let _ = child.kill();
                panic!("{PROGRAM} serve {args:?} did not say where it listens");
            }
        };
        Running { child, base, client: reqwest::Client::new() }
    }

    /// Kills it at once.
    pub fn kill(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    /// Sends SIGTERM and waits for the end.
    pub fn terminate(&mut self) -> ExitStatus {
        self.signal("TERM");
        let deadline = Instant::now() + Duration::from_secs(30);
        while Instant::now() < deadline {
            if let Some(status) = self.child.try_wait().expect("a child") {
                return status;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        panic!("SIGTERM did not end the program within 30 s");
    }

    pub fn signal(&self, name: &str) {
        let status = Command::new("kill").args([&format!("-{name}"), &self.child.id().to_string()]).status();
        assert!(status.expect("kill").success());
    }

    /// One call; the answer's status and JSON.
    pub async fn call(&self, method: &str, path: &str, body: Option<Value>) -> (u16, Value) {
        let method = method.parse().expect("a method");
        let mut request = self.client.request(method, format!("{}{path}", self.base));
        if let Some(body) = body {
            request = request.json(&body);
        }
        let answer = request.send().await.expect("an answer");
        let status = answer.status().as_u16();
        (status, answer.json().await.unwrap_or(Value::Null))
    }

    /// A call that must succeed.
    pub async fn ok(&self, method: &str, path: &str, body: Option<Value>) -> Value {
        let (status, value) = self.call(method, path, body).await;
        assert!((200..300).contains(&status), "{method} {path}: {status} {value}");
        value
    }

    /// Posts NDJSON; the answer.
    pub async fn ndjson(&self, board: &str, lines: String) -> Value {
        let url = format!("{}/v1/boards/{board}/increments", self.base);
        let request = self.client.post(url).header("content-type", "application/x-ndjson").body(lines);
        let answer = request.send().await.expect("an answer");
        assert_eq!(answer.status().as_u16(), 200);
        answer.json().await.expect("JSON")
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.kill();
    }
}
