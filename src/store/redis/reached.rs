//! What the partitions of a board have reached of its sources, as a whole.

use std::collections::BTreeMap;
use std::sync::Arc;

use futures_util::future::try_join_all;
use redis::cmd;

use super::partition::Partition;
use super::reply::reached_of;
use super::servers::{Channel, NotPassed, ServerFailure};
use super::session::Session;
use crate::board::{Board, SourceNumber};
use crate::store::{Reached, Result, StoreError};

/// The field of the number of steps: see `begin.lua`.
const STEPS: &str = "n";

/// Returns what a partition has reached of a source, or `None` if it has not joined it.
pub(super) async fn of_source(
    session: &Session,
    partition: &Partition,
    source: SourceNumber,
) -> Result<Option<Reached>, ServerFailure> {
    let mut command = cmd("HMGET");
    command.arg(partition.main().keys.reached()).arg(source.0).arg(STEPS);
    let mut reply = session.read(&command).await?;
    let reached = reply.maybe_text()?;
    check_steps(reply.maybe_text()?)?;
    reached_of(&reached.unwrap_or_default())
}

/// Returns what a partition has reached of each source, by its number.
async fn of_all(session: &Session, partition: &Partition) -> Result<BTreeMap<String, String>, ServerFailure> {
    let mut command = cmd("HGETALL");
    command.arg(partition.main().keys.reached());
    let mut reply = session.read(&command).await?;
    let mut reached = BTreeMap::new();
    while !reply.is_empty() {
        reached.insert(reply.text()?, reply.text()?);
    }
    check_steps(reached.remove(STEPS))?;
    Ok(reached)
}

/// Returns an error if half of a step was applied.
fn check_steps(steps: Option<String>) -> Result<(), ServerFailure> {
    let is_whole = |steps: String| steps.parse().is_ok_and(|steps: u64| steps.is_multiple_of(1_024));
    if steps.is_none_or(is_whole) { Ok(()) } else { Err(ServerFailure::NotPassed(NotPassed::Halved)) }
}

/// Copies what a frozen board has reached of its sources to its copy, which has other partitions.
///
/// Returns [`StoreError::EditionsBusy`] if the partitions have not all reached the same position of a source, and the
/// same in all lanes: then no partition of the copy would know what it has.
pub(super) async fn copy(session: &Session, from: &Arc<Board>, to: &Arc<Board>) -> Result<()> {
    let failed = |failure| session.servers.error(failure);
    let read = |partition: Arc<Partition>| async move { of_all(session, &partition).await };
    let all = try_join_all(session.partitions_of(from).all().iter().cloned().map(read)).await.map_err(failed)?;
    let Some(first) = all.first() else { return Ok(()) };
    let is_even = |text: &String| Reached::parse(text).is_some_and(|reached| reached.is_even());
    if all.iter().any(|own| own != first || !own.values().all(is_even)) {
        let detail = "the partitions of the board have not reached the same position of each source: send what follows until they have, then begin the change again";
        return Err(StoreError::EditionsBusy { detail: detail.to_owned() });
    }
    let write = |partition: Arc<Partition>| async move {
        for (source, text) in first {
            // An attempt that arrives late must not take the source back.
            let mut command = cmd("HSETNX");
            command.arg(partition.main().keys.reached()).arg(source).arg(text);
            session.servers.set(Channel::Calls, &command).await?;
        }
        Ok(())
    };
    try_join_all(session.partitions_of(to).all().iter().cloned().map(write)).await.map_err(failed)?;
    Ok(())
}
