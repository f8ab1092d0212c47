//! Questions about the ranking of a board: its partitions are asked, and `merge` makes the answer.

use std::collections::BTreeMap;
use std::sync::Arc;

use futures_util::future::try_join_all;

use super::asked::{Answered, answer_from_here, answer_of};
use super::lanes::LanesByWeight;
use super::pages::{CachedPage, Extent};
use super::question::{Question, Read};
use super::share::{About, Excerpt, Stamp, StampedShare};
use super::status::{keys_of, status_of};
use crate::board::{RankingKey, Ranks, Subject, Timestamp, Value};
use crate::store::redis::merge::{
    self, Between, Center, KnownPage, MergeError, Near, PartitionReads, Round, Sampled, Scored, Scores, Wanted,
    of_one_head,
};
use crate::store::redis::part::Part;
use crate::store::redis::partitions::Parts;
use crate::store::redis::servers::ServerFailure;
use crate::store::redis::session::Session;
use crate::store::{Keys, Lookup, Page, PageStart, Place, Ranked, Standing, Status, TextRange};

/// A reader of a ranking of a board.
pub(super) struct Spread<'a> {
    pub lanes: &'a LanesByWeight,
    pub parts: &'a Parts,
    /// The key of the ranking, if there are several. It is in one partition, and no other one is asked.
    pub key: Option<&'a RankingKey>,
    /// Whether to count [ties](crate::board::BoardTrack::counts_ties).
    pub ties: bool,
    /// Whether this runs on the thread of the lanes.
    pub is_here: bool,
}

pub(super) fn failure(error: MergeError<ServerFailure>) -> ServerFailure {
    match error {
        MergeError::Partition(failure) => failure,
        MergeError::Unsettled => ServerFailure::KeptChanging,
        MergeError::Impossible(what) => ServerFailure::Corrupt(format!("a partition of a board answered {what}")),
    }
}

impl PartitionReads for Spread<'_> {
    type Error = ServerFailure;
    type Version = Option<Stamp>;
    type Extra = About;

    fn count(&self) -> usize {
        self.all().len()
    }

    // These are not `async`, because that would put another future around that of `ask`.
    fn near(
        &self,
        round: Round<Near>,
    ) -> impl Future<Output = Result<Vec<StampedShare<Excerpt>>, ServerFailure>> + Send {
        self.ask(round)
    }

    fn between(
        &self,
        round: Round<Between>,
    ) -> impl Future<Output = Result<Vec<StampedShare<Sampled>>, ServerFailure>> + Send {
        self.ask(round)
    }

    fn scores(
        &self,
        mut round: Round<Scores>,
    ) -> impl Future<Output = Result<Vec<StampedShare<Scored>>, ServerFailure>> + Send {
        round.questions.iter_mut().for_each(|(_, scores)| scores.ties = scores.ranks && self.counts_here());
        self.ask(round)
    }
}

