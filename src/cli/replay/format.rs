//! The formats of logs, recognized by their first lines.

use std::io::BufRead;

use anyhow::bail;

use super::access_log::{self, Selection};
use super::fields::Fields;
use super::input::{Lines, TooLong};
use super::record::{Record, Skip};
use super::{ndjson, table};

/// The format of a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum LogFormat {
    /// An access log with referrer and agent, as Apache and nginx write by default.
    Combined,
    /// An access log without them.
    Common,
    /// One JSON object per line.
    Ndjson,
    /// Comma-separated, with a header line.
    Csv,
}

impl LogFormat {
    /// Guesses the format from the first lines. Returns `None` if no format fits.
    pub fn guess<L: AsRef<[u8]>>(lines: &[L]) -> Option<Self> {
        let lines = || lines.iter().map(|line| line.as_ref().trim_ascii()).filter(|line| !line.is_empty());
        lines()
            .find_map(|line| match access_log::is_combined(line) {
                Some(true) => Some(LogFormat::Combined),
                Some(false) => Some(LogFormat::Common),
                None if line.starts_with(b"{") => Some(LogFormat::Ndjson),
                None => None,
            })
            .or_else(|| lines().next().filter(|header| header.contains(&b',')).map(|_| LogFormat::Csv))
    }
}

/// A parser of lines, with the fields to read.
#[derive(Clone, Debug)]
pub enum Parser {
    AccessLog(Selection),
    Ndjson(Fields<String>),
    Csv(Fields<String>),
}

impl Parser {
    /// Creates a parser of `format`, which reads the fields with these names. `strip_query` cuts paths at `?`. Fails if
    /// the format does not have the wanted fields.
    pub fn new(format: LogFormat, wanted: Fields<String>, strip_query: bool) -> anyhow::Result<Self> {
        match format {
            LogFormat::Combined | LogFormat::Common => {
                if wanted.by.is_some() || wanted.value.is_some() {
                    bail!("--by and --value apply only to NDJSON and CSV");
                }
                if wanted.time.is_some() || wanted.id.is_some() {
                    bail!("an access log has its own time and no ids: leave out --time and --id");
                }
                let subject = wanted.subject.as_deref().unwrap_or("path").parse().map_err(anyhow::Error::msg)?;
                let selection = Selection {
                    subject,
                    amount_is_bytes: match wanted.amount.as_deref() {
                        None => false,
                        Some("bytes") => true,
                        Some(other) => bail!("the only amount in an access log is 'bytes', not '{other}'"),
                    },
                    strip_query,
                };
                if format == LogFormat::Common && selection.subject.is_combined_only() {
                    bail!("the common format has neither agent nor referrer; only the combined format has them");
                }
                Ok(Parser::AccessLog(selection))
            }
            LogFormat::Ndjson | LogFormat::Csv => {
                if strip_query {
                    bail!("--strip-query applies only to access logs");
                }
                if wanted.subject.is_none() {
                    bail!("--subject must name the field that is counted");
                }
                Ok(if format == LogFormat::Csv { Parser::Csv(wanted) } else { Parser::Ndjson(wanted) })
            }
        }
    }

    /// Returns the names that are asked for and that no field has of the first line that is an object. With what that line
    /// has. `None` for other formats: a column that a table does not have is an error at its header.
    pub fn missing_fields<L: AsRef<[u8]>>(&self, lines: &[L]) -> Option<(Vec<String>, Vec<String>)> {
        let Parser::Ndjson(names) = self else { return None };
        let there = lines.iter().map(|line| ndjson::names_in(line.as_ref())).find(|names| !names.is_empty())?;
        let Fields { subject, amount, by, value, time, id } = names;
        let wanted = [subject, amount, by, value, time, id].into_iter().flatten();
        let missing: Vec<String> = wanted.filter(|name| !there.contains(name)).cloned().collect();
        (!missing.is_empty()).then_some((missing, there))
    }

    /// Returns whether every increment will have the time when it happened.
    pub fn has_times(&self) -> bool {
        match self {
            Parser::AccessLog(_) => true,
            Parser::Ndjson(names) | Parser::Csv(names) => names.time.is_some(),
        }
    }

    /// Reads the log to its end. Calls `each` with a line's number, its bytes, and its increment or the reason for
    /// skipping it.
    pub fn read(
        &self,
        reader: impl BufRead,
        mut each: impl FnMut(u64, &[u8], Result<Record<'_>, Skip>) -> anyhow::Result<()>,
    ) -> anyhow::Result<()> {
        if let Parser::Csv(names) = self {
            return table::read(reader, names, each);
        }
        let mut lines = Lines::new(reader);
        while let Some((number, line)) = lines.next()? {
            let (line, record) = match line {
                Ok(line) => (line, self.parse_line(line)),
                Err(TooLong) => (&[][..], Err(Skip::LineTooLong)),
            };
            each(number, line, record)?;
        }
        Ok(())
    }

    fn parse_line<'l>(&self, line: &'l [u8]) -> Result<Record<'l>, Skip> {
        match self {
            Parser::AccessLog(selection) => access_log::parse(line, *selection),
            Parser::Ndjson(names) | Parser::Csv(names) => ndjson::parse(line, names),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const COMMON: &str = r#"::1 - - [17/May/2015:10:05:03 +0000] "GET /a,b HTTP/1.1" 200 5"#;

    #[test]
    fn formats_are_detected_from_the_first_conclusive_line() {
        let combined = format!(r#"{COMMON} "-" "curl""#);
        for (lines, expected) in [
            (vec!["", COMMON], Some(LogFormat::Common)),
            (vec!["broken, line", &combined], Some(LogFormat::Combined)),
            (vec![r#"{"a":1,"b":2}"#], Some(LogFormat::Ndjson)),
            (vec!["a,b", "1,2"], Some(LogFormat::Csv)),
            (vec!["hello", "a,b"], None),
            (vec![], None),
        ] {
            assert_eq!(LogFormat::guess(&lines), expected, "{lines:?}");
        }
    }

    #[test]
    fn fields_that_a_format_lacks_are_refused() {
        let none = || Fields { subject: None, amount: None, by: None, value: None, time: None, id: None };
        let with = |set: fn(&mut Fields<String>)| {
            let mut wanted = none();
            set(&mut wanted);
            wanted
        };
        assert!(Parser::new(LogFormat::Combined, none(), false).unwrap().has_times());
        for (format, wanted, needle) in [
            (LogFormat::Common, with(|w| w.subject = Some("agent".into())), "common format"),
            (LogFormat::Combined, with(|w| w.subject = Some("page".into())), "unknown field 'page'"),
            (LogFormat::Combined, with(|w| w.amount = Some("size".into())), "'bytes'"),
            (LogFormat::Combined, with(|w| w.id = Some("x".into())), "--id"),
            (LogFormat::Combined, with(|w| w.value = Some("x".into())), "--value"),
            (LogFormat::Ndjson, none(), "--subject"),
        ] {
            let error = Parser::new(format, wanted, false).unwrap_err().to_string();
            assert!(error.contains(needle), "{error}");
        }
        let error = Parser::new(LogFormat::Csv, none(), true).unwrap_err().to_string();
        assert!(error.contains("--strip-query"), "{error}");
    }
}
