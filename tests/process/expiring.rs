//! Tests that expired data is removed from memory and disk. With `ROLLTOP_CRASH_ROUNDS` the loads have their full size.

use chrono::{DateTime, TimeDelta, Utc};
use serde_json::json;

use crate::harness::{long, process};
use crate::running::Running;
use crate::waiting::Wait;

/// The bytes of one request.
const BYTES: usize = 250_000;

/// A service on a simulated clock.
struct Simulated {
    service: Running,
    now: DateTime<Utc>,
}

impl Simulated {
    fn start(folder: &std::path::Path) -> Self {
        let now = DateTime::parse_from_rfc3339("2026-01-01T00:00:00Z").unwrap().to_utc();
        let service = Running::start(folder, &["--clock", "simulated=2026-01-01T00:00:00Z"]);
        Self { service, now }
    }

    async fn pass(&mut self, minutes: i64) {
        self.now += TimeDelta::minutes(minutes);
        self.service.ok("PUT", "/v1/clock", Some(json!({"now": self.now.to_rfc3339()}))).await;
    }

    async fn post(&self, board: &str, numbers: std::ops::Range<u64>, line: impl Fn(u64) -> String) {
        let mut first = numbers.start;
        while first < numbers.end {
            let last = (first + (BYTES / line(first).len()) as u64).min(numbers.end);
            let lines: Vec<String> = (first..last).map(|n| line(n) + "\n").collect();
            self.service.ndjson_until_counted(board, &lines).await;
            first = last;
        }
    }

    fn resident(&self) -> f64 {
        process::resident(self.service.id())
    }
}

