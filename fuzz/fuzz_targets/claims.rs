//! No claims make reading them panic, whoever signed them. The first line is the claims, the rest the body of a
//! request.
#![no_main]

use libfuzzer_sys::fuzz_target;
use rolltop::access::{Claims, TokenRules};
use rolltop::board::Timestamp;

fuzz_target!(|text: &str| {
    let (claims, body) = text.split_once('\n').unwrap_or((text, ""));
    if let Ok(claims) = Claims::parse(claims.as_bytes()) {
        let _ = claims.check(&TokenRules::default(), Timestamp::from_millis(0));
        if let Some(item) = claims.pin().and_then(|pin| pin.complete(body.as_bytes()).ok()) {
            serde_json::from_str::<serde_json::Value>(&item).expect("an item is JSON");
        }
    }
});
