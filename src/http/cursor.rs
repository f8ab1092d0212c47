//! Cursors of pages as text.
//!
//! A cursor is URL-safe Base64 of: version (1 byte), flags (1), id of the track (8), number (8), text (1 to 512),
//! CRC-32C of all before it and, on a board with keys, of the key of the ranking (4). Integers are big-endian. In a
//! ranking, number and text are the stored score and the subject, or what stands in for one that was removed. The score
//! is the integer or the bits of the float, so nothing is lost. In a list of values, they are the time in milliseconds
//! and the value. The checksum finds texts that were changed or cut off by mistake; it protects nothing, because a
//! cursor gives access to nothing that an offset does not.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

use super::parameters::Parameters;
use super::problem::Problem;
use crate::board::{Amount, BoardTrack, Counted, RankingKey, Subject, Timestamp, TrackId, Value};
use crate::service::{Cursor, Direction, NextTo, Page, Place, ValuePlace, Values, ValuesCursor};

const VERSION: u8 = 1;
/// The flags. All other bits are 0.
const BACKWARD: u8 = 1;
const INCLUSIVE: u8 = 2;
const REAL: u8 = 4;
/// The cursor belongs to a list of values. It has no other flag.
const VALUES: u8 = 8;

/// The number of bytes without the text.
const BESIDE_TEXT: usize = 1 + 1 + 8 + 8 + 4;
/// The length of the longest cursor. Values and subjects have the same limit.
const MAX_LENGTH: usize = ((BESIDE_TEXT + Subject::MAX_BYTES) * 4).div_ceil(3);

/// The cursor after `post-1` with a score of 17, for the OpenAPI document.
pub(super) const EXAMPLE: &str = "AQBfHCqdBLfjhgAAAAAAAAARcG9zdC0xPfm7Rg";
/// The cursor after `user-1`, last seen on 2025-12-24 at 18:00, for the same document.
pub(super) const VALUES_EXAMPLE: &str = "AQhfHCqdBLfjhgAAAZtRhI0AdXNlci0x5PN8tQ";

/// Returns the cursor in the parameters of a request, if there is one. It excludes an offset.
pub(super) fn requested<C>(
    parameters: &Parameters,
    parse: impl Fn(&str, Option<&RankingKey>) -> Result<C, Problem>,
) -> Result<Option<C>, Problem> {
    let key = parameters.key()?;
    let cursor = parameters.text("cursor").map(|text| parse(text, key.as_ref())).transpose()?;
    if cursor.is_some() && parameters.text("offset").is_some() {
        return Err(Problem::field("cursor", "give 'cursor' or 'offset', not both"));
    }
    Ok(cursor)
}

/// Parses the text of a cursor in the ranking of this key.
pub(super) fn parse(text: &str, key: Option<&RankingKey>) -> Result<Cursor, Problem> {
    decode(text, key).ok_or_else(|| invalid("'next' or 'prev'"))
}

/// Returns the cursors of the pages before and after a page, which was read at `cursor` or at an offset.
pub(super) fn beside(track: &BoardTrack, page: &Page, cursor: Option<Cursor>) -> (Option<String>, Option<String>) {
    let text = |next_to: NextTo| encode(&Cursor { track: track.id(), next_to }, track.key());
    let (has_prev, has_next) = (page.first > 0, page.has_next());
    match (page.items.first(), page.items.last()) {
        (Some(first), Some(last)) => {
            let (before, after) = (NextTo::before(Place::of(first)), NextTo::after(Place::of(last)));
            (has_prev.then(|| text(before)), has_next.then(|| text(after)))
        }
        // Nothing is left on this side of the place. The other pages are on the other side of it.
        _ => match cursor.map(|cursor| cursor.next_to.others()) {
            Some(others) if others.direction == Direction::Backward => (has_prev.then(|| text(others)), None),
            Some(others) => (None, has_next.then(|| text(others))),
            None => (None, None),
        },
    }
}

/// Parses the text of a cursor in a list of values of a subject in the ranking of this key.
pub(super) fn parse_values(text: &str, key: Option<&RankingKey>) -> Result<ValuesCursor, Problem> {
    decode_values(text, key).ok_or_else(|| invalid("'next'"))
}

