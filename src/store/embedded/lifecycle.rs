//! The implementation of [`Lifecycle`].

use async_trait::async_trait;

use super::clock::Clock;
use super::log_operations::LogOperations;
use super::{Embedded, metrics, sizing};
use crate::board::{Board, BoardTrack, Timestamp};
use crate::store::{BackedUp, BytesPerSubject, IdCost, Lifecycle, Result, StoreError};

#[async_trait]
impl Lifecycle for Embedded {
    fn kind(&self) -> &'static str {
        "embedded"
    }

    fn bytes_per_subject(&self, track: &BoardTrack) -> BytesPerSubject {
        sizing::bytes_per_subject(track)
    }

    fn id_cost(&self, board: &Board) -> IdCost {
        sizing::id_cost(board)
    }

    async fn now(&self) -> Result<Timestamp> {
        Ok(self.clock.now())
    }

    async fn set_clock(&self, to: Timestamp) -> Result<Timestamp> {
        let Clock::Simulated(clock) = &*self.clock else { return Err(StoreError::ClockNotSimulated) };
        let mut operations = LogOperations::of_store();
        operations.simulated(to.millis());
        let _permit = self.journal().admit(operations.len())?;
        let ticket = {
            let mut now = clock.lock();
            if to < *now {
                return Err(StoreError::ClockBackward { now: *now });
            }
            *now = to;
            self.journal().append_with_ticket(&operations).1
        };
        self.journal().wait(ticket).await?;
        Ok(to)
    }

    async fn check(&self) -> Result<()> {
        let standing = self.doubted_clock();
        metrics::clock_doubted(standing.is_some() || self.clock.is_doubted());
        if let Some(reason) = self.journal().refusal() {
            return Err(StoreError::ReadOnly { reason });
        }
        standing.map_or(Ok(()), Err)
    }

    fn warnings(&self) -> Vec<String> {
        self.memory.warning().into_iter().collect()
    }

    async fn backup(&self) -> Result<BackedUp> {
        self.engine.back_up().await
    }

    async fn close(&self) -> Result<()> {
        self.engine.close().await
    }
}
