//! The Lua scripts and how they are assembled. Each script is in its own file, which begins with its contract.
//!
//! The server has no modules, so a script is the text of several files, one after the other. Later files use the names
//! that earlier ones define. The last file is the script itself. Those before it are its parts, which are listed in
//! [`scripts!`]:
//!
//! | part | defines |
//! |---|---|
//! | `clock` | `read_clock`, `format` |
//! | `stopwatch` | `worked`, which returns how long the script has run |
//! | `board` | `enter`, which checks the board and advances; `touch`, `recount` for changes; `ok` and other replies; `call`, `each_thousand` |
//! | `hidden` | what is set for subjects: `is_hidden`, `is_frozen`, `letters`, `read_letters` |
//! | `rankings` | the rankings of a track, one or one for each key: `held_score`, `scores_of`, `rank`, `unrank`, `hide`, `show`; with keys also the list of keys and counts of it; `note_negative` |
//! | `places` | the sorted set that is read: lines `better_than` a score, `lines_before` a place |
//! | `ranking` | `enter_ranking`, which chooses the ranking that is read |
//! | `operation` | `record`, which makes it safe to send a write again; `count_events`; `track`, what a script uses of one track |
//! | `entries` | the arguments of `change` by name; the steps of a change, which the following parts define: `fetch`, `prepare`, `check`, `apply`, `save`, `finish`, `score_text` |
//! | `kind/*` | a kind: how cells combine, and how an entry changes them |
//! | `scores` | `stored_of`, `accumulated`, `gather`, `save_gathered`: scores and totals of a ranked board, written together |
//! | `subtract` | `load_accumulated`, `subtract_from_scores`, `others_of`: subtracting cells of expired slots |
//! | `ranked` | the steps of a change of a ranked board; `cell`, `set_cell`, `acc_of`, `move`, `position` |
//! | `unranked` | the steps of a change of a board whose cells are stored by subject |
//! | `steps` | the fields of `track` that `change` uses |
//! | `tracks` | `tracks`, one for each track of the board, the main one being `main`; `editions`, the tracks of each edition; `begin`, which checks the operation and advances all tracks |
//!
//! `write` and `change` change all tracks of a board, its windows or its total and its kept slots, so that an entry
//! counts in all of them or in none. Their parts before `tracks` are the text of a function whose parameters are called
//! `KEYS` and `ARGV`. It is called for each track with the keys and arguments of that track, so it has local names of
//! its own for each of them. A function may have 200 local names.
//!
//! A board with two editions has tracks of any two forms. Its script `change` is assembled when it is first needed: see
//! [`change_of_two`]. `fill` is about two tracks of any forms, and is assembled in the same way.
//!
//! The kinds `sum`, `mean`, `extreme`, `last` and `sketch` are pure: they compute, and call no commands. An accumulated
//! state, `acc`, is what cells of a subject come to. Each of these kinds defines:
//!
//! | name | meaning |
//! |---|---|
//! | `HAS_TOTALS` | whether totals are stored; if not, the score stands for the total |
//! | `sound(cell)` | returns whether a text is a valid cell |
//! | `new()`, `read_total(text)` | return the state of no cells, or of a stored total; nil if it is not valid |
//! | `fold(acc, start, cell)` | adds a cell to the state |
//! | `total_of(acc)`, `score_of(acc)` | return the texts to store, or nil for none |
//! | `withdraw(acc, start, cell, next_other)` | removes the oldest cell from the state and returns whether that changed it; `next_other` returns the subject's other cells, one at each call |
//! | `exceeds(before, entry)` | returns whether the cell after the entry would be beyond its bound; kinds without a bound do not define it. Only for `change`, because it uses names of `entries` |
//! | `change_cell(before, entry, acc)` | returns the cell after the entry, `''` for none, or nil if it does not change; then what happened to `acc`, which is nil on an unranked board: nil if it is changed accordingly, `same` if it needs no change, `lost` if it must be computed from all cells again. The cell before is valid, and the new one is within its bound. Only for `change` too |
//!
//! The kinds `distinct` and `from_first` store other data than cells, so they define the steps of a change themselves.
//!
//! `merge` is about one track. It has the parts of `change`, and no function around them.
//!
//! The scripts of each kind are in its [`KindScripts`]. The module `kinds` chooses those of a board.
//!
//! The arguments that every call of a script has are listed in [`scripts!`] by name, and nowhere by number. The texts
//! read them as `ARGV.name`, which becomes `ARGV[number]` here, and `FIXED_ARGUMENTS` becomes their number. Callers
//! give each argument with its name, and in debug builds names and order must be those of the list.

