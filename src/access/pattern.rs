//! Patterns of boards' names.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize};

use crate::board::BoardName;
use crate::board::text::text;

/// The name of a board, or how names begin: `hot-posts`, `shop-*`, or `*` for all.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BoardPattern {
    text: Box<str>,
    is_prefix: bool,
}

/// A text that is not a pattern.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a pattern of boards is a board's name, the beginning of names with '*' after it, or '*'")]
pub struct PatternError;

impl BoardPattern {
    /// Returns whether the board of this name is one of them.
    pub fn includes(&self, name: &str) -> bool {
        if self.is_prefix { name.starts_with(&*self.text) } else { name == &*self.text }
    }

    /// Returns whether the pattern includes all names that `other` includes.
    fn covers(&self, other: &BoardPattern) -> bool {
        if self.is_prefix { other.text.starts_with(&*self.text) } else { self == other }
    }
}

impl FromStr for BoardPattern {
    type Err = PatternError;

    fn from_str(text: &str) -> Result<Self, PatternError> {
        let (start, is_prefix) = match text.strip_suffix('*') {
            Some(start) => (start, true),
            None => (text, false),
        };
        // What names can begin with is a name itself, or nothing.
        if !(is_prefix && start.is_empty()) {
            BoardName::parse(start).map_err(|_| PatternError)?;
        }
        Ok(Self { text: start.into(), is_prefix })
    }
}

impl fmt::Display for BoardPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.text, if self.is_prefix { "*" } else { "" })
    }
}

/// The boards that a caller may use: those that at least one of the patterns includes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct BoardPatterns(Box<[BoardPattern]>);

impl BoardPatterns {
    /// The largest number of patterns.
    pub const MOST: usize = 64;

    /// Returns the pattern of all boards.
    pub fn all() -> Self {
        Self([BoardPattern { text: "".into(), is_prefix: true }].into())
    }

    /// Returns whether a board with this name is included. O(patterns).
    pub fn includes(&self, name: &BoardName) -> bool {
        self.0.iter().any(|pattern| pattern.includes(name.as_str()))
    }

    /// Returns whether there are no patterns.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns whether every board is included.
    pub fn is_all(&self) -> bool {
        self.0.iter().any(|pattern| pattern.is_prefix && pattern.text.is_empty())
    }

    /// Returns whether each pattern of `other` is part of one of these.
    pub fn covers(&self, other: &BoardPatterns) -> bool {
        other.0.iter().all(|other| self.0.iter().any(|own| own.covers(other)))
    }
}

impl FromIterator<BoardPattern> for BoardPatterns {
    fn from_iter<I: IntoIterator<Item = BoardPattern>>(patterns: I) -> Self {
        Self(patterns.into_iter().collect())
    }
}

/// Writes the patterns with commas between them.
impl fmt::Display for BoardPatterns {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().enumerate().try_for_each(|(at, pattern)| match at {
            0 => write!(f, "{pattern}"),
            _ => write!(f, ",{pattern}"),
        })
    }
}

text! { BoardPattern: serialize_displayed, deserialize_from_str; }

impl<'de> Deserialize<'de> for BoardPatterns {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let patterns = Vec::<BoardPattern>::deserialize(deserializer)?;
        if patterns.len() > Self::MOST {
            return Err(serde::de::Error::custom(format!("at most {} patterns of boards are allowed", Self::MOST)));
        }
        Ok(patterns.into_iter().collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn patterns(texts: &[&str]) -> BoardPatterns {
        texts.iter().map(|text| text.parse::<BoardPattern>().unwrap()).collect()
    }

    #[test]
    fn patterns_include_names() {
        for (pattern, name, is_included) in [
            ("hot-posts", "hot-posts", true),
            ("hot-posts", "hot-posts-2", false),
            ("hot-posts", "hot", false),
            ("shop-*", "shop-a", true),
            ("shop-*", "shop-", true),
            ("shop-*", "shop", false),
            ("shop-*", "a-shop-b", false),
            ("*", "anything", true),
        ] {
            let name = BoardName::parse(name).unwrap();
            assert_eq!(patterns(&[pattern]).includes(&name), is_included, "{pattern} {name:?}");
        }
        assert!(!patterns(&[]).includes(&BoardName::parse("a").unwrap()));
        assert_eq!(patterns(&["shop-*", "hot"]).to_string(), "shop-*,hot");
    }

    #[test]
    fn only_a_trailing_star_is_a_pattern() {
        for wrong in ["", "**", "a*b", "*a", "A*", "a b", "-*", "a/*", "a?"] {
            assert_eq!(wrong.parse::<BoardPattern>(), Err(PatternError), "{wrong}");
        }
    }

    #[test]
    fn a_wider_pattern_covers_a_narrower_one() {
        for (wide, narrow, covers) in [
            (&["*"][..], &["shop-*", "x"][..], true),
            (&["shop-*"], &["shop-a", "shop-b*", "shop-*"], true),
            (&["shop-*"], &["shop*"], false),
            (&["shop-*"], &["*"], false),
            (&["a"], &["a"], true),
            (&["a"], &["a*"], false),
            (&["a*"], &["a"], true),
            (&[], &[], true),
            (&[], &["a"], false),
        ] {
            assert_eq!(patterns(wide).covers(&patterns(narrow)), covers, "{wide:?} {narrow:?}");
        }
        assert!(patterns(&["a", "*"]).is_all() && !patterns(&["a*"]).is_all());
    }
}
