//! Tests of two instances on a cluster: they share one set of boards, and a hash slot stays half moved for a while.

use serde_json::json;

use crate::redis_cluster::RedisCluster;
use crate::redis_server::Engine;
use crate::running::Running;

#[tokio::test(flavor = "multi_thread")]
async fn a_board_in_a_migrating_slot_returns_503_and_others_are_served() {
    for engine in Engine::available() {
        let (cluster, folder) = (RedisCluster::start(&engine, 3, 0), tempfile::tempdir().unwrap());
        let start = || Running::start(folder.path(), &["--store", &cluster.url()]);
        let (a, b) = (start(), start());
        let names: Vec<String> = (0..6).map(|n| format!("board-{n}")).collect();
        for name in &names {
            a.ok("PUT", &format!("/v1/boards/{name}"), Some(json!({"metric": "COUNT(2h, hit, page)", "slot": "1h"})))
                .await;
        }
        for n in 0..200 {
            b.ok("POST", "/v1/events", Some(json!({"type": "hit", "fields": {"page": format!("p{}", n % 7)}}))).await;
        }
        let total = async |service: &Running, name: &str| {
            let page = service.ok("GET", &format!("/v1/boards/{name}/rankings"), None).await;
            page["items"].as_array().unwrap().iter().map(|item| item["score"].as_i64().unwrap()).sum::<i64>()
        };
        for name in &names {
            assert_eq!(total(&a, name).await, 200, "{name}");
        }

        let slot = cluster.slot(&format!("{{{}}}", names[0]));
        let from = cluster.owner(slot);
        let to = (from + 1) % 3;
        cluster.begin_move(slot, from, to);
        assert_eq!(cluster.move_keys(slot, from, to, 2), 2);
        let increments = |name: &str| format!("/v1/boards/{name}/increments");
        for (path, body) in [
            (increments(&names[0]), json!({"subject": "p0", "id": "x"})),
            ("/v1/events".to_owned(), json!({"type": "hit", "fields": {"page": "p0"}, "id": "x"})),
        ] {
            let answer = a.client.post(format!("{}{path}", a.base)).json(&body).send().await.unwrap();
            assert_eq!(answer.status().as_u16(), 503, "{path}");
            assert!(answer.headers().contains_key("retry-after"), "{path}");
        }
        assert_eq!(b.call("GET", &format!("/v1/boards/{}/rankings", names[0]), None).await.0, 503);
        for name in &names[1..] {
            b.ok("POST", &increments(name), Some(json!({"subject": "p0", "id": "x"}))).await;
            assert_eq!(total(&a, name).await, 201, "{name}");
        }

        while cluster.move_keys(slot, from, to, 2) > 0 {}
        cluster.end_move(slot, from, to);
        a.ok("POST", &increments(&names[0]), Some(json!({"subject": "p0", "id": "x"}))).await;
        // A request that got a 503 is sent again. Boards that have the event do not count it again.
        b.ok("POST", "/v1/events", Some(json!({"type": "hit", "fields": {"page": "p0"}, "id": "x"}))).await;
        for name in &names {
            assert_eq!(total(&b, name).await, 201, "{name}");
            let audit = a.ok("POST", &format!("/v1/boards/{name}/audit"), None).await;
            assert_eq!(audit["differences"], 0, "{audit}");
        }
    }
}

