//! A board that grows to millions of subjects, on the embedded store.
//!
//! It grows by tenths: NDJSON over four connections. At the same time one client reads pages, one reads standings and
//! one writes single increments. Then existing subjects are updated at random, and the server is killed and started
//! again.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::ensure;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use serde_json::Value;

use super::load::{Load, Measured, Pace, Refusals};
use super::process::{self, Server};
use super::report::{self, Comparison, Figure};
use super::wire::{self, Protocol};
use super::{ingest, subjects};

const BOARD: &str = "growth";
/// The number of parts in which the board grows. It is measured after each part.
const PARTS: u32 = 10;
/// The number of subjects of the board on which single writes are measured first.
const FEW: u32 = 100_000;
/// The number of requests prepared in advance.
const PREPARED: usize = 1 << 14;
/// The pause of the clients that read and write while the board grows. They measure waiting and should add little load.
const PAUSE: Duration = Duration::from_millis(2);

/// The options of the measurement.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct GrowthSetting {
    /// Number of subjects that the board grows to.
    #[arg(long, default_value_t = 10_000_000, value_parser = clap::value_parser!(u32).range(10_000..=100_000_000))]
    subjects: u32,

    /// Seconds for which single writes are measured at a time.
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u64).range(1..=3_600))]
    seconds: u64,

    /// Path of another rolltop program, measured in the same run in turns with this one.
    #[arg(long, value_name = "PROGRAM")]
    against: Option<PathBuf>,
}

/// The names of subjects, of 14 bytes, which determine the order in which subjects are added.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Names {
    Random,
    Ascending,
}

impl Names {
    /// Returns the name of a subject. All names differ.
    fn of(self, number: u32) -> String {
        match self {
            Names::Random => {
                // Each of these steps is reversible, so different numbers stay different.
                const MASK: u64 = (1 << 56) - 1;
                let mut mixed = u64::from(number) + 1;
                for _ in 0..2 {
                    mixed = mixed.wrapping_mul(0x9E37_79B9_7F4A_7C15) & MASK;
                    mixed ^= mixed >> 28;
                }
                format!("{mixed:014x}")
            }
            Names::Ascending => format!("user-{number:09}"),
        }
    }
}

/// Measures with random names, then with ascending ones. The programs take turns after each step.
pub async fn run(setting: &GrowthSetting) -> anyhow::Result<()> {
    let programs: Vec<PathBuf> = [process::rolltop()?].into_iter().chain(setting.against.clone()).collect();
    for (names, shown) in [(Names::Random, "random"), (Names::Ascending, "ascending")] {
        let mut all = Vec::new();
        for program in &programs {
            all.push(Growing::start(setting, program, names).await?);
        }
        for part in 0..PARTS {
            for growing in &mut all {
                growing.grow(part).await?;
            }
        }
        for growing in &mut all {
            growing.grown().await?;
        }
        if names == Names::Random {
            for part in 0..PARTS {
                for growing in &mut all {
                    growing.update(part).await?;
                }
            }
            for growing in &mut all {
                growing.updated()?;
                growing.restart().await;
            }
        }
        let title = format!("growth to {} subjects with {shown} names of 14 bytes, embedded", setting.subjects);
        report::show(Comparison { title, columns: all.into_iter().map(|growing| growing.figures).collect() })?;
    }
    Ok(())
}

/// A board that is measured as it grows.
struct Growing<'a> {
    setting: &'a GrowthSetting,
    names: Names,
    server: Server,
    /// The resident memory without the board.
    idle: f64,
    /// The increments a second of each part.
    rates: Vec<f64>,
    /// The slowest page, standing and single write while the board grew, in milliseconds.
    slowest: [f64; 3],
    /// For each part, the updates a second and the bytes written to the disk for each update.
    updates: Vec<(f64, f64)>,
    figures: Vec<Figure>,
}

