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

fn field(body: &Value, name: &str) -> Vec<Value> {
    body["items"].as_array().unwrap().iter().map(|item| item[name].clone()).collect()
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
    // Ranks are those on the whole board, where z is the first.
    let expected = vec![line(2, "w", 20), line(2, "y", 20), line(4, "x", 30), line(Value::Null, "absent", 0)];
    assert_eq!(lines(&among.body), expected);
    assert_eq!(field(&among.body, "rank_among"), [json!(1), json!(1), json!(3), Value::Null]);
    assert_eq!(field(&among.body, "percentile"), [json!(75.0), json!(75.0), json!(25.0), Value::Null]);
}

#[actix_web::test]
async fn a_lookup_ranks_the_given_subjects_each_once() {
    let site = Site::with_board("b").await;
    site.client.count("b", &["a", "b", "b", "c", "c", "d", "d", "d"]).await;
    let given = json!({"subjects": ["none-2", "a", "c", "a", "none-1", "b", "none-2"]});
    let among = site.client.post("/v1/boards/b/rankings/lookup", given).await;
    let expected = vec![
        line(2, "c", 2),
        line(2, "b", 2),
        line(4, "a", 1),
        line(Value::Null, "none-2", 0),
        line(Value::Null, "none-1", 0),
    ];
    assert_eq!((lines(&among.body), &among.body["total"]), (expected, &json!(4)));
    assert_eq!(field(&among.body, "rank_among"), [json!(1), json!(1), json!(3), Value::Null, Value::Null]);
    assert_eq!(among.body["window"]["slots"], 24);
    for item in among.body["items"].as_array().unwrap() {
        let standing = site.client.get(&format!("/v1/boards/b/subjects/{}", item["subject"].as_str().unwrap())).await;
        for name in ["rank", "score", "percentile"] {
            assert_eq!(item[name], standing.body[name], "{name} of {item}");
        }
    }
    for (body, field) in [
        (json!({"subjects": []}), "subjects"),
        (json!({"subjects": vec!["x"; 201]}), "subjects"),
        (json!({"subjects": vec!["x"; 1_001], "ranks": false}), "subjects"),
        (json!({"subjects": ["a"], "ranks": "no"}), "ranks"),
        (json!({"subjects": "a"}), "subjects"),
        (json!({"subjects": ["a", 5]}), "subjects[1]"),
        (json!({"subjects": ["a", "b", ""]}), "subjects[2]"),
        (json!({}), "subjects"),
    ] {
        let answer = site.client.post("/v1/boards/b/rankings/lookup", body).await;
        assert_eq!((answer.refusal(), &answer.body["field"]), ((422, "invalid_field"), &json!(field)), "{answer:?}");
    }
}

#[actix_web::test]
async fn a_lookup_without_ranks_may_be_of_a_thousand_subjects() {
    let site = Site::with_board("b").await;
    site.client.count("b", &["s1", "s2", "s2", "s3"]).await;
    let subjects: Vec<String> = (0..1_000).map(|i| format!("s{i}")).collect();
    let lookup = async |body| site.client.post("/v1/boards/b/rankings/lookup", body).await;
    let answer = lookup(json!({"subjects": subjects, "ranks": false})).await;
    let items = answer.body["items"].as_array().unwrap();
    assert_eq!(items.len(), 1_000);
    assert_eq!(
        items[..4],
        [
            json!({"rank": null, "rank_among": 1, "subject": "s2", "score": 2, "percentile": null}),
            json!({"rank": null, "rank_among": 2, "subject": "s3", "score": 1, "percentile": null}),
            json!({"rank": null, "rank_among": 2, "subject": "s1", "score": 1, "percentile": null}),
            json!({"rank": null, "rank_among": null, "subject": "s0", "score": 0, "percentile": null}),
        ]
    );
    for ranks in [json!(true), Value::Null] {
        let answer = lookup(json!({"subjects": subjects[..200], "ranks": ranks})).await;
        assert_eq!(answer.body["items"][0]["rank"], 1, "{answer:?}");
        let refused = lookup(json!({"subjects": subjects[..201], "ranks": ranks})).await;
        assert_eq!(refused.refusal(), (422, "invalid_field"));
        let detail = "'subjects' must have 1 to 200 elements, or 1 to 1000 with \"ranks\": false, not 201";
        assert_eq!((&refused.body["detail"], &refused.body["maximum"]), (&json!(detail), &json!(200)));
    }
}
