//! `rolltop-consume`: reads logs, and sends them to Rolltop, which counts each event once.
//!
//! ```text
//! config         what is read, and where it is sent
//! feed           a task for each log: asks where to go on, reads, sends
//!   log          files, Redis Streams, Kafka, NATS JetStream: messages with positions
//!   portion      the messages that are sent at once
//!     events     how a message becomes events
//!   source       what the service is asked, and what it answers
//!   dead_letters messages that were not counted
//! check          what would be sent
//! seen           metrics, and whether all is well
//! ```
//!
//! It keeps nothing: how far a log is counted is what the service says.

mod check;
mod config;
mod dead_letters;
mod events;
mod feed;
mod log;
mod portion;
mod seen;
mod source;

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, bail};
use clap::{Args, Parser, Subcommand};
use rolltop::config::LogFormat;
use rolltop_client::Service;
use tokio::sync::watch;
use tokio::task::JoinSet;

use config::{Begin, Config, Decision, SourceConfig};
use dead_letters::DeadLetters;
use events::Mapping;
use feed::{Choices, Ended, Feed, Memory};
use log::{Log, LogError, TimeOf};
use seen::{AllSeen, Seen, State};
use source::Source;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// How often it is looked for new partitions.
const LOOK: Duration = Duration::from_secs(30);
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
struct Cli {
    #[command(subcommand)]
    command: Option<Command>,
    #[command(flatten)]
    run: Option<RunArgs>,
}

#[derive(Debug, Subcommand)]
enum Command {
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
    let command = Cli::parse();
    let command = command.command.or(command.run.map(Command::Run));
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

async fn carry_out(command: Command) -> anyhow::Result<()> {
    match command {
        Command::Run(args) => run(args).await,
        Command::Check(CheckArgs { file, offline: true }) => Config::read(&file).map(drop),
        Command::Check(CheckArgs { file, offline: false }) => check::run(&Config::read(&file)?).await,
        Command::Fill(args) => fill(args).await,
    }
}

/// Reads all logs until the program is told to stop.
async fn run(args: RunArgs) -> anyhow::Result<()> {
    start_logging(args.json_log);
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
        let of = Of::new(service.clone(), source, None, &all, &stop)?;
        logs.spawn(of.read(args.define, args.until_end));
    }
    let mut all_through = true;
    tokio::select! {
        () = told() => {}
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
    let config = Config::read(&args.file)?;
    let Some(mut source) = config.sources.into_iter().find(|source| source.name == args.source) else {
        bail!("{} has no source '{}'", args.file.display(), args.source);
    };
    source.begin = args.begin;
    let (_tell, stop) = watch::channel(false);
    let all = AllSeen::default();
    let of = Of::new(config.service.connect()?, source, Some(args.board.clone()), &all, &stop)?;
    let mut feeds = JoinSet::new();
    for (name, log) in of.open().await.map_err(|(LogError::Later(error) | LogError::Stop(error))| error)? {
        feeds.spawn(of.feed(name, log, false, false)?.run());
    }
    let ended = async {
        let mut all_filled = true;
        while let Some(ended) = feeds.join_next().await {
            all_filled &= matches!(ended, Ok(Ended::Filled));
        }
        all_filled
    };
    tokio::select! {
        () = told() => bail!("told to stop; the same command goes on where it was"),
        all_filled = ended => match all_filled {
            true => println!("{} is filled", args.board),
            false => bail!("the fill has not ended"),
        },
    }
    Ok(())
}

/// What is needed to read the logs of a source of the configuration.
struct Of {
    service: Service,
    config: SourceConfig,
    mapping: Arc<Mapping>,
    fill: Option<String>,
    all: AllSeen,
    stop: watch::Receiver<bool>,
}

impl Of {
    fn new(
        service: Service,
        config: SourceConfig,
        fill: Option<String>,
        all: &AllSeen,
        stop: &watch::Receiver<bool>,
    ) -> anyhow::Result<Self> {
        if let Some(path) = &config.dead_letters {
            // It is better known now than with the first of them.
            DeadLetters::open(path)
                .with_context(|| format!("source '{}': cannot write {}", config.name, path.display()))?;
        }
        let mapping = Arc::new(Mapping::new(config.event.clone()));
        Ok(Self { service, config, mapping, fill, all: all.clone(), stop: stop.clone() })
    }

