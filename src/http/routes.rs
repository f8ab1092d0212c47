//! The table of operations: method, path, what the caller needs, handler and errors.
//!
//! The router and the OpenAPI document are both built from it, so that they agree. What an operation does, takes and
//! returns is described at its handler.

use actix_web::http::Method;
use actix_web::{Route, web};

use super::codes::Code::{self, *};
use super::needs::Needs::{self, Items, Key, Nothing, Scope};
use super::{
    attributes, backup, boards, clock, contents, distribution, editions, evaluate, events, increments, keys, live,
    moderation, operations, periods, problem_pages, query, ranking_keys, rankings, removals, rollover, rules, samples,
    set_subject, shards, sources, subjects, tiers, values, windows,
};
use crate::access::ItemType::{Event, Increment, Sample};
use crate::access::Scope::{Admin, Manage, Metrics, Read, View, Write};

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
/// Errors of what is about attributes.
const KEEPER: &[Code] = &[NoAttributesBoard];
/// Errors of setting the value of a subject.
const SET: &[Code] = &[SamplesUnsupported, ImportOpen, SubjectFrozen, Unsupported, Rejected, MemoryFull];
/// Errors of metrics and rules.
const FEATURE: &[Code] = &[InvalidRule, MissingField, NoBoard];
/// Further errors of a single query.
const QUERIED_BOARD: &[Code] = &[UnknownBoard, UnknownEdition];
const READ: &[Code] = &[Overloaded, StoreUnreachable, StoreTimeout];
/// Further errors of events of a source.
const SOURCE: &[Code] = &[UnknownSource, SourceBehind, SourceWaits, Unsupported];
/// Further errors of items that a token allows.
const TOKEN: &[Code] = &[TokenOutlivesIds];
const WRITE: &[Code] = &[Overloaded, StoreUnreachable, StoreTimeout, StoreReadOnly, ClockDoubted];
const BACKUP: &[Code] = &[Unsupported, StoreReadOnly, BackupFailed];

/// Defines the table of operations from its rows, and collects the descriptions that stand with the handlers.
macro_rules! table {
    ($(simulated_only = $simulated_only:literal {
        $($method:ident $path:literal, $needs:expr => $module:ident::$handler:ident, $problems:expr;)+
    })+) => {
        /// All operations. The router tries their paths in this order, after those that are requested often.
        pub(super) const OPERATIONS: &[Operation] = &[$($(Operation {
            method: Method::$method,
            path: $path,
            needs: $needs,
            handler: || web::to($module::$handler),
            problems: &$problems,
            simulated_only: $simulated_only,
        },)+)+];

        /// The descriptions of all operations.
        #[derive(utoipa::OpenApi)]
        #[openapi(paths($($($module::$handler),+),+))]
        pub(super) struct Descriptions;
    };
}

