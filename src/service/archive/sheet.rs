//! The form of the sheets of a packed ranking. Pure.
//!
//! A sheet of lines has [`LINES`] of them, the last one fewer. Its text begins with the number of the first line of the
//! ranking that has the score of its first line. Each line follows: the score, if it differs from that of the line before,
//! a tab, the character U+0001 if the score is capped, and the subject, or nothing if that was removed. Numbers of lines
//! count from 0 at the best one.
//!
//! The register has as many sheets as the lines, and each subject is in one of them by its hash: seven characters of six
//! bits each, of which the first three are further bits of the hash, and the others the number of the sheet with the line.
//! So to find a line takes two reads.

use std::fmt::Write;

use xxhash_rust::xxh3::xxh3_64;

use crate::board::{Amount, BoardTrack, Subject, Value};
use crate::store::StoreError;

/// The number of lines of a sheet.
pub(super) const LINES: u64 = 256;
/// The largest number of lines that can be packed, so that the number of a sheet has 24 bits.
pub(super) const MOST_LINES: u64 = LINES << SHEET_BITS;

const SHEET_BITS: u32 = 24;
const HASH_BITS: u32 = 18;
/// The number of characters of an entry of the register, and of those at its end that are the number of a sheet.
const ENTRY: usize = 7;
const SHEET_DIGITS: usize = 4;
/// What the characters of an entry stand for.
const SIX_BITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

/// A line of a ranking.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Line<'t> {
    pub score: Value,
    /// `None` if the subject was removed.
    pub subject: Option<&'t str>,
    /// Whether values were dropped because the board remembers a limited number.
    pub is_capped: bool,
}

/// A sheet of lines.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct LineSheet<'t> {
    /// The number of the first line of the ranking that has the score of the first line here.
    pub tied_from: u64,
    pub lines: Vec<Line<'t>>,
}

/// What is known of a packed ranking as a whole.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Head {
    pub lines: u64,
    pub total: u64,
    /// A number that grows with each removal of a subject.
    pub removals: u64,
    /// The lines of subjects that were hidden when they were removed: they stay left out, so that others keep the ranks that
    /// they have without them.
    pub left_out: Vec<u64>,
}

/// What a line begins with, after the tab, if its score is capped.
const CAPPED: char = '\u{1}';

fn damaged(what: &str) -> StoreError {
    StoreError::Corrupt { detail: format!("a sheet of an ended period: {what}") }
}

impl<'t> LineSheet<'t> {
    /// Reads the text of a sheet of this track.
    pub(super) fn read(track: &BoardTrack, text: &'t str) -> Result<Self, StoreError> {
        let mut rows = text.lines();
        let tied_from = rows.next().and_then(|first| first.parse().ok()).filter(|number| *number < MOST_LINES);
        let tied_from = tied_from.ok_or_else(|| damaged("its first line"))?;
        let mut lines: Vec<Line<'t>> = Vec::with_capacity(LINES as usize);
        for row in rows {
            let (score, subject) = row.split_once('\t').ok_or_else(|| damaged("a line without a tab"))?;
            let score = match (score, lines.last()) {
                ("", Some(before)) => before.score,
                (score, _) => parse_score(track, score).ok_or_else(|| damaged("a score"))?,
            };
            let (is_capped, subject) = match subject.strip_prefix(CAPPED) {
                Some(subject) => (true, subject),
                None => (false, subject),
            };
            lines.push(Line { score, subject: Some(subject).filter(|subject| !subject.is_empty()), is_capped });
        }
        Ok(Self { tied_from, lines })
    }

    pub(super) fn print(&self) -> String {
        let mut text = self.tied_from.to_string();
        let mut before = None;
        for line in &self.lines {
            text.push('\n');
            if before != Some(line.score) {
                print_score(&mut text, line.score);
            }
            before = Some(line.score);
            text.push('\t');
            if line.is_capped {
                text.push(CAPPED);
            }
            text.push_str(line.subject.unwrap_or_default());
        }
        text
    }

    /// Returns the number of the first line of the ranking that ties with the line at this index, where `first` is the number
    /// of the first line here.
    pub(super) fn tie_of(&self, first: u64, at: usize) -> u64 {
        let score = self.lines[at].score;
        match self.lines[..at].iter().rposition(|line| line.score != score) {
            Some(other) => first + other as u64 + 1,
            None => self.tied_from,
        }
    }

