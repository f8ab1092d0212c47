//! Tests of several instances on one Redis: they share one clock and one set of boards, and every slot is subtracted
//! once.

use serde_json::json;

use crate::redis_server::{Engine, RedisServer};
use crate::running::Running;
use crate::waiting::Wait;

const SIMULATED: [&str; 2] = ["--clock", "simulated=2026-01-01T00:30:00Z"];

fn start(server: &RedisServer, folder: &std::path::Path) -> Running {
    Running::start(folder, &["--store", &server.url(), SIMULATED[0], SIMULATED[1]])
}

#[tokio::test(flavor = "multi_thread")]
async fn board_and_clock_changes_apply_to_all_instances_at_once() {
    let (server, folder) = (RedisServer::start(&Engine::available()[0]), tempfile::tempdir().unwrap());
    let (a, b) = (start(&server, folder.path()), start(&server, folder.path()));
    let (path, increments) = ("/v1/boards/shared", "/v1/boards/shared/increments");
    let whole = json!({"metric": "SUM(2h, sale, amount, seller)", "slot": "1h"});
    a.ok("PUT", path, Some(whole.clone())).await;
    b.ok("POST", increments, Some(json!({"subject": "s", "amount": 2}))).await;
    assert_eq!(a.ok("GET", "/v1/boards/shared/subjects/s", None).await["score"], 2);

    // The board is removed and defined again through one instance, with other decimals. The other instance must not
    // parse amounts with the old decimals.
    a.ok("DELETE", path, None).await;
    assert_eq!(b.call("POST", increments, Some(json!({"subject": "s"}))).await.0, 404);
    a.ok("PUT", path, Some(json!({"metric": "SUM(2h, sale, amount, seller)", "slot": "1h", "decimals": 2}))).await;
    b.ok("POST", increments, Some(json!({"subject": "s", "amount": 1.25}))).await;
    assert_eq!(a.ok("GET", "/v1/boards/shared/subjects/s", None).await["score"], json!(1.25));
    assert_eq!(b.call("PUT", path, Some(whole)).await.0, 409);

    b.ok("PUT", "/v1/clock", Some(json!({"now": "2026-01-01T01:00:00Z"}))).await;
    assert_eq!(a.ok("GET", "/v1/clock", None).await["now"], "2026-01-01T01:00:00Z");
    assert_eq!(a.call("PUT", "/v1/clock", Some(json!({"now": "2026-01-01T00:59:59Z"}))).await.0, 409);
}

