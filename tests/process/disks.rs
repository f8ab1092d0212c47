//! Tests of disks that are full, slow, or hang. Writes are refused before anything changes, reads continue, and writes
//! work again as soon as the disk does.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::harness::shim;
use crate::running::{Running, serve};
use crate::skipping::skipped;
use crate::waiting::Wait;

const BOARD: &str = "/v1/boards/disk";
/// The number of lines of one request.
const LINES: u64 = 2_000;

/// A file system in memory, unmounted when it is dropped.
struct SmallDisk(PathBuf);

impl SmallDisk {
    /// Mounts a file system, with `sudo` if this process is not root's. Skips the test and returns `None` if that is
    /// not allowed either.
    fn mount(folder: &Path, megabytes: u32) -> Option<Self> {
        let at = folder.join("disk");
        std::fs::create_dir(&at).unwrap();
        let size = format!("size={megabytes}m");
        let why = match as_root("mount").args(["-t", "tmpfs", "-o", &size, "none"]).arg(&at).output() {
            Ok(output) if output.status.success() => return Some(Self(at)),
            Ok(output) => String::from_utf8_lossy(&output.stderr).trim().to_owned(),
            Err(error) => error.to_string(),
        };
        skipped(format_args!("no tmpfs can be mounted: {why}"));
        None
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = as_root("umount").arg("--lazy").arg(&self.0).status();
    }
}

fn as_root(program: &str) -> Command {
    if rustix::process::geteuid().is_root() {
        return Command::new(program);
    }
    let mut sudo = Command::new("sudo");
    sudo.args(["--non-interactive", program]);
    sudo
}

async fn define(service: &Running) {
    service.ok("PUT", BOARD, Some(json!({"metric": "COUNT(30d, hit, session)", "slot": "1d"}))).await;
}

fn session(number: u64) -> String {
    format!("session-{:06x}", number.wrapping_mul(0x9E_3779) & 0xff_ffff)
}

/// Sends one request. Returns status and response, or `None` if no response came within this time.
async fn within(
    service: &Running,
    patience: Duration,
    method: &str,
    path: &str,
    body: Option<String>,
) -> Option<(u16, Value)> {
    let request = service.client.request(method.parse().unwrap(), format!("{}{path}", service.base)).timeout(patience);
    let request = match body {
        Some(lines) => request.header("content-type", "application/x-ndjson").body(lines),
        None => request,
    };
    let answer = request.send().await.ok()?;
    let status = answer.status().as_u16();
    Some((status, answer.json().await.unwrap_or(Value::Null)))
}

/// Writes sessions from this number on. Returns `Ok` if all were acknowledged, otherwise the status, or 0 if no
/// response came.
async fn write(service: &Running, first: u64, count: u64) -> Result<(), u16> {
    let lines = (first..first + count).map(|number| format!("{{\"subject\":\"{}\"}}\n", session(number))).collect();
    let answer = within(service, Duration::from_secs(4), "POST", &format!("{BOARD}/increments"), Some(lines)).await;
    match answer {
        Some((200, receipt)) if receipt["accepted"] == count => Ok(()),
        Some((status, _)) => Err(status),
        None => Err(0),
    }
}

/// Repeats a request until the response has this status. Returns the time that this took.
async fn until_readiness_is(service: &Running, wanted: u16) -> Duration {
    let (begun, wait) = (Instant::now(), Wait::begin(format!("/readyz to answer {wanted}")));
    loop {
        let seen = within(service, Duration::from_secs(2), "GET", "/readyz", None).await;
        if seen.as_ref().is_some_and(|(status, _)| *status == wanted) {
            return begun.elapsed();
        }
        wait.rest(seen).await;
    }
}

/// Checks that a page and a subject can be read.
async fn reads_go_on(service: &Running, known: u64) {
    for path in ["/rankings?limit=50".to_owned(), format!("/subjects/{}", session(known))] {
        let answer = within(service, Duration::from_secs(2), "GET", &format!("{BOARD}{path}"), None).await;
        assert!(matches!(answer, Some((200, _))), "{path}: {answer:?}");
    }
}

/// Repeats a write until it is acknowledged. Returns the first number that is not written.
async fn until_writes_resume(service: &Running, mut next: u64) -> u64 {
    let wait = Wait::begin("writes to be acknowledged again");
    loop {
        let written = write(service, next, 100).await;
        next += 100;
        match written {
            Ok(()) => return next,
            Err(status) => wait.rest(status).await,
        }
    }
}

