//! The ground floor: what a board *is*. Pure values and arithmetic, without I/O, clock or async.
//!
//! - [`Timestamp`]: an instant in milliseconds; [`Span`]: a duration as users write it (`24h`).
//! - [`Calendar`]: where slots begin and end; [`Window`]: the slots that count at one instant.
//! - [`Amount`] and [`Decimals`]: exact scaled integers.
//! - [`BoardName`], [`Subject`], [`EventId`]: names, parsed once at the edge.
//! - [`Metric`]: `COUNT(24h, like, post_id)`; [`Definition`]: all that stored data depends on;
//!   [`Board`]: a definition, validated and given its generation.

mod amount;
mod calendar;
mod definition;
mod metric;
mod name;
mod span;
mod timestamp;
mod window;

pub use amount::{Amount, AmountError, Decimals, EXACT_MAX, Score};
pub use calendar::{Calendar, SlotError};
pub use definition::{Board, Cover, Definition, DefinitionError, Generation, MAX_SLOTS, Order};
pub use metric::{Aggregate, Metric, MetricError};
pub use name::{BoardName, EventId, NameError, Subject};
pub use span::{Span, SpanError, Unit};
pub use timestamp::{Timestamp, TimestampError};
pub use window::{Frame, Placement, Window};
