//! Parsing of requests with items: a single item, a batch or a stream, and the rejection of single items.
//!
//! An [`Item`], declared by [`item!`], is parsed from one JSON object in a single pass that borrows from the body, and
//! validated afterwards, so that an error in it is an [`ItemError`] of its own and does not fail the request.
//! [`ParsedItems::of_body`] parses a JSON body, [`stream::process`] a stream of lines.

pub(super) mod field;
mod idempotency;
pub(super) mod item;
pub(super) mod item_error;
mod json;
mod lines;
mod parsed;
pub(super) mod pinned;
mod positions;
mod rejection;
pub(super) mod stream;

pub(super) use self::field::{
    FieldValue, TextField, check_no_position, check_retraction_time, given, parse_flag, visit_other_types,
};
pub(super) use self::idempotency::{IDEMPOTENCY_KEY, ItemIds};
pub(super) use self::item::{FieldName, Item, item};
pub(super) use self::item_error::ItemError;
#[cfg(test)]
pub(super) use self::json::parse_element;
pub(super) use self::json::parse_line;
pub(super) use self::lines::NdjsonLine;
pub(super) use self::parsed::{BodyError, ParsedItems};
pub(super) use self::positions::{Positioned, Positions, SourcedItem, ValidItem};
pub(super) use self::rejection::{
    MAX_SHOWN, Position, code_of_amount, code_of_rejection, detail_of_rejection, rejection_problem,
};
