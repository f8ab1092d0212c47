//! The keys that this instance knows: those of the configuration, and those of the store as it had them a second ago.
//!
//! Each request looks its key up in memory. If the store cannot be reached, the keys that were read last stay. The
//! expiry of keys is about real time, so it is checked with the clock of this machine, whatever the store's clock is.
//! Tokens are in no list: the key that signed one is looked up, and what was verified is remembered for a while.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use chrono::Utc;
use parking_lot::{Mutex, RwLock};
use tokio::sync::watch;

use super::known_keys::{KeySources, KeyTable, Signer};
use super::verified::VerifiedTokens;
use crate::access::{
    BoundedToken, Caller, Credential, Grant, Key, KeyId, MAX_TOKEN_BYTES, Secret, TokenError, TokenRules,
    UnverifiedToken, Verifier,
};
use crate::board::Timestamp;
use crate::store::{Rows, StoreError};

/// Returns the time of a clock.
pub type WallClock = Box<dyn Fn() -> Timestamp + Send + Sync>;

/// The keys of the configuration.
#[derive(Clone, Debug, Default)]
pub struct ConfiguredKeys {
    pub keys: Vec<Key>,
    /// The ids of keys that are not valid, wherever they are stored. They stay revoked when an old backup of the store
    /// brings them back.
    pub revoked: BTreeSet<KeyId>,
    /// What verifies the tokens of signing keys whose public key is not in the key itself.
    pub verifiers: Vec<ConfiguredVerifier>,
}

/// What verifies tokens of a signing key of the configuration.
#[derive(Clone, Debug)]
pub struct ConfiguredVerifier {
    /// The id of the signing key.
    pub key: KeyId,
    /// What the tokens name as `kid`. `None`: the id of the key.
    pub kid: Option<String>,
    pub verifier: Verifier,
}

/// The keys that this instance knows.
pub struct Keys {
    anonymous: Arc<Grant>,
    clock: WallClock,
    sources: Mutex<KeySources>,
    /// Read by every request with a key, written when a key changes. Never held across an await.
    table: RwLock<Arc<KeyTable>>,
    /// Notified when a credential has ended.
    ended: watch::Sender<()>,
    token_rules: TokenRules,
    /// Tokens that were verified lately.
    tokens: VerifiedTokens,
}

/// A key and what is known about it here.
#[derive(Clone, Debug)]
pub struct KnownKey {
    pub key: Key,
    /// Whether it is a key of the configuration, which can be changed only there.
    pub is_configured: bool,
    /// Whether the configuration lists it as revoked.
    pub is_revoked: bool,
    /// The time of the last request with it through this instance, to the second.
    pub used_at: Option<Timestamp>,
}

/// The reason why a text is not a valid key or token.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum KeyRejection {
    /// The text is not a key, or not one that is known. It may have been revoked.
    #[error("the key is not known; it may have been revoked")]
    Unknown,
    /// The key, or this secret of it, has expired.
    #[error("the key has expired")]
    Expired,
    #[error(transparent)]
    Token(#[from] TokenError),
}

impl Default for Keys {
    /// Returns no keys. Callers without one may do everything.
    fn default() -> Self {
        Self::new(Grant::all(), ConfiguredKeys::default())
    }
}

impl Keys {
    /// Returns the keys of the configuration, and what callers without a key may do, which never changes.
    pub fn new(anonymous: Grant, configured: ConfiguredKeys) -> Self {
        Self::at(anonymous, configured, Box::new(|| Timestamp::from_millis(Utc::now().timestamp_millis())))
    }

    /// Returns keys that expire by this clock.
    pub fn at(anonymous: Grant, configured: ConfiguredKeys, clock: WallClock) -> Self {
        let sources = KeySources { configured, ..KeySources::default() };
        let table = RwLock::new(Arc::new(sources.table(&KeyTable::default())));
        Self {
            anonymous: Arc::new(anonymous),
            clock,
            sources: Mutex::new(sources),
            table,
            ended: watch::Sender::new(()),
            token_rules: TokenRules::default(),
            tokens: VerifiedTokens::new(),
        }
    }

    /// Returns these keys, with what the claims of tokens are checked against.
    pub fn with_token_rules(self, token_rules: TokenRules) -> Self {
        Self { token_rules, ..self }
    }

    /// Returns the time by which keys expire.
    pub fn now(&self) -> Timestamp {
        (self.clock)()
    }

    /// Returns a caller without a key.
    pub fn anonymous(&self) -> Caller {
        Caller::anonymous(self.anonymous.clone())
    }

