//! Attributes of subjects: which board keeps them, changes of them, and those that the lines of a ranking show.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Instant;

use futures_util::future::BoxFuture;

use super::about::{ATTEMPTS, about};
use super::{ModeratedRange, Result, Service, ServiceError};
use crate::access::Caller;
use crate::board::{
    Attributes, AttributesChange, AttributesError, Board, BoardName, BoardTrack, Definition, RankingKey,
    ShownAttributes, Subject,
};
use crate::store::{self, Described, StoreError, TextRange};

/// The number of subjects that are read at a time to find those of a name or key.
const READ_TOGETHER: u32 = 1_000;

impl Service {
    /// Returns an error unless the caller may have a definition name the board that it names, and that board, if it exists,
    /// can keep attributes of others: a board cannot name another one later. One that names it already may be defined again.
    pub(super) async fn require_keeper(
        &self,
        caller: &Caller,
        name: &BoardName,
        definition: &Definition,
    ) -> Result<()> {
        let Some(keeper) = definition.attributes.as_ref().filter(|keeper| *keeper != name) else { return Ok(()) };
        caller.require_board(keeper)?;
        let names_it = |board: Arc<Board>| {
            board.editions().iter().any(|edition| edition.definition().attributes.as_ref() == Some(keeper))
        };
        match self.registry.get(keeper).await? {
            Some(board) if !self.registry.get(name).await?.is_some_and(names_it) => usable(name, board).map(drop),
            _ => Ok(()),
        }
    }
}

/// Returns a board that another one names for its attributes, if it can keep those of others.
fn usable(of: &BoardName, keeper: Arc<Board>) -> Result<Arc<Board>> {
    let why = match keeper.keeper() {
        None if !keeper.has_keys() => return Ok(keeper),
        None => "has a ranking for each key",
        Some(_) => "itself names another board",
    };
    Err(ServiceError::NoKeeper { board: of.clone(), keeper: keeper.name().clone(), why })
}

impl Service {
    /// Returns the board that keeps the attributes of the subjects of a board: the one that its definition names, or
    /// else itself. Reads the board from the store, so that it is the one that the present definition names.
    ///
    /// Returns [`ServiceError::NoKeeper`] if the named board does not exist, or cannot keep attributes of others.
    pub async fn keeper(&self, caller: &Caller, name: &BoardName) -> Result<Arc<Board>> {
        caller.require_secret()?;
        self.keeper_to_read(caller, name).await
    }

    /// Returns the board that keeps the attributes of the subjects of a board, for reads of them.
    pub async fn keeper_to_read(&self, caller: &Caller, name: &BoardName) -> Result<Arc<Board>> {
        let board = self.board(caller, name).await?;
        self.present_keeper_of(&self.refreshed(&board).await?).await
    }

    /// Returns why the board that a definition names cannot keep its attributes, if that is so now.
    pub async fn note_of_keeper(&self, board: &Arc<Board>) -> Result<Option<String>> {
        match self.keeper_of(board).await {
            Err(error @ ServiceError::NoKeeper { .. }) => Ok(Some(format!("attributes: {error}"))),
            keeper => keeper.map(|_| None),
        }
    }

    /// Returns the board that keeps the attributes of a board, as it is known here. One that could not keep them is looked
    /// for again.
    async fn keeper_of(&self, board: &Arc<Board>) -> Result<Arc<Board>> {
        let Some(name) = board.keeper() else { return Ok(board.clone()) };
        match self.registry.get(name).await?.map(|keeper| usable(board.name(), keeper)) {
            Some(Ok(keeper)) => Ok(keeper),
            _ => self.present_keeper_of(board).await,
        }
    }

    /// Returns the board that keeps the attributes of a board, as the store has it. One store call, if it is another one.
    async fn present_keeper_of(&self, board: &Arc<Board>) -> Result<Arc<Board>> {
        let Some(name) = board.keeper() else { return Ok(board.clone()) };
        let missing =
            || ServiceError::NoKeeper { board: board.name().clone(), keeper: name.clone(), why: "does not exist" };
        usable(board.name(), self.registry.refresh(name).await?.ok_or_else(missing)?)
    }

    /// Returns [`StoreError::BoardChanged`] if the board of this name has the attributes of another board by now. Two store
    /// calls, if they are not its own.
    pub async fn check_keeper(&self, name: &BoardName, keeper: &Arc<Board>) -> Result<()> {
        if keeper.name() == name && keeper.keeper().is_none() {
            return Ok(());
        }
        match self.present_keeper_of(&self.stored(name).await?).await? {
            present if present.name() == keeper.name() => Ok(()),
            _ => Err(StoreError::BoardChanged.into()),
        }
    }

    /// Changes attributes that a board keeps, of subjects as they are stored, in the order of the changes. Returns for
    /// each whether its subject has room for them. After an error, some may be made.
    pub async fn set_attributes(
        &self,
        keeper: &Arc<Board>,
        changes: &[(Subject, AttributesChange)],
    ) -> Result<Vec<Result<(), AttributesError>>> {
        if changes.is_empty() {
            return Ok(Vec::new());
        }
        let (mut present, mut attempts) = (keeper.clone(), ATTEMPTS);
        loop {
            match self.store.set_attributes(&present, changes).await {
                // At the end of a period, and when it is packed, the editions change several times.
                Err(error @ (StoreError::BoardChanged | StoreError::StaleEpoch)) if attempts > 0 => {
                    attempts -= 1;
                    present = self.refreshed(&present).await?;
                    // On a board that was defined again, subjects may be stored in another way.
                    if present.has_keys() != keeper.has_keys() || present.keeper() != keeper.keeper() {
                        return Err(error.into());
                    }
                }
                changed => return Ok(changed?),
            }
        }
    }

