//! Questions to the user before what cannot be undone.

use std::io::{self, BufRead, IsTerminal, Write};

use anyhow::bail;

/// Asks on the terminal, unless the answer is given. Returns an error unless it is yes.
pub(super) fn confirm(question: &str, yes: bool) -> anyhow::Result<()> {
    if yes {
        return Ok(());
    }
    if !io::stdin().is_terminal() {
        bail!("{question} Nobody can be asked here: --yes says yes");
    }
    write!(io::stderr(), "{question} [y/N] ")?;
    let mut answer = String::new();
    io::stdin().lock().read_line(&mut answer)?;
    match answer.trim().to_ascii_lowercase().as_str() {
        "y" | "yes" => Ok(()),
        _ => bail!("nothing was done"),
    }
}
