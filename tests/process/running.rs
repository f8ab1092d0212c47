//! A `rolltop serve` process on a free port, and a small client for it.

use std::collections::VecDeque;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, mpsc};
use std::thread::JoinHandle;

use parking_lot::Mutex;
use serde_json::Value;

use crate::waiting::{PATIENCE, Wait};

/// The program under test.
pub const PROGRAM: &str = env!("CARGO_BIN_EXE_rolltop");

/// A running service. It is killed, as by `kill -9`, when this is dropped.
pub struct Running {
    child: Child,
    log: Log,
    pub base: String,
    pub client: reqwest::Client,
}

/// Returns a command with its own environment and folder, so that it does not use the developer's settings.
pub fn program(folder: &Path) -> Command {
    alone(Command::new(PROGRAM), folder)
}

fn alone(mut command: Command, folder: &Path) -> Command {
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("ROLLTOP_") {
            command.env_remove(name);
        }
    }
    // The profiles of a user are below HOME.
    command.env("HOME", folder).env_remove("XDG_CONFIG_HOME").env_remove("NO_COLOR");
    command.current_dir(folder).env("RUST_LOG", "warn").stderr(Stdio::piped());
    command
}

/// The last lines that a program has written to standard error.
#[derive(Clone, Default)]
struct Log {
    lines: Arc<Mutex<VecDeque<String>>>,
    /// The thread that reads them until the output ends.
    reader: Option<Arc<JoinHandle<()>>>,
}

impl Log {
    /// Follows the output until it ends. Prints it, for the output of the test.
    fn follow(stderr: impl Read + Send + 'static) -> Log {
        let lines: Arc<Mutex<VecDeque<String>>> = Arc::default();
        let read = lines.clone();
        let reader = std::thread::spawn(move || {
            for line in BufReader::new(stderr).lines().map_while(Result::ok) {
                eprintln!("{line}");
                let mut lines = read.lock();
                lines.push_back(line);
                if lines.len() > 20 {
                    lines.pop_front();
                }
            }
        });
        Log { lines, reader: Some(Arc::new(reader)) }
    }

    fn last_lines(&self) -> Vec<String> {
        self.lines.lock().iter().cloned().collect()
    }

    /// Returns the last lines of a program that has ended. On a busy machine they are read a while later.
    fn last_lines_of_ended(&self) -> Vec<String> {
        let wait = Wait::begin("the end of the output of a program that has ended");
        while self.reader.as_ref().is_some_and(|reader| !reader.is_finished()) {
            wait.pause(self.last_lines());
        }
        self.last_lines()
    }
}

/// Returns the command `rolltop serve` on a free port, with these additional arguments.
pub fn serve(folder: &Path, args: &[&str]) -> Command {
    serve_by(Path::new(PROGRAM), folder, args)
}

/// Returns the same command of a different build of the program.
pub fn serve_by(program: &Path, folder: &Path, args: &[&str]) -> Command {
    let mut command = alone(Command::new(program), folder);
    command.args(["serve", "--listen", "127.0.0.1:0"]).args(args);
    command
}

/// Returns the same command in a process that a shell has prepared, for example by `ulimit -n 512`.
pub fn serve_after(shell: &str, folder: &Path, args: &[&str]) -> Command {
    let mut command = alone(Command::new("sh"), folder);
    command.args(["-c", &format!("{shell} && exec \"$@\""), "sh", PROGRAM, "serve", "--listen", "127.0.0.1:0"]);
    command.args(args);
    command
}

impl Running {
    /// Starts `rolltop serve` with these arguments besides `--listen`. Waits until it prints its address.
    pub fn start(folder: &Path, args: &[&str]) -> Running {
        Running::launch(serve(folder, args))
    }

    /// Starts a command of [`serve`] or [`serve_after`]. Waits until it prints its address.
    pub fn launch(command: Command) -> Running {
        Running::try_launch(command).unwrap_or_else(|why| panic!("{why}"))
    }

