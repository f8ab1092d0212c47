//! Portions of a source's items: events, or increments of one board. Each board of the source gets its share of a portion,
//! also if that has no item: what it has reached moves on with the others.
//!
//! What the store knows of a board, and the row of the source, are two things, and a failover can lose the last second of
//! either. So the row has the position at which a board joined before the store knows that it did, and a board that has
//! reached less than that begins there, whenever this is found.

mod item;
mod progress;
mod share;

use std::sync::Arc;
use std::time::Instant;

use futures_util::future::try_join;

pub use self::item::SourceItem;
use self::progress::Progress;
use self::share::Share;
use super::fan::PORTION;
use super::outcome::EventOutcome;
use crate::access::{Caller, Scope};
use crate::board::{Board, BoardName, Position, SourceName};
use crate::service::event_index::EventIndex;
use crate::service::sources::{Source, SourceTable};
use crate::service::{Result, Service, ServiceError};
use crate::store::StoreError;

/// The number of attempts before a call fails because boards keep changing. A board that joins takes one of its own.
const ATTEMPTS: usize = 6;

/// Consecutive items of a source.
#[derive(Clone, Copy, Debug)]
pub struct ItemPortion<'e> {
    pub source: &'e SourceName,
    /// The board of which the items are increments. `None`: they are events.
    pub board: Option<&'e Arc<Board>>,
    /// The board that is filled with it. `None`: all boards of the source count it.
    pub fill: Option<&'e BoardName>,
    /// The position after which the portion begins, up to which everything is counted.
    pub after: Position,
    /// The position up to which the portion goes.
    pub through: Position,
    /// The items with their positions, which increase and are within the portion. There may be none.
    pub items: &'e [(Position, SourceItem)],
}

/// How far a portion was counted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PortionRecorded {
    /// The position up to which all boards of the source have counted it, except for those that are left out: that after
    /// which it goes on. If nothing waits, this is the end of the portion or, if that was counted before, may be beyond it.
    /// `None` if the portion only asks, and no board has joined.
    pub reached: Option<Position>,
    /// Whether an item waits, so that it, and what follows, is to be sent again later.
    pub waits: bool,
    /// Of a board that is filled: whether it has what it is to be filled with.
    pub filled: Option<bool>,
    /// The boards that have counted nothing, because their data is damaged, or the source has no room for them.
    pub left_out: Vec<BoardName>,
}

/// A portion that is spread over the boards of its source, as far as it is recorded at once.
pub struct SpreadPortion<'p> {
    portion: ItemPortion<'p>,
    /// The sources by which it is spread.
    table: Arc<SourceTable>,
    progress: Progress<'p>,
    shares: Vec<Share>,
}

