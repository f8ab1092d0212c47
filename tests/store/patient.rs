//! A store on a real server that repeats what is safe to repeat while the server does not answer. On a machine that is
//! busy with other work, a server may not run for longer than the store waits, which is no error of either.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use rolltop::board::{
    Board, BoardName, BoardTrack, EarlierRanks, ModerationChange, ModerationList, Percentile, Subject, Timestamp, Value,
};
use rolltop::store::{
    Added, AuditCursor, AuditStep, BackedUp, Batch, BytesPerSubject, Compared, ContentsCursor, ContentsStep,
    CopyProgress, Defined, Distribution, DualRun, IdCost, ImportBegun, ImportId, Increment, Keys, Listing, Lookup,
    Merged, Moderated, Page, PageStart, Piece, Removal, Result, RetireStep, Rows, SheetId, Sheets, SlotContents,
    SlotQuery, Standing, Status, Store, StoreError, TableName, TextRange, Values, ValuesStart,
};

use crate::waiting::Wait;

pub struct Patient {
    pub store: Arc<dyn Store>,
}

/// Makes a call until it is answered, or until a test would have waited too long.
async fn answered<T, F: Future<Output = Result<T>>>(name: &str, mut call: impl FnMut() -> F) -> Result<T> {
    let wait = Wait::begin(format!("an answer to {name}"));
    loop {
        match call().await {
            Err(error) if is_silence(&error) && wait.has_time(&error).is_ok() => {
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
            ended => return ended,
        }
    }
}

/// Returns whether the server has not answered.
fn is_silence(error: &StoreError) -> bool {
    matches!(error, StoreError::Unreachable { .. } | StoreError::TimedOut { .. })
}

/// Implements the store: the calls under `repeated` read, or have the same effect once and twice.
macro_rules! patient {
    (
        repeated: [$(fn $again:ident($($again_arg:ident: $again_kind:ty),*) -> $again_of:ty;)*]
        once: [$(fn $once:ident($($arg:ident: $kind:ty),*) -> $of:ty;)*]
    ) => {
        #[async_trait]
        impl Store for Patient {
            $(async fn $again(&self, $($again_arg: $again_kind),*) -> Result<$again_of> {
                answered(stringify!($again), || self.store.$again($(Clone::clone(&$again_arg)),*)).await
            })*

            $(async fn $once(&self, $($arg: $kind),*) -> Result<$of> {
                self.store.$once($($arg),*).await
            })*

            async fn read(&self, queries: Vec<SlotQuery>) -> Vec<Result<SlotContents>> {
                let wait = Wait::begin("an answer to read");
                loop {
                    let answers = self.store.read(queries.clone()).await;
                    let silent = answers.iter().filter_map(|answer| answer.as_ref().err()).find(|error| is_silence(error));
                    match silent {
                        Some(error) if wait.has_time(error).is_ok() => {
                            tokio::time::sleep(Duration::from_millis(50)).await;
                        }
                        _ => return answers,
                    }
                }
            }

            async fn add_all(&self, batches: Vec<(Arc<Board>, Batch)>) -> Vec<Result<Added>> {
                self.store.add_all(batches).await
            }

            fn kind(&self) -> &'static str {
                self.store.kind()
            }

            fn bytes_per_subject(&self, track: &BoardTrack) -> BytesPerSubject {
                self.store.bytes_per_subject(track)
            }

            fn id_cost(&self, board: &Board) -> IdCost {
                self.store.id_cost(board)
            }

            fn default_shards(&self) -> Option<u32> {
                self.store.default_shards()
            }

            fn warnings(&self) -> Vec<String> {
                self.store.warnings()
            }
        }
    };
}

