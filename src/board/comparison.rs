//! Comparison operators, used in filters and in rules.

use std::cmp::Ordering;
use std::fmt;

use super::spellings::spellings;

/// A comparison operator.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Comparison {
    Less,
    AtMost,
    Greater,
    AtLeast,
    Equal,
    NotEqual,
}

spellings! {
    Comparison { Less = "<", AtMost = "<=", Greater = ">", AtLeast = ">=", Equal = "=", NotEqual = "!=" }
    /// Returns the symbol, such as `>=`.
    pub print symbol;
    parse of_canonical_symbol;
}

impl Comparison {
    /// Returns the comparison written as `symbol`. `<>` is a second way to write `!=`.
    pub(super) fn of_symbol(symbol: &str) -> Option<Self> {
        if symbol == "<>" { Some(Comparison::NotEqual) } else { Self::of_canonical_symbol(symbol) }
    }

    /// Returns whether the comparison needs an order. Truth values have none: they can only be equal or not.
    pub(super) fn needs_order(self) -> bool {
        !matches!(self, Comparison::Equal | Comparison::NotEqual)
    }

    /// Returns whether the comparison holds for two values that compare as `order`.
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