impl Service {
    /// Spreads consecutive items of a source over its boards, for [`record_portion`](Self::record_portion). The portion
    /// before may still be on its way. Two store calls at the same time.
    ///
    /// Returns [`StoreError::BoardChanged`] if the items are increments of a board that has another definition now: parse
    /// them again.
    pub async fn spread_portion<'p>(&self, caller: &Caller, portion: ItemPortion<'p>) -> Result<SpreadPortion<'p>> {
        self.spread(caller, portion, None).await
    }

    async fn spread<'p>(
        &self,
        caller: &Caller,
        portion: ItemPortion<'p>,
        progress: Option<Progress<'p>>,
    ) -> Result<SpreadPortion<'p>> {
        caller.require(Scope::Write)?;
        let since = Instant::now();
        let version = async { Ok(self.store.boards_version().await?) };
        let (table, version) = try_join(self.source_table(), version).await?;
        let source = table.source(portion.source)?;
        caller.require_source(portion.source, &source.definition.boards)?;
        caller.require_sender(portion.source, &source.definition.keys)?;
        let listed = match progress.as_ref().is_some_and(Progress::is_stale) {
            false => self.registry.listed_at(version, since).await?,
            true => self.registry.listed_after(since).await?,
        };
        let index = listed.event_index;
        let mut progress = progress.unwrap_or_else(|| Progress::new(portion.first_part(&index)));
        let of_source: Vec<_> = index.all().filter(|board| source.has(board)).cloned().collect();
        let is_filled = |board: &Board| portion.fill.is_none_or(|fill| board.name() == fill);
        let is_asked = |board: &&Arc<Board>| is_filled(board) && progress.is_left(board);
        let boards: Vec<_> = of_source.iter().filter(is_asked).cloned().collect();
        match portion.fill {
            Some(fill) if boards.is_empty() => {
                let why = format!("source '{}' has no such board", portion.source);
                return Err(ServiceError::FillRefused { board: fill.clone(), why });
            }
            None if of_source.is_empty() => return Err(ServiceError::SourceWithoutBoards(portion.source.clone())),
            _ => {}
        }
        portion.check_board(source, &of_source)?;
        progress.note_known(&of_source, &index);
        let shares = progress.portion().shares(boards, &index);
        Ok(SpreadPortion { portion, table, progress, shares })
    }

    /// Counts consecutive items of a source on each of its boards, each item once, however often the portion is sent.
    /// Calls `each` with what became of each item, in their order. It ends early, without an outcome of the items that
    /// are left, if an item waits.
    ///
    /// Makes one store call, and three more for each further 100,000 outcomes. After an error some boards may have counted
    /// the items: send the portion again.
    ///
    /// Returns [`ServiceError::SourceBehind`] if a board has not reached the position after which the portion begins.
    pub async fn record_portion(
        &self,
        caller: &Caller,
        mut spread: SpreadPortion<'_>,
        mut each: impl FnMut(usize, EventOutcome),
    ) -> Result<PortionRecorded> {
        let portion = spread.portion;
        let mut settled = 0;
        loop {
            let (part, recorded) = self.record_part(caller, spread, |at, outcome| each(settled + at, outcome)).await?;
            settled += part.items.len();
            if recorded.waits || settled == portion.items.len() {
                return Ok(recorded);
            }
            let rest = ItemPortion { after: part.through, items: &portion.items[settled..], ..portion };
            spread = self.spread(caller, rest, None).await?;
        }
    }

    /// Checks that the board of which the items are increments, if they are, has joined the source. Otherwise other boards would
    /// pass over items that nobody counts.
    async fn check_joined(&self, portion: &ItemPortion<'_>, source: &Source) -> Result<()> {
        let Some(own) = portion.board.filter(|_| !portion.only_asks()) else { return Ok(()) };
        if source.course(own.generation(), portion.fill.is_some()).is_some() {
            return Ok(());
        }
        // Its data may be damaged; then this says so.
        self.store.reached(own, source.number).await?;
        Err(ServiceError::TooManyBoardsOfSource(portion.source.clone()))
    }

    /// Counts as much of the start of a portion as has about 100,000 outcomes, and returns it.
    async fn record_part<'p>(
        &self,
        caller: &Caller,
        mut spread: SpreadPortion<'p>,
        each: impl FnMut(usize, EventOutcome),
    ) -> Result<(ItemPortion<'p>, PortionRecorded)> {
        for _ in 0..ATTEMPTS {
            let SpreadPortion { portion, table, mut progress, mut shares } = spread;
            let boards: Vec<_> = shares.iter().map(|share| share.board.clone()).collect();
            let source = match (portion.fill, &boards[..]) {
                _ if portion.only_asks() => table.source(portion.source).cloned(),
                (Some(_), [board]) => self.filled(table, portion.source, board, portion.after).await,
                _ => self.joined(table, portion.source, &boards, portion.after).await,
            };
            match source {
                Ok(source) => {
                    self.check_joined(&portion, &source).await?;
                    let portions = progress.portions(&mut shares, &source)?;
                    let answers = self.store.pass(portions).await;
                    if progress.settle(shares, answers)? {
                        return Ok((progress.portion(), progress.finish(each)?));
                    }
                }
                Err(ServiceError::Store(StoreError::BoardChanged | StoreError::StaleEpoch)) => progress.note_stale(),
                Err(error) => return Err(error),
            }
            spread = self.spread(caller, portion, Some(progress)).await?;
        }
        Err(StoreError::BoardChanged.into())
    }
}

impl ItemPortion<'_> {
    /// Returns whether the portion ends where it begins: it asks where the source is, and no board joins with it.
    fn only_asks(&self) -> bool {
        self.through == self.after
    }

    /// Returns the boards that an item is for, whatever the source.
    fn boards_of<'i>(&'i self, item: &SourceItem, index: &'i EventIndex) -> &'i [Arc<Board>] {
        match item {
            SourceItem::Event(event) => index.of_type(&event.kind),
            SourceItem::Increment(_) => self.board.map_or(&[], std::slice::from_ref),
        }
    }

    /// Checks that the board of which the items are increments, if they are, is one of the source's boards, and is as it was
    /// when they were parsed.
    fn check_board(&self, source: &Source, of_source: &[Arc<Board>]) -> Result<()> {
        let Some(own) = self.board else { return Ok(()) };
        if !source.has(own) {
            let (name, board) = (self.source, own.name());
            let detail =
                format!("source '{name}' does not have board '{board}': PUT /v1/sources/{name} names its boards");
            return Err(ServiceError::InvalidQuery { field: "source", detail });
        }
        let is_same =
            |board: &&Arc<Board>| (board.generation(), board.edition().id()) == (own.generation(), own.edition().id());
        of_source.iter().find(is_same).map(drop).ok_or_else(|| StoreError::BoardChanged.into())
    }

    /// Returns the start of the portion that has a bounded number of outcomes, and at least one item if there is any.
    fn first_part(self, index: &EventIndex) -> Self {
        let mut outcomes = 0;
        let is_over = |(_, item): &(Position, SourceItem)| {
            outcomes += self.boards_of(item, index).len();
            outcomes > PORTION
        };
        match self.items.iter().position(is_over).map(|end| &self.items[..end.max(1)]) {
            Some(items @ [.., (last, _)]) if items.len() < self.items.len() => Self { through: *last, items, ..self },
            _ => self,
        }
    }
}
