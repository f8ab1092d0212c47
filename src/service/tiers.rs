//! The tiers of boards. They lie in a table of the store, and each instance knows all of them.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::RwLock;
use serde::{Deserialize, Serialize};

use super::reads::ranked;
use super::{Page, Result, Service, ServiceError};
use crate::access::{Caller, Scope};
use crate::board::{Board, BoardName, BoardTrack, Generation, RankingTiers, TierForm, Tiers};
use crate::store::{Rows, StoreError, TableName};

/// The time after which reading the table is given up until the next second.
const PATIENCE: Duration = Duration::from_secs(1);
/// The number of attempts to change the tiers of a board while others change them.
const ATTEMPTS: usize = 8;

/// A row of the table, by the name of a board.
#[derive(Serialize, Deserialize)]
struct TiersRow {
    /// The generation of the board, so that another one of the same name does not have them.
    generation: String,
    tiers: Vec<TierForm>,
}

/// The tiers that this instance knows.
#[derive(Default)]
pub(super) struct KnownTiers {
    /// By the name of the board, with its generation.
    by_board: RwLock<HashMap<String, (Generation, Arc<Tiers>)>>,
    /// The table that they are from. Held while it is read or changed, so that an older answer does not replace a newer
    /// one.
    table: tokio::sync::Mutex<Option<Rows>>,
}

impl KnownTiers {
    pub(super) fn of(&self, board: &Board) -> Option<Arc<Tiers>> {
        let by_board = self.by_board.read();
        let (generation, tiers) = by_board.get(board.name().as_str())?;
        (*generation == board.generation()).then(|| tiers.clone())
    }

    fn set(&self, rows: &Rows) {
        let tiers = rows.rows.iter().filter_map(|(board, text)| match parse(text) {
            Ok((generation, tiers)) => Some((board.clone(), (generation, Arc::new(tiers)))),
            Err(error) => {
                tracing::error!(board, error, "the tiers of a board cannot be read; set them again");
                None
            }
        });
        *self.by_board.write() = tiers.collect();
    }
}

fn parse(text: &str) -> Result<(Generation, Tiers), String> {
    let TiersRow { generation, tiers } = serde_json::from_str(text).map_err(|error| error.to_string())?;
    let generation = Generation::parse(&generation).ok_or("'generation' is not a number")?;
    Ok((generation, Tiers::from_forms(tiers).map_err(|error| error.to_string())?))
}

impl Service {
    /// Returns the tiers of a board. Two store calls.
    pub async fn tiers(&self, caller: &Caller, name: &BoardName) -> Result<Arc<Tiers>> {
        caller.require_board(name)?;
        let board = self.stored(name).await?;
        self.read_tiers().await?;
        Ok(self.tiers.of(&board).unwrap_or_default())
    }

    /// Replaces the tiers of a board; without any, its lines have none. Other instances know them within two seconds.
    ///
    /// Returns [`ServiceError::NotRanked`] for a board without a ranking, [`ServiceError::Tiers`] if a score is not possible on
    /// it, and [`ServiceError::TooManyTiers`] if there is no room for the tiers of more boards.
    pub async fn set_tiers(&self, caller: &Caller, name: &BoardName, tiers: Tiers) -> Result<Tiers> {
        caller.require(Scope::Manage)?;
        caller.require_board(name)?;
        // Not the board that this instance knows: another one of this name may exist by now.
        let board = self.stored(name).await?;
        ranked(&board.main())?;
        let tiers = tiers.shown_on(&board.main())?;
        let row = TiersRow { generation: board.generation().to_string(), tiers: tiers.forms() };
        let text = serde_json::to_string(&row).map_err(|error| StoreError::Backend { source: Box::new(error) })?;
        let text = Some(text).filter(|_| !tiers.is_empty());
        match self.change_tiers(name, text, |_| true).await {
            Err(ServiceError::Store(StoreError::TableFull { .. })) => Err(ServiceError::TooManyTiers),
            changed => changed.map(|()| tiers),
        }
    }

    /// Removes the tiers of a board that was removed. They have no effect on another one; this only makes room. Those of a
    /// new board of this name stay.
    pub(super) async fn remove_tiers(&self, board: &Board) {
        let is_of_board = |text: &str| parse(text).is_ok_and(|(generation, _)| generation == board.generation());
        if let Err(error) = self.change_tiers(board.name(), None, is_of_board).await {
            tracing::warn!(board = %board.name(), %error, "the tiers of a removed board stay in the store");
        }
    }

    /// Changes the row of a board, unless it has one that does not fulfill the condition.
    async fn change_tiers(
        &self,
        name: &BoardName,
        to: Option<String>,
        condition: impl Fn(&str) -> bool + Send,
    ) -> Result<()> {
        let mut table = self.tiers.table.lock().await;
        for _ in 0..ATTEMPTS {
            self.read_changed_tiers(&mut table).await?;
            let from = table.as_ref().and_then(|table| table.rows.get(name.as_str()));
            if from == to.as_ref() || from.is_some_and(|from| !condition(from)) {
                return Ok(());
            }
            if self.store.change_row(TableName::Tiers, name.as_str(), from.map(String::as_str), to.as_deref()).await? {
                return self.read_changed_tiers(&mut table).await;
            }
        }
        Err(StoreError::Overloaded { retry_after: Duration::from_secs(1) }.into())
    }

    /// Reads the tiers from the store, if they have changed. One store call.
    pub async fn read_tiers(&self) -> Result<()> {
        self.read_changed_tiers(&mut *self.tiers.table.lock().await).await
    }

    async fn read_changed_tiers(&self, table: &mut Option<Rows>) -> Result<()> {
        let known = table.as_ref().map(|table| table.version);
        if let Some(rows) = self.store.rows(TableName::Tiers, known).await? {
            self.tiers.set(&rows);
            *table = Some(rows);
        }
        Ok(())
    }

    /// Reads the tiers from the store, if they have changed and it answers within a second. Call it about once a second.
    pub(super) async fn keep_tiers(&self) {
        match tokio::time::timeout(PATIENCE, self.read_tiers()).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => tracing::debug!(%error, "the tiers were not read; they will be again in a second"),
            Err(_) => tracing::debug!("the tiers were not read within a second; they will be again in a second"),
        }
    }
}

/// The name of the tier of each line of a page; `None` if the board has no tiers.
pub type LineTiers = Option<Vec<Option<Arc<str>>>>;

/// Returns the tiers of the lines of a page. O(lines x tiers).
pub fn tiers_of_lines(track: &BoardTrack, page: &Page) -> LineTiers {
    let tiers = RankingTiers::of(track, page.total)?;
    let mut not_worse = page.not_worse;
    let mut worse = None;
    let mut names: Vec<_> = Vec::with_capacity(page.items.len());
    for (at, line) in page.items.iter().enumerate().rev() {
        // The lines that tie with this one end where the next worse score begins.
        if worse.is_some_and(|worse| worse != line.score) {
            not_worse = Some(page.first + at as u64 + 1);
        }
        worse = Some(line.score);
        names.push(tiers.tier(line.rank, not_worse, line.score).cloned());
    }
    names.reverse();
    Some(names)
}
