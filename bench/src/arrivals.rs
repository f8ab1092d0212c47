//! An open loop: requests become due at a fixed rate, independent of the state of earlier requests.
//!
//! In a closed loop a slow server receives fewer requests, so a pause of a second delays only one request for each
//! connection and hardly affects the percentiles. In an open loop every request that was due in that second counts,
//! with the time that it waited. This includes requests that were sent late because all connections were in use.

use std::num::NonZeroU32;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use tokio::sync::Semaphore;

use super::latencies::Latencies;

/// The longest sleep of the thread that releases requests, so that it soon notices that it should stop.
const LONGEST_SLEEP: Duration = Duration::from_millis(10);

/// The times at which requests are due, as times after the start: at even intervals.
#[derive(Clone, Copy, Debug)]
pub struct Schedule {
    per_second: NonZeroU32,
}

impl Schedule {
    /// Creates a schedule of this many requests a second.
    pub fn new(per_second: NonZeroU32) -> Self {
        Self { per_second }
    }

    /// Returns when the request with this number is due. The first has number 0.
    pub fn due(self, number: u64) -> Duration {
        // Computed from the number and not added up, so that rounding errors do not accumulate.
        let per_second = u64::from(self.per_second.get());
        let nanos = (number % per_second) * 1_000_000_000 / per_second;
        Duration::from_secs(number / per_second) + Duration::from_nanos(nanos)
    }

    /// Returns the number of requests that are due by this time.
    pub fn due_by(self, elapsed: Duration) -> u64 {
        let per_second = u64::from(self.per_second.get());
        let within = (u64::from(elapsed.subsec_nanos()) + 1) * per_second;
        elapsed.as_secs() * per_second + within.div_ceil(1_000_000_000)
    }
}

/// The queue of due requests of a schedule.
#[derive(Debug)]
pub struct Arrivals {
    schedule: Schedule,
    begun: Instant,
    /// One permit for each request that is due and not taken.
    due: Semaphore,
    /// The number of the next request to take.
    next: AtomicU64,
    /// The total number of requests. `u64::MAX` until the end, because it is not known before.
    all: AtomicU64,
}

impl Arrivals {
    /// Starts a schedule now.
    pub fn begin(schedule: Schedule) -> Self {
        let (next, all) = (AtomicU64::new(0), AtomicU64::new(u64::MAX));
        Self { schedule, begun: Instant::now(), due: Semaphore::new(0), next, all }
    }

    /// Waits until a request is due and takes it. Returns its number and the time when it was due, or `None` after the
    /// last request.
    pub async fn take(&self) -> Option<(u64, Instant)> {
        self.due.acquire().await.ok()?.forget();
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        (number < self.all.load(Ordering::Acquire)).then(|| (number, self.begun + self.schedule.due(number)))
    }

    /// Releases requests as they become due, until it is stopped. The requests that are due by then are the last.
    /// Returns the delays with which requests were released. `takers` is the number of tasks that call
    /// [`take`](Self::take): each of them is woken at the end.
    ///
    /// Blocks its thread: the operating system's sleep is precise to about 50 µs, a timer of the runtime only to a
    /// millisecond, and the difference would be counted as latency.
    pub fn release(&self, stop: &AtomicBool, takers: usize) -> Latencies {
        let mut lateness = Latencies::default();
        let mut released = 0;
        while !stop.load(Ordering::Relaxed) {
            let elapsed = self.begun.elapsed();
            let due = self.schedule.due_by(elapsed);
            for number in released..due {
                lateness.record(elapsed.saturating_sub(self.schedule.due(number)));
            }
            self.due.add_permits(usize::try_from(due - released).unwrap_or(Semaphore::MAX_PERMITS));
            released = due;
            let left = self.schedule.due(released).saturating_sub(self.begun.elapsed());
            std::thread::sleep(left.min(LONGEST_SLEEP));
        }
        self.all.store(released, Ordering::Release);
        self.due.add_permits(takers);
        lateness
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    fn schedule(per_second: u32) -> Schedule {
        Schedule::new(NonZeroU32::new(per_second).unwrap())
    }

    #[test]
    fn requests_are_due_at_even_intervals_without_drift() {
        let schedule = schedule(3);
        let due: Vec<u128> = (0..=6).map(|number| schedule.due(number).as_nanos()).collect();
        assert_eq!(
            due,
            [0, 333_333_333, 666_666_666, 1_000_000_000, 1_333_333_333, 1_666_666_666, 2_000_000_000],
            "thirds of a second"
        );
        assert_eq!(schedule.due(3 * 86_400), Duration::from_secs(86_400));
    }

    #[test]
    fn due_by_counts_the_requests_whose_time_has_come() {
        for per_second in [1, 3, 7, 1_000, 99_991, 1_000_000] {
            let schedule = schedule(per_second);
            assert_eq!(schedule.due_by(Duration::ZERO), 1, "the first is due at once");
            for number in [1, 2, 5, 1_000, 123_457] {
                let due = schedule.due(number);
                assert_eq!(schedule.due_by(due), number + 1, "{per_second}/s: {number} is due at {due:?}");
                let before = due - Duration::from_nanos(1);
                assert_eq!(schedule.due_by(before), number, "{per_second}/s: {number} is not due at {before:?}");
            }
        }
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn each_request_is_taken_once_and_none_before_it_is_due() {
        let arrivals = Arc::new(Arrivals::begin(schedule(2_000)));
        let stop = Arc::new(AtomicBool::new(false));
        let takers: Vec<_> = (0..3)
            .map(|_| {
                let arrivals = Arc::clone(&arrivals);
                tokio::spawn(async move {
                    let mut taken = Vec::new();
                    while let Some((number, due)) = arrivals.take().await {
                        assert!(due <= Instant::now(), "{number} was taken before it was due");
                        taken.push(number);
                    }
                    taken
                })
            })
            .collect();
        let releasing = {
            let (arrivals, stop) = (Arc::clone(&arrivals), Arc::clone(&stop));
            tokio::task::spawn_blocking(move || arrivals.release(&stop, 3))
        };
        let some_are_taken = async {
            while arrivals.next.load(Ordering::Relaxed) < 50 {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        };
        tokio::time::timeout(Duration::from_secs(30), some_are_taken).await.expect("requests are released");
        stop.store(true, Ordering::Relaxed);
        let released = releasing.await.unwrap().count();
        let mut all = Vec::new();
        for taker in takers {
            all.extend(taker.await.unwrap());
        }
        all.sort_unstable();
        assert_eq!(all, (0..released).collect::<Vec<_>>());
    }
}