table! {
    simulated_only = false {
        POST "/v1/boards/{board}/increments", Items(Increment) => increments::add,
            [QUERY, BODY, BOARD, BY, PERIOD, &[Rejected, MemoryFull], SOURCE, TOKEN, FROZEN, WRITE];
        POST "/v1/events", Items(Event) => events::add,
            [QUERY, BODY, &[BoardChanged, Rejected, MemoryFull], SOURCE, TOKEN, FROZEN, WRITE];
        PUT "/v1/boards/{board}/samples", Items(Sample) => samples::put,
            [QUERY, BODY, BOARD, BY, PERIOD, &[SamplesUnsupported, Rejected, MemoryFull], FROZEN, WRITE];
        GET "/v1/boards/{board}/rankings", Scope(View) => rankings::page,
            [QUERY, BOARD, OF, PERIOD, BY, &[NotRanked, StaleCursor, TooManyStreams], READ];
        POST "/v1/boards/{board}/rankings/lookup", Scope(View) => rankings::lookup,
            [QUERY, BODY, BOARD, OF, PERIOD, BY, &[NotRanked], READ];
        GET "/v1/boards/{board}/periods", Scope(View) => periods::list, [QUERY, BOARD, PERIOD, BY, READ];
        GET "/v1/boards/{board}/tiers", Scope(View) => tiers::get, [QUERY, BOARD, READ];
        PUT "/v1/boards/{board}/tiers", Scope(Manage) => tiers::put,
            [QUERY, BODY, BOARD, &[NotRanked, Unsupported, MemoryFull], WRITE];
        GET "/v1/boards/{board}/distribution", Scope(View) => distribution::distribution,
            [QUERY, BOARD, OF, PERIOD, BY, &[NotRanked], READ];
        POST "/v1/boards/{board}/rankings/by", Scope(View) => ranking_keys::rankings,
            [QUERY, BODY, BOARD, OF, PERIOD, &[NotRanked, UnexpectedKey], READ];
        GET "/v1/boards/{board}/stream", Scope(View) => live::one,
            [QUERY, BOARD, OF, BY, &[NotRanked, TooManyStreams], READ];
        GET "/v1/stream", Scope(View) => live::several,
            [QUERY, &[UnknownBoard, UnknownEdition, BoardChanged, NotRanked, TooManyStreams], BY, READ];
        GET "/v1/boards/{board}/subjects/{subject}", Scope(View) => subjects::standing,
            [QUERY, BOARD, OF, PERIOD, BY, SUBJECT, READ];
        PUT "/v1/boards/{board}/subjects/{subject}", Scope(Manage) => set_subject::set,
            [QUERY, BODY, BOARD, BY, SUBJECT, SET, FROZEN, WRITE];
        DELETE "/v1/boards/{board}/subjects/{subject}", Scope(Manage) => removals::remove,
            [QUERY, BOARD, BY, SUBJECT, &[StaleCursor, ImportOpen], FROZEN, WRITE];
        GET "/v1/boards/{board}/subjects/{subject}/window", Scope(Read) => windows::window,
            [QUERY, BOARD, OF, BY, SUBJECT, &[BeyondWindow, AsOfUnsupported, EdgeUnsupported], READ];
        GET "/v1/boards/{board}/subjects/{subject}/values", Scope(Read) => values::values,
            [QUERY, BOARD, OF, BY, SUBJECT, &[NoValues, StaleCursor], READ];
        GET "/v1/boards/{board}/subjects/{subject}/neighbors", Scope(View) => subjects::neighbors,
            [QUERY, BOARD, OF, PERIOD, BY, SUBJECT, &[NotRanked], READ];
        PUT "/v1/boards/{board}/subjects/{subject}/hidden", Scope(Manage) => moderation::hide,
            [QUERY, BODY, BOARD, BY, SUBJECT, &[NotRanked, TooManyModerated, MemoryFull], FROZEN, WRITE];
        DELETE "/v1/boards/{board}/subjects/{subject}/hidden", Scope(Manage) => moderation::show,
            [QUERY, BOARD, BY, SUBJECT, FROZEN, WRITE];
        PUT "/v1/boards/{board}/subjects/{subject}/frozen", Scope(Manage) => moderation::freeze,
            [QUERY, BODY, BOARD, BY, SUBJECT, &[TooManyModerated, MemoryFull], FROZEN, WRITE];
        DELETE "/v1/boards/{board}/subjects/{subject}/frozen", Scope(Manage) => moderation::unfreeze,
            [QUERY, BOARD, BY, SUBJECT, FROZEN, WRITE];
        GET "/v1/boards/{board}/subjects/{subject}/attributes", Scope(View) => attributes::get,
            [QUERY, BOARD, BY, SUBJECT, KEEPER, READ];
        PUT "/v1/boards/{board}/subjects/{subject}/attributes", Scope(Write) => attributes::put,
            [QUERY, BODY, BOARD, BY, SUBJECT, KEEPER, &[MemoryFull], FROZEN, WRITE];
        PATCH "/v1/boards/{board}/subjects/{subject}/attributes", Scope(Write) => attributes::patch,
            [QUERY, BODY, BOARD, BY, SUBJECT, KEEPER, &[MemoryFull], FROZEN, WRITE];
        DELETE "/v1/boards/{board}/subjects/{subject}/attributes", Scope(Write) => attributes::delete,
            [QUERY, BOARD, BY, SUBJECT, KEEPER, FROZEN, WRITE];
        GET "/v1/boards/{board}/attributes", Scope(Read) => attributes::list, [QUERY, BOARD, BY, KEEPER, READ];
        POST "/v1/boards/{board}/attributes", Scope(Write) => attributes::change_several,
            [QUERY, BODY, BOARD, BY, KEEPER, &[MemoryFull], FROZEN, WRITE];
        GET "/v1/boards/{board}/hidden", Scope(Manage) => moderation::list_hidden, [QUERY, BOARD, BY, READ];
        POST "/v1/boards/{board}/hidden", Scope(Manage) => moderation::hide_several,
            [QUERY, BODY, BOARD, BY, &[NotRanked, TooManyModerated, MemoryFull], FROZEN, WRITE];
        GET "/v1/boards/{board}/frozen", Scope(Manage) => moderation::list_frozen, [QUERY, BOARD, BY, READ];
        POST "/v1/boards/{board}/frozen", Scope(Manage) => moderation::freeze_several,
            [QUERY, BODY, BOARD, BY, &[TooManyModerated, MemoryFull], FROZEN, WRITE];
        POST "/v1/boards/{board}/removals", Scope(Manage) => removals::remove_several,
            [QUERY, BODY, BOARD, BY, &[StaleCursor, ImportOpen], FROZEN, WRITE];
        GET "/v1/boards/{board}/keys", Scope(Read) => ranking_keys::list,
            [QUERY, BOARD, OF, PERIOD, &[NotRanked, UnexpectedKey], READ];
        DELETE "/v1/boards/{board}/keys/{key}", Scope(Manage) => ranking_keys::remove,
            [QUERY, BOARD, &[UnexpectedKey, StaleCursor, ImportOpen], FROZEN, WRITE];
        // With `record` it changes something, which its handler checks.
        POST "/v1/evaluate", Scope(Read) => evaluate::evaluate,
            [QUERY, BODY, FEATURE, QUERIED_BOARD, &[UnknownRule, BoardChanged], FROZEN, WRITE];
        GET "/v1/rules", Scope(Read) => rules::list, [QUERY, READ];
        POST "/v1/query", Scope(Read) => query::query, [QUERY, BODY, FEATURE, QUERIED_BOARD, BY, READ];
        GET "/v1/boards/{board}", Scope(Read) => boards::get, [QUERY, BOARD, OF, READ];
        PUT "/v1/boards/{board}", Scope(Manage) => boards::put,
            [QUERY, BODY, &[InvalidBoardName, BoardConflict, TooManyBoards, MemoryFull], KEEPER, WRITE];
        DELETE "/v1/boards/{board}", Scope(Manage) => boards::delete, [QUERY, BOARD, WRITE];
        POST "/v1/boards/{board}/rollover", Scope(Manage) => rollover::one, [QUERY, BOARD, WRITE];
        POST "/v1/boards/{board}/audit", Scope(Manage) => boards::audit, [QUERY, BOARD, OF, WRITE];
        GET "/v1/boards/{board}/contents", Scope(Read) => contents::get,
            [QUERY, BOARD, &[StaleCursor, TooManyStreams], READ];
        POST "/v1/boards/{board}/contents", Scope(Manage) => contents::import,
            [QUERY, BODY, BOARD, &[ImportRefused, InvalidContents, MemoryFull], FROZEN, WRITE];
        DELETE "/v1/boards/{board}/import", Scope(Manage) => contents::end, [QUERY, BOARD, WRITE];
        PUT "/v1/boards/{board}/next", Scope(Manage) => editions::begin,
            [QUERY, BODY, BOARD, EDITION, &[ImportOpen, MemoryFull], KEEPER, FROZEN, WRITE];
        GET "/v1/boards/{board}/next", Scope(Read) => editions::get_next, [QUERY, BOARD, EDITION, READ];
        DELETE "/v1/boards/{board}/next", Scope(Manage) => editions::delete_next,
            [QUERY, BOARD, EDITION, &[ImportOpen], FROZEN, WRITE];
        POST "/v1/boards/{board}/next/promote", Scope(Manage) => editions::promote_next,
            [QUERY, BOARD, PROMOTION, &[ImportOpen], FROZEN, WRITE];
        POST "/v1/boards/{board}/next/compare", Scope(Read) => editions::compare, [QUERY, BOARD, EDITION, READ];
        GET "/v1/boards/{board}/previous", Scope(Read) => editions::get_previous, [QUERY, BOARD, EDITION, READ];
        DELETE "/v1/boards/{board}/previous", Scope(Manage) => editions::delete_previous,
            [QUERY, BOARD, EDITION, &[ImportOpen], FROZEN, WRITE];
        POST "/v1/boards/{board}/previous/promote", Scope(Manage) => editions::promote_previous,
            [QUERY, BOARD, EDITION, &[ImportOpen], FROZEN, WRITE];
        POST "/v1/boards/{board}/close", Scope(Manage) => periods::close,
            [QUERY, BOARD, PERIOD, &[PeriodConflict], WRITE];
        GET "/v1/boards/{board}/shards", Scope(Read) => shards::get, [QUERY, BOARD, READ];
        PUT "/v1/boards/{board}/shards", Scope(Manage) => shards::put,
            [QUERY, BODY, BOARD, &[EditionsConflict, ImportOpen, Unsupported], WRITE];
        DELETE "/v1/boards/{board}/shards", Scope(Manage) => shards::delete, [QUERY, BOARD, WRITE];
        GET "/v1/boards", Scope(Read) => boards::list, [QUERY, READ];
        POST "/v1/rollover", Scope(Manage) => rollover::all, [QUERY, &[BoardChanged], WRITE];
        POST "/v1/backup", Scope(Admin) => backup::make, [QUERY, BACKUP];
        GET "/v1/sources", Scope(Read) => sources::list, [QUERY, READ];
        GET "/v1/sources/{source}", Scope(Read) => sources::get, [QUERY, &[UnknownSource, BoardChanged], READ];
        PUT "/v1/sources/{source}", Scope(Manage) => sources::put,
            [QUERY, BODY, &[BoardChanged, Unsupported, MemoryFull], WRITE];
        DELETE "/v1/sources/{source}", Scope(Manage) => sources::delete, [QUERY, &[UnknownSource], WRITE];
        GET "/v1/keys", Scope(Admin) => keys::list, [QUERY, READ];
        POST "/v1/keys", Scope(Admin) => keys::create, [QUERY, BODY, &[KeyConflict, MemoryFull], WRITE];
        GET "/v1/keys/self", Key => keys::own, [QUERY];
        GET "/v1/keys/{key}", Scope(Admin) => keys::get, [QUERY, &[UnknownKey], READ];
        DELETE "/v1/keys/{key}", Scope(Admin) => keys::revoke, [QUERY, KEY, WRITE];
        POST "/v1/keys/{key}/rotate", Scope(Admin) => keys::rotate, [QUERY, BODY, KEY, WRITE];
        GET "/healthz", Nothing => operations::health, [];
        GET "/readyz", Nothing => operations::readiness, [&[NotReady]];
        GET "/metrics", Scope(Metrics) => operations::metrics, [&[NotFound]];
        GET "/openapi.json", Nothing => operations::openapi, [];
        GET "/problems/{code}", Nothing => problem_pages::page, [&[NotFound]];
    }
    simulated_only = true {
        GET "/v1/clock", Scope(Read) => clock::get, [QUERY, READ];
        PUT "/v1/clock", Scope(Admin) => clock::put, [QUERY, BODY, &[ClockBackward], WRITE];
    }
}

/// Returns the method and path of all operations that exist with or without a simulated clock.
pub fn registered(simulated_clock: bool) -> Vec<(Method, &'static str)> {
    operations(simulated_clock).map(|operation| (operation.method.clone(), operation.path)).collect()
}

/// Returns the operations that exist with or without a simulated clock.
pub(super) fn operations(simulated_clock: bool) -> impl Iterator<Item = &'static Operation> {
    OPERATIONS.iter().filter(move |operation| simulated_clock || !operation.simulated_only)
}