    /// Returns the logs that there are now, each with the name of its source.
    async fn open(&self) -> Result<Vec<(String, Box<dyn Log>)>, LogError> {
        let log = self.config.log().map_err(LogError::Stop)?;
        log.open(&self.config.name, time_of(&self.config, &self.mapping)).await
    }

    fn feed(&self, name: String, log: Box<dyn Log>, define: bool, until_end: bool) -> anyhow::Result<Feed> {
        let seen = Arc::new(Seen::new(&name));
        self.all.lock().push(seen.clone());
        let SourceConfig { begin, on_unreadable, on_gap, take_over, dead_letters, boards, .. } = &self.config;
        let take_over = Duration::from_secs(*take_over);
        Ok(Feed {
            source: Source::new(self.service.clone(), name, self.fill.clone()),
            log,
            mapping: self.mapping.clone(),
            choices: Choices { begin: *begin, on_unreadable: *on_unreadable, on_gap: *on_gap, take_over, until_end },
            dead_letters: dead_letters.as_deref().map(DeadLetters::open).transpose()?,
            seen,
            define: boards.clone().filter(|_| define),
            stop: self.stop.clone(),
            memory: Memory::default(),
        })
    }

    /// Reads the logs until told to stop, also those that there are later. Or those that there are now, each to its end;
    /// returns whether that is reached.
    async fn read(self, define: bool, until_end: bool) -> bool {
        let seen = Arc::new(Seen::new(&self.config.name));
        let (mut feeds, mut known, mut stop) = (JoinSet::new(), BTreeSet::new(), self.stop.clone());
        let may_grow = !until_end && self.config.log().is_ok_and(|log| log.may_grow());
        loop {
            match self.open().await {
                Ok(logs) => {
                    self.all.lock().retain(|other| !Arc::ptr_eq(other, &seen));
                    // What comes while this program runs is new, and nobody can have removed its source.
                    let define = define || !known.is_empty();
                    for (name, log) in logs {
                        if known.insert(name.clone()) {
                            match self.feed(name, log, define, until_end) {
                                Ok(feed) => drop(feeds.spawn(feed.run())),
                                Err(error) => tracing::error!(source = self.config.name, "{error:#}"),
                            }
                        }
                    }
                    if !may_grow {
                        break;
                    }
                }
                Err(error) => {
                    // A log that was there goes on being read.
                    if known.is_empty() {
                        let mut all = self.all.lock();
                        if !all.iter().any(|other| Arc::ptr_eq(other, &seen)) {
                            all.push(seen.clone());
                        }
                    }
                    seen.set(match error {
                        LogError::Later(error) => State::Failing(format!("{error:#}")),
                        LogError::Stop(error) => State::Stopped(format!("{error:#}")),
                    });
                }
            }
            let pause = if known.is_empty() { Duration::from_secs(2) } else { LOOK };
            if tokio::time::timeout(pause, stop.wait_for(|stop| *stop)).await.is_ok() {
                break;
            }
        }
        let mut all_through = until_end;
        while let Some(ended) = feeds.join_next().await {
            all_through &= matches!(ended, Ok(Ended::Through));
        }
        if !until_end {
            // Those that have ended by themselves are seen as stopped until somebody has looked.
            let _ = stop.wait_for(|stop| *stop).await;
        }
        all_through
    }
}

/// Returns how the time of a line is read.
fn time_of(config: &SourceConfig, mapping: &Arc<Mapping>) -> TimeOf {
    let (mapping, clock) = (mapping.clone(), config.clock());
    Arc::new(move |line| mapping.time_of(line, clock.as_ref()))
}

fn start_logging(is_json: bool) {
    rolltop::telemetry::start_logging(if is_json { LogFormat::Json } else { LogFormat::Text });
}

/// Waits for the word to stop: Ctrl-C, or SIGTERM.
async fn told() {
    let mut terminate = match tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate()) {
        Ok(terminate) => terminate,
        Err(error) => {
            tracing::warn!("SIGTERM is not noticed: {error}");
            let _ = tokio::signal::ctrl_c().await;
            return;
        }
    };
    tokio::select! {
        _ = terminate.recv() => {}
        _ = tokio::signal::ctrl_c() => {}
    }
}
