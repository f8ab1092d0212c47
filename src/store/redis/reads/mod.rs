//! Reads: questions that are asked at the same time are sent together, equal ones only once, and unchanged data is
//! not read again.
//!
//! A call puts its questions on a [`ReadLane`](lane::ReadLane) and waits. A separate thread takes the questions that
//! wait on the lane and sends them in one pipeline, a [flight](flight). Each kind of read is a type that implements
//! [`Read`](question::Read): its cost, its script and arguments, how its reply is read, and whether a [look](look) at
//! the meta key answers it without a script.
//!
//! | module | content |
//! |---|---|
//! | [`question`], [`asked`] | a question to a part, which is one track of one partition, and the callers that wait for its answer |
//! | [`near`] | [`Near`](super::merge::Near): consecutive lines, for pages and neighbors |
//! | [`subject`], [`subject_keys`], [`slot_range`] | the slots of a subject, and its standing |
//! | [`counts`] | [`Scores`](super::merge::Scores) and ranks of given subjects; counts and samples of the lines [`Between`](super::merge::Between) two places |
//! | [`values`] | the values of a subject |
//! | [`lanes`], [`lane`] | the lanes of all nodes, and the questions that wait on one |
//! | [`flight`], [`pipeline`] | sending the questions that wait, and asking again those for which the window has moved |
//! | [`look`], [`pages`] | what a caller checks in place of a script; the cache |
//! | [`share`] | what parts return, and the stamp of the state that it is from |
//! | [`spread`], [`merging`] | the ranking of a board, whose partitions are asked and merged |
//! | [`status`] | the state of a part as a whole, and its keys: calls of their own, not kinds of read |
//!
//! There are two lanes to each node, each with a connection of its own. A call that reads many cells uses the bulk
//! lane. It is sent in portions, so that it takes turns with other calls on that lane, and does not delay the calls on
//! the light lane.

mod asked;
mod counts;
mod distribution;
mod earlier;
mod flight;
mod lane;
mod lanes;
mod look;
mod merging;
mod near;
mod pages;
mod pipeline;
mod question;
mod share;
mod slot_range;
mod spread;
mod status;
mod subject;
mod subject_keys;
mod values;

use std::collections::HashMap;
use std::sync::Arc;

use futures_util::stream::{self, StreamExt};
use parking_lot::Mutex;

use self::asked::answer_of;
pub(super) use self::earlier::earlier_ranks;
use self::lane::ReadLane;
use self::lanes::{LIGHT, Lanes, LanesByWeight};
use self::merging::AskedPage;
use self::pages::Pages;
use self::question::{Question, Read};
use self::spread::Spread;
pub(super) use self::spread::{keys, status};
pub(super) use self::status::range_start;
use self::subject::{Scope, SubjectRead};
pub(super) use self::subject_keys::remove;
use self::values::ValuesRead;
use super::merge::Wanted;
use super::part::Part;
use super::partitions::Parts;
use super::servers::{Channel, ServerFailure};
use super::session::Session;
use crate::board::{RankingKey, Subject};
use crate::store::{Lookup, Page, PageStart, SlotContents, SlotQuery, Standing, StoreError, Values, ValuesStart};

/// The largest weight of a portion of a call on the bulk lane, in cells, and the number of portions that wait at the
/// same time.
const PORTION: u64 = 2_048;
const PORTIONS: usize = 2;
/// The largest number of flights of a lane that are under way at the same time.
const LIGHT_FLIGHTS: usize = 8;
const BULK_FLIGHTS: usize = 1;

/// The ranking that a read is about.
#[derive(Clone, Copy, Debug)]
pub(super) struct AskedRanking<'a> {
    pub parts: &'a Arc<Parts>,
    /// Its key, on a track that has a ranking for each key.
    pub key: Option<&'a RankingKey>,
    /// Whether to count [ties](crate::board::BoardTrack::counts_ties).
    pub ties: bool,
}

/// The reads of one store.
#[derive(Debug)]
pub(super) struct Reads {
    lanes: Arc<LanesByWeight>,
    /// The lane for pages of boards of several partitions.
    merging: Arc<ReadLane<AskedPage>>,
}

impl Reads {
    /// Starts the two threads that send questions until [`close`](Self::close).
    pub fn start(session: &Arc<Session>) -> std::io::Result<Self> {
        let pages = Arc::<Pages>::default();
        let light = Lanes::start("rolltop-reads", session, &pages, Channel::Reads, LIGHT_FLIGHTS)?;
        let bulk = Lanes::start("rolltop-bulk", session, &pages, Channel::Bulk, BULK_FLIGHTS)?;
        let (lanes, merging) = (Arc::new(LanesByWeight { light, bulk, pages }), Arc::<ReadLane<_>>::default());
        lanes.light.run(merging::run(lanes.clone(), merging.clone()));
        Ok(Self { lanes, merging })
    }

    /// Ends the threads once no question waits.
    pub fn close(&self) {
        self.merging.close();
    }

    /// Asks one part.
    async fn ask<R: Read>(&self, part: &Arc<Part>, read: R) -> Result<R::Reply, ServerFailure> {
        answer_of(self.lanes.ask(Question::new(part.clone(), read))).await
    }

