//! Comparing what a board holds with the contents that were copied to it.
//!
//! Of each track and slot, a sum of the hashes of all its contents is computed, in which their order does not matter.

use std::collections::BTreeMap;

use anyhow::{Context, bail};
use chrono::{DateTime, SecondsFormat};
use serde_json::Value;
use xxhash_rust::xxh3::xxh3_128;

use super::file::{ContentsFile, END, End, HEADER};
use super::service::Service;

/// The time, in milliseconds, of which values are added up together: they have no slots.
const HOUR: i64 = 3_600_000;

/// The lists of contents, and which member of each has its time, if they have times of their own.
const LISTS: [(&str, Option<usize>); 11] = [
    ("sums", None),
    ("means", None),
    ("extremes", None),
    ("newest", None),
    ("sketches", None),
    ("values", Some(2)),
    ("retracted", Some(2)),
    ("counts", Some(2)),
    ("dropped", Some(1)),
    (MODERATED.2, None),
    (DESCRIBED.2, None),
];

/// The list of moderated subjects, which never expires, in [`Digest::contents`].
const MODERATED: (usize, i64, &str) = (0, i64::MAX, "moderated");
/// The same for that of subjects with attributes.
const DESCRIBED: (usize, i64, &str) = (0, i64::MAX, "attributes");

