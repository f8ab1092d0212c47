//! Public keys as JWKs (RFC 7517, RFC 8037), of which only what the algorithms need is kept.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};

/// The public key of a signing key. Its type determines the algorithm.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Jwk", into = "Jwk")]
pub enum PublicKey {
    /// For EdDSA.
    Ed25519([u8; 32]),
    /// For ES256: a point of P-256, uncompressed.
    P256([u8; 65]),
    /// For RS256.
    Rsa { n: Box<[u8]>, e: Box<[u8]> },
}

/// The reason why a JWK cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PublicKeyError {
    #[error(
        "a public key is a JWK with kty OKP and crv Ed25519, with kty EC and crv P-256, or with kty RSA and 2048 to 4096 \
         bits"
    )]
    Type,
    #[error("the JWK has a private or secret key; give its public part only")]
    Private,
    #[error("'alg' of the JWK must be {0}, or absent, and 'use' must be sig, or absent")]
    Purpose(&'static str),
    #[error("anybody can sign for this key: {0}; make a key pair with a library or `openssl genpkey`")]
    Weak(&'static str),
    #[error("a key set is an object with 'keys', a list of JWKs: {0}")]
    Set(String),
    #[error("the key set has two keys with the kid '{0}'")]
    Twice(String),
    #[error(
        "the key set has no key that has a 'kid' and can be used; usable are Ed25519, P-256 and RSA with 2048 to 4096 bits"
    )]
    NoKey,
}

/// A JWK as text. Members that are not listed are ignored.
#[derive(Clone, Default, Serialize, Deserialize)]
#[serde(expecting = "a JWK: an object or table with 'kty' and the members of its type")]
struct Jwk {
    kty: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    crv: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    x: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    y: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    n: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    e: Option<String>,
    #[serde(default, skip_serializing)]
    kid: Option<String>,
    #[serde(default, skip_serializing)]
    alg: Option<String>,
    #[serde(default, rename = "use", skip_serializing)]
    purpose: Option<String>,
    /// The private part, and the whole of a symmetric key.
    #[serde(default, skip_serializing)]
    d: Option<IgnoredAny>,
    #[serde(default, skip_serializing)]
    k: Option<IgnoredAny>,
}

impl PublicKey {
    /// Returns the name of the one algorithm that tokens of the key are signed with.
    pub fn algorithm(&self) -> &'static str {
        match self {
            PublicKey::Ed25519(_) => "EdDSA",
            PublicKey::P256(_) => "ES256",
            PublicKey::Rsa { .. } => "RS256",
        }
    }
}

/// The numbers that stand for the eight points of Ed25519 whose order divides 8, without their highest bit, which is the
/// sign of the other coordinate: 0, 1, two of order 8, -1, and 0 and 1 once more with the prime added.
///
/// A point of small order times any number is one of eight points, so a signature that holds is found by trying.
const SMALL_ORDER: [[u64; 4]; 7] = [
    [0, 0, 0, 0],
    [1, 0, 0, 0],
    [0xb027_b2c2_8f95_e826, 0xf098_eff2_89f4_c345, 0x3933_c6d3_05ac_dfd5, 0x05fc_536d_8802_38b1],
    [0x4fd8_4d3d_706a_17c7, 0x0f67_100d_760b_3cba, 0xc6cc_392c_fa53_202a, 0x7a03_ac92_77fd_c74e],
    [0xffff_ffff_ffff_ffec, 0xffff_ffff_ffff_ffff, 0xffff_ffff_ffff_ffff, 0x7fff_ffff_ffff_ffff],
    [0xffff_ffff_ffff_ffed, 0xffff_ffff_ffff_ffff, 0xffff_ffff_ffff_ffff, 0x7fff_ffff_ffff_ffff],
    [0xffff_ffff_ffff_ffee, 0xffff_ffff_ffff_ffff, 0xffff_ffff_ffff_ffff, 0x7fff_ffff_ffff_ffff],
];

/// Returns whether anybody can make signatures for this point.
fn has_small_order(point: &[u8; 32]) -> bool {
    let mut words = [0; 4];
    for (word, bytes) in words.iter_mut().zip(point.as_chunks::<8>().0) {
        *word = u64::from_le_bytes(*bytes);
    }
    words[3] &= u64::MAX >> 1;
    SMALL_ORDER.contains(&words)
}

