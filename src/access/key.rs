//! Keys as they are stored.

use serde::{Deserialize, Serialize};

use super::{Grant, KeyId, KeyRates, PublicKey, Scope, SecretError, SecretHash};
use crate::board::Timestamp;

/// Where a key may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum KeyKind {
    /// Known to programs of its owner only. Requests from pages of other origins are refused.
    Secret,
    /// In web pages, where everybody can read it. It only has the scope `view` or `write`, and names the origins of the
    /// pages.
    Publishable,
    /// Verifies the signatures of [tokens](super::BoundedToken). Its grant is the most that they can allow: `view` or
    /// `write`. It has a public key, or one of the configuration, and no secret of its own.
    Signing,
}

impl KeyKind {
    /// Returns the name of the kind.
    pub const fn as_str(self) -> &'static str {
        match self {
            KeyKind::Secret => "secret",
            KeyKind::Publishable => "publishable",
            KeyKind::Signing => "signing",
        }
    }

    pub(super) const fn prefix(self) -> &'static str {
        match self {
            KeyKind::Secret => "rt",
            KeyKind::Publishable => "rtp",
            // Nobody sends one.
            KeyKind::Signing => "rts",
        }
    }
}

/// A key. It has the hashes of its secrets, never a secret.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Key {
    pub id: KeyId,
    /// What the key is for, in the words of who made it. 1 to 128 bytes.
    pub name: String,
    pub kind: KeyKind,
    #[serde(flatten)]
    pub grant: Grant,
    /// The origins of the pages that may use the key, such as `https://shop.example`; `*` for any.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub origins: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub created_at: Option<Timestamp>,
    /// The key is not valid from this time on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<Timestamp>,
    /// The newest first. After a rotation the one before is valid for a while. A signing key has none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub secrets: Vec<KeySecret>,
    /// What verifies the tokens of a signing key, unless that is in the configuration.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub public_key: Option<PublicKey>,
    /// How fast the key may be used, through each instance.
    #[serde(default, skip_serializing_if = "KeyRates::is_empty")]
    pub rates: KeyRates,
}

/// One of the secrets of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KeySecret {
    pub hash: SecretHash,
    /// The secret is not valid from this time on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<Timestamp>,
}

/// The reason why a key cannot be made.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum KeyError {
    #[error("'name' must have 1 to 128 bytes without control characters")]
    Name,
    #[error("'scopes' must have at least one of view, read, write, manage, admin and metrics")]
    NoScope,
    #[error("'scopes' of a publishable key may be view and write only, because everybody can read the key")]
    PublishableScope,
    #[error("'scopes' of a signing key may be view and write only, because its tokens are for end users")]
    SigningScope,
    #[error("'public_key' must be the JWK of a signing key's public key, and is for signing keys only")]
    PublicKey,
    #[error("a signing key has no secret to rotate; make another signing key, sign with it, and revoke this one")]
    NoSecret,
    #[error("'boards' must name at least one board or pattern, such as \"hot-posts\", \"shop-*\" or \"*\"")]
    NoBoard,
    #[error("'boards' of a key with the scope admin must be [\"*\"], because the scope is about all boards")]
    AdminBoards,
    #[error("'origins' must name at least one origin for a publishable key, such as \"https://shop.example\" or \"*\"")]
    NoOrigin,
    #[error("'origins' are for publishable and signing keys only: a secret key must not be in a page")]
    OriginOfSecretKey,
    #[error("'origins': '{0}' is not an origin, such as https://shop.example, or *")]
    Origin(String),
    #[error("'origins' may name at most 32 origins")]
    TooManyOrigins,
    #[error("'expires_at' must be in the future")]
    Expired,
    #[error("the key would allow more, or for longer, than the key that makes it")]
    Wider,
    #[error("'rates' must not allow more than those of the key that makes it")]
    WiderRates,
    #[error(transparent)]
    Secret(#[from] SecretError),
}

impl KeyError {
    /// Returns the name of the field that is wrong.
    pub fn field(&self) -> &'static str {
        match self {
            KeyError::Name => "name",
            KeyError::NoScope | KeyError::PublishableScope | KeyError::SigningScope | KeyError::Wider => "scopes",
            KeyError::PublicKey => "public_key",
            KeyError::NoSecret => "key",
            KeyError::NoBoard | KeyError::AdminBoards => "boards",
            KeyError::NoOrigin | KeyError::OriginOfSecretKey | KeyError::Origin(_) | KeyError::TooManyOrigins => {
                "origins"
            }
            KeyError::Expired => "expires_at",
            KeyError::WiderRates => "rates",
            KeyError::Secret(_) => "hash",
        }
    }
}

impl Key {
    /// The largest number of origins.
    const MOST_ORIGINS: usize = 32;

