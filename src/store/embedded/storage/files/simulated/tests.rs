//! Tests of the simulator, on which other tests rely.

use std::sync::atomic::{AtomicU64, Ordering};

use super::*;

const SEEDS: u64 = 300;

fn contents(files: &Simulated, name: &str) -> Option<Vec<u8>> {
    let file = files.open(name).ok()?;
    let mut bytes = vec![0; file.len().unwrap() as usize];
    file.read_exact_at(&mut bytes, 0).unwrap();
    Some(bytes)
}

/// Returns every outcome that some crash has.
fn outcomes<T: Ord>(files: &Simulated, crash: Crash, look: impl Fn(&Simulated) -> T) -> BTreeSet<T> {
    (0..SEEDS).map(|seed| look(&files.crash(seed, crash))).collect()
}

#[test]
fn synced_bytes_survive_a_crash_and_others_survive_partially() {
    let files = Simulated::new();
    let file = files.create_new("a").unwrap();
    files.sync_dir("").unwrap();
    file.write_all_at(&[1; 2_048], 0).unwrap();
    file.sync_data().unwrap();
    file.write_all_at(&[2; 1_024], 512).unwrap();
    file.write_all_at(&[3; 512], 512).unwrap();
    let seen = outcomes(&files, Crash::PowerLoss, |left| contents(left, "a").unwrap());
    assert!(seen.iter().all(|bytes| bytes.len() == 2_048 && bytes[..512] == [1; 512] && bytes[1_536..] == [1; 512]));
    let sectors = |bytes: &Vec<u8>| (bytes[512], bytes[1_024]);
    let whole: BTreeSet<(u8, u8)> = seen.iter().map(sectors).collect();
    // Each sector is in each of its versions, in every combination, including the later sector without the earlier one.
    assert_eq!(whole, [(1, 1), (1, 2), (2, 1), (2, 2), (3, 1), (3, 2)].into());
    assert!(seen.iter().any(|bytes| bytes[512] != bytes[1_023]), "no sector was torn");
    // The disk that crashed is unchanged.
    assert_eq!(contents(&files, "a").unwrap()[512..1_024], [3; 512]);
}

#[test]
fn an_unsynced_length_may_be_lost_or_kept_without_its_bytes() {
    let files = Simulated::new();
    let file = files.create_new("a").unwrap();
    files.sync_dir("").unwrap();
    file.write_all_at(&[1; 100], 0).unwrap();
    file.sync_data().unwrap();
    file.write_all_at(&[2; 1_000], 100).unwrap();
    let seen = outcomes(&files, Crash::PowerLoss, |left| contents(left, "a").unwrap());
    assert!(seen.iter().all(|bytes| bytes[..100] == [1; 100]));
    assert!(seen.iter().any(|bytes| bytes.len() == 100));
    assert!(seen.iter().any(|bytes| bytes.len() == 1_100 && bytes[1_099] == 2));
    assert!(seen.iter().any(|bytes| bytes.len() == 1_100 && bytes[1_024..] == [0; 76]));
}

#[test]
fn unsynced_names_may_or_may_not_survive_a_crash() {
    let files = Simulated::new();
    files.create_new("kept").unwrap();
    files.create_new("old").unwrap().write_all_at(b"x", 0).unwrap();
    files.sync_dir("").unwrap();
    files.create_new("new").unwrap().sync_data().unwrap();
    files.rename("old", "renamed").unwrap();
    files.remove("kept").unwrap();
    let list = |left: &Simulated| left.list("").unwrap().join(" ");
    let seen = outcomes(&files, Crash::PowerLoss, list);
    let expected =
        ["kept old", "kept new old", "kept renamed", "kept new renamed", "old", "new old", "renamed", "new renamed"];
    assert_eq!(seen, expected.map(str::to_owned).into());
    let seen = outcomes(&files, Crash::PowerLossInOrder, list);
    let expected = ["kept old", "kept new old", "kept new renamed", "new renamed"];
    assert_eq!(seen, expected.map(str::to_owned).into());
    files.sync_dir("").unwrap();
    assert_eq!(outcomes(&files, Crash::PowerLoss, list), ["new renamed".to_owned()].into());
}

#[test]
fn a_crash_during_a_replacement_leaves_the_old_or_the_new_file() {
    let files = Simulated::new();
    for (name, bytes) in [("a", b"old"), ("b", b"new")] {
        let file = files.create_new(name).unwrap();
        file.write_all_at(bytes, 0).unwrap();
        file.sync_data().unwrap();
        if name == "a" {
            files.sync_dir("").unwrap();
        }
    }
    files.rename("b", "a").unwrap();
    let seen = outcomes(&files, Crash::PowerLoss, |left| contents(left, "a").unwrap());
    assert_eq!(seen, [b"old".to_vec(), b"new".to_vec()].into());
}

#[test]
fn a_kill_keeps_written_bytes_unsynced() {
    let files = Simulated::new();
    files.create_new("a").unwrap().write_all_at(&[5; 600], 0).unwrap();
    let killed = files.crash(1, Crash::Killed);
    assert_eq!(contents(&killed, "a").unwrap(), [5; 600]);
    let seen = outcomes(&killed, Crash::PowerLoss, |left| contents(left, "a").is_some());
    assert_eq!(seen, [false, true].into());
}

