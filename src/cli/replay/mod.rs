//! `rolltop replay`: posts a log to a running server, each line with the time when it happened.
//!
//! A thread reads and parses the log (`input`, `format`) and gathers batches (`batch`). The main task posts them
//! (`client`) and counts the outcome of every line (`summary`). Few batches exist at a time, so memory stays constant
//! however long the log is.

pub mod access_log;
mod batch;
mod client;
mod fields;
mod format;
mod input;
mod ndjson;
mod progress;
mod record;
mod summary;
mod table;
pub mod time_format;

use std::io::Write;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use anyhow::{Context, anyhow, bail};
use futures_util::StreamExt;
use rapidhash::v3::{RapidSecrets, rapidhash_v3_seeded};
use tokio::sync::mpsc;

use batch::{Batch, Batcher};
use client::{Client, NewBoard};
use fields::Fields;
use format::{LogFormat, Parser};
use input::Input;
pub use input::{MAX_LINE_BYTES, text};
use progress::Progress;
use record::Record;
use summary::{PostStats, ReadStats, Summary};

use super::format::printable;
use super::server::ServerArgs;
use crate::board::{BoardName, Calendar, Metric, Span};

/// The number of lines that are read to guess the format.
const LINES_TO_GUESS: usize = 10;
/// The number of concurrent requests. If the log drives the clock, or if the metric depends on the order of events,
/// there is only one, because each request must wait for the previous one.
const REQUESTS_IN_FLIGHT: usize = 2;

/// Post a log to a running server, each line with the time when it happened.
#[derive(Clone, Debug, clap::Args)]
pub struct ReplayArgs {
    /// The log, plain or gzip; `-` reads standard input.
    file: PathBuf,

    /// The board to post to.
    #[arg(long)]
    board: String,

    #[command(flatten)]
    server: ServerArgs,

    /// The format of the log; guessed from its first lines if not given.
    #[arg(long, value_enum)]
    format: Option<LogFormat>,

    /// The field to count. Access logs: path, ip, method, status, user, agent or referrer (path if not given); NDJSON
    /// and CSV: the name of a field.
    #[arg(long, value_name = "FIELD")]
    subject: Option<String>,

    /// The field to add up; one per line if not given. Access logs: bytes; NDJSON and CSV: the name of a field.
    #[arg(long, value_name = "FIELD")]
    amount: Option<String>,

    /// The NDJSON or CSV field with the key of the ranking, for a board whose metric has BY.
    #[arg(long, value_name = "FIELD")]
    by: Option<String>,

    /// The NDJSON or CSV field with the value to count or to measure, for boards of AVG, MIN, MAX, LAST, COUNT_DISTINCT
    /// and APPROX_COUNT_DISTINCT.
    #[arg(long, value_name = "FIELD", conflicts_with = "amount")]
    value: Option<String>,

    /// The NDJSON or CSV field with the time of the event: RFC 3339, `2015-09-12 00:46:58` (read as UTC), Unix seconds
    /// or milliseconds. If not given, every line counts when it arrives.
    #[arg(long, value_name = "FIELD")]
    time: Option<String>,

    /// The NDJSON or CSV field with the id of the event, so that a repeated replay counts nothing twice.
    #[arg(long, value_name = "FIELD")]
    id: Option<String>,

    /// Give each line an id derived from its number and content, so that a failed or repeated replay counts nothing
    /// twice. The server remembers an id for the window, at most a day, or as long as `dedupe` of the board says, by
    /// its own clock: with --clock log, that is the time in the log. An id takes about 80 to 130 bytes, so this is not
    /// the default.
    #[arg(long, conflicts_with = "id")]
    resume_safe: bool,

    /// Cut the paths of an access log at `?`.
    #[arg(long)]
    strip_query: bool,

    /// The clock that determines "now". `log`: the newest time read so far is set as the server's simulated clock, and
    /// the board is rolled over at every slot.
    #[arg(long, value_enum, default_value = "server")]
    clock: ReplayClock,

    /// Define the board first, such as 'COUNT(24h, hit, path)'; succeeds if it exists with the same definition.
    #[arg(long, value_name = "METRIC")]
    define: Option<Metric>,

    /// The slot of the board to define, such as 1h. Required unless the metric is over all time.
    #[arg(long, requires = "define")]
    slot: Option<Span>,

    /// The decimals of the board to define.
    #[arg(long, requires = "define", value_parser = clap::value_parser!(u8).range(0..=9))]
    decimals: Option<u8>,

    /// The time zone of the board to define, such as Europe/Berlin.
    #[arg(long, requires = "define")]
    timezone: Option<chrono_tz::Tz>,
}

/// The clock that determines "now".
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum ReplayClock {
    /// The server's clock, whatever the log says.
    Server,
    /// The times in the log.
    Log,
}

