//! The metric language: what is counted, over which window, for which subject.
//!
//! ```text
//! metric = "COUNT" "(" window "," event "," subject ")"
//!        | "SUM"   "(" window "," event "," value "," subject ")"
//! ```
//!
//! Keywords in any case; spaces anywhere. [`Metric`] prints the canonical form, which reads back as itself.

use std::fmt;
use std::str::FromStr;

use super::{Change, Decimals, Event, FieldFault, Filter, Key, Kind, Span, Subject};

/// What is done with the events of one subject.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Aggregate {
    /// How many events.
    Count,
    /// The sum of a numeric field.
    Sum { value: Box<str> },
    /// The mean of a numeric field.
    Avg { value: Box<str> },
    /// The least value of a numeric field.
    Min { value: Box<str> },
    /// The greatest value of a numeric field.
    Max { value: Box<str> },
    /// How many different values, exactly.
    CountDistinct { counted: Key },
    /// How many different values, about: see [`Sketch`](super::Sketch).
    ApproxCountDistinct { counted: Key },
}

impl Aggregate {
    /// How the slots of such a metric combine.
    pub fn kind(&self) -> Kind {
        match self {
            Aggregate::Count | Aggregate::Sum { .. } => Kind::Sum,
            Aggregate::Avg { .. } => Kind::Mean,
            Aggregate::Min { .. } => Kind::Min,
            Aggregate::Max { .. } => Kind::Max,
            Aggregate::CountDistinct { .. } => Kind::Distinct,
            Aggregate::ApproxCountDistinct { .. } => Kind::Sketch,
        }
    }
}

/// A metric: an aggregate over a window, of the events of one type, per subject.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Metric {
    pub aggregate: Aggregate,
    /// How far the window reaches back.
    pub window: Span,
    /// The type of the events that count.
    pub event: Box<str>,
    /// What of an event names the subject.
    pub subject: Key,
    /// Which events of the type count; all if absent.
    pub filter: Option<Filter>,
}

impl Metric {
    /// What an event does to a board of this metric: to whom, and what. `None` if it is not for this board (another
    /// type, or filtered out). O(fields of the metric x fields of the event).
    pub fn contribution(&self, event: &Event, decimals: Decimals) -> Result<Option<(Subject, Change)>, FieldFault> {
        let _ = (event, decimals);
        unimplemented!("helper A")
    }
}

/// What was expected, what stood there instead, and at which column (from 1).
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected {expected}, found {found} at column {column}")]
pub struct MetricError {
    pub expected: String,
    pub found: String,
    pub column: usize,
}

/// The longest event type or field name, in bytes.
const MOST_NAME_BYTES: usize = 64;

impl FromStr for Metric {
    type Err = MetricError;

    fn from_str(text: &str) -> Result<Self, MetricError> {
        let mut words = Words { text, at: 0 };
        let function = words.word("COUNT or SUM")?;
        let keyword = function.text.to_ascii_uppercase();
        if !["COUNT", "SUM", "AVG", "MIN", "MAX", "COUNT_DISTINCT", "APPROX_COUNT_DISTINCT"].contains(&&*keyword) {
            return Err(function.unexpected("COUNT or SUM"));
        }
        words.symbol('(')?;
        let window = words.word("a duration such as 24h")?;
        let window: Span = window.text.parse().map_err(|_| window.unexpected("a duration such as 24h"))?;
        words.symbol(',')?;
        let event = words.name("the type of an event")?;
        words.symbol(',')?;
        let mut value = None;
        if ["SUM", "AVG", "MIN", "MAX"].contains(&&*keyword) {
            value = Some(words.name("the field to add up")?);
            words.symbol(',')?;
        }
        let subject = Key::Field(words.name("the field that names the subject")?);
        let aggregate = match (&*keyword, value) {
            ("SUM", Some(value)) => Aggregate::Sum { value },
            ("AVG", Some(value)) => Aggregate::Avg { value },
            ("MIN", Some(value)) => Aggregate::Min { value },
            ("MAX", Some(value)) => Aggregate::Max { value },
            ("COUNT", _) => Aggregate::Count,
            (keyword, _) => {
                words.symbol(',')?;
                let counted = Key::Field(words.name("the field to count")?);
                match keyword {
                    "COUNT_DISTINCT" => Aggregate::CountDistinct { counted },
                    _ => Aggregate::ApproxCountDistinct { counted },
                }
            }
        };
        words.symbol(')')?;
        words.end()?;
        Ok(Metric { aggregate, window, event, subject, filter: None })
    }
}

impl fmt::Display for Metric {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Metric { aggregate, window, event, subject, .. } = self;
        match aggregate {
            Aggregate::Count => write!(f, "COUNT({window}, {event}, {subject})"),
            Aggregate::Sum { value } => write!(f, "SUM({window}, {event}, {value}, {subject})"),
            Aggregate::Avg { value } => write!(f, "AVG({window}, {event}, {value}, {subject})"),
            Aggregate::Min { value } => write!(f, "MIN({window}, {event}, {value}, {subject})"),
            Aggregate::Max { value } => write!(f, "MAX({window}, {event}, {value}, {subject})"),
            Aggregate::CountDistinct { counted } => {
                write!(f, "COUNT_DISTINCT({window}, {event}, {subject}, {counted})")
            }
            Aggregate::ApproxCountDistinct { counted } => {
                write!(f, "APPROX_COUNT_DISTINCT({window}, {event}, {subject}, {counted})")
            }
        }
    }
}

