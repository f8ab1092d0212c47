//! The journal's near side: hands operations to the one thread that writes, and waits for its acknowledgement.
//!
//! Whoever changes a board appends what changed *before letting go of the board's lock*, so that the order on disk
//! is the order in memory. What is appended while the thread writes leaves together in its next group: nobody
//! waits for a timer, and a thousand writers share one record (and, with `always`, one sync).

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};
use tokio::sync::oneshot;

use super::disk::{DiskError, Write};
use super::operations::Operations;
use super::options::Durability;
use crate::board::Generation;
use crate::store::receive::receive;
use crate::store::{Result, StoreError};

/// The most bytes of operations that may wait for the disk before further writes are refused.
const MOST_PENDING: usize = 32 << 20;

type Acknowledgement = oneshot::Sender<Result<(), DiskError>>;

/// What waits to be written.
#[derive(Debug, Default)]
pub(super) struct Pending {
    pub operations: Vec<u8>,
    /// Entries to set (or delete) beside the operations. By key, as one group may hold a key only once.
    pub entries: BTreeMap<Vec<u8>, Option<Vec<u8>>>,
    pub waiting: Vec<Acknowledgement>,
    pub sweeps: VecDeque<Sweep>,
    /// The store is being closed: write what is there, sync, end.
    pub stop: bool,
}

/// A board's entries that are to leave the database, in pieces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sweep {
    /// The board is gone: everything.
    All(Generation),
}

/// The journal, for any number of threads.
#[derive(Debug)]
pub(super) struct Journal {
    durability: Durability,
    /// Held for an append or a swap, never across a write or an await.
    pending: Mutex<Pending>,
    wake: Arc<Condvar>,
    /// Set once: why no more is written.
    failed: OnceLock<String>,
}

/// A promise that what was appended will be acknowledged.
#[derive(Debug)]
#[must_use]
pub(super) enum Ticket {
    /// There is nothing to wait for.
    Done,
    Waiting(oneshot::Receiver<Result<(), DiskError>>, WakeWriter),
    Refused(String),
}

/// Wakes the writer when dropped: once the others that are ready on this thread have appended, too, or when whoever
/// appended has gone away.
#[derive(Debug)]
pub(super) struct WakeWriter(Arc<Condvar>);

impl Drop for WakeWriter {
    fn drop(&mut self) {
        self.0.notify_one();
    }
}

impl Ticket {
    /// Waits until the journal has it, as durably as configured.
    pub(super) async fn wait(self) -> Result<()> {
        match self {
            Ticket::Done => Ok(()),
            Ticket::Refused(reason) => Err(StoreError::ReadOnly { reason }),
            Ticket::Waiting(receiver, wake) => {
                // The writer is woken once for all requests that were ready together on this thread.
                tokio::task::yield_now().await;
                drop(wake);
                acknowledged(receiver).await
            }
        }
    }

    /// Waits for all of them: they share a group, for whose sake the writer is woken once.
    pub(super) async fn wait_all(tickets: Vec<Ticket>) -> Vec<Result<()>> {
        let mut wakes = Vec::with_capacity(tickets.len());
        let mut waiting = Vec::with_capacity(tickets.len());
        for ticket in tickets {
            waiting.push(match ticket {
                Ticket::Done => Ok(None),
                Ticket::Refused(reason) => Err(StoreError::ReadOnly { reason }),
                Ticket::Waiting(receiver, wake) => {
                    wakes.push(wake);
                    Ok(Some(receiver))
                }
            });
        }
        if !wakes.is_empty() {
            tokio::task::yield_now().await;
            drop(wakes);
        }
        let mut results = Vec::with_capacity(waiting.len());
        for waiting in waiting {
            results.push(match waiting {
                Ok(Some(receiver)) => acknowledged(receiver).await,
                Ok(None) => Ok(()),
                Err(error) => Err(error),
            });
        }
        results
    }
}

async fn acknowledged(receiver: oneshot::Receiver<Result<(), DiskError>>) -> Result<()> {
    let reason = match receive(receiver).await {
        Ok(Ok(())) => return Ok(()),
        Ok(Err(error)) => error.0,
        Err(_) => "the journal has stopped".to_owned(),
    };
    Err(StoreError::ReadOnly { reason })
}

impl Journal {
    pub(super) fn new(durability: Durability) -> Self {
        Self { durability, pending: Mutex::default(), wake: Arc::default(), failed: OnceLock::new() }
    }

