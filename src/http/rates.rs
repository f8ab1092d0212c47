//! How fast clients and keys do things: a table of fixed size, whatever their number.
//!
//! The algorithm is GCRA, a leaky bucket that needs one number: the time until which everything that was taken is paid
//! for, one interval for each. What would move that time further ahead of now than a whole burst is refused.
//!
//! The number is in two cells of the table, chosen by a hash with a secret seed, so that nobody can aim at the cells of
//! another one. Others that share a cell only make it larger, and the lesser of the two counts: an identity never gets
//! more than its rate, and less only if both cells are shared with others at their limits. With `n` of these, that
//! happens to a share of about `(n / 65,536)²` of all identities: 0.02 % at 1,000. **Weakness**: tens of thousands of
//! identities that are all at their limits at the same time slow down others.

use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use super::client::Client;
use crate::access::{KeyId, Rate};

/// The number of cells in each half of the table. Each identity has a cell in both. Together they take 1 MiB.
const CELLS: usize = 1 << 16;

/// Whose rate it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Whose {
    Client(Client),
    Key(KeyId),
}

/// What is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum What {
    Requests,
    Items,
}

/// The reason why something may not be taken now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Exceeded {
    /// There will be enough after this time, if nothing else is taken.
    For(Duration),
    /// It is more than a burst, so there will never be enough.
    Burst(u32),
}

/// What clients and keys have taken.
pub(super) struct Rates {
    /// Times in nanoseconds since `started`. They never decrease.
    cells: Box<[AtomicU64]>,
    seed: RandomState,
    started: Instant,
}

impl Rates {
    pub(super) fn new() -> Self {
        let cells = (0..2 * CELLS).map(|_| AtomicU64::new(0)).collect();
        Self { cells, seed: RandomState::new(), started: Instant::now() }
    }

    /// Takes a number of something now, all of them or none.
    pub(super) fn take(&self, whose: Whose, what: What, rate: Rate, number: u32) -> Result<(), Exceeded> {
        self.take_at(self.now(), whose, what, rate, number)
    }

    /// Returns whether a number of something could be taken now.
    pub(super) fn look(&self, whose: Whose, what: What, rate: Rate, number: u32) -> Result<(), Exceeded> {
        let (first, second) = self.cells_of(whose, what);
        let lesser = first.load(Ordering::Acquire).min(second.load(Ordering::Acquire));
        paid_until(lesser, self.now(), rate, number).map(|_| ())
    }

    fn now(&self) -> u64 {
        u64::try_from(self.started.elapsed().as_nanos()).unwrap_or(u64::MAX / 2)
    }

    fn cells_of(&self, whose: Whose, what: What) -> (&AtomicU64, &AtomicU64) {
        let hash = self.seed.hash_one((whose, what)) as usize;
        (&self.cells[hash % CELLS], &self.cells[CELLS + hash / CELLS % CELLS])
    }

    /// Takes at a time in nanoseconds.
    ///
    /// Before something is taken, both cells are at least as large as afterwards required: the greater one is raised
    /// first, and the exchange of the lesser one decides. So two threads cannot both take what is there once.
    fn take_at(&self, now: u64, whose: Whose, what: What, rate: Rate, number: u32) -> Result<(), Exceeded> {
        let (first, second) = self.cells_of(whose, what);
        loop {
            let of = (first.load(Ordering::Acquire), second.load(Ordering::Acquire));
            let (lesser, lesser_cell, greater_cell) =
                if of.0 <= of.1 { (of.0, first, second) } else { (of.1, second, first) };
            let until = paid_until(lesser, now, rate, number)?;
            greater_cell.fetch_max(until, Ordering::AcqRel);
            if lesser_cell.compare_exchange(lesser, until, Ordering::AcqRel, Ordering::Relaxed).is_ok() {
                return Ok(());
            }
        }
    }
}

