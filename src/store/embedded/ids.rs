//! The ids counted recently, which make a repeated increment count once.
//!
//! An id is stored as a [`Fingerprint`] and its arrival. Bucket `n` holds the ids that arrived from `n` widths up to
//! `n + 1` widths after the epoch, so the arrivals alone determine what a bucket contains. The width is about half the
//! horizon: [`Board::dedupe_bucket`](crate::board::Board::dedupe_bucket). Once the board's time has passed the end of a
//! bucket, the bucket no longer changes. Once its newest possible id is past the horizon, the bucket is removed
//! as a whole, so removal costs nothing per id.
//!
//! An id is stored for between the horizon and one width longer, but it counts as seen only within the horizon. It
//! takes 20 bytes in a table that is 0.72 to 0.9 full; the process grew by 26 to 37 bytes per id (with 1, 3 and 10
//! million ids).

use std::collections::BTreeMap;

use super::fingerprint::Fingerprint;
use super::hash_table::{self, ExtendibleTable};

/// A board's ids.
#[derive(Debug)]
pub(super) struct Ids {
    /// The time for which an id counts as seen after its arrival, in milliseconds; at least one.
    horizon: i64,
    /// The time for which a bucket takes arrivals, in milliseconds; at least one.
    width: i64,
    buckets: BTreeMap<i64, Bucket>,
}

/// The ids that arrived during one width.
#[derive(Debug)]
pub(super) struct Bucket {
    /// The first millisecond of its time.
    start: i64,
    newest: i64,
    ids: ExtendibleTable<Id>,
}

/// A description of a bucket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct BucketInfo {
    pub number: i64,
    /// The newest arrival, in milliseconds.
    pub newest: i64,
    /// The number of ids.
    pub len: usize,
    /// Whether the board's time has passed the bucket's end, so that no id will be added.
    pub sealed: bool,
}

/// A fingerprint, and the arrival in milliseconds since the bucket's start.
#[derive(Clone, Copy, Debug)]
struct Id([u32; 5]);

impl hash_table::TableEntry for Id {
    /// Arrivals lie within one width, which is shorter than `u32::MAX` milliseconds.
    const VACANT: Self = Id([0, 0, 0, 0, u32::MAX]);

    fn is_vacant(&self) -> bool {
        self.0[4] == u32::MAX
    }

    fn hash(&self) -> u32 {
        self.0[0]
    }
}

impl Id {
    fn new(Fingerprint(bits): Fingerprint, since: u32) -> Self {
        Id([(bits >> 96) as u32, (bits >> 64) as u32, (bits >> 32) as u32, bits as u32, since])
    }

    fn fingerprint(&self) -> Fingerprint {
        let [a, b, c, d, _] = self.0.map(u128::from);
        Fingerprint(a << 96 | b << 64 | c << 32 | d)
    }
}

impl Bucket {
    fn find(&self, fingerprint: Fingerprint) -> Option<i64> {
        let hash = hash(fingerprint);
        let id = self.ids.find(hash, |id| id.fingerprint() == fingerprint)?;
        Some(self.arrival(id))
    }

    /// Returns the bytes that the ids use, without the allocator's overhead. O(1).
    pub(super) fn memory_bytes(&self) -> usize {
        size_of::<Self>() + self.ids.memory_bytes()
    }

    fn arrival(&self, id: &Id) -> i64 {
        self.start + i64::from(id.0[4])
    }
}

/// Returns the bits of a fingerprint by which a table places it.
fn hash(Fingerprint(bits): Fingerprint) -> u32 {
    (bits >> 96) as u32
}

impl Ids {
    /// Creates an empty set whose ids will count as seen for `horizon` milliseconds, at least one. A bucket takes those
    /// of `width` milliseconds, at least one and at most 45 days; it must not be longer than the horizon.
    pub(super) fn new(horizon: i64, width: i64) -> Self {
        Self { horizon: horizon.max(1), width: width.clamp(1, 45 * 86_400_000), buckets: BTreeMap::new() }
    }

    /// Returns whether an id arrived less than a horizon ago. O(1).
    pub(super) fn is_recent(&self, fingerprint: Fingerprint, now: i64) -> bool {
        // The newest bucket is searched first, because an id that arrived again after its horizon is in two.
        let recent = self.buckets.range(self.number(now.saturating_sub(self.horizon - 1))..).rev();
        let arrival = recent.map(|(_, bucket)| bucket).find_map(|bucket| bucket.find(fingerprint));
        arrival.is_some_and(|arrival| now < arrival.saturating_add(self.horizon))
    }

    /// Stores an id that arrived. It may be stored already, and ids may be added in any order: the newest arrival
    /// counts. O(1), and occasionally O(entries of a table's shard).
    pub(super) fn insert(&mut self, fingerprint: Fingerprint, arrival: i64) {
        let number = self.number(arrival);
        let start = self.start(number);
        let fresh = || Bucket { start, newest: arrival, ids: ExtendibleTable::default() };
        let bucket = self.buckets.entry(number).or_insert_with(fresh);
        bucket.newest = bucket.newest.max(arrival);
        // The difference is less than one width.
        let since = (arrival - start) as u32;
        match bucket.ids.find_mut(hash(fingerprint), |id| id.fingerprint() == fingerprint) {
            Some(known) => known.0[4] = known.0[4].max(since),
            None => bucket.ids.insert(Id::new(fingerprint, since)),
        }
    }

