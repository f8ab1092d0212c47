//! The periods of a season with crashes at every operation: after a crash each write is in the period of its time, and
//! none is missing that was acknowledged.

use super::crashes::survives;
use super::*;

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
        let increment =
            Increment { other: None, subject: subject(0), change, retract: false, at: None, id, period: None };
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
