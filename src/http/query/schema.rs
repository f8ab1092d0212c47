//! Schemas of bodies with queries, which the parent module parses.

use utoipa::ToSchema;

use crate::http::schemas;

/// Several queries or a single one.
#[derive(ToSchema)]
#[schema(as = Queries)]
#[expect(dead_code, reason = "schema only; queries are parsed one by one")]
#[serde(untagged)]
pub(in crate::http) enum QueriesBody {
    Many(QueryBatchBody),
    One(QueryBody),
}

/// A list of queries.
#[derive(ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = QueryBatch)]
#[expect(dead_code, reason = "schema only; queries are parsed one by one")]
pub(in crate::http) struct QueryBatchBody {
    #[schema(max_items = 1000)]
    queries: Vec<QueryBody>,
}

/// A query: by window, by metric or by two hops.
#[derive(ToSchema)]
#[schema(as = Query)]
#[expect(dead_code, reason = "schema only; queries are parsed one by one")]
#[serde(untagged)]
pub(in crate::http) enum QueryBody {
    Window(WindowQueryBody),
    Metric(MetricQueryBody),
    Hop(HopQueryBody),
}

/// The value of a subject over a window of a board.
#[derive(ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = WindowQuery)]
#[expect(dead_code, reason = "schema only; queries are parsed one by one")]
pub(in crate::http) struct WindowQueryBody {
    #[schema(schema_with = schemas::board)]
    board: String,
    #[schema(schema_with = schemas::subject)]
    subject: String,
    /// A duration, at most the window of the board. Default: the whole window.
    #[schema(required = false, example = "5m", pattern = "^[1-9][0-9]{0,9}(s|m|h|d|w|mo)$")]
    last: String,
    /// Start of the window, an alternative to `last`.
    #[schema(schema_with = schemas::time, required = false)]
    from: String,
    /// End of the window. Default: the current time.
    #[schema(schema_with = schemas::time, required = false)]
    as_of: String,
    #[schema(schema_with = schemas::edge, required = false)]
    edge: String,
}

/// The value of a metric, from a board that serves it.
#[derive(ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = MetricQuery)]
#[expect(dead_code, reason = "schema only; queries are parsed one by one")]
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
#[expect(dead_code, reason = "schema only; queries are parsed one by one")]
pub(in crate::http) struct HopQueryBody {
    hop: HopBody,
}

/// From the values of a subject on one COUNT_DISTINCT board to the values of those on another.
#[derive(ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = Hop)]
#[expect(dead_code, reason = "schema only; queries are parsed one by one")]
pub(in crate::http) struct HopBody {
    from: HopFromBody,
    to: HopToBody,
    /// Maximum number of values to follow, and to read for each of them, last seen first. Default: 100.
    #[schema(minimum = 1, maximum = 1000, required = false)]
    most: u32,
}

/// Start of a hop.
#[derive(ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = HopStart)]
#[expect(dead_code, reason = "schema only; queries are parsed one by one")]
pub(in crate::http) struct HopFromBody {
    #[schema(schema_with = schemas::board)]
    board: String,
    #[schema(schema_with = schemas::subject)]
    subject: String,
}

/// End of a hop.
#[derive(ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = HopEnd)]
#[expect(dead_code, reason = "schema only; queries are parsed one by one")]
pub(in crate::http) struct HopToBody {
    #[schema(schema_with = schemas::board)]
    board: String,
}
