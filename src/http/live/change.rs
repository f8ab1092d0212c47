//! The difference between two pages of a ranking.

use serde::Serialize;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use utoipa::ToSchema;
use utoipa::openapi::schema::{Array, ArrayBuilder};

use super::super::frame::FrameShown;
use super::super::ranking_lines::{RankingLine, RankingLines};
use super::super::schemas;
use crate::board::{Attributes, BoardTrack, Shown, Subject, Tie, Timestamp};
use crate::service::{Page, Ranked, tiers_of_lines};

/// What has changed in a live view since the event before. To apply it, remove the lines of the subjects in `gone` and
/// in `rows`, then insert each row at its position, in the order of `rows`.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = RankingChange)]
pub(in crate::http) struct RankingChange {
    #[serde(flatten)]
    frame: FrameShown,
    /// The instant just before which `from` is the rank, on a board with `movement`. Absent if they are not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(schema_with = schemas::time, required = false)]
    from_as_of: Option<Timestamp>,
    /// Number of ranked subjects on the board; null if it is not known.
    #[schema(value_type = Option<u64>, required = true)]
    total: u64,
    /// The lines that have changed in any way, including those that other lines have moved, in the order of their
    /// positions.
    #[schema(max_items = 100)]
    rows: Vec<ChangedRow>,
    /// The subjects that are no longer in the view.
    #[schema(schema_with = gone)]
    gone: Vec<Subject>,
}

fn gone() -> Array {
    let description = "The subjects that are no longer in the view.";
    ArrayBuilder::new().items(schemas::subject()).max_items(Some(100)).description(Some(description)).build()
}

/// A line of a live view, and its position. It has a subject, also on a board with a season: views are of the current
/// period, and subjects are removed from the lines of final ones only.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = ChangedRow)]
pub(in crate::http) struct ChangedRow {
    /// Position in the view, from 1. Subjects with equal scores have different positions.
    #[schema(minimum = 1, maximum = 100)]
    position: usize,
    /// Rank (1, 2, 2, 4; with ordinal ranks 1, 2, 3, 4).
    #[schema(minimum = 1)]
    rank: u64,
    #[schema(schema_with = schemas::subject)]
    subject: Subject,
    #[schema(schema_with = schemas::score, required = true)]
    score: Option<Shown>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(schema_with = schemas::tie, required = false)]
    tie: Option<Tie>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(schema_with = schemas::tier, required = false)]
    tier: Option<Arc<str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(schema_with = schemas::rank_before, required = false)]
    from: Option<Option<u64>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(schema_with = schemas::attributes, required = false)]
    attributes: Option<Attributes>,
}

