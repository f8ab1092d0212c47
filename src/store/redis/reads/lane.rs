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
use tokio::sync::{Notify, oneshot};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until};

use super::question::{Answer, Question};
use crate::store::receive::receive;
use crate::store::redis::servers::ServerFailure;

/// The longest time for which questions wait for the flight before them to be answered.
const HOLD: Duration = Duration::from_millis(2);
/// The largest weight of a flight, in cells, unless a single question weighs more. This is 2 to 5 ms of a server's
/// time, in which it serves no other requests.
const FLIGHT: u64 = 2_048;

/// The callers that wait for an answer.
pub(super) type Waiting = Vec<oneshot::Sender<Result<Answer, ServerFailure>>>;

#[derive(Debug, Default)]
pub(super) struct Lane {
    /// Locked to add or take questions, never across an await.
    state: Mutex<State>,
    arrived: Notify,
}

#[derive(Debug, Default)]
struct State {
    order: VecDeque<Question>,
    waiting: HashMap<Question, Waiting, rapidhash::fast::RandomState>,
    closed: bool,
}

impl Lane {
    /// Adds a question.
    pub fn ask(&self, question: Question) -> oneshot::Receiver<Result<Answer, ServerFailure>> {
        let answered = self.state.lock().join(question);
        self.arrived.notify_one();
        answered
    }

    /// Adds a question without waking the lane. Others that belong to it follow, and then [`go`](Self::go).
    pub fn ask_with_others(&self, question: Question) -> oneshot::Receiver<Result<Answer, ServerFailure>> {
        self.state.lock().join(question)
    }

    /// Wakes the lane, so that the waiting questions are sent.
    pub fn go(&self) {
        self.arrived.notify_one();
    }

    /// Adds several questions in their order.
    pub fn ask_all(&self, questions: Vec<Question>) -> Vec<oneshot::Receiver<Result<Answer, ServerFailure>>> {
        let mut state = self.state.lock();
        let answered = questions.into_iter().map(|question| state.join(question)).collect();
        drop(state);
        self.arrived.notify_one();
        answered
    }

    /// Ends [`run`](Self::run) once no question waits.
    pub fn close(&self) {
        self.state.lock().closed = true;
        self.arrived.notify_one();
    }

    /// Sends waiting questions until the lane is closed. `fly` must answer all questions that it receives. At most
    /// `most` flights are under way at the same time.
    pub async fn run<F>(&self, most: usize, fly: impl Fn(Vec<(Question, Waiting)>) -> F)
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let mut flights = JoinSet::new();
        let mut held = Instant::now();
        loop {
            let (waits, closed) = {
                let state = self.state.lock();
                (!state.order.is_empty(), state.closed)
            };
            if waits && (flights.is_empty() || flights.len() < most && Instant::now() >= held) {
                let taken = self.state.lock().take();
                held = Instant::now() + HOLD;
                flights.spawn(fly(taken));
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

impl State {
    fn join(&mut self, question: Question) -> oneshot::Receiver<Result<Answer, ServerFailure>> {
        let (answer, answered) = oneshot::channel();
        match self.waiting.get_mut(&question) {
            Some(waiting) => waiting.push(answer),
            None => {
                self.order.push_back(question.clone());
                self.waiting.insert(question, vec![answer]);
            }
        }
        answered
    }

    /// Takes the questions of the next flight.
    fn take(&mut self) -> Vec<(Question, Waiting)> {
        let (mut taken, mut weight) = (Vec::new(), 0);
        while let Some(next) = self.order.front() {
            if self.waiting.get(next).is_some_and(|waiting| waiting.iter().all(oneshot::Sender::is_closed)) {
                // No caller waits any more.
                if let Some(left) = self.order.pop_front() {
                    self.waiting.remove(&left);
                }
                continue;
            }
            let more = next.weight();
            if !taken.is_empty() && weight + more > FLIGHT {
                break;
            }
            weight += more;
            taken.extend(self.order.pop_front().and_then(|question| self.waiting.remove_entry(&question)));
        }
        taken
    }
}

/// Waits for an answer.
pub(super) async fn answer_of(
    answered: oneshot::Receiver<Result<Answer, ServerFailure>>,
) -> Result<Answer, ServerFailure> {
    receive(answered)
        .await
        .unwrap_or_else(|stopped| Err(ServerFailure::Unknown(format!("the read thread has stopped: {stopped}"))))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::super::question::tests::{part, window};
    use super::*;

    fn subjects(taken: &[(Question, Waiting)]) -> Vec<(&str, usize)> {
        taken.iter().map(|(question, waiting)| (question.subject().unwrap().as_str(), waiting.len())).collect()
    }

    #[test]
    fn equal_questions_are_combined_until_they_are_sent() {
        let part = part("COUNT(2h, e, s)", "1h", true);
        let lane = Lane::default();
        let _answered = lane.ask_all(["a", "b", "a", "a"].map(|who| window(&part, who, 1)).to_vec());
        let taken = lane.state.lock().take();
        assert_eq!(subjects(&taken), [("a", 3), ("b", 1)]);
        // A question that was sent cannot be joined any more.
        let _answered = lane.ask(window(&part, "a", 1));
        assert_eq!(subjects(&lane.state.lock().take()), [("a", 1)]);
        assert!(lane.state.lock().take().is_empty());
    }

    #[test]
    fn a_cancelled_question_is_not_sent() {
        let part = part("COUNT(2h, e, s)", "1h", true);
        let lane = Lane::default();
        let [first, second, _third] = ["a", "a", "b"].map(|who| lane.ask(window(&part, who, 1)));
        drop((first, second));
        assert_eq!(subjects(&lane.state.lock().take()), [("b", 1)]);
        let (first, _second) = (lane.ask(window(&part, "a", 1)), lane.ask(window(&part, "a", 1)));
        drop(first);
        assert_eq!(subjects(&lane.state.lock().take()).len(), 1);
    }

    #[test]
    fn the_weight_of_a_flight_is_bounded() {
        let part = part("COUNT(2000m, e, s)", "1m", true);
        let lane = Lane::default();
        let names: Vec<String> = (0..10).map(|i| i.to_string()).collect();
        let _answered = lane.ask_all(names.iter().map(|name| window(&part, name, 1_000)).collect());
        let sizes: Vec<usize> = std::iter::repeat_with(|| lane.state.lock().take().len()).take(6).collect();
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
            let fly = |taken: Vec<(Question, Waiting)>| {
                count.fetch_add(1, Ordering::SeqCst);
                async move {
                    tokio::task::yield_now().await;
                    for (_, waiting) in taken {
                        for each in waiting {
                            drop(each.send(Err(ServerFailure::KeptChanging)));
                        }
                    }
                }
            };
            running.run(8, fly).await;
        });
        let first = lane.ask(window(&part, "a", 1));
        tokio::task::yield_now().await;
        let rest = lane.ask_all((0..100).map(|i| window(&part, &format!("s{}", i % 7), 1)).collect());
        assert!(matches!(answer_of(first).await, Err(ServerFailure::KeptChanging)));
        for each in rest {
            assert!(matches!(answer_of(each).await, Err(ServerFailure::KeptChanging)));
        }
        assert_eq!(flights.load(Ordering::SeqCst), 2);
        lane.close();
        run.await.unwrap();
    }
}
