//! Tokens for end users: what is accepted, and that the one item they are for is all they allow.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use reqwest::Method;
use rolltop::access::{Grant, HmacSecret, Key, KeyId, KeyKind, KeyRates, PublicKey, Scope, Verifier};
use rolltop::board::Timestamp;
use rolltop::service::{ConfiguredKeys, ConfiguredVerifier, Keys};
use serde_json::{Value, json};

use super::{Guarded, key};
use crate::client::Answer;
use crate::event_stream::Follower;
use crate::signing::{SECRET, Signing, claims};
use crate::waiting::{PATIENCE, Wait};

const KID: &str = "00000000000000a1";
const INCREMENTS: &str = "/v1/boards/shop-a/increments";

/// Returns a signing key for some boards, whose tokens may view and write.
pub fn signing_key(boards: &str, origins: &[&str], public: &Value) -> Key {
    let boards = [boards.parse().unwrap()].into_iter().collect();
    let scopes = [Scope::View, Scope::Write].into_iter().collect();
    let key = Key {
        id: KeyId::parse(KID).unwrap(),
        name: "tokens".to_owned(),
        kind: KeyKind::Signing,
        grant: Grant { scopes, boards },
        origins: origins.iter().map(|origin| (*origin).to_owned()).collect(),
        created_at: None,
        expires_at: None,
        secrets: Vec::new(),
        public_key: (!public.is_null()).then(|| serde_json::from_value::<PublicKey>(public.clone()).unwrap()),
        rates: KeyRates::default(),
    };
    key.check().unwrap();
    key
}

/// Returns the keys of a configuration with one signing key, whose secret is that of the tests.
pub fn with_secret(key: Key) -> ConfiguredKeys {
    let verifier = Verifier::from(HmacSecret::new(SECRET).unwrap());
    let verifiers = vec![ConfiguredVerifier { key: key.id, kid: None, verifier }];
    ConfiguredKeys { keys: vec![key], verifiers, ..ConfiguredKeys::default() }
}

/// A site that accepts tokens signed with the secret of the tests, for boards that begin with `shop-`.
async fn guarded() -> Guarded {
    Guarded::new(Keys::new(Grant::none(), with_secret(signing_key("shop-*", &[], &Value::Null)))).await
}

pub fn token(allowed: &Value) -> String {
    format!("Bearer {}", Signing::hs256().token(KID, allowed))
}

fn like(once: bool) -> Value {
    json!({"scopes": ["write"], "once": once,
        "event": {"type": "like", "fields": {"post_id": "p1", "user_id": "u7"}}})
}

impl Guarded {
    async fn send_with_token(&self, bearer: &str, path: &str, body: Value) -> Answer {
        self.send(Some(bearer), Method::POST, path, Some(&body)).await
    }
}

#[actix_web::test]
async fn tokens_of_every_algorithm_are_accepted_and_changed_ones_are_not() {
    for signing in [Signing::hs256(), Signing::ed25519(), Signing::p256(), Signing::rsa()] {
        let key = signing_key("shop-*", &[], &signing.public);
        let configured = if signing.public.is_null() {
            with_secret(key)
        } else {
            ConfiguredKeys { keys: vec![key], ..ConfiguredKeys::default() }
        };
        let guarded = Guarded::new(Keys::new(Grant::none(), configured)).await;
        let token = signing.token(KID, &json!({"scopes": ["view"]}));
        let read = async |token: &str| {
            let bearer = format!("Bearer {token}");
            guarded.send(Some(&bearer), Method::GET, "/v1/boards/shop-a/rankings", None).await
        };
        assert_eq!(read(&token).await.status, 200, "{token}");
        let other = Signing::hs256().token(KID, &json!({"scopes": ["view"]}));
        let unknown = signing.token("00000000000000a2", &json!({"scopes": ["view"]}));
        let parts: Vec<&str> = token.split('.').collect();
        let part = |at: usize| parts[at].to_owned();
        let mut changed = vec![unknown, [part(0), part(1), String::new()].join(".")];
        if !signing.public.is_null() {
            // With the public key's text as the secret, and with another algorithm.
            changed.push(other);
        }
        for at in 0..token.len() {
            if at % 7 == 0 || at + 2 > token.len() {
                let flipped = if &token[at..=at] == "A" { "B" } else { "A" };
                changed.push(format!("{}{flipped}{}", &token[..at], &token[at + 1..]));
            }
        }
        for changed in changed {
            let answer = read(&changed).await;
            assert_eq!(answer.status, 401, "{changed} {answer:?}");
            assert!(matches!(answer.code(), "invalid_token" | "invalid_key"), "{answer:?}");
        }
        assert_eq!(read(&token).await.status, 200, "{token}");
    }
}

