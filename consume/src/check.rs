//! `rolltop-consume check`: what the first messages of each log would be.

use std::fmt::Write as _;
use std::io::Write as _;
use std::sync::Arc;

use anyhow::Context;
use rolltop::board::{Change, Decimals, Event, Field, Fields, Metric, Score, TieBreak};
use rolltop_client::Service;
use serde_json::Value;

use crate::choices::Begin;
use crate::config::{Config, SourceConfig};
use crate::events::Mapping;
use crate::log::{Log, LogError, LogPlace, Message};
use crate::source_logs;

/// Number of messages that are shown.
const SHOWN: usize = 10;

/// Number of logs of a source that are looked into: each may be waited for.
const LOOKED_INTO: usize = 30;

/// A board, as far as it says what it counts.
struct Counting {
    name: String,
    metric: Metric,
    decimals: Decimals,
    tie_break: Option<TieBreak>,
}

/// Shows the first messages of each log as events, and what boards would do with them. Sends nothing.
pub async fn run(config: &Config) -> anyhow::Result<()> {
    let service = config.service.connect()?;
    let mut text = String::new();
    let boards = match boards(&service).await {
        Ok(boards) => Some(boards),
        Err(error) => {
            let _ = writeln!(text, "what boards would do is not known: {error:#}\n");
            None
        }
    };
    let mut all_read = true;
    for source in &config.sources {
        if let Err(error) = show(source, boards.as_deref(), &mut text).await {
            let _ = writeln!(text, "{}: {:#}", source.name, anyhow::Error::from(error));
            all_read = false;
        }
    }
    match std::io::stdout().write_all(text.as_bytes()) {
        // Who reads it has seen enough.
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => {}
        written => written.context("cannot print")?,
    }
    all_read.then_some(()).context("not every log could be read")
}

async fn boards(service: &Service) -> anyhow::Result<Vec<Counting>> {
    let answer = service.boards().await.map_err(|error| anyhow::Error::msg(error.to_string()))?;
    let board = |board: &rolltop_client::answers::Defined| {
        let (metric, decimals) = (board.metric.parse().ok()?, Decimals::new(u8::try_from(board.decimals).ok()?)?);
        let tie_break = board.more.get("tie_break").and_then(|form| serde_json::from_value(form.clone()).ok());
        Some(Counting { name: board.board.clone(), metric, decimals, tie_break })
    };
    Ok(answer.items.iter().filter_map(board).collect())
}

async fn show(source: &SourceConfig, boards: Option<&[Counting]>, text: &mut String) -> Result<(), LogError> {
    let is_of_source = |board: &&Counting| source.is_for(&board.name);
    let boards: Option<Vec<&Counting>> = boards.map(|boards| boards.iter().filter(is_of_source).collect());
    let mapping = Arc::new(Mapping::new(source.event.clone()));
    let schemas = source.schemas().map_err(LogError::Stop)?;
    let logs = source_logs::open(source, &mapping, schemas.as_ref()).await?;
    let _ = writeln!(text, "{}: {} {}", source.name, logs.len(), if logs.len() == 1 { "log" } else { "logs" });
    // One that has messages is enough of a topic.
    let (mut shown, mut looked) = (None, 0);
    for (name, mut log) in logs {
        let topic = log.partition().map(|(topic, _)| topic.to_owned());
        if shown.as_ref() == Some(&topic) {
            continue;
        }
        if looked == LOOKED_INTO {
            let _ = writeln!(text, "  {name} and others are not looked into");
            break;
        }
        looked += 1;
        let messages = first(log.as_mut()).await?;
        let _ = writeln!(text, "  {name}: {}", if messages.is_empty() { "nothing to read" } else { "begins with" });
        for message in messages.iter().take(SHOWN) {
            show_message(message, &mapping, boards.as_deref(), text);
        }
        if !messages.is_empty() {
            shown = Some(topic);
        }
    }
    Ok(())
}

/// Returns the first messages of a log.
async fn first(log: &mut dyn Log) -> Result<Vec<Message>, LogError> {
    log.go_to(LogPlace::Begin(Begin::Earliest)).await?;
    for _ in 0..3 {
        let messages = log.read().await?;
        if !messages.is_empty() {
            return Ok(messages);
        }
    }
    Ok(Vec::new())
}

fn show_message(message: &Message, mapping: &Mapping, boards: Option<&[&Counting]>, text: &mut String) {
    let mut lines = String::new();
    match mapping.append(message, &mut lines) {
        Err(why) => {
            let value = message.value.as_deref().unwrap_or_default();
            let _ = writeln!(text, "    {}: makes no event: {why}", message.position);
            let shown = String::from_utf8_lossy(&value[..value.len().min(200)]);
            let _ =
                writeln!(text, "      {}", shown.trim_end().replace(|c: char| c.is_control() && c != '\t', "\u{fffd}"));
        }
        Ok(0) => {
            let _ = writeln!(text, "    {}: has no event", message.position);
        }
        Ok(_) => {
            for line in lines.lines() {
                let _ = writeln!(text, "    {line}");
                let Some(boards) = boards else { continue };
                let counted = counted(line, boards);
                let _ = match counted.is_empty() {
                    true => writeln!(text, "      no board of the source counts it"),
                    false => writeln!(text, "      {}", counted.join(", ")),
                };
            }
        }
    }
}

/// Returns what each board of an event's type would do.
fn counted(line: &str, boards: &[&Counting]) -> Vec<String> {
    let Ok(value) = serde_json::from_str::<Value>(line) else { return Vec::new() };
    let mut fields = Fields::default();
    for (name, value) in value["fields"].as_object().into_iter().flatten() {
        let field = match value {
            Value::String(text) => Field::Text(text.as_str().into()),
            Value::Number(number) => Field::Number(number.to_string().into()),
            Value::Bool(value) => Field::Bool(*value),
            _ => continue,
        };
        fields.set(name.as_str(), field);
    }
    let kind = value["type"].as_str().unwrap_or_default().into();
    let event = Event { kind, fields, at: None, id: None, retract: value["retract"] == true };
    let of_type = boards.iter().filter(|board| board.metric.terms.has(&event.kind));
    of_type
        .map(|Counting { name, metric, decimals, tie_break }| match metric.contribution(&event, *decimals) {
            Err(error) => format!("{name}: rejected, {error}"),
            Ok(Some(_)) if let Some(Err(error)) = tie_break.as_ref().map(|keys| keys.key_of(&event.fields)) => {
                format!("{name}: rejected, {error}")
            }
            Ok(None) => format!("{name}: left out by its filter"),
            Ok(Some((subject, change))) => {
                let what = match change {
                    Change::Amount(amount) => Score { units: amount.0, decimals: *decimals }.to_string(),
                    Change::Seen(value) => format!("the value {}", value.as_str()),
                    _ => "what it says".to_owned(),
                };
                let what = if event.retract { format!("takes back {what}") } else { what };
                let by = subject.key().map(|by| format!(" of {by}")).unwrap_or_default();
                format!("{name}: {what} for {}{by}", subject.name())
            }
        })
        .collect()
}
