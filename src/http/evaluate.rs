//! Evaluation of rules for the fields of an event.

use std::borrow::Cow;

use actix_web::HttpResponse;
use actix_web::web::{Data, Payload};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use utoipa::ToSchema;

use super::admission::require_more;
use super::codes::Code;
use super::events::EventsReceipt;
use super::frame::WindowBounds;
use super::items::{FieldValue, ItemIds, TextField};
use super::metrics::EventMetrics;
use super::parameters::Plain;
use super::problem::Problem;
use super::{events, object, response, schemas};
use crate::access::{Caller, Scope};
use crate::board::{
    BoardName, Compared, Event, Fields, Metric, Operand, RankingKey, Rule, Shown, Subject, SyntaxError, Timestamp,
};
use crate::service::{Evaluated, Evaluation, PinnedRule, QueryAnswer, RuleName, Service};

/// Maximum number of rules of one request.
const MAX_RULES: usize = 100;

/// Maximum number of boards that a request may name for its rules.
const MAX_BOARDS: usize = 16;

/// Maximum number of metrics of one request, summed over its rules.
const MAX_METRICS: usize = 1_000;

/// The results of rules.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Evaluations {
    /// Whether at least one rule hit.
    hit: bool,
    /// The result of each rule, in the order of the request.
    rules: Vec<RuleVerdict>,
    /// The store's time of the read; null if no rule has a metric.
    #[schema(schema_with = schemas::time_or_null, required = true)]
    as_of: Option<Timestamp>,
    /// The receipt of the event, as `POST /v1/events` returns it, if the event was recorded.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(required = false, nullable = false)]
    recorded: Option<EventsReceipt>,
}

/// The result of one rule.
#[derive(Debug, Serialize, ToSchema)]
struct RuleVerdict {
    /// Name of the rule in the configuration, if the request has names.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = String, required = false, nullable = false, example = "many-logins")]
    name: Option<RuleName>,
    /// The rule in its canonical form.
    #[schema(example = "COUNT(30m, login, device_id) > 3")]
    rule: String,
    /// Whether the rule is true.
    hit: bool,
    /// All comparisons of the rule from left to right, including those that did not affect the result.
    sides: Vec<Sides>,
}

/// A comparison.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Comparison)]
struct Sides {
    /// The left side in its canonical form.
    #[schema(example = "COUNT(30m, login, device_id)")]
    left: String,
    /// Null if the side has no value, such as the mean of no data or a quotient with divisor 0.
    #[schema(schema_with = schemas::operand, required = true)]
    left_value: Option<Operand>,
    #[schema(value_type = String, example = ">")]
    operator: String,
    /// The right side in its canonical form.
    #[schema(example = "3")]
    right: String,
    #[schema(schema_with = schemas::operand, required = true)]
    right_value: Option<Operand>,
    /// Whether the comparison is true; false if a side has no value.
    hit: bool,
    /// The metrics of both sides, with the boards and slots that were read.
    metrics: Vec<MetricValue>,
}

/// The value of a metric.
#[derive(Clone, Debug, Serialize, ToSchema)]
struct MetricValue {
    /// The metric in its canonical form.
    #[schema(example = "COUNT(30m, login, device_id)")]
    metric: String,
    /// The board that served the metric.
    #[schema(schema_with = schemas::board)]
    board: BoardName,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(schema_with = schemas::by, required = false)]
    by: Option<RankingKey>,
    #[schema(schema_with = schemas::subject)]
    subject: Subject,
    #[schema(schema_with = schemas::score, required = true)]
    value: Option<Shown>,
    /// Time of the value. For LAST only, if there is a value.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(schema_with = schemas::time, required = false)]
    at: Option<Timestamp>,
    /// The slots that were read.
    window: WindowBounds,
    /// Whether values of these slots were dropped because of the board's `max_values`. For COUNT_DISTINCT, and with a
    /// cap.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(required = false, nullable = false)]
    capped: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(schema_with = schemas::standard_error, required = false)]
    standard_error: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(schema_with = schemas::covers_since, required = false)]
    covers_since: Option<Timestamp>,
}

