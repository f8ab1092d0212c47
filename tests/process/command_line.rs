//! Tests of exit codes and messages: 0 for success, 1 for failure, 2 for wrong usage or configuration. Each message
//! names the cause and the remedy.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::Stdio;

use serde_json::{Value, json};

use crate::redis_server::{Engine, RedisServer};
use crate::running::{Running, program, serve};
use crate::skipping::skipped;
use crate::waiting::Wait;

fn run(folder: &Path, args: &[&str]) -> (Option<i32>, String) {
    let output = program(folder).args(args).output().expect("the program runs");
    let text = [output.stdout, output.stderr].concat();
    (output.status.code(), String::from_utf8_lossy(&text).into_owned())
}

#[test]
fn check_reports_config_errors_by_line_and_column() {
    let folder = tempfile::tempdir().unwrap();
    let (code, said) = run(folder.path(), &["check"]);
    assert_eq!(code, Some(0), "{said}");
    assert!(said.contains("hot-posts: COUNT(24h, like, post_id)"), "{said}");

    let file = folder.path().join("bad.toml");
    std::fs::write(&file, "listen = \"127.0.0.1:0\"\n\n[boards.b]\nmetric = \"COUNT(likes, a, b)\"\nslot = \"1h\"\n")
        .unwrap();
    let (code, said) = run(folder.path(), &["check", "--config", "bad.toml"]);
    assert_eq!(code, Some(2), "{said}");
    assert!(said.contains("line 4") && said.contains("expected a duration") && said.contains("column 7"), "{said}");
    assert_eq!(run(folder.path(), &["serve", "--config", "bad.toml"]).0, Some(2));
    assert_eq!(run(folder.path(), &["serve", "--store", "mysql://x"]).0, Some(2));
    assert_eq!(run(folder.path(), &["--no-such-flag"]).0, Some(2));
}

#[test]
fn flags_override_the_environment_which_overrides_the_file() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("r.toml"), "listen = \"127.0.0.1:1111\"\n").unwrap();
    let listening = |args: &[&str], env: Option<&str>| {
        let mut command = program(folder.path());
        command.args(["check", "--config", "r.toml"]).args(args);
        if let Some(listen) = env {
            command.env("ROLLTOP_LISTEN", listen);
        }
        String::from_utf8(command.output().unwrap().stdout).unwrap()
    };
    assert!(listening(&[], None).contains("127.0.0.1:1111"));
    assert!(listening(&[], Some("127.0.0.1:2222")).contains("127.0.0.1:2222"));
    for trust in ["--trust-clock", "--trust-clock=false"] {
        assert!(listening(&["--backup-dir", "b", trust], None).contains("127.0.0.1:1111"));
    }
    assert!(listening(&["--listen", "127.0.0.1:3333"], Some("127.0.0.1:2222")).contains("127.0.0.1:3333"));
}

#[test]
fn a_used_port_is_named_in_the_error() {
    let folder = tempfile::tempdir().unwrap();
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let (code, said) = run(folder.path(), &["serve", "--listen", &address]);
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains(&address) && said.contains("--listen"), "{said}");
}

