//! Examples of problems, one for each code. Where possible they are made from the errors that cause them.

use std::time::Duration;

use serde_json::json;

use crate::board::{Position, SourceName, Timestamp};
use crate::http::boards;
use crate::http::codes::Code;
use crate::http::problem::Problem;
use crate::service::{ServiceError, StoreError};

/// 2026-01-02T00:00:00Z.
const MIDNIGHT: Timestamp = Timestamp::from_millis(1_767_312_000_000);
/// 2036-01-02T00:00:00Z.
const TEN_YEARS_LATER: Timestamp = Timestamp::from_millis(2_082_844_800_000);

fn source() -> SourceName {
    SourceName::parse("likes-0").expect("a name")
}

/// Returns an example of a problem with this code.
pub(super) fn example(code: Code) -> Problem {
    let second = Duration::from_secs(1);
    let problem = |detail: &str| Problem::new(code, detail);
    match code {
        Code::MalformedJson => problem("the body is not valid JSON: expected `,` or `}` at line 1 column 22")
            .with("line", 1)
            .with("column", 22),
        Code::IncompleteBody => problem("the body is incomplete: payload reached EOF before completing"),
        Code::BodyTimeout => problem("the body did not arrive within 30 s"),
        Code::ConnectionEnded => problem(
            "the request was not executed, because the one before it on the connection has 'Connection: close'",
        ),
        Code::UriTooLong => problem("path and query have 9216 bytes; at most 8192 are allowed").with("limit", 8_192),
        Code::InvalidSubject => problem("the decoded subject is not valid UTF-8 from byte 0").with("position", 0),
        Code::ForeignOrigin => problem(
            "pages of origin 'https://app.example.com' may not change anything; add it to the setting 'cors_write_origins', or use a key with this \
             origin",
        ),
        Code::UnknownHost => problem(
            "the service listens on the loopback interface and does not answer for host 'rolltop.example.com:8080'; \
             add it to the setting 'hosts'",
        ),
        Code::KeyRequired => problem("the operation needs the scope 'write'; send 'Authorization: Bearer' with a key that allows it")
            .with("scope", "write"),
        Code::InvalidKey => problem("the key is not known; it may have been revoked"),
        Code::KeyExpired => problem("the key has expired"),
        Code::InvalidToken => {
            let detail = "the claim 'exp' of the token is too far away (setting token_max_life)";
            problem(detail).with("claim", "exp")
        }
        Code::TokenExpired => problem("the token has expired"),
        Code::TokenOutlivesIds => problem(
            "the token is for an item that counts once, and board 'hot-posts' remembers ids for 1h, but has to until a \
             minute after the token's 'exp'; sign tokens that expire earlier, or define the board with a longer 'dedupe'",
        )
        .with("board", "hot-posts"),
        Code::NoAttributesBoard => {
            problem("board 'kills' names board 'players' for its attributes, which does not exist").with("board", "players")
        }
        Code::Forbidden => problem("board 'hot-posts' is not one of the boards that the caller may use")
            .with("board", "hot-posts"),
        Code::Forwarded => problem(
            "the request has the header 'x-forwarded-for', so a proxy has forwarded it; without keys the service is for \
             this machine only: make a key, or name the proxy in 'trusted_proxies', or set 'anonymous'",
        ),
        Code::UnknownKey => problem("unknown key 5f1c2a9d04b7e386").with("key", "5f1c2a9d04b7e386"),
        Code::RateLimited => problem("the key may send requests at the rate 50/s, and has sent more").retry_after(second),
        Code::TooManyStreams => {
            problem("the address of the client has 1000 streams and exports open, and may have no more")
                .with("limit", 1_000)
                .retry_after(second)
        }
        Code::KeyConflict => {
            problem("the key 5f1c2a9d04b7e386 is in the configuration; change or remove it there")
                .with("key", "5f1c2a9d04b7e386")
        }
        Code::NotFound => Problem::not_found("/v2"),
        Code::UnknownBoard => {
            problem("unknown board 'hot-post'; define it with PUT /v1/boards/hot-post").with("board", "hot-post")
        }
        Code::UnknownSource => ServiceError::UnknownSource(source()).into(),
        Code::SourceBehind => {
            ServiceError::SourceBehind { source_name: source(), fill: None, reached: Position(42) }.into()
        }
        Code::SourceWaits => ServiceError::SourceWaits { source_name: source(), reached: Position(42) }.into(),
        Code::MethodNotAllowed => problem("method PATCH is not allowed; allowed: GET, HEAD, PUT, DELETE"),
        Code::BoardConflict => problem(
            "board 'hot-posts' exists with a different definition (different: slot), which cannot be changed: remove the \
             board first, or choose another name",
        )
        .with("board", "hot-posts")
        .with("keys", vec!["slot"])
        .with("existing", boards::example()),
        Code::Unsupported => problem("no directory for backups is configured; set backup_dir (--backup-dir)"),
        Code::BoardChanged => StoreError::BoardChanged.into(),
        Code::UnknownEdition => {
            problem("board 'hot-posts' has no next edition; PUT /v1/boards/hot-posts/next gives it one")
                .with("board", "hot-posts")
                .with("of", "next")
        }
        Code::UnknownPeriod => problem("board 'best-sellers' has no period '2024-01'; it has 13 from 2025-11 to 2026-11")
            .with("board", "best-sellers")
            .with("period", "2024-01")
            .with("periods", vec!["2026-11", "2026-10"]),
        Code::PeriodConflict => problem(
            "the period of board 'cup' cannot be closed: the period before still takes late items, until 2026-01-02T11:00:00Z",
        )
        .with("board", "cup")
        .with("until", "2026-01-02T11:00:00Z"),
        Code::EditionsConflict => problem(
            "board 'hot-posts' has a next edition already; remove it first with DELETE /v1/boards/hot-posts/next",
        )
        .with("board", "hot-posts"),
        Code::SuccessorNotFull => problem(
            "the successor of board 'hot-posts' is complete from 2026-01-08T11:00:00Z only: until then its scores lack what \
             the board has; early=true lets it take over as it is",
        )
        .with("board", "hot-posts")
        .with("full_at", "2026-01-08T11:00:00Z"),
        Code::BoardFrozen => StoreError::Frozen { shards: 24, retry_after: Duration::from_secs(5) }.into(),
        Code::SubjectFrozen => problem("subject 'post-1' of board 'hot-posts' is frozen, so nothing was changed")
            .with("board", "hot-posts")
            .with("subject", "post-1"),
        Code::TooManyModerated => StoreError::TooManyModerated.into(),
        Code::ImportOpen => StoreError::ImportOpen.into(),
        Code::InvalidContents => problem("line 7: there is no track 2").with("line", 7),
        Code::ImportRefused => {
            problem("the import 5f1c2a9d04b7e386 is not open: begin it with the first line of its contents")
        }
        Code::SamplesUnsupported => problem(
            "board 'users-per-device' does not accept samples, because COUNT_DISTINCT(30d, login, device_id, user_id) \
             counts distinct values; send increments",
        )
        .with("board", "users-per-device"),
        Code::MissingKey => problem("board 'posts-by-community' has a ranking for each community, and the request names none; give it as 'by'")
            .with("field", "by")
            .with("board", "posts-by-community")
            .with("metric", "COUNT(24h, like, post_id BY community)"),
        Code::UnexpectedKey => problem("board 'hot-posts' has one ranking, because its metric COUNT(24h, like, post_id) has no BY; leave out the key")
            .with("field", "by")
            .with("board", "hot-posts")
            .with("metric", "COUNT(24h, like, post_id)"),
        Code::ClockBackward => StoreError::ClockBackward { now: MIDNIGHT }.into(),
        Code::TooLarge => {
            problem("a JSON body may have at most 8388608 bytes; send more as a stream of application/x-ndjson")
                .with("limit", 8_388_608)
        }
        Code::UnsupportedMediaType => problem(
            "media type 'text/plain' is not supported; use application/json or, for events, increments and samples, \
             application/x-ndjson",
        ),
        Code::InvalidField => problem("'limit' must be a whole number from 1 to 1000")
            .with("field", "limit")
            .with("minimum", 1)
            .with("maximum", 1_000),
        Code::UnknownField => {
            problem("unknown field 'subjet'; expected one of subject, by, amount, value, at, id, retract")
                .with("field", "subjet")
        }
        Code::InvalidBoardName => problem(
            "a board's name is 1 to 63 characters of a-z, 0-9, '.', '_' and '-', and starts with a letter or digit",
        ),
        Code::BeyondWindow => {
            problem("48h is 48 slots of 1h; the board keeps 24 (24h)").with("field", "last").with("maximum", "24h")
        }
        Code::NotRanked => {
            problem("board 'users-per-device' is not ranked; rankings, lookups and neighbors need a ranked board")
                .with("board", "users-per-device")
        }
        Code::StaleCursor => {
            problem("board 'hot-posts' was defined again since the page with this cursor; begin with the first page")
                .with("board", "hot-posts")
        }
        Code::NoValues => {
            problem("board 'hot-posts' does not store the values it counts; only COUNT_DISTINCT boards do")
                .with("board", "hot-posts")
        }
        Code::AsOfUnsupported => problem(
            "board 'hot-posts' cannot be read as of a past time: a ranked board does not keep slots that have left the \
             window",
        )
        .with("board", "hot-posts"),
        Code::EdgeUnsupported => problem(
            "the oldest slot of board 'hot-posts' cannot be weighted: it keeps no slot beyond its window; define one \
             with cover = \"full\"",
        )
        .with("board", "hot-posts"),
        Code::Rejected => problem("nothing was counted: item 0: the field 'amount' is missing (missing_field)")
            .with("index", 0)
            .with(
                "rejected",
                json!([{"index": 0, "board": "top-sellers", "field": "amount", "code": "missing_field",
                    "detail": "the field 'amount' is missing"}]),
            )
            .with("rejected_counts", json!({"missing_field": 1})),
        Code::NoBoard => problem(
            "no board serves COUNT(30m, login, device_id); this board would: [boards.\"login-per-device_id\"] metric = \
             \"COUNT(30m, login, device_id)\", slot = \"1m\", ranked = false",
        )
        .with("metric", "COUNT(30m, login, device_id)")
        .with("board", "login-per-device_id")
        .with("definition", json!({"metric": "COUNT(30m, login, device_id)", "slot": "1m", "ranked": false})),
        Code::InvalidRule => problem("'rule': expected a duration or all, found 'likes' at column 7")
            .with("field", "rule")
            .with("column", 7),
        Code::UnknownRule => ServiceError::UnknownRule("many-login".to_owned()).into(),
        Code::MissingField => problem("the field 'device_id' is missing").with("field", "fields.device_id"),
        Code::BoardUnreadable => {
            let reason = "unknown field `shards` at line 1 column 9".to_owned();
            StoreError::Unreadable { name: "hot-posts".to_owned(), reason }.into()
        }
        Code::Internal => {
            problem("internal error; the log of this instance has the cause under request_id 5f1c2a9d04b7e386")
                .with("request_id", "5f1c2a9d04b7e386")
        }
        Code::Overloaded => StoreError::Overloaded { retry_after: second }.into(),
        Code::StoreUnreachable => {
            StoreError::Unreachable { at: "127.0.0.1:6379".to_owned(), source: "connection refused".into() }.into()
        }
        Code::StoreTimeout => StoreError::TimedOut { at: "127.0.0.1:6379".to_owned() }.into(),
        Code::StoreReadOnly => StoreError::ReadOnly { reason: "the disk is full".to_owned() }.into(),
        Code::MemoryFull => StoreError::MemoryFull.into(),
        Code::TooManyBoards => ServiceError::TooManyBoards { limit: 1_000 }.into(),
        Code::ClockDoubted => StoreError::ClockDoubted {
            reading: TEN_YEARS_LATER,
            recorded: MIDNIGHT,
            retry_after: Duration::from_secs(57),
        }
        .into(),
        Code::BackupFailed => {
            let detail = "in /var/backups/rolltop: cannot create 20261121T040000000Z: Permission denied (os error 13)"
                .to_owned();
            StoreError::BackupFailed { detail }.into()
        }
        Code::NotReady => problem("the rollover of board 'hot-posts' is overdue")
            .with("reasons", vec!["the rollover of board 'hot-posts' is overdue"])
            .with("warnings", Vec::<String>::new())
            .retry_after(second),
    }
}
