//! `rolltop top`: the first lines of a ranking.

use std::io::IsTerminal;
use std::pin::pin;

use futures_util::TryStreamExt;
use rolltop_client::answers::{Line, Ranking};

use super::attributes::with_columns;
use super::format::{FormatArgs, REMOVED, Table, cell, clear, line_subject, score};
use super::ranking::{RankingArgs, ranked};

/// Print the first lines of a ranking
#[derive(Clone, Debug, clap::Args)]
pub(super) struct TopArgs {
    #[command(flatten)]
    ranking: RankingArgs,
    /// The number of lines
    #[arg(long, short = 'n', default_value_t = 10)]
    limit: u32,
    /// The number of lines to leave out before
    #[arg(long, default_value_t = 0)]
    offset: u64,
    /// Print it again after each change, until it is stopped; 10, 25, 50 or 100 lines
    #[arg(long, conflicts_with_all = ["offset", "period"])]
    watch: bool,
    #[command(flatten)]
    format: FormatArgs,
}

pub(super) async fn run(args: TopArgs) -> anyhow::Result<()> {
    let TopArgs { ranking, limit, offset, watch, format } = args;
    let board = if watch { ranking.reached_board().await? } else { ranking.board()? };
    let table = |found: &Ranking| table(found, ranking.attributes());
    let request = ranking.of(board.top().limit(limit));
    if !watch {
        format.show(request.optional("offset", (offset > 0).then_some(offset)), table).await?;
        return Ok(());
    }
    let mut states = pin!(request.live());
    while let Some(state) = states.try_next().await? {
        if std::io::stdout().is_terminal() && !format.json && !format.csv {
            clear()?;
        }
        format.print(&serde_json::to_string(&state)?, || table(&state))?;
    }
    Ok(())
}

fn table(ranking: &Ranking, attributes: Option<&str>) -> Table {
    let Ranking { total, window, period, retiring, .. } = ranking;
    lines(&ranking.items, attributes).note(ranked(*total, window, period.as_ref(), *retiring))
}

/// Returns the table of these lines, with the attributes that are shown.
pub(super) fn lines(lines: &[Line], attributes: Option<&str>) -> Table {
    let row = |line: &Line| vec![line.rank.to_string(), line_subject(&line.subject), score(&line.score)];
    let ties = lines.iter().map(|line| line.tie);
    let tiers = lines.iter().map(|line| line.tier.as_ref());
    let from = lines.iter().map(|line| line.from.map(cell));
    let table = Table::new(["rank:", "subject", "score:"]).rows(lines.iter().map(row));
    let table = table.optional_column("tie:", ties).optional_column("tier", tiers).optional_column("from:", from);
    with_columns(table, attributes, lines.iter().map(|line| line.attributes.as_ref())).for_empty("subject", REMOVED)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_without_a_subject_says_that_it_was_removed() {
        let lines_of: Vec<Line> = serde_json::from_str(
            r#"[{"rank":1,"subject":"a","score":9},{"rank":2,"subject":null,"score":8},{"rank":3,"subject":"b","score":7}]"#,
        )
        .unwrap();
        let table = lines(&lines_of, None);
        assert_eq!(
            table.text(false),
            "rank  subject    score\n   1  a              9\n   2  (removed)      8\n   3  b              7"
        );
        let mut csv = Vec::new();
        table.write_csv(&mut csv).unwrap();
        assert_eq!(String::from_utf8(csv).unwrap(), "rank,subject,score\n1,a,9\n2,,8\n3,b,7\n");
    }
}
