//! How the measurements of a subject make its score on an AVG board.

use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value as Json;
use utoipa::ToSchema;

use super::{Amount, AmountError, Decimals, Score, Value, Weight, form};

/// Measurements that every subject has beside its own, all with the same value: few measurements then do not lead a
/// ranking. The score is the *Bayesian mean*, (sum + `mean` x `weight`) / (count + `weight`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, expecting = "a prior with 'mean' and 'weight'")]
pub struct Prior {
    /// Their value. Times `weight` it has at most the `decimals` of the board.
    #[serde(deserialize_with = "mean")]
    #[schema(value_type = f64, example = 3.5)]
    mean: Score,
    /// Their number.
    #[serde(deserialize_with = "form::prior_weight")]
    #[schema(minimum = 1, maximum = 1_000_000, example = 10)]
    pub(super) weight: u32,
}

/// Parses a decimal number.
fn mean<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Score, D::Error> {
    let number = Json::deserialize(deserializer)?;
    let text = number.as_number().map(ToString::to_string);
    let parsed = text.and_then(|text| Score::parse(&text));
    parsed.ok_or_else(|| D::Error::custom(format!("{number} is not a number with at most {} decimals", Decimals::MAX)))
}

impl Prior {
    /// Returns the sum of the measurements, or an error if a board with these decimals does not hold it exactly.
    pub(super) fn sum(self, decimals: Decimals) -> Result<Amount, AmountError> {
        Amount::parse_times(&self.mean.to_string(), Weight::from(self.weight), decimals)
    }
}

/// How a sum and a number of measurements make a score. For other metrics than AVG it is not used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Averaging {
    /// The number of measurements from which there is a score.
    pub min_samples: i64,
    /// The sum and the number of the measurements of the [prior](Prior); both 0 if there is none.
    pub prior: (i64, i64),
}

impl Averaging {
    /// The mean, from one measurement on.
    pub const PLAIN: Self = Self { min_samples: 1, prior: (0, 0) };

    /// Returns the score of `count` measurements with this sum, or `None` if they are too few.
    pub fn score(self, sum: i64, count: i64) -> Option<Value> {
        let (more, times) = self.prior;
        let is_enough = count > 0 && count >= self.min_samples;
        if is_enough { Value::mean(sum.saturating_add(more), count.saturating_add(times)) } else { None }
    }

    /// Returns the score if the measurements count only in part. `samples` is how many there are.
    pub(super) fn score_of_parts(self, sum: f64, count: f64, samples: i64) -> Option<Value> {
        let (more, times) = self.prior;
        let is_enough = count > 0.0 && samples >= self.min_samples;
        // Adding 0.0 turns −0 into 0.
        is_enough.then(|| Value::Real((sum + more as f64) / (count + times as f64) + 0.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prior_draws_few_measurements_to_its_mean() {
        let prior: Prior = serde_json::from_str(r#"{"mean":3.5,"weight":10}"#).unwrap();
        let Amount(sum) = prior.sum(Decimals::new(1).unwrap()).unwrap();
        let averaging = Averaging { min_samples: 2, prior: (sum, 10) };
        assert_eq!(sum, 350);
        assert_eq!((averaging.score(50, 1), averaging.score(0, 0), averaging.score(-5, -1)), (None, None, None));
        assert_eq!(averaging.score(100, 2), Some(Value::Real(37.5)));
        assert_eq!(averaging.score(4_500, 100), Some(Value::Real(4_850.0 / 110.0)));
        assert_eq!(averaging.score_of_parts(50.0, 1.0, 2), Some(Value::Real(400.0 / 11.0)));
        assert_eq!(Averaging::PLAIN.score(10, 3), Value::mean(10, 3));
    }

    #[test]
    fn a_prior_is_read_exactly_and_within_its_limits() {
        let read = |text: &str| serde_json::from_str::<Prior>(text).map_err(|error| error.to_string());
        for text in
            [r#"{"mean":3.5,"weight":10}"#, r#"{"mean":-0.000000001,"weight":1}"#, r#"{"mean":0,"weight":1000000}"#]
        {
            assert_eq!(serde_json::to_string(&read(text).unwrap()).unwrap(), text);
        }
        assert_eq!(read(r#"{"mean":3.50,"weight":2.0}"#), read(r#"{"mean":35e-1,"weight":2}"#));
        for (text, says) in [
            (r#"{"mean":"3","weight":1}"#, "\"3\" is not a number with at most 9 decimals"),
            (r#"{"mean":1e-10,"weight":1}"#, "is not a number with at most 9 decimals"),
            (r#"{"mean":3,"weight":0}"#, "0 is not a whole number from 1 to 1000000"),
            (r#"{"mean":3,"weight":1.5}"#, "1.5 is not a whole number from 1 to 1000000"),
            (r#"{"mean":3}"#, "missing field `weight`"),
            (r#"{"mean":3,"weight":1,"x":1}"#, "unknown field `x`"),
        ] {
            let error = read(text).unwrap_err();
            assert!(error.contains(says), "{text}: {error}");
        }
        let prior = read(r#"{"mean":3.55,"weight":10}"#).unwrap();
        assert_eq!(prior.sum(Decimals::new(1).unwrap()), Ok(Amount(355)));
        assert!(prior.sum(Decimals::default()).is_err());
    }
}
