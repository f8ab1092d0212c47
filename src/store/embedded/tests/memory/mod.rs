//! Tests of a board's data: compared with models, with the state after a crash, and with the content of a checkpoint;
//! and of the memory and work that they take.

mod answers;
mod auditing;
mod contents;
mod crashing;
mod editions;
mod freeing;
mod importing;
mod limiting;
mod measuring;
mod passing;
mod portions;
mod refusing;
mod removing;
mod restarting;
mod settling;
mod sizing;
mod walking;
mod working;

use std::sync::Arc;
use std::time::Duration;

use crate::board::{
    Amount, Board, BoardName, Change, Counted, Definition, EventId, Generation, Mode, Span, Subject, Timestamp,
};
use crate::store::embedded::board_state::BoardState;
use crate::store::embedded::boards::LiveBoard;
use crate::store::embedded::fingerprint::FingerprintKey;
use crate::store::embedded::log_operations::LogOperations;
use crate::store::embedded::memory::Room;
use crate::store::embedded::options::Pace;
use crate::store::embedded::storage::files::simulated::Simulated;
use crate::store::embedded::tests::new_board;
use crate::store::embedded::track_data::TrackData;
use crate::store::embedded::writing::{BatchApplication, Undone};
use crate::store::embedded::{Embedded, EmbeddedOptions};
use crate::store::{Added, Batch, ClockMode, Defined, Increment, Lifecycle, Outcome, Result, Store};

/// In these tests a board has one track, unless its other tracks are named.
impl std::ops::Deref for BoardState {
    type Target = TrackData;

    fn deref(&self) -> &TrackData {
        &self.tracks[0]
    }
}

impl std::ops::DerefMut for BoardState {
    fn deref_mut(&mut self) -> &mut TrackData {
        &mut self.tracks[0]
    }
}

const START: Timestamp = Timestamp::from_millis(1_767_225_600_000);
const HOUR: i64 = 3_600_000;

fn open(disk: &Simulated, pace: Pace) -> Result<Arc<Embedded>> {
    let options = EmbeddedOptions::new("/data", ClockMode::Simulated(START));
    Embedded::open_on(Arc::new(disk.clone()), options, pace)
}

/// Returns the usual pace, but with segments that cost a simulated disk little.
fn usual() -> Pace {
    Pace { segment_bytes: 64 << 10, ..Pace::default() }
}

/// Creates a store on a new disk.
fn fresh() -> Arc<Embedded> {
    open(&Simulated::new(), usual()).unwrap()
}

async fn define(store: &Embedded, metric: &str) -> Arc<Board> {
    define_as(store, &hours(metric)).await
}

async fn define_as(store: &Embedded, definition: &Definition) -> Arc<Board> {
    match store.define(new_board(&BoardName::parse("b").unwrap(), definition)).await.unwrap() {
        Defined::Created(board) | Defined::Unchanged(board) | Defined::Conflict(board) => board,
    }
}

/// Creates a board without a store.
fn alone(definition: Definition) -> Board {
    Board::new(BoardName::parse("b").unwrap(), Generation(1), definition).unwrap()
}

fn subject(number: u8) -> Subject {
    Subject::parse(&format!("subject-{number}")).unwrap()
}

fn increment(number: u8, amount: i64, at: Option<Timestamp>, id: Option<u8>) -> Increment {
    let id = id.map(|id| EventId::parse(&format!("e{id}")).unwrap());
    Increment {
        other: None,
        subject: subject(number),
        change: Change::Amount(Amount(amount)),
        retract: false,
        at,
        id,
        period: None,
        event: None,
    }
}

fn named(text: String, change: Change) -> Increment {
    Increment {
        other: None,
        subject: Subject::parse(&text).unwrap(),
        change,
        retract: false,
        at: None,
        id: None,
        period: None,
        event: None,
    }
}

async fn add(store: &Embedded, board: &Arc<Board>, increments: Vec<Increment>) -> Result<Vec<Outcome>> {
    Ok(store.add(board, Batch { increments, return_scores: false }).await?.outcomes)
}

/// Applies a whole batch to data that has been advanced.
fn apply(board: &Board, data: &mut BoardState, batch: &Batch, operations: &mut LogOperations) -> Added {
    let (windows, now) = (data.windows(), data.now());
    let mut application = BatchApplication::new(
        (board, 0),
        batch,
        Undone::all(batch.increments.len()),
        (&windows, now),
        0,
        FingerprintKey::default(),
    );
    while !application.apply_portion(data, Room::UNLIMITED, operations) {}
    application.finish(data.frame())
}

fn live(store: &Embedded) -> Arc<LiveBoard> {
    store.boards.read().values().next().unwrap().clone()
}

/// Returns the definition of a board of hourly slots.
fn hours(metric: &str) -> Definition {
    Definition::new(metric.parse().unwrap(), "1h".parse().unwrap())
}

/// Returns a definition for each metric and mode.
fn every_definition() -> Vec<Definition> {
    let kinds = [
        "SUM(3h, sale, amount, seller)",
        "AVG(3h, sale, amount, seller)",
        "MIN(3h, sale, amount, seller)",
        "MAX(3h, sale, amount, seller)",
        "LAST(3h, sale, amount, seller)",
        "COUNT_DISTINCT(3h, login, device, user)",
        "APPROX_COUNT_DISTINCT(3h, login, device, user)",
    ];
    let ranked = kinds.map(hours).into_iter();
    let unranked = kinds.map(|metric| Definition { ranked: false, ..hours(metric) }).into_iter();
    let more = [
        Definition { min_samples: 2, ..hours(kinds[1]) },
        Definition { max_values: Some(2), ..hours(kinds[5]) },
        Definition { ranked: false, keep: Some("6h".parse().unwrap()), ..hours(kinds[0]) },
        Definition { ranked: false, mode: Mode::FromFirst, ..hours(kinds[0]) },
    ];
    ranked.chain(unranked).chain(more).collect()
}

/// Returns definitions of boards with several windows.
fn definitions_with_several_windows() -> Vec<Definition> {
    let windows: Vec<_> = ["10m/1m", "1d/6h", "all"].map(|window| window.parse().unwrap()).into();
    let ranked = every_definition().into_iter().filter(|definition| definition.ranked);
    ranked.map(|definition| Definition { windows: windows.clone(), ..definition }).collect()
}

/// Returns a change that a board accepts, derived from a number.
fn change(board: &Board, number: i64) -> Change {
    let amount = Change::Amount(Amount(number));
    let seen = || Change::Seen(Counted::parse(&format!("value-{number}")).unwrap());
    if board.edition().takes(&amount) { amount } else { seen() }
}

/// Waits until something holds that a thread brings about.
async fn reach(holds: impl Fn() -> bool) {
    let reached = async {
        while !holds() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(60), reached).await.expect("it is reached");
}
