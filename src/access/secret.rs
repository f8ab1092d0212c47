//! The text of a key, which its owner sends, and the hash that is stored instead.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

use rand::TryRngCore;
use rand::rngs::OsRng;
use ring::digest::{Digest, SHA256, digest};
use subtle::ConstantTimeEq;

use super::KeyKind;
use crate::board::text::text;

/// The id of a key: 16 hexadecimal digits. It is no secret.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct KeyId(u64);

/// The text of a key: `rt_<id>_<secret>`, with `rtp_` for publishable keys; the secret is 64 hexadecimal digits, which
/// stand for 256 random bits.
///
/// Neither `Debug` nor `Display` show it.
#[derive(Clone)]
pub struct Secret {
    kind: KeyKind,
    id: KeyId,
    bits: [u8; 32],
}

/// The SHA-256 of the 256 bits of a secret. They are random, so no slow hash is needed.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct SecretHash([u8; 32]);

/// A text that is not the text of a key, an id or a hash.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SecretError {
    #[error("a key has the form rt_<id>_<secret>, or rtp_<id>_<secret>")]
    Key,
    #[error("the id of a key is 16 hexadecimal digits")]
    Id,
    #[error("the hash of a key is 64 hexadecimal digits")]
    Hash,
    #[error("the system has no random numbers")]
    NoRandomness,
}

impl KeyId {
    /// Draws the id of a new key.
    pub fn draw() -> Result<Self, SecretError> {
        let mut id = [0; 8];
        random(&mut id)?;
        Ok(Self(u64::from_be_bytes(id)))
    }

    /// Parses an id.
    pub fn parse(text: &str) -> Result<Self, SecretError> {
        bytes_of::<8>(text).map(|bytes| Self(u64::from_be_bytes(bytes))).ok_or(SecretError::Id)
    }
}

impl FromStr for KeyId {
    type Err = SecretError;

    fn from_str(text: &str) -> Result<Self, SecretError> {
        Self::parse(text)
    }
}

impl fmt::Display for KeyId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

impl Secret {
    /// Draws the secret of a new key.
    pub fn draw(kind: KeyKind) -> Result<Self, SecretError> {
        Self::draw_for(kind, KeyId::draw()?)
    }

    /// Draws another secret of a key.
    pub fn draw_for(kind: KeyKind, id: KeyId) -> Result<Self, SecretError> {
        let mut bits = [0; 32];
        random(&mut bits)?;
        Ok(Self { kind, id, bits })
    }

    /// Parses the text of a key. O(1).
    pub fn parse(text: &str) -> Result<Self, SecretError> {
        let parsed = || {
            let (prefix, rest) = text.split_once('_')?;
            let kind = [KeyKind::Secret, KeyKind::Publishable].into_iter().find(|kind| kind.prefix() == prefix)?;
            let (id, bits) = rest.split_once('_')?;
            Some(Self { kind, id: KeyId::parse(id).ok()?, bits: bytes_of(bits)? })
        };
        parsed().ok_or(SecretError::Key)
    }

    pub fn kind(&self) -> KeyKind {
        self.kind
    }

    pub fn id(&self) -> KeyId {
        self.id
    }

    /// Returns what is stored of the secret.
    pub fn hash(&self) -> SecretHash {
        SecretHash::of_digest(&digest(&SHA256, &self.bits))
    }

    /// Returns the text to give to the owner of the key.
    pub fn reveal(&self) -> String {
        format!("{}_{}_{}", self.kind.prefix(), self.id, hex(&self.bits))
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}_{}_…", self.kind.prefix(), self.id)
    }
}

impl SecretHash {
    /// Returns a SHA-256 that was computed.
    pub(super) fn of_digest(digest: &Digest) -> Self {
        let mut hash = [0; 32];
        hash.copy_from_slice(digest.as_ref());
        Self(hash)
    }

    /// Parses a hash.
    pub fn parse(text: &str) -> Result<Self, SecretError> {
        bytes_of(text).map(Self).ok_or(SecretError::Hash)
    }

    /// Compares in a time that does not depend on where the two differ.
    pub fn is(&self, other: &SecretHash) -> bool {
        self.0.ct_eq(&other.0).into()
    }
}

impl fmt::Display for SecretHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&hex(&self.0))
    }
}

impl fmt::Debug for SecretHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SecretHash(…)")
    }
}

