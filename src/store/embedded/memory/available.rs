//! The memory that this process may take: the least of the machine's and of the limits of its control groups and all
//! their parents.

use std::path::{Path, PathBuf};

/// Returns the bytes, or `None` if nothing is known. `read` returns what is in a file, if it exists.
///
/// In a container the files of a group may be at the root of the mounted hierarchy although the path of the group is
/// longer. So every folder from the group's own to the root of the hierarchy is read, if it exists.
pub(super) fn bytes(read: impl Fn(&Path) -> Option<String>) -> Option<usize> {
    let groups = read(Path::new("/proc/self/cgroup")).unwrap_or_default();
    let of_groups = groups.lines().filter_map(|line| {
        let mut fields = line.splitn(3, ':');
        let (number, controllers, group) = (fields.next()?, fields.next()?, fields.next()?);
        let (mounts, file): (&[&str], _) = match controllers {
            "" if number == "0" => (&["/sys/fs/cgroup", "/sys/fs/cgroup/unified"], "memory.max"),
            _ if controllers.split(',').any(|one| one == "memory") => {
                (&["/sys/fs/cgroup/memory"], "memory.limit_in_bytes")
            }
            _ => return None,
        };
        let group = PathBuf::from(group.trim_start_matches('/'));
        let folders = mounts.iter().flat_map(|mount| group.ancestors().map(|folder| Path::new(mount).join(folder)));
        // A group without a limit has `max`, or with version 1 more than any machine has.
        folders.filter_map(|folder| read(&folder.join(file))?.trim().parse().ok()).min()
    });
    let of_machine = read(Path::new("/proc/meminfo")).and_then(|text| kilobytes(&text, "MemTotal:"));
    of_groups.chain(of_machine).min()
}

/// Returns the bytes of a line such as `MemTotal: 1024 kB`.
pub(super) fn kilobytes(text: &str, name: &str) -> Option<usize> {
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    let kilobytes: usize = line.split_whitespace().next()?.parse().ok()?;
    kilobytes.checked_mul(1_024)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the memory of a machine with these files.
    fn with(files: &[(&str, &str)]) -> Option<usize> {
        bytes(|path| files.iter().find(|(name, _)| Path::new(name) == path).map(|(_, text)| (*text).to_owned()))
    }

    const MACHINE: (&str, &str) = ("/proc/meminfo", "MemFree: 5 kB\nMemTotal:       2000 kB\n");
    const OWN: (&str, &str) = ("/proc/self/cgroup", "0::/a/b\n");

    #[test]
    fn the_least_limit_counts() {
        assert_eq!(with(&[]), None);
        assert_eq!(with(&[MACHINE]), Some(2_048_000));
        let (own, parent) = ("/sys/fs/cgroup/a/b/memory.max", "/sys/fs/cgroup/a/memory.max");
        assert_eq!(with(&[MACHINE, OWN, (own, "max\n")]), Some(2_048_000));
        assert_eq!(with(&[MACHINE, OWN, (own, "5000\n"), (parent, "max\n")]), Some(5_000));
        assert_eq!(with(&[MACHINE, OWN, (own, "5000\n"), (parent, "4000\n")]), Some(4_000));
        assert_eq!(with(&[MACHINE, OWN, (own, "9000000\n")]), Some(2_048_000));
    }

    #[test]
    fn the_group_of_a_container_is_the_root_of_what_it_sees() {
        let limit = ("/sys/fs/cgroup/memory.max", "3000\n");
        assert_eq!(with(&[MACHINE, ("/proc/self/cgroup", "0::/\n"), limit]), Some(3_000));
        // The path is that of the host.
        assert_eq!(with(&[MACHINE, ("/proc/self/cgroup", "0::/docker/1\n"), limit]), Some(3_000));
    }

    #[test]
    fn groups_of_version_1_count_too() {
        let groups = ("/proc/self/cgroup", "12:cpu,cpuacct:/x\n5:memory:/docker/1\n1:name=systemd:/y\n0::/z\n");
        let at = |name: &'static str, text: &'static str| with(&[MACHINE, groups, (name, text)]);
        assert_eq!(at("/sys/fs/cgroup/memory/memory.limit_in_bytes", "7000\n"), Some(7_000));
        assert_eq!(at("/sys/fs/cgroup/memory/docker/1/memory.limit_in_bytes", "6000\n"), Some(6_000));
        assert_eq!(at("/sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n"), Some(2_048_000));
        assert_eq!(at("/sys/fs/cgroup/unified/z/memory.max", "5000\n"), Some(5_000));
    }
}
