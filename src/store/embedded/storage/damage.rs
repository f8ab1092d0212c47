//! Errors of the disk.

use std::io;

/// The reason why a file could not be used. Files are named relative to the data directory.
#[derive(Debug, thiserror::Error)]
pub(crate) enum StorageError {
    /// The system refused an operation.
    #[error("cannot {operation} {file}: {source}")]
    Io { file: String, operation: &'static str, source: io::Error },
    /// A file does not contain what was written and synced.
    #[error("{file} is damaged at byte {offset}: {what}")]
    Damaged { file: String, offset: u64, what: String },
    /// A file was written by a later version of the program.
    #[error(
        "{file} has format version {found}, this version of rolltop reads version {known}: use the one that wrote it"
    )]
    Newer { file: String, found: u32, known: u32 },
    /// A file has an operation that this version does not know, within a block whose checksum is right.
    #[error(
        "{file} has an operation of kind {code} at byte {offset}, which this version of rolltop does not know: use the version that wrote it"
    )]
    UnknownOperation { file: String, offset: u64, code: u8 },
}

impl StorageError {
    /// Returns the error for damage found at a byte of a file.
    pub(crate) fn damaged(file: impl Into<String>, offset: u64, what: impl Into<String>) -> Self {
        Self::Damaged { file: file.into(), offset, what: what.into() }
    }
}

/// An extension of [`io::Result`] that adds context to errors.
pub(crate) trait Context<T> {
    /// Adds the operation, a verb such as "read", and the file.
    fn context(self, operation: &'static str, file: &str) -> Result<T, StorageError>;
}

impl<T> Context<T> for io::Result<T> {
    fn context(self, operation: &'static str, file: &str) -> Result<T, StorageError> {
        self.map_err(|source| StorageError::Io { file: file.to_owned(), operation, source })
    }
}