/// Parses a key set (JWKS): the keys that can be used, with their `kid`. Keys of other types and purposes are left out,
/// as an identity provider may have some.
pub fn parse_key_set(text: &str) -> Result<Vec<(String, PublicKey)>, PublicKeyError> {
    #[derive(Deserialize)]
    struct Set {
        keys: Vec<Jwk>,
    }
    let Set { keys } = serde_json::from_str(text).map_err(|error| PublicKeyError::Set(error.to_string()))?;
    let mut usable: Vec<(String, PublicKey)> = Vec::new();
    for jwk in keys {
        let Some(kid) = jwk.kid.clone() else { continue };
        match PublicKey::try_from(jwk) {
            Ok(_) if usable.iter().any(|(known, _)| *known == kid) => return Err(PublicKeyError::Twice(kid)),
            Ok(key) => usable.push((kid, key)),
            Err(PublicKeyError::Private) => return Err(PublicKeyError::Private),
            Err(_) => {}
        }
    }
    if usable.is_empty() { Err(PublicKeyError::NoKey) } else { Ok(usable) }
}

impl TryFrom<Jwk> for PublicKey {
    type Error = PublicKeyError;

    fn try_from(jwk: Jwk) -> Result<Self, PublicKeyError> {
        if jwk.d.is_some() || jwk.k.is_some() {
            return Err(PublicKeyError::Private);
        }
        let bytes = |text: &Option<String>| {
            text.as_deref().and_then(|text| URL_SAFE_NO_PAD.decode(text).ok()).ok_or(PublicKeyError::Type)
        };
        let of_32 = |text| bytes(text).and_then(|bytes| <[u8; 32]>::try_from(bytes).map_err(|_| PublicKeyError::Type));
        let key = match (jwk.kty.as_str(), jwk.crv.as_deref()) {
            ("OKP", Some("Ed25519")) => {
                let point = of_32(&jwk.x)?;
                if has_small_order(&point) {
                    return Err(PublicKeyError::Weak("its 'x' is a point of small order"));
                }
                PublicKey::Ed25519(point)
            }
            ("EC", Some("P-256")) => {
                let mut point = [4; 65];
                point[1..33].copy_from_slice(&of_32(&jwk.x)?);
                point[33..].copy_from_slice(&of_32(&jwk.y)?);
                PublicKey::P256(point)
            }
            ("RSA", None) => {
                let (n, e) = (bytes(&jwk.n)?, bytes(&jwk.e)?);
                let bits = n.len() * 8 - n.first().map_or(0, |first| first.leading_zeros() as usize);
                // Larger keys take so long to verify that wrong signatures would slow others down.
                if !(2_048..=4_096).contains(&bits) || n[0] == 0 || e.is_empty() || e.len() > 8 || e[0] == 0 {
                    return Err(PublicKeyError::Type);
                }
                // With 1, a signature is the text that it signs. With an even number, none can be made.
                if e == [1] || e[e.len() - 1] % 2 == 0 {
                    return Err(PublicKeyError::Weak("its 'e' is 1 or even"));
                }
                PublicKey::Rsa { n: n.into(), e: e.into() }
            }
            _ => return Err(PublicKeyError::Type),
        };
        let algorithm = key.algorithm();
        if jwk.alg.is_some_and(|alg| alg != algorithm) || jwk.purpose.is_some_and(|purpose| purpose != "sig") {
            return Err(PublicKeyError::Purpose(algorithm));
        }
        Ok(key)
    }
}

