//! The tokens of the site: each lets one visitor like one post, once.

use anyhow::Result;
use jsonwebtoken::{Algorithm, EncodingKey, Header, encode, get_current_timestamp};
use serde_json::json;
use sha2::{Digest, Sha256};

/// The id of the signing key in rolltop.toml.
const KID: &str = "51fe000000000001";
/// The time in seconds for which a token is valid. A page gets one for each click, so a few minutes are enough.
const LIFE: u64 = 600;

/// What signs tokens: the secret of the signing key.
pub struct Signer(EncodingKey);

impl Signer {
    pub fn new(secret: &str) -> Self {
        Self(EncodingKey::from_secret(secret.as_bytes()))
    }

    /// Returns a token with which a person can like a post. Two tokens for the same person and post have the same
    /// `jti`, so they are for the same like, which counts once.
    pub fn like(&self, person: &str, post: &str) -> Result<String> {
        let header = Header { kid: Some(KID.to_owned()), ..Header::new(Algorithm::HS256) };
        // A person is the value of a cookie here that scripts cannot read. They can read the token, so it has a hash.
        let jti = format!("{:x}", Sha256::digest(format!("{person}/{post}")));
        let claims = json!({
            "aud": "rolltop",
            "exp": get_current_timestamp() + LIFE,
            "jti": jti,
            "rolltop": {
                "scopes": ["write"],
                "event": {"type": "like", "fields": {"post_id": post}},
                "once": true,
            },
        });
        Ok(encode(&header, &claims, &self.0)?)
    }
}
