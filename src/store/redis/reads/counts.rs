//! Counts and scores that do not depend on one place of a ranking: scores and ranks of given subjects, and what several
//! partitions return about the lines between two places.

use super::question::{FARTHEST, LEAST, Read, Seen, add_ranking};
use super::share::{Stamp, StampedShare};
use crate::board::{Kind, RankingKey, Ranks, Track};
use crate::store::Place;
use crate::store::redis::merge::{Between, Sampled, Scored, Scores, Stretch};
use crate::store::redis::reply::Reply;
use crate::store::redis::score_text::score_text;
use crate::store::redis::scripts::{BETWEEN, LOOKUP, Script, ScriptCall};
use crate::store::redis::servers::ServerFailure;
use crate::store::redis::session::Moment;

/// The number of scores that the server looks up in the time in which a script reads one cell.
const SCORES: u64 = 4;
/// The weight of counting the subjects with a better score, in ordinary cells. It takes about 3 us with 100,000
/// subjects and 9 us with a million.
const RANK: u64 = 4;

impl Read for Scores {
    type Reply = StampedShare<Scored>;

    fn cells(&self, _: &Track) -> u64 {
        let (subjects, counted) = (self.subjects.len() as u64, self.better_than.len() as u64);
        let ranks = counted + if self.ranks { subjects * if self.ties { 2 } else { 1 } } else { 0 };
        subjects / SCORES + ranks * RANK + counted * (RANK + self.near) * self.near.min(1)
    }

    fn call(&self, moment: &Moment<'_>, key: Option<&RankingKey>, call: &mut ScriptCall) -> &'static Script {
        call.key(&moment.part.keys.ranking);
        add_ranking(moment.part, key, call);
        call.arg("ranks", ranks_asked(self.ranks, self.ties)).arg("rank_of", rank_of(&moment.part.track));
        let has_places = !self.names.is_empty();
        call.arg("near", if has_places { "places".to_owned() } else { self.near.to_string() });
        call.arg("subjects", self.subjects.len());
        call.all(&*self.subjects);
        call.all(self.better_than.iter().map(|score| score_text(Some(*score))));
        call.all(&*self.names);
        &LOOKUP
    }

    fn read(&self, moment: &Moment<'_>, seen: Seen, reply: &mut Reply) -> Result<Self::Reply, ServerFailure> {
        let kind = moment.part.track.kind();
        let total = reply.count()?;
        let scores = self.subjects.iter().map(|_| reply.score(kind)).collect::<Result<_, _>>()?;
        let ranked = if self.ranks { self.subjects.len() } else { 0 };
        let better_than_subjects = (0..ranked).map(|_| reply.count()).collect::<Result<_, _>>()?;
        let tied = if self.ties { ranked } else { 0 };
        let not_worse_than_subjects = (0..tied).map(|_| reply.count()).collect::<Result<_, _>>()?;
        let (mut better, mut near) = (Vec::with_capacity(self.better_than.len()), Vec::new());
        for _ in &*self.better_than {
            better.push(reply.count()?);
            if self.near > 0 {
                near.push(stretch(&mut reply.part()?, kind)?);
            }
        }
        let said = Scored { total, scores, better_than_subjects, not_worse_than_subjects, better, near };
        Ok(StampedShare { frame: seen.frame, version: None, said })
    }
}

/// Returns the argument that says whether a script counts ranks, and ties with them.
pub(super) fn ranks_asked(ranks: bool, ties: bool) -> &'static str {
    match (ranks, ties) {
        (true, true) => "ties",
        (true, false) => "ranks",
        (false, _) => "",
    }
}

/// Returns the argument that says what a rank follows from: the score of a line, or the line itself.
pub(super) fn rank_of(track: &Track) -> &'static str {
    match track.ranks() {
        Ranks::Shared => "score",
        Ranks::Ordinal => "line",
    }
}

fn stretch(lines: &mut Reply, kind: Kind) -> Result<Stretch, ServerFailure> {
    let (first, better) = (lines.count()?, lines.count()?);
    let scores = (0..lines.len()).map(|_| lines.line_score(kind)).collect::<Result<_, _>>()?;
    Ok(Stretch { first, better, scores })
}

impl Read for Between {
    type Reply = StampedShare<Sampled>;

    fn cells(&self, _: &Track) -> u64 {
        self.all_up_to.saturating_add(LEAST)
    }

    fn call(&self, moment: &Moment<'_>, key: Option<&RankingKey>, call: &mut ScriptCall) -> &'static Script {
        let score = |place: &Option<Place>| score_text(place.as_ref().map(|place| place.score));
        let subject =
            |place: &Option<Place>| place.as_ref().map_or_else(String::new, |place| place.subject.to_string());
        call.key(&moment.part.keys.ranking);
        add_ranking(moment.part, key, call);
        call.arg("from_score", score(&self.lo)).arg("from_subject", subject(&self.lo));
        call.arg("till_score", score(&self.hi)).arg("till_subject", subject(&self.hi));
        call.arg("samples", self.samples).arg("all_up_to", self.all_up_to.min(FARTHEST));
        &BETWEEN
    }

    fn read(&self, moment: &Moment<'_>, seen: Seen, reply: &mut Reply) -> Result<Self::Reply, ServerFailure> {
        let kind = moment.part.track.kind();
        let (total, before_lo, better_than_lo) = (reply.count()?, reply.count()?, reply.count()?);
        let (before_hi, version) = (reply.count()?, reply.text()?);
        let mut lines = Vec::with_capacity(reply.len() / 3);
        while !reply.is_empty() {
            let (position, subject) = (reply.count()?, reply.subject()?);
            lines.push((position, Place { score: reply.line_score(kind)?, subject }));
        }
        let said = Sampled { total, before_lo, better_than_lo, before_hi, lines };
        Ok(StampedShare { frame: seen.frame, version: Stamp::new(&version, seen.incarnation), said })
    }
}
