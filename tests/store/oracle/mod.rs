//! The oracle: the simplest possible store. It stores every counted item, and computes every result from them by the
//! definitions. It has no sums and no ranking, so no derived state can become wrong. It retires at once, because data
//! below the floor is not read. It is slow, and its correctness is obvious.

mod capped;
mod distinct;
mod editions;
mod history;
mod importing;
mod reading;
mod writing;

use std::cmp::Ordering;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use async_trait::async_trait;
use parking_lot::Mutex;
use rolltop::board::{
    Attributes, AttributesChange, AttributesError, Board, BoardName, BoardTrack, Calendar, Counted, EarlierRanks,
    Edition, EventId, Frame, Moderation, ModerationChange, ModerationList, Order, Percentile, RankingKey, Ranks,
    SourceNumber, Subject, Timestamp, Track, Value, Visibility, Window,
};
use rolltop::store::{
    Added, AtScore, AuditCursor, AuditStep, BackedUp, Batch, BytesPerSubject, ClockMode, Compared, ContentsCursor,
    ContentsStep, Defined, Described, Direction, Distribution, DualRun, IdCost, ImportBegun, ImportId, Increment, Keys,
    Lifecycle, Limits, Listing, Lookup, Merged, Moderated, NextTo, Page, PageStart, Passed, Piece, Portion, Ranked,
    Reached, Removal, Result, RetireStep, Rows, SheetId, Sheets, SlotContents, SlotQuery, Standing, Status, Store,
    StoreError, TableName, TextRange, ValuePlace, Values, ValuesStart,
};

use self::distinct::LastSeen;
use self::editions::Dual;
use self::history::Taken;
use self::importing::Imports;

pub struct Oracle {
    mode: ClockMode,
    limits: Limits,
    state: Mutex<State>,
}

struct State {
    now: Timestamp,
    boards: BTreeMap<BoardName, HeldBoard>,
    /// The number of boards created and removed.
    changes: u64,
    tables: HashMap<TableName, Rows>,
}

/// A board, with the past of each of its tracks.
struct HeldBoard {
    board: Arc<Board>,
    /// All tracks of all editions, in the order of the board.
    tracks: Vec<Held>,
    /// The time when each id arrived.
    ids: BTreeMap<(Subject, EventId), Timestamp>,
    imports: Imports,
    moderated: BTreeMap<Subject, Moderation>,
    described: BTreeMap<Subject, Attributes>,
    /// The time of the last call.
    now: Timestamp,
    /// What is known of the two editions, if there are two.
    dual: Option<Dual>,
}

/// A track.
struct Held {
    track: BoardTrack,
    head: Timestamp,
    /// All items ever counted for each subject, in order, including those of expired slots.
    past: BTreeMap<Subject, Vec<Taken>>,
    /// The number of items counted in each slot.
    events: BTreeMap<Timestamp, u64>,
    upheavals: u64,
    sheets: BTreeMap<SheetId, Arc<str>>,
    /// The ranks at the newest boundary.
    noted: Option<Arc<EarlierRanks>>,
    /// The subjects that no ranking has.
    hidden: BTreeMap<Subject, Visibility>,
}

impl Oracle {
    pub fn new(mode: ClockMode) -> Self {
        let now = match mode {
            ClockMode::System => Timestamp::EPOCH,
            ClockMode::Simulated(start) => start,
        };
        let state = State { now, boards: BTreeMap::new(), changes: 0, tables: HashMap::new() };
        Self { mode, limits: Limits::default(), state: Mutex::new(state) }
    }

    /// Runs `answer` on the track after advancing it to now. Also passes the number of slots of the advance.
    fn with<T>(&self, track: &BoardTrack, answer: impl FnOnce(&mut Held, Frame, u64) -> T) -> Result<T> {
        self.with_board(track.board(), |held, now| {
            let held = &mut held.tracks[track.number()];
            let frame = frame_at(&held.track, now);
            let advanced = held.track.calendar().slots_between(held.head, frame.window.head);
            held.head = frame.window.head;
            answer(held, frame, advanced)
        })
    }

