//! Tests of damage to the disk: it causes an error that names the file, or it is harmless. Nothing in the last segment
//! proves that its last frames existed. If the disk loses them, the store has an earlier state.

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
    /// An earlier state.
    Earlier,
    Error(String),
}

/// Opens a damaged copy. Fails if the result is neither an error nor an earlier state.
async fn open_damaged(damaged: &Contents, states: &[String]) -> Found {
    let copy = write_contents(damaged);
    match open(copy.path()).await {
        Ok(store) => {
            let board = store.board(&name("b")).await.unwrap().expect("the board is lost, silently");
            let found = readable(&store, &board).await;
            let at = states.iter().rposition(|state| *state == found).expect("a state that never was");
            // Amounts and ids are lost together.
            let again = [with_id(0), with_id(IDS - 1), increment("a", 1, None, Some("late"))];
            assert_eq!(add(&store, &board, again.to_vec()).await, [Outcome::Duplicate { score: None }; 3]);
            store.close().await.unwrap();
            if at + 1 == states.len() { Found::Everything } else { Found::Earlier }
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
    // The file for the next segment contains only zeros.
    let is_segment =
        |(path, bytes): &(&PathBuf, &Vec<u8>)| path.starts_with("log") && bytes.iter().any(|byte| *byte != 0);
    let last_segment = sound.iter().rfind(is_segment).expect("a log").0.clone();
    let (mut noticed, mut harmless, mut earlier) = (0, 0, 0);
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
                    assert!(path.starts_with("log"), "{what} at {at} of {} is not noticed", path.display());
                    harmless += 1;
                }
                Found::Earlier => {
                    let may_be = *path == last_segment && what != "flipped";
                    assert!(may_be, "{what} at {at} of {} loses something, silently", path.display());
                    earlier += 1;
                }
            }
        }
    }
    assert!(noticed > 200, "{noticed} noticed, {harmless} harmless, {earlier} earlier");
    println!("{noticed} noticed, {harmless} harmless, {earlier} earlier");
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
