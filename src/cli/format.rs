//! How commands print what the server answers: a table for people, JSON and CSV for programs.

use std::borrow::Cow;
use std::io::{self, IsTerminal, Write};

use comfy_table::presets::NOTHING;
use comfy_table::{CellAlignment, ContentArrangement};
use rolltop_client::{Decimal, Request};
use serde::de::DeserializeOwned;

use super::output::say;
use crate::telemetry::is_hidden;

/// How to print the answer.
#[derive(Clone, Copy, Debug, Default, clap::Args)]
pub(super) struct FormatArgs {
    /// Print the answer as JSON, as the server sends it
    #[arg(long, conflicts_with = "csv")]
    pub(super) json: bool,
    /// Print the table as CSV
    #[arg(long)]
    pub(super) csv: bool,
}

/// What is printed of an answer.
#[derive(Debug, Default)]
pub(super) struct Table {
    header: Vec<Cow<'static, str>>,
    rows: Vec<Vec<String>>,
    /// A column, and what people see in place of its empty cells.
    for_empty: (&'static str, &'static str),
    /// A line below the table, for people.
    notes: Vec<String>,
    /// Whether it goes on with a table that is printed already, and its header with it.
    is_continued: bool,
}

impl Table {
    /// Creates a table. The names of columns of numbers end with a colon, which is not shown: they are aligned to the
    /// right.
    pub(super) fn new<const N: usize>(header: [&'static str; N]) -> Self {
        Self { header: header.map(Cow::Borrowed).to_vec(), ..Self::default() }
    }

    pub(super) fn rows(mut self, rows: impl IntoIterator<Item = Vec<String>>) -> Self {
        self.rows.extend(rows);
        self
    }

    /// Adds a column at the right, unless all of its cells are missing.
    pub(super) fn optional_column<T: ToString>(
        mut self,
        name: impl Into<Cow<'static, str>>,
        cells: impl Iterator<Item = Option<T>> + Clone,
    ) -> Self {
        if cells.clone().any(|cell| cell.is_some()) {
            self.header.push(name.into());
            for (row, value) in self.rows.iter_mut().zip(cells) {
                row.push(cell(value));
            }
        }
        self
    }

    /// Shows people a word in place of an empty cell of a column. Programs get the empty cell, which is not mistaken for a name.
    pub(super) fn for_empty(mut self, column: &'static str, word: &'static str) -> Self {
        self.for_empty = (column, word);
        self
    }

    pub(super) fn note(mut self, note: String) -> Self {
        self.notes.push(note);
        self
    }

    /// Returns the table for people, with a bold header if it may have colors.
    pub(super) fn text(&self, colors: bool) -> String {
        let mut table = comfy_table::Table::new();
        table.load_preset(NOTHING).set_content_arrangement(ContentArrangement::Disabled);
        table.set_header(self.header.iter().map(|name| name.trim_end_matches(':')));
        for row in &self.rows {
            let (column, word) = self.for_empty;
            let cells = self.header.iter().zip(row);
            let words = cells.map(|(name, cell)| if cell.is_empty() && name == column { word } else { cell });
            table.add_row(words.map(printable));
        }
        for (at, name) in self.header.iter().enumerate() {
            let Some(column) = table.column_mut(at) else { continue };
            column.set_padding((0, 2));
            if name.ends_with(':') {
                column.set_cell_alignment(CellAlignment::Right);
            }
        }
        let lines: Vec<String> = table.lines().map(|line| line.trim_end().to_owned()).collect();
        let bold = |line: &str| if colors { format!("\x1b[1m{line}\x1b[0m") } else { line.to_owned() };
        // A table of names and values has no header.
        let header = lines.first().filter(|line| !self.is_continued && !line.is_empty()).map(|line| bold(line));
        let notes = self.notes.iter().map(|note| printable(note).into_owned());
        header.into_iter().chain(lines.iter().skip(1).cloned()).chain(notes).collect::<Vec<_>>().join("\n")
    }

    /// Writes the table for programs.
    pub(super) fn write_csv(&self, output: impl Write) -> anyhow::Result<()> {
        let mut writer = csv::Writer::from_writer(output);
        let header = self.header.iter().map(|name| name.trim_end_matches(':').replace(' ', "_"));
        if !self.is_continued && !self.header.iter().all(|name| name.is_empty()) {
            writer.write_record(header).map_err(csv_error)?;
        }
        for row in &self.rows {
            writer.write_record(row).map_err(csv_error)?;
        }
        Ok(writer.flush()?)
    }
}

impl FormatArgs {
    /// Sends the request and prints its answer.
    pub(super) async fn show<T: DeserializeOwned>(
        self,
        request: Request<T>,
        table: impl FnOnce(&T) -> Table,
    ) -> anyhow::Result<T> {
        let text = request.text().await?;
        let answer = serde_json::from_str(&text)?;
        self.print(&text, || table(&answer))?;
        Ok(answer)
    }

