//! Bodies as the description shows them, where the code reads or writes them in another way.

use utoipa::ToSchema;

use super::schemas;
use crate::http::codes::Code;

/// A refused request, as RFC 9457 has it. Further members depend on the code.
#[derive(ToSchema)]
#[schema(as = Problem)]
#[expect(dead_code, reason = "only described; problems are written as what their code needs")]
pub(super) struct ProblemBody {
    /// Names the kind of problem: `urn:rolltop:problem:` and the code.
    #[schema(format = "uri-reference", example = "urn:rolltop:problem:unknown_board")]
    r#type: String,
    /// The kind of problem for a person.
    title: String,
    /// The HTTP status.
    #[schema(minimum = 400, maximum = 599)]
    status: u16,
    /// This occurrence for a person: the thing and the way out.
    detail: String,
    /// The stable name that programs match on.
    #[schema(schema_with = schemas::code)]
    code: Code,
}

/// One increment, or a batch.
#[derive(ToSchema)]
#[schema(as = Increments)]
#[expect(dead_code, reason = "only described; bodies are read without copying")]
#[serde(untagged)]
pub(in crate::http) enum IncrementsBody {
    One(IncrementBody),
    Many(BatchBody),
}

/// A batch of increments.
#[derive(ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = IncrementBatch)]
#[expect(dead_code, reason = "only described; bodies are read without copying")]
pub(in crate::http) struct BatchBody {
    /// Each stands for itself: one that cannot be counted does not hold up the others.
    #[schema(max_items = 100000)]
    increments: Vec<IncrementBody>,
}

/// An amount for one subject, or a value.
#[derive(ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = Increment)]
#[expect(dead_code, reason = "only described; bodies are read without copying")]
pub(in crate::http) struct IncrementBody {
    #[schema(schema_with = schemas::subject)]
    subject: String,
    /// COUNT and SUM: how much; 1 if absent. May be negative. At most as many decimals as the board keeps, read
    /// exactly.
    #[schema(schema_with = schemas::amount, required = false)]
    amount: f64,
    /// The other metrics: the number measured (AVG, MIN, MAX), or the text seen (the distinct ones).
    #[schema(schema_with = schemas::value_to_count, required = false)]
    value: String,
    /// When it happened; the store's now if absent.
    #[schema(schema_with = schemas::time, required = false)]
    at: String,
    /// Counts once per board and subject, for as long as the window, at most a day, after it arrived.
    #[schema(schema_with = schemas::id, required = false)]
    id: String,
    /// Undoes its twin, which happened at `at`.
    #[schema(required = false)]
    retract: bool,
}

/// One sample, or a batch.
#[derive(ToSchema)]
#[schema(as = Samples)]
#[expect(dead_code, reason = "only described; bodies are read without copying")]
#[serde(untagged)]
pub(in crate::http) enum SamplesBody {
    One(SampleBody),
    Many(SampleBatchBody),
}

/// A batch of samples.
#[derive(ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = SampleBatch)]
#[expect(dead_code, reason = "only described; bodies are read without copying")]
pub(in crate::http) struct SampleBatchBody {
    /// Each stands for itself: one that cannot be set does not hold up the others.
    #[schema(max_items = 100000)]
    samples: Vec<SampleBody>,
}

/// What a subject has in one slot.
#[derive(ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = Sample)]
#[expect(dead_code, reason = "only described; bodies are read without copying")]
pub(in crate::http) struct SampleBody {
    #[schema(schema_with = schemas::subject)]
    subject: String,
    /// Which slot: the one that contains this time or, with `stamp = "end"`, the one that ends with it or contains it.
    #[schema(schema_with = schemas::time)]
    at: String,
    /// COUNT and SUM: what the slot holds. Read exactly.
    #[schema(required = false)]
    amount: f64,
    /// AVG: the measurements added up, with `count`. Read exactly.
    #[schema(required = false)]
    sum: f64,
    /// AVG: how many measurements, with `sum`.
    #[schema(minimum = 0, required = false)]
    count: i64,
    /// MIN and MAX: the slot's extreme. Read exactly.
    #[schema(required = false)]
    value: f64,
}

/// One event, or a batch.
#[derive(ToSchema)]
#[schema(as = Events)]
#[expect(dead_code, reason = "only described; bodies are read without copying")]
#[serde(untagged)]
pub(in crate::http) enum EventsBody {
    One(EventBody),
    Many(EventBatchBody),
}

