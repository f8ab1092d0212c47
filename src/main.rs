//! The `rolltop` program: parses the command line, runs the command and exits with 0 (success), 1 (failure) or 2 (wrong
//! usage or configuration).

#![forbid(unsafe_code)]

use std::process::ExitCode;

// A request makes a dozen small, short-lived allocations, some of which are freed on a different thread. mimalloc is
// optimized for this.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    rolltop::cli::run(std::env::args_os().collect())
}
