//! One store in the model test: its instances, its boards, and the execution of each operation on it.

use std::sync::Arc;

use rolltop::board::{
    Amount, AttributesChange, Board, BoardName, BoardTrack, Definition, Kind, ModerationList, Percentile, Timestamp,
    Value,
};
use rolltop::store::{
    Batch, ClockMode, Defined, Direction, NextTo, PageStart, Place, SlotQuery, SlotRange, Store, StoreError, TableName,
    TextRange,
};

use super::editions::comparable;
use super::passing;
use super::seen::{Seen, seen};
use super::sequence::{
    Act, By, Item, Leap, Look, Question, SUBJECTS, Size, Span, Step, When, crowd, flood, of_key, stored_who, who,
    window_of,
};
use serde_json::value::RawValue;

use crate::given::{counting_ties, name, new_board};
use crate::site::{Home, audit_through, retire_through};

pub struct Side {
    pub instances: Vec<Arc<dyn Store>>,
    /// The data of the store. It is declared after the instances, so that they are dropped first: dropping it deletes
    /// the data.
    home: Home,
    pub boards: Vec<Arc<Board>>,
    /// The board handles from before the last redefinition.
    stale: Vec<Option<Arc<Board>>>,
    /// The handles of each board from before changes of its editions.
    pub(super) earlier: Vec<Vec<Arc<Board>>>,
    clock: ClockMode,
}

pub type Outcome<T> = Result<T, String>;

impl Side {
    pub async fn open(home: Home, start: Timestamp, definitions: &[Definition]) -> Outcome<Side> {
        let clock = ClockMode::Simulated(start);
        let instances = home.instances(clock).await;
        let mut boards = Vec::new();
        for (nth, definition) in definitions.iter().enumerate() {
            boards.push(define(&instances[0], &board_name(nth), definition).await?);
        }
        let (stale, earlier) = (vec![None; boards.len()], vec![Vec::new(); boards.len()]);
        Ok(Side { home, instances, boards, stale, earlier, clock })
    }

    pub fn name(&self) -> String {
        self.home.name().to_owned()
    }

    /// Runs one step and returns its results.
    pub async fn run(&mut self, step: &Step) -> Outcome<Vec<Seen>> {
        match step {
            Step::Add { board, items, scores, through } => Ok(vec![self.add(*board, items, *scores, *through).await?]),
            Step::Crowd { board, first, at, through } => {
                Ok(vec![self.add(*board, &crowd(*first, *at), true, *through).await?])
            }
            Step::Flood { board, who, values, at, through } => {
                Ok(vec![self.add(*board, &flood(*who, *values, *at), false, *through).await?])
            }
            Step::AddAll { batches, through } => self.add_all(batches, *through).await,
            Step::Clock(leap) => Ok(vec![self.leap(*leap).await?]),
            Step::Retire { board, window, steps, through } => {
                self.retire(&self.window(*board, *window), *steps, *through).await
            }
            Step::RetireTogether { board, window, items } => self.retire_together(*board, *window, items).await,
            Step::Remove { board, who: nth, through } => {
                let store = self.instance(*through);
                Ok(vec![seen(
                    &*store,
                    store.remove(&self.boards[*board], &stored_who(&self.boards[*board], *nth)).await,
                )?])
            }
            Step::Moderate { board, who: nth, change, through } => {
                let (store, board) = (self.instance(*through), &self.boards[*board]);
                let changes = [(stored_who(board, *nth), *change)];
                Ok(vec![seen(&*store, store.moderate(board, &changes).await)?])
            }
            Step::Describe { board, who: nth, attributes, replaces, through } => {
                let (store, board) = (self.instance(*through), &self.boards[*board]);
                let object = RawValue::from_string(attributes.clone()).unwrap();
                let change = if *replaces { AttributesChange::replacing } else { AttributesChange::merging };
                // Some of the drawn ones are too long, whatever the subject has.
                let Ok(change) = change(&object) else { return Ok(Vec::new()) };
                let changes = [(stored_who(board, *nth), change)];
                Ok(vec![seen(&*store, store.set_attributes(board, &changes).await)?])
            }
            Step::Redefine { board, definition, through } => self.redefine(*board, definition, *through).await,
            Step::Stale { board, through } => self.use_stale(*board, *through).await,
            Step::Attach { board, definition, same, through } => self.attach(*board, definition, *same, *through).await,
            Step::Exchange { board, through } => self.exchange(*board, *through).await,
            Step::Detach { board, through } => self.detach(*board, *through).await,
            Step::Close { board, through } => self.close_period(*board, *through).await,
            Step::Pack { board, through } => self.pack(*board, *through).await,
            Step::Fill { board, from, to, end, through } => self.fill(*board, [*from, *to], *end, *through).await,
            Step::Behind { board, changes, items, through } => {
                self.use_earlier(*board, *changes, items, *through).await
            }
            Step::Audit { board } => self.audit(*board).await,
            Step::Reopen { close, through } => self.reopen(*close, *through).await,
            Step::Look { board, window, at, through } => {
                Ok(vec![self.look(&self.window(*board, *window), *at, *through).await?])
            }
            Step::SlotQuery { questions, through } => self.ask(questions, *through).await,
            Step::Walk { board, window } => Ok(vec![self.walk(&self.window(*board, *window)).await?]),
            Step::Import(import) => self.import(import).await,
            Step::ChangeRow { table, id, to, wrong, through } => {
                self.change_row(*table, *id, *to, *wrong, *through).await
            }
            Step::Rows { table, through } => Ok(vec![self.rows(*table, *through).await?]),
            Step::Check { board } => self.check(*board).await,
        }
    }

