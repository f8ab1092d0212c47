use std::collections::HashMap;

use proptest::prelude::*;

use super::*;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Small([u32; 2]);

impl TableEntry for Small {
    const VACANT: Self = Small([0, u32::MAX]);

    fn is_vacant(&self) -> bool {
        self.0[1] == u32::MAX
    }

    fn hash(&self) -> u32 {
        self.0[0]
    }
}

#[derive(Clone, Copy)]
struct Large([u32; 5]);

impl TableEntry for Large {
    const VACANT: Self = Large([u32::MAX; 5]);

    fn is_vacant(&self) -> bool {
        self.0[4] == u32::MAX
    }

    fn hash(&self) -> u32 {
        self.0[0]
    }
}

fn scrambled(number: u32) -> u32 {
    let mixed = (number ^ number >> 16).wrapping_mul(0x7feb_352d);
    let mixed = (mixed ^ mixed >> 15).wrapping_mul(0x846c_a68b);
    mixed ^ mixed >> 16
}

impl<E: TableEntry> ExtendibleTable<E> {
    fn check(&self) {
        let mut entries = 0;
        for (index, at) in self.directory.iter().enumerate() {
            let shard = &self.shards[*at as usize];
            let (first, count) = self.pointers((index as u64 * (1 << 32 >> self.depth)) as u32, shard.depth);
            assert!((first..first + count).contains(&index));
            if first != index {
                assert_eq!(self.directory[first], *at);
                continue;
            }
            assert!(shard.entries().map(|entry| entry.hash()).is_sorted());
            assert_eq!(shard.entries().count(), shard.len as usize);
            entries += shard.len as usize;
            for (place, entry) in shard.places.iter().enumerate().filter(|(_, entry)| !entry.is_vacant()) {
                let ideal = shard.ideal_place(entry.hash());
                assert!(ideal <= place && shard.places[ideal..place].iter().all(|held| !held.is_vacant()));
            }
        }
        assert_eq!(entries, self.len);
        let (kept, counted) = self.counted_places();
        assert_eq!(kept, counted);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    /// Uses many equal hashes, and grows and shrinks over several splits and merges.
    #[test]
    fn behaves_like_a_map(
        phases in prop::collection::vec((0u32..30_000, 0u32..30_000, any::<bool>()), 1..6),
        alike in prop::sample::select(vec![1u32, 1, 1, 64, 30_000]),
    ) {
        let hash = |number: u32| scrambled(number / alike);
        let mut table = ExtendibleTable::<Small>::default();
        let mut model = HashMap::new();
        for (from, to, adds) in phases {
            let (from, to) = if alike > 64 { (from / 10, to / 10) } else { (from, to) };
            for number in from.min(to)..from.max(to) {
                let is_it = |entry: &Small| entry.0[1] == number;
                prop_assert_eq!(table.find(hash(number), is_it).is_some(), model.contains_key(&number));
                if adds && model.insert(number, ()).is_none() {
                    table.insert(Small([hash(number), number]));
                } else if !adds {
                    let removed = table.remove(hash(number), is_it).map(|entry| entry.0[1]);
                    prop_assert_eq!(removed, model.remove(&number).map(|()| number));
                }
            }
            table.check();
            prop_assert_eq!(table.len(), model.len());
            let mut numbers: Vec<u32> = table.iter().map(|entry| entry.0[1]).collect();
            numbers.sort_unstable();
            let mut expected: Vec<u32> = model.keys().copied().collect();
            expected.sort_unstable();
            prop_assert_eq!(numbers, expected);
        }
    }

    /// Checks that entries which stay in the table are returned once, whatever is added and removed between the
    /// portions.
    #[test]
    fn walks_visit_each_entry_once(stay in 1u32..20_000, come in 0u32..40_000, go in 0u32..20_000, at in 0usize..6) {
        let mut table = ExtendibleTable::<Small>::default();
        let all = stay + go;
        (0..all).for_each(|number| table.insert(Small([scrambled(number), number])));
        let mut met = vec![0; (all + come) as usize];
        let (mut from, mut portions) = (Some(0), 0);
        while let Some(hash) = from {
            let (entries, next) = table.portion(hash);
            entries.for_each(|entry| met[entry.0[1] as usize] += 1);
            from = next;
            portions += 1;
            if portions == at {
                (all..all + come).for_each(|number| table.insert(Small([scrambled(number), number])));
                (stay..all).for_each(|number| {
                    table.remove(scrambled(number), |entry| entry.0[1] == number);
                });
            }
        }
        prop_assert!(met[..stay as usize].iter().all(|times| *times == 1));
        prop_assert!(met.iter().all(|times| *times <= 1));
    }
}

#[test]
fn entries_are_found_and_changed() {
    let mut table = ExtendibleTable::<Small>::default();
    assert!(table.find(7, |_| true).is_none() && table.remove(7, |_| true).is_none());
    assert_eq!((table.prefetch(7), table.iter().count()), (0, 0));
    table.insert(Small([7, 1]));
    table.insert(Small([7, 2]));
    table.find_mut(7, |entry| entry.0[1] == 2).unwrap().0[1] = 3;
    assert_eq!(table.find(7, |entry| entry.0[1] == 3), Some(&Small([7, 3])));
    assert!(table.find(7, |entry| entry.0[1] == 2).is_none());
    assert_eq!(table.remove(7, |entry| entry.0[1] == 1), Some(Small([7, 1])));
    assert_eq!(table.len(), 1);
}

/// Checks that no operation moves the entries of more than two shards, and that all operations together move few.
#[test]
fn an_operation_moves_entries_of_at_most_two_shards() {
    const COUNT: u32 = 400_000;
    let mut table = ExtendibleTable::<Large>::default();
    let entry = |number| Large([scrambled(number), number, 0, 0, 0]);
    let (mut before, mut most) = (0, 0);
    let mut fullest = 0.0f64;
    for number in 0..COUNT {
        table.insert(entry(number));
        most = most.max(table.moved - before);
        before = table.moved;
        if number > COUNT / 2 && number % 1_000 == 0 {
            fullest = fullest.max(table.memory_bytes() as f64 / table.len() as f64);
        }
    }
    assert!(fullest < 27.5, "{fullest} bytes an entry");
    assert!(table.moved < 8 * COUNT as usize, "{}", table.moved);
    for number in 0..COUNT - COUNT / 10 {
        assert!(table.remove(scrambled(number), |entry| entry.0[1] == number).is_some());
        most = most.max(table.moved - before);
        before = table.moved;
    }
    assert!(most <= 2 * MAX_SHARD_ENTRIES + 2, "{most}");
    let left = table.memory_bytes() as f64 / table.len() as f64;
    assert!(left < 20.0 / 0.35 + 1.0, "{left} bytes an entry");
    for number in COUNT - COUNT / 10..COUNT {
        table.remove(scrambled(number), |entry| entry.0[1] == number);
    }
    table.check();
    assert_eq!((table.len(), table.depth, table.shards.len()), (0, 0, 1));
    assert!(table.memory_bytes() < 200);
}

/// Checks that a table of 8-byte entries takes 9 to 11 bytes per entry, on which the memory per subject relies.
#[test]
fn small_entries_take_9_to_11_bytes() {
    let mut table = ExtendibleTable::<Small>::default();
    for number in 0..1_000_000 {
        table.insert(Small([scrambled(number), number]));
        if number > 100_000 && number % 10_000 == 0 {
            let each = table.memory_bytes() as f64 / table.len() as f64;
            assert!((8.9..11.2).contains(&each), "{each} at {number}");
        }
    }
}
