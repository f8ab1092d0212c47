//! The parser of metrics, such as `COUNT(24h, like, post_id WHERE channel = 'app')`.

use std::str::FromStr;

use super::words::{Shape, Words};
use super::{SyntaxError, filter, key};
use crate::board::{Function, Key, Metric, Term, Terms, Weight};

/// What stands in a function's parentheses beside the window and the subject.
enum FunctionForm {
    /// The types of events.
    Events,
    /// Terms with weights, or one type and its field.
    Sum,
    /// Types with their fields, or one type and its field. The field is what the function measures.
    Measured(Function),
    /// The types of events and, behind the subject, the key whose values are counted.
    Counted(fn(Key) -> Function),
}

/// The functions, each with its canonical name.
static FUNCTIONS: [(&str, FunctionForm); 8] = [
    ("COUNT", FunctionForm::Events),
    ("SUM", FunctionForm::Sum),
    ("AVG", FunctionForm::Measured(Function::Avg)),
    ("MIN", FunctionForm::Measured(Function::Min)),
    ("MAX", FunctionForm::Measured(Function::Max)),
    ("LAST", FunctionForm::Measured(Function::Last)),
    ("COUNT_DISTINCT", FunctionForm::Counted(|counted| Function::CountDistinct { counted })),
    ("APPROX_COUNT_DISTINCT", FunctionForm::Counted(|counted| Function::ApproxCountDistinct { counted })),
];

impl FunctionForm {
    /// Returns what the field of a term is, for an error message, or `None` if the terms have none.
    fn field(&self) -> Option<&'static str> {
        match self {
            FunctionForm::Sum => Some("the field to add up"),
            FunctionForm::Measured(_) => Some("the field to measure"),
            FunctionForm::Events | FunctionForm::Counted(_) => None,
        }
    }

    fn has_weights(&self) -> bool {
        matches!(self, FunctionForm::Sum)
    }
}

/// Returns the list of functions, for an error message.
pub(super) fn a_function() -> String {
    let [others @ .., last] = FUNCTIONS.each_ref().map(|(name, _)| *name);
    format!("{} or {last}", others.join(", "))
}

impl FromStr for Metric {
    type Err = SyntaxError;

    /// Parses a metric on its own, whose filter may follow the parentheses. O(length). See [the grammar](super).
    fn from_str(text: &str) -> Result<Self, SyntaxError> {
        super::read(text, |words| {
            let mut metric = metric(words)?;
            if metric.filter.is_some() {
                words.end("the end")?;
            } else if words.take("WHERE") {
                metric.filter = Some(filter::filter(words)?);
                words.end("AND, OR or the end")?;
            } else {
                words.end("WHERE or the end")?;
            }
            Ok(metric)
        })
    }
}

/// Parses a metric up to its closing parenthesis.
pub(super) fn metric(words: &mut Words<'_>) -> Result<Metric, SyntaxError> {
    let word = words.next();
    let found = FUNCTIONS.iter().find(|(name, _)| word.is(name));
    let (_, form) = found.ok_or_else(|| words.wrong(&word, &a_function()))?;
    words.symbol('(')?;
    let window = words.next();
    let window = window.text.parse().map_err(|_| words.wrong(&window, "a duration or all"))?;
    words.symbol(',')?;
    let terms = self::terms(words, form)?;
    let next = words.peek();
    match form.field() {
        // What should be the subject was taken for the field.
        Some(_) if next.is(")") => {
            let why = "',' and the field that names the subject (each event counts with COUNT)";
            return Err(words.wrong(&next, why));
        }
        _ => separator(words, form)?,
    }
    let (subject, by) = self::subject(words)?;
    let function = match form {
        FunctionForm::Events | FunctionForm::Sum => Function::Sum,
        FunctionForm::Measured(function) => function.clone(),
        FunctionForm::Counted(function) => {
            words.symbol(',')?;
            function(key::key(words, "the field to count")?)
        }
    };
    let filter = if words.take("WHERE") { Some(filter::filter(words)?) } else { None };
    let expected = match (&by, form) {
        _ if filter.is_some() => "AND, OR or ')'",
        (Some(_), _) => "WHERE or ')'",
        (None, FunctionForm::Counted(_)) => "WHERE or ')' (BY follows the subject)",
        (None, FunctionForm::Sum) if terms.iter().any(|term| term.field.is_none()) => {
            "BY, WHERE or ')' (a field follows its type: a: amount)"
        }
        (None, FunctionForm::Events) if words.peek().is(",") => "BY, WHERE or ')' (several types are like + comment)",
        (None, _) => "BY, WHERE or ')'",
    };
    words.require(")", expected)?;
    Ok(Metric { function, window, terms, subject, by, filter })
}