#[actix_web::test]
async fn a_token_is_for_one_item() {
    let guarded = guarded().await;
    let bearer = token(&like(false));
    // What it fixes need not be sent.
    for body in [json!({}), json!({"type": "like"}), json!({"fields": {"post_id": "p1"}})] {
        let answer = guarded.send_with_token(&bearer, "/v1/events", body).await;
        assert_eq!((answer.status, &answer.body["accepted"]), (200, &json!(1)), "{answer:?}");
    }
    assert_eq!(guarded.site.client.score("shop-a", "p1").await, 3);
    assert_eq!(guarded.site.client.score("other", "p1").await, 0, "the boards of the signing key");
    for (body, field) in [
        (json!({"type": "visit"}), "type"),
        (json!({"fields": {"post_id": "p2"}}), "post_id"),
        (json!({"fields": {"user_id": "u8"}}), "user_id"),
        (json!({"fields": {"more": 1}}), "more"),
        (json!({"at": crate::site::START}), "at"),
        (json!({"id": "x"}), "id"),
        (json!({"retract": true, "at": crate::site::START}), "retract"),
        (json!({"events": [{"type": "like", "fields": {"post_id": "p1"}}]}), "events"),
    ] {
        let answer = guarded.send_with_token(&bearer, "/v1/events", body.clone()).await;
        assert!(answer.refusal() == (403, "forbidden") && !answer.body["field"].is_null(), "{body} {answer:?}");
        assert!(answer.body["field"] == field || field == "retract" && answer.body["field"] == "at", "{answer:?}");
    }
    let lines = [("authorization", &*bearer), ("content-type", "application/x-ndjson")];
    let stream = guarded.client.send_with(Method::POST, "/v1/events", &lines, "{}\n{}\n").await;
    assert_eq!(stream.refusal(), (403, "forbidden"));
    let key = [("authorization", &*bearer), ("content-type", "application/json"), ("idempotency-key", "k")];
    let key = guarded.client.send_with(Method::POST, "/v1/events", &key, "{}").await;
    assert_eq!(key.refusal(), (403, "forbidden"));
    let large = json!({"type": "x".repeat(70_000)});
    assert_eq!(guarded.send_with_token(&bearer, "/v1/events", large).await.refusal(), (413, "too_large"));
    // It is no increment, no sample, and nothing that reads.
    for (method, path) in [
        (Method::POST, INCREMENTS),
        (Method::PUT, "/v1/boards/shop-a/samples"),
        (Method::POST, "/v1/evaluate"),
        (Method::POST, "/v1/query"),
        (Method::POST, "/v1/events?return=score"),
        (Method::GET, "/v1/boards/shop-a/rankings"),
    ] {
        let body = (method != Method::GET).then(|| json!({"subject": "p1"}));
        let answer = guarded.send(Some(&bearer), method, path, body.as_ref()).await;
        assert_eq!(answer.refusal(), (403, "forbidden"), "{path}");
    }
    assert_eq!(guarded.site.client.score("shop-a", "p1").await, 3);
}

