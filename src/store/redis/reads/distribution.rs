//! How the scores of a ranking are distributed.
//!
//! One partition answers all of it in one script. Of several, each counts, and the score at a percentile is a line of the
//! merged ranking, at an instant of its own.

use std::sync::Arc;

use futures_util::future::try_join_all;

use super::question::add_ranking;
use super::{AskedRanking, Reads};
use crate::board::{Percentile, RankingKey, Timestamp, Value};
use crate::store::redis::merge::{ROUNDS, Round, Share, of_one_head, take_apart};
use crate::store::redis::part::Part;
use crate::store::redis::score_text::score_text;
use crate::store::redis::scripts::DISTRIBUTION;
use crate::store::redis::servers::{Channel, ServerFailure};
use crate::store::redis::session::{ScriptAnswer, Session};
use crate::store::{AtScore, Distribution, PageStart};

/// The number of percentiles of several partitions that are read at a time.
const AT_ONCE: usize = 8;
/// The number of lines that are read on each side of the one that is expected at a percentile.
const BESIDE: u64 = 16;

impl Reads {
    /// Reads scores at percentiles, and numbers of subjects around scores.
    pub async fn distribution(
        &self,
        session: &Session,
        ranking: AskedRanking<'_>,
        percentiles: &[Percentile],
        scores: &[Value],
    ) -> Result<Distribution, ServerFailure> {
        let AskedRanking { parts, key, .. } = ranking;
        let own = match key {
            Some(key) => Some(parts.of_key(key)),
            None => parts.only(),
        };
        if let Some(part) = own {
            return of_part(session, part, key, None, percentiles, scores).await;
        }
        let all: Vec<usize> = (0..parts.count()).collect();
        let ask = |round: Round<()>| {
            let share = |(number, ()): (usize, ())| async move {
                let said = of_part(session, &parts.all()[number], None, round.at_least, &[], scores).await?;
                Ok::<_, ServerFailure>(Share { frame: said.frame, version: None::<()>, said })
            };
            try_join_all(round.questions.into_iter().map(share).collect::<Vec<_>>())
        };
        let shares = of_one_head(&all, None, |_| (), ask).await.map_err(super::spread::failure)?;
        let (frame, _, said) = take_apart(shares).ok_or(ServerFailure::KeptChanging)?;
        let mut whole =
            Distribution { frame, total: 0, percentiles: Vec::new(), scores: vec![AtScore::default(); scores.len()] };
        for said in said {
            whole.total += said.total;
            for (sum, more) in whole.scores.iter_mut().zip(said.scores) {
                *sum = AtScore { better: sum.better + more.better, equal: sum.equal + more.equal };
            }
        }
        for together in percentiles.chunks(AT_ONCE) {
            let at = together.iter().map(|percentile| self.score_at(ranking, *percentile, whole.total));
            whole.percentiles.extend(try_join_all(at.collect::<Vec<_>>()).await?);
        }
        Ok(whole)
    }

    /// Returns the score at a percentile of a ranking of several partitions, which had this many lines just now.
    ///
    /// The position follows from the number of lines, which may be another one when the line is read. So the lines on both
    /// sides are read too, and the answer is the line that has the position by the number that was read with them.
    async fn score_at(
        &self,
        ranking: AskedRanking<'_>,
        percentile: Percentile,
        mut total: u64,
    ) -> Result<Option<Value>, ServerFailure> {
        for _ in 0..ROUNDS {
            let expected = percentile.position(total).unwrap_or(0).saturating_sub(BESIDE);
            let page = self.page(ranking, &PageStart::Offset(expected), 2 * BESIDE as u32 + 1).await?;
            let Some(position) = percentile.position(page.total) else { return Ok(None) };
            let at = position.checked_sub(page.first).and_then(|at| usize::try_from(at).ok());
            if let Some(line) = at.and_then(|at| page.items.get(at)) {
                return Ok(Some(line.score));
            }
            total = page.total;
        }
        Err(ServerFailure::KeptChanging)
    }
}

async fn of_part(
    session: &Session,
    part: &Arc<Part>,
    key: Option<&RankingKey>,
    at_least: Option<Timestamp>,
    percentiles: &[Percentile],
    scores: &[Value],
) -> Result<Distribution, ServerFailure> {
    let answer = session.ask_at_least(part, Channel::Calls, at_least, &DISTRIBUTION, |_, call| {
        call.key(&part.keys.ranking);
        add_ranking(part, key, call);
        call.arg("percentiles", percentiles.len());
        for percentile in percentiles {
            call.more(percentile.thousandths());
        }
        for score in scores {
            call.more(score_text(Some(*score)));
        }
    });
    let ScriptAnswer { frame, mut reply, .. } = answer.await?;
    let (kind, total) = (part.track.kind(), reply.count()?);
    let percentiles = percentiles.iter().map(|_| reply.score(kind)).collect::<Result<_, _>>()?;
    let at = scores.iter().map(|_| Ok(AtScore { better: reply.count()?, equal: reply.count()? }));
    let scores = at.collect::<Result<_, ServerFailure>>()?;
    Ok(Distribution { frame, total, percentiles, scores })
}
