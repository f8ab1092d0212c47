//! The scheduler, which rolls boards over when they are due: a tick every second determines the due boards.
//!
//! A tick is idempotent. A tick that runs twice does nothing the second time, and the next tick makes up for one that
//! was missed. The job runs every UTC second. A board is due by its own calendar and the store's clock, so time zones
//! and clock changes have no effect on the cron expression.

use std::convert::Infallible;
use std::fmt::Display;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use tokio::sync::Mutex;
use tokio::task::JoinSet;
use tokio::time::MissedTickBehavior;
use tokio_cron_scheduler::{Job, JobScheduler, JobSchedulerError};

use super::Service;

const EVERY_SECOND: &str = "* * * * * *";

/// The number of ticks after which the list of boards is read from the store if it has changed, for boards that other
/// instances defined.
const TICKS_BETWEEN_LISTS: u64 = 15;

/// The number of ticks after which the work that belongs to no board is done. With Redis, it records the time with
/// which instances that start later compare their clock, so the recorded time is at most this old.
const TICKS_BETWEEN_TIDYING: u64 = 10;

/// The time after which the store is told again when keys were last used.
const BETWEEN_KEY_USES: Duration = Duration::from_secs(60);

/// A scheduler that rolls boards over when they are due, until it is stopped.
pub struct Scheduler {
    jobs: JobScheduler,
    ticker: Arc<Ticker>,
}

struct Ticker {
    service: Arc<Service>,
    ticks: AtomicU64,
    /// Whether the last tick failed. An outage is logged when it begins and when it ends, not every second.
    failing: AtomicBool,
    /// The work in progress, which is ended when the scheduler stops. Locked by one tick at a time, which also prevents
    /// ticks from overlapping.
    running: Mutex<JoinSet<()>>,
    tidying: Work,
    tending: Work,
    looking: Work,
    changing: Work,
    packing: Work,
}

/// A kind of work for the store, and whether it is in progress. A finished one is started again by a later tick.
#[derive(Default)]
struct Work(Arc<AtomicBool>);

impl Work {
    /// Begins the work as a task, unless it is in progress. An error is logged for debugging only: readiness and every
    /// request report those of the store, and a later tick tries again.
    fn begin<F, E>(&self, ticker: &Ticker, running: &mut JoinSet<()>, what: &'static str, work: fn(Arc<Service>) -> F)
    where
        F: Future<Output = Result<(), E>> + Send + 'static,
        E: Display + Send,
    {
        let Some(busy) = Busy::begin(&self.0) else { return };
        let work = work(ticker.service.clone());
        running.spawn(async move {
            let _busy = busy;
            if let Err(error) = work.await {
                tracing::debug!(%error, "{what} failed; a later tick tries again");
            }
        });
    }
}

/// A guard that clears its flag when it is dropped, even if its task is aborted.
struct Busy(Arc<AtomicBool>);

impl Busy {
    /// Sets the flag. Returns `None` if it is already set.
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
    /// Starts the scheduler.
    pub async fn start(service: Arc<Service>) -> Result<Self, JobSchedulerError> {
        let ticker = Arc::new(Ticker {
            service,
            ticks: AtomicU64::new(0),
            failing: AtomicBool::new(false),
            running: Mutex::default(),
            tidying: Work::default(),
            tending: Work::default(),
            looking: Work::default(),
            changing: Work::default(),
            packing: Work::default(),
        });
        let rolling = ticker.service.clone();
        ticker.running.lock().await.spawn(async move { rolling.keep_rolling_over().await });
        let keeping = ticker.service.clone();
        ticker.running.lock().await.spawn(async move { keep_keys(&keeping).await });
        let keeping = ticker.service.clone();
        ticker.running.lock().await.spawn(async move { keep_tiers(&keeping).await });
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

    /// Stops the scheduler. Rollovers in progress end between two steps. A later tick or another instance does the
    /// rest.
    pub async fn stop(mut self) {
        if let Err(error) = self.jobs.shutdown().await {
            tracing::warn!(%error, "the scheduler did not stop cleanly");
        }
        // A step is atomic in the store, so ending between steps loses nothing.
        self.ticker.running.lock().await.shutdown().await;
    }
}

/// Keeps the keys up to date, without end. A task of its own: a revoked key must not wait for other work of a tick.
async fn keep_keys(service: &Service) {
    let keep = async {
        let mut seconds = seconds();
        loop {
            seconds.tick().await;
            service.keep_keys().await;
        }
    };
    let record = async {
        loop {
            tokio::time::sleep(BETWEEN_KEY_USES).await;
            if let Err(error) = service.record_key_uses().await {
                tracing::debug!(%error, "the last use of keys is not recorded; it will be retried");
            }
        }
    };
    // Recording the uses of many keys takes long, and delays no revocation.
    tokio::join!(keep, record);
}

/// Keeps the tiers of boards up to date, without end.
async fn keep_tiers(service: &Service) {
    let mut seconds = seconds();
    loop {
        seconds.tick().await;
        service.keep_tiers().await;
    }
}

/// Returns the ticks of what is done each second; after a late one the next comes a second later.
fn seconds() -> tokio::time::Interval {
    let mut seconds = tokio::time::interval(Duration::from_secs(1));
    seconds.set_missed_tick_behavior(MissedTickBehavior::Delay);
    seconds
}

impl Ticker {
    async fn tick(self: &Arc<Self>) {
        let Ok(mut running) = self.running.try_lock() else { return };
        while running.try_join_next().is_some() {}
        let tick = self.ticks.fetch_add(1, Ordering::Relaxed);
        let list_again = tick.is_multiple_of(TICKS_BETWEEN_LISTS);
        if tick.is_multiple_of(TICKS_BETWEEN_TIDYING) {
            self.tidying.begin(
                self,
                &mut running,
                "cleanup of the store",
                |service| async move { service.tidy().await },
            );
        }
        self.looking.begin(self, &mut running, "the look for lost data", |service| async move {
            service.look_for_loss().await
        });
        self.tending.begin(
            self,
            &mut running,
            "maintenance of the store",
            |service| async move { service.tend().await },
        );
        self.changing.begin(self, &mut running, "work on successors of boards", |service| async move {
            service.tend_editions().await
        });
        self.packing.begin(self, &mut running, "packing of periods", |service| async move {
            service.keep_packing().await;
            Ok::<(), Infallible>(())
        });
        match self.service.find_due(list_again).await {
            Ok(()) => {
                if self.failing.swap(false, Ordering::Relaxed) {
                    tracing::info!("rollover has resumed");
                }
            }
            Err(error) => {
                if !self.failing.swap(true, Ordering::Relaxed) {
                    tracing::warn!(%error, "cannot determine which boards are due; retrying every second");
                }
            }
        }
    }
}
