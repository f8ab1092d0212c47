//! A window with the starts of its slots.

use std::sync::Arc;

use super::{Timestamp, Track, Window};

/// The most slots by which a window is moved forward. If it has to move further, its slots are computed again.
const MAX_STEPS: u32 = 64;

/// The window of a track at one instant, and the start of each of its slots, oldest first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WindowSlots {
    pub window: Window,
    pub starts: Arc<[Timestamp]>,
}

impl WindowSlots {
    /// Computes the window at `now`. O(slots).
    pub fn at(track: &Track, now: Timestamp) -> Self {
        let calendar = track.calendar();
        let head = calendar.slot_of(now);
        let count = track.slots() as usize;
        let mut starts = Vec::with_capacity(count);
        starts.push(head);
        while starts.len() < count {
            let oldest = starts[starts.len() - 1];
            let before = calendar.previous(oldest);
            if before == oldest {
                break; // there is no slot before the epoch
            }
            starts.push(before);
        }
        starts.reverse();
        Self { window: Window { floor: starts[0], head, end: track.end_of(head) }, starts: starts.into() }
    }

    /// Moves the window to `now`, which may be earlier. O(1) while the head stays the same. A move of the head copies
    /// the starts; a move back, or by more than 64 slots, computes all of them again, O(slots).
    pub fn move_to(&mut self, track: &Track, now: Timestamp) {
        if !self.window.holds_at(now) {
            let head = track.calendar().slot_of(now);
            *self = self.moved(track, head).unwrap_or_else(|| Self::at(track, now));
        }
    }

    /// Returns the window and its starts after the head has moved to `head`, or `None` if it moved by more than
    /// [`MAX_STEPS`] slots.
    fn moved(&self, track: &Track, head: Timestamp) -> Option<Self> {
        let mut starts = self.starts.to_vec();
        let mut next = self.window.end;
        for _ in 0..MAX_STEPS {
            if next > head || starts.last().is_none_or(|last| *last >= next) {
                break;
            }
            starts.push(next);
            next = track.calendar().next(next);
        }
        if starts.last() != Some(&head) {
            return None;
        }
        let surplus = starts.len().saturating_sub(track.slots() as usize);
        let starts: Arc<[Timestamp]> = starts[surplus..].into();
        Some(Self { window: Window { floor: starts[0], head, end: next }, starts })
    }
}
