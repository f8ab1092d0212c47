//! The API's description: OpenAPI 3.1, from the code.
//!
//! Handlers describe themselves beside their code. What they have in common is added here: the parameters of the
//! path, and every error an operation can answer, from the tables of routes and codes.

use std::collections::BTreeMap;

use actix_web::http::Method;
use serde_json::{Value, json};
use utoipa::openapi::content::ContentBuilder;
use utoipa::openapi::path::{Operation as Described, Parameter, ParameterBuilder, ParameterIn, PathItem};
use utoipa::openapi::schema::{AdditionalProperties, KnownFormat, Object, ObjectBuilder, Ref, SchemaFormat, Type};
use utoipa::openapi::{
    HeaderBuilder, InfoBuilder, LicenseBuilder, OpenApi, RefOr, Required, Response, ResponseBuilder, Schema,
};
use utoipa::{OpenApi as _, ToSchema};

use super::codes::{Code, ItemCode};
use super::problem::{PROBLEM_JSON, Problem};
use super::routes::{OPERATIONS, Operation};
use super::{boards, clock, increments, operations, rankings, rollover, subjects, welcome};

#[derive(utoipa::OpenApi)]
#[openapi(
    paths(
        increments::add, rankings::page, rankings::lookup, subjects::standing, subjects::window, subjects::neighbors,
        subjects::remove, boards::list, boards::get, boards::put, boards::delete, boards::audit, rollover::one,
        rollover::all, clock::get, clock::put, operations::health, operations::readiness, operations::metrics,
        operations::openapi, welcome::welcome,
    ),
    components(schemas(ProblemBody)),
    tags(
        (name = "increments", description = "Counting: one, a batch, or a stream."),
        (name = "rankings", description = "What is on top."),
        (name = "subjects", description = "One subject: its standing, shorter windows, neighbours, removal."),
        (name = "boards", description = "Boards are named metrics over rolling windows, defined at run time or in the configuration."),
        (name = "operations", description = "For whoever runs the service."),
        (name = "clock", description = "Only with a simulated clock: tests and replays set the time."),
    ),
)]
struct Handlers;

const DESCRIPTION: &str = "\
Rolltop answers *what is on top over the last N hours?*, exactly. Post increments, read rankings; windows roll over \
by themselves.

Times are RFC 3339 in UTC. Durations read `90s`, `15m`, `24h`, `7d`. Scores and amounts are exact JSON numbers. \
Every read says which window it is about, the store's time, and how many expired slots are still being subtracted. \
Errors are `application/problem+json` (RFC 9457) with a stable `code`.";

/// The description of what is served, with or without a simulated clock.
pub fn openapi(simulated_clock: bool) -> OpenApi {
    let mut document = Handlers::openapi();
    let license = LicenseBuilder::new().name("MIT OR Apache-2.0").identifier(Some("MIT OR Apache-2.0")).build();
    document.info = InfoBuilder::new()
        .title("Rolltop")
        .version(env!("CARGO_PKG_VERSION"))
        .description(Some(DESCRIPTION))
        .license(Some(license))
        .build();
    for operation in OPERATIONS {
        let Some(item) = document.paths.paths.get_mut(operation.path) else { continue };
        if operation.simulated_only && !simulated_clock {
            document.paths.paths.remove(operation.path);
            continue;
        }
        if let Some(described) = slot(item, &operation.method) {
            add_path_parameters(described, operation.path);
            add_problems(described, operation);
        }
    }
    if !simulated_clock && let Some(tags) = &mut document.tags {
        tags.retain(|tag| tag.name != "clock");
    }
    document
}

fn slot<'a>(item: &'a mut PathItem, method: &Method) -> Option<&'a mut Described> {
    match method.as_str() {
        "GET" => item.get.as_mut(),
        "POST" => item.post.as_mut(),
        "PUT" => item.put.as_mut(),
        "DELETE" => item.delete.as_mut(),
        _ => None,
    }
}

