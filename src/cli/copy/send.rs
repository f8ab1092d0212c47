//! Sending contents. What is sent again is merged once, so a request is repeated until it is answered.

use std::fmt;

use anyhow::{Context, bail};
use serde_json::Value;

use super::file::{ContentsFile, END, HEADER, LinePlace, damaged};
use super::service::Service;

/// The bytes of lines after which a request is full.
const REQUEST: usize = 1 << 20;

/// What became of the contents that were sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Sent {
    merged: u64,
    expired: u64,
    pub(super) refused: u64,
    repeated: u64,
    /// Lines that were not sent, because earlier runs have sent them.
    skipped: u64,
    /// Whether contents of this board were merged before, so that nothing was sent.
    was_merged: bool,
}

impl fmt::Display for Sent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { merged, expired, refused, repeated, skipped, was_merged } = self;
        if *was_merged {
            return f.write_str("its contents were merged before, which is done once");
        }
        write!(f, "{merged} contents merged, {expired} expired, {refused} refused")?;
        if *repeated > 0 {
            write!(f, ", {repeated} merged before")?;
        }
        if *skipped > 0 {
            write!(f, ", {skipped} lines sent before")?;
        }
        Ok(())
    }
}

/// Begins the import, or continues it. Returns the answer.
pub(super) async fn begin(to: &Service, name: &str, file: &ContentsFile) -> anyhow::Result<Value> {
    to.send_contents(name, &header_line(file)).await
}

fn header_line(file: &ContentsFile) -> String {
    format!("{}\n", file.header)
}

/// Sends the contents that still count, after the answer to the beginning of the import, and ends it.
pub(super) async fn contents(to: &Service, name: &str, file: &ContentsFile, begun: Value) -> anyhow::Result<Sent> {
    let header = header_line(file);
    let (mut sent, mut request) = (Sent::default(), header.clone());
    if begun["ended"] == true {
        sent.was_merged = true;
        return Ok(sent);
    }
    let through: Vec<Option<u64>> =
        serde_json::from_value(begun["through"].clone()).context("the answer to an import has no 'through'")?;
    for line in file.read()? {
        let line = line.with_context(|| format!("cannot read {}", file.path().display()))?;
        if line.starts_with(HEADER) {
            continue;
        }
        if !line.starts_with(END) {
            let place: LinePlace = serde_json::from_str(&line).map_err(|_| damaged(file.path()))?;
            // A track that the board does not need has no number.
            if through.get(place.track).is_none_or(|through| through.is_none_or(|through| place.n <= through)) {
                sent.skipped += 1;
                continue;
            }
            if !place.before.is_empty() {
                continue;
            }
            // Parts have no gaps: what no longer counts is sent as an empty one.
            if place.slot.is_some_and(|slot| slot < file.floor(place.track)) {
                request.push_str(&format!("{{\"n\":{},\"prev\":{},\"track\":{}}}\n", place.n, place.prev, place.track));
                continue;
            }
        }
        request.push_str(&line);
        request.push('\n');
        if request.len() >= REQUEST {
            sent.add(&to.send_contents(name, &request).await?);
            request.clone_from(&header);
        }
    }
    let last = to.send_contents(name, &request).await?;
    sent.add(&last);
    if last["ended"] != true {
        bail!("the import into {name} has not ended; run the command again");
    }
    Ok(sent)
}

impl Sent {
    fn add(&mut self, receipt: &Value) {
        let number = |name: &str| receipt[name].as_u64().unwrap_or(0);
        self.merged += number("merged");
        self.expired += number("expired");
        self.refused += number("refused");
        self.repeated += number("repeated");
    }
}