/// Waits until this holds, with traffic or without.
async fn until(what: &str, mut holds: impl AsyncFnMut() -> bool) {
    let wait = Wait::begin(what);
    while !holds().await {
        wait.rest("it does not hold").await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn memory_of_an_unranked_board_with_new_sessions_is_bounded() {
    let folder = tempfile::tempdir().unwrap();
    let mut simulated = Simulated::start(folder.path());
    let definition = json!({"metric": "COUNT(1h, hit, session)", "slot": "1m", "ranked": false});
    simulated.service.ok("PUT", "/v1/boards/sessions", Some(definition)).await;
    let sessions = if long().is_some() { 50_000 } else { 20_000 };
    let mut resident = vec![simulated.resident()];
    for step in 0..36 {
        // A tenth of the ids arrives in each minute.
        for minute in 0..10 {
            let first = (step * 10 + minute) * (sessions / 10);
            let line = |n: u64| format!("{{\"subject\":\"session-{:012x}\"}}", n.wrapping_mul(0x9E37_79B9_7F4A));
            simulated.post("sessions", first..first + sessions / 10, line).await;
            simulated.pass(1).await;
        }
        resident.push(simulated.resident());
    }
    println!("resident megabytes after each step of {sessions} sessions: {resident:.0?}");
    assert!(resident[36] <= 1.35 * resident[14], "{:.0} MB after step 36, {:.0} after 14", resident[36], resident[14]);
}

/// Tests that the log of ten hours, one or two of which the boards keep, takes no memory at a start, and neither does
/// the log of a removed board.
#[tokio::test(flavor = "multi_thread")]
async fn a_start_takes_no_more_memory_than_the_service_had() {
    let counts = json!({"metric": "COUNT(1h, hit, session)", "slot": "1h"});
    let with = |key: &str, value: serde_json::Value| {
        let mut definition = counts.clone();
        definition[key] = value;
        definition
    };
    let values = json!({"metric": "COUNT_DISTINCT(1h, hit, session, page)", "slot": "1h"});
    let sketches = json!({"metric": "APPROX_COUNT_DISTINCT(1h, hit, session, page)", "slot": "1h"});
    // The number of boards, the subjects of each in an hour, the bytes of their names, and the keys of a line besides.
    let cases = [
        (&counts, 1, 14_000, 325, ""),
        (&counts, 1, 10_000, 512, ""),
        (&counts, 4, 2_500, 450, ""),
        (&values, 1, 20_000, 53, "value"),
        (&sketches, 1, 20_000, 53, "value"),
        (&with("windows", json!(["10m/1m", "2h/1h"])), 1, 5_000, 450, ""),
        (&with("ranked", json!(false)), 1, 10_000, 450, ""),
    ];
    let mut exceeded = Vec::new();
    for (definition, boards, subjects, length, key) in cases {
        let folder = tempfile::tempdir().unwrap();
        let mut simulated = Simulated::start(folder.path());
        let line = |n: u64| {
            let other = if key.is_empty() { String::new() } else { format!(",\"{key}\":\"{n:0100}\"") };
            format!("{{\"subject\":\"{n:0length$}\"{other}}}")
        };
        let names: Vec<String> = (0..boards).map(|board| format!("board-{board}")).collect();
        for board in names.iter().map(String::as_str).chain(["removed"]) {
            simulated.service.ok("PUT", &format!("/v1/boards/{board}"), Some(definition.clone())).await;
        }
        simulated.post("removed", 0..subjects, line).await;
        simulated.service.ok("DELETE", "/v1/boards/removed", None).await;
        for hour in 0..10 {
            for board in &names {
                simulated.post(board, hour * subjects..(hour + 1) * subjects, line).await;
            }
            simulated.pass(60).await;
            for board in &names {
                // The hour has retired, so its memory is used again.
                simulated.service.ok("POST", &format!("/v1/boards/{board}/rollover"), None).await;
            }
        }
        let before = simulated.resident();
        simulated.service.kill();
        drop(simulated);
        let again = Simulated::start(folder.path());
        let peak = process::peak(again.service.id());
        println!(
            "{boards} x {subjects} names of {length} bytes, {key} {definition}: {before:.0} MB, start {peak:.0} MB"
        );
        if peak > 1.1 * before {
            exceeded.push((length, key, before, peak));
        }
    }
    assert!(exceeded.is_empty(), "bytes of a name, key, megabytes before and at the start: {exceeded:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn expired_ids_are_freed_from_memory_and_disk() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let mut simulated = Simulated::start(folder.path());
    let definition = json!({"metric": "COUNT(1h, hit, page)", "slot": "1m"});
    simulated.service.ok("PUT", "/v1/boards/ids", Some(definition)).await;
    let ids = if long().is_some() { 1_000_000 } else { 400_000 };
    let line = |n: u64| format!("{{\"subject\":\"page-{}\",\"id\":\"id-{n:012x}\"}}", n % 50);
    // The same number without ids is sent first, so that the memory needed for requests is already allocated.
    simulated.post("ids", 0..ids, |n| format!("{{\"subject\":\"page-{}\"}}", n % 50)).await;
    let data_of = async |simulated: &Simulated| simulated.service.metric("rolltop_memory_data_bytes").await / 1e6;
    let (idle, data_idle) = (simulated.resident(), data_of(&simulated).await);
    let (mut full, mut on_disk) = (Vec::new(), Vec::new());
    let mut sent = 0;
    for _ in 0..8 {
        simulated.post("ids", sent..sent + ids, line).await;
        sent += ids;
        full.push(simulated.resident());
        // An id takes at least 26 bytes.
        let kept = data_idle + (ids * 26) as f64 / 1e6;
        until("the metric of memory with all ids", async || data_of(&simulated).await >= kept).await;
        // The horizon passes. Then there is some traffic.
        simulated.pass(121).await;
        let mut least = f64::MAX;
        until("the memory of the ids to be free", async || {
            simulated.post("ids", sent..sent + 100, line).await;
            sent += 100;
            least = least.min(data_of(&simulated).await);
            least <= data_idle + 0.1 * (kept - data_idle)
        })
        .await;
        on_disk.push(process::on_disk(&data));
        println!("{ids} ids: {:.1} MB of data, {least:.1} when they had expired", kept);
    }
    // The allocator keeps freed memory for a while, longer on a busy machine. But it uses it again: what the process
    // takes with all ids stops growing, while the ids of four more times would take this much.
    let of = |times: std::ops::Range<usize>| full[times.clone()].iter().sum::<f64>() / times.len() as f64;
    let (growth, of_ids) = (of(6..8) - of(2..4), (4 * ids * 26) as f64 / 1e6);
    println!("{idle:.0} MB without ids, with them {full:.0?}");
    assert!(growth <= of_ids * 2.0 / 3.0, "resident megabytes with all ids: {full:.0?}; more ids take {of_ids:.0}");
    println!("megabytes on disk after each time: {on_disk:.0?}");
    assert!(on_disk[7] <= 1.5 * on_disk[0].max(160.0), "{on_disk:.0?}");

    simulated.service.kill();
    let again = Simulated::start(folder.path());
    let resident = again.resident();
    println!("{resident:.0} MB after a restart");
    assert!(resident - idle <= 0.5 * (full[3] - idle), "{resident:.0} MB after a restart; with all ids {full:.0?}");
}
