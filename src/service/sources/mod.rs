//! Sources: logs whose items count once, because each has a position. A source names its boards and who may send to it,
//! and remembers at which position each board joined.
//!
//! Sources lie in a table of the store. Each call reads its version first, so that what one instance changes counts for
//! the next call to any other.

mod joining;
mod row;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::try_join;
use parking_lot::RwLock;

use self::joining::Place;
pub(super) use self::row::{Course, Source};
use super::{Result, Service, ServiceError};
use crate::access::{BoardPatterns, Caller, KeyId, Scope};
use crate::board::{BoardName, Position, SourceName, SourceNumber};
use crate::store::{Rows, StoreError, TableName};

/// The number of attempts to change a source while others change it.
const ATTEMPTS: usize = 8;

/// What users say about a source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceDefinition {
    /// The boards that count its items.
    pub boards: BoardPatterns,
    /// The keys that may send its items, beside those with the scope `manage`.
    pub keys: Vec<KeyId>,
}

/// A source and how far it is counted.
#[derive(Debug)]
pub struct SourceState {
    pub name: SourceName,
    pub definition: SourceDefinition,
    /// The position up to which all of its boards have counted, except for damaged ones. `None` if none has joined.
    pub reached: Option<Position>,
    /// The boards that have joined it, by name.
    pub boards: Vec<BoardOfSource>,
}

/// A board and how far it has counted a source.
#[derive(Debug)]
pub struct BoardOfSource {
    pub board: BoardName,
    /// The position at which it joined: its first item is the one after that.
    pub joined: Position,
    /// The position up to which it has counted. `None` if its data is damaged.
    pub reached: Option<Position>,
    pub fill: Option<FillOfSource>,
}

/// How far a board is filled with what was in the log before it joined.
#[derive(Debug)]
pub struct FillOfSource {
    /// The position after which it begins.
    pub from: Position,
    /// The position up to which it goes, at which the board has joined.
    pub until: Position,
    /// The position up to which the board has counted it. `None` if its data is damaged.
    pub reached: Option<Position>,
}

/// The sources as this instance has read them last.
#[derive(Default)]
pub(super) struct KnownSources(RwLock<Arc<SourceTable>>);

/// The sources at one instant.
#[derive(Default)]
pub(super) struct SourceTable {
    rows: Option<Rows>,
    by_name: BTreeMap<SourceName, Arc<Source>>,
}

impl SourceTable {
    /// Reads the rows. Those that are as before are not parsed again.
    fn of(rows: Rows, before: &SourceTable) -> Self {
        let parse = |(name, text): (&String, &String)| {
            let source = SourceName::parse(name).map_err(|error| error.to_string()).and_then(|name| {
                let same = before.by_name.get(&name).filter(|_| before.text(&name) == Some(text));
                let source = same.cloned().map_or_else(|| Source::parse(text).map(Arc::new), Ok)?;
                Ok((name, source))
            });
            match source {
                Ok(source) => Some(source),
                Err(error) => {
                    tracing::error!(source = name, error, "a source cannot be read; define it again");
                    None
                }
            }
        };
        let by_name = rows.rows.iter().filter_map(parse).collect();
        Self { rows: Some(rows), by_name }
    }

    /// Returns the source of this name.
    pub(super) fn source(&self, name: &SourceName) -> Result<&Arc<Source>> {
        self.by_name.get(name).ok_or_else(|| ServiceError::UnknownSource(name.clone()))
    }

    /// Returns the sources whose boards the caller may all use, by name.
    fn seen_by(&self, caller: &Caller) -> impl Iterator<Item = (&SourceName, &Arc<Source>)> {
        self.by_name.iter().filter(|(_, source)| caller.boards().covers(&source.definition.boards))
    }

    fn text(&self, name: &SourceName) -> Option<&str> {
        self.rows.as_ref()?.rows.get(name.as_str()).map(String::as_str)
    }

    /// Returns the numbers under which boards count sources, and are filled with them.
    pub(super) fn numbers(&self) -> Vec<SourceNumber> {
        self.by_name.values().flat_map(|source| [source.number, source.fill_number()]).collect()
    }

    /// Returns a number that no other source has.
    fn draw_number(&self) -> SourceNumber {
        loop {
            // Redis stores a field of 31 bits as a number. The next number is that of fills.
            let number = SourceNumber(rand::random::<u32>() >> 1 & !1);
            if self.by_name.values().all(|source| source.number != number) {
                return number;
            }
        }
    }
}

impl Service {
    /// Returns the sources as the store has them now. One store call.
    pub(super) async fn source_table(&self) -> Result<Arc<SourceTable>> {
        let known = self.sources.0.read().clone();
        let version = known.rows.as_ref().map(|rows| rows.version);
        match self.store.rows(TableName::Sources, version).await? {
            Some(rows) => {
                let table = Arc::new(SourceTable::of(rows, &known));
                // If a later call has read a newer table, the next one reads it again.
                *self.sources.0.write() = table.clone();
                Ok(table)
            }
            None => Ok(known),
        }
    }

