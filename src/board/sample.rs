//! Samples on boards over all time that keep their newest slots: what the total becomes when a slot is replaced.

use std::cmp::Ordering;

use super::{Aggregate, Amount, Calendar, Change, Kind, Timestamp};

/// A sample of a slot that is kept beside a total.
#[derive(Clone, Copy, Debug)]
pub struct SlotSample {
    /// The start of the slot that the sample replaces.
    pub slot: Timestamp,
    pub sum: Amount,
    pub count: i64,
}

impl SlotSample {
    /// Returns the change of the total, in the form of a sample of the total, or `None` if the total stays the same.
    /// The total changes as much as the slot does; for LAST it takes the sample unless its own value belongs to a later
    /// slot.
    ///
    /// `total` and `slot` are what the subject had, if anything, and `calendar` is that of the slots. `next` returns
    /// what it has in the next slot: a value of the instant between the two slots may be an event of the next one, or a
    /// sample that is stamped with the end of this one. A total of a kind that accepts no samples on such boards stays
    /// the same. Numbers that do not fit are as large as possible, and no store accepts them.
    pub fn change_of_total(
        &self,
        kind: Kind,
        calendar: &Calendar,
        total: Option<&Aggregate>,
        slot: Option<&Aggregate>,
        next: impl FnOnce() -> Option<Aggregate>,
    ) -> Option<Change> {
        let change = |all: i64, before: i64, after: i64| all.saturating_sub(before).saturating_add(after);
        match kind {
            Kind::Last => {
                let end = calendar.next(self.slot);
                let is_later = |of: Timestamp| match of.cmp(&end) {
                    Ordering::Less => false,
                    Ordering::Equal => next().and_then(|next| next.time()) == Some(end),
                    Ordering::Greater => true,
                };
                let stays = total.and_then(Aggregate::time).is_some_and(is_later);
                (!stays).then_some(Change::Set { sum: self.sum, count: self.count })
            }
            Kind::Sum | Kind::Mean => {
                let ((all, times), (before, earlier)) = (numbers(total), numbers(slot));
                let sum = Amount(change(all, before, self.sum.0));
                Some(Change::Set { sum, count: change(times, earlier, self.count) })
            }
            Kind::TimedSum(_) | Kind::Min | Kind::Max | Kind::Distinct | Kind::Capped { .. } | Kind::Sketch => None,
        }
    }
}

/// Returns the sum and the number of measurements of a sum or a mean.
fn numbers(aggregate: Option<&Aggregate>) -> (i64, i64) {
    match aggregate {
        Some(Aggregate::Sum(sum)) => (sum.0, 0),
        Some(Aggregate::Mean { sum, count }) => (sum.0, *count),
        Some(Aggregate::Extreme(_) | Aggregate::Last { .. } | Aggregate::Sketch(_)) | None => (0, 0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: i64 = 3_600_000;

    fn sample(hour: i64, sum: i64, count: i64) -> SlotSample {
        SlotSample { slot: Timestamp::from_millis(hour * HOUR), sum: Amount(sum), count }
    }

    fn set(sum: i64, count: i64) -> Option<Change> {
        Some(Change::Set { sum: Amount(sum), count })
    }

    #[test]
    fn a_total_changes_as_much_as_the_slot() {
        let calendar = Calendar::new("1h".parse().unwrap(), chrono_tz::Tz::UTC).unwrap();
        let change = |kind, sample: SlotSample, total, slot: Option<Aggregate>| {
            sample.change_of_total(kind, &calendar, Some(&total), slot.as_ref(), || None)
        };
        let sum = |units| Aggregate::Sum(Amount(units));
        assert_eq!(change(Kind::Sum, sample(3, 5, 1), sum(100), Some(sum(30))), set(75, 1));
        assert_eq!(change(Kind::Sum, sample(3, 5, 1), sum(100), None), set(105, 1));
        let mean = |units, count| Aggregate::Mean { sum: Amount(units), count };
        assert_eq!(change(Kind::Mean, sample(3, 0, 0), mean(100, 10), Some(mean(30, 4))), set(70, 6));
        assert_eq!(change(Kind::Sum, sample(3, i64::MIN, 1), sum(-9), None), set(i64::MIN, 1));
    }

    #[test]
    fn the_newest_value_of_all_time_stays_if_it_is_of_a_later_slot() {
        let calendar = Calendar::new("1h".parse().unwrap(), chrono_tz::Tz::UTC).unwrap();
        let last = |at| Aggregate::Last { at: Timestamp::from_millis(at), value: Amount(1) };
        let change = |at, next: Option<i64>| {
            sample(3, 7, 1).change_of_total(Kind::Last, &calendar, Some(&last(at)), None, || next.map(last))
        };
        assert_eq!(change(4 * HOUR + 1, None), None);
        // A value of the same slot is replaced, even if it is newer.
        for at in [0, 3 * HOUR - 1, 3 * HOUR + 60, 3 * HOUR + 61, 4 * HOUR - 1] {
            assert_eq!(change(at, Some(5 * HOUR)), set(7, 1), "{at}");
        }
        // Between the two slots.
        assert_eq!(change(4 * HOUR, Some(4 * HOUR)), None);
        assert_eq!(change(4 * HOUR, Some(4 * HOUR + 1)), set(7, 1));
        assert_eq!(change(4 * HOUR, None), set(7, 1));
    }
}
