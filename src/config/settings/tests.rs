//! Every setting is complete: flag, environment variable, help, and its line in the file.

use clap::{Arg, Args, Command};

use super::*;
use crate::config::DEFAULT_FILE;

/// The settings that the file explains without a line that has their default, and why.
const WITHOUT_LINE: [(&str, &str); 5] = [
    ("anonymous", "whether it is set matters"),
    ("anonymous_boards", "whether it is set matters"),
    ("address_requests", "there is no rate that limits nothing"),
    ("address_items", "there is no rate that limits nothing"),
    ("max_age", "there is no duration of nothing"),
];

/// Returns what is missing or wrong about a setting: in its declaration, or in its line of the file, which another
/// test compares with the default that is in effect.
fn faults(arg: &Arg, file: &str) -> Vec<String> {
    let (name, mut faults) = (arg.get_id().as_str(), Vec::new());
    let flag = name.replace('_', "-");
    if arg.get_long() != Some(&flag) {
        faults.push(format!("the flag is not --{flag}"));
    }
    let variable = format!("ROLLTOP_{}", name.to_uppercase());
    if arg.get_env().is_none_or(|found| *found != *variable) {
        faults.push(format!("the environment variable is not {variable}"));
    }
    let help = arg.get_help().map(ToString::to_string).unwrap_or_default();
    let default = help.rsplit_once(" [default: ").and_then(|(_, default)| default.strip_suffix(']'));
    if default.is_none() {
        faults.push("the help does not end with '[default: …]', from = \"…\" or the comment".to_owned());
    }
    let line = file
        .lines()
        .filter_map(|line| line.strip_prefix("# "))
        .find(|line| line.strip_prefix(name).is_some_and(|rest| rest.starts_with(" = ")));
    let is_without_line = WITHOUT_LINE.iter().any(|(without, _)| *without == name);
    match line {
        None if !file.contains(name) => faults.push("config/rolltop.toml does not explain it".to_owned()),
        None if !is_without_line => faults.push(format!("config/rolltop.toml has no line '# {name} = …'")),
        None => {}
        Some(_) if is_without_line => {
            faults.push("config/rolltop.toml has a line, so WITHOUT_LINE is wrong".to_owned())
        }
        Some(line) => {
            let table: toml::Table = toml::from_str(line).unwrap();
            let shown = match &table[name] {
                toml::Value::String(text) if !text.is_empty() => text.clone(),
                toml::Value::String(_) => "none".to_owned(),
                toml::Value::Array(list) if list.is_empty() => "none".to_owned(),
                other => other.to_string(),
            };
            // After the value the help may say what it means, or when it is another one.
            let fits = |rest: &str| rest.is_empty() || rest.starts_with([',', ' ']);
            if let Some(default) = default
                && !default.strip_prefix(&shown).is_some_and(fits)
            {
                faults.push(format!("the default in the help is '{default}', and in config/rolltop.toml '{shown}'"));
            }
        }
    }
    faults
}

#[test]
fn every_setting_is_complete() {
    let command = Settings::augment_args(Command::new("rolltop"));
    let (settings, _) = DEFAULT_FILE.split_once("# --- Boards").unwrap();
    let names: Vec<_> = command.get_arguments().map(|arg| arg.get_id().as_str()).collect();
    assert_eq!(names, Settings::KEYS);
    assert!(WITHOUT_LINE.iter().all(|(name, _)| names.contains(name)));
    let faults: Vec<_> = command
        .get_arguments()
        .flat_map(|arg| faults(arg, settings).into_iter().map(move |fault| format!("{}: {fault}", arg.get_id())))
        .collect();
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn what_a_setting_lacks_is_found() {
    let complete = || Arg::new("most_cats").long("most-cats").env("ROLLTOP_MOST_CATS").help("Cats [default: 9, or 3]");
    let file = "# The largest number of cats.\n# most_cats = 9\n";
    assert!(faults(&complete(), file).is_empty());
    for (arg, file, fault) in [
        (complete().long("cats"), file, "the flag is not --most-cats"),
        (complete().env("MOST_CATS"), file, "the environment variable is not ROLLTOP_MOST_CATS"),
        (complete().help("Cats"), file, "the help does not end with '[default: …]', from = \"…\" or the comment"),
        (complete(), "", "config/rolltop.toml does not explain it"),
        (complete(), "# For example: most_cats = 9", "config/rolltop.toml has no line '# most_cats = …'"),
        (complete(), "# most_cats = 8", "the default in the help is '9, or 3', and in config/rolltop.toml '8'"),
        (
            complete().id("max_age").long("max-age").env("ROLLTOP_MAX_AGE"),
            "# max_age = 9",
            "config/rolltop.toml has a line, so WITHOUT_LINE is wrong",
        ),
    ] {
        assert_eq!(faults(&arg, file), [fault]);
    }
}