fn invalid(which: &str) -> Problem {
    let detail = format!(
        "'cursor' must be the {which} of a page, unchanged; on a board whose metric has BY, of a page with the same 'by'"
    );
    Problem::field("cursor", detail)
}

/// Returns the cursor of the page of values after this one, if there is one.
pub(super) fn after_values(track: &BoardTrack, page: &Values) -> Option<String> {
    let (value, last_seen) = page.items.last()?;
    let after = ValuePlace { last_seen: *last_seen, value: value.clone() };
    page.has_next().then(|| encode_values(&ValuesCursor { track: track.id(), after }, track.key()))
}

/// Returns the text of a cursor in the ranking of this key.
pub(super) fn encode(cursor: &Cursor, key: Option<&RankingKey>) -> String {
    let Cursor { track, next_to: NextTo { place, direction, inclusive } } = cursor;
    let (score, real) = match place.score {
        Value::Exact(amount) => (amount.0.to_be_bytes(), 0),
        Value::Real(real) => (real.to_bits().to_be_bytes(), REAL),
    };
    let backward = if *direction == Direction::Backward { BACKWARD } else { 0 };
    let flags = backward | if *inclusive { INCLUSIVE } else { 0 } | real;
    CursorParts { flags, track: *track, number: score, text: place.subject.as_str() }.join(key)
}

fn encode_values(cursor: &ValuesCursor, key: Option<&RankingKey>) -> String {
    let ValuesCursor { track, after: ValuePlace { last_seen, value } } = cursor;
    let number = last_seen.millis().to_be_bytes();
    CursorParts { flags: VALUES, track: *track, number, text: value.as_str() }.join(key)
}

fn decode(text: &str, key: Option<&RankingKey>) -> Option<Cursor> {
    let bytes = checked(text, key)?;
    let CursorParts { flags, track, number, text } = CursorParts::split(&bytes)?;
    if flags & !(BACKWARD | INCLUSIVE | REAL) != 0 {
        return None;
    }
    let score = match flags & REAL {
        0 => Value::Exact(Amount(i64::from_be_bytes(number))),
        _ => Value::Real(f64::from_bits(u64::from_be_bytes(number))),
    };
    // The line of the place may have lost its subject.
    let subject = Subject::parse_of_place(text).ok()?;
    let direction = if flags & BACKWARD == 0 { Direction::Forward } else { Direction::Backward };
    let next_to = NextTo { place: Place { score, subject }, direction, inclusive: flags & INCLUSIVE != 0 };
    Some(Cursor { track, next_to })
}

fn decode_values(text: &str, key: Option<&RankingKey>) -> Option<ValuesCursor> {
    let bytes = checked(text, key)?;
    let CursorParts { flags, track, number, text } = CursorParts::split(&bytes)?;
    let value = Counted::parse(text).ok().filter(|_| flags == VALUES)?;
    let millis = i64::from_be_bytes(number);
    let last_seen = Some(Timestamp::from_millis(millis)).filter(|time| time.millis() == millis)?;
    Some(ValuesCursor { track, after: ValuePlace { last_seen, value } })
}

/// The parts of any cursor, before they are interpreted.
struct CursorParts<'a> {
    flags: u8,
    track: TrackId,
    number: [u8; 8],
    text: &'a str,
}

impl<'a> CursorParts<'a> {
    /// Returns the text of the cursor in the ranking of this key.
    fn join(&self, key: Option<&RankingKey>) -> String {
        let mut bytes = Vec::with_capacity(BESIDE_TEXT + self.text.len());
        bytes.extend([VERSION, self.flags]);
        bytes.extend(self.track.0.to_be_bytes());
        bytes.extend(self.number);
        bytes.extend(self.text.as_bytes());
        bytes.extend(checksum(&bytes, key));
        URL_SAFE_NO_PAD.encode(bytes)
    }

    /// Splits the content of a cursor.
    fn split(content: &'a [u8]) -> Option<Self> {
        let ([version, flags], rest) = content.split_first_chunk::<2>()?;
        let (track, rest) = rest.split_first_chunk::<8>()?;
        let (number, text) = rest.split_first_chunk::<8>()?;
        let (track, text) = (TrackId(u64::from_be_bytes(*track)), std::str::from_utf8(text).ok()?);
        (*version == VERSION).then_some(Self { flags: *flags, track, number: *number, text })
    }
}