impl MetricValue {
    fn of(metric: &Metric, answer: &QueryAnswer) -> Self {
        let QueryAnswer { track, subject, contents, value, .. } = answer;
        Self {
            metric: metric.to_string(),
            board: track.board().name().clone(),
            by: track.key().cloned(),
            subject: subject.clone(),
            value: response::score(track.scale(), *value),
            at: answer.last_at(),
            window: WindowBounds::of(track, &contents.frame.window, contents.slots),
            capped: track.kind().remembers_values().then_some(contents.capped),
            standard_error: track.kind().standard_error(),
            covers_since: answer.covers_since,
        }
    }
}

impl RuleVerdict {
    fn of(requested: &RequestedRule<'_>, evaluation: Evaluation, answers: &[QueryAnswer]) -> Self {
        let Evaluation { verdict, metrics } = evaluation;
        let value_of = |metric: &Metric| {
            let (_, place) = metrics.iter().find(|(known, _)| known == metric)?;
            Some(MetricValue::of(metric, answers.get(*place)?))
        };
        let sides = |compared: Compared| Sides {
            left: compared.left,
            left_value: compared.left_value,
            operator: compared.comparison.to_string(),
            right: compared.right,
            right_value: compared.right_value,
            hit: compared.hit,
            metrics: compared.metrics.iter().filter_map(value_of).collect(),
        };
        Self {
            name: requested.name.clone(),
            rule: requested.rule.rule.to_string(),
            hit: verdict.hit,
            sides: verdict.comparisons.into_iter().map(sides).collect(),
        }
    }
}

/// Rules to evaluate: exactly one of `rule`, `rules`, `name` and `names`.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = EvaluationRequest)]
pub(super) struct EvaluateBody<'a> {
    /// A rule: comparisons (`>`, `>=`, `<`, `<=`, `=`, `!=`) of metrics, fields, numbers, 'strings' and arithmetic
    /// expressions, combined with AND, OR and NOT.
    #[schema(value_type = String, required = false, example = "COUNT(30m, login, device_id) > 3", max_length = 4096)]
    rule: Option<String>,
    /// Several rules.
    #[schema(value_type = Vec<String>, required = false, min_items = 1, max_items = 100)]
    rules: Option<Vec<String>>,
    /// Name of a rule in the configuration.
    #[schema(value_type = String, required = false, example = "many-logins")]
    name: Option<String>,
    /// Names of several rules in the configuration.
    #[schema(value_type = Vec<String>, required = false, min_items = 1, max_items = 100)]
    names: Option<Vec<String>>,
    /// The only boards that may serve the metrics of `rule` or `rules`. Default: any. Rules of the configuration have
    /// their own `boards`.
    #[schema(value_type = Vec<String>, required = false, min_items = 1, max_items = 16, example = json!(["device-logins"]))]
    boards: Option<Vec<String>>,
    #[schema(schema_with = schemas::fields, required = false)]
    #[serde(borrow)]
    fields: Option<&'a RawValue>,
    /// Type of the event, if it is to be recorded.
    #[serde(default, borrow)]
    #[schema(value_type = String, required = false, example = "login", min_length = 1, max_length = 128)]
    r#type: TextField<'a>,
    /// Time of the event. Default: the store's current time. Rules are always evaluated for the current time.
    #[serde(default, borrow)]
    #[schema(schema_with = schemas::time, required = false)]
    at: TextField<'a>,
    #[serde(default, borrow)]
    #[schema(schema_with = schemas::id, required = false)]
    id: TextField<'a>,
    /// Whether to record the event before the rules are evaluated, so that they include it. Default: false.
    #[serde(default)]
    record: bool,
}

