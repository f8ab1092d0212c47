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
