//! Who may do what, and how fast: scopes, patterns of boards, grants, rates, keys, tokens and callers. Pure: no I/O and
//! no clock.
//!
//! A [`Caller`] is what every call of the service takes by which a board can be obtained. It has a [`Grant`]: the
//! scopes and the boards that it may use, those of a [`Key`], of a [`BoundedToken`], or of callers without either.

mod caller;
mod grant;
mod key;
mod pattern;
mod rate;
mod scope;
mod secret;
mod token;

pub use caller::{Caller, Credential, Denial, Denied};
pub use grant::Grant;
pub use key::{Key, KeyError, KeyKind, KeySecret};
pub use pattern::{BoardPattern, BoardPatterns, PatternError};
pub use rate::{KeyRates, Rate, RateError};
pub use scope::{Scope, ScopeError, Scopes};
pub use secret::{KeyId, Secret, SecretError, SecretHash, without_secrets};
pub use token::{
    BoundedToken, Claims, HmacSecret, ItemType, MAX_TOKEN_BYTES, Pin, PinError, PublicKey, PublicKeyError, TokenError,
    TokenRules, UnverifiedToken, Verifier, parse_key_set,
};