impl ChangedRow {
    /// Returns the line at a position, from 0.
    fn of((at, line): (usize, &RankingLine<'_>)) -> Self {
        let RankingLine { rank, subject, score, tie, tier, from, ref attributes } = *line;
        let (subject, attributes) = (subject.clone(), attributes.clone());
        Self { position: at + 1, rank, subject, score, tie, tier: tier.cloned(), from, attributes }
    }
}

impl RankingChange {
    /// Returns what has changed on the first page of a board between two instants. O(lines).
    pub(super) fn between(track: &BoardTrack, (before_on, before): (&BoardTrack, &Page), page: &Page) -> Self {
        let (tiers_before, lines) = (tiers_of_lines(before_on, before), RankingLines::new(track, page.clone()));
        let lines: Vec<RankingLine<'_>> = lines.iter().collect();
        let tier = |at: usize| tiers_before.as_ref().and_then(|tiers| tiers.get(at).cloned().flatten());
        // A line that has stayed had the same subject.
        let from = |at: usize| before_on.rank_before(lines[at].subject);
        let attributes = |at: usize| before_on.attributes_of(lines[at].subject);
        let is_shown_so = |at: usize| {
            let line = &lines[at];
            tier(at).as_ref() == line.tier && from(at) == line.from && attributes(at) == line.attributes
        };
        let (rows, gone) = difference(&before.items, &page.items, is_shown_so);
        let rows: HashSet<usize> = rows.into_iter().collect();
        let rows = lines.iter().enumerate().filter(|(at, _)| rows.contains(at));
        Self {
            frame: FrameShown::of(track, &page.frame, track.slots()),
            from_as_of: track.earlier().map(|earlier| earlier.at()),
            total: page.total,
            rows: rows.map(ChangedRow::of).collect(),
            gone: gone.into_iter().cloned().collect(),
        }
    }
}

/// Returns the positions, from 0, of the lines that were not there before with the same content; and the subjects that
/// no longer have a line. `is_shown_so` says whether the line at a position, the same as before, has the tier, the
/// earlier rank and the attributes that it had.
fn difference<'a>(
    before: &'a [Ranked],
    now: &[Ranked],
    is_shown_so: impl Fn(usize) -> bool,
) -> (Vec<usize>, Vec<&'a Subject>) {
    let remaining: HashSet<&Subject> = now.iter().map(|line| &line.subject).collect();
    let gone = before.iter().map(|line| &line.subject).filter(|subject| !remaining.contains(subject)).collect();
    let earlier: HashMap<&Subject, (usize, &Ranked)> =
        before.iter().enumerate().map(|(at, line)| (&line.subject, (at, line))).collect();
    let is_same = |at: usize| earlier.get(&now[at].subject) == Some(&(at, &now[at])) && is_shown_so(at);
    ((0..now.len()).filter(|at| !is_same(*at)).collect(), gone)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::board::{Amount, Value};

    /// Returns a page with these subjects and scores, without repeated subjects.
    fn page(lines: &[(u8, i64)]) -> Vec<Ranked> {
        let mut seen = HashSet::new();
        let lines = lines.iter().filter(|(subject, _)| seen.insert(*subject)).enumerate();
        lines
            .map(|(at, (subject, score))| Ranked {
                rank: at as u64 + 1,
                subject: Subject::parse(&format!("s{subject}")).unwrap(),
                score: Value::Exact(Amount(*score)),
            })
            .collect()
    }

    /// Applies a change as its description says.
    fn apply(before: &[Ranked], now: &[Ranked]) -> Vec<Ranked> {
        let (rows, gone) = difference(before, now, |_| true);
        let moved: HashSet<&Subject> = rows.iter().map(|at| &now[*at].subject).chain(gone).collect();
        let mut lines: Vec<Ranked> = before.iter().filter(|line| !moved.contains(&line.subject)).cloned().collect();
        for at in rows {
            lines.insert(at, now[at].clone());
        }
        lines
    }

    proptest! {
        #[test]
        fn a_change_applied_to_the_page_before_gives_the_page(
            before in prop::collection::vec((0u8..12, 0i64..3), 0..10),
            now in prop::collection::vec((0u8..12, 0i64..3), 0..10),
        ) {
            let (before, now) = (page(&before), page(&now));
            prop_assert_eq!(apply(&before, &now), now);
        }
    }

    #[test]
    fn only_lines_that_changed_are_in_a_change() {
        let before = page(&[(1, 9), (2, 8), (3, 7), (4, 6)]);
        assert_eq!(difference(&before, &before, |_| true), (vec![], vec![]));
        let (rows, gone) = difference(&before, &page(&[(1, 9), (3, 8), (2, 8), (4, 6)]), |_| true);
        assert_eq!((rows, gone), (vec![1, 2], vec![]));
        let now = page(&[(1, 9), (2, 8), (5, 7), (4, 6)]);
        let (rows, gone) = difference(&before, &now, |_| true);
        assert_eq!((rows, gone), (vec![2], vec![&before[2].subject]));
        // Lines that have stayed may be in another tier.
        assert_eq!(difference(&before, &before, |at| at != 1), (vec![1], vec![]));
    }
}
