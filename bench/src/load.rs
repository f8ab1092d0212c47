//! Load: requests over many connections, in a closed loop or at a fixed rate.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use bytes::Bytes;
use futures_util::future::try_join_all;
use parking_lot::Mutex;
use tokio::task::JoinSet;

use super::arrivals::{Arrivals, Schedule};
use super::latencies::Latencies;
use super::wire::{Connection, Protocol, Refused};

const FAILED: &str = "the load generator failed";

/// A load: the requests, their destination and their rate.
#[derive(Clone, Debug)]
pub struct Load {
    pub address: String,
    pub protocol: Protocol,
    /// The requests, sent in turn.
    pub requests: Arc<[Bytes]>,
    pub connections: u16,
    pub pace: Pace,
    pub refusals: Refusals,
}

/// The treatment of responses that are not a success.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusals {
    /// Ends the load. A refused request takes less work, so rates that include refusals would be meaningless.
    Fail,
    /// Counts the request separately. The first one is printed to standard error.
    Count,
}

/// The time at which a connection sends its next request.
#[derive(Clone, Copy, Debug)]
pub enum Pace {
    /// A pause after its last response: a closed loop.
    Closed { pause: Duration },
    /// As soon as a request is due and no other connection has taken it: an open loop.
    Open(Schedule),
}

impl Pace {
    /// A closed loop without pauses.
    pub const SATURATING: Pace = Pace::Closed { pause: Duration::ZERO };
}

/// The result of a load.
#[derive(Clone, Debug, Default)]
pub struct Measured {
    pub took: Duration,
    /// The time that each request took: in a closed loop since it was sent, in an open loop since it was due.
    pub latencies: Latencies,
    /// The number of refused requests. They are not included in the latencies.
    pub refused: u64,
    /// The delay with which the generator itself released each request of an open loop. It is included in the
    /// latencies.
    pub lateness: Latencies,
}

/// A load in progress on its own thread. It stops when this is dropped.
pub struct Running {
    stop: Arc<AtomicBool>,
    thread: tokio::task::JoinHandle<anyhow::Result<Measured>>,
}

impl Load {
    /// Sends the first request and returns an error unless the response contains this text. A server that refuses every
    /// increment would look fast.
    pub async fn check(&self, text: &str) -> anyhow::Result<()> {
        let first = self.requests.first().context("no requests")?;
        let mut connection = Connection::open(&self.address, self.protocol).await?;
        let answer = String::from_utf8_lossy(connection.exchange(first).await?).into_owned();
        ensure!(answer.contains(text), "the answer should hold {text}: {answer}");
        Ok(())
    }

    /// Runs the load for this time, or until a request fails.
    pub async fn run_for(&self, duration: Duration) -> anyhow::Result<Measured> {
        let mut running = self.start();
        match tokio::time::timeout(duration, &mut running.thread).await {
            Ok(ended) => ended.context(FAILED)?,
            Err(_) => running.stop().await,
        }
    }

    /// Sends every request once, each as soon as the previous response on its connection has arrived.
    pub async fn run_once(&self) -> anyhow::Result<Measured> {
        let begun = Instant::now();
        let measured = Arc::new(Mutex::new(Measured::default()));
        let mut lanes = JoinSet::new();
        for (number, mut lane) in self.lanes(&measured).await?.into_iter().enumerate() {
            lanes.spawn(async move {
                for request in (number..lane.load.requests.len()).step_by(lane.load.connections.into()) {
                    lane.send(request, Instant::now()).await?;
                }
                Ok(())
            });
        }
        all_of(lanes).await?;
        Ok(Measured { took: begun.elapsed(), ..std::mem::take(&mut *measured.lock()) })
    }

    /// Starts the load. One thread drives all connections, so no thread has to be woken, and responses that arrive
    /// together are handled together.
    pub fn start(&self) -> Running {
        let stop = Arc::new(AtomicBool::new(false));
        let (load, flag) = (self.clone(), Arc::clone(&stop));
        let thread = tokio::task::spawn_blocking(move || {
            tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(load.run(flag))
        });
        Running { stop, thread }
    }

    async fn run(self, stop: Arc<AtomicBool>) -> anyhow::Result<Measured> {
        let measured = Arc::new(Mutex::new(Measured::default()));
        let lanes = self.lanes(&measured).await?;
        let begun = Instant::now();
        let lateness = match self.pace {
            Pace::Closed { pause } => closed_loop(lanes, pause, stop).await.map(|()| Latencies::default()),
            Pace::Open(schedule) => open_loop(lanes, schedule, stop).await,
        }?;
        Ok(Measured { took: begun.elapsed(), lateness, ..std::mem::take(&mut *measured.lock()) })
    }

