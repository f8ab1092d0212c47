//! Bodies with queries.

use serde::Deserialize;
use serde_json::value::RawValue;
use utoipa::ToSchema;

use crate::http::object::Object;
use crate::http::problem::Problem;
use crate::http::schemas;

/// Keys of a query of any kind.
const KEYS: [&str; 12] =
    ["board", "by", "subject", "window", "of", "last", "from", "as_of", "edge", "metric", "fields", "hop"];

/// Several queries or a single one.
#[derive(ToSchema)]
#[schema(as = QueriesBody)]
#[serde(untagged)]
pub(in crate::http) enum QueriesBody<'a> {
    Many(QueryBatchBody<'a>),
    One(QueryBody<'a>),
}

/// A list of queries.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = QueryBatch)]
pub(in crate::http) struct QueryBatchBody<'a> {
    // Each query is parsed on its own, so that it has its own error.
    #[serde(borrow)]
    #[schema(value_type = Vec<QueryBody>, max_items = 1000)]
    pub(super) queries: Vec<&'a RawValue>,
}

/// A query: by window, by metric or by two hops.
#[derive(ToSchema)]
#[schema(as = Query)]
#[serde(untagged)]
pub(in crate::http) enum QueryBody<'a> {
    Window(WindowQueryBody),
    Metric(MetricQueryBody<'a>),
    Hop(HopQueryBody),
}

impl<'a> QueriesBody<'a> {
    /// Parses a body. The queries of a list are parsed one by one, by [`QueryBody::of_list`].
    pub(super) fn parse(body: &'a [u8]) -> Result<Self, Problem> {
        let mut known = vec!["queries"];
        known.extend(KEYS);
        let object = Object::parse(body, &known)?;
        if object.has("queries") { object.parse_as().map(Self::Many) } else { QueryBody::of(&object).map(Self::One) }
    }
}

impl<'a> QueryBody<'a> {
    /// Parses the query at an index of a list.
    pub(super) fn of_list(index: usize, raw: &'a RawValue) -> Result<Self, Problem> {
        Self::of(&Object::nested(&format!("queries[{index}]"), raw, &KEYS)?)
    }

    /// Parses a query as the kind that its fields tell.
    fn of(object: &Object<'a>) -> Result<Self, Problem> {
        match (object.has("board"), object.has("metric"), object.has("hop")) {
            (true, false, false) => object.parse_as().map(Self::Window),
            (_, true, false) => object.parse_as().map(Self::Metric),
            (false, false, true) => object.parse_as().map(Self::Hop),
            _ => Err(Problem::field("board", "give 'board' and 'subject', or 'metric' and 'fields', or 'hop'")),
        }
    }
}

/// The value of a subject over a window of a board.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = WindowQuery)]
pub(in crate::http) struct WindowQueryBody {
    #[schema(schema_with = schemas::board)]
    pub(super) board: String,
    #[schema(schema_with = schemas::by, required = false)]
    pub(super) by: Option<String>,
    #[schema(schema_with = schemas::subject)]
    pub(super) subject: String,
    /// Length of the window to read, one of the board's. Default: with `last`, the one with the shortest slots of those
    /// that are as long; otherwise the main window.
    #[schema(value_type = String, required = false, example = "1h", pattern = "^(all|[1-9][0-9]{0,9}(s|m|h|d|w|mo|y))$")]
    pub(super) window: Option<String>,
    /// Edition to read: `next` or `previous`. Default: the board itself.
    #[schema(value_type = String, required = false, pattern = "^(next|previous)$")]
    pub(super) of: Option<String>,
    /// A duration, at most the longest window of the board. Default: the whole window.
    #[schema(value_type = String, required = false, example = "5m", pattern = "^[1-9][0-9]{0,9}(s|m|h|d|w|mo|y)$")]
    pub(super) last: Option<String>,
    /// Start of the window, an alternative to `last`.
    #[schema(schema_with = schemas::time, required = false)]
    pub(super) from: Option<String>,
    /// End of the window. Default: the current time.
    #[schema(schema_with = schemas::time, required = false)]
    pub(super) as_of: Option<String>,
    #[schema(schema_with = schemas::edge, required = false)]
    pub(super) edge: Option<String>,
}

/// The value of a metric, from a board that serves it.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = MetricQuery)]
pub(in crate::http) struct MetricQueryBody<'a> {
    #[schema(example = "COUNT(30m, login, device_id)")]
    pub(super) metric: String,
    /// The only board that may serve the metric. Default: any.
    #[schema(schema_with = schemas::board, required = false)]
    pub(super) board: Option<String>,
    #[serde(borrow)]
    #[schema(schema_with = schemas::fields, required = true)]
    pub(super) fields: Option<&'a RawValue>,
}

/// The two-hop count.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = HopQuery)]
pub(in crate::http) struct HopQueryBody {
    pub(super) hop: HopBody,
}

/// From the values of a subject on one COUNT_DISTINCT board to the values of those on another.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = Hop)]
pub(in crate::http) struct HopBody {
    pub(super) from: HopFromBody,
    pub(super) to: HopToBody,
    /// Maximum number of values to follow, and to read for each of them, last seen first. Default: 100.
    #[schema(value_type = u32, minimum = 1, maximum = 1000, required = false)]
    pub(super) most: Option<u32>,
}

/// Start of a hop.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = HopStart)]
pub(in crate::http) struct HopFromBody {
    #[schema(schema_with = schemas::board)]
    pub(super) board: String,
    #[schema(schema_with = schemas::by, required = false)]
    pub(super) by: Option<String>,
    #[schema(schema_with = schemas::subject)]
    pub(super) subject: String,
}

/// End of a hop.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = HopEnd)]
pub(in crate::http) struct HopToBody {
    #[schema(schema_with = schemas::board)]
    pub(super) board: String,
    #[schema(schema_with = schemas::by, required = false)]
    pub(super) by: Option<String>,
}