    /// Returns the caller with this key or token. O(1), and for a token that was not seen lately the verification of
    /// its signature.
    pub fn authenticate(&self, text: &str) -> Result<Caller, KeyRejection> {
        if text.contains('.') {
            return Ok(Caller::with_token(self.verify(text)?));
        }
        let secret = Secret::parse(text).map_err(|_| KeyRejection::Unknown)?;
        let table = self.table.read().clone();
        let hash = secret.hash();
        let credentials = table.by_id.get(&secret.id()).map_or(&[][..], Vec::as_slice);
        let found = credentials.iter().rfind(|one| one.hash.is(&hash));
        let credential = found.filter(|one| one.key.kind == secret.kind()).ok_or(KeyRejection::Unknown)?;
        let now = self.now();
        if !credential.is_valid(now) {
            return Err(KeyRejection::Expired);
        }
        credential.note_use(now);
        Ok(Caller::with_key(credential.clone()))
    }

    /// Returns the token, if it is valid. What a token is checked for is ordered by what it costs: no signature is
    /// verified of one that names no key.
    fn verify(&self, text: &str) -> Result<Arc<BoundedToken>, TokenError> {
        if text.len() > MAX_TOKEN_BYTES {
            return Err(TokenError::TooLong);
        }
        let now = self.now();
        let hash = VerifiedTokens::hash_of(text);
        if let Some(token) = self.tokens.get(&hash, now) {
            token.signer().note_use(now);
            return Ok(token);
        }
        let token = UnverifiedToken::parse(text)?;
        let table = self.table.read().clone();
        let Signer { credential, verifier } = table.signers.get(token.kid()).ok_or(TokenError::UnknownKey)?;
        if !credential.is_valid(now) {
            return Err(TokenError::KeyExpired);
        }
        let claims = token.verify(verifier)?;
        let until = claims.check(&self.token_rules, now)?;
        let token = Arc::new(BoundedToken::new(credential.clone(), claims, until)?);
        credential.note_use(now);
        self.tokens.insert(hash, token.clone());
        Ok(token)
    }

    /// Returns whether pages of this origin may use at least one key.
    pub fn allows_origin(&self, origin: &str) -> bool {
        let table = self.table.read();
        table.origins.contains(origin) || table.origins.contains("*")
    }

    /// Returns whether there are keys for pages of any origin.
    pub fn has_origins(&self) -> bool {
        !self.table.read().origins.is_empty()
    }

    /// Returns a receiver that is notified after a credential has ended. What takes long then asks whether its caller
    /// is still [current](Caller::require_current).
    pub fn ended(&self) -> watch::Receiver<()> {
        self.ended.subscribe()
    }

    /// Returns whether there is any key, valid or not.
    pub fn is_empty(&self) -> bool {
        let sources = self.sources.lock();
        sources.configured.keys.is_empty() && sources.stored.is_empty()
    }

    /// Returns all keys, by id.
    pub fn all(&self) -> Vec<KnownKey> {
        let (sources, table) = (self.sources.lock(), self.table.read().clone());
        let mut all: Vec<_> = sources.keys().map(|key| sources.known(key, &table)).collect();
        all.sort_unstable_by_key(|known| known.key.id);
        all
    }

    /// Returns the stored key with this id, with the text of its row.
    pub(super) fn stored(&self, id: KeyId) -> Option<(Key, String)> {
        self.sources.lock().stored.get(&id).cloned()
    }

    /// Returns whether the configuration has a key with this id.
    pub(super) fn is_configured(&self, id: KeyId) -> bool {
        self.sources.lock().is_configured(id)
    }

    /// Replaces the keys of the configuration.
    pub fn configure(&self, configured: ConfiguredKeys) {
        let mut sources = self.sources.lock();
        sources.configured = configured;
        self.replace_table(&sources);
    }

    /// Notes why the store's table could not be read, or that it could.
    pub(super) fn note_read(&self, failure: Option<&StoreError>) {
        let mut sources = self.sources.lock();
        if let (None, Some(error)) = (&sources.failure, failure) {
            tracing::warn!(%error, "the keys cannot be read from the store; those that were read last are used");
        }
        sources.failure = failure.map(ToString::to_string);
    }

    /// Returns what an operator has to look at.
    pub(super) fn warnings(&self) -> Vec<String> {
        let sources = self.sources.lock();
        let failure = sources.failure.iter().map(|error| format!("the keys cannot be read from the store: {error}"));
        let unreadable =
            sources.unreadable.iter().map(|id| format!("the stored key '{id}' cannot be read and is not accepted"));
        failure.chain(unreadable.take(10)).collect()
    }

