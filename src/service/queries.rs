//! Queries about the value that one subject has over a window. Many are answered at once, each with its own result.
//!
//! All queries of one call are sent to the store together, in one round trip where the store allows. Queries that
//! read many slots are sent in portions, one portion after another, so that the memory of a request is bounded. If a
//! board was removed and defined again in the meantime, the queries about it are asked once more, about the new
//! board.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use super::board_selection::Serving;
use super::registry::Listed;
use super::windows::WindowChoice;
use super::{Result, Service, ServiceError, board_selection};
use crate::access::Caller;
use crate::board::{
    Aggregate, Amount, Board, BoardName, BoardTrack, Cover, Edge, EditionRole, Kind, Metric, RankingKey, Span, Subject,
    Timestamp, Track, Value, WindowLength, remaining_share, share_after, weighted_value,
};
use crate::store::{SlotContents, SlotQuery, SlotRange, StoreError};

/// The largest age of the list by which one of several boards that serve a metric is chosen. If no board of the list
/// serves the metric, the store is always asked.
const MAX_AGE: Duration = Duration::from_secs(1);

/// The largest number of slots that one store call reads, because their contents are in memory at the same time. A
/// sketch, which has up to 2 KB, counts as [`SKETCH`] slots.
const PORTION: u64 = 32_768;
const SKETCH: u64 = 32;

/// A query about one subject.
#[derive(Clone, Debug)]
pub enum Query {
    /// Names a board and a window of it.
    Window(WindowQuery),
    /// Names a metric. A board that serves it answers: one of `boards`, or any if there are none. The subject is that of
    /// [the fields](Metric::subject_of), with its key if the metric has `BY`.
    Metric { metric: Metric, subject: Subject, boards: Box<[BoardName]> },
}

/// A query for the value of one subject over a window of a board.
#[derive(Clone, Debug)]
pub struct WindowQuery {
    pub board: BoardName,
    pub subject: Subject,
    /// The length of the window of the board to read. Without it, [`Over::Last`] reads the window with the finest slots
    /// of those that cover it, and the others read the main window. Of a board over all time, [`Over::Last`] and
    /// [`Over::From`] read the slots that it keeps.
    pub window: Option<WindowLength>,
    /// The role of the edition to read, or `None` for the current one.
    pub of: Option<EditionRole>,
    /// The key of the ranking that the subject is in, if the board has keys.
    pub by: Option<RankingKey>,
    pub over: Over,
    /// The time at which the window ends, if not now. Only for unranked boards, except COUNT_DISTINCT and `from_first`.
    pub as_of: Option<Timestamp>,
    /// The weight of the oldest slot. [`Edge::Weighted`] needs a board with `cover = "full"` whose metric adds up.
    pub edge: Edge,
}

/// The part of a window of a board to read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Over {
    /// The whole window. On a `from_first` board, the subject's own window.
    Whole,
    /// As many of the newest slots as [answer for](Track::slots_for) this length.
    Last(Span),
    /// All slots from the one that contains this time.
    From(Timestamp),
}

/// The track that serves a metric.
#[derive(Clone, Debug)]
pub struct ServingTrack {
    pub track: BoardTrack,
    /// The number of its newest slots that are read.
    pub slots: u32,
    /// As [`QueryAnswer::covers_since`].
    pub covers_since: Option<Timestamp>,
}

/// The answer to a [`Query`].
#[derive(Clone, Debug)]
pub struct QueryAnswer {
    /// The track that answered, with the key of the ranking if the board has keys.
    pub track: BoardTrack,
    /// The subject, without the key.
    pub subject: Subject,
    /// The contents of the slots without the aggregates, whose result is in `value` and `measured`.
    pub contents: SlotContents,
    measured: Option<(Amount, i64)>,
    last_at: Option<Timestamp>,
    /// The weight with which the oldest slot counted.
    pub edge: Edge,
    /// The time since which the board has counted, if that is after the start of the slots that were read, so that what
    /// happened before may be missing. See [`BoardTrack::covers_since`](crate::board::BoardTrack::covers_since). Always
    /// present over all time, if it is known.
    pub covers_since: Option<Timestamp>,
    /// The combined value of the slots, or `None` if the metric has no value for a subject without data.
    pub value: Option<Value>,
}

impl QueryAnswer {
    /// Returns the value in whole units. On a board with 2 decimals, 150 units are 1.5.
    pub fn number(&self) -> Option<f64> {
        let whole = Amount::one(self.track.decimals()).0 as f64;
        self.value.map(|value| value.as_units(self.track.scale()) / whole)
    }

