//! The OpenAPI 3.1 document, generated from the code.
//!
//! Handlers have their own descriptions. Path parameters and errors are added here, from the tables of routes and
//! codes.

mod problem_examples;

use std::collections::BTreeMap;

use actix_web::http::Method;
use utoipa::OpenApi as _;
use utoipa::openapi::content::ContentBuilder;
use utoipa::openapi::example::ExampleBuilder;
use utoipa::openapi::path::{Operation as Described, Parameter, ParameterBuilder, ParameterIn, PathItem};
use utoipa::openapi::schema::{ObjectBuilder, Ref, Type};
use utoipa::openapi::security::{HttpAuthScheme, HttpBuilder, SecurityRequirement, SecurityScheme};
use utoipa::openapi::server::ServerBuilder;
use utoipa::openapi::{
    HeaderBuilder, InfoBuilder, LicenseBuilder, OpenApi, RefOr, Required, Response, ResponseBuilder, Schema,
};

use super::admission;
use super::codes::Code;
use super::delivery::Delivery;
use super::export::ExportEnd;
use super::live::RankingChange;
use super::needs::Needs;
use super::problem::{PROBLEM_JSON, Problem};
use super::routes::{Descriptions, OPERATIONS, Operation};
use super::schemas;

#[derive(utoipa::OpenApi)]
#[openapi(
    components(schemas(Problem, ExportEnd, RankingChange)),
    tags(
        (name = "events", description = "Events, counted by every board whose metric names their type: a single one, a batch or a stream."),
        (name = "sources", description = "Logs whose events count once, because each has a position: topics, streams, files."),
        (name = "increments", description = "Increments and samples of one board: a single one, a batch or a stream."),
        (name = "rankings", description = "Pages of rankings, rankings among given subjects, and the keys of boards with `BY`."),
        (name = "subjects", description = "Single subjects: score and rank, values over windows, neighbors, removal."),
        (name = "attributes", description = "What stands beside a subject in rankings: a name, a picture, a country."),
        (name = "moderation", description = "Subjects that are hidden from rankings, and subjects for which nothing counts."),
        (name = "features", description = "Queries and rules: values of many subjects and metrics at once, and evaluation of rules."),
        (name = "boards", description = "Boards: named metrics over sliding windows, defined through the API or in the configuration."),
        (name = "keys", description = "Keys: who may do what, on which boards."),
        (name = "operations", description = "Health, metrics, rollover, audit and backup."),
        (name = "clock", description = "The simulated clock, for tests and replays. Only with `--clock simulated=…`."),
    ),
)]
struct Outline;

/// The name of the security scheme.
const KEY_SCHEME: &str = "key";

const DESCRIPTION: &str = "\
Rolltop computes exact leaderboards over sliding windows. Send increments or events and read rankings; old slots \
leave the window automatically.

Times are in RFC 3339 format, in UTC. Durations are written as `90s`, `15m`, `24h` or `7d`. Scores and amounts are \
exact JSON numbers. Every read returns the bounds of the window, the store's time, and the number of expired slots \
that are still being subtracted. Errors are `application/problem+json` (RFC 9457) with a stable `code`.

Responses to `GET` have a weak `ETag`; with `If-None-Match` a poll gets 304 until something has changed. Large responses \
are compressed with br, zstd or gzip if `Accept-Encoding` allows it, and bodies may be sent with `Content-Encoding: gzip` \
or `zstd`. Every response has an `X-Request-Id`: that of the request, or a new one.";

/// Returns the OpenAPI document of the API with or without a simulated clock.
pub fn openapi(simulated_clock: bool) -> OpenApi {
    let mut document = Outline::openapi();
    document.merge(Descriptions::openapi());
    let license = LicenseBuilder::new().name("MIT OR Apache-2.0").identifier(Some("MIT OR Apache-2.0")).build();
    // Relative to the document, so that generated clients and the explorer use the address that they loaded it from.
    document.servers = Some(vec![ServerBuilder::new().url("/").build()]);
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
        if let Some(described) = operation_mut(item, &operation.method) {
            add_path_parameters(described, operation);
            add_problems(described, operation);
            add_caching(described, operation);
            add_security(described, operation);
            add_idempotency_key(described, operation);
        }
    }
    let bearer = HttpBuilder::new().scheme(HttpAuthScheme::Bearer).bearer_format("rt_<id>_<secret>");
    let bearer = bearer.description(Some("A key of this service."));
    let components = document.components.get_or_insert_default();
    components.add_security_scheme(KEY_SCHEME, SecurityScheme::Http(bearer.build()));
    add_examples(&mut document);
    if !simulated_clock && let Some(tags) = &mut document.tags {
        tags.retain(|tag| tag.name != "clock");
    }
    document
}