    /// Returns the key with this id.
    pub fn find(&self, id: KeyId) -> Option<KnownKey> {
        let (sources, table) = (self.sources.lock(), self.table.read().clone());
        let configured = sources.configured.keys.iter().find(|key| key.id == id);
        let key = configured.or_else(|| sources.stored.get(&id).map(|(key, _)| key))?;
        Some(sources.known(key, &table))
    }

    /// Returns the version of the store's table that the keys are of.
    pub(super) fn version(&self) -> Option<u64> {
        self.sources.lock().version
    }

    /// Takes over a change of a row that was just made in the store. The table is read again the next time.
    pub(super) fn set_row(&self, id: KeyId, row: Option<(Key, String)>) {
        let mut sources = self.sources.lock();
        match row {
            Some(row) => drop(sources.stored.insert(id, row)),
            None => drop(sources.stored.remove(&id)),
        }
        sources.version = None;
        self.replace_table(&sources);
    }

    /// Takes over the keys of the store. A row that cannot be read is left out: it is no key for anybody.
    pub(super) fn set_stored(&self, rows: Rows) {
        let (mut stored, mut unreadable) = (HashMap::with_capacity(rows.rows.len()), Vec::new());
        for (id, text) in rows.rows {
            match serde_json::from_str::<Key>(&text) {
                Ok(key) if key.id.to_string() == id && key.check_stored().is_ok() => {
                    stored.insert(key.id, (key, text));
                }
                // The text has hashes only, but nothing of it helps here.
                _ => {
                    tracing::error!(key = id, "a stored key cannot be read by this version and is not accepted");
                    unreadable.push(id);
                }
            }
        }
        let mut sources = self.sources.lock();
        (sources.stored, sources.version, sources.unreadable) = (stored, Some(rows.version), unreadable);
        self.replace_table(&sources);
    }

    /// Ends the credentials that have expired. Call it about once a second.
    pub(super) fn end_expired(&self) {
        let (now, table) = (self.now(), self.table.read().clone());
        let mut has_ended = false;
        for credential in table.credentials() {
            if credential.end_if_expired(now) {
                has_ended = true;
            }
        }
        if has_ended {
            self.ended.send_replace(());
        }
    }

