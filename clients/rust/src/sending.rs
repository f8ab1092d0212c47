//! A batch on its way.

use std::collections::HashSet;
use std::time::Duration;

use serde_json::json;
use tokio::time::Instant;

use crate::answers::{Added, Rejection};
use crate::delivery::Delivery;
use crate::pause::pause;
use crate::{Error, Item, Result};

/// The time between two messages that a batch cannot be sent.
const SAY_AGAIN: Duration = Duration::from_secs(60);
/// The code of a rejection that may pass.
const MEMORY_FULL: &str = "memory_full";

/// A batch, and what is known about it. It takes each answer, and says what to do then.
pub(crate) struct Sending<'a> {
    delivery: &'a Delivery,
    /// The items that have to be sent.
    left: Vec<Item>,
    /// The largest number of them in a request.
    most: usize,
    /// The number of failures since something was counted.
    attempt: u32,
    began: Instant,
    /// The time of the last message about it.
    said: Instant,
    /// The time since which the first items may have been counted.
    unknown_since: Option<Instant>,
    /// Items and boards for which it was reported that the board does not count the item, which is sent again for others.
    told: HashSet<(u64, Option<String>)>,
}

impl<'a> Sending<'a> {
    pub(crate) fn new(delivery: &'a Delivery, batch: Vec<Item>) -> Self {
        let (most, now) = (batch.len(), Instant::now());
        Self {
            delivery,
            left: batch,
            most,
            attempt: 0,
            began: now,
            said: now,
            unknown_since: None,
            told: HashSet::new(),
        }
    }

    /// Returns the body of the next request. `list` is the name of the list of items in it.
    pub(crate) fn body(&self, list: &str) -> Vec<u8> {
        let items: Vec<&str> = self.now().iter().map(Item::as_json).collect();
        format!("{{\"{list}\":[{}]}}", items.join(",")).into_bytes()
    }

    /// Returns the items of the next request.
    fn now(&self) -> &[Item] {
        &self.left[..self.most.min(self.left.len())]
    }

    /// Takes the answer. Returns the time until the next request, or `None` after the last one.
    pub(crate) fn take(&mut self, answer: Result<Vec<u8>>) -> Option<Duration> {
        match answer.and_then(|body| self.read(&body)) {
            Ok(added) => self.count(added),
            Err(error) => self.repeat(error),
        }
    }

    fn read(&self, body: &[u8]) -> Result<Added> {
        let wrong = |detail: &str| Error::unexpected(200, format!("an answer that is none of the API: {detail}"));
        let added: Added = serde_json::from_slice(body).map_err(|error| wrong(&error.to_string()))?;
        match added.rejected.iter().all(|rejection| rejection.index < self.now().len()) {
            true => Ok(added),
            false => Err(wrong("it is about an item that was not sent")),
        }
    }

    fn count(&mut self, added: Added) -> Option<Duration> {
        let Added { accepted, duplicates, rejected } = added;
        self.delivery.count(|counts| {
            counts.accepted += accepted;
            counts.duplicates += duplicates;
        });
        let (later, for_good): (Vec<_>, Vec<_>) = rejected.into_iter().partition(|one| one.code == MEMORY_FULL);
        let again: HashSet<usize> = later.iter().map(|rejection| rejection.index).collect();
        for rejection in &for_good {
            let item = &self.left[rejection.index];
            let told = (item.number, rejection.board.clone());
            let is_new = !self.told.contains(&told);
            if again.contains(&rejection.index) {
                self.told.insert(told);
            }
            if is_new {
                self.delivery.reject(item, rejection);
            }
        }
        let sent = self.now().len();
        let mut index = 0;
        self.left.retain(|_| {
            index += 1;
            index > sent || again.contains(&(index - 1))
        });
        self.unknown_since = None;
        let Some(reason) = later.into_iter().next() else {
            (self.began, self.attempt) = (Instant::now(), 0);
            return (!self.left.is_empty()).then_some(Duration::ZERO);
        };
        self.repeat(no_memory(reason))
    }

    /// Returns the time until the next request after this error, or gives up.
    fn repeat(&mut self, error: Error) -> Option<Duration> {
        if error.status() == Some(413) && self.now().len() > 1 {
            self.most = self.now().len() / 2;
            return Some(Duration::ZERO);
        }
        let now = Instant::now();
        if error.is_unknown() {
            self.unknown_since.get_or_insert(now);
        }
        let pause = pause(self.attempt, error.retry_after());
        if !error.is_transient() || self.is_over(now + pause) {
            self.delivery.fail(&self.left, error);
            return None;
        }
        if self.attempt == 2 || now - self.said > SAY_AGAIN {
            self.said = now;
            tracing::warn!(%error, items = self.left.len(), ?pause, "items are sent again");
        }
        self.attempt = self.attempt.saturating_add(1);
        Some(pause)
    }

    fn is_over(&self, then: Instant) -> bool {
        let reports = &self.delivery.reports;
        self.unknown_since.is_some_and(|since| then - since > reports.unknown_for)
            || reports.give_up_after.is_some_and(|time| then - self.began > time)
    }
}

/// Returns the error of items for which the service has no memory. They are certainly not counted.
fn no_memory(rejection: Rejection) -> Error {
    let problem = json!({"code": MEMORY_FULL, "detail": rejection.detail, "status": 503});
    Error::of_problem(problem.as_object().cloned().unwrap_or_default())
}
