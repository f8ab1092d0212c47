//! A closed loop of load: each connection sends its next request when the last is answered.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use bytes::Bytes;
use tokio::task::JoinSet;

use super::wire::{Connection, Protocol};

/// What is sent where.
#[derive(Clone, Debug)]
pub struct Load {
    pub address: String,
    pub protocol: Protocol,
    /// Sent in turn; each connection begins at another place.
    pub requests: Arc<[Bytes]>,
    pub connections: u16,
    /// How long a connection rests between an answer and its next request.
    pub pause: Duration,
}

/// What came of it.
#[derive(Clone, Debug, Default)]
pub struct Measured {
    pub took: Duration,
    /// How long each request took, in microseconds, shortest first.
    pub micros: Vec<u32>,
}

/// Load under way on a thread of its own.
pub struct Running {
    stop: Arc<AtomicBool>,
    thread: tokio::task::JoinHandle<anyhow::Result<Measured>>,
}

impl Load {
    /// Sends the first request and fails unless the answer holds this text: a server that refuses every increment
    /// would look fast.
    pub async fn check(&self, text: &str) -> anyhow::Result<()> {
        let first = self.requests.first().context("no requests")?;
        let mut connection = Connection::open(&self.address, self.protocol).await?;
        let answer = String::from_utf8_lossy(connection.exchange(first).await?).into_owned();
        ensure!(answer.contains(text), "the answer should hold {text}: {answer}");
        Ok(())
    }

    /// Loads for so long.
    pub async fn run_for(&self, duration: Duration) -> anyhow::Result<Measured> {
        let running = self.start();
        tokio::time::sleep(duration).await;
        running.stop().await
    }

    /// Sends every request once.
    pub async fn run_once(&self) -> anyhow::Result<()> {
        let lanes = usize::from(self.connections);
        let mut connections = JoinSet::new();
        for lane in 0..lanes {
            let load = self.clone();
            connections.spawn(async move {
                let mut connection = Connection::open(&load.address, load.protocol).await?;
                for request in load.requests.iter().skip(lane).step_by(lanes) {
                    connection.exchange(request).await?;
                }
                anyhow::Ok(())
            });
        }
        while let Some(done) = connections.join_next().await {
            done.context("a connection's task failed")??;
        }
        Ok(())
    }

    /// Starts to load. One thread drives all connections: it wakes nobody, and answers that arrive together are
    /// handled together.
    pub fn start(&self) -> Running {
        let stop = Arc::new(AtomicBool::new(false));
        let (load, flag) = (self.clone(), Arc::clone(&stop));
        let thread = tokio::task::spawn_blocking(move || {
            tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(load.run(flag))
        });
        Running { stop, thread }
    }

    async fn run(self, stop: Arc<AtomicBool>) -> anyhow::Result<Measured> {
        let begun = Instant::now();
        let mut connections = JoinSet::new();
        for lane in 0..usize::from(self.connections) {
            let (load, stop) = (self.clone(), Arc::clone(&stop));
            connections.spawn(async move { load.drive(lane, &stop).await });
        }
        let mut micros = Vec::new();
        while let Some(done) = connections.join_next().await {
            micros.extend(done.context("a connection's task failed")??);
        }
        let took = begun.elapsed();
        micros.sort_unstable();
        Ok(Measured { took, micros })
    }

    async fn drive(&self, lane: usize, stop: &AtomicBool) -> anyhow::Result<Vec<u32>> {
        let mut connection = Connection::open(&self.address, self.protocol).await?;
        let mut micros = Vec::new();
        let mut next = lane * self.requests.len() / usize::from(self.connections);
        while !stop.load(Ordering::Relaxed) {
            let sent = Instant::now();
            connection.exchange(&self.requests[next % self.requests.len()]).await?;
            micros.push(u32::try_from(sent.elapsed().as_micros()).unwrap_or(u32::MAX));
            next += 1;
            if !self.pause.is_zero() {
                tokio::time::sleep(self.pause).await;
            }
        }
        Ok(micros)
    }
}

impl Running {
    /// Lets every connection finish its request, and answers what was measured.
    pub async fn stop(self) -> anyhow::Result<Measured> {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.await.context("the load generator failed")?
    }
}

impl Measured {
    /// Adds what was measured at another time.
    pub fn extend(&mut self, other: Measured) {
        self.took += other.took;
        self.micros.extend(other.micros);
        self.micros.sort_unstable();
    }

    /// Requests a second.
    pub fn rate(&self) -> f64 {
        self.micros.len() as f64 / self.took.as_secs_f64().max(0.001)
    }

    /// The time within which this share of the requests was answered, in milliseconds; 1.0 is the slowest.
    pub fn millis_at(&self, share: f64) -> f64 {
        let Some(last) = self.micros.len().checked_sub(1) else { return 0.0 };
        f64::from(self.micros[(last as f64 * share).round() as usize]) / 1_000.0
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    use super::super::wire;
    use super::*;

    /// A server that answers every request for `/{number}` with the number, and notes it.
    async fn echo_numbers() -> (String, Arc<std::sync::Mutex<Vec<String>>>) {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let seen = Arc::new(std::sync::Mutex::new(Vec::new()));
        let noted = Arc::clone(&seen);
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                let noted = Arc::clone(&noted);
                tokio::spawn(async move {
                    let mut request = Vec::new();
                    while stream.read_buf(&mut request).await.is_ok_and(|read| read > 0) {
                        let text = String::from_utf8(std::mem::take(&mut request)).unwrap();
                        let number = text.split_whitespace().nth(1).unwrap()[1..].to_owned();
                        let head = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n", number.len());
                        noted.lock().unwrap().push(number.clone());
                        // In two parts, as a slow network would.
                        stream.write_all(head.as_bytes()).await.unwrap();
                        stream.write_all(number.as_bytes()).await.unwrap();
                    }
                });
            }
        });
        (address, seen)
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn every_request_is_sent_and_every_answer_read_to_its_end() {
        let (address, seen) = echo_numbers().await;
        let requests: Arc<[_]> = (0..100).map(|number| wire::get(&format!("/{number}"))).collect();
        let load = Load { address, protocol: Protocol::Http, requests, connections: 7, pause: Duration::ZERO };
        load.run_once().await.unwrap();
        let mut numbers: Vec<u32> = seen.lock().unwrap().drain(..).map(|number| number.parse().unwrap()).collect();
        numbers.sort_unstable();
        assert_eq!(numbers, (0..100).collect::<Vec<_>>());

        load.check("0").await.unwrap();
        assert!(load.check("7").await.is_err());
        seen.lock().unwrap().clear();
        let measured = load.run_for(Duration::from_millis(50)).await.unwrap();
        assert_eq!(measured.micros.len(), seen.lock().unwrap().len());
        assert!(measured.micros.len() >= 7 && measured.micros.is_sorted());
    }

    #[test]
    fn shares_of_the_measured() {
        let measured = Measured { took: Duration::from_secs(2), micros: (0..=100).map(|n| n * 1_000).collect() };
        assert_eq!((measured.millis_at(0.5), measured.millis_at(0.99), measured.millis_at(1.0)), (50.0, 99.0, 100.0));
        assert_eq!(measured.rate(), 50.5);
        assert_eq!(Measured::default().millis_at(0.5), 0.0);
        let mut both = Measured { took: Duration::from_secs(1), micros: vec![2, 9] };
        both.extend(Measured { took: Duration::from_secs(2), micros: vec![1, 5, 7] });
        assert_eq!((both.took, &both.micros[..]), (Duration::from_secs(3), &[1, 2, 5, 7, 9][..]));
    }
}
