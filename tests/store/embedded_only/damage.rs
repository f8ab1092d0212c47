//! Tests of damage to the disk of a store that was closed: it causes an error that names the file, or it is harmless.

use super::*;

/// The number of ids, more than a bucket needs to get its own file.
const IDS: usize = 4_200;
/// The number of writes after the checkpoint.
const ROUNDS: usize = 24;

fn with_id(number: usize) -> Increment {
    increment("many", 1, None, Some(&format!("id-{number}")))
}

/// Returns the files of a closed store with all kinds of data, and everything that was readable after each write in the
/// log.
async fn sound() -> (Contents, Vec<String>) {
    let folder = tempfile::tempdir().unwrap();
    let store = open_eager(folder.path()).await;
    let board = define(&store, "b", "COUNT(2h, like, post)", "1h").await;
    add(&store, &board, (0..IDS).map(with_id).collect()).await;
    // The ids' half of the horizon has ended, so they get a file.
    store.set_clock(t("2026-01-01T01:00:00Z")).await.unwrap();
    add(&store, &board, vec![increment("a", 1, None, Some("late"))]).await;
    until("a file of ids", || named_ids(folder.path()) == 1).await;
    store.close().await.unwrap();
    drop(store);

    let pace = Pace { segment_bytes: 2_048, ..Pace::default() };
    let store = Embedded::open_at_pace(options(folder.path(), Durability::EverySecond), pace).await.unwrap();
    let board = store.board(&name("b")).await.unwrap().unwrap();
    let mut states = vec![readable(&store, &board).await];
    for round in 0..ROUNDS {
        let likes = (0..6).map(|i| increment(&format!("post-{}", i * round % 17), 1 + i as i64, None, None));
        add(&store, &board, likes.collect()).await;
        states.push(readable(&store, &board).await);
    }
    store.close().await.unwrap();
    drop(store);
    (contents(folder.path()), states)
}

enum Found {
    Everything,
    Error(String),
}

