//! Fuzz tests of the parser. Mutated metrics and rules must not panic, and a text that parses must print to a text that
//! parses to the same value.
//!
//! `ROLLTOP_FUZZ_CASES` sets the number of cases of each test, `ROLLTOP_FUZZ_SEED` the first seed. The same checks run
//! with coverage guidance in `fuzz/`.

use std::fmt::{Debug, Display};
use std::str::FromStr;

use rand::rngs::StdRng;
use rand::seq::IndexedRandom;
use rand::{Rng, SeedableRng};

use crate::board::{Metric, Rule, SyntaxError};

const METRICS: [&str; 12] = [
    "COUNT(24h, like, post_id)",
    "SUM(7d, sale, amount, seller_id)",
    "AVG(1h, call, took, service)",
    "MIN(1mo, lap, time, driver WHERE track = 'Spa' AND NOT (wet = true))",
    "MAX(2w, bid, price, item) WHERE price >= 100.50 OR currency IN ('EUR', 'it''s', -1e3, false)",
    "COUNT_DISTINCT(30d, login, device_id, user_id)",
    "APPROX_COUNT_DISTINCT(1d, view, (prefix(ip, 24), page), (user, session))",
    "COUNT(90s, login, prefix(ip, 64) WHERE channel NOT IN ('web') AND (a < 1 OR b > 2))",
    "count ( 1h , where , in ) where a <> -0.5e-3",
    "SUM(24h, like + comment*3 - spam*0.5 + order: amount*-0.1, post_id BY board)",
    "LAST(all, rating: elo + match: result, player)",
    "COUNT_DISTINCT(1d, like + comment, post_id, user_id)",
];

const RULES: [&str; 6] = [
    "COUNT(30m, login, device_id) > 3 AND COUNT_DISTINCT(1h, login, device_id, user_id) >= 2",
    "SUM(1d, pay, amount, user) > 3 * AVG(7d, pay, amount, user WHERE ok = true)",
    "NOT (amount - 1 <= -(limit / 2 + 5) OR channel != 'it''s') AND ((a + b) * c > 1)",
    "(1 + 2) * 3 = 9 OR flag = true AND (((x)) > - -y)",
    "MAX(1h, e, v, (a, b)) / MIN(1h, e, v, (a, b)) >= 1.5e1",
    "'a' < name AND NOT NOT 1e-3 < x-y - 2-1",
];

/// The texts that a mutation may insert: every keyword and symbol of the language, and some texts that are not part of
/// it.
const PIECES: [&str; 42] = [
    "(", ")", ",", "'", "''", "=", "!=", "<>", "<", "<=", ">", ">=", "+", "-", "*", "/", ":", "*2", " ", "", "AND",
    "or", "NOT ", "IN", "WHERE", "true", "COUNT", "SUM", "avg(", "prefix(", "24h", "1mo", "0", "1e9", "-1.5e-7", ".",
    "e", "é", "\n", "\u{0}", "🎉", "_a",
];

fn mutated(text: &str, others: &[&str], random: &mut StdRng) -> String {
    let mut text: Vec<char> = text.chars().collect();
    for _ in 0..random.random_range(1..=4) {
        let (a, b) = (random.random_range(0..=text.len()), random.random_range(0..=text.len()));
        let (from, to) = (a.min(b), a.max(b).min(a.min(b) + 12));
        match random.random_range(0..5) {
            0 => drop(text.drain(from..to)),
            1 => {
                let copy = text[from..to].to_vec();
                let times = random.random_range(1..40);
                text.splice(to..to, copy.repeat(times));
            }
            2 => {
                let other: Vec<char> = others.choose(random).map_or_else(Vec::new, |other| other.chars().collect());
                let cut = random.random_range(0..=other.len());
                text.splice(from..to, other[cut..].iter().copied());
            }
            _ => {
                let piece = PIECES.choose(random).map_or("", |piece| *piece);
                text.splice(from..from, piece.chars());
            }
        }
    }
    text.into_iter().collect()
}

fn number(variable: &str, usual: u64) -> u64 {
    std::env::var(variable).map_or(usual, |text| text.parse().unwrap())
}

fn fuzz<T: FromStr<Err = SyntaxError> + Display + Debug + PartialEq>(originals: &[&str], others: &[&str]) {
    let (seed, cases) = (number("ROLLTOP_FUZZ_SEED", 1), number("ROLLTOP_FUZZ_CASES", 20_000));
    let mut read = 0;
    for case in 0..cases {
        let mut random = StdRng::seed_from_u64(seed.wrapping_add(case));
        let original = originals.choose(&mut random).unwrap();
        let text = mutated(original, others, &mut random);
        let failure = std::panic::catch_unwind(|| match text.parse::<T>() {
            Ok(parsed) => {
                let canonical = parsed.to_string();
                let again = canonical.parse();
                (again != Ok(parsed)).then(|| format!("prints {canonical:?}, which reads as {again:?}"))
            }
            Err(error) => {
                let columns = text.chars().count() + 1;
                let outside = !(1..=columns).contains(&error.column);
                (outside || error.expected.is_empty() || error.found.is_empty()).then(|| format!("fails as {error:?}"))
            }
        });
        match failure {
            Ok(None) => read += u64::from(text.parse::<T>().is_ok()),
            Ok(Some(failure)) => panic!("ROLLTOP_FUZZ_SEED={}: {text:?} {failure}", seed.wrapping_add(case)),
            Err(_) => panic!("ROLLTOP_FUZZ_SEED={}: {text:?} panics", seed.wrapping_add(case)),
        }
    }
    assert!(read * 50 >= cases, "only {read} of {cases} mutations read at all: they say little about printing");
}

#[test]
fn mutated_metrics_do_not_panic() {
    fuzz::<Metric>(&METRICS, &RULES);
}

#[test]
fn mutated_rules_do_not_panic() {
    fuzz::<Rule>(&RULES, &METRICS);
}