    /// Returns the index of the line of a subject.
    pub(super) fn position(&self, subject: &Subject) -> Option<usize> {
        self.lines.iter().position(|line| line.subject == Some(subject.as_str()))
    }
}

/// Scores are written as numbers, and read again as exactly the same ones.
fn print_score(text: &mut String, score: Value) {
    // Writing to a text cannot fail.
    let _ = match score {
        Value::Exact(Amount(units)) => write!(text, "{units}"),
        Value::Real(real) => write!(text, "{real:?}"),
    };
}

fn parse_score(track: &BoardTrack, text: &str) -> Option<Value> {
    match track.kind().has_fractions() {
        true => text.parse().ok().filter(|real: &f64| real.is_finite()).map(Value::Real),
        false => text.parse().ok().map(Amount).map(Value::Exact),
    }
}

impl Head {
    pub(super) fn read(text: &str) -> Result<Self, StoreError> {
        let numbers: Option<Vec<u64>> = text.split(' ').map(|number| number.parse().ok()).collect();
        match numbers.as_deref() {
            Some(&[lines, total, removals, ref left_out @ ..]) if lines <= MOST_LINES => {
                Ok(Self { lines, total, removals, left_out: left_out.to_vec() })
            }
            _ => Err(damaged("the numbers of its lines")),
        }
    }

    pub(super) fn print(&self) -> String {
        let numbers = [self.lines, self.total, self.removals].into_iter().chain(self.left_out.iter().copied());
        numbers.map(|number| number.to_string()).collect::<Vec<_>>().join(" ")
    }
}

/// Returns the number of sheets of a ranking with this many lines, which has at least one.
pub(super) fn sheets_of(lines: u64) -> u64 {
    lines.div_ceil(LINES).max(1)
}

/// Returns the entries of a sheet of the register. The last one is cut if the text is damaged.
pub(super) fn entries_of(text: &str) -> impl Iterator<Item = &[u8]> {
    text.as_bytes().chunks(ENTRY)
}

/// Returns the number of the sheet of lines that an entry of the register names.
pub(super) fn sheet_of(entry: &[u8]) -> Option<u64> {
    let digit = |byte: &u8| SIX_BITS.iter().position(|digit| digit == byte).unwrap_or_default() as u64;
    let digits = entry.get(ENTRY - SHEET_DIGITS..ENTRY)?;
    Some(digits.iter().fold(0, |number, byte| number << 6 | digit(byte)))
}

/// Where the register has a subject.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Registered {
    /// The number of the sheet of the register, of as many as the ranking has.
    pub sheet: u64,
    hash: u64,
}

impl Registered {
    pub(super) fn of(subject: &str, sheets: u64) -> Self {
        let hash = xxh3_64(subject.as_bytes());
        let sheet = u64::try_from((u128::from(hash) * u128::from(sheets)) >> 64).unwrap_or_default();
        Self { sheet, hash: hash & ((1 << HASH_BITS) - 1) }
    }

    /// Appends the entry of a subject whose line is in this sheet of lines.
    pub(super) fn append(self, text: &mut String, sheet: u64) {
        let bits = self.hash << SHEET_BITS | sheet;
        let digit = |at: usize| char::from(SIX_BITS[(bits >> (6 * (ENTRY - 1 - at)) & 63) as usize]);
        text.extend((0..ENTRY).map(digit));
    }

    /// Returns the sheets that may have the line of the subject, by the text of its sheet of the register.
    pub(super) fn candidates(self, text: &str) -> impl Iterator<Item = u64> {
        let mut hash = String::new();
        self.append(&mut hash, 0);
        hash.truncate(ENTRY - SHEET_DIGITS);
        let own = text.as_bytes().chunks_exact(ENTRY).filter(move |entry| entry.starts_with(hash.as_bytes()));
        own.map(|entry| sheet_of(entry).unwrap_or_default())
    }

