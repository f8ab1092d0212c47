//! `rolltop hide`, `show`, `freeze`, `unfreeze` and `hidden`: the moderation of a board.

use std::io::{self, IsTerminal, Write};

use anyhow::{Context, bail};
use rolltop_client::Board;
use rolltop_client::answers::{ModeratedPage, ModeratedSubject, Moderations};
use serde_json::{Value, json};

use super::format::{FormatArgs, Table, printable};
use super::lines::InputLines;
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

/// Which subjects to hide, and how.
#[derive(Clone, Debug, clap::Args)]
pub(super) struct HideArgs {
    #[command(flatten)]
    subjects: SubjectsArgs,
    /// Let the standing of each subject have the rank that it would have, so that it does not see that it is hidden
    #[arg(long)]
    shadow: bool,
}

/// Which subjects to print.
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
pub(super) enum Change {
    Hidden { shadow: bool },
    Shown,
    Frozen,
    Unfrozen,
}

impl Change {
    fn word(self) -> &'static str {
        match self {
            Self::Hidden { shadow: false } => "hidden",
            Self::Hidden { shadow: true } => "shadowed",
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
    change(args.subjects, Change::Hidden { shadow: args.shadow }).await
}

/// Changes subjects. One that is refused does not keep the others from being changed.
pub(super) async fn change(args: SubjectsArgs, change: Change) -> anyhow::Result<()> {
    let SubjectsArgs { board, subjects, by, server, format } = args;
    let from_input = subjects == ["-"];
    if !from_input && subjects.iter().any(|subject| subject == "-") {
        bail!("- stands for the lines of standard input, so give it without other subjects");
    }
    if from_input && io::stdin().is_terminal() {
        bail!("give the subjects to standard input, one on each line");
    }
    let board = server.reached().await?.board(&board);
    let mut changing = Changing { board: &board, change, by: by.as_deref(), format, accepted: 0, refused: 0 };
    let changed = match from_input {
        true => changing.lines().await,
        false => changing.subjects(&subjects).await,
    };
    let row = vec![board.name().to_owned(), changing.accepted.to_string(), change.word().to_owned()];
    // What was done before an error is done.
    let has_something_to_say = changed.is_ok() || changing.accepted > 0;
    if has_something_to_say && !format.json {
        format.print("", || Table::new(["board", "subjects:", "state"]).rows([row]))?;
    }
    changed?;
    match changing.refused {
        0 => Ok(()),
        1 => bail!("1 subject was refused"),
        refused => bail!("{refused} subjects were refused"),
    }
}

/// A change of subjects, and how far it is.
struct Changing<'a> {
    board: &'a Board,
    change: Change,
    by: Option<&'a str>,
    format: FormatArgs,
    accepted: u64,
    refused: u64,
}

impl Changing<'_> {
    /// Changes the subjects that standard input has on its lines.
    async fn lines(&mut self) -> anyhow::Result<()> {
        let (mut input, mut subjects) = (InputLines::new(tokio::io::stdin()), Vec::with_capacity(AT_ONCE));
        while let Some((number, line)) = input.next().await.context("cannot read standard input")? {
            match line {
                Ok(line) => subjects.push(line.trim_end_matches(['\n', '\r']).to_owned()),
                Err(detail) => self.refuse(&format!("line {number}"), &detail),
            }
            if subjects.len() == AT_ONCE {
                self.subjects(&subjects).await?;
                subjects.clear();
            }
        }
        self.subjects(&subjects).await
    }

    async fn subjects(&mut self, subjects: &[String]) -> anyhow::Result<()> {
        for some in subjects.chunks(AT_ONCE) {
            let items: Vec<Value> = some.iter().map(|subject| self.change.item(subject, self.by)).collect();
            let text = self.change.send(self.board, &items).await?;
            let answer: Moderations = serde_json::from_str(&text)?;
            self.accepted += answer.accepted;
            for rejection in &answer.rejected {
                let subject = some.get(rejection.index).map_or("?", String::as_str);
                let detail = format!("{} ({})", rejection.detail, rejection.code);
                self.refuse(&format!("'{}'", printable(subject)), &detail);
            }
            if self.format.json {
                self.format.print(&text, Table::default)?;
            }
        }
        Ok(())
    }

    fn refuse(&mut self, what: &str, detail: &str) {
        self.refused += 1;
        // If standard error cannot be written, the number at the end says it.
        drop(writeln!(io::stderr(), "{what} is refused: {}", printable(detail)));
    }
}

pub(super) async fn hidden(args: HiddenArgs) -> anyhow::Result<()> {
    let HiddenArgs { board, frozen, by, prefix, server, format } = args;
    let board = server.service()?.board(&board);
    let request = |cursor: Option<&String>| {
        let request = if frozen { board.frozen(&prefix) } else { board.hidden(&prefix) };
        request.limit(1_000).optional("by", by.as_ref()).optional("cursor", cursor)
    };
    format.show_pages(request, |page| page.next, lines).await
}

fn lines(page: &ModeratedPage) -> Table {
    let state = |subject: &ModeratedSubject| {
        let hidden = if subject.shadow { "shadowed" } else { "hidden" };
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
        true => Table::new(["by", "subject", "state"]).rows(rows),
        false => Table::new(["subject", "state"]).rows(rows),
    }
}
