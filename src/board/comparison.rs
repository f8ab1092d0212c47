//! How two values are compared, in filters and in rules.

use std::cmp::Ordering;
use std::fmt;

/// How two values are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Comparison {
    Less,
    AtMost,
    Greater,
    AtLeast,
    Equal,
    NotEqual,
}

impl Comparison {
    /// The comparison that is written so; `<>` is another way to write `!=`.
    pub(super) fn of_symbol(symbol: &str) -> Option<Self> {
        Some(match symbol {
            "<" => Comparison::Less,
            "<=" => Comparison::AtMost,
            ">" => Comparison::Greater,
            ">=" => Comparison::AtLeast,
            "=" => Comparison::Equal,
            "!=" | "<>" => Comparison::NotEqual,
            _ => return None,
        })
    }

    /// As it is written: `>=`.
    pub fn symbol(self) -> &'static str {
        match self {
            Comparison::Less => "<",
            Comparison::AtMost => "<=",
            Comparison::Greater => ">",
            Comparison::AtLeast => ">=",
            Comparison::Equal => "=",
            Comparison::NotEqual => "!=",
        }
    }

    /// Whether it asks for more than equality, which truth values do not have.
    pub(super) fn needs_order(self) -> bool {
        !matches!(self, Comparison::Equal | Comparison::NotEqual)
    }

    /// Whether it holds of two values in this order.
    pub(super) fn holds(self, order: Ordering) -> bool {
        match self {
            Comparison::Less => order.is_lt(),
            Comparison::AtMost => order.is_le(),
            Comparison::Greater => order.is_gt(),
            Comparison::AtLeast => order.is_ge(),
            Comparison::Equal => order.is_eq(),
            Comparison::NotEqual => order.is_ne(),
        }
    }
}

impl fmt::Display for Comparison {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.symbol())
    }
}
