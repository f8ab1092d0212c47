//! Opening: reads definitions, records and ids, does the journal again, and checks that nothing is missing.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use parking_lot::Mutex;
use serde::{Deserialize, Serialize};

use super::boards::LiveBoard;
use super::codec::{
    self, BOARDS, CLOCK, DIGEST, Damaged, FOLDED, IDS, JOURNAL, REACHED, RECORDS, Reader, SCHEMA, VALUES, key, seal,
    split_board_key, split_value_key, unseal,
};
use super::disk::{Disk, DiskError, Write};
use super::journal::Sweep;
use super::operations::{Operation, operations};
use super::stored::{self, Part};
use super::tables::Tables;
use super::watermark::{Mark, Watermark};
use crate::board::{Board, BoardName, Definition, Generation, Timestamp};
use crate::store::{ClockMode, Result, StoreError};

/// The layout of the database; a later one that differs opens with a message, not a guess.
///
/// 1 had COUNT and SUM only; what it wrote reads on, and is marked as of this layout when it is opened.
const VERSION: u8 = 2;
const OLDEST: u8 = 1;
/// Entries read at a time.
const PIECE: usize = 4_096;

/// What was found on the disk.
pub(super) struct Recovered {
    pub boards: BTreeMap<BoardName, Arc<LiveBoard>>,
    /// The simulated clock; `None` on a system clock.
    pub clock: Option<Timestamp>,
    /// The last sequence of the journal.
    pub sequence: u64,
    /// Journal entries up to here are gone.
    pub deleted: u64,
    /// The digest of the entries found, which is the one they were written with.
    pub digest: u64,
    /// Bytes of operations that were done again and are to be folded.
    pub unfolded: u64,
    /// What boards left behind that are gone.
    pub sweeps: Vec<Sweep>,
}

/// A board on the disk.
#[derive(Serialize, Deserialize)]
struct Stored {
    generation: u64,
    definition: Definition,
}

