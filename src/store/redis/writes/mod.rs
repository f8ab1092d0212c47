//! Writing: combines increments of many callers, for each partition of a board separately.
//!
//! | module | content |
//! |---|---|
//! | [`call`] | the items of a batch that one partition has; division of a batch |
//! | [`answer`] | what the caller of a batch learns: counted, not counted or unknown is decided here |
//! | [`queue`] | calls wait by partition; each flush takes portions of them in turn, one flush per partition at a time |
//! | [`flush`] | the portions that are written together, as one list of items: records outcomes |
//! | [`plan`] | items that are placed in slots, and the time for which that is valid |
//! | [`chunk`] | division of a plan into scripts of bounded cost |
//! | [`lane`] | the items of a flush whose subjects share a hash, written script by script in their order |
//! | [`operation`] | one script, which is done once although it may be sent twice |
//! | [`amounts`], [`change`] | an operation as a call of `add.lua` or `write.lua`, or of `change.lua` |
//! | [`passing`] | steps of sources, which are not combined with other writes |
//! | [`retry`] | attempts until something is known to be done, up to the deadline of a flush |
//! | [`score`] | scores that are read after the write, because they are too expensive for one script |

mod amounts;
mod answer;
mod call;
mod change;
mod chunk;
mod flush;
mod lane;
mod operation;
mod passing;
mod plan;
mod queue;
mod retry;
mod score;

pub(super) use self::answer::{BatchAnswer, Outdated};
pub(super) use self::call::{Call, divide};
pub(super) use self::passing::{Passing, WaitingPortion, run as run_passing};
pub(super) use self::queue::{Queue, QueueFull, run};
