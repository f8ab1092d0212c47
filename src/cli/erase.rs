//! `rolltop erase`: removes subjects from boards, such as all that is stored of a person.

use anyhow::bail;
use rolltop_client::answers::Removals;

use super::format::{FormatArgs, Table, printable};
use super::question::confirm;
use super::server::ServerArgs;
use crate::access::BoardPattern;
use crate::board::Metric;

/// The largest number of subjects of a request.
const MOST: usize = 1_000;

/// Remove subjects from the rankings and every slot of boards. This cannot be undone
#[derive(Clone, Debug, clap::Args)]
pub(super) struct EraseArgs {
    /// The board, or how names of boards begin: hot-posts, 'shop-*', or '*' for all
    boards: BoardPattern,
    /// The subjects
    #[arg(required = true)]
    subjects: Vec<String>,
    /// The key of the ranking, on boards with one for each [default: the rankings of all keys]
    #[arg(long, value_name = "KEY")]
    by: Option<String>,
    /// Do not ask
    #[arg(long, short)]
    yes: bool,
    #[command(flatten)]
    server: ServerArgs,
    #[command(flatten)]
    format: FormatArgs,
}

pub(super) async fn run(args: EraseArgs) -> anyhow::Result<()> {
    let EraseArgs { boards: pattern, subjects, by, yes, server, format } = args;
    let service = server.builder()?.repeat_for(super::PATIENCE).build()?;
    let boards = service.boards().await?.items;
    let boards: Vec<_> = boards.into_iter().filter(|board| pattern.includes(&board.board)).collect();
    if boards.is_empty() {
        bail!("no board is '{pattern}'; `rolltop boards` lists those that there are");
    }
    let names: Vec<&str> = boards.iter().map(|board| board.board.as_str()).collect();
    let shown: Vec<_> = subjects.iter().take(5).map(|subject| printable(subject)).collect();
    let more = if subjects.len() > shown.len() { ", …" } else { "" };
    let question = format!("Remove {}{more} from {}? This cannot be undone.", shown.join(", "), names.join(", "));
    confirm(&question, yes)?;
    let mut rows = Vec::new();
    let mut answers = Vec::new();
    for defined in &boards {
        let board = service.board(&defined.board);
        let has_keys = defined.metric.parse::<Metric>().is_ok_and(|metric| metric.by.is_some());
        let mut removed = 0;
        match (&by, has_keys) {
            (None, true) => {
                for subject in &subjects {
                    let text = board.remove_everywhere(subject).text().await?;
                    removed += u64::from(serde_json::from_str::<Removals>(&text)?.keys > Some(0));
                    answers.push(text);
                }
            }
            (by, _) => {
                for some in subjects.chunks(MOST) {
                    let text = board.remove_all(some).optional("by", by.as_ref()).text().await?;
                    removed += serde_json::from_str::<Removals>(&text)?.subjects.unwrap_or_default();
                    answers.push(text);
                }
            }
        }
        rows.push(vec![defined.board.clone(), removed.to_string()]);
    }
    let json = answers.iter().map(|answer| answer.trim_end()).collect::<Vec<_>>().join("\n");
    format.print(&json, || Table::new(["board", "subjects removed:"]).rows(rows))
}
