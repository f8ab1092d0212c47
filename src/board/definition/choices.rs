//! The keys of a definition that have one of some words.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Order of the ranking: highest or lowest score first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum Order {
    /// The highest score is first. Ties are ordered by subject, the greatest bytes first.
    #[default]
    Desc,
    /// The lowest score is first (lap times). Ties are ordered by subject, the smallest bytes first.
    Asc,
}

/// `shared`: subjects that tie have the same rank. `ordinal`: each line has a rank of its own, in the order of the lines.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum Ranks {
    /// Subjects that tie have the same rank, and the next one has a rank as if they had not tied: 1, 2, 2, 4.
    #[default]
    Shared,
    /// Each line has a rank of its own: 1, 2, 3, 4.
    Ordinal,
}

/// `full` keeps one additional slot, so that the window never covers less than its length.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum Cover {
    /// `window / slot` slots, including the one that contains now. They cover between N−1 and N slots of time.
    #[default]
    Current,
    /// One slot more, so that the slots never cover less time than the window.
    Full,
}

/// `sliding`: the window covers the newest slots. `from_first`: the window of a subject begins with its first event and
/// has a fixed length; for COUNT and SUM on unranked boards.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Mode {
    /// The window slides: it consists of the last slots, the same for every subject.
    #[default]
    Sliding,
    /// The window begins with the subject's first event and ends a fixed time later. The next event after that begins a
    /// new window. For COUNT and SUM on unranked boards only.
    FromFirst,
}

/// The end of its slot that the time of a sample denotes: with `end`, 06:02 belongs to 06:01–06:02.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum Stamp {
    /// The start: a sample stamped 06:02 belongs to 06:02–06:03.
    #[default]
    Start,
    /// The end: a sample stamped 06:02 belongs to 06:01–06:02.
    End,
}