    /// Does the same for a read of a ranking or of one subject, which names a key if there are keys.
    fn with_ranking<T>(&self, track: &BoardTrack, answer: impl FnOnce(&mut Held, Frame, u64) -> T) -> Result<T> {
        if track.board().has_keys() && track.key().is_none() {
            return Err(StoreError::Unsupported { detail: "a read of a board with keys that names none".to_owned() });
        }
        self.with(track, answer)
    }

    /// Runs `answer` on the board at now, if it has the editions that the caller knows.
    fn with_board<T>(&self, board: &Board, answer: impl FnOnce(&mut HeldBoard, Timestamp) -> T) -> Result<T> {
        self.with_generation(board, |held, now| match held.board.epoch() == board.epoch() {
            true => Ok(answer(held, now)),
            false => Err(StoreError::StaleEpoch),
        })?
    }

    /// Runs `answer` on the board at now, whichever editions it has.
    fn with_generation<T>(&self, board: &Board, answer: impl FnOnce(&mut HeldBoard, Timestamp) -> T) -> Result<T> {
        let mut state = self.state.lock();
        state.tick(self.mode);
        let now = state.now;
        let held = state.boards.get_mut(board.name()).ok_or(StoreError::BoardChanged)?;
        held.note_ranks(now);
        while let Some(to) = held.board.season_step(now) {
            held.change_editions(&held.board.clone(), to, now)?;
        }
        match held.board.generation() == board.generation() {
            true => Ok(answer(held, now)),
            false => Err(StoreError::BoardChanged),
        }
    }
}

impl HeldBoard {
    fn new(board: Arc<Board>, now: Timestamp) -> HeldBoard {
        HeldBoard {
            tracks: board.each_track().map(|track| Held::new(track, now)).collect(),
            board,
            ids: BTreeMap::new(),
            imports: Imports::default(),
            moderated: BTreeMap::new(),
            described: BTreeMap::new(),
            now,
            dual: None,
        }
    }

    /// Changes what is set for a subject.
    fn moderate(&mut self, subject: &Subject, change: ModerationChange) {
        let after = self.moderated.get(subject).copied().unwrap_or_default().after(change);
        self.moderated.remove(subject);
        if after.is_set() {
            self.moderated.insert(subject.clone(), after);
        }
        let written = self.board.written_tracks().len();
        for (number, held) in self.tracks.iter_mut().enumerate() {
            held.hide(&self.moderated);
            held.upheavals += u64::from(number >= written);
        }
    }

    fn is_frozen(&self, subject: &Subject) -> bool {
        self.moderated.get(subject).is_some_and(|moderation| moderation.is_frozen)
    }

    fn is_hidden(&self, subject: &Subject) -> bool {
        self.moderated.get(subject).is_some_and(|moderation| moderation.visibility.is_hidden())
    }

    /// Removes the data of a subject.
    fn remove_data(&mut self, subject: &Subject, now: Timestamp) -> Result<Removal> {
        if self.imports.is_open() {
            return Err(StoreError::ImportOpen);
        }
        let (frames, kept) = (self.frames(now), self.board.kept_track());
        let live = |number: usize| self.tracks[number].live(&frames[number], subject).len() as u64;
        let of_periods = (0..self.tracks.len()).map(live).sum();
        let removal = Removal {
            frame: frames[0],
            score: self.tracks[0].score(&frames[0], subject),
            live_slots: match self.board.season() {
                Some(_) => of_periods,
                None => live(kept.map_or(0, |track| track.number())),
            },
            retiring_slots: 0,
        };
        for held in &mut self.tracks {
            held.past.remove(subject);
            held.upheavals += 1;
        }
        Ok(removal)
    }

    /// Notes the ranks of the tracks at the newest boundary, if this is the first call after it.
    fn note_ranks(&mut self, now: Timestamp) {
        let before = std::mem::replace(&mut self.now, now);
        for held in &mut self.tracks {
            let (Some((at, _)), Some(noted)) = (held.track.noted_at(now), &held.noted) else { continue };
            if noted.at() < at {
                let frame = frame_at(&held.track, before);
                let is_of_boundary = held.track.head_before(at, now) == Some(frame.window.head);
                let lines = held.ranking(&frame, None).into_iter().map(|line| (line.score, Some(line.subject)));
                let known = || EarlierRanks::of_lines(at, held.track.ranks(), lines);
                held.noted = Some(Arc::new(if is_of_boundary { known() } else { EarlierRanks::unknown(at) }));
            }
        }
    }

