//! The implementation of [`Store`]: each call locks a board's data once, or once per portion.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use async_trait::async_trait;

use super::board_state::BoardState;
use super::boards::{LiveBoard, UncheckpointedLog};
use super::engine::Ticket;
use super::imports::Imports;
use super::log_operations::LogOperations;
use super::memory::{Demand, Level, Room};
use super::rows::RowChange;
use super::{Awaited, Embedded, audit, ranking_reads, slot_reads};
use crate::board::{
    Attributes, AttributesChange, AttributesError, Board, BoardName, BoardTrack, EarlierRanks, MAX_ATTRIBUTES_BYTES,
    Moderation, ModerationChange, ModerationList, Percentile, SourceNumber, Subject, Timestamp, Value,
};
use crate::store::{
    Added, AuditCursor, AuditStep, Batch, Compared, ContentsCursor, ContentsStep, Defined, Described, Distribution,
    DualRun, ImportBegun, ImportId, Increment, Keys, Listing, Lookup, Merged, Moderated, Page, PageStart, Passed,
    Piece, Portion, Reached, Removal, Removing, Result, RetireStep, Rows, SheetId, Sheets, SlotContents, SlotQuery,
    Standing, Status, Store, StoreError, TableName, TextRange, Values, ValuesStart,
};

/// The duration that a portion of retiring aims for. Other calls wait this long for the board's lock.
const TARGET_HOLD: Duration = Duration::from_micros(250);
/// The number of portions in a step, between which other calls get the lock. A step has several, because a pause
/// follows each step and timers are coarse.
const PORTIONS_PER_STEP: usize = 4;
/// The smallest number of subjects in a portion, however slow the machine is. [`MAX_PORTION`] is the largest, however
/// fast it is.
const MIN_PORTION: u64 = 16;
const MAX_PORTION: u64 = 1_024;
/// The number of subjects after which a step reads the time.
const TIME_CHECK_EVERY: u64 = 16;

/// The number of changes of moderated subjects that are made under one lock.
const MODERATED_TOGETHER: usize = 128;

/// Returns whether the work of [`TIME_CHECK_EVERY`] subjects was done since the time was last read.
fn is_time_check_due(checked_at: &mut u64, work: u64) -> bool {
    let due = work >= *checked_at + TIME_CHECK_EVERY;
    if due {
        *checked_at = work;
    }
    due
}

impl Embedded {
    /// Subtracts as much as fits into one hold of the board's lock.
    fn retire_portion(&self, track: &BoardTrack) -> Result<RetireStep> {
        self.read_data(track, |_, data, advance| {
            let started = Instant::now();
            let mut checked_at = 0;
            let (retired, done) = data.retire(|work| {
                work < MIN_PORTION
                    || (work < MAX_PORTION
                        && (!is_time_check_due(&mut checked_at, work) || started.elapsed() < TARGET_HOLD))
            });
            if done {
                data.visit_portion(MAX_PORTION);
            }
            RetireStep {
                frame: data.frame(),
                slots_advanced: advance.slots,
                slots_retired: retired.slots + advance.expired.map_or(0, |expired| expired.slots),
                subjects_touched: retired.touched,
                subjects_removed: retired.removed,
                done,
                skipped: false,
                worked: started.elapsed(),
            }
        })
    }

