//! What operations need from their callers.

use actix_web::http::Method;

use super::access::Effect;
use crate::access::{ItemType, Scope};

/// What an operation needs from its caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Needs {
    /// Nothing. A key that is not valid counts as none.
    Nothing,
    /// A valid key, of whatever scope.
    Key,
    /// A scope, and the right to use the board in the path.
    Scope(Scope),
    /// The scope write, for items of this kind. A token may be for one item only.
    Items(ItemType),
}

impl Needs {
    /// Returns the scope that the caller needs, if any.
    pub(super) const fn scope(self) -> Option<Scope> {
        match self {
            Needs::Nothing | Needs::Key => None,
            Needs::Scope(scope) => Some(scope),
            Needs::Items(_) => Some(Scope::Write),
        }
    }

    /// Returns what the operation does to what is stored.
    pub(super) const fn effect(self) -> Effect {
        match self.scope() {
            None | Some(Scope::View | Scope::Read | Scope::Metrics) => Effect::Reads,
            Some(Scope::Write | Scope::Manage | Scope::Admin) => Effect::Changes,
        }
    }
}

/// Returns whether a route of a method answers a request with this one. GET routes also answer HEAD.
pub(super) fn answers(own: &Method, requested: &Method) -> bool {
    own == requested || (*own == Method::GET && *requested == Method::HEAD)
}

/// Returns what the operation with this method needs, if the path has one.
pub(super) fn needs_of(method: &Method, methods: &[(Method, Needs)]) -> Option<Needs> {
    methods.iter().find(|(own, _)| answers(own, method)).map(|(_, needs)| *needs)
}