/// Why opening failed, before it is known for which folder.
enum Failure {
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

/// Reads a data directory's database into memory, or sets up a new one.
pub(super) fn recover(disk: &dyn Disk, folder: &Path, clock: ClockMode) -> Result<Recovered> {
    let corrupt = |what: &str| StoreError::Corrupt {
        detail: format!("{}: {what}. Restore the folder from a backup", folder.display()),
    };
    let mark = Watermark::read(folder).map_err(|error| corrupt(&format!("cannot read the watermark: {error}")))?;
    let recovered = match disk.get(SCHEMA).map_err(Failure::from).and_then(|schema| match schema {
        Some(schema) => read(disk, clock, &schema),
        None => create(disk, clock),
    }) {
        Ok(recovered) => recovered,
        Err(Failure::Damaged(what)) => return Err(corrupt(&what)),
        Err(Failure::Other(error)) => return Err(error),
    };
    let file = Watermark::file(folder);
    match mark {
        Mark::Sequence(expected) if recovered.sequence < expected => Err(StoreError::Corrupt {
            detail: format!(
                "{}: the journal ends at sequence {} but reached {expected} before, so acknowledged writes are \
                 missing. Restore the folder from a backup, or accept their loss by deleting {}",
                folder.display(),
                recovered.sequence,
                file.display()
            ),
        }),
        Mark::Damaged => Err(StoreError::Corrupt {
            detail: format!(
                "{}: the watermark is damaged, so whether writes are missing is unknown (the journal ends at \
                 sequence {}). Restore the folder from a backup, or accept a possible loss by deleting {}",
                folder.display(),
                recovered.sequence,
                file.display()
            ),
        }),
        _ => Ok(recovered),
    }
}

fn create(disk: &dyn Disk, clock: ClockMode) -> Result<Recovered, Failure> {
    // The layout is the first thing ever written: without it there is nothing, or the beginning is missing.
    if !disk.scan(&[], None, 1)?.is_empty() {
        return Err(Failure::Damaged("the beginning of the data is missing".to_owned()));
    }
    let mut writes = vec![
        Write::Put(SCHEMA.to_vec(), seal(vec![VERSION, mode(clock)])),
        // There is always a last entry: it says how far the journal has come.
        Write::Put(key(JOURNAL, &[&1u64.to_be_bytes()]), seal(Vec::new())),
    ];
    let time = match clock {
        ClockMode::System => None,
        ClockMode::Simulated(start) => {
            writes.push(Write::Put(CLOCK.to_vec(), encode_time(start)));
            Some(start)
        }
    };
    let digest = writes.iter().fold(0, |digest, write| match write {
        Write::Put(key, value) if codec::has_share(key) => digest ^ codec::share(key, value),
        _ => digest,
    });
    writes.push(Write::Put(DIGEST.to_vec(), seal(digest.to_le_bytes().to_vec())));
    disk.commit(writes, true)?;
    Ok(Recovered {
        boards: BTreeMap::new(),
        clock: time,
        sequence: 1,
        deleted: 0,
        digest,
        unfolded: 0,
        sweeps: Vec::new(),
    })
}

fn mode(clock: ClockMode) -> u8 {
    match clock {
        ClockMode::System => 0,
        ClockMode::Simulated(_) => 1,
    }
}

/// A time as a value.
pub(super) fn encode_time(time: Timestamp) -> Vec<u8> {
    seal(time.millis().to_le_bytes().to_vec())
}

fn decode_time(sealed: &[u8]) -> Result<Timestamp, Damaged> {
    Ok(Timestamp::from_millis(Reader(unseal(sealed)?).i64()?))
}

fn read(disk: &dyn Disk, clock: ClockMode, schema: &[u8]) -> Result<Recovered, Failure> {
    let [version, stored] = Reader(unseal(schema)?).array()?;
    if !(OLDEST..=VERSION).contains(&version) {
        let detail = format!(
            "the data directory has layout {version}, this version reads {OLDEST} to {VERSION}: use the one that made it"
        );
        return Err(Failure::Other(StoreError::Setup { detail }));
    }
    if stored != mode(clock) {
        let name = |mode| if mode == 0 { "system" } else { "simulated" };
        let (stored, wanted) = (name(stored), name(mode(clock)));
        return Err(Failure::Other(StoreError::ClockModeMismatch { stored, wanted }));
    }
    let mut loading = Loading::default();
    loading.meta(SCHEMA, Some(schema));
    let stored_clock = disk.get(CLOCK)?;
    loading.meta(CLOCK, stored_clock.as_deref());
    let time = match clock {
        ClockMode::System => None,
        ClockMode::Simulated(start) => Some(start.max(decode_time(&stored_clock.ok_or(Damaged)?)?)),
    };
    for (kind, load) in LOADERS {
        each(disk, kind, |key, value| {
            loading.digest ^= codec::share(key, value);
            load(&mut loading, key, value)
        })?;
    }
    let folded = disk.get(FOLDED)?;
    loading.meta(FOLDED, folded.as_deref());
    let digest = Reader(unseal(&disk.get(DIGEST)?.ok_or(Damaged)?)?).u64()?;
    if digest != loading.digest {
        return Err(Failure::Damaged("some entries are missing or not those that were written".to_owned()));
    }
    let folded = folded.map_or(Ok(0), |value| Reader(unseal(&value)?).u64())?;
    loading.journal = Journal { folded, first: None, last: folded, bytes: 0 };
    each(disk, JOURNAL, |key, value| loading.group(key, value))?;
    if version != VERSION {
        loading.digest ^= upgrade(disk, schema, loading.digest, mode(clock))?;
    }
    loading.finish(time)
}

/// Marks a database of an older layout as of this one; answers by what the digest changes.
fn upgrade(disk: &dyn Disk, schema: &[u8], digest: u64, mode: u8) -> Result<u64, DiskError> {
    let new = seal(vec![VERSION, mode]);
    let change = codec::share(SCHEMA, schema) ^ codec::share(SCHEMA, &new);
    let digest = seal((digest ^ change).to_le_bytes().to_vec());
    disk.commit(vec![Write::Put(SCHEMA.to_vec(), new), Write::Put(DIGEST.to_vec(), digest)], true)?;
    Ok(change)
}

type Loader = fn(&mut Loading, &[u8], &[u8]) -> Result<(), Failure>;

/// How each kind of entry is read; definitions first, as the others are of boards.
const LOADERS: [(&[u8], Loader); 5] = [
    (BOARDS, Loading::board),
    (REACHED, Loading::reached),
    (RECORDS, Loading::record),
    (VALUES, Loading::value),
    (IDS, Loading::id),
];

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

/// What has been read so far.
#[derive(Default)]
struct Loading {
    boards: BTreeMap<Generation, (Arc<Board>, Tables)>,
    /// Generations that belong to no board.
    orphans: Vec<Generation>,
    digest: u64,
    journal: Journal,
}

#[derive(Default)]
struct Journal {
    folded: u64,
    first: Option<u64>,
    last: u64,
    bytes: u64,
}

impl Loading {
    /// Counts an entry of the store itself.
    fn meta(&mut self, key: &[u8], value: Option<&[u8]>) {
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

    fn record(&mut self, key: &[u8], value: &[u8]) -> Result<(), Failure> {
        let (generation, subject) = split_board_key(key)?;
        let subject = std::str::from_utf8(subject).map_err(|_| Damaged)?;
        let value = unseal(value)?;
        let Some((board, tables)) = self.tables(generation) else { return Ok(()) };
        let holdings = &mut tables.holdings;
        for part in stored::decode(board.kind(), value)? {
            match part {
                Part::Amount { slot, amount } => holdings.restore_amount(subject, slot, amount, false),
                Part::Samples { slot, sum, count } => holdings.restore_samples(subject, slot, (sum, count), false),
                Part::Sketch { slot, sketch } => holdings.restore_sketch(subject, slot, sketch),
                Part::Capped { at } => holdings.restore_capped(subject, at, false),
            }
        }
        Ok(())
    }

    fn value(&mut self, key: &[u8], value: &[u8]) -> Result<(), Failure> {
        let (generation, rest) = split_board_key(key)?;
        let (subject, name) = split_value_key(rest)?;
        let sighting = stored::decode_sighting(unseal(value)?)?;
        if let Some((_, tables)) = self.tables(generation) {
            tables.holdings.restore_sighting(subject, name, Some(sighting), false);
        }
        Ok(())
    }

    fn id(&mut self, key: &[u8], value: &[u8]) -> Result<(), Failure> {
        unseal(value)?;
        let (generation, rest) = split_board_key(key)?;
        let (arrival, pair) = rest.split_first_chunk::<8>().ok_or(Damaged)?;
        let pair = std::str::from_utf8(pair).map_err(|_| Damaged)?;
        if let Some((_, tables)) = self.tables(generation) {
            tables.ids.restore(pair.into(), i64::from_be_bytes(*arrival));
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
            let holdings = &mut tables.holdings;
            match operation {
                Operation::Board(_) => {}
                Operation::Amount { slot, amount, subject } => holdings.restore_amount(subject, slot, amount, true),
                Operation::Samples { slot, sum, count, subject } => {
                    holdings.restore_samples(subject, slot, (sum, count), true);
                }
                Operation::Marked { slot, mark, subject } => holdings.restore_mark(subject, slot, mark),
                Operation::Sighted { sighting, subject, value } => {
                    holdings.restore_sighting(subject, value, sighting, true);
                }
                Operation::Capped { at, subject } => holdings.restore_capped(subject, at, true),
                Operation::Id { arrival, pair } => tables.ids.remember(pair.into(), arrival),
                Operation::Removed { subject } => holdings.restore_removed(subject),
                Operation::Advanced { now } => tables.move_clock(board, Timestamp::from_millis(now)),
            }
        }
        Ok(())
    }

    fn finish(mut self, clock: Option<Timestamp>) -> Result<Recovered, Failure> {
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
