//! Batches that are sent as portions of sources: they count what the batches count.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use rolltop::board::{Board, Position, SourceNumber};
use rolltop::store::{Added, Batch, Fate, Increment, Outcome, Portion, Rejection, Result, Store, StoreError};

/// Adds a batch as the items of a new source. What waits is sent again as those of another one, until nothing more is
/// counted: then what stops its lane is refused, and what follows goes on without it. After each portion the whole of it is
/// sent once more, which must change nothing of what was done.
pub async fn add(store: &dyn Store, board: &Arc<Board>, batch: Batch) -> Result<Added> {
    let mut outcomes = vec![Outcome::Rejected(Rejection::TooLate); batch.increments.len()];
    let mut left: Vec<(usize, Increment)> = batch.increments.iter().cloned().enumerate().collect();
    let mut frame = None;
    while frame.is_none() || !left.is_empty() {
        let portion = portion(left.iter().map(|(_, item)| item));
        let passed = match store.pass(vec![(board.clone(), portion.clone())]).await.remove(0) {
            // A batch is carried over to the editions that the board has now.
            Err(StoreError::StaleEpoch) if frame.is_none() => return store.add(board, batch).await,
            passed => passed?,
        };
        if let Some(error) = passed.failure {
            return Err(error);
        }
        frame = passed.frame;
        let is_counted = passed.fates.iter().any(|fate| matches!(fate, Fate::Done(_)));
        if is_counted {
            let again = store.pass(vec![(board.clone(), portion)]).await.remove(0)?;
            for (first, again) in passed.fates.iter().zip(&again.fates) {
                assert!(!matches!(first, Fate::Done(_)) || *again == Fate::Repeated, "{first:?} and then {again:?}");
            }
            for (((place, _), first), again) in left.iter().zip(&passed.fates).zip(&again.fates) {
                if let (Fate::Done(outcome), _) | (Fate::Waits(_), Fate::Done(outcome)) = (*first, *again) {
                    outcomes[*place] = outcome;
                }
            }
            let is_left = |fates: (&Fate, &Fate)| matches!(fates, (Fate::Waits(_), Fate::Waits(_)));
            let fates = passed.fates.iter().zip(&again.fates);
            left = left.into_iter().zip(fates).filter(|(_, fates)| is_left(*fates)).map(|(item, _)| item).collect();
            continue;
        }
        let mut waiting = Vec::new();
        for ((place, item), fate) in left.into_iter().zip(&passed.fates) {
            match *fate {
                Fate::Waits(Some(reason)) => outcomes[place] = Outcome::Rejected(reason),
                Fate::Waits(None) => waiting.push((place, item)),
                other => panic!("{other:?} of an item of a new source, of which nothing was counted"),
            }
        }
        left = waiting;
    }
    let frame = frame.unwrap_or_else(|| panic!("a portion has no frame"));
    Ok(Added { frame, outcomes, newer: None })
}

/// Returns all of a new source.
fn portion<'i>(items: impl Iterator<Item = &'i Increment>) -> Portion {
    static NEXT: AtomicU32 = AtomicU32::new(1);
    let source = SourceNumber(NEXT.fetch_add(1, Ordering::Relaxed));
    let items: Vec<_> = (1..).map(Position).zip(items.cloned()).collect();
    let range = (Position(0), Position(items.len() as u128));
    Portion::new(source, range, items).expect("positions that increase").joining()
}
