//! The questions that wait to be sent to one node. Equal questions are sent once, and all that wait are sent together.
//!
//! A question is removed from the lane before anything is sent for it, and an equal question can join it only while it
//! is on the lane. So the read that answers it begins after all its callers have asked, and no answer is older than its
//! request.
//!
//! A question that arrives when no flight is under way is sent at once. One that arrives during a flight is sent when
//! the flight is answered, or [`HOLD`] after the flight was sent. So a distant or busy server delays a question by no
//! more than that, and one read of a near server answers many callers.

use std::collections::{HashMap, VecDeque};
use std::time::Duration;

use parking_lot::Mutex;
use rapidhash::fast::RandomState;
use tokio::sync::Notify;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until};

/// The longest time for which questions wait for the flight before them to be answered.
const HOLD: Duration = Duration::from_millis(2);
/// The largest weight of a flight, in cells, unless a single question weighs more. This is 2 to 5 ms of a server's
/// time, in which it serves no other requests.
const FLIGHT: u64 = 2_048;

/// A question that can wait on a lane, with its callers.
pub(super) trait Queued: Sized + Send + 'static {
    fn weight(&self) -> u64;
    /// Returns a hash. Equal questions have the same one.
    fn hash(&self, hasher: &RandomState) -> u64;
    /// Returns whether no caller waits any longer.
    fn is_abandoned(&self) -> bool;
    /// Adds the callers of an equal question. Returns a question that is not equal.
    fn join(&mut self, other: Self) -> Option<Self>;
}

#[derive(Debug)]
pub(super) struct ReadLane<Q> {
    /// Locked to add or take questions, never across an await.
    state: Mutex<LaneState<Q>>,
    arrived: Notify,
    hasher: RandomState,
}

#[derive(Debug)]
struct LaneState<Q> {
    /// The questions in the order of their arrival, each with its hash.
    waiting: VecDeque<(u64, Q)>,
    /// The number of questions that were taken.
    taken: usize,
    /// The number of questions that arrived before the one with this hash. If different questions have the same hash,
    /// only the last of them is here, and the others cannot be joined.
    by_hash: HashMap<u64, usize, RandomState>,
    closed: bool,
}

impl<Q> Default for ReadLane<Q> {
    fn default() -> Self {
        let state = LaneState { waiting: VecDeque::new(), taken: 0, by_hash: HashMap::default(), closed: false };
        Self { state: Mutex::new(state), arrived: Notify::new(), hasher: RandomState::default() }
    }
}

impl<Q: Queued> ReadLane<Q> {
    /// Adds a question. It is sent once the lane is [told to go](Self::go), or together with others before that.
    pub fn add(&self, question: Q) {
        let hash = question.hash(&self.hasher);
        self.state.lock().add(hash, question);
    }

    /// Wakes the lane, so that the waiting questions are sent.
    pub fn go(&self) {
        self.arrived.notify_one();
    }

    /// Ends [`run`](Self::run) once no question waits.
    pub fn close(&self) {
        self.state.lock().closed = true;
        self.arrived.notify_one();
    }

    /// Sends waiting questions until the lane is closed. `fly` must answer all questions that it receives. At most
    /// `most` flights are under way at the same time.
    pub async fn run<F>(&self, most: usize, fly: impl Fn(Vec<Q>) -> F)
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let mut flights = JoinSet::new();
        let mut held = Instant::now();
        loop {
            let (waits, closed) = {
                let state = self.state.lock();
                (!state.waiting.is_empty(), state.closed)
            };
            if waits && (flights.is_empty() || flights.len() < most && Instant::now() >= held) {
                let taken = self.state.lock().take();
                held = Instant::now() + HOLD;
                // Boxed, because starting a task moves its future several times.
                flights.spawn(Box::pin(fly(taken)));
                continue;
            }
            tokio::select! {
                _ = flights.join_next(), if !flights.is_empty() => {}
                () = self.arrived.notified(), if !waits && !closed => {}
                () = sleep_until(held), if waits && flights.len() < most => {}
                else => return,
            }
        }
    }
}

impl<Q: Queued> LaneState<Q> {
    /// Adds the callers to an equal question that waits, or the question.
    fn add(&mut self, hash: u64, question: Q) {
        let place = self.by_hash.get(&hash).and_then(|number| number.checked_sub(self.taken));
        let left = match place.and_then(|place| self.waiting.get_mut(place)) {
            Some((_, other)) => other.join(question),
            None => Some(question),
        };
        if let Some(question) = left {
            self.by_hash.insert(hash, self.taken + self.waiting.len());
            self.waiting.push_back((hash, question));
        }
    }

    /// Takes the questions of the next flight. Those without callers are dropped.
    fn take(&mut self) -> Vec<Q> {
        let (mut flight, mut weight) = (Vec::new(), 0);
        while let Some((_, next)) = self.waiting.front() {
            let more = if next.is_abandoned() { 0 } else { next.weight() };
            if !flight.is_empty() && weight + more > FLIGHT {
                break;
            }
            let Some((hash, next)) = self.waiting.pop_front() else { break };
            if self.by_hash.get(&hash) == Some(&self.taken) {
                self.by_hash.remove(&hash);
            }
            self.taken += 1;
            if more > 0 {
                weight += more;
                flight.push(next);
            }
        }
        flight
    }
}

