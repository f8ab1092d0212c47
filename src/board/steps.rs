//! The changes of a board as scripts, each with what it leads to: `steps/*.txt`.
//!
//! A script has commands, each followed by a line `----`, what it prints, and an empty line. Lines that begin with `#` are
//! for readers. A test runs all scripts; with `ROLLTOP_WRITE_STEPS` it writes what they print. A further sequence is a
//! further file, or more commands of one.
//!
//! | command | effect |
//! |---|---|
//! | `board TIME KEYS` | defines a board of `COUNT(all, e, s)` at a time, with further or other keys, in JSON |
//! | `attach ID KEYS` | a successor, whose tracks have the ids from this one on |
//! | `exchange TIME`, `detach` | exchanges the editions, the previous one staying until this time; removes the second one |
//! | `close TIME` | closes the period |
//! | `at TIME` | all steps of the season that are due |
//! | `pack ID LINES TOTAL` | notes that the ranking of a period is packed |
//! | `freeze SHARDS NUMBER…`, `thaw`, `divide` | freezes the board while its data is copied to partitions; ends that without and with them |
//!
//! Each change prints its name and the board after it. Whatever a script says, each board is read back from what is stored of
//! it, and each change of editions is recognized as one.

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::{Map, Value};

use super::*;

fn scripts() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/board/steps");
    let mut paths: Vec<_> = folder.read_dir().unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    paths
}

fn time(text: &str) -> Timestamp {
    Timestamp::parse(text).unwrap_or_else(|error| panic!("{text}: {error}"))
}

fn number<T: std::str::FromStr>(text: &str) -> T {
    text.parse().unwrap_or_else(|_| panic!("{text} is no number"))
}

fn definition(keys: &str) -> Definition {
    let mut all: Map<String, Value> = serde_json::from_str(keys).unwrap_or_else(|error| panic!("{keys}: {error}"));
    all.entry("metric").or_insert_with(|| "COUNT(all, e, s)".into());
    serde_json::from_value(all.into()).unwrap_or_else(|error| panic!("{keys}: {error}"))
}

/// Makes a change. Returns why it is refused, or `None` if there is nothing to change.
fn changed(board: &Arc<Board>, command: &str, words: &[&str], keys: &str) -> Option<Result<Board, String>> {
    let text = |error: &dyn std::fmt::Display| error.to_string();
    Some(match (command, words) {
        ("attach", [id, ..]) => {
            let attached = board.attached(definition(keys), TrackId(number(id)));
            attached.map_err(|error| format!("{}: {error}", error.field()))
        }
        ("exchange", [until]) => board.exchanged(time(until)).ok_or_else(|| "the board has one edition".to_owned()),
        ("detach", []) => Ok(board.detached()),
        ("close", [now]) => board.closed(time(now)).map_err(|error| text(&error)),
        ("at", [now]) => return board.season_step(time(now)).map(Ok),
        ("pack", [id, lines, total]) => {
            let packed = Packed { lines: number(lines), total: number(total) };
            board.with_packed(TrackId(number(id)), packed).ok_or_else(|| "nothing of it is to be packed".to_owned())
        }
        ("freeze", [shards, numbers @ ..]) => {
            let partitions = numbers.iter().map(|text| number(text)).collect();
            Ok(board.frozen(Redivision { shards: number(shards), partitions }))
        }
        ("thaw", []) => Ok(board.thawed()),
        ("divide", []) => match board.redivided() {
            Some(divided) => divided.map_err(|error| text(&error)),
            None => Err("the board is not frozen".to_owned()),
        },
        _ => panic!("unknown command '{command}', or wrong words after it"),
    })
}

/// Returns what a change is: of the editions, or of the partitions.
fn name(from: &Board, to: &Board) -> String {
    let partitions = |board: &Board| (board.partitions().cloned(), board.redivision().cloned());
    match (partitions(from) == partitions(to), EditionsChange::between(from, to)) {
        (true, change) => format!("{:?}", change.expect("one change of the editions")),
        (false, _) => "Redivide".to_owned(),
    }
}