    /// Removes the data of a subject from every track. Returns `None` if it is left because an increment that is to
    /// replace it will be rejected.
    async fn remove_data(&self, board: &Arc<Board>, subject: &Subject, removing: Removing) -> Result<Option<Removal>> {
        let permit = self.journal().admit((board.tracks().len() + 1) * (subject.as_str().len() + 64))?;
        let (removed, ticket) = self.change_state(board, |state, operations| {
            if removing == Removing::ToReplace && state.moderated.is_frozen(subject.as_str()) {
                // The increment will be rejected.
                return (Ok((None, false)), Awaited::No);
            }
            if state.imports.is_open() {
                return (Err(StoreError::ImportOpen), Awaited::No);
            }
            let (mut removals, mut any) = (Vec::with_capacity(board.tracks().len()), false);
            for (track, data) in board.tracks().iter().zip(&mut state.tracks) {
                let score = ranking_reads::score(data, subject);
                let (floor, now) = (data.window.floor.millis(), data.now.millis());
                let counters = u64::from(data.holdings.counter(subject.as_str().into(), now).is_some());
                let traits = data.holdings.traits;
                let removed = data.holdings.remove(subject.as_str().into(), floor);
                if removing == Removing::Subject && data.noted.remove(subject.as_str()) {
                    let mut own = LogOperations::of(track.id());
                    data.noted.write(&mut own);
                    operations.append(&own);
                    any = true;
                }
                if removed.any {
                    let mut own = LogOperations::of(track.id());
                    own.removed(subject.as_str());
                    operations.append(&own);
                    any = true;
                }
                let retiring_slots = if traits.ranked { removed.expired } else { 0 };
                let live_slots = if traits.counter_duration.is_some() { counters } else { removed.live };
                removals.push(Removal { frame: data.frame(), score, live_slots, retiring_slots });
            }
            if removing == Removing::Subject && state.moderate(subject.as_str(), ModerationChange::Clear).is_some() {
                operations.moderated(subject.as_str(), Moderation::default());
                any = true;
            }
            if removing == Removing::Subject && !state.described.get(subject.as_str()).is_empty() {
                operations.attributes(subject.as_str(), &Attributes::default());
                state.described.set(subject.as_str(), Attributes::default());
                any = true;
            }
            (Ok((Removal::of_board(board, removals), any)), Awaited::Yes)
        })?;
        drop(permit);
        let (removal, removed) = removed?;
        // An earlier removal may still be on its way to the disk. The response confirms that the subject is removed, so
        // it has to wait for the disk.
        let ticket = if removed { ticket } else { self.journal().ticket_for_all_appended() };
        self.journal().wait(ticket).await?;
        Ok(removal)
    }
}

#[async_trait]
impl Store for Embedded {
    async fn define(&self, board: Board) -> Result<Defined> {
        let json = serde_json::to_string(board.definition())
            .map_err(|error| StoreError::Backend { source: Box::new(error) })?;
        // The definition that was found may still be on its way to the disk, and the response confirms it, so the
        // caller has to wait for the disk.
        let known = |live: &Arc<LiveBoard>| {
            let found = live.board();
            let same = found.definition() == board.definition();
            (
                if same { Defined::Unchanged(found) } else { Defined::Conflict(found) },
                self.journal().ticket_for_all_appended(),
            )
        };
        // Nothing is written if the board exists, so no admission is needed.
        let found = self.boards.read().get(board.name()).map(known);
        if let Some((found, ticket)) = found {
            self.journal().wait(ticket).await?;
            return Ok(found);
        }
        self.memory.check_room_for_new()?;
        let _permit = self.journal().admit(json.len() + 256)?;
        let (defined, ticket) = {
            let mut boards = self.boards.write();
            if let Some(live) = boards.get(board.name()) {
                known(live)
            } else {
                let now = self.clock.now();
                let board = Arc::new(board.with_defined_at(Some(now)));
                let mut state = BoardState::new(board.clone(), now);
                state.trust = self.clock.trust_of_new_board();
                state.imports = Imports::of_new_board();
                let mut operations = LogOperations::of_store();
                operations.defined(board.generation(), board.name().as_str(), &json);
                let mut header = LogOperations::of(board.edition().main().id());
                state.imports.write_times(&board, now.millis(), &mut header);
                operations.append(&header);
                if let Some(unknown) = state.unlogged_ranks() {
                    operations.append(&unknown);
                }
                let logged = UncheckpointedLog::default();
                let (sequence, ticket) = self.journal().append_with_ticket(&operations);
                logged.add(sequence, operations.len());
                let live = LiveBoard::new(state, logged, &self.memory);
                boards.insert(board.name().clone(), Arc::new(live));
                self.boards_version.fetch_add(1, Ordering::AcqRel);
                (Defined::Created(board), ticket)
            }
        };
        self.journal().wait(ticket).await?;
        Ok(defined)
    }

    async fn board(&self, name: &BoardName) -> Result<Option<Arc<Board>>> {
        Ok(self.boards.read().get(name).map(|live| live.board()))
    }

    async fn boards(&self) -> Result<Listing> {
        let boards = self.boards.read().values().map(|live| live.board()).collect();
        Ok(Listing { boards, unreadable: Vec::new() })
    }

    async fn boards_version(&self) -> Result<u64> {
        Ok(self.boards_version.load(Ordering::Acquire))
    }

