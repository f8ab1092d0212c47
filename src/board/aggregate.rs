//! Aggregates: the content of one slot for one subject, and how slots combine into a value.

use super::{Amount, Averaging, Sketch, Split, Timestamp, Value};

/// The content of one slot for one subject.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Aggregate {
    /// For COUNT, SUM and COUNT_DISTINCT: a part of the sum. Where equal scores are ordered by time, with the newest time.
    Sum(Amount),
    /// For AVG: the sum and the number of measurements.
    Mean { sum: Amount, count: i64 },
    /// For MIN and MAX: the extreme within the slot.
    Extreme(Amount),
    /// For LAST: the newest value of the slot, and its time.
    Last { at: Timestamp, value: Amount },
    /// For APPROX_COUNT_DISTINCT: the sketch of the values seen.
    Sketch(Sketch),
}

/// The way in which slots combine. This is all that stores need to know about a metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// COUNT and SUM: the score is the sum of the slots. A sum of 0 is the same as no data.
    Sum,
    /// COUNT and SUM where equal scores are ordered by time: each number is the sum of amounts with the newest time, see
    /// [`Split::joined`]. A sum of 0 is the same as no data for the ranking, but a slot with a sum of 0 has its time.
    TimedSum(Split),
    /// COUNT_DISTINCT: as [`Sum`](Self::Sum); each value counts in the slot in which it was last seen.
    Distinct,
    /// COUNT with a cap for each person: as [`Sum`](Self::Sum); what a person adds to a subject in a day is
    /// [`counted`](super::counted) of a counter, which is stored as values of COUNT_DISTINCT are.
    Capped { most: u32 },
    /// AVG: the sum of sums divided by the sum of counts. There is no value without measurements.
    Mean,
    /// MIN: the smallest of the slots' extremes. There is no value without measurements.
    Min,
    /// MAX: the greatest of the slots' extremes. There is no value without measurements.
    Max,
    /// LAST: the newest slot's newest value. There is no value without measurements.
    Last,
    /// APPROX_COUNT_DISTINCT: the estimate of all slots' sketches merged. An estimate of 0 is the same as no data.
    Sketch,
}

impl Kind {
    /// Returns whether amounts are added up.
    pub fn is_sum(self) -> bool {
        matches!(self, Kind::Sum | Kind::TimedSum(_))
    }

    /// Returns where the score is in a number, and where the time. Without times all of it is the score.
    pub fn split(self) -> Split {
        if let Kind::TimedSum(split) = self { split } else { Split::default() }
    }

    /// Returns whether what is added to a slot can leave it without data.
    pub fn cancels(self) -> bool {
        match self {
            Kind::Sum | Kind::TimedSum(_) | Kind::Mean => true,
            // Counters of 0 are stored.
            Kind::Capped { .. } => false,
            Kind::Distinct | Kind::Min | Kind::Max | Kind::Last | Kind::Sketch => false,
        }
    }