    pub fn instance(&self, nth: usize) -> Arc<dyn Store> {
        self.instances[nth % self.instances.len()].clone()
    }

    fn window(&self, board: usize, window: usize) -> BoardTrack {
        window_of(&self.boards[board], window)
    }

    pub(super) async fn now(&self) -> Outcome<Timestamp> {
        self.instances[0].now().await.map_err(|error| format!("{error:?}"))
    }

    pub(super) async fn batch(&self, board: &Arc<Board>, items: &[Item], return_scores: bool) -> Outcome<Batch> {
        let now = self.now().await?;
        Ok(Batch { increments: items.iter().map(|item| item.resolve(board, now)).collect(), return_scores })
    }

    async fn add(&self, board: usize, items: &[Item], scores: bool, through: usize) -> Outcome<Seen> {
        let (store, board) = (self.instance(through), &self.boards[board]);
        let batch = self.batch(board, items, scores).await?;
        let sent = batch.increments.clone();
        // The oracle knows no sources. Each third batch goes to the other stores as a source, and counts the same.
        let is_source = !scores && !matches!(self.home, Home::Oracle) && (items.len() + through).is_multiple_of(3);
        let added = if is_source { passing::add(&*store, board, batch).await } else { store.add(board, batch).await };
        comparable(&*store, board, board, &sent, added)
    }

    async fn add_all(&self, batches: &[(usize, Vec<Item>)], through: usize) -> Outcome<Vec<Seen>> {
        let store = self.instance(through);
        let mut sent = Vec::new();
        for (board, items) in batches {
            sent.push((self.boards[*board].clone(), self.batch(&self.boards[*board], items, true).await?));
        }
        let added = store.add_all(sent.clone()).await;
        if added.len() != batches.len() {
            return Err(format!("{} answers to {} batches", added.len(), batches.len()));
        }
        let of_board = |((board, batch), added): ((Arc<Board>, Batch), _)| {
            comparable(&*store, &board, &board, &batch.increments, added)
        };
        sent.into_iter().zip(added).map(of_board).collect()
    }

    pub async fn leap(&mut self, leap: Leap) -> Outcome<Seen> {
        let to = leap.resolve(&self.boards, self.now().await?);
        let leapt = seen(&*self.instances[0], self.instances[0].set_clock(to).await);
        self.turn_seasons().await?;
        leapt
    }

    /// Looks up the boards whose period has ended, as a service does that is told so by any call.
    pub(super) async fn turn_seasons(&mut self) -> Outcome<()> {
        let failed = |error| format!("{error:?}");
        let store = self.instances[self.instances.len() - 1].clone();
        for board in self.boards.iter_mut().filter(|board| board.season().is_some()) {
            while let Err(error) = store.status(&board.main()).await {
                if !matches!(error, StoreError::StaleEpoch) {
                    return Err(failed(error));
                }
                let found = store.board(board.name()).await.map_err(failed)?;
                *board = found.ok_or_else(|| format!("{} is gone at the end of a period", board.name()))?;
            }
        }
        Ok(())
    }

