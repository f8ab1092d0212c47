//! Real servers for tests: started on a free port in a folder of their own, stopped when the test process ends,
//! however it ends.

use std::io::{BufRead, BufReader};
use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// A server program to test against.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Engine {
    /// `redis` or `valkey`.
    pub name: &'static str,
    pub program: PathBuf,
}

impl Engine {
    /// Every engine this machine has: `redis-server` on the PATH or in `ROLLTOP_TEST_REDIS`, and `valkey-server`
    /// on the PATH or in `ROLLTOP_TEST_VALKEY`. The one test command installs them.
    pub fn available() -> Vec<Engine> {
        let find = |name, program: &str, variable: &str| {
            let named = std::env::var_os(variable).map(PathBuf::from);
            let on_path = || {
                let path = std::env::var_os("PATH")?;
                std::env::split_paths(&path).map(|folder| folder.join(program)).find(|file| file.is_file())
            };
            named.or_else(on_path).map(|program| Engine { name, program })
        };
        let engines: Vec<Engine> = [
            find("redis", "redis-server", "ROLLTOP_TEST_REDIS"),
            find("valkey", "valkey-server", "ROLLTOP_TEST_VALKEY"),
        ]
        .into_iter()
        .flatten()
        .collect();
        assert!(
            !engines.is_empty(),
            "no redis-server or valkey-server found: run the test command in the README, which installs one"
        );
        engines
    }
}

/// A running server. Dropping it stops the server at once, as a crash would.
pub struct RedisServer {
    pub port: u16,
    engine: Engine,
    extra: Vec<String>,
    folder: tempfile::TempDir,
    /// A shell that kills the server when our end of its standard input closes, be it by drop or by our death.
    guard: Option<Child>,
}

impl RedisServer {
    /// Starts a server without persistence.
    pub fn start(engine: &Engine) -> RedisServer {
        Self::start_with(engine, &["--save", "", "--appendonly", "no"])
    }

    /// Starts a server with these arguments besides port, folder and policy.
    pub fn start_with(engine: &Engine, extra: &[&str]) -> RedisServer {
        let mut server = RedisServer {
            port: 0,
            engine: engine.clone(),
            extra: extra.iter().map(|s| (*s).to_owned()).collect(),
            folder: tempfile::tempdir().expect("a temporary folder"),
            guard: None,
        };
        for _ in 0..20 {
            server.port = TcpListener::bind("127.0.0.1:0").and_then(|l| l.local_addr()).expect("a free port").port();
            if server.launch() {
                return server;
            }
        }
        panic!("{} did not start on any of 20 free ports", engine.program.display());
    }

    pub fn url(&self) -> String {
        format!("redis://127.0.0.1:{}", self.port)
    }

    /// Kills the server, as a crash would.
    pub fn kill(&mut self) {
        if let Some(mut guard) = self.guard.take() {
            drop(guard.stdin.take());
            let _ = guard.wait();
        }
    }

    /// Starts it again on the same port and folder after [`kill`](Self::kill).
    pub fn restart(&mut self) {
        self.kill();
        for _ in 0..50 {
            if self.launch() {
                return;
            }
            std::thread::sleep(Duration::from_millis(100));
        }
        panic!("{} did not come back on port {}", self.engine.program.display(), self.port);
    }

    fn launch(&mut self) -> bool {
        let port = self.port.to_string();
        let mut guard = Command::new("sh")
            .arg("-c")
            .arg(r#""$@" & server=$!; echo "$server"; cat >/dev/null; kill -9 "$server"; wait "$server" 2>/dev/null"#)
            .arg("guard")
            .arg(&self.engine.program)
            .args(["--port", &port, "--bind", "127.0.0.1", "--daemonize", "no", "--maxmemory-policy", "noeviction"])
            .args(["--dir", self.folder.path().to_str().expect("a UTF-8 path"), "--logfile", "server.log"])
            .args(&self.extra)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("a shell");
        let mut pid = String::new();
        let stdout = guard.stdout.take().expect("piped");
        BufReader::new(stdout).read_line(&mut pid).expect("the server's process id");
        let process = PathBuf::from(format!("/proc/{}", pid.trim()));
        let deadline = Instant::now() + Duration::from_secs(10);
        self.guard = Some(guard);
        while Instant::now() < deadline {
            if self.answers() {
                return true;
            }
            if !process.exists() {
                break;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        self.kill();
        false
    }

    fn answers(&self) -> bool {
        use std::io::{Read, Write};
        let Ok(mut stream) = TcpStream::connect(("127.0.0.1", self.port)) else { return false };
        let _ = stream.set_read_timeout(Some(Duration::from_millis(500)));
        let mut reply = [0; 5];
        stream.write_all(b"PING\r\n").is_ok() && stream.read_exact(&mut reply).is_ok() && &reply == b"+PONG"
    }
}

impl Drop for RedisServer {
    fn drop(&mut self) {
        self.kill();
    }
}
