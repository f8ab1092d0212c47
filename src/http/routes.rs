//! Every operation there is, in one table: its method, its path, its handler, and the errors it can answer.
//!
//! The router is built from it and the API's description takes its errors from it, so that neither can leave out
//! what the other has.

use actix_web::dev::Service;
use actix_web::http::Method;
use actix_web::web::{self, Data};
use actix_web::{HttpRequest, HttpResponse, Route, guard};
use utoipa_swagger_ui::{Config, SwaggerUi};

use super::codes::Code::{self, *};
use super::meters::{self, EventTally, RouteMeters, Tally};
use super::operations::Document;
use super::problem::Problem;
use super::{
    HttpState, backup, boards, clock, evaluate, events, increments, openapi, operations, query, rankings, rollover,
    rules, samples, subjects, values, welcome, windows,
};

/// One operation.
pub(super) struct Operation {
    pub(super) method: Method,
    pub(super) path: &'static str,
    handler: fn() -> Route,
    /// What it can answer besides success, `internal` apart, which is a bug wherever it occurs.
    pub(super) problems: &'static [&'static [Code]],
    /// Only with a simulated clock.
    pub(super) simulated_only: bool,
}

const QUERY: &[Code] = &[InvalidField, UnknownField];
const BODY: &[Code] =
    &[MalformedJson, IncompleteBody, BodyTimeout, TooLarge, UnsupportedMediaType, InvalidField, UnknownField];
const BOARD: &[Code] = &[UnknownBoard, BoardChanged];
const SUBJECT: &[Code] = &[InvalidSubject];
/// What a question by metric, or a rule, can get wrong.
const FEATURE: &[Code] = &[InvalidRule, MissingField, NoBoard];
/// What else a single question can get wrong.
const UNANSWERED: &[Code] = &[UnknownBoard];
const READ: &[Code] = &[Overloaded, StoreUnreachable, StoreTimeout];
const WRITE: &[Code] = &[Overloaded, StoreUnreachable, StoreTimeout, StoreReadOnly, ClockDoubted];
const BACKUP: &[Code] = &[Unsupported, StoreReadOnly, BackupFailed];

const fn operation(
    method: Method,
    path: &'static str,
    handler: fn() -> Route,
    problems: &'static [&'static [Code]],
) -> Operation {
    Operation { method, path, handler, problems, simulated_only: false }
}

/// In the order in which paths are matched: the one that is called most comes first.
pub(super) const OPERATIONS: &[Operation] = &[
    operation(Method::POST, "/v1/boards/{board}/increments", || web::to(increments::add), &[QUERY, BODY, BOARD, WRITE]),
    operation(Method::POST, "/v1/events", || web::to(events::add), &[QUERY, BODY, &[BoardChanged], WRITE]),
    operation(
        Method::PUT,
        "/v1/boards/{board}/samples",
        || web::to(samples::put),
        &[QUERY, BODY, BOARD, &[SamplesUnsupported], WRITE],
    ),
    operation(
        Method::GET,
        "/v1/boards/{board}/rankings",
        || web::to(rankings::page),
        &[QUERY, BOARD, &[NotRanked], READ],
    ),
    operation(
        Method::POST,
        "/v1/boards/{board}/rankings/lookup",
        || web::to(rankings::lookup),
        &[QUERY, BODY, BOARD, &[NotRanked], READ],
    ),
    operation(
        Method::GET,
        "/v1/boards/{board}/subjects/{subject}",
        || web::to(subjects::standing),
        &[QUERY, BOARD, SUBJECT, READ],
    ),
    operation(
        Method::DELETE,
        "/v1/boards/{board}/subjects/{subject}",
        || web::to(subjects::remove),
        &[QUERY, BOARD, SUBJECT, WRITE],
    ),
    operation(
        Method::GET,
        "/v1/boards/{board}/subjects/{subject}/window",
        || web::to(windows::window),
        &[QUERY, BOARD, SUBJECT, &[BeyondWindow, AsOfUnsupported, EdgeUnsupported], READ],
    ),
    operation(
        Method::GET,
        "/v1/boards/{board}/subjects/{subject}/values",
        || web::to(values::values),
        &[QUERY, BOARD, SUBJECT, &[NoValues], READ],
    ),
    operation(
        Method::GET,
        "/v1/boards/{board}/subjects/{subject}/neighbors",
        || web::to(subjects::neighbors),
        &[QUERY, BOARD, SUBJECT, &[NotRanked], READ],
    ),
    operation(
        Method::POST,
        "/v1/evaluate",
        || web::to(evaluate::evaluate),
        &[QUERY, BODY, FEATURE, &[UnknownRule, BoardChanged], WRITE],
    ),
    operation(Method::GET, "/v1/rules", || web::to(rules::list), &[QUERY, READ]),
    operation(Method::POST, "/v1/query", || web::to(query::query), &[QUERY, BODY, FEATURE, UNANSWERED, READ]),
    operation(Method::GET, "/v1/boards/{board}", || web::to(boards::get), &[QUERY, BOARD, READ]),
    operation(
        Method::PUT,
        "/v1/boards/{board}",
        || web::to(boards::put),
        &[QUERY, BODY, &[InvalidBoardName, BoardConflict], WRITE],
    ),
    operation(Method::DELETE, "/v1/boards/{board}", || web::to(boards::delete), &[QUERY, BOARD, WRITE]),
    operation(Method::POST, "/v1/boards/{board}/rollover", || web::to(rollover::one), &[QUERY, BOARD, WRITE]),
    operation(Method::POST, "/v1/boards/{board}/audit", || web::to(boards::audit), &[QUERY, BOARD, WRITE]),
    operation(Method::GET, "/v1/boards", || web::to(boards::list), &[QUERY, READ]),
    operation(Method::POST, "/v1/rollover", || web::to(rollover::all), &[QUERY, &[BoardChanged], WRITE]),
    operation(Method::POST, "/v1/backup", || web::to(backup::make), &[QUERY, BACKUP]),
    Operation {
        method: Method::GET,
        path: "/v1/clock",
        handler: || web::to(clock::get),
        problems: &[QUERY, READ],
        simulated_only: true,
    },
    Operation {
        method: Method::PUT,
        path: "/v1/clock",
        handler: || web::to(clock::put),
        problems: &[QUERY, BODY, &[ClockBackward], WRITE],
        simulated_only: true,
    },
    operation(Method::GET, "/healthz", || web::to(operations::health), &[]),
    operation(Method::GET, "/readyz", || web::to(operations::readiness), &[&[NotReady]]),
    operation(Method::GET, "/metrics", || web::to(operations::metrics), &[&[NotFound]]),
    operation(Method::GET, "/openapi.json", || web::to(operations::openapi), &[]),
    operation(Method::GET, "/", || web::to(welcome::welcome), &[]),
];