    /// Stores an id while a store is opened, unless its bucket has expired.
    pub(super) fn restore(&mut self, fingerprint: Fingerprint, arrival: i64, now: i64) {
        if !self.is_expired(self.number(arrival), now) {
            self.insert(fingerprint, arrival);
        }
    }

    /// Removes and returns the oldest bucket if all its ids are past the horizon. The caller should drop it without the
    /// lock, because that takes long. O(1).
    pub(super) fn remove_expired(&mut self, now: i64) -> Option<Bucket> {
        let (&oldest, _) = self.buckets.first_key_value()?;
        if self.is_expired(oldest, now) { self.buckets.remove(&oldest) } else { None }
    }

    /// Returns the bytes that the ids use, without the allocator's overhead. O(buckets).
    pub(super) fn memory_bytes(&self) -> usize {
        self.buckets.values().map(Bucket::memory_bytes).sum()
    }

    /// Returns whether all ids of a bucket are past the horizon.
    fn is_expired(&self, number: i64, now: i64) -> bool {
        self.start(number.saturating_add(1)).saturating_add(self.horizon) <= now
    }

    /// Returns the number of table entries moved so far.
    #[cfg(test)]
    pub(super) fn moved(&self) -> usize {
        self.buckets.values().map(|bucket| bucket.ids.moved()).sum()
    }

    /// Returns the buckets, oldest first.
    pub(super) fn buckets(&self, now: i64) -> impl Iterator<Item = BucketInfo> {
        self.buckets.iter().map(move |(&number, bucket)| BucketInfo {
            number,
            newest: bucket.newest,
            len: bucket.ids.len(),
            sealed: self.start(number + 1) <= now,
        })
    }

    /// Adds about `most` ids of a bucket, with their arrivals, to `found`. Returns whether there are more.
    ///
    /// `cursor` must be 0 for the first call and unchanged between calls. A walk returns every id that is present
    /// during all of it exactly once. O(entries of a table's shard).
    pub(super) fn portion(
        &self,
        number: i64,
        cursor: &mut u64,
        most: usize,
        found: &mut Vec<(Fingerprint, i64)>,
    ) -> bool {
        let (Some(bucket), Ok(from)) = (self.buckets.get(&number), u32::try_from(*cursor)) else { return false };
        let (ids, next) = bucket.ids.portion(from);
        let (mut taken, mut last) = (0, None);
        for id in ids {
            let hash = hash_table::TableEntry::hash(id);
            // A walk continues at a hash, so all ids with the same hash must be in one portion.
            if taken >= most && last != Some(hash) {
                *cursor = u64::from(hash);
                return true;
            }
            found.push((id.fingerprint(), bucket.arrival(id)));
            (taken, last) = (taken + 1, Some(hash));
        }
        *cursor = next.map_or(u64::MAX, u64::from);
        next.is_some()
    }

    /// Returns the time such that ids which arrived at or before it are past the horizon.
    pub(super) fn expired_through(&self, now: i64) -> i64 {
        now.saturating_sub(self.horizon)
    }

    /// Returns the bucket of an arrival.
    fn number(&self, arrival: i64) -> i64 {
        arrival.div_euclid(self.width)
    }

