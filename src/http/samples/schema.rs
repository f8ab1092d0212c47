//! Schemas of bodies with samples, which [`item`](super::item) parses.

use utoipa::ToSchema;

use crate::http::schemas;

/// A single sample or a batch.
#[derive(ToSchema)]
#[schema(as = SamplesBody)]
#[expect(dead_code, reason = "schema only; bodies are parsed without copying")]
#[serde(untagged)]
pub(in crate::http) enum SamplesBody {
    One(SampleBody),
    Many(SampleBatchBody),
}

/// A batch of samples.
#[derive(ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = SampleBatch)]
#[expect(dead_code, reason = "schema only; bodies are parsed without copying")]
pub(in crate::http) struct SampleBatchBody {
    /// The samples. One that does not match this schema is rejected on its own: the response is still 200 and lists it
    /// in `rejected`, and the others count.
    #[schema(max_items = 100000)]
    samples: Vec<SampleBody>,
}

/// The content of one slot for a subject, or over all time its total.
#[derive(ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = Sample)]
#[expect(dead_code, reason = "schema only; bodies are parsed without copying")]
pub(in crate::http) struct SampleBody {
    #[schema(schema_with = schemas::subject)]
    subject: String,
    /// A time that selects the slot: the slot that contains it or, with `stamp = "end"`, the slot that ends at it or
    /// contains it. Required unless the board counts over all time and keeps no slots.
    #[schema(schema_with = schemas::time, required = false)]
    at: String,
    /// The amount of the slot, for COUNT and SUM. Parsed exactly.
    #[schema(required = false)]
    amount: f64,
    /// The sum of the measurements, for AVG, together with `count`. Parsed exactly.
    #[schema(required = false)]
    sum: f64,
    /// The number of measurements, for AVG, together with `sum`.
    #[schema(minimum = 0, required = false)]
    count: i64,
    /// The smallest or largest value of the slot, for MIN and MAX; its newest value, for LAST. Parsed exactly.
    #[schema(required = false)]
    value: f64,
}
