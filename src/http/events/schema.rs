//! Schemas of bodies with events, which [`item`](super::item) parses.

use utoipa::ToSchema;

use crate::http::schemas;

/// A single event or a batch.
#[derive(ToSchema)]
#[schema(as = EventsBody)]
#[expect(dead_code, reason = "schema only; bodies are parsed without copying")]
#[serde(untagged)]
pub(in crate::http) enum EventsBody {
    One(EventBody),
    Many(EventBatchBody),
}

/// A batch of events.
#[derive(ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = EventBatch)]
#[expect(dead_code, reason = "schema only; bodies are parsed without copying")]
pub(in crate::http) struct EventBatchBody {
    /// The events. One that does not match this schema is rejected on its own: the response is still 200 and lists it
    /// in `rejected`, and the others count.
    #[schema(max_items = 100000)]
    events: Vec<EventBody>,
}

/// An occurrence with a type and fields.
#[derive(ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = Event)]
#[expect(dead_code, reason = "schema only; bodies are parsed without copying")]
pub(in crate::http) struct EventBody {
    /// Type of the event. It is counted by every board whose metric names this type.
    #[schema(min_length = 1, max_length = 128, example = "login")]
    r#type: String,
    #[schema(schema_with = schemas::fields, required = false)]
    fields: String,
    /// Time of the event. Default: the store's current time.
    #[schema(schema_with = schemas::time, required = false)]
    at: String,
    #[schema(schema_with = schemas::id, required = false)]
    id: String,
    /// Whether the event reverses an earlier one, which happened at `at`. Default: false.
    #[schema(required = false)]
    retract: bool,
}
