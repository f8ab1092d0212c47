//! What was found, and how it is said.

use std::fmt;

/// What was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Level {
    Good,
    /// The service runs, but not for long, not well, or not as one would think.
    Warning,
    /// The service does not start, or does not serve.
    Wrong,
}

impl fmt::Display for Level {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(match self {
            Level::Good => "ok",
            Level::Warning => "warning",
            Level::Wrong => "WRONG",
        })
    }
}

/// One thing that was looked at.
#[derive(Debug)]
pub(super) struct Finding {
    pub(super) level: Level,
    /// What it is about, in one word.
    pub(super) about: &'static str,
    /// What was found, and if that is not good what to do.
    pub(super) text: String,
}

/// The findings about one thing.
#[derive(Debug)]
pub(super) struct Findings {
    pub(super) about: &'static str,
    pub(super) found: Vec<Finding>,
}

impl Findings {
    pub(super) fn about(about: &'static str) -> Self {
        Self { about, found: Vec::new() }
    }

    pub(super) fn add(&mut self, level: Level, text: impl Into<String>) {
        self.found.push(Finding { level, about: self.about, text: text.into() });
    }

    pub(super) fn good(&mut self, text: impl Into<String>) {
        self.add(Level::Good, text);
    }

    pub(super) fn warning(&mut self, text: impl Into<String>) {
        self.add(Level::Warning, text);
    }

    pub(super) fn wrong(&mut self, text: impl Into<String>) {
        self.add(Level::Wrong, text);
    }
}

/// Writes a number of bytes as people do.
pub(super) fn size(bytes: u64) -> String {
    const UNITS: [(u64, &str); 3] = [(1 << 40, "TiB"), (1 << 30, "GiB"), (1 << 20, "MiB")];
    match UNITS.into_iter().find(|(unit, _)| bytes >= *unit) {
        Some((unit, name)) => format!("{}.{} {name}", bytes / unit, bytes % unit * 10 / unit),
        None => format!("{} KiB", bytes / 1_024),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes() {
        let sizes: Vec<_> = [0, 1_536, 5 << 20, (3 << 30) / 2, 7 << 40].into_iter().map(size).collect();
        assert_eq!(sizes, ["0 KiB", "1 KiB", "5.0 MiB", "1.5 GiB", "7.0 TiB"]);
    }
}
