//! The recording of events. Each event goes to every board whose metric names its type.
//!
//! The effects of one call's events on a board are collected into one batch, and all batches are sent in one store
//! call. The events are spread over the boards that this instance knows. At the same time the store is asked whether
//! its list of boards is still the same, so the question adds no latency. If the list has changed, or if a board no
//! longer exists, the list is read again and the events are also sent to the boards that are new in it. The version of
//! the list changes with the editions of boards too: what was not sent to a board, because its filter or its fields
//! excluded it, is decided again by its present editions.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::future::join;

use super::event_index::EventIndex;
use super::registry::Listed;
use super::{Result, Service, ServiceError};
use crate::access::{Caller, Scope};
use crate::board::{Board, Change, Edition, Epoch, Event, FieldFault, Generation, Subject, Value};
use crate::store::{Added, Batch, Increment, Outcome, Rejection, StoreError};

/// The number of outcomes, counted or refused, after which a portion is full. A call with more of them needs several
/// store calls.
const PORTION: usize = 100_000;

/// The number of attempts before a call fails because boards keep changing.
const ATTEMPTS: usize = 4;

/// The outcome of the events of one call.
#[derive(Debug, Default)]
pub struct Recorded {
    /// One outcome for each event, in the given order.
    pub events: Vec<EventOutcome>,
}

/// The outcome of one event.
#[derive(Debug, Default)]
pub struct EventOutcome {
    /// Whether the metric of at least one board names its type.
    pub is_known: bool,
    /// The outcome on each board, ordered by board name. Boards whose filter excludes the event are not listed.
    pub boards: Vec<OnBoard>,
}

/// The outcome of an event on one board.
#[derive(Debug)]
pub struct OnBoard {
    pub board: Arc<Board>,
    /// The subject of the event on this board. Set only if scores were requested.
    pub subject: Option<Subject>,
    pub taken: Taken,
    /// Whether the current edition of the board has refused it, and the one beside it may have counted it.
    pub is_beside: bool,
}

/// The outcome of an event on a board whose metric names its type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Taken {
    /// Counted. Contains the subject's new score as in [`Outcome::Counted`].
    Counted { score: Option<Value> },
    /// The id was counted before. Contains the subject's score as in [`Outcome::Duplicate`].
    Duplicate { score: Option<Value> },
    /// Not counted. Nothing has changed.
    Refused(Refusal),
}

/// The reason why a board did not count an event of its type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// A field that the metric needs is missing or invalid.
    Field(FieldFault),
    /// The metric does not support retractions: it is MIN, MAX, LAST or approximate.
    RetractionUnsupported,
    /// A retraction must have the time of the event that it reverses.
    RetractionWithoutTime,
    /// The store rejected it.
    Store(Rejection),
    /// The data of the board is damaged, so whether it counted the event is not known.
    Damaged,
}

impl Refusal {
    /// Returns whether the event was refused before it was sent to the store.
    fn is_ours(&self) -> bool {
        !matches!(self, Refusal::Store(_) | Refusal::Damaged)
    }
}

impl From<Outcome> for Taken {
    fn from(outcome: Outcome) -> Self {
        match outcome {
            Outcome::Counted { score } => Taken::Counted { score },
            Outcome::Duplicate { score } => Taken::Duplicate { score },
            Outcome::Rejected(rejection) => Taken::Refused(Refusal::Store(rejection)),
        }
    }
}

/// The largest age of the list of boards by which streams of events are sent in order.
const MAX_AGE: Duration = Duration::from_secs(1);

impl Service {
    /// Returns whether the order of events matters to a board, so that a caller with many events must wait for the
    /// answer about one before it sends the next. If the boards are not known, it returns true. At most one store call
    /// a second.
    pub async fn order_of_events_matters(&self, caller: &Caller) -> bool {
        self.registry.listed_within(MAX_AGE).await.map_or(true, |listed| listed.event_index.depends_on_order(caller))
    }

    /// Passes each event that a board refuses whatever the store says to `each`, with its index and these refusals: a
    /// field that a metric needs is missing or invalid, or the board does not support the retraction. Counts nothing.
    /// Whether an event is too late, or makes an amount too large, is known only to the store. At least one store call.
    pub async fn refusals(
        &self,
        caller: &Caller,
        events: &[Arc<Event>],
        mut each: impl FnMut(usize, EventOutcome),
    ) -> Result<()> {
        caller.require(Scope::Write)?;
        let since = Instant::now();
        let version = self.store.boards_version().await?;
        let listed = self.registry.listed_at(version, since).await?;
        for (at, event) in events.iter().enumerate() {
            let refused = |board: &Arc<Board>| {
                let refusal = increment(board, event)?.err()?;
                let (board, taken) = (board.clone(), Taken::Refused(refusal));
                Some(OnBoard { board, subject: None, taken, is_beside: false })
            };
            let boards: Vec<_> = listed.event_index.of(caller, &event.kind).filter_map(refused).collect();
            if !boards.is_empty() {
                each(at, EventOutcome { is_known: true, boards });
            }
        }
        Ok(())
    }

