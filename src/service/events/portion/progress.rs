//! What became of a portion of a source's items on the boards of the source, over several attempts.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use super::share::{Share, Treatment};
use super::{ItemPortion, PortionRecorded};
use crate::board::{Board, BoardName, Generation, Position};
use crate::service::event_index::EventIndex;
use crate::service::events::outcome::{EventOutcome, OnBoard, Refusal, Taken};
use crate::service::sources::{Course, Source};
use crate::service::{Result, ServiceError};
use crate::store::{Fate, Passed, Portion, StoreError};

/// What became of a portion so far.
pub(super) struct Progress<'p> {
    portion: ItemPortion<'p>,
    /// Whether it is for a board of the source, for each item.
    is_known: Vec<bool>,
    on_boards: HashMap<Generation, BoardOutcomes>,
    /// The boards that are not asked again.
    settled: HashMap<Generation, Settled>,
    /// The boards that have not begun, or have reached less than the position from which on they count.
    begin: HashSet<Generation>,
    /// Whether the list of boards was found to have changed.
    is_stale: bool,
}

/// What became of items on a board, by their indexes, in their order.
struct BoardOutcomes {
    board: Arc<Board>,
    items: Vec<(usize, Taken)>,
}

/// How a portion ended on a board.
enum Settled {
    /// The board has counted the source up to this position, or an item waits.
    Through {
        reached: Position,
        waits: bool,
        /// Whether it has counted all that it is to count.
        is_whole: bool,
    },
    /// The board lacks what comes before the portion, from this position on.
    Behind(Position),
    /// It has not joined, or its data is damaged, with this error.
    LeftOut(BoardName, Option<StoreError>),
}

impl<'p> Progress<'p> {
    pub(super) fn new(portion: ItemPortion<'p>) -> Self {
        Self {
            portion,
            is_known: vec![false; portion.items.len()],
            on_boards: HashMap::new(),
            settled: HashMap::new(),
            begin: HashSet::new(),
            is_stale: false,
        }
    }

