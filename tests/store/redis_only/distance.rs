//! Tests of a server that is far away: steps of retiring are as large as on a near server, and several are in progress
//! at once.

use std::sync::Mutex;
use std::time::{Duration, Instant};

use rolltop::access::Caller;
use rolltop::service::Service;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;

use super::*;

/// A connection to the server that delays everything in each direction. Records when scripts were called.
struct Way {
    port: u16,
    calls: Arc<Mutex<Vec<Instant>>>,
}

impl Way {
    async fn to(server: u16, long: Duration) -> Way {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let way = Way { port: listener.local_addr().unwrap().port(), calls: Arc::default() };
        let calls = way.calls.clone();
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let server = TcpStream::connect(("127.0.0.1", server)).await.unwrap();
                server.set_nodelay(true).unwrap();
                client.set_nodelay(true).unwrap();
                let ((from_client, to_client), (from_server, to_server)) = (client.into_split(), server.into_split());
                tokio::spawn(carry(from_client, to_server, long, Some(calls.clone())));
                tokio::spawn(carry(from_server, to_client, long, None));
            }
        });
        way
    }

    /// Returns the largest number of scripts called within one round trip: all of them were in progress at once.
    fn most_under_way(&self, round_trip: Duration) -> usize {
        let calls = self.calls.lock().unwrap();
        let within = |from: &Instant| calls.iter().filter(|at| **at >= *from && **at < *from + round_trip).count();
        calls.iter().map(within).max().unwrap_or(0)
    }
}

async fn carry(
    mut from: OwnedReadHalf,
    mut to: OwnedWriteHalf,
    long: Duration,
    calls: Option<Arc<Mutex<Vec<Instant>>>>,
) {
    let (sender, mut receiver) = mpsc::unbounded_channel::<(Instant, Vec<u8>)>();
    tokio::spawn(async move {
        while let Some((at, bytes)) = receiver.recv().await {
            tokio::time::sleep_until((at + long).into()).await;
            if to.write_all(&bytes).await.is_err() {
                return;
            }
        }
    });
    let mut bytes = vec![0; 65_536];
    while let Ok(size @ 1..) = from.read(&mut bytes).await {
        let now = Instant::now();
        if let Some(calls) = &calls {
            let called = bytes[..size].windows(7).filter(|part| part == b"EVALSHA").count();
            calls.lock().unwrap().extend(std::iter::repeat_n(now, called));
        }
        if sender.send((now, bytes[..size].to_vec())).is_err() {
            return;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn network_latency_does_not_shrink_retire_steps() {
    const SUBJECTS: i64 = 40_000;
    for engine in Engine::available() {
        let server = RedisServer::start(&engine);
        let store = simulated(&server).await;
        let board = define(&store, "big", "COUNT(2h, hit, page)", "1h").await;
        for _ in 0..2 {
            for chunk in 0..SUBJECTS / 4_000 {
                let all = (0..4_000).map(|i| item(&format!("page-{}", chunk * 4_000 + i), 1));
                store.add(&board, Batch { increments: all.collect(), return_scores: false }).await.unwrap();
            }
            let now = store.now().await.unwrap();
            store.set_clock(now.plus_millis(3_600_000)).await.unwrap();
        }
        let long = Duration::from_millis(10);
        let way = Way::to(server.port, long).await;
        let url = format!("redis://127.0.0.1:{}", way.port);
        let far = RedisStore::connect(options(url, ClockMode::Simulated(t(START)))).await.unwrap();
        let service = Service::new(far);
        let board = service.board(&Caller::trusted(), board.name()).await.unwrap();
        way.calls.lock().unwrap().clear();
        let report = service.rollover(&board).await.unwrap().answer;
        assert_eq!((report.slots_retired, report.subjects_touched), (1, SUBJECTS as u64));
        let calls = way.calls.lock().unwrap().len() as u64;
        let most = way.most_under_way(2 * long);
        println!("{}: {calls} calls, {most} at once, {:?}", engine.name, report.took);
        // If the network time were counted as work, a step would be 32 subjects, and 1,250 steps would follow one
        // another. On a busy machine a script is interrupted, so that steps are smaller than on an idle one.
        assert!(calls < 1_000, "{calls} calls for {SUBJECTS} subjects");
        assert!(most >= 2, "{most} scripts were under way at once");
        assert_eq!(audit(&store, &board, false).await.1, []);
    }
}
