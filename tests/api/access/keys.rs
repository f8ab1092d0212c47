//! Making, listing, rotating and revoking keys over HTTP.

use reqwest::Method;
use rolltop::access::{Grant, Scope, Secret};
use rolltop::board::Timestamp;
use serde_json::{Value, json};

use super::{Guarded, TestKey, key, keys};

/// A site with a key that may do everything.
async fn administered() -> (Guarded, TestKey) {
    let admin = key(&[Scope::Admin], &["*"]);
    (Guarded::new(keys(Grant::none(), &[&admin])).await, admin)
}

fn bearer(made: &Value) -> String {
    format!("Bearer {}", made["secret"].as_str().unwrap())
}

#[actix_web::test]
async fn a_key_is_made_used_rotated_and_revoked() {
    let (guarded, admin) = administered().await;
    let new = json!({"name": "the shop", "scopes": ["read", "write"], "boards": ["shop-*"]});
    let made = guarded.post(&admin, "/v1/keys", &new).await;
    assert_eq!(made.status, 201, "{made:?}");
    let (id, first) = (made.body["id"].as_str().unwrap().to_owned(), bearer(&made.body));
    let get = async |key: &str, path: &str| guarded.send(Some(key), Method::GET, path, None).await;
    assert_eq!(get(&first, "/v1/boards/shop-a").await.status, 200);
    let own = get(&first, "/v1/keys/self").await;
    assert_eq!((&own.body["id"], &own.body["scopes"]), (&json!(id), &json!(["read", "write"])));
    let secret = made.body["secret"].as_str().unwrap();
    for path in ["/v1/keys", "/v1/keys/self", &format!("/v1/keys/{id}")] {
        let text = guarded.get(&admin, path).await.text;
        assert!(!text.contains(&secret[24..]) && !text.contains("hash"), "{text}");
    }
    let listed = guarded.get(&admin, &format!("/v1/keys/{id}")).await.body;
    assert!(listed["last_used"].is_string() && listed["created_at"].is_string(), "{listed}");
    assert_eq!((&listed["configured"], &listed["boards"]), (&json!(false), &json!(["shop-*"])));

    // Another instance learns of it from the store.
    let (other, service) = guarded.site.instance_with_keys(keys(Grant::none(), &[]), |_| ());
    let on_other = async |key: &str| {
        service.keep_keys().await;
        other.send_with(Method::GET, "/v1/boards/shop-a", &[("authorization", key)], "").await.status
    };
    assert_eq!(on_other(&first).await, 200);

    let path = format!("/v1/keys/{id}/rotate");
    let second = bearer(&guarded.post(&admin, &path, &json!({"overlap": "1h"})).await.body);
    for key in [&first, &second] {
        assert_eq!((get(key, "/v1/boards/shop-a").await.status, on_other(key).await), (200, 200));
    }
    let third = bearer(&guarded.post(&admin, &path, &json!({})).await.body);
    for (key, status) in [(&first, 401), (&second, 401), (&third, 200)] {
        assert_eq!((get(key, "/v1/boards/shop-a").await.status, on_other(key).await), (status, status));
    }
    let revoke =
        async |id: &str| guarded.send(Some(&admin.bearer()), Method::DELETE, &format!("/v1/keys/{id}"), None).await;
    assert_eq!(revoke(&id).await.status, 200);
    assert_eq!((get(&third, "/v1/boards/shop-a").await.status, on_other(&third).await), (401, 401));
    assert_eq!(revoke(&id).await.refusal(), (404, "unknown_key"));
    assert_eq!(revoke("nonsense").await.refusal(), (404, "unknown_key"));
    assert_eq!(revoke(&admin.key.id.to_string()).await.refusal(), (409, "key_conflict"));
}

#[actix_web::test]
async fn the_last_use_is_told_by_every_instance() {
    let (guarded, admin) = administered().await;
    let made = guarded.post(&admin, "/v1/keys", &json!({"name": "k", "scopes": ["read"]})).await.body;
    let last_used = async |service: &rolltop::service::Service| {
        let all = service.list_keys(&rolltop::access::Caller::trusted()).await.unwrap();
        all.into_iter().find(|known| known.key.id.to_string() == made["id"].as_str().unwrap()).unwrap().used_at
    };
    let (_, other) = guarded.site.instance_with_keys(keys(Grant::none(), &[]), |_| ());
    assert_eq!(last_used(&other).await, None);
    guarded.send(Some(&bearer(&made)), Method::GET, "/v1/boards", None).await;
    guarded.service.record_key_uses().await.unwrap();
    let used = last_used(&other).await;
    assert!(used.is_some() && used == last_used(&guarded.service).await);
    // A record of a key that is gone does not stay.
    guarded
        .send(Some(&admin.bearer()), Method::DELETE, &format!("/v1/keys/{}", made["id"].as_str().unwrap()), None)
        .await;
    guarded.service.record_key_uses().await.unwrap();
}

