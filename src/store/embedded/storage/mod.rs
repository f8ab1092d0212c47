//! Bytes and files: what the embedded store keeps on disk, without knowing what the bytes mean.
//!
//! - [`files`]: the operations on files that everything here goes through, on the system or simulated.
//! - [`log`]: segments of frames, appended by one thread and read once, at a start.
//! - [`manifest`]: the one file that names all others.
//! - [`checkpoint`]: files of blocks that are written once: checkpoints and sealed buckets of ids.
//!
//! Nothing here starts a thread, knows the time, or retries what failed. Every length read from a file is checked
//! before memory is taken for it.

pub(crate) mod buffered;
pub(crate) mod checkpoint;
pub(crate) mod damage;
pub(crate) mod files;
pub(crate) mod log;
pub(crate) mod manifest;