    /// Returns the frame of each track.
    fn frames(&self, now: Timestamp) -> Vec<Frame> {
        self.tracks.iter().map(|held| frame_at(&held.track, now)).collect()
    }
}

impl Held {
    fn new(track: BoardTrack, now: Timestamp) -> Held {
        let head = window_at(&track, now).head;
        let (past, events, hidden) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
        let noted = track.noted_at(now).map(|(at, _)| Arc::new(EarlierRanks::unknown(at)));
        Held { head, past, events, upheavals: 0, sheets: BTreeMap::new(), noted, hidden, track }
    }

    fn forget(&mut self, subject: &Subject) {
        let rest = self.noted.as_ref().and_then(|noted| noted.without(subject.as_str()));
        self.noted = rest.map(Arc::new).or(self.noted.take());
    }

    fn hide(&mut self, moderated: &BTreeMap<Subject, Moderation>) {
        let hidden = moderated.iter().filter(|(_, moderation)| moderation.visibility.is_hidden());
        self.hidden = hidden.map(|(subject, moderation)| (subject.clone(), moderation.visibility)).collect();
    }
}

impl State {
    fn table(&mut self, table: TableName) -> &mut Rows {
        self.tables.entry(table).or_insert(Rows { version: 0, rows: BTreeMap::new() })
    }

    fn tick(&mut self, mode: ClockMode) {
        if mode == ClockMode::System {
            let since_epoch = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
            self.now = self.now.max(Timestamp::from_millis(i64::try_from(since_epoch.as_millis()).unwrap()));
        }
    }
}

/// Returns the window by its definition, slot by slot.
fn window_at(track: &BoardTrack, now: Timestamp) -> Window {
    let calendar = track.calendar();
    let head = calendar.slot_of(now);
    let period = track.edition().period().filter(|_| track.is_main());
    let end = period.map_or_else(|| calendar.next(head), |period| period.end);
    Window { floor: walk_back(calendar, head, track.slots()), head, end }
}

/// Returns the number of lines whose score is not worse than this one.
fn not_worse(track: &Track, ranking: &[Ranked], score: Value) -> u64 {
    let is_worse = |line: &&Ranked| match track.order() {
        Order::Desc => line.score < score,
        Order::Asc => line.score > score,
    };
    (ranking.len() - ranking.iter().filter(is_worse).count()) as u64
}

fn frame_at(track: &BoardTrack, now: Timestamp) -> Frame {
    Frame { window: window_at(track, now), as_of: now, retiring: 0 }
}

/// Returns the oldest of this many adjacent slots that end with `newest`.
fn walk_back(calendar: &Calendar, newest: Timestamp, slots: u32) -> Timestamp {
    (1..slots).fold(newest, |slot, _| calendar.previous(slot))
}

#[async_trait]
impl Lifecycle for Oracle {
    fn kind(&self) -> &'static str {
        "oracle"
    }

    fn bytes_per_subject(&self, _: &BoardTrack) -> BytesPerSubject {
        unimplemented!("the oracle is not a store to compare sizes with")
    }

    fn id_cost(&self, _: &Board) -> IdCost {
        unimplemented!("the oracle is not a store to compare sizes with")
    }

    async fn now(&self) -> Result<Timestamp> {
        let mut state = self.state.lock();
        state.tick(self.mode);
        Ok(state.now)
    }

    async fn set_clock(&self, to: Timestamp) -> Result<Timestamp> {
        let mut state = self.state.lock();
        if self.mode == ClockMode::System {
            return Err(StoreError::ClockNotSimulated);
        }
        if to < state.now {
            return Err(StoreError::ClockBackward { now: state.now });
        }
        state.now = to;
        Ok(to)
    }

    async fn check(&self) -> Result<()> {
        Ok(())
    }

    async fn backup(&self) -> Result<BackedUp> {
        Err(StoreError::Unsupported { detail: "the oracle keeps nothing".to_owned() })
    }

    async fn close(&self) -> Result<()> {
        Ok(())
    }
}