    /// Checks that the parts of the key fit together.
    pub fn check(&self) -> Result<(), KeyError> {
        if self.name.is_empty() || self.name.len() > 128 || self.name.chars().any(char::is_control) {
            return Err(KeyError::Name);
        }
        let Grant { scopes, boards } = &self.grant;
        if scopes.is_empty() {
            return Err(KeyError::NoScope);
        }
        match self.kind {
            KeyKind::Secret => {}
            _ if scopes.iter().all(Scope::may_be_public) => {}
            KeyKind::Publishable => return Err(KeyError::PublishableScope),
            KeyKind::Signing => return Err(KeyError::SigningScope),
        }
        if self.public_key.is_some() && self.kind != KeyKind::Signing {
            return Err(KeyError::PublicKey);
        }
        if boards == &super::BoardPatterns::from_iter([]) {
            return Err(KeyError::NoBoard);
        }
        if scopes.allows(Scope::Admin) && !boards.is_all() {
            return Err(KeyError::AdminBoards);
        }
        match (self.kind, self.origins.is_empty()) {
            (KeyKind::Publishable, true) => return Err(KeyError::NoOrigin),
            (KeyKind::Secret, false) => return Err(KeyError::OriginOfSecretKey),
            _ => {}
        }
        if self.origins.len() > Self::MOST_ORIGINS {
            return Err(KeyError::TooManyOrigins);
        }
        match self.origins.iter().find(|origin| !is_origin(origin)) {
            Some(origin) => Err(KeyError::Origin(origin.chars().take(128).collect())),
            None => Ok(()),
        }
    }

    /// Returns the time from which on a secret of the key is not valid.
    pub fn end_of(&self, secret: KeySecret) -> Timestamp {
        secret.until.unwrap_or(Timestamp::MAX).min(self.expires_at.unwrap_or(Timestamp::MAX))
    }

    /// Checks a key that is to be stored: a signing key has its public key with it.
    pub fn check_stored(&self) -> Result<(), KeyError> {
        if (self.kind == KeyKind::Signing) != self.public_key.is_some() {
            return Err(KeyError::PublicKey);
        }
        self.check()
    }

    /// Adds a secret. The newest one before stays valid until `until`, and older ones end.
    pub fn rotate(&mut self, hash: SecretHash, until: Timestamp) {
        self.secrets.truncate(1);
        for old in &mut self.secrets {
            old.until = Some(old.until.map_or(until, |earlier| earlier.min(until)));
        }
        self.secrets.insert(0, KeySecret { hash, until: None });
    }

    /// Returns whether pages of this origin may use the key.
    pub fn allows_origin(&self, origin: &str) -> bool {
        self.origins.iter().any(|known| known == "*" || known == origin)
    }
}

