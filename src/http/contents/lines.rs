//! The form of contents: lines of JSON. `docs/moving.md` describes it.
//!
//! Amounts are whole numbers of the board's smallest unit and times are milliseconds since 1970, as in stored data.

use std::borrow::Cow;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::RawValue;
use utoipa::ToSchema;

use crate::board::{Attributes, Definition, Span, Timestamp};
use crate::http::problem::Problem;
use crate::service::Status;

/// The version of the form.
pub(super) const VERSION: u32 = 1;

type Text<'a> = Cow<'a, str>;

/// The first line.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub(in crate::http) struct ContentsHeader {
    /// Version of the form.
    #[schema(example = 1)]
    pub(super) contents: u32,
    /// Identifies these contents: an import with this id is merged once.
    #[schema(example = "5f1c2a9d04b7e386")]
    pub(super) export: String,
    /// Name of the board.
    #[schema(example = "hot-posts")]
    pub(super) board: String,
    pub(super) definition: Definition,
    /// The store's time before the first data was read.
    #[schema(value_type = String, format = DateTime)]
    pub(super) as_of: Timestamp,
    /// Each window, or the total and the kept slots, before the first data was read.
    #[serde(default)]
    pub(super) tracks: Vec<TrackState>,
}

/// The state of one window, of a total, or of kept slots.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub(in crate::http) struct TrackState {
    /// Length of the window.
    #[schema(example = "24h")]
    window: String,
    /// Length of a slot; null over all time.
    #[schema(value_type = Option<String>, required = true, example = "1h")]
    slot: Option<Span>,
    /// Start of the oldest slot that counts, in milliseconds.
    #[schema(example = 1_767_222_000_000_i64)]
    pub(super) floor: i64,
    /// A text that changes when a subject is removed.
    #[schema(example = "0000000000000000")]
    pub(super) upheavals: String,
}

impl TrackState {
    pub(super) fn of(track: &crate::board::Track, status: &Status) -> Self {
        Self {
            window: track.length().to_string(),
            slot: track.slot().filter(|_| !track.is_all_time()),
            floor: track.oldest_kept(status.frame.window.floor).millis(),
            upheavals: format!("{:016x}", status.upheavals),
        }
    }
}