#[actix_web::test]
async fn only_a_field_with_a_range_is_free() {
    let guarded = guarded().await;
    guarded.site.client.define("shop-stars", "SUM(24h, rate, stars, post_id)", "1h").await;
    let allowed = json!({"scopes": ["view", "write"], "boards": ["shop-stars"], "range": {"stars": [1, 5]},
        "event": {"type": "rate", "fields": {"post_id": "p1"}}});
    let bearer = token(&allowed);
    let rate = async |stars: &str| {
        let headers = [("authorization", &*bearer), ("content-type", "application/json")];
        let body = format!("{{\"fields\":{{\"stars\":{stars}}}}}");
        guarded.client.send_with(Method::POST, "/v1/events?return=score", &headers, body).await
    };
    for (stars, score) in [("5", 5), ("1.0", 6), ("20e-1", 8)] {
        assert_eq!(rate(stars).await.body["scores"][0]["score"], score, "{stars}");
    }
    for stars in ["0", "6", "5.0000001", "-1000000", "\"3\"", "null", "1e99"] {
        assert_eq!(rate(stars).await.refusal(), (403, "forbidden"), "{stars}");
    }
    let increment = json!({"scopes": ["write"], "increment": {"subject": "p9"}, "range": {"amount": [-1, 1]}});
    let bearer = token(&increment);
    let add = async |body: Value| guarded.send_with_token(&bearer, INCREMENTS, body).await;
    assert_eq!(add(json!({"amount": 1})).await.body["accepted"], 1);
    for body in [json!({"amount": 2}), json!({"amount": -1_000_000}), json!({"subject": "p8", "amount": 1}), json!({})]
    {
        assert_eq!(add(body.clone()).await.refusal(), (403, "forbidden"), "{body}");
    }
    let elsewhere = guarded.send_with_token(&bearer, "/v1/boards/other/increments", json!({"amount": 1})).await;
    assert_eq!((elsewhere.refusal(), &elsewhere.body["board"]), ((403, "forbidden"), &json!("other")));
    assert_eq!(guarded.site.client.score("shop-a", "p9").await, 1);
}

#[actix_web::test]
async fn an_item_of_a_token_counts_once() {
    let guarded = guarded().await;
    let (bearer, second) = (token(&like(true)), token(&like(true)));
    let event = |id: &str| json!({"type": "like", "fields": {"post_id": "p1"}, "id": id});
    for (nth, accepted) in [(0, 1), (1, 0), (2, 0)] {
        let answer = guarded.send_with_token(&bearer, "/v1/events", json!({})).await;
        assert_eq!((answer.status, &answer.body["accepted"]), (200, &json!(accepted)), "{nth} {answer:?}");
    }
    // Another token is another like; whether a person gets two is for the site to decide.
    assert_eq!(guarded.send_with_token(&second, "/v1/events", json!({})).await.body["accepted"], 1);
    assert_eq!(guarded.site.client.score("shop-a", "p1").await, 2);
    // Nobody can use up, or free, the id of a token.
    let taken = guarded.site.client.post("/v1/events", event("token:abc")).await;
    assert_eq!(taken.body["rejected"][0]["code"], "invalid_id", "{taken:?}");
    let taken = guarded.site.client.add("shop-a", json!({"increments": [{"subject": "p", "id": "token:"}]})).await;
    assert_eq!(taken.body["rejected"][0]["code"], "invalid_id", "{taken:?}");
}

#[actix_web::test]
async fn a_board_that_forgets_ids_too_early_refuses_a_token_for_one_use() {
    let guarded = guarded().await;
    let definition = json!({"metric": "COUNT(24h, like, post_id)", "slot": "1h", "dedupe": "5m"});
    let defined = guarded.site.client.put("/v1/boards/shop-short", definition).await;
    assert_eq!(defined.status, 201, "{defined:?}");
    // Five minutes and the leeway, and the time that an item may take.
    let refused = guarded.send_with_token(&token(&like(true)), "/v1/events", json!({})).await;
    assert_eq!(refused.refusal(), (422, "token_outlives_ids"));
    assert_eq!(refused.body["board"], "shop-short", "{refused:?}");
    assert_eq!(guarded.site.client.score("shop-a", "p1").await, 0, "nothing was counted");
    let increment = json!({"scopes": ["write"], "increment": {"subject": "p1"}, "once": true});
    let refused = guarded.send_with_token(&token(&increment), "/v1/boards/shop-short/increments", json!({})).await;
    assert_eq!(refused.refusal(), (422, "token_outlives_ids"));
    let shorter = |allowed: &Value| {
        let mut claims = claims(allowed);
        claims["exp"] = json!(claims["exp"].as_i64().unwrap() - 90);
        format!("Bearer {}", Signing::hs256().sign(KID, &claims))
    };
    assert_eq!(guarded.send_with_token(&shorter(&like(true)), "/v1/events", json!({})).await.body["accepted"], 1);
    // It matters for items that count once, and for boards that the item reaches, only.
    assert_eq!(guarded.send_with_token(&token(&like(false)), "/v1/events", json!({})).await.body["accepted"], 1);
    let mut elsewhere = like(true);
    elsewhere["boards"] = json!(["shop-a"]);
    assert_eq!(guarded.send_with_token(&token(&elsewhere), "/v1/events", json!({})).await.body["accepted"], 1);
}

