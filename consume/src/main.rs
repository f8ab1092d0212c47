//! `rolltop-consume`: reads logs, and sends them to Rolltop, which counts each event once.
//!
//! ```text
//! check          what would be sent
//! source_logs    the logs of a source, each with its feed
//! feed           a task for each log: asks where to go on, reads, sends
//!   log          files, Redis Streams, Kafka, NATS JetStream: messages with positions
//!   schemas      values that are written with a schema registry, as JSON
//!   portion      the messages that are sent at once
//!     events     how a message becomes events
//!   source       what the service is asked, and what it answers
//!   dead_letters messages that were not counted
//!   seen         metrics, and whether all is well
//! config         what is read, and where it is sent; with choices, path, variables
//! ```
//!
//! It keeps nothing: how far a log is counted is what the service says.

mod check;
mod choices;
mod config;
mod dead_letters;
mod events;
mod feed;
mod log;
mod path;
mod portion;
mod schemas;
mod seen;
mod source;
mod source_logs;
mod variables;

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, bail};
use clap::{Args, Parser, Subcommand};
use rolltop::cli::signals::{StopSignals, survive_file_size_limit};
use rolltop::config::LogFormat;
use tokio::sync::watch;
use tokio::task::JoinSet;

use choices::{Begin, Decision};
use config::Config;
use feed::FeedEnd;
use seen::AllSeen;
use source_logs::SourceLogs;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// How long is waited for answers when the program is told to stop.
const GRACE: Duration = Duration::from_secs(10);

/// Reads logs (Kafka, Redis Streams, NATS JetStream, files), and sends them to Rolltop, which counts each event once.
#[derive(Debug, Parser)]
#[command(
    name = "rolltop-consume",
    version,
    about,
    args_conflicts_with_subcommands = true,
    arg_required_else_help = true
)]
struct Arguments {
    #[command(subcommand)]
    command: Option<Task>,
    #[command(flatten)]
    run: Option<RunArgs>,
}

#[derive(Debug, Subcommand)]
enum Task {
    /// Read the logs and send them, until told to stop (the default)
    Run(RunArgs),
    /// Show what the first ten messages of each log would be, and send nothing
    Check(CheckArgs),
    /// Send the past of a log to one board, which has joined the source later
    Fill(FillArgs),
}

#[derive(Args, Debug)]
struct RunArgs {
    /// The configuration
    file: PathBuf,
    /// Define the sources that the service does not know, with the boards of the configuration. A source that somebody has
    /// removed is made anew, too, and counts its whole log again
    #[arg(long)]
    define: bool,
    /// Go on where messages are missing, also where the configuration says on_gap = "stop"
    #[arg(long)]
    pass_gaps: bool,
    /// Read what there is, and end
    #[arg(long)]
    until_end: bool,
    /// Log lines of JSON
    #[arg(long)]
    json_log: bool,
}

#[derive(Args, Debug)]
struct CheckArgs {
    /// The configuration
    file: PathBuf,
    /// Only read the configuration
    #[arg(long)]
    offline: bool,
}

#[derive(Args, Debug)]
struct FillArgs {
    /// The configuration
    file: PathBuf,
    /// The name of the source in the configuration; each partition is filled
    #[arg(long)]
    source: String,
    /// The board
    #[arg(long)]
    board: String,
    /// Where to begin: earliest, or a time
    #[arg(long, default_value = "earliest", value_parser = |text: &str| Begin::try_from(text.to_owned()))]
    begin: Begin,
}

fn main() -> ExitCode {
    let command = Arguments::parse();
    let command = command.command.or(command.run.map(Task::Run));
    let outcome = match command {
        None => Ok(()),
        Some(command) => {
            tokio::runtime::Builder::new_multi_thread().enable_all().build().context("cannot start").and_then(
                |runtime| {
                    let outcome = runtime.block_on(carry_out(command));
                    runtime.shutdown_timeout(Duration::from_secs(1));
                    outcome
                },
            )
        }
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("rolltop-consume: {error:#}");
            ExitCode::FAILURE
        }
    }
}

async fn carry_out(command: Task) -> anyhow::Result<()> {
    match command {
        Task::Run(args) => run(args).await,
        Task::Check(CheckArgs { file, offline: true }) => Config::read(&file).map(drop),
        Task::Check(CheckArgs { file, offline: false }) => check::run(&Config::read(&file)?).await,
        Task::Fill(args) => fill(args).await,
    }
}

/// Reads all logs until the program is told to stop.
async fn run(args: RunArgs) -> anyhow::Result<()> {
    start_logging(args.json_log);
    survive_file_size_limit()?;
    let mut signals = StopSignals::new()?;
    let mut config = Config::read(&args.file)?;
    if args.pass_gaps {
        config.sources.iter_mut().for_each(|source| source.on_gap = Decision::Pass);
    }
    let all = AllSeen::default();
    let handle = rolltop::telemetry::collect_metrics();
    seen::describe();
    let service = config.service.connect()?;
    if let Some(listen) = config.listen {
        seen::serve(listen, handle, all.clone())?;
    }
    let (tell, stop) = watch::channel(false);
    let mut logs = JoinSet::new();
    for source in config.sources {
        let of = SourceLogs::new(service.clone(), source, None, &all, &stop)?;
        logs.spawn(of.read(args.define, args.until_end));
    }
    let mut all_through = true;
    tokio::select! {
        () = signals.next() => {}
        () = async {
            while let Some(is_through) = logs.join_next().await {
                all_through &= matches!(is_through, Ok(true));
            }
        } => return all_through.then_some(()).context("not every log was read to its end"),
    }
    let _ = tell.send(true);
    let ended = async { while logs.join_next().await.is_some() {} };
    if tokio::time::timeout(GRACE, ended).await.is_err() {
        tracing::warn!("the service does not answer; what it counts is not sent again");
    }
    Ok(())
}

/// Sends the past of a log to a board.
async fn fill(args: FillArgs) -> anyhow::Result<()> {
    start_logging(false);
    survive_file_size_limit()?;
    let mut signals = StopSignals::new()?;
    let config = Config::read(&args.file)?;
    let Some(mut source) = config.sources.into_iter().find(|source| source.name == args.source) else {
        bail!("{} has no source '{}'", args.file.display(), args.source);
    };
    source.begin = args.begin;
    let (_tell, stop) = watch::channel(false);
    let all = AllSeen::default();
    let of = SourceLogs::new(config.service.connect()?, source, Some(args.board.clone()), &all, &stop)?;
    let mut feeds = JoinSet::new();
    for (name, log) in of.open().await? {
        feeds.spawn(of.feed(name, log, false, false)?.run());
    }
    let ended = async {
        let mut all_filled = true;
        while let Some(ended) = feeds.join_next().await {
            all_filled &= matches!(ended, Ok(FeedEnd::Filled));
        }
        all_filled
    };
    tokio::select! {
        () = signals.next() => bail!("told to stop; the same command goes on where it was"),
        all_filled = ended => match all_filled {
            true => println!("{} is filled", args.board),
            false => bail!("the fill has not ended"),
        },
    }
    Ok(())
}

fn start_logging(is_json: bool) {
    rolltop::telemetry::start_logging(if is_json { LogFormat::Json } else { LogFormat::Text });
}
