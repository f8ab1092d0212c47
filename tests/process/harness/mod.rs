//! What the crash and disk tests share.

pub mod ledger;
pub mod process;
pub mod shim;

/// How many rounds: few as a rule, `ROLLTOP_CRASH_ROUNDS` where that is set, for a long look.
pub fn rounds(few: usize) -> usize {
    long().unwrap_or(few)
}

/// `ROLLTOP_CRASH_ROUNDS`, if it is set.
pub fn long() -> Option<usize> {
    let rounds = std::env::var("ROLLTOP_CRASH_ROUNDS").ok()?;
    Some(rounds.parse().expect("ROLLTOP_CRASH_ROUNDS is a number"))
}
