//! Tests of stores that are opened with a clock that disagrees with the recorded time.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use metrics_exporter_prometheus::PrometheusBuilder;

use super::super::log_operations::LogOperations;
use super::super::storage::checkpoint::{CheckpointWriter, FileIdentity as About, FileKind};
use super::super::storage::files::Files;
use super::super::storage::files::system::SystemFiles;
use super::super::storage::log::LogStart;
use super::super::storage::manifest::{BoardEntry, CheckpointEntry, ClockMode as StoredMode, Manifest, RowsByTable};
use super::super::{Embedded, EmbeddedOptions};
use super::*;
use crate::board::{Amount, Board, BoardName, Change, Definition, Subject, TrackId};
use crate::store::embedded::tests::new_board;
use crate::store::{Batch, ClockMode, Increment, Lifecycle, Outcome, Result, Store, StoreError};

const HOUR: i64 = 3_600_000;
const MONTH: i64 = 30 * 24 * HOUR;
/// The boot id of some other machine or boot.
const OTHER_BOOT: u128 = 7;

/// Writes a data directory that was last used at `then`: a board of 24 hours with one subject whose score is 5.
fn directory(at: &Path, then: Timestamp, boot: u128) {
    let files: Arc<dyn Files> = Arc::new(SystemFiles::new(at));
    for directory in ["log", "checkpoints", "ids"] {
        files.create_dir(directory).unwrap();
    }
    let mut operations = LogOperations::of(TrackId(1));
    operations.advanced(then.millis());
    operations.amount(then.millis() / HOUR * HOUR, 5, "a");
    let (file, store) = ("checkpoints/1-1.ckpt".to_owned(), 9);
    let about = About { kind: FileKind::Board, store, generation: 1 };
    let mut writer = CheckpointWriter::create(files.clone(), &file, about).unwrap();
    writer.block(operations.bytes()).unwrap();
    let bytes = writer.finish(1).unwrap();
    let definition = Definition::new("COUNT(24h, like, post)".parse().unwrap(), "1h".parse().unwrap());
    let board = BoardEntry {
        name: "b".to_owned(),
        generation: 1,
        definition: serde_json::to_value(&definition).unwrap(),
        editions: None,
        from_seq: 1,
        checkpoint: Some(CheckpointEntry { file, bytes }),
        ids: Vec::new(),
    };
    let manifest = Manifest {
        store,
        fingerprint_key: [1, 2],
        clock_mode: StoredMode::System,
        clock: Some(ClockRecord { wall: then.millis(), uptime: uptime(), boot }.into()),
        simulated_clock: None,
        log_start: LogStart { segment: 0, seq: 1, synced_seq: 0 },
        catalog_seq: 0,
        boards: vec![board],
        rows: RowsByTable::new(),
    };
    manifest.install(&*files).unwrap();
}

async fn open(at: &Path, trust_clock: bool) -> (Arc<Embedded>, Arc<Board>) {
    let options = EmbeddedOptions { trust_clock, ..EmbeddedOptions::new(at, ClockMode::System) };
    let store = Embedded::open(options).await.unwrap();
    let board = store.board(&BoardName::parse("b").unwrap()).await.unwrap().unwrap();
    (store, board)
}

async fn add(store: &Embedded, board: &Arc<Board>, subject: &str) -> Result<Vec<Outcome>> {
    let subject = Subject::parse(subject).unwrap();
    let increment = Increment {
        other: None,
        subject,
        change: Change::Amount(Amount(1)),
        retract: false,
        at: None,
        id: None,
        period: None,
        event: None,
    };
    Ok(store.add(board, Batch { increments: vec![increment], return_scores: false }).await?.outcomes)
}

/// Returns the subjects of a board, in the order of the ranking.
async fn ranked(store: &Embedded, board: &Arc<Board>) -> Vec<String> {
    let page = store.page(&board.main(), 0, 10).await.unwrap();
    page.items.iter().map(|line| line.subject.as_str().to_owned()).collect()
}

/// Returns the line of `/metrics` about the clock, after a check of the store.
fn gauge(store: &Embedded) -> String {
    let recorder = PrometheusBuilder::new().build_recorder();
    let looked = metrics::with_local_recorder(&recorder, || futures_util::FutureExt::now_or_never(store.check()));
    assert!(looked.is_some(), "a look waits for nothing");
    let rendered = recorder.handle().render();
    rendered.lines().find(|line| line.starts_with("rolltop_clock_doubted")).unwrap_or_default().to_owned()
}

#[tokio::test]
async fn a_board_of_an_earlier_version_has_no_time_of_definition() {
    let folder = tempfile::tempdir().unwrap();
    directory(folder.path(), wall_clock(), boot_id());
    let (store, board) = open(folder.path(), false).await;
    assert_eq!(board.defined_at(), None);
    store.close().await.unwrap();
}

