//! Reads over partitions in memory, compared with the answer of one sorted list.

mod beside;
mod changes;
mod known;
mod lone;
mod neighbors;
mod pages;
mod random;
mod scores;
mod ties;
mod wrong;

use std::collections::HashSet;
use std::future::Future;

use parking_lot::Mutex;

use super::scores::FoundScore;
use super::*;
use crate::board::{Amount, BoardName, Frame, Visibility, Window};
use crate::store::Ranked;
use crate::store::place::compare_scores;
use crate::store::redis::division::Division;

/// The content of all partitions.
struct Content {
    order: Order,
    division: Option<Division>,
    /// The lines of each partition, in order.
    parts: Vec<Vec<Place>>,
    /// The head of each partition, in seconds.
    heads: Vec<i64>,
    versions: Vec<u64>,
}

/// Partitions in memory that count the questions.
struct Memory {
    state: Mutex<State>,
}

type Change = Box<dyn FnMut(usize, &mut Content) + Send>;

struct State {
    content: Content,
    /// Changes the content just before the partitions answer in a round. The first round is 1.
    before_round: Change,
    rounds: usize,
    calls: usize,
    lines: usize,
    /// Whether partitions advance to a newer head than their own.
    advancing: bool,
}

/// What was found about the subject of this name.
type Named = (String, FoundScore);

/// The cost of a read.
#[derive(Debug)]
struct Cost {
    rounds: usize,
    calls: usize,
    lines: usize,
}

fn subject(text: &str) -> Subject {
    Subject::parse(text).unwrap()
}

fn exact(score: i64) -> Value {
    Value::Exact(Amount(score))
}

impl Content {
    fn new(order: Order, parts: usize) -> Self {
        let name = BoardName::parse("b").unwrap();
        let division = Division::choose(&name, parts as u32).unwrap();
        let (parts, heads, versions) = (vec![Vec::new(); parts], vec![1; parts], vec![0; parts]);
        Self { order, division: Some(division), parts, heads, versions }
    }

    fn part_of(&self, subject: &Subject) -> usize {
        match &self.division {
            Some(division) => division.partition_of(subject),
            // The subjects contain the number of their part.
            None => subject.as_str().split('/').next().unwrap().parse().unwrap(),
        }
    }

    /// Adds all lines at once.
    fn fill(&mut self, lines: impl Iterator<Item = (String, Value)>) {
        for (text, score) in lines {
            let subject = subject(&text);
            let part = self.part_of(&subject);
            self.parts[part].push(Place { score, subject });
        }
        for part in &mut self.parts {
            part.sort_by(|a, b| a.compare(b, self.order));
        }
    }

    /// Sets the score of each of these subjects, or removes them from the ranking.
    fn set_all(&mut self, texts: impl Iterator<Item = String>, score: Option<Value>) {
        let texts: HashSet<String> = texts.collect();
        for part in &mut self.parts {
            part.retain(|line| !texts.contains(line.subject.as_str()));
        }
        for version in &mut self.versions {
            *version += 1;
        }
        if let Some(score) = score {
            self.fill(texts.into_iter().map(|text| (text, score)));
        }
    }

    fn remove(&mut self, text: &str) {
        self.set_all([text.to_owned()].into_iter(), None);
    }

    fn set(&mut self, text: &str, score: Value) {
        self.set_all([text.to_owned()].into_iter(), Some(score));
    }

    fn position(&self, part: usize, place: &Place) -> usize {
        self.parts[part].partition_point(|line| line.compare(place, self.order).is_lt())
    }

    fn better(&self, part: usize, score: Value) -> u64 {
        let better = |line: &&Place| if self.order == Order::Asc { line.score < score } else { line.score > score };
        self.parts[part].iter().filter(better).count() as u64
    }

