//! Tests of restarts, checkpoints, and the remaining files.

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

use super::*;

/// Returns whether every board of the manifest has a checkpoint.
fn all_checkpointed(folder: &Path) -> bool {
    let manifest = manifest(folder);
    manifest["boards"].as_array().unwrap().iter().all(|board| !board["checkpoint"].is_null())
}

#[tokio::test(flavor = "multi_thread")]
async fn the_time_of_definition_is_read_from_the_log_and_from_checkpoints() {
    for checkpointed in [false, true] {
        let folder = tempfile::tempdir().unwrap();
        for round in 0..3 {
            let store = match checkpointed {
                true => open_eager(folder.path()).await,
                false => open(folder.path()).await.unwrap(),
            };
            let board = define(&store, "hot", "COUNT(3h, like, post)", "1h").await;
            assert_eq!(board.defined_at(), Some(t(START)), "start {round}, checkpoints {checkpointed}");
            store.set_clock(store.now().await.unwrap().plus_millis(7_200_000)).await.unwrap();
            add(&store, &board, vec![increment("a", 1, None, None)]).await;
            if checkpointed {
                until("a checkpoint", || all_checkpointed(folder.path())).await;
            }
            store.close().await.unwrap();
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn restarts_during_checkpoints_restore_everything() {
    let folder = tempfile::tempdir().unwrap();
    let metrics = [
        "SUM(3h, sale, amount, seller)",
        "AVG(3h, sale, amount, seller)",
        "MAX(3h, sale, amount, seller)",
        "COUNT(3h, like, post)",
    ];
    let mut expected: Vec<String> = Vec::new();
    let mut counted = 0;
    let mut random = StdRng::seed_from_u64(crate::drawn::seed());
    for round in 0..20 {
        let store = open_eager(folder.path()).await;
        let mut boards = Vec::new();
        for (nth, metric) in metrics.iter().enumerate() {
            boards.push(define(&store, &format!("board{nth}"), metric, "1h").await);
        }
        for (board, expected) in boards.iter().zip(&expected) {
            assert_eq!(readable(&store, board).await, *expected, "round {round}");
        }
        for write in 0..random.random_range(1..20) {
            for board in &boards {
                let id = format!("{round}-{write}");
                let item = |nth: i64| increment(&format!("s{}", nth * 7 % 40), nth + round, None, None);
                let mut items: Vec<_> = (0..20).map(item).collect();
                items.push(increment("once", 1, None, Some(&id)));
                add(&store, board, items.clone()).await;
                let again = add(&store, board, items.split_off(20)).await;
                assert_eq!(again, [Outcome::Duplicate { score: None }]);
            }
            counted += 1;
        }
        if round % 5 == 4 {
            until("checkpoints", || all_checkpointed(folder.path())).await;
            store.set_clock(store.now().await.unwrap().plus_millis(1_800_000)).await.unwrap();
            for board in &boards {
                while !store.retire_step(&board.main()).await.unwrap().done {}
            }
        }
        expected.clear();
        for board in &boards {
            expected.push(readable(&store, board).await);
        }
        if round % 2 == 0 {
            store.close().await.unwrap();
        }
    }
    let store = open_eager(folder.path()).await;
    let board = store.board(&name("board3")).await.unwrap().unwrap();
    let once = store.count(&board.main(), &subject("once"), SlotRange::Slots(3)).await.unwrap();
    assert!(once.units() <= counted);
    for (nth, expected) in expected.iter().enumerate() {
        let board = store.board(&name(&format!("board{nth}"))).await.unwrap().unwrap();
        assert_eq!(readable(&store, &board).await, *expected);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn files_of_sealed_ids_are_kept_until_the_horizon_passes() {
    // The horizon is an hour: its halves begin on the hour and at 30 minutes past.
    let ids = |at: &str| -> Vec<Increment> {
        (0..4_500).map(|nth| increment("a", 1, None, Some(&format!("{at} {nth}")))).collect()
    };
    let (all_counted, all_known) =
        (vec![Outcome::Counted { score: None }; 4_500], vec![Outcome::Duplicate { score: None }; 4_500]);
    let folder = tempfile::tempdir().unwrap();
    let files = || names(folder.path(), "ids");
    let mut store = open_eager(folder.path()).await;
    let mut board = define(&store, "b", "COUNT(1h, like, post)", "1h").await;
    assert_eq!(add(&store, &board, ids("00:30")).await, all_counted);
    for (time, sealed, expired) in
        [("01:00", vec!["00:30"], None), ("01:29", vec!["00:30"], None), ("01:30", vec!["01:00"], Some("00:30"))]
    {
        store.set_clock(t(&format!("2026-01-01T{time}:00Z"))).await.unwrap();
        if time == "01:00" {
            assert_eq!(add(&store, &board, ids(time)).await, all_counted);
        }
        // Expired data and sealed ids are found when the board is visited.
        add(&store, &board, vec![increment("b", 1, None, None)]).await;
        // A file that no manifest names yet is written again after a restart.
        until("one file of ids", || files().len() == sealed.len() && named_ids(folder.path()) == sealed.len()).await;
        let before = files();
        if let Some(expired) = expired {
            assert_eq!(named_ids(folder.path()), 1, "that of {expired} has gone");
            assert_eq!(add(&store, &board, ids(expired)).await, all_counted, "{expired}");
        }
        for close in [true, false] {
            if close {
                store.close().await.unwrap();
            }
            drop(store);
            store = open_eager(folder.path()).await;
            board = store.board(&name("b")).await.unwrap().unwrap();
            for known in sealed.iter().copied().chain(expired).chain((time != "01:30").then_some("01:00")) {
                assert_eq!(add(&store, &board, ids(known)).await, all_known, "{known} at {time}");
            }
        }
        if expired.is_none() {
            assert_eq!(files(), before, "the file is written once");
        }
    }
    // All ids are past their horizon.
    store.set_clock(t("2026-01-01T05:00:00Z")).await.unwrap();
    add(&store, &board, vec![increment("b", 1, None, None)]).await;
    until("no file of ids", || files().is_empty()).await;
    store.close().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn removed_boards_leave_no_files() {
    let folder = tempfile::tempdir().unwrap();
    let store = open_eager(folder.path()).await;
    let mut boards = Vec::new();
    for nth in 0..12 {
        let board = define(&store, &format!("b{nth}"), "COUNT(1h, like, post)", "1h").await;
        let likes = (0..400).map(|i| increment(&format!("p{i}"), 1, None, Some(&format!("{i}"))));
        add(&store, &board, likes.collect()).await;
        boards.push(board);
    }
    until("checkpoints", || all_checkpointed(folder.path())).await;
    for board in boards.drain(1..) {
        assert!(store.undefine(&board).await.unwrap());
    }
    until("one checkpoint", || names(folder.path(), "checkpoints").len() == 1).await;
    assert!(store.undefine(&boards[0]).await.unwrap());
    until("no checkpoint", || names(folder.path(), "checkpoints").is_empty()).await;
    // Of the log, only the current segment and the next one remain.
    until("a short log", || names(folder.path(), "log").len() <= 2).await;
    store.close().await.unwrap();
    drop(store);
    let store = open_eager(folder.path()).await;
    assert_eq!(store.boards().await.unwrap().boards.len(), 0);
    assert!(names(folder.path(), "checkpoints").is_empty() && names(folder.path(), "ids").is_empty());
}

/// Returns the bytes of disk that the log takes.
fn log_bytes(folder: &Path) -> u64 {
    names(folder, "log").iter().map(|name| fs::metadata(folder.join("log").join(name)).unwrap().len()).sum()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hundred_restarts_leave_few_log_files() {
    let folder = tempfile::tempdir().unwrap();
    let mut most = (0, 0);
    for round in 0..100i64 {
        let store = open(folder.path()).await.unwrap();
        let board = define(&store, "b", "COUNT(24h, like, post)", "1h").await;
        add(&store, &board, vec![increment("a", 1, None, None)]).await;
        assert_eq!(store.count(&board.main(), &subject("a"), SlotRange::Slots(1)).await.unwrap().units(), round + 1);
        if round % 2 == 0 {
            store.close().await.unwrap();
        }
        drop(store);
        most = (most.0.max(names(folder.path(), "log").len()), most.1.max(log_bytes(folder.path())));
    }
    println!("{most:?}, at the end {} files, {} bytes", names(folder.path(), "log").len(), log_bytes(folder.path()));
    // A segment of 1 MB for each start, and one of 32 MB that is not used yet.
    assert!(most.1 <= 200 << 20, "{} files, {} bytes of log", most.0, most.1);
    let store = open(folder.path()).await.unwrap();
    // A checkpoint is made as soon as there are more than 64 segments. A start and the next segment add one each.
    until("a short log", || names(folder.path(), "log").len() <= 66).await;
    store.close().await.unwrap();
}
