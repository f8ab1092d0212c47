//! Questions about a board of several parts: each part is asked for its share, and `merge` combines the shares.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::lanes_by_weight::LanesByWeight;
use super::pages::CachedPage;
use super::question::{Answer, Question, What, mistaken};
use super::share::{About, Share, Stamp};
use super::status::status_of;
use crate::board::{Subject, Timestamp, Value};
use crate::store::redis::merge::{self, Between, Known, Lines, MergeError, Near, Sampled, Scored, Scores, of_one_head};
use crate::store::redis::parts::Parts;
use crate::store::redis::servers::ServerFailure;
use crate::store::redis::session::Session;
use crate::store::{Lookup, NextTo, Page, Standing, Status};

/// A reader of a board of several parts.
pub(super) struct Spread<'a> {
    pub lanes: &'a LanesByWeight,
    pub parts: &'a Parts,
    /// Whether the slots of the subject are requested too.
    pub with_slots: bool,
    /// Whether this runs on the thread of the lanes. Nothing is sent there before all questions of a round are on their
    /// lanes.
    pub is_here: bool,
}

fn failure(error: MergeError<ServerFailure>) -> ServerFailure {
    match error {
        MergeError::Part(failure) => failure,
        MergeError::Unsettled => ServerFailure::KeptChanging,
        MergeError::Impossible(what) => ServerFailure::Corrupt(format!("a part of a board answered {what}")),
    }
}

impl merge::Parts for Spread<'_> {
    type Error = ServerFailure;
    type Version = Option<Stamp>;
    type Extra = About;

    fn count(&self) -> usize {
        self.parts.count()
    }

    async fn lines(
        &self,
        part: usize,
        at_least: Option<Timestamp>,
        question: &Near,
    ) -> Result<Share<Lines<About>>, ServerFailure> {
        let what = What::Lines { near: question.clone(), with_slots: self.with_slots };
        match self.ask(part, at_least, what).await? {
            Answer::Lines(share) => Ok(share),
            _ => Err(mistaken()),
        }
    }

    async fn between(
        &self,
        part: usize,
        at_least: Option<Timestamp>,
        question: &Between,
    ) -> Result<Share<Sampled>, ServerFailure> {
        match self.ask(part, at_least, What::Between(question.clone())).await? {
            Answer::Sampled(share) => Ok(share),
            _ => Err(mistaken()),
        }
    }

    async fn scores(
        &self,
        part: usize,
        at_least: Option<Timestamp>,
        question: &Scores,
    ) -> Result<Share<Scored>, ServerFailure> {
        match self.ask(part, at_least, What::Scores(question.clone())).await? {
            Answer::Scored(share) => Ok(share),
            _ => Err(mistaken()),
        }
    }
}

