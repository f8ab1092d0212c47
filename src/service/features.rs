//! Questions about the value that one subject has over a window. Many are answered at once, each with its own result.
//!
//! All questions of one call are sent to the store together, in one round trip where the store allows. Questions that
//! read many slots are sent in portions, one portion after another, so that the memory of a request is bounded. If a
//! board was removed and defined again in the meantime, the questions about it are asked once more, about the new
//! board.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::{Result, Service, ServiceError, serving};
use crate::board::{
    Amount, Board, BoardName, Cover, Edge, Kind, Metric, Mode, Span, Subject, Tally, Timestamp, Value, remaining_share,
    share_after, weighted_value,
};
use crate::store::{Ask, Reach, Reading, StoreError};

/// The largest age of the list by which one of several boards that serve a metric is chosen. If no board of the list
/// serves the metric, the store is always asked.
const MOST_AGE: Duration = Duration::from_secs(1);

/// The largest number of slots that one store call reads, because their contents are in memory at the same time. A
/// sketch, which has up to 2 KB, counts as [`SKETCH`] slots.
const PORTION: u64 = 32_768;
const SKETCH: u64 = 32;

/// A question about one subject.
#[derive(Clone, Debug)]
pub enum Question {
    /// Names a board and a window of it.
    Window(WindowQuestion),
    /// Names a metric. Any board that serves it answers.
    Metric { metric: Metric, subject: Subject },
}

/// A question for the value of one subject over a window of a board.
#[derive(Clone, Debug)]
pub struct WindowQuestion {
    pub board: BoardName,
    pub subject: Subject,
    pub over: Over,
    /// The time at which the window ends, if not now. Only for unranked boards, except COUNT_DISTINCT and `from_first`.
    pub as_of: Option<Timestamp>,
    /// The weight of the oldest slot. [`Edge::Weighted`] needs a board with `cover = "full"` whose metric adds up.
    pub edge: Edge,
}

/// The part of a board's window to read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Over {
    /// The whole window. On a `from_first` board, the subject's own window.
    Whole,
    /// As many of the newest slots as are needed to cover this time.
    Last(Span),
    /// All slots from the one that contains this time.
    From(Timestamp),
}

/// The answer to a [`Question`].
#[derive(Clone, Debug)]
pub struct Feature {
    /// The board that answered.
    pub board: Arc<Board>,
    pub subject: Subject,
    /// The reading, without its tallies. [`value`](Self::value) and [`measured`](Self::measured) contain their result.
    pub reading: Reading,
    measured: Option<(Amount, i64)>,
    /// The weight with which the oldest slot counted.
    pub edge: Edge,
    /// The combined value of the slots, or `None` if the metric has no value for a subject without data.
    pub value: Option<Value>,
}

impl Feature {
    /// Returns the value in whole units. On a board with 2 decimals, 150 units are 1.5.
    pub fn number(&self) -> Option<f64> {
        let whole = Amount::one(self.board.decimals()).0 as f64;
        self.value.map(|value| value.as_f64() / whole)
    }

    /// Returns the sum and the number of the measurements. Only for AVG.
    pub fn measured(&self) -> Option<(Amount, i64)> {
        self.measured
    }
}

/// Returns the sum and the number of all measurements of a mean, or `None` for other kinds.
fn measured(board: &Board, reading: &Reading) -> Option<(Amount, i64)> {
    (board.kind() == Kind::Mean).then(|| {
        let tallies = reading.tallies.iter();
        tallies.fold((Amount(0), 0), |(sum, count), (_, tally)| match tally {
            Tally::Mean { sum: more, count: times } => (Amount(sum.0 + more.0), count + times),
            _ => (sum, count),
        })
    })
}

/// A question that was checked against its board, with the store request that answers it.
struct Planned {
    ask: Ask,
    over: Over,
    edge: Edge,
}

impl Service {
    /// Answers one question. One store call.
    pub async fn feature(&self, question: Question) -> Result<Feature> {
        let mut answers = self.features(vec![question]).await;
        answers.pop().unwrap_or_else(|| Err(unanswered().into()))
    }

