//! Reads: questions that are asked at the same time are sent together, equal ones only once, and unchanged data is
//! not read again.
//!
//! A call puts its questions on a [`Lane`](lane) and waits. A separate thread takes the questions that wait on the lane
//! and sends them in one pipeline, a [flight](flight):
//!
//! - **ranked boards**: one script for each question, or one for all questions about the same slots (`subjects.lua`),
//!   so that the slots are named once for all of them;
//! - **unranked boards**: one command for each question, which reads the subject's only key. The caller checks what a
//!   script would check ([`look`]). Boards with `max_values` and subjects with many values need a script;
//! - **cached pages**: only a look at the board version ([`pages`]);
//! - **the first lines of one of several parts**: commands, between two looks at the part's version ([`first`]).
//!
//! A page of a board of several parts first waits on a different lane, where equal questions become one ([`merging`]).
//! Its parts are then asked like any others.
//!
//! | module | content |
//! |---|---|
//! | [`question`], [`share`] | the questions to a part, the answers, and the stamp of the state that an answer is from |
//! | [`lanes_by_weight`], [`lanes`], [`lane`] | the choice of a lane, the lanes of all nodes, and the questions that wait on one |
//! | [`flight`], [`pipeline`], [`pending`] | sending what waits, and asking again what the window moved under |
//! | [`scripted`], [`windows`], [`look`], [`first`] | how each kind of question is sent and its reply is read |
//! | [`pages`] | the cache |
//! | [`spread`], [`merging`] | boards of several parts |
//! | [`status`] | the state of a part as a whole |
//!
//! There are two lanes to each node, each with a connection of its own. A call that reads many cells uses the bulk
//! lane. It is sent in portions, so that it takes turns with other calls on that lane, and does not delay the calls on
//! the light lane.

mod first;
mod flight;
mod lane;
mod lanes;
mod lanes_by_weight;
mod look;
mod merging;
mod pages;
mod pending;
mod pipeline;
mod question;
mod scripted;
mod share;
mod spread;
mod status;
mod windows;

use std::collections::HashMap;
use std::sync::Arc;

use futures_util::stream::{self, StreamExt};
use parking_lot::Mutex;

use self::lane::{Lane, answer_of};
use self::lanes::Lanes;
use self::lanes_by_weight::{LIGHT, LanesByWeight};
use self::pages::Pages;
use self::question::{Answer, Question, What, mistaken};
use self::spread::Spread;
use self::status::status_of;
pub(super) use self::windows::remove;
use super::part::Part;
use super::parts::Parts;
use super::servers::{Channel, ServerFailure};
use super::session::Session;
use crate::board::Subject;
use crate::store::{Lookup, NextTo, Page, SlotContents, SlotQuery, Standing, Status, StoreError, Values, ValuesStart};

/// The largest weight of a portion of a call on the bulk lane, in cells, and the number of portions that wait at the
/// same time.
const PORTION: u64 = 2_048;
const PORTIONS: usize = 2;
/// The largest number of flights of a lane that are under way at the same time.
const LIGHT_FLIGHTS: usize = 8;
const BULK_FLIGHTS: usize = 1;

/// The reads of one store.
#[derive(Debug)]
pub(super) struct Reads {
    lanes: Arc<LanesByWeight>,
    /// The lane for pages of boards of several parts. A question about the first part stands for all parts.
    merging: Arc<Lane>,
}

impl Reads {
    /// Starts the two threads that send questions until [`close`](Self::close).
    pub fn start(session: &Arc<Session>) -> std::io::Result<Self> {
        let pages = Arc::<Pages>::default();
        let light = Lanes::start("rolltop-reads", session, &pages, Channel::Reads, LIGHT_FLIGHTS)?;
        let bulk = Lanes::start("rolltop-bulk", session, &pages, Channel::Bulk, BULK_FLIGHTS)?;
        let (lanes, merging) = (Arc::new(LanesByWeight { light, bulk, pages }), Arc::<Lane>::default());
        lanes.light.run(merging::run(session.clone(), lanes.clone(), merging.clone()));
        Ok(Self { lanes, merging })
    }

