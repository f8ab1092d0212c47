//! The lines of a ranking in responses.

use serde::{Serialize, Serializer};
use serde_json::value::to_raw_value;
use utoipa::ToSchema;

use super::{response, schemas};
use crate::board::{Decimals, Shown, Subject};
use crate::service::{Lines, Ranked};

/// One line of a ranking.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = RankingEntry)]
pub(super) struct RankingLine {
    /// Competition rank (1, 2, 2, 4).
    #[schema(minimum = 1)]
    pub(super) rank: u64,
    #[schema(schema_with = schemas::subject)]
    pub(super) subject: Subject,
    #[schema(schema_with = schemas::score, required = true)]
    pub(super) score: Option<Shown>,
}

impl RankingLine {
    /// Returns the line as responses about this board show it.
    pub(super) fn of(decimals: Decimals, ranked: &Ranked) -> Self {
        Self { rank: ranked.rank, subject: ranked.subject.clone(), score: response::score(decimals, ranked.score) }
    }
}

/// The lines of a page. Responses that share them serialize them once.
#[derive(Debug)]
pub(super) struct RankingLines {
    decimals: Decimals,
    lines: Lines,
}

impl RankingLines {
    pub(super) fn new(decimals: Decimals, lines: Lines) -> Self {
        Self { decimals, lines }
    }

    fn lines(&self, ranked: &[Ranked]) -> Vec<RankingLine> {
        ranked.iter().map(|ranked| RankingLine::of(self.decimals, ranked)).collect()
    }
}

impl Serialize for RankingLines {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        // Shared lines belong to one generation of a board, so all responses format them with the same decimals.
        if self.lines.is_shared()
            && let Some(Some(text)) = self.lines.made(|ranked| to_raw_value(&self.lines(ranked)).ok())
        {
            return text.serialize(serializer);
        }
        self.lines(&self.lines).serialize(serializer)
    }
}
