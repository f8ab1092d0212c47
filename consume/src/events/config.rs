//! What the configuration says about events.

use std::collections::BTreeMap;
use std::fmt;

use serde::Deserialize;

/// How messages become events. Without any of it a message is an event as the service takes it.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct EventConfig {
    pub format: Format,
    /// The names of the columns of CSV, in their order.
    pub columns: Vec<String>,
    /// The type of the events.
    #[serde(rename = "type")]
    pub kind: Option<Chosen>,
    /// Where the time is. By default the time that the log has for the message.
    pub at: Option<Path>,
    pub id: Option<Path>,
    /// Where it is said that an event takes back an earlier one: `true` or 1.
    pub retract: Option<Path>,
    /// The fields, and where they are. By default all members that are no objects and no arrays.
    pub fields: Option<Fields>,
    /// The names of the fields that are numbers although the format has only text.
    pub numbers: Vec<String>,
    /// Where the list of a message's events is; empty if the message is the list.
    pub each: Option<Path>,
}

/// The format of a message.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Format {
    #[default]
    Json,
    Csv,
    /// A line of a web server's access log, common or combined.
    AccessLog,
}

/// A text, or the member that has it.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(untagged, expecting = "a text, or { member = \"…\" }")]
pub enum Chosen {
    Text(String),
    Member { member: Path },
}

/// Fields by name, each with where it is.
#[derive(Clone, Debug, Deserialize)]
#[serde(untagged, expecting = "a list of members, or a table of names and members")]
pub enum Fields {
    /// The last part of each path is the name.
    Named(Vec<Path>),
    Renamed(BTreeMap<String, Path>),
}

/// Where a value is in an object: the names of members from outside to inside, with dots between them.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(from = "String")]
pub struct Path {
    text: String,
}

impl Chosen {
    pub fn member(&self) -> Option<&Path> {
        match self {
            Self::Text(_) => None,
            Self::Member { member } => Some(member),
        }
    }
}

impl EventConfig {
    /// Returns whether messages are events as the service takes them.
    pub fn is_own(&self) -> bool {
        self.kind.is_none()
    }
}

impl Fields {
    pub fn iter(&self) -> Box<dyn Iterator<Item = (&str, &Path)> + '_> {
        match self {
            Self::Named(paths) => Box::new(paths.iter().map(|path| (path.last(), path))),
            Self::Renamed(fields) => Box::new(fields.iter().map(|(name, path)| (name.as_str(), path))),
        }
    }
}

impl From<String> for Path {
    fn from(text: String) -> Self {
        Self { text }
    }
}

impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl Path {
    pub fn member(name: &str) -> Self {
        Self { text: name.to_owned() }
    }

    /// Returns the names, from outside to inside.
    pub fn parts(&self) -> impl Iterator<Item = &str> {
        self.text.split('.').filter(|part| !part.is_empty())
    }

    /// Returns whether it is this member of a message.
    pub fn is_member(&self, name: &str) -> bool {
        self.text == name
    }

    /// Returns the path if what it names is not in a message, but beside it.
    pub fn beside(&self) -> Option<&str> {
        self.text.starts_with('$').then_some(&self.text)
    }

    fn last(&self) -> &str {
        let name = self.text.rsplit('.').next().unwrap_or(&self.text);
        name.trim_start_matches('$')
    }
}
