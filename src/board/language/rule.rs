//! The parser of rules, such as `COUNT(30m, login, device_id) > 3 AND amount >= 100`.

use std::str::FromStr;

use super::condition;
use super::filter::{comparison, number, text, truth};
use super::words::{Shape, Word, Words};
use super::{SyntaxError, metric};
use crate::board::Rule;
use crate::board::condition::Condition;
use crate::board::rule::{Arithmetic, Compare, Expression, Type};

const A_COMPARISON: &str = "a comparison (=, !=, <, <=, > or >=)";
const A_SIDE: &str = "a metric, a field, a number, a 'text', true or false";
const AN_OPERAND: &str = "a metric, a field or a number";

/// The content of parentheses. `(a + b) > 3` and `(a > 3 AND b > 3)` begin in the same way, so it is known only after
/// parsing.
enum Either {
    Condition(Condition<Compare>),
    Value(Expression),
}

impl FromStr for Rule {
    type Err = SyntaxError;

    /// Parses a rule. O(length). See [the grammar](super).
    fn from_str(text: &str) -> Result<Self, SyntaxError> {
        super::read(text, |words| {
            let rule = condition::any(words, primary, None)?;
            words.end("AND, OR or the end")?;
            Ok(Rule::new(rule))
        })
    }
}

/// Parses a comparison, or a rule in parentheses.
fn primary(words: &mut Words<'_>) -> Result<Condition<Compare>, SyntaxError> {
    let place = words.peek();
    match opening(words)? {
        Either::Condition(condition) => Ok(condition),
        Either::Value(first) => {
            let left = sum(words, first, &place)?;
            compare(words, left, &place)
        }
    }
}

/// Parses the beginning of a comparison or of a rule: a factor, or parentheses around a side or a rule.
fn opening(words: &mut Words<'_>) -> Result<Either, SyntaxError> {
    if !words.peek().is("(") {
        return factor(words).map(Either::Value);
    }
    words.enter()?;
    let inner = inside(words)?;
    words.require(")", "AND, OR or ')'")?;
    words.leave();
    Ok(inner)
}

/// Parses the content of parentheses: a side if the closing parenthesis follows directly, otherwise a rule.
fn inside(words: &mut Words<'_>) -> Result<Either, SyntaxError> {
    let place = words.peek();
    let first = match () {
        () if place.is("NOT") => None,
        () => match opening(words)? {
            Either::Condition(condition) => Some(condition),
            Either::Value(first) => {
                let left = sum(words, first, &place)?;
                if words.peek().is(")") {
                    return Ok(Either::Value(left));
                }
                Some(compare(words, left, &place)?)
            }
        },
    };
    condition::any(words, primary, first).map(Either::Condition)
}

/// Parses the rest of a comparison whose left side begins at `place`.
fn compare(words: &mut Words<'_>, left: Expression, place: &Word<'_>) -> Result<Condition<Compare>, SyntaxError> {
    let word = words.next();
    let comparison = comparison(&word).ok_or_else(|| words.wrong(&word, A_COMPARISON))?;
    let right_place = words.peek();
    let right = value(words)?;
    let types = (left.known_type(), right.known_type());
    if let (Some(expected), Some(found)) = types
        && expected != found
    {
        return Err(words.wrong(&right_place, &expected.to_string()));
    }
    if comparison.needs_order() && (types.0 == Some(Type::Bool) || types.1 == Some(Type::Bool)) {
        let place = if types.0 == Some(Type::Bool) { place } else { &right_place };
        return Err(words.wrong(place, "a 'text' or a number, which have an order"));
    }
    Ok(Condition::One(Compare { left, comparison, right }))
}

/// Parses a side.
fn value(words: &mut Words<'_>) -> Result<Expression, SyntaxError> {
    let place = words.peek();
    let first = factor(words)?;
    sum(words, first, &place)
}

/// Parses the rest of a side whose first factor begins at `place`.
fn sum(words: &mut Words<'_>, first: Expression, place: &Word<'_>) -> Result<Expression, SyntaxError> {
    let first = product(words, first, place)?;
    let mut rest = Vec::new();
    while let Some(operator) = operator(words, 1) {
        let place = words.peek();
        let next = factor(words)?;
        let next = product(words, next, &place)?;
        rest.push((operator, numeric(words, next, &place)?));
    }
    joined(words, first, place, rest)
}

