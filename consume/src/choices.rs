//! What a source does where it has a choice.

use std::time::Duration;

use chrono::{DateTime, Utc};
use serde::Deserialize;

/// Where a log is begun.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub enum Begin {
    /// With the oldest message that there is.
    #[default]
    Earliest,
    /// With what comes next.
    Latest,
    /// With the first message that is not older than this.
    At(DateTime<Utc>),
}

/// Whether to go on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Decision {
    /// Say so, count it, and go on.
    #[default]
    Pass,
    /// Stop reading this log, until somebody has looked.
    Stop,
}

/// What is chosen for a source.
#[derive(Clone, Copy, Debug)]
pub struct Choices {
    pub begin: Begin,
    pub on_unreadable: Decision,
    pub on_gap: Decision,
    /// How long a source must stand still until a program that stands by takes over.
    pub take_over: Duration,
    /// Whether to end with the log.
    pub until_end: bool,
}

impl TryFrom<String> for Begin {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        match text.as_str() {
            "earliest" => Ok(Self::Earliest),
            "latest" => Ok(Self::Latest),
            time => DateTime::parse_from_rfc3339(time).map(|time| Self::At(time.to_utc())).map_err(|_| {
                format!(
                    "'{time}' is not where a log can begin: earliest, latest, or a time such as 2026-01-31T00:00:00Z"
                )
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn where_a_log_begins_is_read() {
        for (text, expected) in [
            ("earliest", Ok(Begin::Earliest)),
            ("latest", Ok(Begin::Latest)),
            ("2026-01-31T01:00:00+01:00", Ok(Begin::At("2026-01-31T00:00:00Z".parse().unwrap()))),
            ("oldest", Err(())),
        ] {
            assert_eq!(Begin::try_from(text.to_owned()).map_err(drop), expected, "{text}");
        }
    }
}
