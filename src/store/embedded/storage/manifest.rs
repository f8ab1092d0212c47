//! The manifest: the file that lists the contents of the data directory.
//!
//! The first line has the magic word, the format's version, the length of the rest in bytes, and in hex the CRC-32C of
//! the line up to it and of the rest. The rest is JSON. The first line is the same in every version, so that this
//! version can tell a later one from damage. Within a version the JSON has exactly these fields.
//!
//! 64-bit integers are strings in the JSON, because many programs read numbers above 2^53 wrongly.

use std::collections::BTreeMap;
use std::io;

use crc32c::{crc32c, crc32c_append};
use serde::{Deserialize, Serialize};

use super::checkpoint::FileKind;
use super::damage::{Context, StorageError};
use super::files::Files;
use super::log::LogStart;

/// The name of the manifest in the data directory.
pub(crate) const MANIFEST: &str = "MANIFEST";
/// The name under which a new manifest is written before it is renamed.
pub(crate) const MANIFEST_NEW: &str = "MANIFEST.new";

const MAGIC: &str = "rolltop-manifest";
/// The version of a manifest that names no board whose editions have changed.
const VERSION: u32 = 1;
/// The version that is written otherwise, so that programs that do not know editions refuse it. No later one is read.
const VERSION_WITH_EDITIONS: u32 = 2;
/// The largest manifest that is read: far more than any number of boards needs.
const MAX_BYTES: u64 = 512 << 20;

/// The contents of the data directory.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Manifest {
    /// A random number, created with the store, that shows files of a different store.
    #[serde(with = "hex128")]
    pub store: u128,
    /// The key of the fingerprints of ids.
    #[serde(with = "hex_pair")]
    pub fingerprint_key: [u64; 2],
    pub clock_mode: ClockMode,
    /// The last recorded reading of the system clock.
    pub clock: Option<ClockRecord>,
    /// The simulated clock, in milliseconds since 1970.
    #[serde(with = "optional_text")]
    pub simulated_clock: Option<i64>,
    #[serde(with = "log_start")]
    pub log_start: LogStart,
    /// The sequence up to which `boards` includes the definitions and removals of boards in frames.
    #[serde(with = "text")]
    pub catalog_seq: u64,
    pub boards: Vec<BoardEntry>,
    /// The rows of each table that has any, as they were at some time up to `log_start.synced_seq`. The log has every
    /// later change. Left out if no table has rows, because earlier versions do not know the field.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub rows: RowsByTable,
}

/// The text of each row by its id, for each table.
pub(crate) type RowsByTable = BTreeMap<String, BTreeMap<String, String>>;

/// The clock mode that the store was created with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum ClockMode {
    System,
    Simulated,
}

/// A reading of the system clock, with the data from which a later start computes the time passed since.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ClockRecord {
    /// Milliseconds since 1970.
    #[serde(with = "text")]
    pub wall_millis: i64,
    /// The id of the boot of the machine.
    pub boot_id: String,
    /// Milliseconds since that boot.
    #[serde(with = "text")]
    pub uptime_millis: u64,
}

/// A board and its files.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct BoardEntry {
    pub name: String,
    #[serde(with = "text")]
    pub generation: u64,
    /// The definition of the current edition as it was given, opaque here.
    pub definition: serde_json::Value,
    /// The editions, if they have changed since the board was defined.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub editions: Option<EditionsEntry>,
    /// The sequence from which frames must be applied on top of the checkpoint.
    #[serde(with = "text")]
    pub from_seq: u64,
    /// The checkpoint, or `None` if the log contains everything.
    pub checkpoint: Option<CheckpointEntry>,
    pub ids: Vec<IdsEntry>,
}

/// The editions of a board, at the time of its checkpoint. The log has the later changes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct EditionsEntry {
    #[serde(with = "text")]
    pub epoch: u64,
    /// What the definition does not say about them, opaque here.
    pub form: String,
}

/// The checkpoint of a board.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct CheckpointEntry {
    /// The name, relative to the data directory.
    pub file: String,
    #[serde(with = "text")]
    pub bytes: u64,
}

/// A sealed bucket of a board's ids.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct IdsEntry {
    /// The name, relative to the data directory.
    pub file: String,
    #[serde(with = "text")]
    pub bucket: i64,
    /// The newest arrival in it.
    #[serde(with = "text")]
    pub newest: i64,
    #[serde(with = "text")]
    pub bytes: u64,
}

