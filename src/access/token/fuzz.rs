//! Hostile tokens and bodies, drawn at random. `fuzz/` has the same with coverage.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::{HmacSecret, Pin, TokenRules, UnverifiedToken, Verifier};
use crate::access::Scope;
use crate::board::Timestamp;

const SECRET: &str = "0123456789abcdef0123456789abcdef";

fn signed(header: &str, claims: &str) -> String {
    let text = format!("{}.{}", URL_SAFE_NO_PAD.encode(header), URL_SAFE_NO_PAD.encode(claims));
    let signature = HmacSecret::new(SECRET).unwrap().sign(text.as_bytes());
    format!("{text}.{}", URL_SAFE_NO_PAD.encode(signature))
}

fn is_accepted(token: &str) -> bool {
    let verifier = Verifier::from(HmacSecret::new(SECRET).unwrap());
    let Ok(token) = UnverifiedToken::parse(token) else { return false };
    let Ok(claims) = token.verify(&verifier) else { return false };
    let is_within = claims.scopes.iter().all(|scope| matches!(scope, Scope::View | Scope::Write));
    assert!(is_within && claims.scopes.allows(Scope::Write) == claims.pin.is_some());
    claims.check(&TokenRules::default(), Timestamp::from_millis(1_000_000)).is_ok()
}

const CLAIMS: &str = r#"{"aud":"rolltop","exp":1100,"jti":"j","rolltop":{"scopes":["write"],"boards":["hot-*"],"event":{"type":"like","fields":{"post":"p1","n":1.5}},"range":{"stars":[1,5]},"once":true}}"#;
const HEADER: &str = r#"{"alg":"HS256","kid":"k","typ":"JWT"}"#;

/// JSON of any type, with the names that items have.
fn value() -> impl Strategy<Value = Value> {
    let name = prop::sample::select(vec!["type", "fields", "post", "n", "stars", "at", "id", "retract", "events", "x"]);
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        (-10i64..10).prop_map(Value::from),
        (-10.0..10.0f64).prop_map(Value::from),
        prop::sample::select(vec!["like", "p1", "p2", "1.5", ""]).prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 16, 4, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
            prop::collection::vec((name.clone(), inner), 0..4)
                .prop_map(|members| Value::Object(members.into_iter().map(|(k, v)| (k.to_owned(), v)).collect())),
        ]
    })
}

proptest! {
    #[test]
    fn no_text_is_a_token(text in "[A-Za-z0-9_.=-]{0,300}") {
        prop_assert!(!is_accepted(&text));
    }

    #[test]
    fn no_change_of_a_token_is_accepted(at in any::<prop::sample::Index>(), with in "[A-Za-z0-9_.-]") {
        let token = signed(HEADER, CLAIMS);
        prop_assert!(is_accepted(&token));
        let at = at.index(token.len());
        let changed = format!("{}{with}{}", &token[..at], &token[at + 1..]);
        prop_assert!(changed == token || !is_accepted(&changed), "{changed}");
    }

    #[test]
    fn claims_that_were_signed_by_mistake_do_no_harm(at in any::<prop::sample::Index>(), cut in 0..12usize, with in ".{0,4}") {
        // Only what reads as claims is accepted, and that is checked in `is_accepted`.
        let at = at.index(CLAIMS.len());
        let end = (at + cut).min(CLAIMS.len());
        is_accepted(&signed(HEADER, &format!("{}{with}{}", &CLAIMS[..at], &CLAIMS[end..])));
    }

    #[test]
    fn what_a_pin_completes_is_the_item_of_the_token(body in value()) {
        let raw = |value: Value| serde_json::value::to_raw_value(&value).unwrap();
        let event = raw(json!({"type": "like", "fields": {"post": "p1", "n": 1.5}}));
        let range = raw(json!({"stars": [1, 5]}));
        let pin = Pin::parse(Some(&event), None, Some(&range)).unwrap().unwrap();
        if let Ok(text) = pin.complete(body.to_string().as_bytes()) {
            let item: Value = serde_json::from_str(&text).unwrap();
            let stars = item["fields"]["stars"].as_f64().unwrap();
            prop_assert!((1.0..=5.0).contains(&stars), "{item}");
            let expected = json!({"type": "like", "fields": {"post": "p1", "n": 1.5, "stars": item["fields"]["stars"]}});
            prop_assert_eq!(item, expected);
        }
    }
}
