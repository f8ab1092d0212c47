//! Rules, evaluated for the fields of an event.

use std::borrow::Cow;

use actix_web::web::{Data, Payload};
use actix_web::{HttpRequest, HttpResponse};
use serde::Serialize;
use utoipa::ToSchema;

use super::answer::WindowBounds;
use super::body::Object;
use super::codes::Code;
use super::events::EventsReceipt;
use super::intake::{Text, unsound};
use super::meters::EventTally;
use super::openapi::{
    board_schema, operand_schema, score_schema, standard_error_schema, subject_schema, time_or_null_schema,
};
use super::parameters::Parameters;
use super::problem::Problem;
use super::{HttpState, answer, body, events};
use crate::board::{
    BoardName, Compared, Event, Fields, Kind, Metric, Operand, Rule, Shown, Subject, SyntaxError, Timestamp,
};
use crate::service::{Evaluated, Evaluation, Feature, RuleName, Service, ServiceError};

/// The most rules of one request.
const MOST_RULES: usize = 100;

/// The most metrics that the rules of one request may read, those of each rule added up.
const MOST_METRICS: usize = 1_000;

/// What rules say.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Evaluations {
    /// Whether any of the rules hit.
    hit: bool,
    /// One for each rule, in the order given.
    rules: Vec<RuleVerdict>,
    /// The store's time when it was read; null if no rule has a metric.
    #[schema(schema_with = time_or_null_schema, required = true)]
    as_of: Option<Timestamp>,
    /// What became of the event, if it was to be counted, as `POST /v1/events` answers it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(required = false, nullable = false)]
    recorded: Option<EventsReceipt>,
}

/// What one rule says.
#[derive(Debug, Serialize, ToSchema)]
struct RuleVerdict {
    /// Its name in the configuration, if it was asked for by name.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = String, required = false, nullable = false, example = "many-logins")]
    name: Option<RuleName>,
    /// The rule in its canonical form.
    #[schema(example = "COUNT(30m, login, device_id) > 3")]
    rule: String,
    /// Whether the rule holds.
    hit: bool,
    /// Every comparison of the rule, from left to right, also those that the verdict did not depend on.
    sides: Vec<Sides>,
}

/// One comparison.
#[derive(Debug, Serialize, ToSchema)]
struct Sides {
    /// The left side in its canonical form.
    #[schema(example = "COUNT(30m, login, device_id)")]
    left: String,
    /// Null where there is none: a mean of nothing, a quotient of zero.
    #[schema(schema_with = operand_schema, required = true)]
    left_value: Option<Operand>,
    #[schema(value_type = String, example = ">")]
    operator: String,
    /// The right side in its canonical form.
    #[schema(example = "3")]
    right: String,
    #[schema(schema_with = operand_schema, required = true)]
    right_value: Option<Operand>,
    /// Whether the comparison holds; false where a side has no value.
    hit: bool,
    /// The metrics of both sides: which board answered each, and for which slots.
    metrics: Vec<MetricValue>,
}

/// What a metric said.
#[derive(Clone, Debug, Serialize, ToSchema)]
struct MetricValue {
    /// The metric in its canonical form.
    #[schema(example = "COUNT(30m, login, device_id)")]
    metric: String,
    /// The board that answered.
    #[schema(schema_with = board_schema)]
    board: BoardName,
    #[schema(schema_with = subject_schema)]
    subject: Subject,
    #[schema(schema_with = score_schema, required = true)]
    value: Option<Shown>,
    /// The slots that were read.
    window: WindowBounds,
    /// COUNT_DISTINCT only: values of these slots were dropped because there were more than the board remembers.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(required = false, nullable = false)]
    capped: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(schema_with = standard_error_schema, required = false)]
    standard_error: Option<f64>,
}

impl MetricValue {
    fn of(metric: &Metric, feature: &Feature) -> Self {
        let Feature { board, subject, reading, value, .. } = feature;
        let bounds = reading.frame.window;
        Self {
            metric: metric.to_string(),
            board: board.name().clone(),
            subject: subject.clone(),
            value: answer::score(board, *value),
            window: WindowBounds { from: bounds.floor, to: bounds.end, slots: reading.slots },
            capped: (board.kind() == Kind::Distinct).then_some(reading.capped),
            standard_error: board.kind().standard_error(),
        }
    }
}

