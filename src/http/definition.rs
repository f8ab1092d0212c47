//! Board definitions: parsing, and their form in responses.

use std::collections::{HashMap, HashSet};

use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use utoipa::{PartialSchema, ToSchema};

use super::problem::Problem;
use super::{object, schemas};
use crate::board::{
    Board, BoardEdition, BoardName, Cap, Cover, Definition, Kind, Metric, Mode, Movement, Order, Prior, Ranks, Season,
    Span, Stamp, Starts, TieBreak, Ties,
};
use crate::service::IdCost;

/// A definition with all defaults, and the slots that it leads to.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = CanonicalDefinition)]
pub(super) struct DefinitionShown {
    #[schema(schema_with = schemas::board)]
    board: BoardName,
    /// The metric in its canonical form.
    metric: String,
    /// The length of a slot; null over all time, where there are no slots unless `keep` is set.
    #[schema(value_type = Option<String>, required = true, example = "1h")]
    slot: Option<Span>,
    /// Number of decimals of scores.
    #[schema(maximum = 9)]
    decimals: u8,
    /// Time zone with whose midnights slots of an hour and more are aligned.
    timezone: String,
    /// Order of the ranking: `desc` or `asc`.
    #[schema(schema_with = Order::schema)]
    order: Order,
    /// `current`, or `full` if the window has one additional slot, so that it never covers less than its length.
    #[schema(schema_with = Cover::schema)]
    cover: Cover,
    /// Whether the board has a ranking. Subjects of unranked boards are read one by one.
    ranked: bool,
    /// `sliding`, or `from_first` if the window of each subject begins with its first event.
    #[schema(schema_with = Mode::schema)]
    mode: Mode,
    /// Retention time of slots on an unranked board, for reads with `as_of`; null for the window and one slot. Over all
    /// time, the time for which the newest slots are kept beside the total; null for none.
    #[schema(value_type = Option<String>, required = true, example = "48h")]
    keep: Option<Span>,
    /// Number of measurements that a subject needs to be ranked, for AVG.
    #[schema(minimum = 1)]
    min_samples: u32,
    /// Measurements that each subject has beside its own, for AVG. Absent if there are none.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(required = false, nullable = false)]
    prior: Option<Prior>,
    /// Second key by which subjects with the same score are ordered. Absent if there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(required = false, nullable = false)]
    tie_break: Option<TieBreak>,
    /// Subject that is first among equal scores: `first`, the one that has had its score for longer, or `last`, with the
    /// precision of times if that is not a second. Absent if equal scores are ordered by name, or by a second key.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = String, required = false, nullable = false, example = "first")]
    ties: Option<Ties>,
    /// `ordinal` if each line has a rank of its own. Absent if subjects that tie share a rank.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(required = false, nullable = false)]
    ranks: Option<Ranks>,
    /// Most that one person adds to one subject in a day. Absent if there is no cap.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(required = false, nullable = false)]
    cap: Option<Cap>,
    /// Maximum number of values stored per subject, for COUNT_DISTINCT, or of counters of a `cap`; null for no limit.
    #[schema(required = true, minimum = 1)]
    max_values: Option<u32>,
    /// Maximum number of keys with a ranking. Absent unless the metric has `BY`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(required = false, nullable = false, minimum = 1)]
    max_keys: Option<u32>,
    /// End of its slot that the time of a sample denotes: `start` or `end`.
    #[schema(schema_with = Stamp::schema)]
    stamp: Stamp,
    /// Number of parts that a Redis store divides the board into; null if it is not divided.
    #[schema(required = true, minimum = 1, maximum = 64)]
    shards: Option<u32>,
    /// Time for which ids are remembered; null for the default, which `ids` has.
    #[schema(value_type = Option<String>, required = true, example = "30d")]
    dedupe: Option<Span>,
    /// Further windows of the metric, each with its slots; empty if the board has one window.
    #[schema(example = json!(["7d/6h", "all"]))]
    windows: Vec<String>,
    /// Number of slots in the window; 0 over all time.
    slots_in_window: u32,
    /// Number of slots that are kept; 0 over all time unless `keep` is set.
    slots_kept: u32,
    /// The season, with its defaults. Absent if the board has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(required = false, nullable = false)]
    season: Option<Season>,
    /// The earlier time whose ranks lines show: `1h`, `1d` or `period`. Absent if they show none.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = String, required = false, example = "1d")]
    movement: Option<Movement>,
    /// The day or hour with which a slot or period of a day or longer begins. Absent if the definition has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = String, required = false, example = "2026-11-02T05:00")]
    starts: Option<Starts>,
    /// The board that keeps the attributes of the subjects. Absent if it keeps them itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = String, required = false, example = "players")]
    attributes: Option<BoardName>,
    ids: Ids,
    /// Notes about windows in which one slot is a large part, about decimals of amounts with a weight, about the scores that a
    /// second key leaves room for, and about the day on which slots of weeks begin. Absent if there are none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(required = false)]
    notes: Vec<String>,
}