    async fn undefine(&self, board: &Arc<Board>) -> Result<bool> {
        let mut operations = LogOperations::of_store();
        operations.undefined(board.generation());
        let _permit = self.journal().admit(operations.len())?;
        let (live, ticket) = {
            let mut boards = self.boards.write();
            let live = match boards.get(board.name()) {
                Some(live) if live.generation() == board.generation() => live.clone(),
                _ => return Ok(false),
            };
            {
                let mut state = live.state.lock();
                state.check_is_of(board)?;
                state.removed = true;
            }
            boards.remove(board.name());
            self.boards_version.fetch_add(1, Ordering::AcqRel);
            (live, self.journal().append_with_ticket(&operations).1)
        };
        self.discard(live);
        self.engine.board_removed();
        self.journal().wait(ticket).await?;
        Ok(true)
    }

    async fn add(&self, board: &Arc<Board>, batch: Batch) -> Result<Added> {
        let (added, ticket) = self.apply(board, &batch, || self.room()).await?;
        self.journal().wait(ticket).await?;
        Ok(added)
    }

    async fn replace(&self, board: &Arc<Board>, increment: Increment) -> Result<Added> {
        let mut known = board.clone();
        while let Err(error) = self.remove_data(&known, &increment.subject, Removing::ToReplace).await {
            // Each change of the editions is one more round.
            known = match error {
                StoreError::StaleEpoch => self.live_board(board)?.board(),
                error => return Err(error),
            };
        }
        // The memory of the subject has just been freed, so its new data is not refused.
        let batch = Batch { increments: vec![increment], return_scores: true };
        let (added, ticket) = self.apply(board, &batch, || Room::UNLIMITED).await?;
        self.journal().wait(ticket).await?;
        Ok(added)
    }

    async fn add_all(&self, batches: Vec<(Arc<Board>, Batch)>) -> Vec<Result<Added>> {
        // All batches are appended to the journal before the first wait, so that they share a frame.
        let (mut added, mut tickets) = (Vec::with_capacity(batches.len()), Vec::with_capacity(batches.len()));
        for (board, batch) in &batches {
            match self.apply(board, batch, || self.room()).await {
                Ok((one, ticket)) => {
                    added.push(Ok(one));
                    tickets.push(ticket);
                }
                Err(error) => {
                    added.push(Err(error));
                    tickets.push(Ticket::Done);
                }
            }
        }
        let waited = self.journal().wait_all(tickets).await;
        added.into_iter().zip(waited).map(|(added, waited)| waited.and(added)).collect()
    }

    async fn pass(&self, portions: Vec<(Arc<Board>, Portion)>) -> Vec<Result<Passed>> {
        self.pass_portions(portions).await
    }

    async fn reached(&self, board: &Arc<Board>, source: SourceNumber) -> Result<Option<Reached>> {
        let reached = self.with_state(board, |state, _| state.reached.get(&source).cloned())?;
        // Whoever reads it may delete what comes before from the log.
        self.journal().wait(self.journal().ticket_for_all_appended()).await?;
        Ok(reached)
    }

    async fn page_from(&self, track: &BoardTrack, start: &PageStart, limit: u32) -> Result<Page> {
        self.read_ranking(track, |data, frame| ranking_reads::page(track, data, frame, start, limit))
    }

    async fn neighbors(&self, track: &BoardTrack, subject: &Subject, radius: u32) -> Result<Page> {
        self.read_ranking(track, |data, frame| ranking_reads::neighbors(track, data, frame, subject, radius))
    }

    async fn lookup(&self, track: &BoardTrack, subjects: &[Subject], ranks: bool) -> Result<Lookup> {
        self.read_ranking(track, |data, frame| ranking_reads::lookup(track, data, frame, subjects, ranks))
    }

    async fn standing(&self, track: &BoardTrack, subject: &Subject) -> Result<Standing> {
        self.read_ranking(track, |data, frame| ranking_reads::standing(track, data, frame, subject))
    }

    async fn earlier_ranks(&self, track: &BoardTrack) -> Result<Option<Arc<EarlierRanks>>> {
        self.read_data(track, |_, data, _| data.noted.ranks().cloned())
    }

    async fn distribution(
        &self,
        track: &BoardTrack,
        percentiles: &[Percentile],
        scores: &[Value],
    ) -> Result<Distribution> {
        self.read_ranking(track, |data, frame| ranking_reads::distribution(track, data, frame, percentiles, scores))
    }

    async fn read(&self, queries: Vec<SlotQuery>) -> Vec<Result<SlotContents>> {
        let read =
            |query: &SlotQuery| self.read_subject(&query.track, |data| slot_reads::read(&query.track, data, query))?;
        queries.iter().map(read).collect()
    }

