//! The walk over the contents of a track: returns what the subjects have, in bounded portions between which the board
//! may change.
//!
//! A walk visits the records from the highest id down. A compaction moves records to lower ids, so it moves none past
//! the walk: what is not yet returned stays ahead of it. What was returned may be moved ahead of the walk and is then
//! returned again, so each move counts as an upheaval. In this order a walk needs no state in the holdings: any number
//! of them may be in progress, none holds a compaction up, and one that is not continued costs nothing.
//!
//! Everything else that gives a subject another record is a removal, which is an upheaval too, or counts items.

use std::fmt;

use super::{Holdings, Remainder};
use crate::store::embedded::log_operations::LogOperations;

/// The largest number of records visited in one portion, however few contents they have.
const MAX_RECORDS: usize = 4_096;

/// The position at which a walk over contents continues.
#[derive(Debug)]
pub(in super::super) struct ContentsWalk {
    opened: u64,
    epoch: u64,
    /// The ids below this one are left, and of the first of them what `remainder` says, if it is the one before `end`.
    end: u32,
    remainder: Remainder,
}

impl ContentsWalk {
    /// Parses what `to_string` returned.
    pub(in super::super) fn parse(text: &str) -> Option<Self> {
        // A value may contain spaces, so it is the last part.
        let mut parts = text.splitn(6, ' ');
        let mut part = || parts.next();
        let opened = u64::from_str_radix(part()?, 16).ok()?;
        let (epoch, end) = (part()?.parse().ok()?, part()?.parse().ok()?);
        let remainder = match part()? {
            "all" => Remainder::All,
            "slot" => Remainder::Slot(part()?.parse().ok()?),
            which @ ("seen" | "retracted") => {
                let at = part()?.parse().ok()?;
                Remainder::Value { retracted: which == "retracted", at, value: Box::from(part()?) }
            }
            _ => return None,
        };
        Some(Self { opened, epoch, end, remainder })
    }
}

impl fmt::Display for ContentsWalk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x} {} {} ", self.opened, self.epoch, self.end)?;
        match &self.remainder {
            Remainder::All => f.write_str("all"),
            Remainder::Slot(slot) => write!(f, "slot {slot}"),
            Remainder::Value { retracted, at, value } => {
                write!(f, "{} {at} {value}", if *retracted { "retracted" } else { "seen" })
            }
        }
    }
}

impl Holdings {
    /// Begins a walk.
    pub(in super::super) fn begin_contents(&self) -> ContentsWalk {
        ContentsWalk { opened: self.contents_walks.opened, epoch: self.epoch, end: u32::MAX, remainder: Remainder::All }
    }

    /// Returns whether a walk began since the store was opened.
    pub(in super::super) fn knows(&self, walk: &ContentsWalk) -> bool {
        walk.opened == self.contents_walks.opened
    }

    /// Appends the next portion: the operations that restore it, of at least `bytes` bytes, if that much is left, and
    /// hardly more. Returns whether there is more. If the holdings were replaced because everything had expired,
    /// nothing is left. What has expired may be among them.
    pub(in super::super) fn contents_portion(
        &self,
        walk: &mut ContentsWalk,
        bytes: usize,
        operations: &mut LogOperations,
    ) -> bool {
        if walk.epoch != self.epoch {
            return false;
        }
        let end = operations.len() + bytes;
        for _ in 0..MAX_RECORDS {
            if operations.len() >= end {
                return true;
            }
            let Some(id) = self.subjects.last_before(walk.end) else { return false };
            let within = std::mem::take(&mut walk.remainder);
            let within = if id + 1 == walk.end { within } else { Remainder::All };
            match self.kind.write_subject(self, id, within, end, operations) {
                Some(rest) => (walk.end, walk.remainder) = (id + 1, rest),
                None => walk.end = id,
            }
        }
        true
    }

    /// Returns a number that changes when a subject is removed or its record is moved.
    pub(in super::super) fn upheavals(&self) -> u64 {
        self.contents_walks.upheavals
    }

    /// Continues the numbers of the holdings that these replace, in which everything had expired, and takes over which
    /// subjects are hidden.
    pub(in super::super) fn succeed(&mut self, expired: &mut Holdings) {
        self.contents_walks = expired.contents_walks;
        self.hidden = std::mem::take(&mut expired.hidden);
    }
}
