//! Folding: changed records go from memory into the database, and what the journal said of them is deleted.
//!
//! A fold is fuzzy: it copies records in pieces while writes go on, so a record may be newer than the journal's
//! sequence at which the fold began. That is right because the journal lists absolute results: doing the rest of
//! it again, in order, ends at the last of them. Deletions hold as well: a set that is done again after the record
//! was deleted is followed, later in the same journal, by the removal that deleted it, or lies below the floor.

use std::collections::VecDeque;
use std::sync::Arc;

use super::boards::{Boards, LiveBoard};
use super::codec::{Damaged, FOLDED, IDS, JOURNAL, REACHED, RECORDS, VALUES, key, of_board, of_value, seal, unseal};
use super::disk::{Disk, DiskError, Write};
use super::extra::Extra;
use super::holdings::{Holdings, Sighted};
use super::journal::Sweep;
use super::stored;
use crate::board::{Generation, Kind};

/// Entries of one piece: a fraction of a millisecond under a board's lock.
const PIECE: usize = 512;
/// Bytes of one piece's records: those of sketches may be large.
const PIECE_BYTES: usize = 1 << 20;

/// A fold under way.
#[derive(Debug)]
pub(super) struct Fold {
    /// Boards still to do, each with what was waiting when the fold began.
    boards: VecDeque<Part>,
    /// Journal entries after this are there; up to `through` they are being folded.
    deleted: u64,
    through: u64,
    declared: bool,
}

#[derive(Debug)]
struct Part {
    live: Arc<LiveBoard>,
    records: usize,
    /// By their texts, as ids may be another's by then. What is written is what memory holds when their turn comes.
    values: Vec<Sighted>,
    ids: usize,
}

impl Fold {
    /// Begins to fold the journal up to `through`. Entries up to `deleted` are gone already.
    pub(super) fn begin(boards: &Boards, deleted: u64, through: u64) -> Self {
        let boards = boards.read().values().cloned().collect::<Vec<_>>();
        let part = |live: Arc<LiveBoard>| {
            let mut tables = live.tables.lock();
            let (records, ids) = (tables.holdings.queue.len(), tables.ids.unfolded.len());
            let sighted = std::mem::take(&mut tables.holdings.sighted);
            drop(tables);
            Part { live, records, values: sighted.into_iter().collect(), ids }
        };
        Self { boards: boards.into_iter().map(part).collect(), deleted, through, declared: false }
    }

    /// The sequence up to which the journal is folded when this is done.
    pub(super) fn through(&self) -> u64 {
        self.through
    }

    /// The next piece to write; `None` when the fold is complete.
    pub(super) fn piece(&mut self, disk: &dyn Disk) -> Result<Option<Vec<Write>>, DiskError> {
        while let Some(part) = self.boards.front_mut() {
            let (writes, done) = part.piece(disk)?;
            if done {
                self.boards.pop_front();
            }
            if !writes.is_empty() {
                return Ok(Some(writes));
            }
        }
        if !self.declared {
            // In a group after every record of the fold: whoever reads it can rely on them.
            self.declared = true;
            let value = seal(self.through.to_le_bytes().to_vec());
            return Ok(Some(vec![Write::Put(FOLDED.to_vec(), value)]));
        }
        if self.deleted >= self.through {
            return Ok(None);
        }
        let last = self.through.min(self.deleted + PIECE as u64);
        let delete = |sequence: u64| Write::Delete(key(JOURNAL, &[&sequence.to_be_bytes()]));
        let writes = (self.deleted + 1..=last).map(delete).collect();
        self.deleted = last;
        Ok(Some(writes))
    }
}

impl Part {
    /// Some writes, and whether the board is done.
    fn piece(&mut self, disk: &dyn Disk) -> Result<(Vec<Write>, bool), DiskError> {
        let generation = self.live.board.generation();
        let mut writes = Vec::new();
        let mut tables = self.live.tables.lock();
        if tables.gone {
            return Ok((writes, true));
        }
        let mut bytes = 0;
        while self.records > 0 && writes.len() < PIECE && bytes < PIECE_BYTES {
            self.records -= 1;
            // The queue may have gone meanwhile, together with all it held.
            let Some(id) = tables.holdings.queue.pop_front() else { break };
            let Some(write) = record(&mut tables.holdings, generation, id) else { continue };
            if let Write::Put(_, value) = &write {
                bytes += value.len();
            }
            writes.push(write);
        }
        while writes.len() < PIECE
            && bytes < PIECE_BYTES
            && let Some(sighted) = self.values.pop()
        {
            writes.push(value(&tables.holdings, generation, &sighted));
        }
        let (now, expired) = (tables.now.millis(), tables.ids.expired_through(tables.now.millis()));
        while self.ids > 0 && writes.len() < PIECE {
            self.ids -= 1;
            let Some((arrival, pair)) = tables.ids.unfolded.pop_front() else { break };
            if arrival <= expired {
                continue;
            }
            let key = key(&of_board(IDS, generation), &[&arrival.to_be_bytes(), pair.as_bytes()]);
            writes.push(Write::Put(key, seal(Vec::new())));
        }
        if writes.len() >= PIECE || bytes >= PIECE_BYTES {
            return Ok((writes, false));
        }
        let from = tables.ids.swept;
        drop(tables);
        writes.push(Write::Put(of_board(REACHED, generation), seal(now.to_le_bytes().to_vec())));
        self.delete_expired_ids(disk, from, expired, &mut writes)?;
        Ok((writes, true))
    }

