//! Divides a board into partitions: determines the hash tag of each, and the partition of each subject.
//!
//! Each partition has its own hash tag, so its keys may be on a different node than those of the board's other
//! partitions. The tag is the board's name, a `/`, which no name contains, and a number: `{hot-posts/17}`. A board
//! without shards has one partition, whose tag is the name alone.
//!
//! # Even distribution over nodes
//! The 16,384 hash slots are divided into as many bands as there are partitions. Each gets a tag whose hash slot is
//! near the middle of its band. Nodes usually have contiguous ranges of hash slots of equal size. So each node gets an
//! even share of the partitions, for any number of nodes and any rounding of the limits of their ranges. With tags
//! numbered 0, 1, 2 … the busiest of six nodes would have 50 % more partitions than an even share.
//!
//! The numbers are stored with the definition, so that data stays where it is if the rule for choosing them changes.

use std::fmt;

use xxhash_rust::xxh3::xxh3_64;

use super::hash_slot::HashSlot;
use crate::board::{Board, BoardName, Epoch, MAX_SHARDS, PartitionNumbers, RankingKey, Subject};

/// The number of numbers that each epoch of a board has for its partitions.
const EACH_EPOCH: u32 = 100_000;

/// The separator of name and number. No board's name contains it.
const SEPARATOR: char = '/';

/// The middle eighth of a band, in sixteenths of the band. Because this range is so narrow, the distance between two
/// neighbors is between 7/8 and 9/8 of a band, so no node has more than one partitionition too many.
const MIDDLE: std::ops::Range<u64> = 7..9;

/// The division of a board into partitions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Division {
    /// The hash tag of each partition, without braces.
    tags: Box<[Box<str>]>,
    /// The number in each tag, or `None` for a board without shards.
    suffixes: Option<Box<[u32]>>,
}

/// The reason why the stored form of a division cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum DivisionError {
    #[error("'{text}' is not the number of a partition")]
    Number { text: String },
    #[error("two partitions have the number {suffix}")]
    Twice { suffix: u32 },
    #[error("{found} partitions are stored for a board with {shards} shards")]
    Count { found: usize, shards: u32 },
    #[error("a board cannot have {shards} shards; 1 to {MAX_SHARDS} are allowed")]
    Shards { shards: u32 },
}

impl Division {
    /// Returns the division of a board without shards: a single partition.
    pub fn unsharded(name: &BoardName) -> Self {
        Self { tags: Box::new([name.as_str().into()]), suffixes: None }
    }

    /// Chooses the partitions of a new board: for each partition, the smallest number whose hash slot is in the middle
    /// of the partition's band.
    pub fn choose(name: &BoardName, shards: u32) -> Result<Self, DivisionError> {
        Self::choose_from(name, shards, 0)
    }

    /// Chooses other partitions for a board that is in this epoch. No board of its name has them, or had them before.
    pub fn choose_again(name: &BoardName, shards: u32, epoch: Epoch) -> Result<Self, DivisionError> {
        let epochs = u64::from(u32::MAX / EACH_EPOCH);
        Self::choose_from(name, shards, (epoch.0 % epochs + 1) as u32 * EACH_EPOCH)
    }

    fn choose_from(name: &BoardName, shards: u32, first: u32) -> Result<Self, DivisionError> {
        let count = partitions(shards)?;
        let mut chosen: Vec<Option<u32>> = vec![None; count];
        let mut missing = count;
        // The loop ends: a test shows that numbers of up to five digits reach the middle of every band, for any name.
        for suffix in first.. {
            if missing == 0 {
                break;
            }
            let slot = HashSlot::of_key(tag(name, suffix).as_bytes());
            if let Some(partition) = band_in_whose_middle(slot, count)
                && chosen[partition].is_none()
            {
                chosen[partition] = Some(suffix);
                missing -= 1;
            }
        }
        Ok(Self::with_suffixes(name, chosen.into_iter().flatten().collect()))
    }

