//! Lines of a web server's access log, in the common or the combined format:
//!
//! ```text
//! 203.0.113.7 - ann [17/May/2015:10:05:03 +0000] "GET /a?b=c HTTP/1.1" 200 2326 "http://referrer/" "agent"
//! ```
//!
//! The server escapes what clients send (`\"`, `\\`, `\x16`). It is unescaped here.

use std::borrow::Cow;
use std::str::FromStr;

use super::record::{Record, Skip};
use super::time_format;
use crate::board::Timestamp;

/// A field of a line that can name the subject.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Field {
    Path,
    Ip,
    Method,
    Status,
    User,
    /// The user agent. Combined format only.
    Agent,
    /// The referrer. Combined format only.
    Referrer,
}

impl Field {
    /// Returns whether only the combined format has the field.
    pub fn is_combined_only(self) -> bool {
        matches!(self, Field::Agent | Field::Referrer)
    }
}

impl FromStr for Field {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Ok(match text {
            "path" => Field::Path,
            "ip" => Field::Ip,
            "method" => Field::Method,
            "status" => Field::Status,
            "user" => Field::User,
            "agent" => Field::Agent,
            "referrer" => Field::Referrer,
            _ => {
                return Err(format!(
                    "unknown field '{text}' of an access log; expected path, ip, method, status, user, agent or referrer"
                ));
            }
        })
    }
}

/// The parts of each line to use.
#[derive(Clone, Copy, Debug)]
pub struct Selection {
    pub subject: Field,
    /// Whether to use the response's size in bytes as the amount (`-` is 0).
    pub amount_is_bytes: bool,
    /// Whether to cut paths at `?`.
    pub strip_query: bool,
}

/// Parses one line.
pub fn parse(line: &[u8], selection: Selection) -> Result<Record<'_>, Skip> {
    if line.trim_ascii().is_empty() {
        return Err(Skip::Blank);
    }
    let raw = Raw::split(line).ok_or(Skip::NotAccessLog)?;
    let time = std::str::from_utf8(raw.time).map_err(|_| Skip::BadTime)?;
    let at = time_format::access_log(time).ok_or(Skip::BadTime)?;
    let field = match selection.subject {
        Field::Path => raw.target().ok_or(Skip::NoRequest)?,
        Field::Method => raw.method().ok_or(Skip::NoRequest)?,
        Field::Ip => raw.ip,
        Field::Status => raw.status,
        Field::User => raw.user,
        Field::Agent => raw.agent.ok_or(Skip::NoSubject)?,
        Field::Referrer => raw.referrer.ok_or(Skip::NoSubject)?,
    };
    let mut subject = unescape(field)?;
    if selection.subject == Field::Path && selection.strip_query {
        subject = match subject {
            Cow::Borrowed(path) => Cow::Borrowed(without_query(path)),
            Cow::Owned(path) => Cow::Owned(without_query(&path).to_owned()),
        };
    }
    if subject.is_empty() || subject == "-" {
        return Err(Skip::NoSubject);
    }
    let amount = match (selection.amount_is_bytes, raw.bytes) {
        (false, _) => None,
        (true, b"-") => Some(Cow::Borrowed("0")),
        (true, bytes) => Some(Cow::Borrowed(std::str::from_utf8(bytes).map_err(|_| Skip::BadAmount)?)),
    };
    Ok(Record { subject, amount, at: Some(at), ..Record::default() })
}

/// A line whose fields are all read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AccessLine<'l> {
    pub at: Timestamp,
    /// The names of the fields that the line has, and their values: path, page (the path up to `?`), ip, method, status, user,
    /// agent, referrer and bytes (`-` is 0).
    pub fields: Vec<(&'static str, Cow<'l, str>)>,
}

