//! `rolltop post` and `rolltop event`: what happened, from the command line or as lines from standard input.

use std::io::{self, IsTerminal, Write};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use anyhow::{anyhow, bail};
use chrono::{DateTime, Utc};
use rolltop_client::answers::{Added, Rejection};
use rolltop_client::{Countable, Counts, Decimal, Event, Increment, SenderBuilder};
use serde::Serialize;
use serde_json::json;
use tokio::sync::Notify;

use super::advice;
use super::format::{FormatArgs, Table, has_colors, printable};
use super::lines::InputLines;
use super::server::ServerArgs;
use crate::board::Timestamp;

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
    /// The second key, which a board with tie_break needs
    #[arg(long, value_name = "NUMBER", allow_negative_numbers = true, requires = "subject")]
    tie_break: Option<i64>,
    /// The time at which it happened [default: now]
    #[arg(long, value_name = "TIME", value_parser = time, requires = "subject")]
    at: Option<DateTime<Utc>>,
    /// What tells it from others: the service counts an id once [default: a random one]
    #[arg(long, requires = "subject")]
    id: Option<String>,
    /// The period in which it must count, of a board with a season [default: that of its time]
    #[arg(long, value_name = "NAME", requires = "subject")]
    period: Option<String>,
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
    #[arg(value_name = "FIELD=VALUE", value_parser = field)]
    fields: Vec<(String, String)>,
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

fn field(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once('=').ok_or("'=' is missing after the field")?;
    Ok((name.to_owned(), value.to_owned()))
}

/// A value on the command line. What is neither a number nor `true` or `false` is a text, so that texts need no quotes.
#[derive(Serialize)]
#[serde(untagged)]
enum Scalar<'a> {
    /// It keeps its text.
    Number(Decimal),
    Truth(bool),
    Text(&'a str),
}

impl<'a> From<&'a str> for Scalar<'a> {
    fn from(text: &'a str) -> Self {
        match (text.parse(), text.parse()) {
            (Ok(number), _) => Self::Number(number),
            (_, Ok(truth)) => Self::Truth(truth),
            _ => Self::Text(text),
        }
    }
}

