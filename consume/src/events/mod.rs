//! How a message becomes events: lines of NDJSON as the service takes them, each with its position.

mod cells;
mod config;
mod writing;

use std::sync::Arc;

use rolltop::cli::replay::time_format;
use serde_json::value::RawValue;

use crate::log::{After, LogPlace, Message, TimeOf};
use crate::path::MemberPath;
pub use config::EventConfig;

/// A message with several events takes this many positions. The last one says that the message is passed.
const EVENTS_EACH: u128 = 1 << 16;

/// How long all events of a message may be, in bytes: several times what is sent at once.
const MAX_EVENTS_BYTES: usize = 8 << 20;

/// Makes events of messages.
#[derive(Clone, Debug)]
pub struct Mapping {
    config: EventConfig,
}

/// Why a message makes no event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unreadable(String);

impl std::fmt::Display for Unreadable {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

fn unreadable<T>(text: impl Into<String>) -> Result<T, Unreadable> {
    Err(Unreadable(text.into()))
}

impl Mapping {
    pub fn new(config: EventConfig) -> Self {
        Self { config }
    }

    /// Returns where to go on if this is what has been counted: the position to send what follows with, and where that is
    /// in the log. A message of whose events some are counted is read again.
    pub fn go_on(&self, reached: u128) -> (After, LogPlace) {
        let message = reached / EVENTS_EACH;
        match self.has_several() {
            false => (Some(reached), LogPlace::After(reached)),
            true if reached == self.passed(message) => (Some(reached), LogPlace::After(message)),
            true => ((message * EVENTS_EACH).checked_sub(1), LogPlace::Again(message)),
        }
    }

    /// Returns whether a message can have several events.
    pub fn has_several(&self) -> bool {
        self.config.each.is_some()
    }

    /// Returns the position of the last event that a message can have.
    pub fn passed(&self, message: u128) -> u128 {
        if !self.has_several() {
            return message;
        }
        message.saturating_mul(EVENTS_EACH).saturating_add(EVENTS_EACH - 1)
    }

    /// Appends the events of a message to `lines`. Returns their number; 0 if it has none, as a message without value.
    ///
    /// Appends nothing if the message is not what the configuration says.
    pub fn append(&self, message: &Message, lines: &mut String) -> Result<usize, Unreadable> {
        if let Some(fault) = &message.fault {
            return unreadable(fault.as_ref());
        }
        let Some(value) = &message.value else { return Ok(0) };
        let text = std::str::from_utf8(value).map_err(|_| Unreadable("it is not UTF-8".to_owned()))?;
        let text = text.trim_start_matches('\u{feff}').trim();
        if text.is_empty() {
            return Ok(0);
        }
        // A half of a character, which JSON can have and texts cannot: the service would refuse all that is sent with it.
        if self.config.is_json() && (text.contains("\\u") && serde_json::from_str::<serde_json::Value>(text).is_err()) {
            return unreadable("it is not JSON");
        }
        let begun = lines.len();
        let appended = match &self.config.each {
            None => match self.config.parse(text) {
                Ok(Some(cells)) => self.event(&cells, message, message.position, lines).map(|()| 1),
                Ok(None) => Ok(0),
                Err(error) => Err(error),
            },
            Some(path) => self.each(text, path, message, lines),
        };
        if appended.is_err() {
            lines.truncate(begun);
        }
        appended
    }

    /// Returns the time that a message says, in Unix milliseconds, at a path or where the time of its event is: that of the
    /// first one of several.
    pub fn time_of(&self, value: &[u8], path: Option<&MemberPath>) -> Option<i64> {
        let text = std::str::from_utf8(value).ok()?.trim();
        let cells = match &self.config.each {
            None => self.config.parse(text).ok()??,
            Some(path) => {
                let elements: Vec<&RawValue> = cells::elements(text, path).ok()?;
                self.config.parse(elements.first()?.get()).ok()??
            }
        };
        let own = MemberPath::from("at".to_owned());
        let format = cells.time.filter(|_| path.is_none());
        let path = path.or(self.config.at.as_ref()).unwrap_or(&own);
        let at = format.or_else(|| cells.find(path).and_then(|cell| time_format::parse(&cell.text()?)))?;
        Some(at.millis())
    }

