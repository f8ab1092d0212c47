//! Boards with two editions, and calls by those who do not know of a change of them.

use std::sync::Arc;

use rolltop::board::{
    Board, BoardTrack, Change, Definition, EditionRole, Mode, Timestamp, TrackId, Value, WindowLength,
};
use rolltop::service::Service;
use rolltop::store::{Added, Increment, MAX_FILLED, Outcome as Of, Result, Store};

use super::seen::{Seen, seen};
use super::sequence::{Item, everyone, of_key, stored_who, who};
use super::side::{Outcome, Side};
use crate::carrying::cells_of;

/// Returns the result of a write to `board` with the handle `named`, as far as it must be equal on every store. Of an
/// item for the other edition there is no outcome, and if a sum is refused there, the other items may be tried in a
/// different step.
pub fn comparable(
    store: &dyn Store,
    named: &Board,
    board: &Arc<Board>,
    sent: &[Increment],
    added: Result<Added>,
) -> Outcome<Seen> {
    let mut added = match added {
        Ok(added) => added,
        Err(error) => return seen::<Added>(store, Err(error)),
    };
    let newer = added.newer.take().map(|newer| (newer.epoch(), newer.stored_editions()));
    if newer.as_ref() != Some(&(board.epoch(), board.stored_editions())).filter(|_| named.epoch() != board.epoch()) {
        return Err(format!("a write returns the board {newer:?} instead of {board:?}"));
    }
    if added.outcomes.len() != sent.len() {
        return Err(format!("{} outcomes of {} items", added.outcomes.len(), sent.len()));
    }
    let is_behind = named.epoch() != board.epoch();
    let answered = board.editions().iter().position(|edition| edition.id() == named.edition().id()).unwrap_or(0);
    for (outcome, item) in added.outcomes.iter_mut().zip(sent) {
        let carried = if is_behind { item.carried(named, board) } else { item.clone() };
        // After an exchange a store may answer for either edition, so only whether the id was known is compared.
        let may_be_of_either = is_behind && answered != 0 && !matches!(outcome, Of::Duplicate { .. });
        if matches!(carried.change_in(answered), Change::Not(_)) || may_be_of_either {
            *outcome = Of::Counted { score: None };
        }
    }
    let seen = Seen::from(added);
    let may_differ = board.editions().len() > 1 && sent.len() > 1;
    Ok(match seen {
        // A part may have been written before the change, with another frame.
        Seen::Added(_, _) if is_behind => match seen.without_scores() {
            Seen::Added(_, outcomes) => Seen::Outcomes(outcomes),
            other => other,
        },
        seen => {
            if may_differ {
                seen.without_scores()
            } else {
                seen
            }
        }
    })
}

/// Returns the definition of a successor of a board that is like the given one.
fn successor(board: &Board, like: &Definition, same: bool) -> Definition {
    let ours = board.definition();
    let types = |of: &Definition| of.metric.terms.types().map(str::to_owned).collect::<Vec<_>>();
    let mut next = match (&*types(ours), &*types(like)) {
        ([event], [other]) => {
            let text = like.metric.to_string().replacen(&format!(" {other},"), &format!(" {event},"), 1);
            Definition { metric: text.parse().unwrap(), ..like.clone() }
        }
        _ => ours.clone(),
    };
    next.metric.subject = ours.metric.subject.clone();
    next.dedupe = ours.dedupe;
    next.metric.by.clone_from(&ours.metric.by);
    next.movement = next.movement.filter(|_| next.metric.by.is_none());
    if next.metric.by.is_some() && !next.ranked {
        (next.ranked, next.mode) = (true, Mode::Sliding);
        next.keep = next.keep.filter(|_| next.metric.window == WindowLength::All);
    }
    if same && next.kind() == ours.kind() {
        next.metric.function = ours.metric.function.clone();
        next.metric.terms = ours.metric.terms.clone();
        next.decimals = ours.decimals;
    }
    next
}

/// Returns whether each slot of the source is a part of one slot of the target.
fn is_part_of(source: &BoardTrack, target: &BoardTrack, now: Timestamp) -> bool {
    let window = source.window_at(now);
    let mut start = source.oldest_kept(window.floor);
    while start < window.end {
        let end = source.calendar().next(start);
        if end > target.calendar().next(target.calendar().slot_of(start)) {
            return false;
        }
        start = end;
    }
    true
}

impl Side {
    pub async fn attach(&mut self, board: usize, like: &Definition, same: bool, through: usize) -> Outcome<Vec<Seen>> {
        let from = self.boards[board].clone();
        if from.other().is_some() || from.season().is_some() || like.season.is_some() {
            return Ok(Vec::new());
        }
        let first = TrackId(rand::random_range(1..=u64::MAX - 100));
        let to = from.attached(successor(&from, like, same), first).map_err(|error| error.to_string())?;
        self.change(board, to, through).await
    }

    pub async fn exchange(&mut self, board: usize, through: usize) -> Outcome<Vec<Seen>> {
        let until = self.now().await?.plus_millis(1_000);
        match self.boards[board].exchanged(until).filter(|_| self.boards[board].season().is_none()) {
            Some(to) => self.change(board, to, through).await,
            None => Ok(Vec::new()),
        }
    }

    pub async fn detach(&mut self, board: usize, through: usize) -> Outcome<Vec<Seen>> {
        match self.boards[board].other() {
            Some(_) if self.boards[board].season().is_none() => {
                self.change(board, self.boards[board].detached(), through).await
            }
            _ => Ok(Vec::new()),
        }
    }