pub(super) async fn post(args: PostArgs) -> anyhow::Result<()> {
    let PostArgs { board, subject, amount, value, by, tie_break, at, id, period, retract, server, format } = args;
    let service = server.reached().await?;
    let board = service.board(&board);
    let Some(subject) = subject else {
        let read = |line: &str, number| Ok(Increment::from_json(line)?.tag(number));
        return lines(board.sender(), read, format).await;
    };
    let mut increment = Increment::new(&subject);
    if let Some(amount) = amount {
        increment = increment.amount(amount);
    }
    if let Some(value) = value {
        increment = increment.value(Scalar::from(value.as_str()));
    }
    if let Some(key) = by {
        increment = increment.by(&key);
    }
    if let Some(key) = tie_break {
        increment = increment.tie_break(key);
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
    let request = board.add_now(increment).optional("period", period);
    must_count(format.show(request, table).await)
}

pub(super) async fn event(args: EventArgs) -> anyhow::Result<()> {
    let EventArgs { kind, fields, at, id, server, format } = args;
    let service = server.reached().await?;
    let Some(kind) = kind else {
        let read = |line: &str, number| Ok(Event::from_json(line)?.tag(number));
        return lines(service.sender(), read, format).await;
    };
    let mut event = Event::new(&kind);
    for (name, value) in &fields {
        event = event.field(name, Scalar::from(value.as_str()));
    }
    if let Some(at) = at {
        event = event.at(at);
    }
    if let Some(id) = id {
        event = event.id(&id);
    }
    must_count(format.show(service.add_now(event), table).await)
}

/// Returns an error if the item was not counted: the reason of each board, of which each may have one of its own.
fn must_count(added: anyhow::Result<Added>) -> anyhow::Result<()> {
    let rejected = match added {
        Ok(added) => {
            if let Some(kind) = added.unknown_types.keys().next() {
                bail!("no board counts events of type '{}'; `rolltop boards` shows what they count", printable(kind));
            }
            added.rejected
        }
        // Where no board has counted it, the answer is an error.
        Err(error) => match rejections(&error) {
            Some(rejected) => rejected,
            None => return Err(error),
        },
    };
    let why = |Rejection { board, detail, .. }: &Rejection| match board {
        Some(board) => format!("not counted on '{board}': {}", printable(detail)),
        None => format!("not counted: {}", printable(detail)),
    };
    match rejected.is_empty() {
        true => Ok(()),
        false => bail!(rejected.iter().map(why).collect::<Vec<_>>().join("\n")),
    }
}

/// Returns the rejections of which an error of the server consists.
fn rejections(error: &anyhow::Error) -> Option<Vec<Rejection>> {
    let error = error.downcast_ref::<rolltop_client::Error>().filter(|error| error.code() == "rejected")?;
    serde_json::from_value(error.problem().get("rejected")?.clone()).ok()
}

fn table(added: &Added) -> Table {
    let counts = [added.accepted, added.duplicates, added.rejected.len() as u64];
    Table::new(["counted:", "counted before:", "rejected:"]).rows([counts.map(|count| count.to_string()).to_vec()])
}

/// Sends each line of standard input, until its end or Ctrl-C. A second Ctrl-C ends it without waiting for the server.
async fn lines<T: Countable>(
    sender: SenderBuilder<T>,
    read: impl Fn(&str, u64) -> rolltop_client::Result<T>,
    format: FormatArgs,
) -> anyhow::Result<()> {
    if io::stdin().is_terminal() {
        bail!("what shall be counted? Name it, or give lines of JSON to standard input");
    }
    // The client says that it sends again.
    let log = tracing_subscriber::fmt().with_writer(io::stderr).with_max_level(tracing::Level::WARN);
    drop(log.with_ansi(has_colors(&io::stderr())).try_init());
    let errors = Arc::new(Errors::default());
    let (rejected, failed) = (errors.clone(), errors.clone());
    let sender = sender
        .give_up_after(PATIENCE)
        .on_rejected(move |item, rejection| rejected.reject(item.tag(), rejection))
        .on_failed(move |_, error| failed.fail(error))
        .start()?;
    let mut input = InputLines::new(tokio::io::stdin());
    let read_all = async {
        while let Some((number, line)) = input.next().await? {
            match line.and_then(|line| read(line, number).map_err(|error| error.detail().to_owned())) {
                Ok(item) => sender.add(item).await?,
                Err(detail) => errors.print(Some(number), &detail),
            }
        }
        anyhow::Ok(())
    };
    let ended = tokio::select! {
        ended = read_all => ended,
        // The rest would be refused, too.
        () = errors.has_failed.notified() => Ok(()),
        _ = tokio::signal::ctrl_c() => Err(anyhow!("interrupted: what was read before is sent, the rest is not")),
    };
    let closed = tokio::select! {
        closed = sender.close() => closed.map_err(Into::into),
        _ = tokio::signal::ctrl_c() => Err(anyhow!("interrupted: not all that was read is sent")),
    };
    let counts = sender.counts();
    let refused = errors.lines.load(Ordering::Relaxed);
    format.print(&json_of(&counts, refused), || {
        let numbers = [counts.accepted, counts.duplicates, refused, counts.failed + counts.waiting];
        Table::new(["counted:", "counted before:", "refused, also in part:", "not sent:"])
            .rows([numbers.map(|number| number.to_string()).to_vec()])
    })?;
    if let Some(why) = errors.why.get() {
        bail!("{why}");
    }
    ended.and(closed)?;
    match refused {
        0 => Ok(()),
        refused => bail!("{refused} of {} lines were refused, or by one of their boards", input.number),
    }
}

fn json_of(counts: &Counts, refused: u64) -> String {
    let Counts { accepted, duplicates, failed, unknown, waiting, .. } = counts;
    let not_sent = failed + waiting;
    json!({"accepted": accepted, "duplicates": duplicates, "rejected": refused, "failed": not_sent, "unknown": unknown})
        .to_string()
}

/// The errors of lines, of which the first are printed to standard error.
#[derive(Default)]
struct Errors {
    /// The number of lines that were refused.
    lines: AtomicU64,
    /// The last of them: an event may be refused by several boards.
    last: AtomicU64,
    /// Why the server refuses to take lines at all.
    why: OnceLock<String>,
    has_failed: Notify,
}

impl Errors {
    fn reject(&self, line: Option<u64>, rejection: &Rejection) {
        match &rejection.board {
            Some(board) => self.print(line, &format!("board '{board}': {}", rejection.detail)),
            None => self.print(line, &rejection.detail),
        }
    }

    fn fail(&self, error: &rolltop_client::Error) {
        let _ = self.why.set(advice::of_server(error));
        self.has_failed.notify_one();
    }

    fn print(&self, line: Option<u64>, detail: &str) {
        let line = line.unwrap_or_default();
        if self.last.swap(line, Ordering::Relaxed) != line {
            self.lines.fetch_add(1, Ordering::Relaxed);
        }
        let text = match self.lines.load(Ordering::Relaxed) {
            0..=MAX_ERRORS => format!("line {line}: {}", printable(detail)),
            at if at == MAX_ERRORS + 1 => "more lines were refused".to_owned(),
            _ => return,
        };
        // If standard error cannot be written, the numbers at the end say it.
        drop(writeln!(io::stderr(), "{text}"));
    }
}