patient! {
    repeated: [
        fn now() -> Timestamp;
        fn set_clock(to: Timestamp) -> Timestamp;
        fn board(name: &BoardName) -> Option<Arc<Board>>;
        fn boards() -> Listing;
        fn boards_version() -> u64;
        fn boards_version_beside_writes() -> u64;
        fn page_from(track: &BoardTrack, start: &PageStart, limit: u32) -> Page;
        fn neighbors(track: &BoardTrack, subject: &Subject, radius: u32) -> Page;
        fn lookup(track: &BoardTrack, subjects: &[Subject], ranks: bool) -> Lookup;
        fn standing(track: &BoardTrack, subject: &Subject) -> Standing;
        fn earlier_ranks(track: &BoardTrack) -> Option<Arc<EarlierRanks>>;
        fn distribution(track: &BoardTrack, percentiles: &[Percentile], scores: &[Value]) -> Distribution;
        fn values_from(track: &BoardTrack, subject: &Subject, start: &ValuesStart, limit: u32) -> Values;
        fn moderated(board: &Arc<Board>, list: ModerationList, range: TextRange<'_>, limit: u32) -> Moderated;
        fn keys(track: &BoardTrack, range: TextRange<'_>, limit: u32) -> Keys;
        fn status(track: &BoardTrack) -> Status;
        fn retire_step(track: &BoardTrack) -> RetireStep;
        fn tidy_step() -> bool;
        fn audit_step(track: &BoardTrack, cursor: AuditCursor, repair: bool) -> AuditStep;
        fn contents_step(track: &BoardTrack, cursor: ContentsCursor) -> ContentsStep;
        fn dual_run(board: &Arc<Board>) -> DualRun;
        fn compare(tracks: [&BoardTrack; 2], subjects: &[Subject]) -> Compared;
        fn sheets(track: &BoardTrack, ids: &[SheetId]) -> Sheets;
        fn redivision(board: &Arc<Board>) -> Option<CopyProgress>;
        fn rows(table: TableName, known: Option<u64>) -> Option<Rows>;
        fn check() -> ();
        fn reopen() -> ();
        fn tend() -> ();
    ]
    once: [
        fn define(board: Board) -> Defined;
        fn undefine(board: &Arc<Board>) -> bool;
        fn add(board: &Arc<Board>, batch: Batch) -> Added;
        fn replace(board: &Arc<Board>, increment: Increment) -> Added;
        fn remove(board: &Arc<Board>, subject: &Subject) -> Removal;
        fn moderate(board: &Arc<Board>, changes: &[(Subject, ModerationChange)]) -> ();
        fn begin_import(board: &Arc<Board>, import: ImportId) -> ImportBegun;
        fn merge(track: &BoardTrack, import: ImportId, piece: &Piece) -> Merged;
        fn end_import(board: &Arc<Board>, import: ImportId) -> bool;
        fn change_editions(from: &Arc<Board>, to: Board) -> Arc<Board>;
        fn fill(from: &BoardTrack, to: &BoardTrack, cells: &[(Subject, Timestamp)]) -> ();
        fn end_fill(board: &Arc<Board>, tracks: &[(usize, usize)]) -> ();
        fn change_sheet(track: &BoardTrack, id: SheetId, from: Option<&str>, to: &str) -> bool;
        fn redivide(board: &Arc<Board>, shards: u32) -> Arc<Board>;
        fn end_redivision(board: &Arc<Board>) -> bool;
        fn change_row(table: TableName, id: &str, from: Option<&str>, to: Option<&str>) -> bool;
        fn backup() -> BackedUp;
        fn close() -> ();
    ]
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_does_not_answer_for_some_seconds_fails_no_step_and_no_read() {
    for engine in crate::redis_server::Engine::available() {
        let server = crate::redis_server::RedisServer::start(&engine);
        let (url, prefix, to) = (server.url(), "rolltop".to_owned(), Default::default());
        let home = crate::site::Home::Redis { name: "paused".to_owned(), url, prefix, to };
        let clock = rolltop::store::ClockMode::Simulated(crate::given::t(crate::site::START));
        let store = home.instance(clock).await;
        let definition = crate::given::definition("COUNT(3h, like, post)", "1h");
        let defined = store.define(crate::given::new_board(&crate::given::name("hot"), &definition)).await.unwrap();
        let Defined::Created(board) = defined else { panic!("{defined:?}") };
        let track = board.main();
        server.pause(true);
        let later = async {
            // Longer than the store waits for an answer, sends once more, and waits again.
            tokio::time::sleep(Duration::from_secs(6)).await;
            server.pause(false);
        };
        let (retired, audited, page, ()) = tokio::join!(
            store.retire_step(&track),
            store.audit_step(&track, AuditCursor::default(), false),
            store.page(&track, 0, 10),
            later
        );
        assert!(retired.is_ok() && audited.is_ok() && page.is_ok(), "{retired:?} {audited:?} {page:?}");
    }
}
