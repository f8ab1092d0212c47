//! Rules: `COUNT(30m, login, device_id) > 3 AND COUNT_DISTINCT(1h, login, device_id, user_id) >= 2`.
//!
//! A rule compares sides: metrics, fields, numbers, texts, and arithmetic on them. How it is written is
//! [the language's](super::language); what it says of given fields and values is here.

mod evaluate;
mod expression;

use std::fmt;

use serde::{Serialize, Serializer};

use super::condition::Condition;
use super::{Comparison, FieldFault, Fields, Metric};

pub(super) use self::expression::{Arithmetic, Expression, Type};

/// A condition on what metrics and fields say. Reads and prints as [the language](super::language) has it.
#[derive(Clone, Debug, PartialEq)]
pub struct Rule(Condition<Compare>);

/// One comparison of a rule.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Compare {
    pub left: Expression,
    pub comparison: Comparison,
    pub right: Expression,
}

/// What a side of a comparison came to.
#[derive(Clone, Debug, PartialEq)]
pub enum Operand {
    /// Finite.
    Number(f64),
    Text(Box<str>),
    Bool(bool),
}

/// What a rule says of given fields and values.
#[derive(Clone, Debug, PartialEq)]
pub struct Verdict {
    /// Whether the whole rule holds.
    pub hit: bool,
    /// Every comparison of the rule, as written from left to right, also those that the verdict did not depend on.
    pub comparisons: Vec<Compared>,
}

/// What one comparison of a rule came to.
#[derive(Clone, Debug, PartialEq)]
pub struct Compared {
    /// The left side's canonical text.
    pub left: String,
    /// `None` where there is none to say: a mean of nothing, a quotient of zero.
    pub left_value: Option<Operand>,
    pub comparison: Comparison,
    /// The right side's canonical text.
    pub right: String,
    /// As `left_value`.
    pub right_value: Option<Operand>,
    /// The different metrics of both sides, in order of appearance.
    pub metrics: Vec<Metric>,
    /// Whether it holds; false if a side has no value.
    pub hit: bool,
}

impl Rule {
    pub(super) fn new(condition: Condition<Compare>) -> Self {
        Self(condition)
    }

    /// The different metrics that the rule names, in order of appearance: what [`evaluate`](Self::evaluate) will ask
    /// for.
    pub fn metrics(&self) -> Vec<&Metric> {
        let mut metrics = Vec::new();
        self.0.each(&mut |compare| compare.add_metrics(&mut metrics));
        metrics
    }

    /// What the rule says of these fields, given the metrics' values in whole units (`None`: the metric says nothing
    /// of the subject). A metric that appears twice is asked for twice.
    ///
    /// All comparisons are made, so that all can be shown. One with a side without value is false, which NOT turns
    /// round as it does any other. A number field and a number compare exactly, everything computed as floats do,
    /// texts by their bytes.
    ///
    /// # Errors
    /// A field that is missing, or not of the type that its place in the rule needs.
    pub fn evaluate(&self, fields: &Fields, value_of: &dyn Fn(&Metric) -> Option<f64>) -> Result<Verdict, FieldFault> {
        evaluate::verdict(&self.0, fields, value_of)
    }
}

impl Compare {
    /// The different metrics of both sides, in order of appearance.
    fn metrics(&self) -> Vec<Metric> {
        let mut metrics = Vec::new();
        self.add_metrics(&mut metrics);
        metrics.into_iter().cloned().collect()
    }

    /// Adds the metrics that are not there yet.
    fn add_metrics<'a>(&'a self, metrics: &mut Vec<&'a Metric>) {
        let mut visit = |metric| {
            if !metrics.contains(&metric) {
                metrics.push(metric);
            }
        };
        self.left.metrics(&mut visit);
        self.right.metrics(&mut visit);
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Display for Compare {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} {}", self.left, self.comparison, self.right)
    }
}

impl Serialize for Operand {
    /// As the JSON value it is; a whole number without a point.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Operand::Number(number) if number.fract() == 0.0 && number.abs() <= super::EXACT_MAX as f64 => {
                serializer.serialize_i64(*number as i64)
            }
            Operand::Number(number) => serializer.serialize_f64(*number),
            Operand::Text(text) => serializer.serialize_str(text),
            Operand::Bool(truth) => serializer.serialize_bool(*truth),
        }
    }
}

#[cfg(test)]
pub(super) mod strategy {
    use proptest::prelude::*;

    use super::*;
    use crate::board::{condition, filter};

    /// Rules in normal form, whose sides are of the types that they may have.
    pub fn rule() -> impl Strategy<Value = Rule> {
        let side = || expression::strategy::expression();
        let compare = (side(), filter::strategy::comparison(), side()).prop_map(|(left, comparison, right)| {
            let sides = (left.known_type(), right.known_type());
            let right = match sides {
                (Some(left), Some(right)) if left != right => Expression::Field("other".into()),
                _ => right,
            };
            let unordered = [sides.0, sides.1].contains(&Some(Type::Bool)) && comparison.needs_order();
            Compare { left, comparison: if unordered { Comparison::NotEqual } else { comparison }, right }
        });
        condition::strategy::of(compare).prop_map(Rule)
    }
}