/// What a board holds, in short.
#[derive(Debug, Default)]
struct Digest {
    /// By track, slot or hour, and list: the number of contents and the sum of their hashes.
    contents: BTreeMap<(usize, i64, &'static str), (u64, u128)>,
    /// By track and slot: the number of items.
    events: BTreeMap<(usize, i64), u64>,
}

/// Audits the board, and compares what it holds with the file. Returns what was found to be the same.
pub(super) async fn contents(to: &Service, name: &str, file: &ContentsFile) -> anyhow::Result<String> {
    let differences = to.audit(name).await?;
    if differences > 0 {
        bail!(
            "an audit of {name} found {differences} scores that differ from the slots; see POST /v1/boards/{name}/audit"
        );
    }
    let (header, mut there, end) = read(to, name).await?;
    if !has_same_tracks(&header["definition"], &file.header["definition"]) {
        return Ok("no differences between scores and slots; the board has other windows than the contents, which were not compared".to_owned());
    }
    let mut here = Digest::default();
    for line in file.read()? {
        here.add(&line.with_context(|| format!("cannot read {}", file.path().display()))?)?;
    }
    let floor = |track: usize| file.floor(track).max(end.tracks.get(track).map_or(i64::MAX, |track| track.floor));
    // Over all time retractions are forgotten after a day, not at the same moment everywhere.
    let is_all_time = |track: usize| file.header["tracks"][track]["slot"].is_null();
    for digest in [&mut here, &mut there] {
        digest.keep_from(floor);
        digest.contents.retain(|(track, _, list), _| !(*list == "retracted" && is_all_time(*track)));
    }
    let items = |digest: &Digest, slot: &(usize, i64)| digest.events.get(slot).copied().unwrap_or(0);
    if let Some((slot, _)) = here.events.iter().find(|(slot, expected)| items(&there, slot) < **expected) {
        let window = file.header["tracks"][slot.0]["window"].as_str().unwrap_or("all");
        let from = DateTime::from_timestamp_millis(slot.1).unwrap_or_default();
        bail!(
            "{name} has fewer items than the contents in the slot from {} of its window of {window}: contents of a board are merged once, so if they were copied before, and more was counted there since, remove {name} and copy it again",
            from.to_rfc3339_opts(SecondsFormat::Secs, true)
        );
    }
    let mut own = BTreeMap::<usize, u64>::new();
    for (slot, found) in &there.events {
        *own.entry(slot.0).or_default() += found - items(&here, slot);
    }
    // Each item is counted in every window that reaches back to it.
    let more = own.into_values().max().unwrap_or(0);
    if more > 0 {
        return Ok(format!(
            "no differences between scores and slots; {name} has counted {more} items of its own, so its contents were not compared"
        ));
    }
    // It may be changed where the board is now, at any time.
    let [moderated, moderated_there] = [&mut here, &mut there].map(|digest| digest.contents.remove(&MODERATED));
    let [described, described_there] = [&mut here, &mut there].map(|digest| digest.contents.remove(&DESCRIBED));
    let all: u64 = here.contents.values().map(|(number, _)| number).sum();
    let same = |(of, what): (&(usize, i64, &str), &(u64, u128))| there.contents.get(of) == Some(what);
    if here.contents.len() != there.contents.len() || !here.contents.iter().all(same) {
        bail!(
            "{name} differs from the contents although it has counted no items of its own: was something removed there?"
        );
    }
    let moderation = match moderated == moderated_there {
        true => "",
        false => "; other subjects are hidden or frozen there",
    };
    let attributes = match described {
        _ if described != described_there => "; subjects have other attributes there".to_owned(),
        Some((subjects, _)) => format!("; the attributes of {subjects} subjects are the same"),
        None => String::new(),
    };
    Ok(format!("{all} contents are the same at {}, and no scores differ from them{moderation}{attributes}", to.url()))
}

/// Returns how many items the board at the source has counted since the contents in the file were read, in slots that
/// still count.
pub(super) async fn counted_since(from: &Service, board: &str, file: &ContentsFile) -> anyhow::Result<u64> {
    let mut lines = from.contents(board, None).await?;
    let (mut more, mut floors) = (BTreeMap::<usize, u64>::new(), Vec::new());
    while let Some(line) = lines.next().await? {
        let line: Value = serde_json::from_str(line).context("a line of contents is not valid")?;
        if let Some(tracks) = line["tracks"].as_array().filter(|_| line["contents"] == 1) {
            floors = tracks.iter().map(|track| track["floor"].as_i64().unwrap_or(i64::MAX)).collect();
            continue;
        }
        // The numbers of items follow the first line.
        let Some(before) = line["before"].as_array() else { break };
        let track = line["track"].as_u64().unwrap_or(0) as usize;
        let floor = floors.get(track).copied().unwrap_or(i64::MAX);
        for pair in before {
            let (slot, items) = (pair[0].as_i64().unwrap_or(0), pair[1].as_u64().unwrap_or(0));
            let known = file.events.get(&track).and_then(|slots| slots.get(&slot)).copied().unwrap_or(0);
            if slot >= floor {
                *more.entry(track).or_default() += items.saturating_sub(known);
            }
        }
    }
    // Each item is counted in every window that reaches back to it.
    Ok(more.into_values().max().unwrap_or(0))
}

/// Returns whether two boards have the same windows and slots.
fn has_same_tracks(one: &Value, other: &Value) -> bool {
    ["metric", "slot", "windows", "keep", "timezone", "starts", "cover", "max_values", "ranked"]
        .iter()
        .all(|key| one[*key] == other[*key])
}

async fn read(to: &Service, name: &str) -> anyhow::Result<(Value, Digest, End)> {
    const ENDED_EARLY: &str = "the contents to compare ended early; run the command again";
    let mut lines = to.contents(name, None).await?;
    let (mut header, mut digest) = (Value::Null, Digest::default());
    while let Some(text) = lines.next().await.context(ENDED_EARLY)? {
        if text.starts_with(HEADER) {
            header = serde_json::from_str(text)?;
        } else if text.starts_with(END) {
            let end: End = serde_json::from_str(text)?;
            if !end.complete {
                bail!(ENDED_EARLY);
            }
            return Ok((header, digest, end));
        } else {
            digest.add(text)?;
        }
    }
    bail!(ENDED_EARLY)
}

impl Digest {
    fn add(&mut self, line: &str) -> anyhow::Result<()> {
        if line.starts_with(HEADER) || line.starts_with(END) {
            return Ok(());
        }
        let line: Value = serde_json::from_str(line).context("a line of contents is not valid")?;
        let track = line["track"].as_u64().unwrap_or(0) as usize;
        for (list, time) in LISTS {
            for content in line[list].as_array().into_iter().flatten() {
                let slot = match time {
                    _ if [MODERATED.2, DESCRIBED.2].contains(&list) => MODERATED.1,
                    Some(member) => content[member].as_i64().unwrap_or(0) / HOUR * HOUR,
                    None => line["slot"].as_i64().unwrap_or(0),
                };
                let (number, sum) = self.contents.entry((track, slot, list)).or_default();
                *number += 1;
                *sum = sum.wrapping_add(xxh3_128(format!("{list}{content}").as_bytes()));
            }
        }
        for pair in line["events"].as_array().into_iter().flatten() {
            self.events.insert((track, pair[0].as_i64().unwrap_or(0)), pair[1].as_u64().unwrap_or(0));
        }
        Ok(())
    }

    /// Drops what is before the floor of its track.
    fn keep_from(&mut self, floor: impl Fn(usize) -> i64) {
        self.contents.retain(|(track, slot, _), _| *slot >= floor(*track));
        self.events.retain(|(track, slot), _| *slot >= floor(*track));
    }
}
