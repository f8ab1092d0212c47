//! The language of metrics (a function of events over a window, per subject) and of rules about their values.
//!
//! ```text
//! metric     = alone [ "WHERE" filter ] ;                 (* the filter after it only where it has none inside *)
//! alone      = "COUNT" "(" window "," events "," subject [ "WHERE" filter ] ")"
//!            | "SUM" "(" window "," ( event "," field | terms ) "," subject [ "WHERE" filter ] ")"
//!            | ( "AVG" | "MIN" | "MAX" | "LAST" )
//!              "(" window "," ( event "," field | fields ) "," subject [ "WHERE" filter ] ")"
//!            | ( "COUNT_DISTINCT" | "APPROX_COUNT_DISTINCT" )
//!              "(" window "," events "," subject "," key [ "WHERE" filter ] ")" ;
//! events     = event { "+" event } ;                                     (* of these three 16 at most, all different *)
//! fields     = event ":" field { "+" event ":" field } ;                             (* and each event once *)
//! terms      = weighted { ( "+" | "-" ) weighted } ;                                 (* and "SUM" of one needs "*" or ":" *)
//! weighted   = event [ ":" field ] [ "*" [ "-" ] number ] ;                              (* not 0, 9 decimals at most *)
//! subject    = key [ "BY" key ] ;
//! key        = part | "(" part "," part { "," part } ")" ;                               (* 8 parts at most *)
//! part       = field | "prefix" "(" field "," bits ")" ;                                 (* 1 to 128 bits *)
//!
//! filter     = both { "OR" both } ;
//! both       = test { "AND" test } ;
//! test       = "NOT" test | "(" filter ")" | field comparison literal
//!            | field [ "NOT" ] "IN" "(" literal { "," literal } ")" ;
//! comparison = "=" | "!=" | "<>" | "<" | "<=" | ">" | ">=" ;
//! literal    = [ "-" ] number | text | "true" | "false" ;                                (* the latter: = and != *)
//!
//! rule       = all { "OR" all } ;
//! all        = condition { "AND" condition } ;
//! condition  = "NOT" condition | "(" rule ")" | side comparison side ;
//! side       = term { ( "+" | "-" ) term } ;
//! term       = factor { ( "*" | "/" ) factor } ;
//! factor     = "-" factor | "(" side ")" | alone | field | literal ;                     (* no sums of texts *)
//!
//! window     = "all" | whole number from 1, then "s" | "m" | "h" | "d" | "w" | "mo" | "y" ;
//! event, field = letter or "_", then letters, digits, "_", "-", "." ;                    (* 64 at most *)
//! number     = digits [ "." digits ] [ "e" [ "+" | "-" ] digits ] ;
//! text       = "'" { any character, a quote as "''" } "'" ;
//! ```
//!
//! Keywords and functions may be in upper or lower case. Spaces are allowed anywhere. Inside conditions the keywords
//! `AND`, `OR`, `NOT`, `IN`, `WHERE`, `TRUE` and `FALSE` cannot name fields. A name may contain `-`, so a minus sign
//! after a name needs a space before it. A text has at most 4,096 bytes and 32 levels of nesting.
//!
//! A parsed metric or rule prints in canonical form: keywords in capitals, the filter inside the parentheses, one space
//! where spaces are allowed, no redundant parentheses, `!=` for `<>`, the shortest form of a number. The canonical form
//! parses to the same value.

mod condition;
mod filter;
#[cfg(test)]
mod fuzz;
mod key;
mod metric;
mod rule;
mod words;

use std::fmt;

pub use self::words::SyntaxError;
use self::words::Words;

/// The longest text, in bytes.
const MAX_BYTES: usize = 4_096;

/// The reason why a text is not a metric.
pub type MetricError = SyntaxError;

/// Returns whether a text is the name of a field, or the type of an event.
pub(super) fn is_name(text: &str) -> bool {
    let mut words = Words::new(text);
    words.name("").is_ok_and(|name| *name == *text)
}

/// Parses a whole text. The canonical form has the same limit in bytes as the text, so that it can be parsed again.
fn read<T: fmt::Display>(
    text: &str,
    parse: impl FnOnce(&mut Words<'_>) -> Result<T, SyntaxError>,
) -> Result<T, SyntaxError> {
    let too_long = |bytes: usize, column: usize, form: &str| SyntaxError {
        expected: format!("at most {MAX_BYTES} bytes{form}"),
        found: format!("{bytes}"),
        column,
    };
    if text.len() > MAX_BYTES {
        let whole = text.char_indices().take_while(|(start, c)| start + c.len_utf8() <= MAX_BYTES).count();
        return Err(too_long(text.len(), whole + 1, ""));
    }
    let parsed = parse(&mut Words::new(text))?;
    let canonical = parsed.to_string().len();
    if canonical > MAX_BYTES { Err(too_long(canonical, 1, " in its canonical form")) } else { Ok(parsed) }
}