impl BoardEntry {
    /// Returns the board's files with the checkpoint first: name, bytes and kind of each.
    pub(crate) fn files(&self) -> impl Iterator<Item = (&str, u64, FileKind)> {
        let checkpoint = self.checkpoint.iter().map(|file| (file.file.as_str(), file.bytes, FileKind::Board));
        checkpoint.chain(self.ids.iter().map(|file| (file.file.as_str(), file.bytes, FileKind::Ids)))
    }
}

impl Manifest {
    /// Reads the manifest of a data directory. Returns `None` if there is none.
    ///
    /// # Errors
    /// Returns `Damaged` if it is not what was written, and `Newer` if a later version of the program wrote it.
    pub(crate) fn read(files: &dyn Files) -> Result<Option<Self>, StorageError> {
        let file = match files.open(MANIFEST) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            file => file.context("open", MANIFEST)?,
        };
        let len = file.len().context("read the length of", MANIFEST)?;
        if len > MAX_BYTES {
            return Err(damaged(0, format!("it has {len} bytes, more than {MAX_BYTES}")));
        }
        let mut bytes = vec![0; len as usize];
        file.read_exact_at(&mut bytes, 0).context("read", MANIFEST)?;
        Self::decode(&bytes).map(Some)
    }

    /// Reads the manifest as [`read`](Self::read) does, and makes sure that the same one is found after a power loss.
    ///
    /// A process that was killed may have replaced the manifest without syncing the directory. What is written on the
    /// basis of the new manifest must not be read with the old one. So a start that goes on to write must use this
    /// function.
    pub(crate) fn recover(files: &dyn Files) -> Result<Option<Self>, StorageError> {
        let manifest = Self::read(files)?;
        files.sync_dir("").context("sync the directory of", MANIFEST)?;
        Ok(manifest)
    }

    /// Installs this manifest, atomically. It survives a crash once this has returned.
    ///
    /// # Errors
    /// After an error it is unknown whether this manifest or the previous one is found after a crash, so nothing that
    /// either of them names may be deleted. The call can be repeated.
    pub(crate) fn install(&self, files: &dyn Files) -> Result<(), StorageError> {
        let bytes = self.encode()?;
        match files.remove(MANIFEST_NEW) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error).context("remove", MANIFEST_NEW)?,
            _ => {}
        }
        let file = files.create_new(MANIFEST_NEW).context("create", MANIFEST_NEW)?;
        file.write_all_at(&bytes, 0).context("write", MANIFEST_NEW)?;
        file.sync_data().context("sync", MANIFEST_NEW)?;
        files.rename(MANIFEST_NEW, MANIFEST).context("replace", MANIFEST)?;
        files.sync_dir("").context("sync the directory of", MANIFEST)
    }

    fn encode(&self) -> Result<Vec<u8>, StorageError> {
        let json = serde_json::to_string_pretty(self).map_err(io::Error::other).context("encode", MANIFEST)?;
        let has_editions = self.boards.iter().any(|board| board.editions.is_some());
        let version = if has_editions { VERSION_WITH_EDITIONS } else { VERSION };
        let start = format!("{MAGIC} {version} {} ", json.len());
        let crc = checksum(start.as_bytes(), json.as_bytes());
        Ok(format!("{start}{crc:08x}\n{json}").into_bytes())
    }

    fn decode(bytes: &[u8]) -> Result<Self, StorageError> {
        let line = bytes.iter().take(100).position(|byte| *byte == b'\n');
        let Some((line, json)) = line.and_then(|end| Some((bytes.get(..end)?, bytes.get(end + 1..)?))) else {
            return Err(damaged(0, "it has no first line".to_owned()));
        };
        let Some(first) = FirstLine::decode(line) else {
            return Err(damaged(0, "its first line is not valid".to_owned()));
        };
        let json_offset = line.len() as u64 + 1;
        if first.len != json.len() as u64 {
            let what = format!("{} bytes follow its first line, not {}", json.len(), first.len);
            return Err(damaged(json_offset, what));
        }
        if first.crc != checksum(first.covered, json) {
            return Err(damaged(json_offset, "the checksum does not match".to_owned()));
        }
        if !(VERSION..=VERSION_WITH_EDITIONS).contains(&first.version) {
            let (found, known) = (first.version, VERSION_WITH_EDITIONS);
            return Err(StorageError::Newer { file: MANIFEST.to_owned(), found, known });
        }
        serde_json::from_slice(json).map_err(|error| damaged(json_offset, error.to_string()))
    }
}

