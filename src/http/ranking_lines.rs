//! The lines of a ranking in responses.

use std::sync::Arc;

use serde::{Serialize, Serializer};
use serde_json::value::to_raw_value;
use utoipa::ToSchema;

use super::{response, schemas};
use crate::board::{Attributes, BoardTrack, EarlierRanks, Scale, Shown, ShownAttributes, Subject, Tie};
use crate::service::{LineTiers, Lines, Page, tiers_of_lines};

/// One line of a ranking.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = RankingEntry)]
pub(super) struct RankingLine<'p> {
    /// Rank (1, 2, 2, 4; with ordinal ranks 1, 2, 3, 4).
    #[schema(minimum = 1)]
    pub(super) rank: u64,
    #[schema(schema_with = schemas::subject_or_null)]
    pub(super) subject: &'p Subject,
    #[schema(schema_with = schemas::score, required = true)]
    pub(super) score: Option<Shown>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(schema_with = schemas::tie, required = false)]
    pub(super) tie: Option<Tie>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(schema_with = schemas::tier, required = false)]
    pub(super) tier: Option<&'p Arc<str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(schema_with = schemas::rank_before, required = false)]
    pub(super) from: Option<Option<u64>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(schema_with = schemas::attributes, required = false)]
    pub(super) attributes: Option<Attributes>,
}

/// The lines of a page. Responses that share them serialize them once.
#[derive(Debug)]
pub(super) struct RankingLines {
    scale: Scale,
    lines: Lines,
    tiers: LineTiers,
    earlier: Option<Arc<EarlierRanks>>,
    attributes: Option<Arc<ShownAttributes>>,
}

impl RankingLines {
    /// Returns the lines of a page as responses about this board show them.
    pub(super) fn new(track: &BoardTrack, page: Page) -> Self {
        let (tiers, earlier) = (tiers_of_lines(track, &page), track.earlier().cloned());
        let attributes = track.shown_attributes().cloned();
        Self { scale: track.scale(), tiers, lines: page.items, earlier, attributes }
    }

    /// Returns the lines, best first.
    pub(super) fn iter(&self) -> impl Iterator<Item = RankingLine<'_>> {
        self.lines.iter().enumerate().map(|(at, ranked)| RankingLine {
            rank: ranked.rank,
            subject: &ranked.subject,
            score: response::score(self.scale, ranked.score),
            tie: ranked.score.tie(self.scale),
            tier: self.tiers.as_ref().and_then(|tiers| tiers.get(at)?.as_ref()),
            from: self.earlier.as_ref().map(|earlier| earlier.rank_of(&ranked.subject)),
            attributes: self.attributes.as_ref().map(|shown| shown.of(&ranked.subject)),
        })
    }
}

/// The lines as they are serialized if no other response has done it.
struct Anew<'p>(&'p RankingLines);

impl Serialize for Anew<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.0.iter())
    }
}

impl Serialize for RankingLines {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        // Shared lines belong to one generation of a board, so all responses format them in the same unit.
        // Tiers, ranks of an earlier time and attributes can change without the lines.
        let earlier = self.earlier.as_ref().map(Arc::downgrade).unwrap_or_default();
        if self.lines.is_shared()
            && self.tiers.is_none()
            && self.attributes.is_none()
            && let Some(Some((of, text))) =
                self.lines.made(|_| Some((earlier.clone(), to_raw_value(&Anew(self)).ok()?)))
            && of.ptr_eq(&earlier)
        {
            return text.serialize(serializer);
        }
        Anew(self).serialize(serializer)
    }
}
