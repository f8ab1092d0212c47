//! Pages that were read before, and the check whether they are still current.

use super::{Found, MergeError, Merged, MergedRead, Near, PartitionReads, Share, of_one_head, take_apart};
use crate::board::Timestamp;

/// A page that was read before: the head and the versions of the partitions from which it was made, in their order.
///
/// A page is determined by the content of the partitions, and a partition with the same version and head has the same
/// content. So if each partition returns these, at whatever instants, the page is also correct for these instants.
#[derive(Debug)]
pub(in crate::store::redis) struct KnownPage<'a, V> {
    pub head: Timestamp,
    pub versions: &'a [V],
}

impl<V: PartialEq> KnownPage<'_, V> {
    /// Returns whether these shares, one of each partition in their order, have the head and versions of the page.
    pub(super) fn is_of<T>(&self, shares: &[&Share<T, V>]) -> bool {
        let same = |(share, version): (&&Share<T, V>, &V)| share.head() == self.head && share.version == *version;
        shares.len() == self.versions.len() && shares.iter().zip(self.versions).all(same)
    }
}

/// Asks each partition for its first line, to get its version. Returns `None` if a partition has changed.
pub(super) async fn unchanged<P: PartitionReads>(
    partitions: &P,
    known: &KnownPage<'_, P::Version>,
) -> Result<Option<Merged<Option<Found>, P::Version>>, MergeError<P::Error>> {
    let all: Vec<usize> = (0..partitions.count()).collect();
    let shares = of_one_head(&all, None, |_| Near::first(1), |round| partitions.near(round)).await?;
    if !known.is_of(&shares.iter().collect::<Vec<_>>()) {
        return Ok(None);
    }
    let totals = shares.into_iter().map(|share| share.split(|said| said.total).0).collect();
    as_known::<P>(totals).map(Some)
}

/// Returns the result for a page that has not changed, given the number of lines of each partition.
pub(super) fn as_known<P: PartitionReads>(totals: Vec<Share<u64, P::Version>>) -> MergedRead<P, Option<Found>> {
    let (frame, versions, totals) = take_apart(totals).ok_or(MergeError::Unsettled)?;
    Ok(Merged { frame, versions, total: totals.iter().sum(), found: None })
}
