//! The clock in use: readings for everything that judges them, the time recorded for later instances, and refusals
//! while a reading is doubted.

use metrics::{describe_gauge, gauge};
use redis::cmd;

use super::clock::read;
use super::partition_clock::PartitionClock;
use super::servers::{Channel, ServerFailure};
use super::session::Session;
use crate::board::Timestamp;
use crate::store::StoreError;

const DOUBTED: &str = "rolltop_clock_doubted";

/// Reads the server's clock, passes the reading to everything that judges it, and returns the time to use.
pub(super) async fn look(session: &Session) -> Result<Timestamp, ServerFailure> {
    let reading = read(&session.servers, &session.keys, session.simulated).await?;
    if session.simulated {
        return Ok(reading);
    }
    let monotonic = session.monotonic();
    for partition in session.partitions() {
        if partition.clock.is_standing() {
            partition.clock.learn(reading, monotonic);
        }
    }
    Ok(session.clock.learn(reading, monotonic))
}

/// Records the believed time, for instances that start later.
pub(super) async fn record(session: &Session) -> Result<(), ServerFailure> {
    if session.simulated {
        return Ok(());
    }
    look(session).await?;
    if let Some(believed) = session.clock.to_record() {
        let mut command = cmd("HSET");
        command.arg(session.keys.clock()).arg("seen").arg(believed.millis());
        session.servers.set(Channel::Calls, &command).await?;
    }
    Ok(())
}

/// Returns an error if the clock of a partition has been doubted since this instance started, so that the partition
/// must not be written to.
pub(super) async fn admit(session: &Session, clock: &PartitionClock) -> Result<(), StoreError> {
    if clock.is_standing() {
        // Boxed, because every write would move what only this needs.
        Box::pin(look(session)).await.map_err(|failure| session.servers.error(failure))?;
    }
    clock.doubt(session.monotonic()).map_or(Ok(()), Err)
}

/// Returns the reason why writes to some board are refused, if the clock has been doubted since this instance started.
/// Also exports whether the clock is doubted at all as a metric.
pub(super) fn check(session: &Session) -> Result<(), StoreError> {
    let monotonic = session.monotonic();
    let doubt = session.partitions().iter().find_map(|partition| partition.clock.doubt(monotonic));
    describe_gauge!(DOUBTED, "1 while the system clock is further ahead than expected and not trusted yet");
    gauge!(DOUBTED).set(if doubt.is_some() || session.clock.is_doubted() { 1.0 } else { 0.0 });
    doubt.map_or(Ok(()), Err)
}
