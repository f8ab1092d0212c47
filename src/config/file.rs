//! The configuration file: parses it and reports every error with its line and key.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Deserializer};
use toml::Spanned;

use super::Settings;
use super::key_table::{CheckedKey, KeyTable};
use crate::access::{Key, KeyId};
use crate::board::{BoardName, Definition, Rule, Span};
use crate::service::{ConfiguredVerifier, PinnedRule, RuleName};

/// The reason why there is no valid configuration.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The file cannot be read.
    #[error("cannot read the configuration file {path}: {source}")]
    Unreadable { path: String, source: std::io::Error },
    /// The store named by a flag or the environment is not valid.
    #[error("--store (ROLLTOP_STORE): {0}")]
    Store(String),
    /// Callers without a key would administer all boards, but use some only.
    #[error("anonymous_boards: callers who may do everything use all boards; name scopes in 'anonymous'")]
    AnonymousBoards,
    /// Only one of the two files that TLS needs is set.
    #[error("{missing}: not set, but {given} is; https needs both files, and http neither")]
    Tls { given: &'static str, missing: &'static str },
    /// The memory of bodies in progress is too small for the largest body.
    #[error(
        "body_memory: '{body_memory}' is too small for bodies of {max_body} bytes (max_body), which need at least {least}"
    )]
    BodyMemory { body_memory: usize, least: usize, max_body: usize },
    /// A key set cannot be read, or has no usable keys.
    #[error("jwks: the key set {path} of the signing key {key} cannot be used: {why}")]
    KeySet { path: String, key: KeyId, why: String },
    /// The file has errors.
    #[error("{file} is not a valid configuration:\n{}", problems.iter().map(|p| format!("  {p}")).collect::<Vec<_>>().join("\n"))]
    Wrong { file: String, problems: Vec<Problem> },
}

/// An error in the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// The line, from 1.
    pub line: usize,
    /// The error, with its key, and what is allowed.
    pub message: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {}", self.line, self.message)
    }
}

/// The content of a file.
pub(super) struct Parsed {
    pub(super) settings: Settings,
    pub(super) boards: Vec<(BoardName, Definition)>,
    pub(super) rules: Vec<(RuleName, PinnedRule)>,
    pub(super) max_ages: Vec<(BoardName, Span)>,
    pub(super) keys: Vec<Key>,
    /// What verifies the tokens of signing keys with a secret.
    pub(super) verifiers: Vec<ConfiguredVerifier>,
    /// The files with the key sets of signing keys.
    pub(super) key_sets: Vec<(KeyId, PathBuf)>,
}

