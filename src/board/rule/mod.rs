//! Rules: `COUNT(30m, login, device_id) > 3 AND COUNT_DISTINCT(1h, login, device_id, user_id) >= 2`.
//!
//! A rule compares sides: metrics, fields, numbers, texts, and arithmetic on them. [The language](super::language)
//! defines the syntax. This module evaluates a rule for given fields and values.

mod evaluate;
mod expression;

use std::fmt;

use serde::{Serialize, Serializer};

use super::condition::Condition;
use super::{Comparison, FieldFault, Fields, Metric};

pub(super) use self::expression::{Arithmetic, Expression, Type};

/// A condition on the values of metrics and fields. Parses and prints as text of [the language](super::language).
#[derive(Clone, Debug, PartialEq)]
pub struct Rule(Condition<Compare>);

/// One comparison of a rule.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Compare {
    pub left: Expression,
    pub comparison: Comparison,
    pub right: Expression,
}

/// The value of a side of a comparison.
#[derive(Clone, Debug, PartialEq)]
pub enum Operand {
    /// A finite number.
    Number(f64),
    Text(Box<str>),
    Bool(bool),
}

/// The result of a rule for given fields and values.
#[derive(Clone, Debug, PartialEq)]
pub struct Verdict {
    /// Whether the whole rule holds.
    pub hit: bool,
    /// Every comparison of the rule, from left to right as written, including those that the result does not depend on.
    pub comparisons: Vec<Compared>,
}

/// The result of one comparison of a rule.
#[derive(Clone, Debug, PartialEq)]
pub struct Compared {
    /// The left side's canonical text.
    pub left: String,
    /// The left side's value. `None` where there is none: a mean without measurements, a division by zero.
    pub left_value: Option<Operand>,
    pub comparison: Comparison,
    /// The right side's canonical text.
    pub right: String,
    /// The right side's value, or `None` as for `left_value`.
    pub right_value: Option<Operand>,
    /// The different metrics of both sides, in order of appearance.
    pub metrics: Vec<Metric>,
    /// Whether the comparison holds. False if a side has no value.
    pub hit: bool,
}

impl Rule {
    pub(super) fn new(condition: Condition<Compare>) -> Self {
        Self(condition)
    }

    /// Returns the different metrics that the rule names, in order of appearance. These are the ones that
    /// [`evaluate`](Self::evaluate) asks for.
    pub fn metrics(&self) -> Vec<&Metric> {
        let mut metrics = Vec::new();
        self.0.each(&mut |compare| compare.add_metrics(&mut metrics));
        metrics
    }

    /// Evaluates the rule for these fields. `value_of` returns a metric's value in whole units, or `None` if the
    /// subject has no value. For a metric that appears twice it is called twice.
    ///
    /// All comparisons are evaluated, so that all can be shown. A comparison with a side without value is false, and
    /// NOT inverts it like any other. A number field and a number compare exactly, computed numbers as floats, texts by
    /// their bytes.
    ///
    /// # Errors
    /// Returns an error if a field is missing or does not have the type that its place in the rule needs.
    pub fn evaluate(&self, fields: &Fields, value_of: &dyn Fn(&Metric) -> Option<f64>) -> Result<Verdict, FieldFault> {
        evaluate::verdict(&self.0, fields, value_of)
    }
}

impl Compare {
    /// Returns the different metrics of both sides, in order of appearance.
    fn metrics(&self) -> Vec<Metric> {
        let mut metrics = Vec::new();
        self.add_metrics(&mut metrics);
        metrics.into_iter().cloned().collect()
    }

    /// Adds the metrics that `metrics` does not contain yet.
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
    /// Serializes as the JSON value. A whole number has no decimal point.
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

    /// Generates rules in normal form whose sides have types that can be compared.
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