    fn spread<'a>(&'a self, ranking: AskedRanking<'a>) -> Spread<'a> {
        Spread { lanes: &self.lanes, parts: ranking.parts, key: ranking.key, ties: ranking.ties, is_here: false }
    }

    pub async fn page(&self, ranking: AskedRanking<'_>, start: &PageStart, limit: u32) -> Result<Page, ServerFailure> {
        let AskedRanking { parts, key, ties } = ranking;
        let wanted = Wanted::Page { start: start.clone(), limit: limit.into() };
        match start {
            // Equal pages of several partitions are merged once.
            PageStart::Offset(_) if parts.count() > 1 && key.is_none() => {
                let (asked, answered) = AskedPage::new(parts.clone(), wanted, ties);
                self.merging.add(asked);
                self.merging.go();
                answer_of(answered).await
            }
            _ => self.spread(ranking).lines(&wanted).await,
        }
    }

    pub async fn neighbors(
        &self,
        ranking: AskedRanking<'_>,
        subject: &Subject,
        radius: u32,
    ) -> Result<Page, ServerFailure> {
        let spread = self.spread(ranking);
        let own = spread.number_of(subject);
        let wanted = Wanted::Neighbors { subject: subject.clone(), own, radius: radius.into() };
        spread.lines(&wanted).await
    }

    pub async fn lookup(
        &self,
        ranking: AskedRanking<'_>,
        subjects: &[Subject],
        ranks: bool,
    ) -> Result<Lookup, ServerFailure> {
        self.spread(ranking).lookup(subjects, ranks).await
    }

    /// Reads the standing of a subject, which has its key if there are keys. The subject's own partition has all of it,
    /// unless others have lines of the ranking.
    pub async fn standing(&self, ranking: AskedRanking<'_>, subject: &Subject) -> Result<Standing, ServerFailure> {
        let AskedRanking { parts, key, ties } = ranking;
        let part = parts.of(subject);
        if part.track.is_ranked() && parts.count() > 1 && key.is_none() {
            return self.spread(ranking).standing(subject).await;
        }
        let question =
            Question { key: key.cloned(), ..Question::new(part.clone(), SubjectRead::standing(subject.clone(), ties)) };
        let found = answer_of(self.lanes.ask(question)).await?;
        Ok(found.standing(&part.track))
    }

    pub async fn values(
        &self,
        part: &Arc<Part>,
        subject: &Subject,
        start: &ValuesStart,
        limit: u32,
    ) -> Result<Values, ServerFailure> {
        self.ask(part, ValuesRead { subject: subject.clone(), start: start.clone(), limit }).await
    }

    /// Reads windows, each independently. In each result, the outer error is that of the server; the inner one
    /// says that the requested slots do not all exist.
    pub async fn windows(
        &self,
        session: &Session,
        queries: &[SlotQuery],
    ) -> Vec<Result<Result<SlotContents, StoreError>, ServerFailure>> {
        let question = |query: &SlotQuery| {
            let SlotQuery { track, subject, range, as_of } = query;
            let (subject, range, as_of) = (track.stored(subject).into_owned(), *range, *as_of);
            let part = session.part_for(track, &subject);
            Question::new(
                part,
                SubjectRead { subject, scope: Scope::Slots { range, as_of }, with_rank: false, ties: false },
            )
        };
        let questions: Vec<Question<SubjectRead>> = queries.iter().map(question).collect();
        let weight: u64 = questions.iter().map(Question::weight).sum();
        let parts: Vec<Arc<Part>> = questions.iter().map(|question| question.part.clone()).collect();
        if weight <= LIGHT {
            let mut answers = Vec::with_capacity(parts.len());
            for (part, answered) in parts.iter().zip(self.lanes.light.ask_all(questions)) {
                answers.push(answer_of(answered).await.map(|found| found.contents(&part.track)));
            }
            return answers;
        }
        let mut answers: Vec<Option<_>> = parts.iter().map(|_| None).collect();
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
                    answers.push((place, answer));
                }
                answers
            })
            .buffer_unordered(PORTIONS);
        while let Some(portion) = answered.next().await {
            for (place, answer) in portion {
                answers[place] = Some(answer.map(|found| found.contents(&parts[place].track)));
            }
        }
        drop(answered);
        let missing = || Err(ServerFailure::Corrupt("a portion was not answered".to_owned()));
        answers.into_iter().map(|answer| answer.unwrap_or_else(missing)).collect()
    }
}

/// Divides questions, each with its index, into portions. Questions about the same slots of a board are next to each
/// other. Equal questions are in the same portion, in which they are sent once.
fn portions(questions: Vec<Question<SubjectRead>>) -> Vec<Vec<(usize, Question<SubjectRead>)>> {
    let mut questions: Vec<(usize, Question<SubjectRead>)> = questions.into_iter().enumerate().collect();
    questions.sort_by(|(_, a), (_, b)| SubjectRead::order(a, b));
    let mut portions: Vec<Vec<(usize, Question<SubjectRead>)>> = Vec::new();
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

#[cfg(test)]
mod tests {
    use super::question::tests::{part, window};
    use super::*;

    #[test]
    fn a_large_call_is_split_with_equal_questions_in_one_portion() {
        let (one, other) = (part("COUNT(2000m, e, s)", "1m", true), part("COUNT(2000m, e, s)", "1m", true));
        let questions: Vec<Question<SubjectRead>> =
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
