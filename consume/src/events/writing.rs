//! An event as a line.

use std::borrow::Cow;
use std::fmt::Write as _;

use rolltop::board::Timestamp;
use rolltop::cli::replay::time_format;

use super::cells::{Cell, Cells};
use super::config::Chosen;
use super::{EventConfig, Mapping, Unreadable, unreadable};
use crate::log::Message;
use crate::path::MemberPath;

/// The longest event, in bytes: less than a service takes that is not told otherwise.
pub const MAX_EVENT: usize = 60 << 10;

impl Mapping {
    /// Appends an event.
    pub(super) fn event(
        &self,
        cells: &Cells<'_>,
        message: &Message,
        position: u128,
        lines: &mut String,
    ) -> Result<(), Unreadable> {
        let begun = lines.len();
        let _ = write!(lines, "{{\"position\":\"{position}\"");
        let at = match self.config.is_own() {
            true => self.own_members(cells, lines)?,
            false => self.mapped_members(cells, message, lines)?,
        };
        if let Some(at) = at.or(message.time) {
            // What is younger than the message that says it comes from a clock that is wrong.
            let at = message.time.map_or(at, |time| at.min(time));
            let _ = write!(lines, ",\"at\":\"{}\"", Timestamp::from_millis(at));
        }
        lines.push_str("}\n");
        if lines.len() - begun > MAX_EVENT {
            return unreadable(format!("its event has more than {MAX_EVENT} bytes"));
        }
        Ok(())
    }

    /// Returns the time that the configuration or the format names, in Unix milliseconds.
    fn at(&self, cells: &Cells<'_>) -> Result<Option<i64>, Unreadable> {
        let Some(path) = self.config.at.as_ref().filter(|_| cells.time.is_none()) else {
            return Ok(cells.time.map(Timestamp::millis));
        };
        let text = cells.find(path).and_then(|cell| cell.text());
        let text = text.ok_or_else(|| Unreadable(format!("it has no time '{path}'")))?;
        let time = time_format::parse(&text);
        let time = time.ok_or_else(|| Unreadable(format!("'{path}' is not a time: {}", shown(&text))))?;
        Ok(Some(time.millis()))
    }

    /// Appends the members of an event that is as the service takes it, except for its position, which is the log's, and its
    /// time, which is returned.
    fn own_members(&self, cells: &Cells<'_>, lines: &mut String) -> Result<Option<i64>, Unreadable> {
        let mut at = self.at(cells)?;
        for (name, cell) in &cells.values {
            match name.as_ref() {
                "position" => continue,
                "at" => {
                    let time = || cell.text().and_then(|text| time_format::parse(&text));
                    let own = || time().ok_or_else(|| Unreadable("its 'at' is not a time".to_owned()));
                    at = Some(at.map_or_else(|| own().map(Timestamp::millis), Ok)?);
                    continue;
                }
                _ => {}
            }
            let _ = write!(lines, ",{}:", json(name));
            cell.write(lines);
        }
        if !cells.has("type") {
            return unreadable("it has no 'type': say in [source.event] what it is");
        }
        Ok(at)
    }

    /// Appends the members that the configuration names. Returns the time.
    fn mapped_members(
        &self,
        cells: &Cells<'_>,
        message: &Message,
        lines: &mut String,
    ) -> Result<Option<i64>, Unreadable> {
        let time = self.at(cells)?;
        let EventConfig { kind, id, retract, fields, at, .. } = &self.config;
        match kind {
            Some(Chosen::Text(kind)) => {
                let _ = write!(lines, ",\"type\":{}", json(kind));
            }
            Some(Chosen::Member { member }) => {
                let kind = cells.find(member).and_then(|cell| cell.text());
                let kind = kind.ok_or_else(|| Unreadable(format!("it has no type '{member}'")))?;
                let _ = write!(lines, ",\"type\":{}", json(&kind));
            }
            None => return unreadable("no type"),
        }
        if let Some(path) = id {
            let id = self.find(cells, message, path).and_then(|cell| cell.text().map(Cow::into_owned));
            let id = id.ok_or_else(|| Unreadable(format!("it has no id '{path}'")))?;
            let _ = write!(lines, ",\"id\":{}", json(&id));
        }
        if let Some(path) = retract
            && cells.find(path).and_then(|cell| cell.text()).is_some_and(|text| text == "true" || text == "1")
        {
            lines.push_str(",\"retract\":true");
        }
        lines.push_str(",\"fields\":{");
        let mut is_first = true;
        let mut append = |name: &str, cell: &Cell<'_>| {
            if !std::mem::take(&mut is_first) {
                lines.push(',');
            }
            let _ = write!(lines, "{}:", json(name));
            cell.write(lines);
        };
        match fields {
            Some(fields) => {
                for (name, path) in fields.iter() {
                    if let Some(cell) = self.find(cells, message, path).filter(Cell::is_scalar) {
                        append(name, &cell);
                    }
                }
            }
            None => {
                let used = [Some(at), Some(id), Some(retract)].into_iter().flatten().flatten();
                let used: Vec<&MemberPath> = used.chain(kind.as_ref().and_then(Chosen::member)).collect();
                for (name, cell) in &cells.values {
                    if cell.is_scalar() && !used.iter().any(|path| path.is_member(name)) {
                        append(name, cell);
                    }
                }
            }
        }
        lines.push('}');
        Ok(time)
    }

    /// Returns what is at a path: in the message, or beside it (`$key`, `$header.NAME`).
    fn find<'c>(&self, cells: &Cells<'c>, message: &'c Message, path: &MemberPath) -> Option<Cell<'c>> {
        let beside = |bytes: &'c [u8]| std::str::from_utf8(bytes).ok().map(|text| Cell::Text(Cow::Borrowed(text)));
        match path.beside() {
            None => cells.find(path),
            Some("$key") => beside(message.key.as_ref()?),
            Some(header) => {
                let name = header.strip_prefix("$header.")?;
                let mut values = message.headers.iter().filter(|(header, _)| header == name);
                beside(values.find_map(|(_, value)| value.as_ref())?)
            }
        }
    }
}

/// Returns a text in JSON.
pub(super) fn json(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

/// Returns the beginning of a text, for a message.
fn shown(text: &str) -> String {
    let cut: String = text.chars().take(60).collect();
    if cut.len() < text.len() { format!("{cut}…") } else { cut }
}