    pub async fn close_period(&mut self, board: usize, through: usize) -> Outcome<Vec<Seen>> {
        let Ok(to) = self.boards[board].closed(self.now().await?) else { return Ok(Vec::new()) };
        let (store, known) = (self.instance(through), self.boards[board].clone());
        let closed = seen(&*store, store.change_editions(&known, to).await.map(drop))?;
        self.turn_seasons().await?;
        Ok(vec![closed])
    }

    /// Packs the final periods of a board through a service, which other instances of the store learn of by themselves.
    pub async fn pack(&mut self, board: usize, through: usize) -> Outcome<Vec<Seen>> {
        let known = self.boards[board].clone();
        if known.season().is_none() {
            return Ok(Vec::new());
        }
        let (failed, service) = (|error| format!("{error:?}"), Service::new(self.instance(through)));
        let present = service.refreshed(&known).await.map_err(failed)?;
        if !service.pack_periods(&present).await.map_err(failed)? {
            return Err("another instance packs".to_owned());
        }
        self.boards[board] = service.refreshed(&known).await.map_err(failed)?;
        Ok(vec![Seen::Done])
    }

    /// Returns the lines of a packed period, as a service reads them.
    pub async fn packed_lines(&self, track: &BoardTrack, through: usize) -> Outcome<Seen> {
        let page = Service::new(self.instance(through)).page(track, 0, 1_000).await;
        Ok(Seen::Page(page.map_err(|error| format!("{error:?}"))?.answer))
    }

    async fn change(&mut self, board: usize, to: Board, through: usize) -> Outcome<Vec<Seen>> {
        let (store, from) = (self.instance(through), self.boards[board].clone());
        let expected = to.stored_editions();
        let changed = match store.change_editions(&from, to.clone()).await {
            Ok(changed) => changed,
            Err(error) => return Ok(vec![seen::<()>(&*store, Err(error))?]),
        };
        let again =
            self.instance(through + 1).change_editions(&from, to).await.map_err(|error| format!("{error:?}"))?;
        for changed in [&changed, &again] {
            if changed.stored_editions() != expected {
                return Err(format!("{changed:?} instead of {expected:?}"));
            }
        }
        self.earlier[board].push(from);
        self.boards[board] = changed;
        self.check_editions(board).await
    }

    pub async fn fill(&self, board: usize, [from, to]: [usize; 2], end: bool, through: usize) -> Outcome<Vec<Seen>> {
        let (store, board) = (self.instance(through), &self.boards[board]);
        let [current, other] = board.editions() else { return Ok(Vec::new()) };
        let track = |numbers: std::ops::Range<usize>, nth: usize| {
            board.each_track().nth(numbers.start + nth % numbers.len()).expect("a track of the board")
        };
        let (from, to) = (track(current.numbers(), from), track(other.numbers(), to));
        let has_slots = !from.is_from_first() && !to.is_from_first() && from.is_all_time() == to.is_all_time();
        let fits = from.kind().remembers_values() || is_part_of(&from, &to, self.now().await?);
        if !has_slots || !fits || !current.counts_same_items_as(other) {
            return Ok(Vec::new());
        }
        let mut all = Vec::new();
        let cells = cells_of(&self.instances, &from).await?;
        for cells in cells.chunks(MAX_FILLED) {
            all.push(seen(&*store, store.fill(&from, &to, cells).await)?);
        }
        // Only a successor is filled, which has counted no item that the current edition has not: where a part counted none
        // there, no number is left to replace.
        if end && board.edition_as(EditionRole::Next).is_some() {
            all.push(seen(&*store, store.end_fill(board, &[(from.number(), to.number())]).await)?);
        }
        Ok(all)
    }

    /// Writes with an earlier handle of a board, which is carried over, and makes other calls, which are refused.
    pub async fn use_earlier(
        &self,
        board: usize,
        changes: usize,
        items: &[Item],
        through: usize,
    ) -> Outcome<Vec<Seen>> {
        let (store, earlier) = (self.instance(through), &self.earlier[board]);
        let Some(named) = earlier.len().checked_sub(changes).and_then(|nth| earlier.get(nth)) else {
            return Ok(Vec::new());
        };
        let batch = self.batch(named, items, true).await?;
        let sent = batch.increments.clone();
        Ok(vec![
            comparable(&*store, named, &self.boards[board], &sent, store.add(named, batch).await)?,
            seen(&*store, store.standing(&of_key(&named.main(), 0), &who(named, 0)).await)?,
            seen(&*store, store.remove(named, &stored_who(named, 0)).await)?,
        ])
    }

    /// Returns what is known of the two editions of a board, and compares them.
    pub async fn check_editions(&self, board: usize) -> Outcome<Vec<Seen>> {
        let (store, board) = (self.instance(board), &self.boards[board]);
        let Some(other) = board.other().and_then(|other| board.edition_as(other.role)) else { return Ok(Vec::new()) };
        let run = seen(&*store, store.dual_run(board).await)?;
        let tracks = [board.main(), other.main_track()];
        let everyone: Vec<_> = everyone(board).collect();
        let compared = store.compare(tracks.each_ref(), &everyone).await.map_err(|error| format!("{error:?}"))?;
        let ranked = |values: [Option<Value>; 2]| {
            [0, 1].map(|nth| values[nth].filter(|_| tracks[nth].kind().ranks(values[nth])))
        };
        let values = compared.values.into_iter().map(ranked).collect();
        Ok(vec![run, Seen::Compared(compared.frames, values)])
    }
}
