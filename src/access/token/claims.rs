//! The claims of a token.

use serde_json::value::RawValue;

use super::members::{Members, text_of};
use super::{Pin, TokenError};
use crate::access::{BoardPatterns, Scope, Scopes};
use crate::board::Timestamp;

/// What the claims of every token are checked against.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TokenRules {
    /// The audience that tokens must name as `aud`.
    pub audience: String,
    /// How far `exp` may be away, in milliseconds.
    pub max_life: i64,
}

impl TokenRules {
    /// The time in milliseconds by which the clocks of those who sign may differ from this one.
    pub const LEEWAY: i64 = 30_000;
}

impl Default for TokenRules {
    fn default() -> Self {
        Self { audience: "rolltop".to_owned(), max_life: 86_400_000 }
    }
}

/// The claims of a token. Other registered claims, and those of others, are ignored.
#[derive(Debug)]
pub struct Claims {
    audience: Vec<String>,
    expires_at: Timestamp,
    not_before: Option<Timestamp>,
    pub(super) jti: Option<String>,
    pub(super) scopes: Scopes,
    /// The boards that the token is for. `None`: those of its signing key.
    pub(super) boards: Option<BoardPatterns>,
    pub(super) pin: Option<Pin>,
    /// Whether the item counts once.
    pub(super) is_once: bool,
    /// The length of the text.
    pub(super) bytes: usize,
}

fn wrong(claim: &'static str, detail: &str) -> TokenError {
    TokenError::Claim { claim, detail: detail.to_owned() }
}

impl Claims {
    /// Parses claims.
    pub fn parse(text: &[u8]) -> Result<Self, TokenError> {
        let text = std::str::from_utf8(text).map_err(|_| TokenError::Form)?;
        let no_object = || wrong("rolltop", "cannot be read: the claims are no object, or have a member twice");
        let mut claims = Members::parse(text).ok_or_else(no_object)?;
        let audience = claims
            .take("aud")
            .and_then(audience)
            .ok_or_else(|| wrong("aud", "is missing, or neither a text nor a list of texts"))?;
        let date = |claim, raw: Option<&RawValue>| match raw.map(RawValue::get) {
            None => Ok(None),
            Some(text) => match numeric_date(text) {
                Some(date) => Ok(Some(date)),
                None => Err(wrong(claim, "is not a number of seconds since 1970")),
            },
        };
        let expires_at = date("exp", claims.take("exp"))?.ok_or_else(|| wrong("exp", "is missing"))?;
        let not_before = date("nbf", claims.take("nbf"))?;
        date("iat", claims.take("iat"))?;
        let jti = match claims.take("jti") {
            None => None,
            Some(raw) => Some(text_of(raw).filter(|jti| !jti.is_empty()).ok_or_else(|| wrong("jti", "is not a text"))?),
        };
        let own = claims.take("rolltop").ok_or_else(|| wrong("rolltop", "is missing"))?;
        let Own { scopes, boards, pin, is_once } = Own::parse(own)?;
        if is_once && jti.is_none() {
            return Err(wrong("jti", "is missing; with 'once' it tells this token from others"));
        }
        let jti = jti.map(|jti| jti.into_owned());
        Ok(Self { audience, expires_at, not_before, jti, scopes, boards, pin, is_once, bytes: text.len() })
    }

    /// Returns the one item that the token allows, if it allows writing.
    pub fn pin(&self) -> Option<&Pin> {
        self.pin.as_ref()
    }

    /// Checks the audience and the times. Returns the time from which on the token is not valid.
    pub fn check(&self, rules: &TokenRules, now: Timestamp) -> Result<Timestamp, TokenError> {
        if !self.audience.contains(&rules.audience) {
            // The audience of this service is not shown.
            return Err(wrong("aud", "does not name this service (setting token_audience)"));
        }
        let until = self.expires_at.plus_millis(TokenRules::LEEWAY);
        if now >= until {
            return Err(TokenError::Expired);
        }
        if self.expires_at > now.plus_millis(rules.max_life).plus_millis(TokenRules::LEEWAY) {
            return Err(wrong("exp", "is too far away (setting token_max_life)"));
        }
        if self.not_before.is_some_and(|at| at > now.plus_millis(TokenRules::LEEWAY)) {
            return Err(wrong("nbf", "is in the future"));
        }
        Ok(until)
    }
}

