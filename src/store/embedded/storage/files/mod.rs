//! The operations on files that the store needs: [`Files`], a directory, and [`File`], an open file in it.
//!
//! Names are relative to the directory, with `/` between their parts. The empty name is the directory itself. After a
//! crash, only what POSIX guarantees may be relied on: bytes after [`File::sync_data`], and the creation, renaming and
//! removal of names after [`Files::sync_dir`] of the directory that contains them.

#[cfg(test)]
pub(crate) mod simulated;
pub(crate) mod system;

use std::fmt::Debug;
use std::io;
use std::path::Path;
use std::sync::Arc;

/// The bytes copied or zeroed at a time.
const CHUNK: usize = 1 << 20;

/// A directory and everything below it.
pub(crate) trait Files: Send + Sync + Debug {
    /// Returns the path of the directory: for messages, and for [`link_to`](Self::link_to).
    fn root(&self) -> &Path;

    /// Returns whether the files are simulated, so that nothing is on a real disk.
    fn is_simulated(&self) -> bool {
        false
    }

    /// Returns a different directory of the same system. It need not exist: [`create_dir`](Self::create_dir) of the
    /// empty name creates it.
    fn rooted(&self, root: &Path) -> Arc<dyn Files>;

    /// Creates an empty file, open for reading and writing.
    ///
    /// # Errors
    /// Returns `AlreadyExists` if the name exists, and `NotFound` if its directory is missing.
    fn create_new(&self, name: &str) -> io::Result<Arc<dyn File>>;

    /// Opens a file for reading.
    fn open(&self, name: &str) -> io::Result<Arc<dyn File>>;

    /// Opens a file for reading and writing, with its contents.
    fn open_for_writing(&self, name: &str) -> io::Result<Arc<dyn File>>;

    /// Returns the names of files and directories in a directory, in order. Names that are not UTF-8 are left out.
    fn list(&self, directory: &str) -> io::Result<Vec<String>>;

    /// Returns whether the name exists.
    fn exists(&self, name: &str) -> io::Result<bool>;

    /// Renames a file, atomically. An existing file with the new name is replaced.
    fn rename(&self, from: &str, to: &str) -> io::Result<()>;

    /// Removes a name. The file's space is freed when no name and no open [`File`] is left.
    fn remove(&self, name: &str) -> io::Result<()>;

    /// Creates a hard link to the file `name` in a different directory of the same system.
    ///
    /// # Errors
    /// Returns `AlreadyExists` if the new name exists, and other errors if the two directories are on different file
    /// systems or the file system has no hard links: see [`link_or_copy`].
    fn link_to(&self, name: &str, other: &dyn Files, other_name: &str) -> io::Result<()>;

    /// Creates a directory and its parents. Existing ones are left unchanged. Unlike the names of files, the
    /// directories survive a crash once this has returned.
    fn create_dir(&self, name: &str) -> io::Result<()>;

    /// Syncs the names in a directory.
    fn sync_dir(&self, name: &str) -> io::Result<()>;

    /// Returns how many bytes this process can still write on the file system, without those reserved for root.
    fn available(&self) -> io::Result<u64>;
}

/// An open file. All operations take an offset, so threads may share the file.
pub(crate) trait File: Send + Sync + Debug {
    /// Writes all bytes at an offset. The file grows as needed.
    ///
    /// # Errors
    /// After an error, some of the bytes may have been written.
    fn write_all_at(&self, bytes: &[u8], offset: u64) -> io::Result<()>;

    /// Reads at most as many bytes as the buffer has, and returns how many. Returns 0 at the end of the file.
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize>;

    /// Returns the length of the file in bytes.
    fn len(&self) -> io::Result<u64>;

    /// Makes the file at least `len` bytes long and reserves the disk space for all of them, so that writing them later
    /// does not fail for lack of space. Bytes that were not written read as zeros.
    ///
    /// If the file system cannot reserve space, zeros are written. File systems that never overwrite in place (btrfs
    /// with snapshots, ZFS) may still run out of space.
    fn allocate(&self, len: u64) -> io::Result<()>;

    /// Syncs all bytes written before, and the length, to the disk.
    ///
    /// # Errors
    /// After an error, the bytes that were not yet on the disk may never get there, even if a later call succeeds. They
    /// have to be written again.
    fn sync_data(&self) -> io::Result<()>;

    /// Fills the buffer from an offset.
    ///
    /// # Errors
    /// Returns `UnexpectedEof` if the file ends before.
    fn read_exact_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        let mut done = 0;
        while done < buffer.len() {
            match self.read_at(&mut buffer[done..], offset + done as u64)? {
                0 => return Err(io::ErrorKind::UnexpectedEof.into()),
                read => done += read,
            }
        }
        Ok(())
    }
}

/// Creates a hard link to a file in a different directory, or copies the file if that fails. Returns whether it was
/// linked.
///
/// The bytes of a copy are synced. In either case the new name is not: see [`Files::sync_dir`]. The file must not
/// change in the meantime. An unfinished copy is removed.
pub(crate) fn link_or_copy(from: &dyn Files, name: &str, to: &dyn Files, other_name: &str) -> io::Result<bool> {
    match from.link_to(name, to, other_name) {
        Ok(()) => Ok(true),
        // A copy would fail in the same way.
        Err(error) if matches!(error.kind(), io::ErrorKind::AlreadyExists | io::ErrorKind::NotFound) => Err(error),
        Err(_) => copy(from, name, to, other_name, u64::MAX).map(|()| false),
    }
}

/// Copies the first `len` bytes of a file, or all if it has fewer, into a new file of a different directory, and syncs
/// them, but not the new name. An unfinished copy is removed.
pub(crate) fn copy(from: &dyn Files, name: &str, to: &dyn Files, other_name: &str, len: u64) -> io::Result<()> {
    let source = from.open(name)?;
    let target = to.create_new(other_name)?;
    let copied = copy_bytes(&*source, &*target, len).and_then(|()| target.sync_data());
    if copied.is_err() {
        // If the removal fails, the file stays: nothing names it, and nothing overwrites it. The first error is the one
        // to report.
        let _ = to.remove(other_name);
    }
    copied
}

fn copy_bytes(source: &dyn File, target: &dyn File, len: u64) -> io::Result<()> {
    let mut buffer = vec![0; CHUNK];
    let mut offset = 0;
    while offset < len {
        let wanted = usize::try_from(len - offset).map_or(CHUNK, |rest| rest.min(CHUNK));
        match source.read_at(&mut buffer[..wanted], offset)? {
            0 => break,
            read => {
                target.write_all_at(&buffer[..read], offset)?;
                offset += read as u64;
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
