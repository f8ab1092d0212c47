//! The results of each side: medians of rates and of their ratios, and the latencies of all turns together.

use std::borrow::Cow;
use std::fmt;
use std::io::Write;

use std::time::Duration;

use anyhow::Context;

use super::Setting;
use super::latencies::Latencies;
use super::load::{Load, Measured};
use super::process::{Redis, Server};
use super::usage;

/// One side of a comparison, and its load.
pub struct Side {
    pub load: Load,
    pub name: Cow<'static, str>,
    /// The units of work in one request: increments.
    per_request: f64,
    /// Another load that runs during the turns of this side, with its name and its result.
    beside: Option<(Load, &'static str, Measured)>,
    /// The process that serves the load, if its processor time is reported.
    process: Option<u32>,
    turns: Vec<Turn>,
    /// The results of all turns together.
    measured: Measured,
}

struct Turn {
    rate: f64,
    /// The processor time for each unit of work, in microseconds.
    micros: Processor,
}

/// Processor time of Redis, and of the server of a side, where they are known.
type Processor = [Option<f64>; 2];

/// The sides that were measured in the same run. All are compared with the first one.
pub struct Table {
    pub title: String,
    pub unit: &'static str,
    pub sides: Vec<Side>,
}

impl Side {
    /// Creates a side without turns.
    pub fn new(name: impl Into<Cow<'static, str>>, per_request: usize, load: Load) -> Self {
        let (turns, measured) = Default::default();
        let (beside, process) = (None, None);
        Self { name: name.into(), load, per_request: per_request as f64, beside, process, turns, measured }
    }

    /// Reports the processor time of the server of the load, if this program has started it.
    pub fn of(self, server: Option<&Server>) -> Self {
        Self { process: server.map(Server::id), ..self }
    }

    /// Adds another load that runs during the turns of this side.
    pub fn beside(self, name: &'static str, load: Load) -> Self {
        Self { beside: Some((load, name, Measured::default())), ..self }
    }

    /// Runs the load for this time.
    async fn run_for(&mut self, duration: Duration) -> anyhow::Result<Measured> {
        let running = self.beside.as_ref().map(|(load, ..)| load.start());
        let measured = self.load.run_for(duration).await?;
        if let (Some(running), Some((.., beside))) = (running, &mut self.beside) {
            beside.extend(&running.stop().await?);
        }
        Ok(measured)
    }

    /// Records a turn, in which this processor time was used, in seconds.
    fn add(&mut self, measured: &Measured, used: Processor) {
        let work = measured.latencies.count() as f64 * self.per_request;
        self.turns.push(Turn {
            rate: measured.rate() * self.per_request,
            // The work for the load beside it cannot be separated.
            micros: used
                .map(|seconds| seconds.filter(|_| self.beside.is_none()).map(|seconds| seconds * 1e6 / work.max(1.0))),
        });
        self.measured.extend(measured);
    }

    /// Returns the processor time that was used until now, in seconds.
    async fn used(&self, redis: &mut Option<Redis>) -> anyhow::Result<Processor> {
        let of_redis = match redis {
            Some(redis) => Some(redis.cpu_seconds().await?),
            None => None,
        };
        Ok([of_redis, self.process.and_then(usage::processor_seconds)])
    }

    /// Returns the median ratio of this side's rate to the other side's. Turns at about the same time are compared with
    /// each other, because a disturbance affects both.
    pub fn ratio_to(&self, base: &Side) -> f64 {
        median(self.turns.iter().zip(&base.turns).map(|(turn, base)| turn.rate / base.rate))
    }

