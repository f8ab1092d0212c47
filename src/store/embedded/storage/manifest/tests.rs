use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;
use serde_json::json;

use super::super::files::simulated::{Crash, Fault, OperationKind, Simulated};
use super::*;
use crate::store::TableName;

fn sample(number: u64) -> Manifest {
    Manifest {
        store: 0x0abc << 100 | 7,
        fingerprint_key: [u64::MAX, number],
        clock_mode: ClockMode::Simulated,
        clock: Some(ClockRecord { wall_millis: i64::MIN, boot_id: "b-1".to_owned(), uptime_millis: u64::MAX }),
        simulated_clock: Some(i64::MAX),
        catalog_seq: 8,
        log_start: LogStart { segment: number, seq: u64::MAX, synced_seq: (1 << 53) + 1 },
        boards: vec![BoardEntry {
            name: "päth \"x\"\n".to_owned(),
            generation: u64::MAX,
            definition: json!({"metric": "COUNT(1h)", "scale": 2, "none": null}),
            editions: None,
            from_seq: (1 << 60) + 1,
            checkpoint: Some(CheckpointEntry { file: "checkpoints/1-2.ckpt".to_owned(), bytes: 9 }),
            ids: vec![IdsEntry { file: "ids/1-2.ids".to_owned(), bucket: -3, newest: i64::MIN, bytes: u64::MAX }],
        }],
        rows: [("keys".to_owned(), [("k-1".to_owned(), "{\"a\": 1}\n\0".to_owned())].into())].into(),
    }
}

fn is_damage(result: Result<Manifest, StorageError>) -> bool {
    matches!(result, Err(StorageError::Damaged { file, .. }) if file == MANIFEST)
}

#[test]
fn a_manifest_round_trips() {
    let files = Simulated::new();
    assert_eq!(Manifest::read(&files).unwrap(), None);
    let mut manifest = sample(1);
    for _ in 0..2 {
        manifest.install(&files).unwrap();
        assert_eq!(Manifest::read(&files).unwrap(), Some(manifest.clone()));
        (manifest.clock, manifest.simulated_clock, manifest.clock_mode) = (None, None, ClockMode::System);
        manifest.boards[0].checkpoint = None;
        manifest.rows.clear();
    }
    assert_eq!(files.list("").unwrap(), [MANIFEST]);
}

#[test]
fn large_integers_are_strings() {
    let text = String::from_utf8(sample(1).encode().unwrap()).unwrap();
    let json: serde_json::Value = serde_json::from_str(text.split_once('\n').unwrap().1).unwrap();
    assert_eq!(json["store"], "0000abc0000000000000000000000007");
    assert_eq!(json["fingerprint_key"][0], "ffffffffffffffff");
    assert_eq!(json["log_start"]["synced_seq"], "9007199254740993");
    assert_eq!(json["boards"][0]["ids"][0]["newest"], "-9223372036854775808");
    assert_eq!(json["simulated_clock"], "9223372036854775807");
}

#[test]
fn rows_are_left_out_if_there_are_none() {
    let fields = |manifest: &Manifest| {
        let text = String::from_utf8(manifest.encode().unwrap()).unwrap();
        let json: serde_json::Value = serde_json::from_str(text.split_once('\n').unwrap().1).unwrap();
        json.as_object().unwrap().keys().cloned().collect::<BTreeSet<_>>()
    };
    let with = sample(1);
    let without = Manifest { rows: RowsByTable::new(), ..with.clone() };
    let added: Vec<_> = fields(&with).difference(&fields(&without)).cloned().collect();
    assert_eq!(added, ["rows"]);
    assert_eq!(Manifest::decode(&without.encode().unwrap()).unwrap(), without);
}

#[test]
fn editions_have_a_version_that_earlier_programs_refuse() {
    let plain = sample(1);
    assert!(plain.encode().unwrap().starts_with(b"rolltop-manifest 1 "));
    let mut changed = plain.clone();
    changed.boards[0].editions = Some(EditionsEntry { epoch: u64::MAX, form: "{}".to_owned() });
    let bytes = changed.encode().unwrap();
    assert!(bytes.starts_with(b"rolltop-manifest 2 "));
    assert_eq!(Manifest::decode(&bytes).unwrap(), changed);
}

