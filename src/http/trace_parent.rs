//! The trace that a request is part of, as its header `traceparent` names it (W3C Trace Context).

use actix_web::http::header::{HeaderMap, HeaderName, HeaderValue};

const TRACEPARENT: HeaderName = HeaderName::from_static("traceparent");

/// The length of the header in version 00: `00-<32 digits>-<16 digits>-<2 digits>`.
const LENGTH: usize = 55;

/// A valid `traceparent`.
#[derive(Clone, Debug)]
pub(super) struct TraceParent(HeaderValue);

impl TraceParent {
    /// Returns the trace of a request with these headers. A header that is not valid names none, and neither do
    /// several.
    pub(super) fn from_headers(headers: &HeaderMap) -> Option<Self> {
        let mut given = headers.get_all(TRACEPARENT);
        given.next().filter(|value| given.next().is_none() && is_valid(value.as_bytes())).cloned().map(Self)
    }

    /// Returns the id of the trace.
    pub(super) fn trace_id(&self) -> &str {
        self.part(3..35)
    }

    /// Returns the id of the caller's part of the trace.
    pub(super) fn parent_id(&self) -> &str {
        self.part(36..52)
    }

    fn part(&self, range: std::ops::Range<usize>) -> &str {
        self.0.to_str().ok().and_then(|text| text.get(range)).unwrap_or_default()
    }
}

/// Returns whether a header is valid. Of a version after 00, what follows the known parts may be anything.
fn is_valid(text: &[u8]) -> bool {
    let Some((known, rest)) = text.split_at_checked(LENGTH) else { return false };
    let [version, trace, parent, flags] = [&known[..2], &known[3..35], &known[36..52], &known[53..]];
    let are_digits = |part: &[u8]| part.iter().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    let is_not_zero = |part: &[u8]| part.iter().any(|byte| *byte != b'0');
    [2, 35, 52].iter().all(|at| known[*at] == b'-')
        && [version, trace, parent, flags].into_iter().all(are_digits)
        && is_not_zero(trace)
        && is_not_zero(parent)
        && version != b"ff"
        && (rest.is_empty() || (version != b"00" && rest[0] == b'-' && rest.is_ascii()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(values: &[&str]) -> Option<TraceParent> {
        let mut headers = HeaderMap::new();
        for value in values {
            headers.append(TRACEPARENT, HeaderValue::from_str(value).unwrap());
        }
        TraceParent::from_headers(&headers)
    }

    const VALID: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

    #[test]
    fn valid_headers_name_a_trace() {
        let later = |rest: &str| VALID.replacen("00-", "cc-", 1) + rest;
        for text in [VALID, &VALID.replace("-01", "-ff"), &later(""), &later("-"), &later("-what the future brings")] {
            let trace = parse(&[text]).unwrap_or_else(|| panic!("{text}"));
            assert_eq!(trace.trace_id(), "4bf92f3577b34da6a3ce929d0e0e4736");
            assert_eq!(trace.parent_id(), "00f067aa0ba902b7");
        }
    }

    #[test]
    fn other_headers_are_ignored() {
        for text in [
            "",
            &VALID[..54],
            &format!("{VALID}-"),
            &format!("{VALID}0"),
            &format!("{VALID}-00"),
            &format!(" {VALID}")[..],
            &VALID.to_uppercase(),
            &VALID.replacen("00-", "ff-", 1),
            &VALID.replacen("00-", "0g-", 1),
            &VALID.replacen("00-", "cc-", 1).replace("-01", "-01x"),
            &VALID.replace('-', "_"),
            &VALID.replace("4bf92f3577b34da6a3ce929d0e0e4736", &"0".repeat(32)),
            &VALID.replace("00f067aa0ba902b7", &"0".repeat(16)),
            &VALID.replace("b7-01", "b7-0x"),
            &VALID.replace("4bf9", "4bF9"),
            &VALID.replace("4bf9", "é9")[..],
        ] {
            assert!(parse(&[text]).is_none(), "{text:?}");
        }
        assert!(parse(&[]).is_none());
        assert!(parse(&[VALID, VALID]).is_none());
        for end in 0..VALID.len() {
            assert!(parse(&[&VALID[..end]]).is_none());
        }
    }
}