/// Checks that every one of these sessions has a rank.
async fn holds(service: &Running, numbers: impl Iterator<Item = u64>) {
    let subjects: Vec<String> = numbers.map(session).collect();
    for subjects in subjects.chunks(500) {
        let path = format!("{BOARD}/rankings/lookup?ranks=false");
        let found = service.ok("POST", &path, Some(json!({"subjects": subjects}))).await;
        let is_missing = |item: &&Value| item["rank_among"].is_null();
        let missing: Vec<_> = found["items"].as_array().unwrap().iter().filter(is_missing).collect();
        assert!(missing.is_empty(), "acknowledged and lost: {missing:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn writes_on_a_full_disk_are_refused_until_space_is_freed() {
    let folder = tempfile::tempdir().unwrap();
    let Some(disk) = SmallDisk::mount(folder.path(), 48) else { return };
    let ballast = disk.0.join("ballast");
    std::fs::write(&ballast, vec![1; 16 << 20]).unwrap();
    let data = disk.0.join("data");
    let start = || {
        let mut command = serve(folder.path(), &["--data-dir", data.to_str().unwrap()]);
        // Standard error is written to the same full disk.
        command
            .env("RUST_LOG", "info")
            .stderr(File::options().create(true).append(true).open(disk.0.join("log")).unwrap());
        Running::launch(command)
    };
    let mut service = start();
    define(&service).await;
    let (begun, mut refused_since) = (Instant::now(), None);
    let (mut acknowledged, mut next) = (Vec::new(), 0);
    // For a while the store may still make room, by a checkpoint that makes the log shorter.
    while refused_since.is_none_or(|since: Instant| since.elapsed() < Duration::from_secs(3)) {
        match write(&service, next, LINES).await {
            Ok(()) => {
                acknowledged.push(next);
                refused_since = None;
            }
            Err(status) => {
                assert_eq!(status, 503, "after {next} sessions");
                refused_since.get_or_insert_with(Instant::now);
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        }
        next += LINES;
        assert!(begun.elapsed() < Duration::from_secs(180), "{next} sessions and the disk is not full");
    }
    println!("{} sessions acknowledged before the disk was full", acknowledged.len() as u64 * LINES);
    until_readiness_is(&service, 503).await;
    for _ in 0..20 {
        reads_go_on(&service, acknowledged[0]).await;
        assert_eq!(write(&service, next, LINES).await, Err(503));
        next += LINES;
    }
    assert_eq!(service.ended(), None);

    std::fs::remove_file(&ballast).unwrap();
    next = until_writes_resume(&service, next).await;
    until_readiness_is(&service, 200).await;
    acknowledged.push(next - 100);
    let sample = || {
        let rest = acknowledged.last().map(|first| *first..first + 100);
        acknowledged.iter().flat_map(|first| [*first, *first + 99]).chain(rest.into_iter().flatten())
    };
    holds(&service, sample()).await;
    let total = service.ok("GET", &format!("{BOARD}/rankings?limit=1"), None).await["total"].clone();
    assert!(total.as_u64() >= Some((acknowledged.len() as u64 - 1) * LINES + 100), "{total}");

    service.kill();
    service = start();
    holds(&service, sample()).await;
    assert_eq!(service.ok("GET", &format!("{BOARD}/rankings?limit=1"), None).await["total"], total);
    assert_eq!(service.ok("POST", &format!("{BOARD}/audit"), None).await["differences"], 0);
    assert_eq!(write(&service, next, 100).await, Ok(()));
}

#[tokio::test(flavor = "multi_thread")]
async fn slow_syncs_do_not_delay_writes_with_everysec() {
    let folder = tempfile::tempdir().unwrap();
    let Some(library) = shim::compile("disk", folder.path()) else { return };
    let mut command = serve(folder.path(), &["--durability", "everysec"]);
    let service = Running::launch({
        command.env("LD_PRELOAD", library).env("SHIM_SYNC_MILLIS", "400");
        command
    });
    define(&service).await;
    // For more than four seconds. In most of this time several syncs are in progress.
    let mut took = Vec::new();
    for number in 0..200 {
        let (begun, subject) = (Instant::now(), json!({"subject": session(number)}));
        service.ok("POST", &format!("{BOARD}/increments"), Some(subject)).await;
        took.push(begun.elapsed());
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let (all, slowest) = (took.iter().sum::<Duration>(), took.iter().max());
    println!("200 single writes took {all:?}, the slowest {slowest:?}");
    // A tenth of the time that 200 syncs take. The machine may delay one write, but not several.
    assert!(all < Duration::from_secs(8), "200 single writes took {all:?}");
    let slow: Vec<_> = took.iter().filter(|took| **took > Duration::from_millis(200)).collect();
    assert!(slow.len() <= 1, "these writes waited for a sync: {slow:?}");
    until_readiness_is(&service, 200).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn writes_are_refused_while_the_disk_hangs() {
    let folder = tempfile::tempdir().unwrap();
    let Some(library) = shim::compile("disk", folder.path()) else { return };
    let hang = folder.path().join("hang");
    let mut command = serve(folder.path(), &["--durability", "everysec"]);
    command.env("LD_PRELOAD", library).env("SHIM_SYNC_HANG", &hang);
    let mut service = Running::launch(command);
    define(&service).await;
    assert_eq!(write(&service, 0, LINES).await, Ok(()));

    std::fs::write(&hang, "").unwrap();
    let (begun, mut next, mut acknowledged) = (Instant::now(), LINES, Vec::new());
    // Data is written, so there is something that is not synced.
    let refused = loop {
        match write(&service, next, 1).await {
            Ok(()) => acknowledged.push(next),
            Err(status) => break status,
        }
        next += 1;
        assert!(begun.elapsed() < Duration::from_secs(15), "writes are taken though no sync has ended for 15 s");
        tokio::time::sleep(Duration::from_millis(20)).await;
    };
    assert_eq!(refused, 503, "after {:?}", begun.elapsed());
    println!("writes were refused {:?} after the disk began to hang", begun.elapsed());
    until_readiness_is(&service, 503).await;
    assert!(
        begun.elapsed() < Duration::from_secs(15),
        "/readyz failed {:?} after the disk began to hang",
        begun.elapsed()
    );
    for _ in 0..20 {
        reads_go_on(&service, 0).await;
    }
    assert_eq!(write(&service, next + 1, 1).await, Err(503));

    std::fs::remove_file(&hang).unwrap();
    next = until_writes_resume(&service, next + 2).await;
    until_readiness_is(&service, 200).await;
    service.kill();
    let service = Running::start(folder.path(), &[]);
    holds(&service, (0..LINES).chain(acknowledged).chain(next - 100..next)).await;
}