fn add_path_parameters(described: &mut Described, path: &str) {
    let parameters = described.parameters.get_or_insert_default();
    for parameter in parameters.iter_mut() {
        if let RefOr::T(parameter) = parameter
            && parameter.parameter_in == ParameterIn::Query
        {
            parameter.required = Required::False;
        }
    }
    let of_path = |name: &str, schema: RefOr<Schema>, description: &str, example: &str| -> RefOr<Parameter> {
        RefOr::T(
            ParameterBuilder::new()
                .name(name)
                .parameter_in(ParameterIn::Path)
                .required(Required::True)
                .schema(Some(schema))
                .description(Some(description))
                .example(Some(example.into()))
                .build(),
        )
    };
    if path.contains("{subject}") {
        let description = "The subject, percent-encoded as one part of the path: `a/b` is `a%2Fb`.";
        parameters.insert(0, of_path("subject", subject_schema().into(), description, "post-1"));
    }
    if path.contains("{board}") {
        parameters.insert(0, of_path("board", board_schema().into(), "The board's name.", "hot-posts"));
    }
    if parameters.is_empty() {
        described.parameters = None;
    }
}

fn add_problems(described: &mut Described, operation: &Operation) {
    let mut by_status: BTreeMap<u16, Vec<Code>> = BTreeMap::new();
    for code in operation.problems.iter().copied().flatten().chain([&Code::Internal]) {
        let codes = by_status.entry(code.status().as_u16()).or_default();
        if !codes.contains(code) {
            codes.push(*code);
        }
    }
    for (status, codes) in by_status {
        described.responses.responses.insert(status.to_string(), RefOr::T(problem_response(&codes)));
    }
}

fn problem_response(codes: &[Code]) -> Response {
    let lines: Vec<String> = codes.iter().map(|code| format!("- `{}`:{}", code.as_str(), code.meaning())).collect();
    let examples = codes.iter().map(|code| {
        let example = utoipa::openapi::example::ExampleBuilder::new()
            .summary(code.title())
            .value(Some(example(*code).body()))
            .build();
        (code.as_str(), RefOr::T(example))
    });
    let content =
        ContentBuilder::new().schema(Some(Ref::from_schema_name("Problem"))).examples_from_iter(examples).build();
    let mut response = ResponseBuilder::new().description(lines.join("\n")).content(PROBLEM_JSON, content);
    if codes.iter().any(|code| example(*code).body().get("retry_after").is_some()) {
        let header = HeaderBuilder::new()
            .schema(Some(ObjectBuilder::new().schema_type(Type::Integer).minimum(Some(1))))
            .description(Some("Seconds after which to try again."))
            .build();
        response = response.header("retry-after", header);
    }
    response.build()
}

