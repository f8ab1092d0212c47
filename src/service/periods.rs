//! The periods of a board with a season.

use std::sync::Arc;
use std::time::Duration;

use super::ranking_keys::in_ranking;
use super::{About, EditionChoice, Result, Service, ServiceError};
use crate::access::{Caller, Scope};
use crate::board::{AttributeNames, BoardEdition, BoardName, PeriodName, RankingKey, Timestamp};
use crate::store::Page;

/// The longest time, in milliseconds, for which the end of a closed period is awaited.
const LONGEST_WAIT: i64 = 3_000;

/// Which periods of a board are listed.
#[derive(Clone, Debug, Default)]
pub struct PeriodFilter {
    /// Only those to which nothing is written any more.
    pub is_final: bool,
    /// Only those that begin after the one of this name, whether the board still has that one or not.
    pub after: Option<PeriodName>,
    /// The largest number of them.
    pub limit: usize,
    /// The attributes that their lines show.
    pub attributes: Option<Arc<AttributeNames>>,
}

impl Service {
    /// Ends the current period of a board whose periods are closed by hand. If `period` names one that has ended
    /// already, nothing is done, so that a call can be repeated. Returns the closed period, and the one that is current
    /// now.
    ///
    /// Returns [`ServiceError::UnknownPeriod`] if the board has no period of that name, and
    /// [`ServiceError::NotClosed`] if it cannot be closed.
    pub async fn close_period(
        &self,
        caller: &Caller,
        name: &BoardName,
        period: Option<&PeriodName>,
    ) -> Result<[BoardEdition; 2]> {
        caller.require(Scope::Manage)?;
        let mut board = self.turned(&self.board(caller, name).await?).await?;
        let current = board.current();
        let wanted = match period {
            None => current.clone(),
            Some(period) => self.edition(caller, name, EditionChoice::Period(period.clone())).await?,
        };
        if wanted.id() == current.id() {
            let now = self.store.now().await?;
            let changed = self.change_editions(caller, name, |board| match board.edition().id() == wanted.id() {
                true if board.edition().period().is_some_and(|period| period.end < Timestamp::MAX)
                    && board.is_manual() =>
                {
                    Ok(None)
                }
                true => {
                    let closed = board.closed(now).map(Some);
                    closed.map_err(|reason| ServiceError::NotClosed { board: name.clone(), reason })
                }
                // Another caller has closed it.
                false => Ok(None),
            });
            board = changed.await?;
            // A store of several instances lets the period end a moment later.
            let end = board.edition().period().map_or(Timestamp::EPOCH, |period| period.end);
            let left = end.millis().saturating_sub(self.store.now().await?.millis());
            if (1..=LONGEST_WAIT).contains(&left) {
                tokio::time::sleep(Duration::from_millis(left.unsigned_abs())).await;
            }
        }
        let board = self.turned(&board).await?;
        let closed = board.each_period().find(|edition| edition.id() == wanted.id());
        Ok([closed.unwrap_or(wanted), board.current()])
    }

    /// Returns periods of a board, the oldest first, each with the first lines of its ranking: those of the key if the
    /// board has keys. Returns no lines on a board that has no ranking, or where no key is given. One store call for
    /// each period, and one more if the board has no season or its period has just ended.
    ///
    /// Returns [`ServiceError::NoSeason`] if the board has no season, and [`ServiceError::InvalidQuery`] if
    /// [`after`](PeriodFilter::after) cannot be the name of one of its periods.
    pub async fn periods(
        &self,
        caller: &Caller,
        name: &BoardName,
        filter: &PeriodFilter,
        key: Option<&RankingKey>,
        lines: u32,
    ) -> Result<Vec<(BoardEdition, Option<About<Page>>)>> {
        let board = self.turned(&self.board(caller, name).await?).await?;
        if board.season().is_none() {
            return Err(ServiceError::NoSeason(name.clone()));
        }
        if let Some((after, example)) = filter.after.as_ref().zip(board.edition().period_name())
            && !after.is_like(&example)
        {
            let detail = format!("'after' must be the name of a period, such as {example}");
            return Err(ServiceError::InvalidQuery { field: "after", detail });
        }
        let mut wanted: Vec<BoardEdition> = board
            .each_period()
            .filter(|edition| edition.is_final() || !filter.is_final)
            .filter(|edition| filter.after.as_ref() < edition.period_name().as_ref())
            .collect();
        // The one that has just ended comes after the one that follows it.
        wanted.sort_by_key(|edition| edition.period().map(|period| period.start));
        wanted.truncate(filter.limit);
        let tiers = self.tiers.of(&board);
        let mut periods = Vec::with_capacity(wanted.len());
        for edition in wanted {
            let mut track = edition.main_track().with_tiers(tiers.clone()).showing(filter.attributes.clone());
            if key.is_some() {
                track = in_ranking(track, key.cloned())?;
            }
            let has_ranking = track.is_ranked() && board.has_keys() == key.is_some();
            let page = match has_ranking.then(|| self.page(&track, 0, lines)) {
                None => None,
                Some(page) => match page.await {
                    // It has left the archive meanwhile.
                    Err(ServiceError::UnknownPeriod { .. }) => continue,
                    page => Some(page?),
                },
            };
            periods.push((page.as_ref().map_or(edition, |page| page.of.edition()), page));
        }
        Ok(periods)
    }
}
