//! Boards: defined, inspected, listed, removed.

use serde_json::{Value, json};

use crate::site::Site;

#[actix_web::test]
async fn put_of_a_board_creates_keeps_or_conflicts() {
    let site = Site::new().await;
    let definition = json!({"metric": "sum( 7d,sale,amount , seller_id)", "slot": "1h", "decimals": 2,
        "timezone": "Europe/Berlin", "order": "asc", "cover": "full"});
    let created = site.client.put("/v1/boards/sellers", definition.clone()).await;
    assert_eq!((created.status, created.header("location")), (201, "/v1/boards/sellers"));
    let mut expected = json!({"board": "sellers", "metric": "SUM(7d, sale, amount, seller_id)", "slot": "1h",
        "decimals": 2, "timezone": "Europe/Berlin", "order": "asc", "cover": "full", "ranked": true, "mode": "sliding",
        "keep": null, "min_samples": 1, "max_values": null, "stamp": "start", "shards": null, "dedupe": null,
        "windows": [], "slots_in_window": 169, "slots_kept": 169,
        "ids": {"horizon": "24h", "stored_at_most": "36h", "bytes_per_id": 37}});
    expected["generation"] = created.body["generation"].clone();
    expected["defined_at"] = json!("2026-01-02T10:07:00Z");
    assert_eq!(created.body, expected);
    let again = site.client.put("/v1/boards/sellers", definition.clone()).await;
    assert_eq!((again.status, again.body), (200, created.body.clone()));
    let mut other = definition;
    other["slot"] = json!("1d");
    other["decimals"] = json!(0);
    let conflict = site.client.put("/v1/boards/sellers", other).await;
    assert_eq!(conflict.refusal(), (409, "board_conflict"));
    assert_eq!(conflict.body["keys"], json!(["slot", "decimals"]));
    assert_eq!(conflict.body["existing"]["slot"], "1h");
}

