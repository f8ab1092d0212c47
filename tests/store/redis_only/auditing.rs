//! Tests that the scripts of an audit are bounded by what they read, that the audit is correct while others write, and
//! that it reports missing data.

use std::sync::atomic::{AtomicBool, Ordering};

use rolltop::board::{Mark, Sketch};

use super::*;
use crate::given::With;

/// Returns a sketch with every register marked.
fn full(seed: u64) -> Sketch {
    let mut sketch = Sketch::default();
    for register in 0..2_048_u16 {
        let rank = 1 + (u64::from(register).wrapping_mul(seed * 2 + 7) >> 3) % 9;
        sketch.mark(Mark { register, rank: rank as u8 });
    }
    sketch
}

/// Gives subjects a full sketch in each of this many of the newest slots, and no standing.
async fn fill(server: &RedisServer, store: &RedisStore, board: &Arc<Board>, subjects: &[&str], slots: i64) -> i64 {
    let (name, generation) = (board.name(), board.generation());
    let head = store.status(&board.main()).await.unwrap().frame.window.head;
    let mut connection = redis::Client::open(server.url()).unwrap().get_connection().unwrap();
    let mut merged = Sketch::default();
    for back in 0..slots {
        let start = head.plus_millis(-60_000 * back).millis();
        let sketch = full(back as u64);
        merged.merge(&sketch);
        let mut pipeline = redis::pipe();
        pipeline.cmd("ZADD").arg(format!("rolltop:1:{{{name}}}:{generation}:i")).arg(start).arg(start).ignore();
        for subject in subjects {
            let key = format!("rolltop:1:{{{name}}}:{generation}:s:{start}");
            pipeline.cmd("HSET").arg(key).arg(subject).arg(sketch.as_bytes()).ignore();
        }
        pipeline.query::<()>(&mut connection).unwrap();
    }
    merged.estimate()
}

#[tokio::test]
async fn audit_scripts_read_at_most_400_sketches() {
    for engine in Engine::available() {
        let server = RedisServer::start(&engine);
        let store = simulated(&server).await;
        let board = define(&store, "about", "APPROX_COUNT_DISTINCT(1990m, e, s, c)", "1m").await;
        let estimate = fill(&server, &store, &board, &["big", "large"], 1_990).await;
        for (repair, found) in [(false, 2), (true, 2), (false, 0)] {
            let mut cursor = AuditCursor::default();
            let (mut differences, mut repaired) = (Vec::new(), 0);
            loop {
                reset(&server);
                let step = store.audit_step(&board.main(), cursor, repair).await.unwrap();
                let (scripts, read) = (calls_of(&server, "evalsha"), calls_of(&server, "hmget"));
                // Besides the cells, each script reads the meta hash once.
                assert!(read <= scripts * 401, "{read} cells by {scripts} scripts");
                differences.extend(step.differences);
                repaired += step.repaired;
                let Some(next) = step.next else { break };
                cursor = next;
            }
            let mut names: Vec<_> = differences.iter().map(|d| d.subject.as_str()).collect();
            names.sort_unstable();
            assert_eq!(names.len(), found, "{names:?}");
            assert_eq!(repaired, if repair { 2 } else { 0 });
            assert!(differences.iter().all(|d| d.slots == exact(estimate)), "{differences:?}");
        }
        assert_eq!(scores(&store, &board).await, [("large".to_owned(), estimate), ("big".to_owned(), estimate)]);
    }
}

