//! What is kept of the ranking of an ended period.

use std::borrow::Cow;
use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::json;
use utoipa::openapi::RefOr;
use utoipa::openapi::schema::{ObjectBuilder, OneOfBuilder, Schema, Type};
use utoipa::{PartialSchema, ToSchema};

use super::{Board, BoardEdition, Definition, Edition, TrackId, form};

/// How many lines of the ranking of an ended period are kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ArchiveTop {
    #[default]
    All,
    /// This many of the best, at least one.
    First(u32),
}

/// The text of [`ArchiveTop::All`].
const ALL: &str = "all";

impl ArchiveTop {
    /// Returns the largest number of lines, or `None` if there is no limit.
    pub fn limit(self) -> Option<u64> {
        match self {
            ArchiveTop::All => None,
            ArchiveTop::First(lines) => Some(lines.into()),
        }
    }
}

impl Serialize for ArchiveTop {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            ArchiveTop::All => serializer.serialize_str(ALL),
            ArchiveTop::First(lines) => serializer.serialize_u32(*lines),
        }
    }
}

impl<'de> Deserialize<'de> for ArchiveTop {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match serde_json::Value::deserialize(deserializer)? {
            serde_json::Value::String(text) if text == ALL => Ok(ArchiveTop::All),
            other => form::archive_top(&other).map(ArchiveTop::First),
        }
    }
}

impl PartialSchema for ArchiveTop {
    fn schema() -> RefOr<Schema> {
        let all = ObjectBuilder::new().schema_type(Type::String).enum_values(Some([ALL]));
        let first = ObjectBuilder::new().schema_type(Type::Integer).minimum(Some(1));
        let description = "Number of lines that are kept of the ranking of an ended period, the best ones, or `all`. Other \
                           subjects are not known in it any more. Default: `all`.";
        // The description is here and not at the field of the season: there it would be written as a second schema, of an
        // object, which no value of this one is.
        OneOfBuilder::new().item(all).item(first).description(Some(description)).examples([json!(1_000)]).into()
    }
}

impl ToSchema for ArchiveTop {
    fn name() -> Cow<'static, str> {
        "ArchiveTop".into()
    }
}

/// The numbers of an ended period whose ranking is packed: see [`service::archive`](crate::service). Its lines are in
/// sheets, and nothing else is left of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packed {
    /// The number of lines that are kept, with those of hidden and of removed subjects.
    pub lines: u64,
    /// The number of subjects that the ranking had when it was packed. Those that were hidden then count only if their lines
    /// are kept.
    pub total: u64,
}

impl Packed {
    /// Returns whether lines are missing at the end of the ranking.
    pub fn is_cut(&self) -> bool {
        self.lines < self.total
    }
}

impl Definition {
    /// Returns whether the rankings of ended periods are packed. Those of a board with keys, and the values of one
    /// without a ranking, stay as they are.
    pub fn packs_periods(&self) -> bool {
        self.season.is_some() && self.ranked && self.metric.by.is_none()
    }
}

impl BoardEdition {
    /// Returns whether it is a period to which nothing is written any more, and whose ranking is to be packed.
    pub fn is_to_be_packed(&self) -> bool {
        self.is_final() && self.packed().is_none() && self.definition().packs_periods()
    }
}

impl Board {
    /// Returns the board whose period with this id is packed. `None` if it has no such period, or if that is packed.
    pub fn with_packed(self: &Arc<Self>, period: TrackId, packed: Packed) -> Option<Board> {
        let is_it = |edition: &Edition| edition.id() == period && edition.packed().is_none();
        self.archive().iter().find(|edition| is_it(edition))?;
        let editions = self.all_editions().iter().map(|edition| match is_it(edition) {
            true => edition.clone().packed_as(Some(packed)),
            false => edition.clone(),
        });
        Some(self.changed(editions, self.other()))
    }
}
