//! A store that gives every board `shards`, or a ranking for each key, and hides this from its callers. So every test of
//! a store also tests a store whose boards have several parts, or keys.

use std::sync::Arc;

use async_trait::async_trait;
use rolltop::board::{
    ArchiveTop, Attributes, AttributesChange, AttributesError, Board, BoardName, BoardTrack, Definition, EarlierRanks,
    Key, Metric, ModerationChange, ModerationList, Percentile, PeriodLength, RankingKey, Season, SourceNumber, Subject,
    Timestamp, Value,
};
use rolltop::store::{
    Added, AuditCursor, AuditStep, BackedUp, Batch, BytesPerSubject, Compared, ContentsCursor, ContentsStep, Defined,
    Described, Distribution, DualRun, IdCost, ImportBegun, ImportId, Increment, Keys, Lifecycle, Listing, Lookup,
    Merged, Moderated, Page, PageStart, Passed, Piece, Portion, Reached, Removal, Result, RetireStep, Rows, SheetId,
    Sheets, SlotContents, SlotQuery, Standing, Status, Store, TableName, TextRange, Values, ValuesStart,
};

pub struct Altered {
    pub store: Arc<dyn Store>,
    pub to: Alteration,
}

/// The field of the `BY` that callers do not know.
const HIDDEN: &str = "hidden";

/// What boards get that their callers do not know.
#[derive(Clone, Debug, Default)]
pub struct Alteration {
    pub shards: Option<u32>,
    /// The key of every subject. Ranked boards have `BY`. On the others it is a part of the subject, because such a board
    /// may get a ranked edition. Boards that were defined with `BY` stay as they are.
    pub key: Option<RankingKey>,
}

impl Alteration {
    /// Returns the definition that the store gets.
    fn definition(&self, definition: &Definition) -> Definition {
        let own = definition.metric.by.clone().filter(|by| *by != Key::Field(HIDDEN.into()));
        // Ranks are not noted on a board with keys.
        let gets_key = definition.ranked && definition.movement.is_none();
        let hidden = self.key.as_ref().filter(|_| gets_key).map(|_| Key::Field(HIDDEN.into()));
        let metric = Metric { by: own.or(hidden), ..definition.metric.clone() };
        // Periods that are closed by hand end at one time, that of one partition.
        let is_manual = definition.season.is_some_and(|season| season.every == PeriodLength::Manual);
        // All of the periods of a board with keys is kept.
        let archive_top = |season: Season| match metric.by.is_some() {
            true => Season { archive_top: ArchiveTop::All, ..season },
            false => season,
        };
        let season = definition.season.map(archive_top);
        Definition { shards: self.shards.filter(|_| !is_manual), season, metric, ..definition.clone() }
    }

    /// Returns the same board as if each of its editions had been defined so.
    fn board(&self, board: &Board) -> Board {
        let definition = self.definition(board.definition());
        let first = Board::new(board.name().clone(), board.generation(), definition).unwrap();
        let editions = board.stored_editions().map(|form| {
            let mut form: serde_json::Value = serde_json::from_str(&form).unwrap();
            if let Some(other) = form.pointer_mut("/other/definition") {
                let definition: Definition = serde_json::from_value(other.take()).unwrap();
                *other = serde_json::to_value(self.definition(&definition)).unwrap();
            }
            form.to_string()
        });
        let board_again = first.with_stored_editions(board.epoch(), editions.as_deref()).unwrap();
        board_again.with_partitions(board.partitions().cloned()).with_defined_at(board.defined_at())
    }

    /// Returns the key that subjects of this board of the caller get.
    fn key_of(&self, board: &Board) -> Option<&RankingKey> {
        let is_alone = board.editions().iter().any(|edition| edition.definition().movement.is_some());
        self.key.as_ref().filter(|_| !board.has_keys() && !is_alone)
    }

    /// Returns the track of the board of the store.
    fn track(&self, track: &BoardTrack) -> BoardTrack {
        let board = Arc::new(self.board(track.board()));
        let of_board = board.each_track().nth(track.number()).unwrap();
        of_board.of_key(track.key().or(self.key_of(track.board())).cloned()).with_tiers(track.tiers().cloned())
    }

