//! `rolltop replay`, run as a user runs it, against a stand-in that speaks the API and notes what it is told.

use std::collections::HashSet;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::{Arc, Mutex, mpsc};

use actix_web::dev::ServerHandle;
use actix_web::{App, HttpResponse, HttpServer, web};
use serde_json::{Value, json};

/// What the stand-in was told, and how it is to answer.
#[derive(Default)]
struct Told {
    has_board: bool,
    /// The simulated clock; none: the system's.
    clock: Option<String>,
    defined: Vec<Value>,
    /// The clock at each rollover.
    rollovers: Vec<Option<String>>,
    /// Each request's lines, with the clock at that time.
    requests: Vec<(Option<String>, Vec<Value>)>,
    ids: HashSet<String>,
    /// Answer this many posts with 503 and this code before one is taken.
    failures: u32,
    failure_code: &'static str,
    /// Count the increments of a post that is answered with 503, as a lost reply of the store would.
    counts_failures: bool,
}

struct StandIn {
    url: String,
    told: Arc<Mutex<Told>>,
    handle: ServerHandle,
}

impl StandIn {
    fn start(told: Told) -> Self {
        let told = Arc::new(Mutex::new(told));
        let shared = web::Data::from(Arc::clone(&told));
        let (ready, started) = mpsc::channel();
        std::thread::spawn(move || {
            actix_web::rt::System::new().block_on(async move {
                let server = HttpServer::new(move || {
                    App::new()
                        .app_data(shared.clone())
                        .app_data(web::PayloadConfig::new(8 << 20))
                        .route("/v1/boards/b", web::get().to(board))
                        .route("/v1/boards/b", web::put().to(define))
                        .route("/v1/boards/b/increments", web::post().to(increments))
                        .route("/v1/boards/b/rollover", web::post().to(rollover))
                        .route("/v1/clock", web::get().to(clock))
                        .route("/v1/clock", web::put().to(set_clock))
                })
                .workers(1)
                .disable_signals()
                .bind(("127.0.0.1", 0))
                .expect("a free port");
                let address = server.addrs()[0];
                let server = server.run();
                ready.send((address, server.handle())).expect("the test waits");
                server.await
            })
        });
        let (address, handle) = started.recv().expect("the stand-in starts");
        Self { url: format!("http://{address}"), told, handle }
    }

    fn replay(&self, file: &Path, arguments: &[&str]) -> Output {
        replay(file, &self.url, arguments)
    }

    /// Subjects and amounts of all lines told so far.
    fn lines(&self) -> Vec<Value> {
        self.told.lock().unwrap().requests.iter().flat_map(|(_, lines)| lines.clone()).collect()
    }
}

impl Drop for StandIn {
    fn drop(&mut self) {
        drop(self.handle.stop(false));
    }
}

async fn board(told: web::Data<Mutex<Told>>) -> HttpResponse {
    if !told.lock().unwrap().has_board {
        return HttpResponse::NotFound().json(json!({"code": "unknown_board", "detail": "no board 'b'"}));
    }
    HttpResponse::Ok().json(json!({"board": "b", "metric": "COUNT(24h, hit, path)", "slot": "1h", "timezone": "UTC"}))
}

async fn define(told: web::Data<Mutex<Told>>, body: web::Json<Value>) -> HttpResponse {
    let mut told = told.lock().unwrap();
    told.has_board = true;
    let body = body.into_inner();
    let (metric, slot, timezone, decimals) = (&body["metric"], &body["slot"], &body["timezone"], &body["decimals"]);
    let answer = json!({
        "board": "b", "metric": metric, "slot": slot, "timezone": timezone, "decimals": decimals, "windows": [],
        "order": "desc", "ranked": true,
    });
    told.defined.push(body);
    HttpResponse::Created().json(answer)
}

async fn clock(told: web::Data<Mutex<Told>>) -> HttpResponse {
    match &told.lock().unwrap().clock {
        Some(now) => HttpResponse::Ok().json(json!({"now": now})),
        None => HttpResponse::NotFound().finish(),
    }
}

async fn set_clock(told: web::Data<Mutex<Told>>, body: web::Json<Value>) -> HttpResponse {
    let mut told = told.lock().unwrap();
    let to = body["now"].as_str().map(str::to_owned);
    // Times of one length in UTC compare as texts.
    if to < told.clock {
        return HttpResponse::Conflict().json(json!({"code": "clock_backward"}));
    }
    told.clock = to;
    HttpResponse::Ok().json(body.into_inner())
}

async fn rollover(told: web::Data<Mutex<Told>>) -> HttpResponse {
    let mut told = told.lock().unwrap();
    let now = told.clock.clone();
    told.rollovers.push(now);
    HttpResponse::Ok().json(json!({
        "board": "b", "head": null, "floor": null, "slots_advanced": 2, "slots_retired": 2, "subjects_touched": 0,
        "subjects_removed": 0, "took_ms": 0,
    }))
}

