//! `rolltop copy`: boards with what they hold, from one running server to another.
//!
//! The contents of a board are read into a file first. Only complete contents of one instant are sent, and the file is
//! what is sent, however often: so a copy that was interrupted anywhere is continued by running the command again.

mod compare;
mod file;
mod read;
mod send;
mod service;

use std::fs::{File, TryLockError};
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use serde_json::{Value, json};

use self::file::ContentsFile;
use self::service::{Refused, Service};
use crate::board::Metric;
use crate::cli::output::say;

/// Copy boards with what they hold from one running server to another: exit code 0 if all of it was copied and
/// compared, 1 if not. The same command again continues where it was interrupted
#[derive(Clone, Debug, clap::Args)]
pub(super) struct CopyArgs {
    /// The URL of the server to copy from. The key for it is taken from the environment variable ROLLTOP_FROM_KEY, or
    /// else from ROLLTOP_KEY
    #[arg(long, value_name = "URL")]
    from: String,
    /// The URL of the server to copy to. The key for it is taken from the environment variable ROLLTOP_TO_KEY, or else
    /// from ROLLTOP_KEY
    #[arg(long, value_name = "URL")]
    to: String,
    /// A board to copy; may be given several times
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
    /// The certificates to trust (PEM) when the URL to copy from begins with https [default: the well-known
    /// authorities]
    #[arg(long, value_name = "PATH")]
    from_ca: Option<PathBuf>,
    /// The certificates to trust (PEM) when the URL to copy to begins with https [default: the well-known authorities]
    #[arg(long, value_name = "PATH")]
    to_ca: Option<PathBuf>,
}

/// Copies each of the boards, and goes on with the next one if a board cannot be copied.
pub(super) async fn run(args: CopyArgs) -> anyhow::Result<()> {
    let from = Service::new(&args.from, args.from_ca.clone(), "ROLLTOP_FROM_KEY")?;
    let to = Service::new(&args.to, args.to_ca.clone(), "ROLLTOP_TO_KEY")?;
    for service in [&from, &to] {
        service.reach().await?;
    }
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
    let _lock = if args.define { None } else { Some(lock(&args.dir)?) };
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
    if !definition["season"].is_null() && !args.define {
        bail!("a board with a season cannot be copied: its periods are not; --define only defines it at the target");
    }
    let is_new = define(to, args.shards, definition, name).await?;
    say!("{board}: {} {name} at {}", if is_new { "defined" } else { "found" }, to.url())?;
    if args.define {
        return Ok(());
    }
    to.check_clock(name, from, board).await?;
    let sending = args.dir.join(file_name(board, to.url(), name));
    let is_continued = sending.exists();
    let file = match is_continued {
        true => ContentsFile::open(&sending)?.ok_or_else(|| file::damaged(&sending))?,
        false => read(from, args, board, &sending).await?,
    };
    if !file.is_of(&generation) {
        bail!(
            "{} has contents of another board of this name; remove it if that board need not be copied",
            sending.display()
        );
    }
    say!("{board}: {} lines of contents in {}", file.lines(), sending.display())?;
    to.wait_until(name, file.as_of()?).await?;
    let begun = match send::begin(to, name, &file).await {
        Ok(begun) => begun,
        Err(error) => {
            // Nothing was sent, so the next run reads the board again.
            if !is_continued && error.is::<Refused>() {
                std::fs::remove_file(&sending).with_context(|| format!("cannot remove {}", sending.display()))?;
            }
            return Err(error);
        }
    };
    let sent = send::contents(to, name, &file, begun).await?;
    say!("{board}: {sent}")?;
    let compared = compare::contents(to, name, &file).await;
    let missed = compare::counted_since(from, board, &file).await?;
    std::fs::remove_file(&sending).with_context(|| format!("cannot remove {}", sending.display()))?;
    say!("{board}: {}", compared?)?;
    let tiers = copy_tiers(from, to, board, name).await;
    if sent.refused > 0 {
        bail!(
            "{} contents were refused, and are missing: together with what {name} has they are too large, or their slots \
             are newer than its newest one",
            sent.refused
        );
    }
    if missed > 0 {
        bail!(
            "{} has counted {missed} more items since its contents were read, which {name} does not have: switch all \
             producers, and send these items to {} too",
            from.url(),
            to.url()
        );
    }
    // Contents that are missing matter more.
    tiers.context("its contents are copied, but its tiers are not")
}