    /// Returns all lines with their ranks.
    fn ranking(&self) -> Vec<Ranked> {
        let mut lines: Vec<&Place> = self.parts.iter().flatten().collect();
        lines.sort_by(|a, b| {
            let ascending = (a.score, &a.subject).cmp(&(b.score, &b.subject));
            if self.order == Order::Asc { ascending } else { ascending.reverse() }
        });
        let mut ranking: Vec<Ranked> = Vec::new();
        for (place, line) in lines.into_iter().enumerate() {
            let rank = match ranking.last() {
                Some(before) if before.score == line.score => before.rank,
                _ => place as u64 + 1,
            };
            ranking.push(Ranked { rank, subject: line.subject.clone(), score: line.score });
        }
        ranking
    }
}

impl Memory {
    fn new(content: Content) -> Self {
        Self::changing(content, |_, _| ())
    }

    fn changing(content: Content, before_round: impl FnMut(usize, &mut Content) + Send + 'static) -> Self {
        let before_round = Box::new(before_round);
        let (rounds, calls, lines, advancing) = (0, 0, 0, false);
        Self { state: Mutex::new(State { content, before_round, rounds, calls, lines, advancing }) }
    }

    /// Returns the cost since the last call.
    fn cost(&self) -> Cost {
        let mut state = self.state.lock();
        let cost = Cost { rounds: state.rounds, calls: state.calls, lines: state.lines };
        (state.rounds, state.calls, state.lines) = (0, 0, 0);
        cost
    }

    fn ranking(&self) -> Vec<Ranked> {
        self.state.lock().content.ranking()
    }

    /// Reads lines as the store does: a lone partition has them, and only the question to it is tested here.
    pub(super) fn lines(&self, order: Order, wanted: &Wanted) -> Result<Merged<Found, u64>, MergeError<String>> {
        if self.count() > 1 {
            let Merged { frame, versions, total, found } = block_on(lines(self, order, wanted, None))?;
            return Ok(Merged { frame, versions, total, found: found.unwrap() });
        }
        let round = Round { at_least: None, questions: vec![(0, wanted.of_one())] };
        let share = block_on(self.near(round)).map_err(MergeError::Partition)?.remove(0);
        let Share { frame, version, said: Excerpt { total, first, items, .. } } = share;
        Ok(Merged { frame, versions: vec![version], total, found: Found { first, items } })
    }

    fn page(&self, offset: u64, limit: u64) -> Result<Merged<Vec<Ranked>, u64>, MergeError<String>> {
        let order = self.state.lock().content.order;
        let wanted = Wanted::Page { start: PageStart::Offset(offset), limit };
        let Merged { frame, versions, total, found } = self.lines(order, &wanted)?;
        let Found { first, items } = found;
        assert_eq!(first, offset.min(total));
        Ok(Merged { frame, versions, total, found: items.to_vec() })
    }

    fn around(&self, text: &str, radius: u64) -> Result<Merged<Around<usize>, u64>, MergeError<String>> {
        let (order, own) = {
            let content = &self.state.lock().content;
            (content.order, content.part_of(&subject(text)))
        };
        block_on(around(self, order, own, &subject(text), exact(0), radius, true))
    }

    /// Reads the neighbors of a subject: the lines, and the number of lines before them.
    fn neighbors(&self, text: &str, radius: u64) -> Result<(u64, Vec<Ranked>), MergeError<String>> {
        let (order, own) = {
            let content = &self.state.lock().content;
            (content.order, content.part_of(&subject(text)))
        };
        let wanted = Wanted::Neighbors { subject: subject(text), own, radius };
        let Found { first, items } = self.lines(order, &wanted)?.found;
        Ok((first, items.to_vec()))
    }

    /// Reads a page and compares it with the list.
    fn check_page(&self, offset: u64, limit: u64) -> Cost {
        let page = self.page(offset, limit).unwrap();
        let ranking = self.ranking();
        let expected: Vec<Ranked> = ranking.iter().skip(offset as usize).take(limit as usize).cloned().collect();
        assert_eq!(page.total, ranking.len() as u64);
        assert_eq!(page.found, expected, "offset {offset}, limit {limit}");
        self.cost()
    }

