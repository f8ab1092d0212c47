//! How the scores of a ranking are distributed.
//!
//! One partition answers all of it in one script. Of several, each counts, and the score at a percentile is a line of the
//! merged ranking.

use std::sync::Arc;

use futures_util::future::try_join_all;

use super::question::add_ranking;
use super::{Ranking, Reads};
use crate::board::{Percentile, RankingKey, Timestamp, Value};
use crate::store::redis::merge::{ROUNDS, Round, Share, of_one_head, take_apart};
use crate::store::redis::part::Part;
use crate::store::redis::score_text::score_text;
use crate::store::redis::scripts::DISTRIBUTION;
use crate::store::redis::servers::{Channel, ServerFailure};
use crate::store::redis::session::{ScriptAnswer, Session};
use crate::store::{AtScore, Distribution, PageStart};

impl Reads {
    /// Reads scores at percentiles, and numbers of subjects around scores.
    pub async fn distribution(
        &self,
        session: &Session,
        ranking: Ranking<'_>,
        percentiles: &[Percentile],
        scores: &[Value],
    ) -> Result<Distribution, ServerFailure> {
        let Ranking { parts, key, .. } = ranking;
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
        let at = percentiles.iter().map(|percentile| self.score_at(ranking, *percentile, whole.total));
        whole.percentiles = try_join_all(at).await?;
        Ok(whole)
    }

    /// Returns the score at a percentile of a ranking of several partitions, which had this many lines just now.
    async fn score_at(
        &self,
        ranking: Ranking<'_>,
        percentile: Percentile,
        mut total: u64,
    ) -> Result<Option<Value>, ServerFailure> {
        for _ in 0..ROUNDS {
            let Some(position) = percentile.position(total) else { return Ok(None) };
            let page = self.page(ranking, &PageStart::Offset(position), 1).await?;
            if let Some(line) = page.items.first() {
                return Ok(Some(line.score));
            }
            // Lines have left since they were counted, and the position is beyond the last one.
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
