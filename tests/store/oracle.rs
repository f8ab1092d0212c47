//! The plainest store there could be: every answer is computed from what was counted, by the definitions, each
//! time it is asked for. It keeps no ranking, so nothing in it can drift; it retires at once, because what is
//! below the floor is simply not looked at. Slow, and obviously right.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use async_trait::async_trait;
use parking_lot::Mutex;
use rolltop::board::{
    Amount, Board, BoardName, Change, Definition, EventId, Frame, Generation, Order, Subject, Tally, Timestamp, Value,
    Window,
};
use rolltop::store::{
    Added, Ask, AuditCursor, AuditStep, Batch, ClockMode, Defined, Increment, Limits, Lookup, Outcome, Page, Ranked,
    Reach, Reading, Rejection, Removal, Result, RetireStep, Standing, Status, Store, StoreError, Values,
};

pub struct Oracle {
    mode: ClockMode,
    limits: Limits,
    state: Mutex<State>,
}

struct State {
    now: Timestamp,
    boards: BTreeMap<BoardName, Held>,
    generations: u64,
}

struct Held {
    board: Arc<Board>,
    head: Timestamp,
    /// All that was ever counted, expired slots included.
    amounts: BTreeMap<(Timestamp, Subject), i128>,
    /// When each id arrived.
    ids: BTreeMap<(Subject, EventId), Timestamp>,
}

impl Oracle {
    pub fn new(mode: ClockMode) -> Self {
        let now = match mode {
            ClockMode::System => Timestamp::EPOCH,
            ClockMode::Simulated(start) => start,
        };
        let state = State { now, boards: BTreeMap::new(), generations: 0 };
        Self { mode, limits: Limits::default(), state: Mutex::new(state) }
    }

    /// Runs `answer` on the board, advanced to now; tells it how many slots that was.
    fn with<T>(&self, board: &Board, answer: impl FnOnce(&mut Held, Frame, u64) -> T) -> Result<T> {
        let mut state = self.state.lock();
        state.tick(self.mode);
        let now = state.now;
        let held = state.boards.get_mut(board.name()).ok_or(StoreError::BoardChanged)?;
        if held.board.generation() != board.generation() {
            return Err(StoreError::BoardChanged);
        }
        let window = window_at(&held.board, now);
        let advanced = held.board.calendar().slots_between(held.head, window.head);
        held.head = window.head;
        Ok(answer(held, Frame { window, as_of: now, retiring: 0 }, advanced))
    }

    fn read_one(&self, board: &Board, subject: &Subject, reach: Reach) -> Result<Reading> {
        self.with(board, |held, mut frame, _| {
            let floor = frame.window.floor;
            let calendar = held.board.calendar();
            let mut starts = vec![frame.window.head];
            while starts[starts.len() - 1] > floor {
                starts.push(calendar.previous(starts[starts.len() - 1]));
            }
            let slots = match reach {
                Reach::Slots(slots) if slots > held.board.slots() => return Err(StoreError::BeyondWindow { floor }),
                // Near the epoch a window has fewer slots than its board.
                Reach::Slots(slots) => starts.len().min(slots as usize),
                Reach::From(from) if from < floor => return Err(StoreError::BeyondWindow { floor }),
                Reach::From(from) => {
                    let first = calendar.slot_of(from.min(frame.as_of));
                    starts.iter().filter(|start| **start >= first).count()
                }
            };
            let counted: BTreeSet<Timestamp> = starts.into_iter().take(slots).collect();
            frame.window.floor = counted.first().copied().unwrap_or(frame.window.end);
            let own = counted.iter().map(|slot| (*slot, held.slot_amount(*slot, subject)));
            let tallies =
                own.filter(|(_, units)| *units != 0).map(|(slot, units)| (slot, Tally::Sum(whole(units)))).collect();
            Ok(Reading { frame, slots: slots as u32, tallies, capped: false })
        })?
    }
}

impl State {
    fn tick(&mut self, mode: ClockMode) {
        if mode == ClockMode::System {
            let since_epoch = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
            self.now = self.now.max(Timestamp::from_millis(i64::try_from(since_epoch.as_millis()).unwrap()));
        }
    }
}

