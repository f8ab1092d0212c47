//! Limits of addresses and keys: requests, items, open streams.

use std::time::Duration;

use reqwest::Method;
use rolltop::access::{Grant, KeyRates, Scope};
use rolltop::http::HttpOptions;
use serde_json::{Value, json};

use super::{Guarded, TestKey, key, keys};
use crate::client::Answer;
use crate::event_stream::Follower;
use crate::waiting::PATIENCE;

const INCREMENTS: &str = "/v1/boards/shop-a/increments";

fn rates(rates: &Value) -> KeyRates {
    serde_json::from_value(rates.clone()).unwrap()
}

/// An instance that everybody may use, with these limits.
async fn open_to_all(change: impl FnOnce(&mut HttpOptions)) -> Guarded {
    Guarded::with(keys(Grant::all(), &[]), change).await
}

fn retry_after(answer: &Answer) -> u64 {
    assert_eq!(answer.refusal(), (429, "rate_limited"), "{answer:?}");
    let seconds = answer.header("retry-after").parse().unwrap();
    assert_eq!(answer.body["retry_after"], seconds);
    seconds
}

async fn ndjson(guarded: &Guarded, key: &TestKey, lines: usize) -> Answer {
    let bearer = key.bearer();
    let headers = [("authorization", &*bearer), ("content-type", "application/x-ndjson")];
    guarded.client.send_with(Method::POST, INCREMENTS, &headers, "{\"subject\":\"p\"}\n".repeat(lines)).await
}

#[actix_web::test]
async fn guesses_of_keys_count_before_they_are_looked_at() {
    let reader = key(&[Scope::Read], &["*"]);
    let guarded = Guarded::with(keys(Grant::none(), &[&reader]), |options| {
        options.address_requests = Some("3/h".parse().unwrap());
        options.cors_origins = vec!["https://reader.example".to_owned()];
    })
    .await;
    for _ in 0..3 {
        let guess = key(&[Scope::Read], &["*"]);
        assert_eq!(guarded.get(&guess, "/v1/boards").await.refusal(), (401, "invalid_key"));
    }
    let refused = guarded.get(&reader, "/v1/boards").await;
    assert!((1..=1_200).contains(&retry_after(&refused)), "{refused:?}");
    for path in ["/", "/nothing", "/swagger-ui/", "/openapi.json"] {
        assert_eq!(guarded.client.get(path).await.refusal(), (429, "rate_limited"), "{path}");
    }
    for path in ["/healthz", "/readyz"] {
        assert_eq!(guarded.client.get(path).await.status, 200, "{path}");
    }
    // A page can read why it was refused.
    let answer = guarded.client.send_with(Method::GET, "/v1/boards", &[("origin", "https://reader.example")], "").await;
    assert_eq!((answer.status, answer.header("access-control-allow-origin")), (429, "https://reader.example"));
    assert!(answer.header("access-control-expose-headers").contains("retry-after"));
}

#[actix_web::test]
async fn each_key_has_a_rate_of_its_own() {
    let limited = rates(&json!({"requests": "2/h"}));
    let (first, second) = (key(&[Scope::Read], &["*"]).limited(limited), key(&[Scope::Read], &["*"]).limited(limited));
    let guarded = Guarded::new(keys(Grant::none(), &[&first, &second])).await;
    for _ in 0..2 {
        assert_eq!(guarded.get(&first, "/v1/boards").await.status, 200);
    }
    assert!((1..=1_800).contains(&retry_after(&guarded.get(&first, "/v1/boards").await)));
    assert_eq!(guarded.get(&second, "/v1/boards").await.status, 200);
}

#[actix_web::test]
async fn items_beyond_the_rate_are_not_counted() {
    let limited = rates(&json!({"items": "10/h"}));
    let writer = key(&[Scope::Read, Scope::Write], &["*"]).limited(limited);
    let guarded = Guarded::new(keys(Grant::none(), &[&writer])).await;
    let add = async |number: usize| {
        let items = vec![json!({"subject": "p"}); number];
        guarded.post(&writer, INCREMENTS, &json!({"increments": items})).await
    };
    let too_large = add(11).await;
    assert_eq!((too_large.refusal(), &too_large.body["limit"]), ((413, "too_large"), &json!(10)));
    assert_eq!(add(8).await.body["accepted"], 8);
    retry_after(&add(3).await);
    let event = json!({"type": "like", "fields": {"post_id": "p"}});
    assert_eq!(guarded.post(&writer, "/v1/events", &event).await.status, 200);
    let rule = |record: bool| json!({"rule": "COUNT(24h, like, post_id) > 1", "fields": {"post_id": "p"}, "type": "like", "record": record});
    assert_eq!(guarded.post(&writer, "/v1/evaluate", &rule(true)).await.status, 200);
    retry_after(&guarded.post(&writer, "/v1/evaluate", &rule(true)).await);
    assert_eq!(guarded.post(&writer, "/v1/evaluate", &rule(false)).await.status, 200);
    retry_after(&guarded.post(&writer, "/v1/events", &event).await);
    retry_after(&guarded.post(&writer, "/v1/events", &json!({"events": [event]})).await);
    retry_after(&add(1).await);
    let sample = json!({"subject": "p", "at": crate::site::START, "amount": 1});
    let path = "/v1/boards/shop-a/samples";
    retry_after(&guarded.send(Some(&writer.bearer()), Method::PUT, path, Some(&sample)).await);
    assert_eq!(guarded.site.client.score("shop-a", "p").await, 10);
}

