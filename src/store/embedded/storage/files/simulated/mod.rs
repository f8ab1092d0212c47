//! A disk in memory that can fail like a real disk, for tests.
//!
//! Files are kept in sectors of 512 bytes, with their durable state and every version written since (`content`). Names
//! are kept in the same way (`names`). [`Simulated::crash`] returns a disk with the state after a crash:
//! - after [`Crash::Killed`], everything that was written: the system still has it, and unsynced data is still
//!   unsynced;
//! - after a power loss, everything that was synced, and any part of the rest: each sector in any of its versions or
//!   torn between two, each length, each name. All of it is durable then.
//!
//! Directories are durable when they are created. Syncing a file does not sync its name.
//!
//! Operations are counted, and a hook is called before each. A write of two bytes or more is two operations,
//! [`OperationKind::Write`] and [`OperationKind::WriteRest`], so that a crash or a fault at the second one leaves a
//! part of the bytes.

mod content;
mod faults;
mod names;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parking_lot::{Condvar, Mutex};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

use self::content::Content;
use self::faults::Faults;
pub(crate) use self::faults::{DiskOperation, Fault, OperationKind};
use self::names::Names;
use super::{File, Files};

/// A directory of a simulated disk. Clones share the disk.
#[derive(Clone)]
pub(crate) struct Simulated {
    disk: Arc<Disk>,
    root: PathBuf,
}

/// The kind of a crash.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Crash {
    /// The process ended. Everything written remains, synced or not.
    Killed,
    /// The machine lost power. Any part of the unsynced data remains.
    PowerLoss,
    /// As `PowerLoss`, but the changes of names remain in order, up to any point, as on a file system with a journal.
    PowerLossInOrder,
}

/// A function that is called before each operation, with the operation's number.
pub(crate) type Hook = Box<dyn Fn(u64, &DiskOperation) + Send + Sync>;

struct Disk {
    state: Mutex<State>,
    /// Notified when operations that hang are released.
    released: Condvar,
    hook: Mutex<Option<Arc<Hook>>>,
}

#[derive(Default)]
struct State {
    names: Names,
    contents: BTreeMap<u64, Content>,
    /// The number of open [`SimulatedFile`]s of each file.
    open: BTreeMap<u64, usize>,
    next_file: u64,
    operations: u64,
    faults: Faults,
    /// The number of calls of [`Simulated::release`].
    releases: u64,
    /// The capacity in bytes, or `None` for no limit.
    capacity: Option<u64>,
}

struct SimulatedFile {
    disk: Arc<Disk>,
    file: u64,
    path: String,
    writable: bool,
}

impl Simulated {
    /// Creates an empty disk with the directory `/data`, which is the root.
    pub(crate) fn new() -> Self {
        let mut state = State::default();
        state.names.create_dir("/data");
        Self::of(state, PathBuf::from("/data"))
    }

    fn of(state: State, root: PathBuf) -> Self {
        let disk = Disk { state: Mutex::new(state), released: Condvar::new(), hook: Mutex::new(None) };
        Self { disk: Arc::new(disk), root }
    }

    /// Limits the disk to this many bytes, or with `None` to no limit. If more is used already, only further use fails.
    pub(crate) fn set_capacity(&self, bytes: Option<u64>) {
        self.disk.state.lock().capacity = bytes;
    }

    /// Returns the number of bytes used, including allocated ones.
    pub(crate) fn used(&self) -> u64 {
        self.disk.state.lock().used()
    }

    /// Returns the number of operations so far.
    pub(crate) fn operations(&self) -> u64 {
        self.disk.state.lock().operations
    }

    /// Plans a fault at the operation with this number. The first operation has number 1.
    pub(crate) fn at(&self, operation: u64, fault: Fault) {
        self.disk.state.lock().faults.plan(1, fault, Box::new(move |number, _| number == operation));
    }

    /// Plans a fault at the next `times` operations for which `which` returns true; `u32::MAX` means all.
    pub(crate) fn when(&self, times: u32, fault: Fault, which: impl Fn(&DiskOperation) -> bool + Send + 'static) {
        self.disk.state.lock().faults.plan(times, fault, Box::new(move |_, op| which(op)));
    }

    /// Removes all planned faults. Operations that hang continue to hang.
    pub(crate) fn clear_faults(&self) {
        self.disk.state.lock().faults = Faults::default();
    }

    /// Lets all operations continue that hang now.
    pub(crate) fn release(&self) {
        self.disk.state.lock().releases += 1;
        self.disk.released.notify_all();
    }

    /// Calls `hook` before each operation. The hook may use the disk's other methods, such as
    /// [`crash`](Self::crash), but not its files.
    pub(crate) fn on_operation(&self, hook: Hook) {
        *self.disk.hook.lock() = Some(Arc::new(hook));
    }

