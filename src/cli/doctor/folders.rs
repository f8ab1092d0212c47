//! The folders of the embedded store: its data, and its backups.

use std::fs::File;
use std::io::Write;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

use rustix::fs::{Mode, OFlags, open, statfs, statvfs};
use rustix::io::Errno;

use crate::config::Config;
use crate::store::embedded::Durability;

use super::finding::{Finding, Findings, Level, size};

/// The free space below which a disk is nearly full, in bytes.
const LITTLE_SPACE: u64 = 1 << 30;
/// The number of syncs that are measured, of which the median counts.
const SYNCS: usize = 11;
/// The time of a sync from which on writes are slow.
const SLOW_SYNC: Duration = Duration::from_millis(30);
/// The age of the newest backup from which on there may be something wrong with making them.
const OLD_BACKUP: Duration = Duration::from_secs(8 * 86_400);

/// Kinds of file systems, by their magic numbers (statfs(2)), and what is wrong with them.
const UNSUITABLE: [(i128, &str, &str); 6] = [
    (0x0102_1994, "tmpfs", "is in memory, and gone after a restart of the machine"),
    (0x794c_7630, "overlayfs", "is inside the container, and goes with it: mount a volume there"),
    (0x6969, "NFS", NETWORK),
    (0xff53_4d42, "SMB", NETWORK),
    (0xfe53_4d42, "SMB", NETWORK),
    (0x517b, "SMB", NETWORK),
];
const NETWORK: &str = "is on another machine: locks and syncs there may promise more than they keep; take a local disk";

pub(super) fn look(config: &Config) -> Vec<Finding> {
    let mut data = Findings::about("disk");
    look_at_data(&mut data, &config.data_dir, config.durability);
    let mut backups = Findings::about("backups");
    look_at_backups(&mut backups, config.backup_dir.as_deref(), SystemTime::now());
    data.found.extend(backups.found);
    data.found
}

fn look_at_data(disk: &mut Findings, folder: &Path, durability: Durability) {
    let shown = std::path::absolute(folder).unwrap_or_else(|_| folder.to_owned());
    let shown = shown.display();
    let existing = match existing(folder) {
        Ok(existing) => existing,
        Err(why) => return disk.wrong(format!("{shown} cannot be made: {why}")),
    };
    let will_be = if folder.is_dir() { "" } else { " will be made;" };
    let free = match statvfs(&existing) {
        Ok(system) => system.f_bavail.saturating_mul(system.f_frsize),
        Err(error) => return disk.wrong(format!("{shown} cannot be looked at: {error}")),
    };
    let sync = match time_of_sync(&existing) {
        Ok(sync) => sync,
        Err(error) => {
            return disk.wrong(format!(
                "{shown} cannot be written to: {error}; run this as the user of the service, and make the folder its own (chown)"
            ));
        }
    };
    let says_sync = sync.map_or(String::new(), |sync| format!(", a sync takes {:.1} ms", sync.as_secs_f64() * 1_000.0));
    disk.good(format!("{shown}:{will_be} it can be written to, {} are free{says_sync}", size(free)));

    if let Some((_, name, why)) = statfs(&existing).ok().and_then(|found| unsuitable(found.f_type.into())) {
        disk.warning(format!("{shown} ({name}) {why}"));
    }
    // A checkpoint is written before the one that it replaces is removed.
    let taken = taken(folder);
    if free < LITTLE_SPACE.max(taken) {
        disk.warning(format!(
            "{} are free, and the data takes {}: a checkpoint needs as much again, and the log grows until there is one. Without \
             room writes are refused; make some, or move data_dir",
            size(free),
            size(taken)
        ));
    }
    if let Some(sync) = sync.filter(|sync| *sync >= SLOW_SYNC) {
        let level = if durability == Durability::Always { Level::Warning } else { Level::Good };
        disk.add(
            level,
            format!("a sync takes {} ms, for which writes wait with durability = \"always\"", sync.as_millis()),
        );
    }
    if durability == Durability::Off {
        disk.warning(
            "durability is off: what is acknowledged may be lost when the process ends (durability = \"everysec\")",
        );
    }
}

fn unsuitable(kind: i128) -> Option<(i128, &'static str, &'static str)> {
    UNSUITABLE.into_iter().find(|(magic, ..)| *magic == kind)
}

/// Returns the folder, or the nearest one above it that exists. If that is not a folder, returns why.
fn existing(folder: &Path) -> Result<PathBuf, String> {
    let from_here = Path::new(".").join(folder);
    let found = from_here.ancestors().find(|above| above.exists()).unwrap_or(Path::new("/"));
    if found.is_dir() { Ok(found.to_owned()) } else { Err(format!("{} is not a folder", found.display())) }
}