/// Parses the rest of a product whose first factor begins at `place`.
fn product(words: &mut Words<'_>, first: Expression, place: &Word<'_>) -> Result<Expression, SyntaxError> {
    let mut rest = Vec::new();
    while let Some(operator) = operator(words, 2) {
        let place = words.peek();
        let next = factor(words)?;
        rest.push((operator, numeric(words, next, &place)?));
    }
    joined(words, first, place, rest)
}

fn joined(
    words: &Words<'_>,
    first: Expression,
    place: &Word<'_>,
    rest: Vec<(Arithmetic, Expression)>,
) -> Result<Expression, SyntaxError> {
    if rest.is_empty() { Ok(first) } else { Ok(Expression::chain(numeric(words, first, place)?, rest)) }
}

/// Takes the next word if it is an operator of this rank.
fn operator(words: &mut Words<'_>, rank: u8) -> Option<Arithmetic> {
    let operator = Arithmetic::of_symbol(words.peek().text)?;
    (operator.rank() == rank).then(|| {
        words.next();
        operator
    })
}

/// Returns the operand if it can be a number, which arithmetic requires.
fn numeric(words: &Words<'_>, operand: Expression, place: &Word<'_>) -> Result<Expression, SyntaxError> {
    match operand.known_type() {
        None | Some(Type::Number) => Ok(operand),
        Some(Type::Text | Type::Bool) => Err(words.wrong(place, AN_OPERAND)),
    }
}