    /// Returns a disk with the state after a crash at this moment. The state is the same for the same seed. The new
    /// disk has this disk's capacity, but neither its hook nor its faults. This disk is not changed.
    pub(crate) fn crash(&self, seed: u64, crash: Crash) -> Simulated {
        let state = self.disk.state.lock();
        let mut left = State { next_file: state.next_file, capacity: state.capacity, ..State::default() };
        if crash == Crash::Killed {
            left.names = state.names.clone();
            left.contents = state.contents.clone();
            left.collect();
        } else {
            let mut random = StdRng::seed_from_u64(seed);
            // The extremes 0.0 and 1.0 are frequent, because independent decisions would hardly ever keep all or
            // nothing.
            let keep = [0.0, 0.1, 0.5, 0.9, 1.0][random.random_range(0..5)];
            left.names = state.names.after_power_loss(&mut random, keep, crash == Crash::PowerLossInOrder);
            let kept: BTreeSet<u64> = left.names.files().collect();
            for (file, content) in &state.contents {
                let remains = content.after_power_loss(&mut random, keep);
                if kept.contains(file) {
                    left.contents.insert(*file, remains);
                }
            }
        }
        Self::of(left, self.root.clone())
    }

    /// Drops all data from the system's memory that counts as synced. From now on, data lost by a failed sync reads as
    /// it is on the disk. Not an operation.
    pub(crate) fn evict(&self) {
        self.disk.state.lock().contents.values_mut().for_each(Content::evict);
    }

    /// Damages one byte of a file, on the disk and in what is read. Not an operation.
    pub(crate) fn damage(&self, name: &str, offset: u64, change: impl FnOnce(u8) -> u8) {
        let mut state = self.disk.state.lock();
        let file = state.names.get(&self.path(name)).expect("no such file");
        state.contents.get_mut(&file).expect("a name has a file").damage(offset, change);
    }

    fn path(&self, name: &str) -> String {
        absolute(&self.root, name)
    }

    fn step(&self, kind: OperationKind, name: &str, bytes: u64) -> io::Result<()> {
        self.disk.step(&DiskOperation { kind, path: self.path(name), bytes }).map(|_| ())
    }

    fn open_file(&self, name: &str, writable: bool) -> io::Result<Arc<dyn File>> {
        self.step(OperationKind::Open, name, 0)?;
        let path = self.path(name);
        let mut state = self.disk.state.lock();
        let file = state.names.get(&path).ok_or(io::ErrorKind::NotFound)?;
        Ok(self.disk.opened(&mut state, file, path, writable, Arc::clone(&self.disk)))
    }
}

fn absolute(root: &Path, name: &str) -> String {
    let root = root.to_string_lossy();
    if name.is_empty() { root.into_owned() } else { format!("{root}/{name}") }
}

impl Disk {
    /// Counts an operation, calls the hook, and applies a planned fault. Returns the operation's number.
    fn step(&self, op: &DiskOperation) -> io::Result<u64> {
        let (number, fault, releases) = {
            let mut state = self.state.lock();
            state.operations += 1;
            let number = state.operations;
            (number, state.faults.take(number, op), state.releases)
        };
        let hook = self.hook.lock().clone();
        if let Some(hook) = hook {
            hook(number, op);
        }
        match fault {
            None => Ok(number),
            Some(Fault::NoSpace) => Err(io::ErrorKind::StorageFull.into()),
            Some(Fault::Io) => Err(io::Error::other("simulated input/output error")),
            Some(Fault::Hang) => {
                let mut state = self.state.lock();
                self.released.wait_while(&mut state, |state| state.releases == releases);
                Ok(number)
            }
        }
    }

    fn opened(&self, state: &mut State, file: u64, path: String, writable: bool, disk: Arc<Disk>) -> Arc<dyn File> {
        *state.open.entry(file).or_default() += 1;
        Arc::new(SimulatedFile { disk, file, path, writable })
    }
}

impl State {
    /// Returns the bytes of all files that have a name or are open.
    fn used(&self) -> u64 {
        let mut used: BTreeSet<u64> = self.names.current_files().collect();
        used.extend(self.open.keys());
        used.iter().filter_map(|file| self.contents.get(file)).map(Content::used).sum()
    }

    fn available(&self) -> u64 {
        self.capacity.map_or(1 << 50, |capacity| capacity.saturating_sub(self.used()))
    }

    /// Removes files that are not open and have no name, now or after a crash.
    fn collect(&mut self) {
        let kept: BTreeSet<u64> = self.names.files().chain(self.open.keys().copied()).collect();
        self.contents.retain(|file, _| kept.contains(file));
    }
}

impl Files for Simulated {
    fn root(&self) -> &Path {
        &self.root
    }

    fn is_simulated(&self) -> bool {
        true
    }

    fn rooted(&self, root: &Path) -> Arc<dyn Files> {
        Arc::new(Self { disk: Arc::clone(&self.disk), root: root.to_owned() })
    }