    async fn values_from(
        &self,
        track: &BoardTrack,
        subject: &Subject,
        start: &ValuesStart,
        limit: u32,
    ) -> Result<Values> {
        let subject = track.stored(subject);
        self.read_subject(track, |data| slot_reads::values(data, &subject, start, limit))
    }

    async fn remove(&self, board: &Arc<Board>, subject: &Subject) -> Result<Removal> {
        self.remove_data(board, subject, Removing::Subject).await?.ok_or(StoreError::BoardChanged)
    }

    async fn moderate(&self, board: &Arc<Board>, changes: &[(Subject, ModerationChange)]) -> Result<()> {
        let mut tickets = Vec::new();
        for some in changes.chunks(MODERATED_TOGETHER) {
            let bytes = some.iter().map(|(subject, _)| subject.as_str().len() + 16).sum::<usize>();
            let permit = self.journal().admit(bytes + 64)?;
            let room = self.room();
            let (done, ticket) = self.change_state(board, |state, operations| {
                for (subject, change) in some {
                    if !state.moderated.has_room_for(subject.as_str(), *change) {
                        return (Err(StoreError::TooManyModerated), Awaited::Yes);
                    }
                    let grows =
                        !room.is_enough_for(Demand::More) && state.moderated.grows_with(subject.as_str(), *change);
                    if grows {
                        return (Err(StoreError::MemoryFull), Awaited::Yes);
                    }
                    if let Some(moderation) = state.moderate(subject.as_str(), *change) {
                        operations.moderated(subject.as_str(), moderation);
                    }
                }
                (Ok(()), Awaited::Yes)
            })?;
            drop(permit);
            done?;
            tickets.push(ticket);
        }
        // What was set before may still be on its way to the disk. The response confirms it, so it has to wait for it.
        tickets.push(self.journal().ticket_for_all_appended());
        self.journal().wait_all(tickets).await.into_iter().collect()
    }

    async fn moderated(
        &self,
        board: &Arc<Board>,
        list: ModerationList,
        range: TextRange<'_>,
        limit: u32,
    ) -> Result<Moderated> {
        self.with_state(board, |state, _| state.moderated.list(list, range, limit))
    }

    async fn set_attributes(
        &self,
        board: &Arc<Board>,
        changes: &[(Subject, AttributesChange)],
    ) -> Result<Vec<Result<(), AttributesError>>> {
        let (mut outcomes, mut tickets) = (Vec::with_capacity(changes.len()), Vec::new());
        let mut is_full = false;
        for some in changes.chunks(MODERATED_TOGETHER) {
            let bytes = |(subject, _): &(Subject, AttributesChange)| subject.as_str().len() + 2 * MAX_ATTRIBUTES_BYTES;
            let permit = self.journal().admit(some.iter().map(bytes).sum::<usize>() + 64)?;
            let has_room = self.room().is_enough_for(Demand::More);
            let (done, ticket) = self.change_state(board, |state, operations| {
                for (subject, change) in some {
                    match state.describe(subject.as_str(), change, has_room, operations) {
                        Ok(outcome) => outcomes.push(outcome),
                        // What takes less is done all the same.
                        Err(StoreError::MemoryFull) => is_full = true,
                        Err(error) => return (Err(error), Awaited::Yes),
                    }
                }
                (Ok(()), Awaited::Yes)
            })?;
            drop(permit);
            done?;
            tickets.push(ticket);
        }
        // What was set before may still be on its way to the disk. The response confirms it, so it has to wait for it.
        tickets.push(self.journal().ticket_for_all_appended());
        self.journal().wait_all(tickets).await.into_iter().collect::<Result<()>>()?;
        if is_full { Err(StoreError::MemoryFull) } else { Ok(outcomes) }
    }

    async fn attributes(&self, board: &Arc<Board>, subjects: &[Subject]) -> Result<Vec<Attributes>> {
        self.with_state(board, |state, _| {
            subjects.iter().map(|subject| state.described.get(subject.as_str())).collect()
        })
    }

    async fn described(&self, board: &Arc<Board>, range: TextRange<'_>, limit: u32) -> Result<Described> {
        self.with_state(board, |state, _| state.described.list(range, limit))
    }

    async fn keys(&self, track: &BoardTrack, range: TextRange<'_>, limit: u32) -> Result<Keys> {
        self.read_data(track, |_, data, _| ranking_reads::keys(data, range, limit))
    }

