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
    /// Items and boards for which it was reported that the board does not count the item, which is sent again for
    /// others.
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
        let Added { accepted, duplicates, rejected, attributes_rejected, unknown_types } = added;
        self.delivery.meet_unknown(unknown_types);
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
        for rejection in attributes_rejected.into_iter().filter(|rejection| rejection.index < self.now().len()) {
            // It is counted, and yet not as its sender wants it.
            self.delivery.reject(&self.left[rejection.index], &rejection);
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
        if error.status() == Some(413) {
            match self.now().len() {
                // The others are not too large.
                1 => self.delivery.fail(&[self.left.remove(0)], error),
                sent => self.most = sent / 2,
            }
            return (!self.left.is_empty()).then_some(Duration::ZERO);
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

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use reqwest::header::HeaderMap;
    use tokio::time::advance;

    use super::*;
    use crate::Increment;
    use crate::delivery::Reports;
    use crate::item::sealed::Sealed;
    use crate::queue::{Batching, Next, Queue};

    fn batch(items: u64) -> Vec<Item> {
        let mut queue = Queue::new(Batching::default());
        for tag in 0..items {
            queue.add(Increment::new(&format!("s{tag}")).tag(tag).into_object(), Instant::now());
        }
        queue.hurry();
        let Next::Send(batch) = queue.next(Instant::now()) else { panic!("no batch is due") };
        batch
    }

    /// The tags and codes of items that were reported.
    type Told = Arc<Mutex<Vec<(u64, String)>>>;

    /// Returns a delivery, and what it reports.
    fn reporting(reports: Reports) -> (Delivery, Told) {
        let told = Told::default();
        let (of_rejected, of_failed) = (told.clone(), told.clone());
        let delivery = Delivery::new(Reports {
            on_rejected: Some(Box::new(move |item, rejection| {
                of_rejected.lock().unwrap().push((item.tag().unwrap(), rejection.code.clone()));
            })),
            on_failed: Some(Box::new(move |items, error| {
                let codes = items.iter().map(|item| (item.tag().unwrap(), error.code().to_owned()));
                of_failed.lock().unwrap().extend(codes);
            })),
            ..reports
        });
        (delivery, told)
    }

    fn answer(json: serde_json::Value) -> Result<Vec<u8>> {
        Ok(json.to_string().into_bytes())
    }

    fn problem(status: u16, code: &str) -> Result<Vec<u8>> {
        Err(Error::of_answer(status, &HeaderMap::new(), format!("{{\"code\":\"{code}\"}}").as_bytes()))
    }

    fn tags(sending: &Sending<'_>) -> Vec<u64> {
        sending.now().iter().filter_map(Item::tag).collect()
    }

    #[tokio::test(start_paused = true)]
    async fn items_that_count_are_done() {
        let (delivery, told) = reporting(Reports::default());
        let mut sending = Sending::new(&delivery, batch(3));
        assert!(sending.body("increments").starts_with(b"{\"increments\":[{\"subject\":\"s0\",\"id\":\""));
        let rejected = json!([{"index": 1, "code": "too_late", "detail": "it is"}]);
        assert_eq!(sending.take(answer(json!({"accepted": 1, "duplicates": 1, "rejected": rejected}))), None);
        let counts = delivery.counts();
        assert_eq!((counts.accepted, counts.duplicates, counts.rejected, counts.failed), (1, 1, 1, 0));
        assert_eq!(*told.lock().unwrap(), [(1, "too_late".to_owned())]);
    }

    #[tokio::test(start_paused = true)]
    async fn the_same_body_is_sent_again() {
        let (delivery, told) = reporting(Reports::default());
        let mut sending = Sending::new(&delivery, batch(3));
        let body = sending.body("increments");
        for error in [Error::timed_out(Duration::ZERO), Error::interrupted("cut")] {
            assert!(sending.take(Err(error)).is_some());
            assert_eq!(sending.body("increments"), body);
        }
        for (status, code) in [(503, "overloaded"), (429, "rate"), (409, "board_frozen"), (502, "")] {
            assert!(sending.take(problem(status, code)).is_some());
            assert_eq!(sending.body("increments"), body);
        }
        for wrong in [
            json!({}),
            json!([]),
            json!({"accepted": 3, "duplicates": 0, "rejected": [{"index": 3, "code": "too_late", "detail": ""}]}),
        ] {
            assert!(sending.take(answer(wrong)).is_some());
        }
        assert_eq!(delivery.counts(), crate::Counts::default());
        assert!(told.lock().unwrap().is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn what_the_service_refuses_fails_at_once() {
        for (status, code) in [(404, "unknown_board"), (401, "invalid_key"), (422, "invalid_field"), (301, "")] {
            let (delivery, told) = reporting(Reports::default());
            assert_eq!(Sending::new(&delivery, batch(2)).take(problem(status, code)), None);
            assert_eq!((delivery.counts().failed, told.lock().unwrap().len()), (2, 2));
        }
        let delivery = Delivery::default();
        Sending::new(&delivery, batch(1)).take(problem(404, "unknown_board"));
        Sending::new(&delivery, batch(1)).take(problem(403, "forbidden"));
        assert_eq!(delivery.take_failure().unwrap().code(), "unknown_board");
        assert!(delivery.take_failure().is_none());
    }

    #[tokio::test(start_paused = true)]
    async fn a_batch_that_is_too_large_is_divided() {
        let (delivery, told) = reporting(Reports::default());
        let mut sending = Sending::new(&delivery, batch(5));
        assert_eq!(sending.take(problem(413, "too_large")), Some(Duration::ZERO));
        assert_eq!(tags(&sending), [0, 1]);
        let counted = |items: u64| answer(json!({"accepted": items, "duplicates": 0, "rejected": []}));
        assert_eq!(sending.take(counted(2)), Some(Duration::ZERO));
        assert_eq!(tags(&sending), [2, 3]);
        assert_eq!(sending.take(problem(413, "too_large")), Some(Duration::ZERO));
        assert_eq!(tags(&sending), [2]);
        // The one that is too large by itself.
        assert_eq!(sending.take(problem(413, "too_large")), Some(Duration::ZERO));
        assert_eq!(tags(&sending), [3]);
        assert_eq!(sending.take(counted(1)), Some(Duration::ZERO));
        assert_eq!(tags(&sending), [4]);
        assert_eq!(sending.take(counted(1)), None);
        assert_eq!((delivery.counts().accepted, delivery.counts().failed), (4, 1));
        assert_eq!(*told.lock().unwrap(), [(2, "too_large".to_owned())]);
        assert_eq!(Sending::new(&delivery, batch(1)).take(problem(413, "too_large")), None);
    }

    #[tokio::test(start_paused = true)]
    async fn items_without_memory_are_sent_again() {
        let (delivery, told) = reporting(Reports::default());
        let mut sending = Sending::new(&delivery, batch(4));
        let rejection =
            |index: u64, board: &str, code: &str| json!({"index": index, "board": board, "code": code, "detail": ""});
        // Of an event, several boards may have no memory, and others refuse it each time.
        let rejected = [
            rejection(1, "a", "memory_full"),
            rejection(1, "b", "memory_full"),
            rejection(1, "c", "too_late"),
            rejection(2, "c", "too_late"),
            rejection(3, "a", "memory_full"),
        ];
        assert!(sending.take(answer(json!({"accepted": 1, "duplicates": 0, "rejected": rejected}))).is_some());
        assert_eq!(tags(&sending), [1, 3]);
        let rejected = [rejection(0, "c", "too_late"), rejection(1, "a", "memory_full")];
        assert!(sending.take(answer(json!({"accepted": 1, "duplicates": 0, "rejected": rejected}))).is_some());
        assert_eq!(tags(&sending), [3]);
        assert_eq!(sending.take(answer(json!({"accepted": 1, "duplicates": 0, "rejected": []}))), None);
        assert_eq!((delivery.counts().accepted, delivery.counts().rejected), (3, 2));
        assert_eq!(*told.lock().unwrap(), [(1, "too_late".to_owned()), (2, "too_late".to_owned())]);
    }

    #[tokio::test(start_paused = true)]
    async fn what_may_have_been_counted_is_given_up_before_ids_are_forgotten() {
        let (delivery, told) = reporting(Reports::default());
        let mut sending = Sending::new(&delivery, batch(1));
        for _ in 0..100 {
            // Certainly not counted: for ever.
            advance(Duration::from_secs(100)).await;
            assert!(sending.take(problem(503, "overloaded")).is_some());
        }
        assert!(sending.take(Err(Error::interrupted("cut"))).is_some());
        advance(Duration::from_secs(1_160)).await;
        assert!(sending.take(problem(503, "overloaded")).is_some());
        advance(Duration::from_secs(41)).await;
        assert_eq!(sending.take(problem(503, "overloaded")), None);
        assert_eq!(*told.lock().unwrap(), [(0, "overloaded".to_owned())]);
    }

    #[tokio::test(start_paused = true)]
    async fn what_was_not_counted_is_given_up_if_that_is_wanted() {
        let time = Some(Duration::from_secs(60));
        for refusal in [
            || problem(503, "overloaded"),
            || {
                let rejected = json!([{"index": 0, "code": "memory_full", "detail": ""}]);
                answer(json!({"accepted": 0, "duplicates": 0, "rejected": rejected}))
            },
        ] {
            let (delivery, told) = reporting(Reports { give_up_after: time, ..Reports::default() });
            let mut sending = Sending::new(&delivery, batch(1));
            assert!(sending.take(refusal()).is_some());
            advance(Duration::from_secs(61)).await;
            assert_eq!(sending.take(refusal()), None);
            assert_eq!((delivery.counts().failed, told.lock().unwrap().len()), (1, 1));
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_report_that_panics_stops_nothing() {
        let delivery =
            Delivery::new(Reports { on_rejected: Some(Box::new(|_, _| panic!("a test"))), ..Reports::default() });
        let rejected =
            json!([{"index": 0, "code": "too_late", "detail": ""}, {"index": 1, "code": "too_late", "detail": ""}]);
        let all = answer(json!({"accepted": 0, "duplicates": 0, "rejected": rejected}));
        assert_eq!(Sending::new(&delivery, batch(2)).take(all), None);
        assert_eq!(delivery.counts().rejected, 2);
    }
}
