//! All error codes. Clients match on them, so the meaning of a code never changes.

use actix_web::http::StatusCode;
use serde::{Serialize, Serializer};

macro_rules! request_codes {
    ($($(#[doc = $doc:literal])+ $name:ident = $code:literal, $status:ident, $title:literal, $advice:literal;)+) => {
        /// Reason for which a whole request is refused.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Code {
            $($(#[doc = $doc])+ $name,)+
        }

        impl Code {
            /// All codes, in the order of the table.
            pub const ALL: &[Code] = &[$(Code::$name),+];

            /// Returns the stable name that clients match on.
            pub const fn as_str(self) -> &'static str {
                match self { $(Code::$name => $code,)+ }
            }

            /// Returns the HTTP status of the response.
            pub const fn status(self) -> StatusCode {
                match self { $(Code::$name => StatusCode::$status,)+ }
            }

            /// Returns a short summary that is the same for every occurrence.
            pub const fn title(self) -> &'static str {
                match self { $(Code::$name => $title,)+ }
            }

            /// Returns the condition under which the code occurs.
            pub const fn meaning(self) -> &'static str {
                match self { $(Code::$name => concat!($($doc),+),)+ }
            }

            /// Returns what a client or operator should do.
            pub const fn advice(self) -> &'static str {
                match self { $(Code::$name => $advice,)+ }
            }
        }
    };
}

macro_rules! item_codes {
    ($($(#[doc = $doc:literal])+ $name:ident = $code:literal, $advice:literal;)+) => {
        /// Reason for which one item of a request (an increment, a sample, an event) is rejected while others are
        /// counted.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum ItemCode {
            $($(#[doc = $doc])+ $name,)+
        }

        impl ItemCode {
            /// All codes, in the order of the table.
            pub const ALL: &[ItemCode] = &[$(ItemCode::$name),+];

            /// Returns the stable name that clients match on.
            pub const fn as_str(self) -> &'static str {
                match self { $(ItemCode::$name => $code,)+ }
            }

            /// Returns the condition under which the code occurs.
            pub const fn meaning(self) -> &'static str {
                match self { $(ItemCode::$name => concat!($($doc),+),)+ }
            }

            /// Returns what a client or operator should do.
            pub const fn advice(self) -> &'static str {
                match self { $(ItemCode::$name => $advice,)+ }
            }
        }
    };
}

