//! What the configuration says about events.

use std::collections::BTreeMap;

use anyhow::Context;
use serde::Deserialize;

use crate::path::MemberPath;

/// How messages become events. Without any of it a message is an event as the service takes it.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct EventConfig {
    pub format: MessageFormat,
    /// The names of the columns of CSV, in their order.
    pub columns: Vec<String>,
    /// The type of the events.
    #[serde(rename = "type")]
    pub kind: Option<Chosen>,
    /// Where the time is. By default the time that the log has for the message.
    pub at: Option<MemberPath>,
    pub id: Option<MemberPath>,
    /// Where it is said that an event takes back an earlier one: `true` or 1.
    pub retract: Option<MemberPath>,
    /// The fields, and where they are. By default all members that are no objects and no arrays.
    pub fields: Option<FieldPaths>,
    /// Where the list of a message's events is; empty if the message is the list.
    pub each: Option<MemberPath>,
}

/// The format of a message.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MessageFormat {
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
    Member { member: MemberPath },
}

/// FieldPaths by name, each with where it is.
#[derive(Clone, Debug, Deserialize)]
#[serde(untagged, expecting = "a list of members, or a table of names and members")]
pub enum FieldPaths {
    /// The last part of each path is the name.
    Named(Vec<MemberPath>),
    Renamed(BTreeMap<String, MemberPath>),
}

impl Chosen {
    pub fn member(&self) -> Option<&MemberPath> {
        match self {
            Self::Text(_) => None,
            Self::Member { member } => Some(member),
        }
    }
}

impl EventConfig {
    /// Returns whether the configuration can be used.
    ///
    /// A log `has_times` if it says when it took each message.
    pub fn check(&self, has_times: bool) -> anyhow::Result<()> {
        if !has_times && !self.is_own() && self.at.is_none() && self.format != MessageFormat::AccessLog {
            anyhow::bail!("'at' is missing, the member with the time: a file does not say when something happened");
        }
        if self.format == MessageFormat::Csv && self.columns.is_empty() {
            anyhow::bail!("the format csv needs 'columns': the names of the columns, in their order");
        }
        if self.each.is_some() && !matches!(self.format, MessageFormat::Json) {
            anyhow::bail!("'each' is for the format json");
        }
        if self.kind.is_none() {
            let is_own = self.format == MessageFormat::Json
                && self.fields.is_none()
                && self.id.is_none()
                && self.retract.is_none();
            is_own.then_some(()).context(
                "'type' is missing: the type of the events, such as \"like\", or where it is, such as { member = \"kind\" }",
            )?;
        }
        Ok(())
    }

    pub fn is_json(&self) -> bool {
        self.format == MessageFormat::Json
    }

    /// Returns whether messages are events as the service takes them.
    pub fn is_own(&self) -> bool {
        self.kind.is_none()
    }
}

impl FieldPaths {
    pub fn iter(&self) -> Box<dyn Iterator<Item = (&str, &MemberPath)> + '_> {
        match self {
            Self::Named(paths) => Box::new(paths.iter().map(|path| (path.last(), path))),
            Self::Renamed(fields) => Box::new(fields.iter().map(|(name, path)| (name.as_str(), path))),
        }
    }
}
