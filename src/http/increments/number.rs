//! Numeric fields of increments and samples, parsed exactly, and checks of the fields that a metric uses.

use serde_json::value::RawValue;

use crate::board::{Amount, Board};
use crate::http::codes::ItemCode;
use crate::http::items::{ItemError, code_of_amount};

/// Returns the value of a field unless it is absent or null.
pub(in crate::http) fn given(raw: Option<&RawValue>) -> Option<&RawValue> {
    raw.filter(|raw| raw.get() != "null")
}

/// Returns the value of a field that the metric of the board needs.
pub(in crate::http) fn required<'a>(
    raw: Option<&'a RawValue>,
    field: &'static str,
    board: &Board,
) -> Result<&'a RawValue, ItemError> {
    given(raw).ok_or_else(|| {
        let detail = format!("the field '{field}' is missing; {} needs it", board.definition().metric);
        ItemError::structural(ItemCode::InvalidValue, field, detail).depending_on_board()
    })
}

/// Refuses a field that only other metrics use; the message names the field to use instead.
pub(in crate::http) fn refuse(
    raw: Option<&RawValue>,
    field: &'static str,
    instead: &'static str,
    board: &Board,
) -> Result<(), ItemError> {
    if given(raw).is_none() {
        return Ok(());
    }
    let detail = format!("{} uses '{instead}', not '{field}'", board.definition().metric);
    Err(ItemError::structural(ItemCode::UnknownField, field, detail).depending_on_board())
}

/// Parses a number as an amount with the decimals of the board.
pub(in crate::http) fn amount(raw: &RawValue, field: &'static str, board: &Board) -> Result<Amount, ItemError> {
    let text = raw.get();
    if !text.starts_with(|c: char| c == '-' || c.is_ascii_digit()) {
        let detail = format!("'{field}' must be a number");
        return Err(ItemError::structural(ItemCode::InvalidAmount, field, detail).depending_on_board());
    }
    Amount::parse(text, board.decimals())
        .map_err(|error| ItemError::value(code_of_amount(&error), field, error).depending_on_board())
}
