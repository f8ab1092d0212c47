//! Events: each goes to every board whose metric names its type.
//!
//! What the events of one call do to a board is gathered into one batch, and all batches leave together in one
//! store call. A board that turns out to be defined anew gets the events once more, as it counts them now.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use super::catalog::Catalog;
use super::{Result, Service};
use crate::board::{Board, Event, FieldFault, Generation, Subject, Value};
use crate::store::{Added, Batch, Increment, Outcome, Rejection, StoreError};

/// How old the list of boards may be for a type that some board counts: so long may a board that another instance
/// has defined miss events.
pub(super) const MOST_AGE: Duration = Duration::from_secs(1);

/// The same for a type that no board counts as far as is known here. Shorter, because it is often the first event
/// after a board was defined elsewhere; not 0, because clients may send types that nobody ever counts.
pub(super) const MOST_AGE_WHERE_UNKNOWN: Duration = Duration::from_millis(100);

/// Increments that make a portion: what one store call takes if there are very many boards or events.
const PORTION: usize = 100_000;

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
    /// 100,000 increments, if they come to more).
    ///
    /// A board that was defined through another instance within the last second may be missed. An error means that
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
        let mut settled = 0;
        while settled < events.len() {
            let rest = &events[settled..];
            let catalog = self.catalog_for(rest).await?;
            let mut fan = Fan::new(return_scores);
            let end = rest.iter().position(|event| !fan.gather(&catalog, event)).unwrap_or(rest.len());
            let portion = &rest[..end];
            self.send(&mut fan, portion).await?;
            for outcome in fan.outcomes() {
                each(settled, outcome);
                settled += 1;
            }
        }
        Ok(())
    }

    /// A catalog that is as new as the types of these events ask for.
    async fn catalog_for(&self, events: &[Event]) -> Result<Arc<Catalog>> {
        let catalog = self.registry.catalog(MOST_AGE).await?;
        if events.iter().all(|event| !catalog.of(&event.kind).is_empty()) {
            return Ok(catalog);
        }
        Ok(self.registry.catalog(MOST_AGE_WHERE_UNKNOWN).await?)
    }

    /// Hands everything gathered to the store and notes what it says, once more for boards that have changed.
    async fn send(&self, fan: &mut Fan, events: &[Event]) -> Result<()> {
        let answers = self.add_all(fan.take_batches()).await;
        let changed = fan.settle(answers)?;
        if changed.is_empty() {
            return Ok(());
        }
        let mut fresh = Vec::with_capacity(changed.len());
        for board in &changed {
            fan.forget(board);
            fresh.extend(self.registry.refresh(board.name()).await?);
        }
        fan.gather_again(&Catalog::new(fresh), events);
        let answers = self.add_all(fan.take_batches()).await;
        match fan.settle(answers)?.is_empty() {
            true => Ok(()),
            false => Err(StoreError::BoardChanged.into()),
        }
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
        Self { return_scores, events: Vec::new(), boards: Vec::new(), places: HashMap::default(), increments: 0 }
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

    /// Spreads the same events over boards that have changed since.
    fn gather_again(&mut self, fresh: &Catalog, events: &[Event]) {
        for (at, event) in events.iter().enumerate() {
            self.spread(fresh, at, event);
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