    /// Returns the same ratio of the processor time of the servers, if it is known.
    fn processor_ratio_to(&self, base: &Side) -> Option<f64> {
        let ratio = |(turn, base): (&Turn, &Turn)| turn.micros[1].zip(base.micros[1]).map(|(turn, base)| turn / base);
        self.turns.iter().zip(&base.turns).map(ratio).collect::<Option<Vec<_>>>().map(|all| median(all.into_iter()))
    }
}

impl Table {
    /// Gives each side its turns, one after another, after a short turn that does not count. A round goes through the
    /// sides forward and backward, with half a turn each way, so that no side has a better position.
    pub async fn measure(&mut self, setting: &Setting, redis: &mut Option<Redis>) -> anyhow::Result<()> {
        for side in &self.sides {
            side.load.run_for(Duration::from_secs(1)).await?;
        }
        let sides = self.sides.len();
        for _ in 0..setting.rounds {
            let mut turns = vec![(Measured::default(), [None; 2]); sides];
            for at in (0..sides).chain((0..sides).rev()) {
                let before = self.sides[at].used(redis).await?;
                let half = self.sides[at].run_for(setting.turn() / 2).await?;
                let after = self.sides[at].used(redis).await?;
                let (turn, used) = &mut turns[at];
                turn.extend(&half);
                for (used, (before, after)) in used.iter_mut().zip(before.into_iter().zip(after)) {
                    *used = before.zip(after).map(|(before, after)| used.unwrap_or(0.0) + after - before);
                }
            }
            for (side, (turn, used)) in self.sides.iter_mut().zip(turns) {
                side.add(&turn, used);
            }
        }
        Ok(())
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "\n{}", self.title)?;
        let unit = format!("{}/s", self.unit);
        writeln!(
            f,
            "  {:<34}{unit:>14}{:>8}{}{:>14}{:>8}",
            "",
            "ratio",
            Latencies::heading(),
            "Redis CPU µs",
            "CPU µs"
        )?;
        let Some(first) = self.sides.first() else { return Ok(()) };
        let (mut lateness, mut refused) = (Latencies::default(), 0);
        for side in &self.sides {
            let (ratio, rate) = (side.ratio_to(first), median(side.turns.iter().map(|turn| turn.rate)));
            write!(f, "  {:<34}{rate:>14.0}{ratio:>8.2}{}", side.name, side.measured.latencies)?;
            for (of, width) in [(0, 14), (1, 8)] {
                match side.turns.iter().map(|turn| turn.micros[of]).collect::<Option<Vec<_>>>() {
                    Some(micros) => write!(f, "{:>width$.2}", median(micros.into_iter()))?,
                    None => write!(f, "{:>width$}", "-")?,
                }
            }
            writeln!(f)?;
            if let Some((_, name, beside)) = &side.beside {
                writeln!(f, "    {name:<32}{:>14.0}{:>8}{}{:>22}", beside.rate(), "", beside.latencies, "")?;
            }
            lateness.add(&side.measured.lateness);
            refused += side.measured.refused + side.beside.as_ref().map_or(0, |(.., beside)| beside.refused);
        }
        if refused > 0 {
            writeln!(f, "  refused, and in no figure above: {refused} requests")?;
        }
        if lateness.count() > 0 {
            let [p99, max] = [0.99, 1.0].map(|share| lateness.millis_at(share));
            writeln!(f, "  of these latencies the generator's own delay: p99 {p99:.2} ms, max {max:.2} ms")?;
        }
        Ok(())
    }
}

/// Returns a table of latencies, with one row for each measured item.
pub fn latencies(rows: &[(&str, Option<Measured>)]) -> String {
    let heading = format!("  {:<34}{:>10}{}{:>10}\n", "", "requests", Latencies::heading(), "refused");
    let row = |(name, measured): &(&str, Option<Measured>)| {
        let Measured { latencies, refused, .. } = measured.as_ref()?;
        Some(format!("  {name:<34}{:>10}{latencies}{refused:>10}\n", latencies.count()))
    };
    heading + &rows.iter().filter_map(row).collect::<String>()
}

/// One measured value.
#[derive(Clone, Debug)]
pub struct Figure {
    pub name: String,
    /// The value. NaN if it could not be measured.
    pub value: f64,
}

/// The same values measured for one program, or for two: this one and another one.
pub struct Comparison {
    pub title: String,
    pub columns: Vec<Vec<Figure>>,
}

impl fmt::Display for Comparison {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "\n{}", self.title)?;
        let Some((ours, others)) = self.columns.split_first() else { return Ok(()) };
        write!(f, "  {:<40}{:>14}", "", "rolltop")?;
        writeln!(f, "{}", if others.is_empty() { String::new() } else { format!("{:>14}{:>8}", "other", "ratio") })?;
        for (at, figure) in ours.iter().enumerate() {
            write!(f, "  {:<40}{:>14}", figure.name, shown(figure.value))?;
            for other in others.iter().filter_map(|other| other.get(at)) {
                write!(f, "{:>14}{:>8}", shown(other.value), shown(figure.value / other.value))?;
            }
            writeln!(f)?;
        }
        Ok(())
    }
}

/// Formats a number: large ones without decimals, small ones with two, and a dash for NaN.
fn shown(value: f64) -> String {
    match value {
        _ if value.is_nan() => "-".to_owned(),
        _ if value.abs() >= 1_000.0 => format!("{value:.0}"),
        _ => format!("{value:.2}"),
    }
}