#[tokio::test]
async fn audits_compare_many_subjects_and_slots_by_each_script() {
    for engine in Engine::available() {
        let server = RedisServer::start(&engine);
        let store = simulated(&server).await;
        let now = store.now().await.unwrap();
        for (nth, metric) in ["SUM(2000m, e, v, s)", "AVG(2000m, e, v, s)"].into_iter().enumerate() {
            let board = define(&store, &format!("wide{nth}"), metric, "1m").await;
            for who in 0..6 {
                let all =
                    (0..2_000).map(|back| item(&format!("s{who}"), back + 1).at_time(now.plus_millis(-60_000 * back)));
                let all = Batch { increments: all.collect(), return_scores: false };
                store.add(&board, all).await.unwrap();
            }
            // A subject with no total and no score.
            let generation = board.generation();
            let slot = now.plus_millis(-60_000 * 777).millis() / 60_000 * 60_000;
            let key = format!("rolltop:1:{{wide{nth}}}:{generation}:s:{slot}");
            behind::<()>(&server, &["HSET", &key, "ghost", if nth == 0 { "7" } else { "7,1" }]);
            let fresh = simulated(&server).await;
            reset(&server);
            let begun = std::time::Instant::now();
            let mut cursor = AuditCursor::default();
            let (mut checked, mut differences) = (0, Vec::new());
            loop {
                let step = fresh.audit_step(&board.main(), cursor, false).await.unwrap();
                checked += step.checked;
                differences.extend(step.differences);
                let Some(next) = step.next else { break };
                cursor = next;
            }
            println!("{metric}: {} scripts, {:?}", calls_of(&server, "evalsha"), begun.elapsed());
            assert_eq!((checked, differences.len()), (7, 1), "{differences:?}");
            assert_eq!(differences[0].subject.as_str(), "ghost");
            let scripts = calls_of(&server, "evalsha");
            assert!(scripts < 60, "{scripts} scripts for 14,001 cells");
        }
    }
}

/// Returns a number from the statistics of the server.
fn fact(server: &RedisServer, name: &str) -> u64 {
    let stats: String = behind(server, &["INFO", "stats"]);
    let line = stats.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':')?.trim_end().parse().ok());
    line.unwrap_or_else(|| panic!("no {name} in {stats}"))
}

/// Deletes the ranking and the totals.
fn lose_scores(server: &RedisServer, board: &Board) {
    let (name, generation) = (board.name(), board.generation());
    for key in ["r", "t"] {
        behind::<()>(server, &["DEL", &format!("rolltop:1:{{{name}}}:{generation}:{key}")]);
    }
}

/// The cost of an audit of a whole board.
#[derive(Debug)]
struct Took {
    checked: u64,
    differences: u64,
    repaired: u64,
    scripts: u64,
    /// The number of times that scripts looked for a cell of a single subject.
    looks: u64,
    /// The largest number of such look-ups of any step.
    most_looks: u64,
    /// The number of bytes that the server sent.
    bytes: u64,
}

async fn whole_audit(server: &RedisServer, store: &RedisStore, board: &Arc<Board>, repair: bool) -> Took {
    let mut cursor = AuditCursor::default();
    let mut took = Took { checked: 0, differences: 0, repaired: 0, scripts: 0, looks: 0, most_looks: 0, bytes: 0 };
    loop {
        reset(server);
        let step = store.audit_step(&board.main(), cursor, repair).await.unwrap();
        took.bytes += fact(server, "total_net_output_bytes");
        let looks = calls_of(server, "hexists");
        took.scripts += calls_of(server, "evalsha");
        took.looks += looks;
        took.most_looks = took.most_looks.max(looks);
        took.checked += step.checked;
        took.differences += step.differences.len() as u64;
        took.repaired += step.repaired;
        match step.next {
            Some(next) => cursor = next,
            None => return took,
        }
    }
}

#[tokio::test]
async fn audits_without_totals_and_ranking_read_each_cell_few_times() {
    const SUBJECTS: u64 = 50;
    const SLOTS: u64 = 60;
    for engine in Engine::available() {
        let server = RedisServer::start(&engine);
        let store = simulated(&server).await;
        let board = define(&store, "about", "APPROX_COUNT_DISTINCT(100m, e, s, c)", "1m").await;
        let names: Vec<String> = (0..SUBJECTS).map(|i| format!("s{i}")).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        // One subject only in the newest slot: it is looked for in all earlier slots, and found in none.
        fill(&server, &store, &board, &["new"], 1).await;
        let estimate = fill(&server, &store, &board, &names, SLOTS as i64).await;
        lose_scores(&server, &board);
        let all = SUBJECTS + 1;
        let cells = SUBJECTS * SLOTS;
        for (repair, found) in [(false, all), (true, all), (false, 0)] {
            let took = whole_audit(&server, &store, &board, repair).await;
            println!("{}: {took:?}", engine.name);
            assert_eq!((took.checked, took.differences), (all, found), "{took:?}");
            assert_eq!(took.repaired, if repair { found } else { 0 });
            assert!(took.bytes < (cells + all) * 2_048 * 3 / 2, "{cells} cells were read more than once: {took:?}");
            // Each cell is read for a total, and then looked for in the slot before it. `new` is looked for in all
            // slots.
            assert!(took.looks < 3 * cells, "{took:?}");
            assert!(took.most_looks <= 3_000 + 1_000, "{took:?}");
        }
        assert_eq!(
            scores(&store, &board).await.iter().filter(|(_, score)| *score == estimate).count() as u64,
            SUBJECTS
        );
    }
}

