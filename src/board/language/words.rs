//! The tokenizer of the metric language.

/// The longest event type or field name, in bytes.
const MAX_NAME_BYTES: usize = 64;

/// The deepest nesting of parentheses, NOT and signs. Without a limit, a text could overflow the stack.
const MAX_NESTING: u32 = 32;

/// The keywords of conditions, which cannot name fields there.
const RESERVED: [&str; 7] = ["AND", "OR", "NOT", "IN", "WHERE", "TRUE", "FALSE"];

/// A syntax error: what was expected, what was found instead, and at which column (in characters, from 1).
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected {expected}, found {found} at column {column}")]
pub struct SyntaxError {
    pub expected: String,
    pub found: String,
    pub column: usize,
}

/// The kind of a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shape {
    /// A letter or `_`, then letters, digits, `_`, `-`, `.`.
    Name,
    /// A word that begins with a digit: a number, a duration, or neither.
    Number,
    /// `'text'`, including its quotes.
    Text,
    /// A text whose closing quote is missing.
    Unclosed,
    /// Anything else: a single character, or a comparison of two characters.
    Symbol,
    /// The end of the text.
    End,
}

/// One word and its position.
#[derive(Clone, Copy, Debug)]
pub(super) struct Word<'a> {
    pub text: &'a str,
    pub shape: Shape,
    /// The position of its first byte.
    start: usize,
}

impl Word<'_> {
    /// Returns whether the word is this symbol or, in upper or lower case, this keyword.
    pub fn is(&self, text: &str) -> bool {
        matches!(self.shape, Shape::Name | Shape::Symbol) && self.text.eq_ignore_ascii_case(text)
    }

    /// Returns whether the word is a keyword, which cannot name a field inside conditions.
    pub fn is_reserved(&self) -> bool {
        RESERVED.iter().any(|keyword| self.is(keyword))
    }
}

/// A cursor over the words of a text.
pub(super) struct Words<'a> {
    text: &'a str,
    at: usize,
    nesting: u32,
}

impl<'a> Words<'a> {
    pub fn new(text: &'a str) -> Self {
        Self { text, at: 0, nesting: 0 }
    }

    /// Returns the next word without taking it.
    pub fn peek(&self) -> Word<'a> {
        let rest = &self.text[self.at..];
        let rest = rest.trim_start();
        let start = self.text.len() - rest.len();
        let (shape, length) = cut(rest);
        Word { text: &rest[..length], shape, start }
    }

    /// Takes the next word.
    pub fn next(&mut self) -> Word<'a> {
        let word = self.peek();
        self.at = word.start + word.text.len();
        word
    }

    /// Returns whether a parenthesis opens directly after the next word.
    pub fn is_call(&self) -> bool {
        let word = self.peek();
        let behind = &self.text[word.start + word.text.len()..];
        behind.trim_start().starts_with('(')
    }

    /// Takes the next word if it is this symbol or keyword, and returns whether it was.
    pub fn take(&mut self, text: &str) -> bool {
        let found = self.peek().is(text);
        if found {
            self.next();
        }
        found
    }

    /// Takes the next word, which must be this symbol or keyword. The error names `expected` as what was allowed.
    pub fn require(&mut self, text: &str, expected: &str) -> Result<(), SyntaxError> {
        let word = self.next();
        if word.is(text) { Ok(()) } else { Err(self.wrong(&word, expected)) }
    }

    /// Takes the next word, which must be this symbol.
    pub fn symbol(&mut self, symbol: char) -> Result<(), SyntaxError> {
        let mut buffer = [0; 4];
        self.require(symbol.encode_utf8(&mut buffer), &format!("'{symbol}'"))
    }

    /// Takes a name. `what` describes it in errors.
    pub fn name(&mut self, what: &str) -> Result<Box<str>, SyntaxError> {
        let word = self.next();
        match word.shape {
            Shape::Name if word.text.len() <= MAX_NAME_BYTES => Ok(word.text.into()),
            Shape::Name | Shape::Number => Err(self.wrong(
                &word,
                &format!("{what} (a letter or '_', then letters, digits, '_', '-' or '.', {MAX_NAME_BYTES} at most)"),
            )),
            _ => Err(self.wrong(&word, what)),
        }
    }

    /// Takes a field's name inside a condition, where keywords are not names.
    pub fn field(&mut self, what: &str) -> Result<Box<str>, SyntaxError> {
        let word = self.peek();
        if word.is_reserved() { Err(self.wrong(&word, what)) } else { self.name(what) }
    }

    /// Checks that the text ends here. The error names `expected` as what was allowed.
    pub fn end(&mut self, expected: &str) -> Result<(), SyntaxError> {
        let word = self.next();
        if word.shape == Shape::End { Ok(()) } else { Err(self.wrong(&word, expected)) }
    }

    /// Takes the next word, which opens a level of nesting. [`leave`](Self::leave) closes the level.
    pub fn enter(&mut self) -> Result<(), SyntaxError> {
        let word = self.next();
        if self.nesting == MAX_NESTING {
            return Err(self.wrong(&word, &format!("at most {MAX_NESTING} levels of nesting")));
        }
        self.nesting += 1;
        Ok(())
    }

    /// Closes a level of nesting.
    pub fn leave(&mut self) {
        self.nesting -= 1;
    }

    /// Returns the error that `expected` was expected instead of `word`.
    pub fn wrong(&self, word: &Word<'_>, expected: &str) -> SyntaxError {
        let cut = || word.text.chars().take(40).collect::<String>();
        let (start, expected, found) = match word.shape {
            Shape::End => (word.start, expected, "the end".to_owned()),
            Shape::Unclosed => (self.text.len(), "a closing '", "the end".to_owned()),
            Shape::Text => (word.start, expected, cut()),
            _ => (word.start, expected, format!("'{}'", cut())),
        };
        let column = self.text[..start].chars().count() + 1;
        SyntaxError { expected: expected.to_owned(), found, column }
    }
}

