//! Where a value is in a message.

use std::fmt;

use serde::Deserialize;

/// The names of members from outside to inside, with dots between them; or what is beside a message, which begins with `$`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(from = "String")]
pub struct MemberPath {
    text: String,
}

impl From<String> for MemberPath {
    fn from(text: String) -> Self {
        Self { text }
    }
}

impl fmt::Display for MemberPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl MemberPath {
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

    /// Returns the innermost name.
    pub fn last(&self) -> &str {
        let name = self.text.rsplit('.').next().unwrap_or(&self.text);
        name.trim_start_matches('$')
    }
}