mod pairs;
mod script;

use std::sync::LazyLock;

pub(super) use self::pairs::TrackTexts;
pub(super) use self::script::{FixedArguments, Script, ScriptCall};
use crate::board::Order;

/// The scripts of a kind.
#[derive(Debug)]
pub(super) struct KindScripts {
    /// Applies changes of a ranked board one after the other.
    pub change_ranked: LazyLock<Script>,
    /// Applies changes of an unranked board, whose kept slots have the same form as its total.
    pub change_unranked: LazyLock<Script>,
    /// Applies changes of a ranked board over all time that keeps slots.
    pub change_kept: LazyLock<Script>,
    /// Retires slots.
    pub retire: LazyLock<Script>,
    /// Retires what a small ranking of a key has in expired slots.
    pub retire_key: LazyLock<Script>,
    /// Merges contents of an import into a ranked track.
    pub merge_ranked: LazyLock<Script>,
    /// Merges contents of an import into an unranked track.
    pub merge_unranked: LazyLock<Script>,
    /// What `change` uses of a ranked track, and of an unranked one: see [`TrackTexts`].
    pub ranked_track: &'static str,
    pub unranked_track: &'static str,
}

impl KindScripts {
    /// Returns what `change` uses of an edition whose tracks are all ranked.
    #[cfg(test)]
    fn texts(&self) -> TrackTexts {
        TrackTexts { main: self.ranked_track, further: self.ranked_track }
    }
}

/// The texts of parts, one after the other.
macro_rules! texts {
    ($($part:literal),*) => {
        concat!($(include_str!(concat!("../lua/", $part, ".lua")), "\n",)*)
    };
}

/// A script that changes all tracks of a board: `$track_of` returns one of them from its keys and arguments.
macro_rules! of_tracks {
    ($name:literal, $track_of:expr, $further_of:expr, [$($argument:literal),*]) => {
        of_tracks!($name, 5, $track_of, $further_of, [$($argument),*], false)
    };
    ($name:literal, $keys:literal, $track_of:expr, $further_of:expr, [$($argument:literal),*], $repeatable:expr) => {
        LazyLock::new(|| {
            let source = concat!(
                "local function track_of(KEYS, ARGV)\n",
                $track_of,
                $further_of,
                "local forms = {{main = track_of, further = further_of}}\n\n",
                texts!("tracks"),
                include_str!(concat!("../lua/", $name, ".lua"))
            );
            Script::new($name, source, $keys, &[$($argument),*], $repeatable)
        })
    };
}

/// The body of a function that returns one track, as `change` uses it.
macro_rules! track_text {
    ($($part:literal),*) => {
        concat!(texts!("clock", "board", "hidden", "rankings", "operation", "entries", $($part,)* "steps"), "return track\nend\n\n")
    };
}

/// The function for further tracks of the same form as the main one.
macro_rules! alike {
    () => {
        "local further_of = track_of\n\n"
    };
}

macro_rules! script {
    ($name:literal, [$($before:literal),*], $keys:literal, [$($argument:literal),*], $is_repeatable:expr) => {
        LazyLock::new(|| {
            let source = concat!(texts!($($before),*), include_str!(concat!("../lua/", $name, ".lua")));
            Script::new($name, source, $keys, &[$($argument),*], $is_repeatable)
        })
    };
}

macro_rules! is_repeatable {
    () => {
        false
    };
    (repeatable) => {
        true
    };
}