async fn increments(told: web::Data<Mutex<Told>>, body: web::Bytes) -> HttpResponse {
    let mut told = told.lock().unwrap();
    let fails = told.failures > 0;
    let (mut accepted, mut duplicates, mut rejected) = (0, 0, Vec::new());
    if !fails || told.counts_failures {
        let mut counted = Vec::new();
        for (place, line) in body.split(|b| *b == b'\n').filter(|line| !line.is_empty()).enumerate() {
            let line: Value = serde_json::from_slice(line).expect("replay writes JSON");
            if line["subject"] == "/refused" {
                let detail = "the field 'by' is missing";
                rejected.push(json!({"line": place + 1, "code": "missing_field", "detail": detail}));
            } else if line["at"].as_str().is_some_and(|at| at.starts_with("9999")) {
                rejected.push(json!({"line": place + 1, "code": "too_early", "detail": "ahead of the clock"}));
            } else if line["subject"] == "/late" {
                rejected.push(json!({"line": place + 1, "code": "too_late", "detail": "its slot has left the window"}));
            } else if line["id"].as_str().is_some_and(|id| !told.ids.insert(id.to_owned())) {
                duplicates += 1;
            } else {
                accepted += 1;
                counted.push(line);
            }
        }
        let now = told.clock.clone();
        if !counted.is_empty() {
            told.requests.push((now, counted));
        }
    }
    if fails {
        told.failures -= 1;
        let problem = json!({
            "code": told.failure_code, "title": "Service Unavailable", "detail": "busy",
            "accepted": accepted, "duplicates": duplicates,
        });
        return HttpResponse::ServiceUnavailable().insert_header(("retry-after", "0")).json(problem);
    }
    HttpResponse::Ok().json(json!({"accepted": accepted, "duplicates": duplicates, "rejected": rejected}))
}

fn replay(file: &Path, url: &str, arguments: &[&str]) -> Output {
    command(file, url, arguments).stdin(Stdio::null()).output().expect("the program runs")
}

fn command(file: &Path, url: &str, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_rolltop"));
    command.arg("replay").arg(file).args(["--board", "b", "--url", url]).args(arguments);
    command
}

fn log(folder: &tempfile::TempDir, text: &str) -> PathBuf {
    let path = folder.path().join("log");
    std::fs::write(&path, text).unwrap();
    path
}

fn gzip(text: &str) -> Vec<u8> {
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    packed.write_all(text.as_bytes()).unwrap();
    packed.finish().unwrap()
}

fn hit(time: &str, path: &str) -> String {
    format!("203.0.113.7 - - [17/May/2015:{time} +0000] \"GET {path} HTTP/1.1\" 200 12 \"-\" \"curl\"\n")
}

/// The number a row of the summary shows.
fn shown(output: &Output, row: &str) -> u64 {
    let text = String::from_utf8_lossy(&output.stdout);
    let line = text.lines().find(|line| line.starts_with(row)).unwrap_or_else(|| panic!("no '{row}' in {text}"));
    line[row.len()..].trim().parse().unwrap()
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
}

#[test]
fn replay_posts_an_access_log_and_reports_every_line() {
    let folder = tempfile::tempdir().unwrap();
    let text = hit("10:05:03", "/a?x=1")
        + "garbage\n"
        + &hit("10:05:04", "/late")
        + "\n"
        + &hit("99:05:04", "/c")
        + &hit("10:05:05", "/b");
    let server = StandIn::start(Told { has_board: true, ..Told::default() });
    let output = server.replay(&log(&folder, &text), &["--strip-query"]);
    assert!(output.status.success(), "{}", said(&output));
    for (row, expected) in
        [("lines read", 6), ("posted", 3), ("counted", 2), ("duplicates", 0), ("rejected", 1), ("skipped", 3)]
    {
        assert_eq!(shown(&output, row), expected, "{row} in {}", said(&output));
    }
    for detail in [
        "1  too_late (first: line 3: its slot has left the window)",
        "1  not an access-log line (first: line 2)",
        "1  blank line (first: line 4)",
        "1  time cannot be parsed (first: line 5)",
    ] {
        assert!(said(&output).contains(detail), "{detail} in {}", said(&output));
    }
    let at = "2015-05-17T10:05:03Z";
    assert_eq!(server.lines()[0], json!({"subject": "/a", "at": at}));
}

