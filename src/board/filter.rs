//! Filters: the condition that selects events of a metric's type, such as `WHERE channel = 'app' AND amount >= 100`.

use std::cmp::Ordering;
use std::fmt;

use super::condition::Condition;
use super::{Comparison, Field, FieldFault, Fields, number};

/// A condition on an event's fields, as written after WHERE. Prints its canonical form.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Filter(Condition<Test>);

/// A test of one field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Test {
    pub field: Box<str>,
    pub ask: Ask,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Ask {
    Compare {
        comparison: Comparison,
        with: Literal,
    },
    /// IN or NOT IN, with at least one literal.
    Among {
        negated: bool,
        literals: Vec<Literal>,
    },
}

/// A literal in a filter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Literal {
    Text(Box<str>),
    /// The canonical text: see [`number::canonical`].
    Number(Box<str>),
    Bool(bool),
}

impl Filter {
    pub(super) fn new(condition: Condition<Test>) -> Self {
        Self(condition)
    }

    /// Returns whether the filter accepts an event with these fields.
    ///
    /// A test of a missing field is false, `!=` and NOT IN included. A field of a different type than the literal is a
    /// fault; otherwise the event would be ignored without a message. Tests run from left to right and only as far as
    /// needed, so that `kind = 'card' AND amount >= 100` does not read the amount of a different kind. Numbers compare
    /// exactly, texts by their bytes. O(tests x fields).
    pub fn admits(&self, fields: &Fields) -> Result<bool, FieldFault> {
        self.0.holds(&mut |test: &Test| test.holds(fields))
    }
}

impl Test {
    fn holds(&self, fields: &Fields) -> Result<bool, FieldFault> {
        let Some(value) = fields.get(&self.field) else { return Ok(false) };
        let order = |literal: &Literal| literal.order(value).ok_or_else(|| self.fault(literal, value));
        match &self.ask {
            Ask::Compare { comparison, with } => Ok(comparison.holds(order(with)?)),
            Ask::Among { negated, literals } => {
                let found = literals.iter().any(|literal| literal.order(value) == Some(Ordering::Equal));
                if !found && literals.iter().all(|literal| literal.order(value).is_none()) {
                    literals.first().map_or(Ok(()), |literal| order(literal).map(drop))?;
                }
                Ok(found != *negated)
            }
        }
    }

    fn fault(&self, literal: &Literal, value: &Field) -> FieldFault {
        let expected = match literal {
            Literal::Text(_) => "a text",
            Literal::Number(_) => "a number",
            Literal::Bool(_) => "true or false",
        };
        FieldFault::Invalid {
            field: self.field.clone(),
            detail: format!("expected {expected}, found {}", value.described()),
        }
    }
}

impl Literal {
    /// Compares a field's value with the literal. Returns `None` if they have different types.
    fn order(&self, value: &Field) -> Option<Ordering> {
        match (value, self) {
            (Field::Text(value), Literal::Text(text)) => Some(value.cmp(text)),
            (value, Literal::Number(number)) => number::compare(value.number()?, number),
            (Field::Bool(value), Literal::Bool(truth)) => Some(value.cmp(truth)),
            _ => None,
        }
    }
}

impl fmt::Display for Filter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Display for Test {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.field)?;
        match &self.ask {
            Ask::Compare { comparison, with } => write!(f, " {comparison} {with}"),
            Ask::Among { negated, literals } => {
                f.write_str(if *negated { " NOT IN (" } else { " IN (" })?;
                for (i, literal) in literals.iter().enumerate() {
                    write!(f, "{}{literal}", if i > 0 { ", " } else { "" })?;
                }
                f.write_str(")")
            }
        }
    }
}

impl fmt::Display for Literal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Literal::Text(text) => quoted(f, text),
            Literal::Number(number) => f.write_str(number),
            Literal::Bool(truth) => truth.fmt(f),
        }
    }
}

/// Writes a text as a literal of the language.
pub(super) fn quoted(f: &mut fmt::Formatter<'_>, text: &str) -> fmt::Result {
    write!(f, "'{}'", text.replace('\'', "''"))
}

#[cfg(test)]
pub(super) mod strategy {
    use proptest::prelude::*;

    use super::*;
    use crate::board::condition;

    pub fn comparison() -> impl Strategy<Value = Comparison> {
        prop::sample::select(vec![
            Comparison::Less,
            Comparison::AtMost,
            Comparison::Greater,
            Comparison::AtLeast,
            Comparison::Equal,
            Comparison::NotEqual,
        ])
    }

    pub fn number() -> impl Strategy<Value = Box<str>> {
        "-?[0-9]{1,6}(\\.[0-9]{1,4})?(e-?[0-9]{1,2})?".prop_map(|text| number::canonical(&text).unwrap())
    }

    pub fn text() -> impl Strategy<Value = Box<str>> {
        "[a-zA-Z0-9 '\"()=é\n]{0,8}".prop_map(String::into_boxed_str)
    }