    /// Returns the definitions of all sources whose boards the caller may all use, by name. One store call.
    pub async fn sources(&self, caller: &Caller) -> Result<Vec<(SourceName, SourceDefinition)>> {
        let table = self.source_table().await?;
        Ok(table.seen_by(caller).map(|(name, source)| (name.clone(), source.definition.clone())).collect())
    }

    /// Returns the names of the sources that this instance knows, of those whose boards the caller may all use. No store call.
    pub fn known_sources(&self, caller: &Caller) -> BTreeSet<SourceName> {
        let table = self.sources.0.read().clone();
        table.seen_by(caller).map(|(name, _)| name.clone()).collect()
    }

    /// Returns whether this instance knows a source of this name. No store call.
    pub fn knows_source(&self, name: &SourceName) -> bool {
        self.sources.0.read().by_name.contains_key(name)
    }

    /// Returns a source with the positions that its boards have reached. One store call for each board, and some.
    pub async fn source(&self, caller: &Caller, name: &SourceName) -> Result<SourceState> {
        let table = self.source_table().await?;
        let source = table.source(name)?;
        caller.require_source(name, &source.definition.boards)?;
        self.state_of(name, source).await
    }

    async fn state_of(&self, name: &SourceName, source: &Source) -> Result<SourceState> {
        let mut boards = self.registry.refresh_all().await?;
        boards.retain(|board| source.has(board));
        boards.sort_unstable_by(|one, other| one.name().cmp(other.name()));
        let (places, fills) = try_join(self.places(source, &boards, false), self.places(source, &boards, true)).await?;
        let mut fills: HashMap<_, _> = fills.of_boards.into_iter().map(|own| (own.board.generation(), own)).collect();
        let of_boards = places.of_boards.into_iter().map(|Place { board, course, reached }| {
            let fill =
                |Place { course: Course { from, until, .. }, reached, .. }| FillOfSource { from, until, reached };
            let fill = fills.remove(&board.generation()).map(fill);
            BoardOfSource { board: board.name().clone(), joined: course.from, reached, fill }
        });
        let (name, definition) = (name.clone(), source.definition.clone());
        Ok(SourceState { name, definition, reached: places.least, boards: of_boards.collect() })
    }

    /// Defines a source, or gives it other boards or keys, and returns whether it is new. A board that is no longer
    /// among its boards leaves it: what it has counted stays. If it is added again, it goes on at the place of the source;
    /// events before that which it has not counted are left out.
    pub async fn define_source(
        &self,
        caller: &Caller,
        name: &SourceName,
        definition: &SourceDefinition,
    ) -> Result<(SourceState, bool)> {
        caller.require(Scope::Manage)?;
        caller.require_boards(&definition.boards)?;
        for _ in 0..ATTEMPTS {
            let table = self.source_table().await?;
            let before = table.by_name.get(name);
            let source = match before {
                Some(before) => {
                    caller.require_source(name, &before.definition.boards)?;
                    self.redefined(before, definition).await?
                }
                None => Source::new(table.draw_number(), definition.clone()),
            };
            if self.change_source(&table, name, Some(&source)).await? {
                return Ok((self.state_of(name, &source).await?, before.is_none()));
            }
        }
        Err(StoreError::Overloaded { retry_after: Duration::from_secs(1) }.into())
    }

    /// Returns a source with another definition.
    async fn redefined(&self, before: &Source, definition: &SourceDefinition) -> Result<Source> {
        // Read after the row, so that a board that the row has and the list does not is gone.
        let boards = self.registry.refresh_all().await?;
        let mut source = Source { definition: definition.clone(), ..before.clone() };
        source.keep(&boards, &self.registry.unreadable());
        source.make_room(&boards)?;
        let (of_before, others): (Vec<_>, Vec<_>) = boards.into_iter().partition(|board| before.has(board));
        if let Some(least) = self.places(before, &of_before, false).await?.least {
            for board in others.into_iter().filter(|board| definition.boards.includes(board.name())) {
                // A board that has never joined does so with the next portion.
                let generation = board.generation();
                if let Some(joined) = source.joined.get_mut(&generation) {
                    *joined = least.max(*joined);
                    source.rejoined.insert(generation);
                }
            }
        }
        Ok(source)
    }

    /// Removes a source, and returns its definition. What its boards have counted stays.
    pub async fn remove_source(&self, caller: &Caller, name: &SourceName) -> Result<SourceDefinition> {
        caller.require(Scope::Manage)?;
        for _ in 0..ATTEMPTS {
            let table = self.source_table().await?;
            let source = table.source(name)?;
            caller.require_source(name, &source.definition.boards)?;
            if self.change_source(&table, name, None).await? {
                return Ok(source.definition.clone());
            }
        }
        Err(StoreError::Overloaded { retry_after: Duration::from_secs(1) }.into())
    }

    /// Changes the row of a source, unless it is not as it was read.
    async fn change_source(&self, read: &SourceTable, name: &SourceName, to: Option<&Source>) -> Result<bool> {
        let to = to.map(Source::text).transpose()?;
        if to.as_ref().is_some_and(|text| text.len() > TableName::MAX_TEXT_BYTES) {
            return Err(ServiceError::TooManyBoardsOfSource(name.clone()));
        }
        Ok(self.store.change_row(TableName::Sources, name.as_str(), read.text(name), to.as_deref()).await?)
    }
}