    /// Returns the sum and the number of the measurements. Only for AVG.
    pub fn measured(&self) -> Option<(Amount, i64)> {
        self.measured
    }

    /// Returns the time of the value. Only for LAST.
    pub fn last_at(&self) -> Option<Timestamp> {
        self.last_at
    }
}

/// Returns the sum and the number of all measurements of a mean, or `None` for other kinds.
fn measured(track: &Track, contents: &SlotContents) -> Option<(Amount, i64)> {
    (track.kind() == Kind::Mean).then(|| {
        let aggregates = contents.aggregates.iter();
        aggregates.fold((Amount(0), 0), |(sum, count), (_, aggregate)| match aggregate {
            Aggregate::Mean { sum: more, count: times } => (Amount(sum.0 + more.0), count + times),
            _ => (sum, count),
        })
    })
}

/// What is looked up at most once for all metrics of a call.
#[derive(Debug, Default)]
pub(super) struct Lookups {
    /// Whether the store was asked for boards that are not known here.
    is_newest: bool,
    /// The store's time.
    now: Option<Timestamp>,
}

/// A query that was checked against its board, with the store request that answers it.
struct PlannedQuery {
    slot_query: SlotQuery,
    over: Over,
    edge: Edge,
}

impl Service {
    /// Answers one query. One store call.
    pub async fn query(&self, caller: &Caller, query: Query) -> Result<QueryAnswer> {
        let mut answers = self.queries(caller, vec![query]).await;
        answers.pop().unwrap_or_else(|| Err(unanswered().into()))
    }

    /// Answers each query, in the given order. An error of one query does not affect the others. Makes one store
    /// call for each 32,768 slots; O(slots) for each query.
    pub async fn queries(&self, caller: &Caller, queries: Vec<Query>) -> Vec<Result<QueryAnswer>> {
        let mut plans = Vec::with_capacity(queries.len());
        let mut lookups = Lookups::default();
        for query in &queries {
            plans.push(self.plan(caller, query, &mut lookups).await);
        }
        let mut answers = self.ask(plans).await;
        let changed = |answer: &Result<QueryAnswer>| {
            matches!(answer, Err(ServiceError::Store(StoreError::BoardChanged | StoreError::StaleEpoch)))
        };
        let again: Vec<usize> = (0..answers.len()).filter(|&index| changed(&answers[index])).collect();
        // Boards change rarely, so all boards are looked up again in one call.
        if !again.is_empty() && self.registry.refresh_all().await.is_ok() {
            let mut plans = Vec::with_capacity(again.len());
            for &index in &again {
                plans.push(self.plan(caller, &queries[index], &mut lookups).await);
            }
            for (index, answer) in again.into_iter().zip(self.ask(plans).await) {
                answers[index] = answer;
            }
        }
        answers
    }

    async fn plan(&self, caller: &Caller, query: &Query, lookups: &mut Lookups) -> Result<PlannedQuery> {
        match query {
            Query::Window(query) => {
                let choice =
                    WindowChoice { of: query.of.into(), length: query.window, by: query.by.clone(), attributes: None };
                let window = self.window(caller, &query.board, choice, None).await?;
                let (edition, key) = (window.edition(), window.key().cloned());
                let (track, range) = match (query.window, query.over, edition.kept_track()) {
                    (None, Over::Last(_), _) => board_selection::finest(&edition, |track| range(track, query))?,
                    (None, Over::From(_), Some(kept_slots)) => {
                        let range = range(&kept_slots, query)?;
                        (kept_slots, range)
                    }
                    _ => {
                        let range = range(&window, query)?;
                        (window, range)
                    }
                };
                let track = track.of_key(key);
                let slot_query = SlotQuery { track, subject: query.subject.clone(), range, as_of: query.as_of };
                Ok(PlannedQuery { slot_query, over: query.over, edge: query.edge })
            }
            Query::Metric { metric, subject, boards } => {
                let serving = self.select_board(caller, metric, boards, lookups).await?;
                let (key, subject) = subject.clone().split();
                let (range, track) = (serving.range(), serving.track.of_key(key));
                let slot_query = SlotQuery { track, subject, range, as_of: None };
                let over = metric.window.span().map_or(Over::Whole, Over::Last);
                Ok(PlannedQuery { slot_query, over, edge: Edge::Slots })
            }
        }
    }

