//! Callers: who a request comes from, and what it may do.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};

use super::{
    BoardPatterns, BoundedToken, Grant, ItemType, Key, KeyId, KeyKind, KeySecret, Pin, Scope, Scopes, SecretHash,
};
use crate::board::{Board, BoardName, EventId, Kind, SourceName, Timestamp};

/// Who a call comes from. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Caller(Identity);

#[derive(Clone, Debug)]
enum Identity {
    Anonymous(Arc<Grant>),
    Key(Arc<Credential>),
    Token(Arc<BoundedToken>),
}

/// A secret of a key, or what verifies its tokens, in use. What it allows never changes: a changed key gets other
/// credentials.
#[derive(Debug)]
pub struct Credential {
    /// The key as it was when the credential was made. Its `secrets` may be outdated.
    pub key: Key,
    pub hash: SecretHash,
    /// The time in milliseconds from which on the secret is not valid.
    until: AtomicI64,
    has_ended: AtomicBool,
    /// The time of the last request with it, in milliseconds; 0 before the first.
    used_at: AtomicI64,
}

/// A caller may not do something.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{denial}")]
pub struct Denied {
    pub denial: Denial,
    /// Whether the caller has a key.
    pub has_key: bool,
}

/// The reason why a caller may not do something.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Denial {
    /// The operation is of a scope that the caller does not have.
    #[error("the operation needs the scope '{0}'")]
    Scope(Scope),
    /// The caller may not use a board with this name, whether it exists or not.
    #[error("board '{0}' is not one of the boards that the caller may use")]
    Board(BoardName),
    /// The caller may not use all boards that these patterns include, whether such boards exist or not.
    #[error("the caller may not use all boards of '{0}'")]
    Boards(BoardPatterns),
    /// The source has boards that the caller may not use.
    #[error("source '{0}' has boards that the caller may not use")]
    Source(SourceName),
    /// The caller may not send items of the source.
    #[error("source '{0}' does not list the key of the caller, which does not have the scope 'manage' either")]
    Sender(SourceName),
    /// The caller has a token, or a key that everybody can read.
    #[error("attributes are set with a secret key only; everybody who opens a page can read its key or token")]
    NotSecret,
    /// The caller has a token for an item of another kind.
    #[error("the token is for one {0}, {path}", path = .0.path())]
    Item(ItemType),
    /// The item of the token counts once for each subject of a board, and the token leaves open which subject it is.
    #[error(
        "the token is for an item that counts once, and leaves '{field}' free, by which board '{board}' tells subjects apart"
    )]
    FreeSubject { board: BoardName, field: String },
    /// The item of the token may be taken back, and counts on a board where that is not of one person alone.
    #[error(
        "the token is for an item that can be taken back, which needs COUNT_DISTINCT, and board '{0}' counts otherwise; name \
         the boards in 'boards' of the token"
    )]
    NotDistinct(BoardName),
    /// The key was revoked, or has expired.
    #[error("the key was revoked or has expired")]
    Ended,
    /// The token has expired.
    #[error("the token has expired")]
    TokenExpired,
}

impl Credential {
    /// Returns a credential for one of the secrets of a key.
    pub fn new(key: &Key, secret: KeySecret) -> Self {
        let until = AtomicI64::new(key.end_of(secret).millis());
        let (has_ended, used_at) = (AtomicBool::new(false), AtomicI64::new(0));
        Self { key: key.clone(), hash: secret.hash, until, has_ended, used_at }
    }

    /// Takes over when a secret of a key, as it is now, ends. Returns `false` if this is another secret, or if the key
    /// allows something else now.
    pub fn renew(&self, key: &Key, secret: KeySecret) -> bool {
        let allowed = |key: &Key| (key.id, key.kind, key.grant.clone(), key.origins.clone(), key.rates);
        let has_ended = self.has_ended.load(Ordering::Acquire);
        let is_same = !has_ended && self.hash == secret.hash && allowed(&self.key) == allowed(key);
        if is_same {
            self.until.store(key.end_of(secret).millis(), Ordering::Release);
        }
        is_same
    }

