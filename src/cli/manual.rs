//! `rolltop completions` and `rolltop man`: what a shell and a manual reader want.

use std::io::{self, Write};
use std::path::PathBuf;

use anyhow::Context;
use clap::CommandFactory;
use clap_complete::Shell;

use super::Cli;

/// Print the completions for a shell: `rolltop completions bash > /etc/bash_completion.d/rolltop`
#[derive(Clone, Debug, clap::Args)]
pub(super) struct CompletionsArgs {
    /// The shell
    shell: Shell,
}

/// Print the manual page, or write one for each command: `rolltop man --dir /usr/local/share/man/man1`
#[derive(Clone, Debug, clap::Args)]
pub(super) struct ManArgs {
    /// The folder to write a page for each command into
    #[arg(long, value_name = "PATH")]
    dir: Option<PathBuf>,
}

pub(super) fn complete(args: &CompletionsArgs) -> anyhow::Result<()> {
    // `generate` panics if the reader has enough.
    let mut text = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "rolltop", &mut text);
    Ok(io::stdout().lock().write_all(&text)?)
}

pub(super) fn print_manual(args: ManArgs) -> anyhow::Result<()> {
    match args.dir {
        Some(folder) => {
            let shown = folder.display();
            std::fs::create_dir_all(&folder).with_context(|| format!("--dir: cannot make {shown}"))?;
            clap_mangen::generate_to(Cli::command(), &folder)
                .with_context(|| format!("--dir: cannot write into {shown}"))
        }
        None => {
            let mut text = Vec::new();
            clap_mangen::Man::new(Cli::command()).render(&mut text)?;
            Ok(io::stdout().lock().write_all(&text)?)
        }
    }
}