    /// Reads the lines around a subject and compares them with the list.
    fn check_around(&self, text: &str, radius: u64) -> Cost {
        let merged = self.around(text, radius).unwrap();
        let ranking = self.ranking();
        assert_eq!(merged.total, ranking.len() as u64);
        let at = ranking.iter().position(|line| line.subject.as_str() == text);
        let found = merged.found;
        match at {
            Some(at) => {
                let first = at.saturating_sub(radius as usize);
                let last = (at + radius as usize).min(ranking.len() - 1);
                assert_eq!(
                    (found.first, &*found.lines),
                    (first as u64, &ranking[first..=last]),
                    "{text}, radius {radius}"
                );
                assert_eq!((found.score, found.better), (Some(ranking[at].score), ranking[at].rank - 1));
            }
            None => {
                let state = self.state.lock();
                let better: u64 = (0..state.content.parts.len()).map(|part| state.content.better(part, exact(0))).sum();
                assert_eq!((found.score, found.lines, found.better), (None, Vec::new(), better));
            }
        }
        assert_eq!(found.extra, text.len());
        self.cost()
    }

    fn scores(&self, texts: &[String], ranks: bool) -> Result<Merged<Vec<Named>, u64>, MergeError<String>> {
        let (order, places) = {
            let content = &self.state.lock().content;
            let mut places = vec![Vec::new(); content.parts.len()];
            for text in texts {
                places[content.part_of(&subject(text))].push(subject(text));
            }
            (content.order, places)
        };
        let Merged { frame, versions, total, found } = block_on(super::scores(self, order, places.clone(), ranks))?;
        let names = places.iter().flatten().map(Subject::to_string);
        Ok(Merged { frame, versions, total, found: names.zip(found.into_iter().flatten()).collect() })
    }

    /// Reads scores and compares them with the list.
    fn check_scores(&self, texts: &[String], ranks: bool) -> Cost {
        let merged = self.scores(texts, ranks).unwrap();
        let ranking = self.ranking();
        assert_eq!((merged.total, merged.found.len()), (ranking.len() as u64, texts.len()));
        for (text, found) in merged.found {
            let line = ranking.iter().find(|line| line.subject.as_str() == text);
            let expected = (line.map(|line| line.score), line.filter(|_| ranks).map(|line| line.rank - 1), None);
            assert_eq!(found, expected, "{text}");
        }
        self.cost()
    }

    /// Answers a round.
    fn answer<Q, T>(
        &self,
        round: Round<Q>,
        say: impl Fn(&Content, usize, &Q) -> (usize, T),
    ) -> Result<Vec<Share<T, u64>>, String> {
        let mut state = self.state.lock();
        let state = &mut *state;
        if !round.questions.is_empty() {
            state.rounds += 1;
            (state.before_round)(state.rounds, &mut state.content);
        }
        state.calls += round.questions.len();
        let share = |(part, question): &(usize, Q)| {
            let head = &mut state.content.heads[*part];
            if let Some(at_least) = round.at_least.filter(|_| state.advancing) {
                *head = (*head).max(at_least.millis() / 1_000);
            }
            let at = Timestamp::from_millis(*head * 1_000);
            let window = Window { floor: Timestamp::EPOCH, head: at, end: at.plus_millis(1_000) };
            let frame = Frame { window, as_of: at.plus_millis(*part as i64), retiring: *part as u64 };
            let (lines, said) = say(&state.content, *part, question);
            state.lines += lines;
            Share { frame, version: state.content.versions[*part], said }
        };
        Ok(round.questions.iter().map(share).collect())
    }
}

impl PartitionReads for Memory {
    type Error = String;
    type Version = u64;
    /// The number of bytes of the subject.
    type Extra = usize;

    fn count(&self) -> usize {
        self.state.lock().content.parts.len()
    }

