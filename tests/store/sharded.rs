//! A store that gives every board `shards` and hides this from its callers. So every test of a store also tests a store
//! whose boards have several parts.

use std::sync::Arc;

use async_trait::async_trait;
use rolltop::board::{Board, BoardName, BoardTrack, Definition, Subject, Timestamp};
use rolltop::store::{
    Added, AuditCursor, AuditStep, BackedUp, Batch, BytesPerSubject, Compared, ContentsCursor, ContentsStep, Defined,
    DualRun, IdCost, ImportBegun, ImportId, Listing, Lookup, Merged, Page, PageStart, Piece, Removal, Result,
    RetireStep, Rows, SlotContents, SlotQuery, Standing, Status, Store, TableName, Values, ValuesStart,
};

pub struct Sharded {
    pub store: Arc<dyn Store>,
    pub shards: u32,
}

/// Returns the same board as if it had been defined without shards. The board still has its partitions.
fn without_shards(board: &Board) -> Arc<Board> {
    Arc::new(with_shards(board, None))
}

/// Returns the same board as if each of its editions had been defined with these shards.
fn with_shards(board: &Board, shards: Option<u32>) -> Board {
    let definition = Definition { shards, ..board.definition().clone() };
    let first = Board::new(board.name().clone(), board.generation(), definition).unwrap();
    let editions = board.stored_editions().map(|form| {
        let mut form: serde_json::Value = serde_json::from_str(&form).unwrap();
        if let Some(definition) = form.pointer_mut("/other/definition").and_then(serde_json::Value::as_object_mut) {
            definition.remove("shards");
            definition.extend(shards.map(|shards| ("shards".to_owned(), shards.into())));
        }
        form.to_string()
    });
    let board_again = first.with_stored_editions(board.epoch(), editions.as_deref()).unwrap();
    board_again.with_partitions(board.partitions().cloned()).with_defined_at(board.defined_at())
}

/// Returns the result of a write with the board that the caller may know.
fn hide(added: Added) -> Added {
    Added { newer: added.newer.as_deref().map(without_shards), ..added }
}

