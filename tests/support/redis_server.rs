//! Real servers for tests. Each is started on a free port in its own folder and stopped when the test process ends,
//! also after a crash of the test.

use std::io::{BufRead, BufReader};
use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU16, Ordering};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use crate::skipping::skipped;
use crate::waiting::Wait;

/// A server program to test against.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Engine {
    /// The name: `redis` or `valkey`.
    pub name: &'static str,
    pub program: PathBuf,
}

impl Engine {
    /// Returns every engine on this machine: `redis-server` on the PATH or in `ROLLTOP_TEST_REDIS`, and `valkey-server`
    /// on the PATH or in `ROLLTOP_TEST_VALKEY`. The test command installs them.
    pub fn available() -> Vec<Engine> {
        let find = |name, program: &str, variable: &str| {
            let named = std::env::var_os(variable).filter(|path| !path.is_empty()).map(PathBuf::from);
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
    /// The port for other nodes, if this is a node of a cluster.
    #[allow(dead_code, reason = "not every test program has clusters")]
    pub bus: Option<u16>,
    engine: Engine,
    /// The content of a configuration file in the server's folder. The file is passed before all other arguments.
    config: Option<String>,
    extra: Vec<String>,
    environment: Vec<(String, String)>,
    folder: tempfile::TempDir,
    /// A shell that kills the server when the other end of its standard input closes: when this is dropped or the test
    /// process ends.
    guard: Option<Child>,
    /// The server's own process, as long as there is a guard.
    process: Option<Pid>,
}

impl RedisServer {
    /// Starts a server without persistence.
    pub fn start(engine: &Engine) -> RedisServer {
        Self::start_with(engine, &["--save", "", "--appendonly", "no"])
    }

    /// Starts a server with these arguments besides port, folder and policy.
    pub fn start_with(engine: &Engine, extra: &[&str]) -> RedisServer {
        Self::start_configured(engine, None, extra)
    }

    /// Starts such a server with a configuration file of this content.
    pub fn start_configured(engine: &Engine, config: Option<&str>, extra: &[&str]) -> RedisServer {
        let mut server = Self::stopped(engine, config, extra);
        server.launch_anywhere();
        server
    }

    /// Starts a node of a cluster with these arguments.
    #[allow(dead_code, reason = "not every test program has clusters")]
    pub fn start_node(engine: &Engine, extra: &[&str]) -> RedisServer {
        let mut server = Self::stopped(engine, None, &[&["--cluster-enabled", "yes"], extra].concat());
        server.bus = Some(free_port());
        server.launch_anywhere();
        server
    }

    /// Starts a server without persistence whose clock [`set_clock_ahead`](Self::set_clock_ahead) moves. Skips the test
    /// and returns `None` if there is no C compiler for the library that moves it, or if the server does not use the
    /// library.
    #[allow(dead_code, reason = "not every test program moves a clock")]
    pub fn with_movable_clock(engine: &Engine) -> Option<RedisServer> {
        Self::with_movable_clock_and(engine, &["--save", "", "--appendonly", "no"])
    }

    /// Starts such a server with these arguments.
    #[allow(dead_code, reason = "not every test program moves a clock")]
    pub fn with_movable_clock_and(engine: &Engine, extra: &[&str]) -> Option<RedisServer> {
        let mut server = Self::stopped(engine, None, extra);
        let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/support/movable_clock.c");
        let library = server.folder.path().join("movable_clock.so");
        let built = Command::new("cc").args(["-shared", "-fPIC", "-O1", "-o"]).arg(&library).arg(source).output();
        match built {
            Ok(built) if built.status.success() => {}
            Ok(built) => panic!("{source}: {}", String::from_utf8_lossy(&built.stderr)),
            Err(error) => {
                skipped(format_args!("the server's clock cannot be moved without a C compiler: {error}"));
                return None;
            }
        }
        server.write_clock(Duration::ZERO);
        let named = |name: &str, path: PathBuf| (name.to_owned(), path.to_string_lossy().into_owned());
        server.environment =
            vec![named("LD_PRELOAD", library), named("MOVABLE_CLOCK", server.folder.path().join("clock"))];
        server.launch_anywhere();
        server.write_clock(Duration::from_secs(1_000));
        if !server.shows(Duration::from_secs(1_000)) {
            skipped(format_args!("the clock of {} cannot be moved (linked statically?)", engine.program.display()));
            return None;
        }
        server.set_clock_ahead(Duration::ZERO);
        Some(server)
    }

    /// Returns the time of the server's clock.
    #[allow(dead_code, reason = "not every test program moves a clock")]
    fn seconds(&self) -> u64 {
        use std::io::{Read, Write};
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).expect("a running server");
        let mut reply = [0; 256];
        stream.write_all(b"TIME\r\n").expect("a connection");
        let size = stream.read(&mut reply).expect("an answer");
        let text = String::from_utf8_lossy(&reply[..size]).into_owned();
        text.lines().nth(2).and_then(|seconds| seconds.parse().ok()).unwrap_or_else(|| panic!("TIME answered {text:?}"))
    }

    /// Sets the server's clock ahead of the real one by this much. Returns when the server uses the new time: Valkey
    /// reads its clock only every few milliseconds, less often on a busy machine, and returns the previous time until
    /// then.
    #[allow(dead_code, reason = "not every test program moves a clock")]
    pub fn set_clock_ahead(&self, by: Duration) {
        self.write_clock(by);
        let wait = Wait::begin(format!("the server to go by a clock that is {by:?} ahead"));
        while !self.shows(by) {
            wait.pause(self.seconds());
        }
    }

    /// Waits some seconds until the server's clock is ahead by this much. Returns `false` if this does not happen, as
    /// with a program that does not use the library.
    #[allow(dead_code, reason = "not every test program moves a clock")]
    fn shows(&self, by: Duration) -> bool {
        let real = || std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).expect("a time after 1970");
        let deadline = Instant::now() + Duration::from_secs(10);
        while Instant::now() < deadline {
            let before = real().as_secs();
            let shown = self.seconds();
            if (before..=real().as_secs()).contains(&(shown.saturating_sub(by.as_secs()))) {
                return true;
            }
            std::thread::sleep(Duration::from_millis(2));
        }
        false
    }

