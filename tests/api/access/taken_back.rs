//! Tokens for a like that can be taken back: what they do, and that they are for nothing else.

use reqwest::Method;
use rolltop::access::Grant;
use rolltop::service::Keys;
use serde_json::{Value, json};

use super::Guarded;
use super::tokens::{signing_key, token, with_secret};
use crate::client::Answer;

/// A site with a board that counts each person once, and the clock of its store.
struct Liked {
    guarded: Guarded,
    seconds: u32,
}

/// Returns what a token allows: a like of a post by a user, and taking it back.
fn like(post: &str, user: &str) -> Value {
    json!({"scopes": ["write"], "boards": ["shop-likes*"], "retract": true,
        "event": {"type": "liked", "fields": {"post_id": post, "user_id": user}}})
}

impl Liked {
    async fn new() -> Self {
        let keys = Keys::new(Grant::none(), with_secret(signing_key("shop-*", &[], &Value::Null)));
        let guarded = Guarded::new(keys).await;
        guarded.site.client.define("shop-likes", "COUNT_DISTINCT(24h, liked, post_id, user_id)", "1h").await;
        Self { guarded, seconds: 0 }
    }

    /// Sends the body of an event, a second after the one before.
    async fn send(&mut self, allowed: &Value, body: Value) -> Answer {
        self.seconds += 1;
        self.guarded.site.client.set_clock(&format!("2026-01-02T10:08:{:02}Z", self.seconds)).await;
        self.guarded.send(Some(&token(allowed)), Method::POST, "/v1/events", Some(&body)).await
    }

    async fn score(&self, post: &str) -> Value {
        self.guarded.site.client.score("shop-likes", post).await
    }
}

#[actix_web::test]
async fn a_like_is_given_and_taken_back_as_often_as_the_button_is_pressed() {
    let mut site = Liked::new().await;
    let (ann, bob) = (like("p1", "ann"), like("p1", "bob"));
    let back = || json!({"retract": true});
    for (allowed, body, score) in [
        (&ann, json!({}), 1),
        (&ann, json!({}), 1),
        (&bob, json!({"retract": false}), 2),
        (&ann, back(), 1),
        (&ann, back(), 1),
        // The like of another one stays.
        (&ann, back(), 1),
        (&ann, json!({}), 2),
        (&bob, back(), 1),
        (&ann, back(), 0),
        // What was never given is not taken from others, and can be given later.
        (&like("p1", "cy"), back(), 0),
        (&like("p1", "cy"), json!({}), 1),
    ] {
        let answer = site.send(allowed, body.clone()).await;
        assert_eq!((answer.status, &answer.body["accepted"]), (200, &json!(1)), "{body} {answer:?}");
        assert_eq!(site.score("p1").await, json!(score), "{body}");
    }
    assert_eq!(site.guarded.site.client.post("/v1/boards/shop-likes/audit", json!({})).await.body["differences"], 0);
}

