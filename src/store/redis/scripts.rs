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
//! | `places` | `lines_before` a place in the order of the ranking |
//! | `operation` | `begin` and `record`, which make it safe to send a write again; `count_events` |
//! | `entries` | the arguments of `change` by name; the steps of a change, which the following parts define: `prepare`, `apply`, `save`, `finish`, `score_text` |
//! | `kind/*` | a kind: how cells combine, and how an entry changes them |
//! | `scores` | `accumulated`, `gather`, `save_gathered`: scores and totals of a ranked board, written together |
//! | `ranked` | the steps of a change of a ranked board; `cell`, `set_cell`, `acc_of`, `move`, `position` |
//! | `unranked` | the steps of a change of a board whose cells are stored by subject |
//!
//! The kinds `sum`, `mean`, `extreme` and `sketch` are pure: they compute, and call no commands. An accumulated state,
//! `acc`, is what cells of a subject come to. Each of these kinds defines:
//!
//! | name | meaning |
//! |---|---|
//! | `HAS_TOTALS` | whether totals are stored; if not, the score stands for the total |
//! | `sound(cell)` | returns whether a text is a valid cell |
//! | `new()`, `read_total(text)` | return the state of no cells, or of a stored total; nil if it is not valid |
//! | `fold(acc, start, cell)` | adds a cell to the state |
//! | `total_of(acc)`, `score_of(acc)` | return the texts to store, or nil for none |
//! | `withdraw(acc, start, cell, next_other)` | removes the oldest cell from the state and returns whether that changed it; `next_other` returns the subject's other cells, one at each call |
//! | `change_cell(before, entry, acc)` | returns the cell after the entry, `''` for none, or nil if it does not change; then the outcome, if the entry is not simply counted; then what happened to `acc`, which is nil on an unranked board: nil if it is changed accordingly, `same` if it needs no change, `lost` if it must be computed from all cells again. Only for `change`, because it uses names of `entries` |
//!
//! The kinds `distinct` and `from_first` store other data than cells, so they define the steps of a change themselves.
//!
//! [`change`] and [`retire`] choose the script for the kind of a board.
//!
//! The arguments that every call of a script has are listed in [`scripts!`] by name, and nowhere by number. The texts
//! read them as `ARGV.name`, which becomes `ARGV[number]` here, and `FIXED_ARGUMENTS` becomes their number. Callers give
//! each argument with its name, and in debug builds names and order must be those of the list.

use std::sync::LazyLock;

use redis::{Arg, Cmd, ToRedisArgs, cmd};

use crate::board::{Board, Kind, Mode};

/// The arguments that the list of a script abbreviates as `board` (see `lua/board.lua`).
const BOARD: [&str; 8] = ["clock", "believable", "time", "generation", "floor", "head", "valid_from", "valid_until"];

/// The arguments that the list of a script abbreviates as `operation` (see `lua/operation.lua`).
const OPERATION: [&str; 2] = ["sequence", "write_lane"];

/// A script, which the server identifies by the SHA-1 of its text.
#[derive(Debug)]
pub(super) struct Script {
    name: &'static str,
    #[cfg(test)]
    source: &'static str,
    code: String,
    /// The names of the arguments that every call has, in their order. They come before all others.
    arguments: Vec<&'static str>,
    /// The number of keys that every call has. They come before the keys whose number varies.
    fixed_keys: usize,
    is_repeatable: bool,
    hash: String,
}

/// The keys and arguments of one call of a script.
#[derive(Clone, Debug, Default)]
pub(super) struct ScriptCall {
    keys: Vec<String>,
    arguments: Vec<Vec<u8>>,
    /// The names of the first arguments, in debug builds.
    names: Vec<&'static str>,
}

/// Adds the arguments that every call of a script has to a command that is built directly.
pub(super) struct FixedArguments<'a> {
    command: &'a mut Cmd,
    script: &'static Script,
    added: usize,
}

