//! Pages at a large offset: the page is enclosed between two places, ever more closely, until all lines between can be
//! read.

use super::region::{Region, Segment};
use super::samples::{Samples, check};
use super::{Between, MergeError, Merged, Parts, ROUNDS, Read, Sampled, of_one_head, take_apart};
use crate::board::Order;
use crate::store::Ranked;

/// How many lines are sampled of each part in a round.
const SAMPLES: u64 = 32;

/// How many lines are sampled of all parts in a round, at least: with few parts more of each, so that as few rounds are
/// needed as with many.
const ALL_SAMPLES: u64 = 512;

/// How many lines more than needed are enclosed on either side. So many subjects may pass the page between two rounds
/// without another round being needed.
const SLACK: u64 = 32;

/// Encloses the page between two places and reads what is between.
///
/// Each round asks all parts how many lines they have before each place and for evenly spaced samples between. These
/// bound the position of every sample, so the next round's places are the last sample surely before the page and the
/// first one surely after it. If writes have moved the page out of what was enclosed, the next round encloses more.
pub(super) async fn page<P: Parts>(parts: &P, order: Order, offset: u64, limit: u64) -> Read<P, Vec<Ranked>> {
    let all: Vec<usize> = (0..parts.count()).collect();
    let count = all.len() as u64;
    let samples = SAMPLES.max(ALL_SAMPLES / count);
    // As much as a round of samples and the page twice.
    let few = count.saturating_mul(samples).saturating_add(limit.saturating_mul(2));
    let mut question = Between { lo: None, hi: None, samples, all_up_to: samples };
    let mut known = Samples::default();
    for round in 1..=ROUNDS {
        let answers = of_one_head(&all, None, |part, at_least| parts.between(part, at_least, &question)).await?;
        let (frame, versions, said) = take_apart(answers).ok_or(MergeError::Unsettled)?;
        said.iter().try_for_each(|said| check(order, &question, said))?;
        let total = said.iter().map(|said| said.total).sum();
        let end = offset.saturating_add(limit).min(total);
        if end <= offset {
            return Ok(Merged { frame, versions, total, found: Vec::new() });
        }
        known.learn(order, &question, &said);
        let slack = SLACK + 2 * missed(&said, offset, end);
        if said.iter().all(Sampled::is_complete) {
            let segments = said.into_iter().map(|said| Segment::of_all_between(said, &question)).collect();
            if let Some(found) = Region::new(order, segments).page(offset, limit) {
                return Ok(Merged { frame, versions, total, found });
            }
        }
        let bracket = known.bracket(offset.saturating_sub(slack), end.saturating_add(slack), total);
        // The last rounds, which writes have made necessary, read more rather than nothing.
        let readable = few.saturating_mul([1, 1, 4, 16][round.min(4) - 1]);
        let all_up_to = if bracket.lines <= readable { samples.max(bracket.lines + SLACK) } else { samples };
        question = Between { lo: bracket.lo, hi: bracket.hi, samples, all_up_to };
    }
    Err(MergeError::Unsettled)
}

/// By how many lines the page is outside of what was asked about.
fn missed(said: &[Sampled], offset: u64, end: u64) -> u64 {
    let before_lo: u64 = said.iter().map(|said| said.before_lo).sum();
    let before_hi: u64 = said.iter().map(|said| said.before_hi).sum();
    before_lo.saturating_sub(offset) + end.saturating_sub(before_hi)
}
