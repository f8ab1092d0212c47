//! `rolltop distribution`: how the scores of a ranking are distributed.

use anyhow::bail;
use rolltop_client::Decimal;
use rolltop_client::answers::{Distribution, ScoreAtPercentile, ScoreRange};

use super::format::{FormatArgs, Table, score};
use super::output::say;
use super::ranking::{RankingArgs, ranked};

/// Print the scores at percentiles, and how many subjects have scores between given ones
#[derive(Clone, Debug, clap::Args)]
pub(super) struct DistributionArgs {
    #[command(flatten)]
    ranking: RankingArgs,
    /// Print the scores at these percentiles, separated by commas: up to 100, of which 100 is the best score and 0 the worst
    /// [default: 0,25,50,75,90,95,99,100, or none if there are --scores]
    #[arg(long, value_name = "PERCENT,…", value_delimiter = ',')]
    percentiles: Vec<f64>,
    /// Print the numbers of subjects below, between and from these scores, separated by commas: up to 100, the lowest first
    #[arg(long, value_name = "SCORE,…", value_delimiter = ',', allow_hyphen_values = true)]
    scores: Vec<Decimal>,
    #[command(flatten)]
    format: FormatArgs,
}

pub(super) async fn run(args: DistributionArgs) -> anyhow::Result<()> {
    let DistributionArgs { ranking, percentiles, scores, format } = args;
    let has_both = !percentiles.is_empty() && !scores.is_empty();
    if has_both && format.csv {
        bail!("--csv prints one table: give --percentiles or --scores");
    }
    let request = ranking.of(ranking.board()?.distribution(&percentiles, &scores));
    if !has_both {
        let table = if scores.is_empty() { table_of_percentiles } else { table_of_ranges };
        format.show(request, |found| table(found).note(note(found))).await?;
        return Ok(());
    }
    let found = format.show(request, table_of_percentiles).await?;
    if !format.json {
        say!("")?;
        format.print("", || table_of_ranges(&found).note(note(&found)))?;
    }
    Ok(())
}

fn table_of_percentiles(found: &Distribution) -> Table {
    let row = |at: &ScoreAtPercentile| vec![at.percentile.to_string(), score(&at.score)];
    Table::new(["percentile:", "score:"]).rows(found.percentiles.iter().map(row))
}

fn table_of_ranges(found: &Distribution) -> Table {
    let row = |range: &ScoreRange| vec![score(&range.from), score(&range.to), range.subjects.to_string()];
    Table::new(["from:", "below:", "subjects:"]).rows(found.ranges.iter().map(row))
}

fn note(found: &Distribution) -> String {
    ranked(found.total, &found.window, found.period.as_ref(), found.retiring)
}