/// Returns whether a text is `*`, or an origin as browsers send it: scheme, host, and the port unless it is the usual
/// one.
fn is_origin(text: &str) -> bool {
    let (rest, usual_port) = match (text.strip_prefix("https://"), text.strip_prefix("http://")) {
        (Some(rest), _) => (rest, 443),
        (_, Some(rest)) => (rest, 80),
        _ => return text == "*",
    };
    let (host, port) = match rest.rsplit_once(':') {
        Some((host, port)) if !port.ends_with(']') => (host, Some(port)),
        _ => (rest, None),
    };
    let is_port = |port: &str| port.parse::<u16>().is_ok_and(|n| n != usual_port && n > 0 && n.to_string() == port);
    let is_label = |label: &str| {
        !label.is_empty()
            && label.len() <= 63
            && label.bytes().all(|b| matches!(b, b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_'))
    };
    let is_host = match host.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
        Some(address) => address.parse::<std::net::Ipv6Addr>().is_ok_and(|parsed| parsed.to_string() == address),
        None => host.len() <= 253 && host.split('.').all(is_label),
    };
    is_host && port.is_none_or(is_port)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::access::{BoardPattern, BoardPatterns, Secret};

    fn key(kind: KeyKind, scopes: &[Scope], boards: &[&str], origins: &[&str]) -> Key {
        let boards = boards.iter().map(|text| text.parse::<BoardPattern>().unwrap()).collect::<BoardPatterns>();
        let secret = Secret::draw(kind).unwrap();
        Key {
            id: secret.id(),
            name: "a key".to_owned(),
            kind,
            grant: Grant { scopes: scopes.iter().copied().collect(), boards },
            origins: origins.iter().map(|origin| (*origin).to_owned()).collect(),
            created_at: None,
            expires_at: None,
            secrets: vec![KeySecret { hash: secret.hash(), until: None }],
            public_key: None,
            rates: KeyRates::default(),
        }
    }

    #[test]
    fn a_signing_key_has_a_public_key_and_is_for_everybody() {
        let jwk = r#"{"kty":"OKP","crv":"Ed25519","x":"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"}"#;
        let mut signing = key(KeyKind::Signing, &[Scope::View, Scope::Write], &["hot-*"], &[]);
        signing.secrets.clear();
        assert_eq!((signing.check(), signing.check_stored()), (Ok(()), Err(KeyError::PublicKey)));
        signing.public_key = Some(serde_json::from_str(jwk).unwrap());
        assert_eq!(signing.check_stored(), Ok(()));
        let text = serde_json::to_string(&signing).unwrap();
        assert!(text.contains(jwk) && !text.contains("secrets"), "{text}");
        assert_eq!(serde_json::from_str::<Key>(&text).unwrap(), signing);
        for scope in [Scope::Read, Scope::Manage, Scope::Admin, Scope::Metrics] {
            let wider = key(KeyKind::Signing, &[scope], &["*"], &[]);
            assert_eq!(wider.check(), Err(KeyError::SigningScope));
        }
        signing.kind = KeyKind::Secret;
        assert_eq!((signing.check(), signing.check_stored()), (Err(KeyError::PublicKey), Err(KeyError::PublicKey)));
    }

    #[test]
    fn a_publishable_key_views_or_writes_from_origins() {
        use KeyKind::{Publishable, Secret};
        let origin = "https://shop.example";
        let check =
            |kind, scopes: &[Scope], boards: &[&str], origins: &[&str]| key(kind, scopes, boards, origins).check();
        assert_eq!(check(Publishable, &[Scope::View], &["a"], &[origin]), Ok(()));
        assert_eq!(check(Publishable, &[Scope::View, Scope::Write], &["*"], &["*", "http://localhost:3000"]), Ok(()));
        for scope in [Scope::Read, Scope::Manage, Scope::Admin, Scope::Metrics] {
            assert_eq!(check(Publishable, &[scope], &["*"], &[origin]), Err(KeyError::PublishableScope));
            assert_eq!(check(Secret, &[scope], &["*"], &[]), Ok(()));
        }
        assert_eq!(check(Publishable, &[Scope::View], &["a"], &[]), Err(KeyError::NoOrigin));
        assert_eq!(check(Secret, &[Scope::View], &["a"], &[origin]), Err(KeyError::OriginOfSecretKey));
        assert_eq!(check(Secret, &[Scope::Admin], &["a"], &[]), Err(KeyError::AdminBoards));
        assert_eq!(check(Secret, &[], &["a"], &[]), Err(KeyError::NoScope));
        assert_eq!(check(Secret, &[Scope::View], &[], &[]), Err(KeyError::NoBoard));
        for origin in ["http://localhost:3000", "https://[::1]:8443", "https://a-b.example", "http://a.example:443"] {
            assert_eq!(check(Publishable, &[Scope::View], &["a"], &[origin]), Ok(()), "{origin}");
        }
        for wrong in [
            "shop.example",
            "https://",
            "https://shop.example/",
            "https://Shop.example",
            "null",
            "ftp://a",
            "https://a.example:443",
            "http://a.example:80",
            "https://a.example:",
            "https://a.example:99999",
            "https://a.example:044",
            "https://::::",
            "https://]]",
            "https://.",
            "https://a..b",
        ] {
            let refused = Err(KeyError::Origin(wrong.to_owned()));
            assert_eq!(check(Publishable, &[Scope::View], &["a"], &[wrong]), refused, "{wrong}");
        }
    }

    #[test]
    fn a_rotated_secret_is_valid_for_a_while() {
        let (mut key, at) = (key(KeyKind::Secret, &[Scope::View], &["*"], &[]), Timestamp::from_millis);
        let draw = || Secret::draw_for(KeyKind::Secret, key.id).unwrap().hash();
        let (first, second, third) = (key.secrets[0].hash, draw(), draw());
        let ends =
            |key: &Key| -> Vec<_> { key.secrets.iter().map(|secret| (secret.hash, key.end_of(*secret))).collect() };
        key.rotate(second, at(100));
        assert_eq!(ends(&key), [(second, Timestamp::MAX), (first, at(100))]);
        key.rotate(third, at(200));
        assert_eq!(ends(&key), [(third, Timestamp::MAX), (second, at(200))]);
        key.expires_at = Some(at(150));
        assert_eq!(ends(&key), [(third, at(150)), (second, at(150))]);
    }

    #[test]
    fn a_stored_key_is_read_again() {
        let mut key = key(KeyKind::Publishable, &[Scope::View], &["hot-*"], &["https://a"]);
        key.expires_at = Some(Timestamp::from_millis(1_000));
        let text = serde_json::to_string(&key).unwrap();
        assert_eq!(serde_json::from_str::<Key>(&text).unwrap(), key);
        assert!(!text.contains("rates"), "keys without rates are stored as before there were any");
        key.rates = serde_json::from_str(r#"{"requests":"5/s","items":"10/m burst 3","streams":2}"#).unwrap();
        let limited = serde_json::to_string(&key).unwrap();
        assert_eq!(serde_json::from_str::<Key>(&limited).unwrap(), key);
        let more = text.replacen('{', "{\"more\":1,", 1);
        assert!(serde_json::from_str::<Key>(&more).is_err(), "what a later version added may restrict the key");
    }
}
