//! `rolltop erase`: removes subjects from boards, such as all that is stored of a person.

use anyhow::bail;
use rolltop_client::answers::{Defined, Removals};

use super::advice;
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
    let service = server.reached().await?;
    let mut boards = service.boards().await?.items;
    boards.retain(|board| pattern.includes(&board.board) && (by.is_none() || has_keys(board)));
    if boards.is_empty() {
        let kind = if by.is_some() { " and has a ranking for each key" } else { "" };
        bail!("no board is '{pattern}'{kind}; `rolltop boards` lists those that there are");
    }
    let names: Vec<&str> = boards.iter().map(|board| board.board.as_str()).collect();
    let shown: Vec<_> = subjects.iter().take(5).map(|subject| printable(subject)).collect();
    let more = if subjects.len() > shown.len() { ", …" } else { "" };
    let names = names.join(", ");
    confirm(&format!("Remove {}{more} from {names}? This cannot be undone.", shown.join(", ")), yes)?;
    let (mut rows, mut answers, mut failed) = (Vec::new(), Vec::new(), 0);
    for defined in &boards {
        let board = service.board(&defined.board);
        let all_keys = (by.is_none() && has_keys(defined)).then_some(true);
        let mut removed = 0;
        // Where one board fails, the others are done all the same: what is left is known.
        let mut state = "done".to_owned();
        for some in subjects.chunks(MOST) {
            let request = board.remove_all(some).optional("by", by.as_ref()).optional("all_keys", all_keys);
            let text = request.timeout(super::LONG).text().await;
            match text.map(|text| (serde_json::from_str::<Removals>(&text), text)) {
                Ok((Ok(answer), text)) => {
                    removed += answer.subjects.unwrap_or_default();
                    answers.push(text.trim_end().to_owned());
                }
                Ok((Err(error), _)) => return Err(error.into()),
                Err(error) => {
                    state = advice::of_server(&error);
                    failed += 1;
                    break;
                }
            }
        }
        rows.push(vec![defined.board.clone(), removed.to_string(), state]);
    }
    format.print(&answers.join("\n"), || Table::new(["board", "subjects removed:", "state"]).rows(rows))?;
    match failed {
        0 => Ok(()),
        failed => bail!("{failed} of {} boards are not done; run the command again", boards.len()),
    }
}

fn has_keys(board: &Defined) -> bool {
    board.metric.parse::<Metric>().is_ok_and(|metric| metric.by.is_some())
}