/// Describes a board: its epoch, and a line for each edition, the current one first.
fn shown(board: &Arc<Board>) -> String {
    let mut text = format!("epoch {}", board.epoch().0);
    if let Some(at) = board.season_step_at() {
        write!(text, ", next step {}", if at == Timestamp::MAX { "never".to_owned() } else { at.to_string() }).unwrap();
    }
    if let Some(numbers) = board.partitions() {
        write!(text, ", {:?} shards in {numbers:?}", board.definition().shards.unwrap_or(1)).unwrap();
    }
    if let Some(Redivision { shards, partitions }) = board.redivision() {
        write!(text, ", frozen for {shards} shards in {partitions:?}").unwrap();
    }
    for (number, edition) in board.all_editions().iter().enumerate() {
        let role = match (number, board.other()) {
            (0, _) => "current",
            (1, Some(other)) => other.role.name(),
            _ => "archive",
        };
        let ids: Vec<String> = edition.tracks().iter().map(|track| track.id().0.to_string()).collect();
        write!(text, "\n{role} {}: ", ids.join(" ")).unwrap();
        match (edition.period(), edition.period_name()) {
            (Some(Period { start, end, number }), Some(name)) => {
                let end = if end == Timestamp::MAX { "open".to_owned() } else { end.to_string() };
                write!(text, "{name}, period {number} from {start} to {end}").unwrap();
            }
            _ => write!(text, "{}", edition.definition().metric).unwrap(),
        }
        if let Some(until) = board.other().and_then(|other| other.until).filter(|_| number == 1) {
            write!(text, ", until {until}").unwrap();
        }
        if let Some(Packed { lines, total }) = edition.packed() {
            write!(text, ", packed {lines} of {total}").unwrap();
        }
    }
    text
}

/// Tests that a board is the same after it was stored.
fn check_stored(board: &Arc<Board>) {
    let first = Board::new(board.name().clone(), board.generation(), board.definition().clone()).unwrap();
    let form = board.stored_editions();
    let read = first.with_stored_editions(board.epoch(), form.as_deref()).unwrap_or_else(|error| panic!("{error}"));
    let read = Arc::new(read.with_defined_at(board.defined_at()).with_partitions(board.partitions().cloned()));
    if form.is_some() {
        assert_eq!((shown(&read), read.stored_editions()), (shown(board), form));
        assert_eq!((read.dedupe_horizon(), read.dedupe_bucket()), (board.dedupe_horizon(), board.dedupe_bucket()));
    }
}

/// Runs a script. Returns it with what it prints.
fn run(script: &str) -> String {
    let (mut board, mut output, mut lines): (Option<Arc<Board>>, _, _) = (None, String::new(), script.lines());
    while let Some(line) = lines.next() {
        writeln!(output, "{line}").unwrap();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let (command, rest) = line.split_once(' ').unwrap_or((line, ""));
        let (first, keys) = rest.split_once(' ').unwrap_or((rest, "{}"));
        let words: Vec<&str> = rest.split_whitespace().collect();
        let mut printed = String::new();
        if command == "board" {
            let name = BoardName::parse("b").unwrap();
            let defined = Board::new(name, Generation(7), definition(keys)).unwrap_or_else(|error| panic!("{error}"));
            board = Some(Arc::new(defined.with_defined_at(Some(time(first)))));
        } else {
            let known = board.as_mut().expect("a board");
            while let Some(changed) = changed(known, command, &words, keys) {
                match changed {
                    Ok(next) => {
                        writeln!(printed, "{}", name(known, &next)).unwrap();
                        *known = Arc::new(next);
                        check_stored(known);
                    }
                    Err(error) => writeln!(printed, "refused: {error}").unwrap(),
                }
                if command != "at" {
                    break;
                }
            }
        }
        if !printed.starts_with("refused") {
            writeln!(printed, "{}", shown(board.as_ref().expect("a board"))).unwrap();
        }
        writeln!(output, "----\n{printed}").unwrap();
        // What the script has printed before.
        lines.by_ref().take_while(|line| !line.is_empty()).for_each(drop);
    }
    output.trim_end().to_owned() + "\n"
}

#[test]
fn changes_of_boards_are_as_their_scripts_say() {
    for path in scripts() {
        let script = std::fs::read_to_string(&path).unwrap();
        let output = run(&script);
        if std::env::var_os("ROLLTOP_WRITE_STEPS").is_some() {
            std::fs::write(&path, output).unwrap();
        } else {
            assert_eq!(script, output, "{}; ROLLTOP_WRITE_STEPS=1 writes what it prints", path.display());
        }
    }
}
