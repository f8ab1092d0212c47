//! Pages at a small offset: the first lines of each part, merged.

use super::further::{Side, further};
use super::known::{Known, as_known};
use super::region::{Region, Segment};
use super::{Answer, LinesOf, MARGIN, MergeError, Merged, Near, Parts, ROUNDS, Read, of_one_head, take_apart};
use crate::board::Order;
use crate::store::Ranked;

type Answers<P> = Vec<Option<LinesOf<P>>>;

/// Reads an even share plus [`MARGIN`] lines of each part, then more lines of the parts whose last line is still on the
/// page.
pub(super) async fn page<P: Parts>(
    parts: &P,
    order: Order,
    offset: u64,
    limit: u64,
    known: Option<Known<'_, P::Version>>,
) -> Read<P, Option<Vec<Ranked>>> {
    let count = parts.count();
    let wanted = offset.saturating_add(limit);
    let mut questions = vec![Near::first(wanted.div_ceil(count as u64).saturating_add(MARGIN)); count];
    let mut answers: Answers<P> = (0..count).map(|_| None).collect();
    let mut due: Vec<usize> = (0..count).collect();
    for _ in 0..ROUNDS {
        let newest = answers.iter().flatten().map(Answer::head).max();
        let asked = of_one_head(&due, newest, |part, at_least| parts.lines(part, at_least, &questions[part])).await?;
        for (part, answer) in due.iter().zip(asked) {
            answers[*part] = Some(answer);
        }
        due = behind(&answers);
        if !due.is_empty() {
            continue;
        }
        if known.as_ref().is_some_and(|known| known.is_of(&answers.iter().flatten().collect::<Vec<_>>())) {
            return as_known::<P, _>(answers.into_iter().flatten().collect());
        }
        for (part, more) in more_lines::<P>(order, &answers, wanted) {
            questions[part] = Near::first(more.saturating_add(MARGIN));
            due.push(part);
        }
        if due.is_empty() {
            return finish::<P>(order, answers, offset, limit);
        }
    }
    Err(MergeError::Unsettled)
}

/// Returns the parts that have answered with an older head than others.
pub(super) fn behind<T, V>(answers: &[Option<Answer<T, V>>]) -> Vec<usize> {
    let newest = answers.iter().flatten().map(Answer::head).max();
    let is_behind = |answer: &Option<Answer<_, _>>| answer.as_ref().map(Answer::head) < newest;
    (0..answers.len()).filter(|part| is_behind(&answers[*part])).collect()
}

/// Returns each part of which more lines are needed to know the first `wanted` of all, with the required number of its
/// first lines.
fn more_lines<P: Parts>(order: Order, answers: &Answers<P>, wanted: u64) -> Vec<(usize, u64)> {
    let said = answers.iter().flatten().map(|answer| &answer.said);
    let side = said.map(|said| Side { open: said.total > said.lines.len() as u64, lines: said.lines.iter().collect() });
    let sides: Vec<Side<'_>> = side.collect();
    let more = further(order, &sides, wanted).into_iter().enumerate();
    more.filter(|(_, more)| *more > 0).map(|(part, more)| (part, sides[part].lines.len() as u64 + more)).collect()
}

fn finish<P: Parts>(order: Order, answers: Answers<P>, offset: u64, limit: u64) -> Read<P, Option<Vec<Ranked>>> {
    let answers = answers.into_iter().flatten().collect();
    let (frame, versions, said) = take_apart(answers).ok_or(MergeError::Unsettled)?;
    let segments = said.into_iter().map(|said| Segment::of_lines(said, order)).collect::<Result<_, _>>()?;
    let region = Region::new(order, segments);
    let found = region.page(offset, limit).ok_or(MergeError::Impossible("fewer lines than it has"))?;
    Ok(Merged { frame, versions, total: region.total(), found: Some(found) })
}
