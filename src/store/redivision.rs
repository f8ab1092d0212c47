//! The results of calls about a change of the partitions of a board.

/// How far the data of a frozen board is copied.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CopyProgress {
    /// The number of cells and values.
    pub contents: u64,
    /// The number of ids of items.
    pub ids: u64,
}
