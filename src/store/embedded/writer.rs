//! The journal's far side: one thread that writes groups, syncs, raises the watermark and folds.
//!
//! As one thread does it all, everything reaches the database in one order. A piece of a fold is read from memory
//! *before* the pending operations are taken and written together with them, so that the database never holds a
//! record that is ahead of its journal.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::codec::{DIGEST, JOURNAL, has_share, key, seal, share};
use super::disk::{Disk, DiskError, Write};
use super::fold::{Fold, sweep_piece};
use super::journal::{Journal, Pending, Sweep, acknowledge};
use super::meters::Meters;
use super::options::Durability;
use super::watermark::Watermark;

/// How long written data may stay unsynced with `everysec`.
const SYNC_EVERY: Duration = Duration::from_secs(1);
/// The watermark is a file to sync as well: not after each group of `always`.
const MARK_EVERY: Duration = Duration::from_millis(500);

/// Why nothing is written after an orderly end.
pub(super) const CLOSED: &str = "the store is closed";

/// When the journal is folded into the records: whichever comes first. Folding often makes opening quick and writing
/// slow.
#[derive(Clone, Copy, Debug)]
pub struct Pace {
    /// So long after the last time.
    pub every: Duration,
    /// So many bytes of journal.
    pub bytes: u64,
}

impl Default for Pace {
    fn default() -> Self {
        Self { every: Duration::from_secs(30), bytes: 64 << 20 }
    }
}

/// The thread's state.
pub(super) struct Writer {
    pub disk: Arc<dyn Disk>,
    pub journal: Arc<Journal>,
    pub durability: Durability,
    pub pace: Pace,
    pub watermark: Watermark,
    /// The sequence of the last group written.
    pub sequence: u64,
    /// Entries of the journal up to here have been deleted.
    pub deleted: u64,
    /// The last group known to be on the disk.
    pub synced: u64,
    /// The digest of what the database holds.
    pub digest: u64,
    pub progress: Progress,
    pub meters: Meters,
}

/// What is under way between groups.
pub(super) struct Progress {
    fold: Option<Fold>,
    /// Work left over from a crash, and what boards ask for; with where the first of it has got to.
    sweeps: std::collections::VecDeque<Sweep>,
    swept: Option<Vec<u8>>,
    /// Bytes of operations since the last fold began.
    unfolded: u64,
    folded_at: Instant,
    synced_at: Instant,
    marked_at: Instant,
}

impl Progress {
    /// `unfolded`: bytes of journal found when opening.
    pub(super) fn new(sweeps: Vec<Sweep>, unfolded: u64) -> Self {
        let now = Instant::now();
        Self {
            fold: None,
            sweeps: sweeps.into(),
            swept: None,
            unfolded,
            folded_at: now,
            synced_at: now,
            marked_at: now,
        }
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        // However the thread ends, nobody may go on waiting for it.
        self.journal.fail("the journal has stopped");
    }
}

impl Writer {
    /// Runs until the store is closed. A failure of the disk is final: writes are refused from then on.
    pub(super) fn run(mut self) {
        let result = self.write_until_stopped();
        match &result {
            Ok(()) => self.journal.fail(CLOSED),
            Err(error) => {
                tracing::error!(%error, "the disk failed; the store takes no more writes");
                self.journal.fail(&error.0);
            }
        }
    }

    fn write_until_stopped(&mut self) -> Result<(), DiskError> {
        loop {
            let piece = self.background_piece()?;
            let deadline = if piece.is_some() { Some(Instant::now()) } else { self.next_deadline() };
            let pending = self.journal.take(deadline);
            let stop = pending.stop;
            self.write(piece.unwrap_or_default(), pending)?;
            if stop {
                return self.sync();
            }
            self.sync_if_due()?;
        }
    }

    /// A bounded piece of what goes on between groups, if there is any.
    fn background_piece(&mut self) -> Result<Option<Vec<Write>>, DiskError> {
        let due = self.progress.unfolded > 0
            && (self.progress.unfolded >= self.pace.bytes || self.progress.folded_at.elapsed() >= self.pace.every);
        if self.progress.fold.is_none() && due {
            self.progress.fold = Some(Fold::begin(self.deleted));
            self.progress.unfolded = 0;
            self.progress.folded_at = Instant::now();
        }
        if let Some(fold) = self.progress.fold.take() {
            self.deleted = fold.through();
        }
        while let Some(sweep) = self.progress.sweeps.front() {
            match sweep_piece(self.disk.as_ref(), *sweep, &mut self.progress.swept)? {
                Some(piece) => return Ok(Some(piece)),
                None => {
                    self.progress.sweeps.pop_front();
                    self.progress.swept = None;
                }
            }
        }
        Ok(None)
    }