impl Script {
    fn new(
        name: &'static str,
        source: &'static str,
        fixed_keys: usize,
        arguments: &[&'static str],
        is_repeatable: bool,
    ) -> Self {
        let arguments: Vec<&str> = arguments
            .iter()
            .flat_map(|name| match *name {
                "board" => &BOARD[..],
                "operation" => &OPERATION[..],
                _ => std::slice::from_ref(name),
            })
            .copied()
            .collect();
        let code = with_positions(source, &arguments);
        let hash = redis::Script::new(&code).get_hash().to_owned();
        Self {
            name,
            #[cfg(test)]
            source,
            code,
            arguments,
            fixed_keys,
            is_repeatable,
            hash,
        }
    }

    /// Returns the name for log messages.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// Returns the SHA-1 by which the server identifies the script.
    pub fn hash(&self) -> &str {
        &self.hash
    }

    /// Returns the smallest number of keys of a call.
    pub fn fixed_keys(&self) -> usize {
        self.fixed_keys
    }

    /// Returns whether the script may be called again when the outcome of the first call is unknown. Some scripts only
    /// read. They also advance, and remove slots that do not exist from the index, but this may be repeated without
    /// harm. The others have the same effect once and twice, and both calls return the same reply, or replies that let
    /// the caller recognize the repetition.
    pub fn is_repeatable(&self) -> bool {
        self.is_repeatable
    }

    /// Returns the command that loads the script into a server.
    pub fn load(&self) -> Cmd {
        let mut command = cmd("SCRIPT");
        command.arg("LOAD").arg(&self.code);
        command
    }

    /// Returns the same call as `command` with the text in place of the hash, for a server that does not have the
    /// script.
    pub fn with_text(&self, command: &Cmd) -> Cmd {
        let mut with_text = cmd("EVAL");
        with_text.arg(&self.code);
        for argument in command.args_iter().skip(2) {
            if let Arg::Simple(argument) = argument {
                with_text.arg(argument);
            }
        }
        with_text
    }

    /// Returns the command that calls the script.
    pub fn command(&self, call: &ScriptCall) -> Cmd {
        debug_assert!(call.keys.len() >= self.fixed_keys, "{} was called with too few keys", self.name);
        debug_assert!(!cfg!(debug_assertions) || call.names == self.arguments, "{} got {:?}", self.name, call.names);
        let size = call.keys.iter().map(String::len).chain(call.arguments.iter().map(Vec::len)).sum::<usize>();
        let mut command = Cmd::with_capacity(3 + call.keys.len() + call.arguments.len(), size + 64);
        command.arg("EVALSHA").arg(&self.hash).arg(call.keys.len()).arg(&call.keys).arg(&call.arguments);
        command
    }
}

impl ScriptCall {
    pub fn key(&mut self, key: impl Into<String>) -> &mut Self {
        self.keys.push(key.into());
        self
    }

    /// Adds an argument of the script's list.
    pub fn arg(&mut self, name: &'static str, argument: impl ToString) -> &mut Self {
        if cfg!(debug_assertions) {
            assert_eq!(self.names.len(), self.arguments.len(), "{name} comes after arguments without names");
            self.names.push(name);
        }
        self.more(argument)
    }

    /// Adds an argument that follows those of the list.
    pub fn more(&mut self, argument: impl ToString) -> &mut Self {
        self.raw(argument.to_string().into_bytes())
    }

    /// Adds bytes unchanged, after the arguments of the list.
    pub fn raw(&mut self, argument: Vec<u8>) -> &mut Self {
        self.arguments.push(argument);
        self
    }

    /// Adds arguments that follow those of the list.
    pub fn all<T: ToString>(&mut self, arguments: impl IntoIterator<Item = T>) -> &mut Self {
        self.arguments.extend(arguments.into_iter().map(|argument| argument.to_string().into_bytes()));
        self
    }
}

impl<'a> FixedArguments<'a> {
    pub fn new(script: &'static Script, command: &'a mut Cmd) -> Self {
        Self { command, script, added: 0 }
    }

    /// Adds the next argument of the script's list.
    pub fn arg(&mut self, name: &'static str, argument: impl ToRedisArgs) -> &mut Self {
        debug_assert_eq!(self.script.arguments.get(self.added), Some(&name), "{}", self.script.name);
        self.command.arg(argument);
        self.added += 1;
        self
    }

