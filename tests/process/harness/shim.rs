//! Libraries for `LD_PRELOAD` that make the system calls of a process slow or wrong.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::skipping::skipped;

/// Compiles `shims/<name>.c` into this folder. Skips the test and returns `None` if there is no C compiler.
pub fn compile(name: &str, folder: &Path) -> Option<PathBuf> {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/process/shims/{name}.c"));
    let library = folder.join(format!("{name}.so"));
    let output = Command::new("cc").args(["-shared", "-fPIC", "-O1", "-o"]).arg(&library).arg(&source).output();
    match output {
        Ok(output) if output.status.success() => Some(library),
        Ok(output) => panic!("{} does not compile: {}", source.display(), String::from_utf8_lossy(&output.stderr)),
        Err(error) => {
            skipped(format_args!("there is no C compiler for {}: {error}", source.display()));
            None
        }
    }
}
