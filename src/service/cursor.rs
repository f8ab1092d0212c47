//! Pages next to a place.

use super::ranking_keys::in_ranking_of;
use super::reads::{ranked, remembers_values, subjects_of};
use super::windows::{period_with, window_with};
use super::{About, Result, Service, ServiceError};
use crate::board::{Amount, BoardEdition, BoardTrack, EXACT_MAX, Subject, TrackId, Value};
use crate::store::{self, NextTo, Page, PageStart, StoreError, ValuePlace, Values, ValuesStart};

/// A place in a ranking, at which a page continues.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cursor {
    /// The track whose ranking has the place.
    pub track: TrackId,
    pub next_to: NextTo,
}

/// A place in the values of a subject, after which a page continues.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ValuesCursor {
    /// The track that has the values.
    pub track: TrackId,
    pub after: ValuePlace,
}

impl Service {
    /// Returns a page next to a place, at most `limit` lines. One store call, and one more if this instance knows a
    /// board without the track of the cursor.
    ///
    /// Unlike other reads, this one is not repeated on a board that was defined again, whose scores have nothing to do
    /// with those of the earlier one. Returns [`ServiceError::StaleCursor`] then.
    pub async fn page_at(&self, track: &BoardTrack, cursor: &Cursor, limit: u32) -> Result<About<Page>> {
        let mut track = self.track_at(track, cursor.track, ranked).await?;
        check_score(&track, cursor.next_to.place.score)?;
        let start = PageStart::Place(cursor.next_to.clone());
        let mut page = self.rankings.page_from(&track, &start, limit).await;
        if let Some(again) = self.track_again(&track, &page).await? {
            page = self.rankings.page_from(&again, &start, limit).await;
            track = again;
        }
        let mut read = self.about_cursor(track, page).await?;
        self.add_earlier_ranks(&mut read.of, read.answer.frame.as_of).await;
        if let Some(reading) = self.add_attributes(&mut read.of, subjects_of(&read.answer)) {
            reading.await?;
        }
        Ok(read)
    }

    /// Returns the values of a subject after a place, at most `limit`. Makes the same store calls as
    /// [`page_at`](Self::page_at), and returns [`ServiceError::StaleCursor`] in the same cases. Returns
    /// [`ServiceError::NoValues`] unless the board is COUNT_DISTINCT.
    pub async fn values_at(
        &self,
        track: &BoardTrack,
        subject: &Subject,
        cursor: &ValuesCursor,
        limit: u32,
    ) -> Result<About<Values>> {
        let mut track = self.track_at(track, cursor.track, remembers_values).await?;
        let start = ValuesStart::After(cursor.after.clone());
        let mut values = self.store.values_from(&track, subject, &start, limit).await;
        if let Some(again) = self.track_again(&track, &values).await? {
            values = self.store.values_from(&again, subject, &start, limit).await;
            track = again;
        }
        self.about_cursor(track, values).await
    }

    /// Returns the track of a cursor, of the board of `track`. `check` may refuse the present board of this name.
    async fn track_at(
        &self,
        track: &BoardTrack,
        of_cursor: TrackId,
        check: fn(&BoardTrack) -> Result<()>,
    ) -> Result<BoardTrack> {
        if let Some(window) = window_with(&track.edition(), of_cursor) {
            check(&window)?;
            return in_ranking_of(window, track);
        }
        // The board that this instance knows may be the older one.
        let fresh = self.refreshed_edition(&track.edition()).await?;
        check(&fresh.main_track())?;
        match window_of_any_period(&fresh, of_cursor) {
            Some(window)
                if !track.is_main_of_edition()
                    && fresh.window_of(track.length()).map(|asked| asked.id()) != Some(window.id()) =>
            {
                Err(ServiceError::CursorOfOtherWindow { of: window.length(), requested: track.length() })
            }
            Some(window) => in_ranking_of(window, track),
            None => Err(ServiceError::StaleCursor(fresh.board().name().clone())),
        }
    }

    /// Returns the same track of a board whose editions have changed, if the answer says that they have: the cursor
    /// stays valid as long as its track is in an edition of the same role.
    async fn track_again<T>(&self, track: &BoardTrack, answer: &store::Result<T>) -> Result<Option<BoardTrack>> {
        if !matches!(answer, Err(StoreError::StaleEpoch)) {
            return Ok(None);
        }
        let fresh = self.refreshed_edition(&track.edition()).await?;
        let stale = || ServiceError::StaleCursor(fresh.board().name().clone());
        let window = window_of_any_period(&fresh, track.id()).ok_or_else(stale)?;
        in_ranking_of(window, track).map(Some)
    }

    /// Returns the store's answer about the track of a cursor, or the error that the track no longer exists.
    async fn about_cursor<T>(&self, of: BoardTrack, answer: store::Result<T>) -> Result<About<T>> {
        if let Err(StoreError::BoardChanged | StoreError::StaleEpoch) = answer {
            let fresh = self.refreshed(of.board()).await?;
            return Err(ServiceError::StaleCursor(fresh.name().clone()));
        }
        Ok(About { answer: answer?, of })
    }
}

/// Returns the window with this id of the edition, or of another period of its board: pages that were begun in a period
/// go on in it when it has ended.
fn window_of_any_period(edition: &BoardEdition, id: TrackId) -> Option<BoardTrack> {
    let of_period = || window_with(&period_with(edition.board(), id)?, id);
    window_with(edition, id).or_else(of_period)
}

/// Returns an error if no score of the track has this form.
fn check_score(track: &BoardTrack, score: Value) -> Result<()> {
    let fits = match score {
        Value::Exact(Amount(units)) => !track.kind().has_fractions() && (-EXACT_MAX..=EXACT_MAX).contains(&units),
        // A mean is never -0, which the stores would order differently.
        Value::Real(real) => track.kind().has_fractions() && real.is_finite() && real.to_bits() != (-0.0_f64).to_bits(),
    };
    if fits {
        Ok(())
    } else {
        let detail = "the score is not one of this board".to_owned();
        Err(ServiceError::InvalidQuery { field: "cursor", detail })
    }
}
