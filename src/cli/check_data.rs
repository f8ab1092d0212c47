//! `rolltop check-data`: checks a data directory, or a backup, for damage.

use std::path::PathBuf;

use anyhow::anyhow;

use crate::store::StoreError;
use crate::store::embedded::{DataReport, check_data};

use super::CommandError;
use super::output::say;

/// Read every file of a data directory that is not in use, or of a backup, and print the damage: exit code 0 if there
/// is none, 1 if there is some, 2 if the directory is in use or is not a data directory.
#[derive(Debug, clap::Args)]
pub(super) struct CheckDataArgs {
    /// The data directory, or a backup.
    #[arg(value_name = "DIR")]
    directory: PathBuf,
}

pub(super) fn run(args: &CheckDataArgs) -> Result<(), CommandError> {
    let directory = args.directory.display();
    let DataReport { boards, files, bytes, damage } = check_data(&args.directory).map_err(|error| match error {
        StoreError::DataDirectory { .. } | StoreError::Setup { .. } => CommandError::WrongConfig(error.into()),
        error => CommandError::Failed(error.into()),
    })?;
    say!("{directory}: {boards} boards, {files} files, {bytes} bytes read")?;
    for line in &damage {
        say!("{line}")?;
    }
    match damage.len() {
        0 => Ok(()),
        1 => Err(CommandError::Failed(anyhow!("{directory} is damaged"))),
        files => Err(CommandError::Failed(anyhow!("{directory} is damaged: {files} files"))),
    }
}
