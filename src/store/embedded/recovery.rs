//! Opening: a new database is set up, one that is there is read whole (`loading`), and checked for what is missing.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use super::boards::LiveBoard;
use super::codec::{self, CLOCK, DIGEST, Damaged, FOLDED, JOURNAL, Reader, SCHEMA, key, seal, unseal};
use super::disk::{Disk, DiskError, Write};
use super::journal::Sweep;
use super::loading::{Failure, Loading, Replayed, decode_time};
use super::watermark::{Mark, Watermark};
use crate::board::{BoardName, Timestamp};
use crate::store::{ClockMode, Result, StoreError};

/// The layout of the database; a later one that differs opens with a message, not a guess.
///
/// 1 had COUNT and SUM only; what it wrote reads on, and is marked as of this layout when it is opened.
const VERSION: u8 = 2;
const OLDEST: u8 = 1;

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
    loading.entries(disk)?;
    let folded = disk.get(FOLDED)?;
    loading.meta(FOLDED, folded.as_deref());
    let digest = Reader(unseal(&disk.get(DIGEST)?.ok_or(Damaged)?)?).u64()?;
    if digest != loading.digest {
        return Err(Failure::Damaged("some entries are missing or not those that were written".to_owned()));
    }
    let folded = folded.map_or(Ok(0), |value| Reader(unseal(&value)?).u64())?;
    loading.journal = Replayed { folded, first: None, last: folded, bytes: 0 };
    loading.groups(disk)?;
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
