//! The resources that a process uses, as the operating system reports them.

use std::collections::BTreeSet;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rustix::process::{Pid, Signal, kill_process};

/// Returns the resident memory, in megabytes.
pub fn resident(id: u32) -> f64 {
    megabytes(id, "VmRSS:")
}

/// Returns the largest resident memory so far, in megabytes.
pub fn peak(id: u32) -> f64 {
    megabytes(id, "VmHWM:")
}

fn megabytes(id: u32, field: &str) -> f64 {
    let status = std::fs::read_to_string(format!("/proc/{id}/status")).expect("a running process");
    let line = status.lines().find_map(|line| line.strip_prefix(field)).expect(field);
    line.split_whitespace().next().and_then(|kilobytes| kilobytes.parse::<f64>().ok()).expect("a number") / 1_024.0
}

/// Ends a process at once, as `kill -9` does.
pub fn kill(id: u32) {
    let pid = Pid::from_raw(i32::try_from(id).expect("a process id")).expect("not 0");
    kill_process(pid, Signal::KILL).expect("a running process of ours");
}

/// Returns all files below a folder. Files that are deleted in the meantime are left out.
pub fn files(folder: &Path) -> BTreeSet<PathBuf> {
    let mut found = BTreeSet::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(next) = folders.pop() {
        for entry in std::fs::read_dir(&next).into_iter().flatten().flatten() {
            match entry.file_type() {
                Ok(kind) if kind.is_dir() => folders.push(entry.path()),
                _ => drop(found.insert(entry.path())),
            }
        }
    }
    found
}

/// Returns the disk space of the files below a folder, in megabytes.
pub fn on_disk(folder: &Path) -> f64 {
    let blocks = files(folder).into_iter().filter_map(|path| std::fs::metadata(path).ok()).map(|file| file.blocks());
    blocks.sum::<u64>() as f64 * 512.0 / (1 << 20) as f64
}