    /// Sends the requests for all pages, of which each begins at the cursor that the one before ends with, and prints
    /// the answers as one.
    pub(super) async fn show_pages<T: DeserializeOwned>(
        self,
        request: impl Fn(Option<&String>) -> Request<T>,
        next: impl Fn(T) -> Option<String>,
        table: impl Fn(&T) -> Table,
    ) -> anyhow::Result<()> {
        let mut cursor: Option<String> = None;
        loop {
            let is_continued = cursor.is_some();
            let page = self.show(request(cursor.as_ref()), |page| Table { is_continued, ..table(page) }).await?;
            cursor = next(page);
            if cursor.is_none() {
                return Ok(());
            }
        }
    }

    /// Prints an answer, of which `json` is the text.
    pub(super) fn print(self, json: &str, table: impl FnOnce() -> Table) -> anyhow::Result<()> {
        match self {
            Self { json: true, .. } => say!("{}", json.trim_end())?,
            Self { csv: true, .. } => table().write_csv(io::stdout().lock())?,
            Self { .. } => say!("{}", table().text(has_colors(&io::stdout())))?,
        }
        Ok(())
    }
}

/// Returns whether an output is a terminal that shall have colors: https://no-color.org
pub(super) fn has_colors(output: &impl IsTerminal) -> bool {
    output.is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
}

/// Returns the text with control characters escaped, and those that are not seen or turn the direction: names come from
/// strangers, and a terminal obeys such characters.
pub(super) fn printable(text: &str) -> Cow<'_, str> {
    if !text.contains(is_hidden) {
        return text.into();
    }
    text.chars()
        .fold(String::new(), |mut shown, char| {
            match is_hidden(char) {
                true => shown.extend(char.escape_default()),
                false => shown.push(char),
            }
            shown
        })
        .into()
}

/// Returns the text of a cell: of what is not known, `-`.
pub(super) fn cell<T: ToString>(value: Option<T>) -> String {
    value.map_or_else(|| "-".to_owned(), |value| value.to_string())
}

/// Returns the text of a score.
pub(super) fn score(score: &Option<Decimal>) -> String {
    cell(score.as_ref())
}

/// What people see in place of a subject that was removed from a final period.
pub(super) const REMOVED: &str = "(removed)";

/// Returns the text of the subject of a line: empty, as in exports, if it was removed. No name is empty.
pub(super) fn line_subject(subject: &Option<String>) -> String {
    subject.clone().unwrap_or_default()
}

/// Returns the error of standard output, so that the end of a reader is told from others.
pub(super) fn csv_error(error: csv::Error) -> anyhow::Error {
    match error.into_kind() {
        csv::ErrorKind::Io(error) => error.into(),
        kind => anyhow::anyhow!("{kind:?}"),
    }
}

/// Clears the terminal, and prints at its top.
pub(super) fn clear() -> io::Result<()> {
    write!(io::stdout().lock(), "\x1b[H\x1b[2J")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_align_numbers_to_the_right_and_escape_control_characters() {
        let rows = [["1", "a\x1b[2J", "10"], ["12", "日本", "9"]].map(|row| row.map(str::to_owned).to_vec());
        let table = Table::new(["rank:", "subject", "score:"]).rows(rows);
        assert_eq!(table.text(false), "rank  subject     score\n   1  a\\u{1b}[2J     10\n  12  日本            9");
        assert!(table.text(true).starts_with("\x1b[1mrank"));
    }
}