macro_rules! scripts {
    (
        { $($constant:ident = $name:literal after [$($before:literal),*] with $keys:literal keys [$($argument:literal),*] $($repeatable:ident)?;)* }
        write $write_arguments:tt
        compare $compare_arguments:tt
        end_fill $end_fill_arguments:tt
        moderate $moderate_arguments:tt
        change $change_arguments:tt { $($change:ident: $parts:tt;)* }
        retire $retire_arguments:tt
        retire_key $retire_key_arguments:tt
        merge $merge_arguments:tt
        kinds { $($kind:ident: $ranked:tt, $unranked:tt, $retired:tt;)* }
    ) => {
        $(pub(super) static $constant: LazyLock<Script> =
            script!($name, [$($before),*], $keys, [$($argument),*], is_repeatable!($($repeatable)?));)*
        pub(super) static WRITE: LazyLock<Script> = of_tracks!(
            "write",
            concat!(texts!("clock", "board", "hidden", "rankings", "operation"), "return track\nend\n\n"),
            alike!(),
            $write_arguments
        );
        pub(super) static COMPARE: LazyLock<Script> = of_tracks!(
            "compare",
            5,
            concat!(texts!("clock", "board", "hidden", "rankings", "operation"), "return track\nend\n\n"),
            alike!(),
            $compare_arguments,
            true
        );
        pub(super) static END_FILL: LazyLock<Script> = of_tracks!(
            "end_fill",
            6,
            concat!(texts!("clock", "board", "hidden", "rankings", "operation"), "return track\nend\n\n"),
            alike!(),
            $end_fill_arguments,
            true
        );
        pub(super) static MODERATE: LazyLock<Script> = of_tracks!(
            "moderate",
            8,
            concat!(texts!("clock", "board", "hidden", "rankings", "operation"), "return track\nend\n\n"),
            alike!(),
            $moderate_arguments,
            true
        );
        $(pub(super) static $change: LazyLock<Script> = scripts!(change $change_arguments $parts);)*
        /// The arguments that every call of `change` has.
        const CHANGE_ARGUMENTS: &[&str] = &$change_arguments;
        $(pub(super) static $kind: KindScripts = KindScripts {
            change_ranked: scripts!(change $change_arguments $ranked),
            change_unranked: scripts!(change $change_arguments $unranked),
            change_kept: scripts!(kept $change_arguments $ranked $unranked),
            retire: scripts!(retire $retire_arguments $retired),
            retire_key: scripts!(retire_key $retire_key_arguments $retired),
            merge_ranked: scripts!(merge $merge_arguments $ranked),
            merge_unranked: scripts!(merge $merge_arguments $unranked),
            ranked_track: scripts!(track $ranked),
            unranked_track: scripts!(track $unranked),
        };)*

        #[cfg(test)]
        fn all() -> Vec<&'static Script> {
            vec![
                $(&$constant,)*
                &WRITE,
                &COMPARE,
                &END_FILL,
                &MODERATE,
                change_of_two([SUM.texts(), DISTINCT.texts()]),
                $(&$change,)*
                $(&$kind.change_ranked, &$kind.change_unranked, &$kind.change_kept, &$kind.retire, &$kind.retire_key),*,
                $(&$kind.merge_ranked, &$kind.merge_unranked),*
            ]
        }
    };
    (change $arguments:tt [$($part:literal),*]) => {
        of_tracks!("change", track_text!($($part),*), alike!(), $arguments)
    };
    (track [$($part:literal),*]) => {
        track_text!($($part),*)
    };
    (kept $arguments:tt [$($part:literal),*] [$($further:literal),*]) => {
        of_tracks!(
            "change",
            track_text!($($part),*),
            concat!("local function further_of(KEYS, ARGV)\n", track_text!($($further),*)),
            $arguments
        )
    };
    (retire $arguments:tt [$part:literal]) => {
        script!("retire", ["stopwatch", "clock", "board", "hidden", "rankings", $part, "scores", "subtract"], 8, $arguments, false)
    };
    (retire_key $arguments:tt [$part:literal]) => {
        script!("retire_key", ["clock", "board", "hidden", "rankings", $part, "scores", "subtract"], 5, $arguments, true)
    };
    (merge $arguments:tt [$($part:literal),*]) => {
        script!("merge", ["clock", "board", "hidden", "rankings", "operation", "entries", $($part),*], 5, $arguments, false)
    };
}