#[cfg(test)]
mod tests {
    use std::any::Any;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::super::asked::{Answered, Asked, Pending, answer_of};
    use super::super::question::tests::{part, window};
    use super::super::question::{Question, Read};
    use super::super::subject::{SubjectRead, SubjectSlots};
    use super::*;
    use crate::store::redis::servers::ServerFailure;

    type Lane = ReadLane<Box<dyn Pending>>;

    fn ask<R: Read>(lane: &Lane, question: Question<R>) -> Answered<R::Reply> {
        let (asked, answered) = Asked::new(question);
        lane.add(Box::new(asked));
        lane.go();
        answered
    }

    /// Takes the questions of a flight. Returns the subject of each and the number of its callers.
    fn take(lane: &Lane) -> Vec<(String, usize)> {
        let about = |pending: Box<dyn Pending>| {
            let asked = (pending as Box<dyn Any>).downcast::<Asked<SubjectRead>>().unwrap();
            (asked.question.read.subject.to_string(), asked.callers())
        };
        lane.state.lock().take().into_iter().map(about).collect()
    }

    fn of(subjects: &[(&str, usize)]) -> Vec<(String, usize)> {
        subjects.iter().map(|(subject, callers)| ((*subject).to_owned(), *callers)).collect()
    }

    #[test]
    fn equal_questions_are_combined_until_they_are_sent() {
        let part = part("COUNT(2h, e, s)", "1h", true);
        let lane = Lane::default();
        let _answered = ["a", "b", "a", "a"].map(|who| ask(&lane, window(&part, who, 1)));
        assert_eq!(take(&lane), of(&[("a", 3), ("b", 1)]));
        // A question that was sent cannot be joined any longer.
        let _answered = ask(&lane, window(&part, "a", 1));
        assert_eq!(take(&lane), of(&[("a", 1)]));
        assert!(take(&lane).is_empty());
    }

    #[test]
    fn different_questions_with_the_same_hash_are_not_combined() {
        let part = part("COUNT(2h, e, s)", "1h", true);
        let lane = Lane::default();
        let mut answered = Vec::new();
        for who in ["a", "b", "b", "a", "b"] {
            let (asked, answer) = Asked::new(window(&part, who, 1));
            lane.state.lock().add(7, Box::new(asked));
            answered.push(answer);
        }
        assert_eq!(take(&lane), of(&[("a", 1), ("b", 2), ("a", 1), ("b", 1)]));
        assert!(lane.state.lock().by_hash.is_empty());
    }

    #[test]
    fn a_cancelled_question_is_not_sent() {
        let part = part("COUNT(2h, e, s)", "1h", true);
        let lane = Lane::default();
        let [first, second, _third] = ["a", "a", "b"].map(|who| ask(&lane, window(&part, who, 1)));
        drop((first, second));
        assert_eq!(take(&lane), of(&[("b", 1)]));
        let (first, _second) = (ask(&lane, window(&part, "a", 1)), ask(&lane, window(&part, "a", 1)));
        drop(first);
        assert_eq!(take(&lane).len(), 1);
    }

    #[test]
    fn the_weight_of_a_flight_is_bounded() {
        let part = part("COUNT(2000m, e, s)", "1m", true);
        let lane = Lane::default();
        let _answered: Vec<_> = (0..10).map(|name| ask(&lane, window(&part, &name.to_string(), 1_000))).collect();
        let sizes: Vec<usize> = std::iter::repeat_with(|| take(&lane).len()).take(6).collect();
        assert_eq!(sizes, [2, 2, 2, 2, 2, 0]);
    }

    /// There is one flight at a time while flights are fast. All questions are answered before the end.
    #[tokio::test]
    async fn questions_asked_during_a_flight_are_sent_with_the_next() {
        let part = part("COUNT(2h, e, s)", "1h", true);
        let lane = Arc::new(Lane::default());
        let flights = Arc::new(AtomicUsize::new(0));
        let (count, running) = (flights.clone(), lane.clone());
        let run = tokio::spawn(async move {
            let fly = |taken: Vec<Box<dyn Pending>>| {
                count.fetch_add(1, Ordering::SeqCst);
                async move {
                    tokio::task::yield_now().await;
                    taken.into_iter().for_each(|pending| pending.fail(ServerFailure::KeptChanging));
                }
            };
            running.run(8, fly).await;
        });
        let first: Answered<SubjectSlots> = ask(&lane, window(&part, "a", 1));
        tokio::task::yield_now().await;
        let rest: Vec<_> = (0..100).map(|i| ask(&lane, window(&part, &format!("s{}", i % 7), 1))).collect();
        assert!(matches!(answer_of(first).await, Err(ServerFailure::KeptChanging)));
        for each in rest {
            assert!(matches!(answer_of(each).await, Err(ServerFailure::KeptChanging)));
        }
        assert_eq!(flights.load(Ordering::SeqCst), 2);
        lane.close();
        run.await.unwrap();
    }
}
