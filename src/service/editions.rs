//! The second edition of a board: a successor that counts beside it, or the edition that a successor replaced.

use std::sync::Arc;

use futures_util::stream::{self, StreamExt};

use super::compare::Comparison;
use super::fill::FillProgress;
use super::mirror::MirroredDifference;
use super::{Result, Service, ServiceError, StoreError, fill};
use crate::access::{Caller, Scope};
use crate::board::{
    Board, BoardEdition, BoardName, BoardTrack, Definition, Edition, EditionRole, Span, SuccessorError, Tiers,
    Timestamp, Track, TrackId,
};
use crate::store::DualRun;

/// The number of boards whose periods are ended at the same time.
const AT_ONCE: usize = 8;

/// The number of attempts before a call fails because the editions keep changing.
const ATTEMPTS: usize = 4;

/// The state of the two editions of a board.
#[derive(Debug)]
pub struct DualRunState {
    /// The edition beside the current one.
    pub edition: BoardEdition,
    pub run: DualRun,
    /// The store's time from which both editions are complete, so that differences are those of the definitions. `None`
    /// if that is never so: over all time, and where the windows of subjects begin with their first events.
    pub full_at: Option<Timestamp>,
    pub fill: FillState,
    /// The store's time from which a previous edition may be removed.
    pub until: Option<Timestamp>,
    /// The latest comparison that this instance has made, or is making.
    pub comparison: Option<Comparison>,
    /// The latest differences of mirrored reads of this instance, the newest last.
    pub mirrored: Vec<MirroredDifference>,
    /// The tiers of the board, which another edition keeps.
    pub tiers: Option<Arc<Tiers>>,
}

/// The state of a fill.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FillState {
    /// The successor counts other items, or its slots are not unions of the board's, so it begins empty.
    Impossible,
    /// It has not ended yet.
    Running(FillProgress),
    Done,
}

impl Service {
    /// Begins a dual run: adds a successor with this definition to a board. What `names` does not know of it is that of
    /// the board ([`Board::completed`]). Returns the board, and whether the successor is new. Beginning it again with the
    /// same definition changes nothing.
    ///
    /// Returns [`ServiceError::EditionsRefused`] if the board has another second edition, and
    /// [`ServiceError::Successor`] if the definition cannot be that of a successor.
    pub async fn begin_dual_run(
        &self,
        caller: &Caller,
        name: &BoardName,
        definition: &Definition,
        names: impl Fn(&str) -> bool,
    ) -> Result<(Arc<Board>, bool)> {
        self.require_keeper(caller, name, definition).await?;
        let now = self.store.now().await?;
        let mut is_known = false;
        let changed = self.change_editions(caller, name, |board| {
            let definition = board.completed(definition.clone(), &names);
            is_known = board.edition_as(EditionRole::Next).is_some_and(|next| *next.definition() == definition);
            if is_known {
                return Ok(None);
            }
            let refused = |detail| Err(ServiceError::EditionsRefused { board: name.clone(), detail });
            if board.season().is_some() {
                return Err(SuccessorError::Season.into());
            }
            if let Some(other) = board.other() {
                let role = other.role.name();
                return refused(format!(
                    "board '{name}' has a {role} edition already; remove it first with DELETE /v1/boards/{name}/{role}"
                ));
            }
            if *board.definition() == definition {
                return refused(format!(
                    "the definition is that of board '{name}' itself; what it does not name is that of the board"
                ));
            }
            let first = TrackId(rand::random_range(1..=u64::MAX / 2));
            Ok(Some(board.attached(definition, first)?.counting_since(1, now)))
        });
        let board = changed.await?;
        if !is_known {
            self.fills.begin(board.editions().get(1).map(Edition::id));
        }
        Ok((board, !is_known))
    }

