use std::collections::HashMap;

use proptest::prelude::*;

use super::*;

#[test]
fn size_classes_waste_at_most_an_eighth() {
    for units in 1..40_000 {
        let (class, size) = (class_of(units), size_of_class(class_of(units)));
        assert!(units <= size && size <= units + units / 8, "{units} in {size}");
        assert_eq!(class_of(size), class);
        assert!(class == 0 || size_of_class(class - 1) < units);
    }
}

/// Tests the arithmetic near the limit of references, because no test has enough memory to reach it.
#[test]
fn references_address_about_32_gib() {
    fn reaches<U: Unit>() -> u64 {
        let last = max_chunks::<U>() - 1;
        for chunk in [0, 1, last / 2, last] {
            for unit in [0, 1, U::PER_CHUNK - 1] {
                let reference = reference::<U>(chunk as u32, unit);
                assert_ne!(reference, NONE);
                assert_eq!(split::<U>(reference), (chunk as u32, unit));
            }
        }
        (last as u64 + 1) * (U::PER_CHUNK * size_of::<U>()) as u64
    }
    assert!(reaches::<[u8; 8]>() > (31 << 30) && reaches::<i64>() > (31 << 30));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    #[test]
    fn behaves_like_a_map(
        steps in prop::collection::vec((0u8..8, 0usize..30_000, 1usize..200), 1..400),
        compacts in any::<bool>(),
    ) {
        let mut pool = Pool::<i64>::default();
        let mut model: HashMap<u64, (u32, Vec<i64>)> = HashMap::new();
        let mut keys: Vec<u64> = Vec::new();
        for (nth, (what, which, units)) in steps.into_iter().enumerate() {
            match what {
                0..=4 => {
                    for more in 0..8 {
                        let units = if which % 97 == 0 { units * 100 } else { units };
                        let reference = pool.allocate(units).unwrap();
                        let filling: Vec<i64> = (0..units as i64).map(|i| i ^ (nth as i64) << 20).collect();
                        pool.get_mut(reference, units).copy_from_slice(&filling);
                        let key = nth as u64 * 8 + more;
                        model.insert(key, (reference, filling));
                        keys.push(key);
                    }
                }
                5..=6 if !keys.is_empty() => {
                    for _ in 0..10.min(keys.len()) {
                        let key = keys.swap_remove(which % keys.len());
                        let (reference, filling) = model.remove(&key).unwrap();
                        prop_assert_eq!(pool.get(reference, filling.len()), &filling);
                        pool.free(reference, filling.len());
                    }
                }
                7 if !keys.is_empty() => {
                    let (reference, filling) = model.get_mut(&keys[which % keys.len()]).unwrap();
                    *reference = pool.replace(*reference, filling.len(), units).unwrap();
                    filling.resize(units, 0);
                    pool.get_mut(*reference, units).copy_from_slice(filling);
                }
                _ => {}
            }
            if compacts && nth % 50 == 49 {
                pool.begin_compaction();
                for (reference, filling) in model.values_mut() {
                    *reference = pool.moved(*reference, filling.len()).unwrap_or(*reference);
                }
                prop_assert!(pool.chunks.iter().flatten().all(|chunk| !chunk.emptying));
            }
        }
        for (reference, filling) in model.values() {
            prop_assert_eq!(pool.get(*reference, filling.len()), filling);
        }
        for (reference, filling) in model.into_values() {
            pool.free(reference, filling.len());
        }
        prop_assert!(pool.memory_bytes() < 3_000_000);
        prop_assert_eq!(pool.units, pool.chunks.iter().flatten().map(|chunk| chunk.units.len()).sum::<usize>());
    }
}

#[test]
fn compaction_releases_memory_in_portions() {
    let mut pool = Pool::<[u8; 8]>::default();
    let mut held: Vec<u32> = (0..400_000).map(|_| pool.allocate(2).unwrap()).collect();
    let full = pool.memory_bytes();
    assert!(full < 400_000 * 16 * 105 / 100);
    for (nth, reference) in held.iter().enumerate() {
        pool.get_mut(*reference, 2)[1] = nth.to_le_bytes();
        if nth % 10 != 0 {
            pool.free(*reference, 2);
        }
    }
    assert!(pool.is_sparse() && pool.memory_bytes() > full / 2);
    held = held.into_iter().step_by(10).collect();
    pool.begin_compaction();
    for reference in &mut held {
        *reference = pool.moved(*reference, 2).unwrap_or(*reference);
    }
    assert!(pool.memory_bytes() < full / 8 && !pool.is_sparse());
    for (nth, reference) in held.iter().enumerate() {
        assert_eq!(pool.get(*reference, 2)[1], (nth * 10).to_le_bytes());
    }
}