/// Parses what counts, up to the comma before the subject.
fn terms(words: &mut Words<'_>, form: &FunctionForm) -> Result<Terms, SyntaxError> {
    let mut terms: Vec<Term> = Vec::with_capacity(1);
    let mut is_subtracted = false;
    loop {
        let word = words.peek();
        if terms.len() == Terms::MAX {
            return Err(words.wrong(&word, &format!("',', because there may be at most {} terms", Terms::MAX)));
        }
        let event = words.name("the type of an event")?;
        let field = match form.field() {
            Some(what) if words.take(":") => Some(words.name(what)?),
            // Without a field only a single type is possible, whose field follows.
            Some(what) if terms.is_empty() && is_followed_by_its_field(words, form) => {
                separator(words, form)?;
                let field = Some(words.name(what)?);
                let next = words.peek();
                if form.has_weights() && next.is("*") {
                    let expected = "',' (a weight follows the field of its type: sale: amount*2)";
                    return Err(words.wrong(&next, expected));
                }
                return Ok(Terms::new(vec![Term { event, field, weight: Weight::ONE }]));
            }
            Some(what) if !form.has_weights() => {
                return Err(words.wrong(&words.peek(), &format!("':' and {what}")));
            }
            _ => None,
        };
        let weight = if form.has_weights() && words.take("*") { weight(words)? } else { Weight::ONE };
        let weight = if is_subtracted { -weight } else { weight };
        let is_same = |known: &Term| known.event == event && (!form.has_weights() || known.field == field);
        if terms.iter().any(is_same) {
            let what = if form.has_weights() { "a type and field" } else { "a type" };
            return Err(words.wrong(&word, &format!("{what} that is not listed yet")));
        }
        terms.push(Term { event, field, weight });
        is_subtracted = form.has_weights() && words.take("-");
        if !is_subtracted && !words.take("+") {
            return Ok(Terms::new(terms));
        }
    }
}

/// Returns whether a type stands alone, so that its field follows behind a comma.
fn is_followed_by_its_field(words: &Words<'_>, form: &FunctionForm) -> bool {
    let next = words.peek();
    let begins_terms = |symbols: &[&str]| symbols.iter().any(|symbol| next.is(symbol));
    !begins_terms(if form.has_weights() { &["*", "+", "-"] } else { &["+"] })
}

/// Parses the number behind `*`.
fn weight(words: &mut Words<'_>) -> Result<Weight, SyntaxError> {
    let is_negative = words.take("-");
    let word = words.next();
    let weight = if word.shape == Shape::Number { Weight::parse(word.text) } else { None };
    let weight = weight.ok_or_else(|| {
        let expected = match word.shape {
            Shape::Name => "a number (a field is written type: field)",
            _ => "a number other than 0, with at most 9 decimals and 15 digits",
        };
        words.wrong(&word, expected)
    })?;
    Ok(if is_negative { -weight } else { weight })
}

/// Takes the comma behind what counts.
fn separator(words: &mut Words<'_>, form: &FunctionForm) -> Result<(), SyntaxError> {
    let word = words.next();
    let expected = match word.text {
        "," => return Ok(()),
        "*" | "-" if !form.has_weights() => "'+' or ',' (only SUM has weights)",
        ":" if matches!(form, FunctionForm::Counted(_)) => "'+' or ',' (the field to count follows the subject)",
        ":" => "'+' or ',' (no field: each event counts)",
        _ if word.shape == Shape::Name => "'+' or ','",
        _ => "','",
    };
    Err(words.wrong(&word, expected))
}

