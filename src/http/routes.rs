//! The table of operations: method, path, handler and errors.
//!
//! The router and the OpenAPI document are both built from it, so that they agree.

use actix_web::http::Method;
use actix_web::{Route, web};

use super::codes::Code::{self, *};
use super::needs::Needs;
use super::{
    backup, boards, clock, contents, distribution, editions, evaluate, events, increments, keys, live, moderation,
    operations, periods, problem_pages, query, ranking_keys, rankings, removals, rollover, rules, samples, set_subject,
    shards, subjects, tiers, values, windows,
};
use crate::access::ItemType;
use crate::access::Scope::{self, Admin, Manage, Metrics, Read, View};

/// An operation of the API.
pub(super) struct Operation {
    pub(super) method: Method,
    pub(super) path: &'static str,
    /// What the caller needs.
    pub(super) needs: Needs,
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
/// Errors of the editions of a board.
const EDITION: &[Code] = &[UnknownEdition, EditionsConflict];
const PROMOTION: &[Code] = &[UnknownEdition, EditionsConflict, SuccessorNotFull];
/// Errors of writes to a board, beside those of its store.
const FROZEN: &[Code] = &[BoardFrozen];
/// Errors of reads that may choose an edition.
const OF: &[Code] = &[UnknownEdition];
/// Errors of what may name a period.
const PERIOD: &[Code] = &[UnknownPeriod];
const KEY: &[Code] = &[UnknownKey, KeyConflict];
/// Errors of what is about the ranking of one key.
const BY: &[Code] = &[MissingKey, UnexpectedKey];
const SUBJECT: &[Code] = &[InvalidSubject];
/// Errors of metrics and rules.
const FEATURE: &[Code] = &[InvalidRule, MissingField, NoBoard];
/// Further errors of a single query.
const QUERIED_BOARD: &[Code] = &[UnknownBoard, UnknownEdition];
const READ: &[Code] = &[Overloaded, StoreUnreachable, StoreTimeout];
/// Further errors of items that a token allows.
const TOKEN: &[Code] = &[TokenOutlivesIds];
const WRITE: &[Code] = &[Overloaded, StoreUnreachable, StoreTimeout, StoreReadOnly, ClockDoubted];
const BACKUP: &[Code] = &[Unsupported, StoreReadOnly, BackupFailed];

/// Returns an operation that needs this scope.
const fn operation(
    method: Method,
    path: &'static str,
    scope: Scope,
    handler: fn() -> Route,
    problems: &'static [&'static [Code]],
) -> Operation {
    Operation { method, path, needs: Needs::Scope(scope), handler, problems, simulated_only: false }
}

/// Returns an operation that takes items of this kind.
const fn items(
    method: Method,
    path: &'static str,
    item: ItemType,
    handler: fn() -> Route,
    problems: &'static [&'static [Code]],
) -> Operation {
    Operation { method, path, needs: Needs::Items(item), handler, problems, simulated_only: false }
}

