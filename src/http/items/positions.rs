//! The positions of items in the log of their source.

use std::fmt;

use serde::de::MapAccess;
use serde_json::value::RawValue;

use super::item::Item;
use super::item_error::{ItemError, UnexpectedField};
use crate::board::{Board, Position};
use crate::http::codes::ItemCode;
use crate::service::SourceItem;

/// An item that a source may have.
pub(in crate::http) trait SourcedItem<'a>: Item<'a> {
    /// What one is called, for messages.
    const NAME: &'static str;

    /// Takes the position, not yet validated.
    fn take_position(&mut self) -> Option<&'a RawValue>;

    /// Validates the fields for the board, if the items are for one, and converts them. Also returns the names of the fields
    /// that metrics cannot use.
    fn into_source_item(self, board: Option<&Board>) -> Result<(SourceItem, Vec<Box<str>>), ItemError>;
}

/// An item with its position, which is known also if the item has a field that it must not have.
#[derive(Default)]
pub(in crate::http) struct Positioned<I> {
    item: I,
    unexpected: Option<UnexpectedField>,
    /// Whether it has more than one position, of which nobody knows which one is meant.
    has_several: bool,
}

/// A valid item with its position, and with the names of its fields that metrics cannot use.
pub(in crate::http) type ValidItem = ((Position, SourceItem), Vec<Box<str>>);

/// The positions of items, as they are parsed one after the other.
#[derive(Default)]
pub(in crate::http) struct Positions {
    first: Option<(Position, String)>,
    pub(in crate::http) last: Option<Position>,
    /// Why they are not those of items that follow each other.
    fault: Option<String>,
}

impl<'a, I: Item<'a>> Item<'a> for Positioned<I> {
    const LIST: &'static str = I::LIST;
    const FIELDS: &'static [&'static str] = I::FIELDS;
    const INVALID: ItemCode = I::INVALID;

    fn read_value<A: MapAccess<'a>>(&mut self, name: &str, map: &mut A) -> Result<Option<UnexpectedField>, A::Error> {
        if let Some(field) = self.item.read_value(name, map)? {
            self.has_several |= matches!(field, UnexpectedField::Repeated("position"));
            self.unexpected.get_or_insert(field);
        }
        Ok(None)
    }

    fn is_empty(&self) -> bool {
        self.item.is_empty() && self.unexpected.is_none()
    }
}

impl<'a, I: SourcedItem<'a>> Positioned<I> {
    /// Validates the item, which is `what` of the request. Its faults are those of an item in a batch, also if it is alone: it
    /// is rejected and passed.
    pub(in crate::http) fn validate(
        mut self,
        board: Option<&Board>,
        positions: &mut Positions,
        what: impl fmt::Display,
    ) -> Result<ValidItem, ItemError> {
        if self.has_several {
            let fault = "'position' is given more than once";
            positions.note_fault(what, fault);
            return Err(ItemError::structural(I::INVALID, "position", fault));
        }
        let position = positions.next(what, self.item.take_position(), I::INVALID)?;
        let item = match self.unexpected {
            None => self.item.into_source_item(board),
            Some(field) => Err(ItemError::unexpected(field, Self::FIELDS, Self::INVALID)),
        };
        match item {
            Ok((item, nested)) => Ok(((position, item), nested)),
            Err(error) => Err(ItemError { is_structural: false, ..error }),
        }
    }
}

impl Positions {
    /// Validates the position of the next item, which is `what` of the request. An item with another fault is rejected by
    /// itself and passed. Without its position it is not known what would be passed, so the whole request is refused.
    fn next(
        &mut self,
        what: impl fmt::Display,
        raw: Option<&RawValue>,
        invalid: ItemCode,
    ) -> Result<Position, ItemError> {
        let parsed = match raw.map(RawValue::get) {
            None => Err("'position' is missing".to_owned()),
            Some(text) => {
                let text = text.strip_prefix('"').and_then(|text| text.strip_suffix('"')).unwrap_or(text);
                let whole = || format!("'position' must be a whole number from 0 to {}", Position::MAX);
                Position::parse_of_item(text).ok_or_else(whole)
            }
        };
        let parsed = parsed.and_then(|position| match self.last {
            Some(last) if position <= last => Err(format!("'position' is {position}, and that before it is {last}")),
            _ => Ok(position),
        });
        match parsed {
            Ok(position) => {
                self.first.get_or_insert_with(|| (position, what.to_string()));
                self.last = Some(position);
                Ok(position)
            }
            Err(fault) => {
                self.note_fault(what, &fault);
                Err(ItemError::structural(invalid, "position", fault))
            }
        }
    }

    /// Notes that the position of an item is not known.
    pub(in crate::http) fn note_fault(&mut self, what: impl fmt::Display, fault: &str) {
        self.fault.get_or_insert_with(|| format!("{what}: {fault}"));
    }

    /// Returns the position up to which a portion goes that begins after one.
    pub(in crate::http) fn through(&self, after: Position) -> Result<Position, String> {
        match (&self.fault, &self.first) {
            (Some(fault), _) => Err(fault.clone()),
            (None, Some((first, what))) if *first <= after => {
                Err(format!("{what}: 'position' is {first}, which is not after {after}"))
            }
            _ => Ok(self.last.unwrap_or(after)),
        }
    }
}