/// Returns the description of the operation with this method.
fn operation_mut<'a>(item: &'a mut PathItem, method: &Method) -> Option<&'a mut Described> {
    match method.as_str() {
        "GET" => item.get.as_mut(),
        "POST" => item.post.as_mut(),
        "PUT" => item.put.as_mut(),
        "PATCH" => item.patch.as_mut(),
        "DELETE" => item.delete.as_mut(),
        _ => None,
    }
}

/// Adds the parameters of the path, and makes those of the query optional.
fn add_path_parameters(described: &mut Described, operation: &Operation) {
    let path = operation.path;
    // These take effect as soon as the explorer executes them, with nothing to fill in.
    let is_change_without_body = operation.method != Method::GET && described.request_body.is_none();
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
    // Names that exist on the boards of the default configuration, except where something would be removed or changed.
    let (board, subject) = match path {
        _ if is_change_without_body => ("name-of-a-board", "name-of-a-subject"),
        _ if path.ends_with("/values") => ("users-per-device", "device-1"),
        _ => ("hot-posts", "post-1"),
    };
    let source = if is_change_without_body { "name-of-a-source" } else { "likes-0" };
    if path.contains("{subject}") {
        let description = "The subject, percent-encoded as one segment of the path: `a/b` is `a%2Fb`.";
        parameters.insert(0, of_path("subject", schemas::subject().into(), description, subject));
    }
    if path.contains("{key}") {
        let of_board = "The key of the ranking, percent-encoded as one segment of the path: `a/b` is `a%2Fb`.";
        let schema = ObjectBuilder::new().schema_type(Type::String).pattern(Some("^[0-9a-f]{16}$"));
        let parameter = match path.contains("{board}") {
            true => of_path("key", schemas::by().into(), of_board, "name-of-a-key"),
            false => of_path("key", schema.into(), "The id of the key.", "5f1c2a9d04b7e386"),
        };
        parameters.insert(0, parameter);
    }
    if path.contains("{source}") {
        parameters.insert(0, of_path("source", schemas::source().into(), "The name of the source.", source));
    }
    if path.contains("{board}") {
        parameters.insert(0, of_path("board", schemas::board().into(), "The name of the board.", board));
    }
    if parameters.is_empty() {
        described.parameters = None;
    }
}

/// Adds the responses for all codes of the operation, grouped by status.
fn add_problems(described: &mut Described, operation: &Operation) {
    let mut by_status: BTreeMap<u16, Vec<Code>> = BTreeMap::new();
    let origin = (operation.method != Method::GET).then_some(&Code::ForeignOrigin);
    let of_all =
        [&Code::ConnectionEnded, &Code::UriTooLong, &Code::UnknownHost, &Code::Internal].into_iter().chain(origin);
    let of_key: &[Code] = match operation.needs {
        Needs::Nothing => &[Code::Forwarded],
        Needs::Key | Needs::Scope(_) | Needs::Items(_) => {
            use Code::{Forbidden, Forwarded, InvalidKey, InvalidToken, KeyExpired, KeyRequired, TokenExpired};
            &[Forwarded, KeyRequired, InvalidKey, KeyExpired, InvalidToken, TokenExpired, Forbidden]
        }
    };
    let of_rate = admission::is_limited(operation.path).then_some(&Code::RateLimited);
    for code in operation.problems.iter().copied().flatten().chain(of_all).chain(of_key).chain(of_rate) {
        let codes = by_status.entry(code.status().as_u16()).or_default();
        if !codes.contains(code) {
            codes.push(*code);
        }
    }
    for (status, codes) in by_status {
        described.responses.responses.insert(status.to_string(), RefOr::T(problem_response(&codes)));
    }
}