    #[allow(dead_code, reason = "not every test program moves a clock")]
    fn write_clock(&self, by: Duration) {
        // The file is written in place with a constant length, because the server reads it whenever it reads its clock.
        let mut file = std::fs::OpenOptions::new();
        let file = file.write(true).create(true).truncate(false).open(self.folder.path().join("clock"));
        std::io::Write::write_all(&mut file.expect("a clock file"), format!("{:020}", by.as_secs()).as_bytes())
            .expect("a clock file");
    }

    fn stopped(engine: &Engine, config: Option<&str>, extra: &[&str]) -> RedisServer {
        RedisServer {
            port: 0,
            bus: None,
            engine: engine.clone(),
            config: config.map(str::to_owned),
            extra: extra.iter().map(|s| (*s).to_owned()).collect(),
            environment: Vec::new(),
            folder: tempfile::tempdir().expect("a temporary folder"),
            guard: None,
            process: None,
        }
    }

    /// Starts it on free ports. Tries other ports if another process takes them first.
    fn launch_anywhere(&mut self) {
        for _ in 0..20 {
            self.port = free_port();
            self.bus = self.bus.map(|_| free_port());
            if self.launch() {
                return;
            }
        }
        let (program, lines) = (self.engine.program.display(), self.last_lines());
        panic!("{program} did not start on any of 20 ports; its last lines: {lines:#?}");
    }

    /// Returns the last lines of the server's log.
    fn last_lines(&self) -> Vec<String> {
        let log = std::fs::read_to_string(self.folder.path().join("server.log")).unwrap_or_default();
        let lines: Vec<&str> = log.lines().collect();
        lines[lines.len().saturating_sub(20)..].iter().map(|line| (*line).to_owned()).collect()
    }

    pub fn url(&self) -> String {
        format!("redis://127.0.0.1:{}", self.port)
    }

    /// Returns the folder of the server's files.
    #[allow(dead_code, reason = "not every test program looks at them")]
    pub fn folder(&self) -> &std::path::Path {
        self.folder.path()
    }

    /// Pauses the server's process, or lets it continue.
    #[allow(dead_code, reason = "not every test program pauses a server")]
    pub fn pause(&self, paused: bool) {
        let process = self.process.expect("a running server");
        kill_process(process, if paused { Signal::STOP } else { Signal::CONT }).expect("a running server");
    }

