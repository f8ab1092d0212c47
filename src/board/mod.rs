//! The ground floor: what a board *is*. Pure values and arithmetic, without I/O, clock or async.
//!
//! - [`Timestamp`]: an instant in milliseconds; [`Span`]: a duration as users write it (`24h`).
//! - [`Calendar`]: where slots begin and end; [`Window`]: the slots that count at one instant.
//! - [`Amount`] and [`Decimals`]: exact scaled integers.
//! - [`BoardName`], [`Subject`], [`EventId`]: names, parsed once at the edge.
//! - [`Metric`]: `COUNT(24h, like, post_id)`; [`Definition`]: all that stored data depends on;
//!   [`Board`]: a definition, validated and given its generation.
//! - [`Event`] and [`Fields`]: what happened; [`Key`] and [`Filter`]: what a metric reads of it; [`Change`]: what it
//!   does to a subject.
//! - [`language`]: how metrics, filters and rules are written; [`Rule`]: a condition on what metrics say.
//! - [`Edge`]: how the oldest slot of a window counts.
//! - [`Tally`]: what a subject has in a slot; [`Kind`]: how slots combine into a [`Value`]; [`Sketch`]: about how many.

mod amount;
mod calendar;
mod change;
mod comparison;
mod condition;
mod defined;
mod definition;
mod edge;
mod event;
mod filter;
mod form;
mod key;
pub mod language;
mod metric;
mod name;
mod number;
mod rule;
mod sketch;
mod span;
mod tally;
mod timestamp;
mod value;
mod window;

pub use amount::{Amount, AmountError, Decimals, EXACT_MAX, Score};
pub use calendar::{Calendar, SlotError};
pub use change::Change;
pub use comparison::Comparison;
pub use defined::{Board, Generation};
pub use definition::{Cover, Definition, DefinitionError, Layout, MAX_SHARDS, MAX_SLOTS, Mode, Order, Stamp};
pub use edge::{Edge, remaining_share, share_after, weighted_value};
pub use event::{Event, Field, FieldFault, Fields};
pub use filter::Filter;
pub use key::Key;
pub use language::{MetricError, SyntaxError};
pub use metric::{Aggregate, Metric};
pub use name::{BoardName, Counted, EventId, NameError, Subject};
pub use rule::{Compared, Operand, Rule, Verdict};
pub use sketch::{Mark, REGISTERS, Sketch};
pub use span::{Span, SpanError, Unit};
pub use tally::{Kind, Tally};
pub use timestamp::{Timestamp, TimestampError};
pub use value::{Shown, Value};
pub use window::{Frame, Placement, Window};
