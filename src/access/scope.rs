//! Scopes: what may be done, of whatever board.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::board::spellings::spellings;

/// A kind of operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Scope {
    /// Pages of rankings, look-ups, neighbors, standings and streams.
    View,
    /// What [`View`](Self::View) allows, and values, windows, queries, evaluation, exports, definitions and rules.
    Read,
    /// Increments, events, samples, and setting a subject.
    Write,
    /// Defining, removing, rolling over and auditing boards, and erasing subjects.
    Manage,
    /// Keys, backups and the clock, and everything else on all boards.
    Admin,
    /// The metrics of the service.
    Metrics,
}

spellings! {
    Scope { View = "view", Read = "read", Write = "write", Manage = "manage", Admin = "admin", Metrics = "metrics" }
    /// All scopes.
    pub all ALL;
    /// Returns the name of the scope.
    pub print as_str;
    parse of;
}

impl Scope {
    /// Returns whether keys and tokens that everybody can read may have the scope.
    pub fn may_be_public(self) -> bool {
        matches!(self, Scope::View | Scope::Write)
    }

    const fn bit(self) -> u8 {
        1 << self as u8
    }
}

impl fmt::Display for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A text that names no scope.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a scope is one of view, read, write, manage, admin and metrics")]
pub struct ScopeError;

impl FromStr for Scope {
    type Err = ScopeError;

    fn from_str(text: &str) -> Result<Self, ScopeError> {
        Scope::of(text).ok_or(ScopeError)
    }
}

/// A set of scopes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Scopes(u8);

impl Scopes {
    /// No scope.
    pub const NONE: Scopes = Scopes(0);

    /// Returns whether the set allows operations of this scope: it has the scope, or one that includes it.
    pub const fn allows(self, scope: Scope) -> bool {
        let granting = match scope {
            Scope::View => Scope::View.bit() | Scope::Read.bit(),
            other => other.bit(),
        };
        self.0 & (granting | Scope::Admin.bit()) != 0
    }

    /// Returns whether the set allows everything that `other` allows.
    pub fn covers(self, other: Scopes) -> bool {
        Scope::ALL.into_iter().all(|scope| self.allows(scope) || !other.allows(scope))
    }

    /// Returns whether the set has no scope.
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Returns the scopes of the set, as they were given.
    pub fn iter(self) -> impl Iterator<Item = Scope> {
        Scope::ALL.into_iter().filter(move |scope| self.0 & scope.bit() != 0)
    }
}

impl FromIterator<Scope> for Scopes {
    fn from_iter<I: IntoIterator<Item = Scope>>(scopes: I) -> Self {
        Self(scopes.into_iter().fold(0, |bits, scope| bits | scope.bit()))
    }
}

impl Serialize for Scopes {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.iter().map(Scope::as_str))
    }
}

impl<'de> Deserialize<'de> for Scopes {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let names = Vec::<String>::deserialize(deserializer)?;
        let parse = |name: &String| name.parse::<Scope>();
        names.iter().map(parse).collect::<Result<_, _>>().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn read_includes_view_and_admin_includes_all() {
        let allowed = |scope: Scope| {
            let scopes = Scopes::from_iter([scope]);
            Scope::ALL
                .into_iter()
                .filter(|asked| scopes.allows(*asked))
                .map(Scope::as_str)
                .collect::<Vec<_>>()
                .join(" ")
        };
        assert_eq!(allowed(Scope::View), "view");
        assert_eq!(allowed(Scope::Read), "view read");
        assert_eq!(allowed(Scope::Write), "write");
        assert_eq!(allowed(Scope::Manage), "manage");
        assert_eq!(allowed(Scope::Metrics), "metrics");
        assert_eq!(allowed(Scope::Admin), "view read write manage admin metrics");
        assert!(Scope::ALL.into_iter().all(|scope| !Scopes::NONE.allows(scope)));
    }

    #[test]
    fn a_set_covers_what_it_allows() {
        let set = |scopes: &[Scope]| scopes.iter().copied().collect::<Scopes>();
        assert!(set(&[Scope::Read]).covers(set(&[Scope::View])));
        assert!(!set(&[Scope::View]).covers(set(&[Scope::Read])));
        assert!(!set(&[Scope::Read, Scope::Write, Scope::Manage, Scope::Metrics]).covers(set(&[Scope::Admin])));
        assert!(set(&[Scope::Admin]).covers(set(&Scope::ALL)));
        assert!(set(&[Scope::View]).covers(Scopes::NONE));
    }
}
