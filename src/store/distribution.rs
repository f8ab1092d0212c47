//! How the scores of a ranking are distributed: scores at given percentiles, and numbers of subjects around given scores.

use crate::board::{Frame, Value};

/// How many subjects have a better score than one that was asked for, and how many have this very score.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AtScore {
    pub better: u64,
    pub equal: u64,
}

/// The answer about a distribution.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Distribution {
    pub frame: Frame,
    /// The number of ranked subjects.
    pub total: u64,
    /// The score at each percentile that was asked for, in the order of the request; `None` if nobody is ranked.
    pub percentiles: Vec<Option<Value>>,
    /// For each score that was asked for, in the order of the request.
    pub scores: Vec<AtScore>,
}