    async fn retire(&self, track: &BoardTrack, steps: usize, through: usize) -> Outcome<Vec<Seen>> {
        for nth in 0..steps {
            let store = self.instance(through + nth);
            let step = store.retire_step(track).await.map_err(|error| format!("{error:?}"))?;
            if step.done && step.frame.retiring > 0 {
                return Err(format!("done, and {} slots are retiring", step.frame.retiring));
            }
        }
        Ok(vec![Seen::Done])
    }

    async fn retire_together(&self, board: usize, window: usize, items: &[Item]) -> Outcome<Vec<Seen>> {
        let retiring = |nth| {
            let (store, board) = (self.instance(nth), self.window(board, window));
            tokio::spawn(async move { retire_through(&store, &board).await })
        };
        let (one, two) = (retiring(0), retiring(1));
        let added = self.add(board, items, false, 1).await;
        for task in [one, two] {
            task.await.map_err(|error| error.to_string())?;
        }
        Ok(vec![added?.without_scores()])
    }

    async fn redefine(&mut self, board: usize, definition: &Definition, through: usize) -> Outcome<Vec<Seen>> {
        let (store, old) = (self.instance(through), self.boards[board].clone());
        if !store.undefine(&old).await.map_err(|error| format!("{error:?}"))? {
            return Err("the board was not there to be undefined".to_owned());
        }
        self.boards[board] = define(&self.instance(through + 1), old.name(), definition).await?;
        self.stale[board] = Some(old);
        self.earlier[board].clear();
        self.check(board).await
    }

    async fn use_stale(&self, board: usize, through: usize) -> Outcome<Vec<Seen>> {
        let Some(stale) = &self.stale[board] else { return Ok(Vec::new()) };
        let store = self.instance(through);
        let item = Item {
            who: 0,
            window: 0,
            act: Act::Count,
            amount: Size::Units(1),
            value: 0,
            at: None,
            id: None,
            by: By::Both,
        };
        let batch = self.batch(stale, &[item], true).await?;
        Ok(vec![
            seen(&*store, store.add(stale, batch).await)?,
            seen(&*store, store.page(&of_key(&stale.main(), 0), 0, 5).await)?,
            seen(&*store, store.remove(stale, &stored_who(stale, 0)).await)?,
        ])
    }

    async fn audit(&self, board: usize) -> Outcome<Vec<Seen>> {
        for window in self.boards[board].each_track().filter(|track| track.packed().is_none()) {
            let (_, differences) = audit_through(&self.instances, &window).await;
            if !differences.is_empty() {
                return Err(format!("{differences:?} in {}", window.metric()));
            }
        }
        Ok(vec![Seen::Done])
    }

    /// Ends an instance, by closing or by dropping it, and opens it again.
    async fn reopen(&mut self, close: bool, through: usize) -> Outcome<Vec<Seen>> {
        let nth = through % self.instances.len();
        if !self.home.outlives_its_store() {
            return Ok(vec![Seen::Done]);
        }
        let old = self.instances.remove(nth);
        if close {
            old.close().await.map_err(|error| format!("{error:?}"))?;
        }
        drop(old);
        self.instances.insert(nth, self.home.instance(self.clock).await);
        for board in &mut self.boards {
            let found = self.instances[nth].board(board.name()).await.map_err(|error| format!("{error:?}"))?;
            let found = found.ok_or_else(|| format!("{} is gone after a restart", board.name()))?;
            if (found.generation(), found.definition()) != (board.generation(), board.definition()) {
                return Err(format!("{found:?} after a restart instead of {board:?}"));
            }
            if (found.epoch(), found.stored_editions()) != (board.epoch(), board.stored_editions()) {
                return Err(format!("{found:?} after a restart instead of {board:?}"));
            }
            // The old board handle must still work, and a new one must work too.
            if close {
                *board = found;
            }
        }
        Ok(vec![Seen::Done])
    }

    /// Reads a table, and again with its version.
    async fn rows(&self, table: TableName, through: usize) -> Outcome<Seen> {
        let failed = |error| format!("{error:?}");
        let rows =
            self.instance(through).rows(table, None).await.map_err(failed)?.ok_or("no rows without a version")?;
        match self.instance(through + 1).rows(table, Some(rows.version)).await.map_err(failed)? {
            None => Ok(Seen::Rows(rows.rows)),
            Some(other) => Err(format!("{other:?} after {rows:?}")),
        }
    }