#[actix_web::test]
async fn definition_errors_name_the_key_and_the_allowed_values() {
    let site = Site::new().await;
    let metric = "COUNT(24h, like, post_id)";
    for (body, code, field, says) in [
        (json!({"slot": "1h"}), "invalid_field", "metric", "missing"),
        (json!({"metric": metric}), "invalid_field", "slot", "missing"),
        (json!({"metric": 5, "slot": "1h"}), "invalid_field", "metric", "expected a string"),
        (json!({"metric": "COUNT(24h, like)", "slot": "1h"}), "invalid_field", "metric", "column"),
        (
            json!({"metric": "MEDIAN(24h, a, b)", "slot": "1h"}),
            "invalid_field",
            "metric",
            "COUNT, SUM, AVG, MIN, MAX, LAST, COUNT_DISTINCT",
        ),
        (json!({"metric": metric, "slot": "7m"}), "invalid_field", "slot", "divide an hour"),
        (json!({"metric": metric, "slot": "x"}), "invalid_field", "slot", "15m"),
        (json!({"metric": "COUNT(90m, a, b)", "slot": "1h"}), "invalid_field", "metric", "whole number"),
        (json!({"metric": "COUNT(7d, a, b)", "slot": "1s"}), "invalid_field", "metric", "2000"),
        (json!({"metric": metric, "slot": "1h", "decimals": 10}), "invalid_field", "decimals", "9"),
        (json!({"metric": metric, "slot": "1h", "decimals": -1}), "invalid_field", "decimals", "0 to 9"),
        (json!({"metric": metric, "slot": "1h", "decimals": 1.5}), "invalid_field", "decimals", "0 to 9"),
        (json!({"metric": metric, "slot": "1h", "decimals": "2"}), "invalid_field", "decimals", "0 to 9"),
        (json!({"metric": metric, "slot": "1h", "timezone": "Mars"}), "invalid_field", "timezone", "Europe/Berlin"),
        (json!({"metric": metric, "slot": "1h", "order": "up"}), "invalid_field", "order", "`desc` or `asc`"),
        (json!({"metric": metric, "slot": "1h", "cover": "half"}), "invalid_field", "cover", "`full`"),
        (json!({"metric": metric, "slot": "1h", "colour": "red"}), "unknown_field", "colour", "timezone"),
        (json!({"metric": metric, "slot": "1h", "ranked": "no"}), "invalid_field", "ranked", "boolean"),
        (json!({"metric": metric, "slot": "1h", "keep": "48h"}), "invalid_field", "keep", "ranked = false"),
        (json!({"metric": metric, "slot": "1h", "ranked": false, "keep": "1h"}), "invalid_field", "keep", "shorter"),
        (json!({"metric": metric, "slot": "1h", "ranked": false, "keep": "x"}), "invalid_field", "keep", "15m"),
        (json!({"metric": metric, "slot": "1h", "mode": "tumbling"}), "invalid_field", "mode", "`from_first`"),
        (json!({"metric": metric, "mode": "from_first"}), "invalid_field", "mode", "ranked = false"),
        (json!({"metric": metric, "slot": "1h", "min_samples": 2}), "invalid_field", "min_samples", "AVG"),
        (json!({"metric": metric, "slot": "1h", "min_samples": 0}), "invalid_field", "min_samples", "from 1"),
        (json!({"metric": metric, "slot": "1h", "max_values": 5}), "invalid_field", "max_values", "COUNT_DISTINCT"),
        (json!({"metric": metric, "slot": "1h", "max_values": 1.5}), "invalid_field", "max_values", "whole number"),
        (json!({"metric": metric, "slot": "1h", "stamp": "middle"}), "invalid_field", "stamp", "`end`"),
        (json!({"metric": metric, "slot": "1h", "shards": 0}), "invalid_field", "shards", "from 1 to 64"),
        (json!({"metric": metric, "slot": "1h", "shards": 65}), "invalid_field", "shards", "from 1 to 64"),
        (json!({"metric": metric, "slot": "1h", "shards": 2.5}), "invalid_field", "shards", "from 1 to 64"),
        (json!({"metric": metric, "slot": "1h", "shards": "4"}), "invalid_field", "shards", "from 1 to 64"),
        (
            json!({"metric": "COUNT_DISTINCT(1h, a, b, c)", "slot": "1h", "decimals": 1}),
            "invalid_field",
            "decimals",
            "0",
        ),
        (json!([]), "invalid_field", "body", "metric"),
    ] {
        let answer = site.client.put("/v1/boards/b", body.clone()).await;
        assert_eq!((answer.refusal(), &answer.body["field"]), ((422, code), &json!(field)), "{body}: {answer:?}");
        assert!(answer.body["detail"].as_str().unwrap().contains(says), "{body}: {answer:?}");
    }
    for name in ["Upper", "-a", "%20", "a%2Fb", &"a".repeat(64)] {
        let answer = site.client.define(name, metric, "1h").await;
        assert_eq!(answer.refusal(), (422, "invalid_board_name"), "{name}");
        let answer = site.client.get(&format!("/v1/boards/{name}/rankings")).await;
        assert_eq!(answer.refusal(), (404, "unknown_board"), "{name}");
    }
    assert_eq!(site.client.get("/v1/boards").await.body, json!({"items": [], "next": null}));
}

