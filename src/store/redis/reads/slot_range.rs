//! The slots that a read is about.

use std::sync::Arc;

use crate::board::{Timestamp, Window};
use crate::store::SlotRange;
use crate::store::redis::session::Moment;

/// The slots to read, oldest first, and the end of the newest.
#[derive(Clone, Debug)]
pub(super) struct Range {
    pub starts: Arc<[Timestamp]>,
    pub end: Timestamp,
}

impl Range {
    /// Returns the range of the window itself.
    pub fn whole(moment: &Moment<'_>) -> Self {
        Self { starts: moment.starts.clone(), end: moment.window.end }
    }

    pub fn nothing(moment: &Moment<'_>) -> Self {
        Self { starts: Arc::new([]), end: moment.window.floor }
    }

    /// Returns the slots of a range. If not all of them exist, returns the oldest slot that can be requested as the
    /// error.
    pub fn of(moment: &Moment<'_>, range: SlotRange, as_of: Option<Timestamp>) -> Result<Self, Timestamp> {
        let (track, window) = (&moment.part.track, &moment.window);
        let calendar = track.calendar();
        let Some(until) = as_of else {
            let starts = &moment.starts;
            let from = match range {
                SlotRange::Slots(slots) if slots > track.slots() => return Err(window.floor),
                SlotRange::Slots(slots) => starts.len().saturating_sub(slots.max(1) as usize),
                SlotRange::From(time) if time < window.floor => return Err(window.floor),
                // A time ahead of the clock counts as now, and so does a range that starts there.
                SlotRange::From(time) => starts.partition_point(|start| *start < calendar.slot_of(time)),
            };
            if from == 0 {
                return Ok(Self::whole(moment));
            }
            let starts = starts[from.min(starts.len().saturating_sub(1))..].into();
            return Ok(Self { starts, end: window.end });
        };
        let oldest = moment.part.kept(window).oldest;
        let newest = calendar.slot_of(until);
        let first = match range {
            SlotRange::Slots(slots) if slots > track.slots() => return Err(oldest),
            SlotRange::Slots(_) => None,
            SlotRange::From(time) => Some(calendar.slot_of(time.min(until))),
        };
        if newest < oldest || newest > window.head || first.is_some_and(|first| first < oldest) {
            return Err(oldest);
        }
        let most = match range {
            SlotRange::Slots(slots) => slots.max(1) as usize,
            SlotRange::From(_) => track.slots() as usize,
        };
        let mut starts = vec![newest];
        let mut start = newest;
        while starts.len() < most && first != Some(start) {
            let before = calendar.previous(start);
            if before == start {
                break; // the epoch: there is nothing before it
            }
            if before < oldest {
                return Err(oldest);
            }
            starts.push(before);
            start = before;
        }
        if first.is_some_and(|first| first < start) {
            return Err(oldest);
        }
        starts.reverse();
        Ok(Self { starts: starts.into(), end: track.end_of(newest) })
    }

    pub fn holds(&self, start: Timestamp) -> bool {
        self.starts.first().is_some_and(|first| *first <= start) && start < self.end
    }

    /// Returns the window that has these slots, where `window` is that of the board.
    pub fn window(&self, window: Window) -> Window {
        let floor = self.starts.first().copied().unwrap_or(window.floor);
        let head = self.starts.last().copied().unwrap_or(window.head);
        Window { floor, head, end: self.end }
    }
}
