//! Damage to what is on the disk is noticed, whatever the metric; what an older layout wrote reads on.

use super::contents::live_contents;
use super::*;
use crate::store::StoreError;
use crate::store::embedded::codec::{DIGEST, RECORDS, SCHEMA, VALUES, seal, share};
use crate::store::embedded::recovery;

/// A closed store with some of everything, folded.
async fn filled(definition: &Definition) -> Arc<Memory> {
    let (folder, disk) = (tempfile::tempdir().unwrap(), Arc::new(Memory::default()));
    let store = open(folder.path(), &disk, EAGER).unwrap();
    let board = define_as(&store, definition).await;
    for number in 1..=4 {
        let item = |who| Increment { change: change(&board, number), ..increment(who, 0, None, None) };
        add(&store, &board, (0..3).map(item).collect()).await.unwrap();
    }
    settle(&store).await;
    store.close().await.unwrap();
    disk
}

fn recovered(disk: &Memory) -> Result<recovery::Recovered> {
    let folder = tempfile::tempdir().unwrap();
    recovery::recover(disk, folder.path(), ClockMode::Simulated(START))
}

#[tokio::test]
async fn every_flipped_bit_and_every_cut_of_a_record_is_noticed() {
    for definition in every_definition() {
        let disk = filled(&definition).await;
        assert!(recovered(&disk).is_ok());
        let entries = disk.entries.lock().clone();
        let kind = if definition.metric.to_string().starts_with("COUNT_DISTINCT") { VALUES } else { RECORDS };
        let (key, value) = entries.iter().find(|(key, _)| key.starts_with(kind)).expect("a fold");
        let damaged = |value: Option<Vec<u8>>| {
            let copy = disk.crashed();
            match value {
                Some(value) => copy.entries.lock().insert(key.clone(), value),
                None => copy.entries.lock().remove(key),
            };
            matches!(recovered(&copy), Err(StoreError::Corrupt { .. }))
        };
        for bit in 0..value.len() * 8 {
            let mut flipped = value.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            assert!(damaged(Some(flipped)), "{}: bit {bit}", definition.metric);
        }
        for end in 0..value.len() {
            assert!(damaged(Some(value[..end].to_vec())), "{}: cut at {end}", definition.metric);
        }
        assert!(damaged(None), "{}: missing", definition.metric);
    }
}

#[tokio::test]
async fn the_first_layout_opens_and_becomes_the_present_one() {
    let definition = &every_definition()[0];
    let disk = filled(definition).await;
    let contents = |disk: &Memory| {
        let board = recovered(disk).map_err(|error| error.to_string()).unwrap().boards.into_values().next().unwrap();
        let tables = board.tables.lock();
        live_contents(&tables)
    };
    let before = contents(&disk);
    assert_eq!(before.len(), 3);
    {
        let mut entries = disk.entries.lock();
        let (old, new) = (seal(vec![1, 1]), entries[SCHEMA].clone());
        assert_ne!(old, new);
        let digest = entries[DIGEST].first_chunk().map(|bytes| u64::from_le_bytes(*bytes)).unwrap();
        let digest = digest ^ share(SCHEMA, &new) ^ share(SCHEMA, &old);
        entries.insert(SCHEMA.to_vec(), old);
        entries.insert(DIGEST.to_vec(), seal(digest.to_le_bytes().to_vec()));
    }
    assert_eq!(contents(&disk), before);
    assert_eq!(disk.entries.lock()[SCHEMA], seal(vec![2, 1]));
    assert_eq!(contents(&disk), before, "the digest is that of the present layout");

    disk.entries.lock().insert(SCHEMA.to_vec(), seal(vec![3, 1]));
    let later = recovered(&disk).err().map(|error| error.to_string()).unwrap();
    assert!(later.contains("layout 3"), "{later}");
}
