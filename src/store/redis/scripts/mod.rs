//! The Lua scripts and how they are assembled. Each script is in its own file, which begins with its contract.
//!
//! The server has no modules, so a script is the text of several files, one after the other. Later files use the names
//! that earlier ones define. The last file is the script itself. Those before it are its parts. The head of each file
//! says the rest, in lines of comment:
//!
//! | line | meaning |
//! |---|---|
//! | `--- @include rankings, enter` | the parts that come before this file, in this order. What they include themselves comes before them, and each part comes once |
//! | `--- @each_track operation` | the parts of the function for each track, of a script about several tracks |
//! | `--- @arguments board.lua, from, slots` | the arguments that every call has, in their order. `board.lua` stands for those that this file lists |
//! | `--- @repeatable` | the script may be called again when the outcome of the first call is unknown |
//!
//! The number of keys that every call has is the highest one that the text reads, as in `KEYS[6]`. The texts read
//! arguments as `ARGV.name`, which becomes `ARGV[number]` here, and `FIXED_ARGUMENTS` becomes their number. Callers give
//! each argument with its name, and in debug builds names and order must be those of the list.
//!
//! | part | defines |
//! |---|---|
//! | `clock` | `read_clock`, `format` |
//! | `stopwatch` | `worked`, which returns how long the script has run |
//! | `board` | `read_meta`, which checks the board, and `advance`; `touch`, `recount` for changes; `ok` and other replies; `call`, `each_thousand`, `read_thousands` |
//! | `enter` | nothing: it enters the board, that is, checks it and advances, or ends the script |
//! | `enter_removing` | nothing: it enters the board, unless an import is open |
//! | `hidden` | what is set for subjects: `is_hidden`, `is_frozen`, `letters`, `read_letters` |
//! | `rankings` | the rankings of a track, one or one for each key: `held_score`, `scores_of`, `rank`, `unrank`, `hide`, `show`; with keys also the list of keys and counts of it; `note_negative` |
//! | `places` | the sorted set that is read: lines `better_than` a score, `lines_before` a place |
//! | `ranking` | nothing: it enters the board and chooses the ranking that is read |
//! | `subject_slots` | `read_slots`, which reads slots of a subject of an unranked board |
//! | `operation` | `record`, which makes it safe to send a write again; `count_events`; `track`, what a script uses of one track |
//! | `entries` | the arguments of `change` by name; the steps of a change, which the following parts define: `fetch`, `prepare`, `check`, `apply`, `save`, `finish`, `score_text` |
//! | `remembered` | what `capped` and `distinct` remember of subjects: `memories`, `locate`, `locate_oldest`, `drop_oldest`, `note_touched` |
//! | `kind/*` | a kind: how cells combine, and how an entry changes them |
//! | `scores` | `stored_of`, `accumulated`, `gather`, `save_gathered`: scores and totals of a ranked board, written together |
//! | `subtract` | `load_accumulated`, `subtract_from_scores`, `others_of`: subtracting cells of expired slots |
//! | `ranked` | the steps of a change of a ranked board; `cell`, `set_cell`, `acc_of`, `move`, `position` |
//! | `unranked` | the steps of a change of a board whose cells are stored by subject |
//! | `steps` | the fields of `track` that `change` uses |
//! | `tracks` | `tracks`, one for each track of the board, the main one being `main`; `editions`, the tracks of each edition |
//! | `enter_all` | nothing: it enters all tracks |
//! | `begin` | nothing: it checks the operation and enters all tracks |
//!
//! A script about a board has one of the parts that enter it, or calls `read_meta` and `advance` itself.
//!
//! `write` and `change` change all tracks of a board, its windows or its total and its kept slots, so that an entry
//! counts in all of them or in none. The parts of `--- @each_track` are the text of a function whose parameters are
//! called `KEYS` and `ARGV`. It is called for each track with the keys and arguments of that track, so it has local names
//! of its own for each of them. A function may have 200 local names.
//!
//! Some scripts depend on the [`Form`] of tracks. In an `--- @include` or `--- @each_track`, `form` stands for the parts
//! of the form, and `cells` for the first one of them, which says how cells combine. The module `kinds` has the form of
//! each kind. A board with two editions has tracks of any two forms, and `fill` is about two tracks of any forms. Each
//! combination is a script, which is assembled when it is first needed.
//!
//! The kinds `sum`, `timed_sum`, `mean`, `extreme`, `last` and `sketch` are pure: they compute, and call no commands. An accumulated
//! state, `acc`, is what cells of a subject come to. Each of these kinds defines:
//!
//! | name | meaning |
//! |---|---|
//! | `HAS_TOTALS` | whether totals are stored; if not, the score stands for the total |
//! | `SCORES_ARE_TOTALS` | whether the score is the total too, so that only a subject without a score has one stored |
//! | `sound(cell)` | returns whether a text is a valid cell |
//! | `new()`, `read_total(text)` | return the state of no cells, or of a stored total; nil if it is not valid |
//! | `fold(acc, start, cell)` | adds a cell to the state |
//! | `total_of(acc)`, `score_of(acc)` | return the texts to store, or nil for none |
//! | `withdraw(acc, start, cell, next_other)` | removes the oldest cell from the state and returns whether that changed it; `next_other` returns the subject's other cells, one at each call |
//! | `exceeds(before, entry)` | returns whether the cell after the entry would be beyond its bound; kinds without a bound do not define it. Only for `change`, because it uses names of `entries` |
//! | `change_cell(before, entry, acc)` | returns the cell after the entry, `''` for none, or nil if it does not change; then what happened to `acc`, which is nil on an unranked board: nil if it is changed accordingly, `same` if it needs no change, `lost` if it must be computed from all cells again. The cell before is valid, and the new one is within its bound. Only for `change` too |
//!
//! The kinds `capped`, `distinct` and `from_first` store other data than cells, so they define the steps of a change themselves.
//!
//! `merge` is about one track. It has the parts of `change`, and no function around them.