/// Returns the bytes of the files in a folder and in those below it. What cannot be read counts nothing.
fn taken(folder: &Path) -> u64 {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    entries
        .map(|entry| entry.metadata().map_or(0, |data| if data.is_dir() { taken(&entry.path()) } else { data.len() }))
        .sum()
}

/// Writes to a file without a name, which nobody sees and nothing has to remove, and returns the median time of a sync.
/// `None` if the file system has no such files.
fn time_of_sync(folder: &Path) -> std::io::Result<Option<Duration>> {
    let opened: OwnedFd =
        match open(folder, OFlags::TMPFILE | OFlags::WRONLY | OFlags::CLOEXEC, Mode::RUSR | Mode::WUSR) {
            Ok(opened) => opened,
            Err(Errno::OPNOTSUPP | Errno::ISDIR) => {
                rustix::fs::access(folder, rustix::fs::Access::WRITE_OK)?;
                return Ok(None);
            }
            Err(error) => return Err(error.into()),
        };
    let mut file = File::from(opened);
    let mut times = Vec::with_capacity(SYNCS);
    for _ in 0..SYNCS {
        file.write_all(&[0; 4_096])?;
        let begun = Instant::now();
        file.sync_data()?;
        times.push(begun.elapsed());
    }
    times.sort_unstable();
    Ok(times.get(SYNCS / 2).copied())
}

fn look_at_backups(backups: &mut Findings, folder: Option<&Path>, now: SystemTime) {
    let Some(folder) = folder else {
        return backups
            .warning("backup_dir is not set, so no backups can be made: set it, and call `rolltop backup` each night");
    };
    let shown = folder.display();
    if let Err(error) = existing(folder).and_then(|there| time_of_sync(&there).map_err(|error| error.to_string())) {
        return backups
            .wrong(format!("{shown} cannot be written to: {error}; make the folder that of the service's user"));
    }
    let made = |entry: std::fs::DirEntry| entry.metadata().ok().filter(std::fs::Metadata::is_dir)?.modified().ok();
    let newest = std::fs::read_dir(folder).into_iter().flatten().flatten().filter_map(made).max();
    match newest.map(|newest| now.duration_since(newest).unwrap_or_default()) {
        None => backups.warning(format!("{shown} has no backup yet: `rolltop backup` makes one")),
        Some(age) if age >= OLD_BACKUP => backups.warning(format!(
            "the newest backup in {shown} is {} days old: does what makes them still run?",
            age.as_secs() / 86_400
        )),
        Some(age) => backups.good(format!("the newest backup in {shown} is {} hours old", age.as_secs() / 3_600)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn data(folder: &Path, durability: Durability) -> Findings {
        let mut findings = Findings::about("disk");
        look_at_data(&mut findings, folder, durability);
        findings
    }

    fn has(findings: &Findings, level: Level, says: &str) -> bool {
        findings.found.iter().any(|finding| finding.level == level && finding.text.contains(says))
    }

    #[test]
    fn a_folder_that_is_not_there_yet_is_judged_by_the_one_above_it_and_not_made() {
        let folder = tempfile::tempdir().unwrap();
        let inside = folder.path().join("a/data");
        let findings = data(&inside, Durability::default());
        assert!(has(&findings, Level::Good, "will be made; it can be written to"), "{findings:?}");
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0, "nothing is left behind");
        let findings = data(folder.path(), Durability::Off);
        assert!(has(&findings, Level::Warning, "durability is off"), "{findings:?}");
    }

    #[test]
    fn a_file_in_the_place_of_the_folder_is_wrong() {
        let findings = data(Path::new("/proc/version/data"), Durability::default());
        assert!(has(&findings, Level::Wrong, "/proc/version is not a folder"), "{findings:?}");
    }

    #[test]
    fn file_systems_that_are_not_for_data_are_known() {
        assert!(unsuitable(0x6969).is_some_and(|(_, name, _)| name == "NFS"));
        assert!(unsuitable(0xef53).is_none(), "ext4");
    }

    #[test]
    fn backups_that_are_not_made_are_a_warning() {
        let look = |folder: Option<&Path>, later: Duration| {
            let mut findings = Findings::about("backups");
            look_at_backups(&mut findings, folder, SystemTime::now() + later);
            findings
        };
        assert!(has(&look(None, Duration::ZERO), Level::Warning, "backup_dir is not set"));
        let folder = tempfile::tempdir().unwrap();
        assert!(has(&look(Some(folder.path()), Duration::ZERO), Level::Warning, "no backup yet"));
        std::fs::create_dir(folder.path().join("20261121T031500123Z")).unwrap();
        assert!(has(&look(Some(folder.path()), Duration::ZERO), Level::Good, "0 hours old"));
        assert!(has(&look(Some(folder.path()), OLD_BACKUP), Level::Warning, "8 days old"));
    }
}
