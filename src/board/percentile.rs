//! Percentiles, with three digits after the point.

use std::fmt;
use std::str::FromStr;

/// A percentile from 0 to 100, with up to three digits after the point.
///
/// That of a subject is the percentage of the ranked subjects that have no better score. The score *at* a percentile is
/// the worst score of which the percentile is at least this one. So 100 is the best score, and 0 the worst.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Percentile(u32);

/// A text that is no percentile.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a percentile is a number from 0 to 100 with up to three digits after the point")]
pub struct PercentileError;

impl Percentile {
    const WHOLE: u32 = 100_000;

    /// Returns the percentile of this many thousandths, of which there are at most 100,000.
    pub fn of_thousandths(thousandths: u32) -> Option<Self> {
        Some(Self(thousandths)).filter(|percentile| percentile.0 <= Self::WHOLE)
    }

    /// Returns the percentile as a number.
    pub fn as_f64(self) -> f64 {
        f64::from(self.0) / 1_000.0
    }

    /// Returns the percentile in thousandths.
    pub fn thousandths(self) -> u32 {
        self.0
    }

    /// Returns this percentage of a number, rounded up.
    pub fn of_rounded_up(self, total: u64) -> u64 {
        let part = (u128::from(total) * u128::from(self.0)).div_ceil(u128::from(Self::WHOLE));
        u64::try_from(part).unwrap_or(u64::MAX)
    }

    /// Returns the position, from 0 at the best one, of the line that has the score at this percentile, in a ranking of
    /// `total` lines. `None` if there are none.
    pub fn position(self, total: u64) -> Option<u64> {
        let better = u128::from(total) * u128::from(Self::WHOLE - self.0) / u128::from(Self::WHOLE);
        Some(u64::try_from(better).unwrap_or(u64::MAX).min(total.checked_sub(1)?))
    }
}

impl FromStr for Percentile {
    type Err = PercentileError;

    fn from_str(text: &str) -> Result<Self, PercentileError> {
        let (whole, fraction) = text.split_once('.').unwrap_or((text, "0"));
        let digits =
            |text: &str, most| (1..=most).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit());
        if !digits(whole, 3) || !digits(fraction, 3) {
            return Err(PercentileError);
        }
        let number = |text: &str| text.parse::<u32>().map_err(|_| PercentileError);
        let thousandths = number(whole)? * 1_000 + number(&format!("{fraction:0<3}"))?;
        Self::of_thousandths(thousandths).ok_or(PercentileError)
    }
}

impl fmt::Display for Percentile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (whole, fraction) = (self.0 / 1_000, self.0 % 1_000);
        match fraction {
            0 => write!(f, "{whole}"),
            _ => f.write_str(format!("{whole}.{fraction:03}").trim_end_matches('0')),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_parsed_exactly_and_printed_as_short_as_possible() {
        for (text, thousandths, printed) in [
            ("0", 0, "0"),
            ("50", 50_000, "50"),
            ("99.9", 99_900, "99.9"),
            ("0.001", 1, "0.001"),
            ("100.000", 100_000, "100"),
            ("07.50", 7_500, "7.5"),
        ] {
            let percentile: Percentile = text.parse().unwrap();
            assert_eq!((percentile.thousandths(), percentile.to_string().as_str()), (thousandths, printed));
        }
        for wrong in ["", "-1", "100.001", "101", "1e2", "5.", ".5", "0.0001", "0050", "NaN", " 5", "5%"] {
            assert_eq!(wrong.parse::<Percentile>(), Err(PercentileError), "{wrong}");
        }
    }

    #[test]
    fn the_line_at_a_percentile_is_the_worst_one_that_has_it() {
        for total in [1_u64, 2, 3, 7, 100, 101, 999] {
            for thousandths in [0, 1, 12_500, 33_333, 50_000, 66_667, 90_000, 99_999, 100_000] {
                let percentile = Percentile(thousandths);
                // Without ties a line at position n has n better ones.
                let has = |position: u64| {
                    u128::from(total - position) * 100_000 >= u128::from(total) * u128::from(thousandths)
                };
                let worst = (0..total).rev().find(|position| has(*position)).unwrap_or(0);
                assert_eq!(percentile.position(total), Some(worst), "{percentile} of {total}");
            }
        }
        assert_eq!(Percentile(0).position(0), None);
        assert_eq!(Percentile(100_000).position(u64::MAX), Some(0));
    }
}
