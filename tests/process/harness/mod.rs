//! Helpers of the crash and disk tests.

pub mod ledger;
pub mod process;
pub mod shim;

/// Returns the number of rounds: `few`, or `ROLLTOP_CRASH_ROUNDS` if it is set, for a longer test.
pub fn rounds(few: usize) -> usize {
    long().unwrap_or(few)
}

/// Returns `ROLLTOP_CRASH_ROUNDS` if it is set.
pub fn long() -> Option<usize> {
    let rounds = std::env::var("ROLLTOP_CRASH_ROUNDS").ok()?;
    Some(rounds.parse().expect("ROLLTOP_CRASH_ROUNDS is a number"))
}