/// Returns a text in which each secret of a key and each token is replaced by `…`.
pub fn without_secrets(text: &str) -> Cow<'_, str> {
    // A token begins with the base64url of `{"`.
    let prefixes = [KeyKind::Secret.prefix(), KeyKind::Publishable.prefix()].map(|prefix| format!("{prefix}_"));
    let mut shown = Cow::Borrowed(text);
    for prefix in prefixes.iter().map(String::as_str).chain(["eyJ"]) {
        let mut from = 0;
        while let Some(at) = shown[from..].find(prefix) {
            let start = from + at + prefix.len();
            let is_of_secret = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.');
            let len = shown[start..].bytes().take_while(is_of_secret).count();
            let is_digit = |byte: &u8| byte.is_ascii_hexdigit();
            let rest = &shown[start + len..];
            let gap = rest.bytes().take_while(|byte| byte.is_ascii_punctuation()).count();
            let further = rest[gap..].bytes().take_while(is_digit).count();
            match len {
                17.. => shown.to_mut().replace_range(start..start + len, "…"),
                // An id alone is no secret, but what follows it may be.
                16 if further >= 64 => {
                    let begin = start + len + gap;
                    shown.to_mut().replace_range(begin..begin + further, "…");
                }
                _ => {}
            }
            from = start;
        }
    }
    shown
}

fn random(bytes: &mut [u8]) -> Result<(), SecretError> {
    OsRng.try_fill_bytes(bytes).map_err(|_| SecretError::NoRandomness)
}

/// Parses lower-case hexadecimal digits, which are the only form of the bytes.
fn bytes_of<const N: usize>(text: &str) -> Option<[u8; N]> {
    let digits = text.as_bytes();
    if digits.len() != 2 * N {
        return None;
    }
    let digit = |digit: u8| match digit {
        b'0'..=b'9' => Some(digit - b'0'),
        b'a'..=b'f' => Some(digit - b'a' + 10),
        _ => None,
    };
    let mut bytes = [0; N];
    for (byte, pair) in bytes.iter_mut().zip(digits.chunks_exact(2)) {
        *byte = digit(pair[0])? << 4 | digit(pair[1])?;
    }
    Some(bytes)
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

text! {
    KeyId: serialize_displayed, deserialize;
    SecretHash: serialize_displayed, deserialize;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_is_found_in_its_text() {
        for kind in [KeyKind::Secret, KeyKind::Publishable] {
            let secret = Secret::draw(kind).unwrap();
            let text = secret.reveal();
            let parsed = Secret::parse(&text).unwrap();
            assert_eq!((parsed.kind(), parsed.id(), parsed.hash()), (kind, secret.id(), secret.hash()));
            assert!(!format!("{secret:?}").contains(&text[20..]), "{secret:?}");
        }
        let (one, other) = (Secret::draw(KeyKind::Secret).unwrap(), Secret::draw(KeyKind::Secret).unwrap());
        assert!(one.id() != other.id() && !one.hash().is(&other.hash()) && one.hash().is(&one.hash()));
    }

    #[test]
    fn other_texts_are_refused() {
        let text = Secret::draw(KeyKind::Secret).unwrap().reveal();
        let cut = &text[..text.len() - 1];
        let upper = text.to_uppercase();
        for wrong in [
            "",
            "rt",
            "rt_",
            "rt__",
            "_",
            cut,
            &upper,
            &format!("{text}0"),
            &format!("{text}_"),
            &format!(" {text}"),
            &text.replace("rt_", "rx_"),
            &text.replacen('_', "__", 1),
            &format!("{cut}g"),
            &format!("{cut}é"),
        ] {
            assert_eq!(Secret::parse(wrong).err(), Some(SecretError::Key), "{wrong}");
        }
    }

    #[test]
    fn secrets_are_taken_out_of_texts() {
        let key = Secret::draw(KeyKind::Publishable).unwrap().reveal();
        let text = format!("/v1/keys/{key}?key={key}&rt_{}&rt_5f1c2a9d04b7e386", "A".repeat(80));
        assert_eq!(without_secrets(&text), "/v1/keys/rtp_…?key=rtp_…&rt_…&rt_5f1c2a9d04b7e386");
        assert_eq!(without_secrets("start_of_a_long_word_that_is_no_key"), "start_…");
        assert_eq!(without_secrets("/v1/events?t=eyJhbGciOiJIUzI1NiJ9.eyJh-_.x&a"), "/v1/events?t=eyJ…&a");
    }

    #[test]
    fn the_hash_is_sha_256() {
        let text = format!("rt_{}_{}", "0".repeat(16), "0".repeat(64));
        let hash = "66687aadf862bd776c8fc18b8e9f8e20089714856ee233b3902a591d0d5f2925";
        assert_eq!(Secret::parse(&text).unwrap().hash().to_string(), hash);
        assert!(SecretHash::parse(hash).is_ok() && SecretHash::parse(&hash[1..]).is_err());
    }
}
