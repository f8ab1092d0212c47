//! The edge to the disk: fjall, its errors and its panics, and nothing of what the bytes mean.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

use fjall::{Database, Keyspace, KeyspaceCreateOptions, PersistMode};

/// Why the disk did not do what it was asked to; final, as fjall takes no writes after a failed one.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub(super) struct DiskError(pub String);

/// One change of a group, which is written as a whole or not at all.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Write {
    Put(Vec<u8>, Vec<u8>),
    Delete(Vec<u8>),
}

impl Write {
    pub(super) fn key(&self) -> &[u8] {
        match self {
            Write::Put(key, _) | Write::Delete(key) => key,
        }
    }
}

/// A key and its value.
pub(super) type Pair = (Vec<u8>, Vec<u8>);

/// An ordered map on a disk. A trait, so that tests can make it fail.
pub(super) trait Disk: Send + Sync {
    /// Writes a group atomically. With `sync` it is on the disk, and all before it, when this returns; without, it
    /// has left the process.
    fn commit(&self, writes: Vec<Write>, sync: bool) -> Result<(), DiskError>;

    /// Brings everything committed to the disk itself.
    fn sync(&self) -> Result<(), DiskError>;

    /// Up to `limit` entries whose key starts with `prefix` and is greater than `after`, in order.
    fn scan(&self, prefix: &[u8], after: Option<&[u8]>, limit: usize) -> Result<Vec<Pair>, DiskError>;

    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, DiskError>;
}

/// fjall with a single keyspace.
pub(super) struct Fjall {
    database: Database,
    keyspace: Keyspace,
}

impl Fjall {
    pub(super) fn open(path: &Path) -> Result<Self, DiskError> {
        guarded(|| {
            // The working state is in memory: the cache serves opening and folding only.
            let database = Database::builder(path).cache_size(16 << 20).worker_threads(2).open()?;
            let keyspace = database.keyspace("rolltop", KeyspaceCreateOptions::default)?;
            Ok(Self { database, keyspace })
        })
    }
}

impl Disk for Fjall {
    fn commit(&self, writes: Vec<Write>, sync: bool) -> Result<(), DiskError> {
        guarded(|| {
            let mode = if sync { PersistMode::SyncData } else { PersistMode::Buffer };
            let mut batch = self.database.batch().durability(Some(mode));
            for write in writes {
                match write {
                    Write::Put(key, value) => batch.insert(&self.keyspace, key, value),
                    Write::Delete(key) => batch.remove(&self.keyspace, key),
                }
            }
            batch.commit()
        })
    }

    fn sync(&self) -> Result<(), DiskError> {
        guarded(|| self.database.persist(PersistMode::SyncData))
    }

    fn scan(&self, prefix: &[u8], after: Option<&[u8]>, limit: usize) -> Result<Vec<Pair>, DiskError> {
        use std::ops::Bound::{Excluded, Included, Unbounded};

        let from = after.map_or(Included(prefix.to_vec()), |key| Excluded(key.to_vec()));
        guarded(|| {
            let mut found = Vec::new();
            for entry in self.keyspace.range::<Vec<u8>, _>((from, Unbounded)).take(limit) {
                let (key, value) = entry.into_inner()?;
                if !key.starts_with(prefix) {
                    break;
                }
                found.push((key.to_vec(), value.to_vec()));
            }
            Ok(found)
        })
    }

    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, DiskError> {
        guarded(|| Ok(self.keyspace.get(key)?.map(|value| value.to_vec())))
    }
}

/// Damaged files can make fjall panic; that is a failure like any other.
fn guarded<T>(work: impl FnOnce() -> fjall::Result<T>) -> Result<T, DiskError> {
    match catch_unwind(AssertUnwindSafe(work)) {
        Ok(result) => result.map_err(|error| DiskError(error.to_string())),
        Err(panic) => {
            let said = panic
                .downcast_ref::<&str>()
                .map(|text| (*text).to_owned())
                .or_else(|| panic.downcast_ref::<String>().cloned());
            Err(DiskError(said.unwrap_or_else(|| "the storage engine gave up".to_owned())))
        }
    }
}