    /// Returns the combined value of the aggregates, which are in the order of their slots. Without data, it is 0 for
    /// the additive kinds and for sketches, and `None` for the others. A mean of too few measurements is `None`
    /// too.
    pub fn value<'a>(self, aggregates: impl IntoIterator<Item = &'a Aggregate>, averaging: Averaging) -> Option<Value> {
        let (mut sum, mut count) = (0i64, 0i64);
        let mut extreme: Option<i64> = None;
        let mut last: Option<Amount> = None;
        let mut sketch: Option<Sketch> = None;
        for aggregate in aggregates {
            match aggregate {
                Aggregate::Sum(amount) => {
                    sum = if let Kind::TimedSum(split) = self { split.joined(sum, amount.0) } else { sum + amount.0 };
                }
                Aggregate::Mean { sum: more, count: times } => {
                    sum += more.0;
                    count += times;
                }
                Aggregate::Extreme(amount) => {
                    extreme = Some(extreme.map_or(amount.0, |so_far| self.better(so_far, amount.0)));
                }
                Aggregate::Last { value, .. } => last = Some(*value),
                Aggregate::Sketch(other) => match &mut sketch {
                    Some(merged) => merged.merge(other),
                    None => sketch = Some(other.clone()),
                },
            }
        }
        match self {
            Kind::Sum | Kind::Distinct | Kind::Capped { .. } => Some(Value::Exact(Amount(sum))),
            Kind::TimedSum(split) if split.score(sum) == 0 => Some(Value::ZERO),
            Kind::TimedSum(_) => Some(Value::Exact(Amount(sum))),
            Kind::Mean => averaging.score(sum, count),
            Kind::Min | Kind::Max => extreme.map(|amount| Value::Exact(Amount(amount))),
            Kind::Last => last.map(Value::Exact),
            Kind::Sketch => Some(Value::Exact(Amount(sketch.map_or(0, |sketch| sketch.estimate())))),
        }
    }

    /// Returns the better of two extremes: the greater for [`Max`](Self::Max), otherwise the smaller.
    pub fn better(self, a: i64, b: i64) -> i64 {
        if self == Kind::Max { a.max(b) } else { a.min(b) }
    }

    /// Returns the name of the field of an increment that has its number or value.
    pub fn field(self) -> &'static str {
        match self {
            Kind::Sum | Kind::TimedSum(_) => "amount",
            Kind::Distinct | Kind::Capped { .. } | Kind::Mean | Kind::Min | Kind::Max | Kind::Last | Kind::Sketch => {
                "value"
            }
        }
    }

    /// Returns whether an increment has a value that was seen and no number: a value that is counted, or a person.
    pub fn counts_values(self) -> bool {
        match self {
            Kind::Distinct | Kind::Capped { .. } | Kind::Sketch => true,
            Kind::Sum | Kind::TimedSum(_) | Kind::Mean | Kind::Min | Kind::Max | Kind::Last => false,
        }
    }

    /// Returns whether the values that a subject was seen with are stored, each with the time when it was last seen, or
    /// counters in their form. What a subject had in earlier slots is then not known.
    pub fn remembers_values(self) -> bool {
        match self {
            Kind::Distinct | Kind::Capped { .. } => true,
            Kind::Sum | Kind::TimedSum(_) | Kind::Mean | Kind::Min | Kind::Max | Kind::Last | Kind::Sketch => false,
        }
    }

    /// Returns whether scores may be fractions of a unit. Otherwise they are whole.
    pub fn has_fractions(self) -> bool {
        match self {
            Kind::Mean => true,
            Kind::Sum
            | Kind::TimedSum(_)
            | Kind::Distinct
            | Kind::Capped { .. }
            | Kind::Min
            | Kind::Max
            | Kind::Last
            | Kind::Sketch => false,
        }
    }

    /// Returns whether the order of two measurements of the same time matters. Then a caller must not send the second
    /// one before the store has answered the first.
    pub fn depends_on_order(self) -> bool {
        self == Kind::Last
    }

    /// Returns the value of a subject without data. This is also the score of a subject outside the ranking.
    pub fn absent(self) -> Option<Value> {
        match self {
            Kind::Sum | Kind::TimedSum(_) | Kind::Distinct | Kind::Capped { .. } | Kind::Sketch => Some(Value::ZERO),
            Kind::Mean | Kind::Min | Kind::Max | Kind::Last => None,
        }
    }

    /// Returns the relative standard error of the value, if it is an estimate.
    pub fn standard_error(self) -> Option<f64> {
        (self == Kind::Sketch).then_some(Sketch::STANDARD_ERROR)
    }

    /// Returns whether a subject with this value is in the ranking.
    pub fn ranks(self, value: Option<Value>) -> bool {
        value.is_some() && value != self.absent()
    }
}

impl Aggregate {
    /// Returns the time of the value. Only for LAST.
    pub fn time(&self) -> Option<Timestamp> {
        if let Aggregate::Last { at, .. } = self { Some(*at) } else { None }
    }

    /// Returns whether the aggregate is the same as no data. Stores keep such aggregates only of boards with a cap.
    pub fn is_empty(&self) -> bool {
        match self {
            Aggregate::Sum(amount) => amount.0 == 0,
            Aggregate::Mean { sum, count } => sum.0 == 0 && *count == 0,
            Aggregate::Extreme(_) | Aggregate::Last { .. } => false,
            Aggregate::Sketch(sketch) => sketch.is_empty(),
        }
    }
}
