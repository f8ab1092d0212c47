//! `rolltop next`: changes a board by counting another definition beside it.

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
    /// Count another definition beside the board
    Define(DefineArgs),
    /// Print what counts beside the board, and what a comparison has found
    Show(EditionArgs),
    /// Compare the scores of both editions; `rolltop next show` prints the result
    Compare(EditionArgs),
    /// Make the next edition the board. The edition before can be had back
    Promote(PromoteArgs),
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
        NextCommand::Define(DefineArgs { edition, definition }) => {
            edition.ask(Method::PUT, &["next"], Some(&definition.read()?)).await
        }
        NextCommand::Show(edition) => edition.ask(Method::GET, &["next"], None).await,
        NextCommand::Compare(edition) => edition.ask(Method::POST, &["next", "compare"], None).await,
        NextCommand::Promote(args) => {
            args.ask(Method::POST, &["next", "promote"], "Let the next edition take over").await
        }
        NextCommand::Cancel(args) => args.ask(Method::DELETE, &["next"], "Remove the next edition").await,
        NextCommand::Back(args) => {
            args.ask(Method::POST, &["previous", "promote"], "Let the previous edition take over").await
        }
        NextCommand::Forget(args) => args.ask(Method::DELETE, &["previous"], "Remove the previous edition").await,
    }
}

impl PromoteArgs {
    async fn ask(self, method: Method, parts: &[&str], question: &str) -> anyhow::Result<()> {
        confirm(&format!("{question} of '{}'?", printable(&self.edition.board)), self.yes)?;
        self.edition.ask(method, parts, None).await
    }
}

impl EditionArgs {
    /// Sends a request for the board and prints the answer.
    async fn ask(&self, method: Method, parts: &[&str], body: Option<&Value>) -> anyhow::Result<()> {
        let request = self.server.service()?.board(&self.board).other::<Map<String, Value>>(method, parts);
        let request = request.timeout(super::LONG);
        let request = match body {
            Some(body) => request.json(body),
            None => request,
        };
        self.format.show(request, |answer| Table::new(["", ""]).rows(members(answer))).await?;
        Ok(())
    }
}

/// Returns the members of an object as rows of a table of names and values.
fn members(object: &Map<String, Value>) -> Vec<Vec<String>> {
    let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    object.iter().map(|(name, value)| vec![name.clone(), text(value)]).collect()
}