/// A batch of events.
#[derive(ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = EventBatch)]
#[expect(dead_code, reason = "only described; bodies are read without copying")]
pub(in crate::http) struct EventBatchBody {
    /// Each stands for itself: one that cannot be counted does not hold up the others.
    #[schema(max_items = 100000)]
    events: Vec<EventBody>,
}

/// Something that happened.
#[derive(ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = Event)]
#[expect(dead_code, reason = "only described; bodies are read without copying")]
pub(in crate::http) struct EventBody {
    /// Boards whose metric names this type take it.
    #[schema(min_length = 1, max_length = 128, example = "login")]
    r#type: String,
    /// What metrics read: texts, numbers, truth values. Null is the same as absent.
    #[schema(schema_with = schemas::fields, required = false)]
    fields: String,
    /// When it happened; the store's now if absent.
    #[schema(schema_with = schemas::time, required = false)]
    at: String,
    /// Counts once per board and subject, for as long as the board's window, at most a day, after it arrived.
    #[schema(schema_with = schemas::id, required = false)]
    id: String,
    /// Undoes its twin, which happened at `at`.
    #[schema(required = false)]
    retract: bool,
}

/// Subjects to look up.
#[derive(ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = Lookup)]
#[expect(dead_code, reason = "only described")]
pub(in crate::http) struct LookupBody {
    /// A subject given twice counts once.
    #[schema(schema_with = schemas::subjects)]
    subjects: Vec<String>,
}

/// A time to set the clock to.
#[derive(ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = ClockSetting)]
#[expect(dead_code, reason = "only described")]
pub(in crate::http) struct ClockBody {
    #[schema(schema_with = schemas::time)]
    now: String,
}

/// What a board is defined with.
#[derive(ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = Definition)]
#[expect(dead_code, reason = "only described; definitions are read key by key")]
pub(in crate::http) struct DefinitionBody {
    /// `COUNT(window, event, subject)`, `SUM|AVG|MIN|MAX(window, event, value, subject)`, or
    /// `COUNT_DISTINCT|APPROX_COUNT_DISTINCT(window, event, subject, counted)`; before the closing parenthesis perhaps a
    /// filter: `WHERE channel = 'app'`. Subject and counted: a field, `prefix(ip, 24)`, or several: `(ip, device_id)`.
    #[schema(example = "COUNT(24h, like, post_id)")]
    metric: String,
    /// The length of a slot: under an hour a divisor of an hour, up to a day a divisor of 24 h, else whole days,
    /// `1w` or `1mo`. The window is a whole number of slots, at most 2,000. With `mode` `from_first` it may be left out.
    #[schema(example = "1h", pattern = "^[1-9][0-9]{0,9}(s|m|h|d|w|mo)$", required = false)]
    slot: String,
    /// Digits after the point that scores keep; 0 if absent.
    #[schema(minimum = 0, maximum = 9, required = false)]
    decimals: u8,
    /// The IANA zone whose midnights slots of an hour and more align to; UTC if absent.
    #[schema(required = false, example = "Europe/Berlin")]
    timezone: String,
    /// Which end of the scores is the top; `desc` if absent.
    #[schema(schema_with = schemas::order, required = false)]
    order: String,
    /// `full` keeps one slot more, so that the window is never shorter than it says; `current` if absent.
    #[schema(schema_with = schemas::cover, required = false)]
    cover: String,
    /// `false`: no ranking and nothing to roll over; subjects are read one by one (rule features). `true` if absent.
    #[schema(required = false)]
    ranked: bool,
    /// Unranked boards: how long slots are kept for looking back with `as_of`; the window and one slot if absent. Not
    /// with COUNT_DISTINCT.
    #[schema(required = false, example = "48h", pattern = "^[1-9][0-9]{0,9}(s|m|h|d|w|mo)$")]
    keep: String,
    /// `sliding` if absent.
    #[schema(schema_with = schemas::mode, required = false)]
    mode: String,
    /// AVG on ranked boards: subjects measured less often than this are not ranked; 1 if absent.
    #[schema(minimum = 1, required = false)]
    min_samples: u32,
    /// COUNT_DISTINCT: the most values remembered per subject; past it the one seen longest ago goes, and answers say
    /// `capped`. No limit if absent.
    #[schema(minimum = 1, required = false, example = 1000)]
    max_values: u32,
    /// `start` if absent.
    #[schema(schema_with = schemas::stamp, required = false)]
    stamp: String,
    /// Redis only: how many parts the board is spread over, so that several nodes of a cluster share it; not spread if
    /// absent. It does not change what the board answers. The embedded store has no use for it and ignores it.
    #[schema(minimum = 1, maximum = 64, required = false, example = 24)]
    shards: u32,
}
