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

/// What belongs to no board is looked after every so many ticks. Redis: the time that instances starting later compare
/// the clock with is no older than that.
const TICKS_BETWEEN_TIDYING: u64 = 10;

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
    /// The store is being looked after. Each ends by itself, and the next tick begins it again.
    tidying: Arc<AtomicBool>,
    tending: Arc<AtomicBool>,
    looking: Arc<AtomicBool>,
}

/// Clears its flag when it is dropped, so that a task which is aborted clears it too.
struct Busy(Arc<AtomicBool>);

impl Busy {
    /// `None` if the flag is set already.
    fn begin(flag: &Arc<AtomicBool>) -> Option<Self> {
        (!flag.swap(true, Ordering::AcqRel)).then(|| Self(flag.clone()))
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        self.0.store(false, Ordering::Release);
    }
}

impl Scheduler {
    /// Starts ticking.
    pub async fn start(service: Arc<Service>) -> Result<Self, JobSchedulerError> {
        let ticker = Arc::new(Ticker {
            service,
            ticks: AtomicU64::new(0),
            failing: AtomicBool::new(false),
            tidying: Arc::default(),
            running: Mutex::default(),
            tending: Arc::default(),
            looking: Arc::default(),
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
    async fn tick(self: &Arc<Self>) {
        let Ok(mut running) = self.running.try_lock() else { return };
        while running.try_join_next().is_some() {}
        let tick = self.ticks.fetch_add(1, Ordering::Relaxed);
        let list_again = tick.is_multiple_of(TICKS_BETWEEN_LISTS);
        if tick.is_multiple_of(TICKS_BETWEEN_TIDYING)
            && let Some(busy) = Busy::begin(&self.tidying)
        {
            let service = self.service.clone();
            running.spawn(async move {
                let _busy = busy;
                if let Err(error) = service.tidy().await {
                    tracing::debug!(%error, "the store was not tidied; the next time is in ten seconds");
                }
            });
        }
        if let Some(busy) = Busy::begin(&self.looking) {
            let service = self.service.clone();
            running.spawn(async move {
                let _busy = busy;
                // Whatever is wrong is told by readiness, and by every request.
                if let Err(error) = service.look_for_loss().await {
                    tracing::debug!(%error, "the store is not ready");
                }
            });
        }
        if let Some(busy) = Busy::begin(&self.tending) {
            let service = self.service.clone();
            running.spawn(async move {
                let _busy = busy;
                if let Err(error) = service.tend().await {
                    tracing::debug!(%error, "the store was not looked after; the next tick tries again");
                }
            });
        }
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
