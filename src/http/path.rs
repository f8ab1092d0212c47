//! Board names and subjects in request paths.
//!
//! Both are read from the path as it was sent, because the values of the router are only partly decoded (it keeps
//! `%2F` and `%25`), and lossily. An encoded slash stays encoded until here, so a path has as many segments as the
//! template it matched, and the nth segment of one corresponds to the nth of the other.

use std::borrow::Cow;
use std::fmt;

use actix_web::dev::ServiceRequest;
use memchr::memchr_iter;
use percent_encoding::percent_decode_str;

use super::call::Call;
use super::codes::Code;
use super::problem::Problem;
use crate::access::KeyId;
use crate::board::{BoardName, RankingKey, SourceName, Subject};

/// Index of the segment `{board}` in `/v1/boards/{board}/…`.
const BOARD_SEGMENT: usize = 3;
/// Index of the segment `{key}` in `/v1/keys/{key}/…`.
const KEY_SEGMENT: usize = 3;
/// Index of the segment `{source}` in `/v1/sources/{source}`.
const SOURCE_SEGMENT: usize = 3;
/// Index of the segment `{key}` in `/v1/boards/{board}/keys/{key}`.
const RANKING_KEY_SEGMENT: usize = 5;
/// Index of the segment `{subject}` in `/v1/boards/{board}/subjects/{subject}/…`.
const SUBJECT_SEGMENT: usize = 5;

impl Call {
    /// Returns the board name in the path. An invalid name is an unknown board.
    pub(super) fn board_name(&self) -> Result<BoardName, Problem> {
        let text = self.text(BOARD_SEGMENT);
        BoardName::parse(&text).map_err(|error| unknown(Code::UnknownBoard, "board", &text, error))
    }

    /// Returns the board name in the path, for a board to be defined.
    pub(super) fn new_board_name(&self) -> Result<BoardName, Problem> {
        BoardName::parse(&self.text(BOARD_SEGMENT))
            .map_err(|error| Problem::new(Code::InvalidBoardName, error.to_string()))
    }

    /// Returns the id of a key in the path. An invalid id is an unknown key.
    pub(super) fn key_id(&self) -> Result<KeyId, Problem> {
        // What is not an id may be a key, so it is not shown.
        KeyId::parse(segment(self.request.uri().path(), KEY_SEGMENT))
            .map_err(|error| Problem::new(Code::UnknownKey, format!("unknown key: {error}")))
    }

    /// Returns the name of a source in the path. An invalid name is an unknown source.
    pub(super) fn source_name(&self) -> Result<SourceName, Problem> {
        let text = self.text(SOURCE_SEGMENT);
        SourceName::parse(&text).map_err(|error| unknown(Code::UnknownSource, "source", &text, error))
    }

    /// Returns the name of a source in the path, for a source to be defined.
    pub(super) fn new_source_name(&self) -> Result<SourceName, Problem> {
        SourceName::parse(&self.text(SOURCE_SEGMENT)).map_err(|error| Problem::field("source", error.to_string()))
    }

    /// Returns the subject in the path, which is percent-encoded as one segment.
    pub(super) fn subject(&self) -> Result<Subject, Problem> {
        parse_subject(segment(self.request.uri().path(), SUBJECT_SEGMENT))
    }

    /// Returns the key of a ranking in the path, which is percent-encoded as one segment.
    pub(super) fn ranking_key(&self) -> Result<RankingKey, Problem> {
        let invalid = |detail: String| Problem::field("key", detail);
        let key = decode(segment(self.request.uri().path(), RANKING_KEY_SEGMENT), "key", invalid)?;
        RankingKey::parse(&key).map_err(|error| invalid(error.to_string()))
    }

    /// Returns a segment of the path, decoded.
    fn text(&self, index: usize) -> Cow<'_, str> {
        percent_decode_str(segment(self.request.uri().path(), index)).decode_utf8_lossy()
    }
}

/// Returns the problem of a text that cannot be the name of anything.
fn unknown(code: Code, what: &str, text: &str, error: impl fmt::Display) -> Problem {
    let text: String = text.chars().take(64).collect();
    Problem::new(code, format!("unknown {what} '{text}': {error}"))
}