    /// Starts a command as [`launch`](Self::launch) does. Returns the reason if it did not start.
    pub fn try_launch(mut command: Command) -> Result<Running, String> {
        let client = client();
        let mut child = command.stdout(Stdio::piped()).spawn().expect("the program starts");
        let stdout = BufReader::new(child.stdout.take().expect("piped"));
        // A test may have sent it elsewhere.
        let log = child.stderr.take().map(Log::follow).unwrap_or_default();
        let (found, base) = mpsc::channel();
        std::thread::spawn(move || {
            for line in stdout.lines().map_while(Result::ok) {
                if let (Some(at), Some((_, rest))) = (line.find("http"), line.split_once("://")) {
                    let end = line.len() - rest.len() + rest.find('/').unwrap_or(rest.len());
                    let _ = found.send(line[at..end].to_owned());
                }
            }
        });
        match base.recv_timeout(PATIENCE) {
            Ok(base) => Ok(Running { child, log, base, client }),
            Err(why) => {
                let why = match why {
                    mpsc::RecvTimeoutError::Timeout => format!("did not say where it listens for {PATIENCE:?}"),
                    mpsc::RecvTimeoutError::Disconnected => "ended without saying where it listens".to_owned(),
                };
                let _ = child.kill();
                Err(format!("{command:?} {why}: {:?}; its last lines: {:#?}", child.wait(), log.last_lines_of_ended()))
            }
        }
    }

    /// Returns its process id.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Returns its address, `127.0.0.1:port`.
    pub fn address(&self) -> &str {
        self.base.split_once("://").map_or("", |(_, address)| address)
    }

    /// Returns the last lines of its log.
    pub fn log(&self) -> Vec<String> {
        self.log.last_lines()
    }

    /// Waits until its last lines have these words: they are read beside its answers, on a busy machine a while later.
    pub async fn has_logged(&self, words: &str) {
        let wait = Wait::begin(format!("'{words}' in the log"));
        while !self.log().concat().contains(words) {
            wait.rest(self.log()).await;
        }
    }

    /// Returns its exit status if it has ended.
    pub fn ended(&mut self) -> Option<ExitStatus> {
        self.child.try_wait().expect("a child")
    }

    /// Kills it at once.
    pub fn kill(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    /// Sends SIGTERM and waits for the end.
    pub fn terminate(&mut self) -> ExitStatus {
        self.signal("TERM");
        let wait = Wait::begin("the program to end after SIGTERM");
        loop {
            if let Some(status) = self.child.try_wait().expect("a child") {
                return status;
            }
            wait.pause(self.log.last_lines());
        }
    }

    pub fn signal(&self, name: &str) {
        let status = Command::new("kill").args([&format!("-{name}"), &self.child.id().to_string()]).status();
        assert!(status.expect("kill").success());
    }

    /// Makes one call. Returns status and JSON of the response.
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

    /// Returns the value of a metric without labels.
    pub async fn metric(&self, name: &str) -> f64 {
        let text = self.client.get(format!("{}/metrics", self.base)).send().await.unwrap().text().await.unwrap();
        let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
        line.unwrap_or_else(|| panic!("{name} is missing")).parse().unwrap()
    }

    /// Makes a call that must succeed.
    pub async fn ok(&self, method: &str, path: &str, body: Option<Value>) -> Value {
        let (status, value) = self.call(method, path, body).await;
        assert!((200..300).contains(&status), "{method} {path}: {status} {value}");
        value
    }

    /// Posts NDJSON. Returns the response.
    pub async fn ndjson(&self, board: &str, lines: String) -> Value {
        let (status, value) = self.post_lines(board, lines).await;
        assert_eq!(status, 200, "{value}");
        value
    }

    async fn post_lines(&self, board: &str, lines: String) -> (u16, Value) {
        let url = format!("{}/v1/boards/{board}/increments", self.base);
        let request = self.client.post(url).header("content-type", "application/x-ndjson").body(lines);
        let answer = request.send().await.expect("an answer");
        let status = answer.status().as_u16();
        (status, answer.json().await.expect("JSON"))
    }

    /// Posts lines, all of them valid, until all are counted. A disk that confirms nothing for some seconds refuses the
    /// rest of a stream: as a client would, this sends again what did not count.
    pub async fn ndjson_until_counted(&self, board: &str, mut lines: &[String]) {
        let wait = Wait::begin("the service to count all lines");
        loop {
            let (status, value) = self.post_lines(board, lines.concat()).await;
            let accepted = value["accepted"].as_u64().unwrap_or(0) as usize;
            if status == 200 {
                assert_eq!(accepted, lines.len(), "{value}");
                return;
            }
            let is_refused = value["code"] == "store_read_only" || value["code"] == "overloaded";
            assert!(status == 503 && is_refused, "{status} {value}");
            assert_eq!(value["counted_through"], accepted, "lines after a refused one counted: {value}");
            lines = &lines[accepted..];
            wait.rest(&value.to_string()).await;
        }
    }
}

fn client() -> reqwest::Client {
    // The client needs a provider of cryptography even for plain HTTP. One installed earlier can be used.
    let _ = rustls::crypto::ring::default_provider().install_default();
    reqwest::Client::new()
}

impl Drop for Running {
    fn drop(&mut self) {
        self.kill();
    }
}
