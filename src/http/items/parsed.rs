//! The items of a request as they were parsed: those that are valid, and the errors of the others.

use std::collections::VecDeque;

use super::idempotency::ItemIds;
use super::item::Item;
use super::item_error::ItemError;
use super::json::{OneOrMany, parse_body, parse_element};
use super::rejection::Position;
use crate::board::EventId;
use crate::http::problem::Problem;

/// The items of a request, divided into those for the service and errors for the receipt.
pub(in crate::http) struct ParsedItems<I, D = ()> {
    /// Converts the number of an item to its position.
    pub(in crate::http) position: fn(u64) -> Position,
    pub(in crate::http) valid: Vec<I>,
    /// The number of each valid item, and what else the receipt needs of it.
    pub(in crate::http) details: Vec<(u64, D)>,
    /// Invalid items with their numbers.
    errors: VecDeque<(u64, ItemError)>,
    /// Whether it is one item that is not in a list.
    pub(in crate::http) is_single: bool,
}

/// Error that fails a whole body.
pub(in crate::http) struct BodyError {
    pub(in crate::http) problem: Problem,
    /// Whether another definition of the board could accept the body.
    pub(in crate::http) depends_on_board: bool,
}

impl<I, D> ParsedItems<I, D> {
    /// Creates an empty list with capacity for the given number of valid items.
    pub(in crate::http) fn new(position: fn(u64) -> Position, items: usize) -> Self {
        let (valid, details) = (Vec::with_capacity(items), Vec::with_capacity(items));
        Self { position, valid, details, errors: VecDeque::new(), is_single: false }
    }

    /// Parses the items of a body, each of which `validate` converts. Fails if a single item has the wrong structure.
    pub(in crate::http) fn of_body<'a, T: Item<'a>>(
        body: &'a [u8],
        mut validate: impl FnMut(T) -> Result<(I, D), ItemError>,
    ) -> Result<Self, BodyError> {
        let mut parsed;
        match parse_body(body)? {
            OneOrMany::One(item) => {
                parsed = Self { is_single: true, ..Self::new(Position::Index, 1) };
                match validate(item) {
                    Err(error) if error.is_structural => return Err(error.into()),
                    result => parsed.push(0, result),
                }
            }
            OneOrMany::Many(elements) => {
                parsed = Self::new(Position::Index, elements.len());
                for (index, raw) in (0..).zip(elements) {
                    parsed.push(index, parse_element(raw).and_then(&mut validate));
                }
            }
        }
        Ok(parsed)
    }

    /// Returns the number of items, valid or not.
    pub(in crate::http) fn len(&self) -> usize {
        self.details.len() + self.errors.len()
    }

    /// Adds an item. Numbers must be ascending.
    pub(in crate::http) fn push(&mut self, number: u64, item: Result<(I, D), ItemError>) {
        match item {
            Ok((item, details)) => {
                self.valid.push(item);
                self.details.push((number, details));
            }
            Err(error) => self.errors.push_back((number, error)),
        }
    }

    /// Gives the valid items without an id one of `ids`, if there are any.
    pub(in crate::http) fn add_ids(&mut self, ids: Option<&ItemIds>, id: impl Fn(&mut I) -> &mut Option<EventId>) {
        let Some(ids) = ids else { return };
        for (item, (number, _)) in self.valid.iter_mut().zip(&self.details) {
            let id = id(item);
            if id.is_none() {
                *id = ids.id_of(*number);
            }
        }
    }

    /// Returns whether any item is invalid.
    pub(in crate::http) fn has_errors(&self) -> bool {
        !self.errors.is_empty()
    }

    /// Returns whether an invalid item could be valid under another definition of the board.
    pub(in crate::http) fn depends_on_board(&self) -> bool {
        self.errors.iter().any(|(_, error)| error.depends_on_board)
    }

    /// Takes the first invalid item that is left, if its number is less than this one.
    pub(in crate::http) fn next_error(&mut self, before: u64) -> Option<(Position, ItemError)> {
        self.errors.pop_front_if(|(number, _)| *number < before).map(|(number, error)| ((self.position)(number), error))
    }
}

impl From<ItemError> for BodyError {
    fn from(error: ItemError) -> Self {
        Self { depends_on_board: error.depends_on_board, problem: error.into() }
    }
}

impl From<Problem> for BodyError {
    fn from(problem: Problem) -> Self {
        Self { problem, depends_on_board: false }
    }
}

impl From<BodyError> for Problem {
    fn from(error: BodyError) -> Self {
        error.problem
    }
}
