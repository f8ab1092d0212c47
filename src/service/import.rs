//! Imports: contents of another board, merged piece by piece into a board that may be in use.

use std::sync::Arc;

use super::import_tracks::{Receivers, receivers};
use super::{Result, Service, ServiceError};
use crate::access::{Caller, Scope};
use crate::board::{
    Aggregate, AttributesChange, Board, BoardName, Definition, Generation, Kind, Moderation, ModerationChange, Subject,
    Tie, Timestamp, Track,
};
use crate::store::{Content, ImportBegun, ImportId, Merged, Piece};

/// What an import is of.
#[derive(Clone, Debug)]
pub struct ImportSource {
    pub id: ImportId,
    pub definition: Definition,
    /// The time at which its contents began to be read.
    pub as_of: Timestamp,
}

/// A part of the contents of one track.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ImportPart {
    /// From 1. Each part has a number of its own, and parts of one track come in the order of their numbers.
    pub number: u64,
    /// The number of the part before it of the same track, or 0.
    pub previous: u64,
    /// The number of the track of the source, from 0.
    pub track: usize,
    pub contents: Vec<(Subject, Content)>,
    /// Starts of slots of the source, each with the number of items counted in it.
    pub events: Vec<(Timestamp, u64)>,
}

/// An import that is open.
pub struct Import {
    service: Arc<Service>,
    caller: Caller,
    id: ImportId,
    board: Arc<Board>,
    /// The board that the contents are of, and which tracks receive those of which of its tracks.
    source: Box<Board>,
    receivers: Receivers,
    /// For each track of the board, the number of the last part that it has.
    through: Vec<u64>,
}

/// The state of an import that a request begins with.
pub enum ImportState {
    Open(Import),
    /// It was ended before.
    Ended,
}

impl Service {
    /// Begins an import into a board, or continues it.
    ///
    /// Returns [`ServiceError::ImportRefused`] if the contents cannot be those of the board, if another import is open,
    /// and if the board may have samples.
    pub async fn begin_import(
        self: &Arc<Self>,
        caller: &Caller,
        name: &BoardName,
        source: ImportSource,
    ) -> Result<ImportState> {
        caller.require(Scope::Manage)?;
        let board = self.board(caller, name).await?;
        // Parts that were merged cannot be merged again into a new board, so an import begins with the current one.
        let board = self.refreshed(&board).await?;
        let refused = |detail: String| ServiceError::ImportRefused { open: None, detail };
        let id = source.id;
        let as_of = source.as_of;
        let source = Board::new(name.clone(), Generation(0), source.definition)
            .map_err(|error| refused(format!("the definition of the contents is not valid: {error}")))?;
        let receivers = receivers(source.edition(), board.edition(), as_of).map_err(refused)?;
        let through = match self.store.begin_import(&board, id).await? {
            ImportBegun::Open { through } => through,
            ImportBegun::Ended => return Ok(ImportState::Ended),
            ImportBegun::OtherOpen(other) => {
                let detail = match other.is_of_same_board(id) {
                    true => format!(
                        "an import of other contents of the same board ({other}) is open; continue it with the file that they are in, or remove the board and begin again"
                    ),
                    false => format!("the import {other} is open; complete it first, or end it"),
                };
                return Err(ServiceError::ImportRefused { open: Some(other), detail });
            }
            ImportBegun::MayHaveSamples => {
                let detail = "the board may have received samples, which replace what a subject has in a slot, so nothing can be added to it; import into a board that has had none since it was defined";
                return Err(refused(detail.to_owned()));
            }
            ImportBegun::TooMany => {
                return Err(refused(
                    "the board remembers the imports that it has had, and has had as many as it can".into(),
                ));
            }
        };
        Ok(ImportState::Open(Import {
            service: self.clone(),
            caller: caller.clone(),
            id,
            board,
            source: Box::new(source),
            receivers,
            through,
        }))
    }