#[actix_web::test]
async fn nothing_else_is_taken_back() {
    let mut site = Liked::new().await;
    assert_eq!(site.send(&like("p1", "bob"), json!({})).await.status, 200);
    for (body, field) in [
        (json!({"retract": true, "fields": {"user_id": "bob"}}), "user_id"),
        (json!({"retract": true, "fields": {"post_id": "p2"}}), "post_id"),
        (json!({"retract": true, "fields": {"more": 1}}), "more"),
        (json!({"retract": true, "type": "like"}), "type"),
        (json!({"retract": true, "at": crate::site::START}), "at"),
        (json!({"at": crate::site::START}), "at"),
        (json!({"retract": true, "id": "x"}), "id"),
        (json!({"retract": "true"}), "retract"),
        (json!({"events": [{"retract": true}]}), "events"),
    ] {
        let answer = site.send(&like("p1", "ann"), body.clone()).await;
        assert_eq!((answer.refusal(), &answer.body["field"]), ((403, "forbidden"), &json!(field)), "{body} {answer:?}");
    }
    // Other operations, and headers.
    let bearer = token(&like("p1", "ann"));
    for (method, path) in [
        (Method::POST, "/v1/boards/shop-likes/increments"),
        (Method::PUT, "/v1/boards/shop-likes/samples"),
        (Method::POST, "/v1/evaluate"),
    ] {
        let body = json!({"subject": "p1", "value": "bob", "retract": true, "at": crate::site::START});
        let answer = site.guarded.send(Some(&bearer), method, path, Some(&body)).await;
        assert_eq!(answer.status, 403, "{path} {answer:?}");
    }
    // A token that does not say so takes nothing back.
    let mut without = like("p1", "bob");
    without["retract"] = json!(false);
    assert_eq!(site.send(&without, json!({"retract": true})).await.refusal(), (403, "forbidden"));
    assert_eq!(site.score("p1").await, json!(1));
    // A field that the token leaves open would choose whose like it is.
    for (member, value) in [("range", json!({"user_id": [1, 9]})), ("once", json!(true))] {
        let mut open = like("p1", "bob");
        open[member] = value;
        assert_eq!(site.send(&open, json!({})).await.refusal(), (401, "invalid_token"), "{member}");
    }
    // Everybody else has to say which event is meant.
    let untimed = json!({"type": "liked", "retract": true, "fields": {"post_id": "p1", "user_id": "bob"}});
    let refused = site.guarded.site.client.post("/v1/events", untimed).await;
    assert_eq!(refused.body["rejected"][0]["code"], "missing_at", "{refused:?}");
    assert_eq!(site.score("p1").await, json!(1));
}

#[actix_web::test]
async fn boards_that_do_not_count_each_person_once_refuse_such_a_token() {
    for (metric, more) in [
        ("COUNT(24h, liked, post_id)", json!({"slot": "1h"})),
        ("SUM(24h, liked*2, post_id)", json!({"slot": "1h"})),
        ("APPROX_COUNT_DISTINCT(24h, liked, post_id, user_id)", json!({"slot": "1h"})),
        ("LAST(24h, liked, score, post_id)", json!({"slot": "1h"})),
        ("COUNT(7d, liked, post_id)", json!({"slot": "1d", "cap": {"per": "user_id", "most": 2, "every": "1d"}})),
    ] {
        let mut site = Liked::new().await;
        let mut definition = more.clone();
        definition["metric"] = json!(metric);
        let defined = site.guarded.site.client.put("/v1/boards/shop-likes-too", definition).await;
        assert_eq!(defined.status, 201, "{defined:?}");
        let mut allowed = like("p1", "ann");
        allowed["event"]["fields"]["score"] = json!(5);
        for body in [json!({}), json!({"retract": true})] {
            let refused = site.send(&allowed, body).await;
            let named = &refused.body["board"];
            assert_eq!(
                (refused.refusal(), named),
                ((403, "forbidden"), &json!("shop-likes-too")),
                "{metric} {refused:?}"
            );
        }
        assert_eq!(site.score("p1").await, json!(0), "{metric}: nothing was counted");
        // With the boards named, it counts.
        allowed["boards"] = json!(["shop-likes"]);
        assert_eq!(site.send(&allowed, json!({})).await.body["accepted"], 1, "{metric}");
        assert_eq!(site.score("p1").await, json!(1), "{metric}");
    }
}

#[actix_web::test]
async fn a_successor_that_counts_otherwise_refuses_such_a_token_too() {
    let mut site = Liked::new().await;
    assert_eq!(site.send(&like("p1", "ann"), json!({})).await.status, 200);
    let next = json!({"metric": "COUNT(24h, liked, post_id)", "slot": "1h"});
    let begun = site.guarded.site.client.put("/v1/boards/shop-likes/next", next).await;
    assert!(begun.status < 300, "{begun:?}");
    assert_eq!(site.send(&like("p1", "ann"), json!({"retract": true})).await.refusal(), (403, "forbidden"));
    assert_eq!(site.score("p1").await, json!(1));
}
