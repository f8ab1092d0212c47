//! The command line. Without a command, `serve` is run.

mod advice;
mod attributes;
mod audit;
mod backup;
mod boards;
mod check;
mod check_data;
mod close;
mod copy;
mod define;
mod definition;
mod distribution;
mod doctor;
mod erase;
mod export;
mod first_steps;
mod format;
pub mod healthcheck;
mod keys;
mod lines;
mod manual;
mod moderate;
mod next;
mod output;
mod periods;
mod post;
mod profile;
mod question;
mod rank;
mod ranking;
pub mod replay;
mod rollover;
mod serve;
mod server;
pub mod signals;
mod tiers;
mod tokens;
mod top;

use std::ffi::OsString;
use std::io::Write;
use std::process::ExitCode;
use std::time::Duration;

use clap::{CommandFactory, Parser, Subcommand};
use output::say;

/// The time to wait for what reads a whole board.
const LONG: Duration = Duration::from_secs(6 * 3_600);

/// Leaderboards and counts over sliding windows, exactly.
#[derive(Debug, Parser)]
#[command(
    name = "rolltop",
    version,
    about,
    after_help = "Without a command, rolltop serves: `rolltop` is `rolltop serve`. The options of the server (--url, --profile, \
                  --ca, --connect-to), --json and --csv may also stand before a command."
)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Serve the API (the default)
    Serve(serve::ServeArgs),
    /// Print the first lines of a ranking
    Top(top::TopArgs),
    /// Print rank and score of subjects
    Rank(rank::RankArgs),
    /// Print the scores at percentiles, and how many subjects have scores between given ones
    Distribution(distribution::DistributionArgs),
    /// Print the periods of a board with a season, the oldest first, and who leads or has won
    Periods(periods::PeriodsArgs),
    /// Close the current period of a board whose season is `manual`, and begin the next one
    Close(close::CloseArgs),
    /// Print the boards, or what one of them is
    Boards(boards::BoardsArgs),
    /// Define a board: shows what it would be and take, and asks
    Define(define::DefineArgs),
    /// Count an increment on a board, or each line (NDJSON) of standard input
    Post(post::PostArgs),
    /// Count an event on every board of its type, or each line (NDJSON) of standard input
    Event(post::EventArgs),
    /// Write a whole ranking, however long, as lines of JSON or as CSV
    Export(export::ExportArgs),
    /// Remove subjects from boards
    Erase(erase::EraseArgs),
    /// Take subjects out of the rankings of a board. They go on counting, and `show` brings them back
    Hide(moderate::HideArgs),
    /// Show hidden subjects again
    Show(moderate::SubjectsArgs),
    /// Let nothing count for subjects until `unfreeze`. What they have stays, and expires as ever
    Freeze(moderate::SubjectsArgs),
    /// Let items of frozen subjects count again
    Unfreeze(moderate::SubjectsArgs),
    /// Print the hidden subjects of a board, or the frozen ones
    Hidden(moderate::HiddenArgs),
    /// Print what stands beside subjects, such as names, or set it
    Attributes(attributes::AttributesArgs),
    /// Print the tiers of a board, the best first, or set them
    Tiers(tiers::TiersArgs),
    /// Change a board: another definition counts beside it, is compared with it, and takes over
    #[command(subcommand)]
    Next(next::NextCommand),
    /// Roll a board over now, or all
    Rollover(rollover::RolloverArgs),
    /// Compare every score of a board with its slots
    Audit(audit::AuditArgs),
    /// Check a configuration file, and print what is wrong, by line and key
    Check(check::CheckArgs),
    /// Check the machine, the disk, Redis, keys and a running service, each with what to do
    Doctor(doctor::DoctorArgs),
    /// Post a web server's access log, NDJSON or CSV to a running server
    Replay(replay::ReplayArgs),
    /// Check that a running server is up (or with --ready that it is ready to serve), for container health checks
    Healthcheck(healthcheck::HealthcheckArgs),
    /// Request a backup of a running server's data directory, and print where it is
    Backup(backup::BackupArgs),
    /// Copy boards with what they hold from one running server to another
    Copy(copy::CopyArgs),
    /// Read a data directory that is not in use, or a backup, and print the damage by file and offset
    CheckData(check_data::CheckDataArgs),
    /// Make keys, which say who may do what
    #[command(subcommand)]
    Keys(keys::KeysCommand),
    /// Sign tokens, with which end users may do one thing, and look into them
    #[command(subcommand)]
    Token(tokens::TokenCommand),
    /// Print the OpenAPI document
    Openapi,
    /// Print the completions for a shell
    Completions(manual::CompletionsArgs),
    /// Print the manual page, or write one for each command
    Man(manual::ManArgs),
}

