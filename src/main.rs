//! The `rolltop` program: parse, run, exit with 0 (well), 1 (failed) or 2 (wrong usage or configuration).

#![forbid(unsafe_code)]

use std::process::ExitCode;

// Measured against the system's allocator on the write path; see docs/performance.md.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    rolltop::cli::run(std::env::args_os())
}