request_codes! {
    /// The body is not valid JSON; `line` and `column` give the position of the error.
    MalformedJson = "malformed_json", BAD_REQUEST, "The body is not valid JSON",
        "Correct the JSON at the given position.";
    /// The body ended early or its transfer encoding is invalid.
    IncompleteBody = "incomplete_body", BAD_REQUEST, "The body is incomplete",
        "Send the whole body again. If it is compressed, check that it is complete and in the declared encoding.";
    /// A JSON body did not arrive within the time limit, and nothing was counted; or a stream sent nothing for too
    /// long, and `counted_through` is the last line that was counted.
    BodyTimeout = "body_timeout", REQUEST_TIMEOUT, "The body did not arrive in time",
        "Send the request again. If the connection is slow, send smaller bodies; a stream that pauses should be ended and started again after counted_through.";
    /// The request follows one with `Connection: close` on the same connection. It was not executed.
    ConnectionEnded = "connection_ended", BAD_REQUEST, "No request may follow on this connection",
        "Send the request again on another connection; nothing of it was counted.";
    /// Path and query are longer than allowed; `limit` is the maximum in bytes.
    UriTooLong = "uri_too_long", URI_TOO_LONG, "The path is too long",
        "Shorten the path and the query.";
    /// The subject in the path is not percent-encoded UTF-8 or not a valid subject.
    InvalidSubject = "invalid_subject", BAD_REQUEST, "The subject is invalid",
        "Percent-encode the subject as one segment of the path, in UTF-8: a/b is a%2Fb.";
    /// The request comes from a page of another origin, which the operator has not allowed to send it: `cors_origins`
    /// lists origins that may read, `cors_write_origins` those that may change something.
    ForeignOrigin = "foreign_origin", FORBIDDEN, "Pages of this origin may not send the request",
        "Send the request from a page of the service itself, or ask the operator to add the origin to the setting that the detail names, or to the origins of the key.";
    /// The `Host` header names neither the loopback interface nor one of `hosts`.
    UnknownHost = "unknown_host", MISDIRECTED_REQUEST, "The service does not answer for this host",
        "Use localhost, or ask the operator to add the host name to the setting hosts.";
    /// The operation needs a key, or a key that may do more than callers without one; `scope` or `board` says what for.
    KeyRequired = "key_required", UNAUTHORIZED, "A key is required",
        "Send the header Authorization: Bearer with a key that has the scope.";
    /// The header `Authorization` has no valid key: it has another form, the key is not known, or it was revoked.
    InvalidKey = "invalid_key", UNAUTHORIZED, "The key is not valid",
        "Check the key, or ask the operator for another one.";
    /// The key has expired.
    KeyExpired = "key_expired", UNAUTHORIZED, "The key has expired",
        "Ask the operator for another key.";
    /// The header `Authorization` has a token that is not valid: its form, its claims or its signature are wrong, or
    /// the key that signed it is not known or allows less; `claim` says which claim.
    InvalidToken = "invalid_token", UNAUTHORIZED, "The token is not valid",
        "Sign a token as docs/tokens.md says; `rolltop token inspect` shows what is wrong.";
    /// The token, or the key that signed it, has expired.
    TokenExpired = "token_expired", UNAUTHORIZED, "The token has expired",
        "Get another token from the site.";
    /// The token is for an item that counts once, and a board that it would reach does not remember ids until a minute
    /// after the token's `exp`; `board` says which. Nothing was counted.
    TokenOutlivesIds = "token_outlives_ids", UNPROCESSABLE_ENTITY, "The token is valid for longer than ids are remembered",
        "Sign tokens that expire earlier, or define the board with a longer dedupe.";
    /// The key does not have the scope that the operation needs, or not for this board, whether the board exists or
    /// not; `scope` or `board` says which.
    Forbidden = "forbidden", FORBIDDEN, "The key does not allow this",
        "Use a key that has the scope for the board.";
    /// A proxy has forwarded the request to a service that is set up for its own machine only.
    Forwarded = "forwarded", FORBIDDEN, "The service does not answer through a proxy",
        "The operator should make a key, or name the proxy in the setting trusted_proxies.";
    /// No key with this id exists.
    UnknownKey = "unknown_key", NOT_FOUND, "Unknown key",
        "Check the id with GET /v1/keys.";
    /// The address of the client, or its key, sends more requests or items than its rate allows through this instance.
    /// Nothing was counted; retry after `retry_after` seconds.
    RateLimited = "rate_limited", TOO_MANY_REQUESTS, "Too many requests or items",
        "Send the request again after retry_after seconds, and send fewer requests, or fewer items at a time.";
    /// The address of the client, or its key, has as many streams and exports open as it may; `limit` is the maximum.
    TooManyStreams = "too_many_streams", TOO_MANY_REQUESTS, "Too many open streams",
        "Close a stream first. GET /v1/stream follows several rankings on one connection.";
    /// The key was changed or revoked at the same time, or it is a key of the configuration.
    KeyConflict = "key_conflict", CONFLICT, "The key cannot be changed",
        "Read the key again; change a key of the configuration there.";
    /// No operation exists at this path.
    NotFound = "not_found", NOT_FOUND, "Path not found",
        "Check the path against the API description at /openapi.json.";
    /// No board with this name exists.
    UnknownBoard = "unknown_board", NOT_FOUND, "Unknown board",
        "Check the name with GET /v1/boards, or define the board with PUT.";
    /// No source with this name exists.
    UnknownSource = "unknown_source", NOT_FOUND, "Unknown source",
        "Check the name with GET /v1/sources, or define the source with PUT.";
    /// The boards of the source have not all counted what comes before the events of the request, but only what is up to
    /// `reached`. They count each event once, whatever is sent again.
    SourceBehind = "source_behind", CONFLICT, "Events of the source are missing",
        "Send the events after reached first, with this position as after.";
    /// An event before those that were to follow cannot be counted yet, because a board refuses it for a reason that may
    /// pass: it is too early, or there is no room. What is up to `reached` is counted.
    SourceWaits = "source_waits", SERVICE_UNAVAILABLE, "An event of the source waits",
        "Send the events after reached again after retry_after seconds, with this position as after. GET /v1/sources/{source} shows which board is behind.";
    /// The path does not support this method; the `Allow` header lists the supported ones.
    MethodNotAllowed = "method_not_allowed", METHOD_NOT_ALLOWED, "The method is not allowed",
        "Use a method that the header Allow lists.";
    /// The board exists with a different definition; `keys` lists the keys that differ.
    BoardConflict = "board_conflict", CONFLICT, "The board exists with a different definition",
        "Use another name, or remove the board first; its data is removed with it.";
    /// The board has no edition of the role that `of`, or the path, names.
    UnknownEdition = "unknown_edition", NOT_FOUND, "The board has no such edition",
        "Begin a dual run with PUT /v1/boards/{board}/next, or read the board itself.";
    /// The board has no period of the name that `period` gives, or no season.
    UnknownPeriod = "unknown_period", NOT_FOUND, "The board has no such period",
        "Read GET /v1/boards/{board}/periods, which lists the periods that the board has.";
    /// The current period of the board cannot be closed: the one before takes late items until the time in `until`, or the
    /// periods are not closed by hand.
    PeriodConflict = "period_conflict", CONFLICT, "The period cannot be closed now",
        "Wait until the time in `until`, and close the period then. Only periods of a season with `every` `manual` are closed.";
    /// The board has another second edition already, a fill is not complete, or an edition is being repaired.
    EditionsConflict = "editions_conflict", CONFLICT, "The editions of the board cannot be changed now",
        "Look at GET /v1/boards/{board}/next or /previous; remove the edition there, or wait for its fill.";
    /// The successor of the board is not complete before the time in `full_at`, or never if that is null.
    SuccessorNotFull = "successor_not_full", CONFLICT, "The successor is not complete yet",
        "Wait until the time in `full_at`, or send early=true: its scores then lack what the board counted before.";
    /// The board was removed or redefined during the request.
    BoardChanged = "board_changed", CONFLICT, "The board changed during the request",
        "Send the request again; it then applies to the new board.";
    /// The board does not accept samples, because its metric counts distinct values, its mode is `from_first`, it has
    /// further windows, or it keeps slots beside a best value of all time. A board of distinct values has no value to
    /// set.
    SamplesUnsupported = "samples_unsupported", CONFLICT, "The board does not accept samples",
        "Send increments or events instead. PUT /v1/boards/{board}/subjects/{subject} corrects the value of a subject.";
    /// The store does not support this operation or is not configured for it; the detail names the alternative.
    Unsupported = "unsupported", CONFLICT, "The store does not support this operation",
        "Follow the alternative that the detail names.";
    /// The simulated clock cannot be set to an earlier time; `now` is its current time.
    ClockBackward = "clock_backward", CONFLICT, "The clock cannot move backward",
        "Set the clock to the current time or a later one.";
    /// The body, or its number of items, exceeds the maximum for one request; `limit` is the maximum.
    TooLarge = "too_large", PAYLOAD_TOO_LARGE, "The body is too large",
        "Divide the items among several requests, or send them as a stream of application/x-ndjson.";
    /// The body has no media type, or this path does not accept its media type or content encoding.
    UnsupportedMediaType = "unsupported_media_type", UNSUPPORTED_MEDIA_TYPE, "The media type is not supported",
        "Send application/json, or application/x-ndjson where a stream is supported, uncompressed or with gzip or zstd.";
    /// A field of the body or a parameter of the query is missing, of the wrong type or out of range; `field` names it.
    InvalidField = "invalid_field", UNPROCESSABLE_ENTITY, "A field is invalid",
        "Correct the field that the member field names; the detail says what is allowed.";
    /// The body or the query has an unknown field; `field` names it.
    UnknownField = "unknown_field", UNPROCESSABLE_ENTITY, "A field is unknown",
        "Remove or rename the field; the detail lists the known ones.";
    /// The board has a ranking for each key, because its metric has `BY`, and the request or its item names no key.
    MissingKey = "missing_key", UNPROCESSABLE_ENTITY, "A key of the ranking is missing",
        "Name the key with by: as a parameter of reads and removals, as a member of increments, samples and queries.";
    /// The request or its item names a key, and the metric of the board has no `BY`.
    UnexpectedKey = "unexpected_key", UNPROCESSABLE_ENTITY, "The board has no keys",
        "Leave out by, or define a board whose metric has BY.";
    /// The name is not a valid board name.
    InvalidBoardName = "invalid_board_name", UNPROCESSABLE_ENTITY, "The board name is invalid",
        "Use 1 to 63 lower-case letters, digits, dots, underscores and hyphens, beginning with a letter or digit.";
    /// The request covers more than the window of the board.
    BeyondWindow = "beyond_window", UNPROCESSABLE_ENTITY, "The request exceeds the window of the board",
        "Request at most the window of the board, or define a board with a longer window.";
    /// The board is unranked and has no ranking to read.
    NotRanked = "not_ranked", CONFLICT, "The board is not ranked",
        "Read subjects one by one, or define a ranked board with the same metric.";
    /// The cursor belongs to an earlier definition of the board; begin with the first page.
    StaleCursor = "stale_cursor", CONFLICT, "The cursor belongs to an earlier board",
        "Begin with the first page of the current board.";
    /// The board does not store the values it counted; only COUNT_DISTINCT boards do.
    NoValues = "no_values", CONFLICT, "The board does not store values",
        "Use a COUNT_DISTINCT board.";
    /// The board cannot be read as of a past time; the detail gives the reason.
    AsOfUnsupported = "as_of_unsupported", CONFLICT, "The board does not support as_of",
        "Leave out as_of, or define an unranked board that keeps older slots (keep).";
    /// The oldest slot of the board cannot be weighted; the detail gives the reason.
    EdgeUnsupported = "edge_unsupported", CONFLICT, "The board does not support a weighted edge",
        "Leave out edge, or define the board with cover = full.";
    /// Contents are being imported into the board. Until that has ended, no subject can be removed or set.
    ImportOpen = "import_open", CONFLICT, "An import is open",
        "Send the request again when the import has ended; DELETE /v1/boards/{board}/import ends one that was given up.";
    /// The data of the board is being copied to another number of shards. Until that has ended it is read, and not
    /// written to. Nothing was counted (of a stream, nothing after `counted_through`); retry after `retry_after`
    /// seconds.
    BoardFrozen = "board_frozen", SERVICE_UNAVAILABLE, "The board is frozen",
        "Send the request again after retry_after seconds; GET /v1/boards/{board}/shards says how far the copy is.";
    /// The subject is frozen: nothing counts for it until that is ended. Nothing was changed.
    SubjectFrozen = "subject_frozen", CONFLICT, "The subject is frozen",
        "End that with DELETE /v1/boards/{board}/subjects/{subject}/frozen first.";
    /// The board that is to keep the attributes of the board's subjects does not exist, or cannot keep those of others.
    NoAttributesBoard = "no_attributes_board", CONFLICT, "No board keeps the attributes",
        "Define the board that the definition names with attributes: without BY, and without attributes of its own.";
    /// Something is set for as many subjects of the board as may be hidden or frozen. Some of the changes of the request
    /// may be done.
    TooManyModerated = "too_many_moderated", CONFLICT, "There are too many moderated subjects",
        "Show or unfreeze subjects of which no more items come, then send the request again.";
    /// The board does not take the import, or the import is not open; the detail gives the reason.
    ImportRefused = "import_refused", CONFLICT, "The import was refused",
        "Follow the detail.";
    /// A line of the contents to import is not valid; `line` is its number in the request. The lines before it are
    /// merged.
    InvalidContents = "invalid_contents", UNPROCESSABLE_ENTITY, "The contents are invalid",
        "Send the lines as GET /v1/boards/{board}/contents returned them.";
    /// The request was refused because of its items: a single event that every board refused, or with `strict=true` any
    /// invalid item. Nothing was counted; `rejected` lists the items with their reasons.
    Rejected = "rejected", UNPROCESSABLE_ENTITY, "Items were rejected",
        "Correct the items that rejected lists, and send the request again.";
    /// No board serves a metric of a rule or query; `definition` is the definition of a board that would.
    NoBoard = "no_board", UNPROCESSABLE_ENTITY, "No board serves the metric",
        "Define the board that the member definition describes.";
    /// The text is not a valid rule or metric; `column` gives the position of the error.
    InvalidRule = "invalid_rule", UNPROCESSABLE_ENTITY, "The rule is invalid",
        "Correct the rule at the given column.";
    /// No rule with this name is configured.
    UnknownRule = "unknown_rule", UNPROCESSABLE_ENTITY, "Unknown rule",
        "Check the name with GET /v1/rules; rules are defined in the configuration file.";
    /// A metric or rule needs a field that the event does not have; `field` names it.
    MissingField = "missing_field", UNPROCESSABLE_ENTITY, "A field of the event is missing",
        "Add the field to the member fields.";
    /// This version cannot read the definition of the board, or a packed period of it: a newer version wrote it, or it is
    /// damaged. Nothing was done; `board` names the board, and the detail says how to recover. Nothing else is affected.
    BoardUnreadable = "board_unreadable", SERVICE_UNAVAILABLE, "The board definition or period cannot be read",
        "Use the version of the service that wrote the board, or follow the detail.";
    /// An internal error occurred; `request_id` identifies it in the log.
    Internal = "internal", INTERNAL_SERVER_ERROR, "Internal error",
        "Send the request again. If it fails repeatedly, report it with the log lines of the request id.";
    /// Too many requests are waiting for the store, or the bodies in progress take too much memory. Nothing was counted
    /// (of a stream, nothing after `counted_through`); retry after `retry_after` seconds.
    Overloaded = "overloaded", SERVICE_UNAVAILABLE, "Overloaded",
        "Send the request again after retry_after seconds, and send fewer requests at a time.";
    /// The store cannot be reached. Nothing was counted; retry after `retry_after` seconds.
    StoreUnreachable = "store_unreachable", SERVICE_UNAVAILABLE, "The store cannot be reached",
        "Send the request again after retry_after seconds. The operator should check the store.";
    /// The store did not respond in time. Whether a write was counted is unknown; retry it with the same `id`.
    StoreTimeout = "store_timeout", SERVICE_UNAVAILABLE, "The store did not respond in time",
        "Send the same request again. With ids or an Idempotency-Key nothing counts twice.";
    /// The store refuses writes: its memory or disk is full, or an earlier write failed.
    StoreReadOnly = "store_read_only", SERVICE_UNAVAILABLE, "The store refuses writes",
        "Send the request again later. The operator should free memory or disk space.";
    /// The data has nearly reached the limit of the memory (`memory_limit`). New subjects, boards, values and
    /// attributes are refused, later everything that takes memory; what exists is read, changed and removed as before.
    /// Nothing was counted (of a stream, nothing after `counted_through`); retry after `retry_after` seconds.
    MemoryFull = "memory_full", SERVICE_UNAVAILABLE, "The memory for data is full",
        "Send the request again later. The operator should remove boards or subjects, or raise memory_limit.";
    /// There are as many boards as `max_boards` allows; `limit` is their number.
    TooManyBoards = "too_many_boards", CONFLICT, "There are too many boards",
        "Remove a board that is not needed, or ask the operator to raise the setting max_boards.";
    /// The system clock of the store is further ahead of the last recorded time than expected. Nothing was counted;
    /// retry after `retry_after` seconds.
    ClockDoubted = "clock_doubted", SERVICE_UNAVAILABLE, "The system clock is not trusted",
        "Send the request again after retry_after seconds. The operator should check the system clock.";
    /// The backup failed; the detail gives the reason. The store continues to work.
    BackupFailed = "backup_failed", SERVICE_UNAVAILABLE, "The backup failed",
        "Correct what the detail names, and make the backup again.";
    /// The instance is not ready for requests; `reasons` lists why.
    NotReady = "not_ready", SERVICE_UNAVAILABLE, "Not ready",
        "Wait until /readyz responds with 200.";
}

