//! Pages at a large offset. The page is enclosed between two places, more closely in each round, until all lines
//! between them can be read.

use super::region::{Region, Segment};
use super::samples::{Samples, check};
use super::{Between, MergeError, Merged, MergedRead, PartitionReads, ROUNDS, Sampled, of_one_head, take_apart};
use crate::board::Order;
use crate::store::Ranked;

/// The number of lines that are sampled of each partition in a round.
const SAMPLES: u64 = 32;

/// The smallest number of lines that are sampled of all partitions together in a round. With few partitions more lines
/// of each are sampled, so that no more rounds are needed than with many partitions.
const ALL_SAMPLES: u64 = 512;

/// The number of additional lines that are enclosed on either side. This many subjects may pass the page between two
/// rounds without a further round.
const SLACK: u64 = 32;

/// Encloses the page between two places and reads the lines between them.
///
/// Each round asks all partitions for the number of lines before each place and for evenly spaced samples between the
/// places. These bound the position of every sample. So the places of the next round are the last sample that is
/// certainly before the page and the first one that is certainly after it. If writes have moved the page out of the
/// enclosed lines, the next round encloses more.
pub(super) async fn page<P: PartitionReads>(
    partitions: &P,
    order: Order,
    offset: u64,
    limit: u64,
) -> MergedRead<P, Vec<Ranked>> {
    let all: Vec<usize> = (0..partitions.count()).collect();
    let count = all.len() as u64;
    let samples = SAMPLES.max(ALL_SAMPLES / count);
    // The number of lines of a round of samples plus twice the page.
    let few = count.saturating_mul(samples).saturating_add(limit.saturating_mul(2));
    let mut question = Between { lo: None, hi: None, samples, all_up_to: samples };
    let mut known = Samples::default();
    for round in 1..=ROUNDS {
        let shares = of_one_head(&all, None, |_| question.clone(), |round| partitions.between(round)).await?;
        let (frame, versions, said) = take_apart(shares).ok_or(MergeError::Unsettled)?;
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
        // The last rounds are needed only because of writes. They read more lines, so that the read does not fail.
        let readable = few.saturating_mul([1, 1, 4, 16][round.min(4) - 1]);
        let all_up_to = if bracket.lines <= readable { samples.max(bracket.lines + SLACK) } else { samples };
        question = Between { lo: bracket.lo, hi: bracket.hi, samples, all_up_to };
    }
    Err(MergeError::Unsettled)
}

/// Returns the number of lines by which the page is outside of the two places.
fn missed(said: &[Sampled], offset: u64, end: u64) -> u64 {
    let before_lo: u64 = said.iter().map(|said| said.before_lo).sum();
    let before_hi: u64 = said.iter().map(|said| said.before_hi).sum();
    before_lo.saturating_sub(offset) + end.saturating_sub(before_hi)
}