/// Adds the key that the operation needs, and the scope.
fn add_security(described: &mut Described, operation: &Operation) {
    let scope = match (operation.needs, operation.needs.scope()) {
        (Needs::Nothing, _) => return,
        (_, None) => "Needs a key of any scope.".to_owned(),
        (_, Some(scope)) => format!("Needs the scope `{scope}`."),
    };
    let text = described.description.take().filter(|text| !text.is_empty());
    described.description = Some(text.map_or_else(|| scope.clone(), |text| format!("{text}\n\n{scope}")));
    // Callers without a key may be allowed as much.
    let requirements = [SecurityRequirement::new::<_, _, String>(KEY_SCHEME, []), SecurityRequirement::default()];
    described.security = Some(requirements.into());
}

/// Adds the header of requests that may be repeated: those with items, which may also be streams, and those that record
/// an event.
fn add_idempotency_key(described: &mut Described, operation: &Operation) {
    let takes_streams = match &described.request_body {
        Some(RefOr::T(body)) => body.content.contains_key("application/x-ndjson"),
        _ => false,
    };
    let takes_items = matches!(operation.needs, Needs::Items(_)) && takes_streams;
    if !takes_items && operation.path != "/v1/evaluate" {
        return;
    }
    let text = ObjectBuilder::new().schema_type(Type::String).pattern(Some("^[!-~]{1,255}$"));
    let key = ParameterBuilder::new()
        .name("Idempotency-Key")
        .parameter_in(ParameterIn::Header)
        .required(Required::False)
        .schema(Some(text))
        .description(Some(
            "Makes it safe to send the request again: each item without an `id` gets one computed from the key and its \
             index or line. A repeated request counts nothing twice and reports `duplicates`. The bodies are not compared, so \
             each new request needs a new key, for example a random UUID.",
        ))
        .build();
    described.parameters.get_or_insert_default().push(RefOr::T(key));
}

/// Describes the entity tag of a response to GET, and the response to a client that has it already.
fn add_caching(described: &mut Described, operation: &Operation) {
    if operation.method != Method::GET || Delivery::is_live(operation.path) {
        return;
    }
    let header = |description: &str| {
        let text = ObjectBuilder::new().schema_type(Type::String);
        HeaderBuilder::new().schema(Some(text)).description(Some(description)).build()
    };
    let tag =
        || header("Changes whenever anything but `as_of` does. Send it as `If-None-Match` with the next request.");
    if let Some(RefOr::T(response)) = described.responses.responses.get_mut("200") {
        response.headers.insert("etag".to_owned(), RefOr::T(tag()));
    }
    let unchanged = ResponseBuilder::new()
        .description("Nothing has changed since the response with the entity tag in `If-None-Match`.")
        .header("etag", tag())
        .header("rolltop-as-of", header("The store's time of this response."))
        .build();
    described.responses.responses.insert("304".to_owned(), RefOr::T(unchanged));
}

fn problem_response(codes: &[Code]) -> Response {
    let lines: Vec<String> = codes.iter().map(|code| format!("- `{}`:{}", code.as_str(), code.meaning())).collect();
    let examples = codes.iter().map(|code| (code.as_str(), RefOr::Ref(Ref::new(example_path(*code)))));
    let content =
        ContentBuilder::new().schema(Some(Ref::from_schema_name("Problem"))).examples_from_iter(examples).build();
    let mut response = ResponseBuilder::new().description(lines.join("\n")).content(PROBLEM_JSON, content);
    if codes.iter().any(|code| problem_examples::example(*code).has_retry_after()) {
        let header = HeaderBuilder::new()
            .schema(Some(ObjectBuilder::new().schema_type(Type::Integer).minimum(Some(1))))
            .description(Some("Number of seconds after which to retry."))
            .build();
        response = response.header("retry-after", header);
    }
    response.build()
}

/// Returns the path of the example of a code, which operations refer to.
fn example_path(code: Code) -> String {
    format!("#/components/examples/{}", code.as_str())
}

/// Adds an example of each code to the components.
fn add_examples(document: &mut OpenApi) {
    let examples = &mut document.components.get_or_insert_default().examples;
    for code in Code::ALL {
        let problem = serde_json::to_value(problem_examples::example(*code)).ok();
        let example = ExampleBuilder::new().summary(code.title()).value(problem).build();
        examples.insert(code.as_str().to_owned(), RefOr::T(example));
    }
}
