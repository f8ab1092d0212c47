//! The memory of the process as a backstop for what is not counted: bodies, connections, the allocator.
//!
//! Memory that was freed often stays with the process and is used again. So a large process alone does not mean that
//! memory is short: after some time in which it did not grow, the data may grow by a small step. If the process then
//! stays as large as it is, the data uses freed memory, and may grow by a further step. Otherwise new data is refused
//! until the process is smaller.

use super::available::kilobytes;
use super::level::Level;

/// The memory beside the data that a process may take with an explicit limit: bodies of requests and connections.
const BESIDE: usize = 256 << 20;
/// The number of measurements without growth after which the data may grow by a step: a second.
const CALM: u32 = 20;

/// Returns the bytes of the process from which new data is refused.
pub(super) fn most(limit: Option<usize>, available: Option<usize>) -> usize {
    let of_limit = limit.map_or(usize::MAX, |limit| limit.saturating_add(limit / 4).saturating_add(BESIDE));
    let of_available = available.map_or(usize::MAX, |bytes| bytes / 100 * 92);
    of_limit.min(of_available)
}

/// Returns the memory of this process that is not backed by files. `None` if the system does not say.
pub(super) fn resident_bytes() -> Option<usize> {
    let text = std::fs::read_to_string("/proc/self/status").ok()?;
    kilobytes(&text, "RssAnon:").or_else(|| kilobytes(&text, "VmRSS:"))
}

/// Judges measurements of the process.
#[derive(Debug)]
pub(super) struct Backstop {
    most: usize,
    exceeded: Option<Exceeded>,
}

/// The state since the process has exceeded [`Backstop::most`].
#[derive(Debug)]
struct Exceeded {
    /// The bytes of the process when it did.
    first: usize,
    /// The largest measurement since.
    largest: usize,
    /// The number of measurements since it has last grown.
    calm: u32,
    /// The bytes up to which data may grow.
    data_may_reach: usize,
}

impl Backstop {
    pub(super) fn new(most: usize) -> Self {
        Self { most, exceeded: None }
    }

    /// Returns the level that a measurement of the process gives, with this many bytes of data.
    pub(super) fn judge(&mut self, resident: usize, data: usize) -> Level {
        if resident < self.most / 16 * 15 {
            self.exceeded = None;
        }
        let Some(exceeded) = &mut self.exceeded else {
            if resident < self.most {
                return Level::Free;
            }
            self.exceeded = Some(Exceeded { first: resident, largest: resident, calm: 0, data_may_reach: 0 });
            return self.refusing(resident);
        };
        let step = self.most / 64;
        if resident > exceeded.largest + step / 8 {
            exceeded.largest = resident;
            exceeded.calm = 0;
            exceeded.data_may_reach = 0;
        } else {
            exceeded.calm += 1;
        }
        // If the process has grown with the data several times, it has no freed memory left.
        let is_exhausted = exceeded.largest - exceeded.first > 2 * step;
        if exceeded.calm >= CALM && !is_exhausted && data >= exceeded.data_may_reach {
            exceeded.data_may_reach = data + step;
            exceeded.calm = CALM;
        }
        if data < exceeded.data_may_reach { Level::Free } else { self.refusing(resident) }
    }

    fn refusing(&self, resident: usize) -> Level {
        if resident >= self.most.saturating_add(self.most / 16) { Level::Full } else { Level::Scarce }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MB: usize = 1 << 20;

    #[test]
    fn the_least_of_limit_and_machine_counts() {
        assert_eq!(most(None, None), usize::MAX);
        assert_eq!(most(None, Some(100 * MB)), 92 * MB);
        assert_eq!(most(Some(400 * MB), None), 756 * MB);
        assert_eq!(most(Some(400 * MB), Some(500 * MB)), 500 * MB / 100 * 92);
    }

    #[test]
    fn this_process_has_memory() {
        if cfg!(target_os = "linux") {
            assert!(resident_bytes().is_some_and(|bytes| bytes > 100 << 10));
        }
    }

    #[test]
    fn a_process_that_is_too_large_must_shrink_by_a_margin() {
        let mut backstop = Backstop::new(640 * MB);
        assert_eq!(backstop.judge(639 * MB, 100 * MB), Level::Free);
        assert_eq!(backstop.judge(640 * MB, 100 * MB), Level::Scarce);
        assert_eq!(backstop.judge(680 * MB, 100 * MB), Level::Full);
        assert_eq!(backstop.judge(610 * MB, 100 * MB), Level::Scarce);
        assert_eq!(backstop.judge(599 * MB, 100 * MB), Level::Free);
        assert_eq!(backstop.judge(639 * MB, 100 * MB), Level::Free);
    }

    /// Bodies of requests have left 600 MB of freed memory.
    #[test]
    fn data_that_uses_freed_memory_is_admitted() {
        let mut backstop = Backstop::new(640 * MB);
        let mut data = 50 * MB;
        let (mut refused, mut measured) = (0, 0);
        while data < 600 * MB {
            measured += 1;
            match backstop.judge(650 * MB, data) {
                Level::Free => data += MB,
                _ => refused += 1,
            }
            assert!(measured < 2_000, "{} MB", data / MB);
        }
        assert_eq!(refused, CALM);
    }

    #[test]
    fn data_that_makes_the_process_grow_is_refused() {
        let mut backstop = Backstop::new(640 * MB);
        let (mut resident, mut data) = (641 * MB, 500 * MB);
        for _ in 0..10_000 {
            if backstop.judge(resident, data) == Level::Free {
                (resident, data) = (resident + MB, data + MB);
            }
        }
        assert!((642 * MB..=680 * MB).contains(&resident), "{} MB", resident / MB);
        assert_eq!(backstop.judge(590 * MB, 440 * MB), Level::Free);
    }
}