#[actix_web::test]
async fn an_item_that_counts_once_is_for_one_subject() {
    let guarded = guarded().await;
    guarded.site.client.define("shop-films", "COUNT(24h, rate, film)", "1h").await;
    guarded.site.client.define("shop-pairs", "COUNT(24h, rate, (user_id, film))", "1h").await;
    guarded.site.client.define("shop-keys", "COUNT(24h, rate, user_id BY film)", "1h").await;
    guarded.site.client.define("shop-stars", "SUM(24h, rate, stars, user_id)", "1h").await;
    let allowed = |boards: &str| {
        json!({"scopes": ["write"], "boards": [boards], "once": true, "range": {"film": [1, 1000], "stars": [1, 5]},
            "event": {"type": "rate", "fields": {"user_id": "u7"}}})
    };
    let body = json!({"fields": {"film": 7, "stars": 3}});
    // In the ranking of another key it would count once more.
    for board in ["shop-films", "shop-pairs", "shop-keys"] {
        let refused = guarded.send_with_token(&token(&allowed(board)), "/v1/events", body.clone()).await;
        let named = (&refused.body["board"], &refused.body["field"]);
        assert_eq!((refused.refusal(), named), ((403, "forbidden"), (&json!(board), &json!("film"))), "{refused:?}");
    }
    let refused = guarded.send_with_token(&token(&allowed("shop-*")), "/v1/events", body.clone()).await;
    assert_eq!(refused.refusal(), (403, "forbidden"));
    assert_eq!(guarded.site.client.score("shop-stars", "u7").await, json!(0), "nothing was counted");
    let increment = |by: Value| json!({"scopes": ["write"], "boards": ["shop-keys"], "once": true, "increment": {"by": by, "subject": "u7"}});
    let path = "/v1/boards/shop-keys/increments";
    let token_of_key = token(&increment(json!("film-9")));
    let elsewhere = guarded.send_with_token(&token_of_key, path, json!({"by": "film-8"})).await;
    assert_eq!((elsewhere.refusal(), &elsewhere.body["field"]), ((403, "forbidden"), &json!("by")));
    let counted = guarded.send_with_token(&token_of_key, path, json!({})).await;
    assert_eq!(counted.body["accepted"], 1, "{counted:?}");
    // What does not name the subject may be free.
    let counted = guarded.send_with_token(&token(&allowed("shop-stars")), "/v1/events", body).await;
    assert_eq!(counted.body["accepted"], 1, "{counted:?}");
}

#[actix_web::test]
async fn an_item_counts_once_for_all_keys_of_a_key_set() {
    let key = signing_key("shop-*", &[], &Value::Null);
    let of = |kid: &str| ConfiguredVerifier {
        key: key.id,
        kid: Some(kid.to_owned()),
        verifier: Verifier::from(HmacSecret::new(SECRET).unwrap()),
    };
    let verifiers = vec![of("2026-11"), of("2026-12")];
    let configured = ConfiguredKeys { keys: vec![key.clone()], verifiers, ..ConfiguredKeys::default() };
    let guarded = Guarded::new(Keys::new(Grant::none(), configured)).await;
    let mut claims = claims(&like(true));
    claims["jti"] = json!("u7/p1");
    for (kid, accepted) in [("2026-11", 1), ("2026-12", 0)] {
        let bearer = format!("Bearer {}", Signing::hs256().sign(kid, &claims));
        let answer = guarded.send_with_token(&bearer, "/v1/events", json!({})).await;
        assert_eq!((answer.status, &answer.body["accepted"]), (200, &json!(accepted)), "{kid} {answer:?}");
    }
}

