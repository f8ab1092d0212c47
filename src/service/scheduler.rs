//! *When* boards roll over, and only when: one cheap tick a second asks which boards are due.
//!
//! A tick is idempotent, so one that comes twice does nothing and one that was missed is caught up by the next.
//! The job runs each UTC second; which board is due follows from its own calendar and the store's clock, so that
//! time zones and clock changes never reach the cron expression.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use tokio::sync::Mutex;
use tokio::task::JoinSet;
use tokio_cron_scheduler::{Job, JobScheduler, JobSchedulerError};

use super::Service;

const EVERY_SECOND: &str = "* * * * * *";

/// The list of boards is read from the store again every so many ticks, for boards that other instances defined.
const TICKS_BETWEEN_LISTS: u64 = 15;

/// Rolls boards over as they fall due, until it is stopped.
pub struct Scheduler {
    jobs: JobScheduler,
    ticker: Arc<Ticker>,
}

struct Ticker {
    service: Arc<Service>,
    ticks: AtomicU64,
    /// The last tick failed: an outage is logged when it begins and when it ends, not every second.
    failing: AtomicBool,
    /// Rollovers under way, to be waited for at the end. Locked by one tick at a time, which also keeps ticks
    /// from overlapping.
    running: Mutex<JoinSet<()>>,
}

impl Scheduler {
    /// Starts ticking.
    pub async fn start(service: Arc<Service>) -> Result<Self, JobSchedulerError> {
        let ticker = Arc::new(Ticker {
            service,
            ticks: AtomicU64::new(0),
            failing: AtomicBool::new(false),
            running: Mutex::default(),
        });
        let jobs = JobScheduler::new().await?;
        let on_tick = ticker.clone();
        jobs.add(Job::new_async_tz(EVERY_SECOND, chrono::Utc, move |_, _| {
            let ticker = on_tick.clone();
            Box::pin(async move { ticker.tick().await })
        })?)
        .await?;
        jobs.start().await?;
        Ok(Self { jobs, ticker })
    }

    /// Stops ticking and ends the rollovers under way between two steps; what is left of them is done by whoever
    /// comes next.
    pub async fn stop(mut self) {
        if let Err(error) = self.jobs.shutdown().await {
            tracing::warn!(%error, "the scheduler did not stop cleanly");
        }
        // A step is atomic in the store, so ending between steps loses nothing.
        self.ticker.running.lock().await.shutdown().await;
    }
}

impl Ticker {
    async fn tick(&self) {
        let Ok(mut running) = self.running.try_lock() else { return };
        while running.try_join_next().is_some() {}
        let list_again = self.ticks.fetch_add(1, Ordering::Relaxed).is_multiple_of(TICKS_BETWEEN_LISTS);
        match self.service.claim_due_boards(list_again).await {
            Ok(due) => {
                if self.failing.swap(false, Ordering::Relaxed) {
                    tracing::info!("boards roll over again");
                }
                for board in due {
                    let service = self.service.clone();
                    running.spawn(async move { service.scheduled_rollover(&board).await });
                }
            }
            Err(error) => {
                if !self.failing.swap(true, Ordering::Relaxed) {
                    tracing::warn!(%error, "cannot tell which boards are due; trying again every second");
                }
            }
        }
    }
}