#[async_trait]
impl Store for Oracle {
    async fn define(&self, board: Board) -> Result<Defined> {
        let mut state = self.state.lock();
        state.tick(self.mode);
        if let Some(held) = state.boards.get(board.name()) {
            let found = held.board.clone();
            let same = found.definition() == board.definition();
            return Ok(if same { Defined::Unchanged(found) } else { Defined::Conflict(found) });
        }
        state.changes += 1;
        let board = Arc::new(board.with_defined_at(Some(state.now)));
        let held = HeldBoard::new(board.clone(), state.now);
        state.boards.insert(board.name().clone(), held);
        Ok(Defined::Created(board))
    }

    async fn board(&self, name: &BoardName) -> Result<Option<Arc<Board>>> {
        Ok(self.state.lock().boards.get(name).map(|held| held.board.clone()))
    }

    async fn boards(&self) -> Result<Listing> {
        let boards = self.state.lock().boards.values().map(|held| held.board.clone()).collect();
        Ok(Listing { boards, unreadable: Vec::new() })
    }

    async fn boards_version(&self) -> Result<u64> {
        Ok(self.state.lock().changes)
    }

    async fn undefine(&self, board: &Arc<Board>) -> Result<bool> {
        let mut state = self.state.lock();
        match state.boards.get(board.name()) {
            Some(held) if held.board.generation() == board.generation() => {
                if held.board.epoch() != board.epoch() {
                    return Err(StoreError::StaleEpoch);
                }
                state.boards.remove(board.name());
                state.changes += 1;
                Ok(true)
            }
            Some(_) => Err(StoreError::BoardChanged),
            None => Ok(false),
        }
    }

    async fn add(&self, board: &Arc<Board>, batch: Batch) -> Result<Added> {
        let max_skew = self.limits.max_skew;
        self.with_generation(board, |held, now| {
            let present = held.board.clone();
            let is_present = present.epoch() == board.epoch();
            let carried = |item: &Increment| if is_present { item.clone() } else { item.carried(board, &present) };
            let batch = Batch { increments: batch.increments.iter().map(carried).collect(), ..batch };
            // Outcomes are those of the edition that the caller knows as the current one, if it is still there.
            let is_known = |edition: &Edition| edition.id() == board.edition().id();
            // Of periods, the current one.
            let is_known = |edition: &Edition| present.season().is_none() && is_known(edition);
            let answered = present.editions().iter().position(is_known).unwrap_or(0);
            let frame = held.frames(now)[present.editions()[answered].numbers().start];
            Added {
                frame,
                outcomes: held.add(now, max_skew, &batch, answered),
                newer: (!is_present).then_some(present),
            }
        })
    }

    async fn page_from(&self, track: &BoardTrack, start: &PageStart, limit: u32) -> Result<Page> {
        self.with_ranking(track, |held, frame, _| {
            let ranking = held.ranking(&frame, track.key());
            let total = ranking.len();
            let limit = limit as usize;
            let range = match start {
                PageStart::Offset(offset) => {
                    let first = usize::try_from(*offset).unwrap_or(usize::MAX).min(total);
                    first..first.saturating_add(limit).min(total)
                }
                PageStart::Place(NextTo { place, direction, inclusive }) => {
                    let place = (place.score, &place.subject);
                    // Whether a line is on the requested side of the place.
                    let belongs = |line: &&Ranked| match (line.score, &line.subject).cmp(&place) {
                        Ordering::Equal => *inclusive,
                        side => {
                            let is_after = (side == Ordering::Greater) == (track.order() == Order::Asc);
                            is_after == (*direction == Direction::Forward)
                        }
                    };
                    let count = ranking.iter().filter(belongs).count();
                    match direction {
                        Direction::Forward => total - count..(total - count).saturating_add(limit).min(total),
                        Direction::Backward => count.saturating_sub(limit)..count,
                    }
                }
            };
            let first = range.start as u64;
            let items = ranking[range].to_vec();
            let not_worse =
                items.last().filter(|_| track.counts_ties()).map(|last| not_worse(track, &ranking, last.score));
            Page { frame, total: total as u64, first, items: items.into(), not_worse }
        })
    }

