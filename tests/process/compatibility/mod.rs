//! Data that an earlier build of the program has written: this build opens it, answers as that one did, and goes on.
//!
//! The fixtures in `tests/fixtures/` are data directories and keys of Redis in many states, and calls with the answers
//! that the earlier build gave. CONTRIBUTING says how to write them again. With such a build in `ROLLTOP_TEST_OLD`, the
//! opposite direction is tested too, and builds that use one Redis at the same time.

mod calls;
mod model;
mod scenario;
mod stored;
mod system_clock;
mod together;

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::json;

use self::calls::{Answered, Call, Recording, Session};
use self::scenario::{ENDED, REMOVED, UNBORN, WRITTEN};
use self::stored::{Data, Site};
use crate::harness;
use crate::redis_server::{Engine, RedisServer};
use crate::running::PROGRAM;
use crate::waiting::Wait;

/// The number of ids of half a horizon from which the embedded store writes a file of ids.
const MANY_IDS: usize = 4_096;

fn fixture(site: &Site, what: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/fixtures/{}.{what}.gz", site.name()))
}

/// Returns the earlier build, if there is one.
fn earlier() -> Option<PathBuf> {
    std::env::var_os("ROLLTOP_TEST_OLD").filter(|path| !path.is_empty()).map(PathBuf::from)
}

/// Writes data of all kinds by a build of the program, which is killed in the middle of its work.
async fn write(site: &Site, program: &Path) -> Vec<u8> {
    for _ in 0..20 {
        if let Some(saved) = try_to_write(site, program).await {
            return saved;
        }
    }
    panic!("every time a slot was retired before the service could be stopped");
}

/// Does that. Returns `None` if a slot that was to be retired in part is gone.
async fn try_to_write(site: &Site, program: &Path) -> Option<Vec<u8>> {
    let mut session = Session::open(Data::empty(site), &[program.to_owned()]);
    for call in scenario::definitions() {
        let (status, answer) = session.make(&call).await;
        assert_eq!(status, 201, "{call:?}: {answer}");
    }
    for (nth, minutes) in WRITTEN.into_iter().enumerate() {
        session.make(&scenario::clock(minutes)).await;
        for call in scenario::writes(minutes) {
            let (status, answer) = session.make(&call).await;
            assert!(status < 300, "{call:?}: {answer}");
        }
        match (nth, site) {
            (0, Site::Embedded) => drop(session.make(&scenario::ids(MANY_IDS)).await),
            (4, Site::Embedded) => checkpoint(&mut session).await,
            (4, _) => hold(&mut session).await,
            _ => {}
        }
    }
    for call in scenario::crowd(*WRITTEN.last().expect("a time")) {
        session.make(&call).await;
    }
    remove(&mut session, site).await;
    session.make(&scenario::clock(ENDED)).await;
    if matches!(site, Site::Redis(_)) && !stop_while_retiring(&session).await {
        return None;
    }
    session.service.kill();
    Some(session.data.save())
}

/// Removes boards. On Redis their data stays at first, and so does a board that is not created entirely, because the
/// service may not use these keys.
async fn remove(session: &mut Session, site: &Site) {
    let allow = |data: &Data, keys: &[&str]| {
        for node in data.nodes() {
            node.ask::<()>(&[&["ACL", "SETUSER", "default", "resetkeys"], keys].concat()).unwrap();
        }
    };
    let shared =
        ["~rolltop:1:removed", "~rolltop:1:clock", "~rolltop:1:boards", "~rolltop:1:{rolltop:1:boards}:version"];
    allow(&session.data, &[&shared[..], &["~rolltop:1:{gone*}:meta"]].concat());
    for (board, _) in REMOVED {
        session.service.call("DELETE", &format!("/v1/boards/{board}"), None).await;
    }
    if !matches!(site, Site::Embedded) {
        allow(&session.data, &[&shared[..], &["~rolltop:1:{unborn/*", "%R~rolltop:1:{unborn}:meta"]].concat());
        let (status, _) = session.json("PUT", "/v1/boards/unborn", Some(scenario::parsed(UNBORN))).await;
        assert!(status >= 500, "{status}");
    }
    allow(&session.data, &["allkeys"]);
    let names = session.service.ok("GET", "/v1/boards", None).await.to_string();
    assert!(!names.contains("\"gone") && !names.contains("unborn"), "{names}");
}

/// Restarts the service until all boards have checkpoints, and the log before them is deleted. The first write after a
/// start begins a segment of the log, and boards are checkpointed when there are many.
async fn checkpoint(session: &mut Session) {
    let wait = Wait::begin("checkpoints of all boards");
    let first = session.data.directory().join("log/0000000001.log");
    for start in 0.. {
        if !first.exists() {
            return;
        }
        if start < 70 {
            session.make(&Call::Restart).await;
            let increments = json!({"subject": "ann", "id": format!("start-{start}")});
            session.service.ok("POST", "/v1/boards/count/increments", Some(increments)).await;
        }
        wait.rest(start).await;
    }
}

/// Removes a slot behind the back of the service, and restarts it. It then holds the board.
async fn hold(session: &mut Session) {
    let slot = session.data.keys("*{held}*:s:*").into_iter().min().expect("a slot");
    let meta = "rolltop:1:{held}:meta";
    let ask = |data: &Data, words: &[&str]| {
        data.nodes().into_iter().find_map(|node| node.ask::<redis::Value>(words).ok()).expect("a node")
    };
    ask(&session.data, &["DEL", &slot]);
    ask(&session.data, &["HDEL", meta, "run"]);
    session.make(&Call::Restart).await;
    let wait = Wait::begin("the board to be held");
    while ask(&session.data, &["HGET", meta, "held"]) == redis::Value::Nil {
        wait.rest("not yet").await;
    }
}

