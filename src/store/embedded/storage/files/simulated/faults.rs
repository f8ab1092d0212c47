//! Operations as a test sees them, and the faults it plans.

/// What an operation does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Create,
    Open,
    List,
    /// The path is the new name.
    Rename,
    Remove,
    /// The path is the further name.
    Link,
    CreateDir,
    SyncDir,
    Write,
    /// The second part of a write, the first being done.
    WriteRest,
    Read,
    Allocate,
    Sync,
}

/// An operation that is about to be done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Op {
    pub kind: Kind,
    /// The absolute path; of an open file, the one it was opened by.
    pub path: String,
    /// Bytes to write, to read or to allocate; otherwise 0.
    pub bytes: u64,
}

impl Op {
    /// Returns whether a crash after this operation may leave something else than one before.
    pub(crate) fn changes(&self) -> bool {
        !matches!(self.kind, Kind::Open | Kind::List | Kind::Read)
    }
}

/// What goes wrong at an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// It fails for lack of space and does nothing.
    NoSpace,
    /// It fails and does nothing; except for a sync, which may have brought any part of the bytes to the disk, and
    /// after which the others count as synced although they never get there: what Linux does.
    Io,
    /// It waits until it is released, and then goes on.
    Hang,
}

type Which = Box<dyn Fn(u64, &Op) -> bool + Send>;

/// The faults that are planned.
#[derive(Default)]
pub(super) struct Faults(Vec<(u32, Fault, Which)>);

impl Faults {
    pub(super) fn plan(&mut self, times: u32, fault: Fault, which: Which) {
        self.0.push((times, fault, which));
    }

    /// Returns the fault for an operation: the first that is planned for it.
    pub(super) fn take(&mut self, number: u64, op: &Op) -> Option<Fault> {
        let (times, fault, _) = self.0.iter_mut().find(|(times, _, which)| *times > 0 && which(number, op))?;
        if *times != u32::MAX {
            *times -= 1;
        }
        Some(*fault)
    }
}
