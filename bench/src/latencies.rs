//! The latencies of requests, as a histogram. Recording one takes nanoseconds, and memory does not grow with their
//! number.

use std::fmt;
use std::time::Duration;

use hdrhistogram::Histogram;

/// The longest latency that is recorded exactly, in microseconds: an hour. A longer one counts as this.
const LONGEST: u64 = 3_600_000_000;
/// The number of decimal digits of a latency that are stored.
const DIGITS: u8 = 3;

/// The percentiles that reports show, with their names. 1.0 is the slowest request.
const SHOWN: [(&str, f64); 5] = [("p50", 0.5), ("p90", 0.9), ("p99", 0.99), ("p99.9", 0.999), ("max", 1.0)];

/// Latencies with a precision of a microsecond, or of a thousandth of the latency if that is more.
#[derive(Clone, Debug)]
pub struct Latencies(Histogram<u64>);

impl Default for Latencies {
    fn default() -> Self {
        Self(Histogram::new_with_bounds(1, LONGEST, DIGITS).expect("the bounds are those of a histogram"))
    }
}

impl Latencies {
    /// Adds one request.
    pub fn record(&mut self, latency: Duration) {
        self.0.saturating_record(u64::try_from(latency.as_micros()).unwrap_or(u64::MAX));
    }

    /// Adds all requests of another histogram.
    pub fn add(&mut self, other: &Self) {
        self.0 += &other.0;
    }

    /// Returns the number of requests.
    pub fn count(&self) -> u64 {
        self.0.len()
    }

    /// Returns the latency at this percentile (0 to 1), in milliseconds, or 0 if there are no requests.
    pub fn millis_at(&self, share: f64) -> f64 {
        self.0.value_at_quantile(share) as f64 / 1_000.0
    }

    /// Returns the number of requests that took longer than this.
    #[cfg(test)]
    pub fn slower_than(&self, limit: Duration) -> u64 {
        self.0.count_between(u64::try_from(limit.as_micros()).unwrap_or(LONGEST), LONGEST)
    }

    /// Returns the heading of the columns that `Display` writes.
    pub fn heading() -> String {
        SHOWN.iter().map(|(name, _)| format!("{:>10}", format!("{name} ms"))).collect()
    }
}

/// Writes the shown percentiles as columns of a table.
impl fmt::Display for Latencies {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        SHOWN.iter().try_for_each(|(_, share)| write!(f, "{:>10.2}", self.millis_at(*share)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns one request for each of these numbers of milliseconds.
    fn of(millis: impl IntoIterator<Item = u64>) -> Latencies {
        let mut latencies = Latencies::default();
        millis.into_iter().for_each(|millis| latencies.record(Duration::from_millis(millis)));
        latencies
    }

    #[track_caller]
    fn assert_near(value: f64, expected: f64) {
        assert!((value - expected).abs() <= expected / 1_000.0, "{value} is not near {expected}");
    }

    #[test]
    fn percentiles_are_close_to_the_exact_values() {
        let latencies = of(1..=10_000);
        assert_eq!(latencies.count(), 10_000);
        for (share, expected) in [(0.5, 5_000.0), (0.9, 9_000.0), (0.99, 9_900.0), (0.999, 9_990.0), (1.0, 10_000.0)] {
            assert_near(latencies.millis_at(share), expected);
        }
    }

    #[test]
    fn a_single_outlier_affects_only_the_maximum() {
        let mut latencies = of(vec![1; 9_999]);
        latencies.add(&of([700]));
        assert_near(latencies.millis_at(0.999), 1.0);
        assert_near(latencies.millis_at(1.0), 700.0);
        assert_eq!(latencies.count(), 10_000);
    }

    #[test]
    fn extreme_latencies_are_clamped() {
        assert_eq!(Latencies::default().millis_at(0.5), 0.0);
        let mut latencies = Latencies::default();
        latencies.record(Duration::ZERO);
        assert_eq!(latencies.millis_at(1.0), 0.0);
        latencies.record(Duration::MAX);
        assert_near(latencies.millis_at(1.0), 3_600_000.0);
    }

    #[test]
    fn columns_are_aligned_with_their_headings() {
        let heading = Latencies::heading();
        assert_eq!(heading.split_whitespace().filter(|word| *word != "ms").count(), SHOWN.len());
        assert_eq!(heading.len(), of([1]).to_string().len());
    }
}