struct FirstLine<'a> {
    version: u32,
    len: u64,
    crc: u32,
    /// The part of the line that the checksum covers.
    covered: &'a [u8],
}

impl<'a> FirstLine<'a> {
    fn decode(line: &'a [u8]) -> Option<Self> {
        let text = std::str::from_utf8(line).ok()?;
        let (start, crc) = text.rsplit_once(' ')?;
        let (magic, numbers) = start.split_once(' ')?;
        let (version, len) = numbers.split_once(' ')?;
        let covered = &line[..start.len() + 1];
        let version = version.parse().ok()?;
        let line = Self { version, len: len.parse().ok()?, crc: u32::from_str_radix(crc, 16).ok()?, covered };
        // Accepts numbers only in the form in which they are written, so that no two lines mean the same.
        (magic == MAGIC && text == format!("{MAGIC} {version} {} {:08x}", line.len, line.crc)).then_some(line)
    }
}

fn checksum(start: &[u8], json: &[u8]) -> u32 {
    crc32c_append(crc32c(start), json)
}

fn damaged(offset: u64, what: String) -> StorageError {
    StorageError::damaged(MANIFEST, offset, what)
}

/// Serialization of an integer as a string.
mod text {
    use std::fmt::Display;
    use std::str::FromStr;

    use serde::de::Error;
    use serde::{Deserialize, Deserializer, Serializer};

    pub(super) fn serialize<S: Serializer, T: Display>(value: &T, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(value)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>, T: FromStr<Err: Display>>(
        deserializer: D,
    ) -> Result<T, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(D::Error::custom)
    }
}

/// Serialization of an optional integer as a string or null.
mod optional_text {
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    #[derive(Serialize, Deserialize)]
    struct Text(#[serde(with = "super::text")] i64);

    pub(super) fn serialize<S: Serializer>(value: &Option<i64>, serializer: S) -> Result<S::Ok, S::Error> {
        value.map(Text).serialize(serializer)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<i64>, D::Error> {
        Ok(Option::<Text>::deserialize(deserializer)?.map(|text| text.0))
    }
}

/// Serialization as 32 hex digits.
mod hex128 {
    use serde::de::Error;
    use serde::{Deserialize, Deserializer, Serializer};

    pub(super) fn serialize<S: Serializer>(value: &u128, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&format_args!("{value:032x}"))
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u128, D::Error> {
        u128::from_str_radix(&String::deserialize(deserializer)?, 16).map_err(D::Error::custom)
    }
}

/// Serialization as two times 16 hex digits.
mod hex_pair {
    use serde::de::Error;
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    pub(super) fn serialize<S: Serializer>(value: &[u64; 2], serializer: S) -> Result<S::Ok, S::Error> {
        value.map(|half| format!("{half:016x}")).serialize(serializer)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<[u64; 2], D::Error> {
        let [first, second] = <[String; 2]>::deserialize(deserializer)?;
        let half = |digits: String| u64::from_str_radix(&digits, 16).map_err(D::Error::custom);
        Ok([half(first)?, half(second)?])
    }
}

/// Serialization of [`LogStart`], which does not implement it itself.
mod log_start {
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    use super::LogStart;

    #[derive(Serialize, Deserialize)]
    #[serde(deny_unknown_fields)]
    struct StoredManifest {
        #[serde(with = "super::text")]
        segment: u64,
        #[serde(with = "super::text")]
        seq: u64,
        #[serde(with = "super::text")]
        synced_seq: u64,
    }

    pub(super) fn serialize<S: Serializer>(value: &LogStart, serializer: S) -> Result<S::Ok, S::Error> {
        let LogStart { segment, seq, synced_seq } = *value;
        StoredManifest { segment, seq, synced_seq }.serialize(serializer)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<LogStart, D::Error> {
        let StoredManifest { segment, seq, synced_seq } = StoredManifest::deserialize(deserializer)?;
        Ok(LogStart { segment, seq, synced_seq })
    }
}

#[cfg(test)]
mod tests;
