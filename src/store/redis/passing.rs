//! Portions of sources. A board counts a portion in each of its partitions, at the same time, and each has reached by
//! itself what it has. A partition without items of the portion moves on too.

use std::sync::Arc;

use futures_util::future::{join_all, try_join_all};

use super::{RedisStore, boards, reached, redivision, timekeeping};
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
        let read = partitions.all().iter().cloned();
        let read = read.map(|partition| async move { reached::of_source(&self.session, &partition, source).await });
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
    all.unless_nothing_was_done()
}
