//! `rolltop boards`: the boards that there are, and what is in one.

use rolltop_client::answers::{Boards, Defined, KeyPage, Status};

use super::format::{FormatArgs, Table, cell};
use super::ranking::covered;
use super::server::ServerArgs;

/// Print the boards, or what one of them is
#[derive(Clone, Debug, clap::Args)]
pub(super) struct BoardsArgs {
    /// The board [default: a list of all]
    board: Option<String>,
    /// Print the keys of its rankings, on a board with one for each
    #[arg(long, requires = "board")]
    keys: bool,
    /// Only keys that begin like this
    #[arg(long, requires = "keys", default_value = "")]
    prefix: String,
    #[command(flatten)]
    server: ServerArgs,
    #[command(flatten)]
    format: FormatArgs,
}

pub(super) async fn run(args: BoardsArgs) -> anyhow::Result<()> {
    let BoardsArgs { board, keys, prefix, server, format } = args;
    let service = server.service()?;
    match board.map(|name| service.board(&name)) {
        None => drop(format.show(service.boards(), all).await?),
        Some(board) if !keys => drop(format.show(board.status(), one).await?),
        Some(board) => {
            let request = |cursor: Option<&String>| board.keys(&prefix).limit(1_000).optional("cursor", cursor);
            format.show_pages(request, |page| page.next, key_lines).await?;
        }
    }
    Ok(())
}

fn all(boards: &Boards) -> Table {
    let row = |board: &Defined| {
        let windows = board.windows.join(", ");
        vec![board.board.clone(), board.metric.clone(), cell(board.slot.as_ref()), windows]
    };
    let periods = boards.items.iter().map(|board| board.period.as_ref().map(|period| &period.name));
    let table = Table::new(["board", "metric", "slot", "further windows"]).rows(boards.items.iter().map(row));
    table.optional_column("period", periods)
}

fn one(status: &Status) -> Table {
    let rows = [
        ("metric", status.metric.clone()),
        ("slot", cell(status.slot.as_ref())),
        ("further windows", status.windows.join(", ")),
        ("counts", covered(&status.window, status.period.as_ref())),
        ("ranked", cell(status.total)),
        ("retiring slots", status.retiring.to_string()),
    ];
    let keeper = status.attributes.clone().map(|keeper| ("attributes of", keeper));
    Table::new(["", ""]).rows(rows.into_iter().chain(keeper).map(|(name, value)| vec![name.to_owned(), value]))
}

fn key_lines(page: &KeyPage) -> Table {
    Table::new(["by"]).rows(page.items.iter().map(|key| vec![key.by.clone()]))
}