    /// Ends an import, complete or not. Returns whether it was open.
    pub async fn end_import(&self, caller: &Caller, name: &BoardName, id: ImportId) -> Result<bool> {
        caller.require(Scope::Manage)?;
        let board = self.board(caller, name).await?;
        let board = self.refreshed(&board).await?;
        Ok(self.store.end_import(&board, id).await?)
    }
}

impl Import {
    /// Returns the kind of the metric that the contents are of.
    pub fn kind(&self) -> Kind {
        self.source.kind()
    }

    /// Returns whether the subjects of the contents have keys.
    pub fn has_keys(&self) -> bool {
        self.source.has_keys()
    }

    /// Returns the number of tracks that the contents are of.
    pub fn tracks(&self) -> usize {
        self.source.tracks().len()
    }

    /// Returns, for each track of the source, the number of the last of its parts that is merged. Of a track that is
    /// not needed it is the largest number.
    pub fn through(&self) -> Vec<u64> {
        let least = |ours: &Vec<usize>| ours.iter().filter_map(|track| self.through.get(*track)).min().copied();
        self.receivers.iter().map(|ours| least(ours).unwrap_or(u64::MAX)).collect()
    }

    /// Merges a part, if it was not merged before.
    ///
    /// Returns [`ServiceError::InvalidContents`] if a slot of the part is not a part of a slot of the board.
    pub async fn merge(&mut self, part: &ImportPart) -> Result<Merged> {
        self.caller.require_current()?;
        let (Some(ours), Some(source)) = (self.receivers.get(part.track), self.source.tracks().get(part.track)) else {
            let detail = format!("there is no track {}", part.track);
            return Err(ServiceError::InvalidContents { line: None, detail });
        };
        let mut all = Merged::default();
        for number in ours {
            let (Some(through), Some(track)) = (self.through.get_mut(*number), self.board.each_track().nth(*number))
            else {
                continue;
            };
            if part.number <= *through {
                all.add(Merged { repeated: part.contents.len() as u64, ..Merged::default() });
                continue;
            }
            if part.previous > *through {
                return Err(missing(self.id, part.track, *through, part.previous));
            }
            let piece = piece(part, source, &track)?;
            all.add(self.service.store.merge(&track, self.id, &piece).await?);
            *through = part.number;
        }
        Ok(all)
    }

    /// Sets for subjects what is set for them at the source. What the board has set besides stays.
    pub async fn moderate(&self, moderated: &[(Subject, Moderation)]) -> Result<()> {
        self.caller.require_current()?;
        let is_ranked = self.board.main().is_ranked();
        let changes = moderated.iter().flat_map(|(subject, moderation)| {
            let Moderation { visibility, is_frozen } = *moderation;
            let hides = (visibility.is_hidden() && is_ranked).then_some(ModerationChange::Visibility(visibility));
            let freezes = is_frozen.then_some(ModerationChange::Frozen(true));
            hides.into_iter().chain(freezes).map(|change| (subject.clone(), change))
        });
        Ok(self.service.store.moderate(&self.board, &changes.collect::<Vec<_>>()).await?)
    }

    /// Gives subjects that have no attributes those that they have at the source: what was set here is newer.
    pub async fn describe(&self, described: &[(Subject, AttributesChange)]) -> Result<()> {
        self.caller.require_current()?;
        let changes: Vec<_> =
            described.iter().map(|(subject, change)| (subject.clone(), change.clone().for_new())).collect();
        match self.service.store.set_attributes(&self.board, &changes).await?.into_iter().find_map(Result::err) {
            Some(error) => Err(ServiceError::InvalidContents { line: None, detail: error.to_string() }),
            None => Ok(()),
        }
    }