/// Returns the kind and the length in bytes of the word that `rest` begins with.
fn cut(rest: &str) -> (Shape, usize) {
    let Some(first) = rest.chars().next() else { return (Shape::End, 0) };
    match first {
        'a'..='z' | 'A'..='Z' | '_' => {
            let more = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-' | b'.');
            (Shape::Name, rest.bytes().take_while(|b| more(*b)).count())
        }
        '0'..='9' => (Shape::Number, number_length(rest.as_bytes())),
        '\'' => match text_length(rest) {
            Some(length) => (Shape::Text, length),
            None => (Shape::Unclosed, rest.len()),
        },
        '<' | '>' | '!' if matches!(rest.get(..2), Some("<=" | ">=" | "!=" | "<>")) => (Shape::Symbol, 2),
        other => (Shape::Symbol, other.len_utf8()),
    }
}

/// Returns the length of a word that begins with a digit. A sign belongs to it only in an exponent: `3-1` is a
/// subtraction, `1e-5` is one number.
fn number_length(rest: &[u8]) -> usize {
    let mut length = 0;
    while let Some(byte) = rest.get(length) {
        let in_exponent = || {
            let mantissa = |b: &u8| b.is_ascii_digit() || *b == b'.';
            let (before, after) = (&rest[..length], rest.get(length + 1));
            matches!(before.split_last(), Some((b'e' | b'E', before)) if before.iter().all(mantissa))
                && after.is_some_and(u8::is_ascii_digit)
        };
        match byte {
            b'_' | b'.' => {}
            b'+' | b'-' if in_exponent() => {}
            byte if byte.is_ascii_alphanumeric() => {}
            _ => break,
        }
        length += 1;
    }
    length
}

/// Returns the length of a text up to its closing quote. A doubled quote is part of the text.
fn text_length(rest: &str) -> Option<usize> {
    let mut at = 1;
    loop {
        at += rest[at..].find('\'')? + 1;
        if !rest[at..].starts_with('\'') {
            return Some(at);
        }
        at += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(text: &str) -> Vec<(&str, Shape)> {
        let mut words = Words::new(text);
        std::iter::from_fn(|| {
            let word = words.next();
            (word.shape != Shape::End).then_some((word.text, word.shape))
        })
        .collect()
    }

    #[test]
    fn names_numbers_texts_and_symbols_are_tokenized() {
        use Shape::{Name, Number, Symbol, Text, Unclosed};
        assert_eq!(all(" a-b.c_1 - 2 "), [("a-b.c_1", Name), ("-", Symbol), ("2", Number)]);
        assert_eq!(
            all("3-1e-5+2e+"),
            [("3", Number), ("-", Symbol), ("1e-5", Number), ("+", Symbol), ("2e", Number), ("+", Symbol)]
        );
        assert_eq!(all("'it''s'''x''"), [("'it''s'''", Text), ("x", Name), ("''", Text)]);
        assert_eq!(all("<>=<=!=="), [("<>", Symbol), ("=", Symbol), ("<=", Symbol), ("!=", Symbol), ("=", Symbol)]);
        assert_eq!(all("é<é 'é"), [("é", Symbol), ("<", Symbol), ("é", Symbol), ("'é", Unclosed)]);
    }
}
