//! The table of operations: method, path, handler and errors.
//!
//! The router and the OpenAPI document are both built from it, so that they agree.

use actix_web::http::Method;
use actix_web::{Route, web};

use super::access::Effect;
use super::codes::Code::{self, *};
use super::{
    backup, boards, clock, evaluate, events, increments, live, operations, problem_pages, query, rankings, rollover,
    rules, samples, set_subject, subjects, values, windows,
};

/// An operation of the API.
pub(super) struct Operation {
    pub(super) method: Method,
    pub(super) path: &'static str,
    /// What pages of other origins need to be allowed for it.
    pub(super) effect: Effect,
    /// Creates the route of the handler.
    pub(super) handler: fn() -> Route,
    /// Codes that the operation can return, in groups. Those that every operation can return are added.
    pub(super) problems: &'static [&'static [Code]],
    /// Whether the operation exists only with a simulated clock.
    pub(super) simulated_only: bool,
}

const QUERY: &[Code] = &[InvalidField, UnknownField];
const BODY: &[Code] = &[
    MalformedJson,
    IncompleteBody,
    BodyTimeout,
    TooLarge,
    UnsupportedMediaType,
    InvalidField,
    UnknownField,
    Overloaded,
];
const BOARD: &[Code] = &[UnknownBoard, BoardChanged];
const SUBJECT: &[Code] = &[InvalidSubject];
/// Errors of metrics and rules.
const FEATURE: &[Code] = &[InvalidRule, MissingField, NoBoard];
/// Further errors of a single query.
const QUERIED_BOARD: &[Code] = &[UnknownBoard];
const READ: &[Code] = &[Overloaded, StoreUnreachable, StoreTimeout];
const WRITE: &[Code] = &[Overloaded, StoreUnreachable, StoreTimeout, StoreReadOnly, ClockDoubted];
const BACKUP: &[Code] = &[Unsupported, StoreReadOnly, BackupFailed];

/// Returns an operation that changes nothing.
const fn read(
    method: Method,
    path: &'static str,
    handler: fn() -> Route,
    problems: &'static [&'static [Code]],
) -> Operation {
    Operation { method, path, effect: Effect::Reads, handler, problems, simulated_only: false }
}

/// Returns an operation that changes something.
const fn change(
    method: Method,
    path: &'static str,
    handler: fn() -> Route,
    problems: &'static [&'static [Code]],
) -> Operation {
    Operation { method, path, effect: Effect::Changes, handler, problems, simulated_only: false }
}

