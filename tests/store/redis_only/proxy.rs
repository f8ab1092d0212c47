//! A network that fails on command: a TCP proxy in front of a server.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

/// The fault of the next response of the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Fault {
    None = 0,
    /// The response and the connection are lost.
    Reset = 1,
    /// The response is lost, and the connection stays open without data.
    Silence = 2,
}

pub struct Proxy {
    pub port: u16,
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    next: AtomicU8,
    /// The number of responses that pass before it.
    passing: AtomicU64,
    happened: AtomicU64,
    /// The number of script calls by clients.
    calls: AtomicU64,
    /// Whether responses are held back.
    held: watch::Sender<bool>,
}

impl Proxy {
    pub async fn start(server: u16) -> Proxy {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let shared = Arc::<Shared>::default();
        let proxy = Proxy { port, shared: shared.clone() };
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                tokio::spawn(forward(client, server, shared.clone()));
            }
        });
        proxy
    }

    pub fn url(&self) -> String {
        format!("redis://127.0.0.1:{}", self.port)
    }

    /// Applies this fault to the next response of the server.
    pub fn arm(&self, fault: Fault) {
        self.shared.next.store(fault as u8, Ordering::SeqCst);
    }

    /// Lets this many responses of the server pass, and applies this fault to the next one.
    pub fn arm_after(&self, answers: u64, fault: Fault) {
        self.shared.passing.store(answers, Ordering::SeqCst);
        self.arm(fault);
    }

    /// Returns the number of responses lost so far.
    pub fn happened(&self) -> u64 {
        self.shared.happened.load(Ordering::SeqCst)
    }

    /// Holds responses back, or releases them.
    pub fn hold(&self, held: bool) {
        self.shared.held.send_replace(held);
    }

    /// Waits until clients have called this many scripts since the proxy was started.
    pub async fn calls(&self, calls: u64) {
        while self.so_far() < calls {
            tokio::task::yield_now().await;
        }
    }

    /// Returns the number of scripts that clients have called.
    pub fn so_far(&self) -> u64 {
        self.shared.calls.load(Ordering::SeqCst)
    }
}

async fn forward(mut client: TcpStream, server: u16, shared: Arc<Shared>) {
    let Ok(mut server) = TcpStream::connect(("127.0.0.1", server)).await else { return };
    let (mut from_client, mut from_server) = (vec![0; 65_536], vec![0; 65_536]);
    let mut held = shared.held.subscribe();
    let mut silent = false;
    // The beginning of a call may arrive in two pieces.
    let mut tail: Vec<u8> = Vec::new();
    loop {
        tokio::select! {
            read = client.read(&mut from_client) => match read {
                Ok(n) if n > 0 => {
                    tail.extend_from_slice(&from_client[..n]);
                    let calls = tail.windows(7).filter(|part| part == b"EVALSHA").count();
                    shared.calls.fetch_add(calls as u64, Ordering::SeqCst);
                    tail.drain(..tail.len().saturating_sub(6));
                    if server.write_all(&from_client[..n]).await.is_err() {
                        return;
                    }
                }
                _ => return,
            },
            read = async {
                // Fails only if the proxy has been dropped, and then nothing is held back.
                let _ = held.wait_for(|held| !held).await;
                server.read(&mut from_server).await
            } => match read {
                Ok(n) if n > 0 => {
                    let less = |passing: u64| passing.checked_sub(1);
                    let passes = shared.passing.fetch_update(Ordering::SeqCst, Ordering::SeqCst, less).is_ok();
                    let fault = match (silent, passes) {
                        (true, _) => Fault::Silence as u8,
                        (false, true) => Fault::None as u8,
                        (false, false) => shared.next.swap(0, Ordering::SeqCst),
                    };
                    if fault != Fault::None as u8 {
                        shared.happened.fetch_add(1, Ordering::SeqCst);
                    }
                    if fault == Fault::Reset as u8 {
                        return;
                    }
                    silent = fault == Fault::Silence as u8;
                    if !silent && client.write_all(&from_server[..n]).await.is_err() {
                        return;
                    }
                }
                _ => return,
            },
        }
    }
}
