//! `rolltop copy`: boards with what they hold, from one running server to another.
//!
//! The contents of a board are read into a file first. Only complete contents of one instant are sent, and the file is
//! what is sent, however often: so a copy that was interrupted anywhere is continued by running the command again.

mod compare;
mod file;
mod read;
mod send;
mod service;

use std::path::PathBuf;

use anyhow::{Context, bail};
use serde_json::{Value, json};

use self::file::ContentsFile;
use self::service::Service;
use crate::cli::output::say;

/// Copy boards with what they hold from one running server to another: exit code 0 if all of it was copied and compared,
/// 1 if not. Run it again to continue
#[derive(Clone, Debug, clap::Args)]
pub(super) struct CopyArgs {
    /// The URL of the server to copy from. The key for it is taken from the environment variable ROLLTOP_FROM_KEY, or else
    /// from ROLLTOP_KEY
    #[arg(long, value_name = "URL")]
    from: String,
    /// The URL of the server to copy to. The key for it is taken from the environment variable ROLLTOP_TO_KEY, or else
    /// from ROLLTOP_KEY
    #[arg(long, value_name = "URL")]
    to: String,
    /// The boards to copy
    #[arg(long = "board", value_name = "NAME", required_unless_present = "all", conflicts_with = "all")]
    boards: Vec<String>,
    /// Copy all boards
    #[arg(long)]
    all: bool,
    /// The name that the board gets, if it is only one [default: the same]
    #[arg(long = "as", value_name = "NAME", conflicts_with = "all")]
    named: Option<String>,
    /// The number of shards that new boards get, as in their definitions [default: as many as before]
    #[arg(long, value_name = "NUMBER")]
    shards: Option<u32>,
    /// Only define the boards, so that producers can be switched to the new server
    #[arg(long)]
    define: bool,
    /// The directory for the contents, which are removed when they were copied
    #[arg(long, value_name = "PATH", default_value = "rolltop-copy")]
    dir: PathBuf,
    /// The certificates to trust (PEM) when the URL to copy from begins with https [default: the well-known authorities]
    #[arg(long, value_name = "PATH")]
    from_ca: Option<PathBuf>,
    /// The certificates to trust (PEM) when the URL to copy to begins with https [default: the well-known authorities]
    #[arg(long, value_name = "PATH")]
    to_ca: Option<PathBuf>,
}

/// Copies each of the boards, and goes on with the next one if a board cannot be copied.
pub(super) async fn run(args: CopyArgs) -> anyhow::Result<()> {
    let from = Service::new(args.from.clone(), args.from_ca.clone(), "ROLLTOP_FROM_KEY")?;
    let to = Service::new(args.to.clone(), args.to_ca.clone(), "ROLLTOP_TO_KEY")?;
    let boards = match args.all {
        true => from.boards().await?,
        false => args.boards.clone(),
    };
    if boards.len() > 1 && args.named.is_some() {
        bail!("--as gives one board a name; leave it out, or give one --board");
    }
    if boards.is_empty() {
        bail!("{} has no boards that the key may read", from.url());
    }
    let mut failed = 0;
    for board in &boards {
        let name = args.named.as_ref().unwrap_or(board);
        if let Err(error) = copy(&from, &to, &args, board, name).await {
            say!("{board}: not copied: {error:#}")?;
            failed += 1;
        }
    }
    if failed > 0 {
        bail!("{failed} of {} boards {} not copied", boards.len(), if failed == 1 { "was" } else { "were" });
    }
    Ok(())
}

async fn copy(from: &Service, to: &Service, args: &CopyArgs, board: &str, name: &str) -> anyhow::Result<()> {
    let (generation, definition) = from.board(board).await?;
    let is_new = define(to, args.shards, definition, name).await?;
    say!("{board}: {} {name} at {}", if is_new { "defined" } else { "found" }, to.url())?;
    if args.define {
        return Ok(());
    }
    std::fs::create_dir_all(&args.dir).with_context(|| format!("cannot create {}", args.dir.display()))?;
    let file = match ContentsFile::open(&args.dir.join(format!("{board}.sending")))? {
        Some(file) => file,
        None => read(from, args, board).await?,
    };
    if !file.is_of(&generation) {
        bail!(
            "{} has contents of another board of this name; finish its copy, or give another --dir",
            file.path().display()
        );
    }
    say!("{board}: {} lines of contents in {}", file.lines(), file.path().display())?;
    to.wait_until(name, file.as_of()?).await?;
    let sent = send::contents(to, name, &file).await?;
    say!("{board}: {sent}")?;
    if sent.refused > 0 {
        bail!("{} contents are too large together with what {name} has; they are missing there", sent.refused);
    }
    say!("{board}: {}", compare::contents(to, name, &file).await?)?;
    let missed = compare::counted_since(from, board, &file).await?;
    std::fs::remove_file(file.path()).with_context(|| format!("cannot remove {}", file.path().display()))?;
    if missed > 0 {
        bail!(
            "{} has counted {missed} more items since its contents were read, which {name} does not have: switch all \
             producers, remove {name} at {} and copy it again, or send these items there too",
            from.url(),
            to.url()
        );
    }
    Ok(())
}

/// Reads the contents of a board. Once some of a file may have been sent, no other file will do, so it gets the name by
/// which it is found again.
async fn read(from: &Service, args: &CopyArgs, board: &str) -> anyhow::Result<ContentsFile> {
    let (path, sending) = (args.dir.join(format!("{board}.contents")), args.dir.join(format!("{board}.sending")));
    read::contents(from, board, &path).await?;
    let file = ContentsFile::open(&path)?.with_context(|| format!("{} has no contents", path.display()))?;
    if let Err(changed) = file.check_unchanged() {
        std::fs::remove_file(&path).with_context(|| format!("cannot remove {}", path.display()))?;
        return Err(changed);
    }
    std::fs::rename(&path, &sending).with_context(|| format!("cannot rename {}", path.display()))?;
    ContentsFile::open(&sending)?.with_context(|| format!("{} has no contents", sending.display()))
}

/// Defines the board as it is defined at the source, unless there is one of this name. Returns whether it is new.
async fn define(to: &Service, shards: Option<u32>, mut definition: Value, name: &str) -> anyhow::Result<bool> {
    if definition["mode"] == "from_first" {
        bail!(
            "a board with mode = \"from_first\" cannot be copied: the windows of its subjects begin with their first events"
        );
    }
    if let (Some(shards), Value::Object(definition)) = (shards, &mut definition) {
        definition.insert("shards".to_owned(), json!(shards));
    }
    to.define(name, &definition).await
}
