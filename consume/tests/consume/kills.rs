//! A log that two programs read while these, the service and the broker are killed.

use std::ops::Range;
use std::time::Duration;

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

use crate::running::{Consumer, Setting, expected};

/// A log that likes are added to.
pub trait TestLog {
    /// Returns the lines of a configuration that read it.
    fn source(&self) -> String;

    /// Adds the likes of these numbers, and returns when they are stored.
    async fn add(&mut self, numbers: Range<u64>);

    /// Ends the broker, as a failure would, and starts it again.
    async fn restart(&mut self);
}

/// Adds up to so many likes in each of some rounds, and kills something in most. Returns the number of likes, each of which
/// counts once, and the programs, which go on.
pub async fn survive(
    setting: &mut Setting,
    log: &mut impl TestLog,
    (rounds, most, seed): (usize, u64, u64),
) -> (u64, [Consumer; 2]) {
    let mut readers = [0, 1].map(|_| setting.consume("likes", &log.source(), &["--define"]));
    let (mut random, mut added) = (StdRng::seed_from_u64(seed), 0);
    for round in 0..rounds {
        let more = random.random_range(1..most);
        log.add(added..added + more).await;
        added += more;
        match round % 10 {
            1 | 4 | 6 => readers[round % 2].start_again().await,
            3 => {
                setting.service.kill().await;
                setting.service.start_again().await;
            }
            8 => log.restart().await,
            _ => tokio::time::sleep(Duration::from_millis(random.random_range(0..300))).await,
        }
    }
    setting.counted("hot-posts", &expected(0..added)).await;
    (added, readers)
}
