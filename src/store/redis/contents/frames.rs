//! The contents that a track has at one time.

use crate::board::{Frame, Timestamp, Window};
use crate::store::Content;
use crate::store::redis::part::Part;

/// Returns whether this content of a track still counts, or is kept, when the window is this one.
pub(in crate::store::redis) fn is_live(part: &Part, window: &Window, now: Timestamp, content: &Content) -> bool {
    let track = &part.track;
    match content {
        Content::Cell { slot, .. } => *slot >= part.kept(window).oldest,
        Content::Value { at, retracted: true, .. } if track.is_all_time() => *at >= oldest_tombstone(part, now),
        Content::Value { at, .. } | Content::Dropped { at } => *at >= window.floor,
        Content::Counter { start, .. } => now < start.plus_millis(track.length().approximate_millis()),
    }
}

/// Returns the time below which tombstones have expired on a board over all time.
fn oldest_tombstone(part: &Part, now: Timestamp) -> Timestamp {
    let life = part.track.tombstone_life().unwrap_or_default();
    Timestamp::from_millis(now.millis().saturating_sub(life))
}

/// Removes contents that were live in an earlier script of a step and no longer are.
pub(super) fn retain_live(part: &Part, frame: &Frame, contents: &mut Vec<(crate::board::Subject, Content)>) {
    contents.retain(|(_, content)| is_live(part, &frame.window, frame.as_of, content));
}