item_codes! {
    /// The slot of the item has left the window, or the period in which it is takes no more items.
    TooLate = "too_late",
        "Do not send the item again: it happened before what the board still counts.";
    /// The time of the item is further ahead of the store's clock than the allowed skew.
    TooEarly = "too_early",
        "Correct the time of the item, or the clock of the sender.";
    /// The amount, or the resulting amount of the slot, exceeds the range that the board stores exactly.
    AmountOutOfRange = "amount_out_of_range",
        "Send smaller amounts, or define the board with fewer decimals.";
    /// The item needs memory that the store does not have: for a new subject or value, later for anything. What exists
    /// is changed as before.
    MemoryFull = "memory_full",
        "Send the item again later. The operator should remove boards or subjects, or raise the setting memory_limit.";
    /// The subject is new, and the board has as many subjects as `max_subjects` allows.
    TooManySubjects = "too_many_subjects",
        "Send the item again after other subjects have expired or were removed, or ask the operator to raise the setting max_subjects.";
    /// The key has no ranking yet, and the board has as many as `max_keys` allows.
    TooManyKeys = "too_many_keys",
        "Send the item again after other keys have expired or were removed, or attach a successor with a higher max_keys.";
    /// The subject is frozen: nothing counts for it until that is ended.
    SubjectFrozen = "subject_frozen",
        "Do not send the item again, unless DELETE /v1/boards/{board}/subjects/{subject}/frozen has ended that.";
    /// The item is a sample, and contents are being imported into the board.
    ImportOpen = "import_open",
        "Send the sample again when the import has ended.";
    /// The item is not in the period that `period` names.
    WrongPeriod = "wrong_period",
        "Send the item without `period`, or with the period in which it is; GET /v1/boards/{board}/periods lists them.";
    /// The data of the board is damaged, so whether it counted the event is not known. Other boards have counted what the
    /// response says.
    BoardDamaged = "board_damaged",
        "Tell the operator, who finds the reason at /readyz and in the log. With an id, send the event again when the board has been repaired.";
    /// The amount has more decimals than the board.
    AmountPrecision = "amount_precision",
        "Round the amount, or define the board with more decimals.";
    /// The amount, or the value for AVG, MIN, MAX or LAST, is not a JSON number.
    InvalidAmount = "invalid_amount",
        "Send a JSON number.";
    /// The subject is missing, not a string, empty, longer than 512 bytes, or contains control characters.
    InvalidSubject = "invalid_subject",
        "Send a string of 1 to 512 bytes without control characters.";
    /// The board has a ranking for each key, because its metric has `BY`, and the item has no `by`.
    MissingKey = "missing_key",
        "Add by, the key of the ranking.";
    /// The item has `by`, and the metric of the board has no `BY`.
    UnexpectedKey = "unexpected_key",
        "Leave out by, or define a board whose metric has BY.";
    /// `by` is not a string, empty, longer than 512 bytes, or contains control characters.
    InvalidBy = "invalid_by",
        "Send a string of 1 to 512 bytes without control characters.";
    /// The id is not a string, empty, longer than 128 bytes, contains control characters, or begins with `token:`.
    InvalidId = "invalid_id",
        "Send a string of 1 to 128 bytes without control characters that does not begin with token:.";
    /// The time is not valid RFC 3339.
    InvalidAt = "invalid_at",
        "Send a time in RFC 3339 format, such as 2026-01-31T09:30:00Z.";
    /// The item has an unknown field, or one that the metric of the board does not use.
    UnknownField = "unknown_field",
        "Remove or rename the field; the detail lists the known ones.";
    /// The element of the batch is not an increment, or repeats a field.
    InvalidIncrement = "invalid_increment",
        "Send an object with the fields of an increment, each once.";
    /// The line of the stream is not a JSON object.
    MalformedLine = "malformed_line",
        "Send one JSON object per line.";
    /// The line of the stream exceeds the maximum length.
    LineTooLong = "line_too_long",
        "Send shorter lines, or ask the operator to raise the setting max_line.";
    /// The value is missing, or not one that the metric of the board counts.
    InvalidValue = "invalid_value",
        "Send a value that the metric counts: a string, a number, or true or false.";
    /// A retraction or a sample has no `at`. Over all time only a retraction of an event needs it.
    MissingAt = "missing_at",
        "Add at, the time of the item.";
    /// The metric does not support retractions: MIN, MAX, LAST and APPROX_COUNT_DISTINCT do not.
    RetractionUnsupported = "retraction_unsupported",
        "Correct the value with a sample, or remove the subject; or use a metric that supports retractions.";
    /// The attributes are not a JSON object of attributes, are too many or too long, or are sent with a token or a key that
    /// everybody can read.
    InvalidAttributes = "invalid_attributes",
        "Send an object with at most 32 attributes and 1,024 bytes, with a secret key.";
    /// The item was counted, and its attributes could not be set.
    AttributesNotSet = "attributes_not_set",
        "Set the attributes by themselves, with POST /v1/boards/{board}/attributes, or send the item again with the same id.";
    /// The element of the batch is not a sample, or repeats a field.
    InvalidSample = "invalid_sample",
        "Send an object with the fields of a sample, each once.";
    /// The element of the batch is not an event, repeats a field, or has too many fields.
    InvalidEvent = "invalid_event",
        "Send an object with the fields of an event, each once, with at most 256 fields.";
    /// The event type is missing, not a string, empty, longer than 128 bytes, or contains control characters.
    InvalidType = "invalid_type",
        "Send a string of 1 to 128 bytes without control characters.";
    /// The event lacks a field that the metric of the board needs; `field` names it.
    MissingField = "missing_field",
        "Add the field to the event.";
    /// A field of the event has a type or value that the metric of the board does not accept; `field` names it.
    InvalidField = "invalid_field",
        "Correct the type or value of the field.";
}

impl Serialize for Code {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

impl Serialize for ItemCode {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn codes_are_unique() {
        let requests: HashSet<_> = Code::ALL.iter().map(|code| code.as_str()).collect();
        assert_eq!(requests.len(), Code::ALL.len());
        let items: HashSet<_> = ItemCode::ALL.iter().map(|code| code.as_str()).collect();
        assert_eq!(items.len(), ItemCode::ALL.len());
    }
}
