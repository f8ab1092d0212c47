//! `rolltop tiers`: the named parts of a ranking.

use rolltop_client::Decimal;
use rolltop_client::answers::{Tier, Tiers};

use super::format::{FormatArgs, Table, cell};
use super::server::ServerArgs;

/// Print the tiers of a board, the best first, or set them
#[derive(Clone, Debug, clap::Args)]
pub(super) struct TiersArgs {
    /// The board
    board: String,
    /// Set this tier, and the others that are given, in place of those before, the best first. A bound is top:PERCENT,
    /// rank:NUMBER or score:NUMBER, such as gold=top:5
    #[arg(long = "set", value_name = "NAME=BOUND", value_parser = parse)]
    tiers: Vec<Tier>,
    /// Remove all tiers
    #[arg(long, conflicts_with = "tiers")]
    none: bool,
    #[command(flatten)]
    server: ServerArgs,
    #[command(flatten)]
    format: FormatArgs,
}

/// The error of a text that is not a tier.
#[derive(Debug, thiserror::Error)]
#[error("not a tier such as gold=top:5, silver=rank:100 or bronze=score:10")]
struct NotATier;

pub(super) async fn run(args: TiersArgs) -> anyhow::Result<()> {
    let TiersArgs { board, tiers, none, server, format } = args;
    let request = match none || !tiers.is_empty() {
        true => server.reached().await?.board(&board).set_tiers(&tiers),
        false => server.service()?.board(&board).tiers(),
    };
    format.show(request, table).await?;
    Ok(())
}

fn table(tiers: &Tiers) -> Table {
    let row = |tier: &Tier| {
        let bounds = [
            ("top", tier.top.map(|percent| percent.to_string())),
            ("rank", tier.rank.map(|rank| rank.to_string())),
            ("score", tier.score.as_ref().map(Decimal::to_string)),
        ];
        // A newer service may have other bounds.
        let (bound, value) = bounds.into_iter().find(|(_, value)| value.is_some()).unwrap_or(("-", None));
        vec![tier.name.clone(), bound.to_owned(), cell(value)]
    };
    Table::new(["tier", "bound", "value:"]).rows(tiers.tiers.iter().map(row))
}

/// Returns the tier that an argument describes. A name may contain `=` and `:`.
fn parse(text: &str) -> Result<Tier, NotATier> {
    let (name, bound) = text.rsplit_once('=').ok_or(NotATier)?;
    let (kind, value) = bound.split_once(':').ok_or(NotATier)?;
    match kind {
        "top" => Ok(Tier::top(name, value.parse().map_err(|_| NotATier)?)),
        "rank" => Ok(Tier::rank(name, value.parse().map_err(|_| NotATier)?)),
        "score" => Ok(Tier::score(name, value.parse::<Decimal>().map_err(|_| NotATier)?)),
        _ => Err(NotATier),
    }
}
