//! Test of `rolltop replay` with an access log on the log's own clock. At several moments and at the end, the service's
//! top 100 equals a direct count of the log.

use std::collections::HashMap;
use std::fmt::Write;
use std::path::Path;

use rand::{Rng, SeedableRng};

use crate::redis_server::{Engine, RedisServer};
use crate::running::{Running, program};

const HOUR: i64 = 3_600;
/// 2026-01-01T00:00:00Z in seconds.
const START: i64 = 1_767_225_600;
const PARTS: usize = 4;

/// Returns requests over two days, for a few popular paths and many rare ones: (second, path).
fn requests(seed: u64) -> Vec<(i64, String)> {
    let mut random = rand::rngs::StdRng::seed_from_u64(seed);
    let mut requests: Vec<(i64, String)> = (0..6_000)
        .map(|_| {
            let popularity = random.random_range(0.0f64..1.0).powi(3);
            (START + random.random_range(0..48 * HOUR), format!("/page/{}?q=a%20b", (popularity * 400.0) as u32))
        })
        .collect();
    requests.sort_unstable();
    requests
}

fn log(requests: &[(i64, String)]) -> String {
    let mut text = String::new();
    for (second, path) in requests {
        let time = chrono::DateTime::from_timestamp(*second, 0).unwrap().format("%d/%b/%Y:%H:%M:%S +0000");
        writeln!(text, r#"10.0.0.1 - - [{time}] "GET {path} HTTP/1.1" 200 512 "-" "test""#).unwrap();
    }
    text + "a line that is none\n"
}

/// Returns the best 100 scores of a window of 6 hourly slots that ends with the last request, and every path's count.
fn by_hand(requests: &[(i64, String)]) -> (Vec<u64>, HashMap<&str, u64>) {
    let now = requests.last().unwrap().0;
    let floor = (now / HOUR - 5) * HOUR;
    let mut counts: HashMap<&str, u64> = HashMap::new();
    for (_, path) in requests.iter().filter(|(second, _)| *second >= floor) {
        *counts.entry(path).or_default() += 1;
    }
    let mut best: Vec<u64> = counts.values().copied().collect();
    best.sort_unstable_by(|a, b| b.cmp(a));
    best.truncate(100);
    (best, counts)
}

async fn agrees_with_counting_by_hand(folder: &Path, store: &str) {
    let seed = 20_260_101;
    let requests = requests(seed);
    let service = Running::start(folder, &["--store", store, "--clock", "simulated=2026-01-01T00:00:00Z"]);
    let size = requests.len() / PARTS;
    for part in 0..PARTS {
        let file = folder.join(format!("part-{part}.log"));
        std::fs::write(&file, log(&requests[part * size..(part + 1) * size])).unwrap();
        let output = program(folder)
            .arg("replay")
            .arg(&file)
            .args(["--board", "paths", "--url", &service.base, "--clock", "log"])
            .args(["--define", "COUNT(6h, hit, path)", "--slot", "1h"])
            .output()
            .expect("the program runs");
        let said = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
        assert!(output.status.success(), "{said}");

        let seen = &requests[..(part + 1) * size];
        let (best, counts) = by_hand(seen);
        let page = service.ok("GET", "/v1/boards/paths/rankings?limit=100", None).await;
        let items = page["items"].as_array().unwrap();
        let scores: Vec<u64> = items.iter().map(|item| item["score"].as_u64().unwrap()).collect();
        assert_eq!(scores, best, "seed {seed}, part {part}");
        for item in items {
            let (subject, score) = (item["subject"].as_str().unwrap(), item["score"].as_u64());
            assert_eq!(counts.get(subject).copied(), score, "seed {seed}, part {part}: {subject}");
        }
        assert_eq!((page["total"].as_u64(), page["retiring"].as_u64()), (Some(counts.len() as u64), Some(0)));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn on_the_embedded_store() {
    let folder = tempfile::tempdir().unwrap();
    agrees_with_counting_by_hand(folder.path(), "embedded").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn on_redis() {
    let (server, folder) = (RedisServer::start(&Engine::available()[0]), tempfile::tempdir().unwrap());
    agrees_with_counting_by_hand(folder.path(), &server.url()).await;
}
