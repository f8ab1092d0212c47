//! Definitions with further windows, and reads of windows that a board does not have.

use serde_json::{Value, json};

use crate::client::Answer;
use crate::site::Site;
use crate::windows_of_a_board::{WINDOWS, defined, definition, refused_window};

#[actix_web::test]
async fn a_definition_has_its_windows_and_cannot_change_them() {
    let site = defined().await;
    let windows = json!(["1h/1m", "7d/6h", "all"]);
    let list = site.client.get("/v1/boards").await;
    assert_eq!(list.body["items"][0]["windows"], windows, "{list:?}");
    let again = site.client.put("/v1/boards/tabs", definition()).await;
    assert_eq!((again.status, &again.body["windows"]), (200, &windows), "{again:?}");
    for changed in [json!([]), json!(["1h/1m", "7d/6h"]), json!(["7d/6h", "1h/1m", "all"]), json!(["1h/5m"])] {
        let mut other = definition();
        other["windows"] = changed;
        let answer = site.client.put("/v1/boards/tabs", other.clone()).await;
        assert_eq!((answer.refusal(), &answer.body["keys"]), ((409, "board_conflict"), &json!(["windows"])));
        assert_eq!(answer.body["existing"]["windows"], windows);
        let dry = site.client.put("/v1/boards/tabs?dry_run=true", other).await;
        assert_eq!(dry.body["conflict"]["keys"], json!(["windows"]), "{dry:?}");
    }
    for (windows, says) in [
        (json!(["24h/1m"]), "two windows of one length"),
        (json!(["7d/1m"]), "7d/1m"),
        (json!(["7d"]), "has no slot"),
        (json!(["all/1h"]), "all without a slot"),
        (json!("7d/6h"), "windows"),
    ] {
        let mut wrong = definition();
        wrong["windows"] = windows;
        let answer = site.client.put("/v1/boards/other", wrong).await;
        assert_eq!((answer.refusal(), &answer.body["field"]), ((422, "invalid_field"), &json!("windows")));
        assert!(answer.body["detail"].as_str().unwrap().contains(says), "{says}: {answer:?}");
    }
}

#[actix_web::test]
async fn a_dry_run_shows_what_each_window_costs() {
    let site = Site::new().await;
    let dry = site.client.put("/v1/boards/tabs?dry_run=true", definition()).await;
    let windows = dry.body["each_window"].as_array().expect("windows");
    let shown: Vec<_> =
        windows.iter().map(|window| (&window["length"], &window["slot"], &window["slots_in_window"])).collect();
    let expected =
        [("24h", json!("1h"), 24), ("1h", json!("1m"), 60), ("7d", json!("6h"), 28), ("all", Value::Null, 0)]
            .map(|(length, slot, slots)| (json!(length), slot, json!(slots)));
    assert_eq!(shown, expected.iter().map(|(length, slot, slots)| (length, slot, slots)).collect::<Vec<_>>());
    for key in ["one_slot", "all_slots", "at_most"] {
        let of_windows: u64 = windows.iter().map(|window| window["bytes_per_subject"][key].as_u64().unwrap()).sum();
        assert_eq!(dry.body["bytes_per_subject"][key], of_windows, "{key}");
    }
    for (window, alone) in [
        (0, json!({"metric": "COUNT(24h, like, post_id)", "slot": "1h"})),
        (1, json!({"metric": "COUNT(1h, like, post_id)", "slot": "1m"})),
        (3, json!({"metric": "COUNT(all, like, post_id)"})),
    ] {
        let alone = site.client.put("/v1/boards/one?dry_run=true", alone).await;
        assert_eq!(windows[window]["bytes_per_subject"], alone.body["bytes_per_subject"], "{window}");
    }
    // The time zone, the cover and the horizon of ids may have no meaning for one of the windows.
    let definition = json!({"metric": "COUNT(all, like, post_id)", "windows": ["1d/1h"], "dedupe": "30d",
        "timezone": "Europe/Berlin", "cover": "full"});
    let dry = site.client.put("/v1/boards/tabs?dry_run=true", definition).await;
    assert_eq!((dry.status, &dry.body["each_window"][1]["slots_in_window"]), (200, &json!(25)), "{dry:?}");
    let one = site.client.put("/v1/boards/one?dry_run=true", json!({"metric": "COUNT(all, like, post_id)"})).await;
    assert_eq!((one.body.get("each_window"), &one.body["windows"]), (None, &json!([])), "{one:?}");
}

#[actix_web::test]
async fn a_window_that_the_board_does_not_have_is_refused() {
    let site = defined().await;
    site.client.define("one", "COUNT(24h, like, post_id)", "1h").await;
    let paths = ["/rankings?", "/subjects/a?", "/subjects/a/neighbors?radius=2&", "/subjects/a/window?last=1h&"];
    for path in paths {
        let detail = |answer: Answer| refused_window(&answer).to_owned();
        let get = |board: &str, window: &str| {
            let path = format!("/v1/boards/{board}{path}window={window}");
            let site = &site;
            async move { site.client.get(&path).await }
        };
        assert!(
            detail(get("tabs", "2h").await).ends_with("has no window '2h'; the board has the windows 24h, 1h, 7d, all")
        );
        assert_eq!(get("tabs", "2h").await.body["windows"], json!(WINDOWS));
        assert!(detail(get("one", "7d").await).ends_with("has no window '7d'; its only window is 24h"));
        assert!(detail(get("one", "all").await).ends_with("has no window 'all'; its only window is 24h"));
        assert!(detail(get("one", "day").await).contains("such as 7d, or all"));
        for own in ["24h", "1d", "1440m"] {
            for board in ["one", "tabs"] {
                assert_eq!(get(board, own).await.status, 200, "{path} {own}");
            }
        }
    }
    let lookup = site.client.post("/v1/boards/one/rankings/lookup?window=7d", json!({"subjects": ["a"]})).await;
    assert!(refused_window(&lookup).ends_with("its only window is 24h"), "{lookup:?}");
    let body = json!({"queries": [{"board": "one", "subject": "a", "window": "7d"}]});
    let answer = site.client.post("/v1/query", body).await;
    assert_eq!(answer.body["answers"][0]["error"]["field"], "window", "{answer:?}");
    // Other operations are about the whole board.
    for path in ["/v1/boards/tabs?window=1h", "/v1/boards?window=1h"] {
        assert_eq!(site.client.get(path).await.refusal().1, "unknown_field", "{path}");
    }
}

