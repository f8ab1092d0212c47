//! The ranks of places where each line has a rank of its own.

use super::{MergeError, PartitionReads, Scores, of_one_head};
use crate::board::Timestamp;
use crate::store::Place;

/// Returns for each of these places of lines the number of lines of all partitions before it, and one, at most `total`.
/// `head` is that of the answer that the places are from, which is of an earlier instant. One round.
pub(in crate::store::redis) async fn ranks<P: PartitionReads>(
    partitions: &P,
    head: Timestamp,
    total: u64,
    places: Vec<Option<Place>>,
) -> Result<Vec<Option<u64>>, MergeError<P::Error>> {
    let asked = || places.iter().flatten();
    let (names, scores) = (asked().map(|place| place.subject.clone()), asked().map(|place| place.score));
    let question = Scores { better_than: scores.collect(), names: names.collect(), ..Scores::of([].into(), false) };
    let all: Vec<usize> = (0..partitions.count()).collect();
    let shares = of_one_head(&all, Some(head), |_| question.clone(), |round| partitions.scores(round)).await?;
    let mut at = 0..;
    let rank = |place: &Option<Place>| {
        let Some(at) = place.as_ref().and_then(|_| at.next()) else { return Ok(None) };
        let before: Option<u64> = shares.iter().map(|share| share.said.better.get(at).copied()).sum();
        let before = before.ok_or(MergeError::Impossible("too few counts"))?;
        Ok(Some((before + 1).min(total)))
    };
    places.iter().map(rank).collect()
}