/// Prints the ratio of two sides immediately: of their rates, and of the processor time of their servers.
pub fn show_ratio(name: &str, ours: &Side, theirs: &Side) -> anyhow::Result<()> {
    let processor = ours.processor_ratio_to(theirs).map(|ratio| format!("; processor time {ratio:.2}"));
    show(format_args!("  {name:<48}{:>8.2}{}\n", ours.ratio_to(theirs), processor.unwrap_or_default()))
}

/// Prints a result immediately.
pub fn show(result: impl fmt::Display) -> anyhow::Result<()> {
    std::io::stdout().write_all(result.to_string().as_bytes()).context("cannot print the result")
}

/// Returns the median, with an even number of values the mean of the two in the middle, or 0 without values.
pub fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    match values.len() {
        0 => 0.0,
        n if n % 2 == 1 => values[n / 2],
        n => (values[n / 2 - 1] + values[n / 2]) / 2.0,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::super::load::{Pace, Refusals};
    use super::super::wire::Protocol;
    use super::*;

    #[test]
    fn medians() {
        assert_eq!(median([3.0, 1.0, 2.0].into_iter()), 2.0);
        assert_eq!(median([4.0, 1.0, 2.0, 3.0].into_iter()), 2.5);
        assert_eq!(median(std::iter::empty()), 0.0);
    }

    #[test]
    fn comparisons_show_one_program_or_two() {
        let column = |values: [f64; 2]| {
            let figure = |(name, value): (&str, f64)| Figure { name: name.to_owned(), value };
            ["a rate, /s", "a time, ms"].into_iter().zip(values).map(figure).collect::<Vec<_>>()
        };
        let shown = |columns| {
            let text = Comparison { title: "t".into(), columns }.to_string();
            text.lines().last().unwrap().split_whitespace().map(str::to_owned).collect::<Vec<_>>()
        };
        assert_eq!(shown(vec![column([5e5, 0.5])]), ["a", "time,", "ms", "0.50"]);
        assert_eq!(shown(vec![column([5e5, 0.5]), column([1e6, 2.0])]), ["a", "time,", "ms", "0.50", "2.00", "0.25"]);
    }

    /// Returns a turn of a second with this many requests of a millisecond.
    fn turn(requests: u64) -> Measured {
        let mut measured = Measured { took: Duration::from_secs(1), ..Measured::default() };
        (0..requests).for_each(|_| measured.latencies.record(Duration::from_millis(1)));
        measured
    }

    fn load() -> Load {
        let requests = Arc::new([]);
        let (protocol, pace, refusals) = (Protocol::Http, Pace::SATURATING, Refusals::Fail);
        Load { address: String::new(), protocol, requests, connections: 1, pace, refusals }
    }

    fn words(line: Option<&str>) -> Vec<&str> {
        line.unwrap_or_default().split_whitespace().collect()
    }

    #[test]
    fn ratios_compare_simultaneous_turns() {
        let (mut base, mut side) = (Side::new("base", 1, load()), Side::new("side", 10, load()));
        for (a, b) in [(100, 20), (50, 10), (400, 40)] {
            base.add(&turn(a), [None, Some(2e-4)]);
            side.add(&turn(b), [Some(1e-4), Some(1e-4)]);
        }
        assert_eq!(side.processor_ratio_to(&base), Some(0.25));
        let text = Table { title: "t".into(), unit: "increments", sides: vec![base, side] }.to_string();
        let row = words(text.lines().last());
        assert_eq!(row, ["side", "200", "2.00", "1.00", "1.00", "1.00", "1.00", "1.00", "0.50", "0.50"]);
    }

    #[test]
    fn a_background_load_has_its_own_row() {
        let mut side = Side::new("side", 1, load()).beside("beside", load());
        side.add(&turn(100), [Some(1e-3); 2]);
        if let Some((.., beside)) = &mut side.beside {
            beside.extend(&turn(50));
        }
        side.measured.lateness.record(Duration::from_millis(3));
        side.measured.refused = 7;
        let text = Table { title: "t".into(), unit: "requests", sides: vec![side] }.to_string();
        let mut lines = text.lines().skip(3);
        assert_eq!(words(lines.next()), ["side", "100", "1.00", "1.00", "1.00", "1.00", "1.00", "1.00", "-", "-"]);
        assert_eq!(words(lines.next()), ["beside", "50", "1.00", "1.00", "1.00", "1.00", "1.00"]);
        assert_eq!(lines.next(), Some("  refused, and in no figure above: 7 requests"));
        assert_eq!(lines.next(), Some("  of these latencies the generator's own delay: p99 3.00 ms, max 3.00 ms"));
    }
}
