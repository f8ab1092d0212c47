//! Sources: ordered logs whose items are counted exactly once, because each has a position.

use std::fmt;

/// The position of an item in the log of a source. Positions only increase along a log, with any gaps between them.
///
/// 128 bits are enough for the offsets of Kafka, for the ids of Redis Streams (two numbers of 64 bits) and for a further
/// number where one message has several items.
// Aligned as other numbers are, so that errors, and the futures that may return one, do not grow.
#[repr(Rust, packed(8))]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Position(pub u128);

impl Position {
    /// The largest position.
    pub const MAX: Position = Position(u128::MAX);
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        { self.0 }.fmt(f)
    }
}

/// The number of a source. It is never given to another source, so that what a board knows of a log that was removed is
/// never taken for another one's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SourceNumber(pub u32);

impl fmt::Display for SourceNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