/// Evaluate rules
///
/// Evaluates rules for the `fields` of an event: one `rule`, several `rules`, or rules of the configuration by `name`
/// or `names`. A rule compares metrics, fields, numbers and arithmetic expressions, and combines comparisons with AND,
/// OR and NOT. The response has the values of both sides of each comparison.
///
/// Each metric is served by a board that has the same metric with the same or a longer window, from its newest slots
/// (see `POST /v1/query`), or by one of the given `boards`. If there is none, the error `no_board` has the definition
/// of a board that would serve the metric. All metrics of all rules, at most 1,000, are read together.
///
/// With `record` `true` the event (`type`, `fields`, `at` and `id`) is recorded **before** the evaluation, on every
/// board that counts its type, so that the rules include it. If any rule is invalid, or lacks a field or a board, the
/// event is not recorded.
#[utoipa::path(
    post, path = "/v1/evaluate", operation_id = "evaluate", tag = "features",
    request_body(content = EvaluateBody, description = "The rules and the fields.", examples(
        ("a rule" = (value = json!({"rule": "COUNT(30m, login, device_id) > 3", "fields": {"device_id": "device-1"}}))),
        ("record, then evaluate" = (value = json!({
            "rules": ["COUNT(30m, login, device_id) > 3",
                "COUNT_DISTINCT(1h, login, device_id, user_id) >= 2 AND amount > 100"],
            "fields": {"device_id": "device-1", "user_id": "user-7", "amount": 166.6},
            "type": "login", "id": "e-81", "record": true}))),
        ("by name" = (value = json!({"name": "many-logins", "fields": {"device_id": "device-1"}}))),
    )),
    responses((status = 200, description = "The results of the rules.", body = Evaluations, example = json!({
        "hit": true, "rules": [{"rule": "COUNT(30m, login, device_id) > 3", "hit": true, "sides": [{
            "left": "COUNT(30m, login, device_id)", "left_value": 4, "operator": ">", "right": "3", "right_value": 3,
            "hit": true, "metrics": [{"metric": "COUNT(30m, login, device_id)", "board": "device-logins",
                "subject": "device-1", "value": 4,
                "window": {"from": "2026-01-02T09:38:00Z", "to": "2026-01-02T10:08:00Z", "slots": 30}}]}]}],
        "as_of": "2026-01-02T10:07:00Z"}))),
)]
pub(super) async fn evaluate(
    Plain(call): Plain,
    payload: Payload,
    metrics: Data<EventMetrics>,
) -> Result<HttpResponse, Problem> {
    let ids = ItemIds::from_request(&call.request, &call.caller)?;
    let body = call.json(payload).await?;
    let mut body: EvaluateBody<'_> = object::parse(&body)?;
    if body.record {
        require_more(&call, Scope::Write)?;
    }
    let limits = body.record.then(|| call.item_limits());
    let rules = parse_rules(&mut body, call.service(), &call.caller)?;
    let fields = events::parse_fields(body.fields)?;
    let mut event = parse_event(body, &fields)?;
    if let (Some(event), Some(ids)) = (&mut event, ids)
        && event.id.is_none()
    {
        event.id = ids.id_of(0);
    }
    if let Some(limits) = limits {
        limits.take(1)?;
    }
    let refs: Vec<&PinnedRule> = rules.iter().map(|named| &*named.rule).collect();
    let evaluated = call.service().evaluate(&call.caller, &refs, &fields, event.clone()).await?;
    let Evaluated { rules: evaluations, answers, recorded, as_of } = evaluated;
    let verdicts: Vec<RuleVerdict> =
        (rules.iter().zip(evaluations)).map(|(rule, evaluation)| RuleVerdict::of(rule, evaluation, &answers)).collect();
    let hit = verdicts.iter().any(|verdict| verdict.hit);
    let recorded = event.zip(recorded).map(|(event, outcome)| events::receipt_of_one(event, outcome, &metrics));
    Ok(response::json(&Evaluations { hit, rules: verdicts, as_of, recorded }))
}

/// A rule of a request, with its name if it is one of the configuration.
struct RequestedRule<'a> {
    name: Option<RuleName>,
    rule: Cow<'a, PinnedRule>,
}