    /// Returns whether the secret is valid at this time.
    pub fn is_valid(&self, now: Timestamp) -> bool {
        !self.has_ended.load(Ordering::Acquire) && now.millis() < self.until.load(Ordering::Acquire)
    }

    /// Ends everything that is done with the secret if it has expired. Returns whether that was the case for the first
    /// time.
    pub fn end_if_expired(&self, now: Timestamp) -> bool {
        now.millis() >= self.until.load(Ordering::Acquire) && !self.has_ended.swap(true, Ordering::AcqRel)
    }

    /// Ends everything that is done with the secret, streams included.
    pub fn end(&self) {
        self.has_ended.store(true, Ordering::Release);
    }

    /// Records a use.
    pub fn note_use(&self, now: Timestamp) {
        // Most requests are of the same second, and must not fight for the line of the cache.
        if now.millis() - self.used_at.load(Ordering::Relaxed) >= 1_000 {
            self.used_at.fetch_max(now.millis(), Ordering::Relaxed);
        }
    }

    /// Returns the time of the last use through this instance, to the second.
    pub fn used_at(&self) -> Option<Timestamp> {
        Some(self.used_at.load(Ordering::Relaxed)).filter(|at| *at > 0).map(Timestamp::from_millis)
    }
}

impl Caller {
    /// Returns a caller that may do everything: the program itself, or one that uses it as a library.
    pub fn trusted() -> Self {
        Self::anonymous(Arc::new(Grant::all()))
    }

    /// Returns a caller without a key.
    pub fn anonymous(grant: Arc<Grant>) -> Self {
        Self(Identity::Anonymous(grant))
    }

    /// Returns a caller with a key.
    pub fn with_key(credential: Arc<Credential>) -> Self {
        Self(Identity::Key(credential))
    }

    /// Returns a caller with a token of a key.
    pub fn with_token(token: Arc<BoundedToken>) -> Self {
        Self(Identity::Token(token))
    }

    /// Returns the error of a caller that is not valid any more.
    pub fn ended(&self) -> Denied {
        self.denied(Denial::Ended)
    }

    fn denied(&self, denial: Denial) -> Denied {
        Denied { denial, has_key: !matches!(self.0, Identity::Anonymous(_)) }
    }

    fn grant(&self) -> &Grant {
        match &self.0 {
            Identity::Anonymous(grant) => grant,
            Identity::Key(credential) => &credential.key.grant,
            Identity::Token(token) => &token.grant,
        }
    }

    /// Returns the key, if the caller has one: that of a token is the one that signed it.
    pub fn key(&self) -> Option<&Key> {
        self.credential().map(|credential| &credential.key)
    }

    fn credential(&self) -> Option<&Credential> {
        match &self.0 {
            Identity::Anonymous(_) => None,
            Identity::Key(credential) => Some(credential),
            Identity::Token(token) => Some(&token.signer),
        }
    }

    fn token(&self) -> Option<&BoundedToken> {
        match &self.0 {
            Identity::Token(token) => Some(token),
            _ => None,
        }
    }

    /// Returns whether the caller has a token.
    pub fn has_token(&self) -> bool {
        self.token().is_some()
    }

    /// Returns the one item that the caller may send, if its token bounds it.
    pub fn pin(&self) -> Option<&Pin> {
        self.token()?.pin.as_ref()
    }

    /// Returns the id of the one item that the caller may send, if it counts once.
    pub fn once(&self) -> Option<&EventId> {
        self.token()?.id.as_ref()
    }

    /// Returns the time from which on the token of the caller is not valid, whatever becomes of its signing key.
    pub fn token_until(&self) -> Option<Timestamp> {
        self.token().map(|token| token.until)
    }

