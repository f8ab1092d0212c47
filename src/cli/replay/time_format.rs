//! The time formats of logs.

use chrono::{DateTime, NaiveDateTime};

use crate::board::Timestamp;

/// The first Unix time that is read as milliseconds. As seconds it would be in the year 5138, as milliseconds it is in
/// 1973.
const FIRST_MILLIS: i64 = 100_000_000_000;

/// Parses RFC 3339, `2015-09-12 00:46:58` (as UTC; seconds and their fraction may be missing), the access log's
/// `17/May/2015:10:05:03 +0000`, or Unix seconds or milliseconds. Returns `None` if the text has none of these formats
/// or the time is not between the years 1970 and 9999.
pub fn parse(text: &str) -> Option<Timestamp> {
    let text = text.trim();
    if text.bytes().next()?.is_ascii_digit() && text.bytes().all(|b| b.is_ascii_digit() || b == b'.') {
        return unix(text);
    }
    if text.as_bytes().get(2) == Some(&b'/') {
        return access_log(text);
    }
    Timestamp::parse(text).ok().or_else(|| universal(text))
}

/// Parses `17/May/2015:10:05:03 +0000`.
pub fn access_log(text: &str) -> Option<Timestamp> {
    in_range(DateTime::parse_from_str(text, "%d/%b/%Y:%H:%M:%S %z").ok()?.timestamp_millis())
}

fn universal(text: &str) -> Option<Timestamp> {
    ["%Y-%m-%d %H:%M:%S%.f", "%Y-%m-%dT%H:%M:%S%.f", "%Y-%m-%d %H:%M"]
        .iter()
        .find_map(|format| NaiveDateTime::parse_from_str(text, format).ok())
        .and_then(|time| in_range(time.and_utc().timestamp_millis()))
}

fn unix(text: &str) -> Option<Timestamp> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let whole: i64 = whole.parse().ok()?;
    if fraction.contains('.') {
        return None;
    }
    if whole >= FIRST_MILLIS {
        return in_range(whole);
    }
    let millis: i64 = format!("{fraction:0<3.3}").parse().ok()?;
    in_range(whole * 1_000 + millis)
}

fn in_range(millis: i64) -> Option<Timestamp> {
    let time = Timestamp::from_millis(millis);
    (time.millis() == millis).then_some(time)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_supported_time_format_is_parsed() {
        for (text, expected) in [
            ("2015-09-12T00:46:58.771Z", "2015-09-12T00:46:58.771Z"),
            ("2015-09-12T02:46:58+02:00", "2015-09-12T00:46:58Z"),
            ("2010-12-01 08:26:00", "2010-12-01T08:26:00Z"),
            ("2010-12-01 08:26:00.5", "2010-12-01T08:26:00.500Z"),
            ("2010-12-01T08:26:00", "2010-12-01T08:26:00Z"),
            ("2010-12-01 08:26", "2010-12-01T08:26:00Z"),
            ("17/May/2015:10:05:03 +0000", "2015-05-17T10:05:03Z"),
            ("17/May/2015:00:05:03 +0200", "2015-05-16T22:05:03Z"),
            (" 1431857103 ", "2015-05-17T10:05:03Z"),
            ("1431857103.25", "2015-05-17T10:05:03.250Z"),
            ("1431857103.123987", "2015-05-17T10:05:03.123Z"),
            ("1431857103123", "2015-05-17T10:05:03.123Z"),
            ("0", "1970-01-01T00:00:00Z"),
        ] {
            assert_eq!(parse(text).map(|t| t.to_string()).as_deref(), Some(expected), "{text}");
        }
    }

    #[test]
    fn unsupported_times_are_refused_without_panicking() {
        for text in [
            "",
            " ",
            ".",
            "1.2.3",
            "-1",
            "99999999999999999999",
            "999999999999999",
            "2010-13-01 08:26:00",
            "2010-12-01",
            "30/Feb/2015:10:05:03 +0000",
            "17/Mai/2015:10:05:03 +0000",
            "17/May/2015:10:05:03",
            "1969-12-31T23:59:59Z",
            "17/May/99999:10:05:03 +0000",
            "é/",
            "日/本",
        ] {
            assert_eq!(parse(text), None, "{text}");
        }
    }
}
