//! Boards of several parts on a cluster of six masters: how evenly the work is shared between the nodes, and the cost
//! of a page compared with a board without parts.

use std::fmt;
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use bytes::Bytes;

use super::api::Api;
use super::cluster::{Cluster, Work};
use super::latencies::Latencies;
use super::process::Server;
use super::report::{self, Side, Table};
use super::subjects::{self, Skew};
use super::wire::{self, Connection, Protocol};
use super::{Setting, ingest};

const MASTERS: usize = 6;
/// The number of parts of the board whose increments are counted on each node.
const SPREAD: u32 = 24;
/// The number of parts of the board whose pages are read.
const PARTS: u32 = 16;
/// The number of lines of a page.
const LINES: u32 = 50;
/// The number of requests with one increment prepared in advance. With this number the subjects are spread over the
/// nodes with a deviation of about 1 %.
const PREPARED: usize = 1 << 17;
/// The number of increments in one request that changes every part of a board, and the number of such requests
/// prepared.
const SOME: usize = 256;
const SOME_PREPARED: usize = 64;
/// The number of increments before pages are read. Without them all subjects would have the same score.
const SCORED: usize = 200_000;

/// Measures on a cluster that is started for this.
pub async fn run(setting: &Setting) -> anyhow::Result<()> {
    ensure!(setting.store == "redis", "parts starts a cluster of its own: --store redis");
    let mut cluster = Cluster::start(MASTERS).await?;
    let rolltop = Server::rolltop(Some(&cluster.url()), None).await?;
    let api = rolltop.api();
    shares(setting, &api, &mut cluster).await?;
    pages(setting, &api).await
}

/// Measures the work of each node for increments to uniform subjects.
async fn shares(setting: &Setting, api: &Api, cluster: &mut Cluster) -> anyhow::Result<()> {
    const BOARD: &str = "parts-spread";
    api.define_parts(BOARD, "COUNT(24h, hit, post)", "1h", SPREAD).await?;
    let drawn = subjects::draw(Skew::Uniform, setting.subjects, PREPARED);
    let requests = drawn.into_iter().map(|number| wire::increment(BOARD, &subjects::name(number)));
    let load = setting.load(&api.address, requests.collect::<Vec<_>>());
    // Scripts are loaded and connections are made before the measurement.
    load.run_for(Duration::from_secs(1)).await?;
    let before = cluster.work().await?;
    let measured = load.run_for(setting.turn() * setting.rounds).await?;
    let after = cluster.work().await?;
    let rows =
        cluster.addresses().into_iter().zip(after.iter().zip(&before).map(|(after, before)| after.since(before)));
    let title = format!(
        "increments of uniform subjects, {SPREAD} parts on {MASTERS} masters, {} connections, {:.0}/s",
        setting.connections,
        measured.rate()
    );
    report::show(Shares { title, rows: rows.collect() })
}

impl Work {
    fn since(&self, before: &Self) -> Self {
        Self {
            increments: self.increments.saturating_sub(before.increments),
            scripts: self.scripts.saturating_sub(before.scripts),
            commands: self.commands.saturating_sub(before.commands),
        }
    }
}

/// The work that each node did.
struct Shares {
    title: String,
    rows: Vec<(String, Work)>,
}

/// The value of a column for a node.
type Of = fn(&Work) -> u64;

/// The columns, with their names.
const COLUMNS: [(&str, Of); 3] =
    [("increments", |work| work.increments), ("scripts", |work| work.scripts), ("commands", |work| work.commands)];

impl fmt::Display for Shares {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "\n{}", self.title)?;
        write!(f, "  {:<34}", "node")?;
        for (name, _) in COLUMNS {
            write!(f, "{name:>14}{:>10}", "from even")?;
        }
        writeln!(f)?;
        let columns = COLUMNS.map(|(_, of)| {
            let done: Vec<u64> = self.rows.iter().map(|(_, work)| of(work)).collect();
            let away = from_even(&done);
            (done, away)
        });
        for (row, (name, _)) in self.rows.iter().enumerate() {
            write!(f, "  {name:<34}")?;
            for (done, away) in &columns {
                write!(f, "{:>14}{:>10}", done[row], percent(away[row]))?;
            }
            writeln!(f)?;
        }
        write!(f, "  {:<34}", "furthest from even")?;
        for (_, away) in &columns {
            let furthest = away.iter().copied().max_by(|a, b| a.abs().total_cmp(&b.abs())).unwrap_or_default();
            write!(f, "{:>14}{:>10}", "", percent(furthest))?;
        }
        writeln!(f)
    }
}

