//! To a caller, boards that are not its own do not exist.

use rolltop::access::{Grant, Scope};
use serde_json::{Value, json};

use super::{Guarded, key, keys};
use crate::failing_store::Fault;

#[actix_web::test]
async fn what_is_found_by_type_or_metric_is_ones_own() {
    let team = key(&[Scope::Read, Scope::Write, Scope::Manage, Scope::Metrics], &["shop-*"]);
    let guarded = Guarded::new(keys(Grant::none(), &[&team])).await;
    let all = &guarded.site.client;
    // The board of somebody else counts another type, and has finer slots than that of the team.
    all.define("other-fine", "COUNT(24h, like, post_id)", "1m").await;
    all.define("other-type", "COUNT(24h, visit, post_id)", "1h").await;
    let of_two = json!({"type": "like", "fields": {"post_id": "p"}});
    let counted = guarded.post(&team, "/v1/events", &of_two).await.body;
    assert_eq!(counted["boards"], json!({"shop-a": {"accepted": 1, "duplicates": 0, "rejected": 0}}), "{counted}");
    assert_eq!(all.score("other", "p").await, json!(0));
    let visit = json!({"type": "visit", "fields": {"post_id": "p"}});
    let unknown = guarded.post(&team, "/v1/events", &visit).await.body;
    assert_eq!((&unknown["unknown"], &unknown["unknown_types"]), (&json!(1), &json!({"visit": 1})), "{unknown}");
    // With strict=true a board of others refuses nothing: the event has no field for any of them.
    let strict = guarded.post(&team, "/v1/events?strict=true", &json!({"type": "visit", "fields": {}})).await;
    assert_eq!((strict.status, &strict.body["unknown"]), (200, &json!(1)), "{strict:?}");

    let query = json!({"metric": "COUNT(1h, like, post_id)", "fields": {"post_id": "p"}});
    let answers = guarded.post(&team, "/v1/query", &query).await.body;
    assert_eq!(answers["answers"][0]["board"], json!("shop-a"), "{answers}");
    let query = json!({"metric": "COUNT(1h, visit, post_id)", "fields": {"post_id": "p"}});
    let answers = guarded.post(&team, "/v1/query", &query).await.body;
    assert_eq!(answers["answers"][0]["error"]["code"], json!("no_board"), "{answers}");

    let names = |list: &Value, member: &str| -> Vec<String> {
        list.as_array().unwrap().iter().map(|item| item[member].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(names(&guarded.get(&team, "/v1/boards").await.body["items"], "board"), ["shop-a"]);
    let rolled = guarded.send(Some(&team.bearer()), reqwest::Method::POST, "/v1/rollover", None).await;
    assert_eq!(names(&rolled.body, "board"), ["shop-a"]);
    assert_eq!(names(&guarded.get(&team, "/v1/rules").await.body["items"], "name"), ["shop-rule"]);
    let metrics = guarded.get(&team, "/metrics").await;
    assert_eq!(metrics.status, 200);
    assert!(!metrics.text.contains("board=\"other"), "{}", metrics.text);
}

#[actix_web::test]
async fn an_event_does_not_reach_boards_of_others_that_are_learned_of_meanwhile() {
    let team = key(&[Scope::Write], &["shop-*"]);
    let guarded = Guarded::new(keys(Grant::none(), &[&team])).await;
    let event = json!({"type": "like", "fields": {"post_id": "p"}});
    guarded.post(&team, "/v1/events", &event).await;
    // Through another instance, so that the one with keys learns of them while it counts.
    guarded.site.client.define("new", "COUNT(24h, like, post_id)", "1h").await;
    guarded.site.client.define("shop-new", "COUNT(24h, like, post_id)", "1h").await;
    let counted = guarded.post(&team, "/v1/events", &event).await.body;
    let boards: Vec<&String> = counted["boards"].as_object().unwrap().keys().collect();
    assert_eq!(boards, ["shop-a", "shop-new"], "{counted}");
    assert_eq!(guarded.site.client.score("new", "p").await, json!(0));
}

#[actix_web::test]
async fn a_board_of_others_that_is_named_is_forbidden_whether_it_exists_or_not() {
    let team = key(&[Scope::Read, Scope::Write, Scope::Manage], &["shop-*"]);
    let guarded = Guarded::new(keys(Grant::none(), &[&team])).await;
    // A store that cannot be reached is not asked.
    guarded.site.switch.fail(Fault::Unreachable);
    let mut answers = Vec::new();
    for board in ["other", "no-board"] {
        let read = guarded.get(&team, &format!("/v1/boards/{board}")).await;
        assert_eq!(read.refusal(), (403, "forbidden"));
        let pinned =
            json!({"rule": "COUNT(1h, like, post_id) > 1", "boards": ["shop-a", board], "fields": {"post_id": "p"}});
        let pinned = guarded.post(&team, "/v1/evaluate", &pinned).await;
        assert_eq!(pinned.refusal(), (403, "forbidden"));
        for hop in [
            json!({"from": {"board": "shop-a", "subject": "p"}, "to": {"board": board}}),
            json!({"from": {"board": board, "subject": "p"}, "to": {"board": "shop-a"}}),
        ] {
            let hop = guarded.post(&team, "/v1/query", &json!({"hop": hop})).await;
            assert_eq!(hop.body["answers"][0]["error"]["code"], json!("forbidden"), "{hop:?}");
        }
        let batch = json!({"queries": [{"board": board, "subject": "p"}]});
        let batch = guarded.post(&team, "/v1/query", &batch).await;
        assert_eq!(batch.body["answers"][0]["error"]["code"], json!("forbidden"), "{batch:?}");
        let views = guarded.get(&team, &format!("/v1/stream?view={board}")).await;
        assert_eq!(views.refusal(), (403, "forbidden"));
        let dry = format!("/v1/boards/{board}?dry_run=true");
        let definition = json!({"metric": "COUNT(24h, like, post_id)", "slot": "1h"});
        let dry = guarded.send(Some(&team.bearer()), reqwest::Method::PUT, &dry, Some(&definition)).await;
        assert_eq!(dry.refusal(), (403, "forbidden"));
        answers.push(read.text.replace(board, "").replace(read.header("x-request-id"), ""));
    }
    assert_eq!(answers[0], answers[1]);
    let named = json!({"name": "other-rule", "fields": {"post_id": "p"}});
    assert_eq!(guarded.post(&team, "/v1/evaluate", &named).await.code(), "unknown_rule");
}

#[actix_web::test]
async fn a_view_that_others_follow_is_not_for_everybody() {
    let (team, other) = (key(&[Scope::View], &["shop-*"]), key(&[Scope::View], &["other"]));
    let guarded = Guarded::new(keys(Grant::none(), &[&team, &other])).await;
    assert_eq!(guarded.get(&other, "/v1/boards/other/stream").await.status, 200);
    assert_eq!(guarded.get(&team, "/v1/boards/other/stream").await.refusal(), (403, "forbidden"));
    assert_eq!(guarded.get(&team, "/v1/stream?view=other").await.refusal(), (403, "forbidden"));
}

#[actix_web::test]
async fn readiness_names_boards_only_to_who_may_know_all() {
    let (team, monitor) = (key(&[Scope::Metrics], &["shop-*"]), key(&[Scope::Metrics], &["*"]));
    let guarded = Guarded::new(keys(Grant::none(), &[&team, &monitor])).await;
    guarded.site.switch.fail(Fault::Unreachable);
    for (key, is_told) in [(None, false), (Some(team.bearer()), false), (Some(monitor.bearer()), true)] {
        let answer = guarded.send(key.as_deref(), reqwest::Method::GET, "/readyz", None).await;
        assert_eq!(answer.refusal(), (503, "not_ready"));
        assert_eq!(answer.body.get("reasons").is_some(), is_told, "{answer:?}");
    }
}