    async fn change_row(
        &self,
        table: TableName,
        id: usize,
        to: Option<usize>,
        wrong: bool,
        through: usize,
    ) -> Outcome<Vec<Seen>> {
        let (id, to) = (format!("row{id}"), to.map(|to| format!("text{to}")));
        let Seen::Rows(before) = self.rows(table, through + 1).await? else { return Err("no rows".to_owned()) };
        let from = if wrong { Some("wrong") } else { before.get(&id).map(String::as_str) };
        let store = self.instance(through);
        let changed = store.change_row(table, &id, from, to.as_deref()).await.map_err(|error| format!("{error:?}"))?;
        if changed == wrong {
            return Err(format!("{changed} from {from:?} to {to:?} in {before:?}"));
        }
        Ok(vec![self.rows(table, through + 1).await?])
    }

    async fn look(&self, board: &BoardTrack, at: Look, through: usize) -> Outcome<Seen> {
        let store = self.instance(through);
        let nth = match at {
            Look::Page { offset, limit } => offset as usize + limit as usize,
            Look::Place { who, .. } | Look::Neighbors { who, .. } | Look::Standing { who } => who,
            Look::Values { who, .. } | Look::Lookup { who: [who, ..] } => who,
            Look::Read(question) => question.who,
            Look::Distribution { percentiles: [first, ..], .. } => first as usize,
            Look::Status => 0,
        };
        // Two of three looks count ties.
        let of_key = of_key(board, nth);
        let of_key = if nth % 3 > 0 { counting_ties(of_key) } else { of_key };
        let (board, who) = (&of_key, |nth| who(board.board(), nth));
        match at {
            // These are skipped where there is no ranking, and values where none are stored.
            Look::Page { .. }
            | Look::Place { .. }
            | Look::Neighbors { .. }
            | Look::Lookup { .. }
            | Look::Distribution { .. }
                if !board.is_ranked() =>
            {
                Ok(Seen::Done)
            }
            Look::Values { .. } if board.kind() != Kind::Distinct => Ok(Seen::Done),
            Look::Page { offset, limit } => seen(&*store, store.page(board, offset, limit).await),
            Look::Distribution { percentiles, scores } => {
                let percentiles = percentiles.map(Percentile::of_thousandths).map(|one| one.expect("a percentile"));
                let scores = scores.map(|score| score_of(board, score));
                seen(&*store, store.distribution(board, &percentiles, &scores).await)
            }
            Look::Place { who: nth, score, is_forward, inclusive, limit } => {
                let score = score_of(board, score);
                let direction = if is_forward { Direction::Forward } else { Direction::Backward };
                let next_to = NextTo { place: Place { score, subject: who(nth) }, direction, inclusive };
                seen(&*store, store.page_from(board, &PageStart::Place(next_to), limit).await)
            }
            Look::Neighbors { who: nth, radius } => seen(&*store, store.neighbors(board, &who(nth), radius).await),
            Look::Lookup { who: asked } => seen(&*store, store.lookup(board, &asked.map(who), true).await),
            Look::Standing { who: nth } => seen(&*store, store.standing(board, &who(nth)).await),
            Look::Read(question) => {
                let ask = self.resolve(board, &question).await?;
                let answer = store.read(vec![ask]).await.pop().ok_or("a question was not answered")?;
                seen(&*store, answer)
            }
            Look::Values { who: nth, offset, limit } => {
                seen(&*store, store.values(board, &who(nth), offset, limit).await)
            }
            Look::Status => seen(&*store, store.status(board).await),
        }
    }

    async fn resolve(&self, board: &BoardTrack, question: &Question) -> Outcome<SlotQuery> {
        let now = self.now().await?;
        let time = |when: When| when.resolve(board, &board.window_at(now), now);
        let range = match question.range {
            Span::Slots(slots) => SlotRange::Slots(slots),
            Span::AllBut(fewer) => SlotRange::Slots(board.slots().saturating_sub(fewer).max(1)),
            Span::From(when) => SlotRange::From(time(when)),
        };
        let looks_back = !board.is_ranked() && board.kind() != Kind::Distinct && !board.is_from_first();
        let as_of = question.as_of.filter(|_| looks_back).map(time);
        Ok(SlotQuery { track: of_key(board, question.who), subject: who(board.board(), question.who), range, as_of })
    }

