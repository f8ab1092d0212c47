//! Tests of rows: restarts, checkpoints, backups.

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use rolltop::store::TableName;
use rolltop::store::embedded::check_data;

use super::*;

const KEYS: TableName = TableName::Keys;

type Texts = BTreeMap<String, String>;

async fn rows(store: &Embedded) -> Texts {
    store.rows(KEYS, None).await.unwrap().unwrap().rows
}

async fn version(store: &Embedded) -> u64 {
    store.rows(KEYS, None).await.unwrap().unwrap().version
}

/// Replaces a row, and does the same to the rows that are expected.
async fn set(store: &Embedded, expected: &mut Texts, id: &str, to: Option<&str>) {
    let from = match to {
        Some(to) => expected.insert(id.to_owned(), to.to_owned()),
        None => expected.remove(id),
    };
    assert!(store.change_row(KEYS, id, from.as_deref(), to).await.unwrap());
}

#[tokio::test(flavor = "multi_thread")]
async fn rows_survive_restarts_checkpoints_and_crashes() {
    let folder = tempfile::tempdir().unwrap();
    let mut random = StdRng::seed_from_u64(crate::drawn::seed());
    let (mut expected, mut versions) = (Texts::new(), Vec::new());
    for round in 0..24 {
        // With and without constant checkpoints. Without any board, the end of the log is recorded only on closing.
        let store = match round % 3 {
            0 => open(folder.path()).await.unwrap(),
            _ => open_eager(folder.path()).await,
        };
        assert_eq!(rows(&store).await, expected, "start {round}");
        versions.push(version(&store).await);
        let board = if round < 6 { None } else { Some(define(&store, "b", "COUNT(24h, like, post)", "1h").await) };
        for number in 0..30 {
            let id = format!("row-{}", random.random_range(0..5));
            let text = format!("{round}-{number}");
            set(&store, &mut expected, &id, random.random_bool(0.6).then_some(text.as_str())).await;
            if let Some(board) = &board {
                add(&store, board, vec![increment("a", 1, None, None)]).await;
            }
            if number == 15 {
                let copy = crash_copy(folder.path());
                assert_eq!(check_data(copy.path()).unwrap().damage, Vec::<String>::new());
                let crashed = open(copy.path()).await.unwrap();
                assert_eq!(rows(&crashed).await, expected, "crash {round}");
                versions.push(version(&crashed).await);
            }
        }
        versions.push(version(&store).await);
        if round % 2 == 0 {
            store.close().await.unwrap();
            let refused = store.change_row(KEYS, "row-0", expected.get("row-0").map(String::as_str), Some("x")).await;
            assert!(matches!(refused, Err(StoreError::ReadOnly { .. })), "{refused:?}");
            assert_eq!(rows(&store).await, expected, "what is refused changes nothing");
            let stored = &manifest(folder.path())["rows"];
            assert_eq!(stored.is_null(), expected.is_empty());
            assert!(stored.is_null() || stored["keys"].as_object().unwrap().len() == expected.len(), "{stored}");
        }
        let report = check_data_of_copy(folder.path());
        assert_eq!(report, Vec::<String>::new());
    }
    let drawn = versions.len();
    versions.sort_unstable();
    versions.dedup();
    assert_eq!(versions.len(), drawn, "a version was used for two contents");
}

/// Checks a copy of a data directory, which itself may be in use.
fn check_data_of_copy(folder: &Path) -> Vec<String> {
    check_data(crash_copy(folder).path()).unwrap().damage
}

#[tokio::test(flavor = "multi_thread")]
async fn rows_are_part_of_backups() {
    let (folder, backups) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let backup_dir = Some(backups.path().to_owned());
    let options = EmbeddedOptions { backup_dir, ..options(folder.path(), Durability::EverySecond) };
    let mut expected = Texts::new();
    for round in 0..4 {
        // In the first backup all rows are in the log, in later ones some are in the manifest only.
        let store = Embedded::open(options.clone()).await.unwrap();
        set(&store, &mut expected, &format!("row-{round}"), Some("added")).await;
        set(&store, &mut expected, "changed", Some(&round.to_string())).await;
        set(&store, &mut expected, "removed", (round % 2 == 0).then_some("not yet")).await;
        let backup = store.backup().await.unwrap();
        let at_backup = (expected.clone(), version(&store).await);
        set(&store, &mut expected, "changed", Some("after the backup")).await;
        store.close().await.unwrap();
        assert_eq!(check_data(&backup.path).unwrap().damage, Vec::<String>::new());
        let restored = open(&backup.path).await.unwrap();
        assert_eq!(rows(&restored).await, at_backup.0);
        assert_ne!(version(&restored).await, at_backup.1);
        set(&restored, &mut at_backup.0.clone(), "changed", Some("after the backup")).await;
        assert_eq!(rows(&restored).await, expected);
    }
}

#[tokio::test]
async fn a_data_directory_without_rows_has_no_sign_of_them() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path()).await.unwrap();
    assert_eq!(rows(&store).await, Texts::new());
    assert!(!store.change_row(KEYS, "a", Some("1"), None).await.unwrap());
    assert!(store.change_row(KEYS, "a", None, None).await.unwrap());
    store.close().await.unwrap();
    let fields = manifest(folder.path()).as_object().unwrap().keys().cloned().collect::<Vec<_>>();
    assert!(!fields.contains(&"rows".to_owned()), "{fields:?}");
}
