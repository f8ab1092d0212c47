//! Log lines show what callers wrote, such as names and paths. Characters of it that end a line, control a terminal, or
//! change how the text around them looks are written as escape sequences, here and not where each line is logged.

use std::fmt::{self, Write as _};
use std::io;

use tracing::field::{Field, Visit};
use tracing_subscriber::field::RecordFields;
use tracing_subscriber::fmt::FormatFields;
use tracing_subscriber::fmt::format::Writer;

/// Returns whether a character is not seen as itself: controls, and the format characters of Unicode, which reverse
/// text, hide in it, or separate lines.
pub(crate) fn is_hidden(character: char) -> bool {
    character.is_control()
        || matches!(
            character,
            '\u{ad}'
                | '\u{61c}'
                | '\u{180e}'
                | '\u{200b}'..='\u{200f}'
                | '\u{2028}'..='\u{202e}'
                | '\u{2060}'..='\u{206f}'
                | '\u{feff}'
                | '\u{fff9}'..='\u{fffb}'
                | '\u{e0000}'..='\u{e007f}'
        )
}

/// The form of the message and the fields of a line of text.
pub(super) struct EscapedFields;

impl<'w> FormatFields<'w> for EscapedFields {
    fn format_fields<R: RecordFields>(&self, writer: Writer<'w>, fields: R) -> fmt::Result {
        let mut line = LogLine { writer, is_begun: false, result: Ok(()) };
        fields.record(&mut line);
        line.result
    }
}

struct LogLine<'w> {
    writer: Writer<'w>,
    is_begun: bool,
    result: fmt::Result,
}

impl LogLine<'_> {
    fn write(&mut self, name: &str, value: &dyn fmt::Debug) -> fmt::Result {
        if std::mem::replace(&mut self.is_begun, true) {
            self.writer.write_char(' ')?;
        }
        match (name, self.writer.has_ansi_escapes()) {
            ("message", _) => {}
            (_, true) => write!(self.writer, "\u{1b}[3m{name}\u{1b}[0m\u{1b}[2m=\u{1b}[0m")?,
            (_, false) => write!(self.writer, "{name}=")?,
        }
        write!(EscapedText(&mut self.writer), "{value:?}")
    }
}

impl Visit for LogLine<'_> {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        // Where the line of a library comes from, which its target says.
        if self.result.is_ok() && !field.name().starts_with("log.") {
            self.result = self.write(field.name().trim_start_matches("r#"), value);
        }
    }
}

/// Writes text with escape sequences.
struct EscapedText<'a, W>(&'a mut W);

impl<W: fmt::Write> fmt::Write for EscapedText<'_, W> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        for part in text.split_inclusive(is_hidden) {
            let last = part.chars().next_back().filter(|last| is_hidden(*last));
            self.0.write_str(&part[..part.len() - last.map_or(0, char::len_utf8)])?;
            if let Some(hidden) = last {
                write!(self.0, "{}", hidden.escape_default())?;
            }
        }
        Ok(())
    }
}

/// Writes lines of JSON with the escape sequences of JSON for what its encoder leaves as it is.
pub(super) struct EscapedJson<W>(pub W);

impl<W: io::Write> io::Write for EscapedJson<W> {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        // The encoder leaves no line feed inside of a line.
        let is_hidden = |character| character != '\n' && is_hidden(character);
        match std::str::from_utf8(line) {
            Ok(text) if text.contains(is_hidden) => {
                let mut escaped = String::with_capacity(line.len() + 16);
                for character in text.chars() {
                    if !is_hidden(character) {
                        escaped.push(character);
                        continue;
                    }
                    for unit in character.encode_utf16(&mut [0; 2]) {
                        // Writing to a string does not fail.
                        let _ = write!(escaped, "\\u{unit:04x}");
                    }
                }
                self.0.write_all(escaped.as_bytes())?;
            }
            _ => self.0.write_all(line)?,
        }
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use parking_lot::Mutex;

    use super::*;

    /// What a caller may write.
    const HOSTILE: &str =
        "x\n2026-01-01T00:00:00Z  INFO audit: done\r\u{1b}[31m\u{9b}2J\u{202e}\u{200b}\u{2028}\u{e0001}\tü🎉";

    #[derive(Clone, Default)]
    struct Kept(Arc<Mutex<Vec<u8>>>);

    impl io::Write for Kept {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    impl Kept {
        fn line(&self) -> String {
            String::from_utf8(self.0.lock().clone()).unwrap()
        }
    }

    fn log() {
        let span = tracing::info_span!("request", path = %HOSTILE);
        span.in_scope(|| tracing::info!(name = %HOSTILE, quoted = HOSTILE, number = 7, "GET {HOSTILE}"));
    }

    #[test]
    fn a_line_of_text_has_no_character_that_is_not_seen() {
        for has_colours in [false, true] {
            let kept = Kept::default();
            let to = kept.clone();
            let builder = tracing_subscriber::fmt().with_ansi(has_colours).fmt_fields(EscapedFields);
            tracing::subscriber::with_default(builder.with_writer(move || to.clone()).finish(), log);
            let line = kept.line();
            assert_eq!(line.matches('\n').count(), 1, "{line}");
            let of_formatter = |character| has_colours && character == '\u{1b}';
            let hidden = line.trim_end_matches('\n').chars().find(|c| is_hidden(*c) && !of_formatter(*c));
            assert_eq!(hidden, None, "{line}");
            assert!(!line.contains("\u{1b}[31m") && line.contains("ü🎉"), "{line}");
            let shown = r"GET x\n2026-01-01T00:00:00Z  INFO audit: done\r\u{1b}[31m\u{9b}2J\u{202e}\u{200b}\u{2028}\u{e0001}\tü🎉";
            assert!(line.contains(shown), "{line}");
            assert!(has_colours || line.contains(" number=7"), "{line}");
        }
    }

    #[test]
    fn a_line_of_json_has_the_text_and_no_character_that_is_not_seen() {
        let kept = Kept::default();
        let to = kept.clone();
        let builder = tracing_subscriber::fmt().with_ansi(false).json();
        tracing::subscriber::with_default(builder.with_writer(move || EscapedJson(to.clone())).finish(), log);
        let line = kept.line();
        assert!(!line.trim_end_matches('\n').contains(is_hidden), "{line}");
        let line: serde_json::Value = serde_json::from_str(&line).unwrap();
        assert_eq!((&line["fields"]["name"], &line["fields"]["quoted"]), (&HOSTILE.into(), &HOSTILE.into()));
    }
}
