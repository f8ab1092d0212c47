//! `rolltop erase`: removes names from boards, such as all that is stored of a person: as subjects, and as values that
//! subjects were seen with.

use anyhow::{Context, bail};
use rolltop_client::answers::{Defined, Removals};

use super::advice;
use super::format::{FormatArgs, Table, printable};
use super::question::confirm;
use super::server::ServerArgs;
use crate::access::BoardPattern;
use crate::board::{Function, Metric};

/// The largest number of names of a request.
const MOST: usize = 1_000;

/// Remove subjects from the rankings and every slot of boards, and, on COUNT_DISTINCT boards and those with a cap, values of
/// the same names from all subjects. This cannot be undone
#[derive(Clone, Debug, clap::Args)]
pub(super) struct EraseArgs {
    /// The board, or how names of boards begin: hot-posts, 'shop-*', or '*' for all
    boards: BoardPattern,
    /// The subjects, and the values
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
    let all = service.boards().await?.items;
    let present: Vec<String> = all.iter().map(|board| board.board.clone()).collect();
    let all = all.into_iter().filter(|board| pattern.includes(&board.board));
    let mut boards = all.map(|board| Ok((metric_of(&board)?, board))).collect::<anyhow::Result<Vec<_>>>()?;
    boards.retain(|(metric, _)| by.is_none() || metric.by.is_some());
    if boards.is_empty() {
        let kind = if by.is_some() { " and has a ranking for each key" } else { "" };
        bail!("no board is '{pattern}'{kind}; `rolltop boards` lists those that there are");
    }
    let names: Vec<&str> = boards.iter().map(|(_, board)| board.board.as_str()).collect();
    let shown: Vec<_> = subjects.iter().take(5).map(|subject| printable(subject)).collect();
    let more = if subjects.len() > shown.len() { ", …" } else { "" };
    let names = names.join(", ");
    confirm(&format!("Remove {}{more} from {names}? This cannot be undone.", shown.join(", ")), yes)?;
    let (mut rows, mut answers, mut failed) = (Vec::new(), Vec::new(), 0);
    for (metric, defined) in &boards {
        let board = service.board(&defined.board);
        let all_keys = (by.is_none() && metric.by.is_some()).then_some(true);
        let (mut removed, mut values, mut left) = (0, 0, 0);
        // Such a board stores no values.
        let mut is_approximate = matches!(metric.function, Function::ApproxCountDistinct { .. });
        // Where one board fails, the others are done all the same: what is left is known.
        let mut error = None;
        for some in subjects.chunks(MOST) {
            let of_subjects = board.remove_all(some).optional("by", by.as_ref()).optional("all_keys", all_keys);
            let of_values = board.remove_values(some).optional("by", by.as_ref());
            for request in [of_subjects, of_values] {
                match request.timeout(super::LONG).text().await {
                    Ok(text) => {
                        let answer: Removals = serde_json::from_str(&text)?;
                        removed += answer.subjects.unwrap_or_default();
                        values += answer.values.unwrap_or_default();
                        left += answer.final_periods.unwrap_or_default();
                        is_approximate |= answer.approximate.unwrap_or_default();
                        answers.push(text.trim_end().to_owned());
                    }
                    // It has nothing to remove them from.
                    Err(refused) if refused.code() == "no_values" => {}
                    Err(failure) => error = error.or(Some(failure)),
                }
            }
            if error.is_some() {
                break;
            }
        }
        let state = match &error {
            Some(error) => advice::of_server(error),
            None => done(left, is_approximate) + &elsewhere(defined, &boards, &present),
        };
        failed += usize::from(error.is_some());
        rows.push(vec![defined.board.clone(), removed.to_string(), values.saturating_sub(left).to_string(), state]);
    }
    let columns = ["board", "subjects removed:", "values removed:", "state"];
    format.print(&answers.join("\n"), || Table::new(columns).rows(rows))?;
    match failed {
        0 => Ok(()),
        failed => bail!("{failed} of {} boards are not done; run the command again", boards.len()),
    }
}

/// Returns what to say if another board, which is there and not among these, keeps the attributes of the subjects.
fn elsewhere(board: &Defined, boards: &[(Metric, Defined)], present: &[String]) -> String {
    match board.more.get("attributes").and_then(|keeper| keeper.as_str()) {
        Some(keeper)
            if present.iter().any(|name| name == keeper) && boards.iter().all(|(_, other)| other.board != keeper) =>
        {
            format!("; their attributes are on board '{keeper}', where they stay")
        }
        _ => String::new(),
    }
}

/// Returns the metric of a board. It says what there is to remove, so nothing is removed if it cannot be read.
fn metric_of(board: &Defined) -> anyhow::Result<Metric> {
    board.metric.parse().with_context(|| {
        let Defined { board, metric, .. } = board;
        format!(
            "board '{board}' has the metric {metric}, which this version cannot read; use the rolltop of the server"
        )
    })
}

/// Returns the state of a board that is done, with what stays there.
fn done(left: u64, is_approximate: bool) -> String {
    let mut state = "done".to_owned();
    if left > 0 {
        state.push_str(&format!("; {left} values stay in final periods until these are packed or leave the archive"));
    }
    if is_approximate {
        state.push_str(
            "; it counts approximately and stores no values: what a name was counted for stays in its numbers",
        );
    }
    state
}
