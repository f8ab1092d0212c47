//! The number of further lines of each partition that are needed to know the nearest lines of all partitions.

use std::cmp::Ordering;

use super::Place;
use crate::board::Order;

/// The known lines of one partition in one direction from some place.
#[derive(Clone, Debug)]
pub(super) struct Side<'a> {
    /// The nearest lines, the nearest first.
    pub lines: Vec<&'a Place>,
    /// Whether the partition may have more lines in this direction.
    pub open: bool,
}

impl Side<'_> {
    fn lines_up_to(&self, place: &Place, order: Order) -> usize {
        self.lines.partition_point(|line| line.compare(place, order) != Ordering::Greater)
    }
}

/// Returns, for each partition, how many more of its lines may be among the `wanted` nearest of all partitions.
///
/// A line beyond the last known one of its partition comes after all known lines up to that one. So it is among the
/// `wanted` nearest only if there are fewer of these known lines than `wanted`. The number of such lines is at most the
/// difference.
pub(super) fn further(order: Order, sides: &[Side<'_>], wanted: u64) -> Vec<u64> {
    let of = |side: &Side<'_>| match side.lines.last() {
        _ if !side.open => 0,
        None => wanted,
        Some(last) => {
            let known: usize = sides.iter().map(|other| other.lines_up_to(last, order)).sum();
            wanted.saturating_sub(known as u64)
        }
    };
    sides.iter().map(of).collect()
}
