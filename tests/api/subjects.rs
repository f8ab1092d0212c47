//! One subject, whatever it is called.

use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::{Value, json};

use crate::site::Site;

#[actix_web::test]
async fn a_standing_has_rank_percentile_and_slots() {
    let site = Site::with_board("b").await;
    site.client.count("b", &["a", "a", "b", "c", "d"]).await;
    site.client.add("b", json!({"subject": "a", "amount": 3, "at": "2026-01-02T08:30:00Z"})).await;
    let standing = site.client.get("/v1/boards/b/subjects/a").await;
    assert_eq!(
        standing.body,
        json!({
            "board": "b", "subject": "a", "score": 5, "rank": 1, "percentile": 100.0, "total": 4,
            "window": {"from": "2026-01-01T11:00:00Z", "to": "2026-01-02T11:00:00Z", "slots": 24},
            "as_of": "2026-01-02T10:07:00Z", "retiring": 0,
            "slots": [
                {"from": "2026-01-02T08:00:00Z", "to": "2026-01-02T09:00:00Z", "count": 3},
                {"from": "2026-01-02T10:00:00Z", "to": "2026-01-02T11:00:00Z", "count": 2},
            ],
        })
    );
    assert_eq!(site.client.get("/v1/boards/b/subjects/b").await.body["percentile"], 75.0);
    let absent = site.client.get("/v1/boards/b/subjects/absent").await;
    assert_eq!((absent.status, &absent.body["score"]), (200, &json!(0)));
    assert_eq!(
        (&absent.body["rank"], &absent.body["percentile"], &absent.body["slots"]),
        (&Value::Null, &Value::Null, &json!([]))
    );
}

#[actix_web::test]
async fn shorter_windows_are_rounded_up_to_whole_slots() {
    let site = Site::with_board("b").await;
    for (at, amount) in [("2026-01-02T10:01:00Z", 1), ("2026-01-02T09:01:00Z", 10), ("2026-01-02T05:00:00Z", 100)] {
        site.client.add("b", json!({"subject": "a", "amount": amount, "at": at})).await;
    }
    let path = "/v1/boards/b/subjects/a/window";
    for (query, count, from, slots) in [
        ("last=1s", 1, "2026-01-02T10:00:00Z", 1),
        ("last=1h", 1, "2026-01-02T10:00:00Z", 1),
        ("last=61m", 11, "2026-01-02T09:00:00Z", 2),
        ("last=1d", 111, "2026-01-01T11:00:00Z", 24),
        ("from=2026-01-02T05:59:59.999Z", 111, "2026-01-02T05:00:00Z", 6),
        ("from=2026-01-02T07:00:00%2B01:00", 11, "2026-01-02T06:00:00Z", 5),
        ("from=2026-01-02T10:07:00Z", 1, "2026-01-02T10:00:00Z", 1),
        ("", 111, "2026-01-01T11:00:00Z", 24),
    ] {
        let answer = site.client.get(&format!("{path}?{query}")).await;
        let window = json!({"from": from, "to": "2026-01-02T11:00:00Z", "slots": slots});
        assert_eq!((&answer.body["count"], &answer.body["window"]), (&json!(count), &window), "{query}: {answer:?}");
        assert_eq!((&answer.body["value"], &answer.body["edge"]), (&json!(count), &json!("slots")), "{query}");
    }
    let shown = site.client.get(&format!("{path}?last=6h")).await;
    assert_eq!(
        (&shown.body["last"], shown.body.get("from"), &shown.body["as_of"]),
        (&json!("6h"), None, &json!("2026-01-02T10:07:00Z"))
    );
    for (query, code) in [
        ("last=1h&from=2026-01-02T05:00:00Z", "invalid_field"),
        ("last=0h", "invalid_field"),
        ("last=1mo", "invalid_field"),
        ("last=25h", "beyond_window"),
        ("last=4294967295w", "beyond_window"),
        ("from=2026-01-01T10:59:59Z", "beyond_window"),
        ("from=2026-01-02T10:07:01Z", "invalid_field"),
        ("from=2027-01-02T10:07:01Z", "invalid_field"),
        ("from=soon", "invalid_field"),
        ("lsat=1h", "unknown_field"),
    ] {
        let answer = site.client.get(&format!("{path}?{query}")).await;
        assert_eq!(answer.refusal(), (422, code), "{query}: {answer:?}");
    }
}