impl From<PublicKey> for Jwk {
    fn from(key: PublicKey) -> Self {
        let text = |bytes: &[u8]| Some(URL_SAFE_NO_PAD.encode(bytes));
        let curve = |kty: &str, crv: &str| Jwk { kty: kty.to_owned(), crv: Some(crv.to_owned()), ..Jwk::default() };
        match key {
            PublicKey::Ed25519(x) => Jwk { x: text(&x), ..curve("OKP", "Ed25519") },
            PublicKey::P256(point) => Jwk { x: text(&point[1..33]), y: text(&point[33..]), ..curve("EC", "P-256") },
            PublicKey::Rsa { n, e } => Jwk { kty: "RSA".to_owned(), n: text(&n), e: text(&e), ..Jwk::default() },
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    /// Of RFC 8037, appendix A.2.
    fn ed25519() -> Value {
        json!({"kty": "OKP", "crv": "Ed25519", "x": "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"})
    }

    fn rsa(bytes: usize) -> Value {
        json!({"kty": "RSA", "n": URL_SAFE_NO_PAD.encode(vec![0xff; bytes]), "e": "AQAB"})
    }

    fn with(mut jwk: Value, member: &str, value: &str) -> Value {
        jwk[member] = json!(value);
        jwk
    }

    #[test]
    fn a_public_key_is_written_as_it_was_read() {
        let p256 = json!({"kty": "EC", "crv": "P-256", "x": URL_SAFE_NO_PAD.encode([1; 32]),
            "y": URL_SAFE_NO_PAD.encode([2; 32])});
        for (jwk, algorithm) in [(ed25519(), "EdDSA"), (p256, "ES256"), (rsa(256), "RS256")] {
            let key: PublicKey = serde_json::from_value(jwk.clone()).unwrap();
            assert_eq!((key.algorithm(), serde_json::to_value(&key).unwrap()), (algorithm, jwk.clone()));
            let more = with(with(with(with(jwk, "alg", algorithm), "use", "sig"), "kid", "k"), "x5t", "ignored");
            assert_eq!(serde_json::from_value::<PublicKey>(more).unwrap(), key);
        }
    }

    #[test]
    fn other_keys_are_refused() {
        for wrong in [
            json!({}),
            json!({"kty": "oct", "k": "AA"}),
            with(ed25519(), "d", "AA"),
            with(ed25519(), "alg", "HS256"),
            with(ed25519(), "use", "enc"),
            with(ed25519(), "crv", "X25519"),
            with(ed25519(), "x", "AA"),
            with(ed25519(), "x", "not base64url!"),
            json!({"kty": "EC", "crv": "P-384", "x": "AA", "y": "AA"}),
            rsa(255),
            rsa(513),
            json!({"kty": "RSA", "n": URL_SAFE_NO_PAD.encode([0; 256]), "e": "AQAB"}),
            json!({"kty": "RSA", "n": "", "e": "AQAB"}),
            with(rsa(256), "e", ""),
        ] {
            assert!(serde_json::from_value::<PublicKey>(wrong.clone()).is_err(), "{wrong}");
        }
    }

    #[test]
    fn points_of_small_order_are_refused_however_they_are_written() {
        let with_x =
            |x: [u8; 32]| serde_json::from_value::<PublicKey>(with(ed25519(), "x", &URL_SAFE_NO_PAD.encode(x)));
        for words in SMALL_ORDER {
            let mut x = [0; 32];
            for (bytes, word) in x.as_chunks_mut::<8>().0.iter_mut().zip(words) {
                *bytes = word.to_le_bytes();
            }
            for sign in [0, 0x80] {
                x[31] = x[31] & 0x7f | sign;
                let refused = with_x(x).unwrap_err().to_string();
                assert!(refused.contains("small order"), "{x:?}: {refused}");
            }
        }
        // This is why: the same signature, made without any key, is one of every fourth text.
        let zero = ring::signature::UnparsedPublicKey::new(&ring::signature::ED25519, [0; 32]);
        let forged = [&[1][..], &[0; 63]].concat();
        assert!((0..200_u32).any(|text| zero.verify(&text.to_le_bytes(), &forged).is_ok()));
        assert!(with_x([2; 32]).is_ok() && with_x([9; 32]).is_ok());
        for e in ["AQ", "Ag", "AQAA"] {
            let refused = serde_json::from_value::<PublicKey>(with(rsa(256), "e", e)).unwrap_err().to_string();
            assert!(refused.contains("'e' is 1 or even"), "{e}: {refused}");
        }
    }

    #[test]
    fn a_key_set_has_the_usable_keys() {
        let set = |keys: Vec<Value>| parse_key_set(&json!({"keys": keys}).to_string());
        let known = with(ed25519(), "kid", "a");
        let others = [ed25519(), with(rsa(128), "kid", "small"), with(with(ed25519(), "kid", "e"), "use", "enc")];
        let kids: Vec<_> = set([vec![known.clone()], others.to_vec()].concat()).unwrap();
        assert_eq!(kids.iter().map(|(kid, _)| kid.as_str()).collect::<Vec<_>>(), ["a"]);
        assert_eq!(set(others.to_vec()), Err(PublicKeyError::NoKey));
        assert_eq!(set(vec![known.clone(), known.clone()]), Err(PublicKeyError::Twice("a".to_owned())));
        assert_eq!(set(vec![known.clone(), with(known, "d", "AA")]), Err(PublicKeyError::Private));
        assert!(matches!(parse_key_set("[]"), Err(PublicKeyError::Set(_))));
    }
}
