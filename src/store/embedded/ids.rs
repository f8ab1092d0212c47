//! The ids counted lately, so that a repeated one counts once.
//!
//! Ids live in a few buckets by arrival; a bucket goes as a whole when its newest id is past the horizon, so
//! forgetting costs nothing per id. An id is remembered for between the horizon and one and a half times as long,
//! but answers "seen" only within the horizon.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use crate::board::{EventId, Subject};

/// A board's ids, each a (subject, id) pair as one text.
#[derive(Debug)]
pub(super) struct Ids {
    /// How long an id counts as seen, from its arrival, in milliseconds.
    horizon: i64,
    /// Oldest first.
    buckets: VecDeque<Bucket>,
    /// Not yet in the database's own record of ids: arrival and text.
    pub unfolded: VecDeque<(i64, Arc<str>)>,
    /// The database has no ids that arrived at or before this.
    #[expect(dead_code, reason = "nothing is swept for now")]
    pub swept: i64,
}

/// Ids that arrived within half a horizon of each other.
#[derive(Debug)]
pub(super) struct Bucket {
    first: i64,
    newest: i64,
    arrivals: HashMap<Arc<str>, i64, rapidhash::fast::RandomState>,
}

/// One text for both: neither may contain a control character, so the newline keeps them apart.
pub(super) fn pair(subject: &Subject, id: &EventId) -> Arc<str> {
    [subject.as_str(), "\n", id.as_str()].concat().into()
}

impl Ids {
    pub(super) fn new(horizon: i64) -> Self {
        Self { horizon, buckets: VecDeque::new(), unfolded: VecDeque::new(), swept: 0 }
    }

    /// Whether the pair arrived less than a horizon ago. O(1).
    pub(super) fn seen(&self, pair: &str, now: i64) -> bool {
        // The newest bucket first: an id that came again after its horizon stands in two.
        let arrival = self.buckets.iter().rev().find_map(|bucket| bucket.arrivals.get(pair));
        arrival.is_some_and(|arrival| now < arrival + self.horizon)
    }

    /// Remembers a pair as just arrived. O(1).
    pub(super) fn remember(&mut self, pair: Arc<str>, arrival: i64) {
        self.unfolded.push_back((arrival, pair.clone()));
        self.restore(pair, arrival);
    }

    /// Remembers a pair that the database already has.
    pub(super) fn restore(&mut self, pair: Arc<str>, arrival: i64) {
        match self.buckets.back_mut() {
            Some(bucket) if arrival < bucket.first + self.horizon / 2 => {
                bucket.newest = bucket.newest.max(arrival);
                bucket.arrivals.insert(pair, arrival);
            }
            _ => {
                let arrivals = HashMap::from_iter([(pair, arrival)]);
                self.buckets.push_back(Bucket { first: arrival, newest: arrival, arrivals });
            }
        }
    }

    /// Lets go of buckets past the horizon; whoever gets them frees them, which takes a while.
    pub(super) fn forget(&mut self, now: i64) -> Option<Bucket> {
        match self.buckets.front() {
            Some(oldest) if oldest.newest + self.horizon <= now => self.buckets.pop_front(),
            _ => None,
        }
    }

    /// Ids that arrived at or before this instant are past the horizon.
    #[expect(dead_code, reason = "nothing is swept for now")]
    pub(super) fn expired_through(&self, now: i64) -> i64 {
        now.saturating_sub(self.horizon)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_seen_for_just_its_horizon() {
        let mut ids = Ids::new(1_000);
        ids.remember("a\n1".into(), 5_000);
        assert!(ids.seen("a\n1", 5_000));
        assert!(ids.seen("a\n1", 5_999));
        assert!(!ids.seen("a\n1", 6_000));
        assert!(!ids.seen("a\n2", 5_000));
        assert_eq!(ids.unfolded.len(), 1);
    }

    #[test]
    fn an_id_that_comes_again_after_its_horizon_starts_anew() {
        let mut ids = Ids::new(1_000);
        ids.remember("a\n1".into(), 0);
        ids.remember("b\n1".into(), 400);
        assert!(ids.forget(1_100).is_none(), "its bucket holds a live id");
        assert!(!ids.seen("a\n1", 1_100));
        ids.remember("a\n1".into(), 1_100);
        assert!(ids.seen("a\n1", 2_000));
        assert!(ids.forget(1_400).is_some());
        assert!(ids.seen("a\n1", 2_000));
    }

    #[test]
    fn buckets_stay_few_however_long_ids_arrive() {
        let mut ids = Ids::new(1_000);
        for now in 0..20_000 {
            while ids.forget(now).is_some() {}
            ids.remember(now.to_string().into(), now);
            assert!(ids.buckets.len() <= 4);
        }
        let kept: usize = ids.buckets.iter().map(|b| b.arrivals.len()).sum();
        assert!((1_000..=1_501).contains(&kept), "{kept}");
    }
}