    fn literal() -> impl Strategy<Value = Literal> {
        prop_oneof![
            text().prop_map(Literal::Text),
            number().prop_map(Literal::Number),
            any::<bool>().prop_map(Literal::Bool),
        ]
    }

    fn ask() -> impl Strategy<Value = Ask> {
        let compare = (comparison(), literal()).prop_map(|(comparison, with)| {
            let unordered = matches!(with, Literal::Bool(_)) && comparison.needs_order();
            Ask::Compare { comparison: if unordered { Comparison::Equal } else { comparison }, with }
        });
        let among = (any::<bool>(), prop::collection::vec(literal(), 1..4))
            .prop_map(|(negated, literals)| Ask::Among { negated, literals });
        prop_oneof![3 => compare, 1 => among]
    }

    pub fn filter() -> impl Strategy<Value = Filter> {
        condition::strategy::of(
            ("f_[A-Za-z0-9_.-]{0,6}", ask()).prop_map(|(field, ask)| Test { field: field.into(), ask }),
        )
        .prop_map(Filter)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::board::Metric;

    fn admits(filter: &str, fields: &[(&str, Field)]) -> Result<bool, String> {
        let metric: Metric = format!("COUNT(1h, e, s WHERE {filter})").parse().unwrap();
        let mut all = Fields::default();
        for (name, value) in fields {
            all.set(*name, value.clone());
        }
        metric.filter.unwrap().admits(&all).map_err(|fault| fault.to_string())
    }

    fn text(text: &str) -> Field {
        Field::Text(text.into())
    }

    fn number(text: &str) -> Field {
        Field::Number(text.into())
    }

    #[test]
    fn every_comparison_operator_is_evaluated() {
        for (filter, below, equal, above) in [
            ("x < 10", true, false, false),
            ("x <= 10.0", true, true, false),
            ("x > 1e1", false, false, true),
            ("x >= 10", false, true, true),
            ("x = 10", false, true, false),
            ("x <> 10", true, false, true),
        ] {
            for (value, expected) in [("9.99", below), ("10.00", equal), ("11", above)] {
                assert_eq!(admits(filter, &[("x", number(value))]), Ok(expected), "{filter} of {value}");
            }
        }
        for (filter, value, expected) in [
            ("x = 'it''s'", text("it's"), true),
            ("x < 'b'", text("a"), true),
            ("x < 'b'", text("é"), false),
            ("x = true", Field::Bool(true), true),
            ("x != TRUE", Field::Bool(true), false),
            ("x IN ('a', 'b')", text("b"), true),
            ("x in ('a', 'b')", text("c"), false),
            ("x not in ('a', 'b')", text("c"), true),
            ("x IN (1, 'a')", number("1.0"), true),
            ("x NOT IN (1, 'a')", text("b"), true),
            ("x = 9007199254740993", number("9007199254740992"), false),
        ] {
            assert_eq!(admits(filter, &[("x", value.clone())]), Ok(expected), "{filter} of {value:?}");
        }
    }

    #[test]
    fn and_or_not_have_sql_precedence() {
        let fields = [("t", Field::Bool(true)), ("f", Field::Bool(false))];
        for (filter, expected) in [
            ("t = true OR f = true AND f = true", true),
            ("(t = true OR f = true) AND f = true", false),
            ("NOT f = true AND t = true", true),
            ("NOT (f = true OR t = true)", false),
            ("NOT NOT t = true", true),
        ] {
            assert_eq!(admits(filter, &fields), Ok(expected), "{filter}");
        }
    }

    #[test]
    fn missing_fields_fail_the_test_and_wrong_types_are_errors() {
        for (filter, expected) in [("x = 1", false), ("x != 1", false), ("x NOT IN (1)", false), ("NOT x = 1", true)] {
            assert_eq!(admits(filter, &[]), Ok(expected), "{filter}");
        }
        // A text that is a number compares as that number.
        assert_eq!(
            (admits("x = 1", &[("x", text("1.0"))]), admits("x > 9", &[("x", text("10"))])),
            (Ok(true), Ok(true))
        );
        assert_eq!(admits("x = '1'", &[("x", text("1.0"))]), Ok(false));
        for (filter, value, fault) in [
            ("x = 1", text("one"), "the field 'x': expected a number, found a text"),
            ("x != 'a'", number("1"), "the field 'x': expected a text, found a number"),
            ("x = true", text("true"), "the field 'x': expected true or false, found a text"),
            ("x IN (1, 2)", Field::Bool(true), "the field 'x': expected a number, found a boolean"),
        ] {
            assert_eq!(admits(filter, &[("x", value)]), Err(fault.to_owned()), "{filter}");
        }
        // The first test fails, so the amount of other kinds is not read.
        let other = [("kind", text("note")), ("amount", text("much"))];
        assert_eq!(admits("kind = 'card' AND amount >= 100", &other), Ok(false));
    }
}
