//! A network that fails.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// What happens to a request: nothing, a cut before it arrives, one before its answer does, a delay, or that it is sent
/// twice.
const FAULTS: [&str; 5] = ["none", "before", "after", "delay", "twice"];

/// Forwards connections to a port, and makes a third of the requests fail.
pub struct BadNetwork {
    pub url: String,
    state: Arc<State>,
}

struct State {
    to: u16,
    seed: u64,
    connections: AtomicUsize,
    faults: [AtomicUsize; FAULTS.len()],
}

impl BadNetwork {
    pub async fn to(port: u16, seed: u64) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let state = Arc::new(State { to: port, seed, connections: AtomicUsize::new(0), faults: Default::default() });
        let accepting = state.clone();
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                tokio::spawn(accepting.clone().serve(client));
            }
        });
        Self { url, state }
    }

    /// Returns how often each fault happened.
    pub fn faults(&self) -> [(&'static str, usize); FAULTS.len()] {
        std::array::from_fn(|at| (FAULTS[at], self.state.faults[at].load(Ordering::Relaxed)))
    }
}

impl State {
    async fn serve(self: Arc<Self>, mut client: TcpStream) -> Option<()> {
        let number = self.connections.fetch_add(1, Ordering::Relaxed);
        let mut draw = StdRng::seed_from_u64(self.seed ^ number as u64);
        let mut server = TcpStream::connect(("127.0.0.1", self.to)).await.ok()?;
        loop {
            let request = message(&mut client).await?;
            let fault = if draw.random_bool(0.3) { draw.random_range(1..FAULTS.len()) } else { 0 };
            self.faults[fault].fetch_add(1, Ordering::Relaxed);
            match FAULTS[fault] {
                "before" => return None,
                "delay" => tokio::time::sleep(Duration::from_millis(200)).await,
                "twice" => {
                    let mut other = TcpStream::connect(("127.0.0.1", self.to)).await.ok()?;
                    other.write_all(&request).await.ok()?;
                    message(&mut other).await?;
                }
                _ => {}
            }
            server.write_all(&request).await.ok()?;
            let answer = message(&mut server).await?;
            if FAULTS[fault] == "after" {
                return None;
            }
            client.write_all(&answer).await.ok()?;
        }
    }
}

/// Reads a request or an answer with a length. Returns `None` at the end of the connection.
pub async fn message(source: &mut TcpStream) -> Option<Vec<u8>> {
    let mut text = Vec::new();
    loop {
        let head = text.windows(4).position(|end| end == b"\r\n\r\n").map(|at| at + 4);
        if let Some(head) = head {
            let names = String::from_utf8_lossy(&text[..head]).to_ascii_lowercase();
            let length = names.lines().find_map(|line| line.strip_prefix("content-length:")?.trim().parse().ok());
            if text.len() >= head + length.unwrap_or(0) {
                return Some(text);
            }
        }
        if source.read_buf(&mut text).await.ok()? == 0 {
            return None;
        }
    }
}
