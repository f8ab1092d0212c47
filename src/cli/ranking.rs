//! Which ranking a command reads.

use rolltop_client::answers::{Period, Window};
use rolltop_client::{Board, Request};

use super::format::cell;
use super::server::ServerArgs;

/// A ranking of a board.
#[derive(Clone, Debug, clap::Args)]
pub(super) struct RankingArgs {
    /// The board
    board: String,
    /// The length of the window, of a board with several [default: the main one]
    #[arg(long, value_name = "LENGTH")]
    window: Option<String>,
    /// The key of the ranking, of a board with one for each; of several fields a JSON array
    #[arg(long, value_name = "KEY")]
    by: Option<String>,
    /// The edition to read while a board has two: next or previous
    #[arg(long, value_name = "EDITION", value_parser = ["next", "previous"])]
    of: Option<String>,
    /// The period to read, of a board with a season, such as 2026-11: see `rolltop periods` [default: the current one]
    #[arg(long, value_name = "NAME", conflicts_with = "of")]
    period: Option<String>,
    /// Show attributes of the subjects: names with commas between them, or * for all
    #[arg(long, value_name = "NAMES")]
    attributes: Option<String>,
    #[command(flatten)]
    server: ServerArgs,
}

impl RankingArgs {
    pub(super) fn board(&self) -> anyhow::Result<Board> {
        Ok(self.server.service()?.board(&self.board))
    }

    /// Returns the board of a server that answers now, and whose requests are sent again.
    pub(super) async fn reached_board(&self) -> anyhow::Result<Board> {
        Ok(self.server.reached().await?.board(&self.board))
    }

    /// Returns the names of the attributes to show.
    pub(super) fn attributes(&self) -> Option<&str> {
        self.attributes.as_deref()
    }

    /// Makes a request one for this ranking.
    pub(super) fn of<T>(&self, request: Request<T>) -> Request<T> {
        let Self { window, by, of, period, attributes, .. } = self;
        let request = request.optional("window", window.as_ref()).optional("by", by.as_ref());
        let request = request.optional("of", of.as_ref()).optional("period", period.as_ref());
        request.optional("attributes", attributes.as_ref())
    }
}

/// Returns how much is ranked, and what is counted, as people read it. Says it where scores are not exact yet.
pub(super) fn ranked(total: Option<u64>, covers: &Window, period: Option<&Period>, retiring: u64) -> String {
    let ranked = format!("{} ranked, {}", cell(total), covered(covers, period));
    match retiring {
        0 => ranked,
        slots => format!("{ranked}; scores still have parts of {slots} expired slots, which are being subtracted"),
    }
}

/// Returns what is counted as people read it: a period of a season, or else a window.
pub(super) fn covered(covers: &Window, period: Option<&Period>) -> String {
    let Some(Period { name, start, end, is_final, .. }) = period else { return window(covers) };
    let state = if *is_final { " (final)" } else { "" };
    match end {
        Some(end) => format!("period {name}{state}, from {} to {}", time(*start), time(*end)),
        // Nobody has closed it yet.
        None => format!("period {name}{state}, from {} on", time(*start)),
    }
}

/// Returns a window as people read it.
pub(super) fn window(window: &Window) -> String {
    match (window.from, window.to) {
        (Some(from), Some(to)) => format!("from {} to {}", time(from), time(to)),
        _ => "over all time".to_owned(),
    }
}

/// Returns a time in whole seconds, as the API writes it.
pub(super) fn time(time: chrono::DateTime<chrono::Utc>) -> String {
    time.to_rfc3339_opts(chrono::SecondsFormat::Secs, true)
}