    async fn neighbors(&self, track: &BoardTrack, subject: &Subject, radius: u32) -> Result<Page> {
        self.with_ranking(track, |held, frame, _| {
            let ranking = held.ranking(&frame, track.key());
            let total = ranking.len() as u64;
            let radius = radius as usize;
            let (first, items) = match ranking.iter().position(|line| line.subject == *subject) {
                Some(place) => {
                    let first = place.saturating_sub(radius);
                    let last = (place + radius).min(ranking.len() - 1);
                    (first as u64, ranking[first..=last].to_vec())
                }
                None => (0, Vec::new()),
            };
            let not_worse =
                items.last().filter(|_| track.counts_ties()).map(|last| not_worse(track, &ranking, last.score));
            Page { frame, total, first, items: items.into(), not_worse }
        })
    }

    async fn lookup(&self, track: &BoardTrack, subjects: &[Subject], ranks: bool) -> Result<Lookup> {
        self.with_ranking(track, |held, frame, _| {
            let ranking = held.ranking(&frame, track.key());
            let line = |subject: &Subject| ranking.iter().find(|line| line.subject == *subject);
            let score = |subject: &Subject| line(subject).map(|line| line.score);
            let rank = |subject: &Subject| line(subject).filter(|_| ranks).map(|line| line.rank);
            let ties = |subject: &Subject| {
                let line = line(subject).filter(|_| ranks && track.counts_ties())?;
                Some(not_worse(track, &ranking, line.score))
            };
            let not_worse = subjects.iter().map(ties).collect();
            let (scores, ranks) = (subjects.iter().map(score).collect(), subjects.iter().map(rank).collect());
            Lookup { frame, total: ranking.len() as u64, scores, ranks, not_worse }
        })
    }

    async fn standing(&self, track: &BoardTrack, subject: &Subject) -> Result<Standing> {
        self.with_ranking(track, |held, frame, _| {
            let ranking = held.ranking(&frame, track.key());
            let stored = &*track.stored(subject);
            let score = held.score(&frame, stored);
            let is_ordinal = held.track.ranks() == Ranks::Ordinal && held.track.kind().ranks(score);
            let is_better = |line: &&Ranked| match held.track.order() {
                // Of equal scores those with the greater, or the smaller, names are before it.
                Order::Desc if is_ordinal => (Some(line.score), &line.subject) > (score, subject),
                Order::Asc if is_ordinal => (Some(line.score), &line.subject) < (score, subject),
                Order::Desc => Some(line.score) > score,
                Order::Asc => Some(line.score) < score,
            };
            let visibility = match held.track.is_ranked() {
                true => held.hidden.get(stored).copied().unwrap_or_default(),
                false => Visibility::Visible,
            };
            let better = if score.is_some() { ranking.iter().filter(is_better).count() as u64 } else { 0 };
            let rank = match visibility {
                Visibility::Shadowed if held.track.kind().ranks(score) => Some(better + 1),
                Visibility::Shadowed => None,
                _ => ranking.iter().find(|line| line.subject == *subject).map(|line| line.rank),
            };
            let own = score.filter(|_| rank.is_some() && track.counts_ties());
            Standing {
                frame,
                total: ranking.len() as u64,
                score,
                rank,
                not_worse: own.map(|score| not_worse(track, &ranking, score)),
                visibility,
                better: if held.track.is_ranked() { better } else { 0 },
                slots: held.live(&frame, stored).into_iter().collect(),
                capped: held.is_capped(&frame, stored, frame.window.floor),
            }
        })
    }

    async fn earlier_ranks(&self, track: &BoardTrack) -> Result<Option<Arc<EarlierRanks>>> {
        self.with(track, |held, _, _| held.noted.clone().filter(|_| held.track.noted_at(Timestamp::EPOCH).is_some()))
    }

