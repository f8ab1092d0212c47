//! The rules of the configuration.

use actix_web::web::Data;
use actix_web::{HttpRequest, HttpResponse};
use serde::Serialize;
use utoipa::ToSchema;

use super::parameters::Parameters;
use super::problem::Problem;
use super::response;
use super::state::HttpState;
use crate::board::BoardName;
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
pub(super) async fn list(request: HttpRequest, state: Data<HttpState>) -> Result<HttpResponse, Problem> {
    Parameters::from_request(&request, &[])?;
    let mut rules = Vec::new();
    for (name, rule) in state.service.rules().iter() {
        let mut metrics = Vec::new();
        for metric in rule.metrics() {
            let board = state.service.board_serving(metric).await?.map(|board| board.name().clone());
            metrics.push(ServedMetric { metric: metric.to_string(), board });
        }
        rules.push(NamedRule { name: name.clone(), when: rule.to_string(), metrics });
    }
    Ok(response::json(&RuleList { items: rules, next: () }))
}
