use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;

fn pairs<'a>(values: impl Iterator<Item = SeenValue<'a>>) -> Vec<(i64, String)> {
    values.map(|seen| (seen.at, seen.value.to_owned())).collect()
}

/// Returns the seen or the retracted values of a model, in order.
fn in_order(model: &BTreeMap<String, LastSeen>, retracted: bool) -> Vec<(i64, String)> {
    let of_kind = model.iter().filter(|(_, last_seen)| last_seen.retracted == retracted);
    let mut found: Vec<_> = of_kind.map(|(value, last_seen)| (last_seen.at, value.clone())).collect();
    found.sort();
    found
}

fn check(values: &LastSeenValues, model: &BTreeMap<String, LastSeen>) {
    assert_eq!(values.len(), model.len());
    for retracted in [false, true] {
        let expected = in_order(model, retracted);
        let middle = expected.get(expected.len() / 2).cloned().unwrap_or((25, String::new()));
        for (at, value) in [(i64::MIN, String::new()), middle, (25, "v4".to_owned()), (1_000, String::new())] {
            let rest: Vec<_> = expected.iter().filter(|held| **held >= (at, value.clone())).cloned().collect();
            assert_eq!(pairs(values.from(retracted, at, &value)), rest);
        }
        assert_eq!(values.oldest(retracted).map(|m| (m.at, m.value.to_owned())), expected.first().cloned());
    }
    let seen = in_order(model, false);
    for skipped in [0, 1, 20, seen.len(), seen.len() + 1] {
        assert_eq!(pairs(values.newest(skipped)), seen.iter().rev().skip(skipped).cloned().collect::<Vec<_>>());
    }
    let all: Vec<_> = values.all().map(|(value, s)| (s.retracted, s.at, value.to_owned())).collect();
    assert!(all.is_sorted());
    let all: BTreeMap<_, _> =
        all.into_iter().map(|(retracted, at, value)| (value, LastSeen { at, retracted })).collect();
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
    fn behaves_like_a_map(changes in prop::collection::vec((0u16..70, 0i64..50, 0u8..10), 1..400)) {
        let (mut values, mut model) = (LastSeenValues::default(), BTreeMap::<String, LastSeen>::new());
        for (number, at, what) in changes {
            let value = value(number);
            match what {
                0..=5 => {
                    let last_seen = LastSeen { at, retracted: what > 3 };
                    values.set(&value, last_seen);
                    model.insert(value.clone(), last_seen);
                }
                6..=7 => prop_assert_eq!(values.remove(&value), model.remove(&value).is_some()),
                8 if number % 8 == 0 => {
                    let floors = Floors { seen: at, retracted: at + i64::from(number % 3) };
                    let is_expired = |last_seen: &LastSeen| last_seen.at < floors.of(last_seen.retracted);
                    prop_assert_eq!(values.has_any_before(floors), model.values().any(is_expired));
                    let before = model.len();
                    let removed = values.remove_before(floors, usize::MAX);
                    model.retain(|_, last_seen| !is_expired(last_seen));
                    prop_assert_eq!(removed, before - model.len());
                }
                _ => {
                    for retracted in [false, true] {
                        let of = |s: &&LastSeen| s.retracted == retracted && s.at >= at;
                        prop_assert_eq!(values.count_from(retracted, at), model.values().filter(of).count());
                    }
                }
            }
            prop_assert_eq!(values.get(&value), model.get(&value).copied());
            prop_assert_eq!(values.len(), model.len());
        }
        check(&values, &model);
    }

    /// Stores thousands of values in many blocks and removes most of them in random order, so that blocks are emptied.
    #[test]
    fn compaction_keeps_the_values_and_frees_memory(seed in any::<u16>(), left in 0u16..200) {
        let mut values = LastSeenValues::default();
        let mut model = BTreeMap::new();
        let set = |values: &mut LastSeenValues, model: &mut BTreeMap<_, _>, number: u16| {
            let last_seen = LastSeen { at: i64::from(number % 97), retracted: number.is_multiple_of(13) };
            values.set(&value(number), last_seen);
            model.insert(value(number), last_seen);
        };
        (0..3_000).for_each(|number| set(&mut values, &mut model, number));
        let mixed = |nth: u16| ((u32::from(nth) * 1_879 + u32::from(seed)) % 3_000) as u16;
        for nth in 0..3_000 - left {
            prop_assert!(values.remove(&value(mixed(nth))));
            model.remove(&value(mixed(nth)));
            if nth % 500 == 0 {
                check(&values, &model);
                set(&mut values, &mut model, 3_000 + nth);
            }
        }
        check(&values, &model);
        if let Values::Many(many) = &values.values {
            let live: usize = model.keys().map(|value| value.len() + 15).sum();
            prop_assert!(many.text_bytes() <= 2 * live + (4 << 14), "{} for {live}", many.text_bytes());
        }
    }
}

#[test]
fn expired_values_are_removed_oldest_first_in_steps() {
    let floors = |floor| Floors { seen: floor, retracted: floor };
    let mut values = LastSeenValues::default();
    for number in 0..1_000u16 {
        values.set(&value(number), LastSeen { at: i64::from(number), retracted: number % 2 == 0 });
    }
    values.capped = Some(3);
    assert_eq!(values.remove_before(floors(500), 100), 200);
    assert_eq!(values.capped, None);
    assert_eq!((values.oldest(false).unwrap().at, values.oldest(true).unwrap().at), (201, 200));
    assert!(values.has_any_before(floors(500)) && !values.has_any_before(floors(200)));
    assert!(values.has_any_before(Floors { seen: 0, retracted: 500 }));
    assert_eq!(values.remove_before(floors(500), 1_000), 300);
    assert!(!values.has_any_before(floors(500)));
    assert_eq!(values.remove_before(floors(2_000), usize::MAX), 500);
    assert!(values.is_empty());
}

#[test]
fn each_operation_moves_a_bounded_number_of_values() {
    let mut values = LastSeenValues::default();
    let (mut before, mut most) = (0, 0);
    let mut note = |values: &LastSeenValues| {
        if let Values::Many(many) = &values.values {
            most = most.max(many.moved().saturating_sub(before));
            before = many.moved();
        }
    };
    let value = |number: u32| format!("value-{number}");
    for number in 0..60_000 {
        values.set(&value(number), LastSeen { at: i64::from(number / 100), retracted: false });
        note(&values);
    }
    for number in 0..60_000 {
        values.set(&value(number * 7_919 % 60_000), LastSeen { at: 1_000, retracted: number % 3 == 0 });
        note(&values);
    }
    for number in 0..60_000 {
        values.remove(&value(number * 31_013 % 60_000));
        note(&values);
    }
    assert!(values.is_empty());
    assert!(most <= 5_000, "{most}");
}