    /// Ends the list. It must be complete.
    pub fn end(&self) {
        debug_assert_eq!(self.added, self.script.arguments.len(), "{} got too few arguments", self.script.name);
    }
}

/// Returns the text with the positions of the arguments in place of their names, and their number in place of
/// `FIXED_ARGUMENTS`. An unknown name is left, and a test finds it.
fn with_positions(source: &str, arguments: &[&str]) -> String {
    let mut code = String::with_capacity(source.len());
    let mut rest = source;
    while let Some(at) = rest.find("ARGV.").into_iter().chain(rest.find("argv.")).min() {
        let (before, name) = rest.split_at(at + "ARGV.".len());
        let end = name.find(|c: char| !c.is_ascii_lowercase() && c != '_').unwrap_or(name.len());
        let (name, after) = name.split_at(end);
        match arguments.iter().position(|argument| *argument == name) {
            Some(place) => code.push_str(&format!("{}[{}]", &before[..before.len() - 1], place + 1)),
            None => code.extend([before, name]),
        }
        rest = after;
    }
    code.push_str(rest);
    code.replace("FIXED_ARGUMENTS", &arguments.len().to_string())
}

macro_rules! script {
    ($name:literal, [$($before:literal),*], $keys:literal, [$($argument:literal),*], $is_repeatable:expr) => {
        LazyLock::new(|| {
            let source = concat!(
                $(include_str!(concat!("lua/", $before, ".lua")), "\n",)*
                include_str!(concat!("lua/", $name, ".lua"))
            );
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
        change [$($change_argument:literal),*] { $($change:ident: [$($change_part:literal),*];)* }
        retire [$($retire_argument:literal),*] { $($retire:ident: $retire_part:literal;)* }
    ) => {
        $(pub(super) static $constant: LazyLock<Script> =
            script!($name, [$($before),*], $keys, [$($argument),*], is_repeatable!($($repeatable)?));)*
        scripts!(change [$($change_argument),*] $($change [$($change_part),*])*);
        scripts!(retire [$($retire_argument),*] $($retire $retire_part)*);

        #[cfg(test)]
        fn all() -> Vec<&'static Script> {
            vec![$(&$constant,)* $(&$change,)* $(&$retire),*]
        }
    };
    (change $arguments:tt $($change:ident [$($part:literal),*])*) => {
        $(pub(super) static $change: LazyLock<Script> =
            script!("change", ["clock", "board", "operation", "entries", $($part),*], 5, $arguments, false);)*
    };
    (retire $arguments:tt $($retire:ident $part:literal)*) => {
        $(pub(super) static $retire: LazyLock<Script> =
            script!("retire", ["stopwatch", "clock", "board", $part, "scores"], 8, $arguments, false);)*
    };
}

scripts! {
    {
        ADD = "add" after [] with 3 keys ["board", "operation", "bound", "slot", "items"];
        WRITE = "write" after ["clock", "board", "operation"] with 5 keys
            ["board", "operation", "bound", "slots", "entries", "coded", "bucket", "horizon", "items"];
        PAGE = "page" after ["clock", "board"] with 5 keys ["board", "order", "first", "last"] repeatable;
        BESIDE = "beside" after ["clock", "board", "places"] with 5 keys
            ["board", "order", "score", "subject", "boundary", "direction", "limit"] repeatable;
        NEIGHBORS = "neighbors" after ["clock", "board"] with 5 keys ["board", "order", "subject", "radius"] repeatable;
        LINES = "lines" after ["clock", "board", "places"] with 5 keys
            ["board", "order", "from", "score", "subject", "before", "after", "capped"] repeatable;
        BETWEEN = "between" after ["clock", "board", "places"] with 5 keys
            ["board", "order", "from_score", "from_subject", "till_score", "till_subject", "samples", "all_up_to"] repeatable;
        LOOKUP = "lookup" after ["clock", "board"] with 5 keys ["board", "order", "ranks", "near", "subjects"] repeatable;
        SUBJECTS = "subjects" after ["clock", "board"] with 5 keys ["board", "order", "subjects", "capped"] repeatable;
        STATUS = "status" after ["clock", "board"] with 5 keys ["board", "slots"] repeatable;
        VALUES = "values" after ["clock", "board", "places"] with 7 keys
            ["board", "order", "offset", "last_seen", "value", "limit"] repeatable;
        READ_SLOTS = "subject_slots" after ["clock", "board"] with 7 keys
            ["board", "stored", "from", "till", "capped", "action"] repeatable;
        FORGET = "subject_slots" after ["clock", "board"] with 7 keys
            ["board", "stored", "from", "till", "capped", "action"];
        REMOVE = "remove" after ["clock", "board"] with 5 keys ["board", "subject", "version"];
        AUDIT = "audit" after ["clock", "board"] with 5 keys ["board", "from", "slots", "subjects"] repeatable;
        AUDIT_FIND = "audit_find" after ["clock", "board"] with 5 keys
            ["board", "place", "cursor", "subjects", "version", "from", "slots"] repeatable;
        AUDIT_EARLIER = "audit_earlier" after ["clock", "board"] with 5 keys
            ["board", "below", "slots", "subjects"] repeatable;
        AUDIT_REPAIR = "audit_repair" after ["clock", "board"] with 5 keys
            ["board", "version", "read_at", "subjects", "slots"] repeatable;
        HEAL = "heal" after [] with 1 keys ["generation", "action", "instance", "run", "duration", "reason"] repeatable;
        SWEEP = "sweep" after ["stopwatch", "clock", "board"] with 8 keys
            ["board", "stored", "due", "current", "kept", "cells"];
        UNDEFINE = "undefine" after [] with 1 keys ["generation"];
        DEFINE = "define" after ["clock"] with 1 keys ["board", "definition", "parts", "run"] repeatable;
        ANNOUNCE = "announce" after [] with 2 keys ["name", "version", "gone_at"];
        ANNOUNCED = "announced" after [] with 1 keys ["generation"] repeatable;
        SET_CLOCK = "set_clock" after [] with 1 keys ["action", "mode", "time"] repeatable;
    }
    change [
        "board", "operation", "bound", "slots", "subjects", "entries", "bucket", "horizon", "first_subject_key",
        "first_bucket_key", "oldest", "period"
    ] {
        CHANGE_RANKED_SUM: ["kind/sum", "scores", "ranked"];
        CHANGE_UNRANKED_SUM: ["kind/sum", "unranked"];
        CHANGE_RANKED_MEAN: ["kind/mean", "scores", "ranked"];
        CHANGE_UNRANKED_MEAN: ["kind/mean", "unranked"];
        CHANGE_RANKED_EXTREME: ["kind/extreme", "scores", "ranked"];
        CHANGE_UNRANKED_EXTREME: ["kind/extreme", "unranked"];
        CHANGE_RANKED_SKETCH: ["kind/sketch", "scores", "ranked"];
        CHANGE_UNRANKED_SKETCH: ["kind/sketch", "unranked"];
        CHANGE_RANKED_DISTINCT: ["kind/sum", "scores", "ranked", "kind/distinct"];
        CHANGE_UNRANKED_DISTINCT: ["kind/distinct"];
        CHANGE_FROM_FIRST: ["kind/from_first"];
    }
    retire [
        "board", "slot", "bucket", "oldest_bucket", "subjects", "instance", "pause", "oldest_period", "kept", "version"
    ] {
        RETIRE_SUM: "kind/sum";
        RETIRE_MEAN: "kind/mean";
        RETIRE_EXTREME: "kind/extreme";
        RETIRE_SKETCH: "kind/sketch";
    }
}

/// Returns the script that applies a board's changes one after the other.
pub(super) fn change(board: &Board) -> &'static Script {
    if board.definition().mode == Mode::FromFirst {
        return &CHANGE_FROM_FIRST;
    }
    match (board.is_ranked(), board.kind()) {
        (true, Kind::Sum) => &CHANGE_RANKED_SUM,
        (true, Kind::Mean) => &CHANGE_RANKED_MEAN,
        (true, Kind::Min | Kind::Max) => &CHANGE_RANKED_EXTREME,
        (true, Kind::Sketch) => &CHANGE_RANKED_SKETCH,
        (true, Kind::Distinct) => &CHANGE_RANKED_DISTINCT,
        (false, Kind::Sum) => &CHANGE_UNRANKED_SUM,
        (false, Kind::Mean) => &CHANGE_UNRANKED_MEAN,
        (false, Kind::Min | Kind::Max) => &CHANGE_UNRANKED_EXTREME,
        (false, Kind::Sketch) => &CHANGE_UNRANKED_SKETCH,
        (false, Kind::Distinct) => &CHANGE_UNRANKED_DISTINCT,
    }
}

/// Returns the script that retires slots of boards of this kind.
pub(super) fn retire(kind: Kind) -> &'static Script {
    match kind {
        Kind::Sum | Kind::Distinct => &RETIRE_SUM,
        Kind::Mean => &RETIRE_MEAN,
        Kind::Min | Kind::Max => &RETIRE_EXTREME,
        Kind::Sketch => &RETIRE_SKETCH,
    }
}

/// Returns the last argument of the scripts that depend on the board's kind: the option of the kind (see `lua/kind`).
pub(super) fn option(board: &Board) -> String {
    let definition = board.definition();
    match board.kind() {
        _ if definition.mode == Mode::FromFirst => definition.metric.window.approximate_millis().to_string(),
        Kind::Mean => board.min_samples().to_string(),
        Kind::Min => "min".to_owned(),
        Kind::Max => "max".to_owned(),
        Kind::Distinct => {
            let most = definition.max_values.map_or_else(String::new, |most| most.to_string());
            board.tombstone_life().map_or(most.clone(), |life| format!("{most},{life}"))
        }
        Kind::Sum | Kind::Sketch => String::new(),
    }
}

#[cfg(test)]
mod tests {
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
    fn names_become_positions() {
        let code =
            with_positions("ARGV.a, ARGV.ab, argv.b_c; ARGV.no; #ARGV - FIXED_ARGUMENTS; ARGV[i]", &["ab", "a", "b_c"]);
        assert_eq!(code, "ARGV[2], ARGV[1], argv[3]; ARGV.no; #ARGV - 3; ARGV[i]");
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
            assert_eq!(highest, Some(script.fixed_keys), "{}", script.name);
        }
    }
}
