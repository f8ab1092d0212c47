//! The windows of a board: the one that a read chooses, and what is done for all tracks.

use std::sync::Arc;

use futures_util::future::{OptionFuture, join};

use super::ranking_keys::{in_ranking, in_ranking_of, shown_as};
use super::{About, AboutBoard, AuditReport, Result, RolloverReport, Service, ServiceError, about, audit};
use crate::access::Caller;
use crate::board::{
    AttributeNames, Board, BoardEdition, BoardName, BoardTrack, EditionRole, PeriodName, RankingKey, Subject, TrackId,
    TrackRole, WindowLength,
};
use crate::store::{self, PageStart, Standing, Status, StoreError};

/// The number of attempts to find a board in its present epoch.
const ATTEMPTS: usize = 4;

/// The window of a board that a read chooses and, on a board whose metric has `BY`, the key of the ranking.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct WindowChoice {
    /// The edition.
    pub of: EditionChoice,
    /// The length of the window, or `None` for the main one.
    pub length: Option<WindowLength>,
    /// The key of the ranking. Boards with keys need one, and the others have none.
    pub by: Option<RankingKey>,
    /// The attributes that lines show.
    pub attributes: Option<Arc<AttributeNames>>,
}

/// The edition of a board that a read chooses.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub enum EditionChoice {
    /// The current one.
    #[default]
    Current,
    /// The one of this role.
    Role(EditionRole),
    /// The period of this name.
    Period(PeriodName),
}

impl EditionChoice {
    /// Returns whether the time decides which period is chosen.
    fn is_relative(&self) -> bool {
        matches!(self, EditionChoice::Period(name) if name.is_relative())
    }

    /// Returns the choice that led to this edition.
    fn of(edition: &BoardEdition) -> Self {
        let role = edition.role().map_or(EditionChoice::Current, EditionChoice::Role);
        edition.named_period().map_or(role, EditionChoice::Period)
    }
}

impl From<Option<EditionRole>> for EditionChoice {
    fn from(role: Option<EditionRole>) -> Self {
        role.map_or(EditionChoice::Current, EditionChoice::Role)
    }
}

impl Service {
    /// Returns the edition of a board that a read chooses. Makes no store call if this instance knows the board with
    /// such an edition.
    ///
    /// Returns [`ServiceError::UnknownEdition`] if the board has no edition of this role, and
    /// [`ServiceError::UnknownPeriod`] if it has no period of this name.
    pub async fn edition(
        &self,
        caller: &Caller,
        name: &BoardName,
        of: impl Into<EditionChoice>,
    ) -> Result<BoardEdition> {
        self.edition_on(&self.board(caller, name).await?, &of.into()).await
    }

    /// Returns the chosen edition of a board as this instance knows it, or, if that has none such, as the store has it.
    pub(super) async fn edition_on(&self, board: &Arc<Board>, of: &EditionChoice) -> Result<BoardEdition> {
        match edition_of(board, of) {
            Ok(edition) if !of.is_relative() => Ok(edition),
            // The board that this instance knows may be an older one.
            _ => edition_of(&self.turned(board).await?, of),
        }
    }

    /// Reads the board of the same name from the store, after the steps of its season that are due. One store call, and
    /// on a board with a season one more before it.
    pub(super) async fn turned(&self, board: &Arc<Board>) -> Result<Arc<Board>> {
        let mut board = board.clone();
        for _ in 0..ATTEMPTS {
            // Every call about a board in its present epoch makes the steps that are due, and tells so.
            let is_present = match board.season() {
                None => true,
                Some(_) => match self.store.status(&board.main()).await {
                    Err(StoreError::StaleEpoch | StoreError::BoardChanged) => false,
                    status => status.map(|_| true)?,
                },
            };
            board = self.refreshed(&board).await?;
            if is_present {
                break;
            }
        }
        Ok(board)
    }

    /// Returns the window of an edition of a board that a read chooses: the one of this length, or else the one that
    /// its cursor belongs to, or else the main one. Makes no store call if this instance knows the board and its
    /// window.
    ///
    /// Returns [`ServiceError::UnknownWindow`] if the edition has no window of this length,
    /// [`ServiceError::CursorOfOtherWindow`] if the cursor belongs to another one, and
    /// [`ServiceError::MissingKey`] or [`ServiceError::UnexpectedKey`] if the board needs a key or has none.
    pub async fn window(
        &self,
        caller: &Caller,
        name: &BoardName,
        choice: WindowChoice,
        cursor: Option<TrackId>,
    ) -> Result<BoardTrack> {
        let key = choice.by.clone();
        let attributes = choice.attributes.clone();
        let window = self.chosen_window(caller, name, choice, cursor).await?;
        let window = match in_ranking(window.clone(), key.clone()) {
            Ok(window) => window,
            // The board that this instance knows may be an older one.
            Err(_) => in_ranking(self.refreshed_track_of_all_keys(&window).await?, key)?,
        };
        let tiers = self.tiers.of(window.board());
        Ok(window.with_tiers(tiers).showing(attributes))
    }