/// The claim `rolltop`.
struct Own {
    scopes: Scopes,
    boards: Option<BoardPatterns>,
    pin: Option<Pin>,
    is_once: bool,
}

impl Own {
    fn parse(raw: &RawValue) -> Result<Self, TokenError> {
        let wrong = |detail: &str| wrong("rolltop", detail);
        let mut members = Members::parse(raw.get()).ok_or_else(|| wrong("is not an object with each member once"))?;
        let scopes = members.take("scopes").and_then(|raw| serde_json::from_str::<Scopes>(raw.get()).ok());
        let scopes = scopes.filter(|scopes| !scopes.is_empty() && scopes.iter().all(Scope::may_be_public));
        let scopes = scopes.ok_or_else(|| wrong("needs 'scopes', a list of view and write"))?;
        let boards = members.take("boards").map(|raw| serde_json::from_str::<BoardPatterns>(raw.get()));
        let boards = boards.transpose().map_err(|_| wrong("has 'boards' that is no list of names and patterns"))?;
        let mut flag = |name: &str| match members.take(name).map(RawValue::get) {
            None | Some("false") => Ok(false),
            Some("true") => Ok(true),
            Some(_) => Err(wrong(&format!("has '{name}' that is neither true nor false"))),
        };
        let is_once = flag("once")?;
        let takes_back = flag("retract")?;
        let pin = Pin::parse(members.take("event"), members.take("increment"), members.take("range")).map_err(wrong)?;
        let pin = match pin {
            Some(pin) if takes_back => Some(pin.taking_back().map_err(wrong)?),
            None if takes_back => return Err(wrong("has 'retract' without 'event'")),
            pin => pin,
        };
        if let Some(unknown) = members.unknown() {
            let known = "scopes, boards, event, increment, range, once, retract";
            return Err(wrong(&format!("has the unknown member {unknown:?}; known are {known}")));
        }
        if scopes.allows(Scope::Write) != pin.is_some() {
            return Err(wrong("needs 'event' or 'increment' with the scope write, and neither without it"));
        }
        if is_once && pin.is_none() {
            return Err(wrong("has 'once' without 'event' or 'increment'"));
        }
        if is_once && takes_back {
            // What was taken back could not be given again.
            return Err(wrong("has both 'once' and 'retract'"));
        }
        Ok(Self { scopes, boards, pin, is_once })
    }
}

/// Reads an audience: a text, or a list of texts.
fn audience(raw: &RawValue) -> Option<Vec<String>> {
    match text_of(raw) {
        Some(one) => Some(vec![one.into_owned()]),
        None => serde_json::from_str::<Vec<String>>(raw.get()).ok(),
    }
}