/// Returns the checksum of the content of a cursor in the ranking of this key.
fn checksum(content: &[u8], key: Option<&RankingKey>) -> [u8; 4] {
    let of_content = crc32c::crc32c(content);
    key.map_or(of_content, |key| crc32c::crc32c_append(of_content, key.as_str().as_bytes())).to_be_bytes()
}

/// Returns the content of a cursor, without its checksum, which must be that of the ranking of this key.
fn checked(text: &str, key: Option<&RankingKey>) -> Option<Vec<u8>> {
    if text.len() > MAX_LENGTH {
        return None;
    }
    let mut bytes = URL_SAFE_NO_PAD.decode(text).ok()?;
    let (content, given) = bytes.split_last_chunk::<4>()?;
    if checksum(content, key) != *given {
        return None;
    }
    bytes.truncate(bytes.len() - 4);
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cursor(score: Value, subject: &str) -> Cursor {
        let place = Place { score, subject: Subject::parse(subject).unwrap() };
        Cursor { track: TrackId(0x5f1c_2a9d_04b7_e386), next_to: NextTo::after(place) }
    }

    #[test]
    fn cursors_read_back_without_loss() {
        let longest = "x".repeat(Subject::MAX_BYTES);
        let scores = [0, -1, (1 << 53) - 1, 1 - (1 << 53)].map(|units| Value::Exact(Amount(units)));
        let means = [10.0 / 3.0, -1.0 / 7.0, 0.0, f64::MIN_POSITIVE, f64::MAX].map(Value::Real);
        for score in scores.into_iter().chain(means) {
            for subject in ["a", "日本/…?&=+%", longest.as_str()] {
                for direction in [Direction::Forward, Direction::Backward] {
                    for inclusive in [false, true] {
                        let mut cursor = cursor(score, subject);
                        (cursor.next_to.direction, cursor.next_to.inclusive) = (direction, inclusive);
                        let text = encode(&cursor, None);
                        assert!(text.len() <= MAX_LENGTH, "{}", text.len());
                        assert!(text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_'), "{text}");
                        let read = decode(&text, None).unwrap();
                        assert_eq!(read, cursor);
                        let is_real = |value| matches!(value, Value::Real(_));
                        assert_eq!(is_real(read.next_to.place.score), is_real(score));
                    }
                }
            }
        }
        // The OpenAPI document has this number too.
        assert_eq!((encode(&cursor(scores[0], &longest), None).len(), MAX_LENGTH), (712, 712));
        assert_eq!(encode(&cursor(Value::Exact(Amount(17)), "post-1"), None), EXAMPLE);
    }

    #[test]
    fn cursors_of_values_read_back_and_are_not_those_of_rankings() {
        let place = |value: &str, millis| ValuesCursor {
            track: TrackId(0x5f1c_2a9d_04b7_e386),
            after: ValuePlace { last_seen: Timestamp::from_millis(millis), value: Counted::parse(value).unwrap() },
        };
        for value in ["a", "日本/…?&=+%", "x".repeat(Counted::MAX_BYTES).as_str()] {
            for millis in [0, 1_767_225_600_123, Timestamp::MAX.millis()] {
                let text = encode_values(&place(value, millis), None);
                assert!(text.len() <= MAX_LENGTH, "{}", text.len());
                assert_eq!(decode_values(&text, None), Some(place(value, millis)));
                assert_eq!(decode(&text, None), None);
            }
        }
        assert_eq!(decode_values(EXAMPLE, None), None);
        let at = Timestamp::parse("2025-12-24T18:00:00Z").unwrap().millis();
        assert_eq!(encode_values(&place("user-1", at), None), VALUES_EXAMPLE);
        for millis in [-1, Timestamp::MAX.millis() + 1, i64::MAX] {
            let parts = CursorParts { flags: VALUES, track: TrackId(1), number: millis.to_be_bytes(), text: "a" };
            assert_eq!(decode_values(&parts.join(None), None), None, "{millis}");
        }
        for flags in [0, BACKWARD | VALUES, 16] {
            let parts = CursorParts { flags, track: TrackId(1), number: [0; 8], text: "a" };
            assert_eq!(decode_values(&parts.join(None), None), None, "{flags}");
        }
    }

    #[test]
    fn a_cursor_belongs_to_the_ranking_of_its_key() {
        let (rust, go) = (RankingKey::parse("rust").unwrap(), RankingKey::parse("go").unwrap());
        let cursor = cursor(Value::Exact(Amount(17)), "post-1");
        let text = encode(&cursor, Some(&rust));
        assert_eq!(text.len(), EXAMPLE.len());
        assert_eq!(decode(&text, Some(&rust)), Some(cursor));
        for other in [None, Some(&go)] {
            assert_eq!(decode(&text, other), None);
            assert_eq!(decode(EXAMPLE, Some(&rust)), None);
        }
    }

    #[test]
    fn no_changed_text_is_a_cursor() {
        let text = encode(&cursor(Value::Exact(Amount(17)), "post-1"), None);
        for end in 0..text.len() {
            assert_eq!(decode(&text[..end], None), None, "{end}");
        }
        let bytes = URL_SAFE_NO_PAD.decode(&text).unwrap();
        for bit in 0..8 * bytes.len() {
            let mut flipped = bytes.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(decode(&URL_SAFE_NO_PAD.encode(flipped), None), None, "bit {bit}");
        }
        for added in ["=", "A", "AAAA", " ", "\n", "é"] {
            assert_eq!(decode(&format!("{text}{added}"), None), None, "{added:?}");
        }
    }

    #[test]
    fn a_page_may_end_with_a_line_whose_subject_was_removed() {
        let key = RankingKey::parse("rust").unwrap();
        for line in [0, 7, u64::MAX] {
            let place = Place { score: Value::Exact(Amount(17)), subject: Subject::removed(line) };
            let cursor = Cursor { track: TrackId(1), next_to: NextTo::before(place) };
            for key in [None, Some(&key)] {
                let text = encode(&cursor, key);
                assert!(text.len() <= MAX_LENGTH, "{}", text.len());
                assert_eq!(parse(&text, key).unwrap(), cursor);
            }
        }
        // Nobody but a place is such a subject: a value is not.
        let parts = CursorParts { flags: VALUES, track: TrackId(1), number: [0; 8], text: "\u{1}7" };
        assert_eq!(decode_values(&parts.join(None), None), None);
    }

    #[test]
    fn what_has_a_checksum_must_still_be_a_cursor() {
        let with_checksum = |content: &[u8]| {
            let checksum = crc32c::crc32c(content).to_be_bytes();
            decode(&URL_SAFE_NO_PAD.encode([content, &checksum[..]].concat()), None)
        };
        let content = |version: u8, flags: u8, subject: &[u8]| [&[version, flags][..], &[0; 16], subject].concat();
        assert!(with_checksum(&content(1, 7, b"a")).is_some());
        for (version, flags, subject) in [
            (0, 0, &b"a"[..]),
            (2, 0, b"a"),
            (1, 8, b"a"),
            (1, 0x80, b"a"),
            (1, 0, b""),
            (1, 0, b"\xff"),
            (1, 0, b"\x07"),
            // Not the number of a line whose subject was removed, or not as such a cursor has it.
            (1, 0, b"\x01"),
            (1, 0, b"\x01x"),
            (1, 0, b"\x01-1"),
            (1, 0, b"\x01+1"),
            (1, 0, b"\x0101"),
            (1, 0, b"\x011\n"),
            (1, 0, b"\x011\x01"),
            (1, 0, b"\x0118446744073709551616"),
            (1, 0, b"a\x011"),
        ] {
            assert_eq!(with_checksum(&content(version, flags, subject)), None, "{version} {flags} {subject:?}");
        }
        assert_eq!(with_checksum(&content(1, 0, &[b'a'; Subject::MAX_BYTES + 1])), None);
        for length in 0..18 {
            assert_eq!(with_checksum(&content(1, 0, b"")[..length]), None, "{length}");
        }
    }
}
