//! The bottom layer: the definition of boards. Pure values and arithmetic, without I/O, clock or async.
//!
//! - [`Timestamp`]: an instant in milliseconds; [`Span`]: a duration as users write it (`24h`);
//!   [`WindowLength`]: the length of a metric's window, which may be all time; [`FurtherWindow`]: `7d/6h`.
//! - [`Calendar`]: the starts and ends of slots; [`Starts`]: where its days, weeks, months and years begin; [`Window`]:
//!   the slots that count at one instant.
//! - [`Amount`] and [`Decimals`]: exact scaled integers; [`Scale`]: what the numbers of a board are.
//! - [`BoardName`], [`Subject`], [`RankingKey`], [`EventId`]: names, validated when they are parsed.
//! - [`Metric`]: `COUNT(24h, like, post_id)`; [`Terms`]: the types of events that count; [`Definition`]: everything that stored data depends on.
//! - [`Board`]: a name with an [`Edition`], a rule that counts in one or several [`Track`]s; [`BoardTrack`]: one of
//!   them, which reads name.
//! - [`Event`] and [`Fields`]: an event; [`Key`] and [`Filter`]: the parts of an event that a metric reads; [`Change`]:
//!   the effect on a subject.
//! - [`language`]: the syntax of metrics, filters and rules; [`Rule`]: a condition on the values of metrics.
//! - [`Season`]: the periods of a board, each an edition of its own.
//! - [`Cap`]: how much of one person counts in a day.
//! - [`Tiers`]: named parts of a ranking; [`Percentile`].
//! - [`Movement`]: the ranks at an earlier time that lines show; [`EarlierRanks`].
//! - [`Moderation`]: whether a subject is hidden or frozen; [`Attributes`]: what stands beside it.
//! - [`Position`]: that of an item in the log of a source, by which the item is counted once.
//! - [`Edge`]: the weight of the oldest slot of a window.
//! - [`Aggregate`]: the content of one slot for one subject; [`Kind`]: how slots combine into a [`Value`]; [`Sketch`]:
//!   an approximate distinct count.

mod aggregate;
mod amount;
mod archive;
mod attributes;
mod averaging;
#[expect(clippy::module_inception, reason = "the file has the type `Board`")]
mod board;
mod board_track;
mod calendar;
mod cap;
mod change;
mod comparison;
mod condition;
mod definition;
mod edge;
mod edition;
mod editions;
mod event;
mod filter;
mod form;
mod further_window;
mod inherited;
mod key;
pub mod language;
mod metric;
mod moderation;
mod movement;
mod name;
mod number;
mod percentile;
mod redivision;
mod rule;
mod sample;
mod scale;
mod season;
mod sketch;
mod source;
mod span;
pub(crate) mod spellings;
mod starts;
#[cfg(test)]
mod steps;
mod terms;
pub(crate) mod text;
mod tiers;
mod ties;
mod timestamp;
mod track;
mod translation;
mod value;
mod window;
mod window_length;
mod window_slots;

pub use aggregate::{Aggregate, Kind};
pub use amount::{Amount, AmountError, Decimals, EXACT_MAX, Score};
pub use archive::{ArchiveTop, Packed};
pub use attributes::{
    AttributeNames, Attributes, AttributesChange, AttributesError, ChangeMode, MAX_ATTRIBUTES, MAX_ATTRIBUTES_BYTES,
    ShownAttributes,
};
pub use averaging::{Averaging, Prior};
pub use board::{Board, Epoch, Generation, PartitionNumbers};
pub use board_track::{BoardEdition, BoardTrack};
pub use calendar::{Calendar, SlotError};
pub use cap::{Cap, DayCount, counted};
pub use change::{Change, NotCounted};
pub use comparison::Comparison;
pub use definition::{
    Cover, Definition, DefinitionError, Layout, MAX_FURTHER, MAX_SHARDS, MAX_SLOTS, Mode, Order, Ranks, Stamp,
};
pub use edge::{Edge, remaining_share, share_after, weighted_value};
pub use edition::{Edition, NoSamples};
pub use editions::{EditionRole, EditionsChange, OtherEdition, SuccessorError};
pub use event::{Event, Field, FieldFault, Fields};
pub use filter::Filter;
pub use further_window::{FurtherWindow, FurtherWindowError};
pub use key::Key;
pub use language::{MetricError, SyntaxError};
pub use metric::{Function, KeyFormError, Metric};
pub use moderation::{Moderation, ModerationChange, ModerationList, Visibility};
pub use movement::{EarlierRank, EarlierRanks, Movement};
pub use name::{BoardName, Counted, EventId, NameError, RankingKey, Subject};
pub(crate) use number::{canonical as canonical_number, compare as compare_numbers};
pub use percentile::{Percentile, PercentileError};
pub use redivision::Redivision;
pub use rule::{Compared, Operand, Rule, Verdict};
pub use sample::SlotSample;
pub use scale::{KeyBound, Scale, Split, TieBreak};
pub use season::{CloseError, Period, PeriodLength, PeriodName, Season};
pub use sketch::{Mark, REGISTERS, Sketch};
pub use source::{Position, PositionError, SourceName, SourceNameError, SourceNumber};
pub use span::{Span, SpanError, Unit};
pub use starts::{Starts, StartsError};
pub use terms::{Term, Terms, Weight};
pub use tiers::{RankingTiers, Tier, TierBound, TierForm, Tiers, TiersError};
pub use ties::{Precision, Steps, Tie, Ties, TiesError, TiesOrder};
pub use timestamp::{Timestamp, TimestampError};
pub use track::{Track, TrackId, TrackRole};
pub use value::{Shown, Value};
pub use window::{Frame, Placement, Window};
pub use window_length::WindowLength;
pub use window_slots::WindowSlots;