    /// Whether a write may begin: asked before memory changes.
    pub(super) fn admit(&self) -> Result<()> {
        if let Some(reason) = self.failed.get() {
            return Err(StoreError::ReadOnly { reason: reason.clone() });
        }
        if self.pending.lock().operations.len() > MOST_PENDING {
            return Err(StoreError::Overloaded { retry_after: Duration::from_secs(1) });
        }
        Ok(())
    }

    /// Appends operations; the ticket acknowledges them. Cheap: the writing is another thread's.
    pub(super) fn append(&self, operations: &Operations) -> Ticket {
        self.change(|pending| pending.operations.extend_from_slice(operations.bytes()))
    }

    /// Appends entries to set or delete, with or without a sweep.
    pub(super) fn append_entries(
        &self,
        entries: impl IntoIterator<Item = (Vec<u8>, Option<Vec<u8>>)>,
        sweep: Option<Sweep>,
    ) -> Ticket {
        self.change(|pending| {
            pending.entries.extend(entries);
            pending.sweeps.extend(sweep);
        })
    }

    /// Appends nothing: the ticket acknowledges everything appended before.
    pub(super) fn catch_up(&self) -> Ticket {
        self.change(|_| {})
    }

    /// Appends operations whose fate nobody waits for.
    pub(super) fn note(&self, operations: &Operations) {
        let mut pending = self.pending.lock();
        if self.failed.get().is_none() {
            pending.operations.extend_from_slice(operations.bytes());
            self.wake.notify_one();
        }
    }

    fn change(&self, change: impl FnOnce(&mut Pending)) -> Ticket {
        let mut pending = self.pending.lock();
        // Under the lock: whoever failed has answered those waiting and must not get another.
        if let Some(reason) = self.failed.get() {
            return Ticket::Refused(reason.clone());
        }
        change(&mut pending);
        if self.durability == Durability::Off {
            self.wake.notify_one();
            return Ticket::Done;
        }
        let (sender, receiver) = oneshot::channel();
        pending.waiting.push(sender);
        Ticket::Waiting(receiver, WakeWriter(self.wake.clone()))
    }

    /// Asks the writer to write what is there, sync, and end.
    pub(super) fn stop(&self) {
        self.pending.lock().stop = true;
        self.wake.notify_one();
    }

    /// Why no more is written, if that is so.
    pub(super) fn failure(&self) -> Option<&str> {
        self.failed.get().map(String::as_str)
    }

    /// For the writer: everything pending, waiting for some until `deadline` (`None`: as long as it takes).
    pub(super) fn take(&self, deadline: Option<Instant>) -> Pending {
        let mut pending = self.pending.lock();
        while pending.is_empty() && !pending.stop {
            let timed_out = match deadline {
                Some(deadline) => self.wake.wait_until(&mut pending, deadline).timed_out(),
                None => {
                    self.wake.wait(&mut pending);
                    false
                }
            };
            if timed_out {
                break;
            }
        }
        let stop = pending.stop;
        Pending { stop, ..std::mem::replace(&mut *pending, Pending { stop, ..Pending::default() }) }
    }

    /// For the writer: no more can be written. Everyone waiting, and everyone to come, is told why.
    pub(super) fn fail(&self, reason: &str) {
        let mut pending = self.pending.lock();
        let reason = self.failed.get_or_init(|| reason.to_owned()).clone();
        let lost = std::mem::take(&mut *pending);
        pending.stop = lost.stop;
        acknowledge(lost.waiting, Err(DiskError(reason)));
    }
}

impl Pending {
    fn is_empty(&self) -> bool {
        self.operations.is_empty() && self.entries.is_empty() && self.sweeps.is_empty() && self.waiting.is_empty()
    }

    /// The entries as writes.
    pub(super) fn writes(&mut self) -> impl Iterator<Item = Write> + use<> {
        std::mem::take(&mut self.entries).into_iter().map(|(key, value)| match value {
            Some(value) => Write::Put(key, value),
            None => Write::Delete(key),
        })
    }
}

/// Tells those waiting. One that has gone away meanwhile needs no answer.
pub(super) fn acknowledge(waiting: Vec<Acknowledgement>, result: Result<(), DiskError>) {
    for waiter in waiting {
        waiter.send(result.clone()).ok();
    }
}
