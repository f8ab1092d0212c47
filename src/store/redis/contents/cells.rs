//! The cells of one subject, as scripts return them.

use crate::board::{Aggregate, Subject, Timestamp};
use crate::store::Content;
use crate::store::redis::kinds;
use crate::store::redis::part::Part;
use crate::store::redis::reply::Reply;
use crate::store::redis::servers::ServerFailure;

/// Reads the cells of a subject, or its counter.
pub(super) fn cells(part: &Part, subject: &Subject, reply: &mut Reply) -> Result<Vec<Content>, ServerFailure> {
    let kind = kinds::of(part.track.kind());
    let mut cells = Vec::with_capacity(reply.len() / 2);
    while !reply.is_empty() {
        let slot: Timestamp = reply.time()?;
        let aggregate = reply.aggregate(part.track.kind())?.filter(|cell| kind.is_sound(cell));
        cells.push(match aggregate {
            Some(Aggregate::Sum(amount)) if part.track.is_from_first() => Content::Counter { start: slot, amount },
            Some(aggregate) => Content::Cell { slot, aggregate },
            None => return Err(damaged(subject, slot)),
        });
    }
    Ok(cells)
}

/// Returns the failure of a cell that is not one of the metric.
pub(super) fn damaged(subject: &Subject, slot: Timestamp) -> ServerFailure {
    ServerFailure::Corrupt(format!("what '{subject}' has in slot {slot} is not what the metric writes"))
}