/// Returns the board name in the path of a request, if the path has one that is valid.
pub(super) fn board_of(request: &ServiceRequest) -> Option<BoardName> {
    request.match_info().get("board")?;
    let segment = segment(request.uri().path(), BOARD_SEGMENT);
    BoardName::parse(&percent_decode_str(segment).decode_utf8_lossy()).ok()
}

/// Returns a segment of a path, or nothing if the path has fewer. The one before the first slash is the 0th.
fn segment(path: &str, index: usize) -> &str {
    // Each request looks for its board, and this takes a third of the time of `split`.
    let mut slashes = memchr_iter(b'/', path.as_bytes());
    let start = index.checked_sub(1).map_or(Some(0), |before| slashes.nth(before).map(|slash| slash + 1));
    start.map_or("", |start| &path[start..slashes.next().unwrap_or(path.len())])
}

fn parse_subject(encoded: &str) -> Result<Subject, Problem> {
    let invalid = |detail: String| Problem::new(Code::InvalidSubject, detail);
    Subject::parse(&decode(encoded, "subject", invalid)?).map_err(|error| invalid(error.to_string()))
}

/// Decodes a segment of the path once.
fn decode<'e>(encoded: &'e str, what: &str, invalid: fn(String) -> Problem) -> Result<Cow<'e, str>, Problem> {
    // A literal '%' is refused, so that each text has one encoding only.
    if let Some(position) = literal_percent(encoded) {
        let detail =
            format!("'%' at byte {position} of the {what} is not followed by two hex digits; encode it as %25");
        return Err(invalid(detail).with("position", position));
    }
    percent_decode_str(encoded).decode_utf8().map_err(|error| {
        let position = error.valid_up_to();
        invalid(format!("the decoded {what} is not valid UTF-8 from byte {position}")).with("position", position)
    })
}

/// Returns the position of the first `%` that does not start an encoded byte.
fn literal_percent(encoded: &str) -> Option<usize> {
    let bytes = encoded.as_bytes();
    let hex = |at: usize| bytes.get(at).is_some_and(u8::is_ascii_hexdigit);
    memchr::memchr_iter(b'%', bytes).find(|&at| !(hex(at + 1) && hex(at + 2)))
}

#[cfg(test)]
mod tests {
    use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn segments_are_those_between_slashes() {
        for path in ["", "*", "/", "/v1", "/v1/boards/", "/v1/boards/b", "/v1/boards//x", "/v1/boards/b/c/d/e"] {
            for index in 0..8 {
                assert_eq!(segment(path, index), path.split('/').nth(index).unwrap_or_default(), "{path} {index}");
            }
        }
    }

    #[test]
    fn an_invalid_subject_is_refused_with_its_reason() {
        for (encoded, says) in [
            ("%FF", "not valid UTF-8"),
            ("a%ED%A0%80", "not valid UTF-8"),
            ("%", "byte 0"),
            ("ab%2", "byte 2"),
            ("%zz", "hex digits"),
            ("%0A", "control character"),
            ("", "empty"),
        ] {
            let problem = parse_subject(encoded).unwrap_err();
            assert_eq!(problem.code(), Code::InvalidSubject);
            assert!(problem.to_string().contains(says), "{encoded}: {problem}");
        }
    }

    #[test]
    fn a_subject_is_decoded_exactly_once() {
        for (encoded, subject) in
            [("a%2Fb", "a/b"), ("%252F", "%2F"), ("a+b", "a+b"), ("%2E%2E", ".."), ("%2Fwindow", "/window")]
        {
            assert_eq!(parse_subject(encoded).unwrap().as_str(), subject);
        }
    }

    proptest! {
        #[test]
        fn every_subject_can_be_encoded_in_a_path(text in "\\PC{1,60}") {
            if let Ok(subject) = Subject::parse(&text) {
                let encoded = utf8_percent_encode(&text, NON_ALPHANUMERIC).to_string();
                prop_assert_eq!(parse_subject(&encoded).unwrap(), subject);
            }
        }
    }
}
