//! Asking several partitions until all have answered with the same head.

use std::future::Future;

use super::{MergeError, ROUNDS, Round, Share};
use crate::board::Timestamp;

/// Asks these partitions, and returns their shares in the same order. Those whose head is older than the newest one, or
/// than `newest`, are asked again, up to [`ROUNDS`] times in total.
pub(in crate::store::redis) async fn of_one_head<Q, T, V, E, F>(
    partitions: &[usize],
    mut newest: Option<Timestamp>,
    question: impl Fn(usize) -> Q,
    ask: impl Fn(Round<Q>) -> F,
) -> Result<Vec<Share<T, V>>, MergeError<E>>
where
    F: Future<Output = Result<Vec<Share<T, V>>, E>>,
{
    let mut shares: Vec<Option<Share<T, V>>> = partitions.iter().map(|_| None).collect();
    for _ in 0..ROUNDS {
        let current = |share: &Option<Share<T, V>>| share.as_ref().is_some_and(|share| Some(share.head()) >= newest);
        let due: Vec<usize> = (0..partitions.len()).filter(|i| !current(&shares[*i])).collect();
        let questions = due.iter().map(|i| (partitions[*i], question(partitions[*i]))).collect();
        let answered = ask(Round { at_least: newest, questions }).await.map_err(MergeError::Partition)?;
        for (i, share) in due.into_iter().zip(answered) {
            newest = newest.max(Some(share.head()));
            shares[i] = Some(share);
        }
        if shares.iter().all(|share| share.as_ref().map(Share::head) == newest) {
            return Ok(shares.into_iter().flatten().collect());
        }
    }
    Err(MergeError::Unsettled)
}
