//! The trait of the kinds.

use super::limits::ValueLimits;
use super::verb::Verb;
use crate::board::{Aggregate, Change, Timestamp, Track, Value};
use crate::store::redis::scripts::Form;
use crate::store::sizing::Content;

/// The largest number of bytes of a text of two numbers.
const TWO_NUMBERS: usize = 2 * "-9007199254740991".len() + 1;

/// The score and the total of one subject.
#[derive(Clone, Debug, Default, PartialEq)]
pub(in crate::store::redis) struct Folded {
    /// `None` if the subject is not ranked.
    pub score: Option<Value>,
    /// The total as it is stored, or `None` if the board stores none for the subject.
    pub total: Option<Vec<u8>>,
}

/// The form and size of a cell, for estimates of memory.
#[derive(Clone, Copy, Debug)]
pub(in crate::store::redis) enum CellSize {
    /// A whole number, which the server can store in fewer bytes than its text has.
    Number,
    /// A text of this length.
    Text(usize),
}

/// What the store needs to know about a kind. Methods with a default say what is true of few kinds.
pub(in crate::store::redis) trait RedisKind: Sync {
    /// Returns the form of tracks of this kind, ranked or not.
    fn form(&self, is_ranked: bool) -> Form;

    /// Returns the argument that the kind's part has of its own, or an empty text.
    fn option(&self, _track: &Track) -> String {
        String::new()
    }

    /// Returns the effect of a change of one subject. `undoes` is whether it is a retraction that the kind's part
    /// handles; otherwise a retracted amount is negative.
    fn verb<'a>(&self, change: &'a Change, undoes: bool) -> Verb<'a> {
        Verb::usual(change, undoes)
    }

    /// Returns whether amounts may be added to a ranked board in any order, as `write.lua` and `add.lua` do.
    fn adds_in_any_order(&self) -> bool {
        false
    }

    /// Reads a cell, which is not empty. Returns `None` for a text that is no cell of this kind.
    fn read_cell(&self, text: &[u8]) -> Option<Aggregate>;

    /// Returns whether the metric can have written the cell. Other cells do not count in an audit.
    fn is_sound(&self, cell: &Aggregate) -> bool;

    /// Returns whether totals are stored beside the ranking, for all subjects or for those without a score. It is
    /// `HAS_TOTALS` of the kind's part.
    fn has_totals(&self) -> bool;

    /// Computes the score and the total of one subject from its cells, oldest first, as the scripts store them. With
    /// damaged cells the result may exceed the range of the type; it is then the limit of the range.
    fn fold(&self, track: &Track, cells: &[(Timestamp, Aggregate)]) -> Folded;

    /// Returns whether a cell can be withdrawn from a total only with the subject's other cells. `retire.lua` must then
    /// be given every slot.
    fn withdraws_with_other_cells(&self) -> bool {
        false
    }

    /// Returns what one script may do.
    fn limits(&self) -> ValueLimits {
        ValueLimits::OF_NUMBERS
    }

    /// Returns the weight of a cell that is read, in cells of one or two numbers.
    fn read_weight(&self) -> u64 {
        1
    }

    /// Returns the largest number of bytes of a cell.
    fn largest_cell(&self) -> usize {
        TWO_NUMBERS
    }

    /// Returns the largest number of bytes of a total, or of a score if there are no totals.
    fn largest_total(&self, _track: &Track) -> usize {
        TWO_NUMBERS
    }

    /// Returns the expected size of a cell.
    fn cell_size(&self, content: Content) -> CellSize;

    /// Returns the expected length of a total, if there are totals.
    fn total_size(&self, content: Content) -> Option<usize>;
}

#[cfg(test)]
pub(super) mod tests {

    use crate::board::{Board, BoardName, Definition, Generation};

    /// Returns a ranked board with this metric.
    pub fn board(metric: &str) -> Board {
        let definition = Definition::new(metric.parse().unwrap(), "1h".parse().unwrap());
        Board::new(BoardName::parse("b").unwrap(), Generation(1), definition).unwrap()
    }
}
