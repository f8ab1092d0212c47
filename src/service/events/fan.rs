//! Events spread over the boards that take them.

use std::collections::HashMap;
use std::sync::Arc;

use super::outcome::{EventOutcome, OnBoard, Refusal, Taken};
use crate::access::Caller;
use crate::board::{Board, Change, Edition, Epoch, Event, Generation, Kind, Subject};
use crate::service::Result;
use crate::service::event_index::EventIndex;
use crate::store::{Added, Batch, Increment, Outcome, Rejection, StoreError};

/// The number of outcomes, counted or refused, after which a portion is full. A call with more of them needs several
/// store calls.
pub(super) const PORTION: usize = 100_000;

/// The events of a portion, spread over the boards that take them.
pub(super) struct Fan<'a> {
    /// Whose events they are. Boards that the caller may not use do not exist for them.
    pub(super) caller: &'a Caller,
    return_scores: bool,
    /// One entry for each event.
    events: Vec<Spread>,
    /// One entry for each board that takes at least one of the events.
    boards: Vec<Gathered>,
    /// The index in [`boards`](Self::boards) by generation.
    places: HashMap<Generation, usize, rapidhash::fast::RandomState>,
    /// The number of outcomes so far, refusals included.
    outcomes: usize,
    /// Whether any board has counted any event.
    pub(super) is_counted: bool,
    /// The outcomes of events that were sent to a board only for its other edition, so that their [`Spread`] has none. The
    /// board must not be sent the same event again.
    beside: HashMap<(usize, Generation), Taken, rapidhash::fast::RandomState>,
    /// Boards whose editions were found to have changed.
    pub(super) newer: Vec<Arc<Board>>,
}

#[derive(Default)]
struct Spread {
    is_known: bool,
    on: Vec<OnBoardSoFar>,
}

struct OnBoardSoFar {
    board: Arc<Board>,
    subject: Option<Subject>,
    /// `None` until the store has returned the outcome. Remains `None` if the board no longer exists.
    taken: Option<Taken>,
    is_beside: bool,
}

/// What the outcome of an increment is about.
#[derive(Clone, Copy)]
struct Origin {
    /// The index of its event.
    event: usize,
    /// The index of the board among those of the event. `None` if the filter of the board's current edition excludes the
    /// event.
    on: Option<usize>,
    /// Whether the current edition does not count the event, so that the increment is for the other one.
    is_beside: bool,
    /// Whether the edition beside the current one counts the event.
    has_other: bool,
}

/// The increments that events cause on one board.
struct Gathered {
    board: Arc<Board>,
    batch: Batch,
    /// One for each increment.
    origins: Vec<Origin>,
}

impl<'a> Fan<'a> {
    pub(super) fn new(caller: &'a Caller, return_scores: bool) -> Self {
        Self {
            caller,
            return_scores,
            events: Vec::new(),
            boards: Vec::new(),
            places: HashMap::default(),
            outcomes: 0,
            is_counted: false,
            beside: HashMap::default(),
            newer: Vec::new(),
        }
    }

    /// Spreads the next event. Returns `false` and does nothing if the portion is full. A single event always fits.
    pub(super) fn gather(&mut self, event_index: &EventIndex, event: &Arc<Event>) -> bool {
        if self.outcomes >= PORTION {
            return false;
        }
        let at = self.events.len();
        self.events.push(Spread::default());
        let caller = self.caller;
        event_index.of(caller, &event.kind).for_each(|board| self.spread(board, at, event));
        true
    }

    /// Drops the recorded outcomes of a board that was found to be changed.
    pub(super) fn forget(&mut self, board: &Board) {
        for on in self.events.iter_mut().flat_map(|event| &mut event.on) {
            if on.board.generation() == board.generation() {
                on.taken = None;
            }
        }
        self.beside.retain(|(_, generation), _| *generation != board.generation());
    }

