//! The ranking that an item of a request for one board is for.

use crate::board::{Board, Subject};
use crate::http::codes::ItemCode;
use crate::http::items::{ItemError, TextField};

/// Returns the subject of an item in the ranking that the item names with `by`, as the board needs it.
pub(in crate::http) fn subject(name: TextField<'_>, by: TextField<'_>, board: &Board) -> Result<Subject, ItemError> {
    let (name, key) = (name.subject()?, by.key()?);
    let wrong = |code, detail| Err(ItemError::structural(code, "by", detail).depending_on_board());
    match (&board.definition().metric.by, key) {
        (Some(by), None) => {
            let board = board.name();
            let detail = format!("the field 'by' is missing: board '{board}' has a ranking for each {by}");
            wrong(ItemCode::MissingKey, detail)
        }
        (None, Some(_)) => {
            let (board, metric) = (board.name(), &board.definition().metric);
            let detail =
                format!("board '{board}' has one ranking, because its metric {metric} has no BY; leave out 'by'");
            wrong(ItemCode::UnexpectedKey, detail)
        }
        (Some(_), Some(key)) => match board.definition().metric.spelled_key(key) {
            Ok(key) => Ok(name.in_ranking(Some(&key))),
            Err(error) => wrong(ItemCode::InvalidBy, format!("'by': {error}")),
        },
        (None, None) => Ok(name),
    }
}