    async fn distribution(
        &self,
        track: &BoardTrack,
        percentiles: &[Percentile],
        scores: &[Value],
    ) -> Result<Distribution> {
        self.with_ranking(track, |held, frame, _| {
            let ranking = held.ranking(&frame, track.key());
            let total = ranking.len() as u64;
            let is_better = |one: Value, other: Value| match held.track.order() {
                Order::Desc => one > other,
                Order::Asc => one < other,
            };
            let better = |score: Value| ranking.iter().filter(|line| is_better(line.score, score)).count() as u64;
            // The worst score of which the percentile is at least this one.
            let at = |percentile: &Percentile| {
                let has = |line: &&Ranked| {
                    let not_better = u128::from(total - better(line.score));
                    not_better * 100_000 >= u128::from(total) * u128::from(percentile.thousandths())
                };
                ranking.iter().rev().find(has).map(|line| line.score)
            };
            let around = |score: &Value| AtScore {
                better: better(*score),
                equal: ranking.iter().filter(|line| line.score == *score).count() as u64,
            };
            let (percentiles, scores) = (percentiles.iter().map(at).collect(), scores.iter().map(around).collect());
            Distribution { frame, total, percentiles, scores }
        })
    }

    async fn add_all(&self, batches: Vec<(Arc<Board>, Batch)>) -> Vec<Result<Added>> {
        let mut answers = Vec::with_capacity(batches.len());
        for (board, batch) in batches {
            answers.push(self.add(&board, batch).await);
        }
        answers
    }

    /// The oracle knows no sources: portions are tested against what batches count.
    async fn pass(&self, portions: Vec<(Arc<Board>, Portion)>) -> Vec<Result<Passed>> {
        let refused = |_| Err(StoreError::Unsupported { detail: "the oracle knows no sources".to_owned() });
        portions.into_iter().map(refused).collect()
    }

    async fn reached(&self, _: &Arc<Board>, _: SourceNumber) -> Result<Option<Reached>> {
        Ok(None)
    }

    async fn read(&self, queries: Vec<SlotQuery>) -> Vec<Result<SlotContents>> {
        queries.iter().map(|query| self.with_ranking(&query.track, |held, frame, _| held.read(frame, query))?).collect()
    }

    async fn values_from(
        &self,
        track: &BoardTrack,
        subject: &Subject,
        start: &ValuesStart,
        limit: u32,
    ) -> Result<Values> {
        self.with_ranking(track, |held, frame, _| {
            let floor = frame.window.floor;
            let all = LastSeen::after(&held.track, held.past(&track.stored(subject)), floor).newest_first();
            let total = all.len() as u64;
            let is_before = |(value, seen): &&(Counted, Timestamp), place: &ValuePlace| {
                (*seen, value.as_str()) >= (place.last_seen, place.value.as_str())
            };
            let first = match start {
                ValuesStart::Offset(offset) => total.min(*offset),
                ValuesStart::After(place) => all.iter().filter(|item| is_before(item, place)).count() as u64,
            };
            let items = all.into_iter().skip(first as usize).take(limit as usize).collect();
            Values { frame, total, first, items, capped: held.is_capped(&frame, &track.stored(subject), floor) }
        })
    }

    async fn replace(&self, board: &Arc<Board>, increment: Increment) -> Result<Added> {
        let removed = self.with_board(board, |held, now| match held.is_frozen(&increment.subject) {
            true => Ok(()),
            false => held.remove_data(&increment.subject, now).map(drop),
        });
        match removed {
            Err(StoreError::StaleEpoch) => {
                let newer = self.board(board.name()).await?.ok_or(StoreError::BoardChanged)?;
                let carried = increment.carried(board, &newer);
                let added = self.replace(&newer, carried).await?;
                return Ok(Added { newer: Some(added.newer.unwrap_or(newer)), ..added });
            }
            removed => removed??,
        }
        self.add(board, Batch { increments: vec![increment], return_scores: true }).await
    }

    async fn remove(&self, board: &Arc<Board>, subject: &Subject) -> Result<Removal> {
        self.with_board(board, |held, now| {
            let removal = held.remove_data(subject, now)?;
            held.tracks.iter_mut().for_each(|held| held.forget(subject));
            held.moderate(subject, ModerationChange::Clear);
            held.described.remove(subject);
            Ok(removal)
        })?
    }

    async fn moderate(&self, board: &Arc<Board>, changes: &[(Subject, ModerationChange)]) -> Result<()> {
        self.with_board(board, |held, _| {
            changes.iter().for_each(|(subject, change)| held.moderate(subject, *change));
        })
    }

