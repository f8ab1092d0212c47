//! Numeric fields of increments and samples, parsed exactly, and checks of the fields that a metric uses.

use std::borrow::Cow;

use serde_json::value::RawValue;

use crate::board::{Amount, AmountError, Board};
use crate::http::codes::ItemCode;
use crate::http::items::{ItemError, code_of_amount, given};

/// Returns the value of a field that the metric of the board needs.
pub(in crate::http) fn required<'a>(
    raw: Option<&'a RawValue>,
    field: &'static str,
    board: &Board,
) -> Result<&'a RawValue, ItemError> {
    given(raw).ok_or_else(|| {
        let detail = match &board.definition().cap {
            Some(_) => format!("the field '{field}' is missing; it names the person, of whom the board has a cap"),
            None => format!("the field '{field}' is missing; {} needs it", board.definition().metric),
        };
        ItemError::structural(ItemCode::InvalidValue, field, detail).depending_on_board()
    })
}

/// A field with its name.
pub(in crate::http) type Named<'a> = (&'static str, Option<&'a RawValue>);

/// Refuses fields that only other metrics use; the message names the fields to use instead.
pub(in crate::http) fn refuse_others(
    fields: &[Named<'_>],
    used: &[&str],
    instead: &'static str,
    board: &Board,
) -> Result<(), ItemError> {
    let wrong = fields.iter().find(|(field, raw)| !used.contains(field) && given(*raw).is_some());
    wrong.map_or(Ok(()), |(field, _)| Err(unused(field, instead, board)))
}

/// Returns the field that the metric of the board uses, and refuses the others.
pub(in crate::http) fn used<'a>(fields: &[Named<'a>], board: &Board) -> Result<Named<'a>, ItemError> {
    let used = board.kind().field();
    let mut value = None;
    for (field, raw) in fields {
        if *field == used {
            value = *raw;
        } else if given(*raw).is_some() {
            return Err(unused(field, used, board));
        }
    }
    Ok((used, value))
}

/// Returns the error of a field that the metric of the board does not use.
fn unused(field: &'static str, instead: &'static str, board: &Board) -> ItemError {
    let detail = match &board.definition().cap {
        Some(_) => format!("a board with a cap uses '{instead}', the person, not '{field}'"),
        None => format!("{} uses '{instead}', not '{field}'", board.definition().metric),
    };
    ItemError::structural(ItemCode::UnknownField, field, detail).depending_on_board()
}

/// Returns the number of an amount with the second key of its item, which a board with `tie_break` needs and others do not
/// know.
pub(in crate::http) fn numbered(
    amount: Amount,
    key: Option<&RawValue>,
    field: &'static str,
    board: &Board,
) -> Result<Amount, ItemError> {
    const KEY: &str = "tie_break";
    let definition = board.definition();
    let key = match (&definition.tie_break, given(key)) {
        // Most boards.
        (None, None) if definition.ties.is_none() => return Ok(amount),
        (None, None) => 0,
        (None, Some(_)) => {
            let detail = "the board has no 'tie_break', so its items have none";
            return Err(ItemError::structural(ItemCode::UnknownField, KEY, detail).depending_on_board());
        }
        (Some(_), None) => {
            let detail = format!("the field '{KEY}' is missing; the board orders equal scores by it");
            return Err(ItemError::structural(ItemCode::InvalidValue, KEY, detail).depending_on_board());
        }
        (Some(tie_break), Some(raw)) => tie_break.parse(raw.get().trim_matches('"')).ok_or_else(|| {
            let detail = format!("'{KEY}' must be a whole number from -{0} to {0}", tie_break.most);
            ItemError::value(ItemCode::InvalidAmount, KEY, detail).depending_on_board()
        })?,
    };
    board.scale().number(amount, key).ok_or_else(|| {
        let largest = board.scale().shown(board.scale().largest());
        let detail = format!("'{field}' must be from -{largest} to {largest}, because the board orders equal scores");
        ItemError::value(ItemCode::AmountOutOfRange, field, detail).depending_on_board()
    })
}

/// Parses a number as an amount with the decimals of the board.
pub(in crate::http) fn amount(raw: &RawValue, field: &'static str, board: &Board) -> Result<Amount, ItemError> {
    // A number in a text has the same value: see `Field::number`.
    let text = match raw.get().starts_with('"') {
        true => serde_json::from_str::<Cow<'_, str>>(raw.get()).unwrap_or_default(),
        false => Cow::Borrowed(raw.get()),
    };
    match Amount::parse(&text, board.decimals()) {
        Ok(amount) => Ok(amount),
        Err(AmountError::NotANumber { .. }) => {
            let detail = format!("'{field}' must be a number");
            Err(ItemError::structural(ItemCode::InvalidAmount, field, detail).depending_on_board())
        }
        Err(error) => Err(ItemError::value(code_of_amount(&error), field, error).depending_on_board()),
    }
}
