//! Comparison of the estimated memory of subjects with what a server takes.

use rolltop::board::{Counted, Kind, Mode, RankingKey};
use rolltop::store::BytesPerSubject;

use super::*;

const HOUR: i64 = 3_600_000;
const SUBJECTS: u64 = 3_000;
/// The largest deviation of an estimate, as a share of the memory taken.
const TOLERANCE: f64 = 0.25;

fn used(server: &RedisServer) -> f64 {
    let info: String = behind(server, &["INFO", "memory"]);
    let line = info.lines().find_map(|line| line.strip_prefix("used_memory:")).expect("used_memory");
    line.trim().parse().expect("a number")
}

/// Adds one increment for each subject, with a value of its own for each slot and `turn`.
async fn fill(store: &RedisStore, board: &Arc<Board>, subjects: u64, turn: u64) {
    let hour = store.now().await.unwrap().millis() / HOUR;
    let amount = Change::Amount(Amount(1));
    let item = |nth: u64| {
        let mixed = nth.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let change = match board.edition().takes(&amount) {
            true => Change::Amount(Amount(((mixed >> 20).wrapping_mul(hour as u64) % 99_999) as i64 + 1)),
            false => Change::Seen(Counted::parse(&format!("{:04}{turn:08}", hour % 10_000)).unwrap()),
        };
        let item = item(&format!("{:012x}", mixed & 0xffff_ffff_ffff), 1);
        let key = board.has_keys().then(|| RankingKey::parse(&format!("{:012}", nth / 10)).unwrap());
        Increment { change, subject: item.subject.in_ranking(key.as_ref()), ..item }
    };
    let increments = (0..subjects).map(item).collect();
    store.add(board, Batch { increments, return_scores: false }).await.unwrap();
}

fn compare(what: &str, estimate: u64, taken: f64) {
    println!("{what}: {estimate} estimated, {taken:.0} taken");
    let deviation = (estimate as f64 - taken) / taken;
    assert!(deviation.abs() <= TOLERANCE, "{what}: {estimate} bytes estimated, {taken:.0} taken");
}

async fn define_as(store: &RedisStore, definition: &Definition) -> (Arc<Board>, BytesPerSubject) {
    let Defined::Created(board) =
        store.define(new_board(&BoardName::parse("hot-posts").unwrap(), definition)).await.unwrap()
    else {
        panic!("the board exists");
    };
    let estimate = store.bytes_per_subject(&board.main());
    (board, estimate)
}

/// Only Redis, whose structures the estimates are computed from.
fn redis() -> Option<Engine> {
    Engine::available().into_iter().find(|engine| engine.name == "redis")
}

#[tokio::test]
async fn estimates_are_close_to_the_memory_that_a_server_takes() {
    let Some(engine) = redis() else { return };
    let server = RedisServer::start(&engine);
    for metric in [
        "COUNT(8h, e, s)",
        "COUNT(8h, e, s BY k)",
        "MAX(8h, e, v, s BY k)",
        "AVG(8h, e, v, s)",
        "MAX(8h, e, v, s)",
        "COUNT_DISTINCT(8h, e, s, v)",
        "APPROX_COUNT_DISTINCT(8h, e, s, v)",
    ] {
        for ranked in [true, false] {
            if !ranked && metric.contains("BY") {
                continue;
            }
            let definition = Definition { ranked, ..Definition::new(metric.parse().unwrap(), "1h".parse().unwrap()) };
            behind::<()>(&server, &["FLUSHALL"]);
            let store = simulated(&server).await;
            let (board, estimate) = define_as(&store, &definition).await;
            // Loads the scripts.
            fill(&store, &board, 1, 0).await;
            let before = used(&server);
            for slot in 1..=board.edition().main().kept() {
                fill(&store, &board, SUBJECTS, 0).await;
                if slot == 1 || slot == board.edition().main().kept() {
                    let what = format!("{metric}, ranked {ranked}, {slot} slots");
                    let estimate = if slot == 1 { estimate.one_slot } else { estimate.all_slots };
                    compare(&what, estimate, (used(&server) - before) / SUBJECTS as f64);
                }
                if slot < board.edition().main().kept() {
                    store.set_clock(store.now().await.unwrap().plus_millis(HOUR)).await.unwrap();
                }
            }
        }
    }
}

#[tokio::test]
async fn estimates_of_many_values_and_of_counters_are_close() {
    let Some(engine) = redis() else { return };
    let hours = |metric: &str| Definition::new(metric.parse().unwrap(), "1h".parse().unwrap());
    let values = 400;
    let distinct = Definition { max_values: Some(values as u32), ..hours("COUNT_DISTINCT(1h, e, s, v)") };
    let counter = Definition { ranked: false, mode: Mode::FromFirst, ..hours("COUNT(1h, e, s)") };
    let capped = Definition {
        cap: serde_json::from_str(r#"{"per": "u", "most": 10, "every": "1d"}"#).unwrap(),
        max_values: Some(values as u32),
        ..Definition::new("COUNT(1d, e, s)".parse().unwrap(), "1d".parse().unwrap())
    };
    for definition in [distinct, capped, hours("APPROX_COUNT_DISTINCT(1h, e, s, v)"), counter] {
        // A server of its own, because few subjects take little more than the buffers of its connections.
        let server = RedisServer::start(&engine);
        let store = simulated(&server).await;
        let (board, estimate) = define_as(&store, &definition).await;
        fill(&store, &board, 1, 0).await;
        let before = used(&server);
        let (subjects, turns) = match board.kind() {
            Kind::Distinct | Kind::Capped { .. } => (100, values),
            Kind::Sketch => (200, 1_000),
            _ => (SUBJECTS, 1),
        };
        for turn in 0..turns {
            fill(&store, &board, subjects, turn).await;
        }
        let taken = (used(&server) - before) / subjects as f64;
        compare(&board.definition().metric.to_string(), estimate.at_most.unwrap(), taken);
    }
}
