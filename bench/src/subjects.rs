//! The subjects of the load.

use std::fmt;

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

/// The distribution of the subjects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Skew {
    /// All subjects are equally frequent.
    Uniform,
    /// The k-th subject has a frequency proportional to k^-1.1. A few subjects make up most of the load, as on the web.
    Zipf,
}

impl fmt::Display for Skew {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Skew::Uniform => "uniform",
            Skew::Zipf => "Zipf 1.1",
        })
    }
}

/// Draws this many subjects, as numbers below `subjects`. Returns the same subjects on every run.
pub fn draw(skew: Skew, subjects: u32, draws: usize) -> Vec<u32> {
    let mut random = StdRng::seed_from_u64(1);
    match skew {
        Skew::Uniform => (0..draws).map(|_| random.random_range(0..subjects)).collect(),
        Skew::Zipf => {
            let mut total = 0.0;
            let cumulative: Vec<f64> = (1..=subjects)
                .map(|k| {
                    total += f64::from(k).powf(-1.1);
                    total
                })
                .collect();
            let pick = |random: &mut StdRng| {
                let at = random.random_range(0.0..total);
                cumulative.partition_point(|sum| *sum <= at).min(cumulative.len() - 1) as u32
            };
            (0..draws).map(|_| pick(&mut random)).collect()
        }
    }
}

/// Returns the name of a subject.
pub fn name(number: u32) -> String {
    format!("post-{number}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zipf_draws_follow_the_distribution() {
        let mut counts = vec![0u32; 1_000];
        for subject in draw(Skew::Zipf, 1_000, 200_000) {
            counts[subject as usize] += 1;
        }
        let ratio = f64::from(counts[0]) / f64::from(counts[9]);
        assert!((ratio - 10f64.powf(1.1)).abs() < 1.0, "first to tenth: {ratio}");
        assert!(draw(Skew::Uniform, 10, 1_000).iter().all(|subject| *subject < 10));
    }
}