#[tokio::test]
async fn a_far_clock_after_a_reboot_is_doubted() {
    let folder = tempfile::tempdir().unwrap();
    let then = wall_clock().plus_millis(-MONTH);
    directory(folder.path(), then, OTHER_BOOT);
    // Runs twice, because the first start must not record the time that it doubted.
    for _ in 0..2 {
        let (store, board) = open(folder.path(), false).await;
        assert_eq!(ranked(&store, &board).await, ["a"]);
        let StoreError::ClockDoubted { recorded, retry_after, .. } = add(&store, &board, "x").await.unwrap_err() else {
            panic!("the write is refused because of the clock");
        };
        assert_eq!(recorded, then);
        assert!(retry_after <= Duration::from_secs(60), "{retry_after:?}");
        let step = store.retire_step(&board.main()).await.unwrap();
        assert_eq!((step.slots_advanced, step.slots_retired, step.frame.as_of), (0, 0, then));
        assert!(matches!(store.check().await, Err(StoreError::ClockDoubted { .. })));
        assert_eq!(gauge(&store), "rolltop_clock_doubted 1");
        assert_eq!(ranked(&store, &board).await, ["a"]);
        store.close().await.unwrap();
    }
}

#[tokio::test]
async fn with_trust_clock_a_far_clock_is_accepted_at_once() {
    let folder = tempfile::tempdir().unwrap();
    directory(folder.path(), wall_clock().plus_millis(-MONTH), OTHER_BOOT);
    let (store, board) = open(folder.path(), true).await;
    assert_eq!(ranked(&store, &board).await, [""; 0], "a month later all of a day has expired");
    add(&store, &board, "x").await.unwrap();
    assert!(store.check().await.is_ok());
    assert_eq!(gauge(&store), "rolltop_clock_doubted 0");
    store.close().await.unwrap();
    drop(store);
    // The believed time is recorded, so the next start does not need to trust the clock.
    let (store, board) = open(folder.path(), false).await;
    assert_eq!(ranked(&store, &board).await, ["x"]);
    add(&store, &board, "x").await.unwrap();
}

#[tokio::test]
async fn a_clock_up_to_a_window_ahead_is_accepted_at_once() {
    let folder = tempfile::tempdir().unwrap();
    directory(folder.path(), wall_clock().plus_millis(-20 * HOUR), OTHER_BOOT);
    let (store, board) = open(folder.path(), false).await;
    add(&store, &board, "x").await.unwrap();
    assert_eq!(ranked(&store, &board).await, ["a", "x"]);
    assert!(store.check().await.is_ok());
}

#[tokio::test]
async fn within_one_boot_the_uptime_overrides_the_wall_clock() {
    let folder = tempfile::tempdir().unwrap();
    // The machine has been running, and its uptime shows that no time has passed since the record: the clock was set
    // forward by a month.
    let then = wall_clock().plus_millis(-MONTH);
    directory(folder.path(), then, Machine::read().boot);
    let (store, board) = open(folder.path(), false).await;
    add(&store, &board, "x").await.unwrap();
    assert_eq!(ranked(&store, &board).await, ["a", "x"], "time goes on from the record");
    let as_of = store.page(&board.main(), 0, 1).await.unwrap().frame.as_of;
    assert!(as_of >= then && as_of < then.plus_millis(HOUR), "{as_of}");
    assert_eq!(gauge(&store), "rolltop_clock_doubted 1");
    assert!(store.check().await.is_ok());
}

#[tokio::test]
async fn a_simulated_clock_is_never_doubted() {
    for trust_clock in [false, true] {
        let folder = tempfile::tempdir().unwrap();
        let open = |start| {
            let clock = ClockMode::Simulated(start);
            Embedded::open(EmbeddedOptions { trust_clock, ..EmbeddedOptions::new(folder.path(), clock) })
        };
        let name = BoardName::parse("b").unwrap();
        let store = open(Timestamp::EPOCH).await.unwrap();
        let definition = Definition::new("COUNT(24h, like, post)".parse().unwrap(), "1h".parse().unwrap());
        store.define(new_board(&name, &definition)).await.unwrap();
        let board = store.board(&name).await.unwrap().unwrap();
        add(&store, &board, "a").await.unwrap();
        store.close().await.unwrap();
        drop(store);
        // The time is years later than the recorded time.
        let later = Timestamp::from_millis(1_000 * MONTH);
        let store = open(later).await.unwrap();
        assert_eq!(store.now().await.unwrap(), later);
        assert!(store.check().await.is_ok());
        let board = store.board(&name).await.unwrap().unwrap();
        add(&store, &board, "x").await.unwrap();
        assert_eq!(ranked(&store, &board).await, ["x"]);
        assert_eq!(gauge(&store), "rolltop_clock_doubted 0");
    }
}
