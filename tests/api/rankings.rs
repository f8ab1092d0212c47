//! Pages of the top, and look-ups.

use serde_json::{Value, json};

use crate::site::Site;

fn lines(body: &Value) -> Vec<(Value, String, Value)> {
    let line =
        |item: &Value| (item["rank"].clone(), item["subject"].as_str().unwrap().to_owned(), item["score"].clone());
    body["items"].as_array().unwrap().iter().map(line).collect()
}

fn line(rank: impl Into<Value>, subject: &str, score: i64) -> (Value, String, Value) {
    (rank.into(), subject.to_owned(), score.into())
}

#[actix_web::test]
async fn a_page_has_its_board_metric_window_and_time() {
    let site = Site::with_board("b").await;
    site.client.count("b", &["a", "b", "b", "c", "c", "d"]).await;
    let page = site.client.get("/v1/boards/b/rankings").await;
    assert_eq!(
        page.body,
        json!({
            "board": "b", "metric": "COUNT(24h, like, post_id)",
            "window": {"from": "2026-01-01T11:00:00Z", "to": "2026-01-02T11:00:00Z", "slots": 24},
            "as_of": "2026-01-02T10:07:00Z", "retiring": 0, "total": 4,
            "items": [
                {"rank": 1, "subject": "c", "score": 2}, {"rank": 1, "subject": "b", "score": 2},
                {"rank": 3, "subject": "d", "score": 1}, {"rank": 3, "subject": "a", "score": 1},
            ],
            "next": null,
        })
    );
}

#[actix_web::test]
async fn following_next_reads_every_line_once() {
    let site = Site::with_board("b").await;
    let subjects: Vec<String> = (0..25).map(|n| format!("s{n:02}")).collect();
    site.client.count("b", &subjects.iter().map(String::as_str).collect::<Vec<_>>()).await;
    let (mut seen, mut next) = (Vec::new(), Some("/v1/boards/b/rankings?limit=7".to_owned()));
    while let Some(path) = next {
        let page = site.client.get(&path).await;
        seen.extend(lines(&page.body).into_iter().map(|(_, subject, _)| subject));
        next = page.body["next"].as_str().map(str::to_owned);
    }
    seen.reverse();
    assert_eq!(seen, subjects);
    let beyond = site.client.get("/v1/boards/b/rankings?offset=1000000000").await;
    assert_eq!((lines(&beyond.body), &beyond.body["next"]), (vec![], &Value::Null));
}

#[actix_web::test]
async fn an_ascending_board_has_the_lowest_on_top() {
    let site = Site::new().await;
    let definition = json!({"metric": "SUM(1d, lap, ms, driver)", "slot": "1h", "order": "asc"});
    site.client.put("/v1/boards/laps", definition).await;
    let times = json!({"increments": [{"subject": "x", "amount": 30}, {"subject": "y", "amount": 20},
        {"subject": "w", "amount": 20}, {"subject": "z", "amount": 10}]});
    site.client.add("laps", times).await;
    let expected = vec![line(1, "z", 10), line(2, "w", 20), line(2, "y", 20), line(4, "x", 30)];
    assert_eq!(lines(&site.client.get("/v1/boards/laps/rankings").await.body), expected);
    let given = json!({"subjects": ["x", "y", "absent", "w"]});
    let among = site.client.post("/v1/boards/laps/rankings/lookup", given).await;
    let expected = vec![line(1, "w", 20), line(1, "y", 20), line(3, "x", 30), line(Value::Null, "absent", 0)];
    assert_eq!(lines(&among.body), expected);
}

#[actix_web::test]
async fn a_lookup_ranks_the_given_subjects_each_once() {
    let site = Site::with_board("b").await;
    site.client.count("b", &["a", "b", "b", "c", "c", "d", "d", "d"]).await;
    let given = json!({"subjects": ["none-2", "a", "c", "a", "none-1", "b", "none-2"]});
    let among = site.client.post("/v1/boards/b/rankings/lookup", given).await;
    let expected = vec![
        line(1, "c", 2),
        line(1, "b", 2),
        line(3, "a", 1),
        line(Value::Null, "none-2", 0),
        line(Value::Null, "none-1", 0),
    ];
    assert_eq!((lines(&among.body), &among.body["total"]), (expected, &json!(4)));
    assert_eq!(among.body["window"]["slots"], 24);
    for (body, field) in [
        (json!({"subjects": []}), "subjects"),
        (json!({"subjects": vec!["x"; 1_001]}), "subjects"),
        (json!({"subjects": "a"}), "subjects"),
        (json!({"subjects": ["a", 5]}), "subjects[1]"),
        (json!({"subjects": ["a", "b", ""]}), "subjects[2]"),
        (json!({}), "subjects"),
    ] {
        let answer = site.client.post("/v1/boards/b/rankings/lookup", body).await;
        assert_eq!((answer.refusal(), &answer.body["field"]), ((422, "invalid_field"), &json!(field)), "{answer:?}");
    }
}
