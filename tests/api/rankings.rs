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
            "next": null, "prev": null,
        })
    );
}

#[actix_web::test]
async fn following_next_reads_every_line_once() {
    let site = Site::with_board("b").await;
    let subjects: Vec<String> = (0..25).map(|n| format!("s{n:02}")).collect();
    site.client.count("b", &subjects.iter().map(String::as_str).collect::<Vec<_>>()).await;
    let first = "/v1/boards/b/rankings?limit=7".to_owned();
    let (mut seen, mut path) = (Vec::new(), Some(first.clone()));
    let mut last = Value::Null;
    while let Some(at) = path {
        let page = site.client.get(&at).await.body;
        assert_eq!(page["prev"].is_null(), seen.is_empty(), "{page}");
        seen.extend(lines(&page).into_iter().map(|(_, subject, _)| subject));
        path = page["next"].as_str().map(|cursor| format!("{first}&cursor={cursor}"));
        last = page;
    }
    seen.reverse();
    assert_eq!(seen, subjects);
    // And back: the pages have 7 lines again, so the first one has the 21 before the last 4.
    let mut back = lines(&last).len();
    while let Some(cursor) = last["prev"].as_str() {
        let page = site.client.get(&format!("{first}&cursor={cursor}")).await.body;
        assert!(!page["next"].is_null(), "{page}");
        let names: Vec<String> = lines(&page).into_iter().map(|(_, subject, _)| subject).rev().collect();
        assert_eq!(names, subjects[back..back + 7]);
        back += 7;
        last = page;
    }
    assert_eq!(back, 25);
    let beyond = site.client.get("/v1/boards/b/rankings?offset=1000000000").await;
    assert_eq!((lines(&beyond.body), &beyond.body["next"], &beyond.body["prev"]), (vec![], &Value::Null, &Value::Null));
}