/// The definition of a window, walked slot by slot.
fn window_at(board: &Board, now: Timestamp) -> Window {
    let calendar = board.calendar();
    let head = calendar.slot_of(now);
    let mut floor = head;
    for _ in 1..board.slots() {
        floor = calendar.previous(floor);
    }
    Window { floor, head, end: calendar.next(head) }
}

impl Held {
    fn slot_amount(&self, slot: Timestamp, subject: &Subject) -> i128 {
        self.amounts.get(&(slot, subject.clone())).copied().unwrap_or(0)
    }

    /// What every subject holds in every slot of the window; nothing that is 0.
    fn live(&self, window: &Window) -> Vec<(Timestamp, &Subject, i128)> {
        let live = self.amounts.iter().filter(|((slot, _), amount)| *slot >= window.floor && **amount != 0);
        live.map(|((slot, subject), amount)| (*slot, subject, *amount)).collect()
    }

    fn score(&self, window: &Window, subject: &Subject) -> i128 {
        self.live(window).iter().filter(|(_, who, _)| *who == subject).map(|(_, _, amount)| amount).sum()
    }

    fn ranking(&self, window: &Window) -> Vec<Ranked> {
        let mut scores: BTreeMap<&Subject, i128> = BTreeMap::new();
        for (_, subject, amount) in self.live(window) {
            *scores.entry(subject).or_default() += amount;
        }
        let mut lines: Vec<(i128, &Subject)> = scores.into_iter().map(|(subject, score)| (score, subject)).collect();
        lines.retain(|(score, _)| *score != 0);
        match self.board.order() {
            Order::Desc => lines.sort_by_key(|line| Reverse(*line)),
            Order::Asc => lines.sort(),
        }
        let mut ranking: Vec<Ranked> = Vec::with_capacity(lines.len());
        for (place, (score, subject)) in lines.into_iter().enumerate() {
            let rank = match ranking.last() {
                Some(before) if before.score == amount(score) => before.rank,
                _ => place as u64 + 1,
            };
            ranking.push(Ranked { rank, subject: subject.clone(), score: amount(score) });
        }
        ranking
    }

    /// Whether the slot takes so much more; it is as it was if not.
    fn take(&mut self, slot: Timestamp, subject: &Subject, amount: i128) -> bool {
        let sum = self.slot_amount(slot, subject) + amount;
        let fits = sum.abs() <= i128::from(self.board.slot_bound().0);
        if fits {
            self.amounts.insert((slot, subject.clone()), sum);
        }
        fits
    }

    fn add(&mut self, frame: &Frame, max_skew: i64, batch: &Batch) -> Vec<Outcome> {
        let mut outcomes = vec![None; batch.increments.len()];
        for (index, first) in batch.increments.iter().enumerate() {
            if outcomes[index].is_some() {
                continue; // added up with an earlier one
            }
            let slot = match self.slot_for(frame, max_skew, first) {
                Ok(slot) => slot,
                Err(rejection) => {
                    outcomes[index] = Some(Outcome::Rejected(rejection));
                    continue;
                }
            };
            if let Some(id) = &first.id {
                outcomes[index] = Some(self.take_with_id(frame.as_of, slot, first, id));
                continue;
            }
            let alike = |(_, other): &(usize, &Increment)| {
                other.id.is_none()
                    && other.subject == first.subject
                    && self.slot_for(frame, max_skew, other) == Ok(slot)
            };
            let together: Vec<(usize, &Increment)> =
                batch.increments.iter().enumerate().skip(index).filter(alike).collect();
            let sum: i128 = together.iter().map(|(_, item)| units(item)).sum();
            let all = self.take(slot, &first.subject, sum);
            for (place, item) in together {
                let counted = all || self.take(slot, &item.subject, units(item));
                outcomes[place] = Some(counted_or_refused(counted));
            }
        }
        let mut outcomes: Vec<Outcome> = outcomes.into_iter().flatten().collect();
        if batch.return_scores {
            for (outcome, item) in outcomes.iter_mut().zip(&batch.increments) {
                if let Outcome::Counted { score } | Outcome::Duplicate { score } = outcome {
                    *score = Some(amount(self.score(&frame.window, &item.subject)));
                }
            }
        }
        outcomes
    }