/// Returns the time until which everything is paid for after a number was taken.
fn paid_until(before: u64, now: u64, rate: Rate, number: u32) -> Result<u64, Exceeded> {
    let (burst, interval) = (rate.burst(), rate.interval());
    if number > burst {
        return Err(Exceeded::Burst(burst));
    }
    let until = before.max(now) + u64::from(number) * interval;
    let last = now + u64::from(burst) * interval;
    if until > last { Err(Exceeded::For(Duration::from_nanos(until - last))) } else { Ok(until) }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use proptest::prelude::*;

    use super::*;

    const SECOND: u64 = 1_000_000_000;

    fn client(number: u32) -> Whose {
        Whose::Client(Client::at(Some(std::net::Ipv4Addr::from(number).into())))
    }

    fn rate(text: &str) -> Rate {
        text.parse().unwrap()
    }

    #[test]
    fn a_burst_is_there_at_once_and_the_rest_at_the_rate() {
        let (rates, rate) = (Rates::new(), rate("3/s burst 5"));
        let take = |now: u64, number: u32| rates.take_at(now, client(1), What::Requests, rate, number);
        for _ in 0..5 {
            assert_eq!(take(7, 1), Ok(()));
        }
        assert_eq!(take(7, 1), Err(Exceeded::For(Duration::from_nanos(333_333_334))));
        assert_eq!(take(SECOND, 3), Err(Exceeded::For(Duration::from_nanos(9))), "nothing is taken in part");
        assert_eq!(take(SECOND + 9, 3), Ok(()));
        assert_eq!(take(SECOND + 9, 6), Err(Exceeded::Burst(5)));
        assert_eq!(take(100 * SECOND, 5), Ok(()));
        assert!(take(100 * SECOND, 1).is_err());
    }

    #[test]
    fn identities_and_kinds_are_told_apart() {
        let (rates, rate) = (Rates::new(), rate("1/h"));
        let key = Whose::Key("0000000000000001".parse().unwrap());
        for (whose, what) in
            [(client(1), What::Requests), (client(1), What::Items), (client(2), What::Requests), (key, What::Requests)]
        {
            assert_eq!(rates.take_at(1, whose, what, rate, 1), Ok(()));
            assert!(rates.take_at(1, whose, what, rate, 1).is_err());
        }
    }

    #[test]
    fn a_thousand_at_their_limits_hardly_touch_others() {
        let (rates, rate) = (Rates::new(), rate("10/s"));
        // Chance is drawn anew in each run. Less than 0.1 of them is expected to be touched by others before them.
        let touched = (0..1_000).filter(|n| rates.take_at(5, client(*n), What::Requests, rate, 10).is_err());
        assert!(touched.count() < 3);
        let refused = (1_000..11_000).filter(|n| rates.take_at(5, client(*n), What::Requests, rate, 1).is_err());
        // About 2.3 are expected at first; those that are let through take one each.
        assert!(refused.count() < 60);
    }

    #[test]
    fn threads_do_not_take_the_same_twice() {
        let (rates, rate) = (Rates::new(), rate("1000/h"));
        let taken: usize = std::thread::scope(|scope| {
            let take = || (0..1_000).filter(|_| rates.take_at(1, client(1), What::Items, rate, 1).is_ok()).count();
            let threads: Vec<_> = (0..4).map(|_| scope.spawn(take)).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).sum()
        });
        assert_eq!(taken, 1_000);
    }

    proptest! {
        /// Whatever is taken when, an identity gets at most its burst and what its rate allows since, and everything
        /// that it may have if the cells are not shared.
        #[test]
        fn nobody_gets_more_than_the_rate(
            count in 1_u32..2_000,
            burst in 1_u32..3_000,
            taken in prop::collection::vec((0_u64..2 * SECOND, 0_u32..4, 1_u32..1_500), 1..200),
        ) {
            let (rates, rate) = (Rates::new(), rate(&format!("{count}/s burst {burst}")));
            let (mut now, mut paid) = (1, HashMap::<u32, u64>::new());
            let mut all = HashMap::<u32, u128>::new();
            for (passed, who, number) in taken {
                now += passed;
                // The same with one exact number for each identity.
                let exact = paid.entry(who).or_default();
                let expected = paid_until(*exact, now, rate, number);
                let found = rates.take_at(now, client(who), What::Items, rate, number);
                prop_assert!(found.is_err() || expected.is_ok());
                if found.is_ok() {
                    *exact = expected.unwrap();
                    let sum = all.entry(who).or_default();
                    *sum += u128::from(number);
                    let most = u128::from(burst) * u128::from(SECOND) + u128::from(now) * u128::from(count);
                    prop_assert!(*sum * u128::from(SECOND) <= most);
                }
            }
        }
    }
}
