//! Operations as tests see them, and the faults that tests plan.

/// The kind of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OperationKind {
    Create,
    Open,
    List,
    /// A rename. The path is the new name.
    Rename,
    Remove,
    /// A hard link. The path is the new name.
    Link,
    CreateDir,
    SyncDir,
    Write,
    /// The second part of a write, after the first part is done.
    WriteRest,
    Read,
    Allocate,
    Sync,
}

/// An operation that is about to be done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct DiskOperation {
    pub kind: OperationKind,
    /// The absolute path; for an open file, the path with which it was opened.
    pub path: String,
    /// The bytes to write, to read or to allocate; otherwise 0.
    pub bytes: u64,
}

impl DiskOperation {
    /// Returns whether a crash after this operation may leave a different state than a crash before it.
    pub(crate) fn changes(&self) -> bool {
        !matches!(self.kind, OperationKind::Open | OperationKind::List | OperationKind::Read)
    }
}

/// A fault of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// The operation fails for lack of space and does nothing.
    NoSpace,
    /// The operation fails and does nothing, except for a sync: it may have brought any part of the bytes to the disk,
    /// and afterwards the other bytes count as synced although they never get there. This is the behavior of Linux.
    Io,
    /// The operation waits until it is released, and then continues.
    Hang,
}

type Which = Box<dyn Fn(u64, &DiskOperation) -> bool + Send>;

/// The planned faults.
#[derive(Default)]
pub(super) struct Faults(Vec<(u32, Fault, Which)>);

impl Faults {
    pub(super) fn plan(&mut self, times: u32, fault: Fault, which: Which) {
        self.0.push((times, fault, which));
    }

    /// Returns the first fault that is planned for an operation.
    pub(super) fn take(&mut self, number: u64, op: &DiskOperation) -> Option<Fault> {
        let (times, fault, _) = self.0.iter_mut().find(|(times, _, which)| *times > 0 && which(number, op))?;
        if *times != u32::MAX {
            *times -= 1;
        }
        Some(*fault)
    }
}
