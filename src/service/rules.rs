//! The named rules of the configuration.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::{Result, Service, ServiceError};
use crate::access::Caller;
use crate::board::text::text;
use crate::board::{BoardName, Rule};

/// The name of a rule. The same format as for boards: `[a-z0-9][a-z0-9._-]{0,62}`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct RuleName(Box<str>);

/// The error for a text that is not a valid rule name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a rule's name is 1 to 63 characters of a-z, 0-9, '.', '_' and '-', and starts with a letter or digit")]
pub struct RuleNameError;

impl RuleName {
    /// Parses the name of a rule.
    pub fn parse(text: &str) -> Result<Self, RuleNameError> {
        BoardName::parse(text).map_err(|_| RuleNameError)?;
        Ok(Self(text.into()))
    }
}

text! { RuleName: as_str, display, serialize; }

/// A rule with the boards that may serve its metrics.
#[derive(Clone, Debug, PartialEq)]
pub struct PinnedRule {
    pub rule: Rule,
    /// The boards that may serve the metrics of the rule. Empty if any may.
    pub boards: Box<[BoardName]>,
}

impl From<Rule> for PinnedRule {
    fn from(rule: Rule) -> Self {
        Self { rule, boards: Box::default() }
    }
}

/// The configured rules, by name. They do not change while the service runs.
#[derive(Clone, Debug, Default)]
pub struct NamedRules(Arc<BTreeMap<Box<str>, (RuleName, PinnedRule)>>);

impl NamedRules {
    /// Creates the set of rules. If several have the same name, the last one is used.
    pub fn new<R: Into<PinnedRule>>(rules: impl IntoIterator<Item = (RuleName, R)>) -> Self {
        let keyed = |(name, rule): (RuleName, R)| (name.0.clone(), (name, rule.into()));
        Self(Arc::new(rules.into_iter().map(keyed).collect()))
    }
}

impl PinnedRule {
    /// Returns whether the caller may use every board that the rule names. To other callers the rule does not exist.
    fn is_for(&self, caller: &Caller) -> bool {
        self.boards.iter().all(|board| caller.sees(board))
    }
}

impl Service {
    /// Returns the rule with this name.
    pub fn rule(&self, caller: &Caller, name: &str) -> Result<(&RuleName, &PinnedRule)> {
        let found = self.rules.0.get(name).filter(|(_, rule)| rule.is_for(caller));
        found.map(|(name, rule)| (name, rule)).ok_or_else(|| ServiceError::UnknownRule(name.chars().take(64).collect()))
    }

    /// Returns all rules, by name, without those that name boards that the caller may not use.
    pub fn rules(&self, caller: &Caller) -> impl Iterator<Item = (&RuleName, &PinnedRule)> {
        self.rules.0.values().filter(|(_, rule)| rule.is_for(caller)).map(|(name, rule)| (name, rule))
    }
}