/// Tests subjects without a total and a score. Sums keep no totals, and amounts that add up to zero are in no ranking.
#[tokio::test]
async fn subjects_found_only_in_slots_are_compared_once() {
    const SUBJECTS: u64 = 600;
    for engine in Engine::available() {
        let server = RedisServer::start(&engine);
        let store = simulated(&server).await;
        let now = store.now().await.unwrap();
        for (name, metric) in
            [("sums", "SUM(40m, e, v, s)"), ("means", "AVG(40m, e, v, s)"), ("best", "MAX(40m, e, v, s)")]
        {
            let board = define(&store, name, metric, "1m").await;
            // Every second subject in each slot, every other one in its own slot.
            for back in 0..40 {
                let at = now.plus_millis(-60_000 * back);
                let is_there = |i: &i64| i % 2 == 0 || i % 40 == back;
                let all = (0..SUBJECTS as i64).filter(is_there).map(|i| item(&format!("s{i}"), i + 1).at_time(at));
                let all = Batch { increments: all.collect(), return_scores: false };
                store.add(&board, all).await.unwrap();
            }
            let lines = async || -> Vec<_> {
                let page = store.page(&board.main(), 0, 10_000).await.unwrap();
                page.items.iter().map(|line| (line.subject.clone(), line.score)).collect()
            };
            let before = lines().await;
            lose_scores(&server, &board);
            for (repair, found) in [(false, SUBJECTS), (true, SUBJECTS), (false, 0)] {
                let took = whole_audit(&server, &store, &board, repair).await;
                println!("{} {metric}: {took:?}", engine.name);
                assert_eq!((took.checked, took.differences), (SUBJECTS, found), "{metric} {took:?}");
                assert_eq!(took.repaired, if repair { found } else { 0 });
                assert!(took.most_looks <= 3_000 + 1_000, "{took:?}");
                assert!(took.scripts < 200, "{took:?}");
            }
            assert_eq!(lines().await, before);
        }
    }
}

