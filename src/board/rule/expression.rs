//! A side of a rule's comparison: a metric, a field, a literal, or arithmetic on them.

use std::fmt;

use crate::board::Metric;
use crate::board::filter::quoted;
use crate::board::spellings::spellings;

/// A side of a comparison. [`negated`](Self::negated) and [`chain`](Self::chain) keep it in normal form.
#[derive(Clone, Debug, PartialEq)]
pub(in crate::board) enum Expression {
    Metric(Box<Metric>),
    Field(Box<str>),
    /// The canonical text: see [`number::canonical`](crate::board::number::canonical).
    Number(Box<str>),
    Text(Box<str>),
    Bool(bool),
    /// The negation of anything except a number, whose text contains the sign.
    Negated(Box<Expression>),
    /// At least two operands, joined from left to right by operators of one [`rank`](Arithmetic::rank). The list is
    /// flat, so that a long sum does not nest. The first operand is not a chain of the same rank.
    Chain {
        first: Box<Expression>,
        rest: Vec<(Arithmetic, Expression)>,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::board) enum Arithmetic {
    Plus,
    Minus,
    Times,
    Over,
}

/// The type of a side, where the syntax determines it. The type of a field is known only from the event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::board) enum Type {
    Number,
    Text,
    Bool,
}

spellings! {
    Arithmetic { Plus = "+", Minus = "-", Times = "*", Over = "/" }
    print symbol;
    pub parse of_symbol;
}

impl Arithmetic {
    /// Returns the precedence: `*` and `/` bind more tightly than `+` and `-`.
    pub fn rank(self) -> u8 {
        match self {
            Arithmetic::Plus | Arithmetic::Minus => 1,
            Arithmetic::Times | Arithmetic::Over => 2,
        }
    }
}

impl Expression {
    /// Returns the expression with its sign inverted.
    pub fn negated(self) -> Self {
        match self {
            Self::Number(number) => Self::Number(match number.strip_prefix('-') {
                Some(positive) => positive.into(),
                None if *number == *"0" => number,
                None => format!("-{number}").into(),
            }),
            other => Self::Negated(Box::new(other)),
        }
    }

    /// Returns the chain of `first` and `rest`, joined by operators of one rank.
    pub fn chain(first: Self, rest: Vec<(Arithmetic, Self)>) -> Self {
        let Some(rank) = rest.first().map(|(operator, _)| operator.rank()) else { return first };
        match first {
            Self::Chain { first, rest: mut before } if before.iter().all(|(operator, _)| operator.rank() == rank) => {
                before.extend(rest);
                Self::Chain { first, rest: before }
            }
            other => Self::Chain { first: Box::new(other), rest },
        }
    }

    /// Calls `visit` with each metric, from left to right.
    pub fn metrics<'a>(&'a self, visit: &mut impl FnMut(&'a Metric)) {
        match self {
            Self::Metric(metric) => visit(metric),
            Self::Negated(inner) => inner.metrics(visit),
            Self::Chain { first, rest } => {
                first.metrics(visit);
                rest.iter().for_each(|(_, operand)| operand.metrics(visit));
            }
            Self::Field(_) | Self::Number(_) | Self::Text(_) | Self::Bool(_) => {}
        }
    }

    /// Returns the field's name, if the expression is a field.
    pub fn field(&self) -> Option<&str> {
        match self {
            Self::Field(field) => Some(field),
            _ => None,
        }
    }

    /// Returns the type, where the syntax determines it.
    pub fn known_type(&self) -> Option<Type> {
        match self {
            Self::Field(_) => None,
            Self::Text(_) => Some(Type::Text),
            Self::Bool(_) => Some(Type::Bool),
            Self::Metric(_) | Self::Number(_) | Self::Negated(_) | Self::Chain { .. } => Some(Type::Number),
        }
    }

    fn rank(&self) -> u8 {
        match self {
            Self::Chain { rest, .. } => rest.first().map_or(4, |(operator, _)| operator.rank()),
            Self::Negated(_) => 3,
            _ => 4,
        }
    }

    /// Writes the expression, in parentheses if it binds less tightly than `surroundings`.
    fn write(&self, f: &mut fmt::Formatter<'_>, surroundings: u8) -> fmt::Result {
        if self.rank() < surroundings {
            return write!(f, "({self})");
        }
        match self {
            Self::Metric(metric) => write!(f, "{metric}"),
            Self::Field(name) => f.write_str(name),
            Self::Number(number) => f.write_str(number),
            Self::Text(text) => quoted(f, text),
            Self::Bool(truth) => write!(f, "{truth}"),
            Self::Negated(inner) => {
                f.write_str("-")?;
                inner.write(f, 3)
            }
            Self::Chain { first, rest } => {
                first.write(f, self.rank())?;
                for (operator, operand) in rest {
                    write!(f, " {} ", operator.symbol())?;
                    operand.write(f, self.rank() + 1)?;
                }
                Ok(())
            }
        }
    }
}

impl fmt::Display for Expression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.write(f, 0)
    }
}

impl fmt::Display for Type {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Type::Number => "a number",
            Type::Text => "a text",
            Type::Bool => "true or false",
        })
    }
}

#[cfg(test)]
pub(super) mod strategy {
    use proptest::prelude::*;

    use crate::board::rule::expression::{Arithmetic, Expression};
    use crate::board::{filter, metric};

    /// Generates sides in normal form.
    pub fn expression() -> impl Strategy<Value = Expression> {
        let name = "f_[A-Za-z0-9_.-]{0,6}".prop_map(|name| Expression::Field(name.into()));
        let numeric = prop_oneof![
            1 => metric::strategy::metric().prop_map(|metric| Expression::Metric(Box::new(metric))),
            2 => name,
            2 => filter::strategy::number().prop_map(Expression::Number),
        ];
        let arithmetic = numeric.prop_recursive(3, 8, 3, |inner| {
            let chain = |rank: [Arithmetic; 2], inner: BoxedStrategy<Expression>| {
                let rest = prop::collection::vec((prop::sample::select(rank.to_vec()), inner.clone()), 1..3);
                (inner, rest).prop_map(|(first, rest)| Expression::chain(first, rest))
            };
            prop_oneof![
                inner.clone().prop_map(Expression::negated),
                chain([Arithmetic::Plus, Arithmetic::Minus], inner.clone().boxed()),
                chain([Arithmetic::Times, Arithmetic::Over], inner.boxed()),
            ]
        });
        prop_oneof![
            5 => arithmetic,
            1 => filter::strategy::text().prop_map(Expression::Text),
            1 => any::<bool>().prop_map(Expression::Bool),
        ]
    }
}