    /// Makes the edition of this role the current one. The one that was current stays as the previous edition, and both
    /// are written to, until `keep_previous` has passed.
    ///
    /// Returns [`ServiceError::EditionsRefused`] while a fill of the successor is not complete, and
    /// [`ServiceError::NotFull`] before [`DualRunState::full_at`], unless it may be `early`.
    pub async fn promote(
        &self,
        caller: &Caller,
        name: &BoardName,
        role: EditionRole,
        keep_previous: Span,
        early: bool,
    ) -> Result<Arc<Board>> {
        caller.require(Scope::Manage)?;
        let state = self.dual_run(caller, name, role).await?;
        if role == EditionRole::Next && matches!(state.fill, FillState::Running(_)) {
            let detail = format!(
                "the successor of board '{name}' is being filled with what the board has; GET /v1/boards/{name}/next says how far it is"
            );
            return Err(ServiceError::EditionsRefused { board: name.clone(), detail });
        }
        let now = self.store.now().await?;
        // What was the board before is complete, since it has never ceased to count.
        if role == EditionRole::Next && !early && state.full_at.is_none_or(|full_at| now < full_at) {
            return Err(ServiceError::NotFull { board: name.clone(), full_at: state.full_at });
        }
        let until = now.plus_millis(keep_previous.approximate_millis());
        let wanted = state.edition.id();
        // A successor that was filled covers what the board had.
        let covers = match (role, state.run.filled) {
            (EditionRole::Next, Some(filled)) => filled_since(state.edition.board(), &state.run, filled),
            _ => None,
        };
        let changed = self.change_editions(caller, name, |board| match board.edition_as(role) {
            Some(edition) if edition.id() == wanted => Ok(board.exchanged(until).map(|board| match covers {
                Some(covers) => board.counting_since(0, covers),
                None => board,
            })),
            // A repeated call.
            _ if board.edition().id() == wanted => Ok(None),
            _ => Err(ServiceError::UnknownEdition { board: name.clone(), role }),
        });
        changed.await
    }

    /// Removes the edition of this role with its data. Returns the board without it.
    pub async fn remove_edition(&self, caller: &Caller, name: &BoardName, role: EditionRole) -> Result<Arc<Board>> {
        let changed = self.change_editions(caller, name, |board| match board.edition_as(role) {
            Some(_) => Ok(Some(board.detached())),
            None => Err(ServiceError::UnknownEdition { board: name.clone(), role }),
        });
        changed.await
    }

    /// Returns the state of the edition of this role.
    pub async fn dual_run(&self, caller: &Caller, name: &BoardName, role: EditionRole) -> Result<DualRunState> {
        let mut edition = self.edition(caller, name, Some(role)).await?;
        let run = match self.store.dual_run(edition.board()).await {
            Err(StoreError::BoardChanged | StoreError::StaleEpoch) => {
                edition = self.refreshed_edition(&edition).await?;
                self.store.dual_run(edition.board()).await?
            }
            run => run?,
        };
        let now = self.store.now().await?;
        let fill = match run.filled {
            _ if fill::pairs(edition.board(), now).is_empty() => FillState::Impossible,
            Some(_) => FillState::Done,
            None => FillState::Running(self.fills.progress(edition.id())),
        };
        let until = edition.board().other().and_then(|other| other.until);
        Ok(DualRunState {
            full_at: full_at(edition.board(), &run),
            run,
            fill,
            until,
            comparison: self.comparisons.of(edition.id()),
            mirrored: self.mirror.get().map(|mirror| mirror.differences(edition.id())).unwrap_or_default(),
            tiers: self.tiers.of(edition.board()),
            edition,
        })
    }

    /// Changes the editions of a board. `change` returns the changed board, or `None` if nothing is to be done.
    pub(super) async fn change_editions(
        &self,
        caller: &Caller,
        name: &BoardName,
        change: impl FnMut(&Arc<Board>) -> Result<Option<Board>>,
    ) -> Result<Arc<Board>> {
        caller.require(Scope::Manage)?;
        caller.require_board(name)?;
        self.change_stored_editions(name, change).await
    }

    /// Changes the editions of a board, without asking whether a caller may.
    pub(super) async fn change_stored_editions(
        &self,
        name: &BoardName,
        mut change: impl FnMut(&Arc<Board>) -> Result<Option<Board>>,
    ) -> Result<Arc<Board>> {
        for _ in 0..ATTEMPTS {
            let board = self.stored(name).await?;
            let Some(to) = change(&board)? else { return Ok(board) };
            match self.store.change_editions(&board, to).await {
                Err(StoreError::StaleEpoch) => {}
                Err(StoreError::EditionsBusy { detail }) => {
                    return Err(ServiceError::EditionsRefused { board: name.clone(), detail });
                }
                changed => {
                    let board = changed?;
                    self.registry.put(board.clone());
                    return Ok(board);
                }
            }
        }
        Err(StoreError::StaleEpoch.into())
    }