/// All operations, in the order in which paths are matched: the most frequent ones come first.
pub(super) const OPERATIONS: &[Operation] = &[
    change(
        Method::POST,
        "/v1/boards/{board}/increments",
        || web::to(increments::add),
        &[QUERY, BODY, BOARD, &[Rejected], WRITE],
    ),
    change(Method::POST, "/v1/events", || web::to(events::add), &[QUERY, BODY, &[BoardChanged, Rejected], WRITE]),
    change(
        Method::PUT,
        "/v1/boards/{board}/samples",
        || web::to(samples::put),
        &[QUERY, BODY, BOARD, &[SamplesUnsupported, Rejected], WRITE],
    ),
    read(
        Method::GET,
        "/v1/boards/{board}/rankings",
        || web::to(rankings::page),
        &[QUERY, BOARD, &[NotRanked, StaleCursor], READ],
    ),
    read(
        Method::POST,
        "/v1/boards/{board}/rankings/lookup",
        || web::to(rankings::lookup),
        &[QUERY, BODY, BOARD, &[NotRanked], READ],
    ),
    read(Method::GET, "/v1/boards/{board}/stream", || web::to(live::one), &[QUERY, BOARD, &[NotRanked], READ]),
    read(
        Method::GET,
        "/v1/stream",
        || web::to(live::several),
        &[QUERY, &[UnknownBoard, BoardChanged, NotRanked], READ],
    ),
    read(
        Method::GET,
        "/v1/boards/{board}/subjects/{subject}",
        || web::to(subjects::standing),
        &[QUERY, BOARD, SUBJECT, READ],
    ),
    change(
        Method::PUT,
        "/v1/boards/{board}/subjects/{subject}",
        || web::to(set_subject::set),
        &[QUERY, BODY, BOARD, SUBJECT, &[SamplesUnsupported], WRITE],
    ),
    change(
        Method::DELETE,
        "/v1/boards/{board}/subjects/{subject}",
        || web::to(subjects::remove),
        &[QUERY, BOARD, SUBJECT, WRITE],
    ),
    read(
        Method::GET,
        "/v1/boards/{board}/subjects/{subject}/window",
        || web::to(windows::window),
        &[QUERY, BOARD, SUBJECT, &[BeyondWindow, AsOfUnsupported, EdgeUnsupported], READ],
    ),
    read(
        Method::GET,
        "/v1/boards/{board}/subjects/{subject}/values",
        || web::to(values::values),
        &[QUERY, BOARD, SUBJECT, &[NoValues, StaleCursor], READ],
    ),
    read(
        Method::GET,
        "/v1/boards/{board}/subjects/{subject}/neighbors",
        || web::to(subjects::neighbors),
        &[QUERY, BOARD, SUBJECT, &[NotRanked], READ],
    ),
    // With `record` it changes something, which its handler checks.
    read(
        Method::POST,
        "/v1/evaluate",
        || web::to(evaluate::evaluate),
        &[QUERY, BODY, FEATURE, QUERIED_BOARD, &[UnknownRule, BoardChanged], WRITE],
    ),
    read(Method::GET, "/v1/rules", || web::to(rules::list), &[QUERY, READ]),
    read(Method::POST, "/v1/query", || web::to(query::query), &[QUERY, BODY, FEATURE, QUERIED_BOARD, READ]),
    read(Method::GET, "/v1/boards/{board}", || web::to(boards::get), &[QUERY, BOARD, READ]),
    change(
        Method::PUT,
        "/v1/boards/{board}",
        || web::to(boards::put),
        &[QUERY, BODY, &[InvalidBoardName, BoardConflict], WRITE],
    ),
    change(Method::DELETE, "/v1/boards/{board}", || web::to(boards::delete), &[QUERY, BOARD, WRITE]),
    change(Method::POST, "/v1/boards/{board}/rollover", || web::to(rollover::one), &[QUERY, BOARD, WRITE]),
    change(Method::POST, "/v1/boards/{board}/audit", || web::to(boards::audit), &[QUERY, BOARD, WRITE]),
    read(Method::GET, "/v1/boards", || web::to(boards::list), &[QUERY, READ]),
    change(Method::POST, "/v1/rollover", || web::to(rollover::all), &[QUERY, &[BoardChanged], WRITE]),
    change(Method::POST, "/v1/backup", || web::to(backup::make), &[QUERY, BACKUP]),
    Operation {
        method: Method::GET,
        path: "/v1/clock",
        effect: Effect::Reads,
        handler: || web::to(clock::get),
        problems: &[QUERY, READ],
        simulated_only: true,
    },
    Operation {
        method: Method::PUT,
        path: "/v1/clock",
        effect: Effect::Changes,
        handler: || web::to(clock::put),
        problems: &[QUERY, BODY, &[ClockBackward], WRITE],
        simulated_only: true,
    },
    read(Method::GET, "/healthz", || web::to(operations::health), &[]),
    read(Method::GET, "/readyz", || web::to(operations::readiness), &[&[NotReady]]),
    read(Method::GET, "/metrics", || web::to(operations::metrics), &[&[NotFound]]),
    read(Method::GET, "/openapi.json", || web::to(operations::openapi), &[]),
    read(Method::GET, "/problems/{code}", || web::to(problem_pages::page), &[&[NotFound]]),
];

/// Returns the method and path of all operations that exist with or without a simulated clock.
pub fn registered(simulated_clock: bool) -> Vec<(Method, &'static str)> {
    operations(simulated_clock).map(|operation| (operation.method.clone(), operation.path)).collect()
}

/// Returns the operations that exist with or without a simulated clock.
pub(super) fn operations(simulated_clock: bool) -> impl Iterator<Item = &'static Operation> {
    OPERATIONS.iter().filter(move |operation| simulated_clock || !operation.simulated_only)
}