    /// Opens every connection, before the measured time begins.
    async fn lanes(&self, measured: &Arc<Mutex<Measured>>) -> anyhow::Result<Vec<Lane>> {
        let open = || async {
            let connection = Connection::open(&self.address, self.protocol).await?;
            anyhow::Ok(Lane { load: self.clone(), connection, measured: Arc::clone(measured) })
        };
        try_join_all((0..self.connections).map(|_| open())).await
    }
}

/// One connection, and the place for its results.
struct Lane {
    load: Load,
    connection: Connection,
    /// The results, shared by all lanes so that only one histogram is in the processor's cache. The lock is always
    /// free, because the lanes run on one thread or send rarely.
    measured: Arc<Mutex<Measured>>,
}

impl Lane {
    /// Sends the request with this number and records the time between `since` and its response.
    async fn send(&mut self, number: usize, since: Instant) -> anyhow::Result<()> {
        let request = &self.load.requests[number % self.load.requests.len()];
        let answered = self.connection.exchange(request).await.map(drop);
        let took = since.elapsed();
        let mut measured = self.measured.lock();
        match answered {
            Ok(()) => measured.latencies.record(took),
            Err(error) if self.load.refusals == Refusals::Count && error.is::<Refused>() => {
                if measured.refused == 0 {
                    eprintln!("a request was refused: {error}");
                }
                measured.refused += 1;
            }
            Err(error) => return Err(error),
        }
        Ok(())
    }
}

/// Runs a closed loop: each connection sends its next request after its last response.
async fn closed_loop(lanes: Vec<Lane>, pause: Duration, stop: Arc<AtomicBool>) -> anyhow::Result<()> {
    let mut running = JoinSet::new();
    let all = lanes.len();
    for (number, mut lane) in lanes.into_iter().enumerate() {
        let stop = Arc::clone(&stop);
        running.spawn(async move {
            // Each connection begins at a different request.
            let mut next = number * lane.load.requests.len() / all;
            while !stop.load(Ordering::Relaxed) {
                lane.send(next, Instant::now()).await?;
                next += 1;
                if !pause.is_zero() {
                    tokio::time::sleep(pause).await;
                }
            }
            Ok(())
        });
    }
    all_of(running).await
}

/// Runs an open loop: any free connection sends the next request that is due. Returns the delays with which requests
/// were released.
async fn open_loop(lanes: Vec<Lane>, schedule: Schedule, stop: Arc<AtomicBool>) -> anyhow::Result<Latencies> {
    let arrivals = Arc::new(Arrivals::begin(schedule));
    let releasing = {
        let (arrivals, stop, takers) = (Arc::clone(&arrivals), Arc::clone(&stop), lanes.len());
        tokio::task::spawn_blocking(move || arrivals.release(&stop, takers))
    };
    let mut running = JoinSet::new();
    for mut lane in lanes {
        let arrivals = Arc::clone(&arrivals);
        running.spawn(async move {
            while let Some((number, due)) = arrivals.take().await {
                lane.send(usize::try_from(number)?, due).await?;
            }
            Ok(())
        });
    }
    let answered = all_of(running).await;
    // The lanes end early only after a failure. Then no connection is left that could send requests.
    stop.store(true, Ordering::Relaxed);
    let lateness = releasing.await.context("the thread that releases requests failed")?;
    answered.map(|()| lateness)
}

/// Waits for all lanes, or for the first failure, which ends the others.
async fn all_of(mut lanes: JoinSet<anyhow::Result<()>>) -> anyhow::Result<()> {
    while let Some(done) = lanes.join_next().await {
        done.context("a connection's task failed")??;
    }
    Ok(())
}

impl Running {
    /// Lets every connection finish its request and every due request be sent, and returns the result.
    pub async fn stop(mut self) -> anyhow::Result<Measured> {
        self.stop.store(true, Ordering::Relaxed);
        (&mut self.thread).await.context(FAILED)?
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
    }
}

impl Measured {
    /// Adds the results of another time.
    pub fn extend(&mut self, other: &Measured) {
        self.took += other.took;
        self.latencies.add(&other.latencies);
        self.lateness.add(&other.lateness);
        self.refused += other.refused;
    }