#[actix_web::test]
async fn a_token_cannot_allow_more_than_its_signing_key() {
    let guarded = guarded().await;
    let read = async |allowed: Value| {
        let answer = guarded.send(Some(&token(&allowed)), Method::GET, "/v1/boards/shop-a/rankings", None).await;
        (answer.status, answer.body["code"].as_str().unwrap_or_default().to_owned())
    };
    assert_eq!(read(json!({"scopes": ["view"], "boards": ["shop-a"]})).await.0, 200);
    let refused = (401, "invalid_token".to_owned());
    for wider in [
        json!({"scopes": ["view"], "boards": ["*"]}),
        json!({"scopes": ["view"], "boards": ["shop-a", "other"]}),
        json!({"scopes": ["read"]}),
        json!({"scopes": ["admin"]}),
        json!({"scopes": ["view"], "keys": true}),
    ] {
        assert_eq!(read(wider.clone()).await, refused, "{wider}");
    }
    // A narrower board than the key's.
    let bearer = token(&json!({"scopes": ["view"], "boards": ["shop-b"]}));
    let answer = guarded.send(Some(&bearer), Method::GET, "/v1/boards/shop-a/rankings", None).await;
    assert_eq!(answer.refusal(), (403, "forbidden"));
    let own = guarded.send(Some(&bearer), Method::GET, "/v1/keys/self", None).await.body;
    assert_eq!((&own["kind"], &own["boards"], &own["id"]), (&json!("token"), &json!(["shop-b"]), &json!(KID)), "{own}");
}

#[actix_web::test]
async fn claims_are_checked_to_the_second() {
    static NOW: AtomicI64 = AtomicI64::new(1_800_000_000_000);
    let clock = || Box::new(|| Timestamp::from_millis(NOW.load(Ordering::Relaxed)));
    let configured = with_secret(signing_key("*", &[], &Value::Null));
    let guarded = Guarded::new(Keys::at(Grant::none(), configured, clock())).await;
    let with = |change: Value| {
        let mut claims = json!({"aud": "rolltop", "exp": 1_800_000_060, "rolltop": {"scopes": ["view"]}});
        claims.as_object_mut().unwrap().extend(change.as_object().unwrap().clone());
        format!("Bearer {}", Signing::hs256().sign(KID, &claims))
    };
    let read = async |bearer: &str| {
        let answer = guarded.send(Some(bearer), Method::GET, "/v1/boards/shop-a/rankings", None).await;
        let member = |name: &str| answer.body[name].as_str().unwrap_or_default().to_owned();
        (answer.status, member("code"), member("claim"))
    };
    let accepted = || (200, String::new(), String::new());
    let bearer = with(json!({}));
    assert_eq!(read(&bearer).await, accepted());
    NOW.store(1_800_000_089_999, Ordering::Relaxed);
    assert_eq!(read(&bearer).await, accepted(), "within the leeway");
    NOW.store(1_800_000_090_000, Ordering::Relaxed);
    let expired = (401, "token_expired".to_owned(), String::new());
    assert_eq!(read(&bearer).await, expired);
    assert_eq!(read(&bearer).await, expired);
    NOW.store(1_800_000_000_000, Ordering::Relaxed);
    for (change, claim) in [
        (json!({"exp": 1_800_086_431}), "exp"),
        (json!({"exp": "1800000060"}), "exp"),
        (json!({"nbf": 1_800_000_031}), "nbf"),
        (json!({"nbf": "9999999999"}), "nbf"),
        (json!({"aud": "another"}), "aud"),
        (json!({"aud": null}), "aud"),
        (json!({"rolltop": null}), "rolltop"),
    ] {
        assert_eq!(read(&with(change.clone())).await, (401, "invalid_token".to_owned(), claim.to_owned()), "{change}");
    }
    assert_eq!(read(&with(json!({"exp": 1_800_086_430, "nbf": 1_800_000_030, "sub": "u7"}))).await, accepted());
}