/// Parses all fields of a line, but for those that are not UTF-8. Returns `None` if it is not one of an access log.
pub fn parse_all(line: &[u8]) -> Option<AccessLine<'_>> {
    let raw = Raw::split(line)?;
    let at = time_format::access_log(std::str::from_utf8(raw.time).ok()?)?;
    let all = [
        ("path", raw.target()),
        ("ip", Some(raw.ip)),
        ("method", raw.method()),
        ("status", Some(raw.status)),
        ("user", Some(raw.user)),
        ("agent", raw.agent),
        ("referrer", raw.referrer),
        ("bytes", Some(raw.bytes)),
    ];
    let mut fields = Vec::with_capacity(all.len());
    for (name, value) in all {
        // What a client has sent need not be a text.
        let value = value.and_then(|value| unescape(value).ok());
        let Some(value) = value.filter(|value| !value.is_empty()) else { continue };
        match name {
            "bytes" if value == "-" => fields.push((name, "0".into())),
            _ if value == "-" => {}
            "path" => {
                fields.push(("page", without_query(&value).to_owned().into()));
                fields.push((name, value));
            }
            _ => fields.push((name, value)),
        }
    }
    Some(AccessLine { at, fields })
}

/// Returns whether a line has the combined format, which has two fields more than the common one. Returns `None` if the
/// line has neither format.
pub fn is_combined(line: &[u8]) -> Option<bool> {
    Raw::split(line).map(|raw| raw.agent.is_some())
}

fn without_query(path: &str) -> &str {
    path.split('?').next().unwrap_or(path)
}

/// The fields of a line, still escaped.
struct Raw<'l> {
    ip: &'l [u8],
    user: &'l [u8],
    time: &'l [u8],
    request: &'l [u8],
    status: &'l [u8],
    bytes: &'l [u8],
    referrer: Option<&'l [u8]>,
    agent: Option<&'l [u8]>,
}

impl<'l> Raw<'l> {
    fn split(line: &'l [u8]) -> Option<Self> {
        let (ip, rest) = cut(line, b" ")?;
        let (_ident, rest) = cut(rest, b" ")?;
        // A user name is not escaped and may contain spaces: it ends where the time begins.
        let (user, rest) = cut(rest, b" [")?;
        let (time, rest) = cut(rest, b"] ")?;
        let (request, rest) = quoted(rest)?;
        let mut words = rest.trim_ascii_start().splitn(3, |byte| *byte == b' ');
        let status = words.next().filter(|s| s.len() == 3 && s.iter().all(u8::is_ascii_digit))?;
        let bytes = words.next().filter(|b| *b == b"-" || (!b.is_empty() && b.iter().all(u8::is_ascii_digit)))?;
        let referrer = words.next().and_then(quoted);
        let agent = referrer.and_then(|(_, rest)| quoted(rest.trim_ascii_start()));
        let (referrer, agent) = (referrer.map(|(r, _)| r), agent.map(|(a, _)| a));
        (!ip.is_empty()).then_some(Self { ip, user, time, request, status, bytes, referrer, agent })
    }

    fn method(&self) -> Option<&'l [u8]> {
        let (method, _) = cut(self.request, b" ")?;
        (!method.is_empty() && method.iter().all(|b| b.is_ascii_alphabetic() || *b == b'-')).then_some(method)
    }

    /// Returns the target of the request. The target may contain spaces, as in `GET /a b HTTP/1.1`: the protocol
    /// follows the last space, if there is a protocol.
    fn target(&self) -> Option<&'l [u8]> {
        self.method()?;
        let (_, rest) = cut(self.request, b" ")?;
        let target = match rest.iter().rposition(|byte| *byte == b' ') {
            Some(at) if rest[at + 1..].starts_with(b"HTTP/") => &rest[..at],
            _ => rest,
        };
        (!target.is_empty()).then_some(target)
    }
}

fn cut<'l>(text: &'l [u8], separator: &[u8]) -> Option<(&'l [u8], &'l [u8])> {
    let at = text.windows(separator.len()).position(|window| window == separator)?;
    Some((&text[..at], &text[at + separator.len()..]))
}

