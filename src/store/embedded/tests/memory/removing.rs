//! Tests of the work on files that removed boards cause.

use std::sync::atomic::{AtomicUsize, Ordering};

use super::*;
use crate::store::embedded::storage::files::Files;
use crate::store::embedded::storage::files::simulated::OperationKind;
use crate::store::embedded::storage::manifest::{MANIFEST, Manifest};

/// The number of boards.
const BOARDS: usize = 300;

fn board_name(number: usize) -> BoardName {
    BoardName::parse(&format!("b-{number}")).unwrap()
}

/// Opens a store whose thread for files does nothing before it is asked to.
fn open_idle(disk: &Simulated) -> Arc<Embedded> {
    let pace = Pace { tick: Duration::from_secs(3_600), ..usual() };
    let options = EmbeddedOptions {
        backup_dir: Some("/backups".into()),
        ..EmbeddedOptions::new("/data", ClockMode::Simulated(START))
    };
    Embedded::open_on(Arc::new(disk.clone()), options, pace).unwrap()
}

async fn define_all(store: &Embedded) -> Vec<Arc<Board>> {
    let mut boards = Vec::new();
    for number in 0..BOARDS {
        match store.define(new_board(&board_name(number), &hours("COUNT(3h, like, post)"))).await.unwrap() {
            Defined::Created(board) => boards.push(board),
            other => panic!("{other:?}"),
        }
    }
    boards
}

/// Tests that a backup after many definitions and removals waits for none of them: however many boards were removed,
/// one manifest is out of date.
#[tokio::test]
async fn a_backup_does_not_wait_for_a_manifest_for_each_removed_board() {
    let disk = Simulated::new();
    let manifests = Arc::new(AtomicUsize::new(0));
    let counter = manifests.clone();
    disk.on_operation(Box::new(move |_, op| {
        let is_installed = op.kind == OperationKind::Rename && op.path.ends_with(MANIFEST);
        counter.fetch_add(usize::from(is_installed), Ordering::SeqCst);
    }));
    let store = open_idle(&disk);
    let before = manifests.load(Ordering::SeqCst);
    let boards = define_all(&store).await;
    for board in &boards[1..] {
        assert!(store.undefine(board).await.unwrap());
    }
    store.backup().await.unwrap();
    let installed = manifests.load(Ordering::SeqCst) - before;
    // That of the backup, and that of the store.
    assert!(installed <= 2, "{installed} manifests for {BOARDS} removed boards");
    store.close().await.unwrap();
    drop(store);
    assert_eq!(Manifest::read(&disk).unwrap().unwrap().boards.len(), 1);
    assert_eq!(live(&open(&disk, usual()).unwrap()).board().name(), &board_name(0));
}

/// Tests that a stop leaves the files of removed boards to the next start.
#[tokio::test]
async fn files_of_removed_boards_are_deleted_by_the_next_start_if_the_store_is_closed_before() {
    let disk = Simulated::new();
    let pace = Pace { log_bytes: 1, age: Duration::ZERO, tick: Duration::from_millis(1), ..usual() };
    let checkpoints = |disk: &Simulated| disk.list("checkpoints").unwrap().len();
    let store = open(&disk, pace).unwrap();
    let board = define(&store, "COUNT(3h, like, post)").await;
    add(&store, &board, vec![increment(1, 1, None, None)]).await.unwrap();
    reach(|| live(&store).logged.first().is_none() && checkpoints(&disk) == 1).await;
    store.close().await.unwrap();
    drop(store);

    let store = open_idle(&disk);
    let board = live(&store).board();
    assert!(store.undefine(&board).await.unwrap());
    store.close().await.unwrap();
    drop(store);
    assert_eq!(checkpoints(&disk), 1, "a stop deletes no files");
    let store = open(&disk, pace).unwrap();
    assert!(store.boards.read().is_empty());
    reach(|| checkpoints(&disk) == 0).await;
    store.close().await.unwrap();
}

/// Returns whether a file of the store has these bytes.
fn is_in_files(disk: &Simulated, text: &str) -> bool {
    let in_directory = |directory: &str| {
        disk.list(directory).unwrap_or_default().into_iter().any(|name| {
            // A file may be deleted while it is read.
            let read = || {
                let file = disk.open(&format!("{directory}/{name}"))?;
                let mut bytes = vec![0; file.len()? as usize];
                file.read_exact_at(&mut bytes, 0)?;
                std::io::Result::Ok(bytes)
            };
            read().is_ok_and(|bytes| bytes.windows(text.len()).any(|part| part == text.as_bytes()))
        })
    };
    ["log", "checkpoints", "ids"].into_iter().any(in_directory)
}

/// Tests what `docs/backups.md` says of erased names: they stand in files until the log continues in another segment,
/// as after a start, and the boards are in newer checkpoints.
#[tokio::test]
async fn no_file_has_erased_names_after_a_restart_and_checkpoints() {
    let (who, what) = ("erased-subject", Counted::parse("erased-value").unwrap());
    let disk = Simulated::new();
    let eager = Pace { log_bytes: 1, age: Duration::ZERO, tick: Duration::from_millis(1), ..usual() };
    let store = open(&disk, eager).unwrap();
    let board = define(&store, "COUNT_DISTINCT(3h, like, post, user)").await;
    let seen = |who: &str| named(who.to_owned(), Change::Seen(what.clone()));
    let other = || named("post".to_owned(), Change::Seen(Counted::parse("bob").unwrap()));
    add(&store, &board, vec![seen("post"), seen(who), other()]).await.unwrap();
    reach(|| !disk.list("checkpoints").unwrap().is_empty()).await;
    let post = Subject::parse("post").unwrap();
    add(&store, &board, vec![Increment::forgetting(&board, post, what.clone())]).await.unwrap();
    store.remove(&board, &Subject::parse(who).unwrap()).await.unwrap();
    assert!(is_in_files(&disk, who) && is_in_files(&disk, what.as_str()), "the log has what is erased");
    store.close().await.unwrap();
    drop(store);

    let store = open(&disk, eager).unwrap();
    let board = live(&store).board();
    add(&store, &board, vec![other()]).await.unwrap();
    reach(|| !is_in_files(&disk, who) && !is_in_files(&disk, what.as_str())).await;
    assert!(is_in_files(&disk, "bob"), "the rest is there");
    store.close().await.unwrap();
}
