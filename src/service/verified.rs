//! Tokens that were verified lately, so that a token which is sent again costs no signature.

use std::sync::Arc;

use quick_cache::Weighter;
use quick_cache::sync::Cache;
use ring::digest::{SHA256, digest};

use crate::access::BoundedToken;
use crate::board::Timestamp;

/// The SHA-256 of a whole token, signature included: nothing shorter tells a token from one that was changed.
pub(super) type TokenHash = [u8; 32];

/// A bounded cache of verified tokens. What it returns is valid: a token ends at its time, and with its signing key.
pub(super) struct VerifiedTokens(Cache<TokenHash, Arc<BoundedToken>, Memory>);

/// The memory of all tokens together, in bytes.
const MEMORY: u64 = 16 << 20;

/// The number of tokens for which there is room from the start.
const EXPECTED: usize = 1_024;

#[derive(Clone)]
struct Memory;

impl Weighter<TokenHash, Arc<BoundedToken>> for Memory {
    fn weight(&self, _: &TokenHash, token: &Arc<BoundedToken>) -> u64 {
        token.memory() as u64
    }
}

impl VerifiedTokens {
    pub(super) fn new() -> Self {
        Self(Cache::with_weighter(EXPECTED, MEMORY, Memory))
    }

    /// Returns the hash of a token.
    pub(super) fn hash_of(text: &str) -> TokenHash {
        let mut hash = [0; 32];
        hash.copy_from_slice(digest(&SHA256, text.as_bytes()).as_ref());
        hash
    }

    /// Returns the token with this hash if it is valid at this time.
    pub(super) fn get(&self, hash: &TokenHash, now: Timestamp) -> Option<Arc<BoundedToken>> {
        let token = self.0.get(hash)?;
        if token.is_valid(now) {
            return Some(token);
        }
        self.0.remove(hash);
        None
    }

    pub(super) fn insert(&self, hash: TokenHash, token: Arc<BoundedToken>) {
        self.0.insert(hash, token);
    }

    pub(super) fn clear(&self) {
        self.0.clear();
    }
}