/// Tests the repair of many subjects by one script, even while each write changes the version of the board.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_script_repairs_many_subjects() {
    for engine in Engine::available() {
        let server = RedisServer::start(&engine);
        let store = simulated(&server).await;
        let board = define(&store, "sums", "SUM(3m, e, v, s)", "1m").await;
        add(&store, &board, (0..3_000).map(|i| item(&format!("s{i}"), i + 1))).await;
        add(&store, &board, [item("busy", 1)]).await;
        let right = scores(&store, &board).await;
        for is_busy in [false, true] {
            lose_scores(&server, &board);
            let stop = Arc::new(AtomicBool::new(!is_busy));
            let writer = {
                let (store, board, stop) = (store.clone(), board.clone(), stop.clone());
                tokio::spawn(async move {
                    let mut written = 0;
                    while !stop.load(Ordering::SeqCst) {
                        add(&store, &board, [item("busy", 1)]).await;
                        written += 1;
                    }
                    written
                })
            };
            reset(&server);
            let mut cursor = AuditCursor::default();
            let mut repaired = 0;
            loop {
                let step = store.audit_step(&board.main(), cursor, true).await.unwrap();
                repaired += step.repaired;
                let Some(next) = step.next else { break };
                cursor = next;
            }
            // The number of writes by the scripts of an audit, at most 500 subjects each. `busy` is written one subject
            // at a time.
            let written = calls_of(&server, "zadd");
            stop.store(true, Ordering::SeqCst);
            let busy = writer.await.unwrap();
            println!("{}: {repaired} set right, {written} writes of scores beside {busy}", engine.name);
            assert!(repaired >= 3_000, "{repaired}");
            assert!(is_busy || written <= 20, "{written} writes of scores");
            audit(&store, &board, true).await;
            assert_eq!(audit(&store, &board, false).await.1, []);
            let scores = scores(&store, &board).await;
            let of_others =
                |all: &[(String, i64)]| all.iter().filter(|(name, _)| name != "busy").cloned().collect::<Vec<_>>();
            assert_eq!(of_others(&scores), of_others(&right));
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn audits_are_exact_under_concurrent_writes() {
    for engine in Engine::available() {
        let server = RedisServer::start(&engine);
        let store = simulated(&server).await;
        let board = define(&store, "about", "APPROX_COUNT_DISTINCT(900m, e, s, c)", "1m").await;
        let sums = define(&store, "sums", "SUM(30m, e, v, s)", "1m").await;
        let estimate = fill(&server, &store, &board, &["big"], 900).await;
        add(&store, &sums, (0..50).map(|i| item(&format!("s{i}"), i + 1))).await;
        let ranking = format!("rolltop:1:{{sums}}:{}:r", sums.generation());
        behind::<()>(&server, &["ZADD", &ranking, "9999", "s7", "1.5", "ghost"]);
        let stop = Arc::new(AtomicBool::new(false));
        let writer = {
            let (store, board, sums, stop) = (store.clone(), board.clone(), sums.clone(), stop.clone());
            tokio::spawn(async move {
                let mut round = 0;
                while !stop.load(Ordering::SeqCst) {
                    round += 1;
                    add(&store, &board, [crate::given::seen("other", &format!("v{round}"))]).await;
                    add(&store, &sums, (0..50).filter(|i| *i != 7).map(|i| item(&format!("s{i}"), 1))).await;
                }
                round
            })
        };
        for _ in 0..5 {
            let (_, differences, _) = audit(&store, &board, false).await;
            assert_eq!(differences, [("big".to_owned(), 0, estimate)]);
        }
        let repaired = async || {
            let mut cursor = AuditCursor::default();
            let (mut found, mut repaired) = (Vec::new(), 0);
            loop {
                let step = store.audit_step(&sums.main(), cursor, true).await.unwrap();
                found.extend(step.differences.iter().map(|d| d.subject.to_string()));
                repaired += step.repaired;
                let Some(next) = step.next else { break };
                cursor = next;
            }
            found.sort_unstable();
            (found, repaired)
        };
        assert_eq!(repaired().await, (vec!["ghost".to_owned(), "s7".to_owned()], 2));
        assert_eq!(repaired().await, (vec![], 0));
        stop.store(true, Ordering::SeqCst);
        let rounds = writer.await.unwrap();
        assert_eq!(audit(&store, &board, true).await.2, 1);
        assert_eq!(audit(&store, &board, false).await.1, []);
        let all = scores(&store, &sums).await;
        assert!(all.iter().all(|(name, score)| {
            let start: i64 = name[1..].parse::<i64>().unwrap() + 1;
            *score == if name == "s7" { start } else { start + rounds }
        }));
    }
}

#[tokio::test]
async fn a_missing_slot_is_reported_until_a_repair_removes_it() {
    for engine in Engine::available() {
        let server = RedisServer::start(&engine);
        let store = simulated(&server).await;
        let board = hourly(&store, "hot").await;
        add(&store, &board, [item("a", 3), item("b", 4)]).await;
        store.set_clock(t(START).plus_millis(3_600_000)).await.unwrap();
        add(&store, &board, [item("a", 5)]).await;
        let slots = keys(&server, "*:s:*");
        behind::<()>(&server, &["DEL", &slots[0]]);
        for (repair, wanted) in [(false, (1, 2)), (true, (1, 2)), (false, (0, 0))] {
            let mut cursor = AuditCursor::default();
            let mut found = (0, 0);
            loop {
                let step = store.audit_step(&board.main(), cursor, repair).await.unwrap();
                found = (found.0 + step.missing_slots, found.1 + step.differences.len());
                let Some(next) = step.next else { break };
                cursor = next;
            }
            assert_eq!(found, wanted, "repair {repair}");
        }
        assert_eq!(scores(&store, &board).await, [("a".to_owned(), 5)]);
    }
}
