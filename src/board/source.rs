//! Sources: ordered logs whose items are counted exactly once, because each has a position.

use std::fmt;
use std::str::FromStr;

use super::text::text;

/// The name of a source: `[A-Za-z0-9][A-Za-z0-9._-]{0,119}`. The topics of Kafka have such names.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SourceName(Box<str>);

/// A position in the log of a source: that of an item, or the start of the log. The positions of items only increase along
/// a log, with any gaps between them.
///
/// Users write the position of an item as its number in the log, from 0, and the one before all items as `start`. In here
/// the start is 0, and an item one more than its number: what is counted up to a position is one number, whether there is
/// an item or not.
///
/// 128 bits are enough for the offsets of Kafka, for the ids of Redis Streams (two numbers of 64 bits) and for a further
/// number where one message has several items.
// Aligned as other numbers are, so that errors, and the futures that may return one, do not grow.
#[repr(Rust, packed(8))]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Position(pub u128);

/// The number of a source. It is drawn at random when the source is defined, so that what a board knows of a log that was
/// removed, or that a failover has lost, is never taken for another one's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SourceNumber(pub u32);

/// A text that is not a position.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a position is a whole number without a sign, at most {}, or 'start', which is before the first item", u128::MAX - 1)]
pub struct PositionError;

/// A text that is not the name of a source.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a source's name is 1 to 120 characters of A-Z, a-z, 0-9, '.', '_' and '-', and starts with a letter or digit")]
pub struct SourceNameError;

impl Position {
    /// The position before the first item of a log.
    pub const START: Position = Position(0);
    /// The largest position.
    pub const MAX: Position = Position(u128::MAX);

    /// Parses the position of an item, which is not the start.
    pub fn parse_of_item(text: &str) -> Option<Self> {
        text.parse().ok().filter(|position| *position > Self::START)
    }
}

impl FromStr for Position {
    type Err = PositionError;

    fn from_str(text: &str) -> Result<Self, PositionError> {
        if text == "start" {
            return Ok(Self::START);
        }
        let number = text.parse::<u128>().ok().and_then(|number| number.checked_add(1));
        // `parse` accepts "+5", which JSON does not.
        number.filter(|_| text.bytes().all(|byte| byte.is_ascii_digit())).map(Self).ok_or(PositionError)
    }
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match { self.0 }.checked_sub(1) {
            Some(number) => number.fmt(f),
            None => f.write_str("start"),
        }
    }
}

impl SourceName {
    /// Parses a name.
    pub fn parse(text: &str) -> Result<Self, SourceNameError> {
        let inner = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-');
        let starts = text.as_bytes().first().is_some_and(u8::is_ascii_alphanumeric);
        let is_valid = starts && text.len() <= 120 && text.bytes().all(inner);
        if is_valid { Ok(Self(text.into())) } else { Err(SourceNameError) }
    }
}

text! {
    SourceName: as_str, display, serialize, borrow;
    Position: serialize_displayed, deserialize_from_str;
}

impl fmt::Display for SourceNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_position_has_digits_only() {
        for (text, number) in [("start", 0), ("0", 1), ("41", 42), (&(u128::MAX - 1).to_string(), u128::MAX)] {
            assert_eq!(text.parse(), Ok(Position(number)));
            assert_eq!(Position(number).to_string(), text);
        }
        assert_eq!("007".parse(), Ok(Position(8)));
        for bad in ["", "+1", "-1", " 1", "1.0", "1e3", "0x1", "Start", &u128::MAX.to_string()] {
            assert_eq!(bad.parse::<Position>(), Err(PositionError), "{bad}");
        }
        assert_eq!((Position::parse_of_item("0"), Position::parse_of_item("start")), (Some(Position(1)), None));
    }

    #[test]
    fn the_name_of_a_source_is_one_segment_of_a_path() {
        for good in ["a", "Likes.v2-0_1", &"x".repeat(120)] {
            assert!(SourceName::parse(good).is_ok(), "{good}");
        }
        for bad in ["", "#", ".a", "-a", "a/b", "a b", "ä", &"x".repeat(121)] {
            assert_eq!(SourceName::parse(bad), Err(SourceNameError), "{bad}");
        }
    }
}
