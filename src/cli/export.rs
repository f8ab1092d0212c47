//! `rolltop export`: a whole ranking.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::PathBuf;
use std::pin::pin;

use anyhow::{Context, bail};
use futures_util::TryStreamExt;
use indicatif::{ProgressBar, ProgressStyle};

use super::format::{csv_error, line_subject};
use super::ranking::RankingArgs;

/// Write a whole ranking, however long, as lines of JSON or as CSV
#[derive(Clone, Debug, clap::Args)]
pub(super) struct ExportArgs {
    #[command(flatten)]
    ranking: RankingArgs,
    /// Write CSV
    #[arg(long)]
    csv: bool,
    /// The file to write [default: standard output]
    #[arg(long, short, value_name = "PATH")]
    output: Option<PathBuf>,
}

pub(super) async fn run(args: ExportArgs) -> anyhow::Result<()> {
    let ExportArgs { ranking, csv, output } = args;
    let names: Vec<&str> = ranking.attributes().map(|names| names.split(',').collect()).unwrap_or_default();
    let taken = names.iter().find(|name| ["rank", "subject", "score", "tie", "tier"].contains(name));
    match taken {
        _ if csv && names == ["*"] => {
            bail!("--csv has a column for each attribute, so --attributes must name them");
        }
        Some(name) if csv => bail!("--csv: '{name}' is another column"),
        _ => {}
    }
    let board = ranking.reached_board().await?;
    let mut lines = pin!(ranking.of(board.top()).lines());
    // The first line tells whether there is such a ranking. A file is not made before.
    let mut next = lines.try_next().await?;
    let mut writer: Box<dyn Write> = match &output {
        Some(path) => {
            let file = File::create(path).with_context(|| format!("--output: cannot write {}", path.display()))?;
            Box::new(BufWriter::new(file))
        }
        None => Box::new(BufWriter::new(io::stdout())),
    };
    // It is shown on standard error, if that is a terminal.
    let style = ProgressStyle::with_template("{spinner} {pos} lines {elapsed}");
    let progress = ProgressBar::no_length().with_style(style.unwrap_or_else(|_| ProgressStyle::default_spinner()));
    let written = async {
        // If the first line reaches no tier, no later one does.
        let has_tiers = next.as_ref().is_some_and(|line| line.tier.is_some());
        let has_ties = next.as_ref().is_some_and(|line| line.tie.is_some());
        if csv {
            let (ties, tiers) = (if has_ties { ",tie" } else { "" }, if has_tiers { ",tier" } else { "" });
            let attributes: String = names.iter().map(|name| format!(",{name}")).collect();
            writeln!(writer, "rank,subject,score{ties}{tiers}{attributes}")?;
        }
        while let Some(line) = next {
            match csv {
                true => {
                    let score = line.score.as_ref().map(ToString::to_string).unwrap_or_default();
                    let mut row = csv::Writer::from_writer(&mut writer);
                    let mut record = vec![line.rank.to_string(), line_subject(&line.subject), score];
                    record.extend(has_ties.then(|| line.tie.map(|tie| tie.to_string()).unwrap_or_default()));
                    record.extend(has_tiers.then(|| line.tier.clone().unwrap_or_default()));
                    let attributes = line.attributes.clone().unwrap_or_default();
                    record.extend(
                        names.iter().map(|name| attributes.get(*name).map(ToString::to_string).unwrap_or_default()),
                    );
                    row.write_record(&record).map_err(csv_error)?;
                    row.flush()?;
                }
                false => {
                    serde_json::to_writer(&mut writer, &line).map_err(io::Error::from)?;
                    writer.write_all(b"\n")?;
                }
            }
            progress.inc(1);
            next = lines.try_next().await?;
        }
        writer.flush()?;
        anyhow::Ok(())
    };
    let written = written.await;
    progress.finish_and_clear();
    match output {
        Some(path) => written.with_context(|| format!("{} is not complete", path.display())),
        None => written,
    }
}