/// Parses the rules of a body.
fn parse_rules<'a>(
    body: &mut EvaluateBody<'_>,
    service: &'a Service,
    caller: &Caller,
) -> Result<Vec<RequestedRule<'a>>, Problem> {
    let (form, texts) = match (body.rule.take(), body.rules.take(), body.name.take(), body.names.take()) {
        (Some(rule), None, None, None) => ("rule", vec![rule]),
        (None, Some(rules), None, None) => ("rules", rules),
        (None, None, Some(name), None) => ("name", vec![name]),
        (None, None, None, Some(names)) => ("names", names),
        _ => return Err(Problem::field("rule", "give exactly one of 'rule', 'rules', 'name' and 'names'")),
    };
    if texts.is_empty() || texts.len() > MAX_RULES {
        let detail = format!("'{form}' must have 1 to {MAX_RULES} elements, not {}", texts.len());
        return Err(Problem::field(form, detail).with("minimum", 1).with("maximum", MAX_RULES));
    }
    let boards = body.boards.take().map(|names| parse_boards(&names, form)).transpose()?.unwrap_or_default();
    let rules = (0..).zip(&texts).map(|(index, text)| {
        let field = if form.ends_with('s') { format!("{form}[{index}]") } else { form.to_owned() };
        if form.starts_with("name") {
            find_rule(text, &field, service, caller)
        } else {
            parse_rule(text, &field, &boards)
        }
    });
    let rules = rules.collect::<Result<Vec<_>, Problem>>()?;
    let metrics: usize = rules.iter().map(|rule| rule.rule.rule.metrics().len()).sum();
    if metrics > MAX_METRICS {
        let detail = format!("the rules have {metrics} metrics; a request may have at most {MAX_METRICS}");
        return Err(Problem::new(Code::TooLarge, detail).with("limit", MAX_METRICS));
    }
    Ok(rules)
}

/// Returns the rule of the configuration with this name.
fn find_rule<'a>(name: &str, field: &str, service: &'a Service, caller: &Caller) -> Result<RequestedRule<'a>, Problem> {
    let unknown = |error| Problem::from(error).with("field", field);
    let (name, rule) = service.rule(caller, name).map_err(unknown)?;
    Ok(RequestedRule { name: Some(name.clone()), rule: Cow::Borrowed(rule) })
}

fn parse_rule(text: &str, field: &str, boards: &[BoardName]) -> Result<RequestedRule<'static>, Problem> {
    let rule: Rule = text.parse().map_err(|error| invalid_rule(field, &error))?;
    Ok(RequestedRule { name: None, rule: Cow::Owned(PinnedRule { rule, boards: boards.into() }) })
}

/// Parses the boards that may serve the metrics of the rules in `form`.
fn parse_boards(names: &[String], form: &str) -> Result<Vec<BoardName>, Problem> {
    if form.starts_with("name") {
        return Err(Problem::field(
            "boards",
            format!("'boards' needs 'rule' or 'rules': with '{form}' it is part of the configuration"),
        ));
    }
    if names.is_empty() || names.len() > MAX_BOARDS {
        let detail = format!("'boards' must have 1 to {MAX_BOARDS} elements, not {}", names.len());
        return Err(Problem::field("boards", detail).with("minimum", 1).with("maximum", MAX_BOARDS));
    }
    let parsed = |(index, name): (usize, &String)| {
        let field = format!("boards[{index}]");
        BoardName::parse(name).map_err(|error| Problem::field(&field, format!("'{field}': {error}")))
    };
    names.iter().enumerate().map(parsed).collect()
}

/// Returns the problem of an invalid rule or metric.
pub(super) fn invalid_rule(field: &str, error: &SyntaxError) -> Problem {
    Problem::new(Code::InvalidRule, format!("'{field}': {error}")).with("field", field).with("column", error.column)
}

/// Parses the event of a body; `None` if it is not to be recorded. Its members are validated in either case.
fn parse_event(body: EvaluateBody<'_>, fields: &Fields) -> Result<Option<Event>, Problem> {
    let (at, id) = (body.at.at()?, body.id.id()?);
    let kind = (!body.r#type.is_absent()).then(|| events::parse_type(body.r#type)).transpose()?;
    if !body.record {
        return Ok(None);
    }
    match kind {
        Some(kind) => Ok(Some(Event { kind, fields: fields.clone(), at, id, retract: false })),
        None => Err(Problem::field("type", "'record' needs the 'type' of the event")),
    }
}
