//! Events: each goes to every board whose metric names its type.
//!
//! What the events of one call do to a board is gathered into one batch, and all batches leave together in one
//! store call. Which boards there are is known here; whether these are all of them the store is asked at the same time,
//! so that it costs no time. Only where they are not, or where one has gone, the list is read again and the boards new
//! in it get the events too.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Instant;

use futures_util::future::join;

use super::catalog::Catalog;
use super::registry::Listed;
use super::{Result, Service, ServiceError};
use crate::board::{Board, Event, FieldFault, Generation, Subject, Value};
use crate::store::{Added, Batch, Increment, Outcome, Rejection, StoreError};

/// Increments that make a portion: what one store call takes if there are very many boards or events.
const PORTION: usize = 100_000;

/// How often boards may change under the same events before we give up.
const ATTEMPTS: usize = 4;

/// What became of the events of one call.
#[derive(Debug, Default)]
pub struct Recorded {
    /// One per event, in the order given.
    pub events: Vec<EventOutcome>,
}

/// What became of one event.
#[derive(Debug, Default)]
pub struct EventOutcome {
    /// Whether some board's metric names its type.
    pub is_known: bool,
    /// What each board did with it, by the boards' names. Boards whose filter leaves it out are not among them.
    pub boards: Vec<OnBoard>,
}

/// What one board did with an event.
#[derive(Debug)]
pub struct OnBoard {
    pub board: Arc<Board>,
    /// Whom it was about on this board; only where scores were asked for.
    pub subject: Option<Subject>,
    pub taken: Taken,
}

/// Whether a board took an event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Taken {
    /// Counted; with the subject's new score, as [`Outcome::Counted`].
    Counted { score: Option<Value> },
    /// Its id was counted before; with the subject's score, as [`Outcome::Duplicate`].
    Duplicate { score: Option<Value> },
    /// Not counted, and nothing has changed.
    Refused(Refusal),
}

/// Why a board did not count an event of its type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// A field that the metric needs is missing, or not what it takes.
    Field(FieldFault),
    /// The metric cannot undo: it is MIN, MAX or approximate.
    RetractionUnsupported,
    /// A retraction has to say when its twin happened.
    RetractionWithoutTime,
    /// The store's reason.
    Store(Rejection),
}

