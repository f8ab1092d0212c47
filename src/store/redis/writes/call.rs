//! Calls: what a caller wants to write to one part, and how much of it is done.

use std::ops::Range;
use std::sync::Arc;

use tokio::sync::oneshot;
use tokio::time::Instant;

use super::progress::CallProgress;
use crate::store::redis::part::Part;
use crate::store::{Added, Batch, Result};

/// The largest number of items of one call that count toward the size of the queue: a larger call is written in
/// portions.
const LARGE: usize = 8_192;

/// The items that one caller wants to write to one part.
#[derive(Debug)]
pub struct PartBatch {
    pub part: Arc<Part>,
    pub batch: Batch,
}

/// A part batch that waits or is being written, and what became of its items.
#[derive(Debug)]
pub(super) struct Call {
    pub part_batch: PartBatch,
    /// The number of its items that flushes have taken.
    pub taken: usize,
    /// The time when it arrived, or when its latest portion was done.
    pub since: Instant,
    pub progress: CallProgress,
}

/// Some items of a call.
#[derive(Debug)]
pub(super) struct Portion {
    pub call: Call,
    pub items: Range<usize>,
}

impl Call {
    pub fn new(part_batch: PartBatch, now: Instant, at: Arc<str>) -> (Self, oneshot::Receiver<Result<Added>>) {
        let (answer, answered) = oneshot::channel();
        let progress = CallProgress::new(part_batch.batch.increments.len(), answer, at);
        (Self { part_batch, taken: 0, since: now, progress }, answered)
    }

    pub fn weight(&self) -> usize {
        self.part_batch.batch.increments.len().min(LARGE)
    }
}

impl Portion {
    /// Returns the items of the portion, and the call with these items marked as taken.
    pub fn into_taken(self) -> (Range<usize>, Call) {
        let taken = self.items.end;
        (self.items, Call { taken, ..self.call })
    }
}