/// Stops the service while it retires a slot. Returns `false` if that was too late.
async fn stop_while_retiring(session: &Session) -> bool {
    let server: &RedisServer = session.data.nodes()[0];
    let mut connection = redis::Client::open(server.url()).unwrap().get_connection().unwrap();
    let index = session.data.keys("*{big}*:i").swap_remove(0);
    let mut is_retiring = move || -> (bool, usize) {
        let mut state = redis::pipe();
        state.hexists("rolltop:1:{big}:meta", "cursor").zcard(&index);
        state.query(&mut connection).unwrap()
    };
    let wait = Wait::begin("a slot that is retired in part");
    loop {
        match is_retiring() {
            (true, _) => break,
            (false, 2) => wait.has_time("the slot is not retired yet").unwrap(),
            (false, _) => return false,
        }
    }
    session.service.signal("STOP");
    // What has been sent may still arrive.
    tokio::time::sleep(Duration::from_millis(100)).await;
    is_retiring().0
}

/// Records how a build of the program goes on with data.
async fn record(site: &Site, saved: &[u8], program: &Path) -> Vec<Answered> {
    let session = Session::open(Data::load(site, saved), &[program.to_owned()]);
    let mut recording = Recording { session, calls: Vec::new(), created: HashSet::new() };
    scenario::go_on(&mut recording).await;
    recording.calls
}

/// Checks that builds of the program, each of which continues after the one before it, go on in the same way.
async fn go_on(site: &Site, saved: &[u8], calls: &[Answered], programs: &[PathBuf]) {
    let data = Data::load(site, saved);
    if !matches!(site, Site::Embedded) {
        assert!(!data.keys("*{gone*").is_empty() && !data.keys("*{unborn*").is_empty());
    }
    let mut session = Session::open(data, programs);
    session.repeat(calls).await;
    // What removed boards have left is deleted in the background.
    let wait = Wait::begin("the data of removed boards to be deleted");
    loop {
        let left = ["*{gone*", "*{unborn*", "rolltop:1:removed"].map(|pattern| session.data.keys(pattern)).concat();
        if left.is_empty() {
            break;
        }
        wait.rest(left).await;
    }
}

async fn this_build_goes_on(site: Site) {
    let (data, answers) = (fixture(&site, "data"), fixture(&site, "answers"));
    let calls = calls::unpack(&std::fs::read(answers).unwrap());
    go_on(&site, &std::fs::read(data).unwrap(), &calls, &[PROGRAM.into()]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn data_of_an_earlier_build_on_the_embedded_store() {
    this_build_goes_on(Site::Embedded).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn data_of_an_earlier_build_on_redis() {
    for engine in Engine::available() {
        this_build_goes_on(Site::Redis(engine)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn data_of_an_earlier_build_on_a_cluster() {
    this_build_goes_on(Site::Cluster(Engine::available().swap_remove(0))).await;
}

/// Returns the kinds of stores, Redis by the first engine.
fn sites() -> [Site; 3] {
    let engine = Engine::available().swap_remove(0);
    [Site::Embedded, Site::Redis(engine.clone()), Site::Cluster(engine)]
}

#[tokio::test(flavor = "multi_thread")]
async fn an_earlier_build_and_this_one_continue_the_data_of_each_other() {
    let Some(old) = earlier() else { return };
    let new = PathBuf::from(PROGRAM);
    for site in sites() {
        let written = write(&site, &new).await;
        let calls = record(&site, &written, &old).await;
        go_on(&site, &written, &calls, &[old.clone(), new.clone()]).await;
        go_on(&site, &written, &calls, &[new.clone(), old.clone()]).await;
        let written = std::fs::read(fixture(&site, "data")).unwrap();
        let calls = calls::unpack(&std::fs::read(fixture(&site, "answers")).unwrap());
        go_on(&site, &written, &calls, &[new.clone(), old.clone()]).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_earlier_build_and_this_one_share_a_redis() {
    let Some(old) = earlier() else { return };
    let first =
        std::env::var("ROLLTOP_TEST_SEED").map_or(1, |seed| seed.parse().expect("ROLLTOP_TEST_SEED is a number"));
    for seed in first..first + harness::rounds(3) as u64 {
        for site in &sites()[1..] {
            eprintln!("on {}: ROLLTOP_TEST_SEED={seed}", site.name());
            together::run(site, old.clone(), PROGRAM.into(), seed).await;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_earlier_build_and_this_one_agree_on_a_system_clock() {
    let Some(old) = earlier() else { return };
    let programs = [old.clone(), PROGRAM.into(), old];
    system_clock::run(&programs, None).await;
    if let Some(server) = RedisServer::with_movable_clock(&Engine::available()[0]) {
        system_clock::run(&programs, Some(&server)).await;
    }
}

/// Writes the fixtures by the build in `ROLLTOP_TEST_OLD`.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "writes the fixtures"]
async fn write_fixtures() {
    let program = earlier().expect("ROLLTOP_TEST_OLD names a build of the program");
    for site in [Site::Embedded, Site::Redis(Engine::available().swap_remove(0))] {
        let saved = write(&site, &program).await;
        let calls = record(&site, &saved, &program).await;
        std::fs::create_dir_all(fixture(&site, "data").parent().unwrap()).unwrap();
        std::fs::write(fixture(&site, "data"), saved).unwrap();
        std::fs::write(fixture(&site, "answers"), calls::pack(&calls)).unwrap();
    }
}
