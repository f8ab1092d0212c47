//! The removal of values from all subjects of a board.
//!
//! No index leads from a value to the subjects that were seen with it. So they are found by a walk over the contents of
//! the board, in steps while everything else continues, and each value found is [forgotten](crate::board::Change::Forget)
//! by a write, which concerns every track and edition in one atomic step.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Instant;

use super::ranking_keys::spelled_key;
use super::{Result, Service, ServiceError};
use crate::access::Caller;
use crate::board::{Board, BoardName, Counted, DayCount, Kind, RankingKey, Timestamp};
use crate::store::{self, Batch, Content, ContentsCursor, Increment, Outcome, Rejection, StoreError};

/// The number of times that the walk begins again because the editions of the board have changed, or because the store
/// has lost its position.
const MOST_RESTARTS: u32 = 5;

/// What the removal of values has removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RemovedValues {
    /// The number of values found, each of which counts once for each subject. One that was seen again in the meantime
    /// may be counted twice.
    pub values: u64,
    /// The number of those that stay, because they are in final periods, which no write changes. Their number is that for
    /// all windows.
    pub final_periods: u64,
    /// Whether an edition of the board has sketches. They contain no values, and what they have counted of one stays.
    pub approximate: bool,
    /// The store's time at the end.
    pub as_of: Timestamp,
}

/// Returns whether a value that a board of this kind stores is one of these, or a counter of one of these persons.
fn is_one_of(values: &HashSet<Counted>, value: &Counted, kind: Kind) -> bool {
    match kind {
        Kind::Capped { .. } => DayCount::split(value.as_str()).is_some_and(|(_, person)| values.contains(person)),
        _ => values.contains(value),
    }
}

impl Service {
    /// Removes values from all subjects of a board, or from those in the ranking of one key, in all windows and editions:
    /// those that were counted, and those that were taken back. One walk serves any number of values. What is counted in
    /// the meantime may stay. After an error some are removed, and the call may be repeated.
    ///
    /// Returns [`ServiceError::NoValues`] if no edition of the board stores values.
    pub async fn remove_values(
        &self,
        caller: &Caller,
        name: &BoardName,
        values: &HashSet<Counted>,
        key: Option<&RankingKey>,
    ) -> Result<RemovedValues> {
        let known = self.board(caller, name).await?;
        let mut board = self.refreshed(&known).await?;
        let prefix = match key {
            None => String::new(),
            Some(_) if !board.has_keys() => return Err(ServiceError::UnexpectedKey { board }),
            Some(key) => format!("{}\0", spelled_key(&board, key.clone())?),
        };
        if !board.all_editions().iter().any(|edition| edition.kind().remembers_values()) {
            return Err(ServiceError::NoValues(board.name().clone()));
        }
        let (mut forgotten, mut restarts) = (0, 0);
        let final_periods = loop {
            match self.forget_in_board(caller, &board, (values, &prefix), &mut forgotten).await {
                Err(ServiceError::Store(StoreError::BoardChanged | StoreError::StaleEpoch | StoreError::WalkLost))
                    if restarts < MOST_RESTARTS =>
                {
                    restarts += 1;
                    board = self.refreshed(&board).await?;
                }
                done => break done?,
            }
        };
        let approximate = board.editions().iter().any(|edition| edition.kind() == Kind::Sketch);
        let as_of = self.store.now().await?;
        Ok(RemovedValues { values: forgotten + final_periods, final_periods, approximate, as_of })
    }

    /// Removes the values that a walk over all tracks meets, and adds to `forgotten` how many these are. After each step
    /// it pauses, so that other requests run. Returns the number of those that stay.
    async fn forget_in_board(
        &self,
        caller: &Caller,
        board: &Arc<Board>,
        (values, prefix): (&HashSet<Counted>, &str),
        forgotten: &mut u64,
    ) -> Result<u64> {
        let (written, mut staying) = (board.written_tracks().len(), 0);
        for (number, track) in board.each_track().enumerate() {
            if !track.kind().remembers_values() || track.packed().is_some() {
                continue;
            }
            let mut cursor = Some(ContentsCursor::default());
            while let Some(at) = cursor {
                caller.require_current()?;
                let started = Instant::now();
                let step = self.store.contents_step(&track, at).await?;
                let meant = step.contents.into_iter().filter_map(|(subject, content)| match content {
                    Content::Value { value, .. }
                        if is_one_of(values, &value, track.kind()) && subject.as_str().starts_with(prefix) =>
                    {
                        Some(Increment::forgetting(board, subject, value))
                    }
                    _ => None,
                });
                let increments: Vec<Increment> = meant.collect();
                if number >= written {
                    staying += increments.len() as u64;
                } else if !increments.is_empty() {
                    *forgotten += increments.len() as u64;
                    self.forget(board, increments).await?;
                }
                cursor = step.next;
                store::rest(started).await;
            }
        }
        Ok(staying)
    }

    async fn forget(&self, board: &Arc<Board>, increments: Vec<Increment>) -> Result<()> {
        let batch = || Batch { increments: increments.clone(), return_scores: false };
        let added = match self.store.add(board, batch()).await {
            // Repeating it has the same effect. A part may be done, and then the answer to the rest says what is wrong.
            Err(StoreError::TimedOut { .. }) => self.store.add(board, batch()).await?,
            added => added?,
        };
        self.note_newer(&added);
        // Another edition may have values too.
        if added.newer.is_some() {
            return Err(StoreError::StaleEpoch.into());
        }
        for outcome in &added.outcomes {
            match outcome {
                Outcome::Counted { .. } | Outcome::Duplicate { .. } => {}
                Outcome::Rejected(Rejection::ImportOpen) => return Err(StoreError::ImportOpen.into()),
                Outcome::Rejected(rejection) => {
                    let detail = format!("a value could not be removed from a subject: {rejection:?}");
                    return Err(StoreError::Corrupt { detail }.into());
                }
            }
        }
        Ok(())
    }
}