#[test]
fn bytes_of_a_failed_sync_are_not_written_by_later_syncs() {
    let files = Simulated::new();
    let file = files.create_new("a").unwrap();
    files.sync_dir("").unwrap();
    file.allocate(4_096).unwrap();
    file.sync_data().unwrap();
    file.write_all_at(&[1; 4_096], 0).unwrap();
    files.when(1, Fault::Io, |op| op.kind == OperationKind::Sync);
    file.sync_data().unwrap_err();
    file.sync_data().unwrap();
    assert_eq!(contents(&files, "a").unwrap(), [1; 4_096]);
    let seen = outcomes(&files, Crash::PowerLoss, |left| contents(left, "a").unwrap());
    assert_eq!(seen.len(), 1, "nothing is left to chance");
    assert_ne!(seen.first().unwrap(), &[1; 4_096]);
    assert_eq!(contents(&files.crash(1, Crash::Killed), "a").unwrap(), [1; 4_096]);
    files.evict();
    assert_ne!(contents(&files, "a").unwrap(), [1; 4_096]);
    // After they are written again, they can be synced again.
    file.write_all_at(&[1; 4_096], 0).unwrap();
    files.evict();
    file.sync_data().unwrap();
    assert_eq!(outcomes(&files, Crash::PowerLoss, |left| contents(left, "a").unwrap()), [vec![1; 4_096]].into());
}

#[test]
fn a_full_disk_refuses_writes_without_allocated_space() {
    let files = Simulated::new();
    files.set_capacity(Some(4_096));
    let file = files.create_new("a").unwrap();
    file.allocate(2_048).unwrap();
    assert_eq!(files.available().unwrap(), 2_048);
    let other = files.create_new("b").unwrap();
    assert_eq!(other.allocate(4_096).unwrap_err().kind(), io::ErrorKind::StorageFull);
    assert_eq!(other.len().unwrap(), 0);
    assert_eq!(other.write_all_at(&[1; 3_000], 0).unwrap_err().kind(), io::ErrorKind::StorageFull);
    assert!(other.len().unwrap() <= 2_048, "a part was written");
    other.write_all_at(&[1; 2_048], 0).unwrap();
    assert_eq!(files.available().unwrap(), 0);
    file.write_all_at(&[1; 2_048], 0).unwrap();
    other.write_all_at(&[2; 2_048], 0).unwrap();
    assert_eq!(other.write_all_at(&[1], 2_048).unwrap_err().kind(), io::ErrorKind::StorageFull);
    files.remove("a").unwrap();
    assert_eq!(files.available().unwrap(), 0, "it is open");
    drop(file);
    assert_eq!(files.available().unwrap(), 2_048);
    files.rename("b", "c").unwrap();
    assert_eq!(files.used(), 2_048);
}

#[test]
fn planned_faults_occur_at_their_operations() {
    let files = Simulated::new();
    files.at(2, Fault::NoSpace);
    let file = files.create_new("a").unwrap();
    assert_eq!(file.write_all_at(b"abc", 0).unwrap_err().kind(), io::ErrorKind::StorageFull);
    assert_eq!((files.operations(), file.len().unwrap()), (2, 0));
    files.when(2, Fault::Io, |op| op.kind == OperationKind::WriteRest);
    file.write_all_at(b"abc", 0).unwrap_err();
    assert!((1..3).contains(&file.len().unwrap()), "one or two bytes were written");
    file.write_all_at(b"abc", 0).unwrap_err();
    file.write_all_at(b"abc", 0).unwrap();
    files.when(u32::MAX, Fault::Io, |op| op.path == "/data/a");
    file.read_at(&mut [0], 0).unwrap_err();
    file.read_at(&mut [0], 0).unwrap_err();
    files.clear_faults();
    file.read_at(&mut [0], 0).unwrap();
}

#[test]
fn a_hanging_sync_does_not_block_other_operations() {
    let files = Simulated::new();
    let file = files.create_new("a").unwrap();
    file.write_all_at(b"abc", 0).unwrap();
    files.sync_dir("").unwrap();
    let (hangs, hanging) = std::sync::mpsc::channel();
    files.when(1, Fault::Hang, |op| op.kind == OperationKind::Sync);
    files.on_operation(Box::new(move |_, op| {
        if op.kind == OperationKind::Sync {
            hangs.send(()).unwrap();
        }
    }));
    let synced = std::thread::spawn({
        let file = Arc::clone(&file);
        move || file.sync_data()
    });
    hanging.recv().unwrap();
    file.write_all_at(b"d", 3).unwrap();
    assert!(!synced.is_finished());
    files.release();
    synced.join().unwrap().unwrap();
    assert_eq!(outcomes(&files, Crash::PowerLoss, |left| contents(left, "a").unwrap()), [b"abcd".to_vec()].into());
}

#[test]
fn the_hook_is_called_before_every_operation() {
    let files = Simulated::new();
    let images = Arc::new(Mutex::new(Vec::new()));
    let last = Arc::new(AtomicU64::new(0));
    files.on_operation({
        let (files, images, last) = (files.clone(), Arc::clone(&images), Arc::clone(&last));
        Box::new(move |number, op| {
            last.store(number, Ordering::Relaxed);
            if op.changes() {
                images.lock().push((op.kind, files.crash(0, Crash::Killed)));
            }
        })
    });
    files.create_new("a").unwrap().write_all_at(b"abcdef", 0).unwrap();
    files.open("a").unwrap();
    let images = std::mem::take(&mut *images.lock());
    let kinds: Vec<OperationKind> = images.iter().map(|(kind, _)| *kind).collect();
    assert_eq!(kinds, [OperationKind::Create, OperationKind::Write, OperationKind::WriteRest]);
    assert_eq!(last.load(Ordering::Relaxed), 4);
    assert_eq!(contents(&images[0].1, "a"), None);
    assert_eq!(contents(&images[1].1, "a").unwrap(), b"");
    let partial = contents(&images[2].1, "a").unwrap();
    assert!(!partial.is_empty() && partial.len() < 6 && b"abcdef".starts_with(&partial));
}