#[test]
fn replay_reads_gzip_from_stdin_and_posts_several_requests() {
    let text: String = (0..12_345).map(|n| format!("{{\"page\":\"p{}\",\"n\":-{n}.5}}\n", n % 10)).collect();
    let server = StandIn::start(Told { has_board: true, ..Told::default() });
    let mut child = command(Path::new("-"), &server.url, &["--subject", "page", "--amount", "n"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let packed = gzip(&text);
    let writer = std::thread::spawn(move || stdin.write_all(&packed));
    let output = child.wait_with_output().unwrap();
    writer.join().unwrap().unwrap();
    assert!(output.status.success(), "{}", said(&output));
    assert_eq!((shown(&output, "lines read"), shown(&output, "counted")), (12_345, 12_345));
    assert_eq!(server.told.lock().unwrap().requests.len(), 3);
    assert_eq!(server.lines().len(), 12_345);
}

#[test]
fn replay_posts_keys_and_values_and_names_fields_that_are_not_there() {
    let folder = tempfile::tempdir().unwrap();
    let ndjson =
        "{\"user\":\"a\",\"tag\":\"x\",\"card\":7}\n{\"user\":\"b\",\"card\":\"y\"}\n{\"user\":\"b\",\"tag\":\"z\"}\n";
    let csv = "user,tag,card\na,x,7\nb,,y\nb,z,\n";
    for text in [ndjson, csv] {
        let server = StandIn::start(Told { has_board: true, ..Told::default() });
        let output = server.replay(&log(&folder, text), &["--subject", "user", "--by", "tag", "--value", "card"]);
        assert!(output.status.success(), "{}", said(&output));
        assert_eq!(server.lines(), [json!({"subject": "a", "by": "x", "value": "7"})]);
        for skipped in ["1  no key of a ranking (first: line ", "1  no value (first: line "] {
            assert!(said(&output).contains(skipped), "{}", said(&output));
        }
    }
    let server = StandIn::start(Told { has_board: true, ..Told::default() });
    let output = server.replay(&log(&folder, ndjson), &["--subject", "usr", "--value", "card"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(said(&output).contains("the first line has no 'usr', but 'card', 'tag', 'user'"), "{}", said(&output));
}

#[test]
fn replay_with_the_log_clock_advances_slot_by_slot() {
    let folder = tempfile::tempdir().unwrap();
    let times = ["10:05:03", "10:59:59", "10:00:00", "11:00:00", "10:30:00", "13:00:01", "11:00:00"];
    let text: String = times.iter().map(|time| hit(time, "/a")).collect();
    let clock = Some("2015-05-17T00:00:00Z".to_owned());
    let server = StandIn::start(Told { has_board: true, clock, ..Told::default() });
    let output = server.replay(&log(&folder, &text), &["--clock", "log"]);
    assert!(output.status.success(), "{}", said(&output));
    let requests: Vec<_> = server
        .told
        .lock()
        .unwrap()
        .requests
        .iter()
        .map(|(clock, lines)| (clock.clone().unwrap_or_default(), lines.len()))
        .collect();
    assert_eq!(
        requests,
        [
            ("2015-05-17T10:59:59Z".to_owned(), 3),
            ("2015-05-17T11:00:00Z".to_owned(), 2),
            ("2015-05-17T13:00:01Z".to_owned(), 2),
        ]
    );

    let clocks: Vec<_> = requests.iter().map(|(clock, _)| Some(clock.clone())).collect();
    assert_eq!(server.told.lock().unwrap().rollovers, clocks, "expired slots go before newer lines come");
    assert_eq!(shown(&output, "slots retired"), 6);

    // Once more: the clock cannot go back, and the summary says so.
    let again = server.replay(&log(&folder, &text), &["--clock", "log"]);
    assert!(said(&again).contains("already past 2015-05-17T10:59:59Z"), "{}", said(&again));
}

#[test]
fn a_resume_safe_replay_can_be_repeated() {
    let folder = tempfile::tempdir().unwrap();
    let file = log(&folder, &(hit("10:05:03", "/a") + &hit("10:05:03", "/a") + &hit("10:05:04", "/b")));
    let server = StandIn::start(Told {
        has_board: true,
        failures: 2,
        failure_code: "store_timeout",
        counts_failures: true,
        ..Told::default()
    });
    let first = server.replay(&file, &["--resume-safe"]);
    assert!(first.status.success(), "{}", said(&first));
    assert_eq!((shown(&first, "counted"), shown(&first, "duplicates")), (0, 3));
    assert_eq!(server.lines().len(), 3, "equal lines are different events");
    let second = server.replay(&file, &["--resume-safe"]);
    assert_eq!((shown(&second, "counted"), shown(&second, "duplicates")), (0, 3));
    assert_eq!(server.lines().len(), 3);
}

#[test]
fn a_replay_without_ids_repeats_only_requests_certainly_not_done() {
    let folder = tempfile::tempdir().unwrap();
    let file = log(&folder, &hit("10:05:03", "/a"));
    let busy = Told { has_board: true, failures: 2, failure_code: "overloaded", ..Told::default() };
    let server = StandIn::start(busy);
    let output = server.replay(&file, &[]);
    assert!(output.status.success(), "{}", said(&output));
    assert_eq!(shown(&output, "counted"), 1);

    // Counted in part before it was too busy, but that is not known.
    for failure_code in ["overloaded", "store_timeout"] {
        let doubtful = Told { has_board: true, failures: 1, failure_code, counts_failures: true, ..Told::default() };
        let server = StandIn::start(doubtful);
        let output = server.replay(&file, &[]);
        assert_eq!(output.status.code(), Some(1));
        assert!(said(&output).contains("--resume-safe"), "{}", said(&output));
        assert_eq!(server.lines().len(), 1);
    }
}

#[test]
fn replay_explains_or_defines_a_missing_board() {
    let folder = tempfile::tempdir().unwrap();
    let file = log(&folder, "code,quantity,when\na,6,2010-12-01 08:26:00\na,-2,2010-12-01 08:27:00\n");
    let server = StandIn::start(Told::default());
    let fields = ["--subject", "code", "--amount", "quantity", "--time", "when"];
    let output = server.replay(&file, &fields);
    assert_eq!(output.status.code(), Some(1));
    assert!(said(&output).contains("rolltop define b 'COUNT(24h, hit, path)'"), "{}", said(&output));

    let metric = "sum( 7d,sale,quantity,code )";
    let define = ["--define", metric, "--slot", "1h", "--decimals", "2", "--timezone", "Europe/Berlin"];
    let output = server.replay(&file, &[&fields[..], &define[..]].concat());
    assert!(output.status.success(), "{}", said(&output));
    let defined =
        json!({"metric": "SUM(7d, sale, quantity, code)", "slot": "1h", "decimals": 2, "timezone": "Europe/Berlin"});
    assert_eq!(server.told.lock().unwrap().defined, [defined]);
    assert_eq!(server.lines()[1], json!({"subject": "a", "amount": -2, "at": "2010-12-01T08:27:00Z"}));
}

/// The clock cannot be set back, so it stays where it is for lines that count at no time.
#[test]
fn a_replay_whose_lines_are_all_refused_fails_and_moves_no_clock() {
    let folder = tempfile::tempdir().unwrap();
    let file = log(&folder, &(hit("10:05:03", "/refused") + &hit("12:05:03", "/refused")));
    let start = Some("2015-05-17T00:00:00Z".to_owned());
    let server = StandIn::start(Told { has_board: true, clock: start.clone(), ..Told::default() });
    for arguments in [&[][..], &["--clock", "log"]] {
        let output = server.replay(&file, arguments);
        assert_eq!((output.status.code(), shown(&output, "rejected")), (Some(1), 2), "{}", said(&output));
        assert!(said(&output).contains("(first: line 1: the field 'by' is missing)"), "{}", said(&output));
        assert!(said(&output).contains("nothing was counted"), "{}", said(&output));
    }
    assert_eq!(server.told.lock().unwrap().clock, start);

    let file = log(&folder, &(hit("10:05:03", "/refused") + &hit("12:05:03", "/a")));
    let output = server.replay(&file, &["--clock", "log"]);
    assert!(output.status.success(), "{}", said(&output));
    assert_eq!(server.told.lock().unwrap().clock.as_deref(), Some("2015-05-17T12:05:03Z"));
}

#[test]
fn replay_fails_with_a_reason_on_invalid_input() {
    let folder = tempfile::tempdir().unwrap();
    let server = StandIn::start(Told { has_board: true, ..Told::default() });
    let file = log(&folder, &hit("10:05:03", "/a"));
    let nothing = log(&tempfile::tempdir_in(&folder).unwrap(), "");
    let url = server.url.clone();
    let gone = {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        format!("http://{}", listener.local_addr().unwrap())
    };
    let fails = |code: i32, output: Output, needle: &str| {
        assert_eq!(output.status.code(), Some(code), "{needle}: {}", said(&output));
        assert!(said(&output).contains(needle), "{needle}: {}", said(&output));
    };
    fails(2, replay(&file, "ftp://x", &[]), "http://");
    fails(2, replay(&file, "http://ann:secret@x", &[]), "must not have");
    let check = |output: Output, needle: &str| fails(1, output, needle);
    check(replay(&file, &gone, &[]), "rolltop serve");
    check(replay(&file, &url, &["--clock", "log"]), "simulated clock");
    check(replay(&nothing, &url, &[]), "cannot read");
    check(replay(&file, &url, &["--format", "ndjson", "--subject", "x"]), "nothing was posted");

    let mut cut = gzip(&hit("10:05:03", "/a").repeat(1_000));
    cut.truncate(cut.len() - 20);
    let path = folder.path().join("cut.gz");
    std::fs::write(&path, cut).unwrap();
    check(replay(&path, &url, &[]), "cannot read");
}
