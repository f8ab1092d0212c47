//! The two-hop count: the different values of one board over all the values of another.
//!
//! *Distinct devices of the users seen on this device*: `users-per-device` says which users, `devices-per-user` for each
//! of them which devices. Both remember their values (COUNT_DISTINCT). Bounded at every hop, and it says when a bound
//! cut something off.

use std::collections::HashSet;
use std::sync::Arc;

use futures_util::stream::{self, StreamExt};

use super::{About, Result, Service};
use crate::board::{Board, BoardName, Counted, Subject, Timestamp};
use crate::store::Values;

/// Values that are looked up at the same time.
const AT_ONCE: usize = 32;

/// The most different values that are held to be told apart.
const MOST_HELD: usize = 100_000;

/// Which values of which.
#[derive(Clone, Debug)]
pub struct Hop {
    /// The board whose values of `subject` are the subjects of the other.
    pub from: BoardName,
    pub subject: Subject,
    /// The board whose values are counted.
    pub to: BoardName,
    /// The most values that are followed from the first board, and the most that are read of each on the second; those
    /// last seen come first.
    pub most: u32,
}

/// What two hops find.
#[derive(Clone, Debug)]
pub struct Hopped {
    pub from: Arc<Board>,
    pub to: Arc<Board>,
    /// The values of the first board that were followed.
    pub followed: u64,
    /// How many different values they have on the second board.
    pub count: u64,
    /// A bound, of the question or of a board, left something out.
    pub capped: bool,
    /// The store's time when the first board answered.
    pub as_of: Timestamp,
}

impl Service {
    /// Counts over two hops. At most 1 + `most` store calls, some of them at the same time; each answers for its own
    /// instant. [`ServiceError::NoValues`](super::ServiceError::NoValues) if either board is not COUNT_DISTINCT.
    pub async fn hop(&self, hop: &Hop) -> Result<Hopped> {
        let from = self.board(&hop.from).await?;
        let to = self.board(&hop.to).await?;
        // Also where there is nothing to follow, a board that cannot be followed to is an error.
        super::remembers_values(&to)?;
        let About { board: from, answer: first } = self.values(&from, &hop.subject, 0, hop.most).await?;
        let followed = first.items.len() as u64;
        let mut capped = first.capped || first.total > followed;
        let subjects = first.items.into_iter().filter_map(|(value, _)| Subject::parse(value.as_str()).ok());
        let read = |subject: Subject| {
            let to = &to;
            async move { self.values(to, &subject, 0, hop.most).await }
        };
        let mut pages = stream::iter(subjects).map(read).buffer_unordered(AT_ONCE);
        let mut seen: HashSet<Counted, rapidhash::fast::RandomState> = HashSet::default();
        while let Some(page) = pages.next().await {
            let Values { total, items, capped: dropped, .. } = page?.answer;
            capped |= dropped || total > items.len() as u64;
            for (value, _) in items {
                if seen.len() < MOST_HELD {
                    seen.insert(value);
                } else {
                    capped |= !seen.contains(&value);
                }
            }
        }
        drop(pages);
        Ok(Hopped { from, to, followed, count: seen.len() as u64, capped, as_of: first.frame.as_of })
    }
}