    /// Returns the first millisecond of a bucket's time.
    fn start(&self, number: i64) -> i64 {
        number.saturating_mul(self.width)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use proptest::prelude::*;

    use super::*;

    /// Returns a fingerprint whose bits are mixed like those of a hash.
    fn fingerprint(id: u64) -> Fingerprint {
        let mixed = u128::from(id + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15_F39C_C060_5CED_C835);
        Fingerprint(mixed ^ mixed >> 67)
    }

    #[test]
    fn an_id_is_recent_for_exactly_its_horizon() {
        for (horizon, width) in [(1, 1), (2, 1), (3, 1), (7, 3), (1_000, 500), (1_001, 500), (1_125, 500), (2_000, 500)]
        {
            let mut ids = Ids::new(horizon, width);
            ids.insert(fingerprint(1), 5_000);
            assert!((5_000..5_000 + horizon).all(|now| ids.is_recent(fingerprint(1), now)));
            assert!((0..9).all(|later| !ids.is_recent(fingerprint(1), 5_000 + horizon + later)));
            assert!(!ids.is_recent(fingerprint(2), 5_000));
        }
    }

    #[test]
    fn an_id_repeated_after_its_horizon_starts_a_new_one() {
        let mut ids = Ids::new(1_000, 500);
        ids.insert(fingerprint(1), 0);
        ids.insert(fingerprint(2), 400);
        assert!(ids.remove_expired(1_100).is_none(), "its bucket may hold a live id");
        assert!(!ids.is_recent(fingerprint(1), 1_100));
        ids.insert(fingerprint(1), 1_100);
        assert!(ids.is_recent(fingerprint(1), 2_000));
        assert!(ids.remove_expired(1_499).is_none() && ids.remove_expired(1_500).is_some());
        assert!(ids.is_recent(fingerprint(1), 2_000));
    }

    #[test]
    fn the_number_of_id_buckets_is_bounded() {
        // The last has an additional slot as long as its window.
        for (horizon, most) in [(1_000, 3), (1_001, 4), (1_125, 4), (2_000, 5)] {
            let mut ids = Ids::new(horizon, 500);
            for now in 0..20_000 {
                while ids.remove_expired(now).is_some() {}
                ids.insert(fingerprint(now as u64), now);
                assert!(ids.buckets(now).count() <= most);
            }
            let buckets: Vec<BucketInfo> = ids.buckets(19_999).collect();
            let kept: usize = buckets.iter().map(|bucket| bucket.len).sum();
            assert!((horizon as usize..=horizon as usize + 500).contains(&kept), "{buckets:?}");
            assert!(buckets.iter().rev().skip(1).all(|bucket| bucket.sealed) && !buckets.last().unwrap().sealed);
            assert_eq!(buckets.last().unwrap().newest, 19_999);
        }
    }

    #[test]
    fn ids_with_extreme_times_are_kept() {
        for horizon in [1, 90 * 86_400_000] {
            for at in [0, i64::MAX / 4, -i64::MAX / 4] {
                let mut ids = Ids::new(horizon, horizon / 2);
                ids.insert(fingerprint(1), at);
                assert!(ids.is_recent(fingerprint(1), at) && !ids.is_recent(fingerprint(1), at + horizon));
            }
        }
    }

    proptest! {
        /// Adds ids in the order of time, with buckets removed as early as possible, then restores them in any order.
        #[test]
        fn behaves_like_a_map_of_arrivals(
            horizon in 1i64..60,
            part in any::<prop::sample::Index>(),
            arrivals in prop::collection::vec((0u64..30, 0i64..9), 1..300),
            shuffled in any::<prop::sample::Index>(),
            most in 1usize..20,
        ) {
            let width = 1 + part.index(horizon as usize) as i64;
            let (mut ids, mut model, mut counted) = (Ids::new(horizon, width), HashMap::new(), Vec::new());
            let mut now = 1_000;
            for (id, later) in arrivals {
                now += later;
                while let Some(bucket) = ids.remove_expired(now) {
                    prop_assert!(bucket.newest + horizon <= now);
                }
                let seen = model.get(&id).is_some_and(|arrival| now < arrival + horizon);
                prop_assert_eq!(ids.is_recent(fingerprint(id), now), seen);
                if !seen {
                    ids.insert(fingerprint(id), now);
                    model.insert(id, now);
                    counted.push((id, now));
                }
            }
            let mut restored = Ids::new(horizon, width);
            let middle = shuffled.index(counted.len());
            for (id, arrival) in counted[middle..].iter().chain(&counted).rev() {
                restored.insert(fingerprint(*id), *arrival);
            }
            while restored.remove_expired(now).is_some() {}
            prop_assert!(restored.buckets(now).eq(ids.buckets(now)));
            for id in 0..30 {
                for at in [now, now + horizon / 2, now + horizon] {
                    let seen = model.get(&id).is_some_and(|arrival| at < arrival + horizon);
                    prop_assert_eq!(restored.is_recent(fingerprint(id), at), seen);
                    prop_assert_eq!(ids.is_recent(fingerprint(id), at), seen);
                }
            }
            for bucket in ids.buckets(now) {
                let (mut found, mut cursor) = (Vec::new(), 0);
                loop {
                    let before = found.len();
                    let more = ids.portion(bucket.number, &mut cursor, most, &mut found);
                    prop_assert!(found.len() - before <= most);
                    if !more {
                        break;
                    }
                }
                let within = |(_, at): &&(u64, i64)| ids.number(*at) == bucket.number;
                let mut expected: Vec<_> = counted.iter().filter(within).map(|(id, at)| (fingerprint(*id), *at)).collect();
                expected.sort_unstable();
                found.sort_unstable();
                prop_assert_eq!(found, expected);
            }
        }
    }

    #[test]
    fn a_walk_in_portions_visits_each_id_once_during_inserts() {
        let mut ids = Ids::new(1_000_000, 500_000);
        (0..30_000).for_each(|id| ids.insert(fingerprint(id), 5));
        let (mut found, mut cursor, mut portions) = (Vec::new(), 0, 0);
        while ids.portion(0, &mut cursor, 500, &mut found) {
            portions += 1;
            (0..400).for_each(|id| ids.insert(fingerprint(30_000 + portions * 400 + id), 6));
        }
        assert!(portions >= 60, "{portions}");
        found.retain(|(_, arrival)| *arrival == 5);
        found.sort_unstable();
        let mut expected: Vec<_> = (0..30_000).map(|id| (fingerprint(id), 5)).collect();
        expected.sort_unstable();
        assert_eq!(found, expected);
        assert!(!ids.portion(1, &mut 0, 500, &mut found), "there is no such bucket");
    }
}
