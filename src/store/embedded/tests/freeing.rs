//! What has expired is freed, in memory and on the disk, although nobody writes to it again.

use super::*;
use crate::store::embedded::codec::{IDS, RECORDS, VALUES};

/// Subjects in memory, and records and values on the disk.
fn held(store: &Embedded, disk: &Memory) -> (usize, usize) {
    let board = live(store);
    let tables = board.tables.lock();
    let records = (0..tables.holdings.slab.end()).filter(|id| tables.holdings.slab.get(*id).is_some()).count();
    let entries = disk.entries.lock();
    (records, entries.keys().filter(|key| key.starts_with(RECORDS) || key.starts_with(VALUES)).count())
}

#[tokio::test]
async fn subjects_that_nobody_writes_to_are_freed() {
    for definition in every_definition() {
        let (folder, disk) = (tempfile::tempdir().unwrap(), Arc::new(Memory::default()));
        let store = open(folder.path(), &disk, EAGER).unwrap();
        let board = define_as(&store, &definition).await;
        let item = |number| Increment { change: change(&board, number), ..increment(0, 0, None, None) };
        let idle = (1..=100).map(|who| Increment { subject: subject(who), ..item(1) });
        add(&store, &board, idle.collect()).await.unwrap();
        // A value that was taken back is in no slot, and goes all the same.
        if board.takes_retractions() {
            let gone = Increment { subject: subject(101), retract: true, at: Some(START), ..item(2) };
            add(&store, &board, vec![gone]).await.unwrap();
        }
        for hour in 1..=12 {
            store.set_clock(START.plus_millis(hour * HOUR)).await.unwrap();
            // Somebody is always there, so that never everything expires at once.
            add(&store, &board, vec![Increment { subject: subject(200), ..item(hour) }]).await.unwrap();
            while !store.retire_step(&board).await.unwrap().done {}
            store.retire_step(&board).await.unwrap();
        }
        settle(&store).await;
        let (records, entries) = held(&store, &disk);
        assert_eq!(records, 1, "{definition:?}");
        assert!(entries <= 4, "{definition:?}: {entries} entries");
    }
}

#[tokio::test]
async fn whatever_expires_at_once_leaves_the_disk() {
    for definition in every_definition() {
        let (folder, disk) = (tempfile::tempdir().unwrap(), Arc::new(Memory::default()));
        let store = open(folder.path(), &disk, EAGER).unwrap();
        let board = define_as(&store, &definition).await;
        let item = |who| Increment { change: change(&board, 1), ..increment(who, 0, None, None) };
        add(&store, &board, (0..100).map(item).collect()).await.unwrap();
        store.set_clock(START.plus_millis(1_000 * HOUR)).await.unwrap();
        for _ in 0..3 {
            store.retire_step(&board).await.unwrap();
        }
        settle(&store).await;
        assert_eq!(held(&store, &disk), (0, 0), "{definition:?}");
    }
}

#[tokio::test]
async fn a_removed_board_leaves_nothing() {
    for definition in every_definition() {
        let (folder, disk) = (tempfile::tempdir().unwrap(), Arc::new(Memory::default()));
        let store = open(folder.path(), &disk, EAGER).unwrap();
        let board = define_as(&store, &definition).await;
        let item = |who| Increment { change: change(&board, 1), ..increment(who, 0, None, Some(who)) };
        add(&store, &board, (0..100).map(item).collect()).await.unwrap();
        settle(&store).await;
        let of = |kind: &[u8]| disk.entries.lock().keys().filter(|key| key.starts_with(kind)).count();
        assert_eq!((of(RECORDS) + of(VALUES), of(IDS), of(b"g")), (100, 100, 1), "{definition:?}");
        store.undefine(&board).await.unwrap();
        settle(&store).await;
        assert_eq!((of(RECORDS) + of(VALUES), of(IDS), of(b"g")), (0, 0, 0), "{definition:?}");
    }
}