#[actix_web::test]
async fn a_returned_definition_can_be_sent_again() {
    let site = Site::new().await;
    let keys = [
        "metric",
        "slot",
        "decimals",
        "timezone",
        "order",
        "cover",
        "ranked",
        "mode",
        "keep",
        "min_samples",
        "max_values",
        "stamp",
        "shards",
    ];
    for (board, definition, shown) in [
        (
            "spread",
            json!({"metric": "COUNT(1h, like, post)", "slot": "1m", "shards": 24}),
            json!({"shards": 24, "slots_in_window": 60}),
        ),
        (
            "avg",
            json!({"metric": "avg(30d, rating, stars, film)", "slot": "1d", "min_samples": 10, "stamp": "end"}),
            json!({"metric": "AVG(30d, rating, stars, film)", "min_samples": 10, "stamp": "end", "slots_kept": 30}),
        ),
        (
            "users",
            json!({"metric": "COUNT_DISTINCT(30d, login, (ip, device), user)", "slot": "1d", "ranked": false,
                "max_values": 1000}),
            json!({"ranked": false, "max_values": 1000, "keep": null, "slots_in_window": 30, "slots_kept": 30}),
        ),
        (
            "logins",
            json!({"metric": "COUNT(30m, login, device WHERE ok = true)", "slot": "1m", "ranked": false, "keep": "24h"}),
            json!({"keep": "24h", "shards": null, "slots_in_window": 30, "slots_kept": 1440}),
        ),
        (
            "first",
            json!({"metric": "SUM(1h, transfer, amount, customer)", "ranked": false, "mode": "from_first",
                "keep": null}),
            json!({"mode": "from_first", "slots_in_window": 1}),
        ),
    ] {
        let path = format!("/v1/boards/{board}");
        let created = site.client.put(&path, definition).await;
        assert_eq!(created.status, 201, "{created:?}");
        let got = site.client.get(&path).await.body;
        for (key, value) in shown.as_object().unwrap() {
            assert_eq!((&created.body[key], &got[key]), (value, value), "{board}.{key}");
        }
        let sent_back: serde_json::Map<_, _> = keys.iter().map(|key| (key.to_string(), got[key].clone())).collect();
        assert_eq!(site.client.put(&path, Value::from(sent_back)).await.status, 200, "{board}");
    }
    let changed = json!({"metric": "AVG(30d, rating, stars, film)", "slot": "1d", "min_samples": 11});
    let conflict = site.client.put("/v1/boards/avg", changed).await;
    assert_eq!(
        (conflict.refusal(), &conflict.body["keys"]),
        ((409, "board_conflict"), &json!(["min_samples", "stamp"]))
    );
}

#[actix_web::test]
async fn a_board_shows_its_slots() {
    let site = Site::with_board("b").await;
    site.client.count("b", &["a", "a", "b"]).await;
    site.client.add("b", json!({"subject": "a", "at": "2026-01-01T11:30:00Z"})).await;
    let board = site.client.get("/v1/boards/b").await.body;
    assert_eq!((&board["head"], &board["floor"]), (&json!("2026-01-02T10:00:00Z"), &json!("2026-01-01T11:00:00Z")));
    assert_eq!((&board["total"], &board["retiring"], &board["retiring_slots"]), (&json!(2), &json!(0), &json!([])));
    assert_eq!(
        board["slots"],
        json!([{"from": "2026-01-01T11:00:00Z", "to": "2026-01-01T12:00:00Z", "subjects": 1, "events": 1},
            {"from": "2026-01-02T10:00:00Z", "to": "2026-01-02T11:00:00Z", "subjects": 2, "events": 3}])
    );
    site.client.set_clock("2026-01-02T11:00:00Z").await;
    let board = site.client.get("/v1/boards/b").await.body;
    assert_eq!(board["retiring"], 1);
    let retiring = json!([{"from": "2026-01-01T11:00:00Z", "to": "2026-01-01T12:00:00Z", "subjects": 1}]);
    assert_eq!(board["retiring_slots"], retiring);

    site.client.put("/v1/boards/c", json!({"metric": "COUNT(1h, x, y)", "slot": "1h", "ranked": false})).await;
    site.client.count("c", &["a", "a", "b"]).await;
    let slot = json!([{"from": "2026-01-02T11:00:00Z", "to": "2026-01-02T12:00:00Z", "subjects": null, "events": 3}]);
    assert_eq!(site.client.get("/v1/boards/c").await.body["slots"], slot);
}