scripts! {
    {
        ADD = "add" after [] with 1 keys ["board", "operation", "items", "tracks", "keys"];
        LINES = "lines" after ["clock", "board", "hidden", "places", "ranking"] with 6 keys
            ["board", "order", "key", "center", "at", "subject", "before", "after", "capped", "ties"] repeatable;
        BETWEEN = "between" after ["clock", "board", "hidden", "places", "ranking"] with 6 keys
            ["board", "order", "key", "from_score", "from_subject", "till_score", "till_subject", "samples",
            "all_up_to"] repeatable;
        DISTRIBUTION = "distribution" after ["clock", "board", "hidden", "places", "ranking"] with 6 keys
            ["board", "order", "key", "percentiles"] repeatable;
        EARLIER = "earlier" after ["clock", "board"] with 5 keys ["board"] repeatable;
        LOOKUP = "lookup" after ["clock", "board", "hidden", "places", "ranking"] with 6 keys
            ["board", "order", "key", "ranks", "near", "subjects"] repeatable;
        SUBJECTS = "subjects" after ["clock", "board", "hidden", "places", "ranking"] with 6 keys
            ["board", "order", "key", "ranks", "subjects", "capped"] repeatable;
        RANKING_KEYS = "ranking_keys" after ["clock", "board", "hidden", "rankings"] with 5 keys ["board", "from", "prefix", "limit"] repeatable;
        MODERATED = "moderated" after ["clock", "board"] with 7 keys ["board", "from", "prefix", "limit"] repeatable;
        SHEETS = "sheets" after ["clock", "board"] with 6 keys ["board"] repeatable;
        CHANGE_SHEET = "change_sheet" after ["clock", "board"] with 6 keys ["board", "id", "from", "to"];
        STATUS = "status" after ["clock", "board", "hidden", "rankings"] with 5 keys ["board", "slots"] repeatable;
        VALUES = "values" after ["clock", "board", "places"] with 7 keys
            ["board", "order", "offset", "last_seen", "value", "limit"] repeatable;
        READ_SLOTS = "subject_slots" after ["clock", "board"] with 7 keys
            ["board", "stored", "from", "till", "capped", "action", "subject"] repeatable;
        FORGET = "subject_slots" after ["clock", "board"] with 7 keys
            ["board", "stored", "from", "till", "capped", "action", "subject"];
        REMOVE = "remove" after ["clock", "board", "hidden", "rankings"] with 5 keys ["board", "subject", "version", "forget"];
        AUDIT = "audit" after ["clock", "board", "hidden", "rankings"] with 5 keys ["board", "from", "slots", "subjects"] repeatable;
        AUDIT_FIND = "audit_find" after ["clock", "board", "hidden", "rankings"] with 5 keys
            ["board", "place", "key", "subjects", "version", "from", "slots", "cursor", "read"] repeatable;
        AUDIT_EARLIER = "audit_earlier" after ["clock", "board"] with 5 keys
            ["board", "below", "slots", "subjects"] repeatable;
        AUDIT_REPAIR = "audit_repair" after ["clock", "board", "hidden", "rankings"] with 5 keys
            ["board", "version", "read_at", "subjects", "slots"] repeatable;
        CONTENTS = "contents" after ["clock", "board"] with 5 keys
            ["board", "cells", "from", "slots", "cursor", "read"] repeatable;
        CONTENTS_FIND = "contents_find" after ["clock", "board"] with 7 keys
            ["board", "from", "cursor", "subjects"] repeatable;
        CONTENTS_READ = "contents_read" after ["clock", "board"] with 5 keys ["board", "stored", "kept", "most"] repeatable;
        IMPORT = "import" after [] with 1 keys
            ["generation", "epoch", "action", "import", "samples", "most"] repeatable;
        HEAL = "heal" after [] with 1 keys ["generation", "epoch", "action", "instance", "run", "duration", "reason"] repeatable;
        SWEEP = "sweep" after ["stopwatch", "clock", "board"] with 8 keys
            ["board", "stored", "due", "current", "kept", "cells"];
        EDITIONS = "editions" after ["clock"] with 1 keys
            ["board", "next", "action", "definition", "editions", "stay", "current", "other", "leaving", "run",
            "parts", "announced"] repeatable;
        LEASE = "lease" after [] with 1 keys ["generation", "epoch", "action", "duration", "contents", "ids"] repeatable;
        UNDEFINE = "undefine" after [] with 1 keys ["generation", "epoch"];
        DEFINE = "define" after ["clock"] with 1 keys ["board", "definition", "parts", "run", "current"] repeatable;
        ANNOUNCE = "announce" after [] with 2 keys ["name", "version", "gone_at"];
        ANNOUNCED = "announced" after [] with 1 keys ["generation", "epoch"] repeatable;
        ROWS = "rows" after [] with 1 keys ["known"] repeatable;
        CHANGE_ROW = "change_row" after [] with 1 keys
            ["id", "from", "to", "version", "earlier", "most_rows", "most_bytes"];
        SET_CLOCK = "set_clock" after [] with 1 keys ["action", "mode", "time"] repeatable;
    }
    write [
        "board", "operation", "sizes", "bound", "most_keys", "slots", "entries", "coded", "bucket", "buckets", "horizon", "items",
        "edition", "margins"
    ]
    compare ["board", "operation", "sizes", "stored", "life"]
    end_fill ["board", "operation", "sizes", "run", "ends"]
    moderate ["board", "operation", "sizes", "version", "most", "is_final"]
    change [
        "board", "operation", "sizes", "bound", "most_keys", "slots", "subjects", "entries", "bucket", "horizon",
        "first_subject_key", "first_bucket_key", "buckets", "oldest", "period", "edition"
    ] {
        CHANGE_FROM_FIRST: ["kind/from_first"];
    }
    retire [
        "board", "slot", "bucket", "oldest_bucket", "subjects", "instance", "pause", "oldest_period", "kept", "version"
    ]
    retire_key ["board", "key", "most", "cells", "all", "version"]
    merge [
        "board", "operation", "import", "piece", "expired", "refused", "events", "bound", "slots", "subjects", "entries",
        "first_subject_key", "oldest", "period"
    ]
    // For each kind: the parts of `change` and `merge` on ranked boards, of both on unranked boards, and of `retire`.
    kinds {
        SUM: ["kind/sum", "scores", "ranked"], ["kind/sum", "unranked"], ["kind/sum"];
        MEAN: ["kind/mean", "scores", "ranked"], ["kind/mean", "unranked"], ["kind/mean"];
        LAST: ["kind/last", "scores", "ranked"], ["kind/last", "unranked"], ["kind/last"];
        EXTREME: ["kind/extreme", "scores", "ranked"], ["kind/extreme", "unranked"], ["kind/extreme"];
        SKETCH: ["kind/sketch", "scores", "ranked"], ["kind/sketch", "unranked"], ["kind/sketch"];
        DISTINCT: ["kind/sum", "scores", "ranked", "kind/distinct"], ["kind/distinct"], ["kind/sum"];
    }
}