/// A line with a part of the contents of one track. It has one of the lists, or `events`.
#[derive(Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::http) struct ContentsLine<'a> {
    /// Number of the line, from 1.
    pub(super) n: u64,
    /// Number of the line before it of the same track, or 0.
    #[serde(default)]
    pub(super) prev: u64,
    /// Position of the track in `tracks` of the first line, from 0.
    pub(super) track: usize,
    /// Start of the slot, for the lists that have no times of their own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = i64, required = false)]
    pub(super) slot: Option<i64>,
    /// For a metric with `BY`: the key of the ranking of each subject of the list, in its order.
    #[serde(borrow, default, skip_serializing_if = "Vec::is_empty")]
    #[schema(value_type = Vec<String>, required = false)]
    pub(super) by: Vec<Text<'a>>,
    /// COUNT, SUM: subject and amount.
    #[serde(borrow, default, skip_serializing_if = "Vec::is_empty")]
    #[schema(value_type = Vec<Vec<Object>>)]
    pub(super) sums: Vec<(Text<'a>, i64)>,
    /// AVG: subject, sum and number of measurements.
    #[serde(borrow, default, skip_serializing_if = "Vec::is_empty")]
    #[schema(value_type = Vec<Vec<Object>>)]
    pub(super) means: Vec<(Text<'a>, i64, i64)>,
    /// MIN, MAX: subject and extreme.
    #[serde(borrow, default, skip_serializing_if = "Vec::is_empty")]
    #[schema(value_type = Vec<Vec<Object>>)]
    pub(super) extremes: Vec<(Text<'a>, i64)>,
    /// LAST: subject, newest value and its time.
    #[serde(borrow, default, skip_serializing_if = "Vec::is_empty")]
    #[schema(value_type = Vec<Vec<Object>>)]
    pub(super) newest: Vec<(Text<'a>, i64, i64)>,
    /// APPROX_COUNT_DISTINCT: subject and sketch, in Base64.
    #[serde(borrow, default, skip_serializing_if = "Vec::is_empty")]
    #[schema(value_type = Vec<Vec<Object>>)]
    pub(super) sketches: Vec<(Text<'a>, Text<'a>)>,
    /// COUNT_DISTINCT: subject, value, and when it was last seen.
    #[serde(borrow, default, skip_serializing_if = "Vec::is_empty")]
    #[schema(value_type = Vec<Vec<Object>>)]
    pub(super) values: Vec<(Text<'a>, Text<'a>, i64)>,
    /// COUNT_DISTINCT: subject, value, and when it was taken back.
    #[serde(borrow, default, skip_serializing_if = "Vec::is_empty")]
    #[schema(value_type = Vec<Vec<Object>>)]
    pub(super) retracted: Vec<(Text<'a>, Text<'a>, i64)>,
    /// COUNT with a cap: subject, person, start of the day, and the number of items of the person in it less those taken back.
    #[serde(borrow, default, skip_serializing_if = "Vec::is_empty")]
    #[schema(value_type = Vec<Vec<Object>>)]
    pub(super) counts: Vec<(Text<'a>, Text<'a>, i64, i64)>,
    /// COUNT_DISTINCT, or COUNT with a cap, with `max_values`: subject, and the time of the newest value that was dropped.
    #[serde(borrow, default, skip_serializing_if = "Vec::is_empty")]
    #[schema(value_type = Vec<Vec<Object>>)]
    pub(super) dropped: Vec<(Text<'a>, i64)>,
    /// `mode = "from_first"`: subject, amount, and when its window began.
    #[serde(borrow, default, skip_serializing_if = "Vec::is_empty")]
    #[schema(value_type = Vec<Vec<Object>>)]
    pub(super) counters: Vec<(Text<'a>, i64, i64)>,
    /// Subjects that are hidden (`h`), shadowed (`s`) or frozen (`f`), each with the letters of what is set for it. `track`
    /// is 0.
    #[serde(borrow, default, skip_serializing_if = "Vec::is_empty")]
    #[schema(value_type = Vec<Vec<String>>, example = json!([["post-9", "hf"]]))]
    pub(super) moderated: Vec<(Text<'a>, Text<'a>)>,
    /// Starts of slots, each with the number of items counted in it before the first data was read. An import ignores
    /// it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schema(value_type = Vec<Vec<i64>>)]
    pub(super) before: Vec<(i64, u64)>,
    /// Starts of slots, each with the number of items counted in it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schema(value_type = Vec<Vec<i64>>)]
    pub(super) events: Vec<(i64, u64)>,
    /// Subjects with their attributes, which the lines before those of the tracks have. A subject of the importing board
    /// that has some keeps them.
    #[serde(borrow, default, skip_serializing_if = "Vec::is_empty")]
    #[schema(value_type = Vec<Vec<Object>>)]
    pub(super) attributes: Vec<(Text<'a>, ContentsAttributes<'a>)>,
    /// The parameter `after` with which another request continues after this line.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = String, required = false)]
    pub(super) cursor: Option<Text<'a>>,
}

/// The attributes of a subject in a line: as they are written, or as they were received.
#[derive(Debug)]
pub(super) enum ContentsAttributes<'a> {
    Written(&'a Attributes),
    Received(&'a RawValue),
}

impl Serialize for ContentsAttributes<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            ContentsAttributes::Written(attributes) => attributes.serialize(serializer),
            ContentsAttributes::Received(raw) => raw.serialize(serializer),
        }
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for ContentsAttributes<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Deserialize::deserialize(deserializer).map(ContentsAttributes::Received)
    }
}

/// The last line.
#[derive(Debug, Serialize, ToSchema)]
pub(in crate::http) struct ContentsEnd {
    /// Whether everything was sent. Contents that end without this line are not complete either.
    pub(super) complete: bool,
    #[schema(example = "5f1c2a9d04b7e386")]
    pub(super) export: String,
    /// Whether nothing but rollover has changed the board while it was read, so that the contents are of one instant.
    /// Null if that is not known: for `mode = "from_first"`, and after a continued walk, where the caller has to
    /// compare the lists `before` and `events` of the slots that still count, and `upheavals` of the first line with
    /// those here.
    #[schema(required = true)]
    pub(super) unchanged: Option<bool>,
    #[schema(value_type = Option<String>, format = DateTime, required = true)]
    pub(super) as_of: Option<Timestamp>,
    /// Each track after the last data was read. What is below its floor no longer counts.
    pub(super) tracks: Vec<TrackState>,
    /// For each track, the number of its last line, 0 if it has none.
    pub(super) last: Vec<u64>,
    /// The error that ended the contents; null if they are complete.
    #[schema(required = true)]
    pub(super) problem: Option<Problem>,
}

/// What an import reads of the last line.
#[derive(Debug, Deserialize)]
pub(super) struct ReceivedEnd {
    pub(super) complete: bool,
    pub(super) last: Vec<u64>,
}

/// A line that was received.
#[derive(Debug)]
pub(super) enum ReceivedLine<'a> {
    Header(Box<ContentsHeader>),
    Part(Box<ContentsLine<'a>>),
    End(ReceivedEnd),
}

/// Which of its members a line has.
#[derive(Deserialize)]
struct Members {
    contents: Option<serde::de::IgnoredAny>,
    complete: Option<serde::de::IgnoredAny>,
}

impl<'a> ReceivedLine<'a> {
    pub(super) fn parse(text: &'a [u8]) -> Result<Self, serde_json::Error> {
        if text.starts_with(b"{\"n\":") {
            return serde_json::from_slice(text).map(ReceivedLine::Part);
        }
        Ok(match serde_json::from_slice(text)? {
            Members { contents: Some(_), .. } => ReceivedLine::Header(serde_json::from_slice(text)?),
            Members { complete: Some(_), .. } => ReceivedLine::End(serde_json::from_slice(text)?),
            _ => ReceivedLine::Part(serde_json::from_slice(text)?),
        })
    }
}