    /// Returns an error if the caller has a token for an item that counts once, but could choose the subject of a
    /// board.
    pub fn require_subject(&self, board: &BoardName, reads: impl Fn(&str) -> bool) -> Result<(), Denied> {
        let free = self.once().and(self.pin()).and_then(|pin| pin.free().find(|field| reads(field)));
        match free {
            Some(field) => Err(self.denied(Denial::FreeSubject { board: board.clone(), field: field.to_owned() })),
            None => Ok(()),
        }
    }

    /// Returns whether the caller has a token for an item that may be taken back.
    pub fn takes_back(&self) -> bool {
        self.pin().is_some_and(Pin::takes_back)
    }

    /// Returns an error if the caller has a token for an item that may be taken back, and the board does not count each value
    /// once: there, taking back again and again would lower the score.
    pub fn require_distinct(&self, board: &Board) -> Result<(), Denied> {
        let is_distinct = || board.editions().iter().all(|edition| matches!(edition.kind(), Kind::Distinct));
        if !self.takes_back() || is_distinct() {
            return Ok(());
        }
        Err(self.denied(Denial::NotDistinct(board.name().clone())))
    }

    /// Returns an error if the token of the caller has expired at this time.
    pub fn require_token(&self, now: Timestamp) -> Result<(), Denied> {
        match self.token_until() {
            Some(until) if now >= until => Err(self.denied(Denial::TokenExpired)),
            _ => Ok(()),
        }
    }

    /// Returns an error if the caller has a token and may not send items of this kind.
    pub fn require_item(&self, item: ItemType) -> Result<(), Denied> {
        match self.pin() {
            Some(pin) if pin.item() != item => Err(self.denied(Denial::Item(pin.item()))),
            _ => Ok(()),
        }
    }

    /// Returns the id of the key, if the caller has one.
    pub fn key_id(&self) -> Option<KeyId> {
        self.key().map(|key| key.id)
    }

    /// Returns the time from which on the caller is not valid, if there is one.
    pub fn until(&self) -> Option<Timestamp> {
        let of_key = Timestamp::from_millis(self.credential()?.until.load(Ordering::Acquire));
        let until = self.token().map_or(of_key, |token| token.until.min(of_key));
        (until < Timestamp::MAX).then_some(until)
    }

    /// Returns whether the caller has this scope.
    pub fn may(&self, scope: Scope) -> bool {
        self.grant().scopes.allows(scope)
    }

    /// Returns an error unless the caller has this scope.
    pub fn require(&self, scope: Scope) -> Result<(), Denied> {
        if self.may(scope) { Ok(()) } else { Err(self.denied(Denial::Scope(scope))) }
    }

    /// Returns whether the caller has everything that a grant has.
    pub fn covers(&self, grant: &Grant) -> bool {
        self.grant().covers(grant)
    }

    /// Returns whether the caller may use boards with this name. To other callers they do not exist.
    pub fn sees(&self, board: &BoardName) -> bool {
        self.grant().boards.includes(board)
    }

    /// Returns whether the caller may use every board.
    pub fn sees_all(&self) -> bool {
        self.grant().boards.is_all()
    }

    /// Returns the scopes that the caller has.
    pub fn scopes(&self) -> Scopes {
        self.grant().scopes
    }

    /// Returns the boards that the caller may use.
    pub fn boards(&self) -> &BoardPatterns {
        &self.grant().boards
    }

    /// Returns an error unless the caller may use boards with this name.
    pub fn require_board(&self, board: &BoardName) -> Result<(), Denied> {
        if self.sees(board) { Ok(()) } else { Err(self.denied(Denial::Board(board.clone()))) }
    }

    /// Returns an error unless the caller may use all boards that the patterns include.
    pub fn require_boards(&self, patterns: &BoardPatterns) -> Result<(), Denied> {
        if self.boards().covers(patterns) { Ok(()) } else { Err(self.denied(Denial::Boards(patterns.clone()))) }
    }

