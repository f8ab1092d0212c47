//! A network that fails on command: a TCP proxy in front of a server.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

/// What happens to the next answer of the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Fault {
    None = 0,
    /// It is lost, and the connection with it.
    Reset = 1,
    /// It is lost, and the connection stays open but silent.
    Silence = 2,
}

pub struct Proxy {
    pub port: u16,
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    next: AtomicU8,
    /// How many answers pass before it.
    passing: AtomicU64,
    happened: AtomicU64,
    /// Calls of scripts that came from clients.
    calls: AtomicU64,
    /// Whether answers wait.
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

    /// The next answer of the server, whichever it is, meets this fault.
    pub fn arm(&self, fault: Fault) {
        self.shared.next.store(fault as u8, Ordering::SeqCst);
    }

    /// So many answers of the server pass, and the one after them meets this fault.
    pub fn arm_after(&self, answers: u64, fault: Fault) {
        self.shared.passing.store(answers, Ordering::SeqCst);
        self.arm(fault);
    }

    /// How many answers were lost so far.
    pub fn happened(&self) -> u64 {
        self.shared.happened.load(Ordering::SeqCst)
    }

    /// Lets answers wait, or go.
    pub fn hold(&self, held: bool) {
        self.shared.held.send_replace(held);
    }

    /// Returns once clients have called so many scripts since the proxy was started.
    pub async fn calls(&self, calls: u64) {
        while self.so_far() < calls {
            tokio::task::yield_now().await;
        }
    }

    /// How many scripts clients have called.
    pub fn so_far(&self) -> u64 {
        self.shared.calls.load(Ordering::SeqCst)
    }
}

async fn forward(mut client: TcpStream, server: u16, shared: Arc<Shared>) {
    let Ok(mut server) = TcpStream::connect(("127.0.0.1", server)).await else { return };
    let (mut from_client, mut from_server) = (vec![0; 65_536], vec![0; 65_536]);
    let mut held = shared.held.subscribe();
    let mut silent = false;
    // What a call begins with may come in two parts.
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
                // Fails only when the proxy is gone, and then nothing holds any more.
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