/// Replays a log, and prints the outcome of its lines.
///
/// Fails if the log cannot be read to its end, if the server cannot be reached or fails, and if no line counts, now or
/// before.
pub async fn run(args: ReplayArgs) -> anyhow::Result<()> {
    let begun = Instant::now();
    let board = BoardName::parse(&args.board)?;
    let log = args.file.display().to_string();
    let unreadable = || format!("cannot read {log}");
    let mut input = Input::open(&args.file).with_context(unreadable)?;
    let first_lines = input.peek_lines(LINES_TO_GUESS).with_context(unreadable)?;
    let format = match args.format {
        Some(format) => format,
        None => LogFormat::guess(&first_lines)
            .ok_or_else(|| anyhow!("cannot guess the format of {log} from its first lines; set it with --format"))?,
    };
    let parser = Parser::new(format, args.fields(), args.strip_query)?;
    let missing = parser.missing_fields(&first_lines);
    if args.clock == ReplayClock::Log && !parser.has_times() {
        bail!("--clock log requires --time, which names the field with the time of the event");
    }

    let client = Client::new(&args.server, board, args.resume_safe || args.id.is_some())?;
    if let Some(definition) = args.definition() {
        client.define(&definition).await?;
    }
    let (calendar, kind) = client.board().await?;
    let (calendar, in_flight) = match args.clock {
        ReplayClock::Server if kind.depends_on_order() => (None, 1),
        ReplayClock::Server => (None, REQUESTS_IN_FLIGHT),
        ReplayClock::Log => {
            client.clock().await?;
            (Some(calendar), 1)
        }
    };

    let progress = Progress::start(&input);
    let (batches, received) = mpsc::channel(in_flight);
    let resume_safe = args.resume_safe;
    let reading = tokio::task::spawn_blocking(move || gather(input, &parser, calendar, resume_safe, &batches));
    let mut posts = PostStats::default();
    let posting = post_all(&client, received, in_flight, &mut posts, &progress).await;
    let (read, reading) = reading.await.context("the reading thread failed")?;
    progress.finish();

    let summary = Summary { read: &read, posts: &posts, took: begun.elapsed() }.to_string();
    std::io::stdout().write_all(summary.as_bytes()).context("cannot print the summary")?;
    posting?;
    reading.with_context(unreadable)?;
    if posts.posted == 0 {
        let why = missing.map(|(missing, there)| {
            let quoted = |names: Vec<String>| {
                let names: Vec<String> = names.iter().map(|name| format!("'{}'", printable(name))).collect();
                names.join(", ")
            };
            format!("; the first line has no {}, but {}", quoted(missing), quoted(there))
        });
        bail!(
            "nothing was posted: none of the {} lines could be read as {format:?}{}",
            read.lines,
            why.unwrap_or_default()
        );
    }
    if posts.counted == 0 && posts.duplicates == 0 {
        let why = posts.first_rejection().map(|why| format!("; {why}")).unwrap_or_default();
        bail!("nothing was counted: the server rejected all of the {} lines that were posted{why}", posts.posted);
    }
    Ok(())
}

impl ReplayArgs {
    /// Returns the names of the fields that are asked for.
    fn fields(&self) -> Fields<String> {
        Fields {
            subject: self.subject.clone(),
            amount: self.amount.clone(),
            by: self.by.clone(),
            value: self.value.clone(),
            time: self.time.clone(),
            id: self.id.clone(),
        }
    }

    fn definition(&self) -> Option<NewBoard> {
        Some(NewBoard {
            metric: self.define.clone()?,
            slot: self.slot,
            decimals: self.decimals,
            timezone: self.timezone,
        })
    }
}

/// The error that the posting task has stopped. The task reports the reason itself.
#[derive(Debug, thiserror::Error)]
#[error("no more batches are accepted")]
struct PosterStopped;

/// Reads the log to its end, or until the posting task no longer takes batches.
fn gather(
    input: Input,
    parser: &Parser,
    calendar: Option<Calendar>,
    resume_safe: bool,
    batches: &mpsc::Sender<Batch>,
) -> (ReadStats, anyhow::Result<()>) {
    let mut read = ReadStats::default();
    let mut batcher = Batcher::new(calendar);
    let send = |batch: Option<Batch>| match batch {
        Some(batch) => batches.blocking_send(batch).map_err(|_| anyhow::Error::new(PosterStopped)),
        None => Ok(()),
    };
    let outcome = parser.read(input.reader, |line, raw, record| {
        read.lines += 1;
        match record {
            Ok(record) if resume_safe => {
                let record = Record { id: Some(line_id(line, raw).into()), ..record };
                send(batcher.push(line, &record)?)
            }
            Ok(record) => send(batcher.push(line, &record)?),
            Err(reason) => {
                read.skip(line, reason);
                Ok(())
            }
        }
    });
    // The lines read before a failure are still posted.
    let last = send(batcher.take());
    match outcome.and(last) {
        Err(error) if error.is::<PosterStopped>() => (read, Ok(())),
        other => (read, other),
    }
}

/// Returns the id of a line. It is the same for the same line of the same log, even if the log has grown, and different
/// for the same text in a later line.
fn line_id(line: u64, raw: &[u8]) -> String {
    format!("{line}-{:016x}", rapidhash_v3_seeded(raw, &RapidSecrets::seed(line)))
}

/// Posts batches until the log ends or a batch finally fails. Then it waits for the requests in progress and counts
/// them.
async fn post_all(
    client: &Client,
    received: mpsc::Receiver<Batch>,
    in_flight: usize,
    posts: &mut PostStats,
    progress: &Progress,
) -> anyhow::Result<()> {
    let failed = AtomicBool::new(false);
    let batches = futures_util::stream::unfold(received, |mut received| async {
        let batch = received.recv().await?;
        (!failed.load(Ordering::Relaxed)).then_some((batch, received))
    });
    let mut posted = std::pin::pin!(batches.map(|batch| client.deliver(batch)).buffer_unordered(in_flight));
    let mut failure = None;
    while let Some(outcome) = posted.next().await {
        match outcome {
            Ok(outcome) => posts.add(&outcome),
            Err(error) => {
                failed.store(true, Ordering::Relaxed);
                failure.get_or_insert(error);
            }
        }
        progress.show(posts);
    }
    failure.map_or(Ok(()), Err)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn line_ids_are_distinct_and_deterministic() {
        assert_eq!(line_id(1, b"a"), line_id(1, b"a"));
        assert_ne!(line_id(1, b"a"), line_id(2, b"a"));
        assert_ne!(line_id(1, b"a"), line_id(1, b"b"));
        assert!(crate::board::EventId::parse(&line_id(u64::MAX, b"a")).is_ok());
    }
}