#[derive(Deserialize)]
struct Tables {
    #[serde(default)]
    boards: BTreeMap<Spanned<String>, Spanned<Definition>>,
    #[serde(default)]
    rules: BTreeMap<Spanned<String>, RuleTable>,
    #[serde(default)]
    max_ages: BTreeMap<Spanned<String>, Span>,
    #[serde(default)]
    keys: Vec<Spanned<KeyTable>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table [rules.<name>] with 'when' and 'boards'")]
struct RuleTable {
    #[serde(deserialize_with = "when")]
    when: Rule,
    /// The boards that may serve the metrics of the rule.
    #[serde(default, deserialize_with = "names")]
    boards: Vec<BoardName>,
}

/// Parses the names of boards.
fn names<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<BoardName>, D::Error> {
    let invalid = |error| serde::de::Error::custom(format!("boards: {error}"));
    Vec::<String>::deserialize(deserializer)?.iter().map(|name| BoardName::parse(name).map_err(invalid)).collect()
}

/// Parses the text of a rule. The error carries the line of the rule, and names the column within it.
fn when<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Rule, D::Error> {
    let text = String::deserialize(deserializer)?;
    text.parse().map_err(|error| serde::de::Error::custom(format!("when: {error}")))
}

pub(super) fn read(path: &Path) -> Result<String, ConfigError> {
    std::fs::read_to_string(path).map_err(|source| ConfigError::Unreadable { path: path.display().to_string(), source })
}

pub(super) fn parse(source: &str, text: &str) -> Result<Parsed, ConfigError> {
    let wrong = |problems| ConfigError::Wrong { file: source.to_owned(), problems };
    let from_toml = |error: toml::de::Error| wrong(vec![locate(text, &error)]);

    let mut table: toml::Table = toml::from_str(text).map_err(from_toml)?;
    let Tables { boards, rules, max_ages, keys } = toml::from_str(text).map_err(from_toml)?;
    table.remove("boards");
    table.remove("rules");
    table.remove("max_ages");
    table.remove("keys");
    if let Some(key) = table.keys().find(|key| !Settings::KEYS.contains(&key.as_str())) {
        let message = format!(
            "{key}: unknown setting; expected one of {}, [boards.<name>], [rules.<name>], [max_ages] and [[keys]]",
            Settings::KEYS.join(", ")
        );
        return Err(wrong(vec![Problem { line: line_of_key(text, 0..text.len(), key), message }]));
    }
    let settings: Settings = toml::from_str(text).map_err(from_toml)?;

    let mut problems = Vec::new();
    let mut sound = Vec::new();
    for (name, definition) in boards {
        let (name_span, definition_span) = (name.span(), definition.span());
        let definition = definition.into_inner();
        if let Some(board) = parse_name(text, "boards", &name, BoardName::parse, &mut problems) {
            sound.push((board, definition.clone()));
        }
        if let Err(error) = definition.layout() {
            let body = name_span.start
                ..text[definition_span.end.max(name_span.end)..]
                    .find("\n[")
                    .map_or(text.len(), |n| n + definition_span.end);
            let line = line_of_key(text, body, error.field());
            problems.push(Problem { line, message: format!("boards.{}.{}: {error}", name.get_ref(), error.field()) });
        }
    }
    let mut named = Vec::new();
    for (name, RuleTable { when, boards }) in rules {
        if let Some(rule) = parse_name(text, "rules", &name, RuleName::parse, &mut problems) {
            named.push((rule, PinnedRule { rule: when, boards: boards.into() }));
        }
    }
    let mut ages = Vec::new();
    for (name, age) in max_ages {
        if let Some(board) = parse_name(text, "max_ages", &name, BoardName::parse, &mut problems) {
            ages.push((board, age));
        }
    }
    let mut sound_keys: Vec<Key> = Vec::new();
    let (mut verifiers, mut key_sets) = (Vec::new(), Vec::new());
    for key in keys {
        let start = key.span().start;
        let error = match key.into_inner().check() {
            Err(error) => error,
            Ok(CheckedKey { key, .. }) if sound_keys.iter().any(|known| known.id == key.id) => {
                format!("the id {} is given twice", key.id)
            }
            Ok(CheckedKey { key, verifier, key_set }) => {
                key_sets.extend(key_set.map(|path| (key.id, path)));
                verifiers.extend(verifier);
                sound_keys.push(key);
                continue;
            }
        };
        problems.push(Problem { line: line_at(text, start), message: format!("keys: {error}") });
    }
    problems.sort_by_key(|problem| problem.line);
    if !problems.is_empty() {
        return Err(wrong(problems));
    }
    Ok(Parsed { settings, boards: sound, rules: named, max_ages: ages, keys: sound_keys, verifiers, key_sets })
}

/// Parses a name within a table. Adds a problem for an invalid one.
fn parse_name<N, E: fmt::Display>(
    text: &str,
    table: &str,
    name: &Spanned<String>,
    parse: impl Fn(&str) -> Result<N, E>,
    problems: &mut Vec<Problem>,
) -> Option<N> {
    parse(name.get_ref())
        .map_err(|error| {
            let message = format!("{table}.{}: {error}", name.get_ref());
            problems.push(Problem { line: line_at(text, name.span().start), message });
        })
        .ok()
}

fn line_at(text: &str, position: usize) -> usize {
    text.as_bytes()[..position.min(text.len())].iter().filter(|b| **b == b'\n').count() + 1
}

/// Returns the line on which the key is set in that part of the text, or the part's first line if the key is not set
/// there.
fn line_of_key(text: &str, part: std::ops::Range<usize>, key: &str) -> usize {
    let mut start = part.start;
    for line in text[part.clone()].split_inclusive('\n') {
        if line.trim_start().strip_prefix(key).is_some_and(|rest| rest.trim_start().starts_with('=')) {
            return line_at(text, start);
        }
        start += line.len();
    }
    line_at(text, part.start)
}

fn locate(text: &str, error: &toml::de::Error) -> Problem {
    let span = error.span().unwrap_or(0..0);
    let line = line_at(text, span.start);
    let key = text.lines().nth(line - 1).and_then(|line| line.split_once('=')).map(|(key, _)| key.trim().to_owned());
    let message = error.message();
    let is_setting = |name: &&str| Settings::KEYS.contains(name);
    if let Some(name) =
        message.split('`').nth(1).filter(|name| message.starts_with("unknown field") && is_setting(name))
    {
        let message = format!("{name}: a setting has to stand before the first table");
        return Problem { line, message };
    }
    match key {
        Some(key) if !key.is_empty() && !message.starts_with(&format!("{key}:")) => {
            Problem { line, message: format!("{key}: {message}") }
        }
        _ => Problem { line, message: message.to_owned() },
    }
}
