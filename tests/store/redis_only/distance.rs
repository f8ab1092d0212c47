//! Tests of a server that is far away: steps of retiring are as large as on a near server, and several are in progress
//! at once.

use std::sync::Mutex;
use std::time::{Duration, Instant};

use rolltop::access::Caller;
use rolltop::board::Aggregate;
use rolltop::service::Service;
use rolltop::store::{Content, ContentsCursor};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;

use super::*;
use crate::given::With;

/// A connection to the server that delays everything in each direction. Records when scripts were called, and when the
/// connection was tested.
struct Way {
    port: u16,
    calls: Arc<Mutex<Vec<Instant>>>,
    tests: Arc<Mutex<Vec<Instant>>>,
}

impl Way {
    async fn to(server: u16, long: Duration) -> Way {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let way = Way { port: listener.local_addr().unwrap().port(), calls: Arc::default(), tests: Arc::default() };
        let (calls, tests) = (way.calls.clone(), way.tests.clone());
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let server = TcpStream::connect(("127.0.0.1", server)).await.unwrap();
                server.set_nodelay(true).unwrap();
                client.set_nodelay(true).unwrap();
                let ((from_client, to_client), (from_server, to_server)) = (client.into_split(), server.into_split());
                let seen = vec![("EVALSHA", calls.clone()), ("PING", tests.clone())];
                tokio::spawn(carry(from_client, to_server, long, seen));
                tokio::spawn(carry(from_server, to_client, long, Vec::new()));
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
    seen: Vec<(&'static str, Arc<Mutex<Vec<Instant>>>)>,
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
        for (word, times) in &seen {
            let found = bytes[..size].windows(word.len()).filter(|part| *part == word.as_bytes()).count();
            times.lock().unwrap().extend(std::iter::repeat_n(now, found));
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

#[tokio::test(flavor = "multi_thread")]
async fn writes_that_follow_each_other_over_a_long_way_are_not_each_preceded_by_a_test() {
    let Some(engine) = Engine::available().into_iter().next() else { return };
    let server = RedisServer::start(&engine);
    let near = simulated(&server).await;
    let board = define(&near, "far", "COUNT(2h, hit, page)", "1h").await;
    // Longer than a connection has to be unused to be tested.
    let way = Way::to(server.port, Duration::from_millis(40)).await;
    let url = format!("redis://127.0.0.1:{}", way.port);
    let far = RedisStore::connect(options(url, ClockMode::Simulated(t(START)))).await.unwrap();
    let board = far.board(board.name()).await.unwrap().unwrap();
    way.tests.lock().unwrap().clear();
    for i in 0..10 {
        far.add(&board, Batch { increments: vec![item(&format!("page-{i}"), 1)], return_scores: false }).await.unwrap();
    }
    let tests = way.tests.lock().unwrap().len();
    assert!(tests <= 5, "{tests} tests of connections for 10 writes");
}

/// Returns what a walk over all contents returns, sorted, and the number of its steps. `between` is called after each.
async fn walked(
    store: &RedisStore,
    board: &Arc<Board>,
    between: impl AsyncFn(usize),
) -> (Vec<(String, Timestamp, i64)>, usize) {
    let (mut all, mut cursor, mut steps) = (Vec::new(), Some(ContentsCursor::default()), 0);
    while let Some(at) = cursor {
        let step = store.contents_step(&board.main(), at).await.unwrap();
        for (subject, content) in step.contents {
            let Content::Cell { slot, aggregate: Aggregate::Sum(amount) } = content else { panic!("{content:?}") };
            all.push((subject.as_str().to_owned(), slot, amount.0));
        }
        cursor = step.next;
        steps += 1;
        between(steps).await;
    }
    all.sort();
    (all, steps)
}

/// Several stretches of slots are read at the same time, and each cell once.
#[tokio::test(flavor = "multi_thread")]
async fn walks_and_audits_of_a_distant_server_are_those_of_a_near_one_in_fewer_steps() {
    const SUBJECTS: i64 = 600;
    const SLOTS: i64 = 40;
    for engine in Engine::available() {
        let server = RedisServer::start(&engine);
        let near = simulated(&server).await;
        let board = define(&near, "wide", "SUM(60h, sale, amount, seller)", "1h").await;
        let now = near.now().await.unwrap();
        let back = |slots: i64| now.plus_millis(-3_600_000 * slots);
        for slot in 0..SLOTS {
            let all = (0..SUBJECTS).map(|who| item(&format!("s{who}"), 1 + who + slot).at_time(back(slot)));
            near.add(&board, Batch { increments: all.collect(), return_scores: false }).await.unwrap();
        }
        // Subjects without a score, one of them in several slots, and a score that is wrong.
        let (name, generation) = (board.name(), board.generation());
        for (slot, ghost) in [(3, "ghost"), (17, "ghost"), (38, "ghost"), (21, "spook")] {
            let key = format!("rolltop:1:{{{name}}}:{generation}:s:{}", back(slot).millis() / 3_600_000 * 3_600_000);
            behind::<()>(&server, &["HSET", &key, ghost, "7"]);
        }
        behind::<()>(&server, &["ZINCRBY", &format!("rolltop:1:{{{name}}}:{generation}:r"), "5", "s9"]);
        let way = Way::to(server.port, Duration::from_millis(10)).await;
        let url = format!("redis://127.0.0.1:{}", way.port);
        let far = async || RedisStore::connect(options(url.clone(), ClockMode::Simulated(t(START)))).await.unwrap();
        let nothing = async |_| {};

        let (contents, steps_near) = walked(&near, &board, nothing).await;
        assert_eq!(contents.len() as i64, SUBJECTS * SLOTS + 4);
        let (contents_far, steps_far) = walked(&*far().await, &board, nothing).await;
        assert!(contents == contents_far, "{} and {} cells", contents.len(), contents_far.len());
        assert!(2 * steps_far < steps_near, "{steps_far} steps, and {steps_near} on a near server");
        assert!(way.most_under_way(Duration::from_millis(20)) >= 4);

        let found = audit(&near, &board, false).await;
        assert_eq!((found.0, found.1.len()), (SUBJECTS as u64 + 2, 3), "{:?}", found.1);
        let sorted = |mut differences: Vec<(String, i64, i64)>| {
            differences.sort();
            differences
        };
        let (checked, differences, _) = audit(&*far().await, &board, false).await;
        assert_eq!((checked, sorted(differences)), (found.0, sorted(found.1)));

        // A slot of which the walk does not know comes into being within a stretch that it has not come to.
        let between = async |step| {
            if step == 1 {
                let late = [item("late", 1).at_time(back(55)), item("late", 2).at_time(back(45))];
                near.add(&board, batch(late)).await.unwrap();
            }
        };
        let (mut during, _) = walked(&*far().await, &board, between).await;
        during.retain(|(subject, ..)| subject != "late");
        assert!(contents == during, "{} and {} cells", contents.len(), during.len());

        let repaired = audit(&*far().await, &board, true).await;
        assert_eq!(repaired.2, 3);
        assert_eq!(audit(&near, &board, false).await.1, []);
    }
}
