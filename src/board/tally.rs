//! What one subject has in one slot, and how slots combine into a value.

use super::{Amount, Sketch, Value};

/// What one subject has in one slot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Tally {
    /// COUNT, SUM and COUNT_DISTINCT: a part of the sum.
    Sum(Amount),
    /// AVG: what was measured, added up, and how often.
    Mean { sum: Amount, count: i64 },
    /// MIN and MAX: the slot's own extreme.
    Extreme(Amount),
    /// APPROX_COUNT_DISTINCT.
    Sketch(Sketch),
}

/// How slots combine: what stores need to know of a metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// COUNT and SUM: the score is the sum of the slots; 0 is absence.
    Sum,
    /// COUNT_DISTINCT: as [`Sum`](Self::Sum), of slots that the last-seen scheme fills.
    Distinct,
    /// AVG: the sums divided by the counts; absent while nothing was measured.
    Mean,
    /// MIN: the least of the slots; absent while there is none.
    Min,
    /// MAX: the greatest of the slots; absent while there is none.
    Max,
    /// APPROX_COUNT_DISTINCT: the estimate of all slots' sketches merged; 0 is absence.
    Sketch,
}

impl Kind {
    /// What the tallies say together. `None` where a metric says nothing of a subject without data; 0 where that
    /// is what it says. A mean of fewer than `min_samples` is `None` too.
    pub fn value<'a>(self, tallies: impl IntoIterator<Item = &'a Tally>, min_samples: i64) -> Option<Value> {
        let (mut sum, mut count) = (0i64, 0i64);
        let mut extreme: Option<i64> = None;
        let mut sketch: Option<Sketch> = None;
        for tally in tallies {
            match tally {
                Tally::Sum(amount) => sum += amount.0,
                Tally::Mean { sum: more, count: times } => {
                    sum += more.0;
                    count += times;
                }
                Tally::Extreme(amount) => {
                    extreme = Some(extreme.map_or(amount.0, |so_far| self.better(so_far, amount.0)));
                }
                Tally::Sketch(other) => match &mut sketch {
                    Some(merged) => merged.merge(other),
                    None => sketch = Some(other.clone()),
                },
            }
        }
        match self {
            Kind::Sum | Kind::Distinct => Some(Value::Exact(Amount(sum))),
            Kind::Mean => Value::mean(sum, count).filter(|_| count >= min_samples),
            Kind::Min | Kind::Max => extreme.map(|amount| Value::Exact(Amount(amount))),
            Kind::Sketch => Some(Value::Exact(Amount(sketch.map_or(0, |sketch| sketch.estimate())))),
        }
    }

    /// The better of two extremes: the greater for [`Max`](Self::Max), else the lesser.
    pub fn better(self, a: i64, b: i64) -> i64 {
        if self == Kind::Max { a.max(b) } else { a.min(b) }
    }

    /// What the metric says of a subject nobody has counted, and so what a subject outside the ranking scores.
    pub fn absent(self) -> Option<Value> {
        match self {
            Kind::Sum | Kind::Distinct | Kind::Sketch => Some(Value::ZERO),
            Kind::Mean | Kind::Min | Kind::Max => None,
        }
    }

    /// The relative standard error of what it says, where that is an estimate.
    pub fn standard_error(self) -> Option<f64> {
        (self == Kind::Sketch).then_some(Sketch::STANDARD_ERROR)
    }

    /// Whether a value puts a subject into the ranking.
    pub fn ranks(self, value: Option<Value>) -> bool {
        value.is_some() && value != self.absent()
    }
}

impl Tally {
    /// Whether it is as good as none: what stores do not keep.
    pub fn is_empty(&self) -> bool {
        match self {
            Tally::Sum(amount) => amount.0 == 0,
            Tally::Mean { sum, count } => sum.0 == 0 && *count == 0,
            Tally::Extreme(_) => false,
            Tally::Sketch(sketch) => sketch.is_empty(),
        }
    }
}
