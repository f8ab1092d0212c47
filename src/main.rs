//! The `rolltop` program: parse, run, exit with 0 (well), 1 (failed) or 2 (wrong usage or configuration).

#![forbid(unsafe_code)]

use std::process::ExitCode;

// A request makes a dozen small, short-lived allocations, some freed on another thread: what mimalloc is made for.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    rolltop::cli::run(std::env::args_os())
}