    /// Changes the attributes of subjects of a board, as they are stored there, wherever they are kept.
    pub async fn set_attributes_beside(
        &self,
        board: &Arc<Board>,
        mut changes: Vec<(Subject, AttributesChange)>,
    ) -> Result<Vec<Result<(), AttributesError>>> {
        let keeper = self.keeper_of(board).await?;
        if keeper.name() != board.name() {
            changes.iter_mut().for_each(|(subject, _)| *subject = subject.clone().split().1);
        }
        self.set_attributes(&keeper, &changes).await
    }

    /// Returns the attributes of a subject that a board keeps, in the ranking of a key if the board has keys.
    pub async fn attributes(
        &self,
        keeper: &Arc<Board>,
        subject: &Subject,
        key: Option<&RankingKey>,
    ) -> Result<Attributes> {
        let (keeper, stored) = self.stored_subject(keeper, subject, key).await?;
        let (keeper, subjects) = (&keeper, [stored]);
        let read = about!(self, whole keeper, |current| self.store.attributes(current, &subjects))?;
        Ok(read.answer.into_iter().next().unwrap_or_default())
    }

    /// Returns subjects of a range that have attributes, as they are stored, at most `limit`.
    ///
    /// Returns [`ServiceError::MissingKey`] if there are keys, and a prefix without one is given.
    pub async fn described(&self, keeper: &Arc<Board>, of: ModeratedRange<'_>, limit: u32) -> Result<Described> {
        let prefix = of.stored_prefix(keeper)?;
        let range = TextRange { prefix: &prefix, after: of.after };
        Ok(about!(self, whole keeper, |current| self.store.described(current, range, limit))?.answer)
    }

    /// Removes the attributes of the subjects that begin with this text, as they are stored, and that `is_meant` selects.
    /// After each step it pauses for as long as the step took, so that other requests run.
    pub(super) async fn remove_attributes(
        &self,
        caller: &Caller,
        board: &Arc<Board>,
        prefix: &str,
        is_meant: impl Fn(&Subject) -> bool,
    ) -> Result<()> {
        let mut after: Option<Subject> = None;
        loop {
            caller.require_current()?;
            let started = Instant::now();
            let range = TextRange { prefix, after: after.as_ref().map(Subject::as_str) };
            let mut page = self.store.described(board, range, READ_TOGETHER).await?;
            let subjects = page.items.iter().map(|(subject, _)| subject).filter(|subject| is_meant(subject));
            let changes: Vec<_> = subjects.map(|subject| (subject.clone(), AttributesChange::clear())).collect();
            self.store.set_attributes(board, &changes).await?;
            match page.items.pop() {
                Some((last, _)) => after = Some(last),
                None => return Ok(()),
            }
            store::rest(started).await;
        }
    }

    /// Returns what gives the track the attributes that the lines of an answer show, if they are asked for. One store call then,
    /// to each partition of the subjects.
    ///
    /// Without a board that keeps them there are none.
    pub(super) fn add_attributes<'a>(
        &'a self,
        track: &'a mut BoardTrack,
        subjects: impl Iterator<Item = &'a Subject>,
    ) -> Option<BoxFuture<'a, Result<()>>> {
        let names = track.shown_attributes()?.names.clone();
        let subjects: Vec<Subject> = subjects.cloned().collect();
        // Boxed, because every read would have room for what only these need.
        Some(Box::pin(async move {
            let read = self.attributes_of(track, &subjects).await?;
            let some = subjects.into_iter().zip(read).filter(|(_, attributes)| !attributes.is_empty());
            let of: HashMap<_, _> = some.map(|(subject, attributes)| (subject, attributes.of_names(&names))).collect();
            *track = track.clone().with_attributes(Some(Arc::new(ShownAttributes { names, of })));
            Ok(())
        }))
    }

    async fn attributes_of(&self, track: &BoardTrack, subjects: &[Subject]) -> Result<Vec<Attributes>> {
        let board = track.board();
        let keeper = match self.keeper_of(board).await {
            Err(ServiceError::NoKeeper { .. }) => return Ok(Vec::new()),
            keeper => keeper?,
        };
        let stored: Vec<Subject> = match keeper.name() == board.name() {
            true => subjects.iter().map(|subject| track.stored(subject).into_owned()).collect(),
            false => subjects.to_vec(),
        };
        let keeper = &keeper;
        let read = async { about!(self, whole keeper, |current| self.store.attributes(current, &stored)) };
        match read.await {
            // It was removed meanwhile.
            Err(ServiceError::UnknownBoard(name)) if name != *board.name() => Ok(Vec::new()),
            // It was defined again, so that it cannot keep those of others.
            Ok(read) if read.of.name() != board.name() && !read.of.keeps_for_others() => Ok(Vec::new()),
            read => Ok(read?.answer),
        }
    }
}
