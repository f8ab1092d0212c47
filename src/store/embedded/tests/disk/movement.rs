//! Noted ranks with crashes at every operation: after a crash they are those at the newest boundary, also if it passed
//! while the store was closed.

use super::crashes::survives;
use super::*;

/// The number of writes in an hour, to each board.
const EACH: usize = 3;
const HOURS: usize = 4;
const HOUR: i64 = 3_600_000;

fn who(number: usize) -> Subject {
    Subject::parse(&format!("s{number}")).unwrap()
}

fn definitions() -> [(BoardName, Definition); 2] {
    let total = r#"{"metric":"SUM(all, sale, amount, seller)","movement":"1h"}"#;
    let slots = r#"{"metric":"SUM(24h, sale, amount, seller)","slot":"1h","movement":"1h"}"#;
    [("total", total), ("slots", slots)]
        .map(|(name, text)| (BoardName::parse(name).unwrap(), serde_json::from_str(text).unwrap()))
}

/// Writes another subject each time, which is then the first one.
async fn script(store: &Embedded, acknowledged: &AtomicUsize) -> Result<()> {
    let mut boards = Vec::new();
    for (name, definition) in definitions() {
        let defined = store.define(new_board(&name, &definition)).await?;
        let (Defined::Created(board) | Defined::Unchanged(board) | Defined::Conflict(board)) = defined;
        boards.push(board);
    }
    for number in 0..EACH * HOURS {
        if number % EACH == 0 {
            store.set_clock(START.plus_millis((number / EACH) as i64 * HOUR)).await?;
        }
        for board in &boards {
            let (change, id) = (Change::Amount(Amount(number as i64 + 1)), EventId::parse(&format!("{number}")).ok());
            let (other, retract, at, period) = (None, false, None, None);
            let increment = Increment { other, subject: who(number), change, retract, at, id, period, event: None };
            store.add(board, Batch { increments: vec![increment], return_scores: false }).await?;
        }
        acknowledged.fetch_add(1, Ordering::SeqCst);
    }
    Ok(())
}

async fn check(store: &Embedded, acknowledged: usize, what: &str) {
    let hour = ((store.now().await.unwrap().millis() - START.millis()) / HOUR) as usize;
    for (name, _) in definitions() {
        let Some(board) = store.board(&name).await.unwrap() else { continue };
        let ranks = store.earlier_ranks(&board.main()).await.unwrap().unwrap();
        let found = store.page(&board.main(), 0, 100).await.unwrap().total as usize;
        assert!(found >= acknowledged, "{what}: {acknowledged} acknowledged, {found} found on {name}");
        let boundary = START.plus_millis(hour as i64 * HOUR);
        assert_eq!(ranks.at(), boundary.plus_millis(-boundary.millis().rem_euclid(HOUR)), "{what}: {name}");
        let names =
            ranks.lines().map(|lines| lines.iter().map(|line| line.subject.clone().unwrap()).collect::<Vec<_>>());
        // What was written before the boundary, and nothing that came after it.
        let expected = (0..found.min(EACH * hour)).rev().map(who).collect();
        assert_eq!(names, (hour > 0).then_some(expected), "{what}: hour {hour} of {name} with {found}");
    }
}

#[test]
fn noted_ranks_survive_crashes_with_always() {
    survives(Durability::Always, script, check);
}

#[test]
fn noted_ranks_survive_crashes_with_everysec() {
    survives(Durability::EverySecond, script, check);
}
