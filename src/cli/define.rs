//! `rolltop define`: defines a board, after showing what it would be.

use std::io::Write;

use anyhow::bail;
use rolltop_client::answers::Preview;
use serde_json::Value;

use super::definition::DefinitionArgs;
use super::format::{FormatArgs, Table, printable};
use super::output::say;
use super::question::confirm;
use super::server::ServerArgs;

/// Define a board: shows what it would be and take, and asks
#[derive(Clone, Debug, clap::Args)]
pub(super) struct DefineArgs {
    /// The name of the board
    board: String,
    #[command(flatten)]
    definition: DefinitionArgs,
    /// Do not ask
    #[arg(long, short)]
    yes: bool,
    /// Only show what it would be and take
    #[arg(long, conflicts_with = "yes")]
    dry_run: bool,
    #[command(flatten)]
    server: ServerArgs,
    #[command(flatten)]
    format: FormatArgs,
}

pub(super) async fn run(args: DefineArgs) -> anyhow::Result<()> {
    let DefineArgs { board: name, definition, yes, dry_run, server, format } = args;
    let definition = definition.read()?;
    let board = server.service()?.board(&name);
    let text = board.preview(&definition).text().await?;
    let preview: Preview = serde_json::from_str(&text)?;
    if let Some(conflict) = &preview.conflict {
        let keys = match &conflict.keys[..] {
            [one] => format!("{one} is"),
            several => format!("{} are", several.join(", ")),
        };
        bail!(
            "there is a board '{name}' with another definition: {keys} not the same. `rolltop next define {name} …` counts the new \
             one beside it, to take over later"
        );
    }
    if dry_run {
        return format.print(&text, || table(&preview));
    }
    if preview.exists {
        say!("'{name}' is defined like this already")?;
        return Ok(());
    }
    // To standard error, so that standard output has the answer alone.
    writeln!(std::io::stderr(), "{}", table(&preview).text(false))?;
    confirm(&format!("Define '{}'?", printable(&name)), yes)?;
    let text = board.define(&definition).text().await?;
    match format.json {
        true => say!("{}", text.trim_end())?,
        false => say!("'{name}' is defined; `rolltop post {name} SUBJECT` counts on it")?,
    }
    Ok(())
}

fn table(preview: &Preview) -> Table {
    let Preview { metric, slot, bytes_per_subject: bytes, notes, more, .. } = preview;
    let mut rows = vec![vec!["metric".to_owned(), metric.clone()]];
    rows.extend(slot.iter().map(|slot| vec!["slot".to_owned(), slot.clone()]));
    rows.extend(
        more.get("decimals").filter(|decimals| **decimals != 0).map(|it| vec!["decimals".to_owned(), it.to_string()]),
    );
    for key in ["season", "prior", "tie_break", "cap"] {
        let Some(Value::Object(members)) = more.get(key) else { continue };
        // As `--season` takes it.
        let members = members.iter().map(|(name, value)| match value {
            Value::String(text) => format!("{name}={text}"),
            value => format!("{name}={value}"),
        });
        rows.push(vec![key.to_owned(), members.collect::<Vec<_>>().join(",")]);
    }
    for key in ["ties", "ranks", "starts", "attributes"] {
        rows.extend(more.get(key).and_then(Value::as_str).map(|text| vec![key.to_owned(), text.to_owned()]));
    }
    let takes = format!("{} bytes if counted in one slot, {} if in every slot", bytes.one_slot, bytes.all_slots);
    rows.push(vec!["a subject takes".to_owned(), takes]);
    rows.extend(notes.iter().map(|note| vec!["note".to_owned(), note.clone()]));
    Table::new(["", ""]).rows(rows)
}