impl<'a> Growing<'a> {
    async fn start(setting: &'a GrowthSetting, program: &Path, names: Names) -> anyhow::Result<Self> {
        let server = Server::rolltop_of(program, None, None).await?;
        for board in ["few", BOARD] {
            server.api().define(board, "COUNT(24h, hit, session)", "1h").await?;
        }
        ingest::seed(&server.api(), "few", FEW).await?;
        let (rates, slowest, updates, figures) = Default::default();
        let mut growing = Self { setting, names, server, idle: 0.0, rates, slowest, updates, figures };
        growing.single_writes("few", FEW, &subjects::name).await?;
        growing.idle = growing.server.usage()?.resident;
        Ok(growing)
    }

    /// Returns the number of subjects of a part.
    fn part(&self) -> u32 {
        self.setting.subjects / PARTS
    }

    /// Returns the number of subjects at the end.
    fn all(&self) -> u32 {
        self.part() * PARTS
    }

    /// Adds the subjects of one part.
    async fn grow(&mut self, part: u32) -> anyhow::Result<()> {
        let numbers: Vec<u32> = (part * self.part()..(part + 1) * self.part()).collect();
        let load = ingest::counting(&self.server.api(), BOARD, &numbers, |number| self.names.of(number));
        let lookers = self.lookers((part + 1) * self.part()).map(|looker| looker.start());
        let begun = Instant::now();
        load.run_once().await?;
        self.rates.push(f64::from(self.part()) / begun.elapsed().as_secs_f64());
        for (slowest, looker) in self.slowest.iter_mut().zip(lookers) {
            *slowest = slowest.max(looker.stop().await?.latencies.millis_at(1.0));
        }
        Ok(())
    }

    /// Records how the board grew, then measures single writes.
    async fn grown(&mut self) -> anyhow::Result<()> {
        let path = format!("/v1/boards/{BOARD}/rankings?limit=1");
        let page: Value = self.server.api().call("GET", &path, Value::Null).await?;
        ensure!(page["total"] == self.all(), "the board should hold {} subjects: {page}", self.all());
        let (first, last) = (self.rates[0], self.rates[self.rates.len() - 1]);
        self.note("ingest, the first tenth, /s", first);
        self.note("ingest, the last tenth, /s", last);
        self.note("ingest, the last to the first", last / first);
        let [page, standing, write] = self.slowest;
        self.note("slowest page of 50, ms", page);
        self.note("slowest standing, ms", standing);
        self.note("slowest single write, ms", write);
        let usage = self.server.usage()?;
        self.note("memory, bytes a subject", self.per_subject(usage.resident));
        self.note("memory at its peak", self.per_subject(usage.peak));
        let names = self.names;
        self.single_writes(BOARD, self.all(), &|number| names.of(number)).await
    }

    /// Sends as many increments as a part has subjects, to random subjects.
    async fn update(&mut self, part: u32) -> anyhow::Result<()> {
        let mut random = StdRng::seed_from_u64(part.into());
        let numbers: Vec<u32> = (0..self.part()).map(|_| random.random_range(0..self.all())).collect();
        let load = ingest::counting(&self.server.api(), BOARD, &numbers, |number| self.names.of(number));
        let (before, begun) = (self.server.usage()?.written, Instant::now());
        load.run_once().await?;
        let (rate, after) = (f64::from(self.part()) / begun.elapsed().as_secs_f64(), self.server.usage()?.written);
        self.updates.push((rate, (after - before) / f64::from(self.part())));
        Ok(())
    }

    /// Records the cost of the updates.
    fn updated(&mut self) -> anyhow::Result<()> {
        let usage = self.server.usage()?;
        let rate = report::median(self.updates.iter().map(|(rate, _)| *rate));
        // The mean and not the median, so that occasional writes count as well.
        let written = self.updates.iter().map(|(_, written)| written).sum::<f64>() / f64::from(PARTS);
        self.note("updates at random, /s", rate);
        self.note("disk written, bytes an update", written);
        self.note("disk used, bytes a subject", usage.on_disk / f64::from(self.all()));
        self.note("memory after updates", self.per_subject(usage.resident));
        Ok(())
    }

