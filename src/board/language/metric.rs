//! The parser of metrics, such as `COUNT(24h, like, post_id WHERE channel = 'app')`.

use std::str::FromStr;

use super::words::Words;
use super::{SyntaxError, filter, key};
use crate::board::{Function, Key, Metric};

/// What follows the type of the event in a function's parentheses, and the function that it makes.
enum FunctionForm {
    /// `subject`
    Events(Function),
    /// `value, subject`. The text says in errors what the value is.
    Value(&'static str, fn(Box<str>) -> Function),
    /// `subject, counted`
    Counted(fn(Key) -> Function),
}

/// The functions, each with its canonical name.
static FUNCTIONS: [(&str, FunctionForm); 8] = [
    ("COUNT", FunctionForm::Events(Function::Count)),
    ("SUM", FunctionForm::Value("the field to add up", |value| Function::Sum { value })),
    ("AVG", FunctionForm::Value("the field to measure", |value| Function::Avg { value })),
    ("MIN", FunctionForm::Value("the field to measure", |value| Function::Min { value })),
    ("MAX", FunctionForm::Value("the field to measure", |value| Function::Max { value })),
    ("LAST", FunctionForm::Value("the field to measure", |value| Function::Last { value })),
    ("COUNT_DISTINCT", FunctionForm::Counted(|counted| Function::CountDistinct { counted })),
    ("APPROX_COUNT_DISTINCT", FunctionForm::Counted(|counted| Function::ApproxCountDistinct { counted })),
];

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
    let event = words.name("the type of an event")?;
    words.symbol(',')?;
    let (function, (subject, by)) = match form {
        FunctionForm::Events(function) => (function.clone(), subject(words)?),
        FunctionForm::Value(what, function) => {
            let value = words.name(what)?;
            words.symbol(',')?;
            (function(value), subject(words)?)
        }
        FunctionForm::Counted(function) => {
            let subject = subject(words)?;
            words.symbol(',')?;
            (function(key::key(words, "the field to count")?), subject)
        }
    };
    let filter = if words.take("WHERE") { Some(filter::filter(words)?) } else { None };
    let expected = match (&by, form) {
        _ if filter.is_some() => "AND, OR or ')'",
        (Some(_), _) => "WHERE or ')'",
        (None, FunctionForm::Counted(_)) => "WHERE or ')' (BY follows the subject)",
        (None, _) => "BY, WHERE or ')'",
    };
    words.require(")", expected)?;
    Ok(Metric { function, window, event, subject, by, filter })
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
                FunctionForm::Events(_) => "s",
                FunctionForm::Value(..) => "v, s",
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
            ("COUNT(24h, like, a, b)", "BY, WHERE or ')', found ',' at column 19".into()),
            ("COUNT(24h, like, post GROUP BY a)", "BY, WHERE or ')', found 'GROUP' at column 23".into()),
            ("COUNT(24h, like, post BY a, b)", "WHERE or ')', found ',' at column 27".into()),
            (
                "COUNT_DISTINCT(1h, login, device, user BY a)",
                "WHERE or ')' (BY follows the subject), found 'BY' at column 40".into(),
            ),
            ("COUNT(24h, like, post) x", "WHERE or the end, found 'x' at column 24".into()),
            ("COUNT(24h, é, post)", "the type of an event, found 'é' at column 12".into()),
            ("COUNT(24h, 1like, post)", format!("the type of an event {name}, found '1like' at column 12")),
            ("SUM(24h, like, post)", "',', found ')' at column 20".into()),
            ("COUNT_DISTINCT(24h, like, post)", "',', found ')' at column 31".into()),
            ("MAX(24h, lap, , driver)", "the field to measure, found ',' at column 15".into()),
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
        assert_eq!(error, "expected at most 4096 bytes, found 6030 at column 1");
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