/// A problem of this code as it may occur.
fn example(code: Code) -> Problem {
    let second = std::time::Duration::from_secs(1);
    let problem = |detail: &str| Problem::new(code, detail);
    match code {
        Code::MalformedJson => {
            problem("the body is not JSON: expected `,` or `}` at line 1 column 22").with("line", 1).with("column", 22)
        }
        Code::IncompleteBody => problem("the body did not arrive whole: payload reached EOF before completing"),
        Code::InvalidSubject => problem("the subject is not UTF-8 once decoded, from byte 0").with("position", 0),
        Code::NotFound => problem("nothing is served at /v2; see /swagger-ui/ for what there is"),
        Code::UnknownBoard => {
            problem("there is no board 'hot-post'; define it with PUT /v1/boards/hot-post").with("board", "hot-post")
        }
        Code::MethodNotAllowed => problem("PATCH does not apply here; there is GET, HEAD, PUT, DELETE"),
        Code::BoardConflict => problem(
            "board 'hot-posts' exists with another slot; a board's definition cannot be changed in place: delete it \
             first, or choose another name",
        )
        .with("board", "hot-posts")
        .with("keys", vec!["slot"])
        .with("existing", definition_example()),
        Code::BoardChanged => problem("the board was removed or defined anew meanwhile"),
        Code::ClockBackward => {
            problem("the clock reads 2026-01-02T00:00:00Z; it moves forward only").with("now", "2026-01-02T00:00:00Z")
        }
        Code::TooLarge => problem("a JSON body may have 8388608 bytes; send more as a stream of application/x-ndjson")
            .with("limit", 8_388_608),
        Code::UnsupportedMediaType => problem("a body of type 'text/plain' is not read; send application/json"),
        Code::InvalidField => problem("'limit' must be a whole number from 1 to 1000").with("field", "limit"),
        Code::UnknownField => problem("there is no field 'subjet' here").with("field", "subjet"),
        Code::InvalidBoardName => problem(
            "a board's name is 1 to 63 characters of a-z, 0-9, '.', '_' and '-', and starts with a letter or digit",
        ),
        Code::BeyondWindow => {
            problem("48h is 48 slots of 1h; the board keeps 24 (24h)").with("field", "last").with("maximum", "24h")
        }
        Code::Internal => problem("the log of this instance says more under error_id 5f1c2a9d04b7e386")
            .with("error_id", "5f1c2a9d04b7e386"),
        Code::Overloaded => problem("too many writes are waiting for the store; try again shortly").retry_after(second),
        Code::StoreUnreachable => {
            problem("cannot reach the store at 127.0.0.1:6379: connection refused").retry_after(second)
        }
        Code::StoreTimeout => problem(
            "the store at 127.0.0.1:6379 did not answer in time; whether a write was done is unknown: repeat it with \
             the same id to be safe",
        )
        .retry_after(second),
        Code::StoreReadOnly => problem("the store takes no writes: the disk is full").retry_after(second),
        Code::NotReady => problem("the rollover of board 'hot-posts' is overdue")
            .with("reasons", vec!["the rollover of board 'hot-posts' is overdue"])
            .retry_after(second),
    }
}

/// A refused request, as RFC 9457 has it. Further members depend on the code.
#[derive(ToSchema)]
#[schema(as = Problem)]
#[expect(dead_code, reason = "only described; problems are written as what their code needs")]
struct ProblemBody {
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
    #[schema(schema_with = code_schema)]
    code: Code,
}

/// One increment, or a batch.
#[derive(ToSchema)]
#[schema(as = Increments)]
#[expect(dead_code, reason = "only described; bodies are read without copying")]
#[serde(untagged)]
pub(super) enum IncrementsBody {
    One(IncrementBody),
    Many(BatchBody),
}

/// A batch of increments.
#[derive(ToSchema)]
#[schema(as = IncrementBatch)]
#[expect(dead_code, reason = "only described; bodies are read without copying")]
pub(super) struct BatchBody {
    /// Each stands for itself: one that cannot be counted does not hold up the others.
    #[schema(max_items = 100000)]
    increments: Vec<IncrementBody>,
}

/// An amount for one subject.
#[derive(ToSchema)]
#[schema(as = Increment)]
#[expect(dead_code, reason = "only described; bodies are read without copying")]
pub(super) struct IncrementBody {
    #[schema(schema_with = subject_schema)]
    subject: String,
    /// How much; 1 if absent. May be negative. At most as many decimals as the board keeps, read exactly.
    #[schema(schema_with = amount_schema, required = false)]
    amount: f64,
    /// When it happened; the store's now if absent.
    #[schema(schema_with = time_schema, required = false)]
    at: String,
    /// Counts once per board and subject, for as long as the window, at most a day, after it arrived.
    #[schema(min_length = 1, max_length = 128, required = false, example = "e-81")]
    id: String,
}

/// Subjects to look up.
#[derive(ToSchema)]
#[schema(as = Lookup)]
#[expect(dead_code, reason = "only described")]
pub(super) struct LookupBody {
    /// A subject given twice counts once.
    #[schema(min_items = 1, max_items = 1000)]
    subjects: Vec<String>,
}

/// A time to set the clock to.
#[derive(ToSchema)]
#[schema(as = ClockSetting)]
#[expect(dead_code, reason = "only described")]
pub(super) struct ClockBody {
    #[schema(schema_with = time_schema)]
    now: String,
}