    /// Ends the threads once no question waits.
    pub fn close(&self) {
        self.merging.close();
    }

    async fn ask(&self, question: Question) -> Result<Answer, ServerFailure> {
        self.lanes.ask(question).await
    }

    /// Returns the reader for a board of several parts.
    fn spread<'a>(&'a self, parts: &'a Parts) -> Spread<'a> {
        Spread { lanes: &self.lanes, parts, with_slots: false, is_here: false }
    }

    pub async fn page(&self, parts: &Parts, offset: u64, limit: u32) -> Result<Page, ServerFailure> {
        let question = Question::new(parts.first().clone(), What::Page { offset, limit });
        match parts.only() {
            Some(_) => self.ask(question).await?.page(),
            None => answer_of(self.merging.ask(question)).await?.page(),
        }
    }

    /// Reads a page next to a place. Such pages are not cached: few callers ask for the same place.
    pub async fn beside(&self, parts: &Parts, next_to: &NextTo, limit: u32) -> Result<Page, ServerFailure> {
        let Some(part) = parts.only() else { return self.spread(parts).beside(next_to, limit).await };
        let what = What::Beside { next_to: next_to.clone(), limit };
        self.ask(Question::new(part.clone(), what)).await?.page()
    }

    pub async fn neighbors(&self, parts: &Parts, subject: &Subject, radius: u32) -> Result<Page, ServerFailure> {
        let Some(part) = parts.only() else { return self.spread(parts).neighbors(subject, radius).await };
        let what = What::Neighbors { subject: subject.clone(), radius };
        self.ask(Question::new(part.clone(), what)).await?.page()
    }

    pub async fn lookup(&self, parts: &Parts, subjects: &[Subject], ranks: bool) -> Result<Lookup, ServerFailure> {
        let Some(part) = parts.only() else { return self.spread(parts).lookup(subjects, ranks).await };
        let what = What::Lookup { subjects: subjects.to_vec(), ranks };
        match self.ask(Question::new(part.clone(), what)).await? {
            Answer::Lookup(lookup) => Ok(lookup),
            _ => Err(mistaken()),
        }
    }

    /// Reads the standing of a subject. On a board without a ranking, only the subject's own part is asked.
    pub async fn standing(&self, parts: &Parts, subject: &Subject) -> Result<Standing, ServerFailure> {
        let part = parts.of(subject);
        if part.board.is_ranked() && parts.only().is_none() {
            return Spread { with_slots: true, ..self.spread(parts) }.standing(subject).await;
        }
        match self.ask(Question::new(part.clone(), What::Standing(subject.clone()))).await? {
            Answer::Standing(standing) => Ok(standing),
            _ => Err(mistaken()),
        }
    }

    pub async fn values(
        &self,
        part: Arc<Part>,
        subject: &Subject,
        start: &ValuesStart,
        limit: u32,
    ) -> Result<Values, ServerFailure> {
        let what = What::Values { subject: subject.clone(), start: start.clone(), limit };
        match self.ask(Question::new(part, what)).await? {
            Answer::Values(values) => Ok(values),
            _ => Err(mistaken()),
        }
    }