#[actix_web::test]
async fn a_key_that_makes_no_sense_is_refused() {
    let (guarded, admin) = administered().await;
    for (new, field) in [
        (json!({"scopes": ["view"]}), "name"),
        (json!({"name": "", "scopes": ["view"]}), "name"),
        (json!({"name": "k", "scopes": []}), "scopes"),
        (json!({"name": "k", "scopes": ["everything"]}), "scopes"),
        (json!({"name": "k", "scopes": ["view"], "boards": []}), "boards"),
        (json!({"name": "k", "scopes": ["view"], "boards": ["a*b"]}), "boards"),
        (json!({"name": "k", "scopes": ["admin"], "boards": ["shop-*"]}), "boards"),
        (json!({"name": "k", "scopes": ["view"], "origins": ["https://a"]}), "origins"),
        (json!({"name": "k", "scopes": ["view"], "kind": "publishable"}), "origins"),
        (json!({"name": "k", "scopes": ["read"], "kind": "publishable", "origins": ["https://a"]}), "scopes"),
        (json!({"name": "k", "scopes": ["view"], "kind": "publishable", "origins": ["https://a/"]}), "origins"),
        (json!({"name": "k", "scopes": ["view"], "expires_at": "2020-01-01T00:00:00Z"}), "expires_at"),
        (json!({"name": "k", "scopes": ["view"], "secret": "mine"}), "secret"),
    ] {
        let answer = guarded.post(&admin, "/v1/keys", &new).await;
        assert_eq!((answer.status, &answer.body["field"]), (422, &json!(field)), "{new} {answer:?}");
    }
}

#[actix_web::test]
async fn no_key_makes_one_that_lasts_longer() {
    let mut admin = key(&[Scope::Admin], &["*"]);
    admin.key.expires_at = Some(Timestamp::parse("2099-01-01T00:00:00Z").unwrap());
    let guarded = Guarded::new(keys(Grant::none(), &[&admin])).await;
    for (expires_at, status) in
        [(json!(null), 422), (json!("2099-01-01T00:00:01Z"), 422), (json!("2099-01-01T00:00:00Z"), 201)]
    {
        let new = json!({"name": "k", "scopes": ["view"], "expires_at": expires_at});
        assert_eq!(guarded.post(&admin, "/v1/keys", &new).await.status, status, "{expires_at}");
    }
}

#[actix_web::test]
async fn keys_survive_a_store_that_cannot_be_reached() {
    let (guarded, admin) = administered().await;
    let made = guarded.post(&admin, "/v1/keys", &json!({"name": "k", "scopes": ["read"]})).await.body;
    guarded.site.switch.fail(crate::failing_store::Fault::Unreachable);
    guarded.service.keep_keys().await;
    let own = guarded.send(Some(&bearer(&made)), Method::GET, "/v1/keys/self", None).await;
    assert_eq!(own.status, 200, "{own:?}");
    let answer = guarded.post(&admin, "/v1/keys", &json!({"name": "k", "scopes": ["read"]})).await;
    assert_eq!(answer.refusal(), (503, "store_unreachable"));
}

#[actix_web::test]
async fn a_secret_is_in_no_answer_but_its_own() {
    let (guarded, admin) = administered().await;
    let secret = Secret::parse(&admin.secret.reveal()).unwrap().reveal();
    for path in ["/v1/keys", "/v1/boards", "/metrics", "/v1/nothing", "/v1/boards/no-board", "/openapi.json"] {
        let answer = guarded.get(&admin, path).await;
        assert!(!format!("{:?}{}", answer.headers, answer.text).contains(&secret[24..]), "{path}");
    }
}

#[actix_web::test]
async fn a_secret_that_ends_soon_makes_no_key_that_stays() {
    let (guarded, admin) = administered().await;
    let made = guarded.post(&admin, "/v1/keys", &json!({"name": "k", "scopes": ["admin"]})).await.body;
    let path = format!("/v1/keys/{}/rotate", made["id"].as_str().unwrap());
    assert_eq!(guarded.post(&admin, &path, &json!({"overlap": "1h"})).await.status, 200);
    let new = json!({"name": "k", "scopes": ["view"]});
    let refused = guarded.send(Some(&bearer(&made)), Method::POST, "/v1/keys", Some(&new)).await;
    assert_eq!((refused.status, &refused.body["field"]), (422, &json!("scopes")), "{refused:?}");
}

#[actix_web::test]
async fn a_key_in_a_path_is_not_shown() {
    let (guarded, admin) = administered().await;
    let secret = admin.secret.reveal();
    for method in [Method::GET, Method::DELETE] {
        let answer = guarded.send(Some(&admin.bearer()), method, &format!("/v1/keys/{secret}"), None).await;
        assert_eq!(answer.refusal(), (404, "unknown_key"));
        assert!(!answer.text.contains(&secret[20..40]), "{answer:?}");
    }
}

#[actix_web::test]
async fn keys_that_are_changed_at_the_same_time_are_valid_and_revoked_at_once() {
    let (guarded, admin) = administered().await;
    let round = async |number: usize| {
        let new = json!({"name": format!("k{number}"), "scopes": ["read"]});
        let made = guarded.post(&admin, "/v1/keys", &new).await.body;
        let (key, id) = (bearer(&made), made["id"].as_str().unwrap().to_owned());
        let own = async || guarded.send(Some(&key), Method::GET, "/v1/keys/self", None).await.status;
        let before = own().await;
        guarded.send(Some(&admin.bearer()), Method::DELETE, &format!("/v1/keys/{id}"), None).await;
        (before, own().await)
    };
    for _ in 0..10 {
        let outcomes = futures_util::future::join_all((0..16).map(round)).await;
        assert!(outcomes.iter().all(|outcome| *outcome == (200, 401)), "{outcomes:?}");
    }
}