    pub(super) fn portion(&self) -> ItemPortion<'p> {
        self.portion
    }

    pub(super) fn is_left(&self, board: &Board) -> bool {
        !self.settled.contains_key(&board.generation())
    }

    pub(super) fn is_stale(&self) -> bool {
        self.is_stale
    }

    /// Notes that the list of boards has changed.
    pub(super) fn note_stale(&mut self) {
        self.is_stale = true;
    }

    /// Notes which items are for a board of the source.
    pub(super) fn note_known(&mut self, of_source: &[Arc<Board>], index: &EventIndex) {
        let of_source: HashSet<_, rapidhash::fast::RandomState> =
            of_source.iter().map(|board| board.generation()).collect();
        let Self { portion, is_known, .. } = self;
        for (is_known, (_, item)) in is_known.iter_mut().zip(portion.items) {
            let mut boards = portion.boards_of(item, index).iter();
            *is_known |= boards.any(|board| of_source.contains(&board.generation()));
        }
    }

    /// Returns what is sent to each board now: its share of the portion, or first that by which it begins. A board that has
    /// not joined gets nothing: its data is damaged, or the source has no room for it.
    pub(super) fn portions(&mut self, shares: &mut Vec<Share>, source: &Source) -> Result<Vec<(Arc<Board>, Portion)>> {
        let is_fill = self.portion.fill.is_some();
        let joins = !self.portion.only_asks();
        shares.retain_mut(|share| {
            let generation = share.board.generation();
            share.course = source.course(generation, is_fill);
            if share.course.is_none() && joins {
                self.settled.insert(generation, Settled::LeftOut(share.board.name().clone(), None));
            }
            share.course.is_some()
        });
        shares.iter_mut().filter_map(|share| Some(self.portion_of(share, share.course?))).collect()
    }

    fn portion_of(&self, share: &mut Share, course: Course) -> Result<(Arc<Board>, Portion)> {
        let board = share.board.clone();
        if self.begin.contains(&board.generation()) {
            return Ok((board, Portion::beginning(course.number, course.from)));
        }
        let ItemPortion { after, through, .. } = self.portion;
        if after < course.from || course.until < through {
            share.leave_out(&self.portion, course);
        }
        let within = |position: Position| position.max(course.from).min(course.until);
        match Portion::new(course.number, (within(after), within(through)), std::mem::take(&mut share.increments)) {
            Some(portion) => Ok((board, portion)),
            None => {
                let detail = "positions must increase, from the one after 'after' on".to_owned();
                Err(ServiceError::InvalidQuery { field: "position", detail })
            }
        }
    }

    /// Records what the store has answered. Returns whether no board has to be asked again.
    pub(super) fn settle(&mut self, shares: Vec<Share>, answers: Vec<Result<Passed, StoreError>>) -> Result<bool> {
        let (mut is_settled, mut failed) = (true, None);
        for (share, answer) in shares.into_iter().zip(answers) {
            let generation = share.board.generation();
            match self.settle_on_board(share, answer) {
                Ok(Some(settled)) => drop(self.settled.insert(generation, settled)),
                Ok(None) => is_settled = false,
                Err(error) => failed = failed.or(Some(error)),
            }
        }
        failed.map_or(Ok(is_settled), |error| Err(error.into()))
    }

    /// Records what the store has answered for a board. Returns `None` if it has to be asked again.
    fn settle_on_board(
        &mut self,
        mut share: Share,
        answer: Result<Passed, StoreError>,
    ) -> Result<Option<Settled>, StoreError> {
        let generation = share.board.generation();
        let begins = self.begin.remove(&generation);
        let Some(Course { from, until, .. }) = share.course else { return Ok(None) };
        let failure = match answer {
            Ok(Passed { failure: None, .. }) if begins => return Ok(None),
            Ok(Passed { failure: Some(failure), .. }) if begins => failure,
            Ok(Passed { fates, reached, failure, .. }) => {
                let waits = fates.iter().any(|fate| matches!(fate, Fate::Waits(_)));
                self.note(&mut share, fates);
                let Some(failure) = failure else {
                    let reached = reached.least().min(until);
                    return Ok(Some(Settled::Through { reached, waits, is_whole: reached == until }));
                };
                failure
            }
            Err(failure) => failure,
        };
        match failure {
            StoreError::BoardChanged => {
                self.on_boards.remove(&generation);
                self.is_stale = true;
            }
            StoreError::StaleEpoch => self.is_stale = true,
            StoreError::SourceBehind { at } if at.is_none_or(|at| at < from) => drop(self.begin.insert(generation)),
            StoreError::SourceBehind { at } => return Ok(Some(Settled::Behind(at.unwrap_or_default()))),
            damage @ StoreError::Corrupt { .. } => {
                let name = share.board.name().clone();
                self.note_damage(share);
                return Ok(Some(Settled::LeftOut(name, Some(damage))));
            }
            failure => return Err(failure),
        }
        Ok(None)
    }

    /// Notes what became of items on a board. What an earlier attempt has done stays, where this one finds that it was.
    fn note(&mut self, share: &mut Share, fates: Vec<Fate>) {
        let generation = share.board.generation();
        let before = self.on_boards.remove(&generation).map_or_else(Vec::new, |before| before.items);
        let earlier = |item: usize| {
            let at = before.binary_search_by_key(&item, |(item, _)| *item).ok()?;
            before.get(at).map(|(_, taken)| taken.clone()).filter(|taken| !matches!(taken, Taken::Waits(_)))
        };
        let mut fates = fates.into_iter();
        let mut items = Vec::<(usize, Taken)>::with_capacity(share.items.len());
        for (item, treatment) in std::mem::take(&mut share.items) {
            let taken = match treatment {
                Treatment::Counts => match fates.next() {
                    Some(Fate::Done(outcome)) => outcome.into(),
                    Some(Fate::Repeated) => earlier(item).unwrap_or(Taken::Repeated),
                    Some(Fate::Waits(reason)) => Taken::Waits(reason),
                    None => Taken::Waits(None),
                },
                Treatment::CountsBeside => match fates.next() {
                    Some(Fate::Waits(reason)) => {
                        // The current edition may have refused it.
                        items.pop_if(|(refused, _)| *refused == item);
                        Taken::Waits(reason)
                    }
                    _ => continue,
                },
                Treatment::LeavesOut => Taken::Repeated,
                Treatment::Refuses(refusal) => Taken::Refused(refusal),
            };
            items.push((item, taken));
        }
        self.on_boards.insert(generation, BoardOutcomes { board: share.board.clone(), items });
    }

    /// Notes that it is not known what became of items on a board.
    fn note_damage(&mut self, share: Share) {
        let Share { board, items, .. } = share;
        let mut items: Vec<_> = items.into_iter().map(|(item, _)| (item, Taken::Refused(Refusal::Damaged))).collect();
        items.dedup_by_key(|(item, _)| *item);
        self.on_boards.insert(board.generation(), BoardOutcomes { board, items });
    }

    /// Returns how far the portion is counted, after what became of each item.
    pub(super) fn finish(mut self, mut each: impl FnMut(usize, EventOutcome)) -> Result<PortionRecorded> {
        let mut recorded = PortionRecorded { reached: None, waits: false, filled: None, left_out: Vec::new() };
        let (mut behind, mut damage) = (None, None);
        for settled in std::mem::take(&mut self.settled).into_values() {
            match settled {
                Settled::Through { reached, waits, is_whole } => {
                    recorded.reached = recorded.reached.into_iter().chain([reached]).min();
                    recorded.waits |= waits;
                    recorded.filled = self.portion.fill.map(|_| is_whole);
                }
                Settled::Behind(reached) => behind = behind.into_iter().chain([reached]).min(),
                Settled::LeftOut(board, error) => {
                    recorded.left_out.push(board);
                    damage = damage.or(error);
                }
            }
        }
        let (source_name, fill) = (self.portion.source.clone(), self.portion.fill.cloned());
        match (behind, damage) {
            (Some(reached), _) => return Err(ServiceError::SourceBehind { source_name, fill, reached }),
            (None, Some(damage)) if recorded.reached.is_none() => return Err(damage.into()),
            (None, None) if recorded.reached.is_none() && !recorded.left_out.is_empty() => {
                return Err(ServiceError::TooManyBoardsOfSource(source_name));
            }
            (None, _) => {}
        }
        recorded.left_out.sort_unstable();
        let outcome = |is_known: &bool| EventOutcome { is_known: *is_known, boards: Vec::new() };
        let mut outcomes: Vec<_> = self.is_known.iter().map(outcome).collect();
        let mut on_boards: Vec<_> = self.on_boards.into_values().collect();
        on_boards.sort_unstable_by(|one, other| one.board.name().cmp(other.board.name()));
        for BoardOutcomes { board, items } in on_boards {
            for (item, taken) in items {
                outcomes[item].boards.push(OnBoard { board: board.clone(), subject: None, taken, is_beside: false });
            }
        }
        outcomes.into_iter().enumerate().for_each(|(item, outcome)| each(item, outcome));
        Ok(recorded)
    }
}