/// Reads a NumericDate (RFC 7519): seconds since 1970, perhaps with a fraction.
fn numeric_date(text: &str) -> Option<Timestamp> {
    /// The end of the year 9999.
    const LAST: f64 = 253_402_300_799.0;
    let is_number = text.starts_with(|first: char| first.is_ascii_digit());
    let seconds = text.parse::<f64>().ok().filter(|seconds| is_number && (0.0..=LAST).contains(seconds))?;
    Some(Timestamp::from_millis((seconds * 1_000.0) as i64))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_millis(seconds * 1_000)
    }

    fn claims() -> Value {
        json!({"aud": "rolltop", "exp": 1_000, "rolltop": {"scopes": ["view"]}})
    }

    fn with(claim: &str, value: Value) -> Value {
        let mut claims = claims();
        claims[claim] = value;
        claims
    }

    fn parse(claims: &Value) -> Result<Claims, TokenError> {
        Claims::parse(claims.to_string().as_bytes())
    }

    #[test]
    fn registered_claims_are_checked() {
        let check = |claims: Value, now: i64| {
            let rules = TokenRules { max_life: 600_000, ..TokenRules::default() };
            match parse(&claims).and_then(|claims| claims.check(&rules, at(now))) {
                Ok(until) => format!("until {}", until.millis() / 1_000),
                Err(TokenError::Claim { claim, .. }) => claim.to_owned(),
                Err(error) => format!("{error:?}"),
            }
        };
        for (claims, now, expected) in [
            (claims(), 900, "until 1030"),
            (claims(), 1_029, "until 1030"),
            (claims(), 1_030, "Expired"),
            (claims(), 370, "until 1030"),
            (claims(), 369, "exp"),
            (with("exp", json!(1000.9)), 900, "until 1030"),
            (with("exp", json!("1000")), 900, "exp"),
            (with("exp", json!(-1)), 900, "exp"),
            (with("exp", json!(1e300)), 900, "exp"),
            (with("exp", json!(null)), 900, "exp"),
            (with("nbf", json!(930)), 900, "until 1030"),
            (with("nbf", json!(931)), 900, "nbf"),
            (with("nbf", json!("99999999999")), 900, "nbf"),
            (with("iat", json!("x")), 900, "iat"),
            (with("aud", json!(["other", "rolltop"])), 900, "until 1030"),
            (with("aud", json!("other")), 900, "aud"),
            (with("aud", json!([])), 900, "aud"),
            (with("aud", json!([5])), 900, "aud"),
            (with("aud", json!(null)), 900, "aud"),
            (with("jti", json!(5)), 900, "jti"),
            (with("sub", json!({"any": "thing"})), 900, "until 1030"),
            (with("rolltop", json!(null)), 900, "rolltop"),
        ] {
            assert_eq!(check(claims.clone(), now), expected, "{claims} at {now}");
        }
        for text in [r#"{"aud":"rolltop","exp":1000,"exp":2000,"rolltop":{"scopes":["view"]}}"#, "[]", "5", ""] {
            assert!(Claims::parse(text.as_bytes()).is_err(), "{text}");
        }
    }

    #[test]
    fn what_a_token_allows_is_complete_and_known() {
        let own = |own: Value| {
            let mut claims = with("jti", json!("1"));
            claims["rolltop"] = own;
            parse(&claims).map(|claims| (claims.scopes.iter().count(), claims.pin.is_some(), claims.is_once))
        };
        let increment = json!({"subject": "p1"});
        for (right, expected) in [
            (json!({"scopes": ["view"]}), (1, false, false)),
            (json!({"scopes": ["view"], "boards": ["hot-*", "new"]}), (1, false, false)),
            (json!({"scopes": ["write"], "increment": increment, "once": true}), (1, true, true)),
            (json!({"scopes": ["view", "write"], "event": {"type": "like"}, "range": null}), (2, true, false)),
            (json!({"scopes": ["write"], "event": {"type": "like"}, "retract": true, "once": false}), (1, true, false)),
            (json!({"scopes": ["view"], "retract": false}), (1, false, false)),
        ] {
            assert_eq!(own(right.clone()), Ok(expected), "{right}");
        }
        for wrong in [
            json!({}),
            json!({"scopes": []}),
            json!({"scopes": ["read"]}),
            json!({"scopes": ["view", "admin"]}),
            json!({"scopes": "view"}),
            json!({"scopes": ["view"], "boards": "hot-*"}),
            json!({"scopes": ["view"], "boards": ["h*t"]}),
            json!({"scopes": ["view"], "more": 1}),
            json!({"scopes": ["view"], "increment": increment}),
            json!({"scopes": ["view"], "once": true}),
            json!({"scopes": ["view"], "once": 1}),
            json!({"scopes": ["view"], "retract": true}),
            json!({"scopes": ["write"], "event": {"type": "like"}, "retract": 1}),
            json!({"scopes": ["write"], "event": {"type": "like"}, "retract": true, "once": true}),
            json!({"scopes": ["write"], "event": {"type": "like"}, "retract": true, "range": {"user": [1, 9]}}),
            json!({"scopes": ["write"], "increment": increment, "retract": true}),
            json!({"scopes": ["write"]}),
            json!({"scopes": ["write"], "event": {"type": "like"}, "increment": increment}),
            json!(["view"]),
        ] {
            assert!(own(wrong.clone()).is_err(), "{wrong}");
        }
        let mut once = with("rolltop", json!({"scopes": ["write"], "increment": increment, "once": true}));
        assert!(matches!(parse(&once), Err(TokenError::Claim { claim: "jti", .. })));
        once["jti"] = json!("");
        assert!(parse(&once).is_err());
    }
}
