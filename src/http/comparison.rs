//! What responses say of differences between a board and its successor.

use serde::Serialize;
use serde_json::{Value, json};
use utoipa::ToSchema;

use super::{response, schemas};
use crate::board::{RankingKey, Shown, Subject, Timestamp};
use crate::service::{Comparison, MirroredDifference, TopOverlap};

/// A comparison of a board and its successor, subject by subject. The two scores of a subject are of one instant.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = EditionComparison, example = comparison_example)]
pub(super) struct ComparisonShown {
    /// `running`, `done`, or `failed`.
    #[schema(pattern = "^(running|done|failed)$")]
    state: &'static str,
    /// Length of the window of the board.
    #[schema(example = "24h")]
    window: String,
    /// Length of the window of the successor.
    #[schema(example = "7d")]
    next_window: String,
    /// The store's time of the begin.
    #[schema(schema_with = schemas::time)]
    begun_at: Timestamp,
    /// The store's time of the end; null until it is done.
    #[schema(schema_with = schemas::time_or_null, required = true)]
    ended_at: Option<Timestamp>,
    /// The error that ended it; null if it has not failed.
    #[schema(required = true)]
    error: Option<String>,
    /// Number of subjects that both have.
    in_both: u64,
    /// Number of subjects that only the board has.
    only_board: u64,
    /// Number of subjects that only the successor has.
    only_next: u64,
    /// Number of subjects that both have, with different scores.
    different: u64,
    /// What the first lines of both rankings have in common; empty on unranked boards and on those with `BY`. The two rankings are read one
    /// after the other.
    tops: Vec<TopShown>,
    /// The first subjects that differ, at most 100.
    #[schema(max_items = 100)]
    differences: Vec<DifferenceShown>,
}

/// The first lines of both rankings.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = TopOverlap)]
pub(super) struct TopShown {
    /// Number of lines of each.
    lines: usize,
    /// Number of subjects that are among them in both.
    common: usize,
    /// Largest difference of the ranks of one of these.
    largest_change: u64,
}

/// A subject with different scores.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = EditionDifference)]
pub(super) struct DifferenceShown {
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(schema_with = schemas::by, required = false)]
    by: Option<RankingKey>,
    #[schema(schema_with = schemas::subject)]
    subject: Subject,
    /// Score on the board; null if it has none.
    #[schema(schema_with = schemas::score, required = true)]
    score: Option<Shown>,
    /// Score in the successor; null if it has none.
    #[schema(schema_with = schemas::score, required = true)]
    next_score: Option<Shown>,
}

/// A read that the successor answered differently.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = MirroredDifference)]
pub(super) struct MirroredDifferenceShown {
    /// `page`, `lookup`, `standing` or `neighbors`.
    #[schema(example = "page")]
    read: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(schema_with = schemas::by, required = false)]
    by: Option<RankingKey>,
    /// The store's time of the board's answer.
    #[schema(schema_with = schemas::time)]
    at: Timestamp,
    /// Position, from 0, of the first line in which the answers differ.
    position: usize,
    /// The board's line there; null if it has none.
    #[schema(required = true)]
    line: Option<ScoredLine>,
    /// The successor's line there; null if it has none.
    #[schema(required = true)]
    next_line: Option<ScoredLine>,
}

/// A subject with its score.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct ScoredLine {
    #[schema(schema_with = schemas::subject)]
    subject: Subject,
    #[schema(schema_with = schemas::score, required = true)]
    score: Option<Shown>,
}

fn comparison_example() -> Value {
    json!({
        "state": "done", "window": "24h", "next_window": "24h", "begun_at": "2026-01-02T10:07:00Z",
        "ended_at": "2026-01-02T10:07:02Z", "error": null, "in_both": 1233, "only_board": 1, "only_next": 0,
        "different": 1, "tops": [{"lines": 10, "common": 10, "largest_change": 1}],
        "differences": [{"subject": "post-7", "score": 12, "next_score": 13}],
    })
}

impl ComparisonShown {
    pub(super) fn of(comparison: Comparison) -> Self {
        let Comparison { windows, scales, begun, ended, failed, tops, differences, .. } = comparison;
        let state = match (&ended, &failed) {
            (_, Some(_)) => "failed",
            (Some(_), None) => "done",
            (None, None) => "running",
        };
        let difference = |(subject, [board, next]): (Subject, [Option<_>; 2])| {
            let (by, subject) = subject.split();
            let (score, next_score) = (response::score(scales[0], board), response::score(scales[1], next));
            DifferenceShown { by, subject, score, next_score }
        };
        let top = |TopOverlap { lines, common, largest_change }| TopShown { lines, common, largest_change };
        Self {
            state,
            window: windows[0].to_string(),
            next_window: windows[1].to_string(),
            begun_at: begun,
            ended_at: ended,
            error: failed,
            in_both: comparison.in_both,
            only_board: comparison.only_board,
            only_next: comparison.only_successor,
            different: comparison.different,
            tops: tops.into_iter().map(top).collect(),
            differences: differences.into_iter().map(difference).collect(),
        }
    }
}

impl MirroredDifferenceShown {
    pub(super) fn of(difference: &MirroredDifference) -> Self {
        let [line, next_line] = [0, 1].map(|edition| {
            let (subject, score) = difference.lines[edition].clone()?;
            Some(ScoredLine { subject, score: response::score(difference.scales[edition], score) })
        });
        let MirroredDifference { read, key, at, position, .. } = difference;
        Self { read: read.name(), by: key.clone(), at: *at, position: *position, line, next_line }
    }
}
