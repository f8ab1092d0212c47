//! `rolltop next`: changes a board by counting another definition beside it.

use std::io::Write;

use clap::{Args, Subcommand};
use rolltop_client::Method;
use serde_json::{Map, Value};

use super::definition::DefinitionArgs;
use super::format::{FormatArgs, Table, printable};
use super::question::confirm;
use super::server::ServerArgs;

/// Change a board: another definition counts beside it, is compared with it, and takes over
#[derive(Clone, Debug, Subcommand)]
pub(super) enum NextCommand {
    /// Count another definition beside the board. What it does not name is that of the board; `--set windows=[]` and
    /// `--set movement=null` mean none
    Define(Box<DefineArgs>),
    /// Print what counts beside the board, and what a comparison has found
    Show(EditionArgs),
    /// Compare the scores of both editions; `rolltop next show` prints the result
    Compare(EditionArgs),
    /// Make the next edition the board. The edition before can be had back
    Promote(TakeOverArgs),
    /// Remove the next edition: the board stays as it is
    Cancel(PromoteArgs),
    /// Have the edition before back
    Back(PromoteArgs),
    /// Remove the edition before
    Forget(PromoteArgs),
}

#[derive(Clone, Debug, Args)]
pub(super) struct DefineArgs {
    #[command(flatten)]
    edition: EditionArgs,
    #[command(flatten)]
    definition: DefinitionArgs,
}

#[derive(Clone, Debug, Args)]
pub(super) struct TakeOverArgs {
    #[command(flatten)]
    promote: PromoteArgs,
    /// Also before it is complete: until `full_at`, its scores lack what the board counted before
    #[arg(long)]
    early: bool,
}

#[derive(Clone, Debug, Args)]
pub(super) struct PromoteArgs {
    #[command(flatten)]
    edition: EditionArgs,
    /// Do not ask
    #[arg(long, short)]
    yes: bool,
}

#[derive(Clone, Debug, Args)]
pub(super) struct EditionArgs {
    /// The board
    board: String,
    #[command(flatten)]
    server: ServerArgs,
    #[command(flatten)]
    format: FormatArgs,
}

pub(super) async fn run(command: NextCommand) -> anyhow::Result<()> {
    match command {
        NextCommand::Define(args) => {
            let DefineArgs { edition, definition } = *args;
            edition.ask(Method::PUT, &["next"], None, Some(&definition.read()?)).await
        }
        NextCommand::Show(edition) => edition.ask(Method::GET, &["next"], None, None).await,
        NextCommand::Compare(edition) => edition.ask(Method::POST, &["next", "compare"], None, None).await,
        NextCommand::Promote(TakeOverArgs { promote, early }) => {
            promote.warn("next").await?;
            let early = early.then_some(("early", true));
            promote.ask(Method::POST, &["next", "promote"], early, "Let the next edition take over").await
        }
        NextCommand::Cancel(args) => args.ask(Method::DELETE, &["next"], None, "Remove the next edition").await,
        NextCommand::Back(args) => {
            args.warn("previous").await?;
            args.ask(Method::POST, &["previous", "promote"], None, "Let the previous edition take over").await
        }
        NextCommand::Forget(args) => args.ask(Method::DELETE, &["previous"], None, "Remove the previous edition").await,
    }
}

impl PromoteArgs {
    /// Says on standard error what will not be the same once the edition of this role is the board, unless nobody is
    /// asked: the answer says it too.
    async fn warn(&self, role: &str) -> anyhow::Result<()> {
        if self.yes {
            return Ok(());
        }
        let board = self.edition.server.service()?.board(&self.edition.board);
        let edition = board.other::<Map<String, Value>>(Method::GET, &[role]).await?;
        let mut rows: Vec<_> =
            members(&edition).into_iter().filter(|row| row[0] == "changes" || row[0] == "stops").collect();
        let full_at = edition.get("full_at").map(text).filter(|_| role == "next");
        rows.extend(full_at.map(|full_at| vec!["complete from".to_owned(), full_at]));
        writeln!(std::io::stderr(), "{}", Table::new(["", ""]).rows(rows).text(false))?;
        Ok(())
    }

    async fn ask(
        self,
        method: Method,
        parts: &[&str],
        parameter: Option<(&'static str, bool)>,
        question: &str,
    ) -> anyhow::Result<()> {
        confirm(&format!("{question} of '{}'?", printable(&self.edition.board)), self.yes)?;
        self.edition.ask(method, parts, parameter, None).await
    }
}

impl EditionArgs {
    /// Sends a request for the board and prints the answer.
    async fn ask(
        &self,
        method: Method,
        parts: &[&str],
        parameter: Option<(&'static str, bool)>,
        body: Option<&Value>,
    ) -> anyhow::Result<()> {
        let request = self.server.service()?.board(&self.board).other::<Map<String, Value>>(method, parts);
        let request = request.timeout(super::LONG);
        let request = match parameter {
            Some((name, value)) => request.parameter(name, value),
            None => request,
        };
        let request = match body {
            Some(body) => request.json(body),
            None => request,
        };
        self.format.show(request, |answer| Table::new(["", ""]).rows(members(answer))).await?;
        Ok(())
    }
}

/// Returns the members of an object as rows of a table of names and values: each change and each read that stops has a
/// row of its own.
fn members(object: &Map<String, Value>) -> Vec<Vec<String>> {
    let mut rows = Vec::new();
    for (name, value) in object {
        match (name.as_str(), value.as_array()) {
            ("changes", Some(changes)) => rows.extend(changes.iter().map(|change| {
                let [key, board, edition] = ["key", "board", "edition"].map(|member| text(&change[member]));
                vec![name.clone(), format!("{key}: {board} → {edition}")]
            })),
            ("stops", Some(stops)) => rows.extend(stops.iter().map(|stops| vec![name.clone(), text(stops)])),
            ("comparison", None) if value.is_object() => rows.extend(compared(value)),
            _ => rows.push(vec![name.clone(), text(value)]),
        }
    }
    rows
}

/// Returns what a comparison has found as rows.
fn compared(comparison: &Value) -> Vec<Vec<String>> {
    let members = ["state", "window", "next_window", "begun_at", "ended_at", "error"];
    let numbers = ["in_both", "only_board", "only_next", "different"];
    let known = members.into_iter().chain(numbers).filter(|member| !comparison[*member].is_null());
    let mut rows: Vec<_> =
        known.map(|member| vec![format!("comparison: {member}"), text(&comparison[member])]).collect();
    let listed = |member: &str| comparison[member].as_array().cloned().unwrap_or_default();
    for top in listed("tops") {
        let [lines, common, change] = ["lines", "common", "largest_change"].map(|member| text(&top[member]));
        let what = format!("{common} are the same, with ranks that differ by up to {change}");
        rows.push(vec![format!("comparison: first {lines}"), what]);
    }
    // Short rankings have the same first lines, however many are meant.
    rows.dedup();
    for difference in listed("differences") {
        let [subject, score, next] = ["subject", "score", "next_score"].map(|member| text(&difference[member]));
        let by = difference.get("by").map(|by| format!("{}: ", text(by))).unwrap_or_default();
        rows.push(vec!["comparison: differs".to_owned(), format!("{by}{subject}: {score} → {next}")]);
    }
    rows
}

fn text(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}
