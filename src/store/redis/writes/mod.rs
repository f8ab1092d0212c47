//! Writing: increments of many callers, each part of a board by itself.
//!
//! | module | what it does |
//! |---|---|
//! | [`queue`] | calls wait by part; each part takes portions of its own in turns, one flush at a time |
//! | [`progress`] | what became of a call so far, and its answer |
//! | [`flush`] | the portions that leave together, as one list of items: planning them, settling them |
//! | [`lane`] | the items of a flush that share a hash of their subjects, written script by script in their order |
//! | [`chunk`] | dividing a plan into scripts of bounded cost |
//! | [`amounts`], [`change`] | one chunk as a call of `add.lua` or `write.lua`, or of `change.lua` |
//! | [`deliver`] | sending one script until it is known to be done, up to the deadline of its flush |
//! | [`score`] | scores that are read after the write, because one script would look at too much for them |

mod amounts;
mod change;
mod chunk;
mod deliver;
mod flush;
mod lane;
mod progress;
mod queue;
mod score;

pub(super) use self::flush::bucket_width;
pub(super) use self::queue::{Queue, Request, run};