impl RuleVerdict {
    fn of(asked: &AskedRule<'_>, evaluation: Evaluation, features: &[Feature]) -> Self {
        let Evaluation { verdict, metrics } = evaluation;
        let value_of = |metric: &Metric| {
            let (_, place) = metrics.iter().find(|(known, _)| known == metric)?;
            Some(MetricValue::of(metric, features.get(*place)?))
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
            name: asked.name.clone(),
            rule: asked.rule.to_string(),
            hit: verdict.hit,
            sides: verdict.comparisons.into_iter().map(sides).collect(),
        }
    }
}

/// Evaluate rules
///
/// Whether rules hit for an event's `fields`: one `rule`, several `rules`, or those of the configuration by `name` or
/// `names`. A rule compares metrics, fields, numbers and arithmetic on them, and combines comparisons by AND, OR and NOT.
/// Every comparison is answered with what its sides came to.
///
/// Each metric is served by the board that differs from it in nothing but a longer window, from its newest slots (see
/// `POST /v1/query`); where none does, `no_board` shows the definition of one that would. All metrics of all rules,
/// 1,000 at most, are read at once.
///
/// With `record` `true` the event (its `type`, `fields`, `at` and `id`) is counted **first**, on every board of its type,
/// so that the rules see it included. If anything is wrong with the rules, nothing is counted.
#[utoipa::path(
    post, path = "/v1/evaluate", operation_id = "evaluate", tag = "features",
    request_body(content = super::openapi::EvaluateBody, description = "The rules, and the fields.", examples(
        ("a rule" = (value = json!({"rule": "COUNT(30m, login, device_id) > 3", "fields": {"device_id": "device-1"}}))),
        ("count, then evaluate" = (value = json!({
            "rules": ["COUNT(30m, login, device_id) > 3",
                "COUNT_DISTINCT(1h, login, device_id, user_id) >= 2 AND amount > 100"],
            "fields": {"device_id": "device-1", "user_id": "user-7", "amount": 166.6},
            "type": "login", "id": "e-81", "record": true}))),
        ("by name" = (value = json!({"name": "many-logins", "fields": {"device_id": "device-1"}}))),
    )),
    responses((status = 200, description = "What the rules say.", body = Evaluations, example = json!({
        "hit": true, "rules": [{"rule": "COUNT(30m, login, device_id) > 3", "hit": true, "sides": [{
            "left": "COUNT(30m, login, device_id)", "left_value": 4, "operator": ">", "right": "3", "right_value": 3,
            "hit": true, "metrics": [{"metric": "COUNT(30m, login, device_id)", "board": "device-logins",
                "subject": "device-1", "value": 4,
                "window": {"from": "2026-01-02T09:38:00Z", "to": "2026-01-02T10:08:00Z", "slots": 30}}]}]}],
        "as_of": "2026-01-02T10:07:00Z"}))),
)]
pub(super) async fn evaluate(
    request: HttpRequest,
    payload: Payload,
    state: Data<HttpState>,
    tally: Data<EventTally>,
) -> Result<HttpResponse, Problem> {
    Parameters::read(&request, &[])?;
    let body = body::read_json(&request, payload, &state.options).await?;
    let object = Object::parse(&body, &KEYS)?;
    let rules = rules(&object, &state.service)?;
    let fields = events::fields(object.optional("fields")?)?;
    let event = event(&object, &fields)?;
    let refs: Vec<&Rule> = rules.iter().map(|asked| &*asked.rule).collect();
    let evaluated = state.service.evaluate(&refs, &fields, event.clone()).await?;
    let Evaluated { rules: evaluations, features, recorded, as_of } = evaluated;
    let verdicts: Vec<RuleVerdict> = (rules.iter().zip(evaluations))
        .map(|(asked, evaluation)| RuleVerdict::of(asked, evaluation, &features))
        .collect();
    let hit = verdicts.iter().any(|verdict| verdict.hit);
    let recorded = event.zip(recorded).map(|(event, outcome)| events::receipt_of_one(event, outcome, &tally));
    Ok(answer::json(&Evaluations { hit, rules: verdicts, as_of, recorded }))
}

