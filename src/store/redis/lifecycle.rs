//! The implementation of [`Lifecycle`].

use async_trait::async_trait;

use super::{RedisStore, clock, healing, health, removing, sizing, timekeeping};
use crate::board::{Board, BoardTrack, Timestamp};
use crate::store::{BackedUp, BytesPerSubject, IdCost, Lifecycle, Result, StoreError};

/// The number of partitions of a new board with many keys on a cluster.
const SHARDS_OF_KEYS: u32 = 64;

#[async_trait]
impl Lifecycle for RedisStore {
    fn kind(&self) -> &'static str {
        "redis"
    }

    fn bytes_per_subject(&self, track: &BoardTrack) -> BytesPerSubject {
        sizing::bytes_per_subject(&self.session.keys, track)
    }

    fn id_cost(&self, board: &Board) -> IdCost {
        sizing::id_cost(board)
    }

    fn default_shards(&self) -> Option<u32> {
        // On one server, more partitions would only make more calls.
        self.session.servers.is_cluster().then_some(SHARDS_OF_KEYS)
    }

    async fn now(&self) -> Result<Timestamp> {
        timekeeping::look(&self.session).await.map_err(|failure| self.error(failure))
    }

    async fn set_clock(&self, to: Timestamp) -> Result<Timestamp> {
        if !self.session.simulated {
            return Err(StoreError::ClockNotSimulated);
        }
        clock::set(&self.session.servers, &self.session.keys, to).await
    }

    async fn tidy_step(&self) -> Result<bool> {
        timekeeping::record(&self.session).await.map_err(|failure| self.error(failure))?;
        removing::go_on(&self.session).await.map_err(|failure| self.error(failure))
    }

    async fn check(&self) -> Result<()> {
        if !self.session.simulated {
            timekeeping::look(&self.session).await.map_err(|failure| self.error(failure))?;
        }
        let checked = health::check(&self.session).await;
        timekeeping::check(&self.session).and(checked)
    }

    async fn reopen(&self) -> Result<()> {
        health::reopen(&self.session).await
    }

    async fn tend(&self) -> Result<()> {
        healing::tend(&self.session).await.map_err(|failure| self.error(failure))
    }

    fn warnings(&self) -> Vec<String> {
        self.session.health.warnings(self.session.monotonic())
    }

    async fn backup(&self) -> Result<BackedUp> {
        let detail = "a Redis store is backed up by the server's own means: BGSAVE, or a copy of its append-only files";
        Err(StoreError::Unsupported { detail: detail.to_owned() })
    }

    /// Does nothing: the server already has everything that was acknowledged.
    async fn close(&self) -> Result<()> {
        Ok(())
    }
}