    async fn ask(&self, questions: &[(usize, usize, Question)], through: usize) -> Outcome<Vec<Seen>> {
        let store = self.instance(through);
        let mut queries = Vec::new();
        for (board, window, question) in questions {
            queries.push(self.resolve(&self.window(*board, *window), question).await?);
        }
        let answers = store.read(queries).await;
        if answers.len() != questions.len() {
            return Err(format!("{} answers to {} questions", answers.len(), questions.len()));
        }
        answers.into_iter().map(|answer| seen(&*store, answer)).collect()
    }

    /// Returns everything that can be read, as soon as nothing is retiring.
    async fn check(&self, board: usize) -> Outcome<Vec<Seen>> {
        let mut all = Vec::new();
        let packed = |track: &BoardTrack| track.packed().is_some();
        for window in self.boards[board].each_track().filter(|track| !packed(track)) {
            retire_through(&self.instance(0), &window).await;
        }
        all.append(&mut self.audit(board).await?);
        for window in self.boards[board].each_track() {
            match packed(&window) {
                true => all.push(self.packed_lines(&window, board).await?),
                false => self.check_window(&window, &mut all).await?,
            }
        }
        for list in [ModerationList::Hidden, ModerationList::Frozen] {
            let store = self.instance(board);
            all.push(seen(&*store, store.moderated(&self.boards[board], list, TextRange::default(), 1_000).await)?);
        }
        let store = self.instance(board);
        all.push(seen(&*store, store.described(&self.boards[board], TextRange::default(), 1_000).await)?);
        all.append(&mut self.check_editions(board).await?);
        for table in TableName::ALL {
            all.push(self.rows(table, board).await?);
        }
        match all.iter().find(|seen| seen.retiring() > 0) {
            Some(seen) => Err(format!("retired until done, yet {seen:?}")),
            None => Ok(all),
        }
    }

    async fn check_window(&self, board: &BoardTrack, all: &mut Vec<Seen>) -> Outcome<()> {
        let through = self.instances.len() - 1;
        let whole = Look::Page { offset: 0, limit: 1_000 };
        let other_key = Look::Page { offset: 0, limit: 1_001 };
        for look in [Look::Status, whole, other_key, Look::Page { offset: 2, limit: 3 }] {
            all.push(self.look(board, look, through).await?);
        }
        if board.board().has_keys() && board.is_ranked() {
            all.push(seen(&*self.instance(0), self.instance(0).keys(board, TextRange::default(), 10).await)?);
        }
        let kept = board.kept() - board.slots();
        for nth in 0..SUBJECTS.len() {
            all.push(self.look(board, Look::Standing { who: nth }, nth).await?);
            all.push(self.look(board, Look::Values { who: nth, offset: 0, limit: 1_000 }, nth).await?);
            for (fewer, back) in [(0, 0), (1, 0), (0, kept), (0, kept + 1)] {
                let as_of = (back > 0).then_some(When::Back { slots: back, off: 0 });
                let question = Question { who: nth, range: Span::AllBut(fewer), as_of };
                all.push(self.look(board, Look::Read(question), through).await?);
            }
        }
        let earlier = self.instance(0).earlier_ranks(board).await;
        all.push(seen(&*self.instance(0), earlier)?);
        all.push(self.look(board, Look::Neighbors { who: 0, radius: 2 }, 0).await?);
        all.push(self.look(board, Look::Lookup { who: [2, 0, 4] }, 0).await?);
        let at = Look::Distribution { percentiles: [10_000, 50_000, 90_000], scores: [1, 3] };
        all.push(self.look(board, at, 0).await?);
        Ok(())
    }
}

/// Returns a number as a score of the board.
fn score_of(board: &BoardTrack, score: i64) -> Value {
    match board.kind() {
        Kind::Mean => Value::Real(score as f64 / 2.0),
        _ => Value::Exact(Amount(score)),
    }
}

fn board_name(nth: usize) -> BoardName {
    name(&format!("board{nth}"))
}

async fn define(store: &Arc<dyn Store>, name: &BoardName, definition: &Definition) -> Outcome<Arc<Board>> {
    match store.define(new_board(name, definition)).await {
        Ok(Defined::Created(board)) => Ok(board),
        other => Err(format!("{other:?} instead of a new board")),
    }
}
