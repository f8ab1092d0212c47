//! The API's description: OpenAPI 3.1, from the code.
//!
//! Handlers describe themselves beside their code. What they have in common is added here: the parameters of the
//! path, and every error an operation can answer, from the tables of routes and codes.

mod bodies;
mod examples;
mod questions;
mod schemas;

use std::collections::BTreeMap;

use actix_web::http::Method;
use utoipa::OpenApi as _;
use utoipa::openapi::content::ContentBuilder;
use utoipa::openapi::example::ExampleBuilder;
use utoipa::openapi::path::{Operation as Described, Parameter, ParameterBuilder, ParameterIn, PathItem};
use utoipa::openapi::schema::{ObjectBuilder, Ref, Type};
use utoipa::openapi::{
    HeaderBuilder, InfoBuilder, LicenseBuilder, OpenApi, RefOr, Required, Response, ResponseBuilder, Schema,
};

use super::codes::Code;
use super::problem::PROBLEM_JSON;
use super::routes::{OPERATIONS, Operation};
use super::{
    backup, boards, clock, evaluate, events, increments, operations, query, rankings, rollover, rules, samples,
    subjects, values, welcome, windows,
};

pub(super) use bodies::{ClockBody, DefinitionBody, EventsBody, IncrementsBody, LookupBody, SamplesBody};
pub(super) use examples::board as board_example;
pub(super) use questions::{EvaluateBody, QueriesBody};
pub(super) use schemas::{
    board as board_schema, cover as cover_schema, edge as edge_schema, item_code as item_code_schema,
    mode as mode_schema, operand as operand_schema, order as order_schema, problem as problem_schema,
    rejected_counts as rejected_counts_schema, score as score_schema, stamp as stamp_schema,
    standard_error as standard_error_schema, subject as subject_schema, time as time_schema,
    time_or_null as time_or_null_schema, value as value_schema,
};

#[derive(utoipa::OpenApi)]
#[openapi(
    paths(
        events::add, increments::add, samples::put, rankings::page, rankings::lookup, subjects::standing,
        windows::window, values::values, subjects::neighbors, subjects::remove, query::query, evaluate::evaluate,
        rules::list, boards::list, boards::get, boards::put, boards::delete, boards::audit, rollover::one,
        rollover::all, clock::get, clock::put, backup::make, operations::health, operations::readiness, operations::metrics,
        operations::openapi, welcome::welcome,
    ),
    components(schemas(bodies::ProblemBody)),
    tags(
        (name = "events", description = "What happened: one, a batch, or a stream, for every board that counts it."),
        (name = "increments", description = "Counting on one board: one, a batch, or a stream; samples."),
        (name = "rankings", description = "What is on top."),
        (name = "subjects", description = "One subject: its standing, shorter windows, neighbours, removal."),
        (name = "features", description = "What rules ask: many questions at once, and whether rules hit."),
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
    add_examples(&mut document);
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
    // Names for which the sample boards have an answer.
    let (board, subject) =
        if path.ends_with("/values") { ("users-per-device", "device-1") } else { ("hot-posts", "post-1") };
    if path.contains("{subject}") {
        let description = "The subject, percent-encoded as one part of the path: `a/b` is `a%2Fb`.";
        parameters.insert(0, of_path("subject", subject_schema().into(), description, subject));
    }
    if path.contains("{board}") {
        parameters.insert(0, of_path("board", board_schema().into(), "The board's name.", board));
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
    let examples = codes.iter().map(|code| (code.as_str(), RefOr::Ref(Ref::new(example_path(*code)))));
    let content =
        ContentBuilder::new().schema(Some(Ref::from_schema_name("Problem"))).examples_from_iter(examples).build();
    let mut response = ResponseBuilder::new().description(lines.join("\n")).content(PROBLEM_JSON, content);
    if codes.iter().any(|code| examples::problem(*code).asks_to_retry()) {
        let header = HeaderBuilder::new()
            .schema(Some(ObjectBuilder::new().schema_type(Type::Integer).minimum(Some(1))))
            .description(Some("Seconds after which to try again."))
            .build();
        response = response.header("retry-after", header);
    }
    response.build()
}

/// Where the example of a code stands in the document: once, however many operations can answer it.
fn example_path(code: Code) -> String {
    format!("#/components/examples/{}", code.as_str())
}

fn add_examples(document: &mut OpenApi) {
    let examples = &mut document.components.get_or_insert_default().examples;
    for code in Code::ALL {
        let problem = serde_json::to_value(examples::problem(*code)).ok();
        let example = ExampleBuilder::new().summary(code.title()).value(problem).build();
        examples.insert(code.as_str().to_owned(), RefOr::T(example));
    }
}
