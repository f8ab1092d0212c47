//! Subjects' names with their hashes.

use std::hash::BuildHasher;
use std::sync::LazyLock;

/// The hash of a subject, by which its record is found. Valid within this process only.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SubjectHash(pub u32);

/// A subject's name with its hash, which is computed once and without a lock.
#[derive(Clone, Copy, Debug)]
pub(super) struct HashedName<'a> {
    pub text: &'a str,
    pub hash: SubjectHash,
}

impl SubjectHash {
    /// Returns the hash of a subject.
    pub(super) fn of(text: &str) -> Self {
        /// Random for each process, so that clients cannot choose names that collide.
        static STATE: LazyLock<rapidhash::fast::RandomState> = LazyLock::new(rapidhash::fast::RandomState::new);
        Self((STATE.hash_one(text.as_bytes()) >> 32) as u32)
    }
}

impl<'a> From<&'a str> for HashedName<'a> {
    fn from(text: &'a str) -> Self {
        Self { text, hash: SubjectHash::of(text) }
    }
}
