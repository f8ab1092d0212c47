//! Asking several parts until all have answered with the same head.

use std::future::Future;

use futures_util::future::try_join_all;

use super::{Answer, MergeError, ROUNDS};
use crate::board::Timestamp;

/// Asks these parts, all at the same time, and returns their answers in the same order. Parts whose head is older than
/// the newest one, or than `newest`, are asked again, up to [`ROUNDS`] times in total.
pub(in crate::store::redis) async fn of_one_head<T, V, E, F>(
    parts: &[usize],
    mut newest: Option<Timestamp>,
    ask: impl Fn(usize, Option<Timestamp>) -> F,
) -> Result<Vec<Answer<T, V>>, MergeError<E>>
where
    F: Future<Output = Result<Answer<T, V>, E>>,
{
    let mut answers: Vec<Option<Answer<T, V>>> = parts.iter().map(|_| None).collect();
    for _ in 0..ROUNDS {
        let current =
            |answer: &Option<Answer<T, V>>| answer.as_ref().is_some_and(|answer| Some(answer.head()) >= newest);
        let due: Vec<usize> = (0..parts.len()).filter(|i| !current(&answers[*i])).collect();
        let asked = try_join_all(due.iter().map(|i| ask(parts[*i], newest))).await.map_err(MergeError::Part)?;
        for (i, answer) in due.into_iter().zip(asked) {
            newest = newest.max(Some(answer.head()));
            answers[i] = Some(answer);
        }
        if answers.iter().flatten().all(|answer| Some(answer.head()) == newest) {
            return Ok(answers.into_iter().flatten().collect());
        }
    }
    Err(MergeError::Unsettled)
}
