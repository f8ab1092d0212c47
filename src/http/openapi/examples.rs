//! Examples that several operations share.

use std::time::Duration;

use serde_json::{Value, json};

use crate::http::codes::Code;
use crate::http::problem::Problem;

/// A problem of this code as it may occur.
pub(super) fn problem(code: Code) -> Problem {
    let second = Duration::from_secs(1);
    let says = |detail: &str| Problem::new(code, detail);
    match code {
        Code::MalformedJson => {
            says("the body is not JSON: expected `,` or `}` at line 1 column 22").with("line", 1).with("column", 22)
        }
        Code::IncompleteBody => says("the body did not arrive whole: payload reached EOF before completing"),
        Code::BodyTimeout => says("the body did not arrive whole within 30 s"),
        Code::InvalidSubject => says("the subject is not UTF-8 once decoded, from byte 0").with("position", 0),
        Code::NotFound => says("nothing is served at /v2; see /swagger-ui/ for what there is"),
        Code::UnknownBoard => {
            says("there is no board 'hot-post'; define it with PUT /v1/boards/hot-post").with("board", "hot-post")
        }
        Code::MethodNotAllowed => says("PATCH does not apply here; there is GET, HEAD, PUT, DELETE"),
        Code::BoardConflict => says(
            "board 'hot-posts' exists with another slot; a board's definition cannot be changed in place: delete it \
             first, or choose another name",
        )
        .with("board", "hot-posts")
        .with("keys", vec!["slot"])
        .with("existing", board()),
        Code::Unsupported => says("no directory for backups is configured; set backup_dir (--backup-dir)"),
        Code::BoardChanged => says("the board was removed or defined anew meanwhile"),
        Code::SamplesUnsupported => says(
            "board 'users-per-device' counts the values of COUNT_DISTINCT(30d, login, device_id, user_id), which no \
             number can set; send increments",
        )
        .with("board", "users-per-device"),
        Code::ClockBackward => {
            says("the clock reads 2026-01-02T00:00:00Z; it moves forward only").with("now", "2026-01-02T00:00:00Z")
        }
        Code::TooLarge => says("a JSON body may have 8388608 bytes; send more as a stream of application/x-ndjson")
            .with("limit", 8_388_608),
        Code::UnsupportedMediaType => says("a body of type 'text/plain' is not read; send application/json"),
        Code::InvalidField => says("'limit' must be a whole number from 1 to 1000").with("field", "limit"),
        Code::UnknownField => says("there is no field 'subjet' here").with("field", "subjet"),
        Code::InvalidBoardName => says(
            "a board's name is 1 to 63 characters of a-z, 0-9, '.', '_' and '-', and starts with a letter or digit",
        ),
        Code::BeyondWindow => {
            says("48h is 48 slots of 1h; the board keeps 24 (24h)").with("field", "last").with("maximum", "24h")
        }
        Code::NotRanked => says(
            "board 'users-per-device' is not ranked: it has no rankings, look-ups or neighbours, only its subjects \
             one by one",
        )
        .with("board", "users-per-device"),
        Code::NoValues => says("board 'hot-posts' does not remember which values it counted: only COUNT_DISTINCT does")
            .with("board", "hot-posts"),
        Code::AsOfUnsupported => says(
            "board 'hot-posts' cannot be read as of a past time: the slots of a ranked board go when they leave the \
             window",
        )
        .with("board", "hot-posts"),
        Code::EdgeUnsupported => says(
            "the oldest slot of board 'hot-posts' cannot be weighted: it keeps no slot beyond its window; define one \
             with cover = \"full\"",
        )
        .with("board", "hot-posts"),
        Code::NoBoard => says(
            "no board serves COUNT(30m, login, device_id); this would: [boards.\"login-per-device_id\"] metric = \
             \"COUNT(30m, login, device_id)\", slot = \"1m\", ranked = false",
        )
        .with("metric", "COUNT(30m, login, device_id)")
        .with("board", "login-per-device_id")
        .with("definition", json!({"metric": "COUNT(30m, login, device_id)", "slot": "1m", "ranked": false})),
        Code::InvalidRule => {
            says("'rule': expected a duration, found 'likes' at column 7").with("field", "rule").with("column", 7)
        }
        Code::UnknownRule => {
            says("there is no rule 'many-login' in the configuration; GET /v1/rules lists those there are")
                .with("rule", "many-login")
        }
        Code::MissingField => says("the field 'device_id' is missing").with("field", "fields.device_id"),
        Code::BoardUnreadable => says(
            "the definition of board 'hot-posts' cannot be read: unknown field `shards` at line 1 column 9; if a newer \
             version of the service wrote it, upgrade this instance; if it is damaged, restore the definition in the \
             store or remove the board's keys",
        )
        .with("board", "hot-posts"),
        Code::Internal => says("the log of this instance says more under error_id 5f1c2a9d04b7e386")
            .with("error_id", "5f1c2a9d04b7e386"),
        Code::Overloaded => says("too many writes are waiting for the store; try again shortly").retry_after(second),
        Code::StoreUnreachable => {
            says("cannot reach the store at 127.0.0.1:6379: connection refused").retry_after(second)
        }
        Code::StoreTimeout => says(
            "the store at 127.0.0.1:6379 did not answer in time; whether a write was done is unknown: repeat it with \
             the same id to be safe",
        )
        .retry_after(second),
        Code::StoreReadOnly => says("the store takes no writes: the disk is full").retry_after(second),
        Code::ClockDoubted => says(
            "the system clock reads 2036-01-02T00:00:00Z, but 2026-01-02T00:00:00Z was the last time recorded; writes \
             are taken once the clock has agreed with itself for a minute, or after a start with --trust-clock",
        )
        .retry_after(Duration::from_secs(57)),
        Code::BackupFailed => says(
            "the backup was not made: in /var/backups/rolltop: cannot create 20261121T040000000Z: Permission \
             denied (os error 13)",
        ),
        Code::NotReady => says("the rollover of board 'hot-posts' is overdue")
            .with("reasons", vec!["the rollover of board 'hot-posts' is overdue"])
            .retry_after(second),
    }
}

/// A board as answers show it.
pub(in crate::http) fn board() -> Value {
    json!({
        "board": "hot-posts", "metric": "COUNT(24h, like, post_id)", "slot": "1h", "decimals": 0, "timezone": "UTC",
        "order": "desc", "cover": "current", "ranked": true, "mode": "sliding", "keep": null, "min_samples": 1,
        "max_values": null, "stamp": "start", "shards": null, "slots_in_window": 24, "slots_kept": 24,
        "generation": "5f1c2a9d04b7e386",
    })
}
