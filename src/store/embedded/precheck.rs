//! What fjall's files are asked before fjall reads them, as it trusts some lengths in them blindly.
//!
//! fjall writes a checksum of each keyspace's list of tables and does not check it (3.1): with one wrong bit it may
//! leave tables out without a word, or ask for so much memory that the process is aborted, which no code can
//! catch. Both are looked for here. A file this does not know is left to fjall.

use std::fs;
use std::io;
use std::path::Path;

use xxhash_rust::xxh3::xxh3_128;

use super::disk::DiskError;

/// The end of an archive: magic, version, kind of checksum, checksum, position and length of the contents.
const TRAILER: usize = 4 + 1 + 1 + 16 + 8 + 8;
const TRAILER_MAGIC: &[u8] = b"SFA!";

/// Checks the files of a database that is not open. Reads them once; opening does that anyway.
pub(super) fn precheck(database: &Path) -> Result<(), DiskError> {
    let keyspaces = match fs::read_dir(database.join("keyspaces")) {
        Ok(keyspaces) => keyspaces,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(unreadable(database, &error)),
    };
    for keyspace in keyspaces {
        let folder = keyspace.map_err(|error| unreadable(database, &error))?.path();
        let current = folder.join("current");
        if current.is_file() {
            check_list(&folder, &current)?;
        }
        let Ok(tables) = fs::read_dir(folder.join("tables")) else { continue };
        for table in tables {
            let path = table.map_err(|error| unreadable(&folder, &error))?.path();
            check_contents(&path, &fs::read(&path).map_err(|error| unreadable(&path, &error))?)?;
        }
    }
    Ok(())
}

/// `current` names the valid list of tables by its number, and has its checksum.
fn check_list(folder: &Path, current: &Path) -> Result<(), DiskError> {
    let bytes = fs::read(current).map_err(|error| unreadable(current, &error))?;
    let (Some((number, rest)), true) = (bytes.split_first_chunk::<8>(), bytes.len() == 25) else {
        return Err(damaged(current));
    };
    let Some((sum, [0])) = rest.split_first_chunk::<16>() else { return Err(damaged(current)) };
    let list = folder.join(format!("v{}", u64::from_le_bytes(*number)));
    let bytes = fs::read(&list).map_err(|error| unreadable(&list, &error))?;
    if xxh3_128(&bytes) == u128::from_le_bytes(*sum) { Ok(()) } else { Err(damaged(&list)) }
}

/// An archive's contents may not be longer than the archive.
fn check_contents(path: &Path, bytes: &[u8]) -> Result<(), DiskError> {
    let trailer = bytes.len().checked_sub(TRAILER).map(|start| &bytes[start..]);
    let Some(trailer) = trailer.filter(|trailer| trailer.starts_with(TRAILER_MAGIC)) else {
        return Err(damaged(path));
    };
    let position = trailer[22..].first_chunk().map(|bytes| u64::from_le_bytes(*bytes));
    let entries = position
        .and_then(|position| usize::try_from(position).ok())
        .and_then(|position| bytes.get(position..)?.get(4..)?.first_chunk())
        .map(|count| u64::from(u32::from_le_bytes(*count)));
    match entries {
        Some(entries) if entries < bytes.len() as u64 => Ok(()),
        _ => Err(damaged(path)),
    }
}

fn damaged(path: &Path) -> DiskError {
    DiskError(format!("{} is damaged", path.display()))
}

fn unreadable(path: &Path, error: &io::Error) -> DiskError {
    DiskError(format!("cannot read {}: {error}", path.display()))
}
