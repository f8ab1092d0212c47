//! The slots that count at one instant, and where an event's time falls among them.

use super::Timestamp;

/// The window at one instant: the slots from `floor` to `head`, the one containing now included.
///
/// Half-open like every slot: it covers `floor <= t < end`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// Start of the oldest slot that counts.
    pub floor: Timestamp,
    /// Start of the newest slot.
    pub head: Timestamp,
    /// End of the newest slot: the window holds until the clock reaches it.
    pub end: Timestamp,
}

impl Window {
    /// Whether the window of `now` is this one.
    pub fn holds_at(&self, now: Timestamp) -> bool {
        self.head <= now && now < self.end
    }
}

/// Where an increment belongs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Placement {
    /// In the slot that starts here.
    Slot(Timestamp),
    /// Below the floor: its slot is sealed.
    TooLate,
    /// Further ahead of the store's clock than the allowed skew.
    TooEarly,
}

/// What an answer is about: every read carries one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame {
    /// The slots that count.
    pub window: Window,
    /// The store's time when it answered.
    pub as_of: Timestamp,
    /// Expired slots not yet fully subtracted from the ranking.
    pub retiring: u64,
}