impl Spread<'_> {
    /// Returns the partitions that have the ranking.
    fn all(&self) -> &[Arc<Part>] {
        match self.key {
            Some(key) => std::slice::from_ref(self.parts.of_key(key)),
            None => self.parts.all(),
        }
    }

    /// Returns whether the partition counts ties itself: only one that has all lines can.
    fn counts_here(&self) -> bool {
        self.ties && self.count() == 1
    }

    /// Returns for each of these scores, which partitions with this head had, the number of lines of several partitions
    /// that are not worse, if requested. It is of a later instant than the scores.
    async fn ties(&self, head: Timestamp, scores: &[Value]) -> Result<Option<Vec<u64>>, ServerFailure> {
        if !self.ties || self.count() == 1 || scores.is_empty() {
            return Ok(None);
        }
        let order = self.parts.first().track.order();
        // Boxed, because every read would have room for what only ties of several partitions need.
        Ok(Some(Box::pin(merge::ties(self, order, head, scores)).await.map_err(failure)?))
    }

    /// Returns the index of the one of them that has the subject.
    pub fn number_of(&self, subject: &Subject) -> usize {
        if self.key.is_some() { 0 } else { self.parts.number_of(subject) }
    }

    async fn ask<R: Read>(&self, round: Round<R>) -> Result<Vec<R::Reply>, ServerFailure> {
        let Round { at_least, questions } = round;
        let is_one = questions.len() == 1;
        let mut questions = questions.into_iter().map(|(number, read)| Question {
            part: self.all()[number].clone(),
            at_least,
            key: self.key.cloned(),
            read,
        });
        if is_one && let Some(question) = questions.next() {
            return Ok(vec![self.answer(self.lanes.ask(question)).await?]);
        }
        let answered = self.lanes.ask_all(questions).into_iter().map(|answered| self.answer(answered));
        // Boxed, because reads of one partition would have room for it too.
        Box::pin(try_join_all(answered)).await
    }

    async fn answer<T>(&self, answered: Answered<T>) -> Result<T, ServerFailure> {
        if self.is_here { answer_from_here(answered).await } else { answer_of(answered).await }
    }

    /// Reads lines of the ranking.
    pub async fn lines(&self, wanted: &Wanted) -> Result<Page, ServerFailure> {
        match self.all() {
            // What one partition returns is cached where it is read.
            [part] => {
                let read = Near { ties: self.ties, ..wanted.of_one() };
                let question = Question { key: self.key.cloned(), ..Question::new(part.clone(), read) };
                let share = self.answer(self.lanes.ask(question)).await?;
                let StampedShare { frame, said: Excerpt { total, first, items, not_worse, .. }, .. } = share;
                Ok(Page { frame, total, first, items, not_worse })
            }
            // Boxed, because reads of one partition would have room for it too.
            _ => Box::pin(self.merged_lines(wanted)).await,
        }
    }

    /// Reads lines of the ranking of several partitions.
    async fn merged_lines(&self, wanted: &Wanted) -> Result<Page, ServerFailure> {
        let first_part = self.parts.first();
        let cached = match wanted {
            Wanted::Page { start: PageStart::Offset(offset), limit } => {
                Some(Near { center: Center::Position(*offset), ties: self.ties, ..Near::first(*limit) })
            }
            _ => None,
        };
        let held = cached.as_ref().and_then(|near| self.lanes.pages.get(first_part, &Extent::Board, near));
        let known = held.as_ref().map(|held| KnownPage { head: held.head(), versions: &held.stamps });
        let merged = merge::lines(self, first_part.track.order(), wanted, known).await.map_err(failure)?;
        let merge::Merged { frame, versions: stamps, total, found } = merged;
        let merge::Found { first, items } = match (found, held) {
            (Some(found), _) => found,
            (None, Some(held)) => return Ok(Page { frame, total, ..held.page.clone() }),
            (None, None) => return Err(ServerFailure::Corrupt("a page without lines".to_owned())),
        };
        let items = match first_part.track.ranks() {
            Ranks::Shared => items,
            Ranks::Ordinal => (first + 1..).zip(items).map(|(rank, line)| Ranked { rank, ..line }).collect(),
        };
        let last: Vec<Value> = items.last().map(|line| line.score).into_iter().collect();
        let not_worse = self.ties(frame.window.head, &last).await?.and_then(|counted| counted.first().copied());
        // Lines that have left since are still on the page.
        let not_worse = not_worse.map(|counted| counted.max(first + items.len() as u64).min(total));
        let page = Page { frame, total, first, items, not_worse };
        match cached.filter(|_| stamps.iter().all(Option::is_some)) {
            Some(near) => Ok(self.lanes.pages.put(first_part, Extent::Board, &near, CachedPage::new(page, stamps))),
            None => Ok(page),
        }
    }

    /// Reads the standing of a subject in the ranking of several partitions.
    pub async fn standing(&self, subject: &Subject) -> Result<Standing, ServerFailure> {
        let track = &self.parts.first().track;
        let (own, absent) = (self.parts.number_of(subject), track.kind().absent());
        let around = merge::around(self, track.order(), own, subject, absent.unwrap_or(Value::ZERO), 0, true).await;
        let merge::Merged { frame, total, found, .. } = around.map_err(failure)?;
        let merge::Around { score, visibility, better, before, extra, .. } = found;
        let better = if score.is_some() && track.ranks() == Ranks::Ordinal { before } else { better };
        let rank = score.filter(|_| visibility.sees_rank()).map(|_| better + 1);
        let ranked: Vec<Value> = score.filter(|_| rank.is_some()).into_iter().collect();
        let not_worse = self.ties(frame.window.head, &ranked).await?.and_then(|counted| counted.first().copied());
        Ok(Standing {
            frame,
            total,
            score: score.or(absent),
            rank,
            visibility,
            better,
            // Of the later instant it may be too small. Its own line is in the total, unless it is shadowed.
            not_worse: not_worse.map(|counted| counted.max(better + u64::from(!visibility.is_hidden())).min(total)),
            slots: extra.slots,
            capped: extra.capped.is_some_and(|time| time >= frame.window.floor),
        })
    }

    /// Looks up scores and ranks. All partitions are asked, because each returns its own total.
    pub async fn lookup(&self, subjects: &[Subject], with_ranks: bool) -> Result<Lookup, ServerFailure> {
        let mut shares: Vec<(Vec<usize>, Vec<Subject>)> = vec![Default::default(); self.count()];
        for (place, subject) in subjects.iter().enumerate() {
            let (places, asked) = &mut shares[self.number_of(subject)];
            places.push(place);
            asked.push(subject.clone());
        }
        let (places, shares): (Vec<Vec<usize>>, Vec<Vec<Subject>>) = shares.into_iter().unzip();
        let order = self.parts.first().track.order();
        // Where each line has a rank of its own, that of a line in several partitions does not follow from its score.
        let by_line = with_ranks && self.count() > 1 && self.parts.first().track.ranks() == Ranks::Ordinal;
        let merge::Merged { frame, total, found, .. } =
            merge::scores(self, order, shares, with_ranks && !by_line).await.map_err(failure)?;
        let (mut scores, mut ranks) = (vec![None; subjects.len()], vec![None; subjects.len()]);
        let mut not_worse = vec![None; subjects.len()];
        for (place, (score, better, counted)) in places.into_iter().flatten().zip(found.into_iter().flatten()) {
            scores[place] = score;
            ranks[place] = better.map(|better| better + 1);
            not_worse[place] = counted;
        }
        if by_line {
            let places = || subjects.iter().zip(&scores).map(|(subject, score)| (subject, *score));
            let places = places().map(|(subject, score)| Some(Place { score: score?, subject: subject.clone() }));
            // Boxed, because every read would have room for what only these boards need.
            ranks = Box::pin(merge::ranks(self, frame.window.head, total, places.collect())).await.map_err(failure)?;
        }
        let ranked: Vec<Value> = scores.iter().flatten().filter(|_| with_ranks).copied().collect();
        if let Some(counted) = self.ties(frame.window.head, &ranked).await? {
            let ranked = not_worse.iter_mut().zip(&ranks).filter_map(|(counted, rank)| Some((counted, (*rank)?)));
            ranked.zip(counted).for_each(|((of, rank), counted)| *of = Some(counted.max(rank).min(total)));
        }
        Ok(Lookup { frame, total, scores, ranks, not_worse })
    }
}