#[tokio::test(flavor = "multi_thread")]
async fn events_count_on_boards_just_defined_by_another_instance() {
    for engine in Engine::available() {
        let (server, folder) = (RedisServer::start(&engine), tempfile::tempdir().unwrap());
        let (a, b) = (start(&server, folder.path()), start(&server, folder.path()));
        let view = json!({"type": "view", "fields": {"post": "p"}});
        let (mut definer, mut poster) = (&a, &b);
        for round in 1..=10 {
            // The cached list is current: both a board that it contains and one that it lacks were just requested.
            poster.ok("POST", "/v1/events", Some(view.clone())).await;
            let path = format!("/v1/boards/views-{round}");
            definer.ok("PUT", &path, Some(json!({"metric": "COUNT(2h, view, post)", "slot": "1h"}))).await;
            let answer = poster.ok("POST", "/v1/events", Some(view.clone())).await;
            assert_eq!(answer["boards"].as_object().unwrap().len(), 1, "{answer}");
            assert_eq!(answer["boards"][format!("views-{round}")]["accepted"], 1, "{answer}");
            assert_eq!(definer.ok("GET", &format!("{path}/subjects/p"), None).await["score"], 1);
            definer.ok("DELETE", &path, None).await;
            let answer = poster.ok("POST", "/v1/events", Some(view.clone())).await;
            assert_eq!((&answer["boards"], &answer["unknown"]), (&json!({}), &json!(1)), "{answer}");
            (definer, poster) = (poster, definer);
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn moderation_is_that_of_the_board_whichever_instance_has_changed_it() {
    let (server, folder) = (RedisServer::start(&Engine::available()[0]), tempfile::tempdir().unwrap());
    let (a, b) = (start(&server, folder.path()), start(&server, folder.path()));
    a.ok("PUT", "/v1/boards/m", Some(json!({"metric": "COUNT(2h, hit, page)", "slot": "1h"}))).await;
    b.ok("POST", "/v1/boards/m/increments", Some(json!({"subject": "p"}))).await;
    // A board of other events, which is not filled.
    a.ok("PUT", "/v1/boards/m/next", Some(json!({"metric": "COUNT(3h, hit, page WHERE kind = 'x')", "slot": "1h"})))
        .await;
    for (nth, takes_over) in
        ["next/promote?early=true", "previous/promote", "previous/promote", "previous/promote"].into_iter().enumerate()
    {
        a.ok("POST", &format!("/v1/boards/m/{takes_over}"), None).await;
        // The other instance knows the board as it was.
        let (list, method) = [("hidden", "PUT"), ("frozen", "PUT"), ("frozen", "DELETE"), ("hidden", "DELETE")][nth];
        b.ok(method, &format!("/v1/boards/m/subjects/p/{list}"), None).await;
    }
    assert_eq!(a.ok("GET", "/v1/boards/m/hidden", None).await["total"], 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn rollover_completes_when_another_instance_is_killed() {
    for engine in Engine::available() {
        let (server, folder) = (RedisServer::start(&engine), tempfile::tempdir().unwrap());
        let (a, mut b) = (start(&server, folder.path()), start(&server, folder.path()));
        a.ok("PUT", "/v1/boards/busy", Some(json!({"metric": "COUNT(2h, hit, page)", "slot": "1h"}))).await;
        let lines = |amount: i64| {
            (0..20_000).map(|n| format!("{{\"subject\":\"page-{n}\",\"amount\":{amount}}}\n")).collect::<String>()
        };
        a.ndjson("busy", lines(1)).await;
        a.ok("PUT", "/v1/clock", Some(json!({"now": "2026-01-01T01:30:00Z"}))).await;
        b.ndjson("busy", lines(10)).await;
        a.ok("PUT", "/v1/clock", Some(json!({"now": "2026-01-01T02:30:00Z"}))).await;
        // Both instances retire the slot of midnight. One is killed in the middle.
        let rollover = tokio::spawn(a.client.post(format!("{}/v1/boards/busy/rollover", a.base)).send());
        let doomed = tokio::spawn(b.client.post(format!("{}/v1/boards/busy/rollover", b.base)).send());
        b.kill();
        drop(doomed.await);
        assert!(rollover.await.unwrap().unwrap().status().is_success());
        let audit = a.ok("POST", "/v1/boards/busy/audit", None).await;
        assert_eq!((&audit["differences"], &audit["subjects_checked"]), (&json!(0), &json!(20_000)), "{audit}");
        let page = a.ok("GET", "/v1/boards/busy/rankings?offset=19999&limit=1", None).await;
        assert_eq!(
            (&page["items"][0]["score"], &page["items"][0]["rank"], &page["retiring"]),
            (&json!(10), &json!(1), &json!(0))
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn shards_change_while_another_instance_writes_and_a_killed_change_ends() {
    let (server, folder) = (RedisServer::start(&Engine::available()[0]), tempfile::tempdir().unwrap());
    let (mut a, b) = (start(&server, folder.path()), start(&server, folder.path()));
    let (path, shards) = ("/v1/boards/hot", "/v1/boards/hot/shards");
    a.ok("PUT", path, Some(json!({"metric": "COUNT(2h, hit, page)", "slot": "1h"}))).await;
    let ids = |round: usize| {
        let line = |n: usize| format!("{{\"subject\":\"page-{n}\",\"id\":\"{round}\"}}\n");
        (0..150_000).map(line).collect::<String>()
    };
    assert_eq!(a.ndjson("hot", ids(1)).await["accepted"], 150_000);
    let steady = |shards: serde_json::Value| json!({"shards": shards, "change": null, "error": null});
    assert_eq!(b.ok("GET", shards, None).await, steady(json!(null)));
    assert_eq!(a.call("PUT", shards, Some(json!({"shards": 65}))).await.0, 422);

    // While the instance copies, the other one refuses writes, and says how far it is.
    assert_eq!(a.call("PUT", shards, Some(json!({"shards": 16}))).await.0, 202);
    let state = b.ok("GET", shards, None).await;
    assert_eq!((&state["shards"], &state["change"]["shards"]), (&json!(null), &json!(16)), "{state}");
    let (status, problem) = b.call("POST", "/v1/boards/hot/increments", Some(json!({"subject": "page-1"}))).await;
    assert_eq!((status, &problem["code"]), (503, &json!("board_frozen")), "{problem}");
    assert!(problem["retry_after"].as_u64().is_some_and(|seconds| seconds > 0), "{problem}");
    assert_eq!(b.ok("GET", "/v1/boards/hot/rankings?limit=1", None).await["total"], 150_000);
    assert_eq!(b.call("PUT", shards, Some(json!({"shards": 3}))).await.1["code"], "editions_conflict");

    // It is killed. Its lease, which would end some seconds later, is ended here.
    a.kill();
    let expired = redis::cmd("HSET").arg("rolltop:1:{hot}:meta").arg("lease").arg("1 0 0").to_owned();
    expired.exec(&mut redis::Client::open(server.url()).unwrap().get_connection().unwrap()).unwrap();
    b.ok("POST", "/v1/boards/hot/increments", Some(json!({"subject": "page-1"}))).await;
    assert_eq!(b.ok("GET", shards, None).await, steady(json!(null)));

    // The next change is not disturbed. What is sent again has counted.
    b.call("PUT", shards, Some(json!({"shards": 4}))).await;
    while b.ok("GET", shards, None).await != steady(json!(4)) {
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
    assert_eq!(b.ndjson("hot", ids(1)).await["duplicates"], 150_000);
    assert_eq!(b.ndjson("hot", ids(2)).await["accepted"], 150_000);
    let audit = b.ok("POST", "/v1/boards/hot/audit", None).await;
    assert_eq!((&audit["differences"], &audit["subjects_checked"]), (&json!(0), &json!(150_000)), "{audit}");
    assert_eq!(b.ok("GET", "/v1/boards/hot/subjects/page-1", None).await["score"], 3);
    assert_eq!(b.ok("DELETE", shards, None).await, steady(json!(4)));
}

#[tokio::test(flavor = "multi_thread")]
async fn tiers_are_known_to_other_instances_and_after_a_restart() {
    let (server, folder) = (RedisServer::start(&Engine::available()[0]), tempfile::tempdir().unwrap());
    let (mut a, b) = (start(&server, folder.path()), start(&server, folder.path()));
    a.ok("PUT", "/v1/boards/hot", Some(json!({"metric": "COUNT(2h, hit, page)", "slot": "1h"}))).await;
    a.ok("POST", "/v1/boards/hot/increments", Some(json!({"subject": "p"}))).await;
    let tier = async |of: &Running| of.ok("GET", "/v1/boards/hot/rankings", None).await["items"][0]["tier"].clone();
    assert_eq!(tier(&b).await, json!(null));
    for name in ["gold", "best"] {
        a.ok("PUT", "/v1/boards/hot/tiers", Some(json!({"tiers": [{"name": name, "top": 1}]}))).await;
        assert_eq!(tier(&a).await, name);
        let wait = Wait::begin("tiers that another instance has set");
        while tier(&b).await != name {
            wait.pause(name);
        }
    }
    a.kill();
    assert_eq!(tier(&start(&server, folder.path())).await, "best");

    let (data, board) = (folder.path().join("data"), json!({"metric": "COUNT(2h, hit, page)", "slot": "1h"}));
    let embedded =
        || Running::start(folder.path(), &["--data-dir", data.to_str().unwrap(), SIMULATED[0], SIMULATED[1]]);
    let mut first = embedded();
    first.ok("PUT", "/v1/boards/hot", Some(board)).await;
    first.ok("POST", "/v1/boards/hot/increments", Some(json!({"subject": "p"}))).await;
    first.ok("PUT", "/v1/boards/hot/tiers", Some(json!({"tiers": [{"name": "best", "top": 1}]}))).await;
    first.kill();
    assert_eq!(tier(&embedded()).await, "best");
}

/// Promotes a successor, which may be empty.
async fn promote(through: &Running, next: &str) {
    through.ok("POST", &format!("{next}/promote?keep_previous=2h&early=true"), None).await;
}

/// Sends events to `to`, each with a name of its own, and returns the answer.
async fn clicks(to: &Running, chan: &str, names: std::ops::Range<usize>) -> serde_json::Value {
    let event = |n| json!({"type": "click", "fields": {"post": "p", "chan": chan}, "id": format!("{chan}-{n}")});
    to.ok("POST", "/v1/events", Some(json!({"events": names.map(event).collect::<Vec<_>>()}))).await
}

#[tokio::test(flavor = "multi_thread")]
async fn events_are_decided_by_the_editions_that_another_instance_has_changed() {
    for shards in [json!(null), json!(3)] {
        let (server, folder) = (RedisServer::start(&Engine::available()[0]), tempfile::tempdir().unwrap());
        let (a, b) = (start(&server, folder.path()), start(&server, folder.path()));
        let (path, next) = ("/v1/boards/clicks", "/v1/boards/clicks/next");
        let metric = |filter: &str| json!({"metric": format!("COUNT(2h, click, post{filter})"), "slot": "1h"});
        let mut first = metric(" WHERE chan = 'app'");
        first["shards"] = shards;
        a.ok("PUT", path, Some(first)).await;
        let score = async |of: &str| {
            b.ok("GET", &format!("{path}/subjects/p{of}"), None).await["score"].as_u64().unwrap_or_default()
        };
        // The instance knows the board, and that its filter excludes the event.
        assert_eq!(clicks(&b, "web", 0..1).await["unmatched"], 1);

        a.ok("PUT", next, Some(metric(""))).await;
        assert_eq!(clicks(&b, "web", 1..11).await["boards"], json!({}), "only the successor counts them");
        assert_eq!(clicks(&b, "app", 0..10).await["accepted"], 10);
        assert_eq!((score("").await, score("?of=next").await), (10, 20));
        let state = a.ok("GET", next, None).await;
        assert_eq!(state["only_counted"], json!({"filtered": 10}), "{state}");

        promote(&a, next).await;
        assert_eq!(clicks(&b, "web", 11..21).await["accepted"], 10);
        assert_eq!((score("").await, score("?of=previous").await), (30, 10));

        // The instance knows only the edition that has gone, and what is sent to it meanwhile is not in the store.
        a.ok("DELETE", &format!("{path}/previous"), None).await;
        a.ok("PUT", next, Some(metric(" WHERE chan = 'tv'"))).await;
        promote(&a, next).await;
        a.ok("DELETE", &format!("{path}/previous"), None).await;
        let answer = clicks(&b, "web", 21..31).await;
        assert_eq!((&answer["unmatched"], &answer["accepted"], &answer["boards"]), (&json!(10), &json!(0), &json!({})));
        assert_eq!(clicks(&b, "tv", 0..10).await["accepted"], 10);
        assert_eq!(score("").await, 10);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn no_event_is_lost_while_another_instance_attaches_and_promotes() {
    let (server, folder) = (RedisServer::start(&Engine::available()[0]), tempfile::tempdir().unwrap());
    let (a, b) = (start(&server, folder.path()), start(&server, folder.path()));
    let (path, next) = ("/v1/boards/clicks", "/v1/boards/clicks/next");
    let metric = |filter: &str| json!({"metric": format!("COUNT(2h, click, post{filter})"), "slot": "1h"});
    a.ok("PUT", path, Some(metric(" WHERE chan = 'app'"))).await;
    let attached = std::sync::atomic::AtomicBool::new(false);
    let writer = async {
        // The number of events that were sent after the successor was attached, and of those that were sent in all.
        let (mut after, mut sent) = (0, 0);
        for round in 0..300 {
            let is_after = attached.load(std::sync::atomic::Ordering::SeqCst);
            clicks(&b, "web", round..round + 1).await;
            after += u64::from(is_after);
            sent += 1;
        }
        (after, sent)
    };
    let operator = async {
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
        a.ok("PUT", next, Some(metric(""))).await;
        attached.store(true, std::sync::atomic::Ordering::SeqCst);
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
        promote(&a, next).await;
    };
    let ((after, sent), ()) = tokio::join!(writer, operator);
    let score = a.ok("GET", &format!("{path}/subjects/p"), None).await["score"].as_u64().unwrap_or_default();
    assert!(after > 50 && (after..=sent).contains(&score), "{score} of {after} after the answer and {sent} in all");
}

#[tokio::test(flavor = "multi_thread")]
async fn increments_are_decided_by_the_editions_that_another_instance_has_changed() {
    let (server, folder) = (RedisServer::start(&Engine::available()[0]), tempfile::tempdir().unwrap());
    let (a, b) = (start(&server, folder.path()), start(&server, folder.path()));
    let (path, next, increments) = ("/v1/boards/sales", "/v1/boards/sales/next", "/v1/boards/sales/increments");
    let metric = |window: &str, decimals: u8| json!({"metric": format!("SUM({window}, sale, amount, seller)"), "slot": "1h", "decimals": decimals});
    a.ok("PUT", path, Some(metric("2h", 0))).await;
    b.ok("POST", increments, Some(json!({"subject": "s", "amount": 1}))).await;
    // An instance that does not know the successor counts in both.
    a.ok("PUT", next, Some(metric("3h", 2))).await;
    b.ok("POST", increments, Some(json!({"subject": "t", "amount": 5}))).await;
    assert_eq!(a.ok("GET", &format!("{path}/subjects/t?of=next"), None).await["score"], 5);
    // It refuses what the former edition does not take only if the present one does not either.
    promote(&a, next).await;
    let batch = json!({"increments": [{"subject": "t", "amount": 1.25}, {"subject": "t", "amount": 2}]});
    let answer = b.ok("POST", increments, Some(batch)).await;
    assert_eq!((&answer["accepted"], &answer["rejected"]), (&json!(2), &json!([])), "{answer}");
    assert_eq!(a.ok("GET", &format!("{path}/subjects/t"), None).await["score"], json!(8.25));
    // A value that is set removes what there is only if the edition that counts it is known.
    a.ok("DELETE", &format!("{path}/previous"), None).await;
    b.ok("PUT", &format!("{path}/subjects/t"), Some(json!({"amount": 0.5}))).await;
    assert_eq!(a.ok("GET", &format!("{path}/subjects/t"), None).await["score"], json!(0.5));
    // An amount says nothing to a board that counts values by now: it is not answered as counted.
    a.ok("PUT", next, Some(json!({"metric": "COUNT_DISTINCT(2h, sale, seller, buyer)", "slot": "1h"}))).await;
    promote(&a, next).await;
    a.ok("DELETE", &format!("{path}/previous"), None).await;
    let (status, problem) = b.call("POST", increments, Some(json!({"subject": "u", "amount": 1}))).await;
    assert_eq!(status, 422, "{problem}");
    b.ok("POST", increments, Some(json!({"subject": "u", "value": "x"}))).await;
    assert_eq!(a.ok("GET", &format!("{path}/subjects/u"), None).await["score"], 1);
}
