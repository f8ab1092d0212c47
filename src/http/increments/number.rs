//! Numbers of increments and samples, read exactly, and the fields that a board's metric does not take.

use serde_json::value::RawValue;

use crate::board::{Amount, AmountError, Board};
use crate::http::codes::ItemCode;
use crate::http::intake::Flaw;

/// A value that is there and not null.
pub(in crate::http) fn given(raw: Option<&RawValue>) -> Option<&RawValue> {
    raw.filter(|raw| raw.get() != "null")
}

/// A value that the board's metric needs.
pub(in crate::http) fn required<'a>(
    raw: Option<&'a RawValue>,
    field: &'static str,
    board: &Board,
) -> Result<&'a RawValue, Flaw> {
    given(raw).ok_or_else(|| {
        let detail = format!("the field '{field}' is missing, which {} needs", board.definition().metric);
        Flaw::shape(ItemCode::InvalidValue, field, detail).of_board()
    })
}

/// Refuses a field that belongs to other metrics, naming the one to use.
pub(in crate::http) fn misplaced(
    raw: Option<&RawValue>,
    field: &'static str,
    instead: &'static str,
    board: &Board,
) -> Result<(), Flaw> {
    if given(raw).is_none() {
        return Ok(());
    }
    let detail = format!("{} takes '{instead}', not '{field}'", board.definition().metric);
    Err(Flaw::shape(ItemCode::UnknownField, field, detail).of_board())
}

/// A number as an amount of the board.
pub(in crate::http) fn amount(raw: &RawValue, field: &'static str, board: &Board) -> Result<Amount, Flaw> {
    let text = raw.get();
    if !text.starts_with(|c: char| c == '-' || c.is_ascii_digit()) {
        return Err(Flaw::shape(ItemCode::InvalidAmount, field, format!("'{field}' must be a number")).of_board());
    }
    Amount::parse(text, board.decimals()).map_err(|error| Flaw::value(code_of(&error), field, error).of_board())
}

/// The code of an amount that a board does not take.
pub(in crate::http) fn code_of(error: &AmountError) -> ItemCode {
    match error {
        AmountError::NotANumber { .. } => ItemCode::InvalidAmount,
        AmountError::Precision { .. } => ItemCode::AmountPrecision,
        AmountError::Range { .. } => ItemCode::AmountOutOfRange,
    }
}
