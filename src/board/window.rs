//! The window at one instant, and the slot that an event's time belongs to.

use super::Timestamp;

/// The window at one instant: the slots from `floor` to `head`, including the one that contains now.
///
/// Half-open like every slot: it covers `floor <= t < end`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// The start of the oldest slot that counts.
    pub floor: Timestamp,
    /// The start of the newest slot.
    pub head: Timestamp,
    /// The end of the newest slot. The window stays the same until the clock reaches it.
    pub end: Timestamp,
}

impl Window {
    /// Returns whether this is the window at `now`.
    pub fn holds_at(&self, now: Timestamp) -> bool {
        self.head <= now && now < self.end
    }
}

/// The slot that an increment belongs to, or the reason why there is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Placement {
    /// The slot that starts at this time.
    Slot(Timestamp),
    /// The time is below the floor: its slot no longer counts.
    TooLate,
    /// The time is ahead of the store's clock by more than the allowed skew.
    TooEarly,
}

/// The window and the time that a result refers to. Every read returns one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame {
    /// The slots that count.
    pub window: Window,
    /// The store's time when it computed the result.
    pub as_of: Timestamp,
    /// The number of expired slots that are not yet fully subtracted from the ranking.
    pub retiring: u64,
}
