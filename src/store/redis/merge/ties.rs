//! The numbers of lines that are not worse than given scores.

use super::{MergeError, PartitionReads, Scores, of_one_head};
use crate::board::{Amount, Order, Timestamp, Value};
use crate::store::place::compare_scores;

/// Returns for each of these scores the number of lines of all partitions whose score is not worse. `head` is that of the
/// answer that the scores are from. One round.
pub(in crate::store::redis) async fn ties<P: PartitionReads>(
    partitions: &P,
    order: Order,
    head: Timestamp,
    scores: &[Value],
) -> Result<Vec<u64>, MergeError<P::Error>> {
    let mut next: Vec<Value> = scores.iter().map(|score| next_worse(*score, order)).collect();
    next.sort_unstable_by(|a, b| compare_scores(*a, *b, order));
    next.dedup();
    let all: Vec<usize> = (0..partitions.count()).collect();
    let question = Scores { better_than: next.clone().into(), ..Scores::of([].into(), false) };
    let shares = of_one_head(&all, Some(head), |_| question.clone(), |round| partitions.scores(round)).await?;
    let count = |score: &Value| {
        let asked = next_worse(*score, order);
        let at = next.partition_point(|next| compare_scores(*next, asked, order).is_lt());
        let of_parts = shares.iter().map(|share| share.said.better.get(at).copied());
        of_parts.sum::<Option<u64>>().ok_or(MergeError::Impossible("too few counts"))
    };
    scores.iter().map(count).collect()
}

/// Returns the best of the scores that are worse than this one: what is strictly better than it is not worse than the
/// given one.
fn next_worse(score: Value, order: Order) -> Value {
    match (score, order) {
        (Value::Exact(Amount(units)), Order::Desc) => Value::Exact(Amount(units.saturating_sub(1))),
        (Value::Exact(Amount(units)), Order::Asc) => Value::Exact(Amount(units.saturating_add(1))),
        // Adding 0.0 turns −0 into 0.
        (Value::Real(number), Order::Desc) => Value::Real(number.next_down() + 0.0),
        (Value::Real(number), Order::Asc) => Value::Real(number.next_up() + 0.0),
    }
}
