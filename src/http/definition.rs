//! Parsing of board definitions.

use serde::Deserialize;

use super::object;
use super::problem::Problem;
use crate::board::{Definition, Metric};

/// Parses a definition. The problem of an invalid metric has the column, that of an invalid number the limits.
pub(super) fn parse(body: &[u8]) -> Result<Definition, Problem> {
    object::parse(body).map_err(|problem| {
        let field = problem.member("field").and_then(|field| field.as_str()).unwrap_or_default();
        match (field, Definition::limits(field)) {
            (_, Some(limits)) => problem.with("minimum", *limits.start()).with("maximum", *limits.end()),
            ("metric", None) => match column(body) {
                Some(column) => problem.with("column", column),
                None => problem,
            },
            _ => problem,
        }
    })
}

/// Returns the column at which the metric of a definition is invalid.
fn column(body: &[u8]) -> Option<usize> {
    #[derive(Deserialize)]
    struct OnlyMetric {
        metric: String,
    }
    let OnlyMetric { metric } = serde_json::from_slice(body).ok()?;
    metric.parse::<Metric>().err().map(|error| error.column)
}
