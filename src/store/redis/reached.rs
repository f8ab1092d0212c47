//! What the partitions of a board have reached of its sources, as a whole.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::future::try_join_all;
use redis::cmd;

use super::partition::Partition;
use super::reply::reached_of;
use super::servers::{Channel, NotPassed, ServerFailure};
use super::session::Session;
use crate::board::{Board, SourceNumber};
use crate::store::{Reached, Result};

/// The field of the number of steps: see `begin.lua`.
const STEPS: &str = "n";
/// How long, and how often, a moment between two portions is looked for.
const PATIENCE: Duration = Duration::from_secs(2);
const PAUSE: Duration = Duration::from_millis(5);

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

/// Returns what a partition has reached of each of these sources, by its number.
async fn of_all(
    session: &Session,
    partition: &Partition,
    sources: &[SourceNumber],
) -> Result<BTreeMap<String, String>, ServerFailure> {
    let mut command = cmd("HGETALL");
    command.arg(partition.main().keys.reached());
    let mut reply = session.read(&command).await?;
    let mut reached = BTreeMap::new();
    while !reply.is_empty() {
        reached.insert(reply.text()?, reply.text()?);
    }
    check_steps(reached.remove(STEPS))?;
    reached.retain(|source, _| source.parse().is_ok_and(|number| sources.contains(&SourceNumber(number))));
    Ok(reached)
}

/// Returns an error if half of a step was applied.
fn check_steps(steps: Option<String>) -> Result<(), ServerFailure> {
    let is_whole = |steps: String| steps.parse().is_ok_and(|steps: u64| steps.is_multiple_of(1_024));
    if steps.is_none_or(is_whole) { Ok(()) } else { Err(ServerFailure::NotPassed(NotPassed::Halved)) }
}

/// Returns what each partition of a board has reached of each of these sources, if all have reached the same, in all lanes.
async fn of_all_evenly(
    session: &Session,
    board: &Arc<Board>,
    sources: &[SourceNumber],
) -> Result<Option<BTreeMap<String, String>>, ServerFailure> {
    let read = |partition: Arc<Partition>| async move { of_all(session, &partition, sources).await };
    let mut all = try_join_all(session.partitions_of(board).all().iter().cloned().map(read)).await?;
    let Some(last) = all.pop() else { return Ok(None) };
    let is_even = |text: &String| Reached::parse(text).is_some_and(|reached| reached.is_even());
    let are_even = last.values().all(is_even) && all.iter().all(|own| *own == last);
    Ok(are_even.then_some(last))
}

/// Waits for a moment between two portions, in which all partitions of a board have reached the same of each of these
/// sources, and the same in all lanes. Returns `false` if none comes for some seconds. Without sources it takes one read.
pub(super) async fn wait_until_even(
    session: &Session,
    board: &Arc<Board>,
    sources: &[SourceNumber],
) -> Result<bool, ServerFailure> {
    let deadline = Instant::now() + PATIENCE;
    while !is_even(session, board, sources).await? {
        if Instant::now() >= deadline {
            return Ok(false);
        }
        tokio::time::sleep(PAUSE).await;
    }
    Ok(true)
}

/// Returns whether it is such a moment.
pub(super) async fn is_even(
    session: &Session,
    board: &Arc<Board>,
    sources: &[SourceNumber],
) -> Result<bool, ServerFailure> {
    Ok(of_all_evenly(session, board, sources).await?.is_some())
}

/// Copies what a frozen board has [evenly](is_even) reached of these sources to its copy, which has other partitions.
pub(super) async fn copy(
    session: &Session,
    (from, to): (&Arc<Board>, &Arc<Board>),
    sources: &[SourceNumber],
) -> Result<(), ServerFailure> {
    let Some(reached) = of_all_evenly(session, from, sources).await? else { return Err(ServerFailure::KeptChanging) };
    let write = |partition: Arc<Partition>| {
        let reached = &reached;
        async move {
            for (source, text) in reached {
                // An attempt that arrives late must not take the source back.
                let mut command = cmd("HSETNX");
                command.arg(partition.main().keys.reached()).arg(source).arg(text);
                session.servers.set(Channel::Calls, &command).await?;
            }
            Ok(())
        }
    };
    try_join_all(session.partitions_of(to).all().iter().cloned().map(write)).await.map(drop)
}