    /// Returns an error unless the caller may use all boards of a source.
    pub fn require_source(&self, source: &SourceName, boards: &BoardPatterns) -> Result<(), Denied> {
        if self.boards().covers(boards) { Ok(()) } else { Err(self.denied(Denial::Source(source.clone()))) }
    }

    /// Returns the key, if the caller has its secret, which nobody else can read.
    fn own_secret(&self) -> Option<&Key> {
        self.key().filter(|key| key.kind == KeyKind::Secret && !self.has_token())
    }

    /// Returns an error unless the caller may send items of a source that lists these keys. A key that everybody can read may
    /// not, nor may a token.
    pub fn require_sender(&self, source: &SourceName, keys: &[KeyId]) -> Result<(), Denied> {
        let is_listed = self.own_secret().is_some_and(|key| keys.contains(&key.id));
        if is_listed || self.may(Scope::Manage) { Ok(()) } else { Err(self.denied(Denial::Sender(source.clone()))) }
    }

    /// Returns an error unless the caller has a secret key of its own, or the scope manage: a token or a key that everybody
    /// can read has not.
    pub fn require_secret(&self) -> Result<(), Denied> {
        if self.own_secret().is_some() || self.may(Scope::Manage) {
            Ok(())
        } else {
            Err(self.denied(Denial::NotSecret))
        }
    }

    /// Returns an error if the caller is not valid any more. What takes long asks again and again.
    pub fn require_current(&self) -> Result<(), Denied> {
        match self.credential() {
            Some(credential) if credential.has_ended.load(Ordering::Acquire) => Err(self.ended()),
            _ => Ok(()),
        }
    }
}

/// Names the caller in logs.
impl fmt::Display for Caller {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.key_id() {
            Some(id) if self.has_token() => write!(f, "token of key {id}"),
            Some(id) => write!(f, "key {id}"),
            None => f.write_str("anonymous"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::access::{BoardPattern, KeyKind, KeyRates, Scopes, Secret};

    #[test]
    fn a_caller_ends_with_its_credential() {
        let secret = Secret::draw(KeyKind::Secret).unwrap();
        let boards = ["shop-*".parse::<BoardPattern>().unwrap()].into_iter().collect();
        let mut key = Key {
            id: secret.id(),
            name: "shop".to_owned(),
            kind: KeyKind::Secret,
            grant: Grant { scopes: Scopes::from_iter([Scope::Read]), boards },
            origins: Vec::new(),
            created_at: None,
            expires_at: None,
            secrets: vec![KeySecret { hash: secret.hash(), until: None }],
            public_key: None,
            rates: KeyRates::default(),
        };
        let credential = Arc::new(Credential::new(&key, key.secrets[0]));
        let at = Timestamp::from_millis;
        let caller = Caller::with_key(credential.clone());
        assert!(credential.is_valid(at(100)) && caller.require_current().is_ok());
        key.expires_at = Some(at(100));
        assert!(credential.renew(&key, key.secrets[0]));
        assert!(credential.is_valid(at(99)) && !credential.is_valid(at(100)));
        key.grant.scopes = Scopes::from_iter([Scope::View]);
        assert!(!credential.renew(&key, key.secrets[0]), "another grant needs another credential");
        credential.end();
        assert!(!credential.is_valid(at(1)));
        let denied = |denial| Err(Denied { denial, has_key: true });
        assert_eq!(caller.require_current(), denied(Denial::Ended));
        let name = |text| BoardName::parse(text).unwrap();
        assert_eq!(caller.require_board(&name("shop-a")), Ok(()));
        assert_eq!(caller.require_board(&name("hot")), denied(Denial::Board(name("hot"))));
        assert_eq!(
            (caller.require(Scope::View), caller.require(Scope::Write)),
            (Ok(()), denied(Denial::Scope(Scope::Write)))
        );
        credential.note_use(at(5_000));
        credential.note_use(at(5_100));
        assert_eq!(credential.used_at(), Some(at(5_000)));
    }
}
