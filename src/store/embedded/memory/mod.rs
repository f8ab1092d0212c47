//! The memory that the data takes, its limit, and what is refused near the limit.
//!
//! Each table counts the bytes that it has allocated, with spare capacity. After each call a board publishes their sum
//! in its [`MemoryShare`], and a write that begins reads the total. So what is refused is refused before memory changes, and
//! the total exceeds the limit by one portion of a write at most. From nine tenths of the limit on, new subjects,
//! boards and values are refused; from the limit on, everything that takes memory. Reads, removals, expiry and changes
//! of what exists continue.
//!
//! The process takes about a tenth more than is counted, for blocks and pages of the allocator that are not full, and
//! has buffers and connections beside the data. The [backstop](backstop) watches it.

mod available;
mod backstop;
mod level;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::Mutex;

use self::backstop::{Backstop, resident_bytes};
pub(super) use self::level::Level;
use super::metrics::MemoryMetrics;
use crate::store::StoreError;

/// What a change takes beyond the memory that its subject has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Demand {
    Nothing,
    /// A slot or an id.
    More,
    /// A new value of a known subject.
    Value,
    /// A new subject.
    Subject,
}

/// What a portion of a write may take.
#[derive(Clone, Copy, Debug)]
pub(super) struct Room {
    pub level: Level,
    /// The largest number of subjects of a ranked track.
    pub max_subjects: usize,
}

impl Room {
    /// The room of a write that takes no more than the data that it replaces.
    pub(super) const UNLIMITED: Room = Room { level: Level::Free, max_subjects: usize::MAX };

    /// Returns whether there is enough memory for a change.
    pub(super) fn is_enough_for(self, demand: Demand) -> bool {
        match self.level {
            Level::Free => true,
            Level::Scarce => demand < Demand::Value,
            Level::Full => demand == Demand::Nothing,
        }
    }
}

/// Returns the bytes that this process may take, of the machine and of its control groups, or `None` if nothing is known.
pub fn available_memory() -> Option<usize> {
    available::bytes(|path| std::fs::read_to_string(path).ok())
}

/// The memory of a store.
#[derive(Debug)]
pub(super) struct Memory {
    /// The bytes of data from which everything is refused that takes memory. `usize::MAX` if nothing limits it.
    limit: usize,
    used: AtomicUsize,
    /// The [`Level`] that the memory of the process gives.
    resident: AtomicUsize,
    backstop: Mutex<Backstop>,
}

impl Memory {
    /// Creates an account for a limit in bytes. If it is `None`, the limit is four fifths of what this process may take
    /// in all, or nothing limits it if that is unknown.
    pub(super) fn new(limit: Option<usize>) -> Arc<Self> {
        let available = available_memory();
        if let (Some(limit), Some(available)) = (limit, available)
            && limit > available
        {
            tracing::warn!(limit, available, "memory_limit is more than the memory that there is");
        }
        let backstop = Backstop::new(backstop::most(limit, available));
        Self::with_backstop(limit.or(available.map(|bytes| bytes / 5 * 4)), backstop)
    }

    /// Creates an account that does not look at the memory of the process.
    #[cfg(test)]
    pub(super) fn counted_only(limit: usize) -> Arc<Self> {
        Self::with_backstop(Some(limit), Backstop::new(usize::MAX))
    }

    fn with_backstop(limit: Option<usize>, backstop: Backstop) -> Arc<Self> {
        Arc::new(Self {
            limit: limit.unwrap_or(usize::MAX),
            used: AtomicUsize::new(0),
            resident: AtomicUsize::new(Level::Free as usize),
            backstop: Mutex::new(backstop),
        })
    }

    /// Returns the bytes of data.
    pub(super) fn used(&self) -> usize {
        self.used.load(Ordering::Relaxed)
    }

    pub(super) fn level(&self) -> Level {
        let used = self.used();
        let counted = match used {
            _ if used >= self.limit => Level::Full,
            _ if used >= self.limit / 10 * 9 => Level::Scarce,
            _ => Level::Free,
        };
        counted.max(self.resident_level())
    }

    fn resident_level(&self) -> Level {
        match self.resident.load(Ordering::Relaxed) {
            0 => Level::Free,
            1 => Level::Scarce,
            _ => Level::Full,
        }
    }

