//! Verification of signatures. The key determines the algorithm; what a token names has to be the same.

use std::fmt;

use ring::digest::{self, SHA256};
use ring::hmac;
use ring::signature::{self, RsaPublicKeyComponents, UnparsedPublicKey};
use serde::{Deserialize, Deserializer};

use super::PublicKey;
use crate::access::{KeyId, SecretHash};
use crate::board::EventId;

/// What verifies the tokens of one signing key.
#[derive(Clone)]
pub struct Verifier(Method);

#[derive(Clone)]
enum Method {
    Hmac(HmacSecret),
    Public(PublicKey),
}

/// The secret of a signing key with HS256, which stands in the configuration only. `Debug` does not show it, and it
/// cannot be serialized.
#[derive(Clone)]
pub struct HmacSecret {
    key: hmac::Key,
    hash: SecretHash,
}

impl HmacSecret {
    /// The shortest secret in bytes: as long as the hash (RFC 7518, section 3.2).
    pub const SHORTEST: usize = 32;

    /// Returns the secret whose bytes are those of a text. `None` if it is too short.
    pub fn new(text: &str) -> Option<Self> {
        let secret = text.as_bytes();
        let hash = || hash_of(&[b"HS256", secret]);
        (secret.len() >= Self::SHORTEST).then(|| Self { key: hmac::Key::new(hmac::HMAC_SHA256, secret), hash: hash() })
    }

    /// Signs a text.
    pub fn sign(&self, text: &[u8]) -> Vec<u8> {
        hmac::sign(&self.key, text).as_ref().to_vec()
    }
}

impl<'de> Deserialize<'de> for HmacSecret {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let too_short = || {
            let detail = format!("'secret' must have at least {} bytes, of random digits or letters", Self::SHORTEST);
            serde::de::Error::custom(detail)
        };
        Self::new(&text).ok_or_else(too_short)
    }
}

impl fmt::Debug for HmacSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("…")
    }
}

impl Verifier {
    /// Returns the name of the algorithm.
    pub fn algorithm(&self) -> &'static str {
        match &self.0 {
            Method::Hmac(_) => "HS256",
            Method::Public(key) => key.algorithm(),
        }
    }

    /// Returns whether a signature is one of the key for a text.
    pub fn verifies(&self, text: &[u8], signature: &[u8]) -> bool {
        let verified = match &self.0 {
            // In a time that does not depend on where the two differ.
            Method::Hmac(secret) => hmac::verify(&secret.key, text, signature),
            Method::Public(PublicKey::Ed25519(key)) => {
                UnparsedPublicKey::new(&signature::ED25519, key).verify(text, signature)
            }
            Method::Public(PublicKey::P256(point)) => {
                UnparsedPublicKey::new(&signature::ECDSA_P256_SHA256_FIXED, point).verify(text, signature)
            }
            Method::Public(PublicKey::Rsa { n, e }) => {
                RsaPublicKeyComponents { n, e }.verify(&signature::RSA_PKCS1_2048_8192_SHA256, text, signature)
            }
        };
        verified.is_ok()
    }

    /// Returns a hash that differs for different keys.
    pub fn hash(&self) -> SecretHash {
        match &self.0 {
            Method::Hmac(secret) => secret.hash,
            Method::Public(PublicKey::Ed25519(key)) => hash_of(&[b"EdDSA", key]),
            Method::Public(PublicKey::P256(point)) => hash_of(&[b"ES256", point]),
            Method::Public(PublicKey::Rsa { n, e }) => hash_of(&[b"RS256", n, e]),
        }
    }
}

impl From<HmacSecret> for Verifier {
    fn from(secret: HmacSecret) -> Self {
        Self(Method::Hmac(secret))
    }
}

impl From<PublicKey> for Verifier {
    fn from(key: PublicKey) -> Self {
        Self(Method::Public(key))
    }
}

impl fmt::Debug for Verifier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.algorithm())
    }
}

/// Returns the id of the item of a token that counts once.
pub(super) fn id_of(key: KeyId, jti: &str) -> EventId {
    let hash = hash_of(&[key.to_string().as_bytes(), jti.as_bytes()]);
    EventId::of_token(hash)
}

/// Returns the SHA-256 of byte strings, each after its length, so that no two lists have the same text.
fn hash_of(parts: &[&[u8]]) -> SecretHash {
    let mut context = digest::Context::new(&SHA256);
    for part in parts {
        context.update(&(part.len() as u64).to_be_bytes());
        context.update(part);
    }
    SecretHash::of_digest(&context.finish())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_depend_on_key_and_jti_and_never_change() {
        let key = |text: &str| KeyId::parse(text).unwrap();
        assert_eq!(
            id_of(key("5f1c2a9d04b7e386"), "like-1").as_str(),
            "token:2625e5dbab773ceecb25ba7f433bef27a4728e1df9959044af6c3d2f65679207"
        );
        let (one, two) = (key("0000000000000001"), key("0000000000000002"));
        let ids = [id_of(one, "b"), id_of(two, "b"), id_of(one, "bb"), id_of(one, "")];
        for (at, id) in ids.iter().enumerate() {
            assert!(!ids[..at].contains(id), "{id}");
        }
    }

    #[test]
    fn secrets_are_long_and_never_shown() {
        let text = "0123456789abcdef0123456789abcdef";
        assert!(HmacSecret::new(&text[1..]).is_none());
        let secret = HmacSecret::new(text).unwrap();
        assert!(!format!("{secret:?} {:?}", Verifier::from(secret.clone())).contains("0123"));
        assert!(Verifier::from(secret.clone()).verifies(b"text", &secret.sign(b"text")));
        assert!(!Verifier::from(secret.clone()).verifies(b"texts", &secret.sign(b"text")));
        assert!(!Verifier::from(secret).verifies(b"text", b""));
    }
}
