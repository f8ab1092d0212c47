//! `rolltop periods`: the periods of a board with a season.

use rolltop_client::answers::{Line, PeriodWithWinners, Periods};

use super::attributes::with_columns;
use super::format::{FormatArgs, REMOVED, Table, cell, line_subject, score};
use super::ranking::time;
use super::server::ServerArgs;

/// Print the periods of a board with a season, the oldest first, and who leads or has won
#[derive(Clone, Debug, clap::Args)]
pub(super) struct PeriodsArgs {
    /// The board
    board: String,
    /// Only periods in which nothing counts any more
    #[arg(long = "final")]
    only_final: bool,
    /// Only periods after the one of this name
    #[arg(long, value_name = "NAME")]
    after: Option<String>,
    /// The number of lines of each period, up to 10
    #[arg(long, value_name = "LINES", default_value_t = 1)]
    winners: u32,
    /// The largest number of periods [default: all]
    #[arg(long, short = 'n')]
    limit: Option<u32>,
    /// The key of the rankings, of a board with one for each; of several fields a JSON array
    #[arg(long, value_name = "KEY")]
    by: Option<String>,
    /// Show attributes of the winners: names with commas between them, or * for all
    #[arg(long, value_name = "NAMES")]
    attributes: Option<String>,
    #[command(flatten)]
    server: ServerArgs,
    #[command(flatten)]
    format: FormatArgs,
}

pub(super) async fn run(args: PeriodsArgs) -> anyhow::Result<()> {
    let PeriodsArgs { board, only_final, after, winners, limit, by, attributes, server, format } = args;
    let request = server.service()?.board(&board).periods().winners(winners);
    let request = request
        .optional("final", only_final.then_some(true))
        .optional("after", after)
        .optional("attributes", attributes.as_ref());
    format
        .show(request.optional("limit", limit).optional("by", by), |found| table(found, attributes.as_deref()))
        .await?;
    Ok(())
}

/// Returns a table with a row for each of the winners, so that CSV has one for each, too.
fn table(periods: &Periods, names: Option<&str>) -> Table {
    let winners = periods.items.iter().flat_map(|period| {
        let none = period.winners.is_empty().then_some((period, None));
        none.into_iter().chain(period.winners.iter().map(move |winner| (period, Some(winner))))
    });
    let attributes = winners.clone().map(|(_, winner)| winner.and_then(|line| line.attributes.as_ref()));
    let table = Table::new(["period", "start", "end", "final", "ranked:", "rank:", "subject", "score:"])
        .rows(winners.map(|(period, winner)| row(period, winner)));
    with_columns(table, names, attributes).for_empty("subject", REMOVED)
}

fn row(period: &PeriodWithWinners, winner: Option<&Line>) -> Vec<String> {
    vec![
        period.name.clone(),
        time(period.start),
        cell(period.end.map(time)),
        if period.is_final { "yes" } else { "no" }.to_owned(),
        cell(period.total),
        cell(winner.map(|line| line.rank)),
        cell(winner.map(|line| line_subject(&line.subject))),
        winner.map_or_else(|| cell::<u64>(None), |line| score(&line.score)),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_winner_that_was_removed_is_told_from_none() {
        let winners = [r#"[{"rank":1,"subject":null,"score":8}]"#, "[]"].map(|winners| {
            let times = r#""start":"2026-10-01T00:00:00Z","end":"2026-11-01T00:00:00Z","final":true,"total":1"#;
            format!(r#"{{"name":"2026-10",{times},"winners":{winners}}}"#)
        });
        let periods = format!(r#"{{"board":"b","items":[{}],"next":null}}"#, winners.join(","));
        let table = table(&serde_json::from_str(&periods).unwrap(), None);
        let ends: Vec<_> =
            table.text(false).lines().map(|line| line.split_whitespace().last().unwrap()).map(str::to_owned).collect();
        assert_eq!(ends, ["score", "8", "-"]);
        assert!(table.text(false).contains(" 1  (removed)"), "{}", table.text(false));
        let mut csv = Vec::new();
        table.write_csv(&mut csv).unwrap();
        let csv = String::from_utf8(csv).unwrap();
        assert!(csv.contains(",yes,1,1,,8\n") && csv.ends_with(",yes,1,-,-,-\n"), "{csv}");
    }
}