    /// Returns the number of requests answered a second.
    pub fn rate(&self) -> f64 {
        self.latencies.count() as f64 / self.took.as_secs_f64().max(0.001)
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    use super::super::wire;
    use super::*;

    /// Starts a server that responds to every request for `/{number}` with the number, and records it.
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
                        // The response is sent in two parts, as on a slow network.
                        stream.write_all(head.as_bytes()).await.unwrap();
                        stream.write_all(number.as_bytes()).await.unwrap();
                    }
                });
            }
        });
        (address, seen)
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn all_requests_are_sent_and_all_responses_read() {
        let (address, seen) = echo_numbers().await;
        let requests: Arc<[_]> = (0..100).map(|number| wire::get(&format!("/{number}"))).collect();
        let load = Load {
            address,
            protocol: Protocol::Http,
            requests,
            connections: 7,
            pace: Pace::SATURATING,
            refusals: Refusals::Fail,
        };
        load.run_once().await.unwrap();
        let mut numbers: Vec<u32> = seen.lock().unwrap().drain(..).map(|number| number.parse().unwrap()).collect();
        numbers.sort_unstable();
        assert_eq!(numbers, (0..100).collect::<Vec<_>>());

        load.check("0").await.unwrap();
        assert!(load.check("7").await.is_err());
        seen.lock().unwrap().clear();
        let measured = load.run_for(Duration::from_millis(50)).await.unwrap();
        assert_eq!(measured.latencies.count(), seen.lock().unwrap().len() as u64);
        assert!(measured.latencies.count() >= 7);
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn an_open_loop_sends_all_due_requests_in_order() {
        let (address, seen) = echo_numbers().await;
        let requests: Arc<[_]> = (0..10).map(|number| wire::get(&format!("/{number}"))).collect();
        let pace = Pace::Open(Schedule::new(1_000.try_into().unwrap()));
        let load = Load { address, protocol: Protocol::Http, requests, connections: 1, pace, refusals: Refusals::Fail };
        let measured = load.run_for(Duration::from_millis(50)).await.unwrap();
        let numbers = seen.lock().unwrap().clone();
        assert!(numbers.len() >= 25 && numbers.iter().enumerate().all(|(at, number)| *number == (at % 10).to_string()));
        let all = numbers.len() as u64;
        assert_eq!((measured.latencies.count(), measured.lateness.count()), (all, all));
    }

    /// Shows what a closed loop does not measure: a server that pauses for 300 ms delays all requests due in that time.
    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn an_open_loop_counts_the_wait_for_a_connection() {
        const STALL: Duration = Duration::from_millis(300);
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        tokio::spawn(async move {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut request = [0; 1_024];
            let mut stall = STALL;
            while stream.read(&mut request).await.is_ok_and(|read| read > 0) {
                tokio::time::sleep(std::mem::take(&mut stall)).await;
                stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n").await.unwrap();
            }
        });
        let pace = Pace::Open(Schedule::new(100.try_into().unwrap()));
        let requests = Arc::from([wire::get("/")]);
        let load = Load { address, protocol: Protocol::Http, requests, connections: 1, pace, refusals: Refusals::Fail };
        let measured = load.run_for(2 * STALL).await.unwrap();
        let slow = measured.latencies.slower_than(STALL / 3);
        assert!(slow >= 15, "about 20 requests were due in the first two thirds of the stall, {slow} waited long");
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn refusals_are_counted_separately_or_end_the_load() {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                tokio::spawn(async move {
                    let mut request = [0; 1_024];
                    while stream.read(&mut request).await.is_ok_and(|read| read > 0) {
                        let status = if request.starts_with(b"GET /full") { "503 Full" } else { "200 OK" };
                        let answer = format!("HTTP/1.1 {status}\r\ncontent-length: 0\r\n\r\n");
                        stream.write_all(answer.as_bytes()).await.unwrap();
                    }
                });
            }
        });
        let requests = Arc::from(["/", "/full", "/"].map(wire::get));
        let (protocol, pace, refusals) = (Protocol::Http, Pace::SATURATING, Refusals::Count);
        let load = Load { address, protocol, requests, connections: 2, pace, refusals };
        let measured = load.run_once().await.unwrap();
        assert_eq!((measured.latencies.count(), measured.refused), (2, 1));
        assert!(Load { refusals: Refusals::Fail, ..load }.run_once().await.is_err());
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn a_failure_ends_an_open_loop() {
        let (address, _) = echo_numbers().await;
        let pace = Pace::Open(Schedule::new(100.try_into().unwrap()));
        let requests = Arc::from([wire::get("/")]);
        let load = Load {
            address,
            protocol: Protocol::Redis { lines: 1 },
            requests,
            connections: 2,
            pace,
            refusals: Refusals::Fail,
        };
        // The response of an HTTP server contains a minus sign, which is an error in a Redis reply. The test does not
        // wait for the hour.
        assert!(load.run_for(Duration::from_secs(3_600)).await.is_err());
    }

    #[test]
    fn measurements_of_several_turns_are_summed() {
        let of = |seconds, requests: u64| {
            let mut measured = Measured { took: Duration::from_secs(seconds), ..Measured::default() };
            (0..requests).for_each(|_| measured.latencies.record(Duration::from_millis(1)));
            measured
        };
        let mut both = of(2, 101);
        assert_eq!(both.rate(), 50.5);
        both.extend(&of(1, 49));
        assert_eq!((both.took, both.latencies.count(), both.rate()), (Duration::from_secs(3), 150, 50.0));
    }
}
