//! What becomes of items that are sent.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::answers::Rejection;
use crate::{Error, Item};

/// The largest number of types of events of which it is said that no board counts them.
const MOST_TYPES: usize = 100;

type OnRejected = Box<dyn Fn(&Item, &Rejection) + Send + Sync>;
type OnFailed = Box<dyn Fn(&[Item], &Error) + Send + Sync>;

/// What is told to whom, and when sending ends.
pub(crate) struct Reports {
    pub(crate) on_rejected: Option<OnRejected>,
    pub(crate) on_failed: Option<OnFailed>,
    /// The time for which a batch is sent again that certainly was not counted. None for ever.
    pub(crate) give_up_after: Option<Duration>,
    /// The time for which a batch is sent again that may have been counted.
    pub(crate) unknown_for: Duration,
}

impl Default for Reports {
    fn default() -> Self {
        Self { on_rejected: None, on_failed: None, give_up_after: None, unknown_for: Duration::from_secs(1_200) }
    }
}

impl fmt::Debug for Reports {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { on_rejected, on_failed, give_up_after, unknown_for } = self;
        f.debug_struct("Reports")
            .field("on_rejected", &on_rejected.is_some())
            .field("on_failed", &on_failed.is_some())
            .field("give_up_after", give_up_after)
            .field("unknown_for", unknown_for)
            .finish()
    }
}

/// The numbers of items of a [`Sender`](crate::Sender), by what became of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Counts {
    /// Those that the service has counted; of events, those that at least one board has counted.
    pub accepted: u64,
    /// Those that the service had counted before: that were given the same id, or whose first answer was lost.
    pub duplicates: u64,
    /// Those that the service does not count. An event counts here for each board that does not count it.
    pub rejected: u64,
    /// Those of requests that the service refuses as a whole, or that were given up.
    pub failed: u64,
    /// Events of types that no board counts. The first of each type is logged.
    pub unknown: u64,
    /// Those for which [`offer`](crate::Sender::offer) had no room.
    pub dropped: u64,
    /// Those whose amounts were added to that of another item, which is in one of the other numbers.
    pub combined: u64,
    /// Those that wait, or are on their way.
    pub waiting: u64,
}

/// What became of the items of one sender.
#[derive(Default)]
pub(crate) struct Delivery {
    pub(crate) reports: Reports,
    done: Mutex<Done>,
}

#[derive(Default)]
struct Done {
    counts: Counts,
    first_failure: Option<Error>,
    /// Types of events that no board counts, of which that was said.
    unknown_types: BTreeSet<String>,
}

impl Delivery {
    pub(crate) fn new(reports: Reports) -> Self {
        Self { reports, ..Self::default() }
    }

    fn done(&self) -> MutexGuard<'_, Done> {
        self.done.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the numbers, but for those that the queue knows.
    pub(crate) fn counts(&self) -> Counts {
        self.done().counts
    }

    pub(crate) fn count(&self, change: impl FnOnce(&mut Counts)) {
        change(&mut self.done().counts);
    }

    /// Returns the first failure that nobody was told.
    pub(crate) fn take_failure(&self) -> Option<Error> {
        self.done().first_failure.take()
    }

    pub(crate) fn reject(&self, item: &Item, rejection: &Rejection) {
        self.count(|counts| counts.rejected += 1);
        match &self.reports.on_rejected {
            Some(report) => safely(|| report(item, rejection)),
            None => {
                let Rejection { code, detail, .. } = rejection;
                tracing::warn!(code, detail, item = item.as_json(), "an item is not counted");
            }
        }
    }

    /// Counts events of types that no board counts, and says so once for each type: it may be mistyped.
    pub(crate) fn meet_unknown(&self, types: BTreeMap<String, u64>) {
        if types.is_empty() {
            return;
        }
        let mut done = self.done();
        for (kind, number) in types {
            done.counts.unknown += number;
            if done.unknown_types.len() < MOST_TYPES && done.unknown_types.insert(kind.clone()) {
                tracing::warn!(r#type = kind, "no board counts events of this type");
            }
        }
    }

    pub(crate) fn fail(&self, items: &[Item], error: Error) {
        self.count(|counts| counts.failed += items.len() as u64);
        match &self.reports.on_failed {
            Some(report) => safely(|| report(items, &error)),
            None => {
                tracing::error!(%error, items = items.len(), "items were not sent");
                self.done().first_failure.get_or_insert(error);
            }
        }
    }
}

/// Calls a function of the user. If it panics, the items after it must be sent all the same.
fn safely(report: impl FnOnce()) {
    if catch_unwind(AssertUnwindSafe(report)).is_err() {
        tracing::error!("a function that takes reports has panicked");
    }
}
