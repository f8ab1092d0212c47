//! `rolltop audit`: compares every score with its slots.

use anyhow::bail;
use rolltop_client::answers::{Audit, Difference};

use super::format::{FormatArgs, Table, cell, score};
use super::server::ServerArgs;

/// Compare every score of a board with its slots: exit code 0 if all are equal, 1 if not
#[derive(Clone, Debug, clap::Args)]
pub(super) struct AuditArgs {
    /// The board
    board: String,
    /// The period to audit, of a board with a season [default: all that take items, and those that are packed]
    #[arg(long, value_name = "NAME")]
    period: Option<String>,
    /// Correct what differs
    #[arg(long)]
    repair: bool,
    #[command(flatten)]
    server: ServerArgs,
    #[command(flatten)]
    format: FormatArgs,
}

pub(super) async fn run(args: AuditArgs) -> anyhow::Result<()> {
    let AuditArgs { board, period, repair, server, format } = args;
    let request = server.service()?.board(&board).audit().optional("repair", repair.then_some(true));
    let request = request.optional("period", period);
    let audit = format.show(request, table).await?;
    match audit.differences {
        left if left > audit.repaired => {
            if !audit.damaged_sheets.is_empty() {
                bail!(
                    "{left} differences, of which some are sheets of ended periods; `rolltop audit {board} --repair` corrects \
                     what follows from other data, and the rest is restored from a backup"
                )
            }
            bail!(
                "{} of {} subjects differ; `rolltop audit {board} --repair` corrects them",
                left,
                audit.subjects_checked
            )
        }
        _ => Ok(()),
    }
}

fn table(audit: &Audit) -> Table {
    let row = |found: &Difference| {
        let place = [&found.by, &found.window].map(|place| place.clone().unwrap_or_default());
        [vec![found.subject.clone()], place.to_vec(), vec![score(&found.score), score(&found.slots)]].concat()
    };
    let Audit { subjects_checked, differences, repaired, missing_slots, took_ms, .. } = audit;
    let mut note =
        format!("{subjects_checked} subjects compared in {took_ms} ms, {differences} differ, {repaired} corrected");
    if *missing_slots > 0 {
        note.push_str(&format!(", {} slots are missing in the store", cell(Some(missing_slots))));
    }
    for damaged in &audit.damaged_sheets {
        note.push_str(&format!("\n{damaged}"));
    }
    match audit.examples.is_empty() {
        true => Table::default().note(note),
        false => Table::new(["subject", "by", "window", "score:", "by its slots:"])
            .rows(audit.examples.iter().map(row))
            .note(note),
    }
}