    /// Returns the text of its sheet of the register without the entry of a subject whose line was in this sheet of lines.
    pub(super) fn without(self, text: &str, sheet: u64) -> String {
        let mut entry = String::new();
        self.append(&mut entry, sheet);
        let entries = || text.as_bytes().chunks(ENTRY);
        let own = entries().position(|other| other == entry.as_bytes());
        let kept = entries().enumerate().filter(|(at, _)| Some(*at) != own);
        kept.flat_map(|(_, entry)| entry.iter().map(|byte| char::from(*byte))).collect()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::board::{Board, BoardName, Definition, Generation};

    fn track(metric: &str) -> BoardTrack {
        let text = format!(r#"{{"metric":"{metric}","season":{{"every":"1d"}}}}"#);
        let definition: Definition = serde_json::from_str(&text).unwrap();
        Arc::new(Board::new(BoardName::parse("b").unwrap(), Generation(7), definition).unwrap()).main()
    }

    #[test]
    fn lines_round_trip_and_know_with_which_they_tie() {
        let exact = |units| Value::Exact(Amount(units));
        let line = |score, subject| Line { score, subject, is_capped: subject == Some("日本") };
        let lines = vec![
            line(exact(-3), Some("a b")),
            line(exact(-3), None),
            line(exact(-9_007_199_254_740_991), Some("日本")),
            line(exact(7), None),
        ];
        let sheet = LineSheet { tied_from: 250, lines };
        let text = sheet.print();
        assert_eq!(text, "250\n-3\ta b\n\t\n-9007199254740991\t\u{1}日本\n7\t");
        let track_of_sums = track("SUM(all, e, n, s)");
        assert_eq!(LineSheet::read(&track_of_sums, &text).unwrap(), sheet);
        assert_eq!([0, 1, 2, 3].map(|at| sheet.tie_of(256, at)), [250, 250, 258, 259]);
        assert_eq!(sheet.position(&Subject::parse("日本").unwrap()), Some(2));
        for real in [0.1 + 0.2, -1e300, 5e-324, 3.0] {
            let sheet = LineSheet { tied_from: 0, lines: vec![line(Value::Real(real), Some("a"))] };
            assert_eq!(LineSheet::read(&track("AVG(all, e, n, s)"), &sheet.print()).unwrap(), sheet);
        }
        for bad in ["", "x\n1\ta", "0\n1 a", "0\n\ta", "0\nx\ta"] {
            assert!(LineSheet::read(&track_of_sums, bad).is_err(), "{bad:?}");
        }
        let head = Head { lines: 3, total: 9, removals: 1, left_out: vec![2, 0] };
        assert_eq!(Head::read(&head.print()).unwrap(), head);
        let whole = Head { left_out: Vec::new(), ..head };
        assert_eq!((whole.print().as_str(), Head::read("3 9 1").unwrap()), ("3 9 1", whole.clone()));
        assert!(["", "1 2", "1 2 x"].iter().all(|bad| Head::read(bad).is_err()));
    }

    #[test]
    fn the_register_finds_every_subject_and_forgets_removed_ones() {
        let sheets = 16;
        let mut texts = vec![String::new(); sheets as usize];
        for number in 0..4_000_u64 {
            let registered = Registered::of(&number.to_string(), sheets);
            registered.append(&mut texts[registered.sheet as usize], number / 256);
        }
        assert!(texts.iter().all(|text| (150..400).contains(&(text.len() / ENTRY))), "they are spread evenly");
        let mut wrong = 0;
        for number in 0..4_000_u64 {
            let registered = Registered::of(&number.to_string(), sheets);
            let found: Vec<u64> = registered.candidates(&texts[registered.sheet as usize]).collect();
            assert!(found.contains(&(number / 256)));
            wrong += found.len() - 1;
        }
        assert!(wrong < 40, "{wrong}");
        let registered = Registered::of("7", sheets);
        let text = &mut texts[registered.sheet as usize];
        let (before, entries) = (registered.candidates(text).count(), text.len());
        *text = registered.without(text, 0);
        assert_eq!((registered.candidates(text).count(), text.len()), (before - 1, entries - ENTRY));
        assert_eq!(registered.without(text, 9).len(), text.len());
        let last = Registered::of("x", 1);
        let mut text = String::new();
        last.append(&mut text, (1 << SHEET_BITS) - 1);
        assert_eq!(last.candidates(&text).collect::<Vec<_>>(), [(1 << SHEET_BITS) - 1]);
    }
}
