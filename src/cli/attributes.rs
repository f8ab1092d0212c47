//! `rolltop attributes`: what stands beside subjects.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, IsTerminal, Write};

use anyhow::{Context, bail};
use rolltop_client::Board;
use rolltop_client::answers::{Attributes, Described, DescribedPage, Moderations};
use serde_json::value::RawValue;

use super::format::{FormatArgs, Table, printable};
use super::lines::InputLines;
use super::server::ServerArgs;

/// The number of subjects of a request.
const AT_ONCE: usize = 1_000;

/// Print attributes of subjects, such as names, or set them
#[derive(Clone, Debug, clap::Args)]
pub(super) struct AttributesArgs {
    board: String,
    /// The subject, or - to change those on the lines of standard input: {"subject":"u17","attributes":{"name":"Ann"}}
    /// [default: print all that have some]
    subject: Option<String>,
    /// Attributes to set: level=12 is a number, name=Ann a text; name=null removes one. The others stay
    #[arg(value_name = "NAME=VALUE", requires = "subject")]
    attributes: Vec<String>,
    /// Remove all attributes of the subject
    #[arg(long, requires = "subject", conflicts_with = "attributes")]
    remove: bool,
    /// The key of the ranking, if the board that keeps them has one for each
    #[arg(long, value_name = "KEY")]
    by: Option<String>,
    /// Of all that have some, only subjects that begin like this; with keys together with --by
    #[arg(long, default_value = "", conflicts_with = "subject")]
    prefix: String,
    #[command(flatten)]
    server: ServerArgs,
    #[command(flatten)]
    format: FormatArgs,
}

pub(super) async fn run(args: AttributesArgs) -> anyhow::Result<()> {
    let AttributesArgs { board, subject, attributes, remove, by, prefix, server, format } = args;
    let Some(subject) = subject else {
        let board = server.service()?.board(&board);
        let request = |cursor: Option<&String>| {
            board.described(&prefix).limit(1_000).optional("by", by.as_ref()).optional("cursor", cursor)
        };
        return format.show_pages(request, |page| page.next, |page: &DescribedPage| table(&page.items)).await;
    };
    if subject == "-" {
        if !attributes.is_empty() || remove {
            bail!("- stands for the lines of standard input, so give it without attributes");
        }
        return lines(&server.reached().await?.board(&board), format).await;
    }
    let board = server.service()?.board(&board);
    let request = match (attributes.as_slice(), remove) {
        (_, true) => board.remove_attributes(&subject),
        ([], false) => board.attributes(&subject),
        (some, false) => board.change_attributes(&subject, &given(some)?),
    };
    format.show(request.optional("by", by), |found| table(std::slice::from_ref(found))).await?;
    Ok(())
}

/// Returns the attributes that are given as `NAME=VALUE`, with the digits of numbers as they are written.
fn given(texts: &[String]) -> anyhow::Result<BTreeMap<String, Box<RawValue>>> {
    let attribute = |text: &String| {
        let Some((name, value)) = text.split_once('=') else { bail!("{text}: '=' is missing after the name") };
        // What is no JSON is a text, so that texts need no quotes.
        let json = RawValue::from_string(value.to_owned()).or_else(|_| serde_json::value::to_raw_value(value));
        Ok((name.to_owned(), json.with_context(|| format!("{text}: not a value"))?))
    };
    texts.iter().map(attribute).collect()
}

/// Changes the subjects that standard input has on its lines.
async fn lines(board: &Board, format: FormatArgs) -> anyhow::Result<()> {
    if io::stdin().is_terminal() {
        bail!(
            "give the subjects to standard input, one on each line: {{\"subject\":\"u17\",\"attributes\":{{\"name\":\"Ann\"}}}}"
        );
    }
    let (mut input, mut some) = (InputLines::new(tokio::io::stdin()), Vec::with_capacity(AT_ONCE));
    let (mut accepted, mut refused) = (0, 0);
    let mut is_end = false;
    while !is_end {
        match input.next().await.context("cannot read standard input")? {
            Some((number, line)) => {
                let line = line.and_then(|line| {
                    RawValue::from_string(line.trim().to_owned()).map_err(|error| format!("it is not JSON: {error}"))
                });
                match line {
                    Ok(line) => some.push((number, line)),
                    Err(detail) => {
                        refused += 1;
                        refuse(number, &detail);
                    }
                }
            }
            None => is_end = true,
        }
        if some.len() == AT_ONCE || is_end && !some.is_empty() {
            let items: Vec<&RawValue> = some.iter().map(|(_, line)| &**line).collect();
            let text = board.describe_all(&items).text().await?;
            let answer: Moderations = serde_json::from_str(&text)?;
            accepted += answer.accepted;
            for rejection in &answer.rejected {
                refused += 1;
                let number = some.get(rejection.index).map_or(0, |(number, _)| *number);
                refuse(number, &format!("{} ({})", rejection.detail, rejection.code));
            }
            if format.json {
                format.print(&text, Table::default)?;
            }
            some.clear();
        }
    }
    if !format.json {
        let row = vec![board.name().to_owned(), accepted.to_string(), "set".to_owned()];
        format.print("", || Table::new(["board", "subjects:", "state"]).rows([row]))?;
    }
    match refused {
        0 => Ok(()),
        1 => bail!("1 line was refused"),
        refused => bail!("{refused} lines were refused"),
    }
}

/// Says why a line is refused. If standard error cannot be written, the number at the end says it.
fn refuse(number: u64, detail: &str) {
    drop(writeln!(io::stderr(), "line {number} is refused: {}", printable(detail)));
}

fn table(described: &[Described]) -> Table {
    let has_keys = described.iter().any(|one| one.by.is_some());
    let row = |one: &Described| {
        let key = one.by.clone().filter(|_| has_keys);
        key.into_iter().chain([one.subject.clone()]).collect::<Vec<_>>()
    };
    let table = if has_keys { Table::new(["by", "subject"]) } else { Table::new(["subject"]) };
    with_columns(table.rows(described.iter().map(row)), Some("*"), described.iter().map(|one| one.attributes.as_ref()))
}

/// Adds a column for each of these attributes, or if they are not named (`*`), for each that any of the lines of a table has.
pub(super) fn with_columns<'l>(
    table: Table,
    names: Option<&str>,
    lines: impl Iterator<Item = Option<&'l Attributes>> + Clone,
) -> Table {
    let found = || lines.clone().flatten().flat_map(|attributes| attributes.keys().map(String::as_str));
    let names: Vec<&str> = match names {
        None => return table,
        Some("*") => found().collect::<BTreeSet<_>>().into_iter().collect(),
        Some(names) => names.split(',').collect(),
    };
    let cell = |attributes: Option<&Attributes>, name: &str| Some(attributes?.get(name)?.to_string());
    names.into_iter().fold(table, |table, name| {
        let cells = lines.clone().map(|attributes| Some(cell(attributes, name).unwrap_or_default()));
        table.optional_column(name.to_owned(), cells)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_column_for_each_attribute() {
        let described: Vec<Described> = serde_json::from_str(
            r#"[{"subject":"a","attributes":{"name":"Ann","level":2.50}},{"subject":"b","attributes":{"name":"Bob"}}]"#,
        )
        .unwrap();
        assert_eq!(table(&described).text(false), "subject  level  name\na        2.50   Ann\nb               Bob");
        let given = given(&["name=Ann".to_owned(), "level=2.50".to_owned(), "gone=null".to_owned()]).unwrap();
        assert_eq!(serde_json::to_string(&given).unwrap(), r#"{"gone":null,"level":2.50,"name":"Ann"}"#);
    }
}
