//! `rolltop rollover`: rolls boards over now.

use rolltop_client::answers::Rollover;

use super::format::{FormatArgs, Table, cell};
use super::ranking::time;
use super::server::ServerArgs;

/// Roll a board over now, or all: the service does so by itself, at latest when a slot ends
#[derive(Clone, Debug, clap::Args)]
pub(super) struct RolloverArgs {
    /// The board [default: all]
    board: Option<String>,
    /// Only show what is due
    #[arg(long)]
    dry_run: bool,
    #[command(flatten)]
    server: ServerArgs,
    #[command(flatten)]
    format: FormatArgs,
}

pub(super) async fn run(args: RolloverArgs) -> anyhow::Result<()> {
    let RolloverArgs { board, dry_run, server, format } = args;
    let service = server.service()?;
    let dry_run = dry_run.then_some(true);
    match board.map(|name| service.board(&name)) {
        Some(board) => {
            let request = board.rollover().timeout(super::LONG).optional("dry_run", dry_run);
            format.show(request, |rollover| table(std::slice::from_ref(rollover))).await?;
        }
        None => {
            let request = service.rollover().timeout(super::LONG).optional("dry_run", dry_run);
            format.show(request, |rollovers| table(rollovers)).await?;
        }
    }
    Ok(())
}

fn table(rollovers: &[Rollover]) -> Table {
    let row = |done: &Rollover| {
        let counts = [done.slots_advanced, done.slots_retired, done.subjects_touched];
        [vec![done.board.clone(), cell(done.head.map(time))], counts.map(|count| count.to_string()).to_vec()].concat()
    };
    Table::new(["board", "counts since", "slots advanced:", "slots retired:", "subjects changed:"])
        .rows(rollovers.iter().map(row))
}
