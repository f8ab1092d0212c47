//! The two-hop count: the number of distinct values on one board, over all values on another.
//!
//! An example is *distinct devices of the users seen on this device*: `users-per-device` returns the users, and
//! `devices-per-user` returns the devices of each of them. Both boards store their values (COUNT_DISTINCT). Each hop is
//! bounded, and the result states whether a bound left something out.

use std::collections::HashSet;

use futures_util::stream::{self, StreamExt};

use super::{About, Result, Service, WindowChoice};
use crate::access::Caller;
use crate::board::{BoardName, BoardTrack, Counted, RankingKey, Subject, Timestamp};
use crate::store::Values;

/// The number of values that are looked up at the same time.
const AT_ONCE: usize = 32;

/// The largest number of distinct values held in memory. They are held so that each one is counted once.
const MAX_HELD: usize = 100_000;

/// A two-hop count to make.
#[derive(Clone, Debug)]
pub struct Hop {
    /// The board whose values of `subject` are the subjects on the other board.
    pub from: BoardName,
    /// The key of the ranking that `subject` is in, if the first board has keys.
    pub from_key: Option<RankingKey>,
    pub subject: Subject,
    /// The board whose values are counted.
    pub to: BoardName,
    /// The key of the ranking that the values are subjects of, if the second board has keys.
    pub to_key: Option<RankingKey>,
    /// The largest number of values that are followed from the first board, and that are read for each of them on the
    /// second board. The values last seen most recently are taken.
    pub most: u32,
}

/// The result of a two-hop count.
#[derive(Clone, Debug)]
pub struct HopAnswer {
    pub from: BoardTrack,
    pub to: BoardTrack,
    /// The number of values of the first board that were followed.
    pub followed: u64,
    /// The number of distinct values that they have on the second board.
    pub count: u64,
    /// Whether a bound, of the query or of a board, left something out.
    pub capped: bool,
    /// The store's time when the first board answered.
    pub as_of: Timestamp,
}

impl Service {
    /// Counts over two hops. Makes at most 1 + `most` store calls, some of them at the same time. Each returns the
    /// state of its own instant.
    ///
    /// Returns [`ServiceError::NoValues`](super::ServiceError::NoValues) if either board is not COUNT_DISTINCT.
    pub async fn hop(&self, caller: &Caller, hop: &Hop) -> Result<HopAnswer> {
        // Both before either is looked up.
        caller.require_board(&hop.from)?;
        let of_key = |by: &Option<RankingKey>| WindowChoice { by: by.clone(), ..WindowChoice::default() };
        let to = self.window(caller, &hop.to, of_key(&hop.to_key), None).await?;
        let from = self.window(caller, &hop.from, of_key(&hop.from_key), None).await?;
        // A second board without values is an error even if there is nothing to follow.
        super::reads::remembers_values(&to)?;
        let About { of: from, answer: first } = self.values(&from, &hop.subject, 0, hop.most).await?;
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
                if seen.len() < MAX_HELD {
                    seen.insert(value);
                } else {
                    capped |= !seen.contains(&value);
                }
            }
        }
        drop(pages);
        Ok(HopAnswer { from, to, followed, count: seen.len() as u64, capped, as_of: first.frame.as_of })
    }
}