#[actix_web::test]
async fn a_stream_of_items_is_slowed_down_and_counted_as_a_whole() {
    let writer = key(&[Scope::Write], &["*"]).limited(rates(&json!({"items": "100/s burst 20"})));
    let guarded = Guarded::with(keys(Grant::none(), &[&writer]), |options| {
        // A paused stream is not an idle one.
        options.stream_idle_timeout = Duration::from_millis(100);
        options.address_items = Some("200/s burst 30".parse().unwrap());
    })
    .await;
    let answer = ndjson(&guarded, &writer, 70).await;
    assert_eq!((answer.status, &answer.body["accepted"]), (200, &json!(70)), "{answer:?}");
    assert_eq!(guarded.site.client.score("shop-a", "p").await, 70);
}

#[actix_web::test]
async fn a_paused_stream_ends_with_its_key() {
    let writer = key(&[Scope::Write], &["*"]).limited(rates(&json!({"items": "1/h burst 2"})));
    let guarded = Guarded::new(keys(Grant::none(), &[&writer])).await;
    let revoke = async {
        while guarded.site.client.score("shop-a", "p").await != json!(2) {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        guarded.service.keys().configure(rolltop::service::ConfiguredKeys::default());
    };
    let both = async { tokio::join!(ndjson(&guarded, &writer, 10), revoke) };
    let (answer, ()) = tokio::time::timeout(PATIENCE, both).await.expect("the stream ends");
    assert_eq!((answer.refusal(), &answer.body["counted_through"]), ((401, "invalid_key"), &json!(2)), "{answer:?}");
}

#[actix_web::test]
async fn clients_behind_a_trusted_proxy_are_told_apart() {
    let guarded = open_to_all(|options| {
        options.trusted_proxies = vec!["127.0.0.1".parse().unwrap()];
        options.address_requests = Some("1/h".parse().unwrap());
    })
    .await;
    for (forwarded, status) in [
        ("192.0.2.1", 200),
        ("192.0.2.1", 429),
        ("192.0.2.2", 200),
        ("203.0.113.1, 192.0.2.2", 429),
        ("::ffff:192.0.2.2", 429),
        ("192.0.2.3, 127.0.0.1", 200),
        ("2001:db8::1", 200),
        ("2001:db8::ffff:2", 429),
        ("2001:db8:0:1::1", 200),
        ("unknown", 200),
        ("also unknown", 429),
    ] {
        let answer = guarded.client.send_with(Method::GET, "/v1/boards", &[("x-forwarded-for", forwarded)], "").await;
        assert_eq!(answer.status, status, "{forwarded} {answer:?}");
    }
}

#[actix_web::test]
async fn a_client_that_is_no_trusted_proxy_cannot_take_another_address() {
    let guarded = open_to_all(|options| {
        options.trusted_proxies = vec!["10.0.0.0/8".parse().unwrap()];
        options.address_requests = Some("1/h".parse().unwrap());
    })
    .await;
    for (forwarded, status) in [("192.0.2.1", 200), ("192.0.2.2", 429), ("10.0.0.1", 429)] {
        let answer = guarded.client.send_with(Method::GET, "/v1/boards", &[("x-forwarded-for", forwarded)], "").await;
        assert_eq!(answer.status, status, "{forwarded} {answer:?}");
    }
}

#[actix_web::test]
async fn open_streams_and_exports_are_limited() {
    let limited = key(&[Scope::View], &["*"]).limited(rates(&json!({"streams": 1})));
    let guarded = Guarded::with(keys(Grant::all(), &[&limited]), |options| options.address_streams = 2).await;
    let url = format!("http://127.0.0.1:{}/v1/boards/shop-a/stream", guarded.client.port);
    let _first = Follower::open(&url, &[("authorization", &limited.bearer())]).await;
    let refused = guarded.get(&limited, "/v1/stream?view=shop-a").await;
    assert_eq!((refused.refusal(), &refused.body["limit"]), ((429, "too_many_streams"), &json!(1)));
    assert!(!refused.header("retry-after").is_empty(), "{refused:?}");
    // Without a key only the address counts.
    let second = Follower::open(&url, &[]).await;
    let lines = [("accept", "application/x-ndjson")];
    let export = || guarded.client.send_with(Method::GET, "/v1/boards/shop-a/rankings", &lines, "");
    assert_eq!(export().await.refusal(), (429, "too_many_streams"));
    assert_eq!(guarded.client.get("/v1/boards/shop-a/rankings").await.status, 200);
    drop(second);
    let freed = async {
        while export().await.status != 200 {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(PATIENCE, freed).await.expect("a stream that is closed does not count");
    for _ in 0..5 {
        assert_eq!(export().await.status, 200, "an export that has ended does not count");
    }
}

#[actix_web::test]
async fn no_key_makes_a_faster_one() {
    let admin = key(&[Scope::Admin], &["*"]).limited(rates(&json!({"requests": "100/s", "streams": 10})));
    let guarded = Guarded::new(keys(Grant::none(), &[&admin])).await;
    let make = async |rates: Value| {
        guarded.post(&admin, "/v1/keys", &json!({"name": "k", "scopes": ["view"], "rates": rates})).await
    };
    for wider in [json!({}), json!({"requests": "101/s", "streams": 1}), json!({"requests": "1/s", "streams": 11})] {
        let answer = make(wider.clone()).await;
        assert_eq!((answer.status, &answer.body["field"]), (422, &json!("rates")), "{wider} {answer:?}");
    }
    let answer = make(json!({"requests": "fast"})).await;
    assert_eq!(answer.refusal(), (422, "invalid_field"), "{answer:?}");
    let made = make(json!({"requests": "6000/m burst 100", "items": "5/s", "streams": 1})).await;
    assert_eq!(made.status, 201, "{made:?}");
    assert_eq!(made.body["rates"], json!({"requests": "6000/m burst 100", "items": "5/s", "streams": 1}));
}
