//! Tests of audits of what was changed behind the service's back, which only Redis allows.

use serde_json::json;

use crate::redis_server::{Engine, RedisServer};
use crate::running::Running;

#[tokio::test(flavor = "multi_thread")]
async fn an_audit_names_the_key_of_a_wrong_score_and_repairs_it() {
    let (server, folder) = (RedisServer::start(&Engine::available()[0]), tempfile::tempdir().unwrap());
    let rolltop = Running::start(folder.path(), &["--store", &server.url()]);
    let definition = json!({"metric": "COUNT(24h, like, post BY community)", "slot": "1h"});
    rolltop.ok("PUT", "/v1/boards/b", Some(definition)).await;
    let items = json!({"increments": [{"by": "go", "subject": "x"}, {"by": "rust", "subject": "x", "amount": 4}]});
    rolltop.ok("POST", "/v1/boards/b/increments", Some(items)).await;
    let mut connection = redis::Client::open(server.url()).unwrap().get_connection().unwrap();
    let rankings: Vec<String> = redis::cmd("KEYS").arg("*:r:*:rust").query(&mut connection).unwrap();
    assert_eq!(rankings.len(), 1, "{rankings:?}");
    redis::cmd("ZINCRBY").arg(&rankings[0]).arg(3).arg("x").exec(&mut connection).unwrap();
    let audit = rolltop.ok("POST", "/v1/boards/b/audit?repair=true", None).await;
    let expected = json!([{"by": "rust", "subject": "x", "score": 7, "slots": 4}]);
    assert_eq!((&audit["subjects_checked"], &audit["examples"]), (&json!(2), &expected), "{audit}");
    assert_eq!(audit["repaired"], 1, "{audit}");
    let repaired = rolltop.ok("GET", "/v1/boards/b/rankings?by=rust", None).await;
    assert_eq!(repaired["items"], json!([{"rank": 1, "subject": "x", "score": 4}]), "{repaired}");
    assert_eq!(rolltop.ok("POST", "/v1/boards/b/audit", None).await["differences"], 0);
}
