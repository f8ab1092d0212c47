//! The resources that a process uses, as Linux reports them under `/proc`.

use std::os::unix::fs::MetadataExt;
use std::path::Path;

use anyhow::Context;

/// The resources that a server uses, in bytes.
#[derive(Clone, Copy, Debug)]
pub struct Usage {
    /// The current resident memory.
    pub resident: f64,
    /// The largest resident memory so far.
    pub peak: f64,
    /// The bytes handed to the disk so far. Writes to a file system in memory do not count.
    pub written: f64,
    /// The disk space of its files.
    pub on_disk: f64,
}

impl Usage {
    /// Reads the usage of the process whose files are in this folder.
    pub fn of(id: u32, folder: &Path) -> anyhow::Result<Self> {
        let read = |file: &str| {
            let path = format!("/proc/{id}/{file}");
            std::fs::read_to_string(&path).with_context(|| format!("cannot read {path}"))
        };
        let (status, io) = (read("status")?, read("io")?);
        Ok(Self {
            resident: 1_024.0 * field(&status, "VmRSS:")?,
            peak: 1_024.0 * field(&status, "VmHWM:")?,
            written: field(&io, "write_bytes:")?,
            on_disk: on_disk(folder),
        })
    }
}

/// Returns the processor time that a process has used until now, in seconds, or `None` where Linux does not tell.
pub fn processor_seconds(id: u32) -> Option<f64> {
    let stat = std::fs::read_to_string(format!("/proc/{id}/stat")).ok()?;
    // The name is in parentheses, and may have some itself.
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace().skip(11);
    let mut ticks = || fields.next()?.parse::<f64>().ok();
    // Of user and system time, in hundredths of a second on every machine.
    Some((ticks()? + ticks()?) / 100.0)
}

/// Returns the number after a name.
fn field(text: &str, name: &str) -> anyhow::Result<f64> {
    let rest = text.lines().find_map(|line| line.strip_prefix(name)).with_context(|| format!("no {name}"))?;
    Ok(rest.split_whitespace().next().unwrap_or_default().parse()?)
}

/// Returns the size of the blocks of all files below a folder. A file that is deleted in the meantime counts as 0.
fn on_disk(folder: &Path) -> f64 {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let of = |entry: std::fs::DirEntry| match entry.metadata() {
        Ok(metadata) if metadata.is_dir() => on_disk(&entry.path()),
        Ok(metadata) => metadata.blocks() as f64 * 512.0,
        Err(_) => 0.0,
    };
    entries.map(of).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn usage_of_this_process_is_measured() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("below")).unwrap();
        std::fs::write(folder.path().join("below/file"), vec![1; 100_000]).unwrap();
        let usage = Usage::of(std::process::id(), folder.path()).unwrap();
        assert!(usage.resident > 1e6 && usage.peak >= usage.resident, "{usage:?}");
        assert!(processor_seconds(std::process::id()).is_some_and(|seconds| seconds < 1e5));
        assert!(usage.on_disk >= 100_000.0 && usage.written >= 0.0, "{usage:?}");
    }
}