/// Returns the page at a cursor.
async fn at(site: &Site, cursor: &Value, limit: u32) -> Value {
    let cursor = cursor.as_str().expect("a cursor");
    assert!(cursor.len() <= 712 && cursor.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_".contains(&b)), "{cursor}");
    let page = site.client.get(&format!("/v1/boards/b/rankings?cursor={cursor}&limit={limit}")).await;
    assert_eq!(page.status, 200, "{page:?}");
    page.body
}

#[actix_web::test]
async fn pages_by_offset_continue_at_their_cursors() {
    let site = Site::with_board("b").await;
    site.client.count("b", &["a", "b", "b", "c", "c", "d", "e", "e", "e"]).await;
    let page = site.client.get("/v1/boards/b/rankings?offset=1&limit=2").await.body;
    assert_eq!(lines(&page), [line(2, "c", 2), line(2, "b", 2)]);
    let (next, prev) = (at(&site, &page["next"], 9).await, at(&site, &page["prev"], 9).await);
    assert_eq!((lines(&next), &next["next"]), (vec![line(4, "d", 1), line(4, "a", 1)], &Value::Null));
    assert_eq!((lines(&prev), &prev["prev"]), (vec![line(1, "e", 3)], &Value::Null));
    assert_eq!(lines(&at(&site, &next["prev"], 2).await), lines(&page));
    assert_eq!(lines(&at(&site, &prev["next"], 2).await), lines(&page));
    assert_eq!((&next["total"], &next["window"], &next["as_of"]), (&page["total"], &page["window"], &page["as_of"]));
}

#[actix_web::test]
async fn a_cursor_is_a_place_and_not_a_number_of_lines() {
    let site = Site::with_board("b").await;
    site.client.count("b", &["a", "b", "b", "c", "c", "c"]).await;
    let page = site.client.get("/v1/boards/b/rankings?limit=2").await.body;
    assert_eq!(lines(&page), [line(1, "c", 3), line(2, "b", 2)]);
    // Others arrive before the place, and the subject at the place leaves.
    site.client.count("b", &["x", "x", "x", "x", "y", "y", "y", "y"]).await;
    site.client.delete("/v1/boards/b/subjects/b").await;
    let next = at(&site, &page["next"], 2).await;
    assert_eq!((lines(&next), &next["next"]), (vec![line(4, "a", 1)], &Value::Null));
    let prev = at(&site, &next["prev"], 2).await;
    assert_eq!(lines(&prev), [line(1, "x", 4), line(3, "c", 3)]);
}

#[actix_web::test]
async fn an_empty_page_leads_back() {
    let site = Site::with_board("b").await;
    site.client.count("b", &["a", "b", "b", "c", "c", "c"]).await;
    let page = site.client.get("/v1/boards/b/rankings?limit=2").await.body;
    let middle = site.client.get("/v1/boards/b/rankings?limit=1&offset=1").await.body;
    site.client.delete("/v1/boards/b/subjects/a").await;
    let beyond = at(&site, &page["next"], 2).await;
    assert_eq!((lines(&beyond), &beyond["next"], &beyond["total"]), (vec![], &Value::Null, &json!(2)));
    assert_eq!(lines(&at(&site, &beyond["prev"], 2).await), [line(1, "c", 3), line(2, "b", 2)]);
    site.client.delete("/v1/boards/b/subjects/c").await;
    let before = at(&site, &middle["prev"], 2).await;
    assert_eq!((lines(&before), &before["prev"]), (vec![], &Value::Null));
    assert_eq!(lines(&at(&site, &before["next"], 2).await), [line(1, "b", 2)]);
    site.client.delete("/v1/boards/b/subjects/b").await;
    let nothing = at(&site, &page["next"], 2).await;
    assert_eq!((&nothing["next"], &nothing["prev"], &nothing["total"]), (&Value::Null, &Value::Null, &json!(0)));
}

#[actix_web::test]
async fn cursors_of_means_lose_nothing() {
    let site = Site::new().await;
    site.client.define("b", "AVG(24h, drive, speed, driver)", "1h").await;
    let values = [("x", 1), ("x", 0), ("x", 0), ("y", 1), ("y", 0), ("y", 0), ("z", 7), ("w", -1), ("w", 0), ("w", 0)];
    let increments: Vec<Value> =
        values.iter().map(|(subject, value)| json!({"subject": subject, "value": value})).collect();
    site.client.post("/v1/boards/b/increments", json!({"increments": increments})).await;
    let mut page = site.client.get("/v1/boards/b/rankings?limit=1").await.body;
    let mut seen = Vec::new();
    loop {
        seen.extend(lines(&page).into_iter().map(|(rank, subject, _)| (rank, subject)));
        if page["next"].is_null() {
            break;
        }
        page = at(&site, &page["next"], 1).await;
    }
    let expected = [(1, "z"), (2, "y"), (2, "x"), (4, "w")];
    assert_eq!(seen, expected.map(|(rank, subject)| (json!(rank), subject.to_owned())));
}

#[actix_web::test]
async fn cursors_of_an_earlier_board_are_stale() {
    let site = Site::with_board("b").await;
    site.client.count("b", &["a", "b"]).await;
    let page = site.client.get("/v1/boards/b/rankings?limit=1").await.body;
    let path = format!("/v1/boards/b/rankings?cursor={}", page["next"].as_str().unwrap());
    assert_eq!(site.client.get(&path).await.status, 200);
    site.client.define("c", "COUNT(24h, like, post_id)", "1h").await;
    assert_eq!(site.client.get(&path.replace("/b/", "/c/")).await.refusal(), (409, "stale_cursor"));
    site.client.delete("/v1/boards/b").await;
    assert_eq!(site.client.get(&path).await.refusal(), (404, "unknown_board"));
    for metric in ["COUNT(24h, like, post_id)", "AVG(24h, drive, speed, driver)"] {
        site.client.define("b", metric, "1h").await;
        let answer = site.client.get(&path).await;
        assert_eq!((answer.refusal(), &answer.body["board"]), ((409, "stale_cursor"), &json!("b")));
        site.client.delete("/v1/boards/b").await;
    }
}

#[actix_web::test]
async fn cursors_are_those_of_the_board_that_is_there_now_whatever_an_instance_knows() {
    let site = Site::with_board("b").await;
    let other = site.second_instance();
    site.client.count("b", &["a", "b"]).await;
    // Both instances know the board, which is then defined again through one of them.
    let old = other.get("/v1/boards/b/rankings?limit=1").await.body;
    site.client.delete("/v1/boards/b").await;
    site.client.define("b", "COUNT(24h, like, post_id)", "1h").await;
    site.client.count("b", &["a", "b"]).await;
    let new = site.client.get("/v1/boards/b/rankings?limit=1").await.body;
    let path = |page: &Value| format!("/v1/boards/b/rankings?cursor={}", page["next"].as_str().unwrap());
    // The one that still knows the earlier board takes neither a cursor for stale that is not, nor the reverse.
    let third = site.second_instance();
    assert_eq!(third.get("/v1/boards/b/rankings?limit=1").await.status, 200);
    let next = other.get(&path(&new)).await;
    assert_eq!((next.status, lines(&next.body)), (200, vec![line(1, "a", 1)]));
    site.client.delete("/v1/boards/b").await;
    site.client.define("b", "COUNT(24h, like, post_id)", "1h").await;
    for client in [&third, &other, &site.client] {
        for page in [&new, &old] {
            assert_eq!(client.get(&path(page)).await.refusal(), (409, "stale_cursor"));
        }
    }
}

#[actix_web::test]
async fn malformed_cursors_are_refused() {
    let site = Site::with_board("b").await;
    site.client.count("b", &["a", "b"]).await;
    let page = site.client.get("/v1/boards/b/rankings?limit=1").await.body;
    let cursor = page["next"].as_str().unwrap();
    let mut texts: Vec<String> = (0..cursor.len()).map(|end| cursor[..end].to_owned()).collect();
    for place in 0..cursor.len() {
        for other in ["A", "z", "_", "=", ".", "%00", "%F0%9F%8E%89"] {
            if cursor[place..=place] != *other {
                texts.push(format!("{}{other}{}", &cursor[..place], &cursor[place + 1..]));
            }
        }
    }
    texts.extend([format!("{cursor}A"), format!("{cursor}="), "5".to_owned(), "A".repeat(713), "A".repeat(7_000)]);
    for text in texts {
        let answer = site.client.get(&format!("/v1/boards/b/rankings?cursor={text}")).await;
        assert_eq!((answer.refusal(), &answer.body["field"]), ((422, "invalid_field"), &json!("cursor")), "{text}");
    }
    let both = site.client.get(&format!("/v1/boards/b/rankings?cursor={cursor}&offset=0")).await;
    assert_eq!((both.refusal(), &both.body["field"]), ((422, "invalid_field"), &json!("cursor")));
    assert_eq!(both.body["detail"], "give 'cursor' or 'offset', not both");
}

#[actix_web::test]
async fn an_ascending_board_ranks_the_lowest_score_first() {
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

#[actix_web::test]
async fn ranks_can_be_left_out_in_the_query() {
    let site = Site::with_board("b").await;
    let subjects: Vec<String> = (0..300).map(|n| format!("s-{n}")).collect();
    site.client.count("b", &["s-7"]).await;
    let lookup = async |query: &str| {
        let body = json!({"subjects": subjects});
        site.client.post(&format!("/v1/boards/b/rankings/lookup{query}"), body).await
    };
    let answer = lookup("?ranks=false").await;
    let first = &answer.body["items"][0];
    assert_eq!((&first["subject"], &first["rank_among"], &first["rank"]), (&json!("s-7"), &json!(1), &Value::Null));
    for query in ["", "?ranks=true", "?ranks=no"] {
        assert_eq!(lookup(query).await.refusal(), (422, "invalid_field"), "{query}");
    }
}
