//! Reading rankings where they are: in the store, or, those of ended periods, in what is kept of them.
//!
//! While a period takes items, its ranking is one of the store, as any other. Once nothing is written to it any more it is
//! [packed](packing): its lines are written, the best first, to [sheets] of the store, whatever its metric, and all else of
//! it is dropped. A line takes a fourth of the memory then. What is left is the same on every store, and is
//! [read](reading) here.
//!
//! Lines never move. A hidden subject is [left out](hidden) by each read, and a removed one [leaves](removing) a line
//! without a name, so that the ranks of others stay.
//!
//! [sheets]: crate::store::Store::sheets

mod checking;
mod finding;
mod first;
mod hidden;
mod packing;
mod reading;
mod removing;
mod sheet;

use std::sync::Arc;

pub(super) use self::checking::{Checked, check};
pub(super) use self::first::Version;
use self::hidden::KnownLines;
use self::packing::Packing;
use self::reading::Reading;
use super::about::ATTEMPTS;
use super::{Result, Service, ServiceError};
use crate::board::{Board, BoardTrack, Percentile, Subject, Value};
use crate::store::{self, Distribution, Lookup, Page, PageStart, Standing, Store, StoreError};

/// The measured bytes of a line with a name of 12 bytes, its entry in the register included: see `docs/performance-features.md`.
pub(super) const LINE_BYTES: u64 = 25;

/// The rankings of a store: those that it keeps itself, and those of packed periods. Each read is that of [`Store`] of the
/// same name.
pub(super) struct Rankings {
    store: Arc<dyn Store>,
    known: KnownLines,
    /// One of them is held while a subject is removed from a period.
    removing: [tokio::sync::Mutex<()>; 16],
}

/// Reads the ranking of a track where it is.
macro_rules! read {
    ($self:ident, $track:ident, $read:ident($($argument:expr),*)) => {
        match $track.packed() {
            None => $self.store.$read($track, $($argument),*).await,
            Some(packed) => {
                let read = async {
                    Reading::begin(&*$self.store, &$self.known, $track, packed).await?.$read($($argument),*).await
                };
                // Boxed, because every read would have room for what only those of packed periods need.
                Box::pin(read).await.map_err(|error| about_period($track, error))
            }
        }
    };
}

/// Says which period cannot be read, of an error about its sheets.
fn about_period(track: &BoardTrack, error: StoreError) -> StoreError {
    let StoreError::Corrupt { detail } = error else { return error };
    let period = track.edition().period_name().map(|name| name.to_string()).unwrap_or_default();
    StoreError::DamagedPeriod { name: track.board().name().to_string(), period, detail }
}

impl Rankings {
    pub(super) fn new(store: Arc<dyn Store>) -> Self {
        Self { store, known: KnownLines::default(), removing: Default::default() }
    }

    pub(super) async fn page_from(&self, track: &BoardTrack, start: &PageStart, limit: u32) -> store::Result<Page> {
        read!(self, track, page_from(start, limit))
    }

    pub(super) async fn neighbors(&self, track: &BoardTrack, subject: &Subject, radius: u32) -> store::Result<Page> {
        read!(self, track, neighbors(subject, radius))
    }

    pub(super) async fn lookup(&self, track: &BoardTrack, subjects: &[Subject], ranks: bool) -> store::Result<Lookup> {
        read!(self, track, lookup(subjects, ranks))
    }

    pub(super) async fn standing(&self, track: &BoardTrack, subject: &Subject) -> store::Result<Standing> {
        read!(self, track, standing(subject))
    }

    pub(super) async fn distribution(
        &self,
        track: &BoardTrack,
        percentiles: &[Percentile],
        scores: &[Value],
    ) -> store::Result<Distribution> {
        read!(self, track, distribution(percentiles, scores))
    }
}

impl Service {
    /// Packs the ended periods of a board of which this is still to be done, the oldest first. Returns whether all of them
    /// are: if not, another instance is packing one.
    pub async fn pack_periods(&self, board: &Arc<Board>) -> Result<bool> {
        let (mut board, mut attempts) = (board.clone(), ATTEMPTS);
        while let Some(period) = board.each_period().filter(|period| period.is_to_be_packed()).last() {
            let track = period.main_track();
            board = match Packing::of(&*self.store, &track).run().await {
                Ok(Some(packed)) => {
                    let pack = |board: &Arc<Board>| Ok(board.with_packed(track.id(), packed));
                    self.change_stored_editions(board.name(), pack).await?
                }
                Ok(None) => return Ok(false),
                // A period has ended meanwhile.
                Err(StoreError::StaleEpoch) if attempts > 0 => {
                    attempts -= 1;
                    self.refreshed(&board).await?
                }
                Err(error) => return Err(error.into()),
            };
        }
        Ok(true)
    }

    /// Packs the ended periods of all boards that this instance knows.
    pub(super) async fn keep_packing(&self) {
        for board in self.registry.with_periods_to_pack() {
            match self.pack_periods(&board).await {
                Err(ServiceError::Store(error @ (StoreError::Corrupt { .. } | StoreError::Unsupported { .. }))) => {
                    tracing::warn!(board = %board.name(), %error, "an ended period cannot be packed");
                }
                // As long as the store takes no writes, and when the board has just got other editions.
                Err(error) => {
                    tracing::debug!(board = %board.name(), %error, "an ended period was not packed; the next tick retries");
                }
                Ok(_) => {}
            }
        }
    }
}