#[actix_web::test]
async fn samples_are_refused() {
    let site = defined().await;
    let sample = json!({"subject": "a", "amount": 4, "at": "2026-01-02T10:00:00Z"});
    let answer = site.client.put("/v1/boards/tabs/samples", sample).await;
    assert_eq!(answer.refusal(), (409, "samples_unsupported"));
    let detail = answer.body["detail"].as_str().unwrap();
    assert!(detail.contains("further windows") && detail.contains("send increments"), "{detail}");
}

#[actix_web::test]
async fn windows_are_those_of_the_board_that_is_there_now_whatever_an_instance_knows() {
    let site = defined().await;
    let path = |window: &str| format!("/v1/boards/tabs/rankings{window}");
    assert_eq!(site.client.get(&path("?window=7d")).await.status, 200);
    let other = site.second_instance();
    assert_eq!(other.delete("/v1/boards/tabs").await.status, 200);
    let definition = json!({"metric": "COUNT(12h, like, post_id)", "slot": "1h", "windows": ["24h/6h", "30d/1d"]});
    assert_eq!(other.put("/v1/boards/tabs", definition).await.status, 201);
    // A window that only the earlier board had, from an instance that still knows that board.
    let gone = site.client.get(&path("?window=7d")).await;
    assert!(refused_window(&gone).ends_with("the board has the windows 12h, 24h, 30d"), "{gone:?}");
    for (window, metric) in [("", "12h"), ("?window=30d", "30d"), ("?window=24h", "24h")] {
        let page = site.client.get(&path(window)).await;
        assert_eq!(page.body["metric"], format!("COUNT({metric}, like, post_id)"), "{page:?}");
    }
}

#[actix_web::test]
async fn an_error_in_the_list_of_windows_names_the_list_and_the_window() {
    let site = Site::new().await;
    for window in ["7d/7h", "7d/5d", "1h/2h", "1mo/1d", "1h/7m", "7d/6h/1h", "7d", "all/1h"] {
        for path in ["/v1/boards/tabs", "/v1/boards/tabs?dry_run=true"] {
            let body = json!({"metric": "COUNT(24h, like, post_id)", "slot": "1h", "windows": [window]});
            let refused = site.client.put(path, body).await;
            assert_eq!(
                (refused.status, &refused.body["field"]),
                (422, &json!("windows")),
                "{window}: {:?}",
                refused.body
            );
        }
    }
}

/// Tests an instance that knows an earlier board, whose main window is a further window now.
#[actix_web::test]
async fn what_is_done_to_a_board_is_done_to_all_windows_of_the_board_that_is_there_now() {
    for request in ["remove", "audit", "rollover", "dry run", "status", "read"] {
        let site = defined().await;
        let other = site.second_instance();
        assert_eq!(other.delete("/v1/boards/tabs").await.status, 200);
        let definition = json!({"metric": "COUNT(1h, like, post_id)", "slot": "1m", "windows": ["24h/1h", "all"]});
        assert_eq!(other.put("/v1/boards/tabs", definition).await.status, 201);
        other.count("tabs", &["a", "b"]).await;
        match request {
            "remove" => {
                assert_eq!(site.client.delete("/v1/boards/tabs/subjects/a").await.body["score"], 1);
                for window in ["1h", "24h", "all"] {
                    let page = other.get(&format!("/v1/boards/tabs/rankings?window={window}")).await;
                    assert_eq!(page.body["total"], 1, "{window}: {page:?}");
                }
            }
            "audit" => {
                let report = site.client.post("/v1/boards/tabs/audit", json!(null)).await;
                assert_eq!(report.body["subjects_checked"], 6, "{report:?}");
            }
            "rollover" => {
                let report = site.client.post("/v1/boards/tabs/rollover", json!(null)).await;
                assert_eq!(report.body["board"], "tabs", "{report:?}");
            }
            "dry run" => {
                let report = site.client.post("/v1/boards/tabs/rollover?dry_run=true", json!(null)).await;
                assert_eq!(report.status, 200, "{report:?}");
            }
            "status" => {
                let status = site.client.get("/v1/boards/tabs").await;
                assert_eq!(status.body["windows"], json!(["24h/1h", "all"]), "{status:?}");
                assert_eq!(status.body["each_window"].as_array().map(Vec::len), Some(3), "{status:?}");
            }
            _ => {
                // The request may have chosen the window by its length, so it is not answered with another one.
                let refused = site.client.get("/v1/boards/tabs/rankings?window=24h").await;
                assert_eq!(refused.refusal(), (409, "board_changed"));
                for (window, metric) in [("", "1h"), ("?window=24h", "24h")] {
                    let page = site.client.get(&format!("/v1/boards/tabs/rankings{window}")).await;
                    assert_eq!(page.body["metric"], format!("COUNT({metric}, like, post_id)"), "{page:?}");
                }
            }
        }
    }
}
