//! Pages next to a place.

use std::sync::Arc;

use super::{About, Result, Service, ServiceError, ranked};
use crate::board::{Amount, Board, EXACT_MAX, Generation, Kind, Value};
use crate::store::{NextTo, Page, PageStart, StoreError};

/// A place in the ranking of one board, at which a page continues.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cursor {
    /// The generation of the board whose ranking has the place.
    pub generation: Generation,
    pub next_to: NextTo,
}

impl Service {
    /// Returns a page next to a place, at most `limit` lines. One store call, and one more if this instance knows the
    /// board in a different generation than that of the cursor.
    ///
    /// Unlike other reads, this one is not repeated on a board that was defined again, whose scores have nothing to do
    /// with those of the earlier one. Returns [`ServiceError::StaleCursor`] then.
    pub async fn page_at(&self, board: &Arc<Board>, cursor: &Cursor, limit: u32) -> Result<About<Page>> {
        let mut board = board.clone();
        if board.generation() != cursor.generation {
            // The board that this instance knows may be the older one.
            board = self.refreshed(&board).await?;
        }
        ranked(&board)?;
        if board.generation() == cursor.generation {
            check_score(&board, cursor.next_to.place.score)?;
            let start = PageStart::Place(cursor.next_to.clone());
            match self.store.page_from(&board, &start, limit).await {
                Err(StoreError::BoardChanged) => board = self.refreshed(&board).await?,
                answer => return Ok(About { board, answer: answer? }),
            }
        }
        Err(ServiceError::StaleCursor(board.name().clone()))
    }
}

/// Returns an error if no score of the board has this form.
fn check_score(board: &Board, score: Value) -> Result<()> {
    let fits = match score {
        Value::Exact(Amount(units)) => board.kind() != Kind::Mean && (-EXACT_MAX..=EXACT_MAX).contains(&units),
        // A mean is never -0, which the stores would order differently.
        Value::Real(real) => board.kind() == Kind::Mean && real.is_finite() && real.to_bits() != (-0.0_f64).to_bits(),
    };
    if fits {
        Ok(())
    } else {
        let detail = "the score is not one of this board".to_owned();
        Err(ServiceError::InvalidQuery { field: "cursor", detail })
    }
}
