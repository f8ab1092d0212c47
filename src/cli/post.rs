//! `rolltop post` and `rolltop event`: what happened, from the command line or as lines from standard input.

use std::io::{IsTerminal, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use anyhow::{Context, bail};
use chrono::{DateTime, Utc};
use futures_util::StreamExt;
use rolltop_client::answers::{Added, Rejection};
use rolltop_client::{Countable, Counts, Decimal, Event, Increment, Method, SenderBuilder, Service};
use serde::de::IgnoredAny;
use serde_json::{Value, json};
use tokio_util::codec::{FramedRead, LinesCodec};

use super::format::{FormatArgs, Table, printable};
use super::server::ServerArgs;
use crate::board::Timestamp;

/// The longest line, in bytes. The service takes none that is longer.
const MAX_LINE: usize = 1 << 20;
/// The number of lines whose errors are printed.
const MAX_ERRORS: u64 = 100;
/// The time for which lines are sent again while the server does not take them.
const PATIENCE: Duration = Duration::from_secs(300);

/// Count an increment on a board, or each line (NDJSON) of standard input: exit code 1 if one was not counted
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "Each increment has an id and counts once, however often it is sent. Examples:\n  \
    rolltop post hot-posts post-1 5\n  \
    printf '{\"subject\":\"post-1\",\"amount\":5}\\n' | rolltop post hot-posts")]
pub(super) struct PostArgs {
    /// The board
    board: String,
    /// The subject [default: lines of standard input, such as {"subject":"post-1","amount":5}]
    subject: Option<String>,
    /// The amount to add [default: 1]
    #[arg(allow_negative_numbers = true, conflicts_with = "value")]
    amount: Option<Decimal>,
    /// The value to count, on boards of AVG, MIN, MAX, LAST and those that count different values: a number or a text
    #[arg(long, allow_negative_numbers = true, requires = "subject")]
    value: Option<String>,
    /// The key of the ranking, on a board with one for each
    #[arg(long, value_name = "KEY", requires = "subject")]
    by: Option<String>,
    /// The time at which it happened [default: now]
    #[arg(long, value_name = "TIME", value_parser = time, requires = "subject")]
    at: Option<DateTime<Utc>>,
    /// What tells it from others: the service counts an id once [default: a random one]
    #[arg(long, requires = "subject")]
    id: Option<String>,
    /// Take back an earlier one, which happened at the time --at
    #[arg(long, requires = "subject")]
    retract: bool,
    #[command(flatten)]
    server: ServerArgs,
    #[command(flatten)]
    format: FormatArgs,
}

/// Count an event on every board of its type, or each line (NDJSON) of standard input: exit code 1 if a board refuses one
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "Each event has an id and counts once, however often it is sent. Examples:\n  \
    rolltop event like post_id=post-1 user_id=7\n  \
    printf '{\"type\":\"like\",\"fields\":{\"post_id\":\"post-1\"}}\\n' | rolltop event")]
pub(super) struct EventArgs {
    /// The type, such as like [default: lines of standard input]
    kind: Option<String>,
    /// The fields: numbers, true, false, or texts
    #[arg(value_name = "FIELD=VALUE")]
    fields: Vec<String>,
    /// The time at which it happened [default: now]
    #[arg(long, value_name = "TIME", value_parser = time, requires = "kind")]
    at: Option<DateTime<Utc>>,
    /// What tells it from others: the service counts an id once [default: a random one]
    #[arg(long, requires = "kind")]
    id: Option<String>,
    #[command(flatten)]
    server: ServerArgs,
    #[command(flatten)]
    format: FormatArgs,
}

fn time(text: &str) -> Result<DateTime<Utc>, String> {
    let time = Timestamp::parse(text).map_err(|error| error.to_string())?;
    DateTime::from_timestamp_millis(time.millis()).ok_or_else(|| format!("'{text}' is not a time"))
}

/// Reads a number, `true` or `false`. What is none of them is a text, so that texts need no quotes.
fn scalar(text: &str) -> Value {
    let read = serde_json::from_str::<Value>(text).ok();
    read.filter(|value| value.is_number() || value.is_boolean()).unwrap_or_else(|| json!(text))
}

pub(super) async fn post(args: PostArgs) -> anyhow::Result<()> {
    let PostArgs { board, subject, amount, value, by, at, id, retract, server, format } = args;
    let service = server.builder()?.repeat_for(super::PATIENCE).build()?;
    let board = service.board(&board);
    let Some(subject) = subject else {
        let read = |line: &str, number| Ok(Increment::from_json(line)?.tag(number));
        return lines(&service, board.sender(), read, format).await;
    };
    let mut increment = Increment::new(&subject);
    if let Some(amount) = amount {
        increment = increment.amount(amount);
    }
    if let Some(value) = value {
        // A number keeps its text.
        increment = match value.parse::<Decimal>() {
            Ok(number) => increment.value(number),
            Err(_) => increment.value(scalar(&value)),
        };
    }
    if let Some(key) = by {
        increment = increment.by(&key);
    }
    if let Some(at) = at {
        increment = increment.at(at);
    }
    if let Some(id) = id {
        increment = increment.id(&id);
    }
    if retract {
        increment = increment.retract();
    }
    must_count(&format.show(board.add_now(increment), table).await?)
}