    /// Returns the track that serves a metric, and the slots to read: of one of the boards `pinned`, or of any if there
    /// are none. If no known board serves it, asks the store whether there are other boards. Several boards make it ask
    /// for the store's time, unless the one with the finest slots was defined first, or covered the window when the
    /// time was last asked for.
    pub(super) async fn select_board(
        &self,
        caller: &Caller,
        metric: &Metric,
        pinned: &[BoardName],
        lookups: &mut Lookups,
    ) -> Result<Serving> {
        if !pinned.is_empty() {
            for name in pinned {
                caller.require_board(name)?;
            }
            let mut boards = Vec::with_capacity(pinned.len());
            for name in pinned {
                boards.push(self.board_named(name).await?);
            }
            let found = self.choose(metric, board_selection::serving(&boards, metric), lookups).await?;
            return found
                .ok_or_else(|| ServiceError::NotServed { metric: Box::new(metric.clone()), boards: pinned.into() });
        }
        let mut listed = self.registry.listed_within(MAX_AGE).await?;
        // A board that serves the metric counts the same types, so one of them finds it.
        let event = metric.terms.types().next().unwrap_or_default();
        // With a cap for each person the score is not what the metric says, so such a board has to be named.
        let has_all = |board: &&Arc<Board>| board.definition().cap.is_none();
        let serving =
            |listed: &Listed| board_selection::serving(listed.event_index.of(caller, event).filter(has_all), metric);
        if let Some(found) = self.choose(metric, serving(&listed), lookups).await? {
            return Ok(found);
        }
        if !lookups.is_newest {
            let since = Instant::now();
            let version = self.store.boards_version().await?;
            if version != listed.version {
                listed = self.registry.listed_at(version, since).await?;
            }
            lookups.is_newest = true;
            if let Some(found) = self.choose(metric, serving(&listed), lookups).await? {
                return Ok(found);
            }
        }
        let index = &listed.event_index;
        let name = || board_selection::suggested_name(metric, |name| index.has(name));
        let of_events = metric.terms.types().flat_map(|event| index.of(caller, event));
        let suggestion = board_selection::suggestion(of_events, metric).map(|board| (name(), Box::new(board)));
        Err(ServiceError::NoBoard { metric: Box::new(metric.clone()), suggestion })
    }

    /// Returns the board that is to answer, of those that serve a metric.
    async fn choose(&self, metric: &Metric, all: Vec<Serving>, lookups: &mut Lookups) -> Result<Option<Serving>> {
        let earlier = Timestamp::from_millis(self.time_of_choice.load(Ordering::Relaxed));
        if let Some(chosen) = board_selection::chosen_at_any_time(&all, metric, earlier) {
            return Ok(Some(chosen.clone()));
        }
        let now = match lookups.now {
            _ if all.is_empty() => return Ok(None),
            Some(now) => now,
            None => {
                let now = *lookups.now.insert(self.store.now().await?);
                self.time_of_choice.store(now.millis(), Ordering::Relaxed);
                now
            }
        };
        Ok(board_selection::chosen_at(&all, metric, now).cloned())
    }