#[async_trait]
impl Store for Sharded {
    fn kind(&self) -> &'static str {
        self.store.kind()
    }

    fn bytes_per_subject(&self, board: &BoardTrack) -> BytesPerSubject {
        self.store.bytes_per_subject(board)
    }

    fn id_cost(&self, board: &Board) -> IdCost {
        self.store.id_cost(board)
    }

    async fn now(&self) -> Result<Timestamp> {
        self.store.now().await
    }

    async fn set_clock(&self, to: Timestamp) -> Result<Timestamp> {
        self.store.set_clock(to).await
    }

    async fn define(&self, board: Board) -> Result<Defined> {
        Ok(match self.store.define(with_shards(&board, Some(self.shards))).await? {
            Defined::Created(board) => Defined::Created(without_shards(&board)),
            Defined::Unchanged(board) => Defined::Unchanged(without_shards(&board)),
            Defined::Conflict(board) => Defined::Conflict(without_shards(&board)),
        })
    }

    async fn board(&self, name: &BoardName) -> Result<Option<Arc<Board>>> {
        Ok(self.store.board(name).await?.as_deref().map(without_shards))
    }

    async fn boards(&self) -> Result<Listing> {
        let listing = self.store.boards().await?;
        Ok(Listing { boards: listing.boards.iter().map(|board| without_shards(board)).collect(), ..listing })
    }

    async fn boards_version(&self) -> Result<u64> {
        self.store.boards_version().await
    }

    async fn undefine(&self, board: &Arc<Board>) -> Result<bool> {
        self.store.undefine(board).await
    }

    async fn add(&self, board: &Arc<Board>, batch: Batch) -> Result<Added> {
        self.store.add(board, batch).await.map(hide)
    }

    async fn add_all(&self, batches: Vec<(Arc<Board>, Batch)>) -> Vec<Result<Added>> {
        self.store.add_all(batches).await.into_iter().map(|added| added.map(hide)).collect()
    }

    async fn page_from(&self, track: &BoardTrack, start: &PageStart, limit: u32) -> Result<Page> {
        self.store.page_from(track, start, limit).await
    }

    async fn neighbors(&self, track: &BoardTrack, subject: &Subject, radius: u32) -> Result<Page> {
        self.store.neighbors(track, subject, radius).await
    }

    async fn lookup(&self, track: &BoardTrack, subjects: &[Subject], ranks: bool) -> Result<Lookup> {
        self.store.lookup(track, subjects, ranks).await
    }

    async fn standing(&self, track: &BoardTrack, subject: &Subject) -> Result<Standing> {
        self.store.standing(track, subject).await
    }

    async fn read(&self, queries: Vec<SlotQuery>) -> Vec<Result<SlotContents>> {
        self.store.read(queries).await
    }

    async fn values_from(
        &self,
        track: &BoardTrack,
        subject: &Subject,
        start: &ValuesStart,
        limit: u32,
    ) -> Result<Values> {
        self.store.values_from(track, subject, start, limit).await
    }

    async fn remove(&self, board: &Arc<Board>, subject: &Subject) -> Result<Removal> {
        self.store.remove(board, subject).await
    }

    async fn status(&self, track: &BoardTrack) -> Result<Status> {
        self.store.status(track).await
    }

    async fn retire_step(&self, track: &BoardTrack) -> Result<RetireStep> {
        self.store.retire_step(track).await
    }

    async fn tidy_step(&self) -> Result<bool> {
        self.store.tidy_step().await
    }

    async fn audit_step(&self, track: &BoardTrack, cursor: AuditCursor, repair: bool) -> Result<AuditStep> {
        self.store.audit_step(track, cursor, repair).await
    }

    async fn contents_step(&self, track: &BoardTrack, cursor: ContentsCursor) -> Result<ContentsStep> {
        self.store.contents_step(track, cursor).await
    }

    async fn begin_import(&self, board: &Arc<Board>, import: ImportId) -> Result<ImportBegun> {
        self.store.begin_import(board, import).await
    }

    async fn merge(&self, track: &BoardTrack, import: ImportId, piece: &Piece) -> Result<Merged> {
        self.store.merge(track, import, piece).await
    }

    async fn end_import(&self, board: &Arc<Board>, import: ImportId) -> Result<bool> {
        self.store.end_import(board, import).await
    }

    async fn change_editions(&self, from: &Arc<Board>, to: Board) -> Result<Arc<Board>> {
        let from = Arc::new(with_shards(from, Some(self.shards)));
        let changed = self.store.change_editions(&from, with_shards(&to, Some(self.shards))).await?;
        Ok(without_shards(&changed))
    }

    async fn dual_run(&self, board: &Arc<Board>) -> Result<DualRun> {
        self.store.dual_run(board).await
    }

    async fn fill(&self, from: &BoardTrack, to: &BoardTrack, cells: &[(Subject, Timestamp)]) -> Result<()> {
        self.store.fill(from, to, cells).await
    }

    async fn end_fill(&self, board: &Arc<Board>, tracks: &[(usize, usize)]) -> Result<()> {
        self.store.end_fill(board, tracks).await
    }

    async fn compare(&self, tracks: [&BoardTrack; 2], subjects: &[Subject]) -> Result<Compared> {
        self.store.compare(tracks, subjects).await
    }

    async fn rows(&self, table: TableName, known: Option<u64>) -> Result<Option<Rows>> {
        self.store.rows(table, known).await
    }

    async fn change_row(&self, table: TableName, id: &str, from: Option<&str>, to: Option<&str>) -> Result<bool> {
        self.store.change_row(table, id, from, to).await
    }

    async fn check(&self) -> Result<()> {
        self.store.check().await
    }

    async fn reopen(&self) -> Result<()> {
        self.store.reopen().await
    }

    async fn tend(&self) -> Result<()> {
        self.store.tend().await
    }

    fn warnings(&self) -> Vec<String> {
        self.store.warnings()
    }

    async fn backup(&self) -> Result<BackedUp> {
        self.store.backup().await
    }

    async fn close(&self) -> Result<()> {
        self.store.close().await
    }
}