#[actix_web::test]
async fn a_token_that_expires_while_its_item_arrives_counts_nothing() {
    static NOW: AtomicI64 = AtomicI64::new(0);
    let clock = || Box::new(|| Timestamp::from_millis(NOW.load(Ordering::Relaxed)));
    let increment = json!({"scopes": ["write"], "increment": {"subject": "p1"}});
    for (allowed, path) in [(like(false), "/v1/events"), (increment, INCREMENTS)] {
        NOW.store(1_800_000_000_000, Ordering::Relaxed);
        let configured = with_secret(signing_key("*", &[], &Value::Null));
        let guarded = Guarded::new(Keys::at(Grant::none(), configured, clock())).await;
        let claims = json!({"aud": "rolltop", "exp": 1_800_000_060, "jti": "1", "rolltop": allowed});
        let bearer = format!("Bearer {}", Signing::hs256().sign(KID, &claims));
        let (sender, receiver) = tokio::sync::mpsc::channel::<Result<String, std::io::Error>>(1);
        let pieces =
            futures_util::stream::unfold(receiver, |mut receiver| async { Some((receiver.recv().await?, receiver)) });
        let headers = [("authorization", &*bearer), ("content-type", "application/json")];
        let send = guarded.client.send_with(Method::POST, path, &headers, reqwest::Body::wrap_stream(pieces));
        let expire = async {
            sender.send(Ok("{".to_owned())).await.unwrap();
            let wait = Wait::begin("the token to be accepted");
            while guarded.service.keys().find(KeyId::parse(KID).unwrap()).unwrap().used_at.is_none() {
                wait.rest("not used").await;
            }
            NOW.store(1_800_000_090_000, Ordering::Relaxed);
            sender.send(Ok("}".to_owned())).await.unwrap();
            drop(sender);
        };
        let (answer, ()) = tokio::join!(send, expire);
        assert_eq!(answer.refusal(), (401, "token_expired"), "{path}");
        assert_eq!(guarded.site.client.score("shop-a", "p1").await, 0);
    }
}

#[actix_web::test]
async fn what_a_token_follows_ends_with_it_and_with_its_key() {
    let guarded = guarded().await;
    let mut soon = claims(&json!({"scopes": ["view"]}));
    // The leeway of 30 s ends in one to two seconds: whole seconds are cut off, so with one less it could end at once.
    soon["exp"] = json!(chrono::Utc::now().timestamp() - 28);
    let soon = format!("Bearer {}", Signing::hs256().sign(KID, &soon));
    let later = token(&json!({"scopes": ["view"]}));
    let url = format!("http://127.0.0.1:{}/v1/boards/shop-a/stream", guarded.client.port);
    let mut of_soon = Follower::open(&url, &[("authorization", &soon)]).await;
    let mut of_later = Follower::open(&url, &[("authorization", &later)]).await;
    let ends = async |follower: &mut Follower| {
        let all = async { while follower.next().await.is_some() {} };
        tokio::time::timeout(PATIENCE, all).await.expect("the stream ends");
    };
    ends(&mut of_soon).await;
    assert_eq!(guarded.send(Some(&later), Method::GET, "/v1/boards/shop-a/rankings", None).await.status, 200);
    guarded.service.keys().configure(ConfiguredKeys::default());
    ends(&mut of_later).await;
    let refused = guarded.send(Some(&later), Method::GET, "/v1/boards/shop-a/rankings", None).await;
    assert_eq!(refused.refusal(), (401, "invalid_token"), "also where it was verified before");
}

#[actix_web::test]
async fn another_secret_ends_the_tokens_of_the_one_before() {
    let guarded = guarded().await;
    let bearer = token(&json!({"scopes": ["view"]}));
    let status = async || guarded.send(Some(&bearer), Method::GET, "/v1/boards/shop-a/rankings", None).await.status;
    assert_eq!(status().await, 200);
    // The same again changes nothing.
    guarded.service.keys().configure(with_secret(signing_key("shop-*", &[], &Value::Null)));
    assert_eq!(status().await, 200);
    let mut other = with_secret(signing_key("shop-*", &[], &Value::Null));
    other.verifiers[0].verifier = Verifier::from(HmacSecret::new(&SECRET.to_uppercase()).unwrap());
    guarded.service.keys().configure(other);
    assert_eq!(status().await, 401);
    let narrower = with_secret(signing_key("shop-b", &[], &Value::Null));
    guarded.service.keys().configure(narrower);
    let of_board = token(&json!({"scopes": ["view"], "boards": ["shop-a"]}));
    let answer = guarded.send(Some(&of_board), Method::GET, "/v1/boards/shop-a/rankings", None).await;
    assert_eq!(answer.refusal(), (401, "invalid_token"));
}