/// Opens a damaged copy. Fails if the result is neither an error nor everything that the store had.
async fn open_damaged(damaged: &Contents, states: &[String]) -> Found {
    let copy = write_contents(damaged);
    match open(copy.path()).await {
        Ok(store) => {
            let board = store.board(&name("b")).await.unwrap().expect("the board is lost, silently");
            let found = readable(&store, &board).await;
            let at = states.iter().rposition(|state| *state == found).expect("a state that never was");
            assert_eq!(at + 1, states.len(), "the last writes are lost, silently");
            // Amounts and ids are lost together.
            let again = [with_id(0), with_id(IDS - 1), increment("a", 1, None, Some("late"))];
            assert_eq!(add(&store, &board, again.to_vec()).await, [Outcome::Duplicate { score: None }; 3]);
            store.close().await.unwrap();
            Found::Everything
        }
        Err(StoreError::Corrupt { detail }) => {
            assert!(detail.contains(&copy.path().display().to_string()) && detail.contains("backup"), "{detail}");
            assert!(detail.contains("is damaged at byte "), "{detail}");
            Found::Error(detail)
        }
        Err(other) => panic!("not a clear error: {other:?}"),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn damaged_files_are_detected_or_harmless() {
    let (sound, states) = sound().await;
    assert!(matches!(open_damaged(&sound, &states).await, Found::Everything));
    let manifest = String::from_utf8_lossy(&sound[Path::new("MANIFEST")]).into_owned() + "MANIFEST";
    let (mut noticed, mut harmless) = (0, 0);
    for (path, bytes) in &sound {
        let mut variants = vec![("missing", 0, None)];
        for at in (0..bytes.len()).step_by((bytes.len() / 24).max(1)) {
            let mut flipped = bytes.clone();
            flipped[at] ^= 1 << (at % 8);
            let mut zeroed = bytes.clone();
            zeroed[at..].fill(0);
            let cut = bytes[..at].to_vec();
            variants.extend([("flipped", at, Some(flipped)), ("cut", at, Some(cut)), ("zeroed", at, Some(zeroed))]);
        }
        for (what, at, damaged) in variants {
            let mut copy = sound.clone();
            match damaged {
                Some(same) if same == *bytes => continue,
                Some(bytes) => drop(copy.insert(path.clone(), bytes)),
                None => drop(copy.remove(path)),
            }
            match open_damaged(&copy, &states).await {
                Found::Error(detail) => {
                    let named = if path.starts_with("log") { "log/".to_owned() } else { path.display().to_string() };
                    assert!(detail.contains(&named), "{what} at {at} of {named}: {detail}");
                    noticed += 1;
                }
                Found::Everything => {
                    let unneeded = path.starts_with("log") || !manifest.contains(&path.display().to_string());
                    assert!(unneeded, "{what} at {at} of {} is not noticed", path.display());
                    harmless += 1;
                }
            }
        }
    }
    assert!(noticed > 200, "{noticed} noticed, {harmless} harmless");
    println!("{noticed} noticed, {harmless} harmless");
}

/// Tests that after closing, the loss of any segment is detected, even if the store was opened since and only read.
#[tokio::test(flavor = "multi_thread")]
async fn after_close_the_loss_of_a_segment_is_detected() {
    for reading_starts in [0, 2] {
        let folder = tempfile::tempdir().unwrap();
        for round in 0..3 + reading_starts {
            let store = open(folder.path()).await.unwrap();
            let board = define(&store, "b", "COUNT(24h, like, post)", "1h").await;
            if round < 3 {
                add(&store, &board, (0..9).map(|nth| increment(&format!("post-{nth}"), 1, None, None)).collect()).await;
            }
            assert!(readable(&store, &board).await.contains("post-8"));
            store.close().await.unwrap();
        }
        let sound = contents(folder.path());
        let has_writes = |bytes: &[u8]| bytes.windows(6).any(|part| part == b"post-8");
        let segments: Vec<_> =
            sound.iter().filter(|(path, bytes)| path.starts_with("log") && has_writes(bytes)).collect();
        assert_eq!(segments.len(), 3);
        for (path, bytes) in segments {
            let written = bytes.iter().rposition(|byte| *byte != 0).unwrap();
            for keep in [None, Some(0), Some(72), Some(written / 2), Some(written)] {
                let mut damaged = sound.clone();
                match keep {
                    None => drop(damaged.remove(path)),
                    Some(keep) => drop(damaged.insert(path.clone(), bytes[..keep].to_vec())),
                }
                let copy = write_contents(&damaged);
                let what = format!("{} cut to {keep:?} bytes, {reading_starts} starts that only read", path.display());
                let report = rolltop::store::embedded::check_data(copy.path()).unwrap();
                assert!(report.damage.iter().any(|line| line.starts_with("log/")), "{what}: {report:?}");
                match open(copy.path()).await {
                    Err(StoreError::Corrupt { detail }) => {
                        assert!(detail.contains("log/") && detail.contains("backup"), "{what}: {detail}");
                    }
                    other => panic!("{what}: {:?}", other.map(|_| ())),
                }
            }
        }
    }
}

/// Tests that after closing, the loss of any single frame is detected, including the very last one.
#[tokio::test(flavor = "multi_thread")]
async fn after_close_damage_to_the_last_write_is_detected() {
    for durability in [Durability::Always, Durability::EverySecond, Durability::Off] {
        let folder = tempfile::tempdir().unwrap();
        let store = Embedded::open(options(folder.path(), durability)).await.unwrap();
        let board = define(&store, "b", "COUNT(24h, like, post)", "1h").await;
        add(&store, &board, vec![increment("a", 1, None, None)]).await;
        add(&store, &board, vec![increment("the last one", 1, None, None)]).await;
        store.close().await.unwrap();
        drop(store);
        let mut contents = contents(folder.path());
        let text = b"the last one";
        let (path, at) = contents
            .iter()
            .find_map(|(path, bytes)| Some((path.clone(), bytes.windows(text.len()).position(|part| part == text)?)))
            .expect("the last write is in the log");
        contents.get_mut(&path).unwrap()[at] ^= 1;
        let copy = write_contents(&contents);
        match open(copy.path()).await {
            Err(StoreError::Corrupt { detail }) => {
                assert!(detail.contains(&path.display().to_string()) && detail.contains("at byte"), "{detail}");
            }
            Err(error) => panic!("{durability}: {error:?}"),
            Ok(_) => panic!("{durability}: the last write is lost, silently"),
        }
    }
}
