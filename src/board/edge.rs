//! The weight of the oldest slot of a window: whole, or a share of it, as sliding-window rate limiters use.
//!
//! A window of N slots ends within its newest slot, so N slots cover between N−1 and N slots of time. If one older slot
//! is added and weighted by the share of it that the window still reaches, the value is that of *exactly* N slots of
//! time, provided that the events in that oldest slot were spread evenly over it.

use serde::{Deserialize, Serialize};

use super::{Aggregate, Averaging, Kind, Timestamp, Value, Window};

/// The weight of the oldest slot of a window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Edge {
    /// The oldest slot counts in full, like every other.
    #[default]
    Slots,
    /// The oldest slot counts by the share of it that the window still reaches.
    Weighted,
}

/// Returns the share of the oldest slot that a window ending at `now` still reaches, if the window is as long as all of
/// its slots except the oldest: 1 at the start of the head, falling to 0 at its end.
pub fn remaining_share(window: &Window, now: Timestamp) -> f64 {
    let length = window.end.millis() - window.head.millis();
    let passed = (now.millis() - window.head.millis()).clamp(0, length);
    // No slot has length 0, but this guard avoids a division by zero in any case.
    1.0 - passed as f64 / length.max(1) as f64
}

/// Returns the share of the elapsed part of the slot from `start` to `end` that lies at or after `from`. This is the
/// share of its oldest slot that a window beginning at `from` reaches. The newest slot has elapsed only until `now`.
pub fn share_after(start: Timestamp, end: Timestamp, now: Timestamp, from: Timestamp) -> f64 {
    let end = end.min(now).max(start);
    let passed = end.millis() - start.millis();
    let reached = (end.millis() - from.millis()).clamp(0, passed);
    if passed == 0 { 1.0 } else { reached as f64 / passed as f64 }
}

/// Returns the combined value of the aggregates when the slot that starts at `oldest` counts by `share` only (0 to 1).
/// Returns `None` where there is no value, for a mean of too few measurements, and for the kinds that
/// cannot be weighted: extremes, newest values and sketches.
pub fn weighted_value(
    kind: Kind,
    aggregates: &[(Timestamp, Aggregate)],
    oldest: Timestamp,
    share: f64,
    averaging: Averaging,
) -> Option<Value> {
    // Amounts stay within ±(2^53 − 1), so sums of integers are exact here. Only the oldest slot's share is rounded.
    let (mut sum, mut count, mut samples) = (0.0, 0.0, 0i64);
    let (mut edge_sum, mut edge_count) = (0.0, 0.0);
    for (start, aggregate) in aggregates {
        let (slot_sum, slot_count) = match aggregate {
            Aggregate::Sum(amount) => (amount.0 as f64, 0),
            Aggregate::Mean { sum, count } => (sum.0 as f64, *count),
            Aggregate::Extreme(_) | Aggregate::Last { .. } | Aggregate::Sketch(_) => return None,
        };
        samples += slot_count;
        if *start == oldest {
            edge_sum += slot_sum;
            edge_count += slot_count as f64;
        } else {
            sum += slot_sum;
            count += slot_count as f64;
        }
    }
    let sum = sum + share * edge_sum;
    let count = count + share * edge_count;
    // Adding 0.0 turns −0 into 0.
    match kind {
        Kind::Sum | Kind::Distinct | Kind::Capped { .. } => Some(Value::Real(sum + 0.0)),
        Kind::Mean => averaging.score_of_parts(sum, count, samples),
        Kind::TimedSum(_) | Kind::Min | Kind::Max | Kind::Last | Kind::Sketch => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::board::Amount;

    const HOUR: i64 = 3_600_000;

    fn hour(index: i64) -> Timestamp {
        Timestamp::from_millis(index * HOUR)
    }

    fn sum(index: i64, amount: i64) -> (Timestamp, Aggregate) {
        (hour(index), Aggregate::Sum(Amount(amount)))
    }

    #[test]
    fn the_oldest_slot_is_weighted_by_its_remaining_share() {
        let window = Window { floor: hour(10), head: hour(12), end: hour(13) };
        for (minutes, share) in [(0, 1.0), (15, 0.75), (30, 0.5), (60, 0.0), (90, 0.0), (-5, 1.0)] {
            assert_eq!(remaining_share(&window, hour(12).plus_millis(minutes * 60_000)), share, "{minutes}");
        }
        let aggregates = [sum(10, 8), sum(11, 3), sum(12, 1)];
        let value = |share| weighted_value(Kind::Sum, &aggregates, hour(10), share, Averaging::PLAIN);
        assert_eq!(value(1.0), Some(Value::Real(12.0)));
        assert_eq!(value(0.25), Some(Value::Real(6.0)));
        assert_eq!(value(0.0), Some(Value::Real(4.0)));
        // There is nothing in the oldest slot, so there is nothing to weight.
        assert_eq!(
            weighted_value(Kind::Distinct, &aggregates[1..], hour(10), 0.25, Averaging::PLAIN),
            Some(Value::Real(4.0))
        );
        assert_eq!(weighted_value(Kind::Sum, &[], hour(10), 0.5, Averaging::PLAIN), Some(Value::Real(0.0)));
    }

    #[test]
    fn a_window_from_a_time_has_the_remaining_share_of_its_slot() {
        let quarter = |n: i64| hour(10).plus_millis(n * 15 * 60_000);
        for (now, from, share) in [(8, 0, 1.0), (8, 1, 0.75), (8, 4, 0.0), (2, 1, 0.5), (2, 2, 0.0), (0, 0, 1.0)] {
            assert_eq!(share_after(hour(10), hour(11), quarter(now), quarter(from)), share, "{now} {from}");
        }
    }

    #[test]
    fn a_weighted_mean_weights_sums_and_counts() {
        let mean = |index, sum, count| (hour(index), Aggregate::Mean { sum: Amount(sum), count });
        let aggregates = [mean(10, 100, 4), mean(12, 30, 1)];
        assert_eq!(
            weighted_value(Kind::Mean, &aggregates, hour(10), 0.5, Averaging::PLAIN),
            Some(Value::Real((50.0 + 30.0) / (2.0 + 1.0)))
        );
        assert_eq!(
            weighted_value(Kind::Mean, &aggregates, hour(10), 0.5, Averaging { min_samples: 6, ..Averaging::PLAIN }),
            None
        );
        assert_eq!(weighted_value(Kind::Mean, &aggregates[..1], hour(10), 0.0, Averaging::PLAIN), None);
        assert_eq!(weighted_value(Kind::Mean, &[], hour(10), 0.5, Averaging::PLAIN), None);
    }

    #[test]
    fn extremes_have_no_weighted_value() {
        assert_eq!(
            weighted_value(Kind::Max, &[(hour(10), Aggregate::Extreme(Amount(1)))], hour(10), 0.5, Averaging::PLAIN),
            None
        );
        assert_eq!(weighted_value(Kind::Max, &[], hour(10), 0.5, Averaging::PLAIN), None);
    }
}