/// An error with its cause, which determines the exit code.
enum CommandError {
    /// The command failed. Exit code 1.
    Failed(anyhow::Error),
    /// The usage or the configuration is wrong. Exit code 2.
    WrongConfig(anyhow::Error),
}

impl<E: Into<anyhow::Error>> From<E> for CommandError {
    fn from(error: E) -> Self {
        CommandError::Failed(error.into())
    }
}

/// Runs the program with these arguments. The first one is the program's name.
///
/// This is not generic over the arguments: the program would then be compiled once more where it is called.
pub fn run(args: Vec<OsString>) -> ExitCode {
    let Cli { command } = Cli::parse_from(with_default_command(with_command_first(args)));
    let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            print_error(format_args!("cannot start threads: {error}"));
            return ExitCode::from(1);
        }
    };
    // A thread that waits for standard input would keep the program from ending.
    let reads_input = matches!(command, Command::Post(_) | Command::Event(_));
    let outcome = runtime.block_on(async {
        match command {
            Command::Serve(args) => serve::run(args).await,
            Command::Top(args) => Ok(top::run(args).await?),
            Command::Rank(args) => Ok(rank::run(args).await?),
            Command::Distribution(args) => Ok(distribution::run(args).await?),
            Command::Periods(args) => Ok(periods::run(args).await?),
            Command::Close(args) => Ok(close::run(args).await?),
            Command::Boards(args) => Ok(boards::run(args).await?),
            Command::Define(args) => Ok(define::run(args).await?),
            Command::Post(args) => Ok(post::post(args).await?),
            Command::Event(args) => Ok(post::event(args).await?),
            Command::Export(args) => Ok(export::run(args).await?),
            Command::Erase(args) => Ok(erase::run(args).await?),
            Command::Hide(args) => Ok(moderate::hide(args).await?),
            Command::Show(args) => Ok(moderate::change(args, moderate::Change::Shown).await?),
            Command::Freeze(args) => Ok(moderate::change(args, moderate::Change::Frozen).await?),
            Command::Unfreeze(args) => Ok(moderate::change(args, moderate::Change::Unfrozen).await?),
            Command::Hidden(args) => Ok(moderate::hidden(args).await?),
            Command::Attributes(args) => Ok(attributes::run(args).await?),
            Command::Tiers(args) => Ok(tiers::run(args).await?),
            Command::Next(command) => Ok(next::run(command).await?),
            Command::Rollover(args) => Ok(rollover::run(args).await?),
            Command::Audit(args) => Ok(audit::run(args).await?),
            Command::Check(args) => check::run(args),
            Command::Doctor(args) => doctor::run(args).await,
            Command::Replay(args) => Ok(replay::run(args).await?),
            Command::Healthcheck(args) => Ok(healthcheck::run(args).await?),
            Command::Backup(args) => Ok(backup::run(args).await?),
            Command::Copy(args) => Ok(copy::run(args).await?),
            Command::CheckData(args) => check_data::run(&args),
            Command::Keys(command) => Ok(keys::run(command).await?),
            Command::Token(command) => Ok(tokens::run(command)?),
            Command::Openapi => print_openapi(),
            Command::Completions(args) => Ok(manual::complete(&args)?),
            Command::Man(args) => Ok(manual::print_manual(args)?),
        }
    });
    if reads_input {
        runtime.shutdown_background();
    }
    let (error, code) = match outcome {
        Ok(()) => return ExitCode::SUCCESS,
        Err(CommandError::Failed(error)) if output::is_unread(&error) => return ExitCode::SUCCESS,
        Err(CommandError::Failed(error)) => {
            let code = if advice::is_of_usage(&error) { 2 } else { 1 };
            (error, code)
        }
        Err(CommandError::WrongConfig(error)) => (error, 2),
    };
    // `{:#}` would repeat causes that our error messages already contain.
    print_error(advice::with_advice(&error));
    ExitCode::from(code)
}