/// Returns an operation for everybody.
const fn open(path: &'static str, handler: fn() -> Route, problems: &'static [&'static [Code]]) -> Operation {
    Operation { method: Method::GET, path, needs: Needs::Nothing, handler, problems, simulated_only: false }
}

/// All operations, in the order in which paths are matched: the most frequent ones come first.
pub(super) const OPERATIONS: &[Operation] = &[
    items(
        Method::POST,
        "/v1/boards/{board}/increments",
        ItemType::Increment,
        || web::to(increments::add),
        &[QUERY, BODY, BOARD, BY, PERIOD, &[Rejected, MemoryFull], TOKEN, FROZEN, WRITE],
    ),
    items(
        Method::POST,
        "/v1/events",
        ItemType::Event,
        || web::to(events::add),
        &[QUERY, BODY, &[BoardChanged, Rejected, MemoryFull], TOKEN, FROZEN, WRITE],
    ),
    items(
        Method::PUT,
        "/v1/boards/{board}/samples",
        ItemType::Sample,
        || web::to(samples::put),
        &[QUERY, BODY, BOARD, BY, PERIOD, &[SamplesUnsupported, Rejected, MemoryFull], FROZEN, WRITE],
    ),
    operation(
        Method::GET,
        "/v1/boards/{board}/rankings",
        View,
        || web::to(rankings::page),
        &[QUERY, BOARD, OF, PERIOD, BY, &[NotRanked, StaleCursor, TooManyStreams], READ],
    ),
    operation(
        Method::POST,
        "/v1/boards/{board}/rankings/lookup",
        View,
        || web::to(rankings::lookup),
        &[QUERY, BODY, BOARD, OF, PERIOD, BY, &[NotRanked], READ],
    ),
    operation(
        Method::GET,
        "/v1/boards/{board}/periods",
        View,
        || web::to(periods::list),
        &[QUERY, BOARD, PERIOD, BY, READ],
    ),
    operation(Method::GET, "/v1/boards/{board}/tiers", View, || web::to(tiers::get), &[QUERY, BOARD, READ]),
    operation(
        Method::PUT,
        "/v1/boards/{board}/tiers",
        Manage,
        || web::to(tiers::put),
        &[QUERY, BODY, BOARD, &[NotRanked, Unsupported, MemoryFull], WRITE],
    ),
    operation(
        Method::GET,
        "/v1/boards/{board}/distribution",
        View,
        || web::to(distribution::distribution),
        &[QUERY, BOARD, OF, PERIOD, BY, &[NotRanked], READ],
    ),
    operation(
        Method::POST,
        "/v1/boards/{board}/rankings/by",
        View,
        || web::to(ranking_keys::rankings),
        &[QUERY, BODY, BOARD, OF, PERIOD, &[NotRanked, UnexpectedKey], READ],
    ),
    operation(
        Method::GET,
        "/v1/boards/{board}/stream",
        View,
        || web::to(live::one),
        &[QUERY, BOARD, OF, BY, &[NotRanked, TooManyStreams], READ],
    ),
    operation(
        Method::GET,
        "/v1/stream",
        View,
        || web::to(live::several),
        &[QUERY, &[UnknownBoard, UnknownEdition, BoardChanged, NotRanked, TooManyStreams], BY, READ],
    ),
    operation(
        Method::GET,
        "/v1/boards/{board}/subjects/{subject}",
        View,
        || web::to(subjects::standing),
        &[QUERY, BOARD, OF, PERIOD, BY, SUBJECT, READ],
    ),
    operation(
        Method::PUT,
        "/v1/boards/{board}/subjects/{subject}",
        Manage,
        || web::to(set_subject::set),
        &[
            QUERY,
            BODY,
            BOARD,
            BY,
            SUBJECT,
            &[SamplesUnsupported, ImportOpen, SubjectFrozen, Unsupported, Rejected, MemoryFull],
            FROZEN,
            WRITE,
        ],
    ),
    operation(
        Method::DELETE,
        "/v1/boards/{board}/subjects/{subject}",
        Manage,
        || web::to(removals::remove),
        &[QUERY, BOARD, BY, SUBJECT, &[StaleCursor, ImportOpen], FROZEN, WRITE],
    ),
    operation(
        Method::GET,
        "/v1/boards/{board}/subjects/{subject}/window",
        Read,
        || web::to(windows::window),
        &[QUERY, BOARD, OF, BY, SUBJECT, &[BeyondWindow, AsOfUnsupported, EdgeUnsupported], READ],
    ),
    operation(
        Method::GET,
        "/v1/boards/{board}/subjects/{subject}/values",
        Read,
        || web::to(values::values),
        &[QUERY, BOARD, OF, BY, SUBJECT, &[NoValues, StaleCursor], READ],
    ),
    operation(
        Method::GET,
        "/v1/boards/{board}/subjects/{subject}/neighbors",
        View,
        || web::to(subjects::neighbors),
        &[QUERY, BOARD, OF, PERIOD, BY, SUBJECT, &[NotRanked], READ],
    ),
    operation(
        Method::PUT,
        "/v1/boards/{board}/subjects/{subject}/hidden",
        Manage,
        || web::to(moderation::hide),
        &[QUERY, BODY, BOARD, BY, SUBJECT, &[NotRanked, TooManyModerated, MemoryFull], FROZEN, WRITE],
    ),
    operation(
        Method::DELETE,
        "/v1/boards/{board}/subjects/{subject}/hidden",
        Manage,
        || web::to(moderation::show),
        &[QUERY, BOARD, BY, SUBJECT, FROZEN, WRITE],
    ),
    operation(
        Method::PUT,
        "/v1/boards/{board}/subjects/{subject}/frozen",
        Manage,
        || web::to(moderation::freeze),
        &[QUERY, BODY, BOARD, BY, SUBJECT, &[TooManyModerated, MemoryFull], FROZEN, WRITE],
    ),
    operation(
        Method::DELETE,
        "/v1/boards/{board}/subjects/{subject}/frozen",
        Manage,
        || web::to(moderation::unfreeze),
        &[QUERY, BOARD, BY, SUBJECT, FROZEN, WRITE],
    ),
    operation(
        Method::GET,
        "/v1/boards/{board}/hidden",
        Manage,
        || web::to(moderation::list_hidden),
        &[QUERY, BOARD, BY, READ],
    ),
    operation(
        Method::POST,
        "/v1/boards/{board}/hidden",
        Manage,
        || web::to(moderation::hide_several),
        &[QUERY, BODY, BOARD, BY, &[NotRanked, TooManyModerated, MemoryFull], FROZEN, WRITE],
    ),
    operation(
        Method::GET,
        "/v1/boards/{board}/frozen",
        Manage,
        || web::to(moderation::list_frozen),
        &[QUERY, BOARD, BY, READ],
    ),
    operation(
        Method::POST,
        "/v1/boards/{board}/frozen",
        Manage,
        || web::to(moderation::freeze_several),
        &[QUERY, BODY, BOARD, BY, &[TooManyModerated, MemoryFull], FROZEN, WRITE],
    ),
    operation(
        Method::POST,
        "/v1/boards/{board}/removals",
        Manage,
        || web::to(removals::remove_several),
        &[QUERY, BODY, BOARD, BY, &[StaleCursor, ImportOpen], FROZEN, WRITE],
    ),
    operation(
        Method::GET,
        "/v1/boards/{board}/keys",
        Read,
        || web::to(ranking_keys::list),
        &[QUERY, BOARD, OF, PERIOD, &[NotRanked, UnexpectedKey], READ],
    ),
    operation(
        Method::DELETE,
        "/v1/boards/{board}/keys/{key}",
        Manage,
        || web::to(ranking_keys::remove),
        &[QUERY, BOARD, &[UnexpectedKey, StaleCursor, ImportOpen], FROZEN, WRITE],
    ),
    // With `record` it changes something, which its handler checks.
    operation(
        Method::POST,
        "/v1/evaluate",
        Read,
        || web::to(evaluate::evaluate),
        &[QUERY, BODY, FEATURE, QUERIED_BOARD, &[UnknownRule, BoardChanged], FROZEN, WRITE],
    ),
    operation(Method::GET, "/v1/rules", Read, || web::to(rules::list), &[QUERY, READ]),
    operation(
        Method::POST,
        "/v1/query",
        Read,
        || web::to(query::query),
        &[QUERY, BODY, FEATURE, QUERIED_BOARD, BY, READ],
    ),
    operation(Method::GET, "/v1/boards/{board}", Read, || web::to(boards::get), &[QUERY, BOARD, OF, READ]),
    operation(
        Method::PUT,
        "/v1/boards/{board}",
        Manage,
        || web::to(boards::put),
        &[QUERY, BODY, &[InvalidBoardName, BoardConflict, TooManyBoards, MemoryFull], WRITE],
    ),
    operation(Method::DELETE, "/v1/boards/{board}", Manage, || web::to(boards::delete), &[QUERY, BOARD, WRITE]),
    operation(Method::POST, "/v1/boards/{board}/rollover", Manage, || web::to(rollover::one), &[QUERY, BOARD, WRITE]),
    operation(Method::POST, "/v1/boards/{board}/audit", Manage, || web::to(boards::audit), &[QUERY, BOARD, OF, WRITE]),
    operation(
        Method::GET,
        "/v1/boards/{board}/contents",
        Read,
        || web::to(contents::get),
        &[QUERY, BOARD, &[StaleCursor, TooManyStreams], READ],
    ),
    operation(
        Method::POST,
        "/v1/boards/{board}/contents",
        Manage,
        || web::to(contents::import),
        &[QUERY, BODY, BOARD, &[ImportRefused, InvalidContents, MemoryFull], FROZEN, WRITE],
    ),
    operation(Method::DELETE, "/v1/boards/{board}/import", Manage, || web::to(contents::end), &[QUERY, BOARD, WRITE]),
    operation(
        Method::PUT,
        "/v1/boards/{board}/next",
        Manage,
        || web::to(editions::begin),
        &[QUERY, BODY, BOARD, EDITION, &[ImportOpen, MemoryFull], FROZEN, WRITE],
    ),
    operation(
        Method::GET,
        "/v1/boards/{board}/next",
        Read,
        || web::to(editions::get_next),
        &[QUERY, BOARD, EDITION, READ],
    ),
    operation(
        Method::DELETE,
        "/v1/boards/{board}/next",
        Manage,
        || web::to(editions::delete_next),
        &[QUERY, BOARD, EDITION, &[ImportOpen], FROZEN, WRITE],
    ),
    operation(
        Method::POST,
        "/v1/boards/{board}/next/promote",
        Manage,
        || web::to(editions::promote_next),
        &[QUERY, BOARD, PROMOTION, &[ImportOpen], FROZEN, WRITE],
    ),
    operation(
        Method::POST,
        "/v1/boards/{board}/next/compare",
        Read,
        || web::to(editions::compare),
        &[QUERY, BOARD, EDITION, READ],
    ),
    operation(
        Method::GET,
        "/v1/boards/{board}/previous",
        Read,
        || web::to(editions::get_previous),
        &[QUERY, BOARD, EDITION, READ],
    ),
    operation(
        Method::DELETE,
        "/v1/boards/{board}/previous",
        Manage,
        || web::to(editions::delete_previous),
        &[QUERY, BOARD, EDITION, &[ImportOpen], FROZEN, WRITE],
    ),
    operation(
        Method::POST,
        "/v1/boards/{board}/previous/promote",
        Manage,
        || web::to(editions::promote_previous),
        &[QUERY, BOARD, EDITION, &[ImportOpen], FROZEN, WRITE],
    ),
    operation(
        Method::POST,
        "/v1/boards/{board}/close",
        Manage,
        || web::to(periods::close),
        &[QUERY, BOARD, PERIOD, &[PeriodConflict], WRITE],
    ),
    operation(Method::GET, "/v1/boards/{board}/shards", Read, || web::to(shards::get), &[QUERY, BOARD, READ]),
    operation(
        Method::PUT,
        "/v1/boards/{board}/shards",
        Manage,
        || web::to(shards::put),
        &[QUERY, BODY, BOARD, &[EditionsConflict, ImportOpen, Unsupported], WRITE],
    ),
    operation(Method::DELETE, "/v1/boards/{board}/shards", Manage, || web::to(shards::delete), &[QUERY, BOARD, WRITE]),
    operation(Method::GET, "/v1/boards", Read, || web::to(boards::list), &[QUERY, READ]),
    operation(Method::POST, "/v1/rollover", Manage, || web::to(rollover::all), &[QUERY, &[BoardChanged], WRITE]),
    operation(Method::POST, "/v1/backup", Admin, || web::to(backup::make), &[QUERY, BACKUP]),
    Operation {
        method: Method::GET,
        path: "/v1/clock",
        needs: Needs::Scope(Read),
        handler: || web::to(clock::get),
        problems: &[QUERY, READ],
        simulated_only: true,
    },
    Operation {
        method: Method::PUT,
        path: "/v1/clock",
        needs: Needs::Scope(Admin),
        handler: || web::to(clock::put),
        problems: &[QUERY, BODY, &[ClockBackward], WRITE],
        simulated_only: true,
    },
    operation(Method::GET, "/v1/keys", Admin, || web::to(keys::list), &[QUERY, READ]),
    operation(
        Method::POST,
        "/v1/keys",
        Admin,
        || web::to(keys::create),
        &[QUERY, BODY, &[KeyConflict, MemoryFull], WRITE],
    ),
    Operation {
        method: Method::GET,
        path: "/v1/keys/self",
        needs: Needs::Key,
        handler: || web::to(keys::own),
        problems: &[QUERY],
        simulated_only: false,
    },
    operation(Method::GET, "/v1/keys/{key}", Admin, || web::to(keys::get), &[QUERY, &[UnknownKey], READ]),
    operation(Method::DELETE, "/v1/keys/{key}", Admin, || web::to(keys::revoke), &[QUERY, KEY, WRITE]),
    operation(Method::POST, "/v1/keys/{key}/rotate", Admin, || web::to(keys::rotate), &[QUERY, BODY, KEY, WRITE]),
    open("/healthz", || web::to(operations::health), &[]),
    open("/readyz", || web::to(operations::readiness), &[&[NotReady]]),
    operation(Method::GET, "/metrics", Metrics, || web::to(operations::metrics), &[&[NotFound]]),
    open("/openapi.json", || web::to(operations::openapi), &[]),
    open("/problems/{code}", || web::to(problem_pages::page), &[&[NotFound]]),
];

/// Returns the method and path of all operations that exist with or without a simulated clock.
pub fn registered(simulated_clock: bool) -> Vec<(Method, &'static str)> {
    operations(simulated_clock).map(|operation| (operation.method.clone(), operation.path)).collect()
}

/// Returns the operations that exist with or without a simulated clock.
pub(super) fn operations(simulated_clock: bool) -> impl Iterator<Item = &'static Operation> {
    OPERATIONS.iter().filter(move |operation| simulated_clock || !operation.simulated_only)
}
