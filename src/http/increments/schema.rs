//! Schemas of bodies with increments, which [`item`](super::item) parses.

use utoipa::ToSchema;

use crate::http::schemas;

/// A single increment or a batch.
#[derive(ToSchema)]
#[schema(as = IncrementsBody)]
#[expect(dead_code, reason = "schema only; bodies are parsed without copying")]
#[serde(untagged)]
pub(in crate::http) enum IncrementsBody {
    One(IncrementBody),
    Many(IncrementBatchBody),
}

/// A batch of increments.
#[derive(ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = IncrementBatch)]
#[expect(dead_code, reason = "schema only; bodies are parsed without copying")]
pub(in crate::http) struct IncrementBatchBody {
    /// The increments. One that does not match this schema is rejected on its own: the response is still 200 and lists
    /// it in `rejected`, and the others count.
    #[schema(max_items = 100000)]
    increments: Vec<IncrementBody>,
}

/// An amount or a value for one subject.
#[derive(ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = Increment)]
#[expect(dead_code, reason = "schema only; bodies are parsed without copying")]
pub(in crate::http) struct IncrementBody {
    #[schema(schema_with = schemas::subject)]
    subject: String,
    #[schema(schema_with = schemas::amount, required = false)]
    amount: f64,
    #[schema(schema_with = schemas::value_to_count, required = false)]
    value: String,
    /// Time of the increment. Default: the store's current time.
    #[schema(schema_with = schemas::time, required = false)]
    at: String,
    #[schema(schema_with = schemas::id, required = false)]
    id: String,
    /// Whether the increment reverses an earlier one, which happened at `at`. Default: false.
    #[schema(required = false)]
    retract: bool,
}
