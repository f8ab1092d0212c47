//! The properties of a track that its data depends on, and the sort keys of its ranking.

use crate::board::{Amount, Averaging, KeyBound, Kind, Track, Value};

/// The properties of a track, copied for fast access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TrackTraits {
    pub kind: Kind,
    pub ranked: bool,
    /// For AVG: how measurements make a score.
    pub averaging: Averaging,
    /// The bound of second keys in a slot, if amounts are added up with them.
    pub keys: Option<KeyBound>,
    /// For COUNT_DISTINCT: the largest number of values (and of tombstones) remembered per subject.
    pub max_values: Option<usize>,
    /// The largest number of keys with a ranking, if there is a ranking for each key.
    pub most_keys: Option<usize>,
    /// For `from_first`: the length of a subject's counter, in milliseconds.
    pub counter_duration: Option<i64>,
    /// For COUNT_DISTINCT over all time: the time for which tombstones are kept, in milliseconds.
    pub tombstone_life: Option<i64>,
}

impl TrackTraits {
    pub(super) fn of(track: &Track) -> Self {
        Self {
            kind: track.kind(),
            ranked: track.is_ranked(),
            averaging: track.averaging(),
            keys: track.key_bound(),
            max_values: track.max_values().map(|most| most as usize),
            most_keys: track.most_keys().map(|most| most as usize),
            counter_duration: track.is_from_first().then(|| track.length().approximate_millis()),
            tombstone_life: track.tombstone_life(),
        }
    }

    /// Returns the sort key of a subject outside the ranking. Where 0 is a valid score, it is a sort key that no score has.
    pub(super) fn absent_sort_key(self) -> i64 {
        if self.kind.absent().is_some() { 0 } else { i64::MIN }
    }

    /// Returns the score of a sort key.
    pub(super) fn score_of_sort_key(self, sort_key: i64) -> Option<Value> {
        match self.kind {
            _ if sort_key == self.absent_sort_key() => self.kind.absent(),
            kind if kind.has_fractions() => Some(Value::Real(real_of_sort_key(sort_key))),
            _ => Some(Value::Exact(Amount(sort_key))),
        }
    }

    /// Returns the sort key of a score.
    pub(super) fn sort_key_of_score(self, value: Option<Value>) -> i64 {
        match value {
            None => self.absent_sort_key(),
            Some(Value::Exact(amount)) => amount.0,
            Some(Value::Real(real)) => sort_key_of_real(real),
        }
    }
}

/// Returns an integer for a float, in the same order. No finite float has the sort key `i64::MIN`.
fn sort_key_of_real(real: f64) -> i64 {
    flip_if_negative(real.to_bits() as i64)
}

fn real_of_sort_key(sort_key: i64) -> f64 {
    f64::from_bits(flip_if_negative(sort_key) as u64)
}

/// Inverts the order of negative floats, whose magnitudes grow with their bits. It is its own inverse.
fn flip_if_negative(bits: i64) -> i64 {
    if bits < 0 { bits ^ i64::MAX } else { bits }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_of_means_are_ordered_and_round_trip() {
        let means =
            [f64::MIN, -1e15, -2.5, -2.0, -1.0 / 3.0, -f64::MIN_POSITIVE, 0.0, 1e-300, 1.0 / 3.0, 7.0, f64::MAX];
        let keys = means.map(sort_key_of_real);
        assert!(keys.is_sorted_by(|a, b| a < b));
        assert!(keys.iter().all(|key| *key != i64::MIN));
        assert_eq!(keys.map(real_of_sort_key).map(f64::to_bits), means.map(f64::to_bits));
    }

    #[test]
    fn zero_means_absent_only_for_sums_and_counts() {
        let traits = |kind| TrackTraits {
            kind,
            ranked: true,
            averaging: Averaging::PLAIN,
            keys: None,
            max_values: None,
            most_keys: None,
            counter_duration: None,
            tombstone_life: None,
        };
        for kind in [Kind::Sum, Kind::Distinct, Kind::Sketch] {
            assert_eq!((traits(kind).absent_sort_key(), traits(kind).score_of_sort_key(0)), (0, Some(Value::ZERO)));
        }
        for kind in [Kind::Min, Kind::Max] {
            assert_eq!(traits(kind).score_of_sort_key(traits(kind).absent_sort_key()), None);
            assert_eq!(traits(kind).score_of_sort_key(0), Some(Value::ZERO));
        }
        let mean = traits(Kind::Mean);
        assert_eq!((mean.sort_key_of_score(None), mean.score_of_sort_key(mean.absent_sort_key())), (i64::MIN, None));
        assert_eq!(mean.score_of_sort_key(mean.sort_key_of_score(Some(Value::Real(0.0)))), Some(Value::Real(0.0)));
    }
}
