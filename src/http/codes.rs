//! Every error code there is, in one place. Clients match on these, so a code never changes its meaning.

use actix_web::http::StatusCode;
use serde::{Serialize, Serializer};

macro_rules! request_codes {
    ($($(#[doc = $doc:literal])+ $name:ident = $code:literal, $status:ident, $title:literal;)+) => {
        /// Why a whole request was refused.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Code {
            $($(#[doc = $doc])+ $name,)+
        }

        impl Code {
            /// All of them, in the order of the table.
            pub const ALL: &[Code] = &[$(Code::$name),+];

            /// The stable name that clients match on.
            pub const fn as_str(self) -> &'static str {
                match self { $(Code::$name => $code,)+ }
            }

            /// The HTTP status it is answered with.
            pub const fn status(self) -> StatusCode {
                match self { $(Code::$name => StatusCode::$status,)+ }
            }

            /// A short summary that does not vary from one occurrence to the next.
            pub const fn title(self) -> &'static str {
                match self { $(Code::$name => $title,)+ }
            }

            /// When it occurs, for the API's description.
            pub const fn meaning(self) -> &'static str {
                match self { $(Code::$name => concat!($($doc),+),)+ }
            }
        }
    };
}

macro_rules! item_codes {
    ($($(#[doc = $doc:literal])+ $name:ident = $code:literal;)+) => {
        /// Why one item of a request (an increment, a sample, an event) was not counted, while the rest was.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum ItemCode {
            $($(#[doc = $doc])+ $name,)+
        }

        impl ItemCode {
            /// All of them, in the order of the table.
            pub const ALL: &[ItemCode] = &[$(ItemCode::$name),+];

            /// The stable name that clients match on.
            pub const fn as_str(self) -> &'static str {
                match self { $(ItemCode::$name => $code,)+ }
            }

            /// When it occurs, for the API's description.
            pub const fn meaning(self) -> &'static str {
                match self { $(ItemCode::$name => concat!($($doc),+),)+ }
            }
        }
    };
}

request_codes! {
    /// The body is not JSON; `line` and `column` say where it stops being so.
    MalformedJson = "malformed_json", BAD_REQUEST, "The body is not JSON";
    /// The body ended early or its transfer encoding is broken.
    IncompleteBody = "incomplete_body", BAD_REQUEST, "The body did not arrive whole";
    /// The body took too long to arrive. Nothing of it was counted.
    BodyTimeout = "body_timeout", REQUEST_TIMEOUT, "The body took too long";
    /// The subject in the path is not percent-encoded UTF-8, or not a subject.
    InvalidSubject = "invalid_subject", BAD_REQUEST, "Not a subject";
    /// Nothing is served at this path.
    NotFound = "not_found", NOT_FOUND, "Nothing is here";
    /// No board of that name is defined.
    UnknownBoard = "unknown_board", NOT_FOUND, "No such board";
    /// The path exists, but not for this method; `Allow` lists those it has.
    MethodNotAllowed = "method_not_allowed", METHOD_NOT_ALLOWED, "The method does not apply here";
    /// The board exists with another definition; `keys` lists where they differ.
    BoardConflict = "board_conflict", CONFLICT, "The board exists with another definition";
    /// The board was removed or defined anew while the request was under way.
    BoardChanged = "board_changed", CONFLICT, "The board changed meanwhile";
    /// The board takes no samples, because its metric counts values or its windows have no slots to set.
    SamplesUnsupported = "samples_unsupported", CONFLICT, "The board takes no samples";
    /// The store cannot do this, or is not configured to; the detail says what to do instead.
    Unsupported = "unsupported", CONFLICT, "The store cannot do this";
    /// A simulated clock moves forward only; `now` is what it reads.
    ClockBackward = "clock_backward", CONFLICT, "The clock moves forward only";
    /// The body, or the number of its items, is beyond what one request may have; `limit` says how much that is.
    TooLarge = "too_large", PAYLOAD_TOO_LARGE, "The body is too large";
    /// The body's media type, or its content encoding, is not one that this path reads.
    UnsupportedMediaType = "unsupported_media_type", UNSUPPORTED_MEDIA_TYPE, "The media type is not supported";
    /// A field of the body or a parameter of the query is missing, of the wrong type or out of bounds; `field` names it.
    InvalidField = "invalid_field", UNPROCESSABLE_ENTITY, "A field is invalid";
    /// The body or the query has a field that does not exist here; `field` names it.
    UnknownField = "unknown_field", UNPROCESSABLE_ENTITY, "A field is unknown";
    /// The name is not one a board can have.
    InvalidBoardName = "invalid_board_name", UNPROCESSABLE_ENTITY, "Not a board's name";
    /// More was asked for than the board's window holds.
    BeyondWindow = "beyond_window", UNPROCESSABLE_ENTITY, "Beyond the board's window";
    /// The board is not ranked, so there is no ranking to ask it for.
    NotRanked = "not_ranked", CONFLICT, "The board has no ranking";
    /// The board does not remember the values it counted; COUNT_DISTINCT boards do.
    NoValues = "no_values", CONFLICT, "The board remembers no values";
    /// The board cannot be read as of a past time; the detail says why.
    AsOfUnsupported = "as_of_unsupported", UNPROCESSABLE_ENTITY, "The board cannot be read as of a past time";
    /// The board's oldest slot cannot be weighted; the detail says why.
    EdgeUnsupported = "edge_unsupported", UNPROCESSABLE_ENTITY, "The board's oldest slot cannot be weighted";
    /// No board serves a metric of a rule or question; `definition` is one that would.
    NoBoard = "no_board", UNPROCESSABLE_ENTITY, "No board serves the metric";
    /// The text is not a rule or metric; `column` says where it stops being one.
    InvalidRule = "invalid_rule", UNPROCESSABLE_ENTITY, "Not a rule";
    /// No rule of that name is configured.
    UnknownRule = "unknown_rule", UNPROCESSABLE_ENTITY, "No such rule";
    /// A metric or rule needs a field that the event does not have; `field` names it.
    MissingField = "missing_field", UNPROCESSABLE_ENTITY, "A field of the event is missing";
    /// The board's definition cannot be read by this version: a newer version wrote it, or it is damaged. Nothing was
    /// done; `board` names it, and the detail says what to do. Other boards are not affected.
    BoardUnreadable = "board_unreadable", SERVICE_UNAVAILABLE, "The board's definition cannot be read";
    /// Something went wrong that no request should be able to cause; `error_id` finds it in the log.
    Internal = "internal", INTERNAL_SERVER_ERROR, "Something went wrong here";
    /// Too much is waiting for the store already. Nothing was counted; try again after `retry_after` seconds.
    Overloaded = "overloaded", SERVICE_UNAVAILABLE, "Overloaded";
    /// The store cannot be reached. Nothing was counted; try again after `retry_after` seconds.
    StoreUnreachable = "store_unreachable", SERVICE_UNAVAILABLE, "The store cannot be reached";
    /// The store did not answer in time. Whether a write was counted is unknown; repeat it with the same `id`.
    StoreTimeout = "store_timeout", SERVICE_UNAVAILABLE, "The store did not answer in time";
    /// The store takes no writes: its memory or disk is full, or an earlier write failed.
    StoreReadOnly = "store_read_only", SERVICE_UNAVAILABLE, "The store takes no writes";
    /// The system clock of the store is further ahead of the last recorded time than expected. Nothing was counted; try
    /// again after `retry_after` seconds.
    ClockDoubted = "clock_doubted", SERVICE_UNAVAILABLE, "The clock is doubted";
    /// The backup was not made, for a reason the detail names; the store goes on as before.
    BackupFailed = "backup_failed", SERVICE_UNAVAILABLE, "The backup was not made";
    /// The instance should not be sent requests now; `reasons` says why.
    NotReady = "not_ready", SERVICE_UNAVAILABLE, "Not ready";
}

item_codes! {
    /// Its slot has left the window.
    TooLate = "too_late";
    /// It is further ahead of the store's clock than the allowed skew.
    TooEarly = "too_early";
    /// The amount, or what it would bring its slot to, is beyond what the board holds exactly.
    AmountOutOfRange = "amount_out_of_range";
    /// The amount has more decimals than the board keeps.
    AmountPrecision = "amount_precision";
    /// The amount, or the value of AVG, MIN or MAX, is not a JSON number.
    InvalidAmount = "invalid_amount";
    /// The subject is missing, not a string, empty, longer than 512 bytes, or has control characters.
    InvalidSubject = "invalid_subject";
    /// The id is not a string, empty, longer than 128 bytes, or has control characters.
    InvalidId = "invalid_id";
    /// The time is not RFC 3339.
    InvalidAt = "invalid_at";
    /// The item has a field that does not exist, or that the board's metric does not take.
    UnknownField = "unknown_field";
    /// The item of the batch is not an increment at all, or names a field twice.
    InvalidIncrement = "invalid_increment";
    /// The line of the stream is not a JSON object.
    MalformedLine = "malformed_line";
    /// The line of the stream is longer than allowed.
    LineTooLong = "line_too_long";
    /// The value is missing, or not one that the board's metric counts.
    InvalidValue = "invalid_value";
    /// A retraction, or a sample, does not say when.
    MissingAt = "missing_at";
    /// The metric cannot undo what it has counted: MIN, MAX and APPROX_COUNT_DISTINCT cannot.
    RetractionUnsupported = "retraction_unsupported";
    /// The item of the batch is not a sample at all, or names a field twice.
    InvalidSample = "invalid_sample";
    /// The item of the batch is not an event at all, names a field twice, or has too many.
    InvalidEvent = "invalid_event";
    /// The type of the event is missing, not a string, empty, longer than 128 bytes, or has control characters.
    InvalidType = "invalid_type";
    /// The event lacks a field that the board's metric needs; `field` names it.
    MissingField = "missing_field";
    /// A field of the event is not what the board's metric takes; `field` names it.
    InvalidField = "invalid_field";
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
    fn no_two_codes_are_the_same() {
        let requests: HashSet<_> = Code::ALL.iter().map(|code| code.as_str()).collect();
        assert_eq!(requests.len(), Code::ALL.len());
        let items: HashSet<_> = ItemCode::ALL.iter().map(|code| code.as_str()).collect();
        assert_eq!(items.len(), ItemCode::ALL.len());
    }
}
