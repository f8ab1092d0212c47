//! The bytes of a file on a simulated disk: the current ones, those after a crash, and the versions in between.

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;

use rand::Rng;
use rand::rngs::StdRng;

/// The bytes that a disk writes at once. Even such a write can be torn.
pub(super) const SECTOR: usize = 512;

type Sector = Arc<[u8; SECTOR]>;

/// The bytes of a file. Sectors that are absent are zeros.
#[derive(Clone, Debug, Default)]
pub(super) struct Content {
    current: BTreeMap<u64, Sector>,
    durable: BTreeMap<u64, Sector>,
    /// The versions of each sector since it was synced, oldest first. The last one is the current one. A sector that
    /// differs from the durable one and has no entry here was lost by a failed sync.
    unsynced: BTreeMap<u64, Vec<Sector>>,
    len: u64,
    durable_len: u64,
    /// The lengths since the last sync, increasing.
    unsynced_lens: Vec<u64>,
    /// The number of sectors at the start that take space whether they were written or not.
    allocated: u64,
    /// The number of sectors that take space.
    used: u64,
}

impl Content {
    pub(super) fn len(&self) -> u64 {
        self.len
    }

    /// Returns the bytes used on the disk.
    pub(super) fn used(&self) -> u64 {
        self.used * SECTOR as u64
    }

    pub(super) fn read(&self, buffer: &mut [u8], offset: u64) -> usize {
        let rest = usize::try_from(self.len.saturating_sub(offset)).unwrap_or(usize::MAX);
        let count = buffer.len().min(rest);
        for (index, within, range) in pieces(offset, count) {
            let part = &mut buffer[range];
            match self.current.get(&index) {
                Some(sector) => part.copy_from_slice(&sector[within..within + part.len()]),
                None => part.fill(0),
            }
        }
        count
    }

    /// Writes as many bytes as there is space for: each sector that takes no space yet needs 512 bytes of `available`.
    pub(super) fn write(&mut self, bytes: &[u8], offset: u64, available: u64) -> io::Result<()> {
        let mut available = available;
        for (index, within, range) in pieces(offset, bytes.len()) {
            if index >= self.allocated && !self.current.contains_key(&index) {
                available = available.checked_sub(SECTOR as u64).ok_or(io::ErrorKind::StorageFull)?;
                self.used += 1;
            }
            let part = &bytes[range];
            let mut sector = self.current.get(&index).map_or([0; SECTOR], |sector| **sector);
            sector[within..within + part.len()].copy_from_slice(part);
            let sector = Arc::new(sector);
            self.unsynced.entry(index).or_default().push(Arc::clone(&sector));
            self.current.insert(index, sector);
            self.grow(index * SECTOR as u64 + (within + part.len()) as u64);
        }
        Ok(())
    }

    /// Reserves space for the first `len` bytes, or for none.
    pub(super) fn allocate(&mut self, len: u64, available: u64) -> io::Result<()> {
        let allocated = len.div_ceil(SECTOR as u64).max(self.allocated);
        let used = allocated + self.current.range(allocated..).count() as u64;
        if (used - self.used) * SECTOR as u64 > available {
            return Err(io::ErrorKind::StorageFull.into());
        }
        (self.allocated, self.used) = (allocated, used);
        self.grow(len);
        Ok(())
    }

    fn grow(&mut self, len: u64) {
        if len > self.len {
            self.len = len;
            self.unsynced_lens.push(len);
        }
    }

    pub(super) fn sync(&mut self) {
        for (index, mut versions) in std::mem::take(&mut self.unsynced) {
            self.durable.extend(versions.pop().map(|sector| (index, sector)));
        }
        self.durable_len = self.len;
        self.unsynced_lens.clear();
    }

    /// Simulates a failed sync: any part of the bytes gets to the disk, and the rest never does unless it is written
    /// again. The length may still get there.
    pub(super) fn sync_failed(&mut self, random: &mut StdRng) {
        for (index, versions) in std::mem::take(&mut self.unsynced) {
            let durable = any_version(self.durable.get(&index), &versions, random, 0.5);
            self.durable.extend(durable.map(|sector| (index, sector)));
        }
    }

    pub(super) fn after_power_loss(&self, random: &mut StdRng, keep: f64) -> Content {
        let mut left = self.durable.clone();
        for (index, versions) in &self.unsynced {
            let survivor = any_version(self.durable.get(index), versions, random, keep);
            left.extend(survivor.map(|sector| (*index, sector)));
        }
        let len = match self.unsynced_lens.last() {
            Some(last) if random.random_bool(keep) => *last,
            Some(_) => match random.random_range(0..=self.unsynced_lens.len()) {
                0 => self.durable_len,
                some => self.unsynced_lens[some - 1],
            },
            None => self.durable_len,
        };
        // Bytes beyond the length are lost. They read as zeros if the file grows again.
        let whole = len / SECTOR as u64;
        left.split_off(&len.div_ceil(SECTOR as u64));
        if let Some(sector) = left.get_mut(&whole) {
            Arc::make_mut(sector)[(len % SECTOR as u64) as usize..].fill(0);
        }
        let allocated = self.allocated.min(len.div_ceil(SECTOR as u64));
        let used = allocated + left.range(allocated..).count() as u64;
        Content { current: left.clone(), durable: left, len, durable_len: len, allocated, used, ..Content::default() }
    }

    pub(super) fn damage(&mut self, offset: u64, change: impl FnOnce(u8) -> u8) {
        let (index, within) = (offset / SECTOR as u64, (offset % SECTOR as u64) as usize);
        let mut sector = self.current.get(&index).map_or([0; SECTOR], |sector| **sector);
        sector[within] = change(sector[within]);
        let sector = Arc::new(sector);
        self.unsynced.remove(&index);
        self.current.insert(index, Arc::clone(&sector));
        self.durable.insert(index, sector);
    }

    pub(super) fn evict(&mut self) {
        let unsynced = &self.unsynced;
        self.current.retain(|index, _| unsynced.contains_key(index));
        for (index, sector) in &self.durable {
            self.current.entry(*index).or_insert_with(|| Arc::clone(sector));
        }
    }
}

/// Returns a version of a sector that a crash may leave: the last one with probability `keep`, otherwise any version,
/// or one torn between two.
fn any_version(durable: Option<&Sector>, versions: &[Sector], random: &mut StdRng, keep: f64) -> Option<Sector> {
    if random.random_bool(keep) {
        return versions.last().cloned();
    }
    if keep == 0.0 {
        return durable.cloned();
    }
    let zeros = Arc::new([0; SECTOR]);
    let version = |number: usize| match number {
        0 => durable.unwrap_or(&zeros),
        some => &versions[some - 1],
    };
    let one = version(random.random_range(0..=versions.len()));
    if random.random_bool(0.5) {
        return Some(Arc::clone(one));
    }
    let other = version(random.random_range(0..=versions.len()));
    let tear = random.random_range(0..SECTOR);
    let mut torn = **one;
    torn[tear..].copy_from_slice(&other[tear..]);
    Some(Arc::new(torn))
}

/// Returns the sectors of `count` bytes at an offset. Each has its index, the start within the sector, and the range of
/// the bytes.
fn pieces(offset: u64, count: usize) -> impl Iterator<Item = (u64, usize, std::ops::Range<usize>)> {
    let mut done = 0;
    std::iter::from_fn(move || {
        if done == count {
            return None;
        }
        let at = offset + done as u64;
        let within = (at % SECTOR as u64) as usize;
        let part = (SECTOR - within).min(count - done);
        let range = done..done + part;
        done += part;
        Some((at / SECTOR as u64, within, range))
    })
}
