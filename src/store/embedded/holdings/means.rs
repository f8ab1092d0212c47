//! AVG: what was measured and how often, slot by slot and in all.

use super::{Holdings, OutOfRange};
use crate::board::Value;
use crate::store::embedded::extra::{Extra, Means};

/// Sum and count of a slot.
pub(in super::super) type Samples = (i64, i64);

impl Holdings {
    /// Adds to sum and count of a slot, unless one would pass `bound`; answers both as they are then. O(log n).
    pub(in super::super) fn measure(
        &mut self,
        subject: &str,
        slot: i64,
        (sum, count): Samples,
        bound: i64,
    ) -> Result<Samples, OutOfRange> {
        let (old_sum, old_count) = self.samples(subject, slot);
        let sum = old_sum.checked_add(sum).ok_or(OutOfRange)?;
        let count = old_count.checked_add(count).ok_or(OutOfRange)?;
        self.set_samples(subject, slot, (sum, count), bound)
    }

    /// Sets sum and count of a slot, unless one would pass `bound`; answers them. O(log n).
    pub(in super::super) fn set_samples(
        &mut self,
        subject: &str,
        slot: i64,
        samples: Samples,
        bound: i64,
    ) -> Result<Samples, OutOfRange> {
        let (sum, count) = samples;
        if sum.unsigned_abs().max(count.unsigned_abs()) > bound.unsigned_abs() {
            return Err(OutOfRange);
        }
        if samples == self.samples(subject, slot) {
            return Ok(samples);
        }
        // No memory holds the four billion subjects at which ids run out.
        let id = self.slab.intern(subject).ok_or(OutOfRange)?;
        if samples == (0, 0) {
            self.cut(id, slot);
        } else {
            let old = self.put(id, slot, sum).unwrap_or(0);
            if let Some((record, Some(Extra::Means(means)))) = self.slab.both_mut(id)
                && let Ok(at) = record.find(slot)
            {
                let old_count = std::mem::replace(&mut means.counts[at], count);
                means.sum += sum - old;
                means.count += count - old_count;
            }
        }
        self.rescore(id, self.mean_key(id));
        self.enqueue(id);
        Ok(samples)
    }

    fn samples(&self, subject: &str, slot: i64) -> Samples {
        let Some((id, record)) = self.record(subject) else { return (0, 0) };
        match (record.find(slot), self.means(id)) {
            (Ok(at), Some(means)) => (record.slices[at].amount, means.counts[at]),
            _ => (0, 0),
        }
    }

    fn means(&self, id: u32) -> Option<&Means> {
        match self.slab.extra(id)? {
            Extra::Means(means) => Some(means),
            _ => None,
        }
    }

    /// The key of the mean of all slices. O(1).
    pub(super) fn mean_key(&self, id: u32) -> i64 {
        let enough = self.means(id).filter(|means| means.count >= self.rule.min_samples);
        self.rule.key(enough.and_then(|means| Value::mean(means.sum, means.count)))
    }
}