mod assembly;
mod script;

use std::collections::HashMap;
use std::sync::LazyLock;

use parking_lot::Mutex;

use self::assembly::Files;
pub(super) use self::assembly::{EditionForms, Form};
pub(super) use self::script::{FixedArguments, Script, ScriptCall};
use crate::board::Order;

/// Names all files in `lua`: the scripts that depend on no form, each as a static, and then the others and the parts.
macro_rules! files {
    ({ $($constant:ident = $script:literal)* } { $($other:literal)* }) => {
        $(pub(super) static $constant: LazyLock<Script> =
            LazyLock::new(|| FILES.assembled($script, &[EditionForms::alike(&[])]));)*

        #[cfg(test)]
        static OF_NO_FORM: &[&LazyLock<Script>] = &[$(&$constant),*];

        static FILES: Files = Files(&[
            $(($script, include_str!(concat!("../lua/", $script, ".lua"))),)*
            $(($other, include_str!(concat!("../lua/", $other, ".lua"))),)*
        ]);
    };
}

files! {
    {
        ADD = "add"
        ANNOUNCE = "announce"
        ANNOUNCED = "announced"
        AUDIT = "audit"
        AUDIT_EARLIER = "audit_earlier"
        AUDIT_FIND = "audit_find"
        AUDIT_REPAIR = "audit_repair"
        BETWEEN = "between"
        CHANGE_ROW = "change_row"
        CHANGE_SHEET = "change_sheet"
        COMPARE = "compare"
        CONTENTS = "contents"
        CONTENTS_FIND = "contents_find"
        CONTENTS_READ = "contents_read"
        DEFINE = "define"
        DISTRIBUTION = "distribution"
        EARLIER = "earlier"
        EDITIONS = "editions"
        END_FILL = "end_fill"
        FORGET = "forget"
        HEAL = "heal"
        IMPORT = "import"
        LEASE = "lease"
        LINES = "lines"
        LISTED = "listed"
        LOOKUP = "lookup"
        MODERATE = "moderate"
        RANKING_KEYS = "ranking_keys"
        READ_SLOTS = "read_slots"
        REMOVE = "remove"
        ROWS = "rows"
        SET_ATTRIBUTES = "set_attributes"
        SET_CLOCK = "set_clock"
        STATUS = "status"
        SUBJECTS = "subjects"
        SWEEP = "sweep"
        TEXTS = "texts"
        UNDEFINE = "undefine"
        VALUES = "values"
        WRITE = "write"
    }
    {
        "change" "fill" "merge" "retire" "retire_key"

        "begin" "board" "clock" "enter" "enter_all" "enter_removing" "entries" "hidden" "operation" "places" "ranked"
        "ranking" "rankings" "remembered" "scores" "steps" "stopwatch" "subject_slots" "subtract" "tracks" "unranked"

        "kind/capped" "kind/distinct" "kind/extreme" "kind/from_first" "kind/last" "kind/mean" "kind/sketch" "kind/sum"
        "kind/timed_sum"
    }
}

