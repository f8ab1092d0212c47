//! The names on a simulated disk: the current ones, those after a crash, and the changes in between.

use std::collections::{BTreeMap, BTreeSet};
use std::io;

use rand::Rng;
use rand::rngs::StdRng;

/// The absolute paths of files and directories.
#[derive(Clone, Debug, Default)]
pub(super) struct Names {
    directories: BTreeSet<String>,
    current: BTreeMap<String, u64>,
    durable: BTreeMap<String, u64>,
    /// The changes from durable to current, oldest first.
    unsynced: Vec<Change>,
}

#[derive(Clone, Debug)]
enum Change {
    Add { path: String, file: u64 },
    Remove { path: String },
    Rename { from: String, to: String, file: u64 },
}

impl Change {
    fn apply(&self, names: &mut BTreeMap<String, u64>) {
        match self {
            Change::Add { path, file } => {
                names.insert(path.clone(), *file);
            }
            Change::Remove { path } => {
                names.remove(path);
            }
            Change::Rename { from, to, file } => {
                // Without the change that created the first name, there is nothing to remove.
                if names.get(from) == Some(file) {
                    names.remove(from);
                }
                names.insert(to.clone(), *file);
            }
        }
    }

    fn is_in(&self, directory: &str) -> bool {
        match self {
            Change::Add { path, .. } | Change::Remove { path } => parent(path) == directory,
            Change::Rename { from, to, .. } => parent(from) == directory || parent(to) == directory,
        }
    }

    fn file(&self) -> Option<u64> {
        match self {
            Change::Add { file, .. } | Change::Rename { file, .. } => Some(*file),
            Change::Remove { .. } => None,
        }
    }
}

fn parent(path: &str) -> &str {
    path.rsplit_once('/').map_or("", |(parent, _)| parent)
}

impl Names {
    pub(super) fn get(&self, path: &str) -> Option<u64> {
        self.current.get(path).copied()
    }

    pub(super) fn exists(&self, path: &str) -> bool {
        self.current.contains_key(path) || self.directories.contains(path)
    }

    /// Returns the names in a directory, without those in its subdirectories.
    pub(super) fn list(&self, directory: &str) -> io::Result<Vec<String>> {
        self.need(directory)?;
        let all: BTreeSet<&String> = self.current.keys().chain(&self.directories).collect();
        let inside = all.into_iter().filter(|path| parent(path) == directory && !path.is_empty());
        Ok(inside.map(|path| path[directory.len() + 1..].to_owned()).collect())
    }

    pub(super) fn create_dir(&mut self, path: &str) {
        let mut path = path;
        while !path.is_empty() {
            self.directories.insert(path.to_owned());
            path = parent(path);
        }
    }

    pub(super) fn add(&mut self, path: &str, file: u64) -> io::Result<()> {
        self.need(parent(path))?;
        if self.exists(path) {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        self.change(Change::Add { path: path.to_owned(), file });
        Ok(())
    }

    pub(super) fn remove(&mut self, path: &str) -> io::Result<()> {
        self.get(path).ok_or(io::ErrorKind::NotFound)?;
        self.change(Change::Remove { path: path.to_owned() });
        Ok(())
    }

    pub(super) fn rename(&mut self, from: &str, to: &str) -> io::Result<()> {
        let file = self.get(from).ok_or(io::ErrorKind::NotFound)?;
        self.need(parent(to))?;
        self.change(Change::Rename { from: from.to_owned(), to: to.to_owned(), file });
        Ok(())
    }

    /// Makes the changes in a directory durable.
    pub(super) fn sync(&mut self, directory: &str) -> io::Result<()> {
        self.need(directory)?;
        let durable = &mut self.durable;
        self.unsynced.retain(|change| {
            let synced = change.is_in(directory);
            if synced {
                change.apply(durable);
            }
            !synced
        });
        Ok(())
    }

    /// Returns the files that have a name now.
    pub(super) fn current_files(&self) -> impl Iterator<Item = u64> {
        self.current.values().copied()
    }

    /// Returns the files that have a name now or may have one after a crash.
    pub(super) fn files(&self) -> impl Iterator<Item = u64> {
        let unsynced = self.unsynced.iter().filter_map(Change::file);
        self.current.values().chain(self.durable.values()).copied().chain(unsynced)
    }

    /// Returns the names that are left when each change survives with probability `keep` or, with `in_order`, when all
    /// changes up to some point survive.
    pub(super) fn after_power_loss(&self, random: &mut StdRng, keep: f64, in_order: bool) -> Names {
        let mut durable = self.durable.clone();
        let first_lost = match keep {
            1.0 => self.unsynced.len(),
            0.0 => 0,
            _ => random.random_range(0..=self.unsynced.len()),
        };
        for (index, change) in self.unsynced.iter().enumerate() {
            if if in_order { index < first_lost } else { random.random_bool(keep) } {
                change.apply(&mut durable);
            }
        }
        Names { directories: self.directories.clone(), current: durable.clone(), durable, unsynced: Vec::new() }
    }

    fn change(&mut self, change: Change) {
        change.apply(&mut self.current);
        self.unsynced.push(change);
    }

    fn need(&self, directory: &str) -> io::Result<()> {
        if self.directories.contains(directory) { Ok(()) } else { Err(io::ErrorKind::NotFound.into()) }
    }
}