/// Gives a board the tiers that it has at the source, unless it has tiers already: these may have been changed since an
/// earlier copy.
async fn copy_tiers(from: &Service, to: &Service, board: &str, name: &str) -> anyhow::Result<()> {
    let tiers = from.tiers(board).await?;
    let there = to.tiers(name).await?;
    if there.is_empty() && !tiers.is_empty() {
        to.set_tiers(name, &tiers).await?;
        let number = tiers.len();
        say!("{board}: {number} {} set at {}", if number == 1 { "tier" } else { "tiers" }, to.url())?;
    } else if there != tiers {
        say!("{board}: {name} has other tiers, which are not changed")?;
    }
    Ok(())
}

/// Locks the directory for the contents, which is created if it does not exist, until the file is dropped.
fn lock(dir: &Path) -> anyhow::Result<File> {
    std::fs::create_dir_all(dir).with_context(|| format!("cannot create {}", dir.display()))?;
    let path = dir.join("lock");
    let file = File::create(&path).with_context(|| format!("cannot create {}", path.display()))?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => {
            bail!("another copy uses {}; wait until it has ended, or give another --dir", dir.display())
        }
        Err(TryLockError::Error(error)) => Err(error).with_context(|| format!("cannot lock {}", path.display())),
    }
}

/// Returns the name of the file with the contents of a board that are sent to this place. Once some of them may have
/// been sent, no others will do, and they are of no use for another place.
fn file_name(board: &str, to: &str, name: &str) -> String {
    let place = xxhash_rust::xxh3::xxh3_64(format!("{}/{name}", to.trim_end_matches('/')).as_bytes());
    format!("{board}-{:08x}.contents", place >> 32)
}

/// Reads the contents of a board into a file, which gets this path when it is complete.
async fn read(from: &Service, args: &CopyArgs, board: &str, sending: &Path) -> anyhow::Result<ContentsFile> {
    let path = args.dir.join(format!("{board}.reading"));
    read::contents(from, board, &path).await?;
    let file = ContentsFile::open(&path)?.with_context(|| format!("{} has no contents", path.display()))?;
    if let Err(changed) = file.check_unchanged() {
        std::fs::remove_file(&path).with_context(|| format!("cannot remove {}", path.display()))?;
        return Err(changed);
    }
    file.move_to(sending)
}

/// Defines the board as it is defined at the source, unless there is one of this name. Returns whether it is new.
///
/// Fails if there is one that cannot receive the contents.
async fn define(to: &Service, shards: Option<u32>, mut definition: Value, name: &str) -> anyhow::Result<bool> {
    if definition["mode"] == "from_first" {
        bail!(
            "a board with mode = \"from_first\" cannot be copied: the windows of its subjects begin with their first events"
        );
    }
    if let (Some(shards), Value::Object(definition)) = (shards, &mut definition) {
        definition.insert("shards".to_owned(), json!(shards));
    }
    if to.define(name, &definition).await? {
        return Ok(true);
    }
    let (_, found) = to.board(name).await?;
    let metric = |definition: &Value| definition["metric"].as_str().and_then(|text| text.parse::<Metric>().ok());
    let is_same = match (metric(&definition), metric(&found)) {
        (Some(one), Some(other)) => one.same_but_window(&other),
        _ => false,
    };
    if !is_same || found["decimals"] != definition["decimals"] {
        bail!(
            "{} has a board {name} that counts {} with {} decimals, not {} with {}; give another name with --as",
            to.url(),
            found["metric"],
            found["decimals"],
            definition["metric"],
            definition["decimals"]
        );
    }
    let orders_ties = |key: &&str| !definition[key].is_null();
    let differs = |key: &&str| found[key] != definition[key];
    let keys = ["tie_break", "ties"];
    if keys.iter().any(differs) || (keys.iter().any(orders_ties) && differs(&"order")) {
        bail!(
            "{} has a board {name} with another 'tie_break' or 'ties', or another 'order' with it; give another name with --as",
            to.url()
        );
    }
    if shards.is_some() && found["shards"] != definition["shards"] {
        bail!(
            "{} has a board {name} with another number of shards ({}); leave --shards out, or remove the board first",
            to.url(),
            found["shards"]
        );
    }
    Ok(false)
}