    /// Returns a subject of the store as the caller knows it.
    fn shown(&self, track: &BoardTrack, subject: &Subject) -> Subject {
        if self.key_of(track.board()).is_some() { subject.clone().without_key() } else { subject.clone() }
    }

    fn batch(&self, board: &Board, batch: Batch) -> Batch {
        let key = self.key_of(board);
        let in_ranking = |item: Increment| Increment { subject: item.subject.clone().in_ranking(key), ..item };
        Batch { increments: batch.increments.into_iter().map(in_ranking).collect(), ..batch }
    }
}

/// Returns the same board as if it had been defined without shards and keys. The board still has its partitions.
fn without(board: &Board) -> Arc<Board> {
    Arc::new(Alteration::default().board(board))
}

/// Returns the result of a write with the board that the caller may know.
fn hide(added: Added) -> Added {
    Added { newer: added.newer.as_deref().map(without), ..added }
}

#[async_trait]
impl Lifecycle for Altered {
    fn kind(&self) -> &'static str {
        self.store.kind()
    }

    fn bytes_per_subject(&self, board: &BoardTrack) -> BytesPerSubject {
        self.store.bytes_per_subject(&self.to.track(board))
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

    async fn tidy_step(&self) -> Result<bool> {
        self.store.tidy_step().await
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

#[async_trait]
impl Store for Altered {
    async fn define(&self, board: Board) -> Result<Defined> {
        Ok(match self.store.define(self.to.board(&board)).await? {
            Defined::Created(board) => Defined::Created(without(&board)),
            Defined::Unchanged(board) => Defined::Unchanged(without(&board)),
            Defined::Conflict(board) => Defined::Conflict(without(&board)),
        })
    }

    async fn board(&self, name: &BoardName) -> Result<Option<Arc<Board>>> {
        Ok(self.store.board(name).await?.as_deref().map(without))
    }

    async fn boards(&self) -> Result<Listing> {
        let listing = self.store.boards().await?;
        Ok(Listing { boards: listing.boards.iter().map(|board| without(board)).collect(), ..listing })
    }

    async fn boards_version(&self) -> Result<u64> {
        self.store.boards_version().await
    }

    async fn undefine(&self, board: &Arc<Board>) -> Result<bool> {
        self.store.undefine(&Arc::new(self.to.board(board))).await
    }

    async fn add(&self, board: &Arc<Board>, batch: Batch) -> Result<Added> {
        let altered = Arc::new(self.to.board(board));
        self.store.add(&altered, self.to.batch(board, batch)).await.map(hide)
    }

    async fn add_all(&self, batches: Vec<(Arc<Board>, Batch)>) -> Vec<Result<Added>> {
        let alter =
            |(board, batch): (Arc<Board>, Batch)| (Arc::new(self.to.board(&board)), self.to.batch(&board, batch));
        let batches = batches.into_iter().map(alter).collect();
        self.store.add_all(batches).await.into_iter().map(|added| added.map(hide)).collect()
    }

    async fn pass(&self, portions: Vec<(Arc<Board>, Portion)>) -> Vec<Result<Passed>> {
        let alter = |(board, portion): (Arc<Board>, Portion)| {
            let key = self.to.key_of(&board);
            let in_ranking = |item: Increment| Increment { subject: item.subject.clone().in_ranking(key), ..item };
            (Arc::new(self.to.board(&board)), portion.with_items(in_ranking))
        };
        self.store.pass(portions.into_iter().map(alter).collect()).await
    }

    async fn reached(&self, board: &Arc<Board>, source: SourceNumber) -> Result<Option<Reached>> {
        self.store.reached(&Arc::new(self.to.board(board)), source).await
    }

    async fn page_from(&self, track: &BoardTrack, start: &PageStart, limit: u32) -> Result<Page> {
        self.store.page_from(&self.to.track(track), start, limit).await
    }

    async fn neighbors(&self, track: &BoardTrack, subject: &Subject, radius: u32) -> Result<Page> {
        self.store.neighbors(&self.to.track(track), subject, radius).await
    }

    async fn lookup(&self, track: &BoardTrack, subjects: &[Subject], ranks: bool) -> Result<Lookup> {
        self.store.lookup(&self.to.track(track), subjects, ranks).await
    }

    async fn standing(&self, track: &BoardTrack, subject: &Subject) -> Result<Standing> {
        self.store.standing(&self.to.track(track), subject).await
    }

    async fn earlier_ranks(&self, track: &BoardTrack) -> Result<Option<Arc<EarlierRanks>>> {
        self.store.earlier_ranks(&self.to.track(track)).await
    }

    async fn distribution(
        &self,
        track: &BoardTrack,
        percentiles: &[Percentile],
        scores: &[Value],
    ) -> Result<Distribution> {
        self.store.distribution(&self.to.track(track), percentiles, scores).await
    }

    async fn read(&self, queries: Vec<SlotQuery>) -> Vec<Result<SlotContents>> {
        let alter = |query: SlotQuery| SlotQuery { track: self.to.track(&query.track), ..query };
        self.store.read(queries.into_iter().map(alter).collect()).await
    }

    async fn values_from(
        &self,
        track: &BoardTrack,
        subject: &Subject,
        start: &ValuesStart,
        limit: u32,
    ) -> Result<Values> {
        self.store.values_from(&self.to.track(track), subject, start, limit).await
    }

    async fn remove(&self, board: &Arc<Board>, subject: &Subject) -> Result<Removal> {
        let altered = Arc::new(self.to.board(board));
        self.store.remove(&altered, &subject.clone().in_ranking(self.to.key_of(board))).await
    }

    async fn replace(&self, board: &Arc<Board>, increment: Increment) -> Result<Added> {
        let increment = Increment { subject: increment.subject.clone().in_ranking(self.to.key_of(board)), ..increment };
        Ok(hide(self.store.replace(&Arc::new(self.to.board(board)), increment).await?))
    }

    async fn moderate(&self, board: &Arc<Board>, changes: &[(Subject, ModerationChange)]) -> Result<()> {
        let key = self.to.key_of(board);
        let changes: Vec<_> =
            changes.iter().map(|(subject, change)| (subject.clone().in_ranking(key), *change)).collect();
        self.store.moderate(&Arc::new(self.to.board(board)), &changes).await
    }

    async fn moderated(
        &self,
        board: &Arc<Board>,
        list: ModerationList,
        range: TextRange<'_>,
        limit: u32,
    ) -> Result<Moderated> {
        let altered = Arc::new(self.to.board(board));
        let Some(key) = self.to.key_of(board) else {
            return self.store.moderated(&altered, list, range, limit).await;
        };
        let within = |text: &str| format!("{key}\0{text}");
        let (prefix, after) = (within(range.prefix), range.after.map(within));
        let range = TextRange { prefix: &prefix, after: after.as_deref() };
        let Moderated { total, items } = self.store.moderated(&altered, list, range, limit).await?;
        let items = items.into_iter().map(|(subject, moderation)| (subject.without_key(), moderation)).collect();
        Ok(Moderated { total, items })
    }

    async fn set_attributes(
        &self,
        board: &Arc<Board>,
        changes: &[(Subject, AttributesChange)],
    ) -> Result<Vec<Result<(), AttributesError>>> {
        let key = self.to.key_of(board);
        let changes: Vec<_> =
            changes.iter().map(|(subject, change)| (subject.clone().in_ranking(key), change.clone())).collect();
        self.store.set_attributes(&Arc::new(self.to.board(board)), &changes).await
    }

    async fn attributes(&self, board: &Arc<Board>, subjects: &[Subject]) -> Result<Vec<Attributes>> {
        let key = self.to.key_of(board);
        let subjects: Vec<_> = subjects.iter().map(|subject| subject.clone().in_ranking(key)).collect();
        self.store.attributes(&Arc::new(self.to.board(board)), &subjects).await
    }

    async fn described(&self, board: &Arc<Board>, range: TextRange<'_>, limit: u32) -> Result<Described> {
        let altered = Arc::new(self.to.board(board));
        let Some(key) = self.to.key_of(board) else { return self.store.described(&altered, range, limit).await };
        let within = |text: &str| format!("{key}\0{text}");
        let (prefix, after) = (within(range.prefix), range.after.map(within));
        let range = TextRange { prefix: &prefix, after: after.as_deref() };
        let Described { total, items } = self.store.described(&altered, range, limit).await?;
        let items = items.into_iter().map(|(subject, attributes)| (subject.without_key(), attributes)).collect();
        Ok(Described { total, items })
    }

    async fn status(&self, track: &BoardTrack) -> Result<Status> {
        let status = self.store.status(&self.to.track(track)).await?;
        if track.board().has_keys() {
            return Ok(status);
        }
        assert!(status.keys.is_none_or(|keys| keys == u64::from(status.total > Some(0))), "{status:?}");
        Ok(Status { keys: None, ..status })
    }

    async fn keys(&self, track: &BoardTrack, range: TextRange<'_>, limit: u32) -> Result<Keys> {
        self.store.keys(&self.to.track(track), range, limit).await
    }

    async fn retire_step(&self, track: &BoardTrack) -> Result<RetireStep> {
        self.store.retire_step(&self.to.track(track)).await
    }

    async fn audit_step(&self, track: &BoardTrack, cursor: AuditCursor, repair: bool) -> Result<AuditStep> {
        let mut step = self.store.audit_step(&self.to.track(track), cursor, repair).await?;
        for difference in &mut step.differences {
            difference.subject = self.to.shown(track, &difference.subject);
        }
        Ok(step)
    }

    async fn contents_step(&self, track: &BoardTrack, cursor: ContentsCursor) -> Result<ContentsStep> {
        let mut step = self.store.contents_step(&self.to.track(track), cursor).await?;
        for (subject, _) in &mut step.contents {
            *subject = self.to.shown(track, subject);
        }
        Ok(step)
    }

    async fn begin_import(&self, board: &Arc<Board>, import: ImportId) -> Result<ImportBegun> {
        self.store.begin_import(&Arc::new(self.to.board(board)), import).await
    }

    async fn merge(&self, track: &BoardTrack, import: ImportId, piece: &Piece) -> Result<Merged> {
        let mut piece = piece.clone();
        for (subject, _) in &mut piece.contents {
            *subject = subject.clone().in_ranking(self.to.key_of(track.board()));
        }
        self.store.merge(&self.to.track(track), import, &piece).await
    }

    async fn end_import(&self, board: &Arc<Board>, import: ImportId) -> Result<bool> {
        self.store.end_import(&Arc::new(self.to.board(board)), import).await
    }

    async fn change_editions(&self, from: &Arc<Board>, to: Board) -> Result<Arc<Board>> {
        let changed = self.store.change_editions(&Arc::new(self.to.board(from)), self.to.board(&to)).await?;
        Ok(without(&changed))
    }

    async fn dual_run(&self, board: &Arc<Board>) -> Result<DualRun> {
        self.store.dual_run(&Arc::new(self.to.board(board))).await
    }

    async fn fill(&self, from: &BoardTrack, to: &BoardTrack, cells: &[(Subject, Timestamp)]) -> Result<()> {
        let key = self.to.key_of(from.board());
        let cells: Vec<_> = cells.iter().map(|(subject, slot)| (subject.clone().in_ranking(key), *slot)).collect();
        self.store.fill(&self.to.track(from), &self.to.track(to), &cells).await
    }

    async fn end_fill(&self, board: &Arc<Board>, tracks: &[(usize, usize)]) -> Result<()> {
        self.store.end_fill(&Arc::new(self.to.board(board)), tracks).await
    }

    async fn compare(&self, tracks: [&BoardTrack; 2], subjects: &[Subject]) -> Result<Compared> {
        let key = self.to.key_of(tracks[0].board());
        let subjects: Vec<_> = subjects.iter().map(|subject| subject.clone().in_ranking(key)).collect();
        let [current, other] = tracks.map(|track| self.to.track(track));
        self.store.compare([&current, &other], &subjects).await
    }

    async fn sheets(&self, track: &BoardTrack, ids: &[SheetId]) -> Result<Sheets> {
        self.store.sheets(&self.to.track(track), ids).await
    }

    async fn change_sheet(&self, track: &BoardTrack, id: SheetId, from: Option<&str>, to: &str) -> Result<bool> {
        self.store.change_sheet(&self.to.track(track), id, from, to).await
    }

    async fn rows(&self, table: TableName, known: Option<u64>) -> Result<Option<Rows>> {
        self.store.rows(table, known).await
    }

    async fn change_row(&self, table: TableName, id: &str, from: Option<&str>, to: Option<&str>) -> Result<bool> {
        self.store.change_row(table, id, from, to).await
    }
}