    /// Kills the server and starts it again. If it does not start, reports this and stops measuring it, so that the
    /// other results are kept.
    async fn restart(&mut self) {
        let restarted = self.server.restart().await.and_then(|took| Ok((took, self.server.usage()?)));
        if let Err(error) = &restarted {
            eprintln!("after a kill: {error:#}");
        }
        let (took, resident, peak) = match restarted {
            Ok((took, usage)) => (took.as_secs_f64(), self.per_subject(usage.resident), self.per_subject(usage.peak)),
            Err(_) => (f64::NAN, f64::NAN, f64::NAN),
        };
        self.note("seconds to ready after a kill", took);
        self.note("memory after the restart", resident);
        self.note("memory at its peak in loading", peak);
    }

    /// Sends one increment a request, over one connection, to existing subjects.
    async fn single_writes(&mut self, board: &str, subjects: u32, name: &dyn Fn(u32) -> String) -> anyhow::Result<()> {
        let writes = self.load(self.writes(board, subjects, name), Pace::SATURATING);
        writes.check("\"rejected\":[]").await?;
        let measured: Measured = writes.run_for(Duration::from_secs(self.setting.seconds)).await?;
        for (share, shown) in [(0.5, "p50"), (0.99, "p99"), (0.999, "p99.9"), (1.0, "slowest")] {
            self.note(format!("single write to {subjects}, {shown}, ms"), measured.latencies.millis_at(share));
        }
        Ok(())
    }

    /// Returns the loads that run while the board grows: one reads pages, one reads standings, one writes.
    fn lookers(&self, subjects: u32) -> [Load; 3] {
        let page = wire::get(&format!("/v1/boards/{BOARD}/rankings?limit=50"));
        let standing = |number| wire::get(&format!("/v1/boards/{BOARD}/subjects/{}", self.names.of(number)));
        let some = subjects::draw(subjects::Skew::Uniform, subjects, 1_000);
        let writes = self.writes(BOARD, subjects, &|number| self.names.of(number));
        let standings = some.into_iter().map(standing).collect();
        [Arc::from([page]), standings, writes].map(|requests| self.load(requests, Pace::Closed { pause: PAUSE }))
    }

    fn writes(&self, board: &str, subjects: u32, name: &dyn Fn(u32) -> String) -> Arc<[bytes::Bytes]> {
        let write = |number| wire::increment(board, &name(number));
        subjects::draw(subjects::Skew::Uniform, subjects, PREPARED).into_iter().map(write).collect()
    }

    fn load(&self, requests: Arc<[bytes::Bytes]>, pace: Pace) -> Load {
        let (address, refusals) = (self.server.address.clone(), Refusals::Fail);
        Load { address, protocol: Protocol::Http, requests, connections: 1, pace, refusals }
    }

    fn per_subject(&self, bytes: f64) -> f64 {
        (bytes - self.idle) / f64::from(self.all())
    }

    fn note(&mut self, name: impl Into<String>, value: f64) {
        self.figures.push(Figure { name: name.into(), value });
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn names_have_14_bytes_and_are_distinct() {
        for names in [Names::Random, Names::Ascending] {
            let all: HashSet<String> = (0..100_000).map(|number| names.of(number)).collect();
            assert_eq!(all.len(), 100_000);
            assert!(all.iter().all(|name| name.len() == 14), "{names:?}");
        }
        let random: Vec<String> = (0..1_000).map(|number| Names::Random.of(number)).collect();
        let rising = random.windows(2).filter(|pair| pair[0] < pair[1]).count();
        assert!((400..600).contains(&rising), "{rising} of 1,000 rise");
    }
}