impl Refusal {
    /// Whether the store was not even asked.
    fn is_ours(&self) -> bool {
        !matches!(self, Refusal::Store(_))
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

impl Service {
    /// Counts events on every board that takes them, and answers what became of each. One store call (for each
    /// 100,000 increments, if they come to more), and two more where boards came or went since the last call.
    ///
    /// A board counts them if it was defined, through whichever instance, before this was called. An error means that
    /// not every board is known to have the events; some may. With ids they can be sent again safely.
    pub async fn record(&self, events: Vec<Event>, return_scores: bool) -> Result<Recorded> {
        let mut recorded = Recorded { events: Vec::with_capacity(events.len()) };
        self.record_each(&events, return_scores, |_, outcome| recorded.events.push(outcome)).await?;
        Ok(recorded)
    }

    /// As [`record`](Self::record), but tells of each event, by its index and in order, as soon as it is settled,
    /// so that not all need be held at once.
    pub async fn record_each(
        &self,
        events: &[Event],
        return_scores: bool,
        mut each: impl FnMut(usize, EventOutcome),
    ) -> Result<()> {
        let (mut settled, mut is_counted) = (0, false);
        while settled < events.len() {
            let rest = &events[settled..];
            let listed = self.registry.listed().await.map_err(|error| unless_counted(error.into(), is_counted))?;
            let mut fan = Fan::new(return_scores);
            let end = rest.iter().position(|event| !fan.gather(&listed.catalog, event)).unwrap_or(rest.len());
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

    /// Hands everything gathered to the store and notes what it says; then the same for boards that the list these
    /// events were gathered by turns out to lack.
    async fn send(&self, fan: &mut Fan, events: &[Event], listed: Listed) -> Result<()> {
        let begun = Instant::now();
        let (version, answers) =
            join(self.store.boards_version_beside_writes(), self.add_all(fan.take_batches())).await;
        let mut changed = fan.settle(answers)?;
        let version = version?;
        if changed.is_empty() && version == listed.version {
            return Ok(());
        }
        let mut known = listed.catalog.generations();
        let mut fresh = match changed.is_empty() {
            true => self.registry.listed_at(version, begun).await?,
            false => self.registry.listed_after(Instant::now()).await?,
        };
        for _ in 1..ATTEMPTS {
            for board in &changed {
                fan.forget(board);
                known.remove(&board.generation());
            }
            fan.gather_again(&fresh.catalog, &known, events);
            known.extend(fresh.catalog.generations());
            let answers = self.add_all(fan.take_batches()).await;
            changed = fan.settle(answers)?;
            if changed.is_empty() {
                return Ok(());
            }
            fresh = self.registry.listed_after(Instant::now()).await?;
        }
        Err(StoreError::BoardChanged.into())
    }

    async fn add_all(&self, batches: Vec<(Arc<Board>, Batch)>) -> Vec<Result<Added, StoreError>> {
        if batches.is_empty() { Vec::new() } else { self.store.add_all(batches).await }
    }
}

/// Events spread over the boards that take them.
struct Fan {
    return_scores: bool,
    /// One per event.
    events: Vec<Spread>,
    /// One per board that takes any of them.
    boards: Vec<Gathered>,
    /// Where in [`boards`](Self::boards) each is.
    places: HashMap<Generation, usize, rapidhash::fast::RandomState>,
    increments: usize,
    /// Whether some board has counted some event.
    is_counted: bool,
}

#[derive(Default)]
struct Spread {
    is_known: bool,
    on: Vec<OnBoardSoFar>,
}

struct OnBoardSoFar {
    board: Arc<Board>,
    subject: Option<Subject>,
    /// `None` until the store has answered; for good where the board is no longer.
    taken: Option<Taken>,
}

/// What events do to one board.
struct Gathered {
    board: Arc<Board>,
    batch: Batch,
    /// For each increment the event, and the place among what boards did with it.
    origins: Vec<(usize, usize)>,
}

impl Fan {
    fn new(return_scores: bool) -> Self {
        Self {
            return_scores,
            events: Vec::new(),
            boards: Vec::new(),
            places: HashMap::default(),
            increments: 0,
            is_counted: false,
        }
    }

    /// Spreads the next event; `false`, and nothing done, if the portion is full. One event always fits.
    fn gather(&mut self, catalog: &Catalog, event: &Event) -> bool {
        if self.increments >= PORTION {
            return false;
        }
        let at = self.events.len();
        self.events.push(Spread::default());
        self.spread(catalog, at, event);
        true
    }

    /// Drops whatever a board was found to do, because it is another one by now.
    fn forget(&mut self, board: &Board) {
        for on in self.events.iter_mut().flat_map(|event| &mut event.on) {
            if on.board.generation() == board.generation() {
                on.taken = None;
            }
        }
    }

    /// Spreads the same events over those boards of a newer list that are not among the known ones.
    fn gather_again(&mut self, fresh: &Catalog, known: &HashSet<Generation>, events: &[Event]) {
        let (new, there) = (fresh.beyond(known), fresh.generations());
        for (at, event) in events.iter().enumerate() {
            let spread = &mut self.events[at];
            // A board that has gone has no say; but what one took before it went, it took.
            let is_ours = |taken: &Taken| matches!(taken, Taken::Refused(refusal) if refusal.is_ours());
            spread.on.retain(|on| there.contains(&on.board.generation()) || !on.taken.as_ref().is_some_and(is_ours));
            spread.is_known = spread.on.iter().any(|on| on.taken.is_some()) || !fresh.of(&event.kind).is_empty();
            self.spread(&new, at, event);
        }
    }

    fn spread(&mut self, catalog: &Catalog, at: usize, event: &Event) {
        let boards = catalog.of(&event.kind);
        self.events[at].is_known |= !boards.is_empty();
        for board in boards {
            let refused = |refusal| Some(Taken::Refused(refusal));
            let (subject, taken) = match increment(board, event) {
                None => continue,
                Some(Err(refusal)) => (None, refused(refusal)),
                Some(Ok(increment)) => {
                    let subject = self.return_scores.then(|| increment.subject.clone());
                    self.add(board, increment, (at, self.events[at].on.len()));
                    (subject, None)
                }
            };
            self.events[at].on.push(OnBoardSoFar { board: board.clone(), subject, taken });
        }
    }

    fn add(&mut self, board: &Arc<Board>, increment: Increment, origin: (usize, usize)) {
        let place = *self.places.entry(board.generation()).or_insert_with(|| {
            let batch = Batch { increments: Vec::new(), return_scores: self.return_scores };
            self.boards.push(Gathered { board: board.clone(), batch, origins: Vec::new() });
            self.boards.len() - 1
        });
        let gathered = &mut self.boards[place];
        gathered.batch.increments.push(increment);
        gathered.origins.push(origin);
        self.increments += 1;
    }

    /// What the store has not been given yet.
    fn take_batches(&mut self) -> Vec<(Arc<Board>, Batch)> {
        self.boards.iter_mut().map(|gathered| (gathered.board.clone(), std::mem::take(&mut gathered.batch))).collect()
    }

    /// Notes the store's answers to what [`take_batches`](Self::take_batches) gave; answers the boards that have
    /// changed. All answers are looked at before one that failed is passed on.
    fn settle(&mut self, answers: Vec<Result<Added, StoreError>>) -> Result<Vec<Arc<Board>>> {
        let (mut changed, mut failed) = (Vec::new(), None);
        for (gathered, answer) in self.boards.drain(..).zip(answers) {
            match answer {
                Ok(added) => {
                    self.is_counted |= added.outcomes.iter().any(|outcome| matches!(outcome, Outcome::Counted { .. }));
                    for ((event, on), outcome) in gathered.origins.into_iter().zip(added.outcomes) {
                        self.events[event].on[on].taken = Some(outcome.into());
                    }
                }
                Err(StoreError::BoardChanged) => changed.push(gathered.board),
                Err(error) => failed = failed.or(Some(error)),
            }
        }
        self.places.clear();
        failed.map_or(Ok(changed), |error| Err(error.into()))
    }

    fn outcomes(self) -> impl Iterator<Item = EventOutcome> {
        self.events.into_iter().map(|Spread { is_known, on }| {
            let settled = |on: OnBoardSoFar| {
                let OnBoardSoFar { board, subject, taken } = on;
                Some(OnBoard { board, subject, taken: taken? })
            };
            let mut boards: Vec<_> = on.into_iter().filter_map(settled).collect();
            // In order already, unless a board had to be asked again.
            boards.sort_by(|a, b| a.board.name().cmp(b.board.name()));
            EventOutcome { is_known, boards }
        })
    }
}

/// The error of a call of which some board has counted something: not one that says that nothing was done.
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

/// What an event does to a board of its type; `None` if the board's filter leaves it out.
fn increment(board: &Board, event: &Event) -> Option<Result<Increment, Refusal>> {
    let (subject, change) = match board.definition().metric.contribution(event, board.decimals()) {
        Ok(contribution) => contribution?,
        Err(fault) => return Some(Err(Refusal::Field(fault))),
    };
    if event.retract && !board.takes_retractions() {
        return Some(Err(Refusal::RetractionUnsupported));
    }
    if event.retract && event.at.is_none() {
        return Some(Err(Refusal::RetractionWithoutTime));
    }
    Some(Ok(Increment { subject, change, retract: event.retract, at: event.at, id: event.id.clone() }))
}