    /// Spreads the same events over those boards of a newer list that are not in `known`. Over a board of which an earlier
    /// epoch is known, it spreads those that were not sent to it.
    pub(super) fn gather_again(
        &mut self,
        fresh: &EventIndex,
        known: &HashMap<Generation, Epoch>,
        events: &[Arc<Event>],
    ) {
        let (new, there) = (fresh.beyond(known), fresh.generations());
        let caller = self.caller;
        for (at, event) in events.iter().enumerate() {
            for board in new.of(caller, &event.kind).filter(|board| known.contains_key(&board.generation())) {
                self.revise(board, at, event);
            }
            let spread = &mut self.events[at];
            // A refusal made here does not apply if the board no longer exists. Events that a board counted before it
            // was removed stay counted.
            let is_ours = |taken: &Taken| matches!(taken, Taken::Refused(refusal) if refusal.is_ours());
            spread.on.retain(|on| there.contains(&on.board.generation()) || !on.taken.as_ref().is_some_and(is_ours));
            spread.is_known =
                spread.on.iter().any(|on| on.taken.is_some()) || fresh.of(caller, &event.kind).next().is_some();
            for board in new.of(caller, &event.kind) {
                if !self.is_settled(board, at) {
                    self.spread(board, at, event);
                }
            }
        }
    }

    /// Drops what was decided about an event here by an earlier epoch of a board, and its outcome in an edition that the
    /// board no longer has.
    fn revise(&mut self, board: &Arc<Board>, at: usize, event: &Event) {
        let generation = board.generation();
        let on = &mut self.events[at].on;
        let is_ours = |taken: &Taken| matches!(taken, Taken::Refused(refusal) if refusal.is_ours());
        let is_refused =
            |on: &OnBoardSoFar| on.board.generation() == generation && on.taken.as_ref().is_some_and(is_ours);
        if let Some(taken) = self.beside.get(&(at, generation)) {
            // The edition that it was sent for may be the current one by now.
            if let Ok(Some((subject, _))) = change(board.edition(), event) {
                on.retain(|on| !is_refused(on));
                if on.iter().all(|on| on.board.generation() != generation) {
                    let subject = self.return_scores.then_some(subject);
                    let taken = Some(taken.clone());
                    on.push(OnBoardSoFar { board: board.clone(), subject, taken, is_beside: false });
                }
            }
            return;
        }
        on.retain(|on| !is_refused(on));
        let is_gone = |of: &Board| board.editions().iter().all(|edition| edition.id() != of.edition().id());
        let counted = on.iter().position(|on| {
            on.board.generation() == generation && matches!(on.taken, Some(Taken::Counted { .. })) && is_gone(&on.board)
        });
        let Some(place) = counted.filter(|_| board.season().is_none()) else { return };
        // The store carried it over to the editions that there are.
        let refusal = match change(board.edition(), event) {
            Ok(Some(_)) => return,
            Ok(None) => None,
            Err(refusal) => Some(refusal),
        };
        self.beside.insert((at, generation), Taken::Counted { score: None });
        match refusal {
            Some(refusal) => on[place].taken = Some(Taken::Refused(refusal)),
            None => drop(on.remove(place)),
        }
    }

    /// Returns whether the event was sent to the board, whatever its editions, and has an outcome.
    fn is_settled(&self, board: &Board, at: usize) -> bool {
        let generation = board.generation();
        self.beside.contains_key(&(at, generation))
            || self.events[at].on.iter().any(|on| on.board.generation() == generation && on.taken.is_some())
    }

