//! CSV with a header line. Quoted fields may contain commas, quotes and line ends.

use std::borrow::Cow;
use std::cell::Cell;
use std::io::{self, BufRead, Read};
use std::rc::Rc;

use anyhow::{Context, bail};

use super::fields::Fields;
use super::input::MAX_LINE_BYTES;
use super::record::{Record, Skip};

/// Calls `each` for every record after the header, with the number of its first line and its raw fields.
///
/// Fails if the header lacks a named column, or if a record is longer than [`MAX_LINE_BYTES`]: a quote that is never
/// closed would otherwise include the rest of the file.
pub fn read(
    reader: impl BufRead,
    names: &Fields<String>,
    mut each: impl FnMut(u64, &[u8], Result<Record<'_>, Skip>) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    let allowance = Rc::new(Cell::new(MAX_LINE_BYTES));
    let bounded = Bounded { source: reader, allowance: Rc::clone(&allowance) };
    // The CRLF mode of the csv crate ends a record at the CR, so its line numbers are one too low.
    let mut csv = csv::ReaderBuilder::new().terminator(csv::Terminator::Any(b'\n')).from_reader(bounded);
    let columns = find(csv.byte_headers().context("reading the header")?, names)?;
    let mut row = csv::ByteRecord::new();
    loop {
        allowance.set(MAX_LINE_BYTES);
        let line = csv.position().line();
        match csv.read_byte_record(&mut row) {
            Ok(true) => {
                let line = row.position().map_or(line, csv::Position::line);
                each(line, row.as_slice(), record(&columns, &row))?;
            }
            Ok(false) => return Ok(()),
            Err(error) => match error.kind() {
                csv::ErrorKind::UnequalLengths { pos, .. } => {
                    each(pos.as_ref().map_or(line, csv::Position::line), &[], Err(Skip::FieldCount))?;
                }
                _ => {
                    return Err(io::Error::from(error))
                        .with_context(|| format!("in the record that starts at line {line}"));
                }
            },
        }
    }
}

/// Returns the columns of the named fields.
fn find(header: &csv::ByteRecord, names: &Fields<String>) -> anyhow::Result<Fields<usize>> {
    names.try_map(|name| {
        let Some(at) = header.iter().position(|column| column.trim_ascii() == name.as_bytes()) else {
            let columns: Vec<_> = header.iter().take(50).map(String::from_utf8_lossy).collect();
            bail!("the header has no column '{name}'; it has {}", columns.join(", "));
        };
        Ok(at)
    })
}

fn record<'r>(columns: &Fields<usize>, row: &'r csv::ByteRecord) -> Result<Record<'r>, Skip> {
    let text_of = |column: &usize| -> Result<Option<Cow<'r, str>>, Skip> {
        let Some(field) = row.get(*column) else { return Ok(None) };
        let is_last = column + 1 == row.len();
        let field = if is_last { field.strip_suffix(b"\r").unwrap_or(field) } else { field };
        if field.is_empty() {
            return Ok(None);
        }
        std::str::from_utf8(field).map(|text| Some(Cow::Borrowed(text))).map_err(|_| Skip::NotUtf8)
    };
    columns.try_map(text_of)?.record()
}

/// A reader that fails when more bytes are read than allowed since the allowance was last renewed.
struct Bounded<R> {
    source: R,
    allowance: Rc<Cell<usize>>,
}

impl<R: Read> Read for Bounded<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let left = self.allowance.get();
        if left == 0 {
            return Err(io::Error::new(
                io::ErrorKind::InvalidData,
                "it is longer than 1 MiB; perhaps a quote is never closed",
            ));
        }
        let read = self.source.read(buffer)?;
        self.allowance.set(left.saturating_sub(read));
        Ok(read)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    type Row = (u64, Result<(String, Option<String>), Skip>);

    fn rows(text: &[u8]) -> anyhow::Result<Vec<Row>> {
        let names = Fields {
            subject: Some("code".into()),
            amount: Some("quantity".into()),
            by: None,
            value: None,
            time: Some("date".into()),
            id: None,
        };
        let mut rows = Vec::new();
        read(text, &names, |line, _, record| {
            rows.push((line, record.map(|r| (r.subject.into_owned(), r.amount.map(Cow::into_owned)))));
            Ok(())
        })?;
        Ok(rows)
    }

    fn counted(subject: &str, amount: &str) -> Result<(String, Option<String>), Skip> {
        Ok((subject.into(), Some(amount.into())))
    }

    #[test]
    fn rows_keep_their_line_numbers_and_invalid_ones_are_skipped() {
        let text = b"\xef\xbb\xbfcode,quantity,date\r\n\
            a,6,2010-12-01 08:26:00\r\n\
            \"b \"\"x\"\", \r\ny\",-1.5,2010-12-01 08:26\r\n\
            short,1\r\n\
            \r\n\
            ,1,2010-12-01 08:26:00\r\n\
            c,,2010-12-01 08:26:00\r\n\
            c,many,2010-12-01 08:26:00\r\n\
            c,1,\r\n\
            c,1,tomorrow\r\n\
            \xff,1,2010-12-01 08:26:00\r\n\
            d,7,1291191960";
        assert_eq!(
            rows(text).unwrap(),
            [
                (2, counted("a", "6")),
                (3, counted("b \"x\", \r\ny", "-1.5")),
                (5, Err(Skip::FieldCount)),
                (6, Err(Skip::FieldCount)),
                (7, Err(Skip::NoSubject)),
                (8, Err(Skip::NoAmount)),
                (9, Err(Skip::BadAmount)),
                (10, Err(Skip::NoTime)),
                (11, Err(Skip::BadTime)),
                (12, Err(Skip::NotUtf8)),
                (13, counted("d", "7")),
            ]
        );
    }

    #[test]
    fn a_missing_column_error_lists_the_existing_columns() {
        let error = rows(b"code,count,date\na,1,0").unwrap_err().to_string();
        assert_eq!(error, "the header has no column 'quantity'; it has code, count, date");
        assert!(rows(b"").is_err());
    }

    #[test]
    fn an_unclosed_quote_is_an_error_within_bounded_memory() {
        let mut text = b"code,quantity,date\na,1,0\n\"b".to_vec();
        text.resize(3 * MAX_LINE_BYTES, b'x');
        let error = format!("{:#}", rows(&text).unwrap_err());
        assert!(error.contains("line 3") && error.contains("never closed"), "{error}");
    }
}