    async fn moderated(
        &self,
        board: &Arc<Board>,
        list: ModerationList,
        range: TextRange<'_>,
        limit: u32,
    ) -> Result<Moderated> {
        self.with_board(board, |held, _| {
            let all: Vec<(Subject, Moderation)> = held
                .moderated
                .iter()
                .filter(|(_, moderation)| moderation.is_in(list))
                .map(|(subject, moderation)| (subject.clone(), *moderation))
                .collect();
            let total = all.len() as u64;
            let is_in_range = |subject: &Subject| {
                subject.as_str().starts_with(range.prefix) && range.after.is_none_or(|after| subject.as_str() > after)
            };
            let items = all.into_iter().filter(|(subject, _)| is_in_range(subject)).take(limit as usize).collect();
            Moderated { total, items }
        })
    }

    async fn set_attributes(
        &self,
        board: &Arc<Board>,
        changes: &[(Subject, AttributesChange)],
    ) -> Result<Vec<Result<(), AttributesError>>> {
        self.with_board(board, |held, _| {
            let set = |(subject, change): &(Subject, AttributesChange)| {
                let after = held.described.get(subject).cloned().unwrap_or_default().after(change)?;
                held.described.remove(subject);
                if !after.is_empty() {
                    held.described.insert(subject.clone(), after);
                }
                Ok(())
            };
            changes.iter().map(set).collect()
        })
    }

    async fn attributes(&self, board: &Arc<Board>, subjects: &[Subject]) -> Result<Vec<Attributes>> {
        self.with_board(board, |held, _| {
            subjects.iter().map(|subject| held.described.get(subject).cloned().unwrap_or_default()).collect()
        })
    }

    async fn described(&self, board: &Arc<Board>, range: TextRange<'_>, limit: u32) -> Result<Described> {
        self.with_board(board, |held, _| {
            let is_in_range = |subject: &Subject| {
                subject.as_str().starts_with(range.prefix) && range.after.is_none_or(|after| subject.as_str() > after)
            };
            let all = held.described.iter().filter(|(subject, _)| is_in_range(subject)).take(limit as usize);
            let items = all.map(|(subject, attributes)| (subject.clone(), attributes.clone())).collect();
            Described { total: held.described.len() as u64, items }
        })
    }

    async fn keys(&self, track: &BoardTrack, range: TextRange<'_>, limit: u32) -> Result<Keys> {
        self.with(track, |held, frame, _| {
            let keys = held.keys(&frame);
            let total = keys.len() as u64;
            let is_after = |key: &RankingKey| {
                key.as_str().starts_with(range.prefix) && range.after.is_none_or(|after| key.as_str() > after)
            };
            Keys { frame, total, keys: keys.into_iter().filter(is_after).take(limit as usize).collect() }
        })
    }

    async fn status(&self, track: &BoardTrack) -> Result<Status> {
        self.with(track, |held, frame, _| {
            let mut slots: BTreeMap<Timestamp, u64> = BTreeMap::new();
            for subject in held.past.keys().filter(|_| held.track.is_ranked()) {
                for slot in held.live(&frame, subject).into_keys() {
                    *slots.entry(slot).or_default() += 1;
                }
            }
            let total = Some(held.ranking(&frame, None).len() as u64);
            let keys = track.most_keys().map(|_| held.keys(&frame).len() as u64);
            let events = held.events.range(frame.window.floor..).map(|(slot, items)| (*slot, *items)).collect();
            let (slots, upheavals) = (slots.into_iter().collect(), held.upheavals);
            Status { frame, total, keys, slots, retiring: Vec::new(), events, upheavals }
        })
    }

    async fn retire_step(&self, track: &BoardTrack) -> Result<RetireStep> {
        self.with(track, |_, frame, slots_advanced| RetireStep {
            frame,
            slots_advanced,
            slots_retired: 0,
            subjects_touched: 0,
            subjects_removed: 0,
            done: true,
            skipped: false,
            worked: std::time::Duration::ZERO,
        })
    }

    async fn audit_step(&self, track: &BoardTrack, _cursor: AuditCursor, _repair: bool) -> Result<AuditStep> {
        self.with(track, |held, frame, _| {
            let has_score = |subject: &&Subject| held.track.kind().ranks(held.score(&frame, subject));
            let checked = held.past.keys().filter(|_| held.track.is_ranked()).filter(has_score).count() as u64;
            AuditStep { frame, checked, differences: Vec::new(), repaired: 0, missing_slots: 0, next: None }
        })
    }

