//! The check of a data directory that is not in use: reads every file and verifies every checksum.

use std::collections::BTreeSet;
use std::fs::File;
use std::path::Path;
use std::sync::Arc;

use super::super::log_operations::{LogOperation, operations};
use super::super::storage::checkpoint::{CHECKPOINTS, CheckpointReader, FileIdentity, IDS};
use super::super::storage::damage::StorageError;
use super::super::storage::files::Files;
use super::super::storage::files::system::SystemFiles;
use super::super::storage::log::{DIRECTORY, LogReader, segment_name};
use super::super::storage::manifest::{MANIFEST, Manifest};
use super::directory_lock::lock_existing;
use crate::store::{Result, StoreError};

/// The result of the check of a data directory.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DataReport {
    /// The number of boards that the manifest and the log define.
    pub boards: usize,
    /// The number of files read, including the manifest. The log counts as one.
    pub files: usize,
    /// The number of valid bytes read. For the log, the bytes of its operations.
    pub bytes: u64,
    /// The damage found, by file and offset.
    pub damage: Vec<String>,
}

/// Reads everything in a data directory (or a backup) and reports damage: the first damaged place of each file, and of
/// the log as a whole. Changes nothing. The directory must not be in use.
///
/// Returns [`StoreError::Setup`] if the directory is in use, is not a data directory, or was written by another
/// version.
pub fn check_data(path: &Path) -> Result<DataReport> {
    let setup = |what: String| StoreError::Setup { detail: format!("{}: {what}", path.display()) };
    if !path.is_dir() {
        return Err(setup("the directory does not exist".to_owned()));
    }
    let _lock = lock(path)?;
    let files: Arc<dyn Files> = Arc::new(SystemFiles::new(path));
    let mut report = DataReport { files: 1, ..DataReport::default() };
    let manifest = match Manifest::read(&*files) {
        Ok(Some(manifest)) => manifest,
        Ok(None) => {
            report.damage.push(lost_manifest(&*files).ok_or_else(|| setup(describe_directory(path).to_owned()))?);
            return Ok(report);
        }
        Err(error @ StorageError::Damaged { .. }) => {
            report.damage.push(error.to_string());
            return Ok(report);
        }
        Err(error) => return Err(setup(error.to_string())),
    };
    report.bytes = files.open(MANIFEST).and_then(|file| file.len()).unwrap_or(0);
    for board in &manifest.boards {
        for (name, bytes, kind) in board.files() {
            report.files += 1;
            let subject = FileIdentity { kind, store: manifest.store, generation: board.generation };
            add_result(&mut report, check_file(&files, name, bytes, subject));
        }
    }
    report.files += 1;
    let mut boards: BTreeSet<_> = manifest.boards.iter().map(|board| board.generation).collect();
    add_result(&mut report, check_log(&files, &manifest, &mut boards));
    report.boards = boards.len();
    Ok(report)
}

/// Locks a data directory so that it cannot be opened. A backup that was never opened has no lock file, and none is
/// created.
fn lock(path: &Path) -> Result<Option<File>> {
    if path.join("lock").exists() { lock_existing(path).map(Some) } else { Ok(None) }
}

/// Returns a message that the manifest is missing, if there are files that it should name.
fn lost_manifest(files: &dyn Files) -> Option<String> {
    let first = |directory: &str| Some(format!("{directory}/{}", files.list(directory).ok()?.first()?));
    let file = [DIRECTORY, CHECKPOINTS, IDS].into_iter().find_map(first)?;
    Some(StorageError::damaged(MANIFEST, 0, format!("the file is missing, but {file} exists")).to_string())
}

/// Returns a description of a directory without a manifest.
fn describe_directory(path: &Path) -> &'static str {
    if path.join("database").exists() {
        "the directory was written by an earlier version of rolltop, which this version cannot read"
    } else {
        "the directory has no MANIFEST, so it is not a rolltop data directory"
    }
}

fn add_result(report: &mut DataReport, checked: Result<u64, StorageError>) {
    match checked {
        Ok(bytes) => report.bytes += bytes,
        Err(error) => report.damage.push(error.to_string()),
    }
}

/// Checks one file. Returns its number of bytes.
fn check_file(files: &Arc<dyn Files>, name: &str, bytes: u64, subject: FileIdentity) -> Result<u64, StorageError> {
    let mut reader = CheckpointReader::open(&**files, name, subject, Some(bytes))?;
    loop {
        let (offset, _) = reader.progress();
        let Some(block) = reader.next()? else { return Ok(bytes) };
        if let Some(error) = operations(block).find_map(Result::err) {
            return Err(error.in_file(name, offset));
        }
    }
}

/// Checks the log. Returns its number of bytes. Adds boards to `boards` and removes them as the log defines and removes
/// them.
fn check_log(files: &Arc<dyn Files>, manifest: &Manifest, boards: &mut BTreeSet<u64>) -> Result<u64, StorageError> {
    let mut log = LogReader::open(files.clone(), manifest.store, manifest.log_start)?;
    let mut bytes = 0;
    while let Some(frame) = log.next()? {
        bytes += frame.payload.len() as u64;
        for operation in operations(frame.payload) {
            match operation {
                // The manifest already lists the boards that were defined up to this sequence.
                Ok(_) if frame.seq <= manifest.catalog_seq => {}
                Ok(LogOperation::Defined { generation, .. }) => {
                    boards.insert(generation.0);
                }
                Ok(LogOperation::Undefined { generation }) => {
                    boards.remove(&generation.0);
                }
                Ok(_) => {}
                Err(error) => return Err(error.in_file(&segment_name(frame.segment), frame.offset)),
            }
        }
    }
    Ok(bytes)
}
