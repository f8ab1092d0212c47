//! `rolltop close`: ends the current period of a board whose periods are closed by hand.

use anyhow::anyhow;
use rolltop_client::answers::{ClosedPeriod, Period};

use super::format::{FormatArgs, Table, cell, printable};
use super::question::confirm;
use super::ranking::time;
use super::server::ServerArgs;

/// Close the current period of a board whose season is `manual`, and begin the next one
#[derive(Clone, Debug, clap::Args)]
pub(super) struct CloseArgs {
    /// The board
    board: String,
    /// The period to close; if it is closed already, nothing is done [default: the current one]
    #[arg(long, value_name = "NAME")]
    period: Option<String>,
    /// Do not ask
    #[arg(long, short)]
    yes: bool,
    #[command(flatten)]
    server: ServerArgs,
    #[command(flatten)]
    format: FormatArgs,
}

pub(super) async fn run(args: CloseArgs) -> anyhow::Result<()> {
    let CloseArgs { board: name, period, yes, server, format } = args;
    let board = server.reached().await?.board(&name);
    let shown = printable(&name);
    // By its name, so that the period that is meant is closed: the one that the question says, and not the next one
    // because somebody else was faster or an answer was lost.
    let period = match period {
        Some(period) => period,
        None => {
            let current = board.status().await?.period;
            current.ok_or_else(|| anyhow!("board '{shown}' has no season, so it has no period to close"))?.name
        }
    };
    confirm(&format!("Close period '{}' of '{shown}'? This cannot be undone.", printable(&period)), yes)?;
    format.show(board.close_period(Some(&period)), table).await?;
    Ok(())
}

fn table(done: &ClosedPeriod) -> Table {
    let row = |state: &str, period: &Period| {
        vec![state.to_owned(), period.name.clone(), time(period.start), cell(period.end.map(time))]
    };
    Table::new(["state", "period", "start", "end"]).rows([row("closed", &done.closed), row("current", &done.current)])
}
