//! Contents in a file: the lines as the server sent them. The API document has their form.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufRead, BufReader, Lines};
use std::path::{Path, PathBuf};

use anyhow::{Context, anyhow, bail};
use serde::Deserialize;
use serde_json::Value;

use crate::board::Timestamp;

/// Complete contents.
#[derive(Debug)]
pub(super) struct ContentsFile {
    path: PathBuf,
    pub(super) header: Value,
    pub(super) end: End,
    lines: u64,
    /// For each track the numbers of items by slot, before and after.
    before: BTreeMap<usize, BTreeMap<i64, u64>>,
    pub(super) events: BTreeMap<usize, BTreeMap<i64, u64>>,
}

/// The last line.
#[derive(Debug, Deserialize)]
pub(super) struct End {
    pub(super) complete: bool,
    as_of: Option<String>,
    pub(super) tracks: Vec<EndOfTrack>,
}

/// A track after the last data was read.
#[derive(Debug, Deserialize)]
pub(super) struct EndOfTrack {
    pub(super) floor: i64,
    pub(super) upheavals: String,
}

/// What is needed of a line to decide where it belongs.
#[derive(Debug, Deserialize)]
pub(super) struct LinePlace {
    pub(super) n: u64,
    #[serde(default)]
    pub(super) prev: u64,
    pub(super) track: usize,
    pub(super) slot: Option<i64>,
    #[serde(default)]
    pub(super) before: Pairs,
    #[serde(default)]
    pub(super) events: Pairs,
}

type Pairs = Vec<(i64, u64)>;

/// The beginnings of the first and of the last line.
pub(super) const HEADER: &str = "{\"contents\":";
pub(super) const END: &str = "{\"complete\":";

impl ContentsFile {
    /// Reads the beginning and the end of a file. Returns `None` if there is no file, or if its contents are not
    /// complete.
    pub(super) fn open(path: &Path) -> anyhow::Result<Option<Self>> {
        if !path.exists() {
            return Ok(None);
        }
        let (mut header, mut end, mut lines) = (None, None, 0);
        let (mut before, mut events) = (BTreeMap::new(), BTreeMap::new());
        for line in lines_of(path)? {
            let line = line.with_context(|| format!("cannot read {}", path.display()))?;
            if line.starts_with(HEADER) {
                header = Some(serde_json::from_str(&line).map_err(|_| damaged(path))?);
            } else if line.starts_with(END) {
                end = serde_json::from_str(&line).ok();
            } else {
                lines += 1;
                if line.contains("\"before\":[[") || line.contains("\"events\":[[") {
                    let place: LinePlace = serde_json::from_str(&line).map_err(|_| damaged(path))?;
                    let of: &mut BTreeMap<usize, BTreeMap<i64, u64>> =
                        if place.before.is_empty() { &mut events } else { &mut before };
                    of.entry(place.track).or_default().extend(place.before.iter().chain(&place.events).copied());
                }
            }
        }
        let (Some(header), Some(end)) = (header, end) else { return Ok(None) };
        let file = Self { path: path.to_owned(), header, end, lines, before, events };
        Ok(Some(file).filter(|file| file.end.complete))
    }

    /// Returns whether the contents are of a board of this generation.
    pub(super) fn is_of(&self, generation: &str) -> bool {
        // The first half of the id stands for the board.
        let export = self.header["export"].as_str().unwrap_or_default();
        export.len() == 16 && generation.get(..8) == export.get(..8)
    }

    /// Returns the time at which the last data was read.
    pub(super) fn as_of(&self) -> anyhow::Result<Timestamp> {
        let time = self.end.as_of.as_deref().and_then(|text| Timestamp::parse(text).ok());
        time.ok_or_else(|| damaged(&self.path))
    }

    /// Returns the number of lines between the first and the last one.
    pub(super) fn lines(&self) -> u64 {
        self.lines
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the start of the oldest slot of a track that counted at the end.
    pub(super) fn floor(&self, track: usize) -> i64 {
        self.end.tracks.get(track).map_or(i64::MAX, |track| track.floor)
    }

    /// Returns an error unless the contents are of one instant: nothing but rollover has changed the board while it was
    /// read.
    pub(super) fn check_unchanged(&self) -> anyhow::Result<()> {
        let upheavals = |number: usize| self.header["tracks"][number]["upheavals"].as_str().unwrap_or_default();
        let counting = |map: &BTreeMap<usize, BTreeMap<i64, u64>>, track: usize| {
            map.get(&track)
                .into_iter()
                .flat_map(|slots| slots.range(self.floor(track)..))
                .map(|(k, v)| (*k, *v))
                .collect::<Vec<_>>()
        };
        let is_same = |number: usize, end: &EndOfTrack| {
            upheavals(number) == end.upheavals && counting(&self.before, number) == counting(&self.events, number)
        };
        if self.end.tracks.iter().enumerate().all(|(number, end)| is_same(number, end)) {
            return Ok(());
        }
        bail!(
            "the board has changed while it was read: it still receives items, or subjects were removed; switch its producers to the new server first (--define defines the boards there), then run this again"
        )
    }

    /// Moves the file to another path.
    pub(super) fn move_to(self, path: &Path) -> anyhow::Result<Self> {
        std::fs::rename(&self.path, path).with_context(|| format!("cannot rename {}", self.path.display()))?;
        Ok(Self { path: path.to_owned(), ..self })
    }

    /// Returns all lines.
    pub(super) fn read(&self) -> anyhow::Result<Lines<BufReader<File>>> {
        lines_of(&self.path)
    }
}

fn lines_of(path: &Path) -> anyhow::Result<Lines<BufReader<File>>> {
    let file = File::open(path).with_context(|| format!("cannot open {}", path.display()))?;
    Ok(BufReader::with_capacity(1 << 20, file).lines())
}

pub(super) fn damaged(path: &Path) -> anyhow::Error {
    anyhow!(
        "{} is damaged; remove it, remove the board at the new server if a part of it was sent, and run the command again",
        path.display()
    )
}