/// Parses the key that names the subject and, if there is one, the key after `BY`.
fn subject(words: &mut Words<'_>) -> Result<(Key, Option<Key>), SyntaxError> {
    let subject = key::key(words, "the field that names the subject")?;
    let by = if words.take("BY") { Some(key::key(words, "the field that names the ranking")?) } else { None };
    Ok((subject, by))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::board::metric::strategy;

    #[test]
    fn every_function_is_parsed_and_printed_canonically() {
        for (text, canonical) in [
            ("COUNT(24h, like, post_id)", "COUNT(24h, like, post_id)"),
            (" count ( 7d ,like,post_id ) ", "COUNT(7d, like, post_id)"),
            ("Sum(7d, sale, amount, seller_id)", "SUM(7d, sale, amount, seller_id)"),
            ("count(ALL, all, all)", "COUNT(all, all, all)"),
            ("SUM(1mo,a.b-c,_v,x)", "SUM(1mo, a.b-c, _v, x)"),
            ("avg(1h,e,v,s)", "AVG(1h, e, v, s)"),
            ("min(1h,e,v,s)", "MIN(1h, e, v, s)"),
            ("max(1h,e,v,s)", "MAX(1h, e, v, s)"),
            ("Last(all,rating,elo,player)", "LAST(all, rating, elo, player)"),
            ("count_distinct(1h,e,s,u)", "COUNT_DISTINCT(1h, e, s, u)"),
            ("Approx_Count_Distinct(1h,e,s,u)", "APPROX_COUNT_DISTINCT(1h, e, s, u)"),
            ("COUNT(1h,login,(ip,device_id))", "COUNT(1h, login, (ip, device_id))"),
            ("COUNT(1h,login,PREFIX(ip,024))", "COUNT(1h, login, prefix(ip, 24))"),
            (
                "COUNT_DISTINCT(1h,login,(prefix(ip,24),d),(u,v))",
                "COUNT_DISTINCT(1h, login, (prefix(ip, 24), d), (u, v))",
            ),
            ("COUNT(1h,e,s) where channel='app'", "COUNT(1h, e, s WHERE channel = 'app')"),
            (
                "COUNT(1h,e,s where((a<>1.0))and b in('x',-2,TRUE))",
                "COUNT(1h, e, s WHERE a != 1 AND b IN ('x', -2, true))",
            ),
            (
                "COUNT(1h,e,s) WHERE (a=1 OR b='it''s') AND NOT(c>=1e3 AND d not  in (1))",
                "COUNT(1h, e, s WHERE (a = 1 OR b = 'it''s') AND NOT (c >= 1000 AND d NOT IN (1)))",
            ),
            ("count(1h,e,s by c)", "COUNT(1h, e, s BY c)"),
            (
                "COUNT(1h,e,(s,t)BY(c,prefix(ip,16))WHERE a=1)",
                "COUNT(1h, e, (s, t) BY (c, prefix(ip, 16)) WHERE a = 1)",
            ),
            ("AVG(1h,e,v,s by c) where by=1", "AVG(1h, e, v, s BY c WHERE by = 1)"),
            (
                "count_distinct(24h,like,post_id by community,user_id where app=1)",
                "COUNT_DISTINCT(24h, like, post_id BY community, user_id WHERE app = 1)",
            ),
            ("sum(24h,like*1+comment*3 + share*5,post)", "SUM(24h, comment*3 + like + share*5, post)"),
            ("SUM(24h, like - dislike*2 + spam*-0.50, post)", "SUM(24h, like - dislike*2 - spam*0.5, post)"),
            ("SUM(24h, like - dislike*-2, post)", "SUM(24h, dislike*2 + like, post)"),
            ("SUM(1h, b - a, s)", "SUM(1h, b - a, s)"),
            ("SUM(1h, b*-1 - a*1e-9, s)", "SUM(1h, a*-0.000000001 - b, s)"),
            ("SUM(1h, order*5 + order:amount*0.1, s BY c)", "SUM(1h, order*5 + order: amount*0.1, s BY c)"),
            ("SUM(1h, a-b*2-c, s)", "SUM(1h, a-b*2 - c, s)"),
            ("SUM(1h, like*1, s)", "COUNT(1h, like, s)"),
            ("SUM(1h, like*1.0 + comment, s)", "COUNT(1h, comment + like, s)"),
            ("SUM(1h, like*2, s)", "SUM(1h, like*2, s)"),
            ("SUM(1h, sale: amount, s)", "SUM(1h, sale, amount, s)"),
            ("SUM(1h, sale: amount*1, s)", "SUM(1h, sale, amount, s)"),
            ("SUM(1h, sale: amount*-2, s)", "SUM(1h, sale: amount*-2, s)"),
            ("SUM(1h, sale: amount + order: amount, s)", "SUM(1h, order: amount + sale: amount, s)"),
            ("count(1h, like+comment, s where a = 1)", "COUNT(1h, comment + like, s WHERE a = 1)"),
            ("max(1h, lap: ms, s)", "MAX(1h, lap, ms, s)"),
            ("AVG(1h, rating:stars+review:score, s)", "AVG(1h, rating: stars + review: score, s)"),
            ("count_distinct(1h, like+comment, s, u)", "COUNT_DISTINCT(1h, comment + like, s, u)"),
            // Keywords are names where only names are allowed.
            ("COUNT(1h, by, by by by)", "COUNT(1h, by, by BY by)"),
            ("COUNT_DISTINCT(1h, by, by, by)", "COUNT_DISTINCT(1h, by, by, by)"),
            ("COUNT(1h, where, in)", "COUNT(1h, where, in)"),
            ("SUM(1h, and, prefix, not) WHERE count = 1", "SUM(1h, and, prefix, not WHERE count = 1)"),
        ] {
            let metric: Metric = text.parse().unwrap();
            assert_eq!(metric.to_string(), canonical);
            assert_eq!(canonical.parse(), Ok(metric), "{text}");
        }
    }

    #[test]
    fn every_name_stands_for_the_function_that_it_is_printed_as() {
        for (name, form) in &FUNCTIONS {
            let arguments = match form {
                FunctionForm::Events => "s",
                FunctionForm::Sum | FunctionForm::Measured(_) => "v, s",
                FunctionForm::Counted(_) => "s, c",
            };
            let text = format!("{name}(1h, e, {arguments})");
            assert_eq!(text.parse::<Metric>().map(|metric| metric.to_string()), Ok(text));
        }
    }

    #[test]
    fn errors_state_the_expected_and_found_token_and_column() {
        let functions = "COUNT, SUM, AVG, MIN, MAX, LAST, COUNT_DISTINCT or APPROX_COUNT_DISTINCT";
        let name = "(a letter or '_', then letters, digits, '_', '-' or '.', 64 at most)";
        for (text, error) in [
            ("", format!("{functions}, found the end at column 1")),
            ("TOTAL(1h, a, b)", format!("{functions}, found 'TOTAL' at column 1")),
            ("COUNT 24h", "'(', found '24h' at column 7".into()),
            ("COUNT(likes, 24h, post)", "a duration or all, found 'likes' at column 7".into()),
            ("COUNT(24, like, post)", "a duration or all, found '24' at column 7".into()),
            ("COUNT(24h like, post)", "',', found 'like' at column 11".into()),
            ("COUNT(24h, like)", "',', found ')' at column 16".into()),
            ("COUNT(24h, like, post", "BY, WHERE or ')', found the end at column 22".into()),
            (
                "COUNT(24h, like, a, b)",
                "BY, WHERE or ')' (several types are like + comment), found ',' at column 19".into(),
            ),
            ("COUNT(24h, like, post GROUP BY a)", "BY, WHERE or ')', found 'GROUP' at column 23".into()),
            ("COUNT(24h, like, post BY a, b)", "WHERE or ')', found ',' at column 27".into()),
            (
                "COUNT_DISTINCT(1h, login, device, user BY a)",
                "WHERE or ')' (BY follows the subject), found 'BY' at column 40".into(),
            ),
            ("COUNT(24h, like, post) x", "WHERE or the end, found 'x' at column 24".into()),
            ("COUNT(24h, é, post)", "the type of an event, found 'é' at column 12".into()),
            ("COUNT(24h, 1like, post)", format!("the type of an event {name}, found '1like' at column 12")),
            (
                "SUM(24h, like, post)",
                "',' and the field that names the subject (each event counts with COUNT), found ')' at column 20"
                    .into(),
            ),
            ("COUNT_DISTINCT(24h, like, post)", "',', found ')' at column 31".into()),
            ("MAX(24h, lap, , driver)", "the field to measure, found ',' at column 15".into()),
            ("COUNT(1h, like*2, post)", "'+' or ',' (only SUM has weights), found '*' at column 15".into()),
            ("COUNT(1h, like - spam, post)", "'+' or ',' (only SUM has weights), found '-' at column 16".into()),
            ("COUNT(1h, sale: n, post)", "'+' or ',' (no field: each event counts), found ':' at column 15".into()),
            ("AVG(1h, a: x*2, s)", "'+' or ',' (only SUM has weights), found '*' at column 13".into()),
            ("AVG(1h, a + b, s)", "':' and the field to measure, found '+' at column 11".into()),
            ("AVG(1h, a: x + b, s)", "':' and the field to measure, found ',' at column 17".into()),
            ("MAX(1h, a: x + a: y, s)", "a type that is not listed yet, found 'a' at column 16".into()),
            ("COUNT(1h, a + a, s)", "a type that is not listed yet, found 'a' at column 15".into()),
            ("SUM(1h, a: x + a: x*2, s)", "a type and field that is not listed yet, found 'a' at column 16".into()),
            (
                "SUM(1h, a + b, amount, s)",
                "BY, WHERE or ')' (a field follows its type: a: amount), found ',' at column 22".into(),
            ),
            (
                "SUM(1h, a*0, s)",
                "a number other than 0, with at most 9 decimals and 15 digits, found '0' at column 11".into(),
            ),
            ("SUM(1h, a*-x, s)", "a number (a field is written type: field), found 'x' at column 12".into()),
            ("COUNT(24h, like OR share, post)", "'+' or ',', found 'OR' at column 17".into()),
            (
                "COUNT_DISTINCT(1h, e: v, s, u)",
                "'+' or ',' (the field to count follows the subject), found ':' at column 21".into(),
            ),
            (
                "SUM(1h, a*0.0000000001, s)",
                "a number other than 0, with at most 9 decimals and 15 digits, found '0.0000000001' at column 11"
                    .into(),
            ),
            (
                "SUM(1h, a*9007199254740992, s)",
                "a number other than 0, with at most 9 decimals and 15 digits, found '9007199254740992' at column 11"
                    .into(),
            ),
            (
                "SUM(1h, sale, amount*2, s)",
                "',' (a weight follows the field of its type: sale: amount*2), found '*' at column 21".into(),
            ),
            ("COUNT(1h, e, (a))", "',', found ')' at column 16".into()),
            ("COUNT(1h, e, (a, (b, c)))", "a field or prefix(…), found '(' at column 18".into()),
            ("COUNT(1h, e, (a, b c))", "',' or ')', found 'c' at column 20".into()),
            (
                "COUNT(1h, e, (a,b,c,d,e,f,g,h,i))",
                "')', because there may be at most 8 parts, found ',' at column 30".into(),
            ),
            ("COUNT(1h, e, prefix(ip))", "',', found ')' at column 23".into()),
            ("COUNT(1h, e, prefix(ip, 129))", "a number of bits from 1 to 128, found '129' at column 25".into()),
            ("COUNT(1h, e, s WHERE)", "a field to test, found ')' at column 21".into()),
            ("COUNT(1h, e, s WHERE 'a' = x)", "a field to test, found 'a' at column 22".into()),
            ("COUNT(1h, e, s WHERE not = 1)", "a field to test, found '=' at column 26".into()),
            ("COUNT(1h, e, s WHERE a AND b)", "=, !=, <, <=, >, >=, IN or NOT IN, found 'AND' at column 24".into()),
            ("COUNT(1h, e, s WHERE a = b)", "a 'text', a number, true or false, found 'b' at column 26".into()),
            ("COUNT(1h, e, s WHERE a = 1x)", "a 'text', a number, true or false, found '1x' at column 26".into()),
            ("COUNT(1h, e, s WHERE a = 1e999)", "a 'text', a number, true or false, found '1e999' at column 26".into()),
            ("COUNT(1h, e, s WHERE a = -'x')", "a number, found 'x' at column 27".into()),
            ("COUNT(1h, e, s WHERE a = 'x)", "a closing ', found the end at column 29".into()),
            (
                "COUNT(1h, e, s WHERE a < true)",
                "a 'text' or a number, which have an order, found 'true' at column 26".into(),
            ),
            ("COUNT(1h, e, s WHERE a NOT 1)", "IN, found '1' at column 28".into()),
            ("COUNT(1h, e, s WHERE a IN ())", "a 'text', a number, true or false, found ')' at column 28".into()),
            ("COUNT(1h, e, s WHERE a IN (1 2))", "',' or ')', found '2' at column 30".into()),
            ("COUNT(1h, e, s WHERE (a = 1", "AND, OR or ')', found the end at column 28".into()),
            ("COUNT(1h, e, s WHERE a = 1 b", "AND, OR or ')', found 'b' at column 28".into()),
            ("COUNT(1h, e, s) WHERE a = 1)", "AND, OR or the end, found ')' at column 28".into()),
            ("COUNT(1h, e, s WHERE a = 1) WHERE b = 1", "the end, found 'WHERE' at column 29".into()),
        ] {
            assert_eq!(text.parse::<Metric>().unwrap_err().to_string(), format!("expected {error}"), "{text}");
        }
        assert!(format!("COUNT(24h, {}, post)", "a".repeat(65)).parse::<Metric>().is_err());
    }

    #[test]
    fn the_number_of_terms_is_bounded() {
        let terms = |number: usize| {
            let terms: Vec<String> = (0..number).map(|term| format!("e{term}*2")).collect();
            format!("SUM(1h, {}, s)", terms.join(" + ")).parse::<Metric>()
        };
        assert_eq!(terms(Terms::MAX).unwrap().terms.iter().count(), 16);
        let error = terms(17).unwrap_err().to_string();
        assert_eq!(error, "expected ',', because there may be at most 16 terms, found 'e16' at column 127");
    }

    #[test]
    fn length_and_nesting_are_bounded() {
        let nested = |open: &str, levels: usize, close: &str| {
            format!("COUNT(1h, e, s WHERE {}a = 1{})", open.repeat(levels), close.repeat(levels)).parse::<Metric>()
        };
        assert!(nested("(", 32, ")").is_ok() && nested("NOT ", 32, "").is_ok());
        let error = nested("(", 33, ")").unwrap_err().to_string();
        assert_eq!(error, "expected at most 32 levels of nesting, found '(' at column 54");
        assert!(nested("NOT (", 17, ")").is_err() && nested("(", 1_000, ")").is_err());

        let listed = |literals: usize| format!("COUNT(1h, e, s WHERE a IN (1{}))", ",1".repeat(literals));
        assert!(listed(1_000).parse::<Metric>().is_ok());
        let error = listed(3_000).parse::<Metric>().unwrap_err().to_string();
        assert_eq!(error, "expected at most 4096 bytes, found 6030 at column 4097");
        // The canonical form would be too long to be parsed again.
        let error = listed(2_000).parse::<Metric>().unwrap_err().to_string();
        assert_eq!(error, "expected at most 4096 bytes in its canonical form, found 6030 at column 1");
    }

    proptest! {
        #[test]
        fn canonical_form_round_trips(metric in strategy::metric()) {
            prop_assert_eq!(metric.to_string().parse::<Metric>(), Ok(metric));
        }

        #[test]
        fn arbitrary_text_does_not_panic(text in "\\PC{0,60}") {
            let _ = text.parse::<Metric>();
        }
    }
}
