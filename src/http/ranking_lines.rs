//! The lines of a ranking in responses.

use std::sync::Arc;

use serde::{Serialize, Serializer};
use serde_json::value::to_raw_value;
use utoipa::ToSchema;

use super::{response, schemas};
use crate::board::{BoardTrack, Decimals, Shown, Subject};
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
}

impl RankingLine {
    /// Returns a line as responses about this board show it. `tiers` are those of the lines of its page.
    fn of(decimals: Decimals, (at, ranked): (usize, &Ranked), tiers: &LineTiers) -> Self {
        Self {
            rank: ranked.rank,
            subject: ranked.subject.clone(),
            score: response::score(decimals, ranked.score),
            tier: tiers.as_ref().and_then(|tiers| tiers.get(at).cloned().flatten()),
        }
    }

    /// Returns the lines of a page.
    pub(super) fn of_page(track: &BoardTrack, page: &Page) -> Vec<Self> {
        let tiers = tiers_of_lines(track, page);
        page.items.iter().enumerate().map(|line| Self::of(track.decimals(), line, &tiers)).collect()
    }
}

/// The lines of a page. Responses that share them serialize them once.
#[derive(Debug)]
pub(super) struct RankingLines {
    decimals: Decimals,
    lines: Lines,
    tiers: LineTiers,
}

impl RankingLines {
    pub(super) fn new(track: &BoardTrack, page: Page) -> Self {
        Self { decimals: track.decimals(), tiers: tiers_of_lines(track, &page), lines: page.items }
    }

    fn lines(&self, ranked: &[Ranked]) -> Vec<RankingLine> {
        ranked.iter().enumerate().map(|line| RankingLine::of(self.decimals, line, &self.tiers)).collect()
    }
}

impl Serialize for RankingLines {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        // Shared lines belong to one generation of a board, so all responses format them with the same decimals.
        // Tiers can change without the lines.
        if self.lines.is_shared()
            && self.tiers.is_none()
            && let Some(Some(text)) = self.lines.made(|ranked| to_raw_value(&self.lines(ranked)).ok())
        {
            return text.serialize(serializer);
        }
        self.lines(&self.lines).serialize(serializer)
    }
}
