//! What the store needs to know about each kind, one file for each; `lua/kind` has the other half. [`of`] names the
//! file of each kind, and `scripts` the parts of its scripts. What depends on the mode `from_first`, and not on the
//! kind, is decided in [`change_script`] and [`option`], and in other modules.

mod distinct;
mod extreme;
mod last;
mod limits;
mod mean;
mod redis_kind;
mod sketch;
mod sum;
mod verb;

pub(super) use self::limits::{CHANGES, ValueLimits};
pub(super) use self::redis_kind::{CellSize, Folded, RedisKind};
pub(super) use self::verb::{Verb, VerbWord};

use self::distinct::DistinctValues;
use self::extreme::Extremes;
use self::last::NewestValues;
use self::mean::Means;
use self::sketch::Sketches;
use self::sum::Sums;
use super::scripts::{CHANGE_FROM_FIRST, FROM_FIRST_TRACK, Script, TrackTexts, change_of_two, fill_of_two};
use crate::board::{Board, Edition, Kind, Track};

/// Returns what the store needs to know about this kind.
pub(super) fn of(kind: Kind) -> &'static dyn RedisKind {
    match kind {
        Kind::Sum => &Sums,
        Kind::Distinct => &DistinctValues,
        Kind::Mean => &Means,
        Kind::Min => &Extremes::MIN,
        Kind::Max => &Extremes::MAX,
        Kind::Last => &NewestValues,
        Kind::Sketch => &Sketches,
    }
}

/// Returns whether all tracks of a board are ranked sums, to which `write.lua` can add amounts.
pub(super) fn adds_amounts(board: &Board) -> bool {
    let is_sum = |edition: &Edition| {
        edition.main().is_ranked() && edition.kept_slots().is_none() && of(edition.kind()).adds_in_any_order()
    };
    board.editions().iter().all(is_sum)
}

/// Returns the script that applies changes in all editions of a board, one after the other.
pub(super) fn change_script(board: &Board) -> &'static Script {
    match board.editions() {
        [current, other] => change_of_two([current, other].map(track_texts)),
        _ => change_script_of(board.edition()),
    }
}

fn change_script_of(edition: &Edition) -> &'static Script {
    let (scripts, main) = (of(edition.kind()).scripts(), edition.main());
    match edition.kept_slots() {
        _ if main.is_from_first() => &CHANGE_FROM_FIRST,
        Some(_) if main.is_ranked() => &scripts.change_kept,
        _ if main.is_ranked() => &scripts.change_ranked,
        _ => &scripts.change_unranked,
    }
}

/// Returns the script that gives what subjects have in one track to another one.
pub(super) fn fill_script(tracks: [&Track; 2]) -> &'static Script {
    fill_of_two(tracks.map(|track| TrackTexts { main: track_text(track), further: track_text(track) }))
}

/// Returns what the script for two editions uses of the tracks of one of them.
fn track_texts(edition: &Edition) -> TrackTexts {
    let main = track_text(edition.main());
    // Kept slots are unranked, whatever their total is.
    TrackTexts { main, further: edition.kept_slots().map_or(main, track_text) }
}

fn track_text(track: &Track) -> &'static str {
    let scripts = of(track.kind()).scripts();
    match track.is_ranked() {
        _ if track.is_from_first() => FROM_FIRST_TRACK,
        true => scripts.ranked_track,
        false => scripts.unranked_track,
    }
}

/// Returns the last argument of the scripts that depend on the board's kind: the option of the kind (see `lua/kind`).
pub(super) fn option(track: &Track) -> String {
    match track.is_from_first() {
        true => track.length().approximate_millis().to_string(),
        false => of(track.kind()).option(track),
    }
}

#[cfg(test)]
mod tests {
    use super::redis_kind::tests::board;
    use super::*;
    use crate::board::{Amount, BoardName, Change, Definition, Generation};
    use crate::store::sizing::Content;

    #[test]
    fn kinds_have_totals_in_rust_lua_and_estimates_alike() {
        for metric in [
            "SUM(3h, e, v, s)",
            "AVG(3h, e, v, s)",
            "MIN(3h, e, v, s)",
            "MAX(3h, e, v, s)",
            "LAST(3h, e, v, s)",
            "COUNT_DISTINCT(3h, e, s, v)",
            "APPROX_COUNT_DISTINCT(3h, e, s, v)",
        ] {
            let kind = of(board(metric).kind());
            let total = kind.total_size(Content { slots: 2, values: 2, steps: 2 });
            assert_eq!(total.is_some(), kind.has_totals(), "{metric}");
            let scripts = kind.scripts();
            for script in [&scripts.change_ranked, &scripts.change_kept, &scripts.retire] {
                let line = format!("local HAS_TOTALS = {}\n", kind.has_totals());
                assert!(script.source.contains(&line), "{metric}: {} lacks {line}", script.name());
            }
        }
    }

    #[test]
    fn kinds_whose_samples_change_a_total_say_how() {
        for metric in
            ["SUM(all, e, v, s)", "AVG(all, e, v, s)", "MIN(all, e, v, s)", "MAX(all, e, v, s)", "LAST(all, e, v, s)"]
        {
            let definition = Definition {
                keep: Some("6h".parse().unwrap()),
                ..Definition::new(metric.parse().unwrap(), "1h".parse().unwrap())
            };
            let board = Board::new(BoardName::parse("b").unwrap(), Generation(1), definition).unwrap();
            let source = &of(board.kind()).scripts().change_ranked.source;
            let takes_samples = board.edition().takes(&Change::Set { sum: Amount(1), count: 1 });
            // `entries.lua` has the first definition, which changes nothing.
            assert_eq!(source.matches("local function total_entry(").count() == 2, takes_samples, "{metric}");
        }
    }
}
