//! The parser of filters: the text after WHERE.

use super::SyntaxError;
use super::condition;
use super::words::{Shape, Word, Words};
use crate::board::condition::Condition;
use crate::board::filter::{Ask, Literal, Test};
use crate::board::{Comparison, Filter, number};

const COMPARISONS: &str = "=, !=, <, <=, >, >=, IN or NOT IN";

/// Parses a filter, after WHERE has been taken.
pub(super) fn filter(words: &mut Words<'_>) -> Result<Filter, SyntaxError> {
    condition::any(words, primary, None).map(Filter::new)
}

fn primary(words: &mut Words<'_>) -> Result<Condition<Test>, SyntaxError> {
    if words.peek().is("(") {
        words.enter()?;
        let inner = condition::any(words, primary, None)?;
        words.require(")", "AND, OR or ')'")?;
        words.leave();
        return Ok(inner);
    }
    let field = words.field("a field to test")?;
    let word = words.next();
    let ask = if let Some(comparison) = comparison(&word) {
        let place = words.peek();
        let with = literal(words)?;
        if comparison.needs_order() && matches!(with, Literal::Bool(_)) {
            return Err(words.wrong(&place, "a 'text' or a number, which have an order"));
        }
        Ask::Compare { comparison, with }
    } else if word.is("IN") {
        Ask::Among { negated: false, literals: literals(words)? }
    } else if word.is("NOT") {
        words.require("IN", "IN")?;
        Ask::Among { negated: true, literals: literals(words)? }
    } else {
        return Err(words.wrong(&word, COMPARISONS));
    };
    Ok(Condition::One(Test { field, ask }))
}

/// Returns the comparison that a word stands for.
pub(super) fn comparison(word: &Word<'_>) -> Option<Comparison> {
    if word.shape == Shape::Symbol { Comparison::of_symbol(word.text) } else { None }
}

fn literals(words: &mut Words<'_>) -> Result<Vec<Literal>, SyntaxError> {
    words.symbol('(')?;
    let mut literals = vec![literal(words)?];
    while words.take(",") {
        literals.push(literal(words)?);
    }
    words.require(")", "',' or ')'")?;
    Ok(literals)
}

fn literal(words: &mut Words<'_>) -> Result<Literal, SyntaxError> {
    let negative = words.take("-");
    let word = words.next();
    let literal = match word.shape {
        Shape::Number => number(&word, negative).map(Literal::Number),
        Shape::Text if !negative => Some(Literal::Text(text(&word))),
        Shape::Name if !negative => truth(&word).map(Literal::Bool),
        _ => None,
    };
    let expected = if negative { "a number" } else { "a 'text', a number, true or false" };
    literal.ok_or_else(|| words.wrong(&word, expected))
}

/// Returns the number that a word stands for, in canonical form.
pub(super) fn number(word: &Word<'_>, negative: bool) -> Option<Box<str>> {
    if negative { number::canonical(&format!("-{}", word.text)) } else { number::canonical(word.text) }
}

/// Returns the text between the quotes.
pub(super) fn text(word: &Word<'_>) -> Box<str> {
    let inner = word.text.strip_prefix('\'').and_then(|rest| rest.strip_suffix('\'')).unwrap_or(word.text);
    inner.replace("''", "'").into()
}

/// Returns the boolean that a word stands for.
pub(super) fn truth(word: &Word<'_>) -> Option<bool> {
    match word {
        _ if word.is("TRUE") => Some(true),
        _ if word.is("FALSE") => Some(false),
        _ => None,
    }
}
