//! Tests of the data directory from outside: backups by the program, checks of directories, and directories that are
//! refused.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use rolltop::board::{Amount, Board, BoardName, Change, Definition, Generation, Subject, Timestamp};
use rolltop::store::embedded::{Durability, Embedded, EmbeddedOptions, Pace};
use rolltop::store::{Batch, ClockMode, Increment, Lifecycle, Store};
use serde_json::json;

use crate::redis_server::{Engine, RedisServer};
use crate::running::{Running, program};

const BOARD: &str = "/v1/boards/hot-posts";

/// Runs the program. Returns its exit code, standard output and standard error.
fn run(folder: &Path, args: &[&str]) -> (Option<i32>, String, String) {
    let output = program(folder).args(args).output().expect("the program runs");
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    (output.status.code(), text(output.stdout), text(output.stderr))
}

fn run_beside_a_service(folder: &Path, args: &[&str]) -> (Option<i32>, String, String) {
    tokio::task::block_in_place(|| run(folder, args))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_backup_made_by_the_command_can_be_served() {
    let folder = tempfile::tempdir().unwrap();
    let mut service = Running::start(folder.path(), &["--backup-dir", "backups"]);
    let increment = |n: u32| json!({"subject": format!("post-{}", n % 7), "amount": n, "id": format!("id-{n}")});
    let increments = |range: std::ops::Range<u32>| json!({"increments": range.map(increment).collect::<Vec<_>>()});
    let path = format!("{BOARD}/increments");
    service.ok("POST", &path, Some(increments(0..100))).await;
    let expected = service.ok("GET", &format!("{BOARD}/rankings"), None).await["items"].clone();

    let (code, printed, said) = run_beside_a_service(folder.path(), &["backup", "--url", &service.base]);
    assert_eq!(code, Some(0), "{said}");
    let backup = PathBuf::from(printed.trim_end());
    assert!(backup.starts_with(folder.path().canonicalize().unwrap().join("backups")), "{printed}");
    service.ok("POST", &path, Some(increments(100..200))).await;
    service.kill();
    fs::remove_dir_all(folder.path().join("data")).unwrap();

    let backup = backup.display().to_string();
    let (code, printed, said) = run(folder.path(), &["check-data", &backup]);
    assert_eq!(code, Some(0), "{said}");
    assert!(printed.contains("5 boards"), "{printed}");
    let service = Running::start(folder.path(), &["--data-dir", &backup]);
    assert_eq!(service.ok("GET", &format!("{BOARD}/rankings"), None).await["items"], expected);
    let again = service.ok("POST", &path, Some(increments(0..200))).await;
    assert_eq!((&again["duplicates"], &again["accepted"]), (&json!(100), &json!(100)), "{again}");
    // The directory is in use now.
    let (code, _, said) = run_beside_a_service(folder.path(), &["check-data", &backup]);
    assert_eq!(code, Some(2), "{said}");
    assert!(said.contains("another process"), "{said}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failed_backup_command_states_the_reason() {
    let folder = tempfile::tempdir().unwrap();
    let server = RedisServer::start(&Engine::available()[0]);
    for (store, why) in [("embedded", "--backup-dir"), (server.url().as_str(), "BGSAVE")] {
        let service = Running::start(folder.path(), &["--store", store]);
        let (status, problem) = service.call("POST", "/v1/backup", None).await;
        assert_eq!((status, &problem["code"]), (409, &json!("unsupported")), "{problem}");
        let (code, printed, said) = run_beside_a_service(folder.path(), &["backup", "--url", &service.base]);
        assert_eq!((code, printed.as_str()), (Some(1), ""));
        assert!(said.contains(why), "{said}");
    }
    let (code, _, said) = run(folder.path(), &["backup", "--url", "http://127.0.0.1:1"]);
    assert_eq!(code, Some(1));
    assert!(said.contains("http://127.0.0.1:1/v1/backup does not respond"), "{said}");
}

async fn add(store: &Embedded, board: &Arc<Board>, range: std::ops::Range<u32>) {
    for n in range {
        let subject = Subject::parse(&format!("post-{n}")).unwrap();
        let increment = Increment {
            other: None,
            subject,
            change: Change::Amount(Amount(1)),
            retract: false,
            at: None,
            id: None,
            period: None,
            event: None,
        };
        store.add(board, Batch { increments: vec![increment], return_scores: false }).await.unwrap();
    }
}

/// Creates a data directory with a checkpoint, and frames of the log after it.
async fn make_data(path: &Path) {
    let start = Timestamp::parse("2026-01-01T00:00:00Z").unwrap();
    let options =
        EmbeddedOptions { durability: Durability::Always, ..EmbeddedOptions::new(path, ClockMode::Simulated(start)) };
    let busy = Pace { log_bytes: 100, segment_bytes: 4_096, age: Duration::MAX, ..Pace::default() };
    let store = Embedded::open_at_pace(options.clone(), busy).await.unwrap();
    let name = BoardName::parse("b").unwrap();
    let definition = Definition::new("COUNT(24h, like, post)".parse().unwrap(), "1h".parse().unwrap());
    store.define(Board::new(name.clone(), Generation(1), definition).unwrap()).await.unwrap();
    let board = store.board(&name).await.unwrap().unwrap();
    let mut written = 0;
    while !fs::read_to_string(path.join("MANIFEST")).unwrap().contains(".ckpt") {
        add(&store, &board, written..written + 20).await;
        written += 20;
        assert!(written < 100_000, "no checkpoint is made");
    }
    store.close().await.unwrap();
    drop(store);
    let store = Embedded::open(options).await.unwrap();
    let board = store.board(&name).await.unwrap().unwrap();
    add(&store, &board, written..written + 20).await;
    store.close().await.unwrap();
}

/// Returns the files in a directory, relative to the data directory.
fn files(data: &Path, directory: &str) -> Vec<String> {
    let names = fs::read_dir(data.join(directory)).unwrap();
    let mut names: Vec<_> = names.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort_unstable();
    names.into_iter().map(|name| format!("{directory}/{name}")).collect()
}

/// Flips a bit. Returns the previous content of the file.
fn flip(path: &Path, at: usize) -> Vec<u8> {
    let sound = fs::read(path).unwrap();
    let mut damaged = sound.clone();
    damaged[at] ^= 1;
    fs::write(path, damaged).unwrap();
    sound
}

#[tokio::test(flavor = "multi_thread")]
async fn check_data_reports_damage_by_file_and_offset() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    make_data(&data).await;
    let check = || run_beside_a_service(folder.path(), &["check-data", "data"]);
    let (code, printed, said) = check();
    assert_eq!((code, said.as_str()), (Some(0), ""), "{printed}");
    assert!(printed.starts_with("data: 1 boards, 3 files, ") && printed.lines().count() == 1, "{printed}");

    let checkpoint = files(&data, "checkpoints").pop().unwrap();
    // Spare segments have no header yet.
    let is_used = |name: &&String| fs::read(data.join(name)).unwrap().iter().take(8).any(|byte| *byte != 0);
    let segment = files(&data, "log").iter().rfind(is_used).unwrap().clone();
    let manifest_bytes = fs::read(data.join("MANIFEST")).unwrap().len();
    let (header_of_segment, header_of_frame) = (72, 28);
    for (file, at, block) in [
        (checkpoint.as_str(), 60, 48),
        (segment.as_str(), header_of_segment + header_of_frame + 3, header_of_segment),
        (
            "MANIFEST",
            manifest_bytes / 2,
            fs::read(data.join("MANIFEST")).unwrap().iter().position(|b| *b == b'\n').unwrap() + 1,
        ),
    ] {
        let sound = flip(&data.join(file), at);
        let (code, printed, said) = check();
        assert_eq!(code, Some(1), "{printed}{said}");
        let line = printed.lines().nth(1).unwrap_or_default();
        assert!(line.starts_with(&format!("{file} is damaged at byte {block}: ")), "{printed}");
        assert!(said.contains("data is damaged"), "{said}");
        // A start reports the same damage, and the remedy.
        let args = ["serve", "--listen", "127.0.0.1:0", "--clock", "simulated=2026-01-01T00:00:00Z"];
        let (code, _, said) = run_beside_a_service(folder.path(), &args);
        assert_eq!(code, Some(1), "{said}");
        assert!(said.contains(line) && said.contains("backup") && said.contains("rolltop check-data"), "{said}");
        fs::write(data.join(file), sound).unwrap();
    }

    // Everything is checked, not only the part before the first damage.
    let sound =
        [flip(&data.join(&checkpoint), 60), flip(&data.join(&segment), header_of_segment + header_of_frame + 3)];
    let (code, printed, said) = check();
    assert_eq!((code, printed.lines().count()), (Some(1), 3), "{printed}");
    assert!(said.contains("2 files"), "{said}");
    for (file, sound) in [&checkpoint, &segment].into_iter().zip(sound) {
        fs::write(data.join(file), sound).unwrap();
    }

    let manifest = fs::read(data.join("MANIFEST")).unwrap();
    fs::remove_file(data.join("MANIFEST")).unwrap();
    let (code, printed, _) = check();
    assert_eq!(code, Some(1), "{printed}");
    assert!(printed.contains("MANIFEST is damaged at byte 0: the file is missing, but log/"), "{printed}");
    fs::write(data.join("MANIFEST"), manifest).unwrap();
    fs::remove_file(data.join(&checkpoint)).unwrap();
    let (code, printed, _) = check();
    assert_eq!(code, Some(1), "{printed}");
    assert!(printed.contains(&format!("{checkpoint} is damaged at byte 0: the file is missing")), "{printed}");
}

#[test]
fn an_invalid_data_directory_is_refused_with_a_reason() {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir(folder.path().join("empty")).unwrap();
    for (directory, says) in [("nowhere", "directory does not exist"), ("empty", "no MANIFEST")] {
        let (code, printed, said) = run(folder.path(), &["check-data", directory]);
        assert_eq!((code, printed.as_str()), (Some(2), ""));
        assert!(said.contains(directory) && said.contains(says), "{said}");
    }
    assert_eq!(fs::read_dir(folder.path().join("empty")).unwrap().count(), 0, "a check writes nothing");

    // The files as versions before 0.2 left them.
    fs::create_dir_all(folder.path().join("data/database")).unwrap();
    fs::write(folder.path().join("data/watermark"), [0; 16]).unwrap();
    let (code, _, said) = run(folder.path(), &["serve", "--listen", "127.0.0.1:0"]);
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains("cannot be read by this version") && said.contains("--data-dir"), "{said}");
    let (code, _, said) = run(folder.path(), &["check-data", "data"]);
    assert_eq!(code, Some(2), "{said}");
    assert!(said.contains("earlier version"), "{said}");
}