    async fn status(&self, track: &BoardTrack) -> Result<Status> {
        self.read_data(track, |_, data, _| ranking_reads::status(data))
    }

    async fn retire_step(&self, track: &BoardTrack) -> Result<RetireStep> {
        let mut step = self.retire_portion(track)?;
        for _ in 1..PORTIONS_PER_STEP {
            if step.done {
                break;
            }
            // A request for any board may wait for this core, not only for the lock.
            std::thread::yield_now();
            let next = self.retire_portion(track)?;
            step = RetireStep {
                slots_advanced: step.slots_advanced + next.slots_advanced,
                slots_retired: step.slots_retired + next.slots_retired,
                subjects_touched: step.subjects_touched + next.subjects_touched,
                subjects_removed: step.subjects_removed + next.subjects_removed,
                worked: step.worked + next.worked,
                ..next
            };
        }
        Ok(step)
    }

    async fn audit_step(&self, track: &BoardTrack, cursor: AuditCursor, repair: bool) -> Result<AuditStep> {
        self.read_data(track, |_, data, _| audit::step(data, &cursor, repair))
    }

    async fn contents_step(&self, track: &BoardTrack, cursor: ContentsCursor) -> Result<ContentsStep> {
        self.walk_contents(track, &cursor)
    }

    async fn begin_import(&self, board: &Arc<Board>, import: ImportId) -> Result<ImportBegun> {
        self.change_imports(board, |imports, operations| imports.begin(board, import, operations)).await?
    }

    async fn merge(&self, track: &BoardTrack, import: ImportId, piece: &Piece) -> Result<Merged> {
        self.merge_piece(track, import, piece).await
    }

    async fn end_import(&self, board: &Arc<Board>, import: ImportId) -> Result<bool> {
        self.change_imports(board, |imports, operations| imports.end(import, operations)).await
    }

    async fn change_editions(&self, from: &Arc<Board>, to: Board) -> Result<Arc<Board>> {
        self.replace_editions(from, to).await
    }

    async fn dual_run(&self, board: &Arc<Board>) -> Result<DualRun> {
        self.read_dual_run(board)
    }

    async fn fill(&self, from: &BoardTrack, to: &BoardTrack, cells: &[(Subject, Timestamp)]) -> Result<()> {
        self.fill_track(from, to, cells).await
    }

    async fn end_fill(&self, board: &Arc<Board>, tracks: &[(usize, usize)]) -> Result<()> {
        self.end_fill_of(board, tracks).await
    }

    async fn compare(&self, tracks: [&BoardTrack; 2], subjects: &[Subject]) -> Result<Compared> {
        self.compare_tracks(tracks, subjects)
    }

    async fn rows(&self, table: TableName, known: Option<u64>) -> Result<Option<Rows>> {
        Ok(self.rows.read(table, known))
    }

    async fn change_row(&self, table: TableName, id: &str, from: Option<&str>, to: Option<&str>) -> Result<bool> {
        table.check(id, from, to)?;
        // Near the limit no row is new. Keys are still rotated and revoked, and their uses noted.
        let is_longer = to.map_or(0, str::len) > from.map_or(0, str::len);
        match table {
            TableName::KeyUses => {}
            _ if from.is_none() && to.is_some() => self.memory.check_room_for_new()?,
            TableName::Tiers if is_longer && self.memory.level() == Level::Full => return Err(StoreError::MemoryFull),
            _ => {}
        }
        let mut operations = LogOperations::of_store();
        operations.row(table.as_str(), id, to);
        let permit = self.journal().admit(operations.len())?;
        let append = || self.journal().append_with_ticket(&operations).1;
        let (is_from, ticket) = match self.rows.change(table, id, (from, to), append)? {
            RowChange::Changed(ticket) => (true, ticket),
            // The change that left the row as it is may still be on its way to the disk. The response confirms it, so
            // it has to wait for the disk.
            RowChange::Unchanged { is_from } => (is_from, self.journal().ticket_for_all_appended()),
        };
        drop(permit);
        self.journal().wait(ticket).await?;
        Ok(is_from)
    }

    async fn sheets(&self, track: &BoardTrack, ids: &[SheetId]) -> Result<Sheets> {
        self.read_sheets(track, ids)
    }

    async fn change_sheet(&self, track: &BoardTrack, id: SheetId, from: Option<&str>, to: &str) -> Result<bool> {
        self.replace_sheet(track, id, (from, to)).await
    }
}