    /// Returns the window of an edition of a board for what is about all keys.
    pub async fn window_of_all_keys(
        &self,
        caller: &Caller,
        name: &BoardName,
        choice: WindowChoice,
    ) -> Result<BoardTrack> {
        let attributes = choice.attributes.clone();
        let window = self.chosen_window(caller, name, choice, None).await?;
        let tiers = self.tiers.of(window.board());
        Ok(window.with_tiers(tiers).showing(attributes))
    }

    async fn chosen_window(
        &self,
        caller: &Caller,
        name: &BoardName,
        choice: WindowChoice,
        cursor: Option<TrackId>,
    ) -> Result<BoardTrack> {
        let mut edition = self.edition(caller, name, choice.of.clone()).await?;
        if let (EditionChoice::Current, Some(track)) = (choice.of, cursor) {
            // Pages that were begun in a period go on in it when it has ended.
            let period = period_with(edition.board(), track);
            edition = period.filter(|period| period.id() != edition.id()).unwrap_or(edition);
        }
        let Some(requested) = choice.length else {
            let of_cursor = cursor.and_then(|track| window_with(&edition, track));
            return Ok(of_cursor.unwrap_or_else(|| edition.main_track()));
        };
        let window = match edition.window_of(requested) {
            Some(window) => window,
            // The board that this instance knows may be an older one.
            None => window_of(&self.refreshed_edition(&edition).await?, requested)?,
        };
        match cursor.and_then(|track| window_with(&window.edition(), track)) {
            Some(other) if other.id() != window.id() => {
                Err(ServiceError::CursorOfOtherWindow { of: other.length(), requested })
            }
            _ => Ok(window),
        }
    }

    /// Reads the board of the same name from the store and returns its edition of the same role. One store call.
    pub(super) async fn refreshed_edition(&self, edition: &BoardEdition) -> Result<BoardEdition> {
        edition_of(&self.refreshed(edition.board()).await?, &EditionChoice::of(edition))
    }

    /// Reads the board of the same name from the store and returns the track to read instead of one that does not exist
    /// there, in the edition of the same role: for the kept slots those of the new board, for a window that is not the
    /// main one that of the same length, and otherwise the main track. One store call.
    ///
    /// Returns [`StoreError::BoardChanged`] if what was the main window is another window of the new board, because the
    /// caller may have chosen it by its length. Returns [`ServiceError::MissingKey`] or
    /// [`ServiceError::UnexpectedKey`] if only one of the two boards has keys.
    pub(super) async fn refreshed_track(&self, track: &BoardTrack) -> Result<BoardTrack> {
        let fresh = self.refreshed_track_of_all_keys(track).await?;
        match (track.board().has_keys(), track.key()) {
            // Something that is about all keys.
            (true, None) => Ok(shown_as(fresh, track)),
            _ => in_ranking_of(fresh, track),
        }
    }

    async fn refreshed_track_of_all_keys(&self, track: &BoardTrack) -> Result<BoardTrack> {
        let fresh = self.refreshed_edition(&track.edition()).await?;
        if track.role() == TrackRole::KeptSlots {
            return fresh.kept_track().ok_or_else(|| StoreError::BoardChanged.into());
        }
        if !track.is_main_of_edition() {
            return window_of(&fresh, track.length());
        }
        match fresh.window_of(track.length()) {
            Some(window) if !window.is_main_of_edition() => Err(StoreError::BoardChanged.into()),
            _ => Ok(fresh.main_track()),
        }
    }

    /// Returns the score and rank of one subject, as [`standing`](Self::standing) does, and what it has in the slots
    /// that a total over all time [keeps](crate::board::Edition::kept_slots). The two are read at the same time, but
    /// not in one atomic step.
    pub async fn standing_and_kept(
        &self,
        track: &BoardTrack,
        subject: &Subject,
    ) -> Result<About<(Standing, Option<Standing>)>> {
        let mut read = about!(self, track, |current| self.standing_and_kept_on(current, subject))?;
        self.mirror_standing(&read.of, &read.answer.0, subject);
        self.add_earlier_ranks(&mut read.of, read.answer.0.frame.as_of).await;
        if let Some(reading) = self.add_attributes(&mut read.of, std::iter::once(subject)) {
            reading.await?;
        }
        Ok(read)
    }

