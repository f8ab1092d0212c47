//! Portions of sources. A board counts a portion in each of its partitions, at the same time, and each has reached by
//! itself what it has. A partition without items of the portion moves on too.

use std::collections::BTreeMap;
use std::sync::Arc;

use futures_util::future::{join_all, try_join_all};
use redis::cmd;

use super::partition::Partition;
use super::servers::{Channel, ServerFailure};
use super::session::Session;
use super::{RedisStore, redivision, timekeeping};
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
        let items = portion.batch().increments.len();
        let shares = portion.divided(all.len(), |increment| parts.number_of(&increment.subject));
        let passed = all
            .iter()
            .zip(shares)
            .map(async |(partition, (own, share))| (own, self.passing.pass(partition.clone(), share).await));
        joined(items, join_all(passed).await)
    }

    /// See [`Store::reached`](crate::store::Store::reached).
    pub(super) async fn read_reached(&self, board: &Arc<Board>, source: SourceNumber) -> Result<Option<Reached>> {
        let partitions = self.session.partitions_of(board);
        let read = partitions.all().iter().map(async |partition| {
            let mut command = cmd("HMGET");
            command.arg(partition.main().keys.reached()).arg(source.0);
            let Some(text) = self.session.read(&command).await?.maybe_text()? else { return Ok(None) };
            let corrupt = || ServerFailure::Corrupt(format!("what is reached of a source is '{text}'"));
            Reached::parse(&text).map(Some).ok_or_else(corrupt)
        });
        let mut all: Option<Reached> = None;
        for reached in join_all(read).await {
            // A board whose partitions have not all joined joins again.
            let Some(reached) = reached.map_err(|failure| self.error(failure))? else { return Ok(None) };
            all = Some(all.map_or_else(|| reached.clone(), |all| all.both(&reached)));
        }
        Ok(all)
    }
}

/// Copies what a frozen board has reached of its sources to its copy, which has other partitions.
///
/// Returns [`StoreError::EditionsBusy`] if the partitions have not all reached the same position of a source, and the
/// same in all lanes: then no partition of the copy would know what it has.
pub(super) async fn copy(session: &Session, from: &Arc<Board>, to: &Arc<Board>) -> Result<()> {
    let failed = |failure| session.servers.error(failure);
    let read = |partition: Arc<Partition>| async move {
        let mut command = cmd("HGETALL");
        command.arg(partition.main().keys.reached());
        let mut reply = session.read(&command).await?;
        let mut reached = BTreeMap::new();
        while !reply.is_empty() {
            reached.insert(reply.text()?, reply.text()?);
        }
        Ok::<_, ServerFailure>(reached)
    };
    let all = try_join_all(session.partitions_of(from).all().iter().cloned().map(read)).await.map_err(failed)?;
    let Some(first) = all.first().filter(|first| !first.is_empty() || all.iter().any(|all| !all.is_empty())) else {
        return Ok(());
    };
    let is_even = |text: &String| Reached::parse(text).is_some_and(|reached| reached.is_even());
    if let Some((source, _)) =
        all.iter().flatten().find(|(source, text)| first.get(*source) != Some(text) || !is_even(text))
    {
        let detail = format!(
            "the partitions of the board have not reached the same position of source {source}: send what follows until they have, then begin the change again"
        );
        return Err(StoreError::EditionsBusy { detail });
    }
    let write = |partition: Arc<Partition>| async move {
        let mut command = cmd("HSET");
        command.arg(partition.main().keys.reached()).arg(first.iter().collect::<Vec<_>>());
        session.servers.set(Channel::Calls, &command).await.map(drop)
    };
    try_join_all(session.partitions_of(to).all().iter().cloned().map(write)).await.map_err(failed)?;
    Ok(())
}

/// Returns the result of a portion, given those of the partitions with the indexes of their items.
fn joined(items: usize, partitions: Vec<(Vec<usize>, Result<Passed>)>) -> Result<Passed> {
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
            Err(error) => Some(error),
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