    fn slot_for(&self, frame: &Frame, max_skew: i64, item: &Increment) -> Result<Timestamp, Rejection> {
        let at = item.at.unwrap_or(frame.as_of);
        if at < frame.window.floor {
            Err(Rejection::TooLate)
        } else if at.millis() > frame.as_of.millis() + max_skew {
            Err(Rejection::TooEarly)
        } else {
            Ok(self.board.calendar().slot_of(at.min(frame.as_of)))
        }
    }

    fn take_with_id(&mut self, now: Timestamp, slot: Timestamp, item: &Increment, id: &EventId) -> Outcome {
        let key = (item.subject.clone(), id.clone());
        let horizon = self.board.dedupe_horizon();
        if self.ids.get(&key).is_some_and(|arrived| now.millis() < arrived.millis() + horizon) {
            return Outcome::Duplicate { score: None };
        }
        let counted = self.take(slot, &item.subject, units(item));
        if counted {
            self.ids.insert(key, now);
        }
        counted_or_refused(counted)
    }
}

fn counted_or_refused(counted: bool) -> Outcome {
    if counted { Outcome::Counted { score: None } } else { Outcome::Rejected(Rejection::OutOfRange) }
}

fn units(item: &Increment) -> i128 {
    match item.change {
        Change::Amount(amount) => i128::from(amount.0),
        _ => panic!("{item:?} is not an amount"),
    }
}

fn amount(units: i128) -> Value {
    Value::Exact(whole(units))
}

fn whole(units: i128) -> Amount {
    Amount(i64::try_from(units).expect("the slot bound keeps every sum within 2^53"))
}

#[async_trait]
impl Store for Oracle {
    fn kind(&self) -> &'static str {
        "oracle"
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

    async fn define(&self, name: &BoardName, definition: &Definition) -> Result<Defined> {
        let mut state = self.state.lock();
        state.tick(self.mode);
        if let Some(held) = state.boards.get(name) {
            let same = held.board.definition() == definition;
            let board = held.board.clone();
            return Ok(if same { Defined::Unchanged(board) } else { Defined::Conflict(board) });
        }
        state.generations += 1;
        let board = Board::new(name.clone(), Generation(state.generations), definition.clone())
            .map_err(|error| StoreError::Setup { detail: error.to_string() })?;
        let board = Arc::new(board);
        let head = window_at(&board, state.now).head;
        let held = Held { board: board.clone(), head, amounts: BTreeMap::new(), ids: BTreeMap::new() };
        state.boards.insert(name.clone(), held);
        Ok(Defined::Created(board))
    }

    async fn board(&self, name: &BoardName) -> Result<Option<Arc<Board>>> {
        Ok(self.state.lock().boards.get(name).map(|held| held.board.clone()))
    }

    async fn boards(&self) -> Result<Vec<Arc<Board>>> {
        Ok(self.state.lock().boards.values().map(|held| held.board.clone()).collect())
    }

    async fn undefine(&self, board: &Arc<Board>) -> Result<bool> {
        let mut state = self.state.lock();
        match state.boards.get(board.name()) {
            Some(held) if held.board.generation() == board.generation() => {
                state.boards.remove(board.name());
                Ok(true)
            }
            Some(_) => Err(StoreError::BoardChanged),
            None => Ok(false),
        }
    }

    async fn add(&self, board: &Arc<Board>, batch: Batch) -> Result<Added> {
        let max_skew = self.limits.max_skew;
        self.with(board, |held, frame, _| Added { frame, outcomes: held.add(&frame, max_skew, &batch) })
    }

    async fn page(&self, board: &Arc<Board>, offset: u64, limit: u32) -> Result<Page> {
        self.with(board, |held, frame, _| {
            let ranking = held.ranking(&frame.window);
            let total = ranking.len() as u64;
            let skipped = usize::try_from(offset).unwrap_or(usize::MAX);
            Page { frame, total, items: ranking.into_iter().skip(skipped).take(limit as usize).collect() }
        })
    }