    /// Kills the server, as a crash would.
    pub fn kill(&mut self) {
        self.process = None;
        if let Some(mut guard) = self.guard.take() {
            drop(guard.stdin.take());
            let _ = guard.wait();
        }
    }

    /// Starts it again on the same port and folder after [`kill`](Self::kill).
    pub fn restart(&mut self) {
        self.kill();
        let wait = Wait::begin(format!("{} to start again on port {}", self.engine.program.display(), self.port));
        while !self.launch() {
            wait.pause(self.last_lines());
        }
    }

    fn launch(&mut self) -> bool {
        let port = self.port.to_string();
        let config = self.config.as_ref().map(|text| {
            let path = self.folder.path().join("server.conf");
            // A restarted Sentinel continues from the state that it wrote to this file.
            if !path.exists() {
                std::fs::write(&path, text).expect("a file in a temporary folder");
            }
            path
        });
        let mut guard = Command::new("sh")
            .arg("-c")
            .arg(r#""$@" & server=$!; echo "$server"; cat >/dev/null; kill -9 "$server"; wait "$server" 2>/dev/null"#)
            .arg("guard")
            .arg(&self.engine.program)
            .args(config)
            .args(["--port", &port, "--bind", "127.0.0.1", "--daemonize", "no", "--maxmemory-policy", "noeviction"])
            .args(["--dir", self.folder.path().to_str().expect("a UTF-8 path"), "--logfile", "server.log"])
            .args(&self.extra)
            .args(self.bus.iter().flat_map(|bus| ["--cluster-port".to_owned(), bus.to_string()]))
            .envs(self.environment.iter().map(|(name, value)| (name, value)))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("a shell");
        let mut pid = String::new();
        let stdout = guard.stdout.take().expect("piped");
        BufReader::new(stdout).read_line(&mut pid).expect("the server's process id");
        let process = PathBuf::from(format!("/proc/{}", pid.trim()));
        // A server that cannot start ends on its own.
        let wait = Wait::begin(format!("{} to answer on port {port}", self.engine.program.display()));
        self.guard = Some(guard);
        self.process = Pid::from_raw(pid.trim().parse().expect("the server's process id"));
        while process.exists() {
            if self.answers(pid.trim()) {
                return true;
            }
            wait.pause(self.last_lines());
        }
        self.kill();
        false
    }

    /// Returns whether this process responds, and not another one that has taken the port.
    fn answers(&self, pid: &str) -> bool {
        use std::io::{Read, Write};
        let Ok(mut stream) = TcpStream::connect(("127.0.0.1", self.port)) else { return false };
        let _ = stream.set_read_timeout(Some(Duration::from_secs(5)));
        if stream.write_all(b"PING\r\nINFO server\r\n").is_err() {
            return false;
        }
        let (mut reply, mut some) = (String::new(), [0; 4_096]);
        // The port comes after the process id.
        while !reply.contains("tcp_port:") {
            match stream.read(&mut some) {
                Ok(size) if size > 0 => reply.push_str(&String::from_utf8_lossy(&some[..size])),
                _ => return false,
            }
            if !reply.starts_with('+') {
                return false;
            }
        }
        reply.starts_with("+PONG") && reply.lines().any(|line| line.strip_prefix("process_id:") == Some(pid))
    }
}

/// Returns a port on which no process listens now. This process returns each port once. None of them is in the range
/// that the system uses for outgoing connections, because such a connection might take the port before a server does.
pub fn free_port() -> u16 {
    static NEXT: AtomicU16 = AtomicU16::new(0);
    let range = std::fs::read_to_string("/proc/sys/net/ipv4/ip_local_port_range").unwrap_or_default();
    let first: u16 = range.split_whitespace().next().and_then(|first| first.parse().ok()).unwrap_or(32_768);
    let (low, high) = if first > 12_000 { (first - 10_000, first) } else { (20_000, 30_000) };
    // Programs that run at the same time begin at different ports.
    let _ = NEXT.compare_exchange(0, 1 + (std::process::id() % 97) as u16 * 100, Ordering::SeqCst, Ordering::SeqCst);
    for _ in low..high {
        let port = low + NEXT.fetch_add(1, Ordering::SeqCst) % (high - low);
        if TcpListener::bind(("127.0.0.1", port)).is_ok() {
            return port;
        }
    }
    panic!("no port from {low} to {high} is free");
}

impl Drop for RedisServer {
    fn drop(&mut self) {
        self.kill();
    }
}