    /// Does what is due about seasons and second editions: ends periods, fills successors, and removes previous editions
    /// whose time has passed.
    pub(super) async fn tend_editions(&self) -> Result<()> {
        self.turn_seasons().await?;
        let boards = self.registry.with_two_editions();
        let editions = boards.iter().flat_map(|board| board.editions()).map(Edition::id).collect();
        self.comparisons.keep(&editions);
        self.fills.keep(&editions);
        if let Some(mirror) = self.mirror.get() {
            mirror.keep(&editions);
        }
        if boards.is_empty() {
            return Ok(());
        }
        let now = self.store.now().await?;
        // Fills take long, and so come last.
        let (successors, previous): (Vec<_>, Vec<_>) =
            boards.into_iter().partition(|board| board.other().is_some_and(|other| other.role == EditionRole::Next));
        for board in previous {
            if board.other().and_then(|other| other.until).is_some_and(|until| until <= now)
                && let Err(error) = self.remove_previous(&board).await
            {
                tracing::warn!(board = %board.name(), %error, "the previous edition was not removed; the next tick retries");
            }
        }
        for board in successors {
            if let Err(error) = self.fill_if_due(&board, now).await {
                tracing::warn!(board = %board.name(), %error, "the fill of a successor has failed; it begins again");
            }
        }
        Ok(())
    }

    /// Lets the store make the steps of seasons that are due, also of boards that nobody calls.
    async fn turn_seasons(&self) -> Result<()> {
        if !self.registry.has_seasons() {
            return Ok(());
        }
        let due = self.registry.with_due_season(self.store.now().await?);
        let turn = |board: Arc<Board>| async move {
            if let Err(error) = self.turned(&board).await {
                tracing::warn!(board = %board.name(), %error, "a period could not be ended; the next tick retries");
            }
        };
        stream::iter(due).map(turn).buffer_unordered(AT_ONCE).collect::<()>().await;
        Ok(())
    }

    async fn remove_previous(&self, board: &Arc<Board>) -> Result<()> {
        match self.store.change_editions(board, board.detached()).await {
            Ok(changed) => self.registry.put(changed),
            Err(StoreError::StaleEpoch | StoreError::BoardChanged) => {
                self.registry.refresh(board.name()).await?;
            }
            Err(error) => return Err(error.into()),
        }
        Ok(())
    }
}

/// Returns the time from which both editions are complete: see [`DualRunState::full_at`].
fn full_at(board: &Arc<Board>, run: &DualRun) -> Option<Timestamp> {
    let Some(filled) = run.filled else {
        let all = board.tracks().iter().map(|track| full_from(track, run.since));
        return all.collect::<Option<Vec<_>>>()?.into_iter().max();
    };
    let full =
        filled_tracks(board, run, filled)?.map(|(track, is_filled, since)| match is_filled && track.is_all_time() {
            true => Some(filled),
            false => full_from(&track, since).map(|at| if is_filled { at.max(filled) } else { at }),
        });
    full.collect::<Option<Vec<_>>>()?.into_iter().max()
}

/// Returns the time since which every track of a successor has what its board had, after a fill that ended at `filled`.
fn filled_since(board: &Arc<Board>, run: &DualRun, filled: Timestamp) -> Option<Timestamp> {
    let since = filled_tracks(board, run, filled)?.map(|(_, _, since)| since);
    since.max().max(board.current().since().or(board.defined_at()))
}

/// Returns the tracks of a successor, whether each was filled, and the time since which it is complete: what its source
/// still had at the end of the fill, or what came since the dual run began.
fn filled_tracks(
    board: &Arc<Board>,
    run: &DualRun,
    filled: Timestamp,
) -> Option<impl Iterator<Item = (BoardTrack, bool, Timestamp)>> {
    let pairs = fill::pairs(board, filled);
    let [_, to] = fill::direction(board)?;
    let begun = run.since;
    Some(to.each_track().map(move |track| {
        let source = pairs.iter().find(|(_, target)| target.number() == track.number()).map(|(source, _)| source);
        let since = match source {
            Some(source) if source.is_all_time() => Timestamp::EPOCH,
            Some(source) => source.window_at(filled).floor.min(begun),
            None => begun,
        };
        (track, source.is_some(), since)
    }))
}

/// Returns the time at which the floor of a track has reached the first start of a slot that is not before `since`.
fn full_from(track: &Track, since: Timestamp) -> Option<Timestamp> {
    if track.is_all_time() || track.is_from_first() {
        return None;
    }
    let calendar = track.calendar();
    let start = calendar.slot_of(since);
    let first = if start == since { start } else { calendar.next(start) };
    Some((1..track.slots()).fold(first, |start, _| calendar.next(start)))
}