/// Writes the reason for the exit to standard error. If that cannot be written, the exit code still reports the
/// failure, while `eprintln!` would panic.
fn print_error(why: impl std::fmt::Display) {
    let _ = writeln!(std::io::stderr(), "rolltop: {why}");
}

/// The options that may stand before the command, and whether a value follows.
const BEFORE_COMMAND: [(&str, bool); 6] =
    [("--url", true), ("--profile", true), ("--ca", true), ("--connect-to", true), ("--json", false), ("--csv", false)];

/// Moves options that stand before the command behind it: `rolltop --url … top posts` means `rolltop top --url … posts`.
fn with_command_first(mut args: Vec<OsString>) -> Vec<OsString> {
    let mut at = 1;
    while let Some(arg) = args.get(at).and_then(|arg| arg.to_str()) {
        let (name, value) = arg.split_once('=').map_or((arg, None), |(name, value)| (name, Some(value)));
        let Some((_, has_value)) = BEFORE_COMMAND.iter().find(|(option, _)| *option == name) else { break };
        at += if *has_value && value.is_none() { 2 } else { 1 };
    }
    let mut command = Cli::command();
    let mut end = at;
    while let Some(found) = args.get(end).and_then(|word| command.find_subcommand(word)).cloned() {
        command = found;
        end += 1;
    }
    // A word that is no command is moved too, so that it is the one that the error is about.
    if end == at && args.get(at).is_some_and(|word| !word.to_string_lossy().starts_with('-')) {
        end += 1;
    }
    if at < end
        && let Some(moved) = args.get_mut(1..end)
    {
        moved.rotate_left(at - 1);
    }
    args
}

/// Inserts the default command: `rolltop --listen …` means `rolltop serve --listen …`.
fn with_default_command(mut args: Vec<OsString>) -> Vec<OsString> {
    let first = args.get(1).map(|arg| arg.to_string_lossy().into_owned());
    let serves = match first.as_deref() {
        None => true,
        Some("-h" | "--help" | "-V" | "--version") => false,
        Some(first) => first.starts_with('-'),
    };
    if serves {
        args.insert(args.len().min(1), "serve".into());
    }
    args
}

fn print_openapi() -> Result<(), CommandError> {
    say!("{}", crate::http::openapi(true).to_pretty_json()?)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_valid() {
        Cli::command().debug_assert();
    }

    #[test]
    fn serve_is_the_default_command() {
        let parsed = |args: &[&str]| with_default_command(args.iter().map(Into::into).collect());
        assert_eq!(parsed(&["rolltop"]), ["rolltop", "serve"]);
        assert_eq!(parsed(&["rolltop", "--listen", "x"]), ["rolltop", "serve", "--listen", "x"]);
        assert_eq!(parsed(&["rolltop", "check"]), ["rolltop", "check"]);
        assert_eq!(parsed(&["rolltop", "--help"]), ["rolltop", "--help"]);
    }

    #[test]
    fn options_of_the_server_may_stand_before_the_command() {
        let parsed = |line: &str| {
            let args = line.split(' ').map(Into::into).collect();
            let args = with_default_command(with_command_first(args)).into_iter();
            args.map(|arg| arg.into_string().unwrap()).collect::<Vec<_>>().join(" ")
        };
        for (line, expected) in [
            ("rolltop --url X top posts", "rolltop top --url X posts"),
            ("rolltop --url=X --json top posts", "rolltop top --url=X --json posts"),
            ("rolltop --profile top next define b", "rolltop next define --profile top b"),
            ("rolltop top --url X posts", "rolltop top --url X posts"),
            ("rolltop --url X tpo posts", "rolltop tpo --url X posts"),
            ("rolltop --listen X", "rolltop serve --listen X"),
            ("rolltop --store embedded --url X", "rolltop serve --store embedded --url X"),
            ("rolltop --url", "rolltop serve --url"),
            ("rolltop --url X", "rolltop serve --url X"),
        ] {
            assert_eq!(parsed(line), expected, "{line}");
        }
        let args = with_command_first(["rolltop", "--url", "X", "top", "posts"].map(Into::into).into());
        assert!(matches!(Cli::parse_from(args).command, Command::Top(_)));
    }
}