#[actix_web::test]
async fn tokens_are_for_pages_of_the_origins_of_their_key() {
    let configured = with_secret(signing_key("shop-*", &["https://shop.example"], &Value::Null));
    let guarded = Guarded::new(Keys::new(Grant::none(), configured)).await;
    let bearer = token(&like(false));
    for (origin, status) in [("https://shop.example", 200), ("https://evil.example", 403)] {
        let headers = [("authorization", &*bearer), ("content-type", "application/json"), ("origin", origin)];
        let answer = guarded.client.send_with(Method::POST, "/v1/events", &headers, "{}").await;
        assert_eq!(answer.status, status, "{answer:?}");
        let shared = answer.header("access-control-allow-origin");
        assert_eq!(shared, if status == 200 { origin } else { "" });
    }
    let preflight = [
        ("origin", "https://shop.example"),
        ("access-control-request-method", "POST"),
        ("access-control-request-headers", "authorization,content-type"),
    ];
    let answer = guarded.client.send_with(Method::OPTIONS, "/v1/events", &preflight, "").await;
    assert_eq!((answer.status, answer.header("access-control-allow-origin")), (200, "https://shop.example"));
}

#[actix_web::test]
async fn signing_keys_are_made_with_a_public_key_only() {
    let admin = key(&[Scope::Admin], &["*"]);
    let guarded = Guarded::new(super::keys(Grant::none(), &[&admin])).await;
    let signing = Signing::ed25519();
    let new = |public: &Value| json!({"name": "likes", "kind": "signing", "scopes": ["view", "write"], "boards": ["shop-*"], "public_key": public});
    let made = guarded.post(&admin, "/v1/keys", &new(&signing.public)).await;
    assert_eq!(made.status, 201, "{made:?}");
    assert_eq!((&made.body["public_key"], &made.body["secret"]), (&signing.public, &Value::Null));
    let kid = made.body["id"].as_str().unwrap();
    let bearer = format!("Bearer {}", signing.token(kid, &like(true)));
    assert_eq!(guarded.send_with_token(&bearer, "/v1/events", json!({})).await.body["accepted"], 1);
    let shown = guarded.get(&admin, &format!("/v1/keys/{kid}")).await.body;
    assert!(shown["last_used"].is_string() && shown["kind"] == "signing", "{shown}");
    let rotated = guarded.post(&admin, &format!("/v1/keys/{kid}/rotate"), &json!({})).await;
    assert_eq!(rotated.status, 422, "{rotated:?}");
    for (change, field) in [
        (json!({"public_key": {"kty": "oct", "k": "c2VjcmV0"}}), "public_key"),
        (json!({"public_key": null}), "public_key"),
        (json!({"kind": "secret"}), "public_key"),
        (json!({"scopes": ["read"]}), "scopes"),
    ] {
        let mut wrong = new(&signing.public);
        wrong.as_object_mut().unwrap().extend(change.as_object().unwrap().clone());
        let answer = guarded.post(&admin, "/v1/keys", &wrong).await;
        assert_eq!((answer.status, answer.body["field"].as_str()), (422, Some(field)), "{change} {answer:?}");
    }
    let revoked = guarded.send(Some(&admin.bearer()), Method::DELETE, &format!("/v1/keys/{kid}"), None).await;
    assert_eq!(revoked.status, 200);
    assert_eq!(guarded.send_with_token(&bearer, "/v1/events", json!({})).await.refusal(), (401, "invalid_token"));
}

#[actix_web::test]
async fn the_rates_of_a_signing_key_are_for_all_its_tokens() {
    let mut limited = signing_key("shop-*", &[], &Value::Null);
    limited.rates = serde_json::from_value(json!({"items": "3/h"})).unwrap();
    let guarded = Guarded::new(Keys::new(Grant::none(), with_secret(limited))).await;
    for status in [200, 200, 200, 429] {
        let answer = guarded.send_with_token(&token(&like(true)), "/v1/events", json!({})).await;
        assert_eq!(answer.status, status, "{answer:?}");
    }
}

#[actix_web::test]
async fn many_tokens_at_once_count_once_each() {
    let guarded = Arc::new(guarded().await);
    let tokens: Vec<String> = (0..40).map(|_| token(&like(true))).collect();
    let sends = tokens.iter().flat_map(|bearer| [bearer; 4]).map(|bearer| {
        let guarded = guarded.clone();
        async move { guarded.send_with_token(bearer, "/v1/events", json!({})).await.body["accepted"].as_u64().unwrap() }
    });
    let all = futures_util::future::join_all(sends);
    let accepted: u64 = tokio::time::timeout(Duration::from_secs(60), all).await.unwrap().iter().sum();
    assert_eq!((accepted, guarded.site.client.score("shop-a", "p1").await), (40, json!(40)));
}
