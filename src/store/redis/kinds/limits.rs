//! The limits of scripts that depend on the kind. With them a script takes at most about 2 ms of the server's time.

/// The largest number of entries in one call of `change.lua`, unless each is expensive.
pub(in crate::store::redis) const CHANGES: usize = 100;

/// The limits of scripts on boards of a kind.
#[derive(Clone, Copy, Debug)]
pub(in crate::store::redis) struct ValueLimits {
    /// The largest number of entries in one call of `change.lua` on a ranked board.
    pub ranked_changes: usize,
    /// The largest number of cells that one call of `change.lua` combines into scores, if all slots have data.
    pub combined_cells: usize,
    /// The number of cells that one script of an audit reads.
    pub audited_cells: usize,
    /// The number of these cells that an audit counts for each slot that it looks at.
    pub audited_slot: usize,
}

impl ValueLimits {
    /// The limits for cells of one or two numbers.
    pub const OF_NUMBERS: Self =
        Self { ranked_changes: CHANGES, combined_cells: 4_000, audited_cells: 5_000, audited_slot: 2 };
}
