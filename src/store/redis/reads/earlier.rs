//! The ranks at the newest boundary. Each partition notes those of its own first lines, and here they are merged.

use std::sync::Arc;

use futures_util::future::try_join_all;

use crate::board::{EarlierRanks, Order, Subject, Timestamp, Value};
use crate::store::place::compare_scores;
use crate::store::redis::merge::{Round, Share, of_one_head, take_apart};
use crate::store::redis::part::Part;
use crate::store::redis::partitions::Parts;
use crate::store::redis::scripts::EARLIER;
use crate::store::redis::servers::{Channel, ServerFailure};
use crate::store::redis::session::{ScriptAnswer, Session};

/// A line of a partition. The subject is `None` if it was removed since.
type NotedLine = (Value, Option<Subject>);

/// What a partition has noted.
struct Noted {
    /// The boundary, or `None` if there was none yet.
    at: Option<Timestamp>,
    /// The first lines, best first, or `None` if they are not known.
    lines: Option<Vec<NotedLine>>,
}

/// Returns the ranks of a track at the newest boundary, or `None` if it notes none. They are known if all partitions
/// know theirs, at the same boundary.
pub(in crate::store::redis) async fn earlier_ranks(
    session: &Session,
    parts: &Parts,
) -> Result<Option<Arc<EarlierRanks>>, ServerFailure> {
    let track = &parts.first().track;
    if track.noted_at(Timestamp::EPOCH).is_none() {
        return Ok(None);
    }
    let all: Vec<usize> = (0..parts.count()).collect();
    let ask = |round: Round<()>| {
        let share = |(number, ()): (usize, ())| noted(session, &parts.all()[number], round.at_least);
        try_join_all(round.questions.into_iter().map(share).collect::<Vec<_>>())
    };
    let shares = of_one_head(&all, None, |_| (), ask).await.map_err(super::spread::failure)?;
    let (_, _, said) = take_apart(shares).ok_or(ServerFailure::KeptChanging)?;
    let Some(at) = said.iter().filter_map(|noted| noted.at).min() else { return Ok(None) };
    let is_of_one_boundary = said.iter().all(|noted| noted.at == Some(at));
    let lines: Option<Vec<_>> = said.into_iter().map(|noted| noted.lines).collect();
    Ok(Some(Arc::new(match lines.filter(|_| is_of_one_boundary) {
        Some(lines) => EarlierRanks::of_lines(at, track.ranks(), merged(track.order(), lines)),
        None => EarlierRanks::unknown(at),
    })))
}

/// Returns the lines of all partitions in the order of the board. The place of one without a name among equal scores is not
/// known any more; no rank depends on it.
fn merged(order: Order, lines: Vec<Vec<NotedLine>>) -> Vec<NotedLine> {
    let mut all: Vec<_> = lines.into_iter().flatten().collect();
    all.sort_by(|(score, subject), (other, of_other)| {
        compare_scores(*score, *other, order).then_with(|| match order {
            Order::Asc => subject.cmp(of_other),
            Order::Desc => of_other.cmp(subject),
        })
    });
    all
}

async fn noted(session: &Session, part: &Part, at_least: Option<Timestamp>) -> Result<Share<Noted, ()>, ServerFailure> {
    let answer = session.ask_at_least(part, Channel::Calls, at_least, &EARLIER, |_, _| {}).await?;
    let ScriptAnswer { frame, mut reply, .. } = answer;
    let (at, is_known) = (reply.maybe_time()?, !reply.text()?.is_empty());
    let mut lines = Vec::with_capacity(reply.len() / 2);
    while !reply.is_empty() {
        let subject = Some(reply.text()?).filter(|name| !name.is_empty()).map(Subject::from_stored);
        let score: Value = reply.line_score(part.track.kind())?;
        lines.push((score, subject));
    }
    Ok(Share { frame, version: (), said: Noted { at, lines: is_known.then_some(lines) } })
}