/// Returns by how much each value exceeds the mean of all, as a share of the mean.
fn from_even(done: &[u64]) -> Vec<f64> {
    let even = done.iter().sum::<u64>() as f64 / done.len().max(1) as f64;
    done.iter().map(|done| if even > 0.0 { *done as f64 / even - 1.0 } else { 0.0 }).collect()
}

fn percent(share: f64) -> String {
    format!("{:+.1} %", 100.0 * share)
}

/// A board whose top page is read.
struct Board {
    name: &'static str,
    page: Bytes,
    /// Prepared requests with one increment each, and with many each.
    singles: Vec<Bytes>,
    batches: Vec<Bytes>,
}

impl Board {
    fn new(name: &'static str, subjects: u32) -> Self {
        let path = format!("/v1/boards/{name}/increments");
        let singles = subjects::draw(Skew::Uniform, subjects, SOME * SOME_PREPARED);
        let batch = |numbers: &[u32]| {
            let line = |number: &u32| format!("{{\"subject\":\"{}\",\"amount\":1}}\n", subjects::name(*number));
            let body: String = numbers.iter().map(line).collect();
            wire::request("POST", &path, "application/x-ndjson", body.as_bytes())
        };
        Self {
            name,
            page: wire::get(&format!("/v1/boards/{name}/rankings?limit={LINES}")),
            batches: singles.chunks(SOME).map(batch).collect(),
            singles: singles.iter().map(|number| wire::increment(name, &subjects::name(*number))).collect(),
        }
    }
}

/// The change of a board before each of its pages.
#[derive(Clone, Copy, Debug)]
enum Change {
    Nothing,
    One,
    EveryPart,
}

impl Change {
    fn requests(self, board: &Board) -> &[Bytes] {
        match self {
            Change::Nothing => &[],
            Change::One => &board.singles,
            Change::EveryPart => &board.batches,
        }
    }
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Change::Nothing => f.write_str("unchanged"),
            Change::One => f.write_str("after an increment"),
            Change::EveryPart => write!(f, "after {SOME} increments"),
        }
    }
}

/// Reads the top page of two boards with the same content, in turns.
async fn pages(setting: &Setting, api: &Api) -> anyhow::Result<()> {
    let boards = [Board::new("parts-none", setting.subjects), Board::new("parts-some", setting.subjects)];
    for (board, shards) in boards.iter().zip([None, Some(PARTS)]) {
        match shards {
            None => api.define(board.name, "COUNT(24h, hit, post)", "1h").await?,
            Some(shards) => api.define_parts(board.name, "COUNT(24h, hit, post)", "1h", shards).await?,
        }
        ingest::seed(api, board.name, setting.subjects).await?;
        let scored = subjects::draw(Skew::Zipf, setting.subjects, SCORED);
        ingest::counting(api, board.name, &scored, subjects::name).run_once().await?;
        api.ensure_total(board.name, setting.subjects).await?;
    }
    let [none, some] = &boards;
    let mut rows = Vec::new();
    for change in [Change::Nothing, Change::One, Change::EveryPart] {
        let mut row = Row::new(change);
        for round in 0..setting.rounds {
            let mut sides = [(none, &mut row.none), (some, &mut row.some)];
            if round % 2 == 1 {
                sides.reverse();
            }
            for (board, turns) in sides {
                turns.push(turn(api, board, change, setting.turn()).await?);
            }
        }
        rows.push(row);
    }
    report::show(Pages { subjects: setting.subjects, rows })?;

    let hot = |board: &Board| setting.load(&api.address, [board.page.clone()]);
    let sides =
        vec![Side::new("a board without parts", 1, hot(none)), Side::new(format!("of {PARTS} parts"), 1, hot(some))];
    let title = format!("the top {LINES}, unchanged, {MASTERS} masters, {} connections", setting.connections);
    let mut table = Table { title, unit: "requests", sides };
    table.measure(setting, &mut None).await?;
    report::show(&table)
}