    async fn contents_step(&self, track: &BoardTrack, _cursor: ContentsCursor) -> Result<ContentsStep> {
        self.with(track, |held, frame, _| ContentsStep { frame, contents: held.contents(&frame), next: None })
    }

    async fn begin_import(&self, board: &Arc<Board>, import: ImportId) -> Result<ImportBegun> {
        self.with_board(board, |held, _| held.begin_import(import))?
    }

    async fn merge(&self, track: &BoardTrack, import: ImportId, piece: &Piece) -> Result<Merged> {
        self.with_board(track.board(), |held, now| held.merge_piece(track.number(), now, import, piece))?
    }

    async fn end_import(&self, board: &Arc<Board>, import: ImportId) -> Result<bool> {
        self.with_board(board, |held, _| held.end_import(import))
    }

    async fn change_editions(&self, from: &Arc<Board>, to: Board) -> Result<Arc<Board>> {
        let changed = self.with_generation(from, |held, now| held.change_editions(from, to, now))?;
        if changed.is_ok() && from.season().is_none() {
            self.state.lock().changes += 1;
        }
        changed
    }

    async fn dual_run(&self, board: &Arc<Board>) -> Result<DualRun> {
        self.with_board(board, |held, _| held.dual_run())?
    }

    async fn fill(&self, from: &BoardTrack, to: &BoardTrack, cells: &[(Subject, Timestamp)]) -> Result<()> {
        let numbers = [from.number(), to.number()];
        self.with_board(from.board(), |held, now| {
            cells.iter().for_each(|(subject, slot)| held.fill(numbers, subject, *slot, now));
        })
    }

    async fn end_fill(&self, board: &Arc<Board>, tracks: &[(usize, usize)]) -> Result<()> {
        self.with_board(board, |held, now| held.end_fill(tracks, now))
    }

    async fn compare(&self, tracks: [&BoardTrack; 2], subjects: &[Subject]) -> Result<Compared> {
        self.with_board(tracks[0].board(), |held, now| held.compare(tracks.map(BoardTrack::number), subjects, now))
    }

    async fn sheets(&self, track: &BoardTrack, ids: &[SheetId]) -> Result<Sheets> {
        self.with(track, |held, frame, _| Sheets {
            frame,
            texts: ids.iter().map(|id| held.sheets.get(id).cloned()).collect(),
        })
    }

    async fn change_sheet(&self, track: &BoardTrack, id: SheetId, from: Option<&str>, to: &str) -> Result<bool> {
        self.with(track, |held, _, _| {
            let is_from = held.sheets.get(&id).map(|text| &**text) == from;
            if is_from {
                held.sheets.insert(id, to.into());
            }
            is_from
        })
    }

    async fn rows(&self, table: TableName, known: Option<u64>) -> Result<Option<Rows>> {
        let mut state = self.state.lock();
        let rows = state.table(table);
        Ok((known != Some(rows.version)).then(|| rows.clone()))
    }

    async fn change_row(&self, table: TableName, id: &str, from: Option<&str>, to: Option<&str>) -> Result<bool> {
        table.check(id, from, to)?;
        let mut state = self.state.lock();
        let Rows { version, rows } = state.table(table);
        if rows.get(id).map(String::as_str) != from {
            return Ok(false);
        }
        if from == to {
            return Ok(true);
        }
        let size = |text: Option<&str>| text.map_or(0, |text| id.len() + text.len());
        let others: usize = rows.iter().filter(|(other, _)| *other != id).map(|(id, text)| id.len() + text.len()).sum();
        let has_too_many = from.is_none() && rows.len() == TableName::MAX_ROWS;
        if has_too_many || size(to) > size(from) && others + size(to) > TableName::MAX_BYTES {
            return Err(StoreError::TableFull { table });
        }
        match to {
            Some(to) => rows.insert(id.to_owned(), to.to_owned()),
            None => rows.remove(id),
        };
        *version += 1;
        Ok(true)
    }
}
