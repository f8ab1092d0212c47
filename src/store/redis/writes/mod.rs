//! Writing: combines increments of many callers, for each part of a board separately.
//!
//! | module | content |
//! |---|---|
//! | [`call`] | what a caller wants to write to one part |
//! | [`queue`] | calls wait by part; each flush takes portions of them in turn, one flush per part at a time |
//! | [`progress`] | the outcomes of a call so far, and its answer |
//! | [`flush`] | the portions that are written together, as one list of items: plans, and records outcomes |
//! | [`operation`] | the identity of a write operation, by which it is done once |
//! | [`lane`] | the items of a flush whose subjects share a hash, written script by script in their order |
//! | [`chunk`] | division of a plan into scripts of bounded cost |
//! | [`amounts`], [`change`] | one chunk as a call of `add.lua`, `add_windows.lua` or `write.lua`, or of `change.lua` |
//! | [`deliver`] | sending one script until it is known to be done, up to the deadline of its flush |
//! | [`score`] | scores that are read after the write, because they are too expensive for one script |

mod amounts;
mod call;
mod change;
mod chunk;
mod deliver;
mod flush;
mod lane;
mod operation;
mod progress;
mod queue;
mod score;

pub(super) use self::call::PartBatch;
pub(super) use self::queue::{Queue, run};
