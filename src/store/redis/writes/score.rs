//! Scores for which one script would have to look at too much data. They are read right after the write, in pieces.

use futures_util::stream::{self, StreamExt, TryStreamExt};
use redis::{Value, cmd};
use tokio::time::Instant;

use super::flush::{Flush, ReadScores};
use super::retry::{LEAST, repeat};
use crate::board::{Aggregate, Subject, Timestamp};
use crate::store::redis::part::Part;
use crate::store::redis::reply::Reply;
use crate::store::redis::servers::{Channel, ServerFailure};
use crate::store::redis::session::Session;

/// The number of cells that one command reads: at most 128 KB of sketches.
const PIECE: usize = 64;
/// The number of commands that are under way at the same time.
const AT_ONCE: usize = 4;

/// Reads the window's value of each subject on an unranked board. Each score contains everything that was written
/// before this call, and may contain some of what is written in the meantime.
pub(super) async fn read<'a>(
    session: &Session,
    flush: &Flush<'_>,
    head: Timestamp,
    subjects: impl IntoIterator<Item = &'a Subject>,
) -> Result<ReadScores<'a>, ServerFailure> {
    let part = flush.partition.main();
    let deadline = flush.deadline.max(Instant::now() + LEAST);
    let starts = part.window_slots(head).starts;
    let mut scores = ReadScores::new();
    for subject in subjects {
        if scores.contains_key(subject.as_str()) {
            continue;
        }
        let key = part.keys.subject(subject);
        let pieces = stream::iter(starts.chunks(PIECE)).map(|starts| piece(session, flush, &key, starts, deadline));
        let aggregates: Vec<Vec<Aggregate>> = pieces.buffered(AT_ONCE).try_collect().await?;
        scores.insert(subject.as_str(), part.track.value(aggregates.iter().flatten()));
    }
    Ok(scores)
}

/// Reads the cells of some slots.
async fn piece(
    session: &Session,
    flush: &Flush<'_>,
    key: &str,
    starts: &[Timestamp],
    deadline: Instant,
) -> Result<Vec<Aggregate>, ServerFailure> {
    let part = flush.partition.main();
    let mut command = cmd("HMGET");
    command.arg(key);
    for start in starts {
        command.arg(start.millis());
    }
    let read = async || session.servers.read(Channel::BulkWrites, &command).await;
    match repeat(deadline, read).await {
        Ok(value) => aggregates(part, value),
        // The items are counted, but the caller gets no score.
        Err(failure) => Err(ServerFailure::Unknown(format!("a score was not read: {failure:?}"))),
    }
}

fn aggregates(part: &Part, value: Value) -> Result<Vec<Aggregate>, ServerFailure> {
    let Value::Array(values) = value else {
        return Err(ServerFailure::Corrupt("a list of cells was expected".to_owned()));
    };
    let held = values.into_iter().filter(|value| *value != Value::Nil).collect();
    let mut reply = Reply::new(Value::Array(held))?;
    let mut aggregates = Vec::new();
    while !reply.is_empty() {
        aggregates.extend(reply.aggregate(part.track.kind())?);
    }
    Ok(aggregates)
}
