//! Admission: the decision whether a write may begin. A write that the disk cannot take is refused here, before memory
//! changes.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use crate::store::{Result, StoreError};

/// The largest number of bytes of operations that may wait for the log. Beyond it further writes are refused.
const MAX_WAITING_BYTES: usize = 8 << 20;
/// While more bytes than this wait, a large write pauses between its portions, so that other writes have room.
const PAUSE_ABOVE_BYTES: usize = MAX_WAITING_BYTES / 2;
/// The largest part of [`MAX_WAITING_BYTES`] that one write reserves when it is admitted.
const MAX_RESERVED_BYTES: usize = MAX_WAITING_BYTES / 32;
/// The longest time for which a write may remain unconfirmed by the disk. After it further writes are refused.
pub(super) const MAX_UNCONFIRMED: Duration = Duration::from_secs(5);
/// The time that a client should wait after a refusal.
const RETRY_AFTER: Duration = Duration::from_secs(1);

/// The part of the store that has found that no more can be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RefusalSource {
    /// The log: an append or the creation of a segment failed.
    Log,
    /// The free space: what is left is needed for the next checkpoint.
    Space,
}

/// Decides which writes may begin.
#[derive(Debug)]
pub(super) struct Admission {
    opened: Instant,
    /// The bytes of operations that wait for the log.
    waiting: AtomicUsize,
    /// The bytes that admitted writes may still append.
    permitted: AtomicUsize,
    /// The limit for `permitted` and `waiting` together. Lower than usual while there is no further segment to continue
    /// in.
    capacity: AtomicUsize,
    /// The time of the oldest appended operation that the disk has not confirmed, as milliseconds after `opened`, plus
    /// one. 0 if there is none.
    unconfirmed: AtomicU64,
    /// Whether any of the reasons is set, so that writers need not take the lock to find out.
    refusing: AtomicBool,
    reasons: Mutex<Reasons>,
}

#[derive(Debug, Default)]
struct Reasons {
    /// The reason why the store is closed: an orderly close, or a thread that has ended. Permanent.
    closed: Option<String>,
    log: Option<String>,
    space: Option<String>,
}

/// The right to append this many bytes of operations. Returns the reservation when dropped.
#[derive(Debug)]
pub(in super::super) struct Permit<'a> {
    admission: &'a Admission,
    bytes: usize,
}