/// What the ids of a board's items cost. It takes `bytes_per_id` for each id that arrived within `stored_at_most`.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = IdsOfBoard)]
pub(super) struct Ids {
    /// Time for which an id counts once, from its arrival: `dedupe`, or by default as long as an item can count, at
    /// most 24 hours.
    #[schema(value_type = String, example = "24h")]
    horizon: Span,
    /// Maximum time for which an id is stored. It is longer than the horizon, because ids are deleted together with
    /// others.
    #[schema(value_type = String, example = "36h")]
    stored_at_most: Span,
    /// Memory of an id of 16 bytes in the store in use, in bytes.
    bytes_per_id: u64,
}

impl Ids {
    fn of(board: &Board, cost: IdCost) -> Self {
        Self {
            horizon: board.definition().dedupe.unwrap_or_else(|| Span::of_millis(board.dedupe_horizon())),
            stored_at_most: Span::of_millis(cost.stored_at_most),
            bytes_per_id: cost.bytes,
        }
    }
}

/// An example of a definition in a response.
pub(super) fn example() -> Value {
    json!({
        "board": "hot-posts", "metric": "COUNT(24h, like, post_id)", "slot": "1h", "decimals": 0, "timezone": "UTC",
        "order": "desc", "cover": "current", "ranked": true, "mode": "sliding", "keep": null, "min_samples": 1,
        "max_values": null, "stamp": "start", "shards": null, "dedupe": null, "windows": [],
        "slots_in_window": 24, "slots_kept": 24,
        "ids": {"horizon": "24h", "stored_at_most": "36h", "bytes_per_id": 37},
    })
}

impl DefinitionShown {
    /// Adds a note, if there is one.
    pub(super) fn note(&mut self, note: Option<String>) {
        self.notes.extend(note);
    }

    pub(super) fn of(edition: &BoardEdition, id_cost: IdCost) -> Self {
        let (board, definition, main) = (edition.board(), edition.definition(), edition.main());
        Self {
            board: board.name().clone(),
            metric: definition.metric.to_string(),
            slot: definition.slot,
            decimals: definition.decimals.digits(),
            timezone: definition.timezone.name().to_owned(),
            order: definition.order,
            cover: definition.cover,
            ranked: definition.ranked,
            mode: definition.mode,
            keep: definition.keep,
            min_samples: definition.min_samples,
            prior: definition.prior,
            tie_break: definition.tie_break.clone(),
            ties: definition.ties,
            ranks: Some(definition.ranks).filter(|ranks| *ranks != Ranks::Shared),
            cap: definition.cap.clone(),
            max_values: definition.max_values,
            max_keys: definition.most_keys(),
            stamp: definition.stamp,
            shards: definition.shards,
            dedupe: definition.dedupe,
            windows: definition.windows.iter().map(ToString::to_string).collect(),
            slots_in_window: if main.is_all_time() { 0 } else { main.slots() },
            slots_kept: match edition.kept_slots() {
                Some(kept_slots) => kept_slots.kept(),
                None if main.is_all_time() => 0,
                None => main.kept(),
            },
            ids: Ids::of(board, id_cost),
            season: definition.season,
            movement: definition.movement,
            starts: definition.starts,
            attributes: definition.attributes.clone(),
            notes: notes(edition),
        }
    }
}

/// Returns what is said about an edition beside its definition.
fn notes(edition: &BoardEdition) -> Vec<String> {
    let definition = edition.definition();
    let coarse = edition
        .windows()
        .iter()
        .filter(|window| !window.is_calendar())
        .filter_map(|window| Some(format!("window {}: {}", window.length(), window.coarseness(window.slots())?)));
    let of_keys = edition.tracks().iter().filter_map(|track| track.note_of_keys());
    let of_times = matches!(edition.kind(), Kind::TimedSum(_)).then(|| {
        "ties: an item that is taken back leaves its time, and any item moves the time of its subject; let only callers write whom you \
         trust"
            .to_owned()
    });
    let of_amounts = definition.metric.terms.notes(definition.decimals);
    coarse.chain(of_amounts).chain(of_keys).chain(of_times).chain(definition.notes_of_weeks()).collect()
}

/// Parses a definition. The problem of an invalid metric has the column, that of an invalid number the limits.
pub(super) fn parse(body: &[u8]) -> Result<Definition, Problem> {
    object::parse(body).map_err(|problem| {
        let field = problem.member("field").and_then(|field| field.as_str()).unwrap_or_default();
        match (field, Definition::limits(field)) {
            (_, Some(limits)) => problem.with("minimum", *limits.start()).with("maximum", *limits.end()),
            ("metric", None) => match column(body) {
                Some(column) => problem.with("column", column),
                None => problem,
            },
            _ => problem,
        }
    })
}

/// Returns the keys that a definition names, also those with the value null.
pub(super) fn names(body: &[u8]) -> HashSet<String> {
    let named: Result<HashMap<String, IgnoredAny>, _> = serde_json::from_slice(body);
    named.unwrap_or_default().into_keys().collect()
}

/// Returns the column at which the metric of a definition is invalid.
fn column(body: &[u8]) -> Option<usize> {
    #[derive(Deserialize)]
    struct OnlyMetric {
        metric: String,
    }
    let OnlyMetric { metric } = serde_json::from_slice(body).ok()?;
    metric.parse::<Metric>().err().map(|error| error.column)
}