    /// Writes one group: a piece of background work, and all that was pending.
    fn write(&mut self, piece: Vec<Write>, mut pending: Pending) -> Result<(), DiskError> {
        // A board defined a moment ago may be in both; what is pending was read later.
        let mut writes = piece;
        writes.retain(|write| !pending.entries.contains_key(write.key()));
        self.meters.taken(pending.waiting.len(), pending.operations.len());
        let urgent = !pending.operations.is_empty() || !pending.entries.is_empty();
        writes.extend(pending.writes());
        self.progress.sweeps.append(&mut pending.sweeps);
        if urgent {
            // Entries without operations get a sequence as well: the watermark vouches for them, too.
            self.sequence += 1;
            self.progress.unfolded += pending.operations.len() as u64 + 1;
            writes.push(Write::Put(key(JOURNAL, &[&self.sequence.to_be_bytes()]), seal(pending.operations)));
        }
        if writes.is_empty() {
            acknowledge(pending.waiting, Ok(()));
            return Ok(());
        }
        let digest = self.digest_after(&writes)?;
        if digest != self.digest {
            self.digest = digest;
            writes.push(Write::Put(DIGEST.to_vec(), seal(digest.to_le_bytes().to_vec())));
        }
        let sync = urgent && self.durability == Durability::Always;
        let written = self.disk.commit(writes, sync);
        self.meters.committed(written.is_ok());
        if written.is_ok() && sync {
            self.synced = self.sequence;
        }
        acknowledge(pending.waiting, written.clone());
        written
    }

    /// The digest once these are written. Asks the database what each replaces; the journal, which is nearly all
    /// that is ever written, has no share.
    fn digest_after(&self, writes: &[Write]) -> Result<u64, DiskError> {
        let mut digest = self.digest;
        for write in writes {
            let key = write.key();
            let new = match write {
                Write::Put(key, value) => share(key, value),
                Write::Delete(_) => 0,
            };
            if has_share(key) {
                let old = self.disk.get(key)?.map_or(0, |value| share(key, &value));
                digest ^= old ^ new;
            }
        }
        Ok(digest)
    }

    fn sync_if_due(&mut self) -> Result<(), DiskError> {
        match self.next_deadline() {
            Some(deadline) if deadline <= Instant::now() => match self.durability {
                Durability::Always => self.mark(),
                Durability::EverySecond => self.sync(),
                // Nothing is promised; the deadline was that of the next fold.
                Durability::Off => Ok(()),
            },
            _ => Ok(()),
        }
    }

    /// When something is to be done although nobody writes.
    fn next_deadline(&self) -> Option<Instant> {
        let awaits_fold = self.progress.unfolded > 0 && self.progress.fold.is_none();
        // A pace too long to be a time means never.
        let fold = self.progress.folded_at.checked_add(self.pace.every).filter(|_| awaits_fold);
        let sync = match self.durability {
            Durability::Always => (self.watermark.sequence < self.synced).then(|| self.progress.marked_at + MARK_EVERY),
            Durability::EverySecond => (self.synced < self.sequence).then(|| self.progress.synced_at + SYNC_EVERY),
            Durability::Off => None,
        };
        fold.into_iter().chain(sync).min()
    }

    fn sync(&mut self) -> Result<(), DiskError> {
        if self.synced < self.sequence {
            self.disk.sync()?;
            self.synced = self.sequence;
        }
        self.progress.synced_at = Instant::now();
        self.mark()
    }

    fn mark(&mut self) -> Result<(), DiskError> {
        if self.watermark.sequence < self.synced {
            let raised = self.watermark.raise(self.synced);
            raised.map_err(|error| DiskError(format!("cannot write the watermark: {error}")))?;
        }
        self.progress.marked_at = Instant::now();
        Ok(())
    }
}
