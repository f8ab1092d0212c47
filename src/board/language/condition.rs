//! The parser of AND, OR and NOT, shared by filters and rules.

use super::SyntaxError;
use super::words::Words;
use crate::board::condition::Condition;

/// A function that parses one operand of AND, OR and NOT.
pub(super) type Primary<T> = fn(&mut Words<'_>) -> Result<Condition<T>, SyntaxError>;

/// Parses conditions joined by OR. `first` is the first operand, if the caller has parsed it already.
pub(super) fn any<T>(
    words: &mut Words<'_>,
    primary: Primary<T>,
    first: Option<Condition<T>>,
) -> Result<Condition<T>, SyntaxError> {
    let mut conditions = vec![all(words, primary, first)?];
    while words.take("OR") {
        conditions.push(all(words, primary, None)?);
    }
    Ok(Condition::any(conditions))
}

fn all<T>(
    words: &mut Words<'_>,
    primary: Primary<T>,
    first: Option<Condition<T>>,
) -> Result<Condition<T>, SyntaxError> {
    let first = match first {
        Some(first) => first,
        None => negation(words, primary)?,
    };
    let mut conditions = vec![first];
    while words.take("AND") {
        conditions.push(negation(words, primary)?);
    }
    Ok(Condition::all(conditions))
}

fn negation<T>(words: &mut Words<'_>, primary: Primary<T>) -> Result<Condition<T>, SyntaxError> {
    if !words.peek().is("NOT") {
        return primary(words);
    }
    words.enter()?;
    let negated = negation(words, primary)?;
    words.leave();
    Ok(Condition::Not(Box::new(negated)))
}