    /// Answers each question, in the given order. An error of one question does not affect the others. Makes one store
    /// call for each 32,768 slots; O(slots) for each question.
    pub async fn features(&self, questions: Vec<Question>) -> Vec<Result<Feature>> {
        let mut plans = Vec::with_capacity(questions.len());
        let mut is_newest = false;
        for question in &questions {
            plans.push(self.plan(question, &mut is_newest).await);
        }
        let mut answers = self.ask(plans).await;
        let changed = |answer: &Result<Feature>| matches!(answer, Err(ServiceError::Store(StoreError::BoardChanged)));
        let again: Vec<usize> = (0..answers.len()).filter(|&index| changed(&answers[index])).collect();
        // Boards change rarely, so all boards are looked up again in one call.
        if !again.is_empty() && self.boards().await.is_ok() {
            let mut plans = Vec::with_capacity(again.len());
            for &index in &again {
                plans.push(self.plan(&questions[index], &mut is_newest).await);
            }
            for (index, answer) in again.into_iter().zip(self.ask(plans).await) {
                answers[index] = answer;
            }
        }
        answers
    }

    async fn plan(&self, question: &Question, is_newest: &mut bool) -> Result<Planned> {
        match question {
            Question::Window(question) => {
                let board = self.board(&question.board).await?;
                let reach = reach(&board, question)?;
                let ask = Ask { board, subject: question.subject.clone(), reach, as_of: question.as_of };
                Ok(Planned { ask, over: question.over, edge: question.edge })
            }
            Question::Metric { metric, subject } => {
                let (board, reach) = self.serving(metric, is_newest).await?;
                let ask = Ask { board, subject: subject.clone(), reach, as_of: None };
                Ok(Planned { ask, over: Over::Whole, edge: Edge::Slots })
            }
        }
    }

    /// Returns the board that serves a metric, and the slots to read. If no known board serves it, asks the store
    /// whether there are other boards.
    ///
    /// One such request is enough for all metrics of a call: `is_newest` states whether it was made, and is then set to
    /// true.
    pub(super) async fn serving(&self, metric: &Metric, is_newest: &mut bool) -> Result<(Arc<Board>, Reach)> {
        let listed = self.registry.listed_within(MOST_AGE).await?;
        if let Some(found) = serving::board_for(listed.catalog.of(&metric.event), metric) {
            return Ok(found);
        }
        if !*is_newest {
            let since = Instant::now();
            let version = self.store.boards_version().await?;
            let listed =
                if version == listed.version { listed } else { self.registry.listed_at(version, since).await? };
            *is_newest = true;
            if let Some(found) = serving::board_for(listed.catalog.of(&metric.event), metric) {
                return Ok(found);
            }
        }
        Err(ServiceError::NoBoard {
            metric: Box::new(metric.clone()),
            suggestion: serving::suggestion(metric).map(|board| (serving::suggested_name(metric), Box::new(board))),
        })
    }