#[actix_web::test]
async fn neighbors_include_subjects_on_both_sides() {
    let site = Site::with_board("b").await;
    let subjects: Vec<String> = (0..30).map(|n| format!("s{n:02}")).collect();
    site.client.count("b", &subjects.iter().map(String::as_str).collect::<Vec<_>>()).await;
    let around = async |query: &str| {
        let answer = site.client.get(&format!("/v1/boards/b/subjects/{query}")).await;
        let items = answer.body["items"].as_array().unwrap_or_else(|| panic!("{answer:?}")).clone();
        items.iter().map(|item| item["subject"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(around("s15/neighbors?radius=1").await, ["s16", "s15", "s14"]);
    assert_eq!(around("s15/neighbors").await.len(), 11);
    assert_eq!(around("s29/neighbors?radius=2").await, ["s29", "s28", "s27"]);
    assert_eq!(around("absent/neighbors").await, [""; 0]);
    for radius in ["0", "101", "x"] {
        let answer = site.client.get(&format!("/v1/boards/b/subjects/s15/neighbors?radius={radius}")).await;
        assert_eq!(answer.refusal(), (422, "invalid_field"));
    }
}

#[actix_web::test]
async fn removing_a_subject_returns_its_data_and_deletes_it() {
    let site = Site::with_board("b").await;
    site.client.count("b", &["a", "a", "b"]).await;
    site.client.add("b", json!({"subject": "a", "at": "2026-01-02T07:00:00Z"})).await;
    let receipt = site.client.delete("/v1/boards/b/subjects/a").await;
    let expected = json!({"board": "b", "subject": "a", "score": 3, "live_slots": 2, "retiring_slots": 0,
        "as_of": "2026-01-02T10:07:00Z"});
    assert_eq!((receipt.status, receipt.body), (200, expected));
    assert_eq!(site.client.score("b", "a").await, 0);
    assert_eq!(site.client.get("/v1/boards/b/rankings").await.body["total"], 1);
    assert_eq!(site.client.delete("/v1/boards/b/subjects/a").await.body["score"], 0);
}

#[actix_web::test]
async fn every_subject_can_be_encoded_in_a_path() {
    let site = Site::with_board("b").await;
    let long = "é".repeat(256);
    let subjects = [
        "a/b",
        "/",
        "//",
        "/window",
        "x/window",
        "x/neighbors?radius=1",
        "a b",
        "a+b",
        "100%",
        "%2F",
        "%252F",
        "a?b=c#d",
        "🎉",
        "日本語",
        ".",
        "..",
        "../..",
        "../../x/rankings",
        "{b}:1",
        "\u{202e}rtl",
        "&=;",
        "\"quoted\"",
        "\\",
        long.as_str(),
        "window",
        "%",
        "a%zz",
        "e\u{301}",
        "é",
    ];
    for (at, subject) in subjects.iter().enumerate() {
        let answer = site.client.add("b", json!({"subject": subject, "amount": at + 1})).await;
        assert_eq!(answer.body["accepted"], 1, "{subject}: {answer:?}");
    }
    for (at, subject) in subjects.iter().enumerate() {
        let path = format!("/v1/boards/b/subjects/{}", utf8_percent_encode(subject, NON_ALPHANUMERIC));
        // As it is written: a library would resolve dots before sending.
        let (status, standing) = site.client.raw_get(&path).await;
        assert_eq!(
            (status, &standing["subject"], &standing["score"]),
            (200, &json!(subject), &json!(at + 1)),
            "{path}"
        );
        let (status, count) = site.client.raw_get(&format!("{path}/window?last=24h")).await;
        assert_eq!((status, &count["subject"], &count["count"]), (200, &json!(subject), &json!(at + 1)), "{path}");
        let (status, around) = site.client.raw_get(&format!("{path}/neighbors?radius=1")).await;
        assert_eq!((status, &around["subject"]), (200, &json!(subject)), "{path}");
    }
    // What need not be encoded may be sent as it is.
    assert_eq!(site.client.raw_get("/v1/boards/b/subjects/a+b").await.1["score"], 8);
    assert_eq!(site.client.raw_get("/v1/boards/b/subjects/..").await.1["subject"], "..");
    let removed =
        site.client.raw(b"DELETE /v1/boards/b/subjects/%2e%2E HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n").await;
    assert!(removed.contains(r#""subject":"..","score":16"#), "{removed}");
}

#[actix_web::test]
async fn an_invalid_subject_is_a_bad_request() {
    let site = Site::with_board("b").await;
    let too_long = "x".repeat(513);
    for encoded in ["%FF", "%ED%A0%80", "a%", "a%2", "%zz", "%00", "%0A", "%C2%85", too_long.as_str()] {
        for tail in ["", "/window?last=1h", "/neighbors"] {
            let (status, body) = site.client.raw_get(&format!("/v1/boards/b/subjects/{encoded}{tail}")).await;
            assert_eq!((status, &body["code"]), (400, &json!("invalid_subject")), "{encoded}{tail}: {body}");
        }
    }
}
