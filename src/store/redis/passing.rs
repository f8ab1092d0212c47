//! Portions of sources. A board counts a portion in each of its partitions, at the same time, and each has reached by
//! itself what it has. A partition without items of the portion moves on too.

use std::collections::BTreeMap;
use std::sync::Arc;

use futures_util::future::{join_all, try_join_all};
use redis::cmd;

use super::partition::Partition;
use super::servers::{Channel, NotPassed, ServerFailure};
use super::session::Session;
use super::{RedisStore, boards, redivision, timekeeping};
use crate::board::{Board, Position, SourceNumber};
use crate::store::{Fate, Passed, Portion, Reached, Result, StoreError};

impl RedisStore {
    /// See [`Store::pass`](crate::store::Store::pass).
    pub(super) async fn pass_portion(&self, board: &Arc<Board>, portion: Portion) -> Result<Passed> {
        let found = redivision::writable(&self.session, board).await.map_err(|failure| self.error(failure))?;
        if !found.is_same_as(board) {
            return Err(StoreError::StaleEpoch);
        }
        let partitions = self.session.partitions_of(board);
        let (all, parts) = (partitions.all(), partitions.of_track(0));
        for partition in all {
            timekeeping::admit(&self.session, &partition.clock).await?;
        }
        if let [only] = all {
            return self.passing.pass(only.clone(), portion).await;
        }
        let about = (portion.after(), portion.batch().increments.len());
        let shares = portion.divided(all.len(), |increment| parts.number_of(&increment.subject));
        let passed = all
            .iter()
            .zip(shares)
            .map(async |(partition, (own, share))| (own, self.passing.pass(partition.clone(), share).await));
        joined(about, join_all(passed).await)
    }

    /// See [`Store::reached`](crate::store::Store::reached).
    pub(super) async fn read_reached(&self, board: &Arc<Board>, source: SourceNumber) -> Result<Option<Reached>> {
        let partitions = self.session.partitions_of(board);
        let read = partitions.all().iter().cloned().map(|partition| async move {
            let all = all_reached(&self.session, &partition).await?;
            all.get(&source.to_string()).map_or(Ok(None), |text| parse(text))
        });
        let reached = try_join_all(read).await.map_err(|failure| self.error(failure))?;
        // What was read is of this board, if it still is as the caller knows it.
        let found = boards::board(&self.session, board.name()).await.map_err(|failure| self.error(failure))?;
        match found.filter(|found| found.generation() == board.generation()) {
            None => return Err(StoreError::BoardChanged),
            Some(found) if found.partitions() != board.partitions() => return Err(StoreError::StaleEpoch),
            Some(_) => {}
        }
        // Partitions that have not joined, because a portion was cut short there, join when it is sent again.
        let all: Option<Vec<_>> = reached.into_iter().collect();
        Ok(all.and_then(|all| all.into_iter().reduce(|one, other| one.both(&other))))
    }
}

/// Returns what a partition has reached of each source, by its number.
async fn all_reached(session: &Session, partition: &Partition) -> Result<BTreeMap<String, String>, ServerFailure> {
    let mut command = cmd("HGETALL");
    command.arg(partition.main().keys.reached());
    let mut reply = session.read(&command).await?;
    let mut reached = BTreeMap::new();
    while !reply.is_empty() {
        reached.insert(reply.text()?, reply.text()?);
    }
    // See begin.lua.
    let steps = reached.remove("n").unwrap_or_default();
    let is_whole = steps.is_empty() || steps.parse().is_ok_and(|steps: u64| steps.is_multiple_of(1_024));
    if is_whole { Ok(reached) } else { Err(ServerFailure::NotPassed(NotPassed::Halved)) }
}

/// Reads the stored form of what a partition has reached. An empty text stands for a partition that has not joined.
pub(super) fn parse(text: &str) -> Result<Option<Reached>, ServerFailure> {
    let damaged = || ServerFailure::Corrupt(format!("what is reached of a source is '{text}'"));
    if text.is_empty() { Ok(None) } else { Reached::parse(text).map(Some).ok_or_else(damaged) }
}

/// Copies what a frozen board has reached of its sources to its copy, which has other partitions.
///
/// Returns [`StoreError::EditionsBusy`] if the partitions have not all reached the same position of a source, and the
/// same in all lanes: then no partition of the copy would know what it has.
pub(super) async fn copy(session: &Session, from: &Arc<Board>, to: &Arc<Board>) -> Result<()> {
    let failed = |failure| session.servers.error(failure);
    let read = |partition: Arc<Partition>| async move { all_reached(session, &partition).await };
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

/// Returns the result of a portion, given those of the partitions with the indexes of their items.
fn joined((after, items): (Position, usize), partitions: Vec<(Vec<usize>, Result<Passed>)>) -> Result<Passed> {
    let mut all = Passed {
        frame: None,
        fates: vec![Fate::Waits(None); items],
        reached: Reached::evenly(Position::MAX),
        failure: None,
    };
    for (items, passed) in partitions {
        let failure = match passed {
            Ok(Passed { frame, fates, reached, failure }) => {
                items.into_iter().zip(fates).for_each(|(item, fate)| all.fates[item] = fate);
                all.reached = all.reached.both(&reached);
                all.frame = all.frame.into_iter().chain(frame).max_by_key(|frame| frame.as_of);
                failure
            }
            Err(error) => {
                let reached = match &error {
                    StoreError::SourceBehind { at } => at.unwrap_or_default().min(after),
                    _ => after,
                };
                all.reached = all.reached.both(&Reached::evenly(reached));
                Some(error)
            }
        };
        all.failure = match (all.failure.take(), failure) {
            // The one from which the source has to go on.
            (Some(StoreError::SourceBehind { at: one }), Some(StoreError::SourceBehind { at: other })) => {
                Some(StoreError::SourceBehind { at: one.min(other) })
            }
            (first, failure) => first.or(failure),
        };
    }
    match all.failure {
        Some(error) if all.frame.is_none() => Err(error),
        failure => Ok(Passed { failure, ..all }),
    }
}