    /// Replaces the table, and ends the credentials that are not in the new one. Requests wait for the exchange only.
    fn replace_table(&self, sources: &KeySources) {
        // Nobody else replaces it: the sources are locked.
        let before = self.table.read().clone();
        let table = Arc::new(sources.table(&before));
        *self.table.write() = table.clone();
        let staying: HashSet<*const Credential> = table.credentials().map(Arc::as_ptr).collect();
        let mut has_ended = false;
        for credential in before.credentials().filter(|credential| !staying.contains(&Arc::as_ptr(credential))) {
            credential.end();
            has_ended = true;
        }
        if has_ended {
            // Those of ended keys are not valid any more, wherever they are; this frees their memory.
            self.tokens.clear();
            self.ended.send_replace(());
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicI64, Ordering};

    use super::*;
    use crate::access::{BoardPatterns, KeyKind, KeyRates, KeySecret, Scope, Scopes};
    use crate::board::BoardName;

    fn key(scope: Scope) -> (Key, Secret) {
        let secret = Secret::draw(KeyKind::Secret).unwrap();
        let grant = Grant { scopes: Scopes::from_iter([scope]), boards: BoardPatterns::all() };
        let secrets = vec![KeySecret { hash: secret.hash(), until: None }];
        let (created_at, expires_at, origins) = (None, None, Vec::new());
        let name = "k".to_owned();
        (
            Key {
                id: secret.id(),
                name,
                kind: KeyKind::Secret,
                grant,
                origins,
                created_at,
                expires_at,
                secrets,
                public_key: None,
                rates: KeyRates::default(),
            },
            secret,
        )
    }

    fn rows(version: u64, keys: &[&Key]) -> Rows {
        let row = |key: &&Key| (key.id.to_string(), serde_json::to_string(key).unwrap());
        Rows { version, rows: keys.iter().map(row).collect() }
    }

    #[test]
    fn a_key_is_valid_until_it_is_revoked_and_its_callers_learn_of_it() {
        let keys = Keys::new(Grant::none(), ConfiguredKeys::default());
        let ((key, secret), (other, other_secret)) = (key(Scope::Read), key(Scope::Write));
        assert_eq!(keys.authenticate(&secret.reveal()).err(), Some(KeyRejection::Unknown));
        keys.set_stored(rows(1, &[&key, &other]));
        let caller = keys.authenticate(&secret.reveal()).unwrap();
        assert!(caller.may(Scope::Read) && caller.sees(&BoardName::parse("any").unwrap()));
        let mixed = secret.reveal().replace(&key.id.to_string(), &other.id.to_string());
        assert_eq!(keys.authenticate(&mixed).err(), Some(KeyRejection::Unknown), "the secret of another key");
        let mut ended = keys.ended();
        keys.set_stored(rows(2, &[&key, &other]));
        assert!(!ended.has_changed().unwrap() && caller.require_current().is_ok(), "the same keys");
        keys.set_stored(rows(3, &[&other]));
        assert!(ended.has_changed().unwrap() && caller.require_current().is_err());
        ended.mark_unchanged();
        assert_eq!(keys.authenticate(&secret.reveal()).err(), Some(KeyRejection::Unknown));
        let caller = keys.authenticate(&other_secret.reveal()).unwrap();
        keys.configure(ConfiguredKeys { keys: Vec::new(), revoked: [other.id].into(), ..ConfiguredKeys::default() });
        assert!(ended.has_changed().unwrap() && caller.require_current().is_err());
        assert_eq!(keys.authenticate(&other_secret.reveal()).err(), Some(KeyRejection::Unknown));
    }

    #[test]
    fn a_changed_key_ends_its_callers_and_a_rotated_one_does_not() {
        let (mut key, secret) = key(Scope::Read);
        let keys = Keys::new(Grant::none(), ConfiguredKeys { keys: vec![key.clone()], ..ConfiguredKeys::default() });
        let caller = keys.authenticate(&secret.reveal()).unwrap();
        let next = Secret::draw_for(KeyKind::Secret, key.id).unwrap();
        key.rotate(next.hash(), Timestamp::MAX);
        keys.configure(ConfiguredKeys { keys: vec![key.clone()], ..ConfiguredKeys::default() });
        assert!(caller.require_current().is_ok() && keys.authenticate(&next.reveal()).is_ok());
        key.grant.boards = ["shop-*".parse().unwrap()].into_iter().collect();
        keys.configure(ConfiguredKeys { keys: vec![key], ..ConfiguredKeys::default() });
        assert!(caller.require_current().is_err());
        let narrower = keys.authenticate(&secret.reveal()).unwrap();
        assert!(!narrower.sees(&BoardName::parse("any").unwrap()));
    }

    #[test]
    fn keys_expire_by_the_clock() {
        static NOW: AtomicI64 = AtomicI64::new(1_000);
        let clock = || Box::new(|| Timestamp::from_millis(NOW.load(Ordering::Relaxed)));
        let (mut key, secret) = key(Scope::Read);
        key.expires_at = Some(Timestamp::from_millis(2_000));
        let keys = Keys::at(Grant::none(), ConfiguredKeys { keys: vec![key], ..ConfiguredKeys::default() }, clock());
        let caller = keys.authenticate(&secret.reveal()).unwrap();
        let ended = keys.ended();
        NOW.store(1_999, Ordering::Relaxed);
        keys.end_expired();
        assert!(keys.authenticate(&secret.reveal()).is_ok() && !ended.has_changed().unwrap());
        NOW.store(2_000, Ordering::Relaxed);
        assert_eq!(keys.authenticate(&secret.reveal()).err(), Some(KeyRejection::Expired));
        assert!(caller.require_current().is_ok());
        keys.end_expired();
        assert!(caller.require_current().is_err() && ended.has_changed().unwrap());
        assert_eq!(keys.authenticate(&secret.reveal()).err(), Some(KeyRejection::Expired));
        assert_eq!(keys.all()[0].used_at, Some(Timestamp::from_millis(1_000)));
    }

    #[test]
    fn rows_that_cannot_be_read_are_no_keys() {
        let keys = Keys::new(Grant::none(), ConfiguredKeys::default());
        let (key, secret) = key(Scope::Read);
        let mut rows = rows(1, &[&key]);
        let text = rows.rows.remove(&key.id.to_string()).unwrap();
        rows.rows.insert("0123456789abcdef".to_owned(), text.clone());
        rows.rows.insert(key.id.to_string(), text.replace("\"read\"", "\"everything\""));
        keys.set_stored(rows);
        assert!(keys.authenticate(&secret.reveal()).is_err() && keys.is_empty());
    }
}
