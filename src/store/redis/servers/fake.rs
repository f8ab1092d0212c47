//! A server for tests, whose reactions a test defines.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;

/// The time after which a late greeting comes, which is long for any machine.
pub const LATE: Duration = Duration::from_millis(400);

/// The reaction of a server to a command.
pub enum Reaction {
    /// Sends this text, which must be in the wire format.
    Say(String),
    Silence,
    HangUp,
}

use Reaction::{HangUp, Say, Silence};

type React = dyn Fn(&[String]) -> Reaction + Send + Sync;

/// A server with the reactions that a test defines.
#[derive(Clone)]
pub struct Fake {
    pub port: u16,
    pub state: Arc<State>,
}

pub struct State {
    react: Mutex<Arc<React>>,
    /// All commands of clients except `CLIENT`, `PING` and `INFO`, each with the number of its connection.
    asked: Mutex<Vec<(u64, String)>>,
    pub connections: AtomicU64,
    /// The number of connections that are open now.
    pub open: AtomicU64,
    /// The run id.
    pub run: AtomicU64,
    /// The number of further greetings that are answered late.
    pub late_greetings: AtomicU64,
    /// Notified to close all connections.
    closing: Notify,
}

impl Fake {
    pub async fn start() -> Fake {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let state = Arc::new(State {
            react: Mutex::new(Arc::new(|_: &[String]| Say("+OK\r\n".to_owned()))),
            asked: Mutex::default(),
            connections: AtomicU64::new(0),
            open: AtomicU64::new(0),
            run: AtomicU64::new(1),
            late_greetings: AtomicU64::new(0),
            closing: Notify::new(),
        });
        let fake = Fake { port, state: state.clone() };
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let number = state.connections.fetch_add(1, Ordering::SeqCst) + 1;
                let state = state.clone();
                state.open.fetch_add(1, Ordering::SeqCst);
                tokio::spawn(async move {
                    serve(stream, number, state.clone()).await;
                    state.open.fetch_sub(1, Ordering::SeqCst);
                });
            }
        });
        fake
    }

    /// Sets the reaction from now on.
    pub fn on(&self, react: impl Fn(&[String]) -> Reaction + Send + Sync + 'static) {
        *self.state.react.lock() = Arc::new(react);
    }

    /// Closes all connections.
    pub fn hang_up(&self) {
        self.state.closing.notify_waiters();
    }

    /// Returns the commands since the last call.
    pub fn asked(&self) -> Vec<String> {
        self.state.asked.lock().drain(..).map(|(_, command)| command).collect()
    }

    /// Returns a reply to `CLUSTER INFO` of a cluster that works, with its epoch.
    pub fn info(epoch: u8) -> Reaction {
        let text = format!("cluster_state:ok\r\ncluster_current_epoch:{epoch}\r\n");
        Say(format!("${}\r\n{text}\r\n", text.len()))
    }

    /// Returns a reply to `CLUSTER SLOTS`: for each range, first hash slot, last hash slot and port of the node that
    /// has them.
    fn slots(owners: &[(u16, u16, u16)]) -> Reaction {
        let mut text = format!("*{}\r\n", owners.len());
        for (first, last, port) in owners {
            text += &format!("*3\r\n:{first}\r\n:{last}\r\n*3\r\n$9\r\n127.0.0.1\r\n:{port}\r\n$2\r\nid\r\n");
        }
        Say(text)
    }
}

async fn serve(mut stream: TcpStream, number: u64, state: Arc<State>) {
    let (mut read, mut buffer) = (Vec::new(), vec![0; 65_536]);
    loop {
        while let Some((command, length)) = parse(&read) {
            read.drain(..length);
            let answer = match command[0].as_str() {
                "CLIENT" => "+OK\r\n".to_owned(),
                "PING" => "+PONG\r\n".to_owned(),
                "INFO" => {
                    let late = state.late_greetings.load(Ordering::SeqCst);
                    if late > 0 {
                        state.late_greetings.store(late - 1, Ordering::SeqCst);
                        tokio::time::sleep(LATE).await;
                    }
                    let text = format!("redis_version:7.0.0\r\nrun_id:{}\r\n", state.run.load(Ordering::SeqCst));
                    format!("${}\r\n{text}\r\n", text.len())
                }
                _ => {
                    state.asked.lock().push((number, command.join(" ")));
                    let react = state.react.lock().clone();
                    match react(&command) {
                        Say(text) => text,
                        Silence => continue,
                        HangUp => return,
                    }
                }
            };
            if stream.write_all(answer.as_bytes()).await.is_err() {
                return;
            }
        }
        tokio::select! {
            more = stream.read(&mut buffer) => match more {
                Ok(n) if n > 0 => read.extend_from_slice(&buffer[..n]),
                _ => return,
            },
            () = state.closing.notified() => return,
        }
    }
}

/// Returns the first complete command, and its length in bytes.
fn parse(bytes: &[u8]) -> Option<(Vec<String>, usize)> {
    let channel = |at: usize| {
        let end = bytes[at..].windows(2).position(|two| two == b"\r\n")? + at;
        let number: usize = std::str::from_utf8(&bytes[at + 1..end]).ok()?.parse().ok()?;
        Some((number, end + 2))
    };
    let (count, mut at) = channel(0)?;
    let mut words = Vec::new();
    for _ in 0..count {
        let (length, start) = channel(at)?;
        at = start + length + 2;
        words.push(String::from_utf8_lossy(bytes.get(start..start + length)?).into_owned());
    }
    (at <= bytes.len()).then_some((words, at))
}

/// Returns the reply of a cluster node to questions about the cluster, or `None` for other commands.
pub fn cluster(command: &[String], owners: &[(u16, u16, u16)]) -> Option<Reaction> {
    match command.join(" ").as_str() {
        "CLUSTER SLOTS" => Some(Fake::slots(owners)),
        "CLUSTER INFO" => Some(Fake::info(1)),
        _ => None,
    }
}