    /// Deletes ids that arrived after `from` and up to `through`, as many as fit; the rest is for the next fold.
    fn delete_expired_ids(
        &self,
        disk: &dyn Disk,
        from: i64,
        through: i64,
        writes: &mut Vec<Write>,
    ) -> Result<(), DiskError> {
        let prefix = of_board(IDS, self.live.board.generation());
        // Starting where the last fold ended spares walking over what it deleted.
        let mut after = key(&prefix, &[&from.to_be_bytes()]);
        let swept = loop {
            let found = disk.scan(&prefix, Some(&after), PIECE)?;
            let arrival = |key: &[u8]| key.get(9..17).and_then(|k| k.try_into().ok()).map_or(0, i64::from_be_bytes);
            let expired: Vec<Vec<u8>> =
                found.into_iter().map(|(key, _)| key).take_while(|key| arrival(key) <= through).collect();
            let (count, last) = (expired.len(), expired.last().cloned());
            writes.extend(expired.into_iter().map(Write::Delete));
            match last {
                Some(last) if count == PIECE && writes.len() < 4 * PIECE => after = last,
                // What lies at the last arrival's very millisecond may be left: start there again.
                Some(last) if count == PIECE => break arrival(&last),
                _ => break through,
            }
        };
        self.live.tables.lock().ids.swept = swept.max(from);
        Ok(())
    }
}

/// What the database is to hold of a record; one that has nothing left is forgotten.
fn record(holdings: &mut Holdings, generation: Generation, id: u32) -> Option<Write> {
    let record = holdings.slab.get_mut(id)?;
    record.queued = false;
    let record = holdings.slab.get(id)?;
    let key = key(&of_board(RECORDS, generation), &[record.text.as_bytes()]);
    let write = match stored::encode(record, holdings.slab.extra(id)) {
        Some(value) => Write::Put(key, seal(value)),
        None => Write::Delete(key),
    };
    if holdings.slab.is_empty(id) {
        holdings.slab.release(id);
    }
    Some(write)
}

/// What the database is to hold of a value.
fn value(holdings: &Holdings, generation: Generation, (subject, value): &Sighted) -> Write {
    let key = of_value(generation, subject, value);
    let known = holdings.slab.id(subject).and_then(|id| match holdings.slab.extra(id) {
        Some(Extra::Sightings(sightings)) => sightings.get(value),
        _ => None,
    });
    match known {
        Some(sighting) => Write::Put(key, seal(stored::encode_sighting(sighting))),
        None => Write::Delete(key),
    }
}

/// The next piece of a sweep, which begins after the key `swept`; `None` when it is complete.
pub(super) fn sweep_piece(
    disk: &dyn Disk,
    sweep: Sweep,
    swept: &mut Option<Vec<u8>>,
) -> Result<Option<Vec<Write>>, DiskError> {
    let (generation, kinds): (_, &[&[u8]]) = match sweep {
        Sweep::All(generation) => (generation, &[REACHED, IDS, RECORDS, VALUES]),
        Sweep::Below { generation, .. } => (generation, &[RECORDS, VALUES]),
    };
    for kind in kinds {
        let prefix = of_board(kind, generation);
        // Kinds are in the order of their keys: of one before what was swept last, nothing comes after that.
        let after = swept.as_ref().filter(|key| **key >= prefix);
        let found = disk.scan(&prefix, after.map(Vec::as_slice), PIECE)?;
        let Some((last, _)) = found.last() else { continue };
        *swept = Some(last.clone());
        let expired = |value: &[u8]| match sweep {
            Sweep::All(_) => true,
            // One that cannot be read is left for opening to report.
            Sweep::Below { floor, metric, .. } => {
                newest(kind, metric, value).is_ok_and(|newest| newest.is_none_or(|newest| newest < floor))
            }
        };
        let writes = found.into_iter().filter(|(_, value)| expired(value)).map(|(key, _)| Write::Delete(key)).collect();
        return Ok(Some(writes));
    }
    Ok(None)
}

/// The newest time that a sealed record or value is about.
fn newest(kind: &[u8], metric: Kind, sealed: &[u8]) -> Result<Option<i64>, Damaged> {
    let value = unseal(sealed)?;
    if kind == VALUES {
        return Ok(Some(stored::decode_sighting(value)?.at));
    }
    Ok(stored::decode(metric, value)?.iter().map(stored::Part::at).max())
}
