//! The tiers of boards. They lie in a table of the store, and each instance knows all of them.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::RwLock;

use super::reads::ranked;
use super::{Page, Result, Service};
use crate::access::Caller;
use crate::board::{BoardName, BoardTrack, RankingTiers, TierForm, Tiers};
use crate::store::{Rows, StoreError, TableName};

/// The time after which reading the table is given up until the next second.
const PATIENCE: Duration = Duration::from_secs(1);
/// The number of attempts to change the tiers of a board while others change them.
const ATTEMPTS: usize = 8;

/// The tiers that this instance knows.
#[derive(Default)]
pub(super) struct KnownTiers {
    by_board: RwLock<HashMap<String, Arc<Tiers>>>,
    /// The table that they are from. Held while it is read or changed, so that an older answer does not replace a newer
    /// one.
    table: tokio::sync::Mutex<Option<Rows>>,
}

impl KnownTiers {
    pub(super) fn of(&self, board: &BoardName) -> Option<Arc<Tiers>> {
        self.by_board.read().get(board.as_str()).cloned()
    }

    fn set(&self, rows: &Rows) {
        let tiers = rows.rows.iter().filter_map(|(board, text)| match parse(text) {
            Ok(tiers) => Some((board.clone(), Arc::new(tiers))),
            Err(error) => {
                tracing::error!(board, error, "the tiers of a board cannot be read; set them again");
                None
            }
        });
        *self.by_board.write() = tiers.collect();
    }
}

fn parse(text: &str) -> Result<Tiers, String> {
    let forms: Vec<TierForm> = serde_json::from_str(text).map_err(|error| error.to_string())?;
    Tiers::from_forms(forms).map_err(|error| error.to_string())
}

impl Service {
    /// Returns the tiers of a board. One store call.
    pub async fn tiers(&self, caller: &Caller, name: &BoardName) -> Result<Arc<Tiers>> {
        let board = self.board(caller, name).await?;
        self.read_tiers().await?;
        Ok(self.tiers.of(board.name()).unwrap_or_default())
    }

    /// Replaces the tiers of a board; without any, its lines have none. Other instances know them within two seconds.
    ///
    /// Returns [`ServiceError::NotRanked`](super::ServiceError::NotRanked) for a board without a ranking, and
    /// [`ServiceError::Tiers`](super::ServiceError::Tiers) if a score is not possible on it.
    pub async fn set_tiers(&self, caller: &Caller, name: &BoardName, tiers: Tiers) -> Result<Arc<Tiers>> {
        let board = self.board(caller, name).await?;
        ranked(&board.main())?;
        tiers.check(&board.main())?;
        let text = serde_json::to_string(&tiers.forms());
        let text = text.map_err(|error| StoreError::Backend { source: Box::new(error) })?;
        self.change_tiers(name, Some(text).filter(|_| !tiers.is_empty())).await?;
        Ok(Arc::new(tiers))
    }

    /// Removes the tiers of a board that is about to be removed.
    pub(super) async fn remove_tiers(&self, name: &BoardName) -> Result<()> {
        self.change_tiers(name, None).await
    }

    async fn change_tiers(&self, name: &BoardName, to: Option<String>) -> Result<()> {
        let mut table = self.tiers.table.lock().await;
        for _ in 0..ATTEMPTS {
            self.read_changed_tiers(&mut table).await?;
            let from = table.as_ref().and_then(|table| table.rows.get(name.as_str()));
            if from == to.as_ref() {
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
