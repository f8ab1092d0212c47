//! What changes for readers of a board when its other edition becomes the board.

use serde::Serialize;
use serde_json::{Value, json};
use utoipa::ToSchema;

use super::definition::DefinitionShown;
use super::state::HttpState;
use crate::board::{BoardEdition, Cover, Definition, Kind, Metric, NoSamples, Tiers, WindowLength};
use crate::service::DualRunState;

/// What changes for readers when an edition becomes the board.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct EditionChanges {
    /// The keys of the definition in which the edition differs from the board.
    changes: Vec<ChangedKey>,
    /// What no longer works once the edition is the board, one sentence each; empty if every read still works.
    #[schema(example = json!(["window=1h: there are the windows 48h and all"]))]
    stops: Vec<String>,
}

/// A key of a definition, with the values of two editions.
#[derive(Debug, Serialize, ToSchema)]
struct ChangedKey {
    #[schema(example = "windows")]
    key: &'static str,
    /// The value that the board has; null for none.
    #[schema(value_type = Object, nullable = true, example = json!(["1h/1m", "all"]))]
    board: Value,
    /// The value that the edition has; null for none.
    #[schema(value_type = Object, nullable = true, example = json!(["all"]))]
    edition: Value,
}

/// The changes of the example of a successor.
pub(super) fn example() -> [Value; 2] {
    let metric = json!({"key": "metric", "board": "COUNT(24h, like, post_id)", "edition": "COUNT(7d, like, post_id)"});
    [json!([metric]), json!(["window=24h: the only window is 7d"])]
}

impl EditionChanges {
    pub(super) fn of(state: &DualRunState, http: &HttpState) -> Self {
        let (edition, board) = (&state.edition, state.edition.board().current());
        let shown = |edition: &BoardEdition| {
            let shown = DefinitionShown::of(edition, http.service.id_cost(edition.board()));
            serde_json::to_value(shown).unwrap_or_default()
        };
        let [before, after] = [shown(&board), shown(edition)];
        let changed = |key: &&str| before[key] != after[key];
        let change = |key| ChangedKey { key, board: before[key].clone(), edition: after[key].clone() };
        Self {
            changes: Definition::KEYS.into_iter().filter(changed).map(change).collect(),
            stops: stops(&board, edition, state.tiers.as_deref()),
        }
    }
}

/// Returns what works with an edition and does not with another one.
fn stops(before: &BoardEdition, after: &BoardEdition, tiers: Option<&Tiers>) -> Vec<String> {
    let [old, new] = [before.definition(), after.definition()];
    let mut stops = Vec::new();
    if old.ranked && !new.ranked {
        stops.push("rankings, ranks and neighbors: there is no ranking".to_owned());
    }
    let lengths: Vec<String> = after.windows().iter().map(|window| window.length().to_string()).collect();
    let has = match lengths.as_slice() {
        [only] => format!("the only window is {only}"),
        [first @ .., last] => format!("there are the windows {} and {last}", first.join(", ")),
        [] => String::new(),
    };
    let gone =
        before.windows().iter().map(|window| window.length()).filter(|length| after.window_of(*length).is_none());
    stops.extend(gone.map(|length| format!("window={length}: {has}")));
    if before.kept_slots().is_some() && after.kept_slots().is_none() {
        stops.push("shorter windows of single subjects (last=): no slots are kept beside the total".to_owned());
    }
    if old.movement.is_some() && new.movement.is_none() {
        stops.push("from, the earlier rank in lines: there is none without movement".to_owned());
    }
    if old.kind() == Kind::Distinct && new.kind() != Kind::Distinct {
        stops.push("…/values of a subject: no values are stored".to_owned());
    }
    if counted(&old.metric) != counted(&new.metric) {
        stops.push(format!("queries and rules by the metric {}: it is not that of the edition", old.metric));
    } else if old.cap.is_none() && new.cap.is_some() {
        stops.push(format!("queries and rules by the metric {} that do not name the board: it has a cap", old.metric));
    }
    if old.tie_break != new.tie_break {
        stops.push(match (&new.tie_break, new.ties) {
            (Some(_), _) => "items without the second key that its tie_break asks for: they are rejected".to_owned(),
            (None, Some(_)) => {
                "the second key: lines have a time, and increments with tie_break are rejected".to_owned()
            }
            (None, None) => "the second key: lines have none, and increments with tie_break are rejected".to_owned(),
        });
    }
    match (&old.cap, &new.cap) {
        (before, Some(cap)) if before.as_ref().is_none_or(|before| before.per != cap.per) => {
            stops.push(format!(
                "items without the person that its cap asks for, the field '{}': they are rejected",
                cap.per
            ));
        }
        (Some(_), None) => {
            let field = new.kind().field();
            stops.push(format!("the cap for each person: there is none, and increments have '{field}'"));
        }
        _ => {}
    }
    if old.ties.is_some() && new.ties.is_none() {
        stops.push("the times of lines: equal scores have another order".to_owned());
    }
    if before.refuses_samples().is_none() && after.refuses_samples() == Some(NoSamples::Times) {
        stops.push("samples: its ties need the time of each item".to_owned());
    }
    if !before.scale().has_keys() && after.scale().has_keys() && new.cover == Cover::Full {
        stops.push("edge=weighted: what orders equal scores is not known for a fraction of a slot".to_owned());
    }
    let counts_events = new.kind().is_sum() && new.metric.terms.count_events();
    if old.metric.terms != new.metric.terms && !new.kind().counts_values() && !counts_events {
        stops.push(
            "increments: they do not say what the edition counts, and count there only if the metric has the same \
                    types, fields and weights"
                .to_owned(),
        );
    }
    let scores_differ = counted(&old.metric) != counted(&new.metric)
        || old.order != new.order
        || old.prior != new.prior
        || old.cap != new.cap;
    if scores_differ && tiers.is_some_and(Tiers::have_scores) {
        stops.push("tiers by score: their bounds stay, while scores are other ones; see GET …/tiers".to_owned());
    }
    stops
}

/// Returns a metric without its window.
fn counted(metric: &Metric) -> Metric {
    Metric { window: WindowLength::All, ..metric.clone() }
}