#[actix_web::test]
async fn removing_a_board_deletes_its_data() {
    let site = Site::with_board("b").await;
    site.client.define("a", "COUNT(1h, x, y)", "1m").await;
    let list = site.client.get("/v1/boards").await.body;
    let names: Vec<_> = list["items"].as_array().unwrap().iter().map(|board| board["board"].clone()).collect();
    assert_eq!(names, ["a", "b"]);
    site.client.count("b", &["x"]).await;
    let removed = site.client.delete("/v1/boards/b").await;
    assert_eq!((removed.status, &removed.body["metric"]), (200, &json!("COUNT(24h, like, post_id)")));
    assert_eq!(site.client.delete("/v1/boards/b").await.refusal(), (404, "unknown_board"));
    assert_eq!(site.client.get("/v1/boards/b").await.body["board"], "b");
    assert_eq!(site.client.define("b", "COUNT(24h, like, post_id)", "1h").await.status, 201);
    let page = site.client.get("/v1/boards/b/rankings").await.body;
    assert_eq!((&page["total"], &page["next"]), (&json!(0), &Value::Null));
}

#[actix_web::test]
async fn a_dry_run_shows_the_canonical_definition_and_changes_nothing() {
    let site = Site::new().await;
    let definition =
        json!({"metric": "sum( 7d,sale,amount , seller_id)", "slot": "1h", "decimals": 2, "cover": "full"});
    let dry = "/v1/boards/sellers?dry_run=true";
    let calls = site.switch.calls();
    let preview = site.client.put(dry, definition.clone()).await;
    assert_eq!((preview.status, preview.header("location"), site.switch.calls() - calls), (200, "", 1), "{preview:?}");
    assert_eq!(site.client.get("/v1/boards/sellers").await.refusal(), (404, "unknown_board"));
    let created = site.client.put("/v1/boards/sellers?dry_run=false", definition.clone()).await;
    assert_eq!(created.status, 201);
    let mut expected = site.client.get("/v1/boards").await.body["items"][0].clone();
    for of_the_board in ["generation", "defined_at"] {
        expected.as_object_mut().unwrap().remove(of_the_board);
    }
    expected["dry_run"] = json!(true);
    expected["exists"] = json!(false);
    expected["conflict"] = Value::Null;
    expected["bytes_per_subject"] = preview.body["bytes_per_subject"].clone();
    assert_eq!(preview.body, expected);
    let again = site.client.put(dry, definition.clone()).await.body;
    assert_eq!((&again["exists"], &again["conflict"]), (&json!(true), &Value::Null));
    let mut other = definition;
    (other["slot"], other["decimals"]) = (json!("1d"), json!(0));
    let conflict = site.client.put(dry, other.clone()).await;
    let refused = site.client.put("/v1/boards/sellers", other).await;
    assert_eq!((conflict.status, refused.refusal()), (200, (409, "board_conflict")));
    let expected = json!({"keys": refused.body["keys"], "existing": refused.body["existing"]});
    assert_eq!((&conflict.body["exists"], &conflict.body["conflict"]), (&json!(true), &expected));
    assert_eq!((&conflict.body["slot"], &conflict.body["slots_in_window"]), (&json!("1d"), &json!(8)));
}

#[actix_web::test]
async fn a_dry_run_refuses_what_a_definition_refuses() {
    let site = Site::new().await;
    let metric = "COUNT(24h, like, post_id)";
    for (name, body) in [
        ("b", json!({"metric": "MEDIAN(24h, a, b)", "slot": "1h"})),
        ("b", json!({"metric": metric, "slot": "7m"})),
        ("b", json!({"metric": metric, "slot": "1h", "decimals": 10})),
        ("b", json!({"metric": metric, "slot": "1h", "keep": "48h"})),
        ("b", json!({"metric": metric, "slot": "1h", "colour": "red"})),
        ("b", json!({"metric": metric, "slot": "1h", "windows": ["1h/7m"]})),
        ("b", json!({"metric": "COUNT(all, like, post_id)", "slot": "7m", "keep": "30d"})),
        ("b", json!([])),
        ("Upper", json!({"metric": metric, "slot": "1h"})),
    ] {
        let refused = site.client.put(&format!("/v1/boards/{name}"), body.clone()).await;
        let mut dry = site.client.put(&format!("/v1/boards/{name}?dry_run=true"), body.clone()).await;
        assert_eq!(refused.status, 422, "{body}");
        dry.body["request_id"] = refused.body["request_id"].clone();
        assert_eq!((dry.status, &dry.body), (refused.status, &refused.body), "{body}");
    }
    let body = json!({"metric": metric, "slot": "1h"});
    let answer = site.client.put("/v1/boards/b?dry_run=yes", body.clone()).await;
    assert_eq!((answer.refusal(), &answer.body["field"]), ((422, "invalid_field"), &json!("dry_run")));
    site.switch.refuse_writes();
    assert_eq!(site.client.put("/v1/boards/b", body.clone()).await.refusal(), (503, "store_read_only"));
    assert_eq!(site.client.put("/v1/boards/b?dry_run=true", body).await.status, 200);
}