impl Drop for Permit<'_> {
    fn drop(&mut self) {
        self.admission.permitted.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

impl Admission {
    pub(super) fn new() -> Self {
        Self {
            opened: Instant::now(),
            waiting: AtomicUsize::new(0),
            permitted: AtomicUsize::new(0),
            capacity: AtomicUsize::new(MAX_WAITING_BYTES),
            unconfirmed: AtomicU64::new(0),
            refusing: AtomicBool::new(false),
            reasons: Mutex::default(),
        }
    }

    /// Admits a write that appends at most `bytes`.
    ///
    /// Returns [`StoreError::ReadOnly`] while the disk accepts no writes, and [`StoreError::Overloaded`] if too much
    /// waits for it.
    pub(super) fn admit(&self, bytes: usize) -> Result<Permit<'_>> {
        if let Some(reason) = self.refusal() {
            return Err(StoreError::ReadOnly { reason });
        }
        let capacity = self.capacity.load(Ordering::Relaxed);
        // While segments can be added, a large write is applied in portions, each when there is room for it, so it does
        // not reserve all its bytes here.
        let bytes = if capacity == MAX_WAITING_BYTES { bytes.min(MAX_RESERVED_BYTES) } else { bytes };
        let before = self.permitted.fetch_add(bytes, Ordering::Relaxed) + self.waiting.load(Ordering::Relaxed);
        let permit = Permit { admission: self, bytes };
        if before + bytes <= capacity { Ok(permit) } else { Err(StoreError::Overloaded { retry_after: RETRY_AFTER }) }
    }

    /// Returns the reason why writes are refused now, if they are.
    pub(super) fn refusal(&self) -> Option<String> {
        if self.refusing.load(Ordering::Acquire) {
            let reasons = self.reasons.lock();
            let reason = reasons.closed.as_ref().or(reasons.log.as_ref()).or(reasons.space.as_ref());
            if let Some(reason) = reason {
                return Some(reason.clone());
            }
        }
        let age = self.unconfirmed_for()?;
        (age > MAX_UNCONFIRMED).then(|| {
            format!(
                "the disk has not confirmed a write for {} s; reads continue, and writes are accepted again after a \
                 confirmation",
                age.as_secs()
            )
        })
    }

    /// Returns how long the oldest unconfirmed operation has been waiting for the disk.
    pub(super) fn unconfirmed_for(&self) -> Option<Duration> {
        let since = self.unconfirmed.load(Ordering::Relaxed).checked_sub(1)?;
        Some(self.opened.elapsed().saturating_sub(Duration::from_millis(since)))
    }

    /// Returns whether so many bytes wait that an admitted write should pause between its portions.
    pub(super) fn is_crowded(&self) -> bool {
        self.waiting.load(Ordering::Relaxed) > PAUSE_ABOVE_BYTES
    }

    /// Records that this many bytes were appended. Called under the lock of the journal, as [`confirmed`](Self::confirmed)
    /// is, so that neither undoes what the other one has recorded.
    pub(super) fn appended(&self, bytes: usize) {
        self.waiting.fetch_add(bytes, Ordering::Relaxed);
        if self.unconfirmed.load(Ordering::Relaxed) == 0 {
            self.confirmed(Some(Instant::now()));
        }
    }

    /// Records that this many bytes were passed on to the log.
    pub(super) fn taken(&self, bytes: usize) {
        self.waiting.fetch_sub(bytes, Ordering::Relaxed);
    }

    /// Records that the oldest unconfirmed operation is the one appended at `oldest`. `None` means that all are
    /// confirmed.
    pub(super) fn confirmed(&self, oldest: Option<Instant>) {
        self.unconfirmed.store(oldest.map_or(0, |oldest| self.encode_time(oldest)), Ordering::Relaxed);
    }

    /// Limits admission to `room` bytes because no further segment can be added. `None` means that segments can be
    /// added.
    pub(super) fn limit(&self, room: Option<u64>) {
        let capacity = room
            .map_or(MAX_WAITING_BYTES, |room| usize::try_from(room).unwrap_or(usize::MAX).min(MAX_WAITING_BYTES - 1));
        self.capacity.store(capacity, Ordering::Relaxed);
    }

    /// Refuses writes for a reason, until the reason is removed with `None`.
    pub(super) fn refuse(&self, source: RefusalSource, reason: Option<String>) {
        let mut reasons = self.reasons.lock();
        let place = match source {
            RefusalSource::Log => &mut reasons.log,
            RefusalSource::Space => &mut reasons.space,
        };
        match (&*place, &reason) {
            (None, Some(reason)) => tracing::error!(%reason, "writes are refused"),
            (Some(_), None) => tracing::info!("writes are accepted again"),
            _ => {}
        }
        *place = reason;
        self.publish(&reasons);
    }

    /// Refuses writes permanently.
    pub(super) fn close(&self, reason: &str) {
        let mut reasons = self.reasons.lock();
        reasons.closed.get_or_insert_with(|| reason.to_owned());
        self.publish(&reasons);
    }

    /// Returns the reason why writes are refused permanently, if they are.
    pub(super) fn closed(&self) -> Option<String> {
        if !self.refusing.load(Ordering::Acquire) {
            return None;
        }
        self.reasons.lock().closed.clone()
    }

    fn publish(&self, reasons: &Reasons) {
        let any = reasons.closed.is_some() || reasons.log.is_some() || reasons.space.is_some();
        self.refusing.store(any, Ordering::Release);
    }

    fn encode_time(&self, at: Instant) -> u64 {
        let millis = at.saturating_duration_since(self.opened).as_millis();
        u64::try_from(millis).unwrap_or(u64::MAX - 1).saturating_add(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waiting_bytes_are_bounded_and_large_requests_leave_room() {
        let admission = Admission::new();
        let large: Vec<_> = (0..8).map(|_| admission.admit(3 * MAX_WAITING_BYTES).unwrap()).collect();
        admission.appended(PAUSE_ABOVE_BYTES);
        assert!(!admission.is_crowded());
        assert!(admission.admit(1_000).is_ok(), "eight large ones, as far as they go before they pause, leave room");
        admission.appended(1);
        assert!(admission.is_crowded());
        admission.appended(MAX_WAITING_BYTES - PAUSE_ABOVE_BYTES);
        assert!(matches!(admission.admit(1), Err(StoreError::Overloaded { .. })));
        drop(large);
        assert_eq!(admission.permitted.load(Ordering::Relaxed), 0);
        admission.taken(MAX_WAITING_BYTES + 1);
        assert!(!admission.is_crowded() && admission.admit(1).is_ok());
    }

    #[test]
    fn without_a_spare_segment_requests_beyond_the_room_are_refused() {
        let admission = Admission::new();
        admission.limit(Some(100));
        assert!(matches!(admission.admit(101), Err(StoreError::Overloaded { .. })));
        let permit = admission.admit(60).unwrap();
        assert!(matches!(admission.admit(60), Err(StoreError::Overloaded { .. })));
        drop(permit);
        admission.limit(None);
        assert!(admission.admit(MAX_WAITING_BYTES * 2).is_ok());
    }

    #[test]
    fn each_source_withdraws_only_its_own_refusal() {
        let admission = Admission::new();
        admission.refuse(RefusalSource::Log, Some("log".to_owned()));
        admission.refuse(RefusalSource::Space, Some("space".to_owned()));
        assert_eq!(admission.refusal().as_deref(), Some("log"));
        admission.refuse(RefusalSource::Log, None);
        assert_eq!(admission.refusal().as_deref(), Some("space"));
        admission.refuse(RefusalSource::Space, None);
        assert_eq!(admission.refusal(), None);
        admission.close("closed");
        admission.close("again");
        assert_eq!(admission.closed().as_deref(), Some("closed"));
    }

    #[test]
    fn writes_are_refused_if_the_disk_confirms_none_for_seconds() {
        let admission = Admission::new();
        admission.appended(1);
        assert_eq!(admission.refusal(), None);
        let now = Instant::now();
        let admission = Admission { opened: now - Duration::from_secs(60), ..admission };
        admission.confirmed(Some(now - Duration::from_secs(6)));
        assert!(admission.refusal().is_some_and(|reason| reason.contains("6 s")));
        admission.confirmed(None);
        assert_eq!(admission.refusal(), None);
    }
}