/// Returns an order as scripts know it.
pub(super) fn order_argument(order: Order) -> &'static str {
    match order {
        Order::Desc => "desc",
        Order::Asc => "asc",
    }
}

/// Returns the script of this name for tracks of these forms, for each of two editions at most. Scripts are kept as
/// long as the process runs: there are some hundred combinations at most, and a store has boards of few of them.
pub(super) fn of_forms(name: &'static str, editions: &[EditionForms]) -> &'static Script {
    type FormsKey = (&'static str, [Option<EditionForms>; 2]);
    static ASSEMBLED: LazyLock<Mutex<HashMap<FormsKey, &'static Script>>> = LazyLock::new(Mutex::default);
    let key = (name, std::array::from_fn(|number| editions.get(number).copied()));
    ASSEMBLED.lock().entry(key).or_insert_with(|| Box::leak(Box::new(FILES.assembled(name, editions))))
}

#[cfg(test)]
mod tests {
    use redis::cmd;

    use super::assembly::listed;
    use super::*;
    use crate::board::Kind;
    use crate::store::redis::kinds;

    /// The parts that enter a board.
    const ENTERING: [&str; 4] = ["enter", "enter_removing", "enter_all", "begin"];

    fn all() -> Vec<&'static Script> {
        let mut all: Vec<&Script> = OF_NO_FORM.iter().map(|script| LazyLock::force(script)).collect();
        let timed = Kind::TimedSum(crate::board::Split::default());
        let kinds = [
            Kind::Sum,
            timed,
            Kind::Distinct,
            Kind::Capped { most: 1 },
            Kind::Mean,
            Kind::Min,
            Kind::Last,
            Kind::Sketch,
        ]
        .map(kinds::of);
        for kind in kinds {
            let [main, further] = [true, false].map(|is_ranked| kind.form(is_ranked));
            all.extend(["retire", "retire_key"].map(|name| of_forms(name, &[EditionForms::alike(main)])));
            all.push(of_forms("change", &[EditionForms { main, further }]));
            for form in [main, further, kinds::FROM_FIRST] {
                let alike = EditionForms::alike(form);
                all.extend(["change", "merge"].map(|name| of_forms(name, &[alike])));
                all.extend(["change", "fill"].map(|name| of_forms(name, &[EditionForms::alike(main), alike])));
            }
        }
        all
    }

    /// Returns the contract with which a file begins.
    fn header(name: &str) -> &'static str {
        FILES.text(name).split_once("\n\n").unwrap().0
    }

    #[test]
    fn every_file_is_listed_and_used() {
        let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("src/store/redis/lua");
        let names = |folder: &std::path::Path, before: &str| -> Vec<String> {
            let files = std::fs::read_dir(folder).unwrap().map(|file| file.unwrap().file_name().into_string().unwrap());
            files.filter_map(|file| Some(format!("{before}{}", file.strip_suffix(".lua")?))).collect()
        };
        let mut found = names(&folder, "");
        found.extend(names(&folder.join("kind"), "kind/"));
        found.sort();
        let mut listed: Vec<&str> = FILES.0.iter().map(|(name, _)| *name).collect();
        listed.sort();
        assert_eq!(found, listed);
        for (name, text) in FILES.0 {
            assert!(all().iter().any(|script| script.source.contains(text)), "no script includes {name}.lua");
        }
    }

    #[test]
    fn every_script_about_a_board_enters_it_once() {
        for script in all().into_iter().filter(|script| script.source.contains(FILES.text("board"))) {
            let entering = ENTERING.iter().filter(|part| script.source.contains(FILES.text(part))).count();
            let enters_itself = FILES.text(script.name).contains("= read_meta(");
            assert_eq!(entering + usize::from(enters_itself), 1, "{}", script.name);
        }
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
            for argument in arguments {
                // A text reads the first argument of a name.
                let times = arguments.iter().filter(|name| *name == argument).count();
                assert_eq!(times, 1, "{name} has two arguments {argument}");
            }
            for argument in listed(FILES.text(name), "arguments").filter(|name| !name.ends_with(".lua")) {
                let is_used = |word: &str| source.contains(&format!("{word}.{argument}"));
                assert!(is_used("ARGV") || is_used("argv"), "{name} does not use {argument}");
            }
        }
        for (name, text) in FILES.0 {
            for argument in listed(text, "arguments").filter(|name| !name.ends_with(".lua")) {
                assert!(header(name).contains(&format!("`{argument}`")), "{name}.lua does not describe {argument}");
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
            let own = header(script.name);
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
}