pub(super) async fn event(args: EventArgs) -> anyhow::Result<()> {
    let EventArgs { kind, fields, at, id, server, format } = args;
    let service = server.builder()?.repeat_for(super::PATIENCE).build()?;
    let Some(kind) = kind else {
        let read = |line: &str, number| Ok(Event::from_json(line)?.tag(number));
        return lines(&service, service.sender(), read, format).await;
    };
    let mut event = Event::new(&kind);
    for field in &fields {
        let Some((name, value)) = field.split_once('=') else { bail!("{field}: '=' is missing after the field") };
        event = match value.parse::<Decimal>() {
            Ok(number) => event.field(name, number),
            Err(_) => event.field(name, scalar(value)),
        };
    }
    if let Some(at) = at {
        event = event.at(at);
    }
    if let Some(id) = id {
        event = event.id(&id);
    }
    must_count(&format.show(service.add_now(event), table).await?)
}

/// Returns an error if the item was not counted.
fn must_count(added: &Added) -> anyhow::Result<()> {
    if let Some(kind) = added.unknown_types.keys().next() {
        bail!("no board counts events of type '{}'; `rolltop boards` shows what they count", printable(kind));
    }
    match added.rejected.first() {
        Some(Rejection { board: Some(board), detail, .. }) => bail!("not counted on '{board}': {detail}"),
        Some(Rejection { detail, .. }) => bail!("not counted: {detail}"),
        None => Ok(()),
    }
}

fn table(added: &Added) -> Table {
    let counts = [added.accepted, added.duplicates, added.rejected.len() as u64];
    Table::new(["counted:", "counted before:", "rejected:"]).rows([counts.map(|count| count.to_string()).to_vec()])
}

/// Sends each line of standard input, until its end or Ctrl-C.
async fn lines<T: Countable>(
    service: &Service,
    sender: SenderBuilder<T>,
    read: impl Fn(&str, u64) -> rolltop_client::Result<T>,
    format: FormatArgs,
) -> anyhow::Result<()> {
    if std::io::stdin().is_terminal() {
        bail!("what shall be counted? Name it, or give lines of JSON to standard input");
    }
    // A server that is not there is found before the first line is read.
    service.request::<IgnoredAny>(Method::GET, "/healthz").await?;
    // The client says that it sends again.
    let log = tracing_subscriber::fmt().with_writer(std::io::stderr).with_max_level(tracing::Level::WARN);
    drop(log.try_init());
    let errors = Arc::new(Errors::default());
    let reported = errors.clone();
    let sender = sender
        .give_up_after(PATIENCE)
        .on_rejected(move |item, rejected| reported.print(item.tag(), &rejected.detail))
        .start()?;
    let mut text = FramedRead::new(tokio::io::stdin(), LinesCodec::new_with_max_length(MAX_LINE));
    let (mut number, mut unread) = (0, 0);
    let read_all = async {
        loop {
            let line = tokio::select! {
                line = text.next() => line,
                // What was read is sent.
                _ = tokio::signal::ctrl_c() => None,
            };
            let Some(line) = line else { return anyhow::Ok(()) };
            number += 1;
            let line = line.with_context(|| format!("line {number} of standard input cannot be read"))?;
            if line.trim().is_empty() {
                continue;
            }
            match read(&line, number) {
                Ok(item) => sender.add(item).await?,
                Err(error) => {
                    unread += 1;
                    errors.print(Some(number), error.detail());
                }
            }
        }
    };
    let all_read = read_all.await;
    let closed = sender.close().await;
    let counts = sender.counts();
    format.print(&json_of(&counts, unread), || {
        let numbers = [counts.accepted, counts.duplicates, counts.rejected + unread, counts.failed];
        Table::new(["counted:", "counted before:", "rejected:", "not sent:"])
            .rows([numbers.map(|number| number.to_string()).to_vec()])
    })?;
    all_read.and_then(|()| Ok(closed?))?;
    match counts.rejected + counts.failed + unread {
        0 => Ok(()),
        refused => bail!("of {number} lines {refused} were not counted"),
    }
}

fn json_of(counts: &Counts, unread: u64) -> String {
    let Counts { accepted, duplicates, rejected, failed, unknown, .. } = counts;
    let rejected = rejected + unread;
    json!({"accepted": accepted, "duplicates": duplicates, "rejected": rejected, "failed": failed, "unknown": unknown})
        .to_string()
}

/// The errors of lines, of which the first are printed to standard error.
#[derive(Default)]
struct Errors(AtomicU64);

impl Errors {
    fn print(&self, line: Option<u64>, detail: &str) {
        let text = match self.0.fetch_add(1, Ordering::Relaxed) {
            0..MAX_ERRORS => format!("line {}: {}", line.unwrap_or_default(), printable(detail)),
            MAX_ERRORS => "more lines were not counted".to_owned(),
            _ => return,
        };
        // If standard error cannot be written, the numbers at the end say it.
        drop(writeln!(std::io::stderr(), "{text}"));
    }
}
