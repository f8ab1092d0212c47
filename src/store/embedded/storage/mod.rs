//! Bytes and files: the data of the embedded store on disk, without regard to its meaning.
//!
//! - [`files`]: the operations on files that everything here uses, on the system or simulated.
//! - [`log`]: segments of frames, appended by one thread and read once, at a start.
//! - [`manifest`]: the one file that names all others.
//! - [`checkpoint`]: files of blocks that are written once: checkpoints and sealed buckets of ids.
//!
//! Nothing here starts a thread, reads a clock, or retries a failed operation. Every length read from a file is checked
//! before memory is allocated for it.

pub(crate) mod buffered;
pub(crate) mod checkpoint;
pub(crate) mod damage;
pub(crate) mod files;
pub(crate) mod log;
pub(crate) mod manifest;