    fn create_new(&self, name: &str) -> io::Result<Arc<dyn File>> {
        self.step(OperationKind::Create, name, 0)?;
        let path = self.path(name);
        let mut state = self.disk.state.lock();
        let file = state.next_file;
        state.names.add(&path, file)?;
        state.next_file += 1;
        state.contents.insert(file, Content::default());
        Ok(self.disk.opened(&mut state, file, path, true, Arc::clone(&self.disk)))
    }

    fn open(&self, name: &str) -> io::Result<Arc<dyn File>> {
        self.open_file(name, false)
    }

    fn open_for_writing(&self, name: &str) -> io::Result<Arc<dyn File>> {
        self.open_file(name, true)
    }

    fn list(&self, directory: &str) -> io::Result<Vec<String>> {
        self.step(OperationKind::List, directory, 0)?;
        self.disk.state.lock().names.list(&self.path(directory))
    }

    fn exists(&self, name: &str) -> io::Result<bool> {
        Ok(self.disk.state.lock().names.exists(&self.path(name)))
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        self.step(OperationKind::Rename, to, 0)?;
        let mut state = self.disk.state.lock();
        state.names.rename(&self.path(from), &self.path(to))?;
        state.collect();
        Ok(())
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        self.step(OperationKind::Remove, name, 0)?;
        let mut state = self.disk.state.lock();
        state.names.remove(&self.path(name))?;
        state.collect();
        Ok(())
    }

    fn link_to(&self, name: &str, other: &dyn Files, other_name: &str) -> io::Result<()> {
        let target = absolute(other.root(), other_name);
        self.disk.step(&DiskOperation { kind: OperationKind::Link, path: target.clone(), bytes: 0 })?;
        let mut state = self.disk.state.lock();
        let file = state.names.get(&self.path(name)).ok_or(io::ErrorKind::NotFound)?;
        state.names.add(&target, file)
    }

    fn create_dir(&self, name: &str) -> io::Result<()> {
        self.step(OperationKind::CreateDir, name, 0)?;
        self.disk.state.lock().names.create_dir(&self.path(name));
        Ok(())
    }

    fn sync_dir(&self, name: &str) -> io::Result<()> {
        self.step(OperationKind::SyncDir, name, 0)?;
        let mut state = self.disk.state.lock();
        state.names.sync(&self.path(name))?;
        state.collect();
        Ok(())
    }

    fn available(&self) -> io::Result<u64> {
        Ok(self.disk.state.lock().available())
    }
}

impl SimulatedFile {
    fn step(&self, kind: OperationKind, bytes: usize) -> io::Result<u64> {
        self.disk.step(&DiskOperation { kind, path: self.path.clone(), bytes: bytes as u64 })
    }

    fn with<T>(&self, use_content: impl FnOnce(&mut Content, u64) -> T) -> T {
        let mut state = self.disk.state.lock();
        let available = state.available();
        use_content(state.contents.get_mut(&self.file).expect("an open file is kept"), available)
    }
}

impl File for SimulatedFile {
    fn write_all_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        if !self.writable {
            return Err(io::ErrorKind::PermissionDenied.into());
        }
        let number = self.step(OperationKind::Write, bytes.len())?;
        if bytes.len() < 2 {
            return self.with(|content, available| content.write(bytes, offset, available));
        }
        let middle = StdRng::seed_from_u64(number).random_range(1..bytes.len());
        let (first, rest) = bytes.split_at(middle);
        self.with(|content, available| content.write(first, offset, available))?;
        self.step(OperationKind::WriteRest, rest.len())?;
        self.with(|content, available| content.write(rest, offset + middle as u64, available))
    }

    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        self.step(OperationKind::Read, buffer.len())?;
        Ok(self.with(|content, _| content.read(buffer, offset)))
    }

    fn len(&self) -> io::Result<u64> {
        Ok(self.with(|content, _| content.len()))
    }

    fn allocate(&self, len: u64) -> io::Result<()> {
        if !self.writable {
            return Err(io::ErrorKind::PermissionDenied.into());
        }
        self.step(OperationKind::Allocate, usize::try_from(len).unwrap_or(usize::MAX))?;
        self.with(|content, available| content.allocate(len, available))
    }

    fn sync_data(&self) -> io::Result<()> {
        match self.step(OperationKind::Sync, 0) {
            Ok(_) => {
                self.with(|content, _| content.sync());
                Ok(())
            }
            Err(error) => {
                let seed = self.disk.state.lock().operations;
                self.with(|content, _| content.sync_failed(&mut StdRng::seed_from_u64(seed)));
                Err(error)
            }
        }
    }
}

impl Drop for SimulatedFile {
    fn drop(&mut self) {
        let mut state = self.disk.state.lock();
        if let Some(count) = state.open.get_mut(&self.file) {
            *count -= 1;
            if *count == 0 {
                state.open.remove(&self.file);
                state.collect();
            }
        }
    }
}

impl fmt::Debug for Simulated {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Simulated").field("root", &self.root).finish_non_exhaustive()
    }
}

impl fmt::Debug for SimulatedFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SimulatedFile").field("path", &self.path).finish_non_exhaustive()
    }
}
