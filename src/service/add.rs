//! Adding increments to one board.

use std::sync::Arc;

use super::{EditionChoice, Result, Service, ServiceError};
use crate::access::{Caller, Scope};
use crate::board::{Amount, Board, Change, Counted, Edition, Metric, Period, PeriodName, Span, Timestamp};
use crate::store::{Added, Batch, Increment, Outcome, Rejection, StoreError};

/// The time in milliseconds by which a board must remember an id for longer than its token is valid: an item may be
/// under way to the store after its token was checked, and the clocks of instances may differ.
const UNDERWAY: i64 = 30_000;

const WRONG_PERIOD: Outcome = Outcome::Rejected(Rejection::WrongPeriod);

impl Service {
    /// Adds increments. [`StoreError::BoardChanged`] means that nothing was added, and that amounts must be parsed
    /// again with the decimals of the board as [`refreshed`](Self::refreshed) returns it. [`StoreError::MemoryFull`]
    /// means that every item was refused for lack of memory.
    ///
    /// The increments are for the current edition of the board. What they are in another one follows from that:
    /// [`Edition::translated`](crate::board::Edition::translated).
    pub async fn add(&self, caller: &Caller, board: &Arc<Board>, mut batch: Batch) -> Result<Added> {
        caller.require(Scope::Write)?;
        self.check_token(caller, board)?;
        translate(board, &mut batch.increments);
        let named = named_period(&batch.increments);
        let are_samples = batch.increments.first().is_some_and(|first| matches!(first.change, Change::Set { .. }));
        let added = self.store.add(board, batch).await;
        if matches!(added, Err(StoreError::BoardChanged)) {
            self.refreshed(board).await?;
        }
        let mut added = added?;
        self.note_newer(&added);
        if added.newer.as_ref().is_some_and(|newer| counts_nothing_of(board, newer, are_samples)) {
            return Err(StoreError::BoardChanged.into());
        }
        let present = added.newer.as_ref().unwrap_or(board);
        if let Some((start, times)) = named
            && let Some(sealed) = sealed_from(present, start)
        {
            // They are in the period that they name, which takes no items any more.
            for (outcome, at) in added.outcomes.iter_mut().zip(times) {
                if *outcome == WRONG_PERIOD && sealed.contains(at.unwrap_or(added.frame.as_of)) {
                    *outcome = Outcome::Rejected(Rejection::TooLate);
                }
            }
        }
        let is_refused = |outcome: &Outcome| matches!(outcome, Outcome::Rejected(Rejection::MemoryFull));
        if !added.outcomes.is_empty() && added.outcomes.iter().all(is_refused) {
            return Err(StoreError::MemoryFull.into());
        }
        Ok(added)
    }

    /// Returns the start of the period that the items of a request name, which may take no items any more.
    ///
    /// Returns [`ServiceError::NoSeason`] if the board has no season, and [`ServiceError::UnknownPeriod`] if it has no
    /// period of this name.
    pub async fn period_start(&self, board: &Arc<Board>, period: &PeriodName) -> Result<Timestamp> {
        let named = self.edition_on(board, &EditionChoice::Period(period.clone())).await?;
        Ok(named.period().map_or(Timestamp::MAX, |period| period.start))
    }

    /// Notes the editions of a board that a write found to have changed.
    pub(super) fn note_newer(&self, added: &Added) {
        if let Some(board) = &added.newer {
            self.registry.put(board.clone());
        }
    }

    /// Checks that the token of the caller, if it has one, is still valid, as its item may have taken long to arrive;
    /// that an item that may be taken back is for a board that counts each value once; and that an item that counts once
    /// does so on a board: from its first use on, the board remembers the id until the token has expired. Otherwise the
    /// token could be used again.
    pub(super) fn check_token(&self, caller: &Caller, board: &Arc<Board>) -> Result<()> {
        let Some(until) = caller.token_until() else { return Ok(()) };
        let now = self.keys.now();
        caller.require_token(now)?;
        caller.require_distinct(board)?;
        // In the ranking of another key it is another subject, which counts the id once more.
        let Metric { subject, by, .. } = &board.definition().metric;
        let reads = |field: &str| subject.reads(field) || by.as_ref().is_some_and(|by| by.reads(field));
        caller.require_subject(board.name(), reads)?;
        let (horizon, left) = (board.dedupe_horizon(), until.millis().saturating_sub(now.millis()));
        if caller.once().is_none() || left.saturating_add(UNDERWAY) <= horizon {
            return Ok(());
        }
        Err(ServiceError::TokenOutlivesIds { board: board.name().clone(), horizon: Span::of_millis(horizon) })
    }
}

/// Returns the start of the period that the items of a request name, and the time of each item. All name the same
/// period, or none.
fn named_period(increments: &[Increment]) -> Option<(Timestamp, Vec<Option<Timestamp>>)> {
    let start = increments.first()?.period?;
    Some((start, increments.iter().map(|increment| increment.at).collect()))
}

/// Returns the period of the archive that begins at this time.
fn sealed_from(board: &Board, start: Timestamp) -> Option<Period> {
    board.archive().iter().filter_map(Edition::period).find(|period| period.start == start)
}

/// Adds what increments for the current edition of a board are in the other one, if it has two.
pub(super) fn translate(board: &Board, increments: &mut [Increment]) {
    let [current, other] = board.editions() else { return };
    for increment in increments {
        increment.other = Some(Box::new(other.translated(&increment.change, current, increment.retract)));
    }
}

/// Returns whether no edition that a board has now counts what increments for its current edition in an earlier epoch say:
/// that one has gone, with what it counted, and they must be parsed again.
fn counts_nothing_of(known: &Board, newer: &Board, are_samples: bool) -> bool {
    let from = known.edition();
    let example = match known.kind().counts_values() {
        true => Counted::parse("value").ok().map(Change::Seen),
        false => known.scale().number(Amount::one(known.decimals()), 0).map(Change::Amount),
    };
    newer.season().is_none()
        && newer.editions().iter().all(|edition| {
            let counts = |change: &Change| !matches!(edition.translated(change, from, false), Change::Not(_));
            edition.id() != from.id()
                && match are_samples {
                    true => !edition.has_same_samples_as(from),
                    false => !example.as_ref().is_some_and(counts),
                }
        })
}