#[test]
fn an_unreachable_redis_is_named_without_its_password() {
    let folder = tempfile::tempdir().unwrap();
    let free = std::net::TcpListener::bind("127.0.0.1:0").and_then(|l| l.local_addr()).unwrap();
    let (code, said) =
        run(folder.path(), &["serve", "--listen", "127.0.0.1:0", "--store", &format!("redis://:hunter2@{free}")]);
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains(&free.to_string()) && !said.contains("hunter2"), "{said}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_second_process_on_a_data_directory_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let _first = Running::start(folder.path(), &[]);
    let (code, said) = run(folder.path(), &["serve", "--listen", "127.0.0.1:0"]);
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains("data"), "{said}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_store_keeps_its_clock_mode_and_time_over_restarts() {
    let folder = tempfile::tempdir().unwrap();
    let server = RedisServer::start(&Engine::available()[0]);
    for store in ["embedded", &server.url()] {
        let args = ["--store", store, "--clock", "simulated=2026-01-01T00:00:00Z"];
        let mut simulated = Running::start(folder.path(), &args);
        simulated.ok("PUT", "/v1/clock", Some(json!({"now": "2026-01-02T00:00:00Z"}))).await;
        assert!(tokio::task::block_in_place(|| simulated.terminate()).success());
        let (code, said) = run(folder.path(), &["serve", "--listen", "127.0.0.1:0", "--store", store]);
        assert_eq!(code, Some(1), "{said}");
        assert!(said.contains("simulated") && said.contains("system"), "{said}");
        let again = Running::start(folder.path(), &args);
        assert_eq!(again.ok("GET", "/v1/clock", None).await["now"], "2026-01-02T00:00:00Z");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_configured_board_that_conflicts_with_the_store_stops_startup() {
    let folder = tempfile::tempdir().unwrap();
    let declare = |metric: &str| {
        std::fs::write(folder.path().join("r.toml"), format!("[boards.b]\nmetric = \"{metric}\"\nslot = \"1h\"\n"))
            .unwrap();
    };
    declare("COUNT(2h, a, b)");
    let mut service = Running::start(folder.path(), &["--config", "r.toml"]);
    assert!(tokio::task::block_in_place(|| service.terminate()).success());
    declare("COUNT(3h, a, b)");
    let (code, said) = run(folder.path(), &["serve", "--listen", "127.0.0.1:0", "--config", "r.toml"]);
    assert_eq!(code, Some(2), "{said}");
    assert!(said.contains("'b'") && said.contains("metric") && said.contains("DELETE /v1/boards/"), "{said}");
}

#[tokio::test(flavor = "multi_thread")]
async fn both_stores_report_write_batching_metrics() {
    let server = RedisServer::start(&Engine::available()[0]);
    let embedded = ["rolltop_log_group_writes_bucket", "rolltop_store_calls_total{call=\"append\",outcome=\"ok\"}"];
    let redis = ["rolltop_combine_items_bucket", "rolltop_store_calls_total{call=\"write\",outcome=\"ok\"}"];
    for (store, counted, depth) in [
        ("embedded", embedded, "rolltop_log_waiting_bytes"),
        (server.url().as_str(), redis, "rolltop_combine_waiting_items"),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let service = Running::start(folder.path(), &["--store", store]);
        service.ok("POST", "/v1/boards/hot-posts/increments", Some(json!({"subject": "a"}))).await;
        let answer = service.client.get(format!("{}/metrics", service.base)).send().await.unwrap();
        let metrics = answer.text().await.unwrap();
        for series in counted {
            let line = metrics.lines().rfind(|line| line.starts_with(series));
            let value: f64 = line.and_then(|line| line.rsplit(' ').next()?.parse().ok()).unwrap_or_default();
            assert!(value >= 1.0, "{store}: {series}: {line:?} in\n{metrics}");
        }
        assert!(metrics.lines().any(|line| line.starts_with(depth)), "{store}: {depth} in\n{metrics}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn log_lines_of_a_request_name_its_trace() {
    let folder = tempfile::tempdir().unwrap();
    let mut command = serve(folder.path(), &["--log-format", "json"]);
    command.env("RUST_LOG", "rolltop=debug");
    let service = Running::launch(command);
    let (trace, parent) = ("4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7");
    for (request_id, traceparent) in [("valid", format!("00-{trace}-{parent}-01")), ("invalid", "00-1-2-3".to_owned())]
    {
        let request = service.client.get(format!("{}/v1/boards/none", service.base));
        let request = request.header("x-request-id", request_id).header("traceparent", traceparent);
        assert_eq!(request.send().await.unwrap().status(), 404);
        let wait = Wait::begin("the log line");
        let is_of_request = |line: &Value| line["fields"]["request_id"] == request_id;
        let line = loop {
            let lines = service.log().into_iter().filter_map(|line| serde_json::from_str(&line).ok());
            match lines.into_iter().find(is_of_request) {
                Some(line) => break line,
                None => wait.rest(service.log()).await,
            }
        };
        let named = (line["fields"]["trace_id"].as_str(), line["fields"]["parent_id"].as_str());
        assert_eq!(named, if request_id == "valid" { (Some(trace), Some(parent)) } else { (None, None) }, "{line}");
    }
}

#[test]
fn a_reader_that_has_enough_ends_a_command_without_a_panic() {
    let folder = tempfile::tempdir().unwrap();
    let mut child =
        program(folder.path()).arg("openapi").stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    // Closed before anything is read: the document is larger than a pipe.
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success() && said.is_empty(), "{:?} {said}", output.status);
}

/// Runs `rolltop serve` on a terminal, as its first user would, until Ctrl+C is pressed. Returns what the terminal shows.
fn on_a_terminal(folder: &Path, no_color: bool) -> String {
    const SPAWN: &str = "import os, pty, sys; sys.exit(os.waitstatus_to_exitcode(pty.spawn(sys.argv[1:])))";
    let serve = serve(folder, &[]);
    let mut command = std::process::Command::new("python3");
    command.args(["-c", SPAWN]).arg(serve.get_program()).args(serve.get_args()).current_dir(folder);
    for (name, value) in serve.get_envs() {
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
    if no_color {
        command.env("NO_COLOR", "1");
    }
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("python3 starts");
    let (mut input, output) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
    let mut shown = String::new();
    for line in BufReader::new(output).lines().map_while(Result::ok) {
        if line.contains("Ctrl+C") {
            input.write_all(b"\x03").unwrap();
        }
        shown += &line;
        shown.push('\n');
    }
    assert!(child.wait().unwrap().success(), "{shown}");
    shown
}

#[test]
fn the_first_steps_are_shown_on_a_terminal_only_and_work() {
    if std::process::Command::new("python3").args(["-c", "import pty"]).status().is_ok_and(|status| status.success()) {
        let folder = tempfile::tempdir().unwrap();
        let shown = on_a_terminal(folder.path(), true);
        let steps: Vec<_> = shown.lines().skip_while(|line| !line.starts_with("  Look ")).take(3).collect();
        assert!(
            steps[0].contains("http://127.0.0.1:") && steps[1].contains(" post hot-posts post-1 --url "),
            "{shown}"
        );
        assert!(steps[2].ends_with("Ctrl+C") && !shown.contains("\x1b[1m"), "{shown}");
        assert!(on_a_terminal(folder.path(), false).contains("\x1b[1mStop"), "{shown}");
    } else {
        skipped("python3 with the module pty, which makes terminals, is missing");
    }
    let folder = tempfile::tempdir().unwrap();
    let mut child = serve(folder.path(), &[]).stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
    lines.find(|line| line.starts_with("  boards ")).expect("the last line of the greeting");
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(lines.collect::<Vec<_>>(), Vec::<String>::new());
}
