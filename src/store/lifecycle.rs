//! What a store is, what its data costs, and how it is kept running.

use async_trait::async_trait;

use super::{BackedUp, BytesPerSubject, IdCost, Result};
use crate::board::{Board, BoardTrack, Timestamp};

/// A store apart from the data of its boards: what it is and what data costs, its clock, its upkeep and its end.
#[async_trait]
pub trait Lifecycle: Send + Sync + 'static {
    /// Returns a short name for logs and metrics: `embedded` or `redis`.
    fn kind(&self) -> &'static str;

    /// Estimates the memory of one subject in one track of a board that need not exist. No round trip.
    fn bytes_per_subject(&self, track: &BoardTrack) -> BytesPerSubject;

    /// Returns what the ids of a board cost. The board need not exist. No round trip.
    fn id_cost(&self, board: &Board) -> IdCost;

    /// Returns the number of shards that a new board with many keys gets, unless its definition says how many.
    fn default_shards(&self) -> Option<u32> {
        None
    }

    /// Returns the store's time. Redis: one round trip.
    async fn now(&self) -> Result<Timestamp>;

    /// Moves a simulated clock forward and returns the new time. Setting the current time again is allowed.
    ///
    /// Returns [`ClockBackward`](super::StoreError::ClockBackward) if `to` is earlier, and
    /// [`ClockNotSimulated`](super::StoreError::ClockNotSimulated) on a system clock.
    async fn set_clock(&self, to: Timestamp) -> Result<Timestamp>;

    /// Does a bounded amount of work that belongs to no board. Call it every few seconds. Returns whether nothing is
    /// left to do. Redis: records the time for instances that start later, and deletes the data of removed boards.
    async fn tidy_step(&self) -> Result<bool> {
        Ok(true)
    }

    /// Checks that the store can be reached and written to, and is still the one that was opened.
    ///
    /// Returns [`Emptied`](super::StoreError::Emptied) if all its data was deleted from outside the service. Then call
    /// [`reopen`](Self::reopen) and define its boards again.
    async fn check(&self) -> Result<()>;

    /// Makes a store that was emptied usable again: with a clock and without boards.
    async fn reopen(&self) -> Result<()> {
        Ok(())
    }

    /// Handles changes made from outside the service. Call it about once a second, one call at a time; a call may take
    /// minutes. Redis: detects that the server was restarted, and then audits each board.
    async fn tend(&self) -> Result<()> {
        Ok(())
    }

    /// Returns the conditions that an operator has to look at although the store works. No round trip.
    fn warnings(&self) -> Vec<String> {
        Vec::new()
    }

    /// Copies the data as it is at one instant, while reads and writes continue.
    ///
    /// Returns [`Unsupported`](super::StoreError::Unsupported) if the store cannot make backups or is not configured
    /// to.
    async fn backup(&self) -> Result<BackedUp>;

    /// Makes everything acknowledged as durable as possible. Called once, when no other call is running.
    async fn close(&self) -> Result<()>;
}