const KEYS: [&str; 9] = ["rule", "rules", "name", "names", "fields", "type", "at", "id", "record"];

/// A rule of a body; one of the configuration with its name.
struct AskedRule<'a> {
    name: Option<RuleName>,
    rule: Cow<'a, Rule>,
}

/// The rules of a body.
fn rules<'a>(object: &Object<'_>, service: &'a Service) -> Result<Vec<AskedRule<'a>>, Problem> {
    let forms = ["rule", "rules", "name", "names"];
    let given: Vec<&str> = forms.into_iter().filter(|form| object.has(form)).collect();
    let &[form] = given.as_slice() else {
        return Err(Problem::field("rule", "give one of 'rule', 'rules', 'name' and 'names'"));
    };
    let texts: Vec<String> = match form {
        "rule" | "name" => vec![object.required(form)?],
        _ => object.required(form)?,
    };
    if texts.is_empty() || texts.len() > MOST_RULES {
        let detail = format!("'{form}' must list 1 to {MOST_RULES}; here are {}", texts.len());
        return Err(Problem::field(form, detail).with("minimum", 1).with("maximum", MOST_RULES));
    }
    let rules = (0..).zip(&texts).map(|(index, text)| {
        let field = if form.ends_with('s') { format!("{form}[{index}]") } else { form.to_owned() };
        if form.starts_with("name") { named(text, &field, service) } else { written(text, &field) }
    });
    let rules = rules.collect::<Result<Vec<_>, Problem>>()?;
    let metrics: usize = rules.iter().map(|asked| asked.rule.metrics().len()).sum();
    if metrics > MOST_METRICS {
        let detail = format!("the rules have {metrics} metrics; those of one request may have {MOST_METRICS}");
        return Err(Problem::new(Code::TooLarge, detail).with("limit", MOST_METRICS));
    }
    Ok(rules)
}

/// A rule of the configuration.
fn named<'a>(name: &str, field: &str, service: &'a Service) -> Result<AskedRule<'a>, Problem> {
    let unknown = || Problem::from(ServiceError::UnknownRule(name.chars().take(64).collect())).with("field", field);
    let (name, rule) = service.rules().get(name).ok_or_else(unknown)?;
    Ok(AskedRule { name: Some(name.clone()), rule: Cow::Borrowed(rule) })
}

fn written(text: &str, field: &str) -> Result<AskedRule<'static>, Problem> {
    let rule: Rule = text.parse().map_err(|error| not_a_rule(field, &error))?;
    Ok(AskedRule { name: None, rule: Cow::Owned(rule) })
}

/// A text that is not a rule or a metric.
pub(super) fn not_a_rule(field: &str, error: &SyntaxError) -> Problem {
    Problem::new(Code::InvalidRule, format!("'{field}': {error}")).with("field", field).with("column", error.column)
}

/// The event that is to be counted, if one is. What is given of it is checked in any case, as an event's own is.
fn event(object: &Object<'_>, fields: &Fields) -> Result<Option<Event>, Problem> {
    let text = |key| Ok::<_, Problem>(object.optional::<Text<'_>>(key)?.unwrap_or_default());
    let at = text("at")?.at().map_err(unsound)?;
    let id = text("id")?.id().map_err(unsound)?;
    let kind = text("type")?;
    let kind = (!kind.is_absent()).then(|| events::kind(kind)).transpose().map_err(unsound)?;
    if !object.optional::<bool>("record")?.unwrap_or_default() {
        return Ok(None);
    }
    match kind {
        Some(kind) => Ok(Some(Event { kind, fields: fields.clone(), at, id, retract: false })),
        None => Err(Problem::field("type", "an event that is to be counted needs its 'type'")),
    }
}
