//! Reading a database whole: definitions, records, values and ids, then the journal, which is done again on top.

use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::Mutex;
use serde::{Deserialize, Serialize};

use super::boards::LiveBoard;
use super::codec::{self, BOARDS, Damaged, IDS, JOURNAL, REACHED, Reader, seal, split_board_key, unseal};
use super::disk::{Disk, DiskError};
use super::fingerprint::Fingerprint;
use super::journal::Sweep;
use super::operations::{Operation, operations};
use super::recovery::Recovered;
use super::tables::Tables;
use crate::board::{Board, BoardName, Definition, Generation, Sketch, Timestamp};
use crate::store::{Result, StoreError};

/// Entries read at a time.
const PIECE: usize = 4_096;

/// A board on the disk.
#[derive(Serialize, Deserialize)]
struct Stored {
    generation: u64,
    definition: Definition,
}

/// Why opening failed, before it is known for which folder.
pub(super) enum Failure {
    Damaged(String),
    Other(StoreError),
}

impl From<Damaged> for Failure {
    fn from(damaged: Damaged) -> Self {
        Failure::Damaged(damaged.to_string())
    }
}

impl From<DiskError> for Failure {
    fn from(error: DiskError) -> Self {
        Failure::Damaged(error.0)
    }
}

/// The value a board is stored as.
pub(super) fn encode_board(board: &Board) -> Result<Vec<u8>> {
    let stored = Stored { generation: board.generation().0, definition: board.definition().clone() };
    let json = serde_json::to_vec(&stored).map_err(|error| StoreError::Backend { source: Box::new(error) })?;
    Ok(seal(json))
}

pub(super) fn decode_time(sealed: &[u8]) -> Result<Timestamp, Damaged> {
    Ok(Timestamp::from_millis(Reader(unseal(sealed)?).i64()?))
}

type Loader = fn(&mut Loading, &[u8], &[u8]) -> Result<(), Failure>;

/// How each kind of entry is read; definitions first, as the others are of boards.
const LOADERS: [(&[u8], Loader); 3] = [(BOARDS, Loading::board), (REACHED, Loading::reached), (IDS, Loading::id)];

/// Visits every entry of a kind.
fn each(
    disk: &dyn Disk,
    kind: &[u8],
    mut visit: impl FnMut(&[u8], &[u8]) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let mut after: Option<Vec<u8>> = None;
    loop {
        let found = disk.scan(kind, after.as_deref(), PIECE)?;
        for (key, value) in &found {
            visit(key, value)?;
        }
        match found.into_iter().last() {
            Some((last, _)) => after = Some(last),
            None => return Ok(()),
        }
    }
}

/// Does an operation again that is about this board. Operations of a part of a log, or of a checkpoint and the log since
/// it began, end in the same state however often they are done, in their order. Then call [`Tables::rebuild`].
pub(super) fn restore(board: &Board, tables: &mut Tables, operation: Operation) -> Result<(), Damaged> {
    let holdings = &mut tables.holdings;
    match operation {
        Operation::Board(_) => {}
        Operation::Amount { slot, amount, subject } => holdings.restore_amount(subject.into(), slot, amount),
        Operation::Samples { slot, sum, count, subject } => {
            holdings.restore_samples(subject.into(), slot, (sum, count));
        }
        Operation::Marked { slot, mark, subject } => holdings.restore_mark(subject.into(), slot, mark),
        Operation::Sketch { slot, sketch, subject } => {
            let sketch = Sketch::from_bytes(sketch).ok_or(Damaged)?;
            holdings.restore_sketch(subject.into(), slot, sketch);
        }
        Operation::Sighted { sighting, subject, value } => holdings.restore_sighting(subject.into(), value, sighting),
        Operation::Capped { at, subject } => holdings.restore_capped(subject.into(), at),
        Operation::Id { arrival, fingerprint } => tables.ids.remember(fingerprint, arrival),
        Operation::Removed { subject } => holdings.restore_removed(subject.into()),
        Operation::Advanced { now } => tables.move_clock(board, Timestamp::from_millis(now)),
    }
    Ok(())
}

/// What has been read so far.
#[derive(Default)]
pub(super) struct Loading {
    boards: BTreeMap<Generation, (Arc<Board>, Tables)>,
    /// Generations that belong to no board.
    orphans: Vec<Generation>,
    /// Of the entries read so far.
    pub digest: u64,
    pub journal: Replayed,
}

/// How far the journal was done again.
#[derive(Default)]
pub(super) struct Replayed {
    /// Entries up to this sequence are contained in the records.
    pub folded: u64,
    pub first: Option<u64>,
    pub last: u64,
    /// Of operations, that were done again.
    pub bytes: u64,
}