/// The names of the rankings of keys are known only to scripts, so the servers cannot redirect a call by them.
#[tokio::test(flavor = "multi_thread")]
async fn a_board_with_keys_in_a_migrating_slot_refuses_or_counts() {
    let engine = &Engine::available()[0];
    let (cluster, folder) = (RedisCluster::start(engine, 3, 0), tempfile::tempdir().unwrap());
    let rolltop = Running::start(folder.path(), &["--store", &cluster.url()]);
    let definition = json!({"metric": "COUNT(2h, hit, page BY site)", "slot": "1h", "max_keys": 1000});
    rolltop.ok("PUT", "/v1/boards/b", Some(definition)).await;
    let count = async |key: usize, id: String| {
        let item = json!({"by": format!("k{key}"), "subject": "p", "id": id});
        rolltop.call("POST", "/v1/boards/b/increments", Some(item)).await.0
    };
    for key in 0..12 {
        assert_eq!(count(key, format!("first-{key}")).await, 200);
    }
    let slot = cluster.slot("{b}");
    let from = cluster.owner(slot);
    let to = (from + 1) % 3;
    cluster.begin_move(slot, from, to);
    let (mut sent, mut refused) = (Vec::new(), 0);
    // A call that is refused is repeated for some seconds first, so only a few are made.
    for moved in [1, 7] {
        assert_eq!(cluster.move_keys(slot, from, to, moved), moved);
        for key in [0, 12 + sent.len()] {
            let id = format!("{}-{key}", sent.len());
            let status = count(key, id.clone()).await;
            assert!([200, 503].contains(&status), "{status}");
            refused += usize::from(status == 503);
            sent.push((key, id));
            let path = format!("/v1/boards/b/rankings?by=k{key}");
            let (status, answer) = rolltop.call("GET", &path, None).await;
            assert!([200, 503].contains(&status), "{status} {answer}");
        }
    }
    while cluster.move_keys(slot, from, to, 4) > 0 {}
    assert!(refused > 0);
    cluster.end_move(slot, from, to);
    for (key, id) in &sent {
        assert_eq!(count(*key, id.clone()).await, 200);
    }
    let mut expected = std::collections::BTreeMap::<usize, u64>::new();
    for key in (0..12).chain(sent.iter().map(|(key, _)| *key)) {
        *expected.entry(key).or_default() += 1;
    }
    for (key, score) in expected {
        let page = rolltop.ok("GET", &format!("/v1/boards/b/rankings?by=k{key}"), None).await;
        assert_eq!(page["items"], json!([{"rank": 1, "subject": "p", "score": score}]), "k{key}");
    }
    assert_eq!(rolltop.ok("POST", "/v1/boards/b/audit", None).await["differences"], 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_board_with_many_keys_has_shards_on_a_cluster() {
    let engine = &Engine::available()[0];
    let (cluster, folder) = (RedisCluster::start(engine, 3, 0), tempfile::tempdir().unwrap());
    let start = || Running::start(folder.path(), &["--store", &cluster.url()]);
    let (a, b) = (start(), start());
    let definition = || json!({"metric": "COUNT(2h, hit, page BY site)", "slot": "1h"});
    let tried = a.ok("PUT", "/v1/boards/b?dry_run=true", Some(definition())).await;
    assert_eq!(tried["shards"], 64, "{tried}");
    assert_eq!(a.call("PUT", "/v1/boards/b", Some(definition())).await.0, 201);
    for service in [&a, &b, &start()] {
        let (status, again) = service.call("PUT", "/v1/boards/b", Some(definition())).await;
        assert_eq!((status, &again["shards"]), (200, &json!(64)), "{again}");
    }
    let tried = b.ok("PUT", "/v1/boards/b?dry_run=true", Some(definition())).await;
    assert_eq!(tried["conflict"], json!(null), "{tried}");
    let other = json!({"metric": "COUNT(2h, hit, page BY site)", "slot": "1h", "shards": 4});
    assert_eq!(b.call("PUT", "/v1/boards/b", Some(other)).await.0, 409);
    let items: Vec<_> = (0..500).map(|key| json!({"by": format!("k{key}"), "subject": "p"})).collect();
    assert_eq!(b.ok("POST", "/v1/boards/b/increments", Some(json!({"increments": items}))).await["accepted"], 500);
    assert_eq!(a.ok("GET", "/v1/boards/b", None).await["keys"], 500);
    let few = json!({"metric": "COUNT(2h, hit, page BY site)", "slot": "1h", "max_keys": 1000});
    assert_eq!(a.ok("PUT", "/v1/boards/few", Some(few)).await["shards"], json!(null));
    assert_eq!(a.call("PUT", "/v1/boards/few", Some(definition())).await.0, 409);
}