/// Returns an order as scripts know it.
pub(super) fn order_argument(order: Order) -> &'static str {
    match order {
        Order::Desc => "desc",
        Order::Asc => "asc",
    }
}

/// Returns the script `change` for two editions, the current one first.
pub(super) fn change_of_two(editions: [TrackTexts; 2]) -> &'static Script {
    pairs::change(CHANGE_ARGUMENTS, editions)
}

/// Returns the script `fill` for two tracks, first the one that gives. It has the arguments of `change`.
pub(super) fn fill_of_two(tracks: [TrackTexts; 2]) -> &'static Script {
    pairs::fill(CHANGE_ARGUMENTS, tracks)
}

/// What `change` uses of a track of the mode `from_first`.
pub(super) const FROM_FIRST_TRACK: &str = track_text!("kind/from_first");

#[cfg(test)]
mod tests {
    use redis::cmd;

    use super::script::{BOARD, OPERATION};
    use super::*;

    /// Returns the contract of the script, without those of its parts.
    fn own_header(script: &Script) -> &str {
        script.source.rsplit("\n\n-- ").find(|part| part.contains("-- why a script:")).unwrap_or(script.source)
    }

    #[test]
    fn every_argument_is_known_and_used_and_described_by_its_name_only() {
        for script in all() {
            let Script { name, source, code, arguments, .. } = script;
            assert!(!code.contains("ARGV.") && !code.contains("argv."), "{name} reads an argument it does not list");
            for word in ["ARGV[", "argv["] {
                let mut numbered = source.split(word).skip(1);
                assert!(!numbered.any(|rest| rest.starts_with(|c: char| c.is_ascii_digit())), "{name} uses a number");
            }
            let own = arguments.iter().filter(|name| !BOARD.contains(name) && !OPERATION.contains(name));
            for argument in own {
                // A text reads the first argument of a name.
                let times = arguments.iter().filter(|name| *name == argument).count();
                assert_eq!(times, 1, "{name} has two arguments {argument}");
                assert!(
                    own_header(script).contains(&format!("`{argument}`")),
                    "{name}.lua does not describe {argument}"
                );
                let is_used = |word: &str| source.contains(&format!("{word}.{argument}"));
                assert!(is_used("ARGV") || is_used("argv"), "{name} does not use {argument}");
            }
        }
    }

