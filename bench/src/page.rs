//! Pages of a large board.

use std::num::NonZeroU32;
use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;

use super::api::Api;
use super::arrivals::Schedule;
use super::load::{Load, Pace, Refusals};
use super::process::{Redis, Server};
use super::report::{self, Side, Table};
use super::subjects::{self, Skew};
use super::target::Target;
use super::{LoadSetting, ingest, wire};

/// The default number of increments a second while the board is read.
pub const WRITES: u32 = 500;
const METRIC: &str = "COUNT(24h, hit, post)";
const SLOT: &str = "1h";
/// The number of lines of a page.
const LINES: u32 = 50;
/// The number of different pages, if the board is large enough.
const PAGES: u32 = 1_000;
/// The number of connections that write.
const WRITERS: u16 = 8;
/// The number of writes prepared in advance.
const PREPARED: usize = 1 << 14;

/// Measures one page and many pages of a board without writes, then one page while the board receives this many writes
/// a second. If another rolltop program is given, measures its pages of a board without writes too.
pub async fn run(setting: &LoadSetting, writes: Option<NonZeroU32>, against: Option<&Path>) -> anyhow::Result<()> {
    if let Some(api) = &setting.target {
        return Target::visit(api, async |target| measure(setting, writes, target, None, [None; 2], &mut None).await)
            .await;
    }
    let setting = &setting.for_comparison(against);
    let mut redis = Redis::of_store(&setting.setting.store).await?;
    let echo = Server::echo().await?;
    let url = redis.as_ref().map(|redis| redis.url.clone());
    let rolltop = Server::rolltop(url.as_deref(), None).await?;
    let other = match against {
        Some(program) => Some(Server::rolltop_of(program, url.as_deref(), None).await?),
        None => None,
    };
    let target = Target::started(rolltop.api());
    measure(setting, writes, &target, Some(&echo), [Some(&rolltop), other.as_ref()], &mut redis).await
}

async fn measure(
    setting: &LoadSetting,
    writes: Option<NonZeroU32>,
    target: &Target,
    echo: Option<&Server>,
    [rolltop, other]: [Option<&Server>; 2],
    redis: &mut Option<Redis>,
) -> anyhow::Result<()> {
    let subjects = setting.setting.subjects;
    let board = target.define("page", METRIC, SLOT).await?;
    ingest::seed(&target.api, &board, subjects).await?;
    target.api.ensure_total(&board, subjects).await?;

    let baseline = || {
        let load = echo.map(|echo| setting.load(&echo.address, [wire::baseline("post-1")]));
        load.map(|load| Side::new("bare echo", 1, load))
    };
    let hot = setting.load(&target.api.address, [page(&board, 0)]);
    let offsets = offsets(subjects);
    let shown = format!("{} different pages", offsets.len());
    let different = offsets.into_iter().map(|offset| page(&board, offset)).collect::<Arc<[_]>>();
    let (place, how) = (setting.place(), setting.shown());

    let mut sides: Vec<Side> = baseline().into_iter().collect();
    sides.push(Side::new("one page", 1, hot.clone()).of(rolltop));
    sides.push(Side::new(shown, 1, setting.load(&target.api.address, Arc::clone(&different))).of(rolltop));
    if let Some(other) = other {
        other.api().define(&board, METRIC, SLOT).await?;
        // On the embedded store the other program has its own boards. On Redis both use the same board.
        if redis.is_none() {
            ingest::seed(&other.api(), &board, subjects).await?;
        }
        other.api().ensure_total(&board, subjects).await?;
        let theirs = setting.load(&other.address, [page(&board, 0)]);
        sides.push(Side::new("the other rolltop, one page", 1, theirs).of(Some(other)));
        let theirs = setting.load(&other.address, different);
        sides.push(Side::new("the other rolltop, different pages", 1, theirs).of(Some(other)));
    }
    let title = format!("pages of {LINES} of {subjects} subjects, no writes, {place}, {how}");
    let mut table = Table { title, unit: "requests", sides };
    table.measure(&setting.setting, redis).await?;
    report::show(&table)?;
    if let ([.., hot, different, their_hot, their_different], true) = (&table.sides[..], other.is_some()) {
        for (shown, ours, theirs) in [("one page", hot, their_hot), ("different pages", different, their_different)] {
            report::show_ratio(&format!("rolltop to the other rolltop, {shown}"), ours, theirs)?;
        }
    }

    let Some(writes) = writes else { return Ok(()) };
    let ours =
        Side::new("one page", 1, hot).beside("increments meanwhile", writer(&target.api, &board, subjects, writes));
    let title = format!("the top {LINES} of {subjects} subjects, {writes} increments/s, {place}, {how}");
    let mut table = Table { title, unit: "requests", sides: baseline().into_iter().chain([ours]).collect() };
    table.measure(&setting.setting, redis).await?;
    report::show(&table)
}

/// Returns the offsets of the different pages: consecutive pages, as far as there are subjects.
fn offsets(subjects: u32) -> Vec<u32> {
    (0..PAGES).map(|page| page * LINES).take_while(|offset| *offset < subjects).collect()
}

fn page(board: &str, offset: u32) -> Bytes {
    wire::get(&format!("/v1/boards/{board}/rankings?offset={offset}&limit={LINES}"))
}

/// Returns the load of increments to existing subjects, at a fixed rate.
fn writer(api: &Api, board: &str, subjects: u32, rate: NonZeroU32) -> Load {
    let drawn = subjects::draw(Skew::Uniform, subjects, PREPARED);
    Load {
        address: api.address.clone(),
        protocol: wire::Protocol::Http,
        requests: drawn.into_iter().map(|number| wire::increment(board, &subjects::name(number))).collect(),
        connections: WRITERS,
        pace: Pace::Open(Schedule::new(rate)),
        refusals: Refusals::Count,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn page_offsets_are_distinct_and_within_the_ranking() {
        assert_eq!(offsets(120), [0, 50, 100]);
        assert_eq!(offsets(100), [0, 50]);
        let many = offsets(1_000_000);
        assert_eq!((many.len(), many.last()), (1_000, Some(&49_950)));
    }
}