    async fn neighbors(&self, board: &Arc<Board>, subject: &Subject, radius: u32) -> Result<Page> {
        self.with(board, |held, frame, _| {
            let ranking = held.ranking(&frame.window);
            let total = ranking.len() as u64;
            let radius = radius as usize;
            let items = match ranking.iter().position(|line| line.subject == *subject) {
                Some(place) => {
                    let last = (place + radius).min(ranking.len() - 1);
                    ranking[place.saturating_sub(radius)..=last].to_vec()
                }
                None => Vec::new(),
            };
            Page { frame, total, items }
        })
    }

    async fn lookup(&self, board: &Arc<Board>, subjects: &[Subject]) -> Result<Lookup> {
        self.with(board, |held, frame, _| {
            let ranking = held.ranking(&frame.window);
            let score = |subject: &Subject| ranking.iter().find(|line| line.subject == *subject).map(|line| line.score);
            Lookup { frame, total: ranking.len() as u64, scores: subjects.iter().map(score).collect() }
        })
    }

    async fn standing(&self, board: &Arc<Board>, subject: &Subject) -> Result<Standing> {
        self.with(board, |held, frame, _| {
            let ranking = held.ranking(&frame.window);
            let score = amount(held.score(&frame.window, subject));
            let better = ranking.iter().filter(|line| match held.board.order() {
                Order::Desc => line.score > score,
                Order::Asc => line.score < score,
            });
            let live = held.live(&frame.window);
            let own = live.iter().filter(|(_, who, _)| *who == subject);
            Standing {
                frame,
                total: ranking.len() as u64,
                score: Some(score),
                rank: ranking.iter().find(|line| line.subject == *subject).map(|line| line.rank),
                better: better.count() as u64,
                slots: own.map(|(slot, _, units)| (*slot, Tally::Sum(whole(*units)))).collect(),
                capped: false,
            }
        })
    }

    async fn add_all(&self, batches: Vec<(Arc<Board>, Batch)>) -> Vec<Result<Added>> {
        let mut answers = Vec::new();
        for (board, batch) in batches {
            answers.push(self.add(&board, batch).await);
        }
        answers
    }

    async fn values(&self, _: &Arc<Board>, _: &Subject, _: u64, _: u32) -> Result<Values> {
        Err(StoreError::BoardChanged)
    }

    async fn read(&self, asks: Vec<Ask>) -> Vec<Result<Reading>> {
        asks.into_iter().map(|ask| self.read_one(&ask.board, &ask.subject, ask.reach)).collect()
    }

    async fn remove(&self, board: &Arc<Board>, subject: &Subject) -> Result<Removal> {
        self.with(board, |held, frame, _| {
            let score = amount(held.score(&frame.window, subject));
            let live_slots = held.live(&frame.window).iter().filter(|(_, who, _)| *who == subject).count() as u64;
            held.amounts.retain(|(_, who), _| who != subject);
            Removal { frame, score: Some(score), live_slots, retiring_slots: 0 }
        })
    }

    async fn status(&self, board: &Arc<Board>) -> Result<Status> {
        self.with(board, |held, frame, _| {
            let mut slots: BTreeMap<Timestamp, u64> = BTreeMap::new();
            for (slot, _, _) in held.live(&frame.window) {
                *slots.entry(slot).or_default() += 1;
            }
            let total = held.ranking(&frame.window).len() as u64;
            Status { frame, total, slots: slots.into_iter().collect(), retiring: Vec::new() }
        })
    }

    async fn retire_step(&self, board: &Arc<Board>) -> Result<RetireStep> {
        self.with(board, |_, frame, slots_advanced| RetireStep {
            frame,
            slots_advanced,
            slots_retired: 0,
            subjects_touched: 0,
            subjects_removed: 0,
            done: true,
            skipped: false,
        })
    }

    async fn audit_step(&self, board: &Arc<Board>, _cursor: AuditCursor, _repair: bool) -> Result<AuditStep> {
        self.with(board, |held, frame, _| {
            let checked = held.ranking(&frame.window).len() as u64;
            AuditStep { frame, checked, differences: Vec::new(), repaired: 0, next: None }
        })
    }

    async fn check(&self) -> Result<()> {
        Ok(())
    }

    async fn close(&self) -> Result<()> {
        Ok(())
    }
}