#[test]
fn full_tables_of_the_longest_encoding_can_be_read_again() {
    // A control character takes six bytes of JSON.
    let text = "\u{1}".repeat(TableName::MAX_TEXT_BYTES);
    let rows = (0..TableName::MAX_BYTES / TableName::MAX_TEXT_BYTES).map(|n| (n.to_string(), text.clone()));
    let rows: BTreeMap<_, _> = rows.collect();
    let tables = TableName::ALL.map(|table| (table.to_string(), rows.clone()));
    let manifest = Manifest { rows: tables.into(), ..sample(1) };
    assert!((manifest.encode().unwrap().len() as u64) < MAX_BYTES);
}

#[test]
fn every_flipped_bit_and_truncation_is_detected() {
    let bytes = sample(1).encode().unwrap();
    for bit in 0..bytes.len() * 8 {
        let mut flipped = bytes.clone();
        flipped[bit / 8] ^= 1 << (bit % 8);
        assert!(is_damage(Manifest::decode(&flipped)), "bit {bit}");
    }
    for end in 0..bytes.len() {
        assert!(is_damage(Manifest::decode(&bytes[..end])), "cut at {end}");
    }
    let longer = [&bytes[..], b"\n"].concat();
    assert!(is_damage(Manifest::decode(&longer)));
}

#[test]
fn later_versions_and_missing_fields_have_their_own_errors() {
    let line = |start: &str, json: &str| {
        let crc = checksum(start.as_bytes(), json.as_bytes());
        format!("{start}{crc:08x}\n{json}").into_bytes()
    };
    let error = Manifest::decode(&line("rolltop-manifest 3 2 ", "{}")).unwrap_err();
    assert_eq!(
        error.to_string(),
        "MANIFEST has format version 3, this version of rolltop reads version 2: use the one that wrote it"
    );
    let error = Manifest::decode(&line("rolltop-manifest 1 2 ", "{}")).unwrap_err();
    assert!(error.to_string().starts_with("MANIFEST is damaged at byte 30: missing field"), "{error}");
    assert!(is_damage(Manifest::decode(&line("rolltop-manifest 01 2 ", "{}"))));
}

#[test]
fn a_crash_during_install_leaves_the_old_or_the_new_manifest() {
    for crash in [Crash::Killed, Crash::PowerLoss, Crash::PowerLossInOrder] {
        let files = Simulated::new();
        sample(1).install(&files).unwrap();
        let first = files.operations();
        sample(2).install(&files).unwrap();
        let steps = files.operations() - first;
        for step in 1..=steps {
            let files = Simulated::new();
            sample(1).install(&files).unwrap();
            files.at(first + step, Fault::Io);
            sample(2).install(&files).unwrap_err();
            let mut seen = BTreeSet::new();
            for seed in 0..60 {
                let left = files.crash(seed, crash);
                let found = Manifest::read(&left).unwrap().unwrap();
                assert!(found == sample(1) || found == sample(2));
                seen.insert(found.log_start.segment);
                // Files that a crash leaves do not prevent a new installation.
                sample(3).install(&left).unwrap();
                assert_eq!(Manifest::read(&left.crash(seed, Crash::PowerLoss)).unwrap(), Some(sample(3)));
            }
            let renamed = step == steps;
            assert!(renamed || seen == [1].into(), "step {step}");
        }
        assert_eq!(Manifest::read(&files.crash(9, crash)).unwrap(), Some(sample(2)));
    }
}

#[test]
fn a_recovered_manifest_is_durable() {
    let files = Simulated::new();
    sample(1).install(&files).unwrap();
    files.when(1, Fault::Io, |op| op.kind == OperationKind::SyncDir);
    sample(2).install(&files).unwrap_err();
    let killed = files.crash(0, Crash::Killed);
    assert_eq!(Manifest::read(&killed).unwrap(), Some(sample(2)));
    let after = |seed| Manifest::read(&killed.crash(seed, Crash::PowerLoss)).unwrap().unwrap();
    assert!((0..60).any(|seed| after(seed) == sample(1)), "reading alone changes nothing");
    assert_eq!(Manifest::recover(&killed).unwrap(), Some(sample(2)));
    assert!((0..60).all(|seed| after(seed) == sample(2)));
}

#[test]
fn a_failed_read_is_not_reported_as_damage() {
    let files = Simulated::new();
    sample(1).install(&files).unwrap();
    files.when(1, Fault::Io, |op| op.kind == OperationKind::Read);
    assert!(matches!(Manifest::read(&files), Err(StorageError::Io { operation: "read", .. })));
}

proptest! {
    #[test]
    fn arbitrary_bytes_do_not_panic(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        prop_assert!(Manifest::decode(&bytes).is_err());
        let with_magic = [b"rolltop-manifest 1 ", &bytes[..]].concat();
        prop_assert!(Manifest::decode(&with_magic).is_err());
    }
}
