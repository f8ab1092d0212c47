//! The periods of a season with crashes at every operation: after a crash each write is in the period of its time, and
//! none is missing that was acknowledged.

use super::crashes::survives;
use super::*;
use crate::board::{BoardTrack, Packed};
use crate::store::SheetId;
use crate::store::embedded::storage::files::simulated::Crash;

/// The number of writes in a period.
const EACH: usize = 3;
const PERIODS: usize = 4;
const DAY: i64 = 86_400_000;

fn name() -> BoardName {
    BoardName::parse("seasonal").unwrap()
}

fn definition() -> Definition {
    let text = r#"{"metric":"SUM(all, sale, amount, seller)","season":{"every":"1d","grace":"2h","archive":9}}"#;
    serde_json::from_str(text).unwrap()
}

/// Writes a different amount each time, through the handle from before the first period ended.
async fn script(store: &Embedded, acknowledged: &AtomicUsize) -> Result<()> {
    let defined = store.define(new_board(&name(), &definition())).await?;
    let (Defined::Created(board) | Defined::Unchanged(board) | Defined::Conflict(board)) = defined;
    for number in 0..EACH * PERIODS {
        if number % EACH == 0 {
            store.set_clock(START.plus_millis((number / EACH) as i64 * DAY)).await?;
        }
        let (change, id) = (Change::Amount(Amount(1 << number)), EventId::parse(&format!("write-{number}")).ok());
        let increment = Increment {
            other: None,
            subject: subject(0),
            change,
            retract: false,
            at: None,
            id,
            period: None,
            event: None,
        };
        let added = store.add(&board, Batch { increments: vec![increment], return_scores: false }).await?;
        assert_eq!(added.outcomes, [Outcome::Counted { score: None }]);
        acknowledged.fetch_add(1, Ordering::SeqCst);
    }
    Ok(())
}

async fn check(store: &Embedded, acknowledged: usize, what: &str) {
    let mut found = 0;
    if let Some(mut board) = store.board(&name()).await.unwrap() {
        while matches!(store.status(&board.main()).await, Err(StoreError::StaleEpoch)) {
            board = store.board(&name()).await.unwrap().unwrap();
        }
        let mut periods: Vec<_> = board.each_period().collect();
        periods.reverse();
        let first = periods[0].period().unwrap().start;
        for edition in periods {
            let day = ((edition.period().unwrap().start.millis() - first.millis()) / DAY) as usize;
            let standing = store.standing(&edition.main_track(), &subject(0)).await.unwrap();
            let Some(Value::Exact(Amount(score))) = standing.score else { panic!("{what}: {:?}", standing.score) };
            let of_day = (0..=EACH).find(|writes| score == ((1 << writes) - 1) << (EACH * day));
            let writes = of_day.unwrap_or_else(|| panic!("{what}: {score} in period {day}"));
            assert!(writes == 0 || found == EACH * day, "{what}: {found} writes before period {day}");
            found += writes;
        }
    }
    assert!(found >= acknowledged, "{what}: {acknowledged} acknowledged, {found} found");
}

#[test]
fn periods_survive_crashes_with_always() {
    survives(Durability::Always, script, check);
}

#[test]
fn periods_survive_crashes_with_everysec() {
    survives(Durability::EverySecond, script, check);
}

#[test]
fn a_period_that_began_with_a_read_survives_a_kill() {
    let disk = Simulated::new();
    runtime().block_on(async {
        let store = open(&disk, Durability::EverySecond).unwrap();
        script(&store, &AtomicUsize::new(0)).await.unwrap();
        store.set_clock(START.plus_millis(PERIODS as i64 * DAY)).await.unwrap();
        let board = store.board(&name()).await.unwrap().unwrap();
        let begun = sealed(&store, board).await.unwrap().0.edition().period();
        let is_there = async |left: &Simulated| {
            let store = open(left, Durability::EverySecond).unwrap();
            let board = store.board(&name()).await.unwrap().unwrap();
            let found = board.each_period().any(|period| period.period() == begun);
            store.close().await.unwrap();
            found
        };
        // Nothing else is written, and nobody waits.
        let started = std::time::Instant::now();
        while !is_there(&disk.crash(7, Crash::Killed)).await {
            assert!(started.elapsed() < Duration::from_secs(20), "the period is not in the log");
        }
        store.close().await.unwrap();
    });
}

