//! Pauses of works that take long.

use std::time::{Duration, Instant};

/// The longest pause. No step keeps a store busy for longer, unless it is that of one large subject.
const LONGEST: Duration = Duration::from_millis(10);

/// Pauses after a step of a work that takes long, so that other requests run: for as long as the step took, but not for
/// the time that it was on its way to a distant server and back.
pub(crate) async fn rest(begun: Instant) {
    tokio::time::sleep(begun.elapsed().min(LONGEST)).await;
}
