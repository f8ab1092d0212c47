//! The summary of a replay: the outcomes of all lines.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use super::client::Posted;
use super::record::Skip;
use crate::board::Timestamp;
use crate::cli::format::printable;

/// A number of lines, and the first of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutcomeCount {
    pub count: u64,
    /// The line number in the log, and the message about the line.
    pub example: Option<(u64, String)>,
}

/// The result of reading the log.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReadStats {
    pub lines: u64,
    pub skipped: BTreeMap<Skip, OutcomeCount>,
}

impl ReadStats {
    /// Counts a line that is not posted.
    pub fn skip(&mut self, line: u64, reason: Skip) {
        self.skipped
            .entry(reason)
            .or_insert_with(|| OutcomeCount { count: 0, example: Some((line, String::new())) })
            .count += 1;
    }
}

/// The result of posting the log.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PostStats {
    pub posted: u64,
    pub counted: u64,
    pub duplicates: u64,
    pub rejected: BTreeMap<String, OutcomeCount>,
    /// The number of slots retired, if the log drives the clock.
    pub slots_retired: Option<u64>,
    /// The first time that should have been set when the server's clock was already later.
    pub clock_ahead_of: Option<Timestamp>,
}

impl PostStats {
    /// Adds the server's response to a batch.
    pub fn add(&mut self, posted: &Posted) {
        let Posted { lines, response, slots_retired, clock_ahead_of } = posted;
        self.posted += lines.len() as u64;
        self.counted += response.accepted;
        self.duplicates += response.duplicates;
        self.clock_ahead_of = self.clock_ahead_of.or(*clock_ahead_of);
        if let Some(slots) = slots_retired {
            *self.slots_retired.get_or_insert(0) += slots;
        }
        for (code, count) in response.counts() {
            let outcome = self.rejected.entry(code.clone()).or_insert(OutcomeCount { count: 0, example: None });
            outcome.count += count;
            if outcome.example.is_none() {
                let first = response.rejected.iter().find(|rejected| rejected.code == code);
                outcome.example = first.and_then(|rejected| {
                    let place = usize::try_from(rejected.line).ok()?.checked_sub(1)?;
                    Some((*lines.get(place)?, rejected.detail.clone()))
                });
            }
        }
    }

    /// Returns why the first of the rejected increments was, if any was.
    pub fn first_rejection(&self) -> Option<String> {
        let examples = self.rejected.values().filter_map(|outcome| outcome.example.as_ref());
        let (line, detail) = examples.min_by_key(|(line, _)| *line)?;
        Some(format!("line {line}: {}", printable(detail)))
    }

    /// Returns the number of increments that the server rejected.
    pub fn rejections(&self) -> u64 {
        self.rejected.values().map(|outcome| outcome.count).sum()
    }
}

/// The whole summary, in printed form.
pub struct Summary<'s> {
    pub read: &'s ReadStats,
    pub posts: &'s PostStats,
    pub took: Duration,
}

impl fmt::Display for Summary<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Summary { read, posts, took } = self;
        let row = |f: &mut fmt::Formatter<'_>, name: &str, count: u64| writeln!(f, "{name:<14}{count:>12}");
        row(f, "lines read", read.lines)?;
        row(f, "posted", posts.posted)?;
        row(f, "counted", posts.counted)?;
        row(f, "duplicates", posts.duplicates)?;
        row(f, "rejected", posts.rejections())?;
        for (code, outcome) in &posts.rejected {
            detail(f, code, outcome)?;
        }
        row(f, "skipped", read.skipped.values().map(|outcome| outcome.count).sum())?;
        for (reason, outcome) in &read.skipped {
            detail(f, &reason.to_string(), outcome)?;
        }
        if let Some(slots) = posts.slots_retired {
            row(f, "slots retired", slots)?;
        }
        let rate = read.lines as f64 / took.as_secs_f64().max(0.001);
        writeln!(f, "{:<14}{rate:>12.0} lines/s, {:.1} s", "rate", took.as_secs_f64())?;
        if let Some(asked) = posts.clock_ahead_of {
            writeln!(f, "note: the server's clock was already past {asked} and was not changed")?;
        }
        Ok(())
    }
}

fn detail(f: &mut fmt::Formatter<'_>, what: &str, outcome: &OutcomeCount) -> fmt::Result {
    write!(f, "{:>26}  {what}", outcome.count)?;
    match &outcome.example {
        Some((line, message)) if message.is_empty() => writeln!(f, " (first: line {line})"),
        Some((line, message)) => writeln!(f, " (first: line {line}: {})", printable(message)),
        None => writeln!(f),
    }
}

#[cfg(test)]
mod tests {
    use super::super::client::{BatchResponse, Rejected};
    use super::*;

    #[test]
    fn rejections_are_reported_with_the_lines_of_the_log() {
        let mut read = ReadStats { lines: 5, ..ReadStats::default() };
        read.skip(2, Skip::Blank);
        read.skip(4, Skip::Blank);
        let rejected =
            Rejected { line: 3, code: "too_late".into(), detail: "the field 'by' is missing,\nwhich it needs".into() };
        let response =
            BatchResponse { accepted: 2, duplicates: 0, rejected: vec![rejected], rejected_counts: BTreeMap::new() };
        let mut posts = PostStats::default();
        posts.add(&Posted { lines: vec![1, 3, 5], response, slots_retired: Some(4), clock_ahead_of: None });
        let text = Summary { read: &read, posts: &posts, took: Duration::from_secs(1) }.to_string();
        assert!(text.contains("1  too_late (first: line 5: the field 'by' is missing,\\nwhich it needs)"), "{text}");
        assert!(text.contains("2  blank line (first: line 2)"), "{text}");
        assert!(text.contains("slots retired            4"), "{text}");
        assert_eq!((posts.posted, posts.counted, posts.rejections()), (3, 2, 1));
    }
}
