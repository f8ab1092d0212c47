//! The lines of a ranking in responses.

use std::sync::Arc;

use serde::{Serialize, Serializer};
use serde_json::value::to_raw_value;
use utoipa::ToSchema;

use super::{response, schemas};
use crate::board::{BoardTrack, Decimals, EarlierRanks, Shown, Subject};
use crate::service::{LineTiers, Lines, Page, Ranked, tiers_of_lines};

/// One line of a ranking.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = RankingEntry)]
pub(super) struct RankingLine {
    /// Competition rank (1, 2, 2, 4).
    #[schema(minimum = 1)]
    pub(super) rank: u64,
    #[schema(schema_with = schemas::subject_or_null)]
    pub(super) subject: Subject,
    #[schema(schema_with = schemas::score, required = true)]
    pub(super) score: Option<Shown>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(schema_with = schemas::tier, required = false)]
    pub(super) tier: Option<Arc<str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(schema_with = schemas::rank_before, required = false)]
    pub(super) from: Option<Option<u64>>,
}

impl RankingLine {
    /// Returns a line as responses about this board show it. `tiers` are those of the lines of its page, and `earlier` the
    /// ranks of an earlier time, if lines show them.
    fn of(
        decimals: Decimals,
        (at, ranked): (usize, &Ranked),
        tiers: &LineTiers,
        earlier: Option<&Arc<EarlierRanks>>,
    ) -> Self {
        Self {
            rank: ranked.rank,
            subject: ranked.subject.clone(),
            score: response::score(decimals, ranked.score),
            tier: tiers.as_ref().and_then(|tiers| tiers.get(at).cloned().flatten()),
            from: earlier.map(|earlier| earlier.rank_of(&ranked.subject)),
        }
    }

    /// Returns the lines of a page.
    pub(super) fn of_page(track: &BoardTrack, page: &Page) -> Vec<Self> {
        let tiers = tiers_of_lines(track, page);
        let line = |line| Self::of(track.decimals(), line, &tiers, track.earlier());
        page.items.iter().enumerate().map(line).collect()
    }
}

/// The lines of a page. Responses that share them serialize them once.
#[derive(Debug)]
pub(super) struct RankingLines {
    decimals: Decimals,
    lines: Lines,
    tiers: LineTiers,
    earlier: Option<Arc<EarlierRanks>>,
}

impl RankingLines {
    pub(super) fn new(track: &BoardTrack, page: Page) -> Self {
        let (tiers, earlier) = (tiers_of_lines(track, &page), track.earlier().cloned());
        Self { decimals: track.decimals(), tiers, lines: page.items, earlier }
    }

    fn lines(&self, ranked: &[Ranked]) -> Vec<RankingLine> {
        let line = |line| RankingLine::of(self.decimals, line, &self.tiers, self.earlier.as_ref());
        ranked.iter().enumerate().map(line).collect()
    }
}

impl Serialize for RankingLines {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        // Shared lines belong to one generation of a board, so all responses format them with the same decimals.
        // Tiers and ranks of an earlier time can change without the lines.
        let earlier = self.earlier.as_ref().map(Arc::downgrade).unwrap_or_default();
        let made = |ranked: &[Ranked]| Some((earlier.clone(), to_raw_value(&self.lines(ranked)).ok()?));
        if self.lines.is_shared()
            && self.tiers.is_none()
            && let Some(Some((of, text))) = self.lines.made(made)
            && of.ptr_eq(&earlier)
        {
            return text.serialize(serializer);
        }
        self.lines(&self.lines).serialize(serializer)
    }
}