    /// Adds an event of the type of a board to what is sent to it, or what the board decides about it otherwise.
    fn spread(&mut self, board: &Arc<Board>, at: usize, event: &Arc<Event>) {
        self.events[at].is_known = true;
        let refused = |refusal| Some(Taken::Refused(refusal));
        let increment = increment(board, event);
        let on = increment.is_some().then_some(self.events[at].on.len());
        if !matches!(increment, Some(Ok(_)))
            && let Some(increment) = increment_of_other(board, event)
        {
            self.add(board, increment, Origin { event: at, on, is_beside: true, has_other: true });
        }
        let (subject, taken) = match increment {
            None => return,
            Some(Err(refusal)) => (None, refused(refusal)),
            Some(Ok(increment)) => {
                let subject = self.return_scores.then(|| increment.subject.clone());
                let has_other =
                    board.season().is_none() && increment.other.as_deref().is_some_and(|other| !is_not(other));
                self.add(board, increment, Origin { event: at, on, is_beside: false, has_other });
                (subject, None)
            }
        };
        self.events[at].on.push(OnBoardSoFar { board: board.clone(), subject, taken, is_beside: false });
        self.outcomes += 1;
    }

    fn add(&mut self, board: &Arc<Board>, increment: Increment, origin: Origin) {
        let place = *self.places.entry(board.generation()).or_insert_with(|| {
            let batch = Batch { increments: Vec::new(), return_scores: self.return_scores };
            self.boards.push(Gathered { board: board.clone(), batch, origins: Vec::new() });
            self.boards.len() - 1
        });
        let gathered = &mut self.boards[place];
        gathered.batch.increments.push(increment);
        gathered.origins.push(origin);
    }

    /// Returns the boards of the batches that have not been sent to the store yet.
    pub(super) fn reached(&self) -> impl Iterator<Item = &Arc<Board>> {
        self.boards.iter().map(|gathered| &gathered.board)
    }

    /// Returns the boards that refuse an event whatever the store says.
    pub(super) fn refusing(&self) -> impl Iterator<Item = &Arc<Board>> {
        let is_refused = |on: &&OnBoardSoFar| matches!(on.taken, Some(Taken::Refused(_)));
        self.events.iter().flat_map(|event| &event.on).filter(is_refused).map(|on| &on.board)
    }

    /// Takes the batches that have not been sent to the store yet.
    pub(super) fn take_batches(&mut self) -> Vec<(Arc<Board>, Batch)> {
        self.boards.iter_mut().map(|gathered| (gathered.board.clone(), std::mem::take(&mut gathered.batch))).collect()
    }

    /// Records the results of the batches from [`take_batches`](Self::take_batches). Returns the boards that have
    /// changed. Reads all results before it returns the first error. Damaged data of a board is an error only if no other
    /// board has the events.
    pub(super) fn settle(&mut self, answers: Vec<Result<Added, StoreError>>) -> Result<Vec<Arc<Board>>> {
        let (mut changed, mut failed, mut damaged, mut is_taken) = (Vec::new(), None, Vec::new(), false);
        for (gathered, answer) in self.boards.drain(..).zip(answers) {
            match answer {
                Ok(added) => {
                    self.is_counted |= added.outcomes.iter().any(|outcome| matches!(outcome, Outcome::Counted { .. }));
                    is_taken |= added.outcomes.iter().any(|outcome| !matches!(outcome, Outcome::Rejected(_)));
                    for (origin, outcome) in gathered.origins.into_iter().zip(added.outcomes) {
                        if origin.is_beside {
                            self.beside.insert((origin.event, gathered.board.generation()), outcome.into());
                        }
                        let Some(on) = origin.on.and_then(|on| self.events[origin.event].on.get_mut(on)) else {
                            continue;
                        };
                        let newer = added.newer.as_ref();
                        on.is_beside = match outcome {
                            Outcome::Rejected(Rejection::TooLate | Rejection::OutOfRange) => {
                                let has_new =
                                    || newer.is_some_and(|newer| newer.season().is_none() && newer.other().is_some());
                                !origin.is_beside && (origin.has_other || has_new())
                            }
                            Outcome::Rejected(_) => false,
                            Outcome::Counted { .. } | Outcome::Duplicate { .. } => origin.is_beside,
                        };
                        if origin.is_beside {
                            continue;
                        }
                        on.taken = Some(outcome.into());
                        // A rejection is about the editions that have judged the event.
                        if let (Outcome::Rejected(_), Some(newer)) = (outcome, newer) {
                            on.board = newer.clone();
                        }
                    }
                    self.newer.extend(added.newer);
                }
                Err(StoreError::BoardChanged) => changed.push(gathered.board),
                Err(error @ StoreError::Corrupt { .. }) => damaged.push((gathered, error)),
                Err(error) => failed = failed.or(Some(error)),
            }
        }
        self.places.clear();
        for (gathered, error) in damaged {
            if !is_taken {
                failed = failed.or(Some(error));
                continue;
            }
            tracing::error!(board = %gathered.board.name(), %error, "a board has refused events that others have counted");
            for origin in gathered.origins.iter().filter(|origin| !origin.is_beside) {
                if let Some(on) = origin.on.and_then(|on| self.events[origin.event].on.get_mut(on)) {
                    on.taken = Some(Taken::Refused(Refusal::Damaged));
                }
            }
        }
        failed.map_or(Ok(changed), |error| Err(error.into()))
    }

