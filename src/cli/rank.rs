//! `rolltop rank`: where subjects stand.

use anyhow::bail;
use rolltop_client::answers::{LookedLine, Neighbors, WindowValue};

use super::attributes::with_columns;
use super::format::{FormatArgs, Table, cell, score};
use super::ranking::{RankingArgs, ranked, window};
use super::top;

/// Print rank and score of subjects
#[derive(Clone, Debug, clap::Args)]
pub(super) struct RankArgs {
    #[command(flatten)]
    ranking: RankingArgs,
    /// The subjects, up to 200
    #[arg(required = true)]
    subjects: Vec<String>,
    /// Print so many lines before and after the subject, too
    #[arg(long, value_name = "LINES", conflicts_with = "last")]
    around: Option<u32>,
    /// Print what the subject has in a shorter window that ends now, such as 30m
    #[arg(long, value_name = "LENGTH", conflicts_with = "period")]
    last: Option<String>,
    #[command(flatten)]
    format: FormatArgs,
}

pub(super) async fn run(args: RankArgs) -> anyhow::Result<()> {
    let RankArgs { ranking, subjects, around, last, format } = args;
    let board = ranking.board()?;
    let (first, others) = subjects.split_first().map_or(("", &[][..]), |(first, others)| (first.as_str(), others));
    if (around.is_some() || last.is_some()) && !others.is_empty() {
        bail!("--around and --last take one subject");
    }
    if last.is_some() && ranking.attributes().is_some() {
        bail!("--last shows a value only; leave out --attributes");
    }
    if let Some(radius) = around {
        let around = |found: &Neighbors| {
            top::lines(&found.items, ranking.attributes()).note(format!("{} ranked", cell(found.total)))
        };
        format.show(ranking.of(board.neighbors(first, radius)), around).await?;
    } else if let Some(last) = last {
        let value = |found: &WindowValue| {
            Table::new(["subject", "value:"])
                .rows([vec![found.subject.clone(), score(&found.value)]])
                .note(window(&found.window))
        };
        format.show(ranking.of(board.count(first, &last)), value).await?;
    } else {
        let row = |line: &LookedLine| {
            let percentile = cell(line.percentile.map(|percent| format!("{percent:.1}")));
            vec![cell(line.rank), line.subject.clone(), score(&line.score), percentile]
        };
        let header = ["rank:", "subject", "score:", "percentile:"];
        let request = ranking.of(board.lookup(&subjects));
        format
            .show(request, |found| {
                let ties = found.items.iter().map(|line| line.tie);
                let tiers = found.items.iter().map(|line| line.tier.as_ref());
                let from = found.items.iter().map(|line| line.from.map(cell));
                let table = Table::new(header).rows(found.items.iter().map(row));
                let table = table.optional_column("tie:", ties).optional_column("tier", tiers);
                let note = ranked(found.total, &found.window, found.period.as_ref(), found.retiring);
                let attributes = found.items.iter().map(|line| line.attributes.as_ref());
                let table =
                    with_columns(table.optional_column("from:", from), ranking.attributes(), attributes).note(note);
                match found.items.iter().all(|line| line.rank.is_some()) {
                    true => table,
                    false => table.note(
                        "- is not in the ranking: without a score, removed, or hidden (`rolltop hidden` lists those)"
                            .to_owned(),
                    ),
                }
            })
            .await?;
    }
    Ok(())
}