/// The number of sheets of the period that is packed.
const SHEETS: u64 = 3;

fn sheet(number: u64) -> String {
    format!("sheet {number} ").repeat(200)
}

/// Returns the board as it is now, and the track of its first period, which is sealed.
async fn sealed(store: &Embedded, mut board: Arc<Board>) -> Result<(Arc<Board>, BoardTrack)> {
    while let Err(error) = store.status(&board.main()).await {
        match (error, store.board(&name()).await?) {
            (StoreError::StaleEpoch, Some(present)) => board = present,
            (error, _) => return Err(error),
        }
    }
    let track = board.each_track().last().unwrap();
    Ok((board, track))
}

/// Seals a period, writes its sheets, packs it, and changes a sheet.
async fn packing(store: &Embedded, acknowledged: &AtomicUsize) -> Result<()> {
    let (Defined::Created(board) | Defined::Unchanged(board) | Defined::Conflict(board)) =
        store.define(new_board(&name(), &definition())).await?;
    let change = Change::Amount(Amount(7));
    let increment = Increment {
        other: None,
        subject: subject(0),
        change,
        retract: false,
        at: None,
        id: None,
        period: None,
        event: None,
    };
    store.add(&board, Batch { increments: vec![increment], return_scores: false }).await?;
    acknowledged.fetch_add(1, Ordering::SeqCst);
    store.set_clock(START.plus_millis(2 * DAY)).await?;
    let (board, track) = sealed(store, board).await?;
    for number in 0..SHEETS {
        assert!(store.change_sheet(&track, SheetId::Lines(number), None, &sheet(number)).await?);
        acknowledged.fetch_add(1, Ordering::SeqCst);
    }
    let packed = board.with_packed(track.id(), Packed { lines: 1, total: 1 }).unwrap();
    let board = store.change_editions(&board, packed).await?;
    acknowledged.fetch_add(1, Ordering::SeqCst);
    let (_, track) = sealed(store, board).await?;
    assert!(store.change_sheet(&track, SheetId::Lines(0), Some(&sheet(0)), "changed").await?);
    acknowledged.fetch_add(1, Ordering::SeqCst);
    Ok(())
}

async fn check_packing(store: &Embedded, acknowledged: usize, what: &str) {
    let mut found = 0;
    if let Some(board) = store.board(&name()).await.unwrap() {
        let (_, track) = sealed(store, board).await.unwrap();
        let score = store.standing(&track, &subject(0)).await.unwrap().score;
        let ids: Vec<_> = (0..SHEETS).map(SheetId::Lines).collect();
        let texts = store.sheets(&track, &ids).await.unwrap().texts;
        let sheets = texts.iter().flatten().count();
        assert!(texts[..sheets].iter().all(Option::is_some), "{what}: {texts:?}");
        let is_changed = texts[0].as_deref() == Some("changed");
        for (number, text) in texts.iter().flatten().enumerate().skip(usize::from(is_changed)) {
            assert_eq!(**text, sheet(number as u64), "{what}");
        }
        let is_packed = track.packed().is_some();
        assert!(!is_packed || sheets as u64 == SHEETS, "{what}: packed with {sheets} sheets");
        let scores =
            if is_packed { [Some(Value::ZERO); 2] } else { [Some(Value::ZERO), Some(Value::Exact(Amount(7)))] };
        assert!(scores.contains(&score), "{what}: {score:?}");
        let is_counted = is_packed || score == Some(Value::Exact(Amount(7)));
        assert!(is_counted || sheets == 0, "{what}: sheets without what they are of");
        found = usize::from(is_counted) + sheets + usize::from(is_packed) + usize::from(is_changed);
    }
    assert!(found >= acknowledged, "{what}: {acknowledged} acknowledged, {found} found");
}

#[test]
fn packed_periods_survive_crashes_with_always() {
    survives(Durability::Always, packing, check_packing);
}

#[test]
fn packed_periods_survive_crashes_with_everysec() {
    survives(Durability::EverySecond, packing, check_packing);
}
