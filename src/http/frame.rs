//! What responses say of the instant that they describe.

use serde::Serialize;
use utoipa::ToSchema;

use super::schemas;
use crate::board::{
    BoardEdition, BoardName, BoardTrack, Frame, Period, PeriodName, RankingKey, Timestamp, Track, Window,
};

/// The exact bounds of a window: `from` is inclusive, `to` is exclusive.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ToSchema)]
pub(super) struct WindowBounds {
    /// Start of the oldest slot that counts; null if the window has none.
    #[schema(schema_with = schemas::time_or_null, required = true)]
    pub(super) from: Option<Timestamp>,
    /// End of the newest slot. It is in the future; the window rolls over when the clock reaches it. Null if the window
    /// has none.
    #[schema(schema_with = schemas::time_or_null, required = true)]
    pub(super) to: Option<Timestamp>,
    /// Number of slots in the window; 0 if nothing expires.
    #[schema(minimum = 0, maximum = 2001)]
    pub(super) slots: u32,
}

impl WindowBounds {
    /// Returns the bounds of a window. `slots` is the number of slots that were read. All time has neither bounds nor
    /// slots.
    pub(super) fn of(track: &Track, window: &Window, slots: u32) -> Self {
        if track.is_all_time() {
            Self { from: None, to: None, slots: 0 }
        } else {
            Self { from: Some(window.floor), to: Some(window.end), slots }
        }
    }
}

/// The window and the time that a response refers to.
#[derive(Clone, Copy, Debug, Serialize, ToSchema)]
#[schema(as = Frame)]
pub(super) struct FrameShown {
    /// The slots that were read.
    window: WindowBounds,
    /// The instant that the response describes: the requested `as_of`, or else the store's time of the response.
    #[schema(schema_with = schemas::time)]
    as_of: Timestamp,
    /// Number of expired slots that are not yet fully subtracted. Unless it is 0, scores may include parts of them.
    /// Values over windows never include them.
    retiring: u64,
}

impl FrameShown {
    /// Returns the frame of a response that was read from this number of slots.
    pub(super) fn of(track: &Track, frame: &Frame, slots: u32) -> Self {
        Self::as_of(track, None, frame, slots)
    }

    /// Returns the frame of a response that looks back to the requested instant, if there is one.
    pub(super) fn as_of(track: &Track, requested: Option<Timestamp>, frame: &Frame, slots: u32) -> Self {
        Self {
            window: WindowBounds::of(track, &frame.window, slots),
            as_of: requested.unwrap_or(frame.as_of),
            retiring: frame.retiring,
        }
    }
}

/// A period of a board with a season.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[schema(as = Period)]
pub(super) struct PeriodShown {
    /// Name of the period, for the parameter `period`: `2026-11` of a month, `2026` of a year, otherwise the day on which
    /// it begins, with the hour if it is shorter than a day, in the time zone of the board; of one that is closed by
    /// hand its number.
    #[schema(value_type = String, example = "2026-11")]
    name: PeriodName,
    /// Start of the period, inclusive.
    #[schema(schema_with = schemas::time)]
    start: Timestamp,
    /// End of the period, exclusive. Null until a period that is closed by hand is closed.
    #[schema(schema_with = schemas::time_or_null, required = true)]
    end: Option<Timestamp>,
    /// Whether nothing counts in the period any more: it has ended, and its grace is over.
    #[serde(rename = "final")]
    is_final: bool,
}

impl PeriodShown {
    /// Returns the period that an edition is, or `None` if the board has no season.
    pub(super) fn of(edition: &BoardEdition) -> Option<Self> {
        let Period { start, end, .. } = edition.period()?;
        let end = (end < Timestamp::MAX).then_some(end);
        Some(Self { name: edition.period_name()?, start, end, is_final: edition.is_final() })
    }
}

/// The board, the window and the time that a response with ranks refers to.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub(super) struct RankingFrame {
    #[schema(schema_with = schemas::board)]
    board: BoardName,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(schema_with = schemas::by, required = false)]
    by: Option<RankingKey>,
    /// The period that was read, on a board with a season.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(required = false, nullable = false)]
    period: Option<PeriodShown>,
    #[serde(flatten)]
    frame: FrameShown,
    /// The instant just before which `from` is the rank, on a board with `movement`. Absent if they are not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(schema_with = schemas::time, required = false)]
    from_as_of: Option<Timestamp>,
    /// Number of ranked subjects on the board, on a board with `BY` of this key; null if it is not known.
    #[schema(value_type = Option<u64>, required = true)]
    total: u64,
}

impl RankingFrame {
    /// Returns the frame of a response about the whole window of the board, on which `total` subjects are ranked.
    pub(super) fn of(track: &BoardTrack, frame: &Frame, total: u64) -> Self {
        let (board, by) = (track.board().name().clone(), track.key().cloned());
        let period = PeriodShown::of(&track.edition());
        let from_as_of = track.earlier().map(|earlier| earlier.at());
        Self { board, by, period, frame: FrameShown::of(track, frame, track.slots()), from_as_of, total }
    }

    /// Returns the key of the ranking, if the board has keys.
    pub(super) fn key(&self) -> Option<&RankingKey> {
        self.by.as_ref()
    }
}
