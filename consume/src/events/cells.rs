//! The values of a message, by name.

use std::borrow::Cow;
use std::fmt;

use rolltop::board::Timestamp;
use rolltop::cli::replay::access_log;
use serde::Deserializer;
use serde::de::{MapAccess, Visitor};
use serde_json::value::RawValue;

use super::config::MessageFormat;
use super::writing::json;
use super::{Unreadable, unreadable};
use crate::path::MemberPath;

/// The values of a message.
#[derive(Debug, Default)]
pub struct Cells<'m> {
    pub values: Vec<(Cow<'m, str>, Cell<'m>)>,
    /// When it happened, if the format itself says that.
    pub time: Option<Timestamp>,
}

/// A value.
#[derive(Clone, Debug)]
pub enum Cell<'m> {
    /// As it is written in JSON.
    Json(&'m str),
    /// A text of a format that has only texts.
    Text(Cow<'m, str>),
}

impl<'m> Cell<'m> {
    /// Returns whether it is a text, a number or a truth value.
    pub fn is_scalar(&self) -> bool {
        match self {
            Self::Json(raw) => !raw.starts_with(['{', '[', 'n']),
            Self::Text(_) => true,
        }
    }

    /// Returns the text of a scalar. `None` for any other, and for an empty text.
    pub fn text(&self) -> Option<Cow<'m, str>> {
        let text = match self {
            Self::Text(text) => text.clone(),
            Self::Json(_) if !self.is_scalar() => return None,
            Self::Json(raw) if raw.starts_with('"') => Cow::Owned(serde_json::from_str(raw).ok()?),
            Self::Json(raw) => Cow::Borrowed(*raw),
        };
        (!text.is_empty()).then_some(text)
    }

    /// Writes the value as JSON.
    pub fn write(&self, out: &mut String) {
        match self {
            Self::Json(raw) => out.push_str(raw),
            Self::Text(text) => out.push_str(&json(text)),
        }
    }
}

impl<'m> Cells<'m> {
    pub fn has(&self, name: &str) -> bool {
        self.values.iter().any(|(cell, _)| cell == name)
    }

    /// Returns what is at a path. A member whose own name has the dots goes first.
    pub fn find(&self, path: &MemberPath) -> Option<Cell<'m>> {
        let named = |name: &str| self.values.iter().find(|(cell, _)| cell == name).map(|(_, cell)| cell.clone());
        let whole = self.values.iter().find(|(name, _)| path.is_member(name)).map(|(_, cell)| cell.clone());
        whole.or_else(|| {
            let mut parts = path.parts();
            let mut cell = named(parts.next()?)?;
            for part in parts {
                let Cell::Json(raw) = cell else { return None };
                cell = members(raw).ok()?.into_iter().find(|(name, _)| name == part).map(|(_, cell)| cell)?;
            }
            Some(cell)
        })
    }
}

impl super::EventConfig {
    fn row<'m>(&self, text: &'m str) -> Result<Option<Cells<'m>>, Unreadable> {
        let cells = csv_cells(text)?;
        if cells.len() != self.columns.len() {
            return unreadable(format!("it has {} columns, and not {}", cells.len(), self.columns.len()));
        }
        // The header, which each file has.
        if cells.iter().zip(&self.columns).all(|(cell, column)| cell == column) {
            return Ok(None);
        }
        let there = self.columns.iter().zip(cells).filter(|(_, cell)| !cell.is_empty());
        let cells = there.map(|(name, cell)| (Cow::Owned(name.clone()), Cell::Text(Cow::Owned(cell))));
        Ok(Some(Cells { values: cells.collect(), time: None }))
    }

    /// Returns the values of a text. `None` if it has none by design, as a header.
    pub fn parse<'m>(&self, text: &'m str) -> Result<Option<Cells<'m>>, Unreadable> {
        match self.format {
            MessageFormat::Json => Ok(Some(Cells { values: members(text)?, time: None })),
            MessageFormat::Csv => self.row(text),
            MessageFormat::AccessLog => {
                let line = access_log::parse_all(text.as_bytes());
                let line = line.ok_or_else(|| Unreadable("it is not a line of an access log".to_owned()))?;
                let cell = |(name, value)| (Cow::Borrowed(name), Cell::Text(value));
                Ok(Some(Cells { values: line.fields.into_iter().map(cell).collect(), time: Some(line.at) }))
            }
        }
    }
}

/// Returns the elements of the list at a path.
pub fn elements<'m>(text: &'m str, path: &MemberPath) -> Result<Vec<&'m RawValue>, Unreadable> {
    let list = match path.parts().next() {
        None => text,
        Some(_) => match (Cells { values: members(text)?, time: None }).find(path) {
            Some(Cell::Json(raw)) => raw,
            _ => return unreadable(format!("it has no list '{path}'")),
        },
    };
    serde_json::from_str(list).map_err(|_| Unreadable(format!("'{path}' is not a list")))
}

/// Returns the cells of a line of CSV.
fn csv_cells(text: &str) -> Result<Vec<String>, Unreadable> {
    let mut reader = csv_core::Reader::new();
    let (mut out, mut ends) = (vec![0; text.len() + 1], vec![0; text.len() + 2]);
    let (_, read, written, cells) = reader.read_record(text.as_bytes(), &mut out, &mut ends);
    if read < text.len() {
        return unreadable("it is several lines");
    }
    // An empty input is the end of the last record.
    let (_, _, _, more) = reader.read_record(&[], &mut out[written..], &mut ends[cells..]);
    let ended = cells + more;
    let mut cells = Vec::with_capacity(ended);
    let mut begin = 0;
    for end in &ends[..ended] {
        let cell = std::str::from_utf8(&out[begin..*end]).map_err(|_| Unreadable("it is not UTF-8".to_owned()))?;
        cells.push(cell.to_owned());
        begin = *end;
    }
    Ok(cells)
}

/// Returns the members of a JSON object, each value as it is written.
fn members(text: &str) -> Result<Vec<(Cow<'_, str>, Cell<'_>)>, Unreadable> {
    struct ObjectVisitor;

    impl<'de> Visitor<'de> for ObjectVisitor {
        type Value = Vec<(Cow<'de, str>, Cell<'de>)>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("an object")
        }

        fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
            let mut members = Vec::with_capacity(8);
            while let Some((name, value)) = map.next_entry::<Name<'de>, &'de RawValue>()? {
                members.push((name.0, Cell::Json(value.get())));
            }
            Ok(members)
        }
    }

    let mut parser = serde_json::Deserializer::from_str(text);
    let members = parser.deserialize_map(ObjectVisitor).and_then(|members| parser.end().map(|()| members));
    members.map_err(|error| Unreadable(format!("it is not a JSON object: {error}")))
}

/// The name of a member, copied only if it has escapes.
#[derive(serde::Deserialize)]
struct Name<'a>(#[serde(borrow)] Cow<'a, str>);