    /// Returns the board that serves a metric, if there is one.
    pub async fn board_serving(&self, metric: &Metric) -> Result<Option<Arc<Board>>> {
        match self.serving(metric, &mut false).await {
            Ok((board, _)) => Ok(Some(board)),
            Err(ServiceError::NoBoard { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Reads from the store for all questions that could be planned, in portions. The slots of a portion are dropped as
    /// soon as its answers are computed.
    async fn ask(&self, plans: Vec<Result<Planned>>) -> Vec<Result<Feature>> {
        let mut answers = Vec::with_capacity(plans.len());
        let mut plans = plans.into_iter().peekable();
        while plans.peek().is_some() {
            let (mut portion, mut slots) = (Vec::new(), 0);
            while let Some(plan) = plans.next_if(|plan| slots == 0 || slots + cells(plan) <= PORTION) {
                slots += cells(&plan);
                portion.push(plan);
            }
            answers.extend(self.ask_portion(portion).await);
        }
        answers
    }

    async fn ask_portion(&self, plans: Vec<Result<Planned>>) -> Vec<Result<Feature>> {
        let asks: Vec<Ask> = plans.iter().flatten().map(|planned| planned.ask.clone()).collect();
        let mut readings = if asks.is_empty() { Vec::new() } else { self.store.read(asks).await }.into_iter();
        let answer = |plan: Result<Planned>| {
            let planned = plan?;
            let reading = readings.next().unwrap_or_else(|| Err(unanswered()));
            let as_of = planned.ask.as_of;
            let reading = reading.map_err(|error| match (error, as_of) {
                (StoreError::BeyondWindow { floor }, Some(as_of)) => ServiceError::NotKept { as_of, floor },
                (error, _) => error.into(),
            })?;
            finish(planned, reading)
        };
        plans.into_iter().map(answer).collect()
    }
}

/// Returns the number of slots that a question reads, weighted by their size. Returns 0 for a question that was
/// refused.
fn cells(plan: &Result<Planned>) -> u64 {
    let Ok(Planned { ask: Ask { board, reach, .. }, .. }) = plan else { return 0 };
    let slots = match reach {
        Reach::Slots(slots) => (*slots).min(board.slots()),
        Reach::From(_) => board.slots(),
    };
    u64::from(slots) * if board.kind() == Kind::Sketch { SKETCH } else { 1 }
}

fn unanswered() -> StoreError {
    StoreError::Corrupt { detail: "a question was not answered".to_owned() }
}

/// Returns the slots that a question asks for. Returns an error if the question does not fit the board.
fn reach(board: &Board, question: &WindowQuestion) -> Result<Reach> {
    let definition = board.definition();
    check_as_of(board, question)?;
    check_edge(board, question)?;
    if definition.mode == Mode::FromFirst {
        let window = definition.metric.window;
        let misasked = |field| {
            let detail = format!("a window that begins with the subject's first event is just {window} long");
            Err(ServiceError::Misasked { field, detail })
        };
        return match question.over {
            Over::Last(last) if !last.is_as_long_as(window) => misasked("last"),
            Over::From(_) => misasked("from"),
            _ => Ok(Reach::Slots(1)),
        };
    }
    match question.over {
        Over::Whole => Ok(Reach::Slots(board.slots())),
        Over::From(from) => Ok(Reach::From(from)),
        Over::Last(last) => {
            let slot = definition.slot;
            let Some(slots) = board.calendar().slots_covering(last) else {
                let detail = format!("{last} and the board's slots of {slot}: months and shorter units do not mix");
                return Err(ServiceError::Misasked { field: "last", detail });
            };
            let more = u64::from(question.edge == Edge::Weighted);
            let within = u32::try_from(slots.saturating_add(more)).ok().filter(|slots| *slots <= board.slots());
            let too_long = || ServiceError::TooLong {
                last,
                slots,
                slot,
                most: u64::from(board.slots()) - more,
                window: definition.metric.window,
            };
            within.map(Reach::Slots).ok_or_else(too_long)
        }
    }
}

fn check_as_of(board: &Board, question: &WindowQuestion) -> Result<()> {
    let definition = board.definition();
    let Some(as_of) = question.as_of else { return Ok(()) };
    let why = match board.kind() {
        _ if definition.ranked => "a ranked board does not keep slots that have left the window",
        _ if definition.mode == Mode::FromFirst => "a from_first board does not keep windows that have ended",
        Kind::Distinct => "COUNT_DISTINCT stores only the time at which each value was last seen",
        _ => {
            return match question.over {
                Over::From(from) if from > as_of => Err(ahead(from, "as_of", as_of)),
                _ => Ok(()),
            };
        }
    };
    Err(ServiceError::AsOfUnsupported { board: board.name().clone(), why })
}

fn check_edge(board: &Board, question: &WindowQuestion) -> Result<()> {
    let definition = board.definition();
    let why = match board.kind() {
        _ if question.edge == Edge::Slots => return Ok(()),
        _ if definition.mode == Mode::FromFirst => "a from_first window has no slots",
        Kind::Min | Kind::Max => "MIN and MAX have no fractions",
        Kind::Sketch => "an estimate of distinct values has no fractions",
        _ if definition.cover != Cover::Full => "it keeps no slot beyond its window; define one with cover = \"full\"",
        _ if question.as_of.is_some() => "only the current window begins within a slot",
        _ => return Ok(()),
    };
    Err(ServiceError::EdgeUnsupported { board: board.name().clone(), why })
}

fn ahead(from: Timestamp, of: &str, end: Timestamp) -> ServiceError {
    ServiceError::Misasked { field: "from", detail: format!("{from} is after {of}, {end}") }
}

/// Computes the answer from a reading.
fn finish(planned: Planned, mut reading: Reading) -> Result<Feature> {
    let Planned { ask: Ask { board, subject, as_of, .. }, over, edge } = planned;
    let frame = reading.frame;
    if let Over::From(from) = over
        && as_of.is_none()
        && from > frame.as_of
    {
        return Err(ahead(from, "the store's clock", frame.as_of));
    }
    let value = match edge {
        Edge::Slots => reading.value(&board),
        Edge::Weighted => {
            let oldest = frame.window.floor;
            let share = match over {
                Over::From(from) => share_after(oldest, board.calendar().next(oldest), frame.as_of, from),
                Over::Whole | Over::Last(_) => remaining_share(&frame.window, frame.as_of),
            };
            weighted_value(board.kind(), &reading.tallies, oldest, share, board.min_samples())
        }
    };
    let measured = measured(&board, &reading);
    reading.tallies = Vec::new();
    Ok(Feature { board, subject, reading, measured, edge, value })
}
