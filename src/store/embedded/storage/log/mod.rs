//! The log: frames in order of their sequence, in segments of a fixed size.
//!
//! A frame is one group of operations, opaque here. Sequences have no gaps. One thread appends ([`LogAppender`]);
//! another syncs, and tells the first how far, which then writes this into the frames that follow. At a start
//! [`LogReader`] reads the frames and decides where the log ends.
//!
//! # Where the log ends
//! Frames are read in order until one is missing or invalid. That is a normal end after a crash: what was not synced
//! may survive in any part. It is damage if anything proves that the missing frame was synced: the manifest, or the
//! header of any frame or segment, before or after the end, whose `synced_seq` is at least the missing sequence. What
//! follows a normal end is dropped for good: the next segment names the segment and the byte at which the log ends
//! before it, so it is never read again.
//!
//! The last frames have nothing after them that could prove that they were synced. If the disk loses those although
//! they were synced, it is taken for the end of the log; likewise if the last file is cut off, or removed. An empty
//! frame written after a sync vouches for those before it, and [`LogStart::synced_seq`] for those before a manifest.
//!
//! # After reading
//! What was read may still be only in the system's memory. [`LogEnd::secure`] writes again and syncs what nothing
//! proves to be synced; only then may the log be continued. The start must come from a manifest that is itself
//! certain to stay: see `Manifest::recover`.

mod append;
mod chain;
mod evidence;
mod frame;
mod read;
mod secure;
mod segment;
#[cfg(test)]
mod tests;

pub(crate) use self::append::{LogAppender, Spare};
pub(crate) use self::read::{LogEnd, LogReader, SegmentRange};
pub(crate) use self::segment::{DIRECTORY, segment_name};

/// From where the log is read, as the manifest says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LogStart {
    /// The first segment that is needed. It may not exist, if nothing was appended since; a new store says 0, a number
    /// that no segment has.
    pub segment: u64,
    /// The sequence with which this segment begins.
    pub seq: u64,
    /// All frames up to this sequence are known to be synced, or not needed.
    pub synced_seq: u64,
}
