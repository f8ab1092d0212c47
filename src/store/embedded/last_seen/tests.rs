use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;

fn pairs<'a>(moments: impl Iterator<Item = SeenValue<'a>>) -> Vec<(i64, String)> {
    moments.map(|moment| (moment.at, moment.value.to_owned())).collect()
}

/// Returns the seen or the gone values of a model, in order.
fn in_order(model: &BTreeMap<String, LastSeen>, gone: bool) -> Vec<(i64, String)> {
    let of_kind = model.iter().filter(|(_, sighting)| sighting.retracted == gone);
    let mut found: Vec<_> = of_kind.map(|(value, sighting)| (sighting.at, value.clone())).collect();
    found.sort();
    found
}

fn check(sightings: &LastSeenValues, model: &BTreeMap<String, LastSeen>) {
    assert_eq!(sightings.len(), model.len());
    for gone in [false, true] {
        let expected = in_order(model, gone);
        let middle = expected.get(expected.len() / 2).cloned().unwrap_or((25, String::new()));
        for (at, value) in [(i64::MIN, String::new()), middle, (25, "v4".to_owned()), (1_000, String::new())] {
            let rest: Vec<_> = expected.iter().filter(|held| **held >= (at, value.clone())).cloned().collect();
            assert_eq!(pairs(sightings.from(gone, at, &value)), rest);
        }
        assert_eq!(sightings.oldest(gone).map(|m| (m.at, m.value.to_owned())), expected.first().cloned());
    }
    let seen = in_order(model, false);
    for skipped in [0, 1, 20, seen.len(), seen.len() + 1] {
        assert_eq!(pairs(sightings.newest(skipped)), seen.iter().rev().skip(skipped).cloned().collect::<Vec<_>>());
    }
    let all: Vec<_> = sightings.all().map(|(value, s)| (s.retracted, s.at, value.to_owned())).collect();
    assert!(all.is_sorted());
    let all: BTreeMap<_, _> =
        all.into_iter().map(|(gone, at, value)| (value, LastSeen { at, retracted: gone })).collect();
    assert_eq!(&all, model);
}

/// Returns a value. The values differ much in length, and many begin with the same text.
fn value(number: u16) -> String {
    match number % 4 {
        0 => format!("a value with a long beginning {number}"),
        1 => "x".repeat(usize::from(number) % 500 + 1) + &number.to_string(),
        _ => format!("v{number}"),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(80))]
    /// Covers few and many values, growing and shrinking across the limit in between.
    #[test]
    fn equals_a_map(changes in prop::collection::vec((0u16..70, 0i64..50, 0u8..10), 1..400)) {
        let (mut sightings, mut model) = (LastSeenValues::default(), BTreeMap::<String, LastSeen>::new());
        for (number, at, what) in changes {
            let value = value(number);
            match what {
                0..=5 => {
                    let sighting = LastSeen { at, retracted: what > 3 };
                    sightings.set(&value, sighting);
                    model.insert(value.clone(), sighting);
                }
                6..=7 => prop_assert_eq!(sightings.remove(&value), model.remove(&value).is_some()),
                8 if number % 8 == 0 => {
                    let expected = model.values().any(|sighting| sighting.at < at);
                    prop_assert_eq!(sightings.has_any_before(at), expected);
                    let before = model.len();
                    let forgotten = sightings.remove_before(at, usize::MAX);
                    model.retain(|_, sighting| sighting.at >= at);
                    prop_assert_eq!(forgotten, before - model.len());
                }
                _ => {
                    for gone in [false, true] {
                        let of = |s: &&LastSeen| s.retracted == gone && s.at >= at;
                        prop_assert_eq!(sightings.count_from(gone, at), model.values().filter(of).count());
                    }
                }
            }
            prop_assert_eq!(sightings.get(&value), model.get(&value).copied());
            prop_assert_eq!(sightings.len(), model.len());
        }
        check(&sightings, &model);
    }

    /// Stores thousands of values in many blocks and removes most of them in random order, so that blocks are emptied.
    #[test]
    fn texts_are_moved_together_and_stay_what_they_were(seed in any::<u16>(), left in 0u16..200) {
        let mut sightings = LastSeenValues::default();
        let mut model = BTreeMap::new();
        let set = |sightings: &mut LastSeenValues, model: &mut BTreeMap<_, _>, number: u16| {
            let sighting = LastSeen { at: i64::from(number % 97), retracted: number.is_multiple_of(13) };
            sightings.set(&value(number), sighting);
            model.insert(value(number), sighting);
        };
        (0..3_000).for_each(|number| set(&mut sightings, &mut model, number));
        let mixed = |nth: u16| ((u32::from(nth) * 1_879 + u32::from(seed)) % 3_000) as u16;
        for nth in 0..3_000 - left {
            prop_assert!(sightings.remove(&value(mixed(nth))));
            model.remove(&value(mixed(nth)));
            if nth % 500 == 0 {
                check(&sightings, &model);
                set(&mut sightings, &mut model, 3_000 + nth);
            }
        }
        check(&sightings, &model);
        if let Values::Many(many) = &sightings.values {
            let live: usize = model.keys().map(|value| value.len() + 15).sum();
            prop_assert!(many.text_bytes() <= 2 * live + (4 << 14), "{} for {live}", many.text_bytes());
        }
    }
}

#[test]
fn expired_values_are_forgotten_oldest_first_and_in_steps() {
    let mut sightings = LastSeenValues::default();
    for number in 0..1_000u16 {
        sightings.set(&value(number), LastSeen { at: i64::from(number), retracted: number % 2 == 0 });
    }
    sightings.capped = Some(3);
    assert_eq!(sightings.remove_before(500, 100), 200);
    assert_eq!(sightings.capped, None);
    assert_eq!((sightings.oldest(false).unwrap().at, sightings.oldest(true).unwrap().at), (201, 200));
    assert!(sightings.has_any_before(500) && !sightings.has_any_before(200));
    assert_eq!(sightings.remove_before(500, 1_000), 300);
    assert!(!sightings.has_any_before(500));
    assert_eq!(sightings.remove_before(2_000, usize::MAX), 500);
    assert!(sightings.is_empty());
}

#[test]
fn no_operation_moves_more_than_a_bounded_number_of_values() {
    let mut sightings = LastSeenValues::default();
    let (mut before, mut most) = (0, 0);
    let mut note = |sightings: &LastSeenValues| {
        if let Values::Many(many) = &sightings.values {
            most = most.max(many.moved().saturating_sub(before));
            before = many.moved();
        }
    };
    let value = |number: u32| format!("value-{number}");
    for number in 0..60_000 {
        sightings.set(&value(number), LastSeen { at: i64::from(number / 100), retracted: false });
        note(&sightings);
    }
    for number in 0..60_000 {
        sightings.set(&value(number * 7_919 % 60_000), LastSeen { at: 1_000, retracted: number % 3 == 0 });
        note(&sightings);
    }
    for number in 0..60_000 {
        sightings.remove(&value(number * 31_013 % 60_000));
        note(&sightings);
    }
    assert!(sightings.is_empty());
    assert!(most <= 5_000, "{most}");
}
