//! Bounded tokens: JWTs (RFC 7519) that let an end user do one thing, signed by the owner of a signing key.
//!
//! A site's backend signs, the browser sends. `kid` in the header names the key that verifies the signature, and the
//! grant of that key is the most that its tokens can allow. What a token allows is one claim, `rolltop`: scopes,
//! boards, and the one item that may be sent. The order of the checks is that of the cost: form, `kid`, signature,
//! claims.

mod claims;
#[cfg(test)]
mod fuzz;
mod jwt;
mod members;
mod pin;
mod public_key;
mod range;
mod verifier;

use std::sync::Arc;

pub use claims::{Claims, TokenRules};
pub use jwt::{MAX_TOKEN_BYTES, UnverifiedToken};
pub use pin::{ItemType, Pin, PinError};
pub use public_key::{PublicKey, PublicKeyError, parse_key_set};
pub use verifier::{HmacSecret, Verifier};

use super::{Credential, Grant};
use crate::board::{EventId, Timestamp};

/// The reason why a text is not a valid token.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TokenError {
    #[error("a token has at most {MAX_TOKEN_BYTES} bytes")]
    TooLong,
    #[error("a token is a JWT: a header, claims and a signature in base64url without padding, with dots between them")]
    Form,
    #[error("the header of a token has the members 'alg', 'kid' and perhaps 'typ' (JWT), each once, and no others")]
    Header,
    #[error("no signing key has the id that the token names as 'kid'; it may have been revoked")]
    UnknownKey,
    #[error("the signing key has expired")]
    KeyExpired,
    #[error("'alg' is not the algorithm of the signing key")]
    Algorithm,
    #[error("the signature is not one of the signing key")]
    Signature,
    #[error("the claim '{claim}' of the token {detail}")]
    Claim { claim: &'static str, detail: String },
    #[error("the token has expired")]
    Expired,
    #[error("the token is for scopes or boards that its signing key is not for")]
    Wider,
}

/// A token whose signature and claims have been checked.
#[derive(Debug)]
pub struct BoundedToken {
    /// The signing key, in use. When it ends, its tokens do.
    pub(super) signer: Arc<Credential>,
    pub(super) grant: Grant,
    /// The token is not valid from this time on: `exp` and the leeway.
    pub(super) until: Timestamp,
    /// The item that may be sent. `None` if the token does not allow writing.
    pub(super) pin: Option<Pin>,
    /// The id of the item, if it counts once.
    pub(super) id: Option<EventId>,
    /// The bytes that the token takes in memory, about.
    memory: usize,
}

impl BoundedToken {
    /// Returns a token of a signing key whose signature has been verified.
    pub fn new(signer: Arc<Credential>, claims: Claims, until: Timestamp) -> Result<Self, TokenError> {
        let memory = 512 + 2 * claims.bytes;
        let Claims { scopes, boards, pin, is_once, jti, .. } = claims;
        let boards = boards.unwrap_or_else(|| signer.key.grant.boards.clone());
        let grant = Grant { scopes, boards };
        if !signer.key.grant.covers(&grant) {
            return Err(TokenError::Wider);
        }
        let id = match (is_once, jti) {
            // By the id of the signing key, so that nothing counts again when the keys of a set change.
            (true, Some(jti)) => Some(verifier::id_of(signer.key.id, &jti)),
            _ => None,
        };
        Ok(Self { signer, grant, until, pin, id, memory })
    }

    /// Returns whether the token, and its signing key, are valid at this time.
    pub fn is_valid(&self, now: Timestamp) -> bool {
        now < self.until && self.signer.is_valid(now)
    }

    /// Returns the signing key, in use.
    pub fn signer(&self) -> &Credential {
        &self.signer
    }

    /// Returns the bytes that the token takes in memory, about.
    pub fn memory(&self) -> usize {
        self.memory
    }
}
