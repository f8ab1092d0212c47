//! The work of the thread `rolltop-files`, as far as other threads know of it.

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::Mutex;

/// The work of the thread, shared with those that request it or wait for its end.
#[derive(Debug)]
pub(super) struct FilesWork {
    /// Whether a manifest is to be installed because the one on the disk names files that are not needed, or there are
    /// files that it does not name. However many boards are removed, this is one piece of work.
    is_outdated: AtomicBool,
    task: Mutex<Task>,
}

/// What the thread does. All of it can be left out when the store is closed, because the next start does it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Task {
    None,
    Backup,
    Checkpoint,
    Manifest,
    Deletion,
}

impl fmt::Display for Task {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Task::None => "other work on files",
            Task::Backup => "a backup",
            Task::Checkpoint => "a checkpoint",
            Task::Manifest => "writing the manifest",
            Task::Deletion => "deleting files",
        })
    }
}

impl FilesWork {
    /// Creates the work of a store that was just opened: a crash may have left files that no manifest names.
    pub(super) fn new() -> Self {
        Self { is_outdated: AtomicBool::new(true), task: Mutex::new(Task::None) }
    }

    /// Requests a new manifest, and the deletion of files that it does not name.
    pub(super) fn manifest_outdated(&self) {
        self.is_outdated.store(true, Ordering::Release);
    }

    pub(super) fn is_manifest_outdated(&self) -> bool {
        self.is_outdated.load(Ordering::Acquire)
    }

    /// Takes the request for a new manifest. Returns whether there was one.
    pub(super) fn take_outdated(&self) -> bool {
        self.is_outdated.swap(false, Ordering::AcqRel)
    }

    /// Records what the thread does from now on.
    pub(super) fn begin(&self, task: Task) {
        *self.task.lock() = task;
    }

    pub(super) fn task(&self) -> Task {
        *self.task.lock()
    }
}
