//! The parser of keys: a field, `prefix(ip, 24)`, or several of them in parentheses.

use super::SyntaxError;
use super::words::Words;
use crate::board::Key;

/// The largest number of parts of a key. A longer composite would hardly fit into a subject.
const MAX_PARTS: usize = 8;

/// Parses a key. `what` describes it in errors.
pub(super) fn key(words: &mut Words<'_>, what: &str) -> Result<Key, SyntaxError> {
    if !words.take("(") {
        return part(words, what);
    }
    let mut parts = vec![part(words, "a field or prefix(…)")?];
    words.symbol(',')?;
    loop {
        parts.push(part(words, "a field or prefix(…)")?);
        let word = words.next();
        if word.is(")") {
            return Ok(Key::Tuple(parts));
        }
        if !word.is(",") {
            return Err(words.wrong(&word, "',' or ')'"));
        }
        if parts.len() == MAX_PARTS {
            return Err(words.wrong(&word, &format!("')', because there may be at most {MAX_PARTS} parts")));
        }
    }
}

fn part(words: &mut Words<'_>, what: &str) -> Result<Key, SyntaxError> {
    let is_prefix = words.peek().is("prefix");
    let field = words.name(what)?;
    if !(is_prefix && words.take("(")) {
        return Ok(Key::Field(field));
    }
    let field = words.name("the field with an IP address")?;
    words.symbol(',')?;
    let word = words.next();
    let bits = word.text.parse().ok().filter(|bits| (1..=128).contains(bits));
    let bits = bits.ok_or_else(|| words.wrong(&word, "a number of bits from 1 to 128"))?;
    words.symbol(')')?;
    Ok(Key::Prefix { field, bits })
}
