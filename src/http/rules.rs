//! The rules of the configuration.

use actix_web::HttpResponse;
use serde::Serialize;
use utoipa::ToSchema;

use super::parameters::Plain;
use super::problem::Problem;
use super::{response, schemas};
use crate::board::{BoardName, Timestamp};
use crate::service::RuleName;

/// The rules of the configuration.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct RuleList {
    /// The rules, ordered by name.
    items: Vec<NamedRule>,
    /// Always null: the list has one page.
    #[schema(value_type = Option<String>, required = true)]
    next: (),
}

/// A rule of the configuration.
#[derive(Debug, Serialize, ToSchema)]
struct NamedRule {
    #[schema(value_type = String, example = "many-logins")]
    name: RuleName,
    /// The rule in its canonical form.
    #[schema(example = "COUNT(30m, login, device_id) > 3")]
    when: String,
    /// The only boards that may serve the metrics of the rule. Absent if any may.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(value_type = Vec<String>, required = false)]
    boards: Vec<BoardName>,
    /// The metrics of the rule, in order of appearance.
    metrics: Vec<ServedMetric>,
}

/// A metric and the board that serves it.
#[derive(Debug, Serialize, ToSchema)]
struct ServedMetric {
    /// The metric in its canonical form.
    #[schema(example = "COUNT(30m, login, device_id)")]
    metric: String,
    /// The board that currently serves the metric; null if there is none, so that the rule cannot be evaluated.
    #[schema(value_type = Option<String>, required = true, example = "device-logins")]
    board: Option<BoardName>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(schema_with = schemas::covers_since, required = false)]
    covers_since: Option<Timestamp>,
    /// Says that a slot of the board is a large part of the window of the metric. Absent if it is not.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(required = false, nullable = false)]
    note: Option<String>,
}

/// List rules
///
/// Returns the rules of the configuration, each with the boards that serve its metrics.
#[utoipa::path(
    get, path = "/v1/rules", operation_id = "listRules", tag = "features",
    responses((status = 200, description = "The rules.", body = RuleList, example = json!({"next": null, "items": [
        {"name": "many-logins", "when": "COUNT(30m, login, device_id) > 3",
            "metrics": [{"metric": "COUNT(30m, login, device_id)", "board": "device-logins"}]}]}))),
)]
pub(super) async fn list(Plain(call): Plain) -> Result<HttpResponse, Problem> {
    let mut rules = Vec::new();
    for (name, rule) in call.service().rules(&call.caller) {
        let mut metrics = Vec::new();
        for metric in rule.rule.metrics() {
            let serving = call.service().track_serving(&call.caller, metric, &rule.boards).await?;
            metrics.push(ServedMetric {
                metric: metric.to_string(),
                board: serving.as_ref().map(|serving| serving.track.board().name().clone()),
                note: serving.as_ref().and_then(|serving| serving.track.coarseness(serving.slots)),
                covers_since: serving.and_then(|serving| serving.covers_since),
            });
        }
        let (when, boards) = (rule.rule.to_string(), rule.boards.to_vec());
        rules.push(NamedRule { name: name.clone(), when, boards, metrics });
    }
    Ok(response::json(&RuleList { items: rules, next: () }))
}