/// Returns the state of a board as a whole: all partitions with the same head, and their sizes added.
pub(in crate::store::redis) async fn status(session: &Session, parts: &Parts) -> Result<Status, ServerFailure> {
    let all: Vec<usize> = (0..parts.count()).collect();
    let ask = |round: Round<()>| {
        let share = |(number, ()): (usize, ())| status_share(session, &parts.all()[number], round.at_least);
        try_join_all(round.questions.into_iter().map(share).collect::<Vec<_>>())
    };
    let shares = of_one_head(&all, None, |_| (), ask).await.map_err(failure)?;
    let (mut frame, _, said) = merge::take_apart(shares).ok_or(ServerFailure::KeptChanging)?;
    let (mut upheavals, mut keys) = (0_u64, None);
    let (mut total, mut slots, mut retiring, mut events) = (Some(0), BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
    let add = |sizes: &mut BTreeMap<Timestamp, u64>, more: Vec<(Timestamp, u64)>| {
        for (start, number) in more {
            *sizes.entry(start).or_default() += number;
        }
    };
    for said in said {
        total = total.zip(said.total).map(|(total, more)| total + more);
        keys = said.keys.map(|more| keys.unwrap_or(0) + more);
        upheavals = upheavals.wrapping_add(said.upheavals);
        add(&mut slots, said.slots);
        add(&mut retiring, said.retiring);
        add(&mut events, said.events);
    }
    frame.retiring = retiring.len() as u64;
    let ordered = |sizes: BTreeMap<Timestamp, u64>| sizes.into_iter().collect();
    Ok(Status {
        frame,
        total,
        keys,
        slots: ordered(slots),
        retiring: ordered(retiring),
        events: ordered(events),
        upheavals,
    })
}

/// Returns keys of a track that have a ranking, in the order of their bytes: all partitions with the same head.
pub(in crate::store::redis) async fn keys(
    session: &Session,
    parts: &Parts,
    range: TextRange<'_>,
    limit: u32,
) -> Result<Keys, ServerFailure> {
    let all: Vec<usize> = (0..parts.count()).collect();
    let ask = |round: Round<()>| {
        let share = |(number, ()): (usize, ())| async move {
            let said = keys_of(session, &parts.all()[number], round.at_least, range, limit).await?;
            Ok::<_, ServerFailure>(StampedShare { frame: said.frame, version: None, said })
        };
        try_join_all(round.questions.into_iter().map(share).collect::<Vec<_>>())
    };
    let shares = of_one_head(&all, None, |_| (), ask).await.map_err(failure)?;
    let (frame, _, said) = merge::take_apart(shares).ok_or(ServerFailure::KeptChanging)?;
    let total = said.iter().map(|said| said.total).sum();
    let mut keys: Vec<RankingKey> = said.into_iter().flat_map(|said| said.keys).collect();
    keys.sort_unstable();
    keys.truncate(limit as usize);
    Ok(Keys { frame, total, keys })
}

async fn status_share(
    session: &Session,
    part: &Part,
    at_least: Option<Timestamp>,
) -> Result<StampedShare<Status>, ServerFailure> {
    let said = status_of(session, part, at_least).await?;
    Ok(StampedShare { frame: said.frame, version: None, said })
}
