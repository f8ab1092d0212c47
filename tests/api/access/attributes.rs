//! Attributes: who may set and read them.

use reqwest::Method;
use rolltop::access::{Grant, KeyKind, Scope};
use rolltop::service::Keys;
use serde_json::{Value, json};

use super::tokens::{signing_key, token, with_secret};
use super::{Guarded, key, key_of, keys};

const OF_P: &str = "/v1/boards/shop-a/subjects/p/attributes";

#[actix_web::test]
async fn only_secret_keys_set_attributes() {
    let writing = key(&[Scope::Write], &["shop-*"]);
    let viewing = key(&[Scope::View], &["shop-*"]);
    let reading = key(&[Scope::Read], &["shop-*"]);
    let public = key_of(KeyKind::Publishable, &[Scope::View, Scope::Write], &["shop-*"], &["*"]);
    let guarded = Guarded::new(keys(Grant::none(), &[&writing, &viewing, &reading, &public])).await;
    let set = async |bearer: &str, method: Method, path: &str, body: Value| {
        let answer = guarded.send(Some(bearer), method, path, Some(&body)).await;
        (answer.status, answer)
    };
    assert_eq!(set(&writing.bearer(), Method::PUT, OF_P, json!({"n": 1})).await.0, 200);
    let (bulk, one) = ("/v1/boards/shop-a/attributes", json!({"subject": "p", "attributes": {"n": 2}}));
    assert_eq!(set(&writing.bearer(), Method::POST, bulk, one.clone()).await.0, 200);
    for (method, path, body) in [
        (Method::PUT, OF_P, json!({"n": 9})),
        (Method::PATCH, OF_P, json!({"n": 9})),
        (Method::POST, bulk, one.clone()),
    ] {
        for key in [&public, &viewing] {
            let (status, answer) = set(&key.bearer(), method.clone(), path, body.clone()).await;
            assert_eq!((status, answer.code()), (403, "forbidden"), "{method} {answer:?}");
        }
    }
    assert_eq!(guarded.send(Some(&public.bearer()), Method::DELETE, OF_P, None).await.status, 403);
    let increments = "/v1/boards/shop-a/increments";
    let item = json!({"subject": "p", "attributes": {"n": 9}});
    let (status, answer) = set(&public.bearer(), Method::POST, increments, item.clone()).await;
    assert_eq!((status, answer.code()), (403, "forbidden"), "{answer:?}");
    let headers = [("authorization", &*public.bearer()), ("content-type", "application/x-ndjson")];
    let lines = guarded.client.send_with(Method::POST, increments, &headers, item.to_string() + "\n").await;
    assert_eq!(json!([lines.body["accepted"], lines.body["rejected"][0]["code"]]), json!([0, "invalid_attributes"]));
    assert_eq!(set(&public.bearer(), Method::POST, increments, json!({"subject": "p"})).await.0, 200);
    // Who may see the ranking sees what stands beside its subjects, and only who may read more lists them all.
    assert_eq!(guarded.get(&viewing, OF_P).await.body["attributes"], json!({"n": 2}));
    let page = guarded.get(&public, "/v1/boards/shop-a/rankings?attributes=n").await;
    assert_eq!(page.body["items"][0]["attributes"], json!({"n": 2}), "{page:?}");
    assert_eq!(guarded.get(&viewing, bulk).await.status, 403);
    assert_eq!(guarded.get(&reading, bulk).await.body["total"], 1);
}

#[actix_web::test]
async fn tokens_set_no_attributes() {
    let guarded = Guarded::new(Keys::new(Grant::none(), with_secret(signing_key("shop-*", &[], &Value::Null)))).await;
    let bearer = token(&json!({"scopes": ["write"], "increment": {"subject": "p"}}));
    let answer = guarded.send(Some(&bearer), Method::PUT, OF_P, Some(&json!({"n": 9}))).await;
    assert_eq!(answer.refusal(), (403, "forbidden"), "{answer:?}");
    let item = json!({"subject": "p", "attributes": {"n": 9}});
    let answer = guarded.send(Some(&bearer), Method::POST, "/v1/boards/shop-a/increments", Some(&item)).await;
    assert_eq!(answer.refusal(), (403, "forbidden"), "{answer:?}");
}

/// A board that names another one opens its attributes to all who may use the board.
#[actix_web::test]
async fn a_board_names_only_boards_that_its_maker_may_use() {
    let managing = key(&[Scope::Manage, Scope::Read], &["shop-*"]);
    let guarded = Guarded::new(keys(Grant::none(), &[&managing])).await;
    let define = async |path: &str, keeper: &str| {
        let body = json!({"metric": "COUNT(24h, like, post_id)", "slot": "1h", "attributes": keeper});
        let answer = guarded.send(Some(&managing.bearer()), Method::PUT, path, Some(&body)).await;
        (answer.status, answer.body["board"].clone())
    };
    assert_eq!(define("/v1/boards/shop-b", "other").await, (403, json!("other")));
    assert_eq!(define("/v1/boards/shop-b?dry_run=true", "other").await, (403, json!("other")));
    assert_eq!(define("/v1/boards/shop-a/next", "other").await, (403, json!("other")));
    assert_eq!(define("/v1/boards/shop-b", "shop-a").await.0, 201);
}