impl Loading {
    /// Reads everything but the journal.
    pub(super) fn entries(&mut self, disk: &dyn Disk) -> Result<(), Failure> {
        for (kind, load) in LOADERS {
            each(disk, kind, |key, value| {
                self.digest ^= codec::share(key, value);
                load(self, key, value)
            })?;
        }
        Ok(())
    }

    /// Does the journal again.
    pub(super) fn groups(&mut self, disk: &dyn Disk) -> Result<(), Failure> {
        each(disk, JOURNAL, |key, value| self.group(key, value))
    }

    /// Counts an entry of the store itself.
    pub(super) fn meta(&mut self, key: &[u8], value: Option<&[u8]>) {
        self.digest ^= value.map_or(0, |value| codec::share(key, value));
    }

    fn board(&mut self, key: &[u8], value: &[u8]) -> Result<(), Failure> {
        let name = std::str::from_utf8(&key[BOARDS.len()..]).ok().and_then(|name| BoardName::parse(name).ok());
        let stored: Option<Stored> = serde_json::from_slice(unseal(value)?).ok();
        let (Some(name), Some(stored)) = (name, stored) else {
            return Err(Failure::Damaged("a board's definition cannot be read".to_owned()));
        };
        let generation = Generation(stored.generation);
        let board = Board::new(name, generation, stored.definition)
            .map_err(|error| Failure::Damaged(format!("a board's definition is not valid: {error}")))?;
        let tables = Tables::new(&board, Timestamp::EPOCH);
        self.boards.insert(generation, (Arc::new(board), tables));
        Ok(())
    }

    /// The tables of a generation; one without a board is what a removed board left, to be swept.
    fn tables(&mut self, generation: Generation) -> Option<&mut (Arc<Board>, Tables)> {
        let found = self.boards.get_mut(&generation);
        if found.is_none() && self.orphans.last() != Some(&generation) {
            self.orphans.push(generation);
        }
        found
    }

    fn reached(&mut self, key: &[u8], value: &[u8]) -> Result<(), Failure> {
        let (generation, _) = split_board_key(key)?;
        let time = decode_time(value)?;
        if let Some((board, tables)) = self.tables(generation) {
            tables.move_clock(board, time);
        }
        Ok(())
    }

    fn id(&mut self, key: &[u8], value: &[u8]) -> Result<(), Failure> {
        unseal(value)?;
        let (generation, rest) = split_board_key(key)?;
        let (arrival, fingerprint) = rest.split_first_chunk::<8>().ok_or(Damaged)?;
        let fingerprint = fingerprint.try_into().map_err(|_| Damaged)?;
        if let Some((_, tables)) = self.tables(generation) {
            tables.ids.remember(Fingerprint(u128::from_be_bytes(fingerprint)), i64::from_be_bytes(*arrival));
        }
        Ok(())
    }

    /// Does one group of the journal again.
    fn group(&mut self, key: &[u8], value: &[u8]) -> Result<(), Failure> {
        let sequence = key[JOURNAL.len()..].try_into().map(u64::from_be_bytes).map_err(|_| Damaged)?;
        self.journal.first.get_or_insert(sequence);
        if sequence <= self.journal.folded {
            return Ok(()); // folded; a crash came before it was deleted
        }
        if sequence != self.journal.last + 1 {
            let expected = self.journal.last + 1;
            return Err(Failure::Damaged(format!(
                "the journal goes on at sequence {sequence} where {expected} was expected"
            )));
        }
        self.journal.last = sequence;
        let bytes = unseal(value)?;
        self.journal.bytes += bytes.len() as u64;
        let mut current = None;
        for operation in operations(bytes) {
            let operation = operation?;
            if let Operation::Board(generation) = operation {
                // A board that was removed later is not there any more, nor needs to be.
                current = self.boards.get_mut(&generation);
                continue;
            }
            let Some((board, tables)) = &mut current else { continue };
            restore(board, tables, operation)?;
        }
        Ok(())
    }

    /// Computes what records do not say, and answers everything.
    pub(super) fn finish(mut self, clock: Option<Timestamp>) -> Result<Recovered, Failure> {
        let mut boards = BTreeMap::new();
        for (board, mut tables) in self.boards.into_values() {
            tables.rebuild(&board);
            let name = board.name().clone();
            boards.insert(name, Arc::new(LiveBoard { board, tables: Mutex::new(tables) }));
        }
        self.orphans.sort_unstable();
        self.orphans.dedup();
        Ok(Recovered {
            boards,
            clock,
            sequence: self.journal.last,
            deleted: self.journal.first.map_or(self.journal.folded, |first| first.saturating_sub(1)),
            digest: self.digest,
            unfolded: self.journal.bytes,
            sweeps: self.orphans.into_iter().map(Sweep::All).collect(),
        })
    }
}