#[actix_web::test]
async fn a_dry_run_estimates_the_memory_of_a_subject() {
    let site = Site::new().await;
    let bytes = async |definition: Value| {
        let preview = site.client.put("/v1/boards/b?dry_run=true", definition).await.body;
        let shown = &preview["bytes_per_subject"];
        ["one_slot", "all_slots", "each_value", "at_most"].map(|member| shown[member].as_u64())
    };
    let [one, all, each, most] = bytes(json!({"metric": "COUNT(24h, like, post_id)", "slot": "1h"})).await;
    assert!(one < all && all == most && each.is_none(), "{one:?} {all:?} {each:?} {most:?}");
    let unranked = json!({"metric": "COUNT(24h, like, post_id)", "slot": "1h", "ranked": false});
    assert!(bytes(unranked).await[0] < one);
    let values = json!({"metric": "COUNT_DISTINCT(24h, like, post_id, user)", "slot": "1h"});
    let [_, _, each, most] = bytes(values).await;
    assert!(each.is_some() && most.is_none(), "{each:?} {most:?}");
    let capped = json!({"metric": "COUNT_DISTINCT(24h, like, post_id, user)", "slot": "1h", "max_values": 1000});
    assert!(bytes(capped).await[3] > Some(1_000 * 24));
}

#[actix_web::test]
async fn a_dry_run_and_a_board_say_what_ids_cost_for_the_horizon() {
    let site = Site::new().await;
    for (keys, horizon, stored_at_most) in [
        (json!({"metric": "COUNT(2h, like, post_id)", "slot": "15m"}), "2h", "3h"),
        (json!({"metric": "COUNT(2h, like, post_id)", "slot": "15m", "cover": "full"}), "135m", "195m"),
        (json!({"metric": "COUNT(7d, like, post_id)", "slot": "1h"}), "24h", "36h"),
        (json!({"metric": "COUNT(7d, like, post_id)", "slot": "1h", "dedupe": "7d"}), "7d", "252h"),
        (json!({"metric": "COUNT(2h, like, post_id)", "slot": "15m", "dedupe": "90m"}), "90m", "135m"),
        (json!({"metric": "COUNT(all, like, post_id)", "dedupe": "90d"}), "90d", "135d"),
    ] {
        let expected = json!({"horizon": horizon, "stored_at_most": stored_at_most, "bytes_per_id": 37});
        assert_eq!(site.client.put("/v1/boards/b?dry_run=true", keys.clone()).await.body["ids"], expected, "{keys}");
        let defined = site.client.put("/v1/boards/b", keys.clone()).await;
        assert_eq!((defined.status, &defined.body["ids"]), (201, &expected), "{keys}");
        let shown = site.client.get("/v1/boards/b").await.body;
        assert_eq!((&shown["ids"], &shown["dedupe"]), (&expected, &keys["dedupe"]), "{keys}");
        // The key is part of the definition.
        let mut other = keys.clone();
        other["dedupe"] = json!("3h");
        let conflict = site.client.put("/v1/boards/b", other).await;
        assert_eq!((conflict.refusal(), &conflict.body["keys"]), ((409, "board_conflict"), &json!(["dedupe"])));
        assert_eq!(site.client.delete("/v1/boards/b").await.status, 200);
    }
}