    /// Counts events on every board that takes them, and returns the outcome of each event. Makes one store call (one
    /// for each 100,000 outcomes if there are more), and at least two more if boards were created or removed, or their
    /// editions changed, since the last call.
    ///
    /// An event counts on every board that was defined before this call, through any instance, and in every edition
    /// that the board had before it. After an error, some boards may have counted the events and others not. If the
    /// events have ids, the call can be repeated safely.
    pub async fn record(&self, caller: &Caller, events: Vec<Event>, return_scores: bool) -> Result<Recorded> {
        let mut recorded = Recorded { events: Vec::with_capacity(events.len()) };
        let events: Vec<_> = events.into_iter().map(Arc::new).collect();
        self.record_each(caller, &events, return_scores, |_, outcome| recorded.events.push(outcome)).await?;
        Ok(recorded)
    }

    /// Does the same as [`record`](Self::record), but passes each outcome to `each` as soon as it is final, with the
    /// index of the event and in order. So not all outcomes have to be in memory at once.
    pub async fn record_each(
        &self,
        caller: &Caller,
        events: &[Arc<Event>],
        return_scores: bool,
        mut each: impl FnMut(usize, EventOutcome),
    ) -> Result<()> {
        caller.require(Scope::Write)?;
        let (mut settled, mut is_counted) = (0, false);
        while settled < events.len() {
            let rest = &events[settled..];
            let listed = self.registry.listed().await.map_err(|error| unless_counted(error.into(), is_counted))?;
            let mut fan = Fan::new(caller, return_scores);
            let end = rest.iter().position(|event| !fan.gather(&listed.event_index, event)).unwrap_or(rest.len());
            fan.reached().try_for_each(|board| self.check_token(caller, board))?;
            let sent = self.send(&mut fan, &rest[..end], listed).await;
            is_counted |= fan.is_counted;
            sent.map_err(|error| unless_counted(error, is_counted))?;
            for outcome in fan.outcomes() {
                each(settled, outcome);
                settled += 1;
            }
        }
        Ok(())
    }

    /// Sends the collected batches to the store and records the results. Then does the same for boards that were
    /// missing from the list by which the events were spread, or had other editions in it.
    async fn send(&self, fan: &mut Fan<'_>, events: &[Arc<Event>], listed: Listed) -> Result<()> {
        let begun = Instant::now();
        let (version, answers) =
            join(self.store.boards_version_beside_writes(), self.add_all(fan.take_batches())).await;
        let mut changed = self.settle(fan, answers)?;
        let version = version?;
        if changed.is_empty() && version == listed.version {
            return Ok(());
        }
        let mut known = listed.event_index.epochs();
        let mut fresh = match changed.is_empty() {
            true => self.registry.listed_at(version, begun).await?,
            false => self.registry.listed_after(Instant::now()).await?,
        };
        for _ in 1..ATTEMPTS {
            for board in &changed {
                fan.forget(board);
                known.remove(&board.generation());
            }
            fan.gather_again(&fresh.event_index, &known, events);
            known.extend(fresh.event_index.epochs());
            fan.reached().try_for_each(|board| self.check_token(fan.caller, board))?;
            let answers = self.add_all(fan.take_batches()).await;
            changed = self.settle(fan, answers)?;
            if changed.is_empty() {
                return Ok(());
            }
            fresh = self.registry.listed_after(Instant::now()).await?;
        }
        Err(StoreError::BoardChanged.into())
    }

    /// Records the results of batches, and the editions of boards that were found to have changed. Returns the boards
    /// that were removed or defined again.
    fn settle(&self, fan: &mut Fan<'_>, answers: Vec<Result<Added, StoreError>>) -> Result<Vec<Arc<Board>>> {
        let changed = fan.settle(answers);
        fan.newer.drain(..).for_each(|board| self.registry.put(board));
        changed
    }

    async fn add_all(&self, batches: Vec<(Arc<Board>, Batch)>) -> Vec<Result<Added, StoreError>> {
        if batches.is_empty() { Vec::new() } else { self.store.add_all(batches).await }
    }
}

