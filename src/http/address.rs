//! The board and the subject that a path names.
//!
//! Both are read from the path as it was sent: the router's own values are decoded in part only (it keeps `%2F`
//! and `%25`) and lossily. A template has as many `/` as the path it matched, because an encoded slash stays
//! encoded until here, so the nth part of the one is the nth part of the other.

use std::borrow::Cow;

use actix_web::HttpRequest;
use percent_encoding::percent_decode_str;

use super::codes::Code;
use super::problem::Problem;
use crate::board::{BoardName, Subject};

/// `/v1/boards/{board}/…`: what stands at `{board}`.
const BOARD_PART: usize = 3;
/// `/v1/boards/{board}/subjects/{subject}/…`: what stands at `{subject}`.
const SUBJECT_PART: usize = 5;

/// The board that the path names. One that cannot be a board's name is unknown like any other.
pub(super) fn board_name(request: &HttpRequest) -> Result<BoardName, Problem> {
    let text = board_text(request);
    BoardName::parse(&text).map_err(|error| {
        let detail = format!("there is no board '{}': {error}", text.chars().take(64).collect::<String>());
        Problem::new(Code::UnknownBoard, detail)
    })
}

/// The name in the path for a board that is to be.
pub(super) fn new_board_name(request: &HttpRequest) -> Result<BoardName, Problem> {
    BoardName::parse(&board_text(request)).map_err(|error| Problem::new(Code::InvalidBoardName, error.to_string()))
}

/// The subject that the path names, percent-encoded as one part.
pub(super) fn subject(request: &HttpRequest) -> Result<Subject, Problem> {
    parse_subject(part(request, SUBJECT_PART))
}

fn part(request: &HttpRequest, index: usize) -> &str {
    request.uri().path().split('/').nth(index).unwrap_or_default()
}

fn board_text(request: &HttpRequest) -> Cow<'_, str> {
    percent_decode_str(part(request, BOARD_PART)).decode_utf8_lossy()
}

fn parse_subject(encoded: &str) -> Result<Subject, Problem> {
    let invalid = |detail: String| Problem::new(Code::InvalidSubject, detail);
    // A stray '%' would be taken literally, and the same subject could then be written in two ways.
    if let Some(stray) = stray_percent(encoded) {
        let detail = format!("'%' at byte {stray} of the subject is not followed by two hex digits; write it as %25");
        return Err(invalid(detail).with("position", stray));
    }
    let decoded = percent_decode_str(encoded).decode_utf8().map_err(|error| {
        invalid(format!("the subject is not UTF-8 once decoded, from byte {}", error.valid_up_to()))
            .with("position", error.valid_up_to())
    })?;
    Subject::parse(&decoded).map_err(|error| invalid(error.to_string()))
}

fn stray_percent(encoded: &str) -> Option<usize> {
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
    fn what_is_no_subject_is_refused_and_says_why() {
        for (encoded, says) in [
            ("%FF", "not UTF-8"),
            ("a%ED%A0%80", "not UTF-8"),
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
    fn decoded_once_and_no_more() {
        for (encoded, subject) in
            [("a%2Fb", "a/b"), ("%252F", "%2F"), ("a+b", "a+b"), ("%2E%2E", ".."), ("%2Fwindow", "/window")]
        {
            assert_eq!(parse_subject(encoded).unwrap().as_str(), subject);
        }
    }

    proptest! {
        #[test]
        fn every_subject_can_be_written_in_a_path(text in "\\PC{1,60}") {
            if let Ok(subject) = Subject::parse(&text) {
                let encoded = utf8_percent_encode(&text, NON_ALPHANUMERIC).to_string();
                prop_assert_eq!(parse_subject(&encoded).unwrap(), subject);
            }
        }
    }
}