impl Spread<'_> {
    async fn ask(&self, part: usize, at_least: Option<Timestamp>, what: What) -> Result<Answer, ServerFailure> {
        let part = self.parts.all().get(part).ok_or_else(mistaken)?;
        let question = Question { at_least, ..Question::new(part.clone(), what) };
        match self.is_here {
            true => self.lanes.ask_here(question).await,
            false => self.lanes.ask_in_round(question).await,
        }
    }

    pub async fn page(&self, offset: u64, limit: u32) -> Result<Page, ServerFailure> {
        let (first, what) = (self.parts.first(), Arc::new(What::Page { offset, limit }));
        let held = self.lanes.pages.get(first, &what);
        let known = held.as_ref().map(|held| Known { head: held.head, versions: &held.stamps });
        let merged = merge::page(self, first.board.order(), offset, u64::from(limit), known).await.map_err(failure)?;
        let merge::Merged { frame, versions: stamps, total, found } = merged;
        let Some(found) = found else {
            return match held.as_ref().map(|held| &held.answer) {
                Some(Answer::Page(page)) => Ok(Page { frame, total, first: page.first, items: page.items.clone() }),
                _ => Err(mistaken()),
            };
        };
        let page = Page { frame, total, first: offset.min(total), items: found.into() };
        if stamps.iter().all(Option::is_some) {
            let held = CachedPage::new(Answer::Page(page.clone()), frame.window.head, stamps);
            self.lanes.pages.put(first, &what, held);
        }
        Ok(page)
    }

    pub async fn beside(&self, next_to: &NextTo, limit: u32) -> Result<Page, ServerFailure> {
        let order = self.parts.first().board.order();
        let merged = merge::beside(self, order, next_to, u64::from(limit)).await.map_err(failure)?;
        let merge::Merged { frame, total, found: (first, lines), .. } = merged;
        Ok(Page { frame, total, first, items: lines.into() })
    }

    async fn around(
        &self,
        subject: &Subject,
        radius: u32,
    ) -> Result<merge::Merged<merge::Around<About>, Option<Stamp>>, ServerFailure> {
        let board = &self.parts.first().board;
        let absent = board.kind().absent().unwrap_or(Value::ZERO);
        let own = self.parts.number_of(subject);
        merge::around(self, board.order(), own, subject, absent, u64::from(radius)).await.map_err(failure)
    }

    pub async fn neighbors(&self, subject: &Subject, radius: u32) -> Result<Page, ServerFailure> {
        let around = self.around(subject, radius).await?;
        let merge::Around { first, lines, .. } = around.found;
        Ok(Page { frame: around.frame, total: around.total, first, items: lines.into() })
    }

    pub async fn standing(&self, subject: &Subject) -> Result<Standing, ServerFailure> {
        let merge::Merged { frame, total, found, .. } = self.around(subject, 0).await?;
        let merge::Around { score, better, extra, .. } = found;
        Ok(Standing {
            frame,
            total,
            score: score.or(self.parts.first().board.kind().absent()),
            rank: score.map(|_| better + 1),
            better,
            slots: extra.slots,
            capped: extra.capped.is_some_and(|time| time >= frame.window.floor),
        })
    }

    /// Looks up scores and ranks. All parts are asked, because each returns its own total.
    pub async fn lookup(&self, subjects: &[Subject], ranks: bool) -> Result<Lookup, ServerFailure> {
        let mut shares: Vec<(Vec<usize>, Vec<Subject>)> = vec![Default::default(); self.parts.count()];
        for (place, subject) in subjects.iter().enumerate() {
            let (places, asked) = &mut shares[self.parts.number_of(subject)];
            places.push(place);
            asked.push(subject.clone());
        }
        let (places, shares): (Vec<Vec<usize>>, Vec<Vec<Subject>>) = shares.into_iter().unzip();
        let order = self.parts.first().board.order();
        let merge::Merged { frame, total, found, .. } =
            merge::scores(self, order, shares, ranks).await.map_err(failure)?;
        let (mut scores, mut ranks) = (vec![None; subjects.len()], vec![None; subjects.len()]);
        for (place, (score, better)) in places.into_iter().flatten().zip(found.into_iter().flatten()) {
            scores[place] = score;
            ranks[place] = better.map(|better| better + 1);
        }
        Ok(Lookup { frame, total, scores, ranks })
    }
}

/// Returns the state of a board of several parts as a whole: all parts with the same head, and their sizes added.
pub(super) async fn status(session: &Session, parts: &Parts) -> Result<Status, ServerFailure> {
    let all: Vec<usize> = (0..parts.count()).collect();
    let ask = |part: usize, at_least| {
        let part = Arc::clone(&parts.all()[part]);
        async move {
            let said = status_of(session, &part, at_least).await?;
            Ok(Share { frame: said.frame, version: None, said })
        }
    };
    let answers = of_one_head(&all, None, ask).await.map_err(failure)?;
    let (mut frame, _, said) = merge::take_apart(answers).ok_or(ServerFailure::KeptChanging)?;
    let (mut total, mut slots, mut retiring, mut events) = (0, BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
    let add = |sizes: &mut BTreeMap<Timestamp, u64>, more: Vec<(Timestamp, u64)>| {
        for (start, number) in more {
            *sizes.entry(start).or_default() += number;
        }
    };
    for said in said {
        total += said.total;
        add(&mut slots, said.slots);
        add(&mut retiring, said.retiring);
        add(&mut events, said.events);
    }
    frame.retiring = retiring.len() as u64;
    let ordered = |sizes: BTreeMap<Timestamp, u64>| sizes.into_iter().collect();
    Ok(Status { frame, total, slots: ordered(slots), retiring: ordered(retiring), events: ordered(events) })
}