    async fn near(&self, round: Round<Near>) -> Result<Vec<Share<Excerpt<usize>, u64>>, String> {
        self.answer(round, |content, part, question| {
            let lines = &content.parts[part];
            let mut located = None;
            let center = match &question.center {
                Center::Position(position) => Some(lines.len().min(usize::try_from(*position).unwrap())),
                Center::Place { place, after_line } => {
                    let position = content.position(part, place);
                    let has_line = lines.get(position).is_some_and(|line| line == place);
                    Some(position + usize::from(*after_line && has_line))
                }
                Center::Subject { subject, absent } => {
                    let score = lines.iter().find(|line| line.subject == *subject).map(|line| line.score);
                    let extra = if question.with_slots { subject.as_str().len() } else { 0 };
                    located = Some(Located { score, visibility: Visibility::default(), extra });
                    let place = |score| Place { score, subject: subject.clone() };
                    score.or(*absent).map(|score| content.position(part, &place(score)))
                }
            };
            let (mut first, mut items) = (0, Vec::new());
            if let Some(center) = center {
                first = center.saturating_sub(question.before as usize);
                let last = lines.len().min(center.saturating_add(question.after as usize));
                for (place, line) in lines[first..last].iter().enumerate() {
                    let rank = match items.last() {
                        Some(Ranked { rank, score, .. }) if *score == line.score => *rank,
                        Some(_) => (first + place) as u64 + 1,
                        None => content.better(part, line.score) + 1,
                    };
                    items.push(Ranked { rank, subject: line.subject.clone(), score: line.score });
                }
            }
            let total = lines.len() as u64;
            (
                items.len(),
                Excerpt { total, first: first as u64, items: items.into(), not_worse: None, subject: located },
            )
        })
    }

    async fn between(&self, round: Round<Between>) -> Result<Vec<Share<Sampled, u64>>, String> {
        self.answer(round, |content, part, question| {
            let lines = &content.parts[part];
            let lo = question.lo.as_ref().map_or(0, |lo| content.position(part, lo)) as u64;
            let hi = question.hi.as_ref().map_or(lines.len(), |hi| content.position(part, hi)) as u64;
            let positions: Vec<u64> = match hi - lo <= question.all_up_to {
                true => (lo..hi).collect(),
                false => sample_positions(lo, hi, question.samples).collect(),
            };
            let said = Sampled {
                total: lines.len() as u64,
                before_lo: lo,
                better_than_lo: question.lo.as_ref().map_or(0, |lo| content.better(part, lo.score)),
                before_hi: hi,
                lines: positions.into_iter().map(|at| (at, lines[at as usize].clone())).collect(),
            };
            (said.lines.len(), said)
        })
    }

    async fn scores(&self, round: Round<Scores>) -> Result<Vec<Share<Scored, u64>>, String> {
        self.answer(round, |content, part, question| {
            let lines = &content.parts[part];
            let score = |subject: &Subject| {
                assert_eq!(content.part_of(subject), part);
                lines.iter().find(|line| line.subject == *subject).map(|line| line.score)
            };
            let stretch = |score: Value| {
                let better = content.better(part, score) as usize;
                let (first, last) = (better.saturating_sub(question.near as usize), better + question.near as usize);
                let scores: Vec<Value> = lines.iter().take(last).skip(first).map(|line| line.score).collect();
                let better = scores.first().map_or(0, |score| content.better(part, *score));
                Stretch { first: first as u64, better, scores }
            };
            let better_than_subject = |subject| score(subject).map_or(0, |score| content.better(part, score));
            let ranked = question.subjects.iter().filter(|_| question.ranks);
            let said = Scored {
                total: lines.len() as u64,
                scores: question.subjects.iter().map(score).collect(),
                better_than_subjects: ranked.map(better_than_subject).collect(),
                not_worse_than_subjects: Vec::new(),
                better: question.better_than.iter().map(|score| content.better(part, *score)).collect(),
                near: question.better_than.iter().filter(|_| question.near > 0).map(|score| stretch(*score)).collect(),
            };
            (said.near.iter().map(|stretch| stretch.scores.len()).sum(), said)
        })
    }
}

/// Runs a read. The future must be `Send`, as in a store.
fn block_on<F: Future + Send>(future: F) -> F::Output {
    tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(future)
}

/// Returns a generator of numbers that are the same in every run.
fn numbers(mut state: u64) -> impl FnMut(u64) -> u64 {
    move |below| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % below
    }
}
