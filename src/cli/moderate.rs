//! `rolltop hide`, `show`, `freeze`, `unfreeze` and `hidden`: the moderation of a board.

use std::io::{self, BufRead};

use anyhow::{Context, bail};
use rolltop_client::Board;
use rolltop_client::answers::{ModeratedPage, ModeratedSubject, Moderations};
use serde_json::{Value, json};

use super::format::{FormatArgs, Table, printable};
use super::server::ServerArgs;

/// The number of subjects of a request.
const AT_ONCE: usize = 1_000;

/// Which subjects to change.
#[derive(Clone, Debug, clap::Args)]
pub(super) struct SubjectsArgs {
    board: String,
    /// The subjects, or - to read one from each line of standard input
    #[arg(required = true)]
    subjects: Vec<String>,
    /// The key of the ranking, on a board with one for each
    #[arg(long, value_name = "KEY")]
    by: Option<String>,
    #[command(flatten)]
    server: ServerArgs,
    #[command(flatten)]
    format: FormatArgs,
}

/// Take subjects out of the rankings of a board. They go on counting, and `rolltop show` brings them back
#[derive(Clone, Debug, clap::Args)]
pub(super) struct HideArgs {
    #[command(flatten)]
    subjects: SubjectsArgs,
    /// Let the standing of each subject have the rank that it would have, so that it does not see that it is hidden
    #[arg(long)]
    shadow: bool,
}

/// Print the hidden subjects of a board
#[derive(Clone, Debug, clap::Args)]
pub(super) struct HiddenArgs {
    board: String,
    /// Print the frozen ones instead
    #[arg(long)]
    frozen: bool,
    /// The key of the ranking, on a board with one for each [default: all]
    #[arg(long, value_name = "KEY")]
    by: Option<String>,
    /// Only subjects that begin like this; on a board with keys together with --by
    #[arg(long, default_value = "")]
    prefix: String,
    #[command(flatten)]
    server: ServerArgs,
    #[command(flatten)]
    format: FormatArgs,
}

/// What becomes of subjects.
#[derive(Clone, Copy, Debug)]
pub(super) enum To {
    Hidden { shadow: bool },
    Shown,
    Frozen,
    Unfrozen,
}

impl To {
    fn word(self) -> &'static str {
        match self {
            Self::Hidden { shadow: false } => "hidden",
            Self::Hidden { shadow: true } => "hidden as a shadow",
            Self::Shown => "shown",
            Self::Frozen => "frozen",
            Self::Unfrozen => "no longer frozen",
        }
    }

    fn item(self, subject: &str, by: Option<&str>) -> Value {
        let mut item = match self {
            Self::Hidden { shadow } => json!({"subject": subject, "shadow": shadow}),
            Self::Shown => json!({"subject": subject, "hidden": false}),
            Self::Frozen => json!({"subject": subject}),
            Self::Unfrozen => json!({"subject": subject, "frozen": false}),
        };
        if let Some(by) = by {
            item["by"] = json!(by);
        }
        item
    }

    async fn send(self, board: &Board, items: &[Value]) -> Result<String, rolltop_client::Error> {
        match self {
            Self::Hidden { .. } | Self::Shown => board.hide_all(items).text().await,
            Self::Frozen | Self::Unfrozen => board.freeze_all(items).text().await,
        }
    }
}

pub(super) async fn hide(args: HideArgs) -> anyhow::Result<()> {
    change(args.subjects, To::Hidden { shadow: args.shadow }).await
}

/// Changes subjects. One that is not valid does not keep the others from being changed.
pub(super) async fn change(args: SubjectsArgs, to: To) -> anyhow::Result<()> {
    let SubjectsArgs { board, subjects, by, server, format } = args;
    let board = server.reached().await?.board(&board);
    let mut names: Box<dyn Iterator<Item = io::Result<String>>> = match &*subjects {
        [only] if only == "-" => {
            Box::new(io::stdin().lock().lines().filter(|line| !matches!(line, Ok(line) if line.is_empty())))
        }
        _ => Box::new(subjects.into_iter().map(Ok)),
    };
    let (mut accepted, mut refused, mut answers) = (0, 0, Vec::new());
    loop {
        let some: Vec<String> =
            names.by_ref().take(AT_ONCE).collect::<Result<_, _>>().context("cannot read standard input")?;
        if some.is_empty() {
            break;
        }
        let items: Vec<Value> = some.iter().map(|subject| to.item(subject, by.as_deref())).collect();
        let text = to.send(&board, &items).await?;
        let answer: Moderations = serde_json::from_str(&text)?;
        accepted += answer.accepted;
        for rejection in &answer.rejected {
            let subject = some.get(rejection.index).map_or("?", String::as_str);
            eprintln!("'{}' is refused: {} ({})", printable(subject), rejection.detail, rejection.code);
        }
        refused += answer.rejected.len();
        answers.push(text.trim_end().to_owned());
    }
    let row = vec![board.name().to_owned(), accepted.to_string(), to.word().to_owned()];
    format.print(&answers.join("\n"), || Table::new(["board", "subjects:", "are"]).rows([row]))?;
    match refused {
        0 => Ok(()),
        refused => bail!("{refused} subjects are refused"),
    }
}

pub(super) async fn hidden(args: HiddenArgs) -> anyhow::Result<()> {
    let HiddenArgs { board, frozen, by, prefix, server, format } = args;
    let board = server.service()?.board(&board);
    let mut cursor: Option<String> = None;
    loop {
        let request = if frozen { board.frozen(&prefix) } else { board.hidden(&prefix) };
        let request = request.limit(1_000).optional("by", by.as_ref()).optional("cursor", cursor.as_ref());
        cursor = format.show(request, lines).await?.next;
        if cursor.is_none() {
            return Ok(());
        }
    }
}

fn lines(page: &ModeratedPage) -> Table {
    let state = |subject: &ModeratedSubject| {
        let hidden = if subject.shadow { "shadow" } else { "hidden" };
        let words = [(subject.hidden, hidden), (subject.frozen, "frozen")];
        words.into_iter().filter(|(is, _)| *is).map(|(_, word)| word).collect::<Vec<_>>().join(", ")
    };
    let has_keys = page.items.iter().any(|subject| subject.by.is_some());
    let row = |subject: &ModeratedSubject| {
        let key = subject.by.clone().filter(|_| has_keys);
        key.into_iter().chain([subject.subject.clone(), state(subject)]).collect::<Vec<_>>()
    };
    let rows = page.items.iter().map(row);
    match has_keys {
        true => Table::new(["by", "subject", "is"]).rows(rows),
        false => Table::new(["subject", "is"]).rows(rows),
    }
}
