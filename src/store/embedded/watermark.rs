//! The watermark: the highest journal sequence known to be on the disk, in a file of its own.
//!
//! A write-ahead log that is damaged in its middle looks, to whoever reads it, like one that ends there: all after
//! it is dropped without a word. The watermark tells the two apart.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use super::codec::{Reader, seal, unseal};

const FILE: &str = "watermark";

/// The file, and what it says.
#[derive(Debug)]
pub(super) struct Watermark {
    path: PathBuf,
    pub sequence: u64,
}

/// What the file says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mark {
    /// There is none: a new store, or the loss of what it vouched for was accepted.
    Absent,
    Sequence(u64),
    /// Neither what was written before nor after.
    Damaged,
}

impl Watermark {
    /// The watermark of a data directory, as read.
    pub(super) fn read(folder: &Path) -> io::Result<Mark> {
        match fs::read(Self::file(folder)) {
            Ok(bytes) => Ok(match unseal(&bytes).and_then(|value| Reader(value).u64()) {
                Ok(sequence) => Mark::Sequence(sequence),
                Err(_) => Mark::Damaged,
            }),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Mark::Absent),
            Err(error) => Err(error),
        }
    }

    pub(super) fn new(folder: &Path, sequence: u64) -> Self {
        Self { path: Self::file(folder), sequence }
    }

    pub(super) fn file(folder: &Path) -> PathBuf {
        folder.join(FILE)
    }

    /// Raises the mark. Written aside and renamed, so that a crash leaves the old or the new one.
    pub(super) fn raise(&mut self, sequence: u64) -> io::Result<()> {
        let aside = self.path.with_extension("new");
        let mut file = File::create(&aside)?;
        file.write_all(&seal(sequence.to_le_bytes().to_vec()))?;
        file.sync_data()?;
        fs::rename(&aside, &self.path)?;
        self.sequence = sequence;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_was_raised_and_notices_damage() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(Watermark::read(folder.path()).unwrap(), Mark::Absent);
        let mut mark = Watermark::new(folder.path(), 0);
        mark.raise(7).unwrap();
        mark.raise(u64::MAX).unwrap();
        assert_eq!(Watermark::read(folder.path()).unwrap(), Mark::Sequence(u64::MAX));
        fs::write(Watermark::file(folder.path()), [0; 16]).unwrap();
        assert_eq!(Watermark::read(folder.path()).unwrap(), Mark::Damaged);
        fs::write(Watermark::file(folder.path()), []).unwrap();
        assert_eq!(Watermark::read(folder.path()).unwrap(), Mark::Damaged);
    }
}