    pub(super) fn outcomes(self) -> impl Iterator<Item = EventOutcome> {
        self.events.into_iter().map(|Spread { is_known, on }| {
            let settled = |on: OnBoardSoFar| {
                let OnBoardSoFar { board, subject, taken, is_beside } = on;
                Some(OnBoard { board, subject, taken: taken?, is_beside })
            };
            let mut boards: Vec<_> = on.into_iter().filter_map(settled).collect();
            // This is the order already, unless a board had to be asked a second time.
            boards.sort_by(|a, b| a.board.name().cmp(b.board.name()));
            EventOutcome { is_known, boards }
        })
    }
}

/// Returns the increment that an event causes on a board of its type, or `None` if the filter of the board's current
/// edition excludes the event.
pub(super) fn increment(board: &Board, event: &Arc<Event>) -> Option<Result<Increment, Refusal>> {
    let (subject, change) = match change(board.edition(), event) {
        Ok(change) => change?,
        Err(refusal) => return Some(Err(refusal)),
    };
    let other = board.editions().get(1).map(|other| other.change_of(event));
    Some(Ok(made(board, event, subject, change, other)))
}

fn is_not(change: &Change) -> bool {
    matches!(change, Change::Not(_))
}

/// Returns the increment of an event that the current edition of a board does not count, if another edition does.
pub(super) fn increment_of_other(board: &Board, event: &Arc<Event>) -> Option<Increment> {
    let (subject, other) = change(board.editions().get(1)?, event).ok()??;
    Some(made(board, event, subject, board.edition().change_of(event), Some(other)))
}

fn made(board: &Board, event: &Arc<Event>, subject: Subject, change: Change, other: Option<Change>) -> Increment {
    let other = other.map(Box::new);
    let (retract, at) = (event.retract, event.at);
    let id = event.id.as_ref().map(|id| match board.definition().metric.terms.has_several_types() {
        true => id.of_type(&event.kind),
        false => id.clone(),
    });
    Increment { subject, change, other, retract, at, id, period: None, event: Some(event.clone()) }
}

/// Returns the change that an event causes in an edition, or `None` if the filter excludes the event.
fn change(edition: &Edition, event: &Event) -> Result<Option<(Subject, Change)>, Refusal> {
    let contribution = edition.contribution(event);
    let Some(contribution) = contribution.map_err(Refusal::Field)? else { return Ok(None) };
    if event.retract && !edition.takes_retractions() {
        return Err(Refusal::RetractionUnsupported);
    }
    // Where the newest time decides, what is taken back now is whatever was counted before.
    if event.retract && event.at.is_none() && !matches!(edition.kind(), Kind::Distinct) {
        return Err(Refusal::RetractionWithoutTime);
    }
    Ok(Some(contribution))
}
