//! Which subjects the load names.

use std::fmt;

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

/// How often each subject is named.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Skew {
    /// All alike.
    Uniform,
    /// The k-th in proportion to k^-1.1: a few take most, as on the web.
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

/// `draws` subjects, by number below `subjects`. The same on every run.
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

/// A subject's name.
pub fn name(number: u32) -> String {
    format!("post-{number}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zipf_draws_the_first_most_and_in_proportion() {
        let mut counts = vec![0u32; 1_000];
        for subject in draw(Skew::Zipf, 1_000, 200_000) {
            counts[subject as usize] += 1;
        }
        let ratio = f64::from(counts[0]) / f64::from(counts[9]);
        assert!((ratio - 10f64.powf(1.1)).abs() < 1.0, "first to tenth: {ratio}");
        assert!(draw(Skew::Uniform, 10, 1_000).iter().all(|subject| *subject < 10));
    }
}
