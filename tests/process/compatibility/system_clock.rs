//! Builds that continue the data of each other with a system clock, also one that is wrong at a start.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::harness::shim;
use crate::redis_server::RedisServer;
use crate::running::{Running, serve_by};

const TEN_YEARS: u64 = 10 * 365 * 86_400;

/// Starts builds in turn on the embedded store and, if there is one, on a server whose clock can be moved. Each finds
/// what the ones before it have written, and doubts a clock that is far ahead.
pub async fn run(programs: &[PathBuf], server: Option<&RedisServer>) {
    let folder = tempfile::tempdir().unwrap();
    let store = server.map_or("embedded".to_owned(), RedisServer::url);
    let Some(library) = shim::compile("clock", folder.path()) else { return };
    let start = |program: &Path, is_ahead: bool| {
        let mut command = serve_by(program, folder.path(), &["--store", &store]);
        match server {
            Some(server) => server.set_clock_ahead(std::time::Duration::from_secs(u64::from(is_ahead) * TEN_YEARS)),
            None if is_ahead => {
                let ahead = [("SHIM_CLOCK_AHEAD", TEN_YEARS.to_string()), ("SHIM_CLOCK_MILLIS", "600000".to_owned())];
                command.env("LD_PRELOAD", &library).envs(ahead);
            }
            None => {}
        }
        Running::launch(command)
    };
    let boards = ["day", "all"].map(|name| format!("/v1/boards/{name}"));
    for (nth, program) in programs.iter().enumerate() {
        let mut service = start(program, false);
        if nth == 0 {
            for (board, window) in boards.iter().zip(["30d", "all"]) {
                let slot = (window != "all").then_some("1d");
                let definition = json!({"metric": format!("COUNT({window}, hit, page)"), "slot": slot});
                service.ok("PUT", board, Some(definition)).await;
            }
        }
        for board in &boards {
            for id in 0..=nth {
                let increment = json!({"subject": "a", "id": format!("{id}")});
                let counted = service.ok("POST", &format!("{board}/increments"), Some(increment)).await;
                assert_eq!(counted["accepted"], u64::from(id == nth), "{counted}");
            }
        }
        service.kill();
        // Another build finds the same, even if its clock is wrong, and expires nothing.
        let next = &programs[(nth + 1) % programs.len()];
        let mut service = start(next, true);
        for board in &boards {
            assert_eq!(score(&service, board).await, nth + 1);
        }
        service.kill();
    }
    let service = start(&programs[0], false);
    for board in &boards {
        assert_eq!(score(&service, board).await, programs.len());
        let audit = service.ok("POST", &format!("{board}/audit"), None).await;
        assert_eq!(audit["differences"], 0, "{audit}");
    }
}

async fn score(service: &Running, board: &str) -> Value {
    service.ok("GET", &format!("{board}/subjects/a"), None).await["score"].clone()
}