    #[test]
    fn every_script_that_checks_the_generation_checks_the_epoch() {
        for script in all().into_iter().filter(|script| script.arguments.contains(&"generation")) {
            // The script that creates boards only compares with those that exist.
            let wanted = if script.name == "define" { "== ARGV.epoch" } else { "~= ARGV.epoch" };
            let lower = wanted.replace("ARGV", "argv");
            assert!(script.source.contains(wanted) || script.source.contains(&lower), "{}", script.name);
        }
    }

    #[test]
    #[cfg(debug_assertions)]
    #[should_panic = "set_clock got"]
    fn arguments_in_a_wrong_order_are_found() {
        SET_CLOCK.command(ScriptCall::default().key("k").arg("mode", "system").arg("action", "open").arg("time", 7));
    }

    #[test]
    fn every_script_documents_its_contract_and_scans_no_keys() {
        for script in all() {
            let own = own_header(script);
            for part in ["-- KEYS ", "-- ARGV ", "-- reply ", "-- cost ", "-- why a script:"] {
                assert!(own.contains(part), "{}.lua does not say: {part}", script.name);
            }
            assert!(!script.code.contains("'KEYS'") && !script.code.contains("'SCAN'"), "{}", script.name);
        }
    }

    #[test]
    fn a_call_can_be_sent_with_the_script_text() {
        let mut call = ScriptCall::default();
        call.key("k").arg("action", "a\r\n").arg("mode", "b").arg("time", 7);
        let mut wanted = cmd("EVAL");
        wanted.arg(&SET_CLOCK.code).arg(1).arg("k").arg("a\r\n").arg("b").arg("7");
        let with_text = SET_CLOCK.with_text(&SET_CLOCK.command(&call));
        assert_eq!(with_text.get_packed_command(), wanted.get_packed_command());
    }

    #[test]
    fn declared_key_counts_match_the_scripts() {
        for script in all() {
            let named = script.code.split("KEYS[").skip(1);
            let highest = named.filter_map(|rest| rest.split(']').next()?.parse::<usize>().ok()).max();
            assert_eq!(highest, Some(script.fixed_keys()), "{}", script.name);
        }
    }
}
