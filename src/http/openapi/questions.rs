//! Bodies of questions and rules as the description shows them; the code reads them one by one.

use utoipa::ToSchema;

use super::schemas;

/// Questions, or one.
#[derive(ToSchema)]
#[schema(as = Queries)]
#[expect(dead_code, reason = "only described; questions are read one by one")]
#[serde(untagged)]
pub(in crate::http) enum QueriesBody {
    Many(QueryBatchBody),
    One(QueryBody),
}

/// Many questions.
#[derive(ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = QueryBatch)]
#[expect(dead_code, reason = "only described; questions are read one by one")]
pub(in crate::http) struct QueryBatchBody {
    #[schema(max_items = 1000)]
    queries: Vec<QueryBody>,
}

/// One question, of one of three forms.
#[derive(ToSchema)]
#[schema(as = Query)]
#[expect(dead_code, reason = "only described; questions are read one by one")]
#[serde(untagged)]
pub(in crate::http) enum QueryBody {
    Window(WindowQueryBody),
    Metric(MetricQueryBody),
    Hop(HopQueryBody),
}

/// What a subject has over a window of a board.
#[derive(ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = WindowQuery)]
#[expect(dead_code, reason = "only described; questions are read one by one")]
pub(in crate::http) struct WindowQueryBody {
    #[schema(schema_with = schemas::board)]
    board: String,
    #[schema(schema_with = schemas::subject)]
    subject: String,
    /// A duration, at most the board's window; the whole window if absent.
    #[schema(required = false, example = "5m", pattern = "^[1-9][0-9]{0,9}(s|m|h|d|w|mo)$")]
    last: String,
    /// Instead of `last`.
    #[schema(schema_with = schemas::time, required = false)]
    from: String,
    /// The window that ended then; now if absent.
    #[schema(schema_with = schemas::time, required = false)]
    as_of: String,
    #[schema(schema_with = schemas::edge, required = false)]
    edge: String,
}

/// What a metric says, from whichever board serves it.
#[derive(ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = MetricQuery)]
#[expect(dead_code, reason = "only described; questions are read one by one")]
pub(in crate::http) struct MetricQueryBody {
    #[schema(example = "COUNT(30m, login, device_id)")]
    metric: String,
    #[schema(schema_with = schemas::fields)]
    fields: String,
}

/// The two-hop count.
#[derive(ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = HopQuery)]
#[expect(dead_code, reason = "only described; questions are read one by one")]
pub(in crate::http) struct HopQueryBody {
    hop: HopBody,
}

/// From a subject's values on one COUNT_DISTINCT board to their values on another.
#[derive(ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = Hop)]
#[expect(dead_code, reason = "only described; questions are read one by one")]
pub(in crate::http) struct HopBody {
    from: HopFromBody,
    to: HopToBody,
    /// The most values followed, and the most read of each, the last seen first; 100 if absent.
    #[schema(minimum = 1, maximum = 1000, required = false)]
    most: u32,
}

/// Where a hop begins.
#[derive(ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = HopStart)]
#[expect(dead_code, reason = "only described; questions are read one by one")]
pub(in crate::http) struct HopFromBody {
    #[schema(schema_with = schemas::board)]
    board: String,
    #[schema(schema_with = schemas::subject)]
    subject: String,
}

/// Where a hop ends.
#[derive(ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = HopEnd)]
#[expect(dead_code, reason = "only described; questions are read one by one")]
pub(in crate::http) struct HopToBody {
    #[schema(schema_with = schemas::board)]
    board: String,
}

/// Rules to evaluate: exactly one of `rule`, `rules`, `name` and `names`.
#[derive(ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = Evaluation)]
#[expect(dead_code, reason = "only described; read field by field")]
pub(in crate::http) struct EvaluateBody {
    /// A rule: comparisons (`>`, `>=`, `<`, `<=`, `=`, `!=`) of metrics, fields, numbers, 'texts' and arithmetic on
    /// them, combined by AND, OR and NOT.
    #[schema(required = false, example = "COUNT(30m, login, device_id) > 3", max_length = 4096)]
    rule: String,
    /// Several.
    #[schema(required = false, min_items = 1, max_items = 100)]
    rules: Vec<String>,
    /// A rule of the configuration.
    #[schema(required = false, example = "many-logins")]
    name: String,
    /// Several.
    #[schema(required = false, min_items = 1, max_items = 100)]
    names: Vec<String>,
    #[schema(schema_with = schemas::fields, required = false)]
    fields: String,
    /// The type of the event, if it is to be counted.
    #[schema(required = false, example = "login", min_length = 1, max_length = 128)]
    r#type: String,
    /// When it happened; the store's now if absent. Rules are about now in any case.
    #[schema(schema_with = schemas::time, required = false)]
    at: String,
    #[schema(schema_with = schemas::id, required = false)]
    id: String,
    /// Count the event before the rules are evaluated, so that they see it included; false if absent.
    #[schema(required = false)]
    record: bool,
}