    /// Reads windows, each independently. In each result, the outer error is that of the server; the inner one
    /// says that the requested slots do not all exist.
    pub async fn windows(
        &self,
        session: &Session,
        queries: Vec<SlotQuery>,
    ) -> Vec<Result<Result<SlotContents, StoreError>, ServerFailure>> {
        let question = |query: SlotQuery| {
            let SlotQuery { board, subject, range, as_of } = query;
            Question::new(session.part_for(&board, &subject), What::Window { subject, range, as_of })
        };
        let questions: Vec<Question> = queries.into_iter().map(question).collect();
        let weight: u64 = questions.iter().map(Question::weight).sum();
        if weight <= LIGHT {
            let answered = self.lanes.light.ask_all(questions);
            let mut answers = Vec::with_capacity(answered.len());
            for answered in answered {
                answers.push(answer_of(answered).await.and_then(Answer::window));
            }
            return answers;
        }
        let count = questions.len();
        let mut answers: Vec<_> = std::iter::repeat_with(|| Err(mistaken())).take(count).collect();
        let portions = stream::iter(portions(questions));
        // The nodes that did not answer. They are asked no more in this call: each portion would wait for its timeout.
        let silent: Mutex<HashMap<usize, ServerFailure>> = Mutex::default();
        let mut answered = portions
            .map(|portion| async {
                let (mut answers, mut asked, mut questions) = (Vec::new(), Vec::new(), Vec::new());
                for (place, question) in portion {
                    let node = session.servers.place(question.part.slot());
                    match silent.lock().get(&node) {
                        Some(failure) => answers.push((place, Err(failure.clone()))),
                        None => {
                            asked.push((place, node));
                            questions.push(question);
                        }
                    }
                }
                for ((place, node), answered) in asked.into_iter().zip(self.lanes.bulk.ask_all(questions)) {
                    let answer = answer_of(answered).await;
                    if let Err(failure @ (ServerFailure::Unreachable(_) | ServerFailure::Unknown(_))) = &answer {
                        silent.lock().insert(node, failure.clone());
                    }
                    answers.push((place, answer.and_then(Answer::window)));
                }
                answers
            })
            .buffer_unordered(PORTIONS);
        while let Some(portion) = answered.next().await {
            for (place, answer) in portion {
                answers[place] = answer;
            }
        }
        drop(answered);
        answers
    }
}

/// Divides questions, each with its index, into portions. Questions about the same slots of a board are next to each
/// other. Equal questions are in the same portion, in which they are sent once.
fn portions(questions: Vec<Question>) -> Vec<Vec<(usize, Question)>> {
    let mut questions: Vec<(usize, Question)> = questions.into_iter().enumerate().collect();
    questions.sort_by(|(_, a), (_, b)| a.order(b));
    let mut portions: Vec<Vec<(usize, Question)>> = Vec::new();
    let mut weight = 0;
    for (place, question) in questions {
        let last = portions.last_mut();
        let more = match last.as_ref().and_then(|portion| portion.last()) {
            Some((_, before)) if *before == question => 0,
            _ => question.weight(),
        };
        match last {
            Some(portion) if weight + more <= PORTION => {
                weight += more;
                portion.push((place, question));
            }
            _ => {
                weight = question.weight();
                portions.push(vec![(place, question)]);
            }
        }
    }
    portions
}

/// Returns the state of a board as a whole.
pub(super) async fn status(session: &Session, parts: &Parts) -> Result<Status, ServerFailure> {
    match parts.only() {
        Some(part) => status_of(session, part, None).await,
        None => spread::status(session, parts).await,
    }
}

#[cfg(test)]
mod tests {
    use super::question::tests::{part, window};
    use super::*;

    #[test]
    fn a_large_call_is_split_with_equal_questions_in_one_portion() {
        let (one, other) = (part("COUNT(2000m, e, s)", "1m", true), part("COUNT(2000m, e, s)", "1m", true));
        let questions: Vec<Question> =
            (0..40).map(|i| window([&one, &other][i % 2], &format!("s{}", i / 2 % 5), 1_000)).collect();
        let portions = portions(questions.clone());
        // There are ten different questions, two per portion.
        assert_eq!(portions.len(), 5);
        let mut places: Vec<usize> = portions.iter().flatten().map(|(place, _)| *place).collect();
        assert!(portions.iter().flatten().all(|(place, question)| questions[*place] == *question));
        places.sort_unstable();
        assert_eq!(places, (0..40).collect::<Vec<_>>());
    }
}
