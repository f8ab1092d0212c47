use std::collections::HashSet;

use super::*;

fn name(text: &str) -> BoardName {
    BoardName::parse(text).unwrap()
}

fn subject(text: &str) -> Subject {
    Subject::parse(text).unwrap()
}

/// Returns the hash slots of a board's parts, in the order of the parts.
fn slots(division: &Division) -> Vec<u16> {
    division.tags().map(|tag| HashSlot::of_key(format!("rolltop:1:{{{tag}}}:meta").as_bytes()).number()).collect()
}

const NAMES: [&str; 8] = ["hot-posts", "a", "0", "top-sellers", "plays-today", "x.y_z-9", "scores", "b17"];

#[test]
fn an_unsharded_board_keeps_its_keys() {
    let division = Division::unsharded(&name("hot-posts"));
    assert_eq!(division.tags().collect::<Vec<_>>(), ["hot-posts"]);
    assert_eq!((division.count(), division.stored()), (1, None));
    for text in ["", "a", "{a}:b"].iter().filter_map(|text| Subject::parse(text).ok()) {
        assert_eq!(division.partition_of(&text), 0);
    }
}

#[test]
fn each_part_has_a_hash_slot_in_its_own_band() {
    for text in NAMES.into_iter().chain([&*"z".repeat(63)]) {
        for shards in 1..=64u32 {
            let division = Division::choose(&name(text), shards).unwrap();
            assert_eq!(division.count(), shards as usize);
            for (part, slot) in slots(&division).into_iter().enumerate() {
                let (from, until) = (part as u32 * 16_384 / shards, (part as u32 + 1) * 16_384 / shards);
                assert!((from..until).contains(&u32::from(slot)), "{text}: part {part} of {shards} is in slot {slot}");
            }
            let distinct: HashSet<_> = division.tags().collect();
            assert_eq!(distinct.len(), division.count());
        }
    }
}

/// The numbers are fixed here so that a change of the rule is noticed. Such a change would not affect existing boards.
#[test]
fn the_smallest_matching_suffix_is_chosen() {
    let division = Division::choose(&name("hot-posts"), 3).unwrap();
    assert_eq!(division.stored().as_deref(), Some(THREE));
    let chosen: Vec<u32> = THREE.split(',').map(|text| text.parse().unwrap()).collect();
    for suffix in 0..*chosen.iter().max().unwrap() {
        let slot = HashSlot::of_key(format!("hot-posts/{suffix}").as_bytes());
        if let Some(part) = band_in_whose_middle(slot, 3) {
            assert!(chosen[part] <= suffix, "part {part} could have had {suffix}");
        }
    }
}

const THREE: &str = "63,1,20";

/// A CRC is linear: the hash slots of `name/0`, `name/1` … are those of any other name of the same length, each with
/// the same bits flipped. So if numbers of five digits reach every aligned block of 16 hash slots under one name, they
/// do so under every name of that length. The middle of the narrowest band contains such a block.
#[test]
fn choosing_suffixes_terminates_for_every_name() {
    let narrowest = 16_384 / 64 / 8;
    assert!(narrowest >= 2 * 16);
    for text in ["a", &"z".repeat(63)] {
        let board = name(text);
        let blocks: HashSet<u16> =
            (10_000..100_000).map(|suffix| HashSlot::of_key(tag(&board, suffix).as_bytes()).number() / 16).collect();
        assert_eq!(blocks.len(), 16_384 / 16);
    }
}

/// Returns the first hash slot of each of the masters, as `redis-cli --cluster create` distributes them.
fn ranges(masters: usize) -> Vec<u16> {
    let each = 16_384.0 / masters as f64;
    (0..masters).map(|master| (master as f64 * each).round() as u16).collect()
}

fn parts_of_masters(division: &Division, masters: usize) -> Vec<usize> {
    let first = ranges(masters);
    let mut counts = vec![0; masters];
    for slot in slots(division) {
        counts[first.partition_point(|first| *first <= slot) - 1] += 1;
    }
    counts
}