/// What a board is defined with.
#[derive(ToSchema)]
#[schema(as = Definition)]
#[expect(dead_code, reason = "only described; definitions are read key by key")]
pub(super) struct DefinitionBody {
    /// `COUNT(window, event, subject)` or `SUM(window, event, value, subject)`.
    #[schema(example = "COUNT(24h, like, post_id)")]
    metric: String,
    /// The length of a slot: under an hour a divisor of an hour, up to a day a divisor of 24 h, else whole days,
    /// `1w` or `1mo`. The window is a whole number of slots, at most 2,000.
    #[schema(example = "1h", pattern = "^[1-9][0-9]{0,9}(s|m|h|d|w|mo)$")]
    slot: String,
    /// Digits after the point that scores keep; 0 if absent.
    #[schema(minimum = 0, maximum = 9, required = false)]
    decimals: u8,
    /// The IANA zone whose midnights slots of an hour and more align to; UTC if absent.
    #[schema(required = false, example = "Europe/Berlin")]
    timezone: String,
    /// Which end of the scores is the top; `desc` if absent.
    #[schema(schema_with = order_schema, required = false)]
    order: String,
    /// `full` keeps one slot more, so that the window is never shorter than it says; `current` if absent.
    #[schema(schema_with = cover_schema, required = false)]
    cover: String,
}

pub(super) fn definition_example() -> Value {
    json!({
        "board": "hot-posts", "metric": "COUNT(24h, like, post_id)", "slot": "1h", "decimals": 0, "timezone": "UTC",
        "order": "desc", "cover": "current", "slots_in_window": 24, "generation": "5f1c2a9d04b7e386",
    })
}

fn text() -> ObjectBuilder {
    ObjectBuilder::new().schema_type(Type::String)
}

pub(super) fn time_schema() -> Object {
    text()
        .format(Some(SchemaFormat::KnownFormat(KnownFormat::DateTime)))
        .description(Some("An instant as RFC 3339 writes it, in UTC."))
        .build()
}

pub(super) fn board_schema() -> Object {
    text().pattern(Some("^[a-z0-9][a-z0-9._-]{0,62}$")).description(Some("The board's name.")).build()
}

pub(super) fn subject_schema() -> Object {
    text()
        .min_length(Some(1))
        .max_length(Some(512))
        .description(Some("What is ranked or counted: 1 to 512 bytes of UTF-8 without control characters."))
        .build()
}

pub(super) fn score_schema() -> Object {
    let exact = "An exact number, an integer where the board has no decimals.";
    ObjectBuilder::new().schema_type(Type::Number).description(Some(exact)).build()
}

fn amount_schema() -> Object {
    let what = "How much; 1 if absent. May be negative. At most as many decimals as the board keeps, read exactly.";
    ObjectBuilder::new().schema_type(Type::Number).description(Some(what)).build()
}

pub(super) fn order_schema() -> Object {
    text().enum_values(Some(["desc", "asc"])).description(Some("Which end of the scores is the top.")).build()
}

pub(super) fn cover_schema() -> Object {
    let what = "`full` keeps one slot more, so that the window is never shorter than it says.";
    text().enum_values(Some(["current", "full"])).description(Some(what)).build()
}

fn code_schema() -> Object {
    text().enum_values(Some(Code::ALL.iter().map(|code| code.as_str()))).build()
}

pub(super) fn item_code_schema() -> Object {
    let lines: Vec<_> = ItemCode::ALL.iter().map(|code| format!("- `{}`:{}", code.as_str(), code.meaning())).collect();
    text().enum_values(Some(ItemCode::ALL.iter().map(|code| code.as_str()))).description(Some(lines.join("\n"))).build()
}

pub(super) fn rejected_counts_schema() -> Object {
    let count = ObjectBuilder::new().schema_type(Type::Integer).minimum(Some(1)).build();
    ObjectBuilder::new()
        .schema_type(Type::Object)
        .additional_properties(Some(AdditionalProperties::RefOr(RefOr::T(Schema::Object(count)))))
        .description(Some("How many were not counted, by code; absent if there are none."))
        .build()
}