/// Reads a page repeatedly over one connection, for this time. Only the pages are measured.
async fn turn(api: &Api, board: &Board, change: Change, duration: Duration) -> anyhow::Result<Latencies> {
    let mut reading = Connection::open(&api.address, Protocol::Http).await?;
    let mut writing = Connection::open(&api.address, Protocol::Http).await?;
    reading.exchange(&board.page).await?;
    let (begun, mut latencies) = (Instant::now(), Latencies::default());
    let mut changes = change.requests(board).iter().cycle();
    while begun.elapsed() < duration {
        if let Some(change) = changes.next() {
            writing.exchange(change).await?;
        }
        let asked = Instant::now();
        reading.exchange(&board.page).await.with_context(|| format!("a page of {}", board.name))?;
        latencies.record(asked.elapsed());
    }
    Ok(latencies)
}

/// The turns of both boards in one situation.
struct Row {
    change: Change,
    none: Vec<Latencies>,
    some: Vec<Latencies>,
}

impl Row {
    fn new(change: Change) -> Self {
        Self { change, none: Vec::new(), some: Vec::new() }
    }

    /// Returns the median of the ratios of the median times of adjacent turns.
    fn ratio(&self) -> f64 {
        let millis = |latencies: &Latencies| latencies.millis_at(0.5);
        report::median(self.some.iter().zip(&self.none).map(|(some, none)| millis(some) / millis(none)))
    }
}

struct Pages {
    subjects: u32,
    rows: Vec<Row>,
}

impl fmt::Display for Pages {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "\nthe top {LINES} of {} subjects, {MASTERS} masters, 1 connection", self.subjects)?;
        writeln!(f, "  {:<34}{:>10}{:>8}{}", "", "pages", "ratio", Latencies::heading())?;
        let together = |turns: &[Latencies]| {
            let mut all = Latencies::default();
            turns.iter().for_each(|turn| all.add(turn));
            all
        };
        for row in &self.rows {
            let whole = "without parts";
            let parts = format!("of {PARTS} parts");
            for (name, turns, ratio) in [(whole, &row.none, 1.0), (&parts, &row.some, row.ratio())] {
                let (all, name) = (together(turns), format!("{}, {name}", row.change));
                writeln!(f, "  {name:<34}{:>10}{ratio:>8.2}{all}", all.count())?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_compared_with_the_mean() {
        assert_eq!(from_even(&[110, 90, 100]), [0.10000000000000009, -0.09999999999999998, 0.0]);
        assert_eq!((from_even(&[0, 0]), from_even(&[])), (vec![0.0, 0.0], vec![]));
        let work = |increments, scripts| Work { increments, scripts, commands: 10 * scripts };
        let rows = [("a", work(110, 50)), ("b", work(90, 50))].map(|(name, work)| (name.to_owned(), work));
        let text = Shares { title: "t".into(), rows: rows.to_vec() }.to_string();
        let row = |line: &str| line.split_whitespace().map(str::to_owned).collect::<Vec<_>>().join(" ");
        let lines: Vec<String> = text.lines().skip(3).map(row).collect();
        assert_eq!(lines[0], "a 110 +10.0 % 50 +0.0 % 500 +0.0 %");
        assert_eq!(lines[2], "furthest from even +10.0 % +0.0 % +0.0 %");
    }

    #[test]
    fn work_since_an_earlier_measurement_is_the_difference() {
        let work = |n| Work { increments: n, scripts: 2 * n, commands: 3 * n };
        assert_eq!(work(7).since(&work(5)), work(2));
    }

    #[test]
    fn ratios_compare_adjacent_turns() {
        let turn = |millis: u64| {
            let mut latencies = Latencies::default();
            latencies.record(Duration::from_millis(millis));
            latencies
        };
        let (none, some) = ([10, 40, 10].map(turn).to_vec(), [20, 80, 90].map(turn).to_vec());
        let row = Row { change: Change::One, none, some };
        assert!((row.ratio() - 2.0).abs() < 0.01, "{}", row.ratio());
        let text = Pages { subjects: 9, rows: vec![row] }.to_string();
        let last: Vec<&str> = text.lines().last().unwrap().split_whitespace().collect();
        assert_eq!(last[..8], ["after", "an", "increment,", "of", "16", "parts", "3", "2.00"]);
    }

    #[test]
    fn a_batch_almost_certainly_reaches_every_part() {
        let board = Board::new("b", 1_000_000);
        assert_eq!((board.batches.len(), board.singles.len()), (SOME_PREPARED, SOME * SOME_PREPARED));
        assert_eq!(Change::Nothing.requests(&board).len(), 0);
        // The probability that one of 16 parts gets no increment.
        assert!(16.0 * (15.0_f64 / 16.0).powi(SOME as i32) < 1e-5);
    }
}
