//! The ranks of places where each line has a rank of its own.

use futures_util::future::try_join_all;

use super::{Between, MergeError, PartitionReads, of_one_head};
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
    let all: Vec<usize> = (0..partitions.count()).collect();
    let rank = async |place: Option<Place>| {
        let Some(place) = place else { return Ok(None) };
        let question = |_| Between { lo: Some(place.clone()), hi: Some(place.clone()), samples: 0, all_up_to: 0 };
        let shares = of_one_head(&all, Some(head), question, |round| partitions.between(round)).await?;
        let before: u64 = shares.iter().map(|share| share.said.before_lo).sum();
        Ok(Some((before + 1).min(total)))
    };
    try_join_all(places.into_iter().map(rank)).await
}