    /// Reads the text that [`stored`](Self::stored) returned for a board with this number of shards.
    pub fn read(name: &BoardName, shards: u32, text: &str) -> Result<Self, DivisionError> {
        let count = partitions(shards)?;
        let suffixes: Vec<u32> = text.split(',').map(suffix).collect::<Result<_, _>>()?;
        if suffixes.len() != count {
            return Err(DivisionError::Count { found: suffixes.len(), shards });
        }
        let mut sorted = suffixes.clone();
        sorted.sort_unstable();
        if let Some(pair) = sorted.windows(2).find(|pair| pair[0] == pair[1]) {
            return Err(DivisionError::Twice { suffix: pair[0] });
        }
        Ok(Self::with_suffixes(name, suffixes))
    }

    fn with_suffixes(name: &BoardName, suffixes: Vec<u32>) -> Self {
        let tags = suffixes.iter().map(|suffix| tag(name, *suffix).into_boxed_str()).collect();
        Self { tags, suffixes: Some(suffixes.into_boxed_slice()) }
    }

    /// Returns the numbers of the partitions in their order, as they are stored with the definition: `5,0,12`. Returns
    /// `None` for a board without shards, for which nothing is stored.
    pub fn stored(&self) -> Option<String> {
        let suffixes = self.suffixes.as_ref()?;
        Some(suffixes.iter().map(u32::to_string).collect::<Vec<_>>().join(","))
    }

    /// Returns the division of a board whose partitions have these numbers.
    pub fn of(name: &BoardName, numbers: Option<&PartitionNumbers>) -> Self {
        match numbers {
            None => Self::unsharded(name),
            Some(numbers) => Self::with_suffixes(name, numbers.to_vec()),
        }
    }

    /// Returns the division of a board.
    pub fn of_board(board: &Board) -> Self {
        Self::of(board.name(), board.partitions())
    }

    /// Returns the numbers of the partitions in their order, or `None` for a board without shards.
    pub fn numbers(&self) -> Option<PartitionNumbers> {
        self.suffixes.as_deref().map(PartitionNumbers::from)
    }

    /// Returns the number of partitions, at least 1.
    pub fn count(&self) -> usize {
        self.tags.len()
    }

    /// Returns the hash tag of each partition, without braces.
    pub fn tags(&self) -> impl ExactSizeIterator<Item = &str> {
        self.tags.iter().map(|tag| &**tag)
    }

    /// Returns the index of the partition that has the subject, from 0. A subject with a key is where its key is, so no
    /// ranking is divided.
    ///
    /// The index is the upper half of the product of the XXH3 of the subject or key (64 bits, seed 0) and the number of
    /// partitions. The hash has been fixed since xxHash 0.8.0 and is the same on every platform. This rule must never
    /// change: otherwise subjects would be looked for in partitions that do not have them.
    pub fn partition_of(&self, subject: &Subject) -> usize {
        self.partition_of_text(subject.key().unwrap_or(subject.as_str()))
    }

    /// Returns the index of the partition that has the ranking of the key.
    pub fn partition_of_key(&self, key: &RankingKey) -> usize {
        self.partition_of_text(key.as_str())
    }

    fn partition_of_text(&self, text: &str) -> usize {
        let hash = xxh3_64(text.as_bytes());
        ((u128::from(hash) * self.tags.len() as u128) >> 64) as usize
    }
}

/// Returns the number of partitions for a number of shards.
fn partitions(shards: u32) -> Result<usize, DivisionError> {
    match usize::try_from(shards) {
        Ok(count) if (1..=MAX_SHARDS).contains(&shards) => Ok(count),
        _ => Err(DivisionError::Shards { shards }),
    }
}

/// Returns the hash tag of a partition, without braces.
fn tag(name: &BoardName, suffix: impl fmt::Display) -> String {
    format!("{name}{SEPARATOR}{suffix}")
}

/// Reads a number as it was written: without a sign and without leading zeros.
fn suffix(text: &str) -> Result<u32, DivisionError> {
    let number = text.parse::<u32>().ok().filter(|number| number.to_string() == text);
    number.ok_or_else(|| DivisionError::Number { text: text.chars().take(20).collect() })
}

/// Returns the band of a hash slot, if the hash slot is in the middle of the band.
fn band_in_whose_middle(slot: HashSlot, bands: usize) -> Option<usize> {
    let place = u64::from(slot.number()) * bands as u64;
    let slots = u64::from(HashSlot::COUNT);
    let (band, within) = (place / slots, place % slots);
    MIDDLE.contains(&(within * 16 / slots)).then_some(band as usize)
}

#[cfg(test)]
#[path = "division/tests.rs"]
mod tests;
