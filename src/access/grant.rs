//! Grants: scopes on boards.

use serde::{Deserialize, Serialize};

use super::{BoardPatterns, Scope, Scopes};

/// What a caller may do, and on which boards.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Grant {
    pub scopes: Scopes,
    pub boards: BoardPatterns,
}

impl Grant {
    /// Returns the grant of everything.
    pub fn all() -> Self {
        Self { scopes: Scopes::from_iter([Scope::Admin]), boards: BoardPatterns::all() }
    }

    /// Returns the grant of nothing.
    pub fn none() -> Self {
        Self { scopes: Scopes::NONE, boards: BoardPatterns::from_iter([]) }
    }

    /// Returns whether the grant has everything that `other` has.
    pub fn covers(&self, other: &Grant) -> bool {
        self.scopes.covers(other.scopes) && self.boards.covers(&other.boards)
    }
}
