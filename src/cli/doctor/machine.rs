//! The machine: open files, memory, the clock, time zones.

use std::path::Path;

use rustix::process::{Resource, getrlimit};

use crate::config::{Config, StoreChoice};
use crate::store::embedded::available_memory;

use super::finding::{Finding, Findings, size};

/// The number of open files that a busy service needs.
const MANY_FILES: u64 = 4_096;
/// The memory below which not much fits beside the bodies of requests, in bytes.
const LITTLE_MEMORY: u64 = 512 << 20;
/// The file that exists while systemd's own client has set the clock.
const SYNCHRONIZED: &str = "/run/systemd/timesync/synchronized";
/// The system's time zones as text, whose first line has the version: `# version 2026a`.
const SYSTEM_ZONES: &str = "/usr/share/zoneinfo/tzdata.zi";

pub(super) fn look(config: &Config) -> Vec<Finding> {
    let mut found = look_at_files(getrlimit(Resource::Nofile).maximum).found;
    if config.store == StoreChoice::Embedded {
        found.extend(look_at_memory(config.memory_limit, available_memory()).found);
    }
    found.extend(look_at_clock(config).found);
    found.extend(look_at_zones(std::fs::read_to_string(SYSTEM_ZONES).ok().as_deref()).found);
    found
}

/// Judges the hard limit, to which a service raises its own.
fn look_at_files(limit: Option<u64>) -> Findings {
    let mut files = Findings::about("files");
    match limit {
        Some(limit) if limit < MANY_FILES => files.warning(format!(
            "at most {limit} files may be open, so there are few connections at once: raise the limit (LimitNOFILE=32768 in \
             the unit of systemd, `ulimits` of a container, /etc/security/limits.conf)"
        )),
        Some(limit) => files.good(format!("{limit} files may be open")),
        None => files.good("any number of files may be open"),
    }
    files
}

fn look_at_memory(limit: Option<usize>, available: Option<usize>) -> Findings {
    let mut memory = Findings::about("memory");
    let bytes = |number: usize| size(u64::try_from(number).unwrap_or(u64::MAX));
    match (limit, available) {
        (Some(limit), Some(available)) if limit > available => memory.warning(format!(
            "memory_limit is {}, but this process may take {} in all: it would be ended by the kernel; set less, or nothing",
            bytes(limit),
            bytes(available)
        )),
        (None, Some(available)) if u64::try_from(available).is_ok_and(|available| available < LITTLE_MEMORY) => {
            memory.warning(format!(
                "this process may take {} in all: a million subjects take some 200 MiB and more (docs/sizing.md)",
                bytes(available)
            ));
        }
        (Some(limit), _) => memory.good(format!("the data may take {} (memory_limit)", bytes(limit))),
        (None, Some(available)) => {
            memory.good(format!("the data may take {}, four fifths of what there is", bytes(available / 5 * 4)));
        }
        (None, None) => memory.warning("it cannot be seen how much there is: set memory_limit"),
    }
    memory
}

fn look_at_clock(config: &Config) -> Findings {
    let mut clock = Findings::about("clock");
    if matches!(config.clock, crate::store::ClockMode::Simulated(_)) {
        clock.warning("the clock is simulated: time stands still until it is advanced (clock = \"system\")");
        return clock;
    }
    let is_set_by = |path: &str| Path::new(path).exists();
    if is_set_by(SYNCHRONIZED) || is_set_by("/run/chrony/chronyd.pid") || is_set_by("/run/chronyd.pid") {
        clock.good("the clock is set by the network");
    } else {
        clock.warning(
            "it cannot be seen whether the clock is set by the network (`timedatectl` says it): windows move by the clock, and \
             items that are dated ahead of it are refused",
        );
    }
    clock
}

/// Compares the time zones that are built in with those of the system, of which this is the text.
fn look_at_zones(system: Option<&str>) -> Findings {
    let mut zones = Findings::about("zones");
    let ours = chrono_tz::IANA_TZDB_VERSION;
    let theirs = system.and_then(|text| text.lines().next()?.strip_prefix("# version "));
    match theirs {
        // Versions are a year and a letter, so that they are ordered as text.
        Some(theirs) if theirs > ours => zones.warning(format!(
            "the time zones that are built in are those of {ours}, and the system has {theirs}: where a government has changed \
             its clocks since, days begin at the wrong hour; use a newer build"
        )),
        _ => zones.good(format!("the time zones are those of {ours}")),
    }
    zones
}

#[cfg(test)]
mod tests {
    use super::super::finding::Level;
    use super::*;

    fn only(findings: Findings) -> (Level, String) {
        let [Finding { level, text, .. }] = findings.found.try_into().unwrap();
        (level, text)
    }

    #[test]
    fn few_files_are_a_warning() {
        assert_eq!(only(look_at_files(Some(1_024))).0, Level::Warning);
        assert_eq!(only(look_at_files(Some(4_096))).0, Level::Good);
        assert_eq!(only(look_at_files(None)).0, Level::Good);
    }

    #[test]
    fn a_memory_limit_beyond_the_machine_is_a_warning() {
        let (level, text) = only(look_at_memory(Some(4 << 30), Some(2 << 30)));
        assert_eq!(level, Level::Warning);
        assert!(text.contains("4.0 GiB") && text.contains("2.0 GiB"), "{text}");
        assert_eq!(only(look_at_memory(Some(1 << 30), Some(2 << 30))).0, Level::Good);
        assert_eq!(
            only(look_at_memory(None, Some(2 << 30))),
            (Level::Good, "the data may take 1.5 GiB, four fifths of what there is".to_owned())
        );
        assert_eq!(only(look_at_memory(None, Some(256 << 20))).0, Level::Warning);
        assert_eq!(only(look_at_memory(None, None)).0, Level::Warning);
    }

    #[test]
    fn time_zones_of_the_system_may_be_newer() {
        let of = |text: &str| only(look_at_zones(Some(text)));
        assert_eq!(of("# version 2099a\nR …").0, Level::Warning);
        assert_eq!(of("# version 1999a\n").0, Level::Good);
        assert_eq!(of(&format!("# version {}\n", chrono_tz::IANA_TZDB_VERSION)).0, Level::Good);
        assert_eq!(only(look_at_zones(None)).0, Level::Good);
    }
}