    /// Ends the import if all parts are merged. `last` has for each track of the source the number of its last part, or
    /// 0.
    ///
    /// Returns [`ServiceError::ImportRefused`] if parts are missing, or if the import is not open any more.
    pub async fn complete(&mut self, last: &[u64]) -> Result<()> {
        if last.len() != self.tracks() {
            let detail = format!("'last' must have a number for each of the {} tracks", self.tracks());
            return Err(ServiceError::InvalidContents { line: None, detail });
        }
        // A master that failed may have lost what it had answered, so the store is asked.
        match self.service.store.begin_import(&self.board, self.id).await? {
            ImportBegun::Open { through } => self.through = through,
            ImportBegun::Ended => return Ok(()),
            ImportBegun::OtherOpen(_) | ImportBegun::MayHaveSamples | ImportBegun::TooMany => {
                let detail = format!("the import {} is not open any more", self.id);
                return Err(ServiceError::ImportRefused { open: None, detail });
            }
        }
        for (track, (through, last)) in self.through().iter().zip(last).enumerate() {
            if through < last {
                return Err(missing(self.id, track, *through, *last));
            }
        }
        self.service.store.end_import(&self.board, self.id).await?;
        Ok(())
    }
}

/// Returns the error for parts of a track that are missing.
fn missing(id: ImportId, track: usize, through: u64, last: u64) -> ServiceError {
    let detail = format!("parts of track {track} are missing: send those after {through}, up to {last}, first");
    ServiceError::ImportRefused { open: Some(id), detail }
}

/// Returns an error if a number with a time is out of range, or the time is not in its slot: it would not leave with it.
fn check_time(subject: &Subject, slot: Timestamp, aggregate: &Aggregate, source: &Track) -> Result<()> {
    let scale = source.scale();
    let number = match aggregate {
        Aggregate::Sum(number) | Aggregate::Extreme(number) | Aggregate::Last { value: number, .. }
            if scale.has_times() =>
        {
            *number
        }
        _ => return Ok(()),
    };
    let score = scale.amount(number);
    let detail = match scale.tie(number) {
        Some(Tie::Time(time)) if !(slot..source.calendar().next(slot)).contains(&time) => {
            format!("the time of '{subject}', {time}, is not in its slot, which begins at {slot}")
        }
        _ if score.0.unsigned_abs() > scale.largest().0.unsigned_abs() => {
            format!("the number of '{subject}' is out of range")
        }
        _ => return Ok(()),
    };
    Err(ServiceError::InvalidContents { line: None, detail })
}

/// Returns a part of a track of the source as a piece of what a track receives.
fn piece(part: &ImportPart, source: &Track, track: &Track) -> Result<Piece> {
    let slot_of = |start: Timestamp| -> Result<Timestamp> {
        if track.is_all_time() {
            return Ok(Timestamp::EPOCH);
        }
        let slot = track.calendar().slot_of(start);
        let end = source.calendar().next(start);
        if source.calendar().slot_of(start) != start || end > track.calendar().next(slot) {
            let detail =
                format!("no slot of the window {} that the board has contains the slot from {start}", track.length());
            return Err(ServiceError::InvalidContents { line: None, detail });
        }
        Ok(slot)
    };
    let mut contents = Vec::with_capacity(part.contents.len());
    for (subject, content) in &part.contents {
        if let Content::Cell { slot, aggregate } = content {
            check_time(subject, *slot, aggregate, source)?;
        }
        let content = match content {
            Content::Cell { slot, aggregate } => Content::Cell { slot: slot_of(*slot)?, aggregate: aggregate.clone() },
            other => other.clone(),
        };
        contents.push((subject.clone(), content));
    }
    // Where values have times of their own, slots may be cut. Their numbers of items then count in the first part.
    let events = part.events.iter().map(|(start, items)| match slot_of(*start) {
        Err(_) if track.kind().remembers_values() => Ok((track.calendar().slot_of(*start), *items)),
        slot => Ok((slot?, *items)),
    });
    Ok(Piece { number: part.number, contents, events: events.collect::<Result<_>>()? })
}