    /// Returns the error of a new board, or another call that is refused as a whole, unless there is room for it.
    pub(super) fn check_room_for_new(&self) -> Result<(), StoreError> {
        if self.level() == Level::Free { Ok(()) } else { Err(StoreError::MemoryFull) }
    }

    /// Compares the memory of the process with what it may take, logs changes of the level, and sets the metrics. Call
    /// it some twenty times a second.
    pub(super) fn watch(&self, logged: &mut Level, metrics: &MemoryMetrics) {
        let resident = resident_bytes();
        if let Some(resident) = resident {
            let level = self.backstop.lock().judge(resident, self.used());
            self.resident.store(level as usize, Ordering::Relaxed);
        }
        metrics.set(self.used(), self.limit, resident);
        let level = self.level();
        // A level that was reached is logged again only if the data has shrunk by more than a little in between.
        let shrunk = self.used() < self.limit / 100 * 85;
        if level > *logged {
            tracing::warn!(used = self.used(), limit = self.limit, resident, "{}", self.warning().unwrap_or_default());
            *logged = level;
        } else if level == Level::Free && *logged > level && shrunk {
            tracing::info!(used = self.used(), limit = self.limit, resident, "there is enough memory again");
            *logged = level;
        }
    }

    /// Returns what an operator has to know, if memory is short.
    pub(super) fn warning(&self) -> Option<String> {
        let level = self.level();
        let refused = match level {
            Level::Free => return None,
            Level::Scarce => "new subjects, boards, values and attributes are refused",
            Level::Full => "everything that takes memory is refused",
        };
        let cause = if self.resident_level() == level {
            "the process takes nearly all of the memory that it may take".to_owned()
        } else {
            let (used, limit) = (self.used(), self.limit);
            let percent = used as f64 / limit as f64 * 100.0;
            format!("the data takes {percent:.0} % of memory_limit ({used} of {limit} bytes)")
        };
        Some(format!(
            "{cause}: {refused}, existing data is read, changed and removed as before; remove boards or subjects, or \
             raise memory_limit"
        ))
    }
}

/// The bytes of one board, or of data that is about to be dropped, as a part of the total. They leave the total when
/// the share is dropped.
#[derive(Debug)]
pub(super) struct MemoryShare {
    memory: Arc<Memory>,
    bytes: AtomicUsize,
}

impl MemoryShare {
    pub(super) fn new(memory: &Arc<Memory>, bytes: usize) -> Self {
        let share = Self { memory: memory.clone(), bytes: AtomicUsize::new(0) };
        share.set(bytes);
        share
    }

    /// Publishes the bytes. Calls for one share must exclude each other.
    pub(super) fn set(&self, bytes: usize) {
        let before = self.bytes.load(Ordering::Relaxed);
        if bytes != before {
            self.bytes.store(bytes, Ordering::Relaxed);
            // The sum of all shares is never negative, so the difference may wrap on the way.
            self.memory.used.fetch_add(bytes.wrapping_sub(before), Ordering::Relaxed);
        }
    }
}

impl Drop for MemoryShare {
    fn drop(&mut self) {
        self.set(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_level_follows_from_the_sum_of_all_shares() {
        let memory = Memory::counted_only(1_000);
        let (one, two) = (MemoryShare::new(&memory, 500), MemoryShare::new(&memory, 399));
        assert_eq!((memory.used(), memory.level()), (899, Level::Free));
        assert!(memory.check_room_for_new().is_ok() && memory.warning().is_none());
        two.set(400);
        assert_eq!(memory.level(), Level::Scarce);
        assert!(matches!(memory.check_room_for_new(), Err(StoreError::MemoryFull)));
        assert!(memory.warning().unwrap().contains("90 % of memory_limit (900 of 1000 bytes)"));
        one.set(600);
        assert_eq!(memory.level(), Level::Full);
        drop(one);
        assert_eq!((memory.used(), memory.level()), (400, Level::Free));
        drop(two);
        assert_eq!(memory.used(), 0);
    }

    #[test]
    fn each_level_leaves_room_for_what_takes_less() {
        let enough = |level| {
            let room = Room { level, ..Room::UNLIMITED };
            [Demand::Nothing, Demand::More, Demand::Value, Demand::Subject].map(|demand| room.is_enough_for(demand))
        };
        assert_eq!(enough(Level::Free), [true; 4]);
        assert_eq!(enough(Level::Scarce), [true, true, false, false]);
        assert_eq!(enough(Level::Full), [true, false, false, false]);
    }
}