/// The events of a portion, spread over the boards that take them.
struct Fan<'a> {
    /// Whose events they are. Boards that the caller may not use do not exist for them.
    caller: &'a Caller,
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
    is_counted: bool,
    /// The outcomes of events that were sent to a board only for its other edition, so that their [`Spread`] has none. The
    /// board must not be sent the same event again.
    beside: HashMap<(usize, Generation), Taken, rapidhash::fast::RandomState>,
    /// Boards whose editions were found to have changed.
    newer: Vec<Arc<Board>>,
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
    fn new(caller: &'a Caller, return_scores: bool) -> Self {
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
    fn gather(&mut self, event_index: &EventIndex, event: &Arc<Event>) -> bool {
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
    fn forget(&mut self, board: &Board) {
        for on in self.events.iter_mut().flat_map(|event| &mut event.on) {
            if on.board.generation() == board.generation() {
                on.taken = None;
            }
        }
        self.beside.retain(|(_, generation), _| *generation != board.generation());
    }

    /// Spreads the same events over those boards of a newer list that are not in `known`. Over a board of which an earlier
    /// epoch is known, it spreads those that were not sent to it.
    fn gather_again(&mut self, fresh: &EventIndex, known: &HashMap<Generation, Epoch>, events: &[Arc<Event>]) {
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
    fn reached(&self) -> impl Iterator<Item = &Arc<Board>> {
        self.boards.iter().map(|gathered| &gathered.board)
    }

    /// Takes the batches that have not been sent to the store yet.
    fn take_batches(&mut self) -> Vec<(Arc<Board>, Batch)> {
        self.boards.iter_mut().map(|gathered| (gathered.board.clone(), std::mem::take(&mut gathered.batch))).collect()
    }

    /// Records the results of the batches from [`take_batches`](Self::take_batches). Returns the boards that have
    /// changed. Reads all results before it returns the first error. Damaged data of a board is an error only if no other
    /// board has the events.
    fn settle(&mut self, answers: Vec<Result<Added, StoreError>>) -> Result<Vec<Arc<Board>>> {
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

    fn outcomes(self) -> impl Iterator<Item = EventOutcome> {
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

/// Returns an error that does not claim that nothing was done, if some board has already counted an event of the call.
fn unless_counted(error: ServiceError, is_counted: bool) -> ServiceError {
    match error {
        ServiceError::Store(StoreError::Unreachable { at, .. }) if is_counted => StoreError::TimedOut { at }.into(),
        ServiceError::Store(
            error @ (StoreError::Overloaded { .. } | StoreError::ReadOnly { .. } | StoreError::ClockDoubted { .. }),
        ) if is_counted => {
            tracing::warn!(%error, "some boards have counted events that others have not");
            StoreError::TimedOut { at: "its address".to_owned() }.into()
        }
        error => error,
    }
}

/// Returns the increment that an event causes on a board of its type, or `None` if the filter of the board's current
/// edition excludes the event.
fn increment(board: &Board, event: &Arc<Event>) -> Option<Result<Increment, Refusal>> {
    let (subject, change) = match change(board.edition(), event) {
        Ok(change) => change?,
        Err(refusal) => return Some(Err(refusal)),
    };
    let other = board.editions().get(1).map(|other| other.change_of(event));
    Some(Ok(made(event, subject, change, other)))
}

fn is_not(change: &Change) -> bool {
    matches!(change, Change::Not(_))
}

/// Returns the increment of an event that the current edition of a board does not count, if another edition does.
fn increment_of_other(board: &Board, event: &Arc<Event>) -> Option<Increment> {
    let (subject, other) = change(board.editions().get(1)?, event).ok()??;
    Some(made(event, subject, board.edition().change_of(event), Some(other)))
}

fn made(event: &Arc<Event>, subject: Subject, change: Change, other: Option<Change>) -> Increment {
    let other = other.map(Box::new);
    let (retract, at, id) = (event.retract, event.at, event.id.clone());
    Increment { subject, change, other, retract, at, id, period: None, event: Some(event.clone()) }
}

/// Returns the change that an event causes in an edition, or `None` if the filter excludes the event.
fn change(edition: &Edition, event: &Event) -> Result<Option<(Subject, Change)>, Refusal> {
    let contribution = edition.definition().metric.contribution(event, edition.decimals());
    let Some(contribution) = contribution.map_err(Refusal::Field)? else { return Ok(None) };
    if event.retract && !edition.takes_retractions() {
        return Err(Refusal::RetractionUnsupported);
    }
    if event.retract && event.at.is_none() {
        return Err(Refusal::RetractionWithoutTime);
    }
    Ok(Some(contribution))
}