    async fn standing_and_kept_on(
        &self,
        track: &BoardTrack,
        subject: &Subject,
    ) -> store::Result<(Standing, Option<Standing>)> {
        let kept_slots = track.edition().kept_track().map(|kept_slots| kept_slots.of_key(track.key().cloned()));
        let kept: OptionFuture<_> =
            kept_slots.as_ref().map(|kept_slots| self.store.standing(kept_slots, subject)).into();
        let (standing, kept) = join(self.standing_on(track, subject), kept).await;
        Ok((standing?, kept.transpose()?))
    }

    /// Returns head, floor, slots and totals of one track.
    pub async fn status(&self, track: &BoardTrack) -> Result<About<Status>> {
        about!(self, track, |current| self.store.status(current))
    }

    /// Returns head, floor, slots and totals of each track of an edition, in their order. One store call for each.
    pub async fn statuses(&self, edition: &BoardEdition) -> Result<About<Vec<Status>, BoardEdition>> {
        about!(self, edition edition, |current| self.statuses_of_tracks(current))
    }

    pub(super) async fn statuses_of_tracks(&self, edition: &BoardEdition) -> store::Result<Vec<Status>> {
        let mut statuses = Vec::with_capacity(edition.tracks().len());
        for track in edition.each_track() {
            let status = self.store.status(&track).await?;
            // The store has nothing of a packed ranking but its sheets.
            statuses.push(match track.packed() {
                Some(_) => Status {
                    total: Some(self.rankings.page_from(&track, &PageStart::Offset(0), 0).await?.total),
                    ..status
                },
                None => status,
            });
        }
        Ok(statuses)
    }

    /// Rolls all tracks of all editions of a board over. Returns when nothing below their floors remains. The numbers
    /// of the report are sums. Its frame is that of the main track, or that of the kept slots.
    pub async fn rollover(&self, board: &Arc<Board>) -> Result<AboutBoard<RolloverReport>> {
        about!(self, whole board, |current| self.roll_over_tracks(current))
    }

    pub(super) async fn roll_over_tracks(&self, board: &Arc<Board>) -> store::Result<RolloverReport> {
        let mut report = self.rollover.run(&board.main()).await?;
        for track in board.each_written_track().skip(1) {
            report.add(&track, &self.rollover.run(&track).await?);
        }
        Ok(report)
    }

    /// Returns the work that a rollover would do.
    pub async fn rollover_preview(&self, board: &Arc<Board>) -> Result<AboutBoard<RolloverReport>> {
        about!(self, whole board, |current| self.preview_of_tracks(current))
    }

    async fn preview_of_tracks(&self, board: &Arc<Board>) -> store::Result<RolloverReport> {
        let mut report = self.rollover.preview(&board.main()).await?;
        for track in board.each_written_track().skip(1) {
            report.add(&track, &self.rollover.preview(&track).await?);
        }
        Ok(report)
    }

    /// Compares every subject's score with the value of its slots, in every track of an edition. With `repair`,
    /// corrects the differences.
    pub async fn audit(&self, edition: &BoardEdition, repair: bool) -> Result<About<AuditReport, BoardEdition>> {
        about!(self, edition edition, |current| audit::run_all(&*self.store, current, repair))
    }
}

/// Returns the chosen edition.
fn edition_of(board: &Arc<Board>, of: &EditionChoice) -> Result<BoardEdition> {
    let name = || board.name().clone();
    match of {
        EditionChoice::Current => Ok(board.current()),
        EditionChoice::Role(role) => {
            board.edition_as(*role).ok_or_else(|| ServiceError::UnknownEdition { board: name(), role: *role })
        }
        EditionChoice::Period(_) if board.season().is_none() => Err(ServiceError::NoSeason(name())),
        EditionChoice::Period(period) => board.period_named(period).ok_or_else(|| {
            let known = board.each_period().filter_map(|edition| edition.period_name()).collect();
            ServiceError::UnknownPeriod { board: name(), period: period.clone(), known }
        }),
    }
}

/// Returns the window of this length, or the error that lists the windows of the edition.
fn window_of(edition: &BoardEdition, requested: WindowLength) -> Result<BoardTrack> {
    edition.window_of(requested).ok_or_else(|| ServiceError::UnknownWindow { edition: edition.clone(), requested })
}

/// Returns the period of a board that has the window with this id.
pub(super) fn period_with(board: &Arc<Board>, id: TrackId) -> Option<BoardEdition> {
    board.each_period().find(|period| window_with(period, id).is_some())
}

/// Returns the window of the edition with this id.
pub(super) fn window_with(edition: &BoardEdition, id: TrackId) -> Option<BoardTrack> {
    edition.each_window().find(|window| window.id() == id)
}
