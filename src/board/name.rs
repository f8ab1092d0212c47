//! Names of boards, subjects and events, validated when they are parsed.

use std::fmt;
use std::sync::Arc;

use serde::{Serialize, Serializer};

use super::text::text;

/// The reason why a text is not a valid name. The message says what is allowed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NameError {
    /// The text does not match `[a-z0-9][a-z0-9._-]{0,62}`.
    #[error("a board's name is 1 to 63 characters of a-z, 0-9, '.', '_' and '-', and starts with a letter or digit")]
    Board,
    /// The text is empty.
    #[error("{what} must not be empty")]
    Empty { what: &'static str },
    /// The text is longer than allowed.
    #[error("{what} has {bytes} bytes of UTF-8; at most {most} are allowed")]
    TooLong { what: &'static str, bytes: usize, most: usize },
    /// The text contains a control character.
    #[error("{what} contains the control character U+{character:04X}; control characters are not allowed")]
    Control { what: &'static str, character: u32 },
}

/// The separator of a key and a name. Neither contains a control character.
const BETWEEN: &str = "\0";
/// What the text of a [removed](Subject::removed) subject begins with, before the number of its line. No name contains it.
const REMOVED: char = '\u{1}';

fn check(what: &'static str, text: &str, most: usize) -> Result<(), NameError> {
    if text.is_empty() {
        return Err(NameError::Empty { what });
    }
    if text.len() > most {
        return Err(NameError::TooLong { what, bytes: text.len(), most });
    }
    match text.chars().find(|c| c.is_control()) {
        Some(c) => Err(NameError::Control { what, character: u32::from(c) }),
        None => Ok(()),
    }
}

/// The name of a board: `[a-z0-9][a-z0-9._-]{0,62}`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BoardName(Arc<str>);

impl BoardName {
    /// Parses a board name.
    pub fn parse(text: &str) -> Result<Self, NameError> {
        let inner = |b: &u8| matches!(b, b'a'..=b'z' | b'0'..=b'9' | b'.' | b'_' | b'-');
        let sound = (1..=63).contains(&text.len())
            && text.as_bytes()[0].is_ascii_alphanumeric()
            && text.as_bytes().iter().all(inner);
        if sound { Ok(Self(text.into())) } else { Err(NameError::Board) }
    }
}

/// A subject, which is ranked or counted: a post, a user, a URL. 1 to 512 bytes of UTF-8 without control characters.
///
/// On a board whose metric has `BY`, subjects of different keys are different, also if they have the same name. There,
/// what is counted is a subject [in a ranking](Self::in_ranking): its text, which is what is stored, is the key, a zero
/// byte and the name.
///
/// Ordered by bytes, which is how both stores break ties.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Subject(Box<str>);

impl Subject {
    /// The longest subject, in bytes.
    pub const MAX_BYTES: usize = 512;

    /// Parses a subject.
    pub fn parse(text: &str) -> Result<Self, NameError> {
        check("subject", text, Self::MAX_BYTES)?;
        Ok(Self(text.into()))
    }

    /// Creates a subject from a store's data without validation: the text was validated before it was stored.
    pub(crate) fn from_stored(text: impl Into<Box<str>>) -> Self {
        Self(text.into())
    }

    /// Returns the subject of this name in the ranking of a key, or the same subject without a key.
    #[must_use]
    pub fn in_ranking(self, key: Option<&RankingKey>) -> Self {
        match key {
            Some(key) => Self([key.as_str(), self.name()].join(BETWEEN).into()),
            None => self,
        }
    }

    /// Returns the subject of a line whose subject was removed from a ranking that does not change any more. The line
    /// keeps its place and its score, and its number stands in for the name. No subject has that name: it cannot be
    /// parsed, and is `null` where subjects are serialized.
    pub fn removed(line: u64) -> Self {
        Self(format!("{REMOVED}{line}").into())
    }

    /// Parses the subject of a place in a ranking, which may be that of a [removed](Self::removed) one. Only for what
    /// the service has written itself, such as the cursor of a page that ends with such a line: no item may count for one.
    pub(crate) fn parse_of_place(text: &str) -> Result<Self, NameError> {
        let stored = Self(text.into());
        match stored.removed_line() {
            // Each line has one text: not with a sign, nor with zeros before the number.
            Some(line) if stored == Self::removed(line) => Ok(stored),
            _ => Self::parse(text),
        }
    }

    /// Returns the number of the line if this is a [removed](Self::removed) subject.
    pub fn removed_line(&self) -> Option<u64> {
        self.0.strip_prefix(REMOVED)?.parse().ok()
    }

    /// Returns the key of the ranking that the subject is in, if the board has keys. O(length).
    pub fn key(&self) -> Option<&str> {
        self.0.split_once(BETWEEN).map(|(key, _)| key)
    }

    /// Returns the name, without a key: what users know. O(length).
    pub fn name(&self) -> &str {
        self.0.split_once(BETWEEN).map_or(&self.0, |(_, name)| name)
    }

    /// Returns the key of the ranking that the subject is in, if the board has keys, and the subject of the name.
    #[must_use]
    pub fn split(self) -> (Option<RankingKey>, Self) {
        let key = self.key().map(RankingKey::from_stored);
        (key, self.without_key())
    }

    /// Returns the subject of the name, without a key.
    #[must_use]
    pub fn without_key(self) -> Self {
        match self.key() {
            Some(_) => Self(self.name().into()),
            None => self,
        }
    }
}

/// The key of one of the rankings of a board whose metric has `BY`: a community, a country. As long as a [`Subject`] may
/// be.
///
/// Ordered by bytes.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RankingKey(Arc<str>);

impl RankingKey {
    /// The longest key, in bytes.
    pub const MAX_BYTES: usize = Subject::MAX_BYTES;

    /// Parses a key.
    pub fn parse(text: &str) -> Result<Self, NameError> {
        check("key", text, Self::MAX_BYTES)?;
        Ok(Self(text.into()))
    }

    /// Creates a key from a store's data without validation: the text was validated before it was stored.
    pub(crate) fn from_stored(text: impl Into<Arc<str>>) -> Self {
        Self(text.into())
    }
}

/// The id of an event, chosen by the client. The event counts once per board and subject within the dedupe horizon. 1
/// to 128 bytes of UTF-8 without control characters; on a board of several types, the type and a control character before
/// them.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EventId(Box<str>);

impl EventId {
    /// The longest id, in bytes.
    pub const MAX_BYTES: usize = 128;

    /// How the ids of items of [tokens](crate::access::BoundedToken) begin. Clients may not give such ids.
    pub const OF_TOKENS: &str = "token:";

    /// Parses an id.
    pub fn parse(text: &str) -> Result<Self, NameError> {
        check("id", text, Self::MAX_BYTES)?;
        Ok(Self(text.into()))
    }

    /// Returns the id of an event on a board that counts several types: each type has its own ids, so that like 17 and
    /// comment 17 are two events. The id of a token stays as it is, because the token counts once whatever it is for.
    pub(crate) fn of_type(&self, event: &str) -> Self {
        if self.0.starts_with(Self::OF_TOKENS) {
            return self.clone();
        }
        // No id that a client gives has a control character.
        Self(format!("{event}\u{1f}{}", self.0).into())
    }

    /// Returns the id of the item of a token with this hash.
    pub(crate) fn of_token(hash: impl fmt::Display) -> Self {
        Self(format!("{}{hash}", Self::OF_TOKENS).into())
    }
}

/// A value that distinct metrics count: a user who logged in, an account. As long as a [`Subject`] may be.
///
/// Ordered by bytes, which breaks the tie between two values last seen at the same time.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Counted(Box<str>);

impl Counted {
    /// The longest value, in bytes.
    pub const MAX_BYTES: usize = Subject::MAX_BYTES;

    /// Parses a value.
    pub fn parse(text: &str) -> Result<Self, NameError> {
        check("value", text, Self::MAX_BYTES)?;
        Ok(Self(text.into()))
    }

    /// Creates a value from a store's data without validation: the text was validated before it was stored.
    pub(crate) fn from_stored(text: impl Into<Box<str>>) -> Self {
        Self(text.into())
    }
}

text! {
    BoardName: as_str, display, borrow, serialize, deserialize;
    Subject: as_str, display, borrow, deserialize;
    RankingKey: as_str, display, borrow, serialize, deserialize;
    EventId: as_str, display, borrow, serialize, deserialize;
    Counted: as_str, display, borrow, serialize, deserialize;
}

impl Serialize for Subject {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.removed_line() {
            Some(_) => serializer.serialize_none(),
            None => serializer.serialize_str(&self.0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn board_names() {
        for good in ["a", "0", "hot-posts", "a.b_c-d", &"a".repeat(63)] {
            assert!(BoardName::parse(good).is_ok(), "{good}");
        }
        for bad in ["", "A", "-a", ".a", "_a", "a b", "a/b", "ä", "a{b}", &"a".repeat(64)] {
            assert_eq!(BoardName::parse(bad), Err(NameError::Board), "{bad}");
        }
    }

    #[test]
    fn a_subject_in_a_ranking_has_a_key_and_a_name() {
        let (key, name) = (RankingKey::parse("a{b}").unwrap(), Subject::parse("post").unwrap());
        let subject = name.clone().in_ranking(Some(&key));
        assert_eq!((subject.key(), subject.name(), subject.as_str()), (Some("a{b}"), "post", "a{b}\0post"));
        assert_eq!((name.key(), name.name()), (None, "post"));
        assert_eq!(subject.without_key(), name);
        for bad in ["", "a\0b", &"x".repeat(513)] {
            assert!(RankingKey::parse(bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn a_removed_subject_is_nobody() {
        let removed = Subject::removed(12);
        assert_eq!((removed.removed_line(), serde_json::to_string(&removed).unwrap()), (Some(12), "null".to_owned()));
        assert_eq!(Subject::parse("12").unwrap().removed_line(), None);
        assert!(Subject::parse(removed.as_str()).is_err());
        assert!(serde_json::from_str::<Subject>(r#""\u000112""#).is_err());
        for line in [0, 12, u64::MAX] {
            assert_eq!(Subject::parse_of_place(Subject::removed(line).as_str()), Ok(Subject::removed(line)));
        }
        for bad in
            ["", "\u{1}", "\u{1}x", "\u{1}+1", "\u{1}01", "\u{1}1 ", "\u{1}18446744073709551616", "a\u{1}1", "\0"]
        {
            assert!(Subject::parse_of_place(bad).is_err(), "{bad:?}");
        }
        assert_eq!(Subject::parse_of_place("12"), Subject::parse("12"));
    }

    #[test]
    fn subjects_accept_all_printable_text() {
        for good in ["a", " ", "/a/b?c=%20", "日本語", "🎉", "{x}:y", "../..", "\u{202e}rtl", &"é".repeat(256)] {
            assert_eq!(Subject::parse(good).unwrap().as_str(), good);
        }
        assert!(matches!(Subject::parse(""), Err(NameError::Empty { .. })));
        assert!(matches!(Subject::parse(&"x".repeat(513)), Err(NameError::TooLong { bytes: 513, .. })));
        for bad in ["a\nb", "\0", "a\u{7f}", "\u{85}"] {
            assert!(matches!(Subject::parse(bad), Err(NameError::Control { .. })), "{bad:?}");
        }
    }
}
