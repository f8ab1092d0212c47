//! The log: frames in the order of their sequence, in segments of a fixed size.
//!
//! A frame is one group of operations, whose content is opaque here. Sequences have no gaps. One thread appends
//! ([`LogAppender`]). A second thread syncs and reports its progress to the first, which writes it into the frames that
//! follow. At a start, [`LogReader`] reads the frames and finds the end of the log.
//!
//! # The end of the log
//! Frames are read in order until one is missing or invalid. That is a normal end after a crash: any part of the
//! unsynced data may survive. It is damage if anything proves that the missing frame was synced: the manifest, or the
//! header of any frame or segment, before or after the end, whose `synced_seq` is at least the missing sequence.
//! Everything after a normal end is dropped permanently: the next segment names the segment and the position at which
//! the log ends before it, so the rest is never read again.
//!
//! Nothing follows the last frames that could prove that they were synced. If the disk loses synced frames there, their
//! loss looks like the normal end of the log; likewise if the last file is truncated or removed. An empty frame written
//! after a sync confirms the frames before it, and [`LogStart::synced_seq`] confirms those before a manifest. When a
//! store is closed, it installs a manifest that confirms all of them.
//!
//! # After reading
//! What was read may still be only in the system's memory. [`LogEnd::make_durable`] writes again and syncs everything
//! that is not proven to be synced. Only then may the log be continued. The start must come from a manifest that is
//! itself certain to survive: see `Manifest::recover`.

mod append;
mod chain;
mod evidence;
mod frame;
mod read;
mod secure;
mod segment;
#[cfg(test)]
mod tests;

pub(crate) use self::append::{LogAppender, SpareFile};
pub(crate) use self::read::{LogEnd, LogReader, SegmentRange};
pub(crate) use self::segment::{DIRECTORY, segment_name};

/// The start of the log, from the manifest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LogStart {
    /// The first segment that is needed. It may not exist, if nothing was appended since. In a new store it is 0, a
    /// number that no segment has.
    pub segment: u64,
    /// The sequence with which this segment begins.
    pub seq: u64,
    /// The sequence up to which all frames are known to be synced, or not needed.
    pub synced_seq: u64,
}