/// The method and path of every operation that is served.
pub fn registered(simulated_clock: bool) -> Vec<(Method, &'static str)> {
    served(simulated_clock).map(|operation| (operation.method.clone(), operation.path)).collect()
}

fn served(simulated_clock: bool) -> impl Iterator<Item = &'static Operation> {
    OPERATIONS.iter().filter(move |operation| simulated_clock || !operation.simulated_only)
}

/// Registers everything: every operation, the API's explorer, and answers for all that is neither. Needs no
/// middleware around it; wrap the application in [`cors`](super::cors()) for pages of other origins.
///
/// Install the metrics recorder before: handles are looked up when the application is built.
pub fn configure(state: Data<HttpState>) -> impl FnOnce(&mut web::ServiceConfig) + Clone {
    let document = openapi::openapi(state.options.simulated_clock).to_json().unwrap_or_default();
    let document = Data::new(Document(document.into()));
    meters::describe();
    move |app| {
        let mut paths: Vec<&'static str> = Vec::new();
        for operation in served(state.options.simulated_clock) {
            if !paths.contains(&operation.path) {
                paths.push(operation.path);
                register(app, operation.path);
            }
        }
        app.app_data(state)
            .app_data(document)
            .app_data(Data::new(Tally::new()))
            .app_data(Data::new(EventTally::new()))
            .route("/swagger-ui", web::get().to(to_explorer))
            .service(
                SwaggerUi::new("/swagger-ui/{_:.*}").config(Config::from("/openapi.json").try_it_out_enabled(true)),
            )
            .default_service(web::to(nothing_here));
    }
}

/// Registers one path with all its methods; any other method is told which there are.
fn register(app: &mut web::ServiceConfig, path: &'static str) {
    let operations: Vec<&Operation> = OPERATIONS.iter().filter(|operation| operation.path == path).collect();
    let mut resource = web::resource(path);
    let mut allow = Vec::new();
    for operation in &operations {
        allow.push(operation.method.as_str());
        let route = (operation.handler)();
        resource = resource.route(if operation.method == Method::GET {
            allow.push("HEAD");
            route.guard(guard::Any(guard::Get()).or(guard::Head()))
        } else {
            route.method(operation.method.clone())
        });
    }
    let allow = allow.join(", ");
    let refuse = move |request: HttpRequest| {
        let detail = format!("{} does not apply here; there is {allow}", request.method());
        std::future::ready(HttpResponse::from(Problem::new(MethodNotAllowed, detail).allow(&allow)))
    };
    let meters = std::rc::Rc::new(RouteMeters::new(path, |method| operations.iter().any(|o| o.method == *method)));
    app.service(resource.default_service(web::to(refuse)).wrap_fn(move |request, inner| {
        let (meters, method) = (meters.clone(), request.method().clone());
        let answer = inner.call(request);
        async move { meters.measure(method, answer).await }
    }));
}

async fn to_explorer() -> HttpResponse {
    HttpResponse::PermanentRedirect().insert_header(("location", "/swagger-ui/")).finish()
}

async fn nothing_here(request: HttpRequest) -> HttpResponse {
    nothing_at(request.path()).into()
}

/// The problem of a path that nothing is served at.
pub(super) fn nothing_at(path: &str) -> Problem {
    let path: String = path.chars().take(128).collect();
    Problem::new(NotFound, format!("nothing is served at {path}; see /swagger-ui/ for what there is"))
}
