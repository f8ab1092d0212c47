//! Setting what a subject has on a board to one value.

use std::sync::Arc;

use super::add::translate;
use super::{Result, Service, ServiceError};
use crate::board::{Amount, Board, Change, Placement, RankingKey, Subject, Timestamp, Track};
use crate::store::{self, Batch, Increment, Outcome, Rejection, StoreError, TextRange};

impl Service {
    /// Replaces everything that a subject, in the ranking of a key if the board has keys, has on a board, in every window
    /// and total, by one amount at one time, now if `at` is absent. Windows that do not reach back to the time have nothing afterwards. Returns the outcome of the
    /// amount in the main window.
    ///
    /// A subject that has nothing on the board yet is not removed: its amount is counted as that of any increment, within
    /// the bounds of the board and of the memory. The bounds are not about what replaces something, which takes no more.
    ///
    /// Otherwise the subject is removed from each track, and then the amount is added to all of them in one step. So a reader may
    /// find the subject missing in between, an increment that arrives in between may stay in some tracks only, and
    /// after an error the subject may have nothing: the call can be repeated, and then has the same result. Everything
    /// that can be refused is refused before the removal. Of two calls on this instance one waits for the other, so
    /// that their amounts are not added up.
    ///
    /// Returns [`ServiceError::SeasonUnsupported`] if the board has a season, and [`StoreError::BoardChanged`] if the
    /// amount must be parsed again with the decimals of the board as
    /// [`board`](Self::board) now returns it; nothing was changed then.
    pub async fn set_subject(
        &self,
        board: &Arc<Board>,
        subject: &Subject,
        key: Option<&RankingKey>,
        amount: Amount,
        at: Option<Timestamp>,
    ) -> Result<(Outcome, Timestamp)> {
        if board.season().is_some() {
            return Err(ServiceError::SeasonUnsupported {
                board: board.name().clone(),
                detail: "a subject of a board with a season is not set in all its periods at once; a sample (PUT …/samples) \
                         sets what it has in one period"
                    .to_owned(),
            });
        }
        let _one_at_a_time = self.correcting.lock().await;
        let (current, subject) = self.stored_subject(board, subject, key).await?;
        if !current.is_same_as(board) {
            return Err(StoreError::BoardChanged.into());
        }
        check(board, amount, at, self.store.now().await?)?;
        let change = Change::Amount(amount);
        let mut increment =
            Increment { other: None, subject, change, retract: false, at, id: None, period: None, event: None };
        translate(board, std::slice::from_mut(&mut increment));
        if !self.has_room_again(board, &increment.subject).await? {
            return Ok((Outcome::Rejected(Rejection::TooManyKeys), self.store.now().await?));
        }
        let added = match self.has_something(board, &increment.subject).await? {
            true => self.store.replace(board, increment).await,
            false => self.store.add(board, Batch { increments: vec![increment], return_scores: true }).await,
        };
        let added = match added {
            // The removal comes first, and found other editions: nothing was changed.
            Err(StoreError::BoardChanged | StoreError::StaleEpoch) => {
                self.refreshed(board).await?;
                return Err(StoreError::BoardChanged.into());
            }
            added => added?,
        };
        self.note_newer(&added);
        let outcome = added.outcomes.into_iter().next();
        let missing = || StoreError::Corrupt { detail: "an increment has no outcome".to_owned() };
        Ok((outcome.ok_or_else(missing)?, added.frame.as_of))
    }

    /// Returns whether a subject, given as it is stored, has anything in any track of a board.
    async fn has_something(&self, board: &Arc<Board>, subject: &Subject) -> store::Result<bool> {
        let (key, name) = subject.clone().split();
        for track in board.each_track() {
            let track = track.of_key(key.clone());
            let standing = self.store.standing(&track, &name).await?;
            if standing.rank.is_some() || !standing.slots.is_empty() || track.kind().ranks(standing.score) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Returns whether the ranking of a subject's key can begin again after the subject is removed from it. It cannot if the
    /// board has more keys than it may have, because one was counted while another one was hidden.
    async fn has_room_again(&self, board: &Arc<Board>, subject: &Subject) -> store::Result<bool> {
        let (Some(key), _) = subject.clone().split() else { return Ok(true) };
        for track in board.each_track() {
            let Some(most) = track.most_keys() else { continue };
            let keys = self.store.keys(&track, TextRange::default(), 1).await?.total;
            if keys > u64::from(most) && self.store.page(&track.of_key(Some(key.clone())), 0, 1).await?.total <= 1 {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

/// Returns an error if no track takes the amount at this time.
fn check(board: &Board, amount: Amount, at: Option<Timestamp>, now: Timestamp) -> Result<()> {
    let refused = |field, detail| Err(ServiceError::InvalidQuery { field, detail });
    if let Some(at) = at.filter(|at| *at > now) {
        return refused("at", format!("{at} is after the store's clock, {now}"));
    }
    let takes = |track: &&Track| matches!(track.place(at, now, &track.window_at(now), 0), Placement::Slot(_));
    let Some(bound) = board.edition().tracks().iter().filter(takes).map(|track| track.slot_bound()).min() else {
        return refused("at", "every window of the board began after this time".to_owned());
    };
    let scale = board.scale();
    // A time is not in the number yet.
    let is_beyond = if scale.has_times() {
        scale.amount(amount).0.abs() > scale.largest_within(bound).0
    } else {
        amount.0.abs() > bound.0
    };
    if is_beyond {
        let bound = scale.shown(scale.largest_within(bound));
        return refused(board.kind().field(), format!("the board takes numbers from -{bound} to {bound}"));
    }
    let keys = board.edition().tracks().iter().filter(takes).filter_map(|track| Some(track.key_bound()?.most));
    if let (Some(key), Some(most)) = (board.scale().key(amount), keys.min())
        && key.abs() > most
    {
        return refused("tie_break", format!("the board takes second keys from -{most} to {most} in a slot"));
    }
    Ok(())
}
