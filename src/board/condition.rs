//! AND, OR and NOT over parts that are true or false: the tests of a filter, the comparisons of a rule.

use std::fmt;

/// A condition. [`all`](Self::all) and [`any`](Self::any) keep it in normal form, in which two conditions that differ
/// only in parentheses are equal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Condition<T> {
    One(T),
    /// At least two conditions. None of them is itself `All`.
    All(Vec<Condition<T>>),
    /// At least two conditions. None of them is itself `Any`.
    Any(Vec<Condition<T>>),
    Not(Box<Condition<T>>),
}

impl<T> Condition<T> {
    /// Returns the condition that holds if all of `conditions` hold. There must be at least one.
    pub fn all(conditions: Vec<Self>) -> Self {
        Self::joined(conditions, Self::All, |condition| match condition {
            Self::All(inner) => Ok(inner),
            other => Err(other),
        })
    }

    /// Returns the condition that holds if any of `conditions` holds. There must be at least one.
    pub fn any(conditions: Vec<Self>) -> Self {
        Self::joined(conditions, Self::Any, |condition| match condition {
            Self::Any(inner) => Ok(inner),
            other => Err(other),
        })
    }

    fn joined(
        conditions: Vec<Self>,
        join: impl FnOnce(Vec<Self>) -> Self,
        opened: impl Fn(Self) -> Result<Vec<Self>, Self>,
    ) -> Self {
        let mut flat = Vec::with_capacity(conditions.len());
        for condition in conditions {
            match opened(condition) {
                Ok(inner) => flat.extend(inner),
                Err(other) => flat.push(other),
            }
        }
        match flat.pop() {
            Some(only) if flat.is_empty() => only,
            last => {
                flat.extend(last);
                join(flat)
            }
        }
    }

    /// Calls `visit` with each part, from left to right.
    pub fn each<'a>(&'a self, visit: &mut impl FnMut(&'a T)) {
        match self {
            Self::One(part) => visit(part),
            Self::All(conditions) | Self::Any(conditions) => {
                conditions.iter().for_each(|condition| condition.each(visit));
            }
            Self::Not(condition) => condition.each(visit),
        }
    }

    /// Returns whether the condition holds. Evaluates parts from left to right and only as far as needed.
    pub fn holds<E>(&self, part: &mut impl FnMut(&T) -> Result<bool, E>) -> Result<bool, E> {
        match self {
            Self::One(one) => part(one),
            Self::Not(condition) => Ok(!condition.holds(part)?),
            Self::All(conditions) => Self::all_are(true, conditions, part),
            Self::Any(conditions) => Ok(!Self::all_are(false, conditions, part)?),
        }
    }

    fn all_are<E>(truth: bool, conditions: &[Self], part: &mut impl FnMut(&T) -> Result<bool, E>) -> Result<bool, E> {
        for condition in conditions {
            if condition.holds(part)? != truth {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

impl<T: fmt::Display> Condition<T> {
    /// Returns the binding strength. A condition that binds less tightly than its context requires is printed in
    /// parentheses.
    fn strength(&self) -> u8 {
        match self {
            Self::Any(_) => 0,
            Self::All(_) => 1,
            Self::Not(_) | Self::One(_) => 2,
        }
    }

    fn write(&self, f: &mut fmt::Formatter<'_>, surroundings: u8) -> fmt::Result {
        if self.strength() < surroundings {
            f.write_str("(")?;
            self.write(f, 0)?;
            return f.write_str(")");
        }
        let (conditions, keyword) = match self {
            Self::One(part) => return part.fmt(f),
            Self::Not(condition) => {
                f.write_str("NOT ")?;
                return condition.write(f, 2);
            }
            Self::All(conditions) => (conditions, " AND "),
            Self::Any(conditions) => (conditions, " OR "),
        };
        for (i, condition) in conditions.iter().enumerate() {
            f.write_str(if i > 0 { keyword } else { "" })?;
            condition.write(f, self.strength() + 1)?;
        }
        Ok(())
    }
}

impl<T: fmt::Display> fmt::Display for Condition<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.write(f, 0)
    }
}

#[cfg(test)]
pub(super) mod strategy {
    use proptest::prelude::*;

    use super::Condition;

    /// Generates conditions in normal form over such parts, three levels deep.
    pub fn of<T: Clone + std::fmt::Debug + 'static>(
        part: impl Strategy<Value = T> + 'static,
    ) -> impl Strategy<Value = Condition<T>> {
        part.prop_map(Condition::One).prop_recursive(3, 12, 3, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 1..4).prop_map(Condition::all),
                prop::collection::vec(inner.clone(), 1..4).prop_map(Condition::any),
                inner.prop_map(|condition| Condition::Not(Box::new(condition))),
            ]
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(name: &'static str) -> Condition<&'static str> {
        Condition::One(name)
    }

    #[test]
    fn conditions_are_flattened_and_printed_with_minimal_parentheses() {
        let both = Condition::all(vec![one("a"), one("b")]);
        let three = Condition::all(vec![both.clone(), one("c")]);
        assert_eq!(three, Condition::All(vec![one("a"), one("b"), one("c")]));
        assert_eq!(Condition::any(vec![one("a")]), one("a"));
        let either = Condition::any(vec![both, Condition::Not(Box::new(one("c")))]);
        assert_eq!(either.to_string(), "a AND b OR NOT c");
        let all = Condition::all(vec![either.clone(), one("d")]);
        assert_eq!(all.to_string(), "(a AND b OR NOT c) AND d");
        assert_eq!(Condition::Not(Box::new(either)).to_string(), "NOT (a AND b OR NOT c)");
    }

    #[test]
    fn conditions_are_evaluated_with_short_circuit() {
        let either = Condition::any(vec![Condition::all(vec![one("no"), one("x")]), one("yes"), one("y")]);
        let mut asked = Vec::new();
        let holds = either.holds(&mut |part| {
            asked.push(*part);
            Ok::<_, ()>(*part == "yes")
        });
        assert_eq!((holds, asked), (Ok(true), vec!["no", "yes"]));
    }
}