struct Words<'a> {
    text: &'a str,
    at: usize,
}

/// A run of name characters, or one other character, or (empty) the end.
struct Word<'a> {
    text: &'a str,
    column: usize,
}

impl Word<'_> {
    fn unexpected(&self, expected: &str) -> MetricError {
        let found = if self.text.is_empty() {
            "the end".to_owned()
        } else {
            format!("'{}'", self.text.chars().take(40).collect::<String>())
        };
        MetricError { expected: expected.to_owned(), found, column: self.column }
    }

    fn is_name(&self) -> bool {
        self.text.starts_with(is_name_character)
    }
}

fn is_name_character(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.')
}

impl<'a> Words<'a> {
    fn next(&mut self) -> Word<'a> {
        let rest = &self.text[self.at..];
        let trimmed = rest.trim_start();
        let start = self.at + rest.len() - trimmed.len();
        let length = match trimmed.find(|c| !is_name_character(c)) {
            Some(0) => trimmed.chars().next().map_or(0, char::len_utf8),
            Some(end) => end,
            None => trimmed.len(),
        };
        self.at = start + length;
        Word { text: &trimmed[..length], column: self.text[..start].chars().count() + 1 }
    }

    fn word(&mut self, expected: &str) -> Result<Word<'a>, MetricError> {
        let word = self.next();
        if word.is_name() { Ok(word) } else { Err(word.unexpected(expected)) }
    }

    fn name(&mut self, expected: &str) -> Result<Box<str>, MetricError> {
        let word = self.word(expected)?;
        let sound =
            word.text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_') && word.text.len() <= MOST_NAME_BYTES;
        if sound {
            Ok(word.text.into())
        } else {
            Err(word.unexpected(&format!(
                "{expected} (a letter or '_', then letters, digits, '_', '-' or '.', {MOST_NAME_BYTES} at most)"
            )))
        }
    }

    fn symbol(&mut self, symbol: char) -> Result<(), MetricError> {
        let word = self.next();
        if word.text.chars().eq([symbol]) { Ok(()) } else { Err(word.unexpected(&format!("'{symbol}'"))) }
    }

    fn end(&mut self) -> Result<(), MetricError> {
        let word = self.next();
        if word.text.is_empty() { Ok(()) } else { Err(word.unexpected("the end")) }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn reads_both_functions_and_prints_canonically() {
        for (text, canonical) in [
            ("COUNT(24h, like, post_id)", "COUNT(24h, like, post_id)"),
            (" count ( 7d ,like,post_id ) ", "COUNT(7d, like, post_id)"),
            ("Sum(7d, sale, amount, seller_id)", "SUM(7d, sale, amount, seller_id)"),
            ("SUM(1mo,a.b-c,_v,x)", "SUM(1mo, a.b-c, _v, x)"),
        ] {
            assert_eq!(text.parse::<Metric>().unwrap().to_string(), canonical);
        }
    }

    #[test]
    fn errors_say_what_where_and_what_instead() {
        for (text, error) in [
            ("", "expected COUNT or SUM, found the end at column 1"),
            ("TOTAL(1h, a, b)", "expected COUNT or SUM, found 'TOTAL' at column 1"),
            ("COUNT 24h", "expected '(', found '24h' at column 7"),
            ("COUNT(likes, 24h, post)", "expected a duration such as 24h, found 'likes' at column 7"),
            ("COUNT(24h like, post)", "expected ',', found 'like' at column 11"),
            ("COUNT(24h, like)", "expected ',', found ')' at column 16"),
            ("COUNT(24h, like, post", "expected ')', found the end at column 22"),
            ("COUNT(24h, like, post) x", "expected the end, found 'x' at column 24"),
            ("COUNT(24h, é, post)", "expected the type of an event, found 'é' at column 12"),
            ("SUM(24h, like, post)", "expected ',', found ')' at column 20"),
        ] {
            assert_eq!(text.parse::<Metric>().unwrap_err().to_string(), error, "{text}");
        }
        assert!("COUNT(24h, 1like, post)".parse::<Metric>().is_err());
        assert!(format!("COUNT(24h, {}, post)", "a".repeat(65)).parse::<Metric>().is_err());
    }

    proptest! {
        #[test]
        fn canonical_form_reads_back(
            sum in any::<bool>(),
            window in "[1-9][0-9]{0,3}(s|m|h|d|w|mo)",
            names in prop::array::uniform3("[A-Za-z_][A-Za-z0-9_.-]{0,20}"),
        ) {
            let [event, value, subject] = names.map(String::into_boxed_str);
            let aggregate = if sum { Aggregate::Sum { value } } else { Aggregate::Count };
            let subject = Key::Field(subject);
            let metric = Metric { aggregate, window: window.parse().unwrap(), event, subject, filter: None };
            prop_assert_eq!(metric.to_string().parse::<Metric>(), Ok(metric));
        }

        #[test]
        fn no_text_panics(text in "\\PC{0,60}") {
            let _ = text.parse::<Metric>();
        }
    }
}