    /// Returns the track that serves a metric now, if there is one: one of `pinned`, or any if there are none.
    pub async fn track_serving(
        &self,
        caller: &Caller,
        metric: &Metric,
        pinned: &[BoardName],
    ) -> Result<Option<ServingTrack>> {
        match self.select_board(caller, metric, pinned, &mut Lookups::default()).await {
            Ok(serving) => {
                let covers_since = serving.covers_since(metric, self.store.now().await?);
                Ok(Some(ServingTrack { slots: serving.slots, covers_since, track: serving.track }))
            }
            Err(ServiceError::NoBoard { .. } | ServiceError::NotServed { .. } | ServiceError::UnknownBoard(_)) => {
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    /// Reads from the store for all queries that could be planned, in portions. The slots of a portion are dropped as
    /// soon as its answers are computed.
    async fn ask(&self, plans: Vec<Result<PlannedQuery>>) -> Vec<Result<QueryAnswer>> {
        let mut answers = Vec::with_capacity(plans.len());
        let mut plans = plans.into_iter().peekable();
        while plans.peek().is_some() {
            let (mut portion, mut slots) = (Vec::new(), 0);
            while let Some(plan) = plans.next_if(|plan| slots == 0 || slots + cells(plan) <= PORTION) {
                slots += cells(&plan);
                portion.push(plan);
            }
            let found = self.ask_portion(portion).await;
            let silence = silence_of(&found);
            answers.extend(found);
            if let Some(at) = silence {
                // Each further portion would wait for its timeout, with the same result.
                answers.extend(plans.map(|plan| plan.and_then(|_| Err(unasked(&at).into()))));
                break;
            }
        }
        answers
    }

    async fn ask_portion(&self, plans: Vec<Result<PlannedQuery>>) -> Vec<Result<QueryAnswer>> {
        let slot_queries: Vec<SlotQuery> = plans.iter().flatten().map(|planned| planned.slot_query.clone()).collect();
        let mut all_contents =
            if slot_queries.is_empty() { Vec::new() } else { self.store.read(slot_queries).await }.into_iter();
        let answer = |plan: Result<PlannedQuery>| {
            let planned = plan?;
            let contents = all_contents.next().unwrap_or_else(|| Err(unanswered()));
            let as_of = planned.slot_query.as_of;
            let contents = contents.map_err(|error| match (error, as_of) {
                (StoreError::BeyondWindow { floor }, Some(as_of)) => ServiceError::NotKept { as_of, floor },
                (error, _) => error.into(),
            })?;
            finish(planned, contents)
        };
        plans.into_iter().map(answer).collect()
    }
}

/// Returns the number of slots that a query reads, weighted by their size. Returns 0 for a query that was
/// refused.
fn cells(plan: &Result<PlannedQuery>) -> u64 {
    let Ok(PlannedQuery { slot_query: SlotQuery { track, range, .. }, .. }) = plan else { return 0 };
    let slots = match range {
        SlotRange::Slots(slots) => (*slots).min(track.slots()),
        SlotRange::From(_) => track.slots(),
    };
    let of_slot = match track.kind() {
        Kind::Sketch => SKETCH,
        Kind::Sum
        | Kind::TimedSum(_)
        | Kind::Distinct
        | Kind::Capped { .. }
        | Kind::Mean
        | Kind::Min
        | Kind::Max
        | Kind::Last => 1,
    };
    u64::from(slots) * of_slot
}

/// Returns the address of a store that answered none of these queries.
fn silence_of(answers: &[Result<QueryAnswer>]) -> Option<String> {
    let mut silent = None;
    for answer in answers {
        match answer {
            Err(ServiceError::Store(StoreError::Unreachable { at, .. } | StoreError::TimedOut { at })) => {
                silent = Some(at.clone());
            }
            _ => return None,
        }
    }
    silent
}

/// Returns the error of a query that was not asked, because the store did not answer those before it.
fn unasked(at: &str) -> StoreError {
    StoreError::Unreachable { at: at.to_owned(), source: "the queries before this one were not answered".into() }
}

fn unanswered() -> StoreError {
    StoreError::Corrupt { detail: "a query was not answered".to_owned() }
}

/// Returns the slots that a query asks for. Returns an error if the query does not fit the board.
fn range(track: &BoardTrack, query: &WindowQuery) -> Result<SlotRange> {
    check_as_of(track, query)?;
    check_edge(track, query)?;
    if track.is_from_first() {
        let window = track.length();
        let invalid = |field| {
            let detail = format!("a window that begins with the subject's first event is exactly {window} long");
            Err(ServiceError::InvalidQuery { field, detail })
        };
        return match query.over {
            Over::Last(last) if !window.is_as_long_as(last.into()) => invalid("last"),
            Over::From(_) => invalid("from"),
            _ => Ok(SlotRange::Slots(1)),
        };
    }
    if track.is_all_time() {
        let invalid = |field| {
            let detail = match track.edition().kept_slots() {
                Some(_) => "the window all has no slots to choose from; leave out 'window' to read the kept slots",
                None => {
                    "a board over all time has no slots to choose from, unless its definition has 'slot' and 'keep'"
                }
            };
            Err(ServiceError::InvalidQuery { field, detail: detail.to_owned() })
        };
        return match query.over {
            Over::Last(_) => invalid("last"),
            Over::From(_) => invalid("from"),
            Over::Whole => Ok(SlotRange::Slots(1)),
        };
    }
    match query.over {
        Over::Whole => Ok(SlotRange::Slots(track.slots())),
        Over::From(from) => Ok(SlotRange::From(from)),
        Over::Last(last) => {
            let slot = track.slot().unwrap_or(last);
            let Some(slots) = track.calendar().slots_covering(last) else {
                let detail = format!(
                    "{last} cannot be divided into the board's slots of {slot}: months and shorter units cannot be combined"
                );
                return Err(ServiceError::InvalidQuery { field: "last", detail });
            };
            let most = u64::from(track.slots() - track.additional_slots());
            let too_long = || ServiceError::TooLong { last, slots, slot, most, window: track.length() };
            track.slots_for(last).map(SlotRange::Slots).ok_or_else(too_long)
        }
    }
}

fn check_as_of(track: &BoardTrack, query: &WindowQuery) -> Result<()> {
    let Some(as_of) = query.as_of else { return Ok(()) };
    let has_kept_slots = track.edition().kept_slots().is_some();
    let why = match track.kind() {
        _ if track.is_all_time() && has_kept_slots => {
            "it keeps no earlier totals; its kept slots are read with 'last' or 'from'"
        }
        _ if track.is_all_time() => "a board over all time keeps no earlier totals",
        _ if track.is_ranked() => "a ranked board does not keep slots that have left the window",
        _ if track.is_from_first() => "a from_first board does not keep windows that have ended",
        Kind::Distinct => "COUNT_DISTINCT stores only the time at which each value was last seen",
        // A board with a cap is ranked.
        Kind::Sum
        | Kind::TimedSum(_)
        | Kind::Capped { .. }
        | Kind::Mean
        | Kind::Min
        | Kind::Max
        | Kind::Last
        | Kind::Sketch => {
            return match query.over {
                Over::From(from) if from > as_of => Err(ahead(from, "as_of", as_of)),
                _ => Ok(()),
            };
        }
    };
    Err(ServiceError::AsOfUnsupported { board: track.board().name().clone(), why })
}

fn check_edge(track: &BoardTrack, query: &WindowQuery) -> Result<()> {
    let why = match track.kind() {
        _ if query.edge == Edge::Slots => return Ok(()),
        _ if track.is_from_first() => "a from_first window has no slots",
        _ if track.is_all_time() => "an all-time window has no slots",
        _ if track.scale().has_keys() => "what orders equal scores is not known for a fraction of a slot",
        Kind::Min | Kind::Max => "MIN and MAX are not known for a fraction of a slot",
        Kind::Last => "the newest value is not known for a fraction of a slot",
        Kind::Sketch => "an estimate of distinct values is not known for a fraction of a slot",
        _ if track.cover() != Cover::Full => "it keeps no slot beyond its window; define one with cover = \"full\"",
        _ if query.as_of.is_some() => "only the current window begins within a slot",
        Kind::Sum | Kind::TimedSum(_) | Kind::Distinct | Kind::Capped { .. } | Kind::Mean => return Ok(()),
    };
    Err(ServiceError::EdgeUnsupported { board: track.board().name().clone(), why })
}

fn ahead(from: Timestamp, of: &str, end: Timestamp) -> ServiceError {
    ServiceError::InvalidQuery { field: "from", detail: format!("{from} is after {of}, {end}") }
}

/// Computes the answer from the contents of the slots.
fn finish(planned: PlannedQuery, mut contents: SlotContents) -> Result<QueryAnswer> {
    let PlannedQuery { slot_query: SlotQuery { track, subject, as_of, .. }, over, edge } = planned;
    let frame = contents.frame;
    if let Over::From(from) = over
        && as_of.is_none()
        && from > frame.as_of
    {
        return Err(ahead(from, "the store's clock", frame.as_of));
    }
    let value = match edge {
        Edge::Slots => contents.value(&track),
        Edge::Weighted => {
            let oldest = frame.window.floor;
            let share = match over {
                Over::From(from) => share_after(oldest, track.calendar().next(oldest), frame.as_of, from),
                Over::Whole | Over::Last(_) => remaining_share(&frame.window, frame.as_of),
            };
            weighted_value(track.kind(), &contents.aggregates, oldest, share, track.averaging())
        }
    };
    let measured = measured(&track, &contents);
    let last_at = contents.aggregates.last().and_then(|(_, newest)| newest.time());
    contents.aggregates = Vec::new();
    let now = as_of.unwrap_or(frame.as_of);
    let floor = match over {
        // The newest slot is only partly over, so the slots may begin later than the time that was asked for.
        Over::Last(span) => frame.window.floor.min(now.plus_millis(-span.approximate_millis())),
        Over::Whole | Over::From(_) => frame.window.floor,
    };
    let covers_since = board_selection::covers_since(&track, floor, now);
    Ok(QueryAnswer { track, subject, contents, measured, last_at, edge, covers_since, value })
}