    fn each(&self, text: &str, path: &MemberPath, message: &Message, lines: &mut String) -> Result<usize, Unreadable> {
        let elements = cells::elements(text, path)?;
        if elements.len() as u128 >= EVENTS_EACH {
            return unreadable(format!("it has {} events: as many as {EVENTS_EACH} are too many", elements.len()));
        }
        let first = message.position.checked_mul(EVENTS_EACH).filter(|first| first.checked_add(EVENTS_EACH).is_some());
        let first = first.ok_or_else(|| Unreadable("its position is too large for several events".to_owned()))?;
        let (mut made, begun) = (0, lines.len());
        for (at, element) in elements.iter().enumerate() {
            if let Some(cells) = self.config.parse(element.get())? {
                self.event(&cells, message, first + at as u128, lines)?;
                made += 1;
                if lines.len() - begun > MAX_EVENTS_BYTES {
                    return unreadable(format!("its events have more than {MAX_EVENTS_BYTES} bytes"));
                }
            }
        }
        Ok(made)
    }
}

/// Returns how the time of a line is read: from where its writer has it, or where the time of its event is.
pub fn time_of(mapping: &Arc<Mapping>, clock: Option<MemberPath>) -> TimeOf {
    let mapping = mapping.clone();
    Arc::new(move |line| mapping.time_of(line, clock.as_ref()))
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;

    fn mapping(config: &str) -> Mapping {
        Mapping::new(toml::from_str(config).unwrap())
    }

    fn message(value: &str) -> Message {
        let headers = vec![("trace".to_owned(), None), ("trace".to_owned(), Some(Bytes::from("t-1")))];
        let time = Some(1_767_225_600_000);
        Message {
            position: 7,
            time,
            key: Some(Bytes::from("k-1")),
            headers,
            value: Some(Bytes::from(value.to_owned())),
            ..Message::default()
        }
    }

    /// Returns the lines without the position, or why there are none.
    fn lines(config: &str, value: &str) -> Result<Vec<String>, String> {
        let mut lines = String::from("before\n");
        match mapping(config).append(&message(value), &mut lines) {
            Ok(number) => {
                let made: Vec<String> = lines.lines().skip(1).map(str::to_owned).collect();
                assert_eq!(made.len(), number);
                Ok(made.iter().map(|line| line.replacen(r#"{"position":"7","#, "{", 1)).collect())
            }
            Err(why) => {
                assert_eq!(lines, "before\n");
                Err(why.to_string())
            }
        }
    }

    fn line(config: &str, value: &str) -> String {
        lines(config, value).unwrap_or_else(|why| panic!("{value}: {why}")).concat()
    }

    #[test]
    fn an_event_of_the_service_stays_as_it_is() {
        for (value, expected) in [
            (
                r#"{"type":"like","fields":{"a":1.10,"b":[1]},"at":"2025-12-31T00:00:00Z","id":"x"}"#,
                r#"{"type":"like","fields":{"a":1.10,"b":[1]},"id":"x","at":"2025-12-31T00:00:00Z"}"#,
            ),
            // Its position is that of the log, and its time, where it has none, or one of a clock that is ahead.
            (r#"{"type":"like","at":"2026-01-01T00:50:00Z"}"#, r#"{"type":"like","at":"2026-01-01T00:00:00Z"}"#),
            (r#" {"position": 3, "type":"like"} "#, r#"{"type":"like","at":"2026-01-01T00:00:00Z"}"#),
        ] {
            assert_eq!(line("", value), expected);
        }
        assert_eq!(lines("", "\u{feff} \n"), Ok(vec![]));
        for value in [
            "[]",
            "1",
            "{",
            r#"{"type":"a"} x"#,
            r#"{"fields":{}}"#,
            r#"{"type":"a","at":"soon"}"#,
            r#"{"type":"\ud800"}"#,
        ] {
            assert!(lines("", value).is_err(), "{value}");
        }
        let long = format!(r#"{{"type":"{}"}}"#, "x".repeat(writing::MAX_EVENT));
        assert!(lines("", &long).unwrap_err().contains("more than"));
    }

    #[test]
    fn members_are_found_by_path_and_renamed() {
        let value = r#"{"kind":"like","a":{"b.c":1,"d":{"e":"x\"y"}},"n":12345678901234567890,"no":null,"list":[1],"t":1767225599,"undo":true}"#;
        let all = r#"type = { member = "kind" }
            at = "t"
            id = "n"
            retract = "undo"
            fields = ["a.d.e", "n", "no", "list", "none", "$key"]"#;
        let expected = r#"{"type":"like","id":"12345678901234567890","retract":true,"fields":{"e":"x\"y","n":12345678901234567890,"key":"k-1"},"at":"2025-12-31T23:59:59Z"}"#;
        assert_eq!(line(all, value), expected);
        let renamed =
            "type = \"x\"\nfields = { subject = \"a.d.e\", trace = \"$header.trace\", other = \"$header.no\" }";
        let expected = r#"{"type":"x","fields":{"subject":"x\"y","trace":"t-1"},"at":"2026-01-01T00:00:00Z"}"#;
        assert_eq!(line(renamed, value), expected);
        // By default all that is a text, a number or a truth value, and not used otherwise.
        let expected = r#"{"type":"like","fields":{"n":12345678901234567890,"undo":true},"at":"2025-12-31T23:59:59Z"}"#;
        assert_eq!(line("type = { member = \"kind\" }\nat = \"t\"", value), expected);
        for (config, needle) in [
            ("type = { member = \"none\" }", "no type 'none'"),
            ("type = \"x\"\nat = \"none\"", "no time 'none'"),
            ("type = \"x\"\nat = \"kind\"", "'kind' is not a time: like"),
            ("type = \"x\"\nid = \"no\"", "no id 'no'"),
        ] {
            assert!(lines(config, value).unwrap_err().contains(needle), "{config}");
        }
    }

    #[test]
    fn an_event_is_not_younger_than_its_message() {
        let expected = r#"{"type":"x","fields":{},"at":"2026-01-01T00:00:00Z"}"#;
        assert_eq!(line("type = \"x\"\nat = \"t\"", r#"{"t":"2026-01-01T00:50:00Z"}"#), expected);
    }

    #[test]
    fn rows_have_columns_and_a_header() {
        let config = "format = \"csv\"\ncolumns = [\"time\", \"shop\", \"n\", \"x\"]\ntype = \"sale\"\nat = \"time\"";
        assert_eq!(lines(config, "time,shop,n,x\r\n"), Ok(vec![]));
        let expected = r#"{"type":"sale","fields":{"shop":"a, \"b\"","n":"-1.50"},"at":"2025-12-31T08:26:00Z"}"#;
        assert_eq!(line(config, "2025-12-31 08:26:00,\"a, \"\"b\"\"\",-1.50,\n"), expected);
        let expected = r#"{"type":"sale","fields":{"n":"many","x":"1"},"at":"2025-12-31T08:26:00Z"}"#;
        assert_eq!(line(config, "2025-12-31 08:26:00,,many,1"), expected);
        assert!(lines(config, "a,b").unwrap_err().contains("2 columns, and not 4"));
        assert!(lines(config, "\"a").is_err());
    }

    #[test]
    fn a_message_may_have_several_events() {
        let config = "each = \"batch.items\"\ntype = \"like\"\nfields = [\"id\"]";
        let value = r#"{"batch":{"items":[{"id":1},{"id":2}]}}"#;
        let mut text = String::new();
        assert_eq!(mapping(config).append(&message(value), &mut text), Ok(2));
        let at = r#""at":"2026-01-01T00:00:00Z""#;
        let expected = format!(
            "{{\"position\":\"458752\",\"type\":\"like\",\"fields\":{{\"id\":1}},{at}}}\n{{\"position\":\"458753\",\"type\":\"like\",\"fields\":{{\"id\":2}},{at}}}\n"
        );
        assert_eq!(text, expected);
        assert_eq!(lines("each = \"\"\ntype = \"like\"", "[{}]").map(|lines| lines.len()), Ok(1));
        // One of them that is wrong makes the message unreadable.
        assert!(lines(config, r#"{"batch":{"items":[{"id":1},2]}}"#).is_err());
        assert!(lines(config, r#"{"batch":{}}"#).unwrap_err().contains("no list 'batch.items'"));
        let several = mapping(config);
        assert_eq!(several.passed(7), 8 * EVENTS_EACH - 1);
        // What was counted in part is sent again.
        assert_eq!(several.go_on(7 * EVENTS_EACH + 1), (Some(7 * EVENTS_EACH - 1), LogPlace::Again(7)));
        assert_eq!(several.go_on(8 * EVENTS_EACH - 1), (Some(8 * EVENTS_EACH - 1), LogPlace::After(7)));
        assert_eq!(several.go_on(1), (None, LogPlace::Again(0)));
        assert_eq!(mapping("").go_on(7), (Some(7), LogPlace::After(7)));
    }
}
