//! What the store needs to know about each kind, one file for each; `lua/kind` has the other half. [`of`] names the
//! file of each kind. What depends on the mode `from_first`, and not on the kind, is decided in [`form`] and [`option`],
//! and in other modules.

mod distinct;
mod extreme;
mod last;
mod limits;
mod mean;
mod redis_kind;
mod sketch;
mod sum;
mod timed_sum;
mod verb;

pub(super) use self::limits::{CHANGES, ValueLimits};
pub(super) use self::redis_kind::{CellSize, Folded, RedisKind};
pub(super) use self::verb::{Verb, VerbWord};

use self::distinct::StoredValues;
use self::extreme::Extremes;
use self::last::NewestValues;
use self::mean::Means;
use self::sketch::Sketches;
use self::sum::Sums;
use self::timed_sum::TimedSums;
use super::scripts::{self, EditionForms, Form, Script};
use crate::board::{Board, Edition, Kind, Track};

/// The form of tracks of the mode `from_first`.
pub(super) const FROM_FIRST: Form = &["kind/from_first"];

/// Returns what the store needs to know about this kind.
pub(super) fn of(kind: Kind) -> &'static dyn RedisKind {
    match kind {
        Kind::Sum => &Sums,
        Kind::TimedSum(_) => &TimedSums,
        Kind::Distinct => &StoredValues::DISTINCT,
        Kind::Capped { .. } => &StoredValues::CAPPED,
        Kind::Mean => &Means,
        Kind::Min => &Extremes::MIN,
        Kind::Max => &Extremes::MAX,
        Kind::Last => &NewestValues,
        Kind::Sketch => &Sketches,
    }
}

/// Returns whether all tracks of a board are ranked sums, to which `write.lua` can add amounts. It knows one bound, and
/// none of second keys.
pub(super) fn adds_amounts(board: &Board) -> bool {
    let is_sum = |edition: &Edition| {
        let is_plain = edition.kept_slots().is_none() && !edition.scale().has_keys();
        edition.main().is_ranked() && is_plain && of(edition.kind()).adds_in_any_order()
    };
    board.editions().iter().all(is_sum)
}

/// Returns the script that applies changes in all editions of a board, one after the other.
pub(super) fn change_script(board: &Board) -> &'static Script {
    let forms = |edition: &Edition| {
        let main = form(edition.main());
        // Kept slots are unranked, whatever their total is.
        EditionForms { main, further: edition.kept_slots().map_or(main, form) }
    };
    scripts::of_forms("change", &board.editions().iter().map(forms).collect::<Vec<_>>())
}

/// Returns the script that gives what subjects have in one track to another one.
pub(super) fn fill_script(tracks: [&Track; 2]) -> &'static Script {
    scripts::of_forms("fill", &tracks.map(|track| EditionForms::alike(form(track))))
}

/// Returns the script of this name that is about the data of one track.
pub(super) fn script_of(track: &Track, name: &'static str) -> &'static Script {
    scripts::of_forms(name, &[EditionForms::alike(form(track))])
}

/// Returns the script of this name that retires. It has the same text for all tracks of a kind.
pub(super) fn retiring_script(track: &Track, name: &'static str) -> &'static Script {
    scripts::of_forms(name, &[EditionForms::alike(of(track.kind()).form(true))])
}

fn form(track: &Track) -> Form {
    if track.is_from_first() { FROM_FIRST } else { of(track.kind()).form(track.is_ranked()) }
}

/// Returns the last argument of the scripts that depend on the board's kind: the option of the kind (see `lua/kind`), and
/// the steps of times where they order equal scores (see `lua/entries.lua`).
pub(super) fn option(track: &Track) -> String {
    let mut option = match track.is_from_first() {
        true => track.length().approximate_millis().to_string(),
        false => of(track.kind()).option(track),
    };
    if let Some((_, steps, is_negative)) = track.scale().times() {
        let sign = if is_negative { -1 } else { 1 };
        option.push_str(&format!(" time:{},{sign},{}", steps.length, steps.last));
    }
    option
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
            let total = kind.total_size(Content { slots: 2, values: 2, steps: 2, is_limited: false });
            // Those of timed sums are the exception: a subject with a score has none.
            assert_eq!(total.is_some(), kind.has_totals(), "{metric}");
            let forms = [EditionForms::alike(kind.form(true))];
            for script in ["change", "merge", "retire"].map(|name| scripts::of_forms(name, &forms)) {
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
            let source = &scripts::of_forms("change", &[EditionForms::alike(form(board.edition().main()))]).source;
            let takes_samples = board.edition().takes(&Change::Set { sum: Amount(1), count: 1 });
            // `entries.lua` has the first definition, which changes nothing.
            assert_eq!(source.matches("local function total_entry(").count() == 2, takes_samples, "{metric}");
        }
    }
}
