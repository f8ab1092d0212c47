//! Files of the operating system.

use std::fs::{self, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::fs::FallocateFlags;
use rustix::io::{Errno, retry_on_intr};

use super::{CHUNK, File, Files};

/// A directory of the operating system.
#[derive(Clone, Debug)]
pub(crate) struct SystemFiles {
    root: PathBuf,
}

#[derive(Debug)]
struct SystemFile(fs::File);

impl SystemFiles {
    /// Creates a handle of a directory, which need not exist: [`Files::create_dir`] of the empty name creates it.
    pub(crate) fn new(root: impl Into<PathBuf>) -> Self {
        Self { root: root.into() }
    }

    fn path(&self, name: &str) -> PathBuf {
        // Joining the empty name would append a separator.
        if name.is_empty() { self.root.clone() } else { self.root.join(name) }
    }
}

impl Files for SystemFiles {
    fn root(&self) -> &Path {
        &self.root
    }

    fn rooted(&self, root: &Path) -> Arc<dyn Files> {
        Arc::new(Self::new(root))
    }

    fn create_new(&self, name: &str) -> io::Result<Arc<dyn File>> {
        open(&self.path(name), OpenOptions::new().read(true).write(true).create_new(true))
    }

    fn open(&self, name: &str) -> io::Result<Arc<dyn File>> {
        open(&self.path(name), OpenOptions::new().read(true))
    }

    fn open_for_writing(&self, name: &str) -> io::Result<Arc<dyn File>> {
        open(&self.path(name), OpenOptions::new().read(true).write(true))
    }

    fn list(&self, directory: &str) -> io::Result<Vec<String>> {
        let mut names = Vec::new();
        for entry in fs::read_dir(self.path(directory))? {
            names.extend(entry?.file_name().into_string());
        }
        names.sort_unstable();
        Ok(names)
    }

    fn exists(&self, name: &str) -> io::Result<bool> {
        fs::exists(self.path(name))
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        fs::rename(self.path(from), self.path(to))
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        fs::remove_file(self.path(name))
    }

    fn link_to(&self, name: &str, other: &dyn Files, other_name: &str) -> io::Result<()> {
        fs::hard_link(self.path(name), other.root().join(other_name))
    }

    fn create_dir(&self, name: &str) -> io::Result<()> {
        create_dir(&self.path(name))
    }

    fn sync_dir(&self, name: &str) -> io::Result<()> {
        sync_dir(&self.path(name))
    }

    fn available(&self) -> io::Result<u64> {
        let space = retry_on_intr(|| rustix::fs::statvfs(&self.root))?;
        Ok(space.f_bavail.saturating_mul(space.f_frsize))
    }
}

fn open(path: &Path, options: &OpenOptions) -> io::Result<Arc<dyn File>> {
    Ok(Arc::new(SystemFile(options.open(path)?)))
}

fn create_dir(path: &Path) -> io::Result<()> {
    let parent = match path.parent() {
        None => return Ok(()),
        Some(parent) if parent.as_os_str().is_empty() => Path::new("."),
        Some(parent) => parent,
    };
    match fs::create_dir(path) {
        Ok(()) => {}
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            create_dir(parent)?;
            match fs::create_dir(path) {
                Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
                _ => {}
            }
        }
        // For an existing directory on a read-only file system, the error is not `AlreadyExists`.
        Err(_) if path.is_dir() => {}
        Err(error) => return Err(error),
    }
    // The parent is synced even if the directory existed: an earlier start may have been stopped before this line.
    match sync_dir(parent) {
        // A directory can be used without the right to read its parent, which syncing the parent needs.
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => Ok(()),
        result => result,
    }
}

fn sync_dir(path: &Path) -> io::Result<()> {
    fs::File::open(path)?.sync_all()
}

impl File for SystemFile {
    fn write_all_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        self.0.write_all_at(bytes, offset)
    }

    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        loop {
            match self.0.read_at(buffer, offset) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                result => return result,
            }
        }
    }

    fn len(&self) -> io::Result<u64> {
        Ok(self.0.metadata()?.len())
    }

    fn allocate(&self, len: u64) -> io::Result<()> {
        if len == 0 {
            return Ok(());
        }
        match retry_on_intr(|| rustix::fs::fallocate(&self.0, FallocateFlags::empty(), 0, len)) {
            Err(Errno::OPNOTSUPP | Errno::NOSYS) => write_zeros(self, len),
            result => Ok(result?),
        }
    }

    fn sync_data(&self) -> io::Result<()> {
        self.0.sync_data()
    }
}

/// Extends a file to `len` bytes by writing zeros.
fn write_zeros(file: &SystemFile, len: u64) -> io::Result<()> {
    let zeros = vec![0; CHUNK];
    let mut offset = file.len()?;
    while offset < len {
        let count = usize::try_from(len - offset).map_or(CHUNK, |rest| rest.min(CHUNK));
        file.write_all_at(&zeros[..count], offset)?;
        offset += count as u64;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn write_zeros_extends_a_file_and_keeps_its_contents() {
        let directory = tempfile::tempdir().unwrap();
        let file = SystemFile(
            OpenOptions::new().read(true).write(true).create_new(true).open(directory.path().join("f")).unwrap(),
        );
        file.write_all_at(b"abc", 0).unwrap();
        write_zeros(&file, CHUNK as u64 + 5).unwrap();
        assert_eq!(file.len().unwrap(), CHUNK as u64 + 5);
        let mut start = [1; 5];
        file.read_exact_at(&mut start, 0).unwrap();
        assert_eq!(&start, b"abc\0\0");
        write_zeros(&file, 10).unwrap();
        assert_eq!(file.len().unwrap(), CHUNK as u64 + 5);
    }
}
