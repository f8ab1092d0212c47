//! A network that fails on command: a TCP proxy in front of a server.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

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
    next: Arc<AtomicU8>,
    happened: Arc<AtomicU64>,
}

impl Proxy {
    pub async fn start(server: u16) -> Proxy {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let (next, happened) = (Arc::new(AtomicU8::new(0)), Arc::new(AtomicU64::new(0)));
        let proxy = Proxy { port, next: next.clone(), happened: happened.clone() };
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                tokio::spawn(forward(client, server, next.clone(), happened.clone()));
            }
        });
        proxy
    }

    pub fn url(&self) -> String {
        format!("redis://127.0.0.1:{}", self.port)
    }

    /// The next answer of the server, whichever it is, meets this fault.
    pub fn arm(&self, fault: Fault) {
        self.next.store(fault as u8, Ordering::SeqCst);
    }

    /// How many answers were lost so far.
    pub fn happened(&self) -> u64 {
        self.happened.load(Ordering::SeqCst)
    }
}

async fn forward(mut client: TcpStream, server: u16, next: Arc<AtomicU8>, happened: Arc<AtomicU64>) {
    let Ok(mut server) = TcpStream::connect(("127.0.0.1", server)).await else { return };
    let (mut from_client, mut from_server) = (vec![0; 65_536], vec![0; 65_536]);
    let mut silent = false;
    loop {
        tokio::select! {
            read = client.read(&mut from_client) => match read {
                Ok(n) if n > 0 => if server.write_all(&from_client[..n]).await.is_err() { return },
                _ => return,
            },
            read = server.read(&mut from_server) => match read {
                Ok(n) if n > 0 => {
                    let fault = if silent { Fault::Silence as u8 } else { next.swap(0, Ordering::SeqCst) };
                    if fault != Fault::None as u8 {
                        happened.fetch_add(1, Ordering::SeqCst);
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