fn factor(words: &mut Words<'_>) -> Result<Expression, SyntaxError> {
    let word = words.peek();
    if word.is("-") {
        words.enter()?;
        let place = words.peek();
        let operand = factor(words)?;
        words.leave();
        return Ok(numeric(words, operand, &place)?.negated());
    }
    if word.is("(") {
        words.enter()?;
        let inner = value(words)?;
        words.require(")", "an operator or ')'")?;
        words.leave();
        return Ok(inner);
    }
    let literal = match word.shape {
        Shape::Number => number(&word, false).map(Expression::Number),
        Shape::Text => Some(Expression::Text(text(&word))),
        _ => truth(&word).map(Expression::Bool),
    };
    match literal {
        Some(literal) => {
            words.next();
            Ok(literal)
        }
        None if word.shape == Shape::Name && !word.is_reserved() && words.is_call() => {
            let metric = metric::metric(words)?;
            let behind = words.peek();
            if behind.is("WHERE") {
                return Err(words.wrong(&behind, "WHERE inside the parentheses of its metric"));
            }
            Ok(Expression::Metric(Box::new(metric)))
        }
        None if word.shape == Shape::Name => words.field(A_SIDE).map(Expression::Field),
        None => Err(words.wrong(&word, A_SIDE)),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::board::rule::strategy;

    #[test]
    fn rules_are_printed_canonically() {
        for (text, canonical) in [
            (
                "count(30m,login,device_id)>3 and COUNT_DISTINCT(1h,login,device_id,user_id)>=2",
                "COUNT(30m, login, device_id) > 3 AND COUNT_DISTINCT(1h, login, device_id, user_id) >= 2",
            ),
            (
                "SUM(1d,pay,amount,user where c='x')>3*AVG(7d,pay,amount,user)",
                "SUM(1d, pay, amount, user WHERE c = 'x') > 3 * AVG(7d, pay, amount, user)",
            ),
            ("((a)+(b))+c<>(d*(e/f))", "a + b + c != d * (e / f)"),
            ("(a*b)*c -(d -e)<-(f+1)", "a * b * c - (d - e) < -(f + 1)"),
            ("a-b - c-1 = 2-1.50", "a-b - c-1 = 2 - 1.5"),
            ("-(3)<=--x", "-3 <= --x"),
            ("(a=1 and (b=2 and c=3)) or (not(d=4))", "a = 1 AND b = 2 AND c = 3 OR NOT d = 4"),
            ("not (a=1 or b=2) and c='it''s'", "NOT (a = 1 OR b = 2) AND c = 'it''s'"),
            ("((a = TRUE))", "a = true"),
            ("count > sum", "count > sum"),
        ] {
            let rule: Rule = text.parse().unwrap();
            assert_eq!(rule.to_string(), canonical);
            assert_eq!(canonical.parse(), Ok(rule), "{text}");
        }
    }

    #[test]
    fn distinct_metrics_are_listed_in_order() {
        let text = "1 < -SUM(1h, e, v, s) * COUNT(1h, e, s) OR NOT COUNT(1h,e,s) > COUNT(2h, e, s) + x";
        let rule: Rule = text.parse().unwrap();
        let metrics: Vec<_> = rule.metrics().into_iter().map(ToString::to_string).collect();
        assert_eq!(metrics, ["SUM(1h, e, v, s)", "COUNT(1h, e, s)", "COUNT(2h, e, s)"]);
    }

    #[test]
    fn errors_state_the_expected_and_found_token_and_column() {
        let comparison = "a comparison (=, !=, <, <=, > or >=)";
        let side = "a metric, a field, a number, a 'text', true or false";
        let operand = "a metric, a field or a number";
        for (text, error) in [
            ("", format!("{side}, found the end at column 1")),
            ("COUNT(1h, e, s)", format!("{comparison}, found the end at column 16")),
            ("COUNT(likes, e, s) > 3", "a duration or all, found 'likes' at column 7".into()),
            ("MEDIAN(1h, e, s) > 3", format!("{}, found 'MEDIAN' at column 1", metric::a_function())),
            ("COUNT(1h, e, s) => 3", format!("{side}, found '>' at column 18")),
            ("COUNT(1h, e, s) == 3", format!("{side}, found '=' at column 18")),
            ("COUNT(1h, e, s) > ", format!("{side}, found the end at column 19")),
            ("a > 3 4", "AND, OR or the end, found '4' at column 7".into()),
            ("a > 3 > 2", "AND, OR or the end, found '>' at column 7".into()),
            ("a > 3)", "AND, OR or the end, found ')' at column 6".into()),
            ("a AND b > 1", format!("{comparison}, found 'AND' at column 3")),
            ("(a) AND b > 1", format!("{comparison}, found 'AND' at column 5")),
            ("(a > 1 b", "AND, OR or ')', found 'b' at column 8".into()),
            ("(a + 1 b", format!("{comparison}, found 'b' at column 8")),
            ("(a > 1) + 1 > 2", "AND, OR or the end, found '+' at column 9".into()),
            ("1 + (a > 1)", "an operator or ')', found '>' at column 8".into()),
            ("1 > not a", format!("{side}, found 'not' at column 5")),
            ("1 > and (a)", format!("{side}, found 'and' at column 5")),
            ("'a' + 1 > 2", format!("{operand}, found 'a' at column 1")),
            ("1 > 2 * true", format!("{operand}, found 'true' at column 9")),
            ("1 > -'a'", format!("{operand}, found 'a' at column 6")),
            ("'a' = 1", "a text, found '1' at column 7".into()),
            ("COUNT(1h, e, s) = 'a'", "a number, found 'a' at column 19".into()),
            ("1 = true", "a number, found 'true' at column 5".into()),
            ("a > true", "a 'text' or a number, which have an order, found 'true' at column 5".into()),
            ("true > a", "a 'text' or a number, which have an order, found 'true' at column 1".into()),
            ("a = 1e999", format!("{side}, found '1e999' at column 5")),
            ("a = 30m", format!("{side}, found '30m' at column 5")),
            (
                "COUNT(1h, e, s) WHERE a = 1 > 3",
                "WHERE inside the parentheses of its metric, found 'WHERE' at column 17".into(),
            ),
            ("COUNT(1h, e, s WHERE a = 1 > 3", "AND, OR or ')', found '>' at column 28".into()),
        ] {
            assert_eq!(text.parse::<Rule>().unwrap_err().to_string(), format!("expected {error}"), "{text}");
        }
    }

    #[test]
    fn length_and_nesting_are_bounded() {
        let nested = |open: &str, levels: usize, close: &str| {
            format!("{}a{} > 1", open.repeat(levels), close.repeat(levels)).parse::<Rule>().is_ok()
        };
        assert!(nested("(", 32, ")") && nested("-", 32, ""));
        assert!(!nested("(", 33, ")") && !nested("-", 33, "") && !nested("(-", 17, ")") && !nested("(", 4_000, ""));
        let long = format!("a{} > 1{}", " + a".repeat(500), " AND a > 1".repeat(200));
        assert!(long.parse::<Rule>().unwrap().to_string() == long);
        assert!(format!("{long} AND {}", "a".repeat(64)).parse::<Rule>().is_err());
    }

    proptest! {
        #[test]
        fn canonical_form_round_trips(rule in strategy::rule()) {
            let text = rule.to_string();
            prop_assume!(text.len() <= 4_096);
            prop_assert_eq!(text.parse::<Rule>(), Ok(rule));
        }

        #[test]
        fn arbitrary_text_does_not_panic(text in "\\PC{0,60}") {
            let _ = text.parse::<Rule>();
        }
    }
}
