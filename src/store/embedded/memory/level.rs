//! How much memory is left.

/// How much memory is left.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(in super::super) enum Level {
    /// Enough.
    Free,
    /// Little: new subjects, boards, values and attributes are refused.
    Scarce,
    /// None: everything that takes memory is refused.
    Full,
}
