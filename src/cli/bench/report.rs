//! Medians of what each side did in its turns.

use std::fmt;
use std::io::Write;

use std::time::Duration;

use anyhow::Context;

use super::Setting;
use super::load::{Load, Measured};
use super::process::Redis;

/// One side of a comparison, and its load.
pub struct Side {
    pub load: Load,
    name: &'static str,
    /// Units of work in one request: increments.
    per_request: f64,
    turns: Vec<Turn>,
}

struct Turn {
    rate: f64,
    p50: f64,
    p99: f64,
    /// Processor time of Redis for each unit of work, in microseconds.
    redis_micros: Option<f64>,
}

/// Sides that had their turns in the same run; the first is what the others are compared with.
pub struct Table {
    pub title: String,
    pub unit: &'static str,
    pub sides: Vec<Side>,
}

impl Side {
    /// A side without turns yet.
    pub fn new(name: &'static str, per_request: usize, load: Load) -> Self {
        Self { name, load, per_request: per_request as f64, turns: Vec::new() }
    }

    /// Notes a turn; `redis_seconds` is the processor time Redis used in it.
    fn add(&mut self, measured: &Measured, redis_seconds: Option<f64>) {
        let work = measured.micros.len() as f64 * self.per_request;
        self.turns.push(Turn {
            rate: measured.rate() * self.per_request,
            p50: measured.millis_at(0.5),
            p99: measured.millis_at(0.99),
            redis_micros: redis_seconds.map(|seconds| seconds * 1e6 / work.max(1.0)),
        });
    }

    /// The median ratio of its rate to another's. Turns at about the same time are compared with each other: what
    /// disturbs one disturbs both.
    pub fn ratio_to(&self, base: &Side) -> f64 {
        median(self.turns.iter().zip(&base.turns).map(|(turn, base)| turn.rate / base.rate))
    }

    fn median(&self, of: impl Fn(&Turn) -> f64) -> f64 {
        median(self.turns.iter().map(of))
    }
}

impl Table {
    /// Gives each side its turns, one after the other, after a short one that does not count. A round goes there and
    /// back, with half a turn each way, so that no side has the better place in it.
    pub async fn measure(&mut self, setting: &Setting, redis: &mut Option<Redis>) -> anyhow::Result<()> {
        for side in &self.sides {
            side.load.run_for(Duration::from_secs(1)).await?;
        }
        let sides = self.sides.len();
        for _ in 0..setting.rounds {
            let mut turns = vec![(Measured::default(), None); sides];
            for at in (0..sides).chain((0..sides).rev()) {
                let before = cpu(redis).await?;
                let half = self.sides[at].load.run_for(setting.turn() / 2).await?;
                let after = cpu(redis).await?;
                let (turn, redis_seconds) = &mut turns[at];
                turn.extend(half);
                *redis_seconds = before.zip(after).map(|(before, after)| redis_seconds.unwrap_or(0.0) + after - before);
            }
            for (side, (turn, redis_seconds)) in self.sides.iter_mut().zip(turns) {
                side.add(&turn, redis_seconds);
            }
        }
        Ok(())
    }
}

async fn cpu(redis: &mut Option<Redis>) -> anyhow::Result<Option<f64>> {
    match redis {
        Some(redis) => redis.cpu_seconds().await.map(Some),
        None => Ok(None),
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "\n{}", self.title)?;
        let unit = format!("{}/s", self.unit);
        writeln!(f, "  {:<34}{unit:>14}{:>8}{:>10}{:>10}{:>14}", "", "ratio", "p50 ms", "p99 ms", "Redis CPU µs")?;
        let Some(first) = self.sides.first() else { return Ok(()) };
        for side in &self.sides {
            let ratio = side.ratio_to(first);
            write!(f, "  {:<34}{:>14.0}{ratio:>8.2}", side.name, side.median(|turn| turn.rate))?;
            write!(f, "{:>10.2}{:>10.2}", side.median(|turn| turn.p50), side.median(|turn| turn.p99))?;
            match side.turns.iter().map(|turn| turn.redis_micros).collect::<Option<Vec<_>>>() {
                Some(micros) => writeln!(f, "{:>14.2}", median(micros.into_iter()))?,
                None => writeln!(f, "{:>14}", "-")?,
            }
        }
        Ok(())
    }
}

/// One thing that was measured.
#[derive(Clone, Debug)]
pub struct Figure {
    pub name: String,
    /// NaN where it could not be measured.
    pub value: f64,
}

/// The same things measured of one program, or of two: ours and another.
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

/// Large numbers whole, small ones with two digits after the point, and a dash for none.
fn shown(value: f64) -> String {
    match value {
        _ if value.is_nan() => "-".to_owned(),
        _ if value.abs() >= 1_000.0 => format!("{value:.0}"),
        _ => format!("{value:.2}"),
    }
}

/// Prints a result at once.
pub fn show(result: impl fmt::Display) -> anyhow::Result<()> {
    std::io::stdout().write_all(result.to_string().as_bytes()).context("cannot print the result")
}

/// The middle value; the mean of the two in the middle where there are two; 0 of none.
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

    #[test]
    fn ratios_are_of_turns_at_the_same_time() {
        let load = Load {
            address: String::new(),
            protocol: Protocol::Http,
            requests: Arc::new([]),
            connections: 1,
            pause: Duration::ZERO,
        };
        let of = |count| Measured { took: Duration::from_secs(1), micros: vec![1_000; count] };
        let (mut base, mut side) = (Side::new("base", 1, load.clone()), Side::new("side", 10, load));
        for (a, b) in [(100, 20), (50, 10), (400, 40)] {
            base.add(&of(a), None);
            side.add(&of(b), Some(1e-4));
        }
        let text = Table { title: "t".into(), unit: "increments", sides: vec![base, side] }.to_string();
        let row: Vec<_> = text.lines().last().unwrap().split_whitespace().collect();
        assert_eq!(row, ["side", "200", "2.00", "1.00", "1.00", "0.50"]);
    }
}