#[test]
fn parts_are_spread_evenly_over_masters() {
    assert_eq!(ranges(6), [0, 2_731, 5_461, 8_192, 10_923, 13_653]);
    for text in NAMES {
        let board = name(text);
        let counts = parts_of_masters(&Division::choose(&board, 24).unwrap(), 6);
        assert_eq!(counts, [4; 6], "{text}");
        for shards in [3, 16, 24] {
            let division = Division::choose(&board, shards).unwrap();
            for masters in 3..=12 {
                let even = f64::from(shards) / masters as f64;
                let counts = parts_of_masters(&division, masters);
                let fair = counts.iter().all(|count| (*count as f64 - even).abs() <= 1.0);
                assert!(fair, "{text}: {shards} shards on {masters} masters: {counts:?}");
            }
        }
    }
}

#[test]
fn stored_partitions_round_trip_and_are_validated() {
    let board = name("hot-posts");
    for shards in [1, 3, 24, 64] {
        let division = Division::choose(&board, shards).unwrap();
        let stored = division.stored().unwrap();
        assert_eq!(Division::read(&board, shards, &stored), Ok(division));
    }
    // Numbers that a different rule chose are valid too.
    let other = Division::read(&board, 3, "2,1,4294967295").unwrap();
    assert_eq!(other.tags().collect::<Vec<_>>(), ["hot-posts/2", "hot-posts/1", "hot-posts/4294967295"]);
    for bad in ["", "1,,2", "1,2,x", "1,2,03", "1,2,+3", "1,2, 3", "1,2,-3", "1,2,4294967296", "1;2;3"] {
        let error = Division::read(&board, 3, bad).unwrap_err();
        assert!(matches!(error, DivisionError::Number { .. }), "{bad}: {error}");
    }
    assert_eq!(Division::read(&board, 3, "1,2"), Err(DivisionError::Count { found: 2, shards: 3 }));
    assert_eq!(Division::read(&board, 3, "7,1,7"), Err(DivisionError::Twice { suffix: 7 }));
    for shards in [0, 65] {
        assert_eq!(Division::choose(&board, shards), Err(DivisionError::Shards { shards }));
        assert_eq!(Division::read(&board, shards, "1"), Err(DivisionError::Shards { shards }));
    }
}

/// The values come from the reference implementation, xxHash 0.8.4. If they change, subjects are separated from their
/// data.
#[test]
fn the_part_of_a_subject_is_stable() {
    let of = |shards| Division::choose(&name("b"), shards).unwrap();
    let [three, sixteen, many, most] = [3, 16, 24, 64].map(of);
    for (text, parts) in [
        ("a".to_owned(), [2, 14, 21, 57]),
        ("abc".to_owned(), [1, 7, 11, 30]),
        ("post-1".to_owned(), [1, 7, 10, 29]),
        ("user-7".to_owned(), [2, 11, 16, 44]),
        ("日本語".to_owned(), [0, 1, 1, 4]),
        ("{a}:b".to_owned(), [2, 12, 18, 49]),
        ("x".repeat(17), [1, 8, 12, 34]),
        ("x".repeat(129), [2, 14, 21, 57]),
        ("x".repeat(240), [0, 3, 5, 15]),
        ("x".repeat(241), [0, 1, 1, 5]),
        ("x".repeat(512), [0, 1, 1, 4]),
    ] {
        let subject = subject(&text);
        assert_eq!([&three, &sixteen, &many, &most].map(|division| division.partition_of(&subject)), parts, "{text}");
        assert_eq!(of(1).partition_of(&subject), 0);
    }
    assert_eq!(xxh3_64(b""), 0x2d06_8005_38d3_94c2);
}

#[test]
fn subjects_are_spread_evenly_over_parts() {
    for shards in [3u32, 16, 24, 64] {
        let division = Division::choose(&name("b"), shards).unwrap();
        let mut counts = vec![0u32; division.count()];
        let subjects = 64_000;
        for i in 0..subjects {
            counts[division.partition_of(&subject(&format!("user-{i}")))] += 1;
        }
        let even = f64::from(subjects) / f64::from(shards);
        let chi_squared: f64 = counts.iter().map(|count| (f64::from(*count) - even).powi(2) / even).sum();
        // The mean plus five standard deviations, for n − 1 degrees of freedom.
        let degrees = f64::from(shards - 1);
        assert!(chi_squared < degrees + 5.0 * (2.0 * degrees).sqrt(), "{shards}: {chi_squared}");
    }
}
