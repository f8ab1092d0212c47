//! Pages next to a place.

use std::sync::Arc;

use super::windows::window_with;
use super::{About, Result, Service, ServiceError, ranked, remembers_values};
use crate::board::{Amount, Board, EXACT_MAX, Generation, Kind, Subject, Value};
use crate::store::{self, NextTo, Page, PageStart, StoreError, ValuePlace, Values, ValuesStart};

/// A place in the ranking of one board, at which a page continues.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cursor {
    /// The generation of the board whose ranking has the place. It also tells which of its windows has it.
    pub generation: Generation,
    pub next_to: NextTo,
}

/// A place in the values of a subject of one board, after which a page continues.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ValuesCursor {
    /// The generation of the board that has the values.
    pub generation: Generation,
    pub after: ValuePlace,
}

impl Service {
    /// Returns a page next to a place, at most `limit` lines. One store call, and one more if this instance knows the
    /// board in a different generation than that of the cursor.
    ///
    /// Unlike other reads, this one is not repeated on a board that was defined again, whose scores have nothing to do
    /// with those of the earlier one. Returns [`ServiceError::StaleCursor`] then.
    pub async fn page_at(&self, board: &Arc<Board>, cursor: &Cursor, limit: u32) -> Result<About<Page>> {
        let board = self.board_at(board, cursor.generation, ranked).await?;
        check_score(&board, cursor.next_to.place.score)?;
        let start = PageStart::Place(cursor.next_to.clone());
        let page = self.store.page_from(&board, &start, limit).await;
        self.about_generation(board, page).await
    }

    /// Returns the values of a subject after a place, at most `limit`. Makes the same store calls as
    /// [`page_at`](Self::page_at), and returns [`ServiceError::StaleCursor`] in the same cases. Returns
    /// [`ServiceError::NoValues`] unless the board is COUNT_DISTINCT.
    pub async fn values_at(
        &self,
        board: &Arc<Board>,
        subject: &Subject,
        cursor: &ValuesCursor,
        limit: u32,
    ) -> Result<About<Values>> {
        let board = self.board_at(board, cursor.generation, remembers_values).await?;
        let start = ValuesStart::After(cursor.after.clone());
        let values = self.store.values_from(&board, subject, &start, limit).await;
        self.about_generation(board, values).await
    }

    /// Returns the board, or the window of it, with the generation of a cursor. `check` may refuse the present board of
    /// this name.
    async fn board_at(
        &self,
        board: &Arc<Board>,
        generation: Generation,
        check: fn(&Board) -> Result<()>,
    ) -> Result<Arc<Board>> {
        if let Some(window) = window_with(board, generation) {
            check(window)?;
            return Ok(window.clone());
        }
        // The board that this instance knows may be the older one.
        let fresh = self.refreshed(board).await?;
        check(&fresh)?;
        match window_with(&fresh, generation) {
            Some(window)
                if board.is_further()
                    && fresh.window_of(board.length()).map(|asked| asked.generation()) != Some(window.generation()) =>
            {
                Err(ServiceError::CursorOfOtherWindow { of: window.length(), requested: board.length() })
            }
            Some(window) => Ok(window.clone()),
            None => Err(ServiceError::StaleCursor(fresh.name().clone())),
        }
    }

    /// Returns the store's answer about the board that a cursor belongs to, or the error that the board no longer exists.
    async fn about_generation<T>(&self, board: Arc<Board>, answer: store::Result<T>) -> Result<About<T>> {
        if let Err(StoreError::BoardChanged) = answer {
            let fresh = self.refreshed(&board).await?;
            return Err(ServiceError::StaleCursor(fresh.name().clone()));
        }
        Ok(About { answer: answer?, board })
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