/// Returns the text between quotes, and the rest after it.
fn quoted(text: &[u8]) -> Option<(&[u8], &[u8])> {
    let inner = text.strip_prefix(b"\"")?;
    let mut escaped = false;
    for (at, byte) in inner.iter().enumerate() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = true,
            b'"' => return Some((&inner[..at], &inner[at + 1..])),
            _ => {}
        }
    }
    None
}

fn unescape(text: &[u8]) -> Result<Cow<'_, str>, Skip> {
    if !text.contains(&b'\\') {
        return std::str::from_utf8(text).map(Cow::Borrowed).map_err(|_| Skip::NotUtf8);
    }
    let mut plain = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some((&byte, after)) = rest.split_first() {
        rest = match (byte, after) {
            (b'\\', [quoted @ (b'"' | b'\\'), after @ ..]) => {
                plain.push(*quoted);
                after
            }
            (b'\\', [b'x', high, low, after @ ..]) if high.is_ascii_hexdigit() && low.is_ascii_hexdigit() => {
                plain.push(hex(*high) << 4 | hex(*low));
                after
            }
            (byte, after) => {
                plain.push(byte);
                after
            }
        };
    }
    String::from_utf8(plain).map(Cow::Owned).map_err(|_| Skip::NotUtf8)
}

fn hex(digit: u8) -> u8 {
    match digit {
        b'0'..=b'9' => digit - b'0',
        _ => (digit | 0x20) - b'a' + 10,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const COMBINED: &str = r#"83.149.9.216 - ann lee [17/May/2015:10:05:03 +0000] "GET /a/b.png?x=%20 HTTP/1.1" 200 203023 "http://example.com/" "Mozilla \"5\" \\ \x41""#;

    fn subject(line: &str, subject: Field) -> Result<String, Skip> {
        let selection = Selection { subject, amount_is_bytes: false, strip_query: false };
        parse(line.as_bytes(), selection).map(|record| record.subject.into_owned())
    }

    #[test]
    fn every_field_of_a_combined_line_is_parsed() {
        for (field, expected) in [
            ("path", "/a/b.png?x=%20"),
            ("ip", "83.149.9.216"),
            ("method", "GET"),
            ("status", "200"),
            ("user", "ann lee"),
            ("agent", "Mozilla \"5\" \\ A"),
            ("referrer", "http://example.com/"),
        ] {
            assert_eq!(subject(COMBINED, field.parse().unwrap()).as_deref(), Ok(expected));
        }
        assert!("size".parse::<Field>().is_err());
        let selection = Selection { subject: Field::Path, amount_is_bytes: true, strip_query: true };
        let record = parse(COMBINED.as_bytes(), selection).unwrap();
        assert_eq!((&*record.subject, record.amount.as_deref()), ("/a/b.png", Some("203023")));
        assert_eq!(record.at.unwrap().to_string(), "2015-05-17T10:05:03Z");
    }

    #[test]
    fn all_fields_of_a_line_are_read() {
        let line = parse_all(COMBINED.as_bytes()).unwrap();
        let texts: Vec<_> = line.fields.iter().map(|(name, value)| format!("{name}={value}")).collect();
        assert_eq!(
            texts.join(" "),
            "page=/a/b.png path=/a/b.png?x=%20 ip=83.149.9.216 method=GET status=200 user=ann lee agent=Mozilla \"5\" \\ A \
             referrer=http://example.com/ bytes=203023"
        );
        assert_eq!(line.at.to_string(), "2015-05-17T10:05:03Z");
        let bare = parse_all(br#"::1 - - [17/May/2015:10:05:03 +0000] "-" 304 -"#).unwrap();
        assert_eq!(bare.fields, [("ip", "::1".into()), ("status", "304".into()), ("bytes", "0".into())]);
        let foreign = r#"::1 - - [17/May/2015:10:05:03 +0000] "-" 304 - "http://\xe4/" "x""#;
        assert_eq!(parse_all(foreign.as_bytes()).unwrap().fields.last(), Some(&("bytes", "0".into())));
        assert_eq!(parse_all(foreign.as_bytes()).unwrap().fields.len(), 4);
        assert_eq!(parse_all(b"hello"), None);
    }

    #[test]
    fn common_format_lines_have_no_agent_and_dashes_are_absent() {
        let line = r#"::1 - - [17/May/2015:10:05:03 +0000] "GET / HTTP/1.1" 304 -"#;
        assert_eq!(is_combined(line.as_bytes()), Some(false));
        assert_eq!(is_combined(COMBINED.as_bytes()), Some(true));
        assert_eq!(is_combined(b"hello"), None);
        assert_eq!(subject(line, Field::Ip).as_deref(), Ok("::1"));
        assert_eq!(subject(line, Field::Agent), Err(Skip::NoSubject));
        assert_eq!(subject(line, Field::User), Err(Skip::NoSubject));
        let selection = Selection { subject: Field::Path, amount_is_bytes: true, strip_query: false };
        assert_eq!(parse(line.as_bytes(), selection).unwrap().amount.as_deref(), Some("0"));
    }

    #[test]
    fn lines_with_malformed_requests_still_have_an_address() {
        for request in ["-", "", r"\x16\x03\x01", "GET", "GET ", " / HTTP/1.1", r"\x00GET / HTTP/1.0"] {
            let line = format!(r#"1.2.3.4 - - [17/May/2015:10:05:03 +0000] "{request}" 400 226 "-" "-""#);
            assert_eq!(subject(&line, Field::Path), Err(Skip::NoRequest), "{request}");
            assert_eq!(subject(&line, Field::Ip).as_deref(), Ok("1.2.3.4"));
        }
        for (request, path) in [("GET /a b HTTP/1.1", "/a b"), ("GET /old", "/old"), (r"GET /\xc3\xa9 HTTP/1.1", "/é")]
        {
            let line = format!(r#"1.2.3.4 - - [17/May/2015:10:05:03 +0000] "{request}" 200 1 "-" "-""#);
            assert_eq!(subject(&line, Field::Path).as_deref(), Ok(path));
        }
    }

    #[test]
    fn invalid_lines_are_skipped_with_a_reason() {
        let at = "[17/May/2015:10:05:03 +0000]";
        for (line, reason) in [
            (String::new(), Skip::Blank),
            ("   ".into(), Skip::Blank),
            ("garbage".into(), Skip::NotAccessLog),
            (format!(r#"1.2.3.4 - - {at} "GET / HTTP/1.1" 200"#), Skip::NotAccessLog),
            (format!(r#"1.2.3.4 - - {at} "GET / HTTP/1.1 200 5"#), Skip::NotAccessLog),
            (format!(r#"1.2.3.4 - - {at} "GET /\" 200 5"#), Skip::NotAccessLog),
            (format!(r#"1.2.3.4 - - {at} "GET / HTTP/1.1" 2000 5"#), Skip::NotAccessLog),
            (format!(r#"1.2.3.4 - - {at} "GET / HTTP/1.1" 200 -5"#), Skip::NotAccessLog),
            (r#"1.2.3.4 - - [32/May/2015:10:05:03 +0000] "GET / HTTP/1.1" 200 5"#.into(), Skip::BadTime),
            (format!(r#"1.2.3.4 - - {at} "GET /\xff HTTP/1.1" 200 5"#), Skip::NotUtf8),
        ] {
            assert_eq!(subject(&line, Field::Path), Err(reason), "{line}");
        }
        let whole = COMBINED.as_bytes();
        let selection = Selection { subject: Field::Agent, amount_is_bytes: true, strip_query: true };
        for end in 0..whole.len() {
            assert!(parse(&whole[..end], selection).is_err(), "cut at {end}");
        }
    }
}
